"""Asking first, sending the same again, histories of attempts, and what ends the question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

from experiments.harness import oracle
from experiments.harness.supplier import BLIND, IDENTITY, KEYED
from experiments.tests.shop import (
    DAY_MS,
    HOUR_MS,
    LAGS,
    LEASE_MS,
    YEAR_MS,
    Fault,
    Near,
    Shop,
    ShopCase,
    answer,
    busy,
    declined,
    lost,
    refused,
    turned_away,
)
from reconcile import (
    Action,
    EffectPolicy,
    Operation,
    Query,
    Receipt,
    ReconcileError,
    State,
    Transport,
    UnavailableReceiver,
    close,
    dispatch,
    inquire,
    prepare,
    resend,
)
from reconcile.flows import shop
from reconcile.rules.actions import DECISIONS
from reconcile.rules.errors import (
    ContradictingReceipt,
    EquivalentUnresolved,
    Inconclusive,
    Malformed,
    NoGuarantee,
    NoReply,
    Paused,
    ResendRefused,
    StaleClaim,
    UnknownOperation,
    WrongQuestion,
    WrongReceiver,
)
from reconcile.rules.order import Basis
from reconcile.rules.order_errors import (
    ApprovalExpired,
    ApprovalRevoked,
    AutomaticRefused,
    CeilingExceeded,
    LeaseTooShort,
    NotAdmitted,
    NotApprovable,
    NotListed,
    UnknownBasis,
    WorkCancelled,
    WrongDigest,
)

TICK_MS = 1000
CLOSES = replace(KEYED, name="keyed, and closes", can_close=True)
NO_RECEIPTS = replace(KEYED, name="keyed, keeps no receipts", stored_receipt=False)


def remembers(ticks: int | None, *, margin: int = 0) -> EffectPolicy:
    """A keyed supplier that remembers an identity for so many ticks."""
    return replace(
        KEYED,
        name=f"remembers {ticks} ticks",
        identity_retention_ms=None if ticks is None else ticks * TICK_MS,
        identity_margin_ms=margin * TICK_MS,
    )


class AskFirst(ShopCase):
    """Lookup, and only then the same identity again."""

    def test_an_uncertain_order_is_not_sent_again_before_its_receipt_was_asked_for(self) -> None:
        """O9: after each sending anew; and then it is the same identity and the same bytes."""
        one = self.shop
        order = one.unknown(fault=busy)
        for _ in range(3):
            self.refuses(one, ResendRefused, one.resend, order)
            self.assertNotIn(Action.RESEND, one.offers(order))
            one.inquire(order)
            self.assertIn(Action.RESEND, one.offers(order))
            one.near.faults = [busy]
            self.assertIs(one.resend(order).outcome, State.UNKNOWN)
        one.inquire(order)
        self.assertIs(one.resend(order).outcome, State.CONFIRMED)
        self.assertEqual(one.effects(), {order.operation_id: 1})
        self.assertEqual({name for _, name in one.near.heard}, {order.operation_id})
        self.assertEqual((one.look(order).attempts, one.money()), (5, (0, 1500, 0)))

    def test_a_lookup_that_gave_no_answer_does_not_count_as_asked(self) -> None:
        """O9: an error is no "not found"."""
        one = self.shop
        order = one.unknown(fault=busy)
        for error in (NoReply("lucy-local", "stalled"), TimeoutError(), OSError("reset")):
            silent = Silent(one, error)
            with self.assertRaises(NoReply):
                one.inquire(order, near=silent)
            self.refuses(one, ResendRefused, one.resend, order)
        self.assertEqual(oracle.rows(one.scene.sender, "SELECT * FROM lookup"), [])

    def test_a_lookup_made_before_the_latest_sending_does_not_count(self) -> None:
        """O9: also if its answer comes after it."""
        one = self.shop
        order = one.unknown(fault=busy)
        one.inquire(order)
        slow = Slow(one, lambda: ignore(one.resend(order)))
        one.near.faults = [busy]
        one.inquire(order, near=slow)
        self.assertEqual(one.look(order).attempts, 2)
        self.refuses(one, ResendRefused, one.resend, order)

    def test_a_lookup_that_finds_the_receipt_settles_and_nothing_is_sent_again(self) -> None:
        """O9, O8, O14: one order, one send, one settlement; asked again it is the stored one."""
        one = self.shop
        order = one.unknown()
        one.reopen()
        done = one.inquire(order)
        self.assertEqual((done.state, one.money()), (State.CONFIRMED, (0, 1500, 0)))
        self.refuses(one, ResendRefused, one.resend, order)
        again = one.inquire(order)
        self.assertEqual(again, done)
        for table, count in (("receipt", 1), ("decision", 2), ("attempt", 1), ("incident", 0)):
            rows = oracle.rows(one.scene.sender, f"SELECT count(*) FROM {table}")
            self.assertEqual(rows, [(count,)], table)

    def test_not_found_never_ends_the_question(self) -> None:
        """O8, O9: however often it is said, and however old the question is."""
        one = self.shop
        order = one.unknown(fault=busy)
        for _ in range(5):
            one.clock.now_ms += YEAR_MS
            self.assertIs(one.inquire(order).state, State.UNKNOWN)
        self.assertEqual(one.money(), (1500, 0, 0))

    def test_neither_lookup_nor_send_reaches_another_supplier(self) -> None:
        """O9: whose identity, or epoch, is not the order's."""
        one = self.shop
        order = one.unknown(fault=busy)
        one.inquire(order)
        for changed in ({"identity": "another"}, {"epoch": 2}):
            other = one.supplier(**changed)
            for call in (one.inquire, one.resend):
                self.refuses(one, WrongReceiver, call, order, near=other)

    def test_from_a_resend_that_passes_one_condition_is_taken_at_a_time(self) -> None:
        """O9, O7, A2: the guarantee, then the authority; each with its own refusal."""
        for name, refusal, spoil in spoils():
            with self.subTest(name):
                one = self.open(name)
                order = one.unknown(fault=busy)
                one.inquire(order)
                changed = spoil(one, order)
                self.refuses(one, refusal, one.resend, order, **(changed or {}))
                if changed is None and refusal not in (StaleClaim, LeaseTooShort):
                    self.assertNotIn(Action.RESEND, one.offers(order))  # it sees no claim
        one = self.open("the case that passes")
        order = one.unknown(fault=busy)
        one.inquire(order)
        self.assertIs(one.resend(order).outcome, State.CONFIRMED)

    def test_only_what_is_unknown_is_sent_again(self) -> None:
        """O9: no draft, none that is pending, and nothing that is final."""
        one = self.shop
        draft = one.approved(1)
        one.inquire(draft)
        self.refuses(one, ResendRefused, one.resend, draft)
        for status in ("pending", "partial", "rejected", "failed"):
            with self.subTest(status):
                one = self.open(status)
                order = one.unknown(fault=busy)
                one.near.says = answer(order.query, status=status, effect_id=None)
                one.inquire(order)
                self.refuses(one, ResendRefused, one.resend, order)
                self.assertNotIn(Action.RESEND, one.offers(order))

    def test_the_pinned_and_the_present_guarantee_are_both_needed(self) -> None:
        """O9: whichever of them was withdrawn, or never given."""
        one = self.shop
        order = one.unknown(fault=busy)
        one.inquire(order)
        self.refuses(one, NoGuarantee, one.resend, order, near=one.supplier(policy=BLIND))
        shorter = one.supplier(policy=remembers(0))
        self.refuses(one, ResendRefused, one.resend, order, near=shorter)
        blind = self.open("pinned blind", policy=BLIND)
        order = blind.unknown(fault=busy)
        keyed = blind.supplier(policy=KEYED)
        blind.inquire(order, near=keyed)
        self.refuses(blind, NoGuarantee, blind.resend, order, near=keyed)

    def test_no_resend_after_a_close_was_asked_for(self) -> None:
        """O9: whether or not its answer came."""
        for reply_is_lost in (False, True):
            with self.subTest(reply_is_lost=reply_is_lost):
                one = self.open(f"closes {reply_is_lost}", policy=CLOSES)
                order = one.unknown(fault=busy)
                one.inquire(order)
                self.assertIn(Action.RESEND, one.offers(order))
                near = Mute(one, policy=CLOSES) if reply_is_lost else one.near
                words = {"purpose": "find out", "authorized_by": "ada"}
                try:
                    close(one.ledger, order.operation_id, near, **words)
                    self.assertFalse(reply_is_lost)
                except NoReply:
                    self.assertTrue(reply_is_lost)
                one.inquire(order)
                self.refuses(one, ResendRefused, one.resend, order)
                self.assertNotIn(Action.RESEND, one.offers(order))

    def test_a_charge_without_money_is_sent_again_by_the_same_rule(self) -> None:
        """O9: the guarantee is asked for, and no authority; a second effect is never made."""
        one = self.shop
        one.near.faults = [lost]
        charge = prepare(
            one.ledger,
            one.near,
            work_id="w",
            kind="charge",
            payload={"pence": 5},
            subject="invoice-1",
        )
        dispatch(one.ledger, charge.operation_id, one.near)
        words = (one.ledger, charge.operation_id, one.near)
        self.refuses(one, ResendRefused, resend, *words)
        one.near.terms = LAGS
        inquire(*words)
        one.near.terms = {}
        self.assertIn(Action.RESEND, one.offers(charge))
        self.assertIs(resend(*words).outcome, State.CONFIRMED)
        self.assertEqual(one.effects(), {charge.operation_id: 1})

    def test_a_paused_store_sends_nothing_again_with_money_or_without(self) -> None:
        """O9, O19: also after it asked in vain."""
        one = self.shop
        one.near.faults = [busy]
        words: dict[str, Any] = {"kind": "charge", "payload": {}, "subject": "invoice-1"}
        charge = prepare(one.ledger, one.near, work_id="w", **words)
        dispatch(one.ledger, charge.operation_id, one.near)
        one.by_hand("UPDATE store SET paused_why = 'a test'")
        one.inquire(charge)
        self.refuses(one, Paused, resend, one.ledger, charge.operation_id, one.near)
        self.assertNotIn(Action.RESEND, one.offers(charge))

    def test_what_keeps_no_receipts_cannot_be_asked(self) -> None:
        """O9: nobody is contacted."""
        one = self.shop
        order = one.unknown()
        deaf = UnavailableReceiver(IDENTITY)
        self.refuses(one, Malformed, inquire, one.ledger, order.operation_id, deaf)
        self.refuses(one, UnknownOperation, inquire, one.ledger, "0" * 32, one.near)


