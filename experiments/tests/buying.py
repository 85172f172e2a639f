"""What tests of orders stand on: a supplier within this process, and a store that may buy."""

from __future__ import annotations

from experiments.harness import oracle
from experiments.harness.inprocess import InProcessReceiver
from experiments.harness.supplier import KEYED
from reconcile import Effect, EffectPolicy, Ledger, Operation, Query, Receipt, Receiver, Snapshot
from reconcile.flows import orders, shop, work
from reconcile.rules.claim import Claim
from reconcile.rules.order import Basis

HOUR_MS = 3600 * 1000
SKU, UNIT_COST, CURRENCY = "lamp", 500, "GBP"
CEILING, AUTOMATIC = 20_000, 1_000


class Keyed:
    """Knows an operation again by the effect that stands in the inner receiver's file."""

    limit_s = 1.0

    def __init__(self, inner: Receiver, policy: EffectPolicy = KEYED) -> None:
        self._inner = inner
        self.identity, self.epoch, self.policy = inner.identity, inner.epoch, policy

    def send(self, query: Query) -> Receipt | None:
        return self.stored(query) or self._inner.send(query)

    def lookup(self, query: Query) -> Receipt | None:
        return self.stored(query)

    def stored(self, query: Query) -> Receipt | None:
        """The receipt of the first effect of an operation."""
        effects = self._inner.snapshot(query).effects
        return says(query, "accepted", effects[0].effect_id) if effects else None

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        return self._inner.snapshot(query, close=close)

    def listing(self) -> tuple[Effect, ...]:
        """Every effect of the account, read from its file."""
        assert isinstance(self._inner, InProcessReceiver)
        found = oracle.effects(self._inner.file)
        return tuple(Effect(operation_id=i, **row) for i, rows in found.items() for row in rows)


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

    def __init__(self, inner: Receiver, status: str) -> None:
        super().__init__(inner)
        self._status = status

    def send(self, query: Query) -> Receipt | None:
        return says(query, self._status)


def says(query: Query, status: str, effect_id: str | None = None) -> Receipt:
    """A receipt for exactly this question."""
    return Receipt(
        operation_id=query.operation_id,
        status=status,
        effect_id=effect_id,
        kind=query.kind,
        payload=query.payload,
        compensates=query.compensates,
        receiver=query.target,
        epoch=query.epoch,
    )


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
