"""Orders: authority, money, work and who may do it, goods, and what two files say together."""

from __future__ import annotations

import hashlib
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn
from unittest import mock

from experiments.harness import oracle, unsafe
from experiments.harness.supplier import IDENTITY, KEYED
from experiments.tests.shop import (
    DAY_MS,
    HOUR_MS,
    LEASE_MS,
    SKU,
    WORK,
    YEAR_MS,
    Near,
    Shop,
    ShopCase,
    answer,
    busy,
    declined,
    lost,
    refused,
)
from reconcile import (
    Action,
    DistinctNeed,
    Effect,
    Operation,
    Query,
    Receipt,
    ReconcileError,
    State,
    approve_compensation,
    canonical_json,
    dispatch,
    inquire,
    operation_identity,
    prepare,
    resend,
)
from reconcile.flows import recovery, shop, work
from reconcile.flows.orders import propose, revoke
from reconcile.ledger import attempts
from reconcile.rules.claim import LONGEST_LEASE_MS, Claim
from reconcile.rules.diagnosis import Diagnosis, diagnose
from reconcile.rules.errors import (
    AlreadyAnnounced,
    AlreadyClaimed,
    EffectSeen,
    EquivalentUnresolved,
    IdentityTaken,
    Malformed,
    Paused,
    StaleClaim,
    StorageFailed,
    UnknownOperation,
    WrongReceiver,
)
from reconcile.rules.order import Basis
from reconcile.rules.order_errors import (
    ApprovalExpired,
    ApprovalRevoked,
    AutomaticRefused,
    CeilingExceeded,
    DeliveryRefused,
    LeaseTooShort,
    NoApproval,
    NoBudget,
    NoOrder,
    NoPrice,
    NotApprovable,
    NotListed,
    UnknownBasis,
    UnknownWork,
    WorkCancelled,
    WrongDigest,
)

PROPOSAL = {
    "sku": SKU,
    "quantity": 6,
    "unit_cost_pence": 250,
    "supplier": IDENTITY,
    "currency": "GBP",
}
NEED = DistinctNeed(authorized_by="ada", reason="a second party")
INTERRUPTS = (KeyboardInterrupt, SystemExit, GeneratorExit)


class IdentityOfAnOrder(ShopCase):
    """One order for one proposal in one work item."""

    def test_the_identity_of_an_order_is_that_of_its_proposal_with_its_kind(self) -> None:
        """O1: by the formula, written out; and the published value of the bare proposal."""
        order = self.shop.propose()
        text = canonical_json({"kind": "order", "payload": PROPOSAL})
        digest = hashlib.sha256(f"{IDENTITY}\n{text}".encode()).hexdigest()
        self.assertEqual(order.digest, digest)
        named = uuid.uuid5(uuid.NAMESPACE_URL, f"{WORK}:{digest}").hex
        self.assertEqual(order.operation_id, named)
        bare = operation_identity(WORK, IDENTITY, PROPOSAL)
        self.assertEqual(bare.operation_id, "ceb546fd645b56efac7a081a836c4abb")
        self.assertEqual(order.payload, canonical_json(dict(reversed(PROPOSAL.items()))))

    def test_the_same_proposal_again_is_the_stored_order(self) -> None:
        """O4, C33: whoever asks, under another claim and after a restart; nothing is written."""
        order = self.shop.propose()
        before = self.shop.written()
        self.assertEqual(self.shop.propose(), order)
        self.shop.reopen()
        self.assertEqual(self.shop.propose(), order)
        self.assertEqual(self.shop.written(), before)
        work.release(self.shop.ledger, self.shop.claim)
        self.shop.reclaim()
        self.assertEqual(self.shop.propose(), order)

    def test_the_same_proposal_in_another_work_item_is_another_order(self) -> None:
        """C33, O4: beside a draft, after one that is confirmed, and after one that is rejected."""
        for name, fault in (("draft", None), ("confirmed", []), ("rejected", [declined])):
            with self.subTest(name):
                one = self.open(name)
                first = one.approved()
                if fault is not None:
                    one.near.faults = list(fault)
                    one.dispatch(first)
                second = one.propose(claim=one.claimed("evening-work"))
                self.assertNotEqual(second.operation_id, first.operation_id)
                self.assertEqual(second.digest, first.digest)
                self.assertEqual(len(oracle.states(one.scene.sender)), 2)

    def test_every_field_of_the_proposal_tells_orders_apart(self) -> None:
        """C33, O1: one changed at a time."""
        same = operation_identity(WORK, IDENTITY, PROPOSAL)
        changed: list[dict[str, object]] = [
            {**PROPOSAL, name: other}
            for name, other in (
                ("sku", "SKU-vanilla"),
                ("quantity", 7),
                ("unit_cost_pence", 251),
                ("supplier", "lucy-local "),
                ("currency", "EUR"),
            )
        ]
        found = {operation_identity(WORK, IDENTITY, proposal) for proposal in changed}
        self.assertEqual(len(found | {same}), 6)
        digests = {identity.digest for identity in found | {same}}
        self.assertEqual(len(digests), 6)

    def test_a_new_price_makes_a_new_order_and_leaves_the_old_one_at_its_price(self) -> None:
        """C33, O1: the price is of the store, and part of the proposal."""
        first = self.shop.unknown()
        self.shop.inquire(first)
        self.shop.price(SKU, 300)
        second = self.shop.propose(1)
        assert first.order and second.order
        self.assertEqual((first.order.amount, second.order.amount), (1500, 300))

    def test_what_was_prepared_without_money_is_no_order(self) -> None:
        """O1: one identity is never both, once it was sent without money."""
        one = self.shop
        payload: dict[str, object] = {**PROPOSAL}
        bare = prepare(
            one.ledger, one.near, work_id=WORK, kind="order", payload=payload, subject=SKU
        )
        for call in (one.approve, one.revoke, one.resolve):
            self.refuses(one, NoOrder, call, bare)
        self.refuses(one, NoOrder, one.deliver, bare, 1)
        one.near.faults = [refused]
        dispatch(one.ledger, bare.operation_id, one.near)
        self.refuses(one, IdentityTaken, one.propose)

    def test_a_proposal_has_its_conditions(self) -> None:
        """O7, O1: price, budget, work item, claim, supplier; each with its own refusal."""
        one = self.shop
        self.refuses(one, NoPrice, one.propose, sku="SKU-UNHEARD-OF")
        self.refuses(one, NoPrice, one.propose, near=one.supplier(identity="another"))
        shop.set_price(
            one.ledger, "SKU-EURO", supplier=IDENTITY, unit_cost=1, currency="EUR", set_by="mo"
        )
        self.refuses(one, NoBudget, one.propose, sku="SKU-EURO")
        one.cancel()
        self.refuses(one, WorkCancelled, one.propose)


