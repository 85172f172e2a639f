"""A shop that buys from a supplier: the store's own knowledge, and the supplier's process.

The world of the order chapters: a ceiling of 2000 pence, two tubs on hand, six to be ordered at
250. Scenarios are synthetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from reconcile import EffectPolicy, Ledger, Operation, look
from reconcile.flows import orders, recovery, shop, work
from reconcile.rules.claim import Claim

from .lab import Lab
from .processes import LIMIT_S
from .scene import Scene
from .supplier import IDENTITY, KEYED, Supplier
from .traced import Traced

SKU, CURRENCY = "SKU-VANILLA", "GBP"
CEILING, UNIT_COST, ON_HAND, TUBS = 2000, 250, 2, 6
HOUR_MS = 3600 * 1000


class Shop:
    """One store and one supplier. `policy` is what the supplier declares to the store."""

    def __init__(self, scene: Scene, supplier: Supplier, policy: EffectPolicy) -> None:
        self.scene, self.supplier, self.policy = scene, supplier, policy

    def receiver(self, *, limit_s: float | None = None) -> Traced:
        """The way to the supplier, traced; `limit_s` bounds a call more narrowly."""
        inner = self.supplier.receiver(policy=self.policy, limit_s=limit_s or LIMIT_S)
        return Traced(self.scene, inner)

    @contextmanager
    def again(self, *options: str) -> Iterator[Traced]:
        """The supplier's process started again on its file, with other options."""
        with Supplier(self.scene.receiver_file, options=options) as supplier:
            self.scene.lab.children.append(supplier.child)
            yield Traced(self.scene, supplier.receiver(policy=self.policy))

    def ledger(self, **options: Any) -> Ledger:
        """Open the store's file; a new one is given its budget, price, stock and approver."""
        new = not self.scene.sender.exists()
        ledger = self.scene.ledger(**options)
        if new:
            shop.set_budget(ledger, currency=CURRENCY, ceiling=CEILING, set_by="lucy")
            shop.set_price(
                ledger,
                SKU,
                supplier=IDENTITY,
                unit_cost=UNIT_COST,
                currency=CURRENCY,
                set_by="lucy",
            )
            shop.list_approver(ledger, "lucy")
            shop.count_stock(ledger, SKU, ON_HAND)
        return ledger

    def claim(self, ledger: Ledger, work_id: str = "morning-work") -> Claim:
        """The work item, claimed for an hour."""
        work.enqueue(ledger, work_id)
        return work.claim(ledger, work_id, owner="worker", lease_ms=HOUR_MS)

    def draft(
        self, ledger: Ledger, claim: Claim, role: str = "order", tubs: int = TUBS
    ) -> Operation:
        """An order of so many tubs, proposed under its role."""
        order = orders.propose(ledger, self.receiver(), claim=claim, sku=SKU, quantity=tubs)
        self.scene.name(order, role)
        return order

    def approve(self, ledger: Ledger, order: Operation, **changed: Any) -> Operation:
        """The order, approved by lucy for an hour, or as changed."""
        grant = {
            "digest": order.digest,
            "actor": "lucy",
            "expires_ms": ledger.now_ms() + HOUR_MS,
        }
        return orders.approve(ledger, order.operation_id, **{**grant, **changed})

    def ready(self, ledger: Ledger, role: str = "order", tubs: int = TUBS) -> tuple[str, Claim]:
        """The identity of an approved order, and the claim under which it may be sent."""
        claim = self.claim(ledger, f"work of {role}")
        order = self.approve(ledger, self.draft(ledger, claim, role, tubs))
        return order.operation_id, claim

    def diagnosis(self, ledger: Ledger) -> list[list[str]]:
        """What does not agree between the store and the supplier's account, by role."""
        return [
            [self.scene.trace.by_role(finding.operation_id), finding.diagnosis.value]
            for finding in recovery.compare(ledger, self.receiver())
        ]

    def money(self, ledger: Ledger) -> dict[str, int]:
        """The three figures that count against the ceiling."""
        held = shop.budget(ledger, CURRENCY)
        return {"reserved": held.reserved, "spent": held.spent, "written off": held.written_off}


@contextmanager
def trading(
    lab: Lab,
    name: str = "run",
    *,
    options: Sequence[str] = (),
    policy: EffectPolicy = KEYED,
    unsafe: bool = False,
) -> Iterator[Shop]:
    """A shop whose supplier's process runs meanwhile, and ends with the block."""
    scene = lab.scene(name, unsafe=unsafe, identity=IDENTITY)
    with Supplier(scene.receiver_file, options=options) as supplier:
        lab.children.append(supplier.child)
        yield Shop(scene, supplier, policy)


def state_of(ledger: Ledger, operation_id: str) -> str:
    """The state of an order, in a word."""
    return look(ledger, operation_id).state.value