class MemoryOfKeys(ShopCase):
    """A resend is offered only while the identity is provably remembered."""

    def tries(self, one: Shop, order: Operation) -> bool:
        """Ask, and say whether a resend passes; what is offered agrees, and one effect stands."""
        if one.look(order).asked_after < one.look(order).attempts:
            one.near.terms = LAGS
            one.inquire(order)
            one.near.terms = {}
        offered = Action.RESEND in one.offers(order)
        if not offered:
            self.refuses(one, ResendRefused, one.resend, order)
        else:
            one.near.faults = [busy]
            one.resend(order)
        self.assertEqual(one.look(order).operation_id, order.operation_id)
        self.assertLessEqual(one.effects().get(order.operation_id, 0), 1)
        return offered

    def open(self, name: str, *, policy: EffectPolicy = KEYED) -> Shop:
        one = super().open(name, policy=policy)
        one.near.limit_s = 0.001  # the shortest call, so that the edges are those of the memory
        return one

    def at(self, one: Shop, born_ms: int, ticks: float) -> None:
        one.clock.now_ms = born_ms + int(ticks * TICK_MS)

    def test_it_is_offered_inside_the_window_and_never_outside_it(self) -> None:
        """C26, O18: at ticks 9, 10 and 11, to the millisecond, and after opening again."""
        for margin, last in ((0, 10), (1, 9), (2, 8), (10, 0), (11, 0)):
            with self.subTest(margin=margin):
                one = self.open(f"margin {margin}", policy=remembers(10, margin=margin))
                order, born_ms = one.unknown(), one.clock.now_ms
                for ticks in (8, 9, 10, 11, last):
                    self.at(one, born_ms, ticks)
                    one.reopen()
                    self.assertIs(self.tries(one, order), ticks < last, ticks)
                if last:
                    one.clock.now_ms -= 1
                    self.assertTrue(self.tries(one, order))

    def test_afterwards_it_may_only_be_asked_about_and_called_out(self) -> None:
        """C26: and the receipt that comes late still settles."""
        one = self.open("after", policy=remembers(10))
        order = one.unknown()
        one.clock.now_ms += 10 * TICK_MS
        self.assertEqual(one.offers(order), (Action.QUERY, Action.ESCALATE))
        self.assertIs(one.inquire(order).state, State.CONFIRMED)

    def test_without_a_declared_memory_it_is_never_offered(self) -> None:
        """C26, O18: not even at once."""
        one = self.open("undeclared", policy=remembers(None))
        self.assertFalse(self.tries(one, one.unknown()))

    def test_without_a_declared_scope_of_identities_it_is_never_offered(self) -> None:
        """O18: a memory of what nobody keeps apart is no memory."""
        one = self.open("no scope", policy=replace(KEYED, identity_scope="none"))
        order = one.unknown()
        one.inquire(order)
        self.assertNotIn(Action.RESEND, one.offers(order))
        self.refuses(one, NoGuarantee, one.resend, order)

    def test_it_counts_from_the_first_send_and_not_from_the_latest(self) -> None:
        """C26, O18: the first at tick 0, the latest at tick 8."""
        one = self.open("first", policy=remembers(10))
        order, born_ms = one.unknown(), one.clock.now_ms
        self.at(one, born_ms, 8)
        self.assertTrue(self.tries(one, order))
        self.at(one, born_ms, 9)
        self.assertTrue(self.tries(one, order))
        for ticks in (10, 11, 17):
            self.at(one, born_ms, ticks)
            self.assertFalse(self.tries(one, order))
        self.assertEqual(one.look(order).first_sent_ms, born_ms)

    def test_a_slow_clock_is_inside_the_declared_margin(self) -> None:
        """C26: two ticks slow since the first send, and the supplier forgets at tick 10."""
        one = self.open("slow", policy=remembers(10, margin=2))
        order, born_ms = one.unknown(), one.clock.now_ms
        one.near.clock = lambda: one.clock.now_ms + 2 * TICK_MS
        one.near.terms = LAGS
        one.inquire(order)
        one.near.terms = {"retention_ms": 10 * TICK_MS}
        self.at(one, born_ms, 8)
        self.refuses(one, ResendRefused, one.resend, order)
        one.clock.now_ms -= 1
        self.assertIs(one.resend(order).outcome, State.CONFIRMED)
        self.assertEqual(one.effects(), {order.operation_id: 1})

    def test_a_call_that_could_outlast_the_memory_is_refused(self) -> None:
        """O18, C26: it must have ended inside the window, by the limit of its receiver."""
        one = self.open("long call", policy=remembers(10))
        order, born_ms = one.unknown(), one.clock.now_ms
        one.near.terms = LAGS
        self.at(one, born_ms, 8)
        one.inquire(order)
        one.near.limit_s = 2.001
        self.refuses(one, ResendRefused, one.resend, order)
        one.near.limit_s = 2.0
        self.assertIs(one.resend(order).outcome, State.CONFIRMED)

    def test_a_clock_that_stepped_back_shows_nothing(self) -> None:
        """C26: before the first send nothing can be proved; nor after the latest one."""
        one = self.open("back", policy=remembers(10))
        order, born_ms = one.unknown(), one.clock.now_ms
        self.at(one, born_ms, -1)
        self.assertFalse(self.tries(one, order))
        self.at(one, born_ms, 5)
        self.assertTrue(self.tries(one, order))

    def test_the_memory_of_today_counts_as_well_as_the_pinned_one(self) -> None:
        """O18: the shorter of the two; a longer one declared later gives nothing."""
        one = self.open("today", policy=remembers(10))
        order, born_ms = one.unknown(fault=busy), one.clock.now_ms
        one.inquire(order)
        self.at(one, born_ms, 5)
        shorter = one.supplier(policy=remembers(5))
        self.refuses(one, ResendRefused, one.resend, order, near=shorter)
        margin = one.supplier(policy=remembers(10, margin=5))
        self.refuses(one, ResendRefused, one.resend, order, near=margin)
        self.at(one, born_ms, 10)
        longer = one.supplier(policy=remembers(100))
        self.refuses(one, ResendRefused, one.resend, order, near=longer)


