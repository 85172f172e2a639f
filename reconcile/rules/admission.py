"""May money leave? What is asked again at the authorisation point, and who gives authority.

Approving, renewing and revoking say what a person may do; `admission_rechecks_authority` asks all
of it once more in the transaction that announces, since days may lie between. None of it is asked
when a receipt settles: what happened, happened, whoever lost authority meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from . import checks, contact, errors, money, order_errors
from .move import Move, move_of
from .operation import Operation
from .order import LONGEST_APPROVAL_MS, Approval, Basis, Lease, Order
from .policy import EffectPolicy
from .states import Cause, State


def order_of(operation: Operation) -> Order:
    """Raises NoOrder if the operation carries no money."""
    if operation.order is None:
        raise order_errors.NoOrder(operation.operation_id)
    return operation.order


# --- the rules ----------------------------------------------------------------------------------


def same_digest(operation: Operation, digest: str) -> None:
    """Raises WrongDigest if somebody names another proposal than this one."""
    if digest != operation.digest:
        raise order_errors.WrongDigest(operation.digest, digest)


def not_cancelled(operation: Operation) -> None:
    """Raises WorkCancelled if the work item of an order was cancelled."""
    if order_of(operation).cancelled_by is not None:
        raise order_errors.WorkCancelled(operation.work_id)


def not_revoked(operation: Operation) -> None:
    """Raises ApprovalRevoked if the last approval was revoked: renewal does not undo that."""
    approval = order_of(operation).approval
    if approval is not None and approval.revoked_by is not None:
        raise order_errors.ApprovalRevoked(operation.operation_id, approval.revoked_by)


def basis_holds(operation: Operation, approval: Approval) -> None:
    """Whether what an approval rests on still stands today.

    Raises UnknownBasis, NotListed or AutomaticRefused if it does not.
    """
    if approval.basis is Basis.UNKNOWN:
        raise order_errors.UnknownBasis(operation.operation_id)
    if approval.basis is Basis.OPERATOR and not approval.listed:
        raise order_errors.NotListed(approval.actor)
    if approval.basis is Basis.AUTOMATIC:
        fits_allowance(operation)


def ends_in_a_day(asked: Approval) -> None:
    """Raises Malformed if an approval would end before it begins, or after more than a day."""
    first, last = asked.approved_ms + 1, asked.approved_ms + LONGEST_APPROVAL_MS
    checks.whole("expires_ms", asked.expires_ms, least=first, most=last)


def fits_allowance(operation: Operation) -> None:
    """Raises AutomaticRefused if the order is larger than today's automatic allowance."""
    order = order_of(operation)
    if order.amount > order.budget.automatic:
        why = f"it is {order.amount}, today's allowance is {order.budget.automatic}"
        raise order_errors.AutomaticRefused(operation.operation_id, why)


def authority_stands(operation: Operation, now_ms: int) -> None:
    """Whether this may be sent now, as far as authority and money go: without money it may.

    Raises WorkCancelled, NoApproval, ApprovalRevoked, WrongDigest, ApprovalExpired, what
    `basis_holds` raises, or CeilingExceeded if it may not.
    """
    order = operation.order
    if order is None:
        return
    not_cancelled(operation)
    if order.approval is None or not order.held:
        raise order_errors.NoApproval(operation.operation_id)
    not_revoked(operation)
    same_digest(operation, order.approval.digest)
    if not order.approval.approved_ms <= now_ms < order.approval.expires_ms:
        raise order_errors.ApprovalExpired(operation.operation_id, order.approval.expires_ms)
    basis_holds(operation, order.approval)
    # Its own reservation is in the budget already; the ceiling may have sunk since.
    money.within_ceiling(order.budget, 0)


def lease_outlasts(operation: Operation, lease: Lease | None) -> Lease:
    """The lease. Raises StaleClaim without a claim, LeaseTooShort if a call could outlive it."""
    if lease is None:
        raise errors.StaleClaim(operation.work_id, "none was given, and an order needs one")
    left_ms = lease.expires_ms - lease.now_ms
    if left_ms <= lease.limit_ms:
        raise order_errors.LeaseTooShort(max(0, left_ms), lease.limit_ms)
    return lease


def admission_rechecks_authority(operation: Operation, lease: Lease | None) -> None:
    """admission-rechecks-authority: an operation without money passes.

    Raises what its rules raise. The claim itself is compared by the ledger, which gives the lease
    only to the current one.
    """
    if operation.order is not None:
        authority_stands(operation, lease_outlasts(operation, lease).now_ms)


# --- the guards ---------------------------------------------------------------------------------


def approve(operation: Operation, asked: Approval) -> None:
    """May this approval of a draft be given, and its money be held?

    Raises Paused, WrongDigest, NotApprovable, WorkCancelled, ApprovalRevoked, Malformed for the
    expiry, NotListed, AutomaticRefused or CeilingExceeded if not.
    """
    order = order_of(operation)
    contact.restored_starts_paused(operation)
    same_digest(operation, asked.digest)
    if operation.state is not State.PREPARED:
        why = "only a draft is approved; an uncertain order is renewed"
        raise order_errors.NotApprovable(operation.operation_id, operation.state.value, why)
    not_cancelled(operation)
    not_revoked(operation)  # it was while its first send, which never left, was under way
    ends_in_a_day(asked)
    if asked.basis is not Basis.UNKNOWN:
        basis_holds(operation, asked)
    money.within_ceiling(order.budget, 0 if order.held else order.amount)


def renew(
    operation: Operation, asked: Approval, present: EffectPolicy, *, receiver: str, epoch: int
) -> None:
    """May an uncertain order be approved anew? Identity, digest and reservation stay as they are.

    So does the duty to ask first. Raises Paused, WrongReceiver, WrongDigest, NotApprovable,
    NoGuarantee, WorkCancelled, ApprovalRevoked, AutomaticRefused, NotListed, UnknownBasis,
    Malformed or CeilingExceeded, each for its own reason.
    """
    order = order_of(operation)
    contact.restored_starts_paused(operation)
    contact.right_receiver(operation, receiver, epoch)
    same_digest(operation, asked.digest)
    if operation.state is not State.UNKNOWN or not order.held:
        why = "only an uncertain order is renewed"
        raise order_errors.NotApprovable(operation.operation_id, operation.state.value, why)
    contact.resend_is_declared(operation, present)
    not_cancelled(operation)
    not_revoked(operation)
    if asked.basis is Basis.AUTOMATIC:
        why = "it may have been sent, so that a person must look"
        raise order_errors.AutomaticRefused(operation.operation_id, why)
    ends_in_a_day(asked)
    basis_holds(operation, asked)
    money.within_ceiling(order.budget, 0)


def in_time(operation: Operation) -> bool:
    """Whether nothing of it can stand at its receiver, so that withdrawing it ends it."""
    return operation.state is State.PREPARED and not operation.effect_seen


def withdraw(operation: Operation, *, actor: str, reason: str) -> Move:
    """The move that ends a draft before anything was sent. Raises IllegalMove if it is none."""
    move = move_of(operation, State.REVOKED, Cause.WITHDRAWN, actor)
    return replace(move, reason=checks.text("reason", reason))


def superseded_by(new: Operation, others: Sequence[Operation]) -> list[Operation]:
    """Those of the same work item and need that a new proposal withdraws: no distinct one."""
    need = (new.target, new.kind, new.subject, new.scope)
    return [
        other
        for other in others
        if other.operation_id != new.operation_id
        and (other.target, other.kind, other.subject, other.scope) == need
        and not (new.distinct or other.distinct)
        and in_time(other)
    ]
