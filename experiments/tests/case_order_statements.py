"""Every statement of every call about orders fails once, or is interrupted: all or nothing.

The same as `case_statements`, for what moves money: a run that is broken at a point leaves exactly
what the last commit before that point left. And a person, or a process manager, may interrupt it
between any two statements, and while the request is out.
"""

from __future__ import annotations

import sqlite3
import unittest
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import reconcile as library
from experiments.harness import oracle
from experiments.harness.faults import Fault
from experiments.harness.lab import BIRTH_MS
from experiments.tests.buying import (
    CURRENCY,
    SKU,
    UNIT_COST,
    Answers,
    Forgets,
    Keyed,
    Unreached,
    open_shop,
    proposed,
    ready,
)
from experiments.tests.case_statements import EDGES, Call, StatementCase
from experiments.tests.shop import HOUR_MS, answer
from reconcile import Ledger, Operation, dispatch, inquire, look, resend
from reconcile.flows import orders, settlement, shop, work
from reconcile.rules.claim import Claim
from reconcile.rules.errors import NotSent

AMOUNT = 3 * UNIT_COST
TOKEN = "reconcile.ledger.claims.secrets.token_hex"  # else each run would leave another one
INTERRUPTS = (KeyboardInterrupt, SystemExit, GeneratorExit)


class OrderCase(StatementCase):
    """Prepares a shop and its orders once, and runs a call on fresh copies of the files."""

    def setUp(self) -> None:
        super().setUp()
        self.supplier = Keyed(self.start.receiver_file)
        with self.start.ledger() as ledger:
            open_shop(ledger, self.supplier)

    def other_side(self, fault: Fault) -> Edged:
        return Edged(fault, Keyed(self.scene.receiver_file))

    def opening(self) -> int:
        """How many points opening a made file has; they are broken in `case_statements`."""
        fault = Fault()
        self.run_once(lambda ledger, _: None, fault)
        return len(fault.points)

    def swept(self, call: Call, *, commits: int = 1) -> None:
        """Deny each statement of a call, let SQLite interrupt it, and interrupt between them."""
        since = self.opening()
        self.sweep(call, commits=commits, since=since)
        whole = Fault()
        _, left = self.run_once(call, whole)
        before = self.before()
        for at, point in enumerate(whole.points):
            if point in EDGES or at < since:
                continue
            for kind, after in ((KeyboardInterrupt, False), (SystemExit, True)):
                with self.subTest(kind.__name__, at=at, point=point):
                    fault = Interrupt(at, kind, after=after)
                    said, _ = self.run_once(caught(call), fault)
                    self.assertIsInstance(said, kind)
                    stands = [c.tables for c in left if c.at < at + after]
                    self.assertEqual(self.tables(), stands[-1] if stands else before)
                    self.assertEqual(self.scene.findings(), [])
        self.fresh()

    def before(self) -> dict[str, list[tuple[Any, ...]]]:
        self.fresh()
        return self.tables()

    # --- what the calls start from --------------------------------------------------------------

    def draft(self, **changed: Any) -> tuple[Operation, Claim]:
        with self.start.ledger() as ledger:
            return proposed(ledger, self.supplier, **changed)

    def ready(self, **changed: Any) -> tuple[Operation, Claim]:
        """An order that may be sent."""
        with self.start.ledger() as ledger:
            return ready(ledger, self.supplier, **changed)

    def uncertain(self, by: type[Keyed] = Forgets) -> tuple[Operation, Claim]:
        """An order that was sent, of which nothing came back."""
        order, claim = self.ready()
        with self.start.ledger() as ledger:
            dispatch(ledger, order.operation_id, by(self.start.receiver_file), claim=claim)
            return look(ledger, order.operation_id), claim

    def asked(self, by: type[Keyed] = Forgets) -> tuple[Operation, Claim]:
        """An uncertain order whose stored receipt was asked for in vain."""
        order, claim = self.uncertain(by)
        with self.start.ledger() as ledger:
            return inquire(ledger, order.operation_id, Forgets(self.start.receiver_file)), claim

    def money(self) -> tuple[int, int, int]:
        """Reserved, spent and written off, as the newest entry of the journal says."""
        rows = oracle.rows(
            self.scene.sender,
            "SELECT reserved, spent, written_off FROM entry ORDER BY number DESC LIMIT 1",
        )
        return rows[0] if rows else (0, 0, 0)