class HistoriesOfAttempts(ShopCase):
    """Three attempts in every order: what was lost stays unknown until evidence comes."""

    def histories(
        self, one: Shop, outcomes: tuple[Fault, ...], told: Callable[[list[Fault]], State]
    ) -> None:
        """Play all 64, each in a work item of its own; after each attempt the state is as told."""
        one.budget(64 * 1500)
        for at, history in enumerate(product(outcomes, repeat=3)):
            name = "-".join(fault.__name__ for fault in history)
            with self.subTest(name):
                one.price(f"SKU-{at}")
                claim = one.claimed(f"work-{at}")
                order = one.approved(sku=f"SKU-{at}", claim=claim)
                one.near.terms = LAGS
                self.play(one, order, history, told, claim=claim)
                one.near.terms = {}
                self.evidence(one, order, history)
        states = [state for state, _ in oracle.states(one.scene.sender).values()]
        self.assertEqual(len(states), 64)
        spent = states.count("confirmed") * 1500
        held = (states.count("unknown") + states.count("prepared")) * 1500
        self.assertEqual(one.money(), (held, spent, 0))

    def play(
        self,
        one: Shop,
        order: Operation,
        history: tuple[Fault, ...],
        told: Callable[[list[Fault]], State],
        **claim: Any,
    ) -> None:
        done: list[Fault] = []
        for fault in history:
            now = one.look(order)
            if now.state is State.PREPARED:
                act = one.dispatch
            elif now.state is State.UNKNOWN:
                act = one.resend
                one.inquire(order)
            else:
                return
            one.near.faults = [fault]
            act(order, **claim)
            done.append(fault)
            self.assertIs(one.look(order).state, told(done))
            self.nothing_new(one, order)

    def nothing_new(self, one: Shop, order: Operation) -> None:
        """While it is unresolved no new order is offered or taken, and its money is held."""
        now = one.look(order)
        assert now.order is not None
        if now.state is State.UNKNOWN:
            self.assertFalse({Action.START_NEW, Action.REPLACE} & set(one.offers(order)))
            claim = one.claimed(f"beside {order.work_id} {now.attempts}")
            with self.assertRaises(EquivalentUnresolved):
                one.propose(sku=now.order.sku, claim=claim)
            self.assertTrue(now.order.held)
        self.assertLessEqual(one.effects().get(order.operation_id, 0), 1)

    def evidence(self, one: Shop, order: Operation, history: tuple[Fault, ...]) -> None:
        """What the lookup says at last: an effect is found, and nothing else is concluded."""
        before = one.look(order)
        after = one.inquire(order)
        found = bool(one.effects().get(order.operation_id))
        if before.state is State.UNKNOWN and before.policy.stored_receipt:
            self.assertIs(after.state, State.CONFIRMED if found else State.UNKNOWN)
        else:
            self.assertIs(after.state, before.state)

    def test_a_history_with_a_lost_reply_stays_unknown_whatever_follows(self) -> None:
        """A11, C10, O9: an attempt that is turned away in plain words says nothing of the rest."""

        def told(done: list[Fault]) -> State:
            return State.PREPARED if set(done) == {refused} else State.UNKNOWN

        self.histories(self.shop, (lost, refused, busy, turned_away), told)

    def test_a_stored_rejection_ends_it_and_only_where_nothing_was_done(self) -> None:
        """A11, C10, O8: a keyed supplier knows what it did and gives that receipt instead."""

        def told(done: list[Fault]) -> State:
            if done[-1] is declined:
                return State.CONFIRMED if lost in done else State.REJECTED
            return State.PREPARED if set(done) == {refused} else State.UNKNOWN

        self.histories(self.shop, (lost, refused, busy, declined), told)

    def test_a_rejection_by_a_supplier_that_keeps_no_receipts_speaks_for_a_single_send_only(
        self,
    ) -> None:
        """A11, C10: one that came after another attempt is kept, and settles nothing."""

        def told(done: list[Fault]) -> State:
            left = [fault for fault in done if fault is not refused]
            if left == [rejects_this_one]:
                return State.REJECTED
            return State.UNKNOWN if left else State.PREPARED

        one = self.open("no receipts", policy=NO_RECEIPTS)
        self.histories(one, (lost, refused, busy, rejects_this_one), told)

    def test_a_refused_connection_takes_back_only_the_permission_of_its_own_call(self) -> None:
        """L13, A11: unknown goes back to prepared only where no earlier attempt may have left."""
        one = self.shop
        order = one.approved()
        one.near.faults = [refused, refused, busy, refused]
        for _ in range(2):
            self.assertIs(one.dispatch(order).outcome, State.PREPARED)
        self.assertIs(one.dispatch(order).outcome, State.UNKNOWN)
        one.inquire(order)
        seen = one.resend(order)
        self.assertEqual((seen.transport, seen.outcome), (Transport.NOT_SENT, State.UNKNOWN))
        self.assertEqual((one.look(order).attempts, one.look(order).not_sent), (4, 3))


