"""Open questions: born with `unknown`, ended with its answer, each in the same commit.

The queue has one order, `due_ms`. To claim a question, to look in vain, to hand it back: each
moves that one indexed number, so that what is leased, resting or answered is never looked at, and
the cost of a sweep does not depend on the size of the backlog. What was visited goes behind all
that is due, so that each is visited once before any is visited twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..rules import checks, sweep_errors
from ..rules.claim import LONGEST_LEASE_MS, Claim
from ..rules.identity import canonical_json
from ..rules.obligation import Escalation, Obligation
from ..rules.operation import Operation, Scope
from . import claims, operations
from .tx import Tx


def begin(tx: Tx, operation: Operation) -> None:
    """Open the question of this operation, as its next generation."""
    deadline_ms = operation.policy.deadline_ms
    if deadline_ms is not None:
        deadline_ms = min(tx.now_ms + deadline_ms, checks.INT_MAX)
    tx.execute(
        "INSERT INTO obligation (operation, generation, lane, attempt, opened_ms, deadline_ms, "
        "due_ms) SELECT ?, coalesce(max(generation), 0) + 1, ?, ?, ?, ?, ? "
        "FROM obligation WHERE operation = ?",
        (
            operation.number,
            _lane_of(tx, operation),
            operation.attempts + 1,
            tx.now_ms,
            deadline_ms,
            tx.now_ms,
            operation.number,
        ),
    )


def end(tx: Tx, operation: Operation) -> None:
    """End the open question of this operation; without one, do nothing."""
    tx.execute(
        "UPDATE obligation SET ended_ms = ? WHERE operation = ? AND ended_ms IS NULL",
        (tx.now_ms, operation.number),
    )


# --- the queue ----------------------------------------------------------------------------------


def lanes(tx: Tx, scope: Scope, *, target: str | None, epoch: int) -> list[int]:
    """The lanes of a scope that lead to this life of a receiver; `target` None: all of the scope.

    Raises UnknownScope if nothing was ever announced in it.
    """
    rows = tx.execute(
        "SELECT number, target, epoch FROM lane WHERE scope = ? ORDER BY number",
        (canonical_json(scope),),
    ).fetchall()
    if not rows:
        raise sweep_errors.UnknownScope(" / ".join(scope))
    return [number for number, *whose in rows if target is None or whose == [target, epoch]]


def due(tx: Tx, lane: int, *, limit: int) -> list[tuple[int, int]]:
    """What may be worked on now, (due_ms, operation number), the longest due first."""
    rows = tx.execute(
        "SELECT due_ms, operation FROM obligation "
        "WHERE lane = ? AND ended_ms IS NULL AND due_ms <= ? ORDER BY due_ms, operation LIMIT ?",
        (lane, tx.now_ms, limit),
    ).fetchall()
    return [(due_ms, number) for due_ms, number in rows]


def bring_back(tx: Tx, lane: int, *, limit: int) -> None:
    """Let be due now what is due later than any lease or rest could make it: a clock once jumped
    ahead. At most `limit` of them.
    """
    rows = tx.execute(
        "SELECT operation FROM obligation WHERE lane = ? AND ended_ms IS NULL AND due_ms > ? "
        "ORDER BY due_ms, operation LIMIT ?",
        (lane, tx.now_ms + LONGEST_LEASE_MS, limit),
    ).fetchall()
    for (number,) in rows:
        due_again(tx, number, tx.now_ms)


def due_again(tx: Tx, number: int, due_ms: int) -> None:
    """Say when an open question may next be worked on."""
    tx.execute(
        "UPDATE obligation SET due_ms = ? WHERE operation = ? AND ended_ms IS NULL",
        (due_ms, number),
    )


def claim(tx: Tx, obligation: Obligation, *, owner: str, lease_ms: int) -> Claim:
    """Claim an open question, and move it out of the queue while the lease runs.

    Raises AlreadyClaimed while another claim is live.
    """
    held = claims.take(
        tx,
        claims.OBLIGATION,
        str(obligation.operation.number),
        owner=owner,
        lease_ms=lease_ms,
    )
    due_again(tx, obligation.operation.number, held.expires_ms)
    return held


def visited(tx: Tx, number: int, *, found: str, due_ms: int) -> None:
    """Mark a visit in vain, what it came to, and when the next one is due."""
    tx.execute(
        "UPDATE obligation SET visits = visits + 1, fruitless = fruitless + 1, found = ?, "
        "due_ms = ? WHERE operation = ? AND ended_ms IS NULL",
        (found, due_ms, number),
    )


# --- calling a person ---------------------------------------------------------------------------


def escalate(tx: Tx, obligation: Obligation, why: str) -> None:
    """Call a person; while one is called already, do nothing."""
    if obligation.escalation is None:
        tx.execute(
            "INSERT INTO escalation (operation, generation, called, why, called_ms) "
            "SELECT ?, ?, coalesce(max(called), 0) + 1, ?, ? "
            "FROM escalation WHERE operation = ? AND generation = ?",
            (*_key(obligation), why, tx.now_ms, *_key(obligation)),
        )


def hand_back(tx: Tx, obligation: Obligation, *, actor: str, reason: str) -> None:
    """Write what a person did, as the newer generation that fences all that was claimed before."""
    escalate(tx, obligation, "a person stepped in")
    tx.execute(
        "UPDATE escalation SET repaired_by = ?, reason = ?, repaired_ms = ? "
        "WHERE operation = ? AND generation = ? AND repaired_ms IS NULL",
        (actor, reason, tx.now_ms, *_key(obligation)),
    )
    tx.execute(
        "UPDATE obligation SET repairs = repairs + 1, fruitless = 0, due_ms = ? "
        "WHERE operation = ? AND generation = ?",
        (tx.now_ms, *_key(obligation)),
    )
    if obligation.claim is not None:
        claims.end_at(tx, obligation.claim, tx.now_ms)


def _key(obligation: Obligation) -> tuple[int, int]:
    return obligation.operation.number, obligation.generation


# --- reading ------------------------------------------------------------------------------------


def read(tx: Tx, number: int) -> Obligation | None:
    """The open question of the operation of this number; None if there is none."""
    row = tx.execute(_READ + "q.operation = ? AND q.ended_ms IS NULL", (number,)).fetchone()
    if row is None:
        return None
    (operation,) = operations.read_all(tx, (number,))
    return _obligation(tx, operation, row)


def all_open(tx: Tx, *, limit: int) -> list[Obligation]:
    """The open questions, the longest due first."""
    found = [read(tx, number) for number in open_numbers(tx, limit=limit)]
    return [obligation for obligation in found if obligation is not None]


def open_numbers(tx: Tx, *, limit: int) -> list[int]:
    """The numbers of the operations whose question is open, the longest due first."""
    rows = tx.execute(
        "SELECT operation FROM obligation WHERE ended_ms IS NULL "
        "ORDER BY due_ms, operation LIMIT ?",
        (limit,),
    ).fetchall()
    return [number for (number,) in rows]


def count_called(tx: Tx) -> int:
    """How many open questions have an unanswered call, or a deadline that has passed."""
    return int(
        tx.execute(
            "SELECT count(*) FROM obligation q WHERE q.ended_ms IS NULL AND (q.deadline_ms <= ? "
            "OR EXISTS (SELECT 1 FROM escalation e WHERE e.operation = q.operation "
            "AND e.generation = q.generation AND e.repaired_ms IS NULL))",
            (tx.now_ms,),
        ).fetchone()[0]
    )


_OWN = (
    *("generation", "attempt", "opened_ms", "deadline_ms", "due_ms", "visits", "fruitless"),
    *("found", "repairs"),
)
_READ = (
    "SELECT "
    + ", ".join(f"q.{name}" for name in _OWN)
    + ", e.why, e.called_ms, (SELECT body FROM receipt r WHERE r.operation = q.operation "
    "ORDER BY r.received DESC LIMIT 1), (SELECT evidence FROM observation v "
    "WHERE v.operation = q.operation AND v.verdict IN "
    "('exact_match_existence_only', 'unique_exact_match') ORDER BY v.seen DESC LIMIT 1) "
    "FROM obligation q LEFT JOIN escalation e ON e.operation = q.operation "
    "AND e.generation = q.generation AND e.repaired_ms IS NULL WHERE "
)


def _obligation(tx: Tx, operation: Operation, row: Sequence[Any]) -> Obligation:
    why, called_ms, receipt, snapshot = row[len(_OWN) :]
    return Obligation(
        operation=operation,
        **dict(zip(_OWN, row, strict=False)),
        claim=claims.current(tx, claims.OBLIGATION, str(operation.number)),
        escalation=None if why is None else Escalation(why=why, called_ms=called_ms),
        reference=operation.effect_id or _reference(receipt, snapshot),
    )


def _reference(receipt: str | None, snapshot: str | None) -> str | None:
    """The receiver's own id of the effect, as kept evidence names it."""
    if receipt is not None and json.loads(receipt)["effect_id"] is not None:
        return str(json.loads(receipt)["effect_id"])
    return None if snapshot is None else str(json.loads(snapshot)["effects"][0]["effect_id"])


def _lane_of(tx: Tx, operation: Operation) -> int:
    lane = (canonical_json(operation.scope), operation.target, operation.epoch)
    row = tx.execute(
        "SELECT number FROM lane WHERE scope = ? AND target = ? AND epoch = ?", lane
    ).fetchone()
    if row is None:
        row = tx.execute(
            "INSERT INTO lane SELECT coalesce(max(number), 0) + 1, ?, ?, ? FROM lane "
            "RETURNING number",
            lane,
        ).fetchone()
    return int(row[0])
