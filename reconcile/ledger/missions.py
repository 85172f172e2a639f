"""Missions: rows in, values out; and the few rows by which a mission moves.

The file itself raises the world when something of a mission is sent, or becomes known.
"""

from __future__ import annotations

from ..rules import mission_errors
from ..rules.mission import Aim, Judgement, Mission, MissionState, Task, Terms, work_of
from . import tasks, work
from .tx import Tx


def read(tx: Tx, name: str) -> Mission:
    """A mission with all its tasks. Raises UnknownMission if there is none."""
    found = find(tx, name)
    if found is None:
        raise mission_errors.UnknownMission(name)
    return found


def find(tx: Tx, name: str) -> Mission | None:
    """A mission with all its tasks; None if there is none."""
    row = tx.execute(
        "SELECT m.number, m.name, c.body, m.contract_version, m.world, m.revision, m.state, "
        "m.ended_by, m.reason, m.counts_from_ms FROM mission m JOIN contract c "
        "ON c.mission = m.number AND c.version = m.contract_version WHERE m.name = ?",
        (name,),
    ).fetchone()
    if row is None:
        return None
    number, version = row[0], row[3]
    return Mission(
        number=number,
        name=row[1],
        contract=row[2],
        contract_version=version,
        world=row[4],
        revision=row[5],
        state=MissionState(row[6]),
        ended_by=row[7],
        reason=row[8],
        counts_from_ms=row[9],
        tasks=tasks.of_mission(tx, number, version),
        judgement=_judgement(tx, number),
        paused=work.paused_why(tx),
    )


def of_work(tx: Tx, work_id: str) -> tuple[Mission, Task]:
    """The task of a work item, and its mission. Raises UnknownMission if there is none."""
    row = tx.execute(
        "SELECT m.name FROM task t JOIN mission m ON m.number = t.mission WHERE t.work_id = ?",
        (work_id,),
    ).fetchone()
    if row is None:
        raise mission_errors.UnknownMission(work_id)
    mission = read(tx, row[0])
    (task,) = (task for task in mission.tasks if task.work_id == work_id)
    return mission, task


def _judgement(tx: Tx, mission: int) -> Judgement | None:
    row = tx.execute(
        "SELECT verifier, passed, hash, revision FROM verification WHERE mission = ? "
        "ORDER BY number DESC LIMIT 1",
        (mission,),
    ).fetchone()
    if row is None:
        return None
    return Judgement(verifier=row[0], passed=bool(row[1]), hash=row[2], revision=row[3])


# --- writing ------------------------------------------------------------------------------------


def add(tx: Tx, name: str, terms: Terms) -> None:
    """Write a new mission with its first contract and its tasks."""
    number = tx.execute("SELECT coalesce(max(number), 0) + 1 FROM mission").fetchone()[0]
    tx.execute(
        "INSERT INTO mission VALUES (?, ?, ?, 1, 1, ?, 1, 'running', NULL, NULL, NULL)",
        (number, name, tx.now_ms, tx.now_ms),
    )
    _add_terms(tx, number, name, 1, terms)


def amend(tx: Tx, mission: Mission, terms: Terms) -> None:
    """Write the next contract, and further tasks. The file lets the work begin again with it."""
    _add_terms(tx, mission.number, mission.name, mission.contract_version + 1, terms)


def _add_terms(tx: Tx, mission: int, name: str, version: int, terms: Terms) -> None:
    tx.execute(
        "INSERT INTO contract VALUES (?, ?, ?, ?, ?)",
        (mission, version, terms.contract, terms.set_by, tx.now_ms),
    )
    for aim in terms.aims:
        work_id = work_of(name, aim.name)
        for table, what in (("task", "a task"), ("operation", "operations of another's")):
            if tx.execute(f"SELECT 1 FROM {table} WHERE work_id = ?", (work_id,)).fetchone():
                raise mission_errors.MissionTaken(work_id, what)
        tx.execute(
            "INSERT INTO task SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ? FROM task",
            (mission, aim.name, int(aim.mandatory), aim.limit_ms, work_id, version),
        )


def terms_of(tx: Tx, mission: Mission, version: int) -> Terms:
    """A contract of a mission, with the tasks that it brought."""
    body, set_by = tx.execute(
        "SELECT body, set_by FROM contract WHERE mission = ? AND version = ?",
        (mission.number, version),
    ).fetchone()
    brought = tx.execute(
        "SELECT name, limit_ms, mandatory FROM task WHERE mission = ? AND since = ? "
        "ORDER BY number",
        (mission.number, version),
    ).fetchall()
    aims = tuple(Aim(name=at, limit_ms=ms, mandatory=bool(must)) for at, ms, must in brought)
    return Terms(contract=body, aims=aims, set_by=set_by)


def raise_world(tx: Tx, mission: Mission) -> None:
    """Write that the world may have changed: what was seen before it is stale."""
    tx.execute(
        "UPDATE mission SET world = world + 1, counts_from_ms = ?, revision = revision + 1 "
        "WHERE number = ?",
        (tx.now_ms, mission.number),
    )


def turn(tx: Tx, mission: Mission, state: MissionState) -> None:
    """Write that a mission is worked on, or under verification."""
    tx.execute(
        "UPDATE mission SET state = ?, revision = revision + 1 WHERE number = ?",
        (state.value, mission.number),
    )


def end(
    tx: Tx, mission: Mission, state: MissionState, *, by: str, reason: str | None = None
) -> None:
    """Write that a mission finished or failed, which is final."""
    tx.execute(
        "UPDATE mission SET state = ?, ended_by = ?, reason = ?, ended_ms = ?, "
        "revision = revision + 1 WHERE number = ?",
        (state.value, by, reason, tx.now_ms, mission.number),
    )


def judge(tx: Tx, mission: Mission, said: Judgement) -> None:
    """Write what a verifier said."""
    tx.execute(
        "INSERT INTO verification SELECT ?, coalesce(max(number), 0) + 1, ?, ?, ?, ?, ? "
        "FROM verification WHERE mission = ?",
        (
            mission.number,
            said.verifier,
            int(said.passed),
            said.hash,
            said.revision,
            tx.now_ms,
            mission.number,
        ),
    )