class BlindSupplier(ShopCase):
    """A blind supplier gets one send, and then a person is needed."""

    def test_it_gets_one_send_and_the_order_needs_a_person(self) -> None:
        """O10: its money is held after revocation, cancellation and a year."""
        one = self.open("blind", policy=BLIND)
        order = one.unknown()
        happens: tuple[Callable[[], object], ...] = (
            lambda: None,
            lambda: one.revoke(order),
            one.cancel,
            lambda: later(one, YEAR_MS),
            one.reopen,
        )
        for meanwhile in happens:
            meanwhile()
            self.refuses(one, NoGuarantee, one.resend, order, claim=None)
            self.assertEqual(one.offers(order), (Action.QUERY, Action.ESCALATE))
            self.assertEqual((one.state(order), one.money()), ("unknown", (1500, 0, 0)))
        self.assertEqual(one.near.heard, [("send", order.operation_id)])

    def test_what_it_answers_to_a_lookup_settles_nothing(self) -> None:
        """O10, O8: it is kept; a person may hand the receipt in."""
        one = self.open("blind", policy=BLIND)
        order = one.unknown()
        self.assertIs(one.inquire(order).state, State.UNKNOWN)
        self.assertEqual(one.money(), (1500, 0, 0))
        self.assertIs(one.resolve(order).state, State.CONFIRMED)

    def test_the_reply_to_its_one_send_settles(self) -> None:
        """O10, O8: it speaks for a single send."""
        one = self.open("blind", policy=BLIND)
        self.assertIs(one.dispatch(one.approved()).outcome, State.CONFIRMED)
        self.assertEqual(one.money(), (0, 1500, 0))


