"""Make a ledger file: its tables, the copy of the table of moves, and the seals.

A seal is a set of triggers that keeps rows from being changed or removed, also by a plain second
connection. It is built from the table's own description, so that no key can be forgotten. It does
not resist DDL: whoever may drop a trigger, or switch triggers off, may do anything.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from ..rules import money
from ..rules.states import MOVES
from .tx import Tx

APPLICATION_ID = 0x5EC04C17  # in the file's header: this file is a ledger of this library
SCHEMA_VERSION = 3
SCRIPTS = ("schema.sql", "questions.sql", "orders.sql", "missions.sql")

MAY_CHANGE: dict[str, tuple[str, ...]] = {
    "legal_move": (),
    "policy": (),
    "money_move": (),
    "distinct_need": (),
    "compensation": (),
    "lookup": (),
    "receipt": (),
    "decision": (),
    "observation": (),
    "incident": (),
    "close_request": (),
    "operation": ("state", "version", "effect_id"),
    "attempt": ("transport", "said"),
    "lane": (),
    "obligation": ("due_ms", "visits", "fruitless", "found", "repairs", "ended_ms"),
    "escalation": ("repaired_by", "reason", "repaired_ms"),
    "store": ("incarnation", "acts", "paused_why"),
    "work": ("cancelled_by", "reason", "cancelled_ms"),
    "claim": ("generation", "token", "incarnation", "owner", "claimed_ms", "expires_ms"),
    "price": (),
    "budget": (),
    "approver": ("listed", "changed_ms"),
    "purchase": (),
    "approval": ("revoked_by", "reason", "revoked_ms"),
    "entry": (),
    "stock": (),
    "delivery": (),
    "mission": (
        *("contract_version", "world", "counts_from_ms", "revision", "state"),
        *("ended_by", "reason", "ended_ms"),
    ),
    "contract": (),
    "task": (),
    "task_operation": (),
    "command": (),
    "sighting": (),
    "evidence": (),
    "task_end": (),
    "verification": (),
}
"""Every table, and the columns of it that may change. No row is ever removed."""


def create(tx: Tx) -> None:
    """Fill an empty file within the open transaction."""
    from importlib import resources  # here, since it costs half of this package's start

    for script in SCRIPTS:
        text = resources.files(__package__).joinpath(script).read_text("utf-8")
        for statement in statements(text):
            tx.execute(statement)
    tx.execute("INSERT INTO store VALUES (1, 1, 0, NULL)")
    for state, does in money.MONEY.items():
        tx.execute("INSERT INTO money_move VALUES (?, ?)", (state.value, does))
    edges = [
        (source.value, target.value, cause.value)
        for (source, target), causes in MOVES.items()
        for cause in sorted(causes, key=lambda cause: cause.value)
    ]
    rows = ", ".join(["(?, ?, ?)"] * len(edges))
    tx.execute(f"INSERT INTO legal_move VALUES {rows}", [part for edge in edges for part in edge])
    for table in ("legal_move", "money_move"):
        tx.execute(
            f"CREATE TRIGGER {table}_is_complete BEFORE INSERT ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table}: the table of moves is complete'); END"
        )
    for table, may_change in MAY_CHANGE.items():
        seal(tx, table, may_change=may_change)
    tx.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    tx.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: executescript() would commit what is open."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def seal(tx: Tx, table: str, *, may_change: tuple[str, ...] = ()) -> None:
    """Refuse DELETE, every form of REPLACE, and a change of any column but those named.

    REPLACE removes the old row without running its delete triggers, unless each connection asks
    for that. It cannot go round the insert trigger of the row it brings, so that one looks for
    every unique key.
    """
    columns = tx.execute(f"PRAGMA table_info({table})").fetchall()
    keys = [[column[1] for column in sorted(columns, key=lambda c: c[5]) if column[5]]]
    for _, index, unique, origin, partial in tx.execute(f"PRAGMA index_list({table})").fetchall():
        if unique and origin != "pk":
            assert not partial, f"{index}: a partial unique index cannot be sealed"
            keys.append([part[2] for part in tx.execute(f"PRAGMA index_info({index})").fetchall()])
    taken = " OR ".join(
        "EXISTS (SELECT 1 FROM {} WHERE {})".format(
            table, " AND ".join(f"{column} = NEW.{column}" for column in key)
        )
        for key in keys
    )
    fixed = [column[1] for column in columns if column[1] not in may_change]
    changed = " OR ".join(f"NEW.{column} IS NOT OLD.{column}" for column in fixed)
    for name, event, condition in (
        ("is_not_replaced", "INSERT", taken),
        ("is_not_removed", "DELETE", "1"),
        ("is_not_changed", "UPDATE", changed if may_change else "1"),
    ):
        tx.execute(
            f"CREATE TRIGGER {table}_{name} BEFORE {event} ON {table} WHEN {condition} "
            f"BEGIN SELECT RAISE(ABORT, '{table}: a row is kept as it is'); END"
        )
