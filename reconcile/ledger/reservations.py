"""Held money: a journal whose newest entry says how a currency stands."""

from __future__ import annotations

from ..rules import order_errors
from ..rules.money import Budget
from ..rules.operation import Operation
from ..rules.order import Order
from .tx import Tx


def budget(tx: Tx, currency: str) -> Budget:
    """How the money of a currency stands. Raises NoBudget if none was ever set."""
    limits = tx.execute(
        "SELECT ceiling, automatic FROM budget WHERE currency = ? ORDER BY version DESC LIMIT 1",
        (currency,),
    ).fetchone()
    if limits is None:
        raise order_errors.NoBudget(currency)
    figures = tx.execute(
        "SELECT reserved, spent, written_off FROM entry WHERE currency = ? "
        "ORDER BY number DESC LIMIT 1",
        (currency,),
    ).fetchone()
    reserved, spent, written_off = figures or (0, 0, 0)
    return Budget(
        currency=currency,
        ceiling=limits[0],
        automatic=limits[1],
        reserved=reserved,
        spent=spent,
        written_off=written_off,
    )


def set_budget(tx: Tx, currency: str, *, ceiling: int, automatic: int, set_by: str) -> None:
    """Write the next version of a budget."""
    tx.execute(
        "INSERT INTO budget SELECT ?, coalesce(max(version), 0) + 1, ?, ?, ?, ? "
        "FROM budget WHERE currency = ?",
        (currency, ceiling, automatic, set_by, tx.now_ms, currency),
    )


def reserve(tx: Tx, operation: Operation, order: Order) -> None:
    """Enter the reservation of an order in the journal. Its settlement the file enters itself."""
    held = order.budget
    tx.execute(
        "INSERT INTO entry SELECT ?, coalesce(max(number), 0) + 1, ?, 0, 'reserve', ?, ?, ?, ?, ? "
        "FROM entry WHERE currency = ?",
        (
            order.currency,
            operation.number,
            order.amount,
            held.reserved + order.amount,
            held.spent,
            held.written_off,
            tx.now_ms,
            order.currency,
        ),
    )