class Revocation(ShopCase):
    """Before admission it prevents the send; after it, it may be too late, and says so."""

    def test_before_admission_it_ends_the_order_and_frees_the_money_once(self) -> None:
        """O11: with an approval and without one; again it gives the same answer."""
        one = self.shop
        for order in (one.approved(), one.propose(1)):
            first = one.revoke(order)
            self.assertEqual((first.in_time, first.operation.state), (True, State.REVOKED))
            before = one.written()
            self.assertEqual(one.revoke(order), first)
            self.assertEqual(one.written(), before)
        self.assertEqual(one.money(), (0, 0, 0))
        self.assertEqual(one.near.heard, [])

    def test_after_admission_it_says_that_it_may_be_too_late(self) -> None:
        """O11, C36: the order stays as it is; an accepted receipt settles it."""
        one = self.shop
        order = one.unknown()
        late = one.revoke(order)
        self.assertEqual((late.in_time, late.operation.state), (False, State.UNKNOWN))
        before = one.written()
        self.assertEqual(one.revoke(order), late)
        self.assertEqual(one.written(), before)
        one.inquire(order)
        self.assertEqual((one.state(order), one.money()), ("confirmed", (0, 1500, 0)))
        self.assertFalse(one.revoke(order).in_time)
        self.assertEqual(one.money(), (0, 1500, 0))

    def test_a_receipt_settles_revoked_and_cancelled_work_and_gives_no_authority(self) -> None:
        """O11: neither before it settles, nor after; not for another order of that work either."""
        ends: tuple[tuple[str, type[ReconcileError], Callable[[Shop, Operation], Any]], ...] = (
            ("revoked", ApprovalRevoked, lambda one, order: one.revoke(order)),
            ("cancelled", WorkCancelled, lambda one, order: one.cancel()),
        )
        for name, refusal, end in ends:
            with self.subTest(name):
                one = self.open(name)
                order = one.unknown(fault=busy)
                end(one, order)
                one.inquire(order)
                self.refuses(one, refusal, one.resend, order)
                self.refuses(one, refusal, one.renew, order)
                self.assertNotIn(Action.RESEND, one.offers(order))
                one.near.make(order.query)
                one.inquire(order)
                self.assertEqual((one.state(order), one.money()), ("confirmed", (0, 1500, 0)))
                self.refuses(one, ResendRefused, one.resend, order)
                self.refuses(one, NotApprovable, one.renew, order)
                if name == "cancelled":
                    self.refuses(one, WorkCancelled, one.propose, 1)

    def test_a_receipt_for_an_order_revoked_in_time_is_an_incident(self) -> None:
        """O11, O8: somebody else ordered it; no money moves."""
        one = self.shop
        one.scene.unsafe = True
        order = one.approved()
        one.revoke(order)
        one.near.make(order.query)
        after = one.inquire(order)
        self.assertEqual((after.state, after.version), (State.REVOKED, 3))
        self.assertEqual(one.money(), (0, 0, 0))


