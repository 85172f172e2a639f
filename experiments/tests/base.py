"""What tests of files and processes stand on: a lab, and an end that leaves nothing behind."""

from __future__ import annotations

import os
import unittest
from typing import Any

from experiments.harness.lab import Lab
from experiments.harness.lossy import LosesReceipt, LosesRequest
from experiments.harness.scene import Scene
from reconcile import Ledger, Operation

__all__ = ["ORDER", "LabCase", "LosesReceipt", "LosesRequest"]

ORDER: dict[str, Any] = {
    "work_id": "w-1",
    "kind": "charge",
    "payload": {"pence": 1500},
    "subject": "invoice-1",
}


class LabCase(unittest.TestCase):
    """Gives `self.lab`. Its end fails on what is open, alive, or cannot be true of the files."""

    def setUp(self) -> None:
        self.lab = Lab()

    def tearDown(self) -> None:
        self.lab.close()
        if hasattr(os, "WNOHANG"):
            with self.assertRaises(ChildProcessError, msg="a process was left"):
                os.waitpid(-1, os.WNOHANG)

    def unknown(self, scene: Scene, ledger: Ledger, **changed: Any) -> Operation:
        """An operation that was done and whose receipt was lost."""
        role = changed.pop("work_id", "charge")
        return scene.unknown(ledger, role, **{"subject": f"invoice of {role}", **changed})