class TheFailingStatementOfAnOrder(OrderCase):
    """R4, C15, O8: the k-th statement of a call fails, or is interrupted, for every k."""

    def test_enqueue_writes_the_work_item_or_nothing(self) -> None:
        """R4: and again writes nothing at all."""
        self.swept(lambda ledger, _: work.enqueue(ledger, "w-9"))

    def test_claim_writes_its_token_or_nothing(self) -> None:
        """R4: of the first generation, and of the next one after a release."""
        with self.start.ledger() as ledger:
            work.enqueue(ledger, "w-1")
        with mock.patch(TOKEN, return_value="same"):
            self.swept(lambda ledger, _: work.claim(ledger, "w-1", owner="worker"))
            with self.start.ledger() as ledger:
                held = work.claim(ledger, "w-1", owner="worker")
                work.release(ledger, held)
        with mock.patch(TOKEN, return_value="another"):
            self.swept(lambda ledger, _: work.claim(ledger, "w-1", owner="worker"))

    def test_extend_and_release_move_the_end_of_the_claim_or_nothing(self) -> None:
        """R4: a claim that was not extended ends when it said."""
        _, held = self.draft()
        self.swept(lambda ledger, _: work.extend(ledger, held))
        self.swept(lambda ledger, _: work.release(ledger, held))

    def test_cancel_withdraws_every_draft_and_frees_their_money_or_nothing(self) -> None:
        """R4, O6: the cancellation, two withdrawals and a release; what may have left is held."""
        _, claim = self.uncertain()
        with self.start.ledger() as ledger:
            for sku in ("desk", "chair"):
                shop.set_price(
                    ledger, sku, supplier="plain", unit_cost=5, currency=CURRENCY, set_by="ada"
                )
                made = orders.propose(ledger, self.supplier, claim=claim, sku=sku, quantity=1)
                if sku == "chair":
                    granted(ledger, made)
        self.swept(lambda ledger, _: work.cancel(ledger, "w-1", actor="ada", reason="why"))

    def test_propose_writes_the_draft_and_what_it_buys_or_nothing(self) -> None:
        """R4, O4: operation and purchase are one commit."""
        with self.start.ledger() as ledger:
            work.enqueue(ledger, "w-1")
            held = work.claim(ledger, "w-1", owner="worker")
        self.swept(lambda ledger, r: orders.propose(ledger, r, claim=held, sku=SKU, quantity=1))

    def test_propose_withdraws_the_draft_it_supersedes_and_frees_its_money_or_nothing(
        self,
    ) -> None:
        """R4, O5: never two drafts of one work item and SKU, and never none."""
        _, held = self.ready()
        self.swept(lambda ledger, r: orders.propose(ledger, r, claim=held, sku=SKU, quantity=1))

    def test_approve_writes_the_approval_and_its_reservation_or_nothing(self) -> None:
        """R4, O5: no authority without held money, and no held money without authority."""
        order, _ = self.draft()
        self.swept(lambda ledger, _: granted(ledger, order))

    def test_approving_again_writes_the_newer_approval_or_nothing(self) -> None:
        """R4, O5: and reserves nothing more."""
        order, _ = self.ready()
        self.swept(lambda ledger, _: granted(ledger, order))

    def test_renew_writes_the_newer_approval_or_nothing(self) -> None:
        """R4, O6: the reservation is not touched."""
        order, _ = self.uncertain()
        self.swept(
            lambda ledger, r: orders.renew(
                ledger, order.operation_id, r, digest=order.digest, **UNTIL
            )
        )

    def test_revoke_of_a_draft_ends_it_and_frees_its_money_or_nothing(self) -> None:
        """R4, O6: revocation, withdrawal and release are one commit."""
        order, _ = self.ready()
        self.swept(lambda ledger, _: revoked(ledger, order))

    def test_revoke_of_an_uncertain_order_writes_the_revocation_or_nothing(self) -> None:
        """R4, O6: no state and no money is touched."""
        order, _ = self.uncertain()
        self.swept(lambda ledger, _: revoked(ledger, order))

    def test_dispatch_of_an_order_leaves_what_its_last_commit_left(self) -> None:
        """R4, O7, O8: held, then held and unknown, then spent; with a receipt."""
        order, claim = self.ready()
        self.swept(lambda ledger, r: sent(ledger, order, r, claim), commits=2)

    def test_dispatch_of_an_order_that_is_declined_leaves_what_its_last_commit_left(self) -> None:
        """R4, O8: held, unknown, then free again."""
        order, claim = self.ready()
        declines = Answers(self.scene.receiver_file, "rejected")
        self.swept(lambda ledger, _: sent(ledger, order, declines, claim), commits=2)

    def test_dispatch_of_an_order_that_never_left_leaves_what_its_last_commit_left(self) -> None:
        """R4, O6: held, unknown, then a draft that holds its money."""
        order, claim = self.ready()
        down = NeverLeaves(self.scene.receiver_file)
        self.swept(lambda ledger, _: sent(ledger, order, down, claim), commits=2)

    def test_resend_leaves_what_its_last_commit_left(self) -> None:
        """R4, O8: a second attempt, then spent."""
        order, claim = self.asked()
        self.swept(lambda ledger, r: resend(ledger, order.operation_id, r, claim=claim), commits=2)

    def test_inquire_that_settles_writes_receipt_decision_and_money_or_nothing(self) -> None:
        """R4, O8: the lookup too is in that one commit."""
        order, _ = self.uncertain()
        self.swept(lambda ledger, r: inquire(ledger, order.operation_id, r))

    def test_inquire_that_finds_nothing_writes_that_it_asked_or_nothing(self) -> None:
        """R4: a question whose asking was not kept gives no right to send again."""
        order, _ = self.uncertain(Unreached)
        self.swept(lambda ledger, r: inquire(ledger, order.operation_id, r))

    def test_resolve_order_writes_receipt_decision_and_money_or_nothing(self) -> None:
        """O13, R4, O8: for a receipt that a person hands in, accepted and rejected."""
        order, _ = self.uncertain()
        for status, effect_id in (("accepted", f"{order.operation_id}#1"), ("failed", None)):
            receipt = answer(order.query, status=status, effect_id=effect_id)
            with self.subTest(status):
                self.swept(partial(handed_in, order=order, receipt=receipt))

    def test_deliver_writes_the_delivery_or_nothing(self) -> None:
        """R4, O17: and no stock moves without it."""
        order, _ = self.uncertain()
        with self.start.ledger() as ledger:
            shop.count_stock(ledger, SKU, 7)
        self.swept(
            lambda ledger, _: settlement.deliver(
                ledger, order.operation_id, reference="van", quantity=1, actor="bob"
            )
        )

    def test_what_the_shop_knows_by_itself_is_written_or_not(self) -> None:
        """R4: a price, a budget, an approver listed and taken off the list, a count."""
        calls: dict[str, Call] = {
            "set_price": lambda ledger, r: shop.set_price(
                ledger, SKU, supplier="plain", unit_cost=9, currency=CURRENCY, set_by="ada"
            ),
            "set_budget": lambda ledger, _: shop.set_budget(
                ledger, currency=CURRENCY, ceiling=9, set_by="ada"
            ),
            "list_approver": lambda ledger, _: shop.list_approver(ledger, "bob"),
            "take off": lambda ledger, _: shop.list_approver(ledger, "ada", listed=False),
            "count_stock": lambda ledger, _: shop.count_stock(ledger, SKU, 7),
        }
        for name, call in calls.items():
            with self.subTest(name):
                self.swept(call)