class Renewal(ShopCase):
    """A new approval of an uncertain order changes nothing but the authority."""

    def test_identity_digest_reservation_and_the_duty_to_look_stay(self) -> None:
        """O12: the approval ended; renewed, the order is asked about first, and then sent."""
        one = self.shop
        order = one.unknown(fault=busy)
        one.clock.now_ms += HOUR_MS
        one.reclaim()
        before = one.look(order)
        renewed = one.renew(order)
        assert renewed.order and renewed.order.approval and before.order
        same = replace(renewed, order=before.order)
        self.assertEqual(same, before)
        self.assertEqual(renewed.order.approval.ordinal, 2)
        self.assertEqual(replace(renewed.order, approval=before.order.approval), before.order)
        self.assertEqual(one.money(), (1500, 0, 0))
        self.refuses(one, ResendRefused, one.resend, order)
        one.inquire(order)
        self.assertIs(one.resend(order).outcome, State.CONFIRMED)
        self.assertEqual(one.effects(), {order.operation_id: 1})

    def test_revoking_takes_back_the_newest_approval(self) -> None:
        """O12, O11: and there is no way around it by an older one."""
        one = self.shop
        order = one.unknown(fault=busy)
        one.inquire(order)
        one.clock.now_ms += 1
        one.renew(order)
        one.revoke(order)
        self.refuses(one, ApprovalRevoked, one.resend, order)
        self.refuses(one, ApprovalRevoked, one.renew, order)

    def test_an_approval_that_ended_sends_nothing_until_it_is_renewed(self) -> None:
        """O12, O9: to the millisecond."""
        one = self.shop
        order = one.unknown(fault=busy)
        one.inquire(order)
        one.clock.now_ms += HOUR_MS
        one.reclaim()
        self.refuses(one, ApprovalExpired, one.resend, order)
        self.assertNotIn(Action.RESEND, one.offers(order))
        one.renew(order)
        self.assertIn(Action.RESEND, one.offers(order))

    def test_from_a_renewal_that_passes_one_condition_is_taken_at_a_time(self) -> None:
        """O12: each by its own refusal, and nothing is written."""
        for name, refusal, spoil in renewals():
            with self.subTest(name):
                one = self.open(name)
                order = one.unknown(fault=busy)
                changed = spoil(one, order) or {}
                self.refuses(one, refusal, one.renew, order, **changed)
        one = self.open("the case that passes")
        one.renew(one.unknown(fault=busy))

    def test_a_draft_and_a_settled_order_are_not_renewed(self) -> None:
        """O12: nor one whose supplier never gave a guarantee."""
        one = self.shop
        order = one.approved()
        self.refuses(one, NotApprovable, one.renew, order)
        one.dispatch(order)
        self.refuses(one, NotApprovable, one.renew, order)
        blind = self.open("blind", policy=BLIND)
        order = blind.unknown()
        self.refuses(blind, NoGuarantee, blind.renew, order)
        self.refuses(blind, NoGuarantee, blind.renew, order, near=blind.supplier(policy=KEYED))