class NoNewWhileUnknown(ShopCase):
    """An uncertain order stands in the way of another for the same need."""

    def test_an_equivalent_order_is_refused_in_any_work_item_while_one_is_unresolved(self) -> None:
        """O4, C33: and allowed once the first is settled."""
        one = self.shop
        first = one.unknown()
        evening = one.claimed("evening-work")
        self.refuses(one, EquivalentUnresolved, one.propose, claim=evening)
        self.refuses(one, EquivalentUnresolved, one.propose, 5)
        one.inquire(first)
        self.assertIs(one.propose(5, claim=evening).state, State.PREPARED)

    def test_of_two_drafts_the_second_is_refused_at_admission_while_the_first_is_unknown(
        self,
    ) -> None:
        """O4, O7: it is asked again in the transaction that announces."""
        one = self.shop
        first, evening = one.approved(2), one.claimed("evening-work")
        second = one.approved(2, claim=evening)
        one.near.faults = [lost]
        one.dispatch(first)
        self.refuses(one, EquivalentUnresolved, one.dispatch, second, claim=evening)
        self.assertEqual(one.offers(second), (Action.ESCALATE,))
        one.inquire(first)
        self.assertIs(one.dispatch(second, claim=evening).outcome, State.CONFIRMED)

    def test_a_distinct_need_goes_beside_it_by_name_and_reason_which_are_kept(self) -> None:
        """O4: both are needed."""
        one = self.shop
        one.unknown(2)
        evening = one.claimed("evening-work")
        for nobody in ("ada", ("ada", "a second party"), True):
            self.refuses(one, Malformed, one.propose, claim=evening, distinct_need=nobody)
        for who, why in (("", "why"), ("ada", ""), ("ada", "  ")):
            with self.assertRaises(Malformed):
                DistinctNeed(authorized_by=who, reason=why)
        second = one.approved(2, claim=evening, distinct_need=NEED)
        self.assertIs(one.dispatch(second, claim=evening).outcome, State.CONFIRMED)
        sql = "SELECT authorized_by, reason FROM distinct_need"
        self.assertEqual(oracle.rows(one.scene.sender, sql), [("ada", "a second party")])

    def test_a_draft_that_was_refused_goes_once_its_need_is_declared_a_distinct_one(self) -> None:
        """O4: by proposing it again with name and reason; the first declaration stays."""
        one = self.shop
        evening = one.claimed("evening-work")
        draft = one.approved(2, claim=evening)
        one.unknown(2)
        self.refuses(one, EquivalentUnresolved, one.dispatch, draft, claim=evening)
        self.assertTrue(one.propose(2, claim=evening, distinct_need=NEED).distinct)
        before = one.written()
        other = DistinctNeed(authorized_by="bob", reason="a third party")
        again = one.propose(2, claim=evening, distinct_need=other)
        self.assertEqual((again, one.written()), (one.look(draft), before))
        self.assertIs(one.dispatch(draft, claim=evening).outcome, State.CONFIRMED)
        late = one.propose(2, claim=evening, distinct_need=other)
        self.assertIs(late.state, State.CONFIRMED)

    def test_another_subject_kind_target_or_scope_is_not_in_its_way(self) -> None:
        """O4, A12: what is not equivalent goes on."""
        one = self.shop
        one.unknown(2)
        one.price("SKU-LEMON")
        shop.set_price(
            one.ledger, SKU, supplier="another", unit_cost=1, currency="GBP", set_by="mo"
        )
        evening = one.claimed("evening-work")
        one.propose(2, claim=evening, sku="SKU-LEMON")
        one.propose(2, claim=evening, scope=("other", "default", "default"))
        one.propose(2, claim=evening, near=one.supplier(identity="another"))
        payload: dict[str, object] = {**PROPOSAL}
        prepare(one.ledger, one.near, work_id="w", kind="reserve", payload=payload, subject=SKU)

    def test_every_unresolved_state_is_in_its_way_and_no_other_is(self) -> None:
        """O4: pending, partial and conflict as well as unknown."""
        for status, blocks in (
            ("pending", True),
            ("partial", True),
            ("rejected", False),
            ("failed", False),
        ):
            with self.subTest(status):
                one = self.open(status)
                first = one.unknown(2, fault=busy)
                one.near.says = answer(first.query, status=status, effect_id=None)
                one.inquire(first)
                evening = one.claimed("evening-work")
                if blocks:
                    self.refuses(one, EquivalentUnresolved, one.propose, 2, claim=evening)
                else:
                    one.propose(2, claim=evening)
        one = self.open("conflict")
        one.scene.unsafe = True  # no flow reaches it yet: it is brought there by hand
        unsafe.flip_state(one.scene.sender, one.unknown(2).operation_id, "conflict")
        evening = one.claimed("evening-work")
        self.refuses(one, EquivalentUnresolved, one.propose, 2, claim=evening)

    def test_a_stored_order_keeps_the_policy_that_was_pinned(self) -> None:
        """O4: also when its supplier declares a newer one."""
        one = self.shop
        order = one.propose()
        newer = one.supplier(policy=replace(KEYED, version=2, identity_retention_ms=1))
        before = one.written()
        again = one.propose(near=newer)
        self.assertEqual((again, again.policy), (order, KEYED))
        self.assertEqual(one.written(), before)

    def test_a_compensation_is_not_blocked_by_an_uncertain_order(self) -> None:
        """O4: it is bound to an effect of its own."""
        one = self.shop
        first = one.approved(2)
        one.dispatch(first)
        done, evening = one.look(first), one.claimed("evening-work")
        one.unknown(2, claim=evening)
        assert done.effect_id is not None
        back = approve_compensation(
            one.ledger,
            done.operation_id,
            effect_id=done.effect_id,
            kind="order",
            payload={**PROPOSAL, "quantity": -2},
            approver="ada",
            expected_version=done.version,
        )
        result = dispatch(one.ledger, back.operation_id, one.near)
        self.assertIs(result.outcome, State.CONFIRMED)


class Superseding(ShopCase):
    """A new draft of the same work item and SKU withdraws the one before."""

    def test_the_old_draft_is_revoked_and_its_money_is_free(self) -> None:
        """O4, O11: in the transaction that writes the new one."""
        one = self.shop
        old = one.approved(6)
        self.assertEqual(one.money(), (1500, 0, 0))
        new = one.approved(8)
        self.assertEqual((one.state(old), one.state(new)), ("revoked", "prepared"))
        self.assertEqual(one.money(), (2000, 0, 0))
        reason = oracle.rows(one.scene.sender, "SELECT reason FROM decision")
        self.assertEqual(reason, [(f"superseded by {new.operation_id}",)])

    def test_it_never_comes_back_with_its_old_authority(self) -> None:
        """O4: the same proposal again is the revoked order; another work item has a new one."""
        one = self.shop
        old = one.approved(6)
        new = one.propose(7)
        before = one.written()
        again = one.propose(6)
        self.assertEqual((again.operation_id, again.state.value), (old.operation_id, "revoked"))
        self.assertEqual(one.written(), before)
        self.refuses(one, NotApprovable, one.approve, old)
        self.refuses(one, AlreadyAnnounced, one.dispatch, old)
        self.assertEqual(one.state(new), "prepared")
        other = one.propose(6, claim=one.claimed("evening-work"))
        assert other.order is not None
        self.assertEqual((other.state, other.order.approval), (State.PREPARED, None))

    def test_only_a_draft_of_the_same_work_item_and_sku_is_withdrawn(self) -> None:
        """O4: another work item, another SKU, and what may have left stay as they are."""
        one = self.shop
        one.price("SKU-LEMON")
        evening = one.claimed("evening-work")
        lemon, later = one.propose(1, sku="SKU-LEMON"), one.propose(1, claim=evening)
        sent = one.unknown(2)
        one.propose(3, distinct_need=NEED)
        states = [one.state(order) for order in (lemon, later, sent)]
        self.assertEqual(states, ["prepared", "prepared", "unknown"])

    def test_a_distinct_need_withdraws_no_draft_and_is_withdrawn_by_none(self) -> None:
        """O4: the third proposal withdraws the first, which is of the same need."""
        one = self.shop
        apart = DistinctNeed(authorized_by="lucy", reason="for the fair on Sunday")
        first, fair = one.propose(6), one.propose(7, distinct_need=apart)
        self.assertEqual((one.state(first), one.state(fair)), ("prepared", "prepared"))
        one.propose(8)
        self.assertEqual((one.state(first), one.state(fair)), ("revoked", "prepared"))


