"""What every test of files and processes stands on: a lab, and an end that leaves nothing unexplained."""

from __future__ import annotations

import os
import unittest
from typing import Any

from experiments.harness.lab import Lab
from experiments.harness.scene import Scene
from reconcile import (
    Ledger,
    Operation,
    Query,
    Receipt,
    Receiver,
    Snapshot,
    dispatch,
    look,
    prepare,
)

ORDER: dict[str, Any] = {
    "work_id": "w-1",
    "kind": "charge",
    "payload": {"pence": 1500},
    "subject": "invoice-1",
}


class LabCase(unittest.TestCase):
    """Gives `self.lab`. Its end fails on an open connection, a left process or an unexplained effect."""

    def setUp(self) -> None:
        self.lab = Lab()

    def tearDown(self) -> None:
        self.lab.close()
        if hasattr(os, "WNOHANG"):
            with self.assertRaises(ChildProcessError, msg="a process was left"):
                os.waitpid(-1, os.WNOHANG)

    def unknown(self, scene: Scene, ledger: Ledger, **changed: Any) -> Operation:
        """An operation whose receipt was lost: the effect is committed, and the sender does not know."""
        operation = prepare(ledger, scene.near(), **{**ORDER, **changed})
        scene.name(operation, changed.get("work_id", "charge"))
        dispatch(ledger, operation.operation_id, LosesReceipt(scene.near()))
        return look(ledger, operation.operation_id)


class LosesReceipt:
    """The receiver does what it is asked, and nothing of its receipt comes back."""

    def __init__(self, inner: Receiver) -> None:
        self._inner = inner
        self.identity, self.epoch, self.policy = inner.identity, inner.epoch, inner.policy

    def send(self, query: Query) -> Receipt | None:
        self._inner.send(query)
        return None

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        return self._inner.snapshot(query, close=close)


class LosesRequest(LosesReceipt):
    """The request never arrives, and the sender cannot tell."""

    def send(self, query: Query) -> Receipt | None:
        return None