class HandedIn(ShopCase):
    """A receipt that a listed person hands in, with a reference to its original."""

    def test_it_settles_once_and_again_it_is_the_stored_decision(self) -> None:
        """O13, O8: the second time nothing is written, also after opening again."""
        one = self.shop
        order = one.unknown()
        first = one.resolve(order)
        self.assertEqual((first.state, first.actor), (State.CONFIRMED, "lucy"))
        self.assertEqual((first.repeated, one.money()), (False, (0, 1500, 0)))
        one.reopen()
        before = one.written()
        self.assertEqual(one.resolve(order), replace(first, repeated=True))
        self.assertEqual(one.written(), before)
        sql = "SELECT origin, actor, reference FROM receipt"
        kept = oracle.rows(one.scene.sender, sql)
        self.assertEqual(kept, [("operator", "lucy", "letter of 3 May")])

    def test_what_a_lookup_settled_is_agreed_to_and_not_settled_again(self) -> None:
        """O13, O8: the stored decision is the lookup's."""
        one = self.shop
        order = one.unknown()
        one.inquire(order)
        again = one.resolve(order)
        self.assertEqual((again.repeated, again.actor), (True, "sender"))
        self.assertEqual(one.money(), (0, 1500, 0))

    def test_from_a_receipt_that_settles_one_condition_is_taken_at_a_time(self) -> None:
        """O13: each has its own refusal, and nothing is written."""
        one = self.shop
        order = one.unknown()
        right = answer(order.query)
        other = replace(order, operation_id="0" * 32)
        pending = answer(order.query, status="pending", effect_id=None)
        for refusal, words, named in (
            (WrongDigest, (order,), {"digest": "0" * 64}),
            (NotListed, (order,), {"actor": "mo"}),
            (WrongReceiver, (order,), {"supplier": "another"}),
            (WrongQuestion, (order, replace(right, operation_id="0" * 32)), {}),
            (UnknownOperation, (other, right), {}),
            (Inconclusive, (order, pending), {}),
            (Inconclusive, (order, replace(pending, status="partial")), {}),
            (Malformed, (order,), {"reference": ""}),
            (Malformed, (order,), {"reference": "   "}),
            (Malformed, (order,), {"reference": "x" * 501}),
            (Malformed, (order,), {"reference": None}),
            (Malformed, (order, {"status": "accepted"}), {}),
        ):
            with self.subTest(refusal=refusal.__name__, named=named):
                self.refuses(one, refusal, one.resolve, *words, **named)
        one.resolve(order)

    def test_a_reference_has_one_to_five_hundred_characters(self) -> None:
        """O13: characters, and not bytes."""
        for reference in ("x", "é" * 500):
            one = self.open(f"reference {len(reference)}")
            one.resolve(one.unknown(), reference=reference)

    def test_a_paused_store_and_an_order_never_admitted_take_none(self) -> None:
        """O13, O8: nor does one that was revoked in time."""
        one = self.shop
        draft = one.approved()
        self.refuses(one, NotAdmitted, one.resolve, draft)
        one.near.faults = [refused]
        one.dispatch(draft)
        self.refuses(one, NotAdmitted, one.resolve, draft)
        one.revoke(draft)
        self.refuses(one, NotAdmitted, one.resolve, draft)
        order = one.unknown(2)
        one.by_hand("UPDATE store SET paused_why = 'a test'")
        self.refuses(one, Paused, one.resolve, order)

    def test_no_list_of_actions_for_an_agent_has_it(self) -> None:
        """O13: an agent gives no cause."""
        one = self.shop
        order = one.approved()
        one.near.faults = [lost]
        offered = set(one.dispatch(order).next_actions)
        self.assertEqual(offered, {Action.QUERY, Action.ESCALATE})
        self.assertFalse(offered & DECISIONS)
        self.assertNotIn("resolve", " ".join(action.value for action in Action))

    def test_a_receipt_for_seven_is_refused_and_kept(self) -> None:
        """O13, O14, O8: the order stays unknown, with its money; the true one still settles."""
        one = self.shop
        order = one.unknown()
        seven = answer(order.query, payload=order.payload.replace('"quantity":6', '"quantity":7'))
        self.assertNotEqual(seven.payload, order.payload)
        with self.assertRaises(ContradictingReceipt):
            one.resolve(order, seven)
        self.assertEqual((one.state(order), one.money()), ("unknown", (1500, 0, 0)))
        kept = oracle.rows(one.scene.sender, "SELECT body FROM receipt")
        self.assertEqual(kept, [(seven.to_json(),)])
        for changed in ({"kind": "cancel"}, {"epoch": 2}, {"receiver": "another"}):
            with self.subTest(changed), self.assertRaises(ContradictingReceipt):
                one.resolve(order, answer(order.query, **changed))
        self.assertIs(one.resolve(order).state, State.CONFIRMED)

    def test_a_lookup_that_answers_for_seven_settles_nothing_and_allows_no_resend(self) -> None:
        """O8, O9: somebody used the identity for something else."""
        one = self.shop
        order = one.unknown(fault=busy)
        one.near.says = answer(order.query, payload="{}")
        self.assertIs(one.inquire(order).state, State.UNKNOWN)
        self.refuses(one, ResendRefused, one.resend, order)

    def test_a_rejection_frees_and_a_failure_is_written_off(self) -> None:
        """O13, O8: once, and again it is the stored one."""
        for status, money in (("rejected", (0, 0, 0)), ("failed", (0, 0, 1500))):
            with self.subTest(status):
                one = self.open(status)
                order = one.unknown(fault=busy)
                said = answer(order.query, status=status, effect_id=None)
                self.assertEqual(one.resolve(order, said).state.value, status)
                self.assertEqual(one.money(), money)
                self.assertTrue(one.resolve(order, said).repeated)
                self.assertEqual(one.money(), money)

    def test_a_receipt_that_contradicts_the_end_is_refused_and_recorded(self) -> None:
        """O8: an incident raises the version; state and money stay; the same again adds none."""
        one = self.shop
        order = one.unknown()
        one.inquire(order)
        said = answer(order.query, status="rejected", effect_id=None)
        for _ in range(2):
            with self.assertRaises(ContradictingReceipt):
                one.resolve(order, said)
            now = one.look(order)
            self.assertEqual((now.state, now.version), (State.CONFIRMED, 4))
            self.assertEqual(one.money(), (0, 1500, 0))
        another = answer(order.query, effect_id="another#1")
        with self.assertRaises(ContradictingReceipt):
            one.resolve(order, another)
        for table, count in (("incident", 2), ("decision", 2), ("entry", 2)):
            rows = oracle.rows(one.scene.sender, f"SELECT count(*) FROM {table}")
            self.assertEqual(rows, [(count,)], table)
        self.assertTrue(one.resolve(order).repeated)

    def test_a_lookup_that_contradicts_the_end_is_an_incident(self) -> None:
        """O8: of the same supplier, which said otherwise before."""
        one = self.shop
        order = one.approved()
        one.near.faults = [declined]
        one.dispatch(order)
        self.assertEqual((one.state(order), one.money()), ("rejected", (0, 0, 0)))
        one.near.says = answer(order.query)
        for _ in range(2):
            after = one.inquire(order)
            self.assertEqual((after.state, after.version), (State.REJECTED, 4))
        self.assertEqual(one.money(), (0, 0, 0))

    def test_a_rejection_closes_the_order_to_late_originals(self) -> None:
        """O8: the account makes no effect of it any more."""
        one = self.shop
        order = one.approved()
        one.near.faults = [declined]
        one.dispatch(order)
        self.assertIsNone(one.supplier(keyed=False).make(order.query))
        self.assertEqual(one.effects(), {})
        self.assertEqual(oracle.closed(one.scene.receiver_file), [order.operation_id])


