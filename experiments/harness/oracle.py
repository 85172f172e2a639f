"""The independent oracle: reads both files, imports neither side, and says what cannot be true.

It is written a second time on purpose. A check that used the library's own rules would agree with
their faults.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

OPEN = ("unknown", "pending", "partial", "conflict")
NO_EFFECT = ("prepared", "not_applied", "rejected", "revoked")

BECOMES = {
    "confirmed": "spend",
    "rejected": "release",
    "not_applied": "release",
    "revoked": "release",
    "written_off": "write_off",
    "failed": "write_off",
}
"""What each final state does to held money."""

Ask = Callable[..., list[tuple[Any, ...]]]
"""A question in SQL and its values; the rows that answer it."""


@contextmanager
def reading(file: Path) -> Iterator[Ask]:
    """Questions to one file, asked without the right to write."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA query_only = ON")
        yield lambda sql, *values: connection.execute(sql, values).fetchall()


def rows(file: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows of one question."""
    with reading(file) as ask:
        return ask(sql, *values)


def dump(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every table of a file, row by row."""
    with reading(file) as ask:
        tables = ask("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
        return {table: sorted(ask(f"SELECT * FROM {table}"), key=repr) for (table,) in tables}


def effects(receiver: Path) -> dict[str, list[dict[str, Any]]]:
    """The effects of each operation, in order, as the receiver's file has them."""
    with reading(receiver) as ask:
        return _effects(ask)


def _effects(ask: Ask) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for operation_id, number, kind, payload, compensates in ask(
        "SELECT operation_id, number, kind, payload, compensates FROM effect ORDER BY 1, 2"
    ):
        effect = {"effect_id": f"{operation_id}#{number}", "kind": kind, "payload": payload}
        found.setdefault(operation_id, []).append({**effect, "compensates": compensates})
    return found


def contacts(receiver: Path) -> list[tuple[str, str]]:
    """The receiver's own log of what was asked: (request, operation id), in order; a listing asks
    about no operation, and has an empty one.
    """
    found = rows(receiver, "SELECT request, operation_id FROM contact ORDER BY number")
    return [(request, operation_id or "") for request, operation_id in found]


def bodies(receiver: Path, operation_id: str) -> list[str]:
    """The bodies of the requests for one operation's effect, as they came, in order."""
    sql = "SELECT body FROM contact WHERE request = 'apply' AND operation_id = ? ORDER BY number"
    return [body for (body,) in rows(receiver, sql, operation_id)]


def declined(receiver: Path) -> list[str]:
    """The operations whose rejection is stored at the receiver."""
    return [found for (found,) in rows(receiver, "SELECT operation_id FROM declined ORDER BY 1")]


def closed(receiver: Path) -> list[str]:
    """The operations that are closed at the receiver."""
    return [found for (found,) in rows(receiver, "SELECT operation_id FROM closed ORDER BY 1")]


def committed(receiver: Path) -> list[str]:
    """What stands at the receiver, a line for each effect and each close mark."""
    with reading(receiver) as ask:
        lines = [
            f"{row['effect_id']} committed" for found in _effects(ask).values() for row in found
        ]
        marks = ask("SELECT operation_id FROM closed ORDER BY 1")
    return lines + [f"{operation_id} closed" for (operation_id,) in marks]


def receipts(sender: Path) -> list[dict[str, Any]]:
    """The receipts that the sender kept, oldest first."""
    found = rows(sender, "SELECT body FROM receipt ORDER BY received_ms, operation, received")
    return [json.loads(body) for (body,) in found]


def states(sender: Path) -> dict[str, tuple[str, int]]:
    """State and version of each operation, as the sender's file has them."""
    found = rows(sender, "SELECT operation_id, state, version FROM operation ORDER BY number")
    return {operation_id: (state, version) for operation_id, state, version in found}


def findings(sender: Path, receiver: Path) -> list[str]:
    """What the two files together say that cannot be true, by rule; empty if all of it can."""
    there = effects(receiver)
    with reading(sender) as ask:
        operations = ask(
            "SELECT number, operation_id, kind, payload, compensates, state, version, effect_id "
            "FROM operation ORDER BY number"
        )
        # A paused store is older than the world: that the world did more is why it is paused.
        paused = bool(ask("SELECT 1 FROM store WHERE paused_why IS NOT NULL"))
        known = {row[1] for row in operations}
        found = [
            f"announce-before-act: {operation_id} has an effect and no announcement"
            for operation_id in there
            if operation_id not in known and not paused
        ]
        for row in operations:
            found += _of_one(ask, row, there, paused=paused)
        found += _of_money(ask, there)
        found += _of_missions(ask)
    return found


def _of_one(
    ask: Ask, row: tuple[Any, ...], there: dict[str, list[dict[str, Any]]], *, paused: bool
) -> list[str]:
    number, operation_id, kind, payload, compensates, state, version, effect_id = row
    mine, found = there.get(operation_id, []), []
    wanted = {"effect_id": effect_id, "kind": kind, "payload": payload, "compensates": compensates}
    if len(mine) > 1:
        found.append(f"one-effect: {operation_id} has {len(mine)} effects")
    if state == "confirmed" and wanted not in mine:
        found.append(f"uniqueness-needs-closure: {operation_id} is confirmed without that effect")
    if state in NO_EFFECT and mine and not (paused and state == "prepared"):
        found.append(f"absence-needs-closure: {operation_id} is {state} with an effect")
    everything = {effect["effect_id"] for effects in there.values() for effect in effects}
    if compensates is not None and compensates not in everything:
        found.append(f"compensation-is-bound: {operation_id} amends what is not there")
    found += _unexplained(ask, number, operation_id, state, version)
    (waiting,) = ask(
        "SELECT count(*) FROM obligation WHERE operation = ? AND ended_ms IS NULL", number
    )[0]
    if waiting != (state in OPEN):
        found.append(f"nothing-wedges: {operation_id} is {state} with {waiting} open questions")
    return found


def _unexplained(ask: Ask, number: int, operation_id: str, state: str, version: int) -> list[str]:
    """A state must be what its decisions lead to, step by step, each with what entitles it."""
    at, reached, found = "prepared", 1, []
    incidents = {
        made for (made,) in ask("SELECT version FROM incident WHERE operation = ?", number)
    }
    for made, source, target, *entitlement in ask(
        "SELECT version, source, target, cause, evidence, receipt, reason FROM decision "
        "WHERE operation = ? ORDER BY version",
        number,
    ):
        if source != at or made != reached + 1:
            found.append(
                f"one-decision-per-version: {operation_id} has a gap before version {made}"
            )
        if not _entitled(ask, number, operation_id, target, *entitlement):
            found.append(
                f"evidence-commits-with-decision: {operation_id} became {target} "
                "without what entitles it"
            )
        at, reached = target, made
    if (at, reached + len(incidents)) != (state, version):
        found.append(
            f"silence-decides-nothing: {operation_id} is {state}, and the decisions end at {at}"
        )
    return found


def _entitled(
    ask: Ask,
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
        flags = [seen.get(flag) for flag in ("complete", "authoritative", "closed")]
        about = seen.get("query", {}).get("operation_id") == operation_id
        matches = 1 if target == "confirmed" else 0
        return flags == [True, True, True] and about and len(seen["effects"]) == matches
    if cause == "receipt":
        kept = ask(
            "SELECT body FROM receipt WHERE operation = ? AND received = ?", number, receipt
        )
        return bool(kept) and json.loads(kept[0][0])["operation_id"] == operation_id
    if cause in ("authority", "withdrawn"):
        return bool(reason)
    return cause in ("announced", "never_sent", "contradiction")


def _of_missions(ask: Ask) -> list[str]:
    """Missions that were called finished over what nobody knew, then or since."""
    return [
        f"completed-means-known: mission {name} is finished and {operation_id} is {state}"
        for name, operation_id, state in ask(
            "WITH RECURSIVE mine (mission, number) AS ("
            "SELECT t.mission, o.number FROM task t JOIN operation o ON o.work_id = t.work_id "
            "UNION SELECT mine.mission, c.operation "
            "FROM mine JOIN compensation c ON c.original = mine.number) "
            "SELECT m.name, o.operation_id, o.state FROM mission m "
            "JOIN mine ON mine.mission = m.number JOIN operation o ON o.number = mine.number "
            "WHERE m.state = 'finished' AND EXISTS (SELECT 1 FROM attempt a "
            "WHERE a.operation = o.number AND a.announced_ms <= m.ended_ms) "
            "ORDER BY m.number, o.number"
        )
        if state in OPEN
    ]


def _of_money(ask: Ask, effects: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What the journal of money says that cannot be true beside the states."""
    found = _sums(ask)
    for number, operation_id, state, sent in ask(
        "SELECT o.number, o.operation_id, o.state, "
        "EXISTS (SELECT 1 FROM attempt t WHERE t.operation = o.number) "
        "FROM operation o JOIN purchase p ON p.operation = o.number ORDER BY o.number"
    ):
        does = [
            row[0]
            for row in ask("SELECT does FROM entry WHERE operation = ? ORDER BY settles", number)
        ]
        settled = does[1:]
        expected = [BECOMES[state]] if state in BECOMES and does else []
        if settled != expected:
            found.append(f"money-moves-once: {operation_id} is {state}, its money {settled}")
        if sent and not does:
            found.append(f"admission-rechecks-authority: {operation_id} left without held money")
        if effects.get(operation_id) and settled == ["release"]:
            found.append(
                f"unknown-holds-money: {operation_id} has an effect and its money is free"
            )
    return found


def _sums(ask: Ask) -> list[str]:
    found = []
    now: dict[str, dict[str, int]] = {}
    for currency, does, amount, reserved, spent, written_off in ask(
        "SELECT currency, does, amount, reserved, spent, written_off FROM entry "
        "ORDER BY currency, number"
    ):
        figures = now.setdefault(currency, {"reserved": 0, "spend": 0, "write_off": 0})
        figures["reserved"] += amount if does == "reserve" else -amount
        if does in ("spend", "write_off"):
            figures[does] += amount
        if [*figures.values()] != [reserved, spent, written_off]:
            found.append(f"money-moves-once: the journal in {currency} does not add up")
    highest: dict[str, int] = dict(
        ask("SELECT currency, max(ceiling) FROM budget GROUP BY currency")
    )
    for currency, figures in now.items():
        if sum(figures.values()) > highest.get(currency, 0):
            found.append(f"unknown-holds-money: more than the ceiling in {currency}")
    return found
