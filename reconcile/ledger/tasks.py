"""Tasks of missions: what was seen of them, what they commanded, and how they ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..rules.mission import Aim, Reference, Sighting, Task, TaskState
from ..rules.operation import Operation
from . import operations
from .tx import Tx

_TASKS = (
    "SELECT t.number, t.name, t.limit_ms, t.mandatory, t.work_id, e.state, e.ended_by, "
    "e.check_reference, e.check_digest FROM task t LEFT JOIN task_end e ON e.task = t.number "
    "AND e.contract_version = ? WHERE t.mission = ? ORDER BY t.number"
)


def of_mission(tx: Tx, mission: int, version: int) -> tuple[Task, ...]:
    """The tasks of a mission, as they stand under a version of its contract."""
    rows = tx.execute(_TASKS, (version, mission)).fetchall()
    return tuple(_task(tx, row, version) for row in rows)


def _task(tx: Tx, row: Sequence[Any], version: int) -> Task:
    number, name, limit_ms, mandatory, work_id, state, ended_by, reference, digest = row
    rows = tx.execute(
        "SELECT b.operation FROM task_operation b JOIN operation o ON o.number = b.operation "
        "WHERE b.task = ? AND EXISTS (SELECT 1 FROM legal_move WHERE source = o.state) "
        "ORDER BY b.operation",
        (number,),
    ).fetchall()
    evidence = tx.execute(
        "SELECT reference, digest FROM evidence WHERE task = ? AND contract_version = ? "
        "ORDER BY number",
        (number, version),
    ).fetchall()
    return Task(
        number=number,
        aim=Aim(name=name, limit_ms=limit_ms, mandatory=bool(mandatory)),
        work_id=work_id,
        state=TaskState.OPEN if state is None else TaskState(state),
        ended_by=ended_by,
        check=None if reference is None else Reference(reference=reference, digest=digest),
        evidence=tuple(Reference(reference=at, digest=of) for at, of in evidence),
        sighting=_sighting(tx, number),
        operations=tuple(operations.read_all(tx, [row[0] for row in rows])),
    )


def _sighting(tx: Tx, task: int) -> Sighting | None:
    row = tx.execute(
        "SELECT reference, digest, contract_version, world, observer, observed_ms "
        "FROM sighting WHERE task = ? ORDER BY seen DESC LIMIT 1",
        (task,),
    ).fetchone()
    if row is None:
        return None
    return Sighting(
        what=Reference(reference=row[0], digest=row[1]),
        contract_version=row[2],
        world=row[3],
        observer=row[4],
        observed_ms=row[5],
    )


# --- writing ------------------------------------------------------------------------------------


def commanded_under(tx: Tx, operation: Operation) -> int:
    """The newest contract under which an operation was commanded; 0 if it never was."""
    return int(
        tx.execute(
            "SELECT coalesce(max(contract_version), 0) FROM command WHERE operation = ?",
            (operation.number,),
        ).fetchone()[0]
    )


def command(tx: Tx, operation: Operation, version: int, *, by: str) -> None:
    """Write that an operation was commanded under a contract; once it was, do nothing."""
    if commanded_under(tx, operation) < version:
        tx.execute(
            "INSERT INTO command VALUES (?, ?, ?, ?)", (operation.number, version, by, tx.now_ms)
        )


def see(tx: Tx, task: Task, seen: Sighting) -> None:
    """Write what was seen of a task."""
    tx.execute(
        "INSERT INTO sighting SELECT ?, coalesce(max(seen), 0) + 1, ?, ?, ?, ?, ?, ? "
        "FROM sighting WHERE task = ?",
        (
            task.number,
            seen.contract_version,
            seen.world,
            seen.what.reference,
            seen.what.digest,
            seen.observer,
            seen.observed_ms,
            task.number,
        ),
    )


def succeed(
    tx: Tx, task: Task, version: int, check: Reference, evidence: Sequence[Reference], *, by: str
) -> None:
    """Write that a task succeeded under a contract, after what that rests on."""
    for number, part in enumerate(evidence, 1):
        tx.execute(
            "INSERT INTO evidence VALUES (?, ?, ?, ?, ?)",
            (task.number, version, number, part.reference, part.digest),
        )
    tx.execute(
        "INSERT INTO task_end VALUES (?, ?, 'succeeded', ?, ?, NULL, ?, ?)",
        (task.number, version, check.reference, check.digest, by, tx.now_ms),
    )


def give_up(tx: Tx, task: Task, version: int, *, by: str, reason: str) -> None:
    """Write that a task failed under a contract."""
    tx.execute(
        "INSERT INTO task_end VALUES (?, ?, 'failed', NULL, NULL, ?, ?, ?)",
        (task.number, version, reason, by, tx.now_ms),
    )