# --- helpers ------------------------------------------------------------------------------------

Spoil = Callable[[Shop, Operation], "dict[str, Any] | None"]
Spoils = list[tuple[str, type[ReconcileError], Spoil]]


class Silent(Near):
    """Its lookups end in an error."""

    def __init__(self, one: Shop, error: Exception) -> None:
        super().__init__(one.scene.receiver_file)
        self.error = error

    def lookup(self, query: Query) -> Receipt | None:
        raise self.error


class Slow(Near):
    """Something happens before the answer of its lookups comes, which is "none"."""

    def __init__(self, one: Shop, happens: Callable[[], None]) -> None:
        super().__init__(one.scene.receiver_file)
        self.happens = happens

    def lookup(self, query: Query) -> Receipt | None:
        self.happens()
        return None


class Mute(Near):
    """The answers of its closes are lost."""

    def __init__(self, one: Shop, *, policy: EffectPolicy) -> None:
        super().__init__(one.scene.receiver_file, policy=policy)

    def snapshot(self, query: Query, *, close: bool = False) -> Any:
        found = super().snapshot(query, close=close)
        if close:
            raise NoReply(self.identity, "the connection was dropped")
        return found


def rejects_this_one(near: Near, query: Query) -> Receipt:
    """A receipt of rejection for this request, whatever another one came to."""
    return answer(query, status="rejected", effect_id=None)


def ignore(_: object) -> None:
    """For what is done only to be done."""


def spoils() -> Spoils:
    """Each condition of a resend: its name, its refusal, and how it is taken away."""
    return [
        ("no claim", StaleClaim, lambda one, order: {"claim": None}),
        ("other work", StaleClaim, lambda one, order: {"claim": one.claimed("evening-work")}),
        ("lease ended", StaleClaim, lambda one, order: later(one, LEASE_MS)),
        ("lease too short", LeaseTooShort, lambda one, order: later(one, LEASE_MS - 1000)),
        ("revoked", ApprovalRevoked, lambda one, order: ignore(one.revoke(order))),
        ("cancelled", WorkCancelled, lambda one, order: one.cancel()),
        ("ceiling sunk", CeilingExceeded, lambda one, order: one.budget(1499)),
        ("actor off the list", NotListed, unlist),
        ("approval ended", ApprovalExpired, approval_ends),
        ("paused", Paused, pause),
        ("memory ended", ResendRefused, memory_ends),
        ("no guarantee", NoGuarantee, lambda one, order: {"near": one.supplier(policy=BLIND)}),
        ("not asked", ResendRefused, not_asked),
    ]


def renewals() -> Spoils:
    """Each condition of a renewal."""
    return [
        ("no guarantee", NoGuarantee, lambda one, order: {"near": one.supplier(policy=BLIND)}),
        ("other target", WrongReceiver, lambda one, order: {"near": one.supplier(identity="b")}),
        ("other epoch", WrongReceiver, lambda one, order: {"near": one.supplier(epoch=2)}),
        ("actor", NotListed, lambda one, order: {"actor": "mo"}),
        ("actor off the list", NotListed, unlist),
        ("cancelled", WorkCancelled, lambda one, order: one.cancel()),
        ("revoked", ApprovalRevoked, lambda one, order: ignore(one.revoke(order))),
        ("ceiling sunk", CeilingExceeded, lambda one, order: one.budget(1499)),
        ("automatic", AutomaticRefused, automatic),
        ("unknown basis", UnknownBasis, lambda one, order: {"basis": Basis.UNKNOWN}),
        ("digest", WrongDigest, lambda one, order: {"digest": "0" * 64}),
        ("ended", Malformed, lambda one, order: {"expires_ms": one.clock.now_ms}),
        ("too long", Malformed, lambda one, order: {"expires_ms": one.clock.now_ms + DAY_MS + 1}),
        ("paused", Paused, pause),
        ("settled", NotApprovable, settled),
    ]


def later(one: Shop, ms: int) -> None:
    one.clock.now_ms += ms


def unlist(one: Shop, order: Operation) -> None:
    shop.list_approver(one.ledger, "lucy", listed=False)


def approval_ends(one: Shop, order: Operation) -> None:
    later(one, HOUR_MS)
    one.reclaim()


def pause(one: Shop, order: Operation) -> None:
    one.by_hand("UPDATE store SET paused_why = 'a test'")


def memory_ends(one: Shop, order: Operation) -> None:
    later(one, DAY_MS)
    one.reclaim()


def not_asked(one: Shop, order: Operation) -> None:
    one.near.faults = [busy]
    one.resend(order)


def automatic(one: Shop, order: Operation) -> dict[str, Any]:
    one.budget(2000, automatic=2000)
    return {"basis": Basis.AUTOMATIC}


def settled(one: Shop, order: Operation) -> None:
    one.near.make(order.query)
    one.inquire(order)
