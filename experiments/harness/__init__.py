"""The harness: real files, real processes, and faults that enter through the seams."""
