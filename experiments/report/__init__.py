"""What a reader sees of a run."""
