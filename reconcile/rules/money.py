"""What each move does to held money: the one table, in code and in the file.

Money is whole minor units. It is reserved when an order is approved, and every state holds it but
those named here, so that forgetting a state holds money and never frees it. `MONEY` is copied into
every ledger file, whose trigger moves the money in the very statement that moves the state.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import order_errors
from .states import State

MONEY: dict[State, str] = {
    State.CONFIRMED: "spend",
    State.REJECTED: "release",
    State.NOT_APPLIED: "release",
    State.REVOKED: "release",
    State.WRITTEN_OFF: "write_off",
    State.FAILED: "write_off",  # what was started may have cost something
}
"""What becomes of the reservation of an order that reaches a state. Not named: it stays held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How the money of one currency stands, in minor units. The three figures are never negative.

    `written_off` is neither spent nor free: nobody knows, so it counts against the ceiling.
    """

    currency: str
    ceiling: int
    automatic: int  # the largest order that may be approved without a person; 0: none
    reserved: int
    spent: int
    written_off: int

    @property
    def committed(self) -> int:
        """What counts against the ceiling."""
        return self.reserved + self.spent + self.written_off


def within_ceiling(budget: Budget, pence: int) -> None:
    """Raises CeilingExceeded if so much more would pass the ceiling."""
    total = budget.committed + pence
    if total > budget.ceiling:
        raise order_errors.CeilingExceeded(pence, total, budget.ceiling, budget.currency)
