"""May this state move, and where to? Whoever writes, or explores the protocol, asks here first.

A guard takes what is recorded and what was seen, and returns a `Move` (or an `Incident`), or
raises a refusal. The ledger writes what it returns and nothing else. The first half of this module
is the rules, one function for each named rule; the second half is the guards, which read as lists
of rules. A guard calls a rule by its name in this module, so that one rule can be taken away and
the damage seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import bindings, checks, errors
from .contradictions import contradicts
from .evidence import FLAGS, OUTCOME_OF, Receipt, Snapshot
from .operation import Binding, Operation
from .policy import EffectPolicy
from .states import FINAL, UNRESOLVED, Cause, State, is_legal
from .verdicts import Verdict, classify

SENDER = "sender"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A lawful change of state, not yet written. `version` is the one that it makes."""

    operation: Operation
    target: State
    version: int
    cause: Cause
    actor: str
    verdict: Verdict | None = None
    effect_id: str | None = None
    snapshot: Snapshot | None = None
    receipt: Receipt | None = None
    reason: str | None = None

    @property
    def after(self) -> Operation:
        """The operation as it stands once this is written."""
        return replace(
            self.operation, state=self.target, version=self.version, effect_id=self.effect_id
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Evidence against a final state. It raises the version and leaves the state."""

    operation: Operation
    version: int
    evidence: Snapshot | Receipt

    @property
    def after(self) -> Operation:
        """The operation as it stands once this is written."""
        return replace(self.operation, version=self.version)


# --- the rules ----------------------------------------------------------------------------------


def one_effect(operation: Operation) -> None:
    """one-effect · same-identity-only: only an intent that was never sent may be sent.

    Raises AlreadyAnnounced if a request may have left, or may not leave any more.
    """
    if operation.state is not State.PREPARED or operation.may_have_left:
        raise errors.AlreadyAnnounced(operation.operation_id, operation.state.value)


def right_receiver(operation: Operation, receiver: str, epoch: int) -> None:
    """mismatch-never-resolves, before contact. Raises WrongReceiver on another one or epoch."""
    if (receiver, epoch) != (operation.target, operation.epoch):
        raise errors.WrongReceiver(
            f"{operation.target!r} in epoch {operation.epoch}", f"{receiver!r} in epoch {epoch}"
        )


def mismatch_never_resolves(operation: Operation, snapshot: Snapshot) -> None:
    """Raises WrongQuestion if the snapshot answers any other question than this operation's."""
    asked, wanted = snapshot.query, operation.query
    differs = [
        name
        for name in type(wanted).__dataclass_fields__
        if getattr(asked, name) != getattr(wanted, name)
    ]
    if (snapshot.receiver, snapshot.epoch) != (wanted.target, wanted.epoch):
        differs.append("receiver or epoch that answered")
    if differs:
        raise errors.WrongQuestion(", ".join(differs))


def receipt_answers(operation: Operation, receipt: Receipt) -> bool:
    """mismatch-never-resolves, for receipts: whether it answers exactly this operation."""
    return receipt.query == operation.query


def own_effect(operation: Operation, effect_id: str | None) -> bool:
    """compensation-is-an-effect: a compensation is never the effect that it amends."""
    return effect_id is None or effect_id != operation.compensates


def within_policy(operation: Operation, snapshot: Snapshot) -> None:
    """Evidence is never trusted beyond what its receiver declared. Raises Overclaimed if it is.

    A close mark makes a reading complete and authoritative, since the receiver makes it and reads
    in one transaction; so a closed snapshot needs `can_close` alone.
    """
    policy = operation.policy
    if snapshot.closed and policy.can_close:
        return
    over = [flag for flag in FLAGS if getattr(snapshot, flag) and not policy.declares(flag)]
    if over:
        raise errors.Overclaimed(" and ".join(over), policy.name)


def one_decision_per_version(operation: Operation, expected_version: int) -> None:
    """Raises StaleVersion if the operation is not at the version that the caller saw."""
    if operation.version != expected_version:
        raise errors.StaleVersion(expected_version, operation.version)


def resolving(snapshot: Snapshot) -> tuple[Verdict, State]:
    """silence-decides-nothing: only a verdict that resolves names a state.

    Raises Unresolving if it does not.
    """
    verdict = classify(snapshot)
    if verdict.resolves is None:
        raise errors.Unresolving(verdict.value)
    return verdict, verdict.resolves


def final_stays_final(operation: Operation, evidence: Snapshot | Receipt) -> Incident | None:
    """Evidence that cannot hold at a final state is an incident; everything else is none."""
    if operation.state not in FINAL or not contradicts(operation, evidence):
        return None
    return Incident(operation=operation, version=operation.version + 1, evidence=evidence)


def closing_needs_permission(operation: Operation, present: EffectPolicy) -> None:
    """Raises ClosingRefused if nothing is open, or if either policy has no close barrier."""
    if operation.state not in UNRESOLVED:
        raise errors.ClosingRefused(
            operation.operation_id, f"it is {operation.state.value}, not unresolved"
        )
    for policy, which in ((operation.policy, "pinned"), (present, "present")):
        if not policy.can_close:
            raise errors.ClosingRefused(
                operation.operation_id,
                f"the {which} policy {policy.name!r} declares no closing; read, or call a person",
            )


# --- the guards ---------------------------------------------------------------------------------


def announce(operation: Operation, *, receiver: str, epoch: int) -> Move:
    """announce-before-act: the move to commit before a request may leave.

    Raises AlreadyAnnounced, WrongReceiver or Unbound if no request may leave.
    """
    one_effect(operation)
    right_receiver(operation, receiver, epoch)
    bindings.compensation_is_bound(operation)
    return _move(operation, State.UNKNOWN, Cause.ANNOUNCED, SENDER)


def never_sent(operation: Operation) -> Move | None:
    """Back to prepared, for the very call that proves its permission unused; None if it may not.

    The attempt of that call counts under `not_sent` already: any other that may have left keeps it
    unknown.
    """
    if operation.state is not State.UNKNOWN or operation.may_have_left:
        return None
    return _move(operation, State.PREPARED, Cause.NEVER_SENT, SENDER)


def settle(operation: Operation, receipt: Receipt) -> Move | Incident | None:
    """What the direct reply to our own send entitles to. None: it is kept, and nothing moves.

    It speaks for the effect only if no other send may have left: a plain receiver numbers what it
    does, and does not know that two requests were one operation.
    """
    if not receipt_answers(operation, receipt):
        return None
    target = OUTCOME_OF[receipt.status]
    speaks = operation.may_have_left == 1 and own_effect(operation, receipt.effect_id)
    if speaks and is_legal(operation.state, target, Cause.RECEIPT):
        move = _move(operation, target, Cause.RECEIPT, SENDER)
        return replace(move, effect_id=receipt.effect_id, receipt=receipt)
    return final_stays_final(operation, receipt)


def keep(operation: Operation, snapshot: Snapshot) -> Incident | None:
    """May this snapshot be kept as evidence about this operation, and is it an incident?

    Raises WrongQuestion or Overclaimed if it may not be kept.
    """
    mismatch_never_resolves(operation, snapshot)
    within_policy(operation, snapshot)
    return final_stays_final(operation, snapshot)


def decide(
    operation: Operation, snapshot: Snapshot, *, reviewer: str, expected_version: int
) -> Move:
    """The move that a resolving snapshot entitles a reviewer to.

    Raises WrongQuestion, Overclaimed, StaleVersion, Unresolving or IllegalMove, in this order, if
    one condition is missing.
    """
    mismatch_never_resolves(operation, snapshot)
    within_policy(operation, snapshot)
    one_decision_per_version(operation, expected_version)
    verdict, target = resolving(snapshot)
    effect_id = snapshot.effects[0].effect_id if snapshot.effects else None
    if not own_effect(operation, effect_id):
        raise errors.WrongQuestion("the effect, which is the one that is amended,")
    move = _move(operation, target, Cause.EVIDENCE, reviewer)
    return replace(move, verdict=verdict, effect_id=effect_id, snapshot=snapshot)


def close(operation: Operation, present: EffectPolicy, *, receiver: str, epoch: int) -> None:
    """May a request to close leave? Raises WrongReceiver or ClosingRefused if not."""
    right_receiver(operation, receiver, epoch)
    closing_needs_permission(operation, present)


def approve(
    original: Operation,
    *,
    effect_id: str,
    approver: str,
    expected_version: int,
    latest: Operation | None,
) -> Binding:
    """What an approval of a compensation binds. `latest` is the last one of this effect, if any.

    Raises StaleVersion, Unbound or AlreadyApproved if the effect may not be compensated now.
    """
    one_decision_per_version(original, expected_version)
    return bindings.bind(original, effect_id=effect_id, approver=approver, latest=latest)


def withdraw(operation: Operation, *, actor: str, reason: str) -> Move:
    """The move that ends a draft before anything was sent. Raises IllegalMove if it is none."""
    return replace(_move(operation, State.REVOKED, Cause.WITHDRAWN, actor), reason=reason)


def _move(operation: Operation, target: State, cause: Cause, actor: str) -> Move:
    checks.text("actor", actor)
    if not is_legal(operation.state, target, cause):
        raise errors.IllegalMove(operation.state.value, target.value, cause.value)
    version = operation.version + 1
    return Move(operation=operation, target=target, version=version, cause=cause, actor=actor)
