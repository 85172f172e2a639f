"""Tasks of a mission: observed, claimed, worked on by operations, and ended.

Every call that acts names what its caller saw of the mission, and acts only on a task that was
observed lately, in the world of today. What a task sends makes another world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ledger import claims, missions, operations
from ..ledger import tasks as entries
from ..ledger import work as items
from ..ledger.store import Ledger
from ..ledger.tx import Tx
from ..rules import checks, completion, contact
from ..rules.actions import ToolResult
from ..rules.claim import LONGEST_LEASE_MS, Claim
from ..rules.errors import StaleClaim
from ..rules.mission import Mission, Reference, Seen, Sighting, Task, TaskState, seen_of, work_of
from ..rules.operation import DistinctNeed, Operation, Scope
from . import sender
from .preparation import prepare_in
from .receivers import Receiver, check_receiver


def observe_task(
    ledger: Ledger,
    mission: str,
    task: str,
    *,
    what: Reference,
    seen: Seen,
    observer: str,
    observed_ms: int,
) -> Mission:
    """Keep what was seen of a task, and when it was looked at. It needs no claim.

    The very same again writes nothing. Raises UnknownMission, what `completion.observes` raises,
    or Malformed, also for a moment that has not come.
    """
    _checked(ledger, seen, mission=mission, task=task, observer=observer)
    checks.instance("what", what, Reference)
    with ledger.transaction() as tx:
        checks.whole("observed_ms", observed_ms, least=0, most=tx.now_ms)
        now, this = missions.of_work(tx, work_of(mission, task))
        completion.observes(now, this, seen, observed_ms)
        sighting = Sighting(
            what=what,
            contract_version=now.contract_version,
            world=now.world,
            observer=observer,
            observed_ms=observed_ms,
        )
        if this.sighting != sighting:
            entries.see(tx, this, sighting)
        return missions.read(tx, mission)


def claim_task(
    ledger: Ledger, mission: str, task: str, *, seen: Seen, owner: str, lease_ms: int = 120_000
) -> Claim:
    """The right to work on a task for so long; `work.extend` and `work.release` take it as well.

    Whoever did not hear of it waits for its end. Raises UnknownMission, what `completion.acts_on`
    raises, AlreadyClaimed, or Malformed.
    """
    _checked(ledger, seen, mission=mission, task=task, owner=owner)
    checks.whole("lease_ms", lease_ms, least=1, most=LONGEST_LEASE_MS)
    with ledger.transaction() as tx:
        now, this = missions.of_work(tx, work_of(mission, task))
        completion.acts_on(now, this, seen, tx.now_ms)
        return claims.take(tx, claims.TASK, this.work_id, owner=owner, lease_ms=lease_ms)


def command(
    ledger: Ledger,
    receiver: Receiver,
    *,
    claim: Claim,
    seen: Seen,
    kind: str,
    payload: Mapping[str, object],
    subject: str,
    scope: tuple[str, str, str] = Scope(),
    distinct_need: DistinctNeed | None = None,
) -> Operation:
    """Prepare an operation of a task. Nothing is sent, and the world stays as it is.

    The same again returns the stored one; under another contract it is commanded anew, since what
    an older one commanded is not sent. Raises StaleClaim, what `completion.acts_on` raises, or
    what `prepare` raises.
    """
    _checked(ledger, seen, claim=claim)
    declared = check_receiver(receiver)
    with ledger.transaction() as tx:
        now, this, owner = _held(tx, claim)
        completion.acts_on(now, this, seen, tx.now_ms)
        operation = prepare_in(
            tx,
            declared,
            work_id=this.work_id,
            kind=kind,
            payload=payload,
            subject=subject,
            scope=scope,
            distinct_need=distinct_need,
        )
        entries.command(tx, operation, now.contract_version, by=owner)
        return operations.read(tx, operation.operation_id)


def dispatch(
    ledger: Ledger, operation_id: str, receiver: Receiver, *, claim: Claim, seen: Seen
) -> ToolResult:
    """Send an operation of a task, once; the world is another one afterwards, also in silence.

    All that is asked here is asked in the transaction that announces. Again, it is refused: the
    world that was seen is gone. Raises StaleClaim, what `completion.acts_on` raises, or what
    `sender.dispatch` raises.
    """
    _checked(ledger, seen, claim=claim)

    def admits(tx: Tx, operation: Operation) -> None:
        now, this, _ = _held(tx, claim)
        if operation.work_id != this.work_id:
            raise StaleClaim(operation.work_id, f"this one is of task {this.work_id}")
        completion.acts_on(now, this, seen, tx.now_ms)
        completion.commanded_today(now, entries.commanded_under(tx, operation))

    return sender.dispatch_if(ledger, operation_id, receiver, claim=None, admits=admits)


def succeed(
    ledger: Ledger,
    *,
    claim: Claim,
    seen: Seen,
    check: Reference | None,
    evidence: Sequence[Reference],
) -> Mission:
    """End a task with success: by the check that was made, and by what shows it.

    It says nothing of unknown effects; the mission's end does. The same success by the same owner
    again returns the mission. Raises StaleClaim, what `completion.acts_on` and `succeeds` raise,
    or Malformed.
    """
    _checked(ledger, seen, claim=claim)
    shown = checks.several("evidence", evidence, Reference)
    if check is not None:
        checks.instance("check", check, Reference)
    with ledger.transaction() as tx:
        now, this, owner = _held(tx, claim)
        ended = (this.state, this.ended_by, this.check, this.evidence)
        if ended == (TaskState.SUCCEEDED, owner, check, shown):
            return now
        completion.acts_on(now, this, seen, tx.now_ms)
        made, shown = completion.succeeds(this, check, shown)
        entries.succeed(tx, this, now.contract_version, made, shown, by=owner)
        return missions.read(tx, now.name)


def give_up(ledger: Ledger, *, claim: Claim, seen: Seen, reason: str) -> Mission:
    """End a task without success, under the contract of today. What it sent stays as it is.

    Again, by the same owner, it returns the mission. Raises StaleClaim, what
    `completion.works_on` raises, or Malformed.
    """
    _checked(ledger, seen, claim=claim, reason=reason)
    with ledger.transaction() as tx:
        now, this, owner = _held(tx, claim)
        if (this.state, this.ended_by) == (TaskState.FAILED, owner):
            return now
        completion.works_on(now, this, seen)
        entries.give_up(tx, this, now.contract_version, by=owner, reason=reason)
        return missions.read(tx, now.name)


def _held(tx: Tx, claim: Claim) -> tuple[Mission, Task, str]:
    """The mission and the task of a live claim, and its owner."""
    if claim.what != claims.TASK:
        raise StaleClaim(claim.item, f"it is of {claim.what}, and a task is asked for")
    contact.store_is_live(items.paused_why(tx))  # which every claim from before is stale by, too
    held = claims.assert_current(tx, claim)
    return *missions.of_work(tx, held.item), held.owner


def _checked(ledger: object, seen: object, **given: object) -> None:
    checks.instance("ledger", ledger, Ledger)
    seen_of(seen)
    for name, value in given.items():
        if name == "claim":
            checks.instance(name, value, Claim)
        else:
            checks.text(name, value)
