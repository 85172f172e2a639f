"""What the store knows by itself: prices, stock, budgets, and who may approve."""

from __future__ import annotations

from ..ledger import approvals, catalogue, reservations
from ..ledger.store import Ledger
from ..rules import checks
from ..rules.errors import Malformed
from ..rules.money import Budget


def set_price(
    ledger: Ledger, sku: str, *, supplier: str, unit_cost: int, currency: str, set_by: str
) -> None:
    """Set what a unit costs at a supplier, in minor units; the newest price is in force.

    Orders proposed before keep the price that they were proposed at. Raises Malformed.
    """
    _named(ledger, sku=sku, supplier=supplier, currency=currency, set_by=set_by)
    checks.whole("unit_cost", unit_cost, least=1)
    with ledger.transaction() as tx:
        catalogue.set_price(
            tx, sku, supplier, unit_cost=unit_cost, currency=currency, set_by=set_by
        )


def set_budget(
    ledger: Ledger, *, currency: str, ceiling: int, set_by: str, automatic: int = 0
) -> Budget:
    """Set what may be spent in a currency, and the largest order that needs no person.

    Minor units; the newest budget is in force, also for what was approved before. Returns how the
    money stands. Raises Malformed.
    """
    _named(ledger, currency=currency, set_by=set_by)
    checks.whole("ceiling", ceiling, least=0)
    checks.whole("automatic", automatic, least=0)
    with ledger.transaction() as tx:
        reservations.set_budget(tx, currency, ceiling=ceiling, automatic=automatic, set_by=set_by)
        return reservations.budget(tx, currency)


def budget(ledger: Ledger, currency: str) -> Budget:
    """How the money of a currency stands. Raises NoBudget if none was ever set."""
    _named(ledger, currency=currency)
    with ledger.reading() as tx:
        return reservations.budget(tx, currency)


def list_approver(ledger: Ledger, name: str, *, listed: bool = True) -> None:
    """Put somebody on the list of those who may approve, or take them off it. Raises Malformed."""
    _named(ledger, name=name)
    checks.flag("listed", listed)
    with ledger.transaction() as tx:
        approvals.list_approver(tx, name, listed=listed)


def count_stock(ledger: Ledger, sku: str, counted: int) -> None:
    """Write what is on the shelf, once for each SKU; deliveries are added to it.

    Counting again with the same number changes nothing. Raises Malformed if it was counted
    otherwise before.
    """
    _named(ledger, sku=sku)
    checks.whole("counted", counted, least=0)
    with ledger.transaction() as tx:
        before = catalogue.counted(tx, sku)
        if before is None:
            catalogue.count_stock(tx, sku, counted)
        elif before != counted:
            raise Malformed("counted", f"{sku!r} was counted as {before} already")


def on_hand(ledger: Ledger, sku: str) -> int | None:
    """What was counted and all that was delivered since; None if nothing was ever counted."""
    _named(ledger, sku=sku)
    with ledger.reading() as tx:
        return catalogue.on_hand(tx, sku)


def _named(ledger: object, **words: object) -> None:
    checks.instance("ledger", ledger, Ledger)
    for name, value in words.items():
        checks.text(name, value)
