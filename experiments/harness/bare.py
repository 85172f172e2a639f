"""The barest thing that writes what the library wrote: its statements again, without its rules.

What the library asks SQLite to write is recorded while it works, with the moments at which it
sends, and played on a file that has its tables and none of its triggers. What the triggers wrote
is added, so that the same rows stand in both files, in as many commits.
"""

from __future__ import annotations

import http.client
import json
import sqlite3
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from reconcile import Query, Receipt, Receiver, Snapshot
from reconcile.flows.http_receiver import order_body
from reconcile.ledger import schema

from .processes import LIMIT_S

Step = tuple[str, Any]
SEND = "send"
WRITES = ("INSERT", "UPDATE", "BEGIN IMMEDIATE", "COMMIT")


class Recorded:
    """What one round wrote and sent, in order; `taken` gives it away."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def taken(self) -> list[Step]:
        """The steps since the last call."""
        steps, self.steps = self.steps, []
        return steps

    def connection(self) -> type[sqlite3.Connection]:
        """The connection class for `Ledger(factory=…)`."""
        recorded = self

        class Recording(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                if sql.startswith(WRITES):
                    recorded.steps.append((sql, values))
                return super().execute(sql, *values)

        return Recording

    def receiver(self, inner: Receiver) -> Receiver:
        """A receiver whose sends are steps."""
        return _Sending(self, inner)


class _Sending:
    def __init__(self, recorded: Recorded, inner: Receiver) -> None:
        self._recorded, self._inner = recorded, inner
        self.identity, self.epoch, self.policy = inner.identity, inner.epoch, inner.policy
        self.limit_s = getattr(inner, "limit_s", LIMIT_S)

    def send(self, query: Query) -> Receipt | None:
        self._recorded.steps.append((SEND, query))
        return self._inner.send(query)

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        return self._inner.snapshot(query, close=close)


def commits(steps: list[Step]) -> int:
    """How many commits these steps are."""
    return sum(sql == "COMMIT" for sql, _ in steps)


def open_bare(file: Path) -> sqlite3.Connection:
    """A new file with the library's tables, and none of its triggers."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    for script in schema.SCRIPTS:
        text = resources.files("reconcile.ledger").joinpath(script).read_text("utf-8")
        for statement in schema.statements(text):
            if "CREATE TRIGGER" not in statement:
                connection.execute(statement)
    connection.execute("INSERT INTO store VALUES (1, 1, 0, NULL)")
    return connection


def play(
    connection: sqlite3.Connection, steps: list[Step], send: Callable[[Query], object]
) -> None:
    """The same statements again, and what the triggers made of them."""
    execute = connection.execute
    for sql, values in steps:
        if sql == SEND:
            send(values)
            continue
        execute(sql, *values).fetchall()
        if sql.startswith("INSERT INTO decision"):
            number, version, _, target, *_ = values[0]
            moved = "UPDATE operation SET state = ?, version = ? WHERE number = ?"
            execute(moved, (target, version, number))
            if target == "confirmed":
                execute(_SPENDS, (number,))


_SPENDS = (
    "INSERT INTO entry SELECT currency, (SELECT max(number) + 1 FROM entry), operation, 1, "
    "'spend', amount, reserved - amount, spent + amount, written_off, 0 "
    "FROM entry WHERE operation = ? AND settles = 0"
)


def exchange(url: str, query: Query) -> None:
    """The greeting and the order on one connection, as barely as a client can make them."""
    body = order_body(query)
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=LIMIT_S)
    try:
        connection.request("GET", "/account")
        json.loads(connection.getresponse().read())
        connection.request("PUT", f"/operations/{query.operation_id}-bare", body)
        json.loads(connection.getresponse().read())
    finally:
        connection.close()
