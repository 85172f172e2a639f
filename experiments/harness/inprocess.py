"""The receiver without a process of its own, for what needs many runs and no death on its side.

The only module outside `receiver/` that imports it.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from receiver import ledger
from receiver.__main__ import answer
from reconcile.flows.process_receiver import apply_request, snapshot_request
from reconcile.rules.evidence import Query, Receipt, Snapshot, receipt_from, snapshot_from
from reconcile.rules.policy import EffectPolicy


def create(file: Path, identity: str) -> None:
    """Make a receiver file."""
    ledger.create(str(file), identity)


class InProcessReceiver:
    """Answers as the process would, by the same wire text, through the same functions."""

    def __init__(self, file: Path, *, identity: str, policy: EffectPolicy, epoch: int = 1) -> None:
        self.file, self.identity, self.policy, self.epoch = file, identity, policy, epoch

    def send(self, query: Query) -> Receipt | None:
        reply = self._exchange(apply_request(query))
        return receipt_from(reply["receipt"]) if reply["reply"] == "receipt" else None

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        return snapshot_from(
            query, self._exchange(snapshot_request(query, close=close))["snapshot"]
        )

    def _exchange(self, request: dict[str, object]) -> dict[str, Any]:
        with closing(ledger.open_file(str(self.file))) as connection:
            reply: dict[str, Any] = json.loads(
                json.dumps(answer(connection, json.dumps(request).encode()))
            )
            return reply
