"""Break the sender from outside: at a statement or either side of a send, on one counter.

Two seams are enough, because the library asks SQLite in one way only and reaches a receiver in
one way only. A statement is made to fail by SQLite itself: by its authorizer, which refuses the
statement and leaves the transaction, or by its progress handler, which interrupts it and may end
the transaction. Counting without a fault tells how many points there are; `bypassed` proves, by
SQLite's own trace, that none goes unseen.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

from reconcile.flows.receivers import Receiver
from reconcile.rules.evidence import Query, Receipt, Snapshot
from reconcile.rules.policy import EffectPolicy

EXIT = 29
HOW = ("exit", "exit_after", "deny", "interrupt")


class Fault:
    """One fault at one point. `at` counts from 0, or names a point, or the how-many-th of its name
    (`COMMIT#2`); None only counts.

    `how`: exit (the process ends before the point), exit_after (just after it), deny or interrupt
    (SQLite fails the statement). `tell` hears the point just before the process ends. `delivered`
    says whether it happened, and `points` names what was passed.
    """

    def __init__(
        self,
        at: int | str | None = None,
        *,
        how: str = "exit",
        tell: Callable[[str], None] = lambda point: None,
    ) -> None:
        assert how in HOW, how
        self.at, self.how, self._tell = at, how, tell
        self._passed: Counter[str] = Counter()
        self.delivered = False
        self.points: list[str] = []
        self.bypassed: list[str] = []

    def _due(self, point: str) -> bool:
        self.points.append(point)
        self._passed[point] += 1
        names = (len(self.points) - 1, point, f"{point}#{self._passed[point]}")
        return self.at is not None and self.at in names

    def around(self, point: str) -> bool:
        """Pass a point; end the process if it is to end before it. True: it is to fail at it."""
        due = self._due(point)
        if due and self.how == "exit":
            self.end(point)
        return due

    def end(self, point: str) -> NoReturn:
        """Tell where, and end the process."""
        self._tell(point)
        os._exit(EXIT)

    def connection(self) -> type[sqlite3.Connection]:
        """The connection class for `Ledger(factory=…)`."""
        fault = self

        class Breaking(sqlite3.Connection):
            _inside = False

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                self.set_trace_callback(self._traced)

            def _traced(self, sql: str) -> None:
                if not self._inside:
                    fault.bypassed.append(sql)

            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                point = " ".join(sql.split())[:40]
                due = fault.around(point)
                self._inside = True
                try:
                    if due and fault.how == "deny":
                        return self._denied(sql, *values)
                    if due and fault.how == "interrupt":
                        return self._interrupted(sql, *values)
                    cursor = super().execute(sql, *values)
                    if due:
                        fault.end(point)
                    return cursor
                finally:
                    self._inside = False

            def _denied(self, sql: str, *values: Any) -> sqlite3.Cursor:
                self.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)
                try:
                    return super().execute(sql, *values)
                except sqlite3.Error:
                    fault.delivered = True
                    raise
                finally:  # None would end it from 3.11 on only
                    self.set_authorizer(lambda *_: sqlite3.SQLITE_OK)

            def _interrupted(self, sql: str, *values: Any) -> sqlite3.Cursor:
                self.set_progress_handler(lambda: 1, 1)
                try:
                    return super().execute(sql, *values)
                except sqlite3.Error:
                    fault.delivered = True
                    raise
                finally:
                    self.set_progress_handler(None, 0)

        return Breaking

    def receiver(self, inner: Receiver) -> Receiver:
        """A receiver whose sends, and lookups, count both their edges as points."""
        return (_KeyedEdges if hasattr(inner, "lookup") else _Edges)(self, inner)


class _Edges:
    def __init__(self, fault: Fault, inner: Receiver) -> None:
        self._fault, self._inner = fault, inner
        self.identity, self.epoch = inner.identity, inner.epoch
        self.policy: EffectPolicy = inner.policy

    def send(self, query: Query) -> Receipt | None:
        self._pass("before send")
        receipt = self._inner.send(query)
        self._pass("after send")
        return receipt

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        return self._inner.snapshot(query, close=close)

    def _pass(self, point: str) -> None:
        if self._fault.around(point) and self._fault.how == "exit_after":
            self._fault.end(point)


class _KeyedEdges(_Edges):
    def lookup(self, query: Query) -> Receipt | None:
        self._pass("before lookup")
        found: Receipt | None = self._inner.lookup(query)  # type: ignore[attr-defined]
        self._pass("after lookup")
        return found
