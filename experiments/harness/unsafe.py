"""What the library refuses, done anyway: the unsafe twins, and the damage they do.

They write past the library, with its triggers dropped, as a program that trusts its habits would
write.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from reconcile import Query, Receipt, Receiver, ReconcileError


def flip_state(
    sender: Path, operation_id: str, state: str, *, effect_id: str | None = None
) -> None:
    """Set a state by hand and end the open question: no decision, no evidence."""
    with closing(sqlite3.connect(sender, isolation_level=None)) as connection:
        _drop_triggers(connection, "operation", "obligation")
        connection.execute(
            "UPDATE operation SET state = ?, version = version + 1, effect_id = ? "
            "WHERE operation_id = ?",
            (state, effect_id, operation_id),
        )
        connection.execute("UPDATE obligation SET ended_ms = 0 WHERE ended_ms IS NULL")


def append_decision(
    sender: Path, operation_id: str, *, target: str, version: int, actor: str
) -> None:
    """Append a verdict whose update matched no row: the log contradicts the state."""
    with closing(sqlite3.connect(sender, isolation_level=None)) as connection:
        _drop_triggers(connection, "decision")
        connection.execute(
            "INSERT INTO decision "
            "SELECT number, ?, 'unknown', ?, 'authority', ?, NULL, NULL, NULL, NULL, "
            "'seen on my screen', 0 FROM operation WHERE operation_id = ?",
            (version, target, actor, operation_id),
        )


def forget_closes(receiver: Path) -> int:
    """Purge every close mark, as a clean-up by age would; returns how many there were."""
    with closing(sqlite3.connect(receiver, isolation_level=None)) as connection:
        _drop_triggers(connection, "closed")
        return connection.execute("DELETE FROM closed").rowcount


def release(sender: Path, operation_id: str) -> None:
    """Call an order failed whose outcome nobody knows, and free its money, as a cleaner would."""
    flip_state(sender, operation_id, "not_applied")
    with closing(sqlite3.connect(sender, isolation_level=None)) as connection:
        _drop_triggers(connection, "entry")
        connection.execute(
            "INSERT INTO entry SELECT l.currency, l.number + 1, o.number, 1, 'release', p.amount, "
            "l.reserved - p.amount, l.spent, l.written_off, 0 "
            "FROM operation o JOIN purchase p ON p.operation = o.number "
            "JOIN entry l ON l.currency = p.currency "
            "WHERE o.operation_id = ? ORDER BY l.number DESC LIMIT 1",
            (operation_id,),
        )


def finish(sender: Path, mission: str) -> None:
    """Call a mission finished since every task of it says so, as a dashboard would."""
    with closing(sqlite3.connect(sender, isolation_level=None)) as connection:
        _drop_triggers(connection, "mission")
        connection.execute(
            "UPDATE mission SET state = 'finished', revision = revision + 1, ended_by = 'done', "
            "ended_ms = (SELECT max(ended_ms) FROM task_end) WHERE name = ? AND NOT EXISTS ("
            "SELECT 1 FROM task t WHERE t.mission = mission.number AND NOT EXISTS ("
            "SELECT 1 FROM task_end e WHERE e.task = t.number AND e.state = 'succeeded'))",
            (mission,),
        )


def same_need_again(query: Query) -> Query:
    """The same proposal under an identity that nobody knows."""
    return replace(query, operation_id=f"{query.operation_id}-again")


def send_past_the_library(receiver: Receiver, query: Query) -> Receipt | None:
    """Send without announcing, approving or asking first; silence is taken for what it likes."""
    try:
        return receiver.send(query)
    except ReconcileError:
        return None


def _drop_triggers(connection: sqlite3.Connection, *tables: str) -> None:
    for table in tables:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", (table,)
        ).fetchall()
        for (name,) in names:
            connection.execute(f"DROP TRIGGER {name}")