class ApprovalHasItsConditions(ShopCase):
    """Exact digest, a listed actor, an expiry, the ceiling; once."""

    def test_from_an_approval_that_passes_one_condition_is_taken_at_a_time(self) -> None:
        """O5: each has its own refusal, and nothing is written."""
        one, now = self.shop, self.shop.clock.now_ms
        order = one.propose()
        for changed, refusal in (
            ({"digest": "0" * 64}, WrongDigest),
            ({"digest": order.digest.upper()}, WrongDigest),
            ({"digest": order.digest[:-1]}, WrongDigest),
            ({"actor": "Lucy"}, NotListed),
            ({"actor": "lucy "}, NotListed),
            ({"actor": "mo"}, NotListed),
            ({"expires_ms": now}, Malformed),
            ({"expires_ms": now - 1}, Malformed),
            ({"expires_ms": now + DAY_MS + 1}, Malformed),
            ({"expires_ms": True}, Malformed),
            ({"expires_ms": float(now + 1)}, Malformed),
            ({"basis": Basis.AUTOMATIC}, AutomaticRefused),
            ({"basis": "operator"}, Malformed),
        ):
            with self.subTest(changed):
                self.refuses(one, refusal, one.approve, order, **changed)
        one.approve(order, expires_ms=now + DAY_MS)
        one.approve(order, expires_ms=now + 1)
        self.assertEqual(one.money(), (1500, 0, 0))

    def test_what_is_no_draft_is_not_approved(self) -> None:
        """O5: nor what is not there, or stands in a paused store."""
        one = self.shop
        nobody = replace(one.propose(), operation_id="0" * 32)
        self.refuses(one, UnknownOperation, one.approve, nobody)
        order = one.unknown()
        self.refuses(one, NotApprovable, one.approve, order)
        one.inquire(order)
        self.refuses(one, NotApprovable, one.approve, order)
        draft = one.propose(2)
        one.by_hand("UPDATE store SET paused_why = 'a test'")
        self.refuses(one, Paused, one.approve, draft)

    def test_money_is_reserved_within_the_ceiling_and_not_a_penny_more(self) -> None:
        """O5: spent, reserved and written-off money counts."""
        one = self.shop
        one.price("SKU-PENNY", 1)
        one.dispatch(one.approved(4))
        claim = one.claimed("failing-work")
        failed = one.unknown(2, claim=claim, fault=busy)
        one.near.says = answer(failed.query, status="failed", effect_id=None)
        one.inquire(failed)
        one.approved(1, claim=one.claimed("third-work"))
        self.assertEqual(one.money(), (250, 1000, 500))
        penny = one.propose(251, sku="SKU-PENNY")
        self.refuses(one, CeilingExceeded, one.approve, penny)
        one.approved(250, sku="SKU-PENNY")
        self.assertEqual(one.money(), (500, 1000, 500))

    def test_approving_again_is_the_newest_approval_and_reserves_nothing_more(self) -> None:
        """O5: whatever the ceiling has left."""
        one = self.shop
        order = one.propose(8)
        for ordinal in (1, 2, 3):
            one.clock.now_ms += 1
            again = one.approve(order).order
            assert again is not None and again.approval is not None
            self.assertEqual(again.approval.ordinal, ordinal)
            self.assertEqual(again.approval.expires_ms, one.clock.now_ms + HOUR_MS)
        self.assertEqual(one.money(), (2000, 0, 0))
        sql = "SELECT count(*) FROM entry"
        self.assertEqual(oracle.rows(one.scene.sender, sql), [(1,)])

    def test_an_automatic_approval_fits_the_allowance_and_needs_no_list(self) -> None:
        """O5, O7: up to the allowance, inclusive."""
        one = self.shop
        order = one.propose()
        one.budget(2000, automatic=1499)
        words = {"basis": Basis.AUTOMATIC, "actor": "policy 1"}
        self.refuses(one, AutomaticRefused, one.approve, order, **words)
        one.budget(2000, automatic=1500)
        one.approve(order, **words)
        self.assertIs(one.dispatch(order).outcome, State.CONFIRMED)

    def test_amounts_that_are_no_money_are_refused_before_any_row(self) -> None:
        """C17, O5: quantities, prices, ceilings and allowances."""
        one = self.shop
        odd: list[Any] = [-1, True, 1.5, float("nan"), 2**63, "6", None]
        for amount in [0, *odd]:
            with self.subTest(amount):
                self.refuses(one, Malformed, one.propose, amount)
                self.refuses(one, Malformed, one.price, SKU, amount)
                self.refuses(one, Malformed, one.deliver, one.propose(1), amount)
        for amount in odd:
            self.refuses(one, Malformed, one.budget, amount)
            self.refuses(one, Malformed, one.budget, 1, automatic=amount)

    def test_an_amount_beyond_64_bits_is_refused_whatever_its_factors(self) -> None:
        """C17, O5: and one that fits is refused by the ceiling, not by an overflow."""
        one = self.shop
        one.price("SKU-GOLD", 2**62)
        self.refuses(one, Malformed, one.propose, 2, sku="SKU-GOLD")
        one.budget(2**63 - 1)
        gold = one.approved(1, sku="SKU-GOLD")
        self.assertEqual(one.money(), (2**62, 0, 0))
        more = one.propose(1, sku="SKU-GOLD", claim=one.claimed("evening-work"))
        self.refuses(one, CeilingExceeded, one.approve, more)
        self.assertEqual(one.state(gold), "prepared")

    def test_a_reservation_that_cannot_be_written_approves_nothing(self) -> None:
        """C17: nothing is sent then."""
        one = self.shop
        order = one.propose()
        one.by_hand(
            "CREATE TRIGGER full BEFORE INSERT ON entry BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
        self.refuses(one, StorageFailed, one.approve, order)
        self.refuses(one, NoApproval, one.dispatch, order)


class MoneyIsHeld(ShopCase):
    """An uncertain order holds its money through everything but evidence."""

    def test_an_interrupt_after_admission_leaves_it_unknown_and_its_money_held(self) -> None:
        """O6, C17: through revocation, expiry, cancellation, a year, and closing the file."""
        for kind in INTERRUPTS:
            with self.subTest(kind.__name__):
                one = self.open(kind.__name__)
                order = one.approved()
                one.near.faults = [ends_by(kind)]
                with self.assertRaises(kind):
                    one.dispatch(order)
                self.held_throughout(one, order)

    def held_throughout(self, one: Shop, order: Operation) -> None:
        """Whatever happens to it, a second order of 1000 finds no money."""
        one.price("SKU-LEMON")
        second = one.propose(4, sku="SKU-LEMON", claim=one.claimed("evening-work"))
        self.assertFalse(one.revoke(order).in_time)
        for meanwhile in (
            lambda: None,
            lambda: self.assertFalse(one.revoke(order).in_time),
            one.cancel,
            lambda: pass_time(one, HOUR_MS),
            lambda: pass_time(one, YEAR_MS),
            one.reopen,
            lambda: work.enqueue(one.ledger, WORK),
        ):
            meanwhile()
            self.assertEqual((one.state(order), one.money()), ("unknown", (1500, 0, 0)))
            self.refuses(one, CeilingExceeded, one.approve, second)
        one.inquire(order)
        self.assertEqual((one.state(order), one.money()), ("confirmed", (0, 1500, 0)))

    def test_an_interrupt_before_admission_leaves_a_draft_whose_money_revoking_frees_once(
        self,
    ) -> None:
        """O6, C17: whether the clock was asked or the transaction was at its end."""
        for kind in INTERRUPTS:
            with self.subTest(kind.__name__):
                one = self.open(kind.__name__)
                order = one.approved()
                before = one.written()
                ended = mock.patch.object(attempts, "start", side_effect=kind)
                with ended, self.assertRaises(kind):
                    one.dispatch(order)
                self.assertEqual(one.written(), before)
                self.assertEqual(one.money(), (1500, 0, 0))
                self.assertTrue(one.revoke(order).in_time)
                self.assertEqual((one.state(order), one.money()), ("revoked", (0, 0, 0)))
                before = one.written()
                self.assertTrue(one.revoke(order).in_time)
                self.assertEqual(one.written(), before)

    def test_never_sent_keeps_the_money_and_the_approval(self) -> None:
        """O6, L13: the refused connection of a first send; revoking it then is in time."""
        one = self.shop
        order = one.approved()
        one.near.faults = [refused]
        self.assertIs(one.dispatch(order).outcome, State.PREPARED)
        self.assertEqual(one.money(), (1500, 0, 0))
        self.assertEqual(one.offers(order), (Action.DISPATCH,))
        self.assertTrue(one.revoke(order).in_time)
        self.assertEqual(one.money(), (0, 0, 0))

    def test_each_end_moves_the_money_once(self) -> None:
        """O8, C17: accepted spends, rejected frees, failed is written off; asked for twice."""
        for status, money in (
            ("accepted", (0, 1500, 0)),
            ("rejected", (0, 0, 0)),
            ("failed", (0, 0, 1500)),
        ):
            with self.subTest(status):
                one = self.open(status)
                order = one.unknown(fault=lost if status == "accepted" else busy)
                effect_id = f"{order.operation_id}#1" if status == "accepted" else None
                one.near.says = answer(order.query, status=status, effect_id=effect_id)
                first = one.inquire(order)
                self.assertEqual(one.money(), money)
                again = one.inquire(order)
                self.assertEqual((again.state, again.version), (first.state, first.version))
                one.reopen()
                self.assertEqual(one.money(), money)
                entries = oracle.rows(one.scene.sender, "SELECT count(*) FROM entry")
                self.assertEqual(entries, [(2,)])

    def test_the_money_of_two_currencies_never_mixes(self) -> None:
        """O8, O5: each has its own ceiling, and its own journal."""
        one = self.shop
        words: dict[str, Any] = {"currency": "EUR", "set_by": "mo"}
        shop.set_price(one.ledger, "SKU-EURO", supplier=IDENTITY, unit_cost=100, **words)
        shop.set_budget(one.ledger, ceiling=100, **words)
        pounds = one.unknown(8)
        euros = one.unknown(1, sku="SKU-EURO")
        one.inquire(pounds)
        held = shop.budget(one.ledger, "EUR")
        self.assertEqual(one.money(), (0, 2000, 0))
        self.assertEqual((held.reserved, held.spent), (100, 0))
        one.inquire(euros)
        held = shop.budget(one.ledger, "EUR")
        self.assertEqual((held.reserved, held.spent, held.committed), (0, 100, 100))
        self.refuses(one, CeilingExceeded, one.approve, one.propose(2, sku="SKU-EURO"))

    def test_the_journal_cannot_go_below_nothing_or_move_twice_by_plain_sql(self) -> None:
        """O8: the file says so itself."""
        one = self.shop
        one.dispatch(one.approved())
        sql = "INSERT INTO entry SELECT currency, number + 1, operation, ?, ?, amount, ?, ?, 0, 1 "
        sql += "FROM entry ORDER BY number DESC LIMIT 1"
        for values in (
            (1, "release", -1500, 1500),
            (1, "spend", -1500, 3000),
            (0, "reserve", -1, 0),
        ):
            with self.assertRaises(sqlite3.IntegrityError):
                one.by_hand(sql, *values)
        self.assertEqual(one.money(), (0, 1500, 0))


class Admission(ShopCase):
    """What is asked again in the transaction that announces."""

    def test_from_a_dispatch_that_passes_one_condition_is_taken_at_a_time(self) -> None:
        """O7: each has its own refusal; nothing is written and the supplier hears nothing."""
        for name, refusal, spoil in spoils():
            with self.subTest(name):
                one = self.open(name)
                order = one.approved()
                changed = spoil(one, order) or {}
                self.refuses(one, refusal, one.dispatch, order, **changed)
        one = self.open("the case that passes")
        self.assertIs(one.dispatch(one.approved()).outcome, State.CONFIRMED)

    def test_a_supplier_that_does_not_bound_its_calls_is_sent_no_order(self) -> None:
        """O7: whatever it has in place of a bound."""
        one = self.shop
        order = one.approved()
        odd: tuple[Any, ...] = (None, True, 0, -1, float("nan"), float("inf"), "1")
        for limit_s in odd:
            near = one.supplier()
            near.limit_s = limit_s
            self.refuses(one, Malformed, one.dispatch, order, near=near)
        near.limit_s = LEASE_MS / 1000 - 0.0005
        self.refuses(one, LeaseTooShort, one.dispatch, order, near=near)
        near.limit_s = LEASE_MS / 1000 - 0.001
        self.assertIs(one.dispatch(order, near=near).outcome, State.CONFIRMED)

    def test_an_order_without_approval_is_not_sent(self) -> None:
        """O7: nor is it offered."""
        one = self.shop
        order = one.propose()
        self.refuses(one, NoApproval, one.dispatch, order)
        self.assertEqual(one.offers(order), (Action.ESCALATE,))

    def test_a_grant_of_unknown_basis_needs_a_new_approval(self) -> None:
        """O7: it reserves and admits nothing, until a listed person approves."""
        one = self.shop
        order = one.approve(one.propose(), basis=Basis.UNKNOWN, actor="nobody knows")
        self.assertEqual(one.money(), (1500, 0, 0))
        self.refuses(one, UnknownBasis, one.dispatch, order)
        one.approve(order)
        self.assertIs(one.dispatch(order).outcome, State.CONFIRMED)

    def test_what_lost_its_authority_during_the_send_is_not_sent_again(self) -> None:
        """O7, L13: a first send that never left leaves a draft, under what became of it."""
        meanwhile: tuple[
            tuple[str, type[ReconcileError], Callable[[Shop, Operation], Any]], ...
        ] = (
            ("revoked", ApprovalRevoked, lambda one, order: one.revoke(order)),
            ("cancelled", WorkCancelled, lambda one, order: one.cancel()),
        )
        for name, refusal, happens in meanwhile:
            with self.subTest(name):
                one = self.open(name)
                order = one.approved()
                one.near.faults = [meanwhile_refused(partial(happens, one, order))]
                self.assertIs(one.dispatch(order).outcome, State.PREPARED)
                self.refuses(one, refusal, one.dispatch, order)
                self.refuses(one, refusal, one.approve, order)
                self.assertEqual(one.offers(order), (Action.ESCALATE,))
                self.assertEqual(one.money(), (1500, 0, 0))
                happens(one, order)
                self.assertEqual((one.state(order), one.money()), ("revoked", (0, 0, 0)))

    def test_no_lock_is_held_while_the_request_is_under_way(self) -> None:
        """O7: another connection may write, and sees the unknown committed."""
        one, seen = self.shop, []
        order = one.approved()

        def others(near: Near, query: Query) -> Receipt | None:
            with closing(sqlite3.connect(one.scene.sender, timeout=0)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                seen.extend(connection.execute("SELECT state FROM operation").fetchall())
                connection.execute("ROLLBACK")
            return lost(near, query)

        one.near.faults = [others]
        one.dispatch(order)
        self.assertEqual(seen, [("unknown",)])

    def test_nothing_that_stops_a_send_stops_a_receipt_from_settling(self) -> None:
        """O7, O11: by lookup; and the reply of the one send, too."""
        for name, _, spoil in spoils():
            if name in ("other supplier", "other epoch", "revoked", "cancelled", "paused"):
                continue  # what was revoked and cancelled after the send is below
            with self.subTest(name):
                one = self.open(name)
                order = one.unknown()
                spoil(one, order)
                one.inquire(order)
                self.assertEqual((one.state(order), one.money()), ("confirmed", (0, 1500, 0)))

    def test_the_reply_settles_what_was_revoked_and_cancelled_meanwhile(self) -> None:
        """O7, O11: it was admitted."""
        one = self.shop
        order = one.approved()

        def meanwhile(near: Near, query: Query) -> Receipt | None:
            one.revoke(order)
            one.cancel()
            one.clock.now_ms += YEAR_MS
            return near.make(query)

        one.near.faults = [meanwhile]
        self.assertIs(one.dispatch(order).outcome, State.CONFIRMED)
        self.assertEqual(one.money(), (0, 1500, 0))

    def test_a_paused_store_keeps_a_receipt_and_moves_nothing(self) -> None:
        """O7, O19: the lookup reaches the supplier, and the money stays held."""
        one = self.shop
        order = one.unknown()
        one.by_hand("UPDATE store SET paused_why = 'a test'")
        self.assertIs(one.inquire(order).state, State.UNKNOWN)
        self.assertEqual(one.money(), (1500, 0, 0))
        kept = oracle.rows(one.scene.sender, "SELECT origin FROM receipt")
        self.assertEqual(kept, [("lookup",)])

    def test_an_order_that_somebody_else_caused_is_not_sent(self) -> None:
        """O8, O7: a receipt for an order never admitted settles nothing, and stops the send."""
        one = self.shop
        one.scene.unsafe = True  # an effect stands that this ledger never announced
        order = one.approved()
        one.near.make(order.query)
        self.assertIs(one.inquire(order).state, State.PREPARED)
        self.assertEqual(one.money(), (1500, 0, 0))
        self.refuses(one, EffectSeen, one.dispatch, order)
        self.assertEqual(one.offers(order), (Action.ESCALATE,))

    def test_a_draft_whose_effect_was_seen_is_neither_withdrawn_nor_superseded(self) -> None:
        """O8, O11, C14: whoever caused it, its money stays held and a person decides."""
        one = self.shop
        one.scene.unsafe = True  # an effect stands that this ledger never announced
        order = one.approved()
        one.near.make(order.query)
        one.inquire(order)
        done = revoke(one.ledger, order.operation_id, actor="lucy", reason="too dear")
        self.assertEqual((done.in_time, one.state(order)), (False, "prepared"))
        self.refuses(one, EffectSeen, one.propose, 7)
        work.cancel(one.ledger, one.claim.item, actor="lucy", reason="closed")
        self.assertEqual((one.state(order), one.money()), ("prepared", (1500, 0, 0)))

    def test_a_supplier_that_says_another_name_each_time_is_taken_at_its_first_word(self) -> None:
        """O7, O9: price, target and proposal are of one supplier."""
        one = self.shop
        shop.set_price(one.ledger, SKU, supplier="bob", unit_cost=1, currency="GBP", set_by="lucy")
        order = propose(one.ledger, Shifty(one.near), claim=one.claim, sku=SKU, quantity=6)
        self.assertEqual((order.target, order.order and order.order.amount), ("bob", 6))
        self.assertIn('"supplier":"bob"', order.payload)
        sent = one.unknown(2)
        self.refuses(one, WrongReceiver, inquire, one.ledger, sent.operation_id, Shifty(one.near))


class Shifty:
    """Gives another identity each time it is asked."""

    def __init__(self, inner: Near) -> None:
        self._inner, self._names = inner, iter(("bob", "lucy-local", "lucy-local", "lucy-local"))
        self.epoch, self.policy, self.limit_s = inner.epoch, inner.policy, inner.limit_s
        self.send, self.snapshot, self.lookup = inner.send, inner.snapshot, inner.lookup

    @property
    def identity(self) -> str:
        return next(self._names)


class Deliveries(ShopCase):
    """Accepted is not delivered."""

    def test_a_receipt_moves_no_stock_and_a_delivery_moves_nothing_else(self) -> None:
        """O17, O14: two tubs until six arrive."""
        one = self.shop
        order = one.unknown()
        one.inquire(order)
        self.assertEqual(shop.on_hand(one.ledger, SKU), 2)
        before = one.look(order)
        self.assertEqual(one.deliver(order, 6), 8)
        assert before.order is not None
        arrived = replace(before, order=replace(before.order, delivered=6))
        self.assertEqual(one.look(order), arrived)
        self.assertEqual(one.money(), (0, 1500, 0))

    def test_a_delivery_counts_once_for_its_reference(self) -> None:
        """O17: again the same changes nothing; another one under its name is refused."""
        one = self.shop
        order = one.unknown()
        self.assertEqual(one.deliver(order, 2), 4)
        before = one.written()
        self.assertEqual(one.deliver(order, 2), 4)
        self.assertEqual(one.written(), before)
        self.refuses(one, DeliveryRefused, one.deliver, order, 3)
        self.refuses(one, DeliveryRefused, one.deliver, order, 2, actor="pat")
        one.price("SKU-LEMON", 1)
        lemon = one.unknown(1, sku="SKU-LEMON")
        self.refuses(one, DeliveryRefused, one.deliver, lemon, 2)
        self.assertEqual(one.deliver(order, 2, reference="note-2"), 6)
        one.deliver(lemon, 1, reference="note-3")
        self.assertEqual(one.deliver(order, 2, reference="note-4"), 8)

    def test_no_more_arrives_than_was_ordered(self) -> None:
        """O17: over all its deliveries."""
        one = self.shop
        order = one.unknown()
        self.refuses(one, DeliveryRefused, one.deliver, order, 7)
        one.deliver(order, 4)
        self.refuses(one, DeliveryRefused, one.deliver, order, 3, reference="note-2")
        self.assertEqual(one.deliver(order, 2, reference="note-2"), 8)
        self.refuses(one, DeliveryRefused, one.deliver, order, 1, reference="note-3")

    def test_goods_of_an_order_that_cannot_have_happened_are_refused(self) -> None:
        """O17: a draft, a revoked and a rejected one; an uncertain one stays uncertain."""
        one = self.shop
        order = one.approved()
        self.refuses(one, DeliveryRefused, one.deliver, order, 1)
        one.near.faults = [declined]
        one.dispatch(order)
        self.refuses(one, DeliveryRefused, one.deliver, order, 1)
        draft = one.propose(1)
        one.revoke(draft)
        self.refuses(one, DeliveryRefused, one.deliver, draft, 1)
        later = one.unknown(2)
        one.deliver(later, 1)
        self.assertEqual((one.state(later), one.money()), ("unknown", (500, 0, 0)))

    def test_a_paused_store_takes_no_delivery(self) -> None:
        """O17, O19: it may be older than the shelf."""
        one = self.shop
        order = one.unknown()
        one.by_hand("UPDATE store SET paused_why = 'a test'")
        self.refuses(one, Paused, one.deliver, order, 1)

    def test_what_was_never_counted_has_no_figure(self) -> None:
        """O17: none, and not nought; a second count that differs is refused."""
        one = self.shop
        one.price("SKU-LEMON")
        order = one.unknown(1, sku="SKU-LEMON")
        self.assertIsNone(one.deliver(order, 1))
        self.refuses(one, Malformed, shop.count_stock, one.ledger, SKU, 3)
        shop.count_stock(one.ledger, SKU, 2)
        self.assertEqual(shop.on_hand(one.ledger, SKU), 2)


class WorkAndLeases(ShopCase):
    """A claim is a token: no name and no clock gives one back."""

    def test_a_worker_that_stalled_is_fenced_from_what_its_successor_does(self) -> None:
        """C02, C39: the same name; also once the clock stepped back to its lease."""
        one = self.shop
        order, old = one.approved(), one.claim
        one.clock.now_ms = old.expires_ms
        one.reclaim()
        for back_ms in (0, LEASE_MS // 2):
            one.clock.now_ms -= back_ms
            self.stale_everywhere(one, order, old)
        one.clock.now_ms = old.expires_ms
        self.assertEqual(one.claim.generation, 2)
        self.assertIs(one.dispatch(order).outcome, State.CONFIRMED)

    def stale_everywhere(self, one: Shop, order: Operation, old: Claim) -> None:
        """Nothing is done under an old claim, and the new one ends when it did."""
        self.refuses(one, StaleClaim, work.extend, one.ledger, old)
        self.refuses(one, StaleClaim, work.release, one.ledger, old)
        self.refuses(one, StaleClaim, one.dispatch, order, claim=old)
        self.refuses(one, StaleClaim, one.propose, claim=old)

    def test_a_stale_claim_sends_nothing_again(self) -> None:
        """C02, O7: the resend is fenced as the send is."""
        one = self.shop
        order, old = one.unknown(fault=busy), one.claim
        one.inquire(order)
        one.clock.now_ms = old.expires_ms
        self.refuses(one, StaleClaim, one.resend, order)
        self.refuses(one, StaleClaim, one.resend, order, claim=None)
        one.reclaim()
        self.refuses(one, StaleClaim, one.resend, order, claim=old)
        self.assertIs(one.resend(order).outcome, State.CONFIRMED)

    def test_a_claim_is_live_while_now_is_before_its_end(self) -> None:
        """C02: to the millisecond; a live one is nobody else's, nor its owner's again."""
        one = self.shop
        one.clock.now_ms = one.claim.expires_ms - 1
        self.refuses(one, AlreadyClaimed, one.reclaim)
        one.propose()
        one.clock.now_ms += 1
        self.refuses(one, StaleClaim, one.propose, 5)
        one.reclaim()
        self.assertEqual(one.claim.generation, 2)

    def test_extending_moves_the_end_and_keeps_the_token(self) -> None:
        """C02, C39: work that outlives its lease is extended before it ends."""
        one = self.shop
        one.clock.now_ms = one.claim.expires_ms - 1
        longer = work.extend(one.ledger, one.claim)
        ends_ms = one.clock.now_ms + LEASE_MS
        self.assertEqual(longer, replace(one.claim, expires_ms=ends_ms))
        one.clock.now_ms = ends_ms - 1
        one.propose()
        one.clock.now_ms += 1
        self.refuses(one, StaleClaim, work.extend, one.ledger, one.claim)
        self.refuses(one, StaleClaim, work.release, one.ledger, one.claim)

    def test_what_is_released_can_be_claimed_and_is_not_released_again(self) -> None:
        """C02: and it is never left claimed without an end."""
        one = self.shop
        old = one.claim
        work.release(one.ledger, old)
        self.refuses(one, StaleClaim, work.release, one.ledger, old)
        one.reclaim()
        self.assertNotEqual(one.claim.token, old.token)

    def test_a_claim_that_ends_later_than_any_lease_could_is_claimable(self) -> None:
        """C02: a clock once jumped ahead; the old claim does not hold either."""
        one = self.shop
        now_ms = one.clock.now_ms
        one.clock.now_ms += YEAR_MS
        ahead = one.claimed("evening-work", lease_ms=LONGEST_LEASE_MS)
        one.clock.now_ms = now_ms
        self.refuses(one, StaleClaim, one.propose, claim=ahead)
        again = work.claim(one.ledger, "evening-work", owner="host-1")
        self.assertEqual(again.generation, 2)
        one.propose(claim=again)
        longest = one.claimed("late-work", lease_ms=LONGEST_LEASE_MS)
        one.propose(claim=longest)

    def test_a_claim_of_another_file_or_with_a_guessed_token_is_stale(self) -> None:
        """C02: whatever else it has right."""
        one, other = self.shop, self.open("other")
        self.refuses(one, StaleClaim, one.propose, claim=other.claim)
        self.refuses(one, StaleClaim, one.propose, claim=replace(one.claim, token="0" * 32))
        self.refuses(one, StaleClaim, one.propose, claim=replace(one.claim, item="nothing"))

    def test_a_claim_that_says_that_it_ends_later_does_not(self) -> None:
        """C02: the file says when it ends, and not the worker."""
        one = self.shop
        late = replace(one.claim, expires_ms=one.claim.expires_ms + DAY_MS)
        one.clock.now_ms = one.claim.expires_ms
        self.refuses(one, StaleClaim, one.propose, claim=late)

    def test_recovery_beside_a_running_send_only_asks(self) -> None:
        """C39: a second opening of the file sends nothing and closes nothing."""
        one, seen = self.shop, []
        order = one.approved()

        def beside(near: Near, query: Query) -> Receipt | None:
            with one.scene.ledger(clock=one.clock) as second:
                for call in (dispatch, resend):
                    with self.assertRaises(ReconcileError) as caught:
                        call(second, order.operation_id, near, claim=one.claim)
                    seen.append(type(caught.exception).__name__)
                found = recovery.compare(second, near)
                seen.extend(finding.diagnosis.value for finding in found)
            return near.make(query)

        one.near.faults = [beside]
        self.assertIs(one.dispatch(order).outcome, State.CONFIRMED)
        self.assertEqual(seen, ["AlreadyAnnounced", "ResendRefused", "fault_before_receiver"])
        self.assertEqual(one.near.heard, [("send", order.operation_id)])

    def test_a_clock_at_the_end_of_its_numbers_is_refused_by_name(self) -> None:
        """O5, C17: what no file could hold is Malformed, and nothing is written."""
        one = self.shop
        one.clock.now_ms = 2**63 - 10
        work.enqueue(one.ledger, "late-work")
        self.refuses(one, Malformed, work.claim, one.ledger, "late-work", owner="w")

    def test_a_claim_held_for_a_block_is_given_back_whatever_happens_in_it(self) -> None:
        """O7: also when it ended meanwhile, or the block raised."""
        one = self.shop
        work.enqueue(one.ledger, "night-work")
        with (
            self.assertRaises(KeyboardInterrupt),
            work.holding(one.ledger, "night-work", owner="w"),
        ):
            raise KeyboardInterrupt
        with work.holding(one.ledger, "night-work", owner="w", lease_ms=1000):
            one.clock.now_ms += 1000
            again = work.claim(one.ledger, "night-work", owner="v")
        work.release(one.ledger, again)

    def test_work_has_its_conditions(self) -> None:
        """C02: unknown and cancelled work is not claimed, nor for nothing or for two days."""
        one = self.shop
        self.refuses(one, UnknownWork, work.claim, one.ledger, "nothing", owner="host-1")
        self.refuses(one, UnknownWork, work.cancel, one.ledger, "nothing", actor="a", reason="b")
        work.enqueue(one.ledger, "evening-work")
        for lease_ms in (0, -1, True, LONGEST_LEASE_MS + 1):
            self.refuses(one, Malformed, one.claimed, "evening-work", lease_ms=lease_ms)
        one.cancel("evening-work")
        self.refuses(one, WorkCancelled, one.claimed, "evening-work")

    def test_cancelling_withdraws_drafts_and_keeps_what_may_have_left(self) -> None:
        """O6, O11: again it changes nothing."""
        one = self.shop
        one.price("SKU-LEMON")
        sent, draft = one.unknown(2), one.approved(1, sku="SKU-LEMON")
        self.assertEqual(one.money(), (750, 0, 0))
        one.cancel()
        self.assertEqual((one.state(sent), one.state(draft)), ("unknown", "revoked"))
        self.assertEqual(one.money(), (500, 0, 0))
        before = one.written()
        one.cancel()
        self.assertEqual(one.written(), before)

    def test_a_paused_store_cancels_and_revokes_nothing(self) -> None:
        """O19: with a draft, with an uncertain order, and without any."""
        one = self.shop
        work.enqueue(one.ledger, "evening-work")
        one.price("SKU-LEMON", 1)
        sent = one.unknown(sku="SKU-LEMON")
        draft = one.approved()
        one.by_hand("UPDATE store SET paused_why = 'a test'")
        for work_id in (WORK, "evening-work"):
            self.refuses(one, Paused, one.cancel, work_id)
        for order in (draft, sent):
            self.refuses(one, Paused, one.revoke, order)


class TwoFilesTogether(ShopCase):
    """What the ledger and the account say, laid side by side."""

    def findings(self, one: Shop) -> list[tuple[str, str]]:
        return [
            (finding.diagnosis.value, finding.operation_id)
            for finding in recovery.compare(one.ledger, one.near)
        ]

    def test_files_that_agree_have_no_findings(self) -> None:
        """O16: drafts, a confirmed, a rejected and a revoked order; it only asks for the list."""
        one = self.shop
        for at, faults in enumerate(([], [declined], [refused])):
            claim = one.claimed(f"work-{at}")
            order = one.approved(1, claim=claim)
            one.near.faults = list(faults)
            one.dispatch(order, claim=claim)
        one.revoke(one.propose(1))
        one.propose(2)
        before = oracle.dump(one.scene.sender)
        asked = oracle.contacts(one.scene.receiver_file)
        self.assertEqual(self.findings(one), [])
        self.assertEqual(oracle.dump(one.scene.sender), before)
        self.assertEqual(oracle.contacts(one.scene.receiver_file), [*asked, ("list", "")])

    def test_a_lost_receipt_and_a_fault_before_the_supplier_are_told_apart(self) -> None:
        """O16: by whether a row stands in the account."""
        one = self.shop
        one.price("SKU-LEMON")
        first = one.unknown(2)
        second = one.unknown(2, fault=busy, sku="SKU-LEMON")
        found = self.findings(one)
        self.assertEqual(
            found,
            [
                ("lost_receipt", first.operation_id),
                ("fault_before_receiver", second.operation_id),
            ],
        )

    def test_a_confirmed_order_without_a_row_shows_that_the_evidence_path_is_wrong(self) -> None:
        """O16: by a receipt that a person handed in."""
        one = self.shop
        one.scene.unsafe = True
        order = one.unknown(fault=busy)
        one.resolve(order)
        self.assertEqual(self.findings(one), [("confirmed_without_effect", order.operation_id)])

    def test_a_row_that_nobody_announced_is_found(self) -> None:
        """O16: of a stranger, and of a draft of ours."""
        one = self.shop
        one.scene.unsafe = True
        draft = one.approved()
        one.near.make(draft.query)
        one.near.make(replace(draft.query, operation_id="stranger"))
        found = self.findings(one)
        self.assertEqual(
            sorted(found),
            sorted(("effect_unannounced", i) for i in (draft.operation_id, "stranger")),
        )
        strangers = recovery.strangers(one.ledger, one.near)
        self.assertEqual(
            {effect.operation_id for effect in strangers}, {draft.operation_id, "stranger"}
        )

    def test_an_order_that_goes_through_during_the_reading_is_no_finding(self) -> None:
        """O16: neither one that the account shows already, nor one that it shows no more."""
        one = self.shop
        for at, sends_first in enumerate((True, False)):
            claim = one.claimed(f"work-{at}")
            order = one.approved(1, claim=claim)
            near = ReadsWhile(one, sends_first, partial(one.dispatch, order, claim=claim))
            self.assertEqual(recovery.compare(one.ledger, near), [])
            self.assertEqual(one.state(order), "confirmed")

    def test_every_state_and_every_account_has_its_diagnosis(self) -> None:
        """O16: the whole table, by the rule alone."""
        sent = replace(self.shop.propose(), attempts=1)
        right = Effect(
            effect_id="e1",
            operation_id=sent.operation_id,
            kind=sent.kind,
            payload=sent.payload,
            compensates=None,
        )
        differs = replace(right, payload="{}")
        d = Diagnosis
        table: dict[State, tuple[Diagnosis | None, ...]] = {
            # no effect, the one asked for, one that differs, two
            State.UNKNOWN: (d.FAULT_BEFORE_RECEIVER, d.LOST_RECEIPT, d.EFFECT_DIFFERS),
            State.PENDING: (d.FAULT_BEFORE_RECEIVER, d.LOST_RECEIPT, d.EFFECT_DIFFERS),
            State.PARTIAL: (d.FAULT_BEFORE_RECEIVER, d.LOST_RECEIPT, d.EFFECT_DIFFERS),
            State.CONFLICT: (d.FAULT_BEFORE_RECEIVER, d.LOST_RECEIPT, d.EFFECT_DIFFERS),
            State.CONFIRMED: (d.CONFIRMED_WITHOUT_EFFECT, None, d.EFFECT_DIFFERS),
            State.REJECTED: (None, d.EFFECT_AGAINST_FINAL, d.EFFECT_AGAINST_FINAL),
            State.NOT_APPLIED: (None, d.EFFECT_AGAINST_FINAL, d.EFFECT_AGAINST_FINAL),
            State.FAILED: (None, None, d.EFFECT_DIFFERS),
            State.WRITTEN_OFF: (None, None, d.EFFECT_DIFFERS),
        }
        for state, expected in table.items():
            accounts: tuple[list[Effect], ...] = ([], [right], [differs], [right, right])
            operation = replace(sent, state=state, effect_id="e1")
            wanted = (*expected, d.MORE_THAN_ONE_EFFECT)
            for effects, diagnosis in zip(accounts, wanted, strict=True):
                with self.subTest(state=state, effects=len(effects)):
                    found = [finding.diagnosis for finding in diagnose([operation], effects)]
                    self.assertEqual(found, [] if diagnosis is None else [diagnosis])
        for state in (State.PREPARED, State.REVOKED):
            draft = replace(sent, state=state, attempts=1, not_sent=1)
            self.assertEqual(diagnose([draft], []), [])
            (finding,) = diagnose([draft], [right])
            self.assertIs(finding.diagnosis, d.EFFECT_UNANNOUNCED)

    def test_every_diagnosis_has_four_answers_and_none_says_to_order_again(self) -> None:
        """O16: what is known, what is not, what is safe, and what to ask."""
        for diagnosis in Diagnosis:
            for said in diagnosis.advice:
                self.assertTrue(said.endswith((".", "?")), said)


# --- helpers ------------------------------------------------------------------------------------


class ReadsWhile(Near):
    """Something happens while its account is read: before the rows are looked at, or after."""

    def __init__(self, one: Shop, first: bool, happens: Callable[[], object]) -> None:
        super().__init__(one.scene.receiver_file)
        self.first, self.happens = first, happens

    def listing(self) -> tuple[Effect, ...]:
        if self.first:
            self.happens()
        found = super().listing()
        if not self.first:
            self.happens()
        return found


Spoil = Callable[[Shop, Operation], "dict[str, Any] | None"]


def spoils() -> Iterator[tuple[str, type[ReconcileError], Spoil]]:
    """Each condition of an admission: its name, its refusal, and how it is taken away."""
    yield "no claim", StaleClaim, lambda one, order: {"claim": None}
    yield "released", StaleClaim, lambda one, order: work.release(one.ledger, one.claim)
    yield "lease ended", StaleClaim, lambda one, order: pass_time(one, LEASE_MS)
    yield "next generation", StaleClaim, _next_generation
    yield (
        "restored since",
        StaleClaim,
        lambda one, order: one.by_hand("UPDATE store SET incarnation = incarnation + 1"),
    )
    yield "other work", StaleClaim, lambda one, order: {"claim": one.claimed("evening-work")}
    yield "other supplier", WrongReceiver, lambda one, order: {"near": one.supplier(identity="b")}
    yield "other epoch", WrongReceiver, lambda one, order: {"near": one.supplier(epoch=2)}
    yield "approval ended", ApprovalExpired, _approval_ends
    yield "clock stepped back", ApprovalExpired, lambda one, order: pass_time(one, -1)
    yield "revoked", AlreadyAnnounced, lambda one, order: ignore(one.revoke(order))
    yield "unknown basis", UnknownBasis, _regrant(Basis.UNKNOWN)
    yield "allowance sunk", AutomaticRefused, _allowance_sinks
    yield (
        "actor off the list",
        NotListed,
        lambda one, order: shop.list_approver(one.ledger, "lucy", listed=False),
    )
    yield "ceiling sunk", CeilingExceeded, lambda one, order: one.budget(1499)
    yield "cancelled", AlreadyAnnounced, lambda one, order: one.cancel()
    yield "lease too short", LeaseTooShort, lambda one, order: pass_time(one, LEASE_MS - 1000)
    yield "no limit of time", Malformed, _no_limit
    yield "twin", EquivalentUnresolved, _twin
    yield "paused", Paused, lambda one, order: one.by_hand("UPDATE store SET paused_why = 'test'")


def _next_generation(one: Shop, order: Operation) -> dict[str, Any]:
    old = one.claim
    pass_time(one, LEASE_MS)
    one.reclaim()
    return {"claim": old}


def _approval_ends(one: Shop, order: Operation) -> None:
    pass_time(one, HOUR_MS)
    one.reclaim()


def _regrant(basis: Basis) -> Spoil:
    def again(one: Shop, order: Operation) -> None:
        if one.look(order).state is State.PREPARED:
            one.approve(order, basis=basis)

    return again


def _allowance_sinks(one: Shop, order: Operation) -> None:
    one.budget(2000, automatic=1500)
    _regrant(Basis.AUTOMATIC)(one, order)
    one.budget(2000, automatic=1499)


def _no_limit(one: Shop, order: Operation) -> dict[str, Any]:
    endless = one.supplier()
    endless.limit_s = None
    return {"near": endless}


def _twin(one: Shop, order: Operation) -> None:
    if order.state is State.PREPARED:
        one.unknown(1, claim=one.claimed("evening-work"))


def ends_by(kind: type[BaseException]) -> Callable[[Near, Query], NoReturn]:
    """The order is done, and an interrupt comes before its reply."""

    def fault(near: Near, query: Query) -> NoReturn:
        near.make(query)
        raise kind

    return fault


def meanwhile_refused(happens: Callable[[], object]) -> Callable[[Near, Query], Receipt | None]:
    """Something happens while the connection is refused."""

    def fault(near: Near, query: Query) -> Receipt | None:
        happens()
        return refused(near, query)

    return fault


def pass_time(one: Shop, ms: int) -> None:
    """Move the clock, in either direction."""
    one.clock.now_ms += ms


def ignore(_: object) -> None:
    """For what is done only to be done."""
