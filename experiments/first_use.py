"""The smallest program that uses the library: order, and say honestly what became of it."""

from __future__ import annotations

from pathlib import Path

from reconcile import Ledger, Receiver, State, dispatch, prepare


def order_vanilla(file: Path, supplier: Receiver, tubs: int) -> str:
    """Order once, however often this is called for the same tubs; what is known, in words."""
    with Ledger(file) as ledger:
        order = prepare(
            ledger,
            supplier,
            work_id="restock of Monday",
            kind="order",
            payload={"sku": "SKU-VANILLA", "tubs": tubs},
            subject="SKU-VANILLA",
        )
        if order.state is not State.PREPARED:  # an earlier run asked for the same thing
            return f"already {order.state.value}; nothing was sent"
        seen = dispatch(ledger, order.operation_id, supplier)
    outcome, allowed = seen.outcome.value, [action.value for action in seen.next_actions]
    if seen.outcome is State.UNKNOWN:  # not an error, and not a reason to order again
        return f"not established; now: {', '.join(allowed)}"
    return outcome
