"""The contract exercises of the order story, worked against the supplier's own process."""

from __future__ import annotations

import time

from experiments.harness import oracle
from experiments.harness.processes import LIMIT_S
from experiments.harness.scene import refusal
from experiments.harness.shop import Shop, trading
from experiments.harness.supplier import KEYED
from experiments.harness.traced import Traced
from experiments.tests.base import LabCase
from reconcile import (
    EffectPolicy,
    Ledger,
    Query,
    Receipt,
    State,
    dispatch,
    inquire,
    look,
    resend,
)
from reconcile.flows import orders

YEAR_MS = 365 * 24 * 3600 * 1000
ASKED_ONLY = EffectPolicy(name="asked only", stored_receipt=True, status_source="lookup")
"""It keeps receipts and can be asked, and does not declare that a second sending is harmless."""


class Watched(Traced):
    """Looks into the store while the request is under way."""

    def __init__(self, shop: Shop) -> None:
        super().__init__(shop.scene, shop.receiver())
        self._shop = shop
        self.seen: list[tuple[str, int, int]] = []

    def send(self, query: Query) -> Receipt | None:
        self.seen.append(stands(self._shop))
        return super().send(query)


def stands(shop: Shop) -> tuple[str, int, int]:
    """State, reserved and spent, as a second connection reads them."""
    ((state,),) = oracle.rows(shop.scene.sender, "SELECT state FROM operation")
    last = "SELECT reserved, spent FROM entry ORDER BY number DESC LIMIT 1"
    reserved, spent = (oracle.rows(shop.scene.sender, last) or [(0, 0)])[0]
    return state, reserved, spent


class TheThreeExercises(LabCase):
    def test_a_rejection_holds_the_money_until_it_is_known_and_frees_it_once(self) -> None:
        """O8, C17: each transition, and not only the zero at the end."""
        with trading(self.lab, options=("--reject",)) as shop, shop.ledger() as ledger:
            claim = shop.claim(ledger)
            draft = shop.draft(ledger, claim)
            told = [stands(shop)]
            shop.approve(ledger, draft)
            told.append(stands(shop))
            watched = Watched(shop)
            dispatch(ledger, draft.operation_id, watched, claim=claim)
            told += [*watched.seen, stands(shop)]
            inquire(ledger, draft.operation_id, shop.receiver())
            told.append(stands(shop))
            self.assertEqual(
                told,
                [
                    ("prepared", 0, 0),
                    ("prepared", 1500, 0),
                    ("unknown", 1500, 0),
                    ("rejected", 0, 0),
                    ("rejected", 0, 0),
                ],
            )
            late = shop.supplier.receiver().send(draft.query)
            self.assertEqual(late and late.status, "rejected")
        does = oracle.rows(shop.scene.sender, "SELECT does FROM entry ORDER BY number")
        self.assertEqual(does, [("reserve",), ("release",)])
        self.assertEqual(shop.scene.effects(), {"order": 0})

    def test_a_delayed_discovery_is_bridged_only_where_sending_again_is_declared(self) -> None:
        """O9, O10, A11: with the guarantee the same identity goes again; without it one waits."""
        for policy, again, state in (
            (KEYED, "allowed", "confirmed"),
            (ASKED_ONLY, "NoGuarantee", "unknown"),
        ):
            options = ("--drop-first-response", "--lookup-delay", str(YEAR_MS))
            with (
                self.subTest(policy.name),
                trading(self.lab, policy.name, options=options, policy=policy) as shop,
                shop.ledger() as ledger,
            ):
                order_id, claim = shop.ready(ledger)
                supplier = shop.receiver()
                dispatch(ledger, order_id, supplier, claim=claim)
                self.assertIs(inquire(ledger, order_id, supplier).state, State.UNKNOWN)
                said = refusal(resend, ledger, order_id, supplier, claim=claim)
                self.assertEqual((said, stands(shop)[0]), (again, state))
                shop.supplier.close()
                self.found_later(ledger, shop, order_id)

    def found_later(self, ledger: Ledger, shop: Shop, order_id: str) -> None:
        """The reading copy caught up: the lookup settles, and one effect stands."""
        with shop.again() as supplier:
            self.assertIs(inquire(ledger, order_id, supplier).state, State.CONFIRMED)
        self.assertEqual(shop.scene.effects(), {"order": 1})
        self.assertEqual(shop.money(ledger)["spent"], 1500)

    def test_a_revocation_after_acceptance_takes_nothing_back_and_one_before_does(self) -> None:
        """O11: the same words, two answers, and the supplier's file decides which is true."""
        for sent, in_time, state, effects in (
            (True, False, "confirmed", 1),
            (False, True, "revoked", 0),
        ):
            options = ("--drop-first-response",)
            with (
                self.subTest(sent=sent),
                trading(self.lab, f"sent {sent}", options=options) as shop,
                shop.ledger() as ledger,
            ):
                order_id, claim = shop.ready(ledger)
                if sent:
                    dispatch(ledger, order_id, shop.receiver(), claim=claim)
                done = orders.revoke(ledger, order_id, actor="lucy", reason="too dear")
                inquire(ledger, order_id, shop.receiver())
                self.assertEqual((done.in_time, stands(shop)[0]), (in_time, state))
                self.assertEqual(shop.scene.effects(), {"order": effects})


class OneConflictOfThree(LabCase):
    def test_a_request_that_is_still_worked_on_is_neither_failed_nor_done(self) -> None:
        """O15, C12: the first is held before its commit, the second hears 409, and one is made."""
        options = ("--hold-commit", "--busy-conflict")
        with trading(self.lab, options=options) as shop, shop.ledger() as ledger:
            order_id, claim = shop.ready(ledger)
            impatient = shop.receiver(limit_s=0.5)
            first = dispatch(ledger, order_id, impatient, claim=claim)
            self.assertEqual(shop.supplier.wait_until_holding(), order_id)
            self.assertIs(inquire(ledger, order_id, shop.receiver()).state, State.UNKNOWN)
            second = resend(ledger, order_id, shop.receiver(), claim=claim)
            self.assertEqual(
                (first.outcome, second.outcome, stands(shop)),
                (State.UNKNOWN, State.UNKNOWN, ("unknown", 1500, 0)),
            )
            ((said,),) = oracle.rows(
                shop.scene.sender, "SELECT said FROM attempt WHERE attempt = 2"
            )
            self.assertEqual(said, "409 in_progress")
            shop.supplier.permit(order_id)
            deadline = time.monotonic() + LIMIT_S  # bounds a hung run: asking again is the wait
            while inquire(ledger, order_id, shop.receiver()).state is State.UNKNOWN:
                self.assertLess(time.monotonic(), deadline)
            self.assertEqual(stands(shop), ("confirmed", 0, 1500))
            self.assertEqual(look(ledger, order_id).attempts, 2)
        self.assertEqual(shop.scene.effects(), {"order": 1})
