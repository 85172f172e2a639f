"""The one door: a `Move` becomes a decision row with all that follows from it, or nothing does.

Receipts, reviewers and approvals all write here, and the file's triggers let no other writer move
a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..rules.evidence import Snapshot
from ..rules.identity import digest_of
from ..rules.move import Incident, Move
from ..rules.operation import Operation
from ..rules.states import FINAL, Cause, State
from ..rules.verdicts import Verdict
from . import obligations
from .tx import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A move that was written. `version` is the one it made.

    `repeated` is true if this very decision stood already, and nothing was written.
    """

    operation_id: str
    source: State
    state: State
    version: int
    cause: Cause
    actor: str
    verdict: Verdict | None
    effect_id: str | None
    decided_ms: int
    repeated: bool = False

    def applied_to(self, operation: Operation) -> Operation:
        """The operation as this decision leaves it."""
        return replace(operation, state=self.state, version=self.version, effect_id=self.effect_id)


def record(tx: Tx, move: Move, *, receipt: int | None = None) -> Decision:
    """Write a move; evidence, state, version, obligation and money go together.

    `receipt` is the how-many-th receipt of the operation decided, where a receipt did.
    """
    operation = move.operation
    tx.execute(
        "INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            operation.number,
            move.version,
            operation.state.value,
            move.target.value,
            move.cause.value,
            move.actor,
            move.verdict and move.verdict.value,
            move.effect_id,
            move.snapshot and move.snapshot.to_json(),
            receipt,
            move.reason,
            tx.now_ms,
        ),
    )
    if move.cause is Cause.ANNOUNCED:
        obligations.begin(tx, operation)
    elif move.target in FINAL or move.target is State.PREPARED:
        obligations.end(tx, operation)
    return Decision(
        operation_id=operation.operation_id,
        source=operation.state,
        state=move.target,
        version=move.version,
        cause=move.cause,
        actor=move.actor,
        verdict=move.verdict,
        effect_id=move.effect_id,
        decided_ms=tx.now_ms,
    )


def repeat_of(
    tx: Tx, operation: Operation, snapshot: Snapshot, *, reviewer: str, expected_version: int
) -> Decision | None:
    """The stored decision, if this very one was written and its acknowledgement was lost.

    The same: reviewer, evidence to the letter, and version it was decided at. None if there is
    none such.
    """
    row = tx.execute(
        f"SELECT {_COLUMNS} FROM decision "
        "WHERE operation = ? AND version = ? AND actor = ? AND evidence = ?",
        (operation.number, expected_version + 1, reviewer, snapshot.to_json()),
    ).fetchone()
    return None if row is None else _stored(operation, row)


def last(tx: Tx, operation: Operation) -> Decision | None:
    """The newest decision, as one that stood already; None if nothing was ever decided."""
    row = tx.execute(
        f"SELECT {_COLUMNS} FROM decision WHERE operation = ? ORDER BY version DESC LIMIT 1",
        (operation.number,),
    ).fetchone()
    return None if row is None else _stored(operation, row)


def _stored(operation: Operation, row: Sequence[Any]) -> Decision:
    version, source, target, cause, actor, verdict, effect_id, decided_ms = row
    return Decision(
        operation_id=operation.operation_id,
        source=State(source),
        state=State(target),
        version=version,
        cause=Cause(cause),
        actor=actor,
        verdict=verdict and Verdict(verdict),
        effect_id=effect_id,
        decided_ms=decided_ms,
        repeated=True,
    )


_COLUMNS = "version, source, target, cause, actor, verdict, effect_id, decided_ms"


def observe(tx: Tx, operation: Operation, snapshot: Snapshot, verdict: Verdict) -> None:
    """Keep a snapshot with its verdict. No state moves."""
    tx.execute(
        "INSERT INTO observation SELECT ?, coalesce(max(seen), 0) + 1, ?, ?, ? "
        "FROM observation WHERE operation = ?",
        (operation.number, verdict.value, snapshot.to_json(), tx.now_ms, operation.number),
    )


def notice(tx: Tx, incident: Incident) -> None:
    """Write an incident, once for each evidence; the version rises with it and the state stays."""
    number, evidence = incident.operation.number, incident.evidence.to_json()
    digest = digest_of(evidence)
    if (
        tx.execute(
            "SELECT 1 FROM incident WHERE operation = ? AND digest = ?", (number, digest)
        ).fetchone()
        is None
    ):
        tx.execute(
            "INSERT INTO incident VALUES (?, ?, ?, ?, ?)",
            (number, incident.version, digest, evidence, tx.now_ms),
        )