class TheInterruptedOrder(OrderCase):
    """C17, O6: whoever interrupts an order frees no money that may be spent, and loses none."""

    def test_an_interrupt_while_the_order_is_out_holds_its_money(self) -> None:
        """C17, O6: before it arrived and after it was done; through revocation and expiry too."""
        order, claim = self.ready()
        for kind in INTERRUPTS:
            for arrives in (False, True):
                with self.subTest(kind.__name__, arrives=arrives):
                    self.fresh()
                    with self.scene.ledger() as ledger:
                        out = IsOut(self.scene.receiver_file, kind, arrives=arrives)
                        with self.assertRaises(kind):
                            dispatch(ledger, order.operation_id, out, claim=claim)
                        self.assert_held(order)
                        self.assertFalse(revoked(ledger, order).in_time)
                        self.assert_held(order)
                    later_ms = BIRTH_MS + 2 * HOUR_MS
                    with self.scene.ledger(clock=lambda ms=later_ms: ms) as ledger:
                        self.assert_held(order)
                        told = inquire(ledger, order.operation_id, Keyed(self.scene.receiver_file))
                    self.assertEqual(told.state.value, "confirmed" if arrives else "unknown")
                    self.assertEqual(self.money(), (0, AMOUNT, 0) if arrives else (AMOUNT, 0, 0))

    def assert_held(self, order: Operation) -> None:
        self.assertEqual(oracle.states(self.scene.sender)[order.operation_id], ("unknown", 2))
        self.assertEqual(self.money(), (AMOUNT, 0, 0))
        rows = oracle.rows(self.scene.sender, "SELECT attempt, transport FROM attempt")
        self.assertEqual(rows, [(1, None)])

    def test_an_interrupt_while_an_order_is_sent_again_holds_its_money(self) -> None:
        """C17, O6: the second attempt stands as one whose sender did not live to say."""
        order, claim = self.asked(Unreached)
        for kind in INTERRUPTS:
            with self.subTest(kind.__name__):
                self.fresh()
                with self.scene.ledger() as ledger:
                    out = IsOut(self.scene.receiver_file, kind, arrives=True)
                    with self.assertRaises(kind):
                        resend(ledger, order.operation_id, out, claim=claim)
                rows = oracle.rows(self.scene.sender, "SELECT attempt, transport FROM attempt")
                self.assertEqual(rows, [(1, "sent"), (2, None)])
                self.assertEqual(self.money(), (AMOUNT, 0, 0))

    def test_an_interrupt_while_a_receipt_is_asked_for_writes_nothing(self) -> None:
        """C17, O6: not even that it was asked for."""
        order, _ = self.uncertain()
        before = self.before()
        for kind in INTERRUPTS:
            with self.subTest(kind.__name__), self.scene.ledger() as ledger:
                with self.assertRaises(kind):
                    inquire(ledger, order.operation_id, IsOut(self.scene.receiver_file, kind))
                self.assertEqual(self.tables(), before)

    def test_an_order_interrupted_between_any_two_statements_is_freed_once_or_held(self) -> None:
        """C17, O6: revoked after it, never announced: freed once. Announced: held, or spent."""
        order, claim = self.ready()
        since, whole = self.opening(), Fault()
        call: Call = lambda ledger, r: sent(ledger, order, r, claim)  # noqa: E731
        self.run_once(call, whole)
        seen = set()
        for at, point in enumerate(whole.points):
            for kind in (KeyboardInterrupt, SystemExit):
                for after in (False, True):
                    if point in EDGES or at < since:
                        continue
                    with self.subTest(kind.__name__, at=at, point=point, after=after):
                        self.run_once(caught(call), Interrupt(at, kind, after=after))
                        seen.add(self.judge_end(order))
        self.assertEqual(seen, {"prepared", "unknown", "confirmed"})

    def judge_end(self, order: Operation) -> str:
        """The state that an interrupt left; its money there, and once it is revoked, twice."""
        state = oracle.states(self.scene.sender)[order.operation_id][0]
        spent = state == "confirmed"
        self.assertEqual(self.money(), (0, AMOUNT, 0) if spent else (AMOUNT, 0, 0))
        self.assertEqual(self.scene.findings(), [])
        with self.scene.ledger() as ledger:
            for _ in range(2):
                told = revoked(ledger, order)
                self.assertEqual(told.in_time, state == "prepared")
        rows = oracle.rows(self.scene.sender, "SELECT does FROM entry ORDER BY number")
        ends = {"prepared": ["release"], "unknown": [], "confirmed": ["spend"]}
        self.assertEqual([does for (does,) in rows], ["reserve", *ends[state]])
        return state

    def test_an_interrupted_ledger_serves_the_next_call(self) -> None:
        """R4: the same connection has no transaction open, whatever it was interrupted in."""
        order, claim = self.ready()
        whole, since = Fault(), self.opening()
        call: Call = lambda ledger, r: sent(ledger, order, r, claim)  # noqa: E731
        self.run_once(call, whole)

        def twice(ledger: Ledger, receiver: library.Receiver) -> object:
            self.assertIsInstance(caught(call)(ledger, receiver), KeyboardInterrupt)
            return look(ledger, order.operation_id).state.value

        for at, point in enumerate(whole.points):
            if point in EDGES or at < since:
                continue
            with self.subTest(at=at, point=point):
                said, _ = self.run_once(twice, Interrupt(at, KeyboardInterrupt, after=True))
                self.assertEqual(said, oracle.states(self.scene.sender)[order.operation_id][0])


