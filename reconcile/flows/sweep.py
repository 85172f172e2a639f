"""Nobody sits beside every unknown: claim what is open, ask about its one key, write what is said.

A sweep sends nothing and closes nothing. It claims a batch in one commit, asks without holding any
lock, and writes each answer in a commit of its own, under the token of its claim. What it cannot
answer stays open and rests; after a deadline, or enough visits in vain, a person is called.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from ..ledger import claims, obligations, operations, work
from ..ledger.store import Ledger
from ..ledger.tx import Tx
from ..rules import checks, contact, errors, sweep_errors, sweeping
from ..rules.claim import LONGEST_LEASE_MS, Claim, is_live
from ..rules.obligation import Obligation
from ..rules.operation import Scope
from ..rules.policy import EffectPolicy
from ..rules.states import FINAL
from . import answers
from .answers import Answer
from .preparation import scope_of
from .receivers import Declared, Receiver, check_receiver

LARGEST_BATCH = 1000
_BAD_ROW = (
    *(ValueError, TypeError, LookupError, RecursionError, OverflowError),
    *(errors.Malformed, sweep_errors.RowRefused),
)
_FILE_FAILED = (errors.Busy, errors.StorageFailed)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSummary:
    """What one sweep came to. `claimed` is what it worked on: resolved, unknown, or an error.

    `errors` also counts a listing that failed and rows that could not be claimed. What another
    worker took, or ended meanwhile, counts nowhere.
    """

    claimed: int
    resolved: int
    unknown: int
    errors: int


Held = tuple[Obligation, Claim]


def reconcile_once(
    ledger: Ledger,
    provider: Receiver | None = None,
    *,
    worker: str,
    scope: tuple[str, str, str],
    batch: int = 10,
    lease_ms: int = 120_000,
) -> SweepSummary:
    """Visit what is due in a scope, at most `batch` questions, and write what the provider says.

    `provider` answers for its own target and epoch; None is the honest stub for every target,
    which answers nothing. `worker` is a name for people. What a sweep decides by itself is what
    the pinned and the present policy both list in `sweep_may_decide`; all other evidence is kept
    for a person. A lookup that raises, contradicts itself or says nothing leaves the question
    open. A lease that ends returns it to the pool and proves nothing. Calling again visits what is
    due by then. Raises UnknownScope, Paused, or Malformed if an argument is ill-typed. An
    interrupt passes on, and what it left claimed returns when the lease ends.
    """
    declared = None if provider is None else check_receiver(provider)
    try:
        held, bad = claim_due(
            ledger, declared, worker=worker, scope=scope, batch=batch, lease_ms=lease_ms
        )
    except _FILE_FAILED:
        return SweepSummary(claimed=0, resolved=0, unknown=0, errors=1)
    resolved = unknown = failed = 0
    for at, (obligation, claim) in enumerate(held):
        if not is_live(claim, ledger.now_ms()):  # the calls before this one took the whole lease
            _give_back(ledger, held[at:])
            break
        answer = answers.ask(provider, obligation.operation)
        try:
            done = finish(ledger, declared, (obligation, claim), answer, worker=worker)
        except errors.StaleClaim:
            continue
        except Exception as error:  # of whatever class: one row stops no other
            failed += 1
            _note(ledger, declared, (obligation, claim), error, worker=worker)
            continue
        if done:
            resolved += 1
        else:
            unknown += 1
    claimed = resolved + unknown + failed
    return SweepSummary(claimed=claimed, resolved=resolved, unknown=unknown, errors=failed + bad)


# --- claim --------------------------------------------------------------------------------------


def claim_due(
    ledger: Ledger,
    declared: Declared | None,
    *,
    worker: str,
    scope: tuple[str, str, str],
    batch: int = 10,
    lease_ms: int = 120_000,
) -> tuple[list[Held], int]:
    """Claim what is due, in one commit; and how many rows could not be claimed.

    Raises as `reconcile_once` does, and Busy or StorageFailed if the listing failed.
    """
    checks.instance("ledger", ledger, Ledger)
    checks.text("worker", worker)
    checks.whole("batch", batch, least=1, most=LARGEST_BATCH)
    checks.whole("lease_ms", lease_ms, least=1, most=LONGEST_LEASE_MS)
    whose = scope_of(scope)
    held: list[Held] = []
    bad = 0
    with ledger.transaction() as tx:
        contact.store_is_live(work.paused_why(tx))
        for number in _due(tx, whose, declared, batch):
            try:
                with tx.part():
                    held.append(_claim(tx, number, worker, lease_ms))
            except errors.AlreadyClaimed as other:
                obligations.due_again(tx, number, other.expires_ms)
            except _BAD_ROW:
                bad += 1
                _set_aside(tx, number)
    return held, bad


def _due(tx: Tx, scope: Scope, declared: Declared | None, batch: int) -> list[int]:
    target, epoch = (None, 0) if declared is None else (declared.identity, declared.epoch)
    found: list[tuple[int, int]] = []
    for lane in obligations.lanes(tx, scope, target=target, epoch=epoch):
        obligations.bring_back(tx, lane, limit=batch)
        found += obligations.due(tx, lane, limit=batch)
    return [number for _, number in sorted(found)[:batch]]


def _claim(tx: Tx, number: int, worker: str, lease_ms: int) -> Held:
    obligation = obligations.read(tx, number)
    if obligation is None or obligation.operation.attempts < obligation.attempt:
        raise sweep_errors.RowRefused("the question names an attempt that is not there")
    json.loads(obligation.operation.query.payload)  # what no longer parses is nobody's question
    claim = obligations.claim(tx, obligation, owner=worker, lease_ms=lease_ms)
    return obligation, claim


def _set_aside(tx: Tx, number: int) -> None:
    """Let a row that cannot be claimed rest, so that it does not stand before all others."""
    try:
        with tx.part():
            obligations.due_again(tx, number, tx.now_ms + sweeping.SLOWEST_MS)
    except sweep_errors.RowRefused:
        return  # the file lets nothing be done about it


# --- write ------------------------------------------------------------------------------------


def finish(
    ledger: Ledger, declared: Declared | None, held: Held, answer: Answer, *, worker: str
) -> bool:
    """Write an answer, in one commit under the claim; whether it ended the question.

    Raises StaleClaim, with nothing written, if another claim came after this one, or if the
    question was answered, asked anew or handed back meanwhile, or its operation moved.
    """
    claimed, claim = held
    sweeping.claim_is_of(claimed, claim)
    present = EffectPolicy() if declared is None else declared.policy
    actor = f"sweep by {worker}"
    with ledger.transaction() as tx:
        claims.assert_newest(tx, claim)
        now = obligations.read(tx, claimed.operation.number)
        sweeping.newer_generation_stales(claimed, now)
        assert now is not None
        contact.restored_starts_paused(now.operation)
        asked_after = claimed.operation.attempts  # a sending since then was not asked about
        done, found = answers.write(
            tx, now.operation, present, answer, actor=actor, attempts=asked_after
        )
        if done is not None and done.state in FINAL:
            return True
        _rest(tx, now, found)
        claims.end_at(tx, claim, tx.now_ms)
        return False


def _note(
    ledger: Ledger, declared: Declared | None, held: Held, error: Exception, *, worker: str
) -> None:
    """Count a visit whose answer could not be written, so that a person is called in time.

    If this fails as well, the row returns with the end of its lease, and is an error again.
    """
    if not isinstance(error, errors.Busy):
        with suppress(Exception):
            finish(ledger, declared, held, Answer(failed=type(error).__name__), worker=worker)


def _give_back(ledger: Ledger, unvisited: Sequence[Held]) -> None:
    """Put what was claimed and not visited where it was in the queue: before all that was."""
    with suppress(*_FILE_FAILED), ledger.transaction() as tx:
        for obligation, claim in unvisited:
            with suppress(errors.StaleClaim):
                claims.assert_newest(tx, claim)
                obligations.due_again(tx, obligation.operation.number, obligation.due_ms)
                claims.end_at(tx, claim, tx.now_ms)


def _rest(tx: Tx, obligation: Obligation, found: str) -> None:
    fruitless = obligation.fruitless + 1
    why = sweeping.calls_a_person(obligation, fruitless=fruitless, now_ms=tx.now_ms)
    if why is not None:
        obligations.escalate(tx, obligation, why)
    called = why is not None or obligation.escalation is not None
    rests_ms = sweeping.rests_ms(fruitless, called=called)
    obligations.visited(tx, obligation.operation.number, found=found, due_ms=tx.now_ms + rests_ms)


# --- a person steps in --------------------------------------------------------------------------


def hand_back(ledger: Ledger, operation_id: str, *, actor: str, reason: str) -> Obligation:
    """Hand an open question back to the sweeps, due now, once its hindrance was repaired.

    It begins a newer generation: what was claimed before it is stale, and the count of visits in
    vain begins anew. Doing it again begins another one. Nothing is decided. Raises
    UnknownOperation, NothingOpen, Paused or Malformed.
    """
    checks.instance("ledger", ledger, Ledger)
    for name, value in (("operation_id", operation_id), ("actor", actor), ("reason", reason)):
        checks.text(name, value)
    with ledger.transaction() as tx:
        operation = operations.read(tx, operation_id)
        contact.restored_starts_paused(operation)
        obligation = obligations.read(tx, operation.number)
        if obligation is None:
            raise sweep_errors.NothingOpen(operation_id, operation.state.value)
        obligations.hand_back(tx, obligation, actor=actor, reason=reason)
        again = obligations.read(tx, operation.number)
        assert again is not None
        return again
