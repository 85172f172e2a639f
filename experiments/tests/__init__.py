"""The tests: one module for each part, imported by name from `test_reconciliation.py`."""
