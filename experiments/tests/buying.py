"""What tests of orders stand on: a supplier within this process, and a store that may buy."""

from __future__ import annotations

from pathlib import Path

from experiments.harness.inprocess import InProcessSupplier
from experiments.harness.plain import IDENTITY
from experiments.harness.supplier import KEYED
from experiments.tests.shop import HOUR_MS, answer
from reconcile import EffectPolicy, Ledger, Operation, Query, Receipt, Receiver
from reconcile.flows import orders, shop, work
from reconcile.rules.claim import Claim
from reconcile.rules.order import Basis

SKU, UNIT_COST, CURRENCY = "lamp", 500, "GBP"
CEILING, AUTOMATIC = 20_000, 1_000


class Keyed(InProcessSupplier):
    """The supplier of a scene, by its file."""

    def __init__(self, file: Path, policy: EffectPolicy = KEYED) -> None:
        super().__init__(file, identity=IDENTITY, policy=policy)


class Forgets(Keyed):
    """The order arrives, its receipt is lost, and nothing stored is found."""

    def send(self, query: Query) -> Receipt | None:
        super().send(query)
        return None

    def lookup(self, query: Query) -> Receipt | None:
        return None


class Unreached(Forgets):
    """No request arrives, and the sender cannot tell."""

    def send(self, query: Query) -> Receipt | None:
        return None


class Answers(Keyed):
    """Makes no effect, and answers every order with one status."""

    def __init__(self, file: Path, status: str) -> None:
        super().__init__(file)
        self._status = status

    def send(self, query: Query) -> Receipt | None:
        return answer(query, status=self._status, effect_id=None)


def open_shop(ledger: Ledger, supplier: Receiver, *, skus: tuple[str, ...] = (SKU,)) -> None:
    """Prices, a budget, and one who may approve: what an order needs."""
    shop.set_budget(ledger, currency=CURRENCY, ceiling=CEILING, automatic=AUTOMATIC, set_by="ada")
    shop.list_approver(ledger, "ada")
    for sku in skus:
        shop.set_price(
            ledger,
            sku,
            supplier=supplier.identity,
            unit_cost=UNIT_COST,
            currency=CURRENCY,
            set_by="ada",
        )


def proposed(
    ledger: Ledger,
    supplier: Receiver,
    *,
    work_id: str = "w-1",
    sku: str = SKU,
    quantity: int = 3,
) -> tuple[Operation, Claim]:
    """A draft of a work item of its own, and the claim that it was made under."""
    work.enqueue(ledger, work_id)
    claim = work.claim(ledger, work_id, owner="worker")
    made = orders.propose(ledger, supplier, claim=claim, sku=sku, quantity=quantity)
    return made, claim


def approved(ledger: Ledger, order: Operation, *, basis: Basis = Basis.OPERATOR) -> Operation:
    """The draft with an hour of authority, and its money held."""
    return orders.approve(
        ledger,
        order.operation_id,
        digest=order.digest,
        actor="ada",
        expires_ms=ledger.now_ms() + HOUR_MS,
        basis=basis,
    )


def ready(
    ledger: Ledger, supplier: Receiver, *, work_id: str = "w-1", sku: str = SKU, quantity: int = 3
) -> tuple[Operation, Claim]:
    """An order that may be sent, and the claim to send it under."""
    draft, claim = proposed(ledger, supplier, work_id=work_id, sku=sku, quantity=quantity)
    return approved(ledger, draft), claim
