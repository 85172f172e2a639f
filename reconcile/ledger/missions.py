"""Missions: rows in, values out, and the few writes that change one."""

from __future__ import annotations

from collections.abc import Sequence

from ..rules import mission_errors
from ..rules.identity import canonical_json
from ..rules.mission import Evidence, Mission, Sighting, Stage, Task, TaskPlan, Verification
from .tx import Tx


def find(tx: Tx, name: str) -> Mission | None:
    """A mission with all that belongs to it; None if there is none of this name."""
    row = tx.execute(
        "SELECT number, contract, contract_version, world, state, revision FROM mission "
        "WHERE name = ?",
        (name,),
    ).fetchone()
    if row is None:
        return None
    number, contract, contract_version, world, state, revision = row
    return Mission(
        number=number,
        name=name,
        contract=contract,
        contract_version=contract_version,
        world=world,
        stage=Stage(state),
        revision=revision,
        tasks=_tasks(tx, number),
        verification=_verification(tx, number),
        unresolved=_unresolved(tx, number),
    )


def read(tx: Tx, name: str) -> Mission:
    """The same. Raises UnknownMission if there is none."""
    found = find(tx, name)
    if found is None:
        raise mission_errors.UnknownMission(name)
    return found


def add(tx: Tx, name: str, contract: str, tasks: Sequence[TaskPlan]) -> None:
    """Write a new mission and its tasks."""
    number = tx.execute(
        "INSERT INTO mission (number, name, contract, contract_version, world, state, revision, "
        "opened_ms) SELECT coalesce(max(number), 0) + 1, ?, ?, 1, 1, 'running', 1, ? FROM mission "
        "RETURNING number",
        (name, contract, tx.now_ms),
    ).fetchone()[0]
    for task in tasks:
        tx.execute(
            "INSERT INTO task (mission, name, mandatory, limit_ms, work_id) "
            "VALUES (?, ?, ?, ?, ?)",
            (number, task.name, int(task.mandatory), task.limit_ms, work_of(name, task.name)),
        )


def work_of(mission: str, task: str) -> str:
    """The work item of a task's operations: it can be taken apart in one way only."""
    return canonical_json(["mission", mission, task])


def change(
    tx: Tx,
    mission: Mission,
    *,
    stage: Stage | None = None,
    worlds: int = 0,
    contract: str | None = None,
) -> None:
    """Change a mission that goes on, as its next revision."""
    tx.execute(
        "UPDATE mission SET revision = revision + 1, state = ?, world = world + ?, "
        "contract = ?, contract_version = contract_version + ? WHERE number = ?",
        (
            (stage or mission.stage).value,
            worlds,
            mission.contract if contract is None else contract,
            int(contract is not None),
            mission.number,
        ),
    )


def end(tx: Tx, mission: Mission, stage: Stage, *, actor: str, reason: str) -> None:
    """Write that a mission has ended, who says so and why."""
    tx.execute(
        "UPDATE mission SET revision = revision + 1, state = ?, ended_by = ?, reason = ?, "
        "ended_ms = ? WHERE number = ?",
        (stage.value, actor, reason, tx.now_ms, mission.number),
    )


def see(tx: Tx, mission: Mission, task: Task, *, reference: str, digest: str) -> None:
    """Write what was seen for a task, in the world and under the contract as they are."""
    tx.execute(
        "INSERT INTO task_observation SELECT ?, ?, coalesce(max(seen), 0) + 1, ?, ?, ?, ?, ? "
        "FROM task_observation WHERE mission = ? AND task = ?",
        (
            *(mission.number, task.name, reference, digest),
            *(mission.world, mission.contract_version, tx.now_ms),
            *(mission.number, task.name),
        ),
    )


