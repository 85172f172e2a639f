"""The independent oracle: reads both files, imports neither side, and says what cannot be true.

It is written a second time on purpose. A check that used the library's own rules would agree with
their faults.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

OPEN = ("unknown", "pending", "partial", "conflict")
NO_EFFECT = ("prepared", "not_applied", "rejected", "revoked")


def rows(file: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows of one question, read without the right to write."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA query_only = ON")
        return connection.execute(sql, values).fetchall()


def dump(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every table of a file, row by row."""
    tables = [
        name
        for (name,) in rows(file, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
    ]
    return {table: sorted(rows(file, f"SELECT * FROM {table}"), key=repr) for table in tables}


def effects(receiver: Path) -> dict[str, list[dict[str, Any]]]:
    """The effects of each operation, in order, as the receiver's file has them."""
    found: dict[str, list[dict[str, Any]]] = {}
    for operation_id, number, kind, payload, compensates in rows(
        receiver,
        "SELECT operation_id, number, kind, payload, compensates FROM effect ORDER BY 1, 2",
    ):
        found.setdefault(operation_id, []).append(
            {
                "effect_id": f"{operation_id}#{number}",
                "kind": kind,
                "payload": payload,
                "compensates": compensates,
            }
        )
    return found


def contacts(receiver: Path) -> list[tuple[str, str]]:
    """The receiver's own log of applies and closes: (request, operation id), in order."""
    return [
        (request, operation_id)
        for request, operation_id in rows(
            receiver, "SELECT request, operation_id FROM contact ORDER BY number"
        )
    ]


def closed(receiver: Path) -> list[str]:
    """The operations that are closed at the receiver."""
    return [
        operation_id
        for (operation_id,) in rows(receiver, "SELECT operation_id FROM closed ORDER BY 1")
    ]


def states(sender: Path) -> dict[str, tuple[str, int]]:
    """State and version of each operation, as the sender's file has them."""
    return {
        operation_id: (state, version)
        for operation_id, state, version in rows(
            sender, "SELECT operation_id, state, version FROM operation ORDER BY number"
        )
    }


def findings(sender: Path, receiver: Path) -> list[str]:
    """What the two files together say that cannot be true, by rule; empty if all of it can."""
    there = effects(receiver)
    found = [
        f"announce-before-act: {i} has an effect and no announcement"
        for i in there
        if i not in states(sender)
    ]
    for row in rows(
        sender,
        "SELECT number, operation_id, kind, payload, compensates, state, version, effect_id "
        "FROM operation ORDER BY number",
    ):
        found += _of_one(sender, row, there)
    return found


def _of_one(
    sender: Path, row: tuple[Any, ...], there: dict[str, list[dict[str, Any]]]
) -> list[str]:
    number, operation_id, kind, payload, compensates, state, version, effect_id = row
    mine = there.get(operation_id, [])
    found = []
    if len(mine) > 1:
        found.append(f"one-effect: {operation_id} has {len(mine)} effects")
    if (
        state == "confirmed"
        and {"effect_id": effect_id, "kind": kind, "payload": payload, "compensates": compensates}
        not in mine
    ):
        found.append(f"uniqueness-needs-closure: {operation_id} is confirmed without that effect")
    if state in NO_EFFECT and mine:
        found.append(f"absence-needs-closure: {operation_id} is {state} with an effect")
    if compensates is not None and compensates not in [
        e["effect_id"] for all_ in there.values() for e in all_
    ]:
        found.append(f"compensation-is-bound: {operation_id} amends an effect that is not there")
    found += _unexplained(sender, number, operation_id, state, version)
    waiting = rows(
        sender, "SELECT count(*) FROM obligation WHERE operation = ? AND ended_ms IS NULL", number
    )[0][0]
    if waiting != (state in OPEN):
        found.append(f"nothing-wedges: {operation_id} is {state} with {waiting} open questions")
    return found


def _unexplained(
    sender: Path, number: int, operation_id: str, state: str, version: int
) -> list[str]:
    """A state must be what its decisions lead to, step by step, each with what entitles it."""
    at, reached, found = "prepared", 1, []
    for made, source, target, cause, evidence, receipt, reason in rows(
        sender,
        "SELECT version, source, target, cause, evidence, receipt, reason FROM decision "
        "WHERE operation = ? ORDER BY version",
        number,
    ):
        if source != at or made != reached + 1:
            found.append(
                f"one-decision-per-version: {operation_id} has a gap before version {made}"
            )
        if not _entitled(sender, number, operation_id, target, cause, evidence, receipt, reason):
            found.append(
                f"evidence-commits-with-decision: {operation_id} became {target} "
                "without what entitles it"
            )
        at, reached = target, made
    incidents = rows(sender, "SELECT count(*) FROM incident WHERE operation = ?", number)[0][0]
    if (at, reached + incidents) != (state, version):
        found.append(f"silence-decides-nothing: {operation_id} is {state} and no decision says so")
    return found


def _entitled(
    sender: Path,
    number: int,
    operation_id: str,
    target: str,
    cause: str,
    evidence: str | None,
    receipt: int | None,
    reason: str | None,
) -> bool:
    if cause == "evidence":
        seen = json.loads(evidence or "{}")
        shut = [seen.get(flag) for flag in ("complete", "authoritative", "closed")] == [
            True,
            True,
            True,
        ]
        about = seen.get("query", {}).get("operation_id") == operation_id
        return shut and about and len(seen["effects"]) == (1 if target == "confirmed" else 0)
    if cause == "receipt":
        kept = rows(
            sender, "SELECT body FROM receipt WHERE operation = ? AND attempt = ?", number, receipt
        )
        return bool(kept) and json.loads(kept[0][0])["operation_id"] == operation_id
    if cause in ("authority", "withdrawn"):
        return bool(reason)
    return cause in ("announced", "never_sent", "contradiction")
