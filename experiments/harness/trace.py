"""What happened, in order, on four lanes: both files and both processes.

The events of the sender's file are read inside each of its transactions, just before it commits,
by a connection class of our own; nothing in the library knows that it is watched.
"""

from __future__ import annotations

import sqlite3
from typing import Any

LANES = ("sender.db", "sender", "receiver", "receiver.db")


class Trace:
    """An ordered list of events. Operations are named by their role when it is read."""

    def __init__(self) -> None:
        self._events: list[tuple[str, str | None, str]] = []
        self.roles: dict[str, str] = {}

    def at(self, lane: str, says: str, *, to: str | None = None) -> None:
        """One event on a lane, or an arrow from it to another."""
        assert lane in LANES and (to is None or to in LANES), (lane, to)
        self._events.append((lane, to, says))

    def by_role(self, text: str) -> str:
        """The text with each operation's identity replaced by its role."""
        for operation_id, role in self.roles.items():
            text = text.replace(operation_id, role)
        return text

    def to_json(self) -> list[dict[str, str]]:
        """The events as plain JSON, in order."""
        return [
            {"lane": lane, **({"to": to} if to else {}), "says": self.by_role(says)}
            for lane, to, says in self._events
        ]


_STATES = "SELECT operation_id, state, version FROM operation ORDER BY number"
_NOTES = (
    (
        "SELECT operation_id, seen, verdict FROM observation "
        "JOIN operation ON number = operation ORDER BY operation, seen",
        "{0}: kept, {2}",
    ),
    (
        "SELECT operation_id, asked, purpose FROM close_request "
        "JOIN operation ON number = operation ORDER BY operation, asked",
        "{0}: close requested",
    ),
    (
        "SELECT operation_id, i.version, 1 FROM incident i "
        "JOIN operation ON number = operation ORDER BY operation, i.version",
        "{0}: incident",
    ),
    (
        "SELECT operation_id, settles, does || ' ' || amount FROM entry "
        "JOIN operation ON operation.number = operation ORDER BY operation, settles",
        "{0}: money, {2}",
    ),
    (
        "SELECT operation_id, attempt, transport FROM attempt "
        "JOIN operation ON number = operation WHERE transport IS NOT NULL "
        "ORDER BY operation, attempt",
        "{0}: call recorded, {2}",
    ),
)


def watching(trace: Trace, opened: list[sqlite3.Connection]) -> type[sqlite3.Connection]:
    """A connection class that tells a trace what each commit changes, and registers itself."""

    class Watching(sqlite3.Connection):
        _before: tuple[str, ...] = ()

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            opened.append(self)

        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            news = self._lines() if sql == "COMMIT" else ()
            cursor = super().execute(sql, *values)
            if sql == "BEGIN IMMEDIATE":
                self._before = self._lines()
            for line in news:
                if line not in self._before:
                    trace.at("sender.db", line)
            return cursor

        def close(self) -> None:
            if self in opened:
                opened.remove(self)
            super().close()

        def _lines(self) -> tuple[str, ...]:
            run = super().execute
            if not run("SELECT 1 FROM sqlite_master WHERE name = 'operation'").fetchone():
                return ()
            lines = [
                f"{i}: {state}, version {version}" for i, state, version in run(_STATES).fetchall()
            ]
            for sql, says in _NOTES:
                lines += [says.format(*row) for row in run(sql).fetchall()]
            return tuple(lines)

    return Watching
