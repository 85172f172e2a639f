"""What may leave: the first request, the same one again, a request to close.

A guard here raises a refusal before any contact. `announce` returns the move to commit first;
`resend` returns none, since a second sending teaches nothing about the first.
"""

from __future__ import annotations

from . import admission, bindings, contact, errors
from .move import Move, move_of
from .operation import Operation
from .order import Lease
from .policy import EffectPolicy
from .states import Cause, State

SENDER = "sender"
SHORTEST_MS = 1  # the shortest call: what is offered may still be too late for a longer one

# --- the rules ----------------------------------------------------------------------------------


def one_effect(operation: Operation) -> None:
    """one-effect · same-identity-only: only an intent that was never sent may be sent.

    Raises AlreadyAnnounced if a request may have left, or may not leave any more.
    """
    if operation.state is not State.PREPARED or operation.may_have_left:
        raise errors.AlreadyAnnounced(operation.operation_id, operation.state.value)


def nothing_was_seen(operation: Operation) -> None:
    """one-effect, against the world: raises EffectSeen if evidence shows an effect already.

    A store that was restored, or an identity that somebody else used, has such operations.
    """
    if operation.effect_seen:
        raise errors.EffectSeen(operation.operation_id)


def sent_by_its_own(operation: Operation) -> None:
    """What a task commands leaves by its task, which asks for more: its world, its contract.

    Nor is it sent again: a second sending would be of another day. A compensation is a person's,
    and is no command. Raises UnderTask.
    """
    if operation.under is not None:
        raise errors.UnderTask(operation.operation_id, operation.under)


def no_new_while_unknown(twin: str | None, *, distinct: bool) -> None:
    """no-new-while-unknown. `twin`: an equivalent operation that is unresolved; None: none is.

    Equivalent is: same target, kind, subject and scope. A compensation is bound to an effect of
    its own, by name, and is no twin. Raises EquivalentUnresolved unless a distinct need is
    authorised.
    """
    if twin is not None and not distinct:
        raise errors.EquivalentUnresolved(twin)


def same_identity_only(
    operation: Operation, present: EffectPolicy, now_ms: int, limit_ms: int
) -> None:
    """same-identity-only: a second sending needs a guarantee that is in force until it ended.

    `limit_ms`: how long the call may take. Raises NoGuarantee or ResendRefused if there is none,
    or if the question was not asked first.
    """
    contact.resend_is_declared(operation, present)
    for policy in (operation.policy, present):
        why = _why_not_again(operation, policy, now_ms, limit_ms)
        if why is not None:
            raise errors.ResendRefused(operation.operation_id, why)


def _why_not_again(
    operation: Operation, policy: EffectPolicy, now_ms: int, limit_ms: int
) -> str | None:
    first_ms, remembers_ms = operation.first_sent_ms, policy.identity_retention_ms
    if operation.state is not State.UNKNOWN or first_ms is None or not operation.may_have_left:
        return f"it is {operation.state.value}; only one that may have left is sent again"
    if operation.close_requests:
        return "a close was asked for; what comes after it would be refused, or do it twice"
    if remembers_ms is None:
        return f"policy {policy.name!r} does not declare how long an identity is remembered"
    counted_on_ms = first_ms + remembers_ms - policy.identity_margin_ms
    if now_ms < first_ms or now_ms + limit_ms > counted_on_ms:
        return "it cannot be shown that its identity is still remembered; ask, or call a person"
    if policy.stored_receipt and operation.asked_after < operation.attempts:
        return "ask for its stored receipt first: it may be there"
    return None


# --- the guards ---------------------------------------------------------------------------------


def announce(
    operation: Operation, *, receiver: str, epoch: int, lease: Lease | None = None
) -> Move:
    """announce-before-act: the move to commit before a request may leave.

    Raises Paused, AlreadyAnnounced, EffectSeen, Unbound, EquivalentUnresolved, WrongReceiver, or
    what `admission_rechecks_authority` raises for an order, if no request may leave.
    """
    _may_leave(operation)
    contact.right_receiver(operation, receiver, epoch)
    admission.admission_rechecks_authority(operation, lease)
    return move_of(operation, State.UNKNOWN, Cause.ANNOUNCED, SENDER)


def resend(
    operation: Operation,
    present: EffectPolicy,
    *,
    receiver: str,
    epoch: int,
    now_ms: int,
    limit_ms: int,
    lease: Lease | None = None,
) -> None:
    """May the same identity be sent again? It moves nothing, so there is no move to return.

    `limit_ms`: how long the call may take. Raises Paused, UnderTask, Unbound, NoGuarantee,
    ResendRefused, WrongReceiver, or what `admission_rechecks_authority` raises for an order.
    """
    contact.right_receiver(operation, receiver, epoch)
    _may_leave_again(operation, present, now_ms, limit_ms)
    admission.admission_rechecks_authority(operation, lease)


def _may_leave(operation: Operation) -> None:
    contact.restored_starts_paused(operation)
    one_effect(operation)
    nothing_was_seen(operation)
    bindings.compensation_is_bound(operation)
    no_new_while_unknown(operation.twin, distinct=operation.distinct)


def _may_leave_again(
    operation: Operation, present: EffectPolicy, now_ms: int, limit_ms: int
) -> None:
    contact.restored_starts_paused(operation)
    sent_by_its_own(operation)
    bindings.compensation_is_bound(operation)
    same_identity_only(operation, present, now_ms, limit_ms)


# --- what may be offered: the same rules, without a receiver and a claim ------------------------


def why_not_dispatch(operation: Operation, now_ms: int) -> errors.ReconcileError | None:
    """The refusal that a first sending would end in now; None if it may leave."""
    try:
        _may_leave(operation)
        admission.authority_stands(operation, now_ms)
    except errors.ReconcileError as refusal:
        return refusal
    return None


def why_not_resend(operation: Operation, now_ms: int) -> errors.ReconcileError | None:
    """The refusal that a second sending would end in now, under the pinned policy; or None."""
    try:
        _may_leave_again(operation, operation.policy, now_ms, SHORTEST_MS)
        admission.authority_stands(operation, now_ms)
    except errors.ReconcileError as refusal:
        return refusal
    return None


# --- the other guards ---------------------------------------------------------------------------


def never_sent(operation: Operation) -> Move | None:
    """Back to prepared, for the very call that proves its permission unused; None if it may not.

    The attempt of that call counts under `not_sent` already: any other that may have left keeps it
    unknown.
    """
    if operation.state is not State.UNKNOWN or operation.may_have_left:
        return None
    return move_of(operation, State.PREPARED, Cause.NEVER_SENT, SENDER)


def close(operation: Operation, present: EffectPolicy, *, receiver: str, epoch: int) -> None:
    """May a request to close leave? Raises Paused, WrongReceiver or ClosingRefused if not."""
    contact.restored_starts_paused(operation)
    contact.right_receiver(operation, receiver, epoch)
    contact.closing_needs_permission(operation, present)
