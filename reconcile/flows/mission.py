"""Missions: tasks are claimed, observed, commanded and checked; one gate says what is finished.

Whoever acts hands in the mission as it was looked at. If the world, the contract or the mission
changed since, the call is refused, and the caller looks again. An effect changes the world, and so
does a pause: after either, everything is observed anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..ledger import claims, missions, work
from ..ledger.store import Ledger
from ..ledger.tx import Tx
from ..rules import checks, contact, mission_errors
from ..rules import mission as rules
from ..rules.actions import ToolResult
from ..rules.claim import LONGEST_LEASE_MS, Claim
from ..rules.errors import Malformed, StaleClaim
from ..rules.identity import canonical_json
from ..rules.mission import Evidence, Mission, Stage, TaskPlan, Verification
from ..rules.operation import Scope
from .preparation import prepare_in
from .receivers import Receiver, check_receiver
from .sender import dispatch

LONGEST_REFERENCE = 500  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskClaim:
    """The right to work on a task, and the mission as its holder last looked at it."""

    mission: Mission
    task: str
    claim: Claim


def open_mission(
    ledger: Ledger, name: str, *, contract: Mapping[str, object], tasks: Sequence[TaskPlan]
) -> Mission:
    """Write down a mission: what is to be achieved, and by which tasks.

    Opening the same again returns it as it stands. Raises MissionTaken if one of this name has
    another contract or other tasks; Malformed; Paused.
    """
    _named(ledger, name=name)
    text, plans = canonical_json(contract), tuple(tasks)
    if not plans:
        raise Malformed("tasks", "needs one task at least")
    for plan in plans:
        checks.instance("task", plan, TaskPlan)
        checks.text("task.name", plan.name)
        checks.whole("task.limit_ms", plan.limit_ms, least=0)
        checks.flag("task.mandatory", plan.mandatory)
    if len({plan.name for plan in plans}) != len(plans):
        raise Malformed("tasks", "has two tasks of one name")
    with ledger.transaction() as tx:
        _live(tx)
        stored = missions.find(tx, name)
        if stored is None:
            missions.add(tx, name, text, plans)
            return missions.read(tx, name)
        known = {
            TaskPlan(name=task.name, limit_ms=task.limit_ms, mandatory=task.mandatory)
            for task in stored.tasks
        }
        if stored.contract != text:
            raise mission_errors.MissionTaken(name, "contract")
        if known != set(plans):
            raise mission_errors.MissionTaken(name, "list of tasks")
        return stored


def look_mission(ledger: Ledger, name: str) -> Mission:
    """A mission as it stands. Raises UnknownMission if there is none."""
    _named(ledger, name=name)
    with ledger.reading() as tx:
        return missions.read(tx, name)


def amend(ledger: Ledger, seen: Mission, *, contract: Mapping[str, object]) -> Mission:
    """A new contract: what was done and seen under the older one does not count any more.

    Raises MissionEnded, StaleView or Malformed.
    """
    checks.instance("ledger", ledger, Ledger)
    text = canonical_json(contract)
    with ledger.transaction() as tx:
        now = _current(tx, seen)
        missions.change(tx, now, stage=Stage.RUNNING, contract=text)
        return missions.read(tx, now.name)


def resume(ledger: Ledger, name: str) -> Mission:
    """Go on after a pause: the world may have changed, so that all of it is observed again.

    Each call begins another generation of the world. Raises UnknownMission or MissionEnded.
    """
    _named(ledger, name=name)
    with ledger.transaction() as tx:
        _live(tx)
        now = missions.read(tx, name)
        rules.goes_on(now)
        missions.change(tx, now, worlds=1)
        return missions.read(tx, name)


def wake(ledger: Ledger, name: str) -> Mission:
    """Go on because something happened outside: what happened is to be seen, not believed."""
    return resume(ledger, name)


# --- tasks --------------------------------------------------------------------------------------


def claim_task(
    ledger: Ledger, seen: Mission, task: str, *, worker: str, lease_ms: int = 120_000
) -> TaskClaim:
    """The right to work on a task for so long, as its next generation and with a fresh token.

    Raises MissionEnded, StaleView, UnknownMission, AlreadyClaimed or Malformed.
    """
    _named(ledger, task=task, worker=worker)
    checks.whole("lease_ms", lease_ms, least=1, most=LONGEST_LEASE_MS)
    with ledger.transaction() as tx:
        now = _current(tx, seen)
        item = now.task(task).work_id
        claim = claims.take(tx, claims.TASK, item, owner=worker, lease_ms=lease_ms)
        return TaskClaim(mission=now, task=task, claim=claim)


def observe_task(ledger: Ledger, held: TaskClaim, *, reference: str, digest: str) -> TaskClaim:
    """Write what was seen of the world for a task; the claim, with the mission as it stands now.

    This is how a holder catches up after the world changed. Raises StaleClaim, StaleView if the
    contract changed, MissionEnded or Malformed.
    """
    _named(ledger, digest=digest)
    _reference("reference", reference)
    with ledger.transaction() as tx:
        now = _held(tx, held)
        if held.mission.contract_version != now.contract_version:
            old, new = held.mission.contract_version, now.contract_version
            raise mission_errors.StaleView("contract_version", old, new)
        missions.see(tx, now, now.task(held.task), reference=reference, digest=digest)
        return replace(held, mission=missions.read(tx, now.name))


def command(
    ledger: Ledger,
    held: TaskClaim,
    receiver: Receiver,
    *,
    kind: str,
    payload: Mapping[str, object],
    subject: str,
    scope: tuple[str, str, str] = Scope(),
) -> ToolResult:
    """Send one effect of a task, as an operation of its work item.

    The intent is committed together with a new generation of the world, since an effect changes
    what was seen; so whatever comes next observes again. The same command again finds the same
    operation and is refused if it may have left. Raises what `prepare` and `dispatch` raise, and
    StaleClaim, StaleView, StaleObservation or MissionEnded before any contact.
    """
    checks.instance("ledger", ledger, Ledger)
    declared = check_receiver(receiver)
    with ledger.transaction() as tx:
        now = _held(tx, held)
        rules.same_moment(held.mission, now)
        task = now.task(held.task)
        rules.is_fresh(now, task, tx.now_ms)
        operation = prepare_in(
            tx,
            declared,
            work_id=task.work_id,
            kind=kind,
            payload=payload,
            subject=subject,
            scope=scope,
            distinct_need=None,
        )
        missions.change(tx, now, worlds=1)
    return dispatch(ledger, operation.operation_id, receiver)


def succeed(
    ledger: Ledger, held: TaskClaim, *, checked_by: str, evidence: Sequence[Evidence]
) -> Mission:
    """Write that a task has succeeded, with its check and its evidence.

    Raises StaleClaim, StaleView, StaleObservation, NoEvidence, MissionEnded or Malformed.
    """
    checks.instance("ledger", ledger, Ledger)
    given = tuple(evidence)
    for each in given:
        checks.instance("evidence", each, Evidence)
        _reference("evidence.reference", each.reference)
        checks.text("evidence.digest", each.digest)
    if type(checked_by) is not str:
        raise Malformed("checked_by", "needs the reference of a check")
    with ledger.transaction() as tx:
        now = _held(tx, held)
        rules.same_moment(held.mission, now)
        task = now.task(held.task)
        rules.is_fresh(now, task, tx.now_ms)
        rules.has_evidence(task, checked_by, given)
        missions.succeed(tx, now, task, checked_by, given)
        return missions.read(tx, now.name)


def give_up(ledger: Ledger, held: TaskClaim) -> Mission:
    """Write that a task has failed. What it sent stays what it is. Raises as `succeed` does."""
    checks.instance("ledger", ledger, Ledger)
    with ledger.transaction() as tx:
        now = _held(tx, held)
        rules.same_moment(held.mission, now)
        missions.give_up(tx, now, now.task(held.task))
        return missions.read(tx, now.name)


# --- the gate -----------------------------------------------------------------------------------


def verify(ledger: Ledger, seen: Mission) -> Mission:
    """Hand a mission to its verifier. Raises MissionEnded or StaleView."""
    checks.instance("ledger", ledger, Ledger)
    with ledger.transaction() as tx:
        now = _current(tx, seen)
        missions.change(tx, now, stage=Stage.VERIFYING)
        return missions.read(tx, now.name)


def judge(ledger: Ledger, seen: Mission, *, verifier: str, passed: bool, digest: str) -> Mission:
    """Write a verifier's word, about the mission whose digest was looked at; the last one counts.

    Raises MissionEnded, StaleView, NotVerifying, or OtherDigest if that is not the mission.
    """
    _named(ledger, verifier=verifier, digest=digest)
    checks.flag("passed", passed)
    with ledger.transaction() as tx:
        now = _current(tx, seen)
        rules.is_verifying(now)
        said = Verification(verifier=verifier, passed=passed, digest=digest)
        rules.is_about_this(now, said)
        missions.judge(tx, now, said)
        return missions.read(tx, now.name)


def finalize(ledger: Ledger, seen: Mission, *, actor: str) -> Mission:
    """Call a mission finished, if every condition of `rules.mission.finalize` holds.

    Finishing again is refused as ended, which says that it was done. Raises what that guard
    raises.
    """
    _named(ledger, actor=actor)
    checks.instance("seen", seen, Mission)
    with ledger.transaction() as tx:
        _live(tx)
        now = missions.read(tx, seen.name)
        rules.finalize(seen, now, tx.now_ms)
        missions.end(tx, now, Stage.FINISHED, actor=actor, reason="every condition holds")
        return missions.read(tx, now.name)


def fail(ledger: Ledger, name: str, *, actor: str, reason: str) -> Mission:
    """End a mission without its goal, also over an unknown, which stays with its open question.

    Raises UnknownMission, MissionEnded or Malformed.
    """
    _named(ledger, name=name, actor=actor, reason=reason)
    with ledger.transaction() as tx:
        _live(tx)
        now = missions.read(tx, name)
        rules.goes_on(now)
        missions.end(tx, now, Stage.FAILED, actor=actor, reason=reason)
        return missions.read(tx, name)


# --- what each call asks first ------------------------------------------------------------------


def _current(tx: Tx, seen: Mission) -> Mission:
    checks.instance("seen", seen, Mission)
    _live(tx)
    now = missions.read(tx, seen.name)
    rules.goes_on(now)
    rules.same_moment(seen, now)
    return now


def _held(tx: Tx, held: TaskClaim) -> Mission:
    checks.instance("held", held, TaskClaim)
    _live(tx)
    checks.instance("held.mission", held.mission, Mission)
    checks.instance("held.claim", held.claim, Claim)
    claims.assert_current(tx, held.claim)
    now = missions.read(tx, held.mission.name)
    rules.goes_on(now)
    if (held.claim.what, held.claim.item) != (claims.TASK, now.task(held.task).work_id):
        raise StaleClaim(held.task, f"this one is of {held.claim.what} {held.claim.item!r}")
    return now


def _live(tx: Tx) -> None:
    contact.store_is_live(work.paused_why(tx))


def _reference(place: str, value: object) -> None:
    if len(checks.text(place, value)) > LONGEST_REFERENCE:
        raise Malformed(place, f"is longer than {LONGEST_REFERENCE} characters")


def _named(ledger: object, **words: object) -> None:
    checks.instance("ledger", ledger, Ledger)
    for name, value in words.items():
        checks.text(name, value)