# --- calls, interrupts and receivers ------------------------------------------------------------

UNTIL: dict[str, Any] = {"actor": "ada", "expires_ms": BIRTH_MS + HOUR_MS}


def granted(ledger: Ledger, order: Operation) -> Operation:
    return orders.approve(ledger, order.operation_id, digest=order.digest, **UNTIL)


def revoked(ledger: Ledger, order: Operation) -> orders.Revocation:
    return orders.revoke(ledger, order.operation_id, actor="ada", reason="too many")


def sent(ledger: Ledger, order: Operation, by: library.Receiver, claim: Claim) -> object:
    return dispatch(ledger, order.operation_id, by, claim=claim)


def handed_in(
    ledger: Ledger, _: library.Receiver, *, order: Operation, receipt: library.Receipt
) -> object:
    return settlement.resolve_order(
        ledger,
        order.operation_id,
        receipt,
        digest=order.digest,
        supplier=order.target,
        actor="ada",
        reference="letter 7",
    )


def caught(call: Call) -> Call:
    """The call, and the interrupt that it passed on, as a value."""

    def run(ledger: Ledger, receiver: library.Receiver) -> object:
        try:
            return call(ledger, receiver)
        except (KeyboardInterrupt, SystemExit) as interrupt:
            return interrupt

    return run


