"""What is true: pure functions and values. No file, clock, randomness or SQL."""
