"""What an order buys, with which approval and which money: rows in, values out."""

from __future__ import annotations

from ..rules.operation import Operation
from ..rules.order import Order
from . import approvals, reservations
from .catalogue import Price
from .tx import Tx


def read(tx: Tx, number: int) -> Order:
    """The purchase of the operation of this number."""
    sku, quantity, unit_cost, currency, amount, cancelled_by, delivered = tx.execute(
        "SELECT p.sku, p.quantity, p.unit_cost, p.currency, p.amount, w.cancelled_by, "
        "(SELECT coalesce(sum(d.quantity), 0) FROM delivery d WHERE d.operation = p.operation) "
        "FROM purchase p JOIN operation o ON o.number = p.operation "
        "LEFT JOIN work w ON w.work_id = o.work_id WHERE p.operation = ?",
        (number,),
    ).fetchone()
    does = [
        row[0]
        for row in tx.execute(
            "SELECT does FROM entry WHERE operation = ? ORDER BY settles", (number,)
        ).fetchall()
    ]
    return Order(
        sku=sku,
        quantity=quantity,
        unit_cost=unit_cost,
        currency=currency,
        amount=amount,
        held=does == ["reserve"],
        became=does[1] if len(does) > 1 else None,
        delivered=delivered,
        cancelled_by=cancelled_by,
        approval=approvals.last(tx, number),
        budget=reservations.budget(tx, currency),
    )


def add(tx: Tx, operation: Operation, *, sku: str, quantity: int, price: Price) -> None:
    """Write what an operation that was just prepared buys, at which price."""
    amount = quantity * price.unit_cost
    tx.execute(
        "INSERT INTO purchase VALUES (?, ?, ?, ?, ?, ?)",
        (operation.number, sku, quantity, price.unit_cost, price.currency, amount),
    )


def drafts(tx: Tx, *, work_id: str, sku: str | None = None) -> list[int]:
    """The numbers of the prepared orders of one work item: for one SKU, or for all of them."""
    rows = tx.execute(
        "SELECT o.number FROM operation o JOIN purchase p ON p.operation = o.number "
        "WHERE o.work_id = ? AND o.state = 'prepared' AND p.sku = coalesce(?, p.sku) "
        "ORDER BY o.number",
        (work_id, sku),
    ).fetchall()
    return [row[0] for row in rows]
