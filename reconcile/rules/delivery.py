"""May these goods be of this order? Accepted is not delivered, and delivered is no receipt."""

from __future__ import annotations

from . import order_errors
from .operation import Operation
from .states import ENDED_WITHOUT_EFFECT, State

MAY_ARRIVE = frozenset(State) - ENDED_WITHOUT_EFFECT - {State.PREPARED}
"""The states of an order whose goods can be on their way: whatever may have happened."""


def may_be_delivered(operation: Operation, *, reference: str, quantity: int) -> None:
    """Raises DeliveryRefused if the order cannot have happened, or more would arrive than that."""
    order = operation.order
    if order is None or operation.state not in MAY_ARRIVE:
        why = f"its order is {operation.state.value}: these goods are another's, call a person"
        raise order_errors.DeliveryRefused(reference, why)
    total = order.delivered + quantity
    if total > order.quantity:
        why = f"{total} would have arrived of {order.quantity} that were ordered"
        raise order_errors.DeliveryRefused(reference, why)
