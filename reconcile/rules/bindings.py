"""What binds a compensation: one effect of one operation, at the version its approver saw."""

from __future__ import annotations

from . import errors
from .operation import Binding, Operation
from .states import ENDED_WITHOUT_EFFECT, State


def bind(
    original: Operation, *, effect_id: str, approver: str, latest: Operation | None
) -> Binding:
    """compensation-is-bound: the binding of a new approval.

    Raises Unbound if this is not the confirmed effect of the operation, AlreadyApproved if another
    approval of it is live.
    """
    if original.state is not State.CONFIRMED:
        why = f"the original is {original.state.value}; only a confirmed effect may be compensated"
        raise errors.Unbound(effect_id, why)
    if original.effect_id != effect_id:
        raise errors.Unbound(effect_id, "it is not the confirmed effect of this operation")
    if latest is not None and not superseded(latest):
        raise errors.AlreadyApproved(effect_id, latest.operation_id)
    before = 0 if latest is None or latest.binding is None else latest.binding.ordinal
    return Binding(
        original_id=original.operation_id,
        effect_id=effect_id,
        approved_version=original.version,
        ordinal=before + 1,
        approver=approver,
        state=original.state,
        version=original.version,
    )


def compensation_is_bound(operation: Operation) -> None:
    """Raises Unbound if a compensation's original is not confirmed at the approved version now."""
    if operation.compensates is None:
        return
    bound = operation.binding
    if bound is None or bound.effect_id != operation.compensates:
        raise errors.Unbound(operation.compensates, "no approval stands for this compensation")
    if (bound.state, bound.version) != (State.CONFIRMED, bound.approved_version):
        raise errors.Unbound(
            bound.effect_id,
            f"approved at version {bound.approved_version} of the original, which "
            f"is now {bound.state.value} at version {bound.version}; approve again",
        )


def is_bound(operation: Operation) -> bool:
    """Whether nothing stands in the way of sending it, as far as approvals go."""
    try:
        compensation_is_bound(operation)
    except errors.Unbound:
        return False
    return True


def superseded(compensation: Operation) -> bool:
    """Whether another approval may follow: this one had no effect, or is a draft gone stale."""
    if compensation.state in ENDED_WITHOUT_EFFECT:
        return True
    return compensation.state is State.PREPARED and not is_bound(compensation)
