"""What must hold before a receiver is contacted, or anything moves, whatever is asked."""

from __future__ import annotations

from . import errors
from .operation import Operation
from .policy import EffectPolicy
from .states import UNRESOLVED


def restored_starts_paused(operation: Operation) -> None:
    """restored-starts-paused: a store that may be older than the world acts on nothing.

    Raises Paused if the operation's store is paused.
    """
    store_is_live(operation.paused)


def store_is_live(paused: str | None) -> None:
    """The same for what concerns no one operation. Raises Paused if there is a reason for it."""
    if paused is not None:
        raise errors.Paused(paused)


def right_receiver(operation: Operation, receiver: str, epoch: int) -> None:
    """mismatch-never-resolves, before contact. Raises WrongReceiver on another one or epoch."""
    if (receiver, epoch) != (operation.target, operation.epoch):
        raise errors.WrongReceiver(
            f"{operation.target!r} in epoch {operation.epoch}", f"{receiver!r} in epoch {epoch}"
        )


def resend_is_declared(operation: Operation, present: EffectPolicy) -> None:
    """same-identity-only, the guarantee: raises NoGuarantee if either policy declares none."""
    for policy, which in ((operation.policy, "pinned"), (present, "present")):
        if not policy.resend_same or policy.identity_scope == "none":
            raise errors.NoGuarantee(which, policy.name)


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