class Interrupt(Fault):
    """An interrupt that arrives before the k-th statement, or just after it."""

    def __init__(self, at: int, kind: type[BaseException], *, after: bool) -> None:
        super().__init__(None)
        self._due_at, self._kind, self._after = at, kind, after

    def connection(self) -> type[sqlite3.Connection]:
        counting, fault = super().connection(), self

        class Interrupted(counting):  # type: ignore[valid-type, misc]
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                due = len(fault.points) == fault._due_at
                if due and not fault._after:
                    fault.points.append("an interrupt")
                    raise fault._kind
                cursor = super().execute(sql, *values)
                if due:
                    raise fault._kind
                return cursor  # type: ignore[no-any-return]

        return Interrupted


class Edged:
    """A keyed supplier whose sends have both their edges as points."""

    def __init__(self, fault: Fault, inner: Keyed) -> None:
        self._edges, self.limit_s = fault.receiver(inner), inner.limit_s
        self.identity, self.epoch, self.policy = inner.identity, inner.epoch, inner.policy
        self.lookup: Callable[[library.Query], library.Receipt | None] = inner.lookup

    def send(self, query: library.Query) -> library.Receipt | None:
        return self._edges.send(query)

    def snapshot(self, query: library.Query, *, close: bool = False) -> library.Snapshot:
        return self._edges.snapshot(query, close=close)


class NeverLeaves(Keyed):
    """It can prove that not one byte left."""

    def send(self, query: library.Query) -> library.Receipt | None:
        raise NotSent("the line is down")


class IsOut(Keyed):
    """The interrupt comes while the request is out; `arrives`: it was done by then."""

    def __init__(self, file: Path, kind: type[BaseException], *, arrives: bool = False) -> None:
        super().__init__(file)
        self._kind, self._arrives = kind, arrives

    def send(self, query: library.Query) -> library.Receipt | None:
        if self._arrives:
            super().send(query)
        raise self._kind

    def lookup(self, query: library.Query) -> library.Receipt | None:
        raise self._kind


if __name__ == "__main__":
    unittest.main()
