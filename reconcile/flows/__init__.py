"""What happens: each flow is a few short transactions around at most one call outside."""
