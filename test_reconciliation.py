"""The one door to every test: python3 test_reconciliation.py"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

if str(Path(__file__).resolve().parent) not in sys.path:  # PYTHONSAFEPATH leaves it out
    sys.path.insert(0, str(Path(__file__).resolve().parent))

from experiments.tests.case_chapters import *  # noqa: E402,F403

if __name__ == "__main__":
    unittest.main()
