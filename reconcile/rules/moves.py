"""What does evidence entitle to? Whoever decides, or explores the protocol, asks here first.

A guard takes what is recorded and what was seen, and returns a `Move` (or an `Incident`), or
raises a refusal. The ledger writes what it returns and nothing else. The first half of this module
is the rules, one function for each named rule; the second half is the guards, which read as lists
of rules. A guard calls a rule by its name in its module, so that one rule can be taken away and
the damage seen. Beside it, `sending.py` has the guards of what leaves, `receipts.py` those of what
comes back, and `admission.py` those of money.
"""

from __future__ import annotations

from dataclasses import replace

from . import bindings, errors
from .contradictions import contradicts
from .evidence import FLAGS, Receipt, Snapshot
from .move import Incident, Move, move_of
from .operation import Binding, Operation
from .states import FINAL, Cause, State
from .verdicts import Verdict, classify

# --- the rules ----------------------------------------------------------------------------------


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


# --- the guards ---------------------------------------------------------------------------------


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
    move = move_of(operation, target, Cause.EVIDENCE, reviewer)
    return replace(move, verdict=verdict, effect_id=effect_id, snapshot=snapshot)


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
