"""The receiver and the supplier without processes of their own, for what needs many runs.

The only module outside `receiver/` that imports it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from receiver import account, ledger
from receiver.__main__ import answer
from reconcile.flows.http_receiver import order_body
from reconcile.flows.process_receiver import apply_request, snapshot_request
from reconcile.rules.errors import NoReply, NotSent
from reconcile.rules.evidence import Effect, Query, Receipt, Snapshot, receipt_from, snapshot_from
from reconcile.rules.policy import EffectPolicy

from .supplier import IDENTITY, KEYED


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


class InProcessSupplier:
    """Answers as the supplier would by HTTP: the same values, refusals and notes of its account.

    `terms` are those of the account by their names, and `clock` is its clock; both may be changed
    between calls. It closes where its policy says that it can, which no supplier by HTTP does.
    """

    def __init__(
        self,
        file: Path,
        *,
        identity: str = IDENTITY,
        policy: EffectPolicy = KEYED,
        epoch: int = 1,
        limit_s: float | None = 1.0,
        clock: Callable[[], int] = ledger.now_ms,
        **terms: Any,
    ) -> None:
        self.file, self.identity, self.policy, self.epoch = file, identity, policy, epoch
        self.limit_s, self.clock, self.terms = limit_s, clock, terms

    def send(self, query: Query) -> Receipt | None:
        """Send the order once. None if the operation is closed there."""
        return self._receipt(
            _order, apply_request(query), order_body(query).decode(), none="closed"
        )

    def lookup(self, query: Query) -> Receipt | None:
        """The stored receipt of the operation. None proves nothing."""
        return self._receipt(account.lookup, self._about(query), none="absent")

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        """Read every row of the operation. A close that nobody offers is refused here."""
        if close and not self.policy.can_close:
            raise NoReply(self.identity, "it has no way to close; nobody was asked")
        reply = self._ask(_snapshot, {**self._about(query), "close": close})[1]
        return snapshot_from(query, reply["snapshot"])

    def listing(self) -> tuple[Effect, ...]:
        """Every effect of the account, all pages of it."""
        found: list[Effect] = []
        after = None
        while True:
            reply = self._ask(account.listing, {"target": self.identity}, after)[1]
            found += [Effect(**row) for row in reply["effects"]]
            after = reply["next"]
            if after is None:
                return tuple(found)

    def _about(self, query: Query) -> dict[str, object]:
        return {"operation": query.operation_id, "target": self.identity}

    def _receipt(
        self, serve: Callable[..., Any], request: dict[str, object], *words: object, none: str
    ) -> Receipt | None:
        terms = account.Terms(now_ms=self.clock(), **self.terms)
        status, reply = self._ask(serve, request, *words, terms)
        if reply["reply"] == none:
            return None
        if status != 200:
            raise NoReply(self.identity, f"{status} {reply['reply']}")
        return receipt_from(reply["receipt"])

    def _ask(
        self, serve: Callable[..., Any], request: dict[str, object], *words: object
    ) -> tuple[int, dict[str, Any]]:
        """Status and reply. Raises NotSent if it is another account, NoReply if it is refused."""
        try:
            with closing(ledger.open_file(str(self.file))) as connection:
                identity, epoch = ledger.who(connection)
                if (identity, epoch) != (self.identity, self.epoch):
                    raise NotSent(f"{self.file} is {identity!r} in epoch {epoch}")
                status, reply = serve(connection, request, *words)
        except (ledger.Refused, sqlite3.Error) as error:
            raise NoReply(self.identity, str(error)) from error
        return status, json.loads(json.dumps(reply))


def _order(
    connection: sqlite3.Connection, request: dict[str, object], body: str, terms: account.Terms
) -> Any:
    account.note_order(connection, request, body)
    return account.order(connection, request, terms)


def _snapshot(connection: sqlite3.Connection, request: dict[str, object]) -> Any:
    return 200, ledger.snapshot(connection, request)