def succeed(
    tx: Tx, mission: Mission, task: Task, checked_by: str, evidence: Sequence[Evidence]
) -> None:
    """Write that a task has succeeded, by which check and which evidence."""
    for each in evidence:
        tx.execute(
            "INSERT INTO task_evidence SELECT ?, ?, coalesce(max(given), 0) + 1, ?, ?, ? "
            "FROM task_evidence WHERE mission = ? AND task = ?",
            (
                *(mission.number, task.name, mission.contract_version),
                *(each.reference, each.digest, mission.number, task.name),
            ),
        )
    tx.execute(
        "UPDATE task SET state = 'succeeded', contract_version = ?, checked_by = ? "
        "WHERE mission = ? AND name = ?",
        (mission.contract_version, checked_by, mission.number, task.name),
    )


def give_up(tx: Tx, mission: Mission, task: Task) -> None:
    """Write that a task has failed."""
    tx.execute(
        "UPDATE task SET state = 'failed' WHERE mission = ? AND name = ?",
        (mission.number, task.name),
    )


def judge(tx: Tx, mission: Mission, said: Verification) -> None:
    """Write a verifier's word."""
    tx.execute(
        "INSERT INTO verification SELECT ?, coalesce(max(given), 0) + 1, ?, ?, ?, ? "
        "FROM verification WHERE mission = ?",
        (
            *(mission.number, said.verifier, int(said.passed), said.digest, tx.now_ms),
            mission.number,
        ),
    )


def _tasks(tx: Tx, number: int) -> tuple[Task, ...]:
    rows = tx.execute(
        "SELECT name, mandatory, limit_ms, work_id, state, contract_version, checked_by "
        "FROM task WHERE mission = ? ORDER BY name",
        (number,),
    ).fetchall()
    return tuple(
        Task(
            name=name,
            mandatory=bool(mandatory),
            limit_ms=limit_ms,
            work_id=work_id,
            state=state,
            contract_version=contract_version,
            checked_by=checked_by,
            evidence=_evidence(tx, number, name, contract_version),
            sighting=_sighting(tx, number, name),
        )
        for name, mandatory, limit_ms, work_id, state, contract_version, checked_by in rows
    )


def _evidence(tx: Tx, number: int, task: str, version: int | None) -> tuple[Evidence, ...]:
    rows = tx.execute(
        "SELECT reference, digest FROM task_evidence "
        "WHERE mission = ? AND task = ? AND contract_version = ? ORDER BY given",
        (number, task, version),
    ).fetchall()
    return tuple(Evidence(reference=reference, digest=digest) for reference, digest in rows)


def _sighting(tx: Tx, number: int, task: str) -> Sighting | None:
    row = tx.execute(
        "SELECT reference, digest, world, contract_version, observed_ms FROM task_observation "
        "WHERE mission = ? AND task = ? ORDER BY seen DESC LIMIT 1",
        (number, task),
    ).fetchone()
    if row is None:
        return None
    return Sighting(**dict(zip(Sighting.__dataclass_fields__, row, strict=True)))


def _verification(tx: Tx, number: int) -> Verification | None:
    row = tx.execute(
        "SELECT verifier, passed, digest FROM verification WHERE mission = ? "
        "ORDER BY given DESC LIMIT 1",
        (number,),
    ).fetchone()
    if row is None:
        return None
    return Verification(verifier=row[0], passed=bool(row[1]), digest=row[2])


def _unresolved(tx: Tx, number: int) -> str | None:
    """An unresolved operation of a task's work item, or one that compensates such a one."""
    row = tx.execute(
        "SELECT o.operation_id FROM obligation q JOIN operation o ON o.number = q.operation "
        "LEFT JOIN compensation c ON c.operation = o.number "
        "LEFT JOIN operation p ON p.number = c.original "
        "JOIN task t ON t.mission = ? AND t.work_id IN (o.work_id, p.work_id) "
        "WHERE q.ended_ms IS NULL ORDER BY o.number LIMIT 1",
        (number,),
    ).fetchone()
    return None if row is None else str(row[0])
