"""A small shop for tests: money, an approver, a claim, and a supplier with faults on call."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from experiments.harness import oracle
from experiments.harness.inprocess import InProcessSupplier, create
from experiments.harness.lab import BIRTH_MS, Lab
from experiments.harness.supplier import IDENTITY, KEYED
from experiments.tests.base import LabCase
from reconcile import (
    Action,
    EffectPolicy,
    Ledger,
    Operation,
    Query,
    Receipt,
    ReconcileError,
    ToolResult,
    dispatch,
    inquire,
    look,
    next_actions,
    resend,
)
from reconcile.flows import orders, settlement, shop, work
from reconcile.ledger.decisions import Decision
from reconcile.rules.claim import Claim
from reconcile.rules.errors import NoReply, NotSent

HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS
YEAR_MS = 365 * DAY_MS
LEASE_MS = 120_000
SKU = "SKU-VANILLA"
WORK = "morning-work"

Fault = Callable[["Near", Query], "Receipt | None"]
"""What becomes of one send."""


class Clock:
    """A clock that stands until it is moved, in either direction."""

    def __init__(self) -> None:
        self.now_ms = BIRTH_MS

    def __call__(self) -> int:
        return self.now_ms


class Near(InProcessSupplier):
    """A keyed supplier in this process.

    `faults` has one for each send to come, and then it answers. `heard` is all that reached it.
    """

    def __init__(self, file: Path, **named: Any) -> None:
        super().__init__(file, **named)
        self.faults: list[Fault] = []
        self.heard: list[tuple[str, str]] = []
        self.says: Receipt | None = None  # what its lookups answer, whatever is stored

    def send(self, query: Query) -> Receipt | None:
        fault = self.faults.pop(0) if self.faults else Near.make
        if fault is not refused:
            self.heard.append(("send", query.operation_id))
        return fault(self, query)

    def lookup(self, query: Query) -> Receipt | None:
        self.heard.append(("lookup", query.operation_id))
        return self.says or super().lookup(query)

    def make(self, query: Query) -> Receipt | None:
        """No fault: it is done, unless it was done before, and its receipt comes."""
        return super().send(query)


LAGS = {"lookup_delay_ms": YEAR_MS}
"""The terms of an account whose lookups find nothing yet."""


def lost(near: Near, query: Query) -> Receipt | None:
    """It is done, and the reply is lost."""
    near.make(query)
    raise NoReply(near.identity, "the connection was dropped")


def refused(near: Near, query: Query) -> Receipt | None:
    """No connection is made."""
    raise NotSent("connection refused")


def busy(near: Near, query: Query) -> Receipt | None:
    """It is told to come later, and nothing is written."""
    raise NoReply(near.identity, "503 busy")


def turned_away(near: Near, query: Query) -> Receipt | None:
    """This attempt is declined in plain words; nothing is stored and nothing is closed."""
    raise NoReply(near.identity, "422 declined")


def declined(near: Near, query: Query) -> Receipt | None:
    """It is declined for good: stored, and closed, unless it was done before."""
    return InProcessSupplier(near.file, rejects=True).send(query)


def answer(question: Query, **changed: Any) -> Receipt:
    """An accepted receipt of exactly this, or one with something changed."""
    said = {
        "operation_id": question.operation_id,
        "status": "accepted",
        "effect_id": f"{question.operation_id}#1",
        "kind": question.kind,
        "payload": question.payload,
        "compensates": question.compensates,
        "receiver": question.target,
        "epoch": question.epoch,
    }
    return Receipt(**{**said, **changed})


class Shop:
    """A ledger with 2000 pence, vanilla at 250, two on hand, and a claim of the morning's work."""

    def __init__(self, lab: Lab, name: str, *, policy: EffectPolicy = KEYED) -> None:
        self.clock = Clock()
        self.scene = lab.scene(name)
        self.scene.receiver_file.unlink()
        create(self.scene.receiver_file, IDENTITY)
        self.near = self.supplier(policy=policy)
        self.ledger = self._opened()
        self.price(SKU)
        self.budget(2000)
        shop.list_approver(self.ledger, "lucy")
        shop.count_stock(self.ledger, SKU, 2)
        self.claim = self.claimed(WORK)

    # --- acting -----------------------------------------------------------------------------

    def supplier(self, **changed: Any) -> Near:
        """An adapter to the same account, whose clock is the shop's."""
        return Near(self.scene.receiver_file, **{"clock": self.clock, **changed})

    def price(self, sku: str, unit_cost: int = 250) -> None:
        shop.set_price(
            self.ledger,
            sku,
            supplier=IDENTITY,
            unit_cost=unit_cost,
            currency="GBP",
            set_by="mo",
        )

    def budget(self, ceiling: int, *, automatic: int = 0) -> None:
        shop.set_budget(
            self.ledger, currency="GBP", ceiling=ceiling, automatic=automatic, set_by="mo"
        )

    def claimed(self, work_id: str, *, lease_ms: int = LEASE_MS) -> Claim:
        """A claim of a work item, which is enqueued first."""
        work.enqueue(self.ledger, work_id)
        return work.claim(self.ledger, work_id, owner="host-1", lease_ms=lease_ms)

    def reclaim(self) -> None:
        """A live claim of the morning's work, whatever became of the last."""
        self.claim = work.claim(self.ledger, WORK, owner="host-1", lease_ms=LEASE_MS)

    def propose(self, quantity: int = 6, *, near: Near | None = None, **changed: Any) -> Operation:
        exact = {"claim": self.claim, "sku": SKU, "quantity": quantity}
        return orders.propose(self.ledger, near or self.near, **{**exact, **changed})

    def approve(self, operation: Operation, **changed: Any) -> Operation:
        return orders.approve(
            self.ledger, operation.operation_id, **self._grant(operation, changed)
        )

    def renew(
        self, operation: Operation, *, near: Near | None = None, **changed: Any
    ) -> Operation:
        grant = self._grant(operation, changed)
        return orders.renew(self.ledger, operation.operation_id, near or self.near, **grant)

    def _grant(self, operation: Operation, changed: dict[str, Any]) -> dict[str, Any]:
        ends_ms = self.clock.now_ms + HOUR_MS
        return {"digest": operation.digest, "actor": "lucy", "expires_ms": ends_ms, **changed}

    def approved(self, quantity: int = 6, **changed: Any) -> Operation:
        """An order that may be sent."""
        return self.approve(self.propose(quantity, **changed))

    def dispatch(
        self, operation: Operation, *, near: Near | None = None, **changed: Any
    ) -> ToolResult:
        words = {"claim": self.claim, **changed}
        return dispatch(self.ledger, operation.operation_id, near or self.near, **words)

    def unknown(self, quantity: int = 6, *, fault: Fault = lost, **changed: Any) -> Operation:
        """An order that was done, unless another fault is named, and whose receipt was lost."""
        operation = self.approved(quantity, **changed)
        self.near.faults = [fault]
        self.dispatch(operation, claim=changed.get("claim", self.claim))
        return self.look(operation)

    def inquire(self, operation: Operation, *, near: Near | None = None) -> Operation:
        return inquire(self.ledger, operation.operation_id, near or self.near)

    def resend(
        self, operation: Operation, *, near: Near | None = None, **changed: Any
    ) -> ToolResult:
        words = {"claim": self.claim, **changed}
        return resend(self.ledger, operation.operation_id, near or self.near, **words)

    def revoke(self, operation: Operation) -> orders.Revocation:
        return orders.revoke(
            self.ledger, operation.operation_id, actor="ada", reason="not needed any more"
        )

    def cancel(self, work_id: str = WORK) -> None:
        work.cancel(self.ledger, work_id, actor="ada", reason="the shop is closed")

    def resolve(
        self, operation: Operation, receipt: Receipt | None = None, **changed: Any
    ) -> Decision:
        """Hand a receipt in, the true one if none is named."""
        exact = {
            "digest": operation.digest,
            "supplier": IDENTITY,
            "actor": "lucy",
            "reference": "letter of 3 May",
        }
        return settlement.resolve_order(
            self.ledger,
            operation.operation_id,
            receipt or answer(operation.query),
            **{**exact, **changed},
        )

    def deliver(self, operation: Operation, quantity: int, **changed: Any) -> int | None:
        exact = {"reference": "note-1", "quantity": quantity, "actor": "mo"}
        return settlement.deliver(self.ledger, operation.operation_id, **{**exact, **changed})

    def reopen(self) -> None:
        """Close the file and open it again."""
        self.ledger.close()
        self.ledger = self._opened()

    def _opened(self) -> Ledger:
        # Not watched: a trace reads the file again after each write, which is most of the time.
        return self.scene.ledger(clock=self.clock, factory=sqlite3.Connection)

    def by_hand(self, sql: str, *values: object) -> None:
        """One statement by a plain second connection."""
        with closing(sqlite3.connect(self.scene.sender, isolation_level=None)) as connection:
            connection.execute(sql, values)

    # --- seeing -----------------------------------------------------------------------------

    def look(self, operation: Operation) -> Operation:
        return look(self.ledger, operation.operation_id)

    def state(self, operation: Operation) -> str:
        return self.look(operation).state.value

    def money(self) -> tuple[int, int, int]:
        """Reserved, spent, written off."""
        held = shop.budget(self.ledger, "GBP")
        return held.reserved, held.spent, held.written_off

    def offers(self, operation: Operation) -> tuple[Action, ...]:
        return next_actions(self.look(operation), now_ms=self.clock.now_ms)

    def effects(self) -> dict[str, int]:
        """How many effects each operation has, by the supplier's file."""
        return {i: len(rows) for i, rows in oracle.effects(self.scene.receiver_file).items()}

    def written(self) -> object:
        """Every row of both files, and all that the supplier heard."""
        files = (self.scene.sender, self.scene.receiver_file)
        return [oracle.dump(file) for file in files], list(self.near.heard)


class ShopCase(LabCase):
    """Gives `self.shop`, and others by `self.open`."""

    def setUp(self) -> None:
        super().setUp()
        self.shops: list[Shop] = []
        self.shop = self.open("shop")

    def tearDown(self) -> None:
        for one in self.shops:
            one.ledger.close()
        super().tearDown()

    def open(self, name: str, *, policy: EffectPolicy = KEYED) -> Shop:
        """Another shop with files of its own."""
        self.shops.append(Shop(self.lab, name, policy=policy))
        return self.shops[-1]

    def refuses(
        self,
        one: Shop,
        refusal: type[ReconcileError],
        call: Callable[..., object],
        *words: Any,
        **named: Any,
    ) -> None:
        """The call ends in exactly this refusal; nothing is written or heard at the supplier.

        It is said of the shop's supplier, and of another one that is named as `near`.
        """
        other = named.get("near")
        before, heard = one.written(), list(other.heard) if other else []
        with self.assertRaises(refusal) as caught:
            call(*words, **named)
        self.assertIs(type(caught.exception), refusal)
        self.assertEqual(one.written(), before)
        self.assertEqual(list(other.heard) if other else [], heard)
