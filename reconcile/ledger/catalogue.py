"""Prices, stock and deliveries: what the store knows by itself, so that no caller says it."""

from __future__ import annotations

from typing import NamedTuple

from ..rules import order_errors
from ..rules.operation import Operation
from .tx import Tx


class Price(NamedTuple):
    """What one unit costs, in minor units of a currency."""

    unit_cost: int
    currency: str


def price(tx: Tx, sku: str, supplier: str) -> Price:
    """The price in force. Raises NoPrice if there is none."""
    row = tx.execute(
        "SELECT unit_cost, currency FROM price WHERE sku = ? AND supplier = ? "
        "ORDER BY version DESC LIMIT 1",
        (sku, supplier),
    ).fetchone()
    if row is None:
        raise order_errors.NoPrice(sku, supplier)
    return Price(*row)


def set_price(
    tx: Tx, sku: str, supplier: str, *, unit_cost: int, currency: str, set_by: str
) -> None:
    """Write the next version of a price."""
    tx.execute(
        "INSERT INTO price SELECT ?, ?, coalesce(max(version), 0) + 1, ?, ?, ?, ? "
        "FROM price WHERE sku = ? AND supplier = ?",
        (sku, supplier, unit_cost, currency, set_by, tx.now_ms, sku, supplier),
    )


def count_stock(tx: Tx, sku: str, counted: int) -> None:
    """Write what was on the shelf when it was first counted."""
    tx.execute("INSERT INTO stock VALUES (?, ?, ?)", (sku, counted, tx.now_ms))


def counted(tx: Tx, sku: str) -> int | None:
    """What was on the shelf when it was counted; None if it never was."""
    row = tx.execute("SELECT counted FROM stock WHERE sku = ?", (sku,)).fetchone()
    return None if row is None else int(row[0])


def on_hand(tx: Tx, sku: str) -> int | None:
    """What was counted and all that was delivered since; None if nothing was ever counted."""
    row = tx.execute(
        "SELECT s.counted + coalesce((SELECT sum(d.quantity) FROM delivery d "
        "JOIN purchase p ON p.operation = d.operation WHERE p.sku = s.sku), 0) "
        "FROM stock s WHERE s.sku = ?",
        (sku,),
    ).fetchone()
    return None if row is None else int(row[0])


class Delivery(NamedTuple):
    """Goods that arrived for one order, under a reference of their own."""

    reference: str
    operation: int
    quantity: int
    recorded_by: str


def delivered(tx: Tx, reference: str) -> Delivery | None:
    """The delivery of this reference; None if none was recorded."""
    row = tx.execute(
        "SELECT reference, operation, quantity, recorded_by FROM delivery WHERE reference = ?",
        (reference,),
    ).fetchone()
    return None if row is None else Delivery(*row)


def deliver(tx: Tx, operation: Operation, *, reference: str, quantity: int, actor: str) -> None:
    """Write a delivery; what is on hand rises by it."""
    tx.execute(
        "INSERT INTO delivery VALUES (?, ?, ?, ?, ?)",
        (reference, operation.number, quantity, actor, tx.now_ms),
    )
