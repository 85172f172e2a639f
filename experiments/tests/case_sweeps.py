"""Sweeps: what is claimed, asked, counted and answered, and in which order."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import count as ticks
from pathlib import Path
from typing import Any
from unittest import mock

from experiments.harness import oracle, worker
from experiments.harness.faults import Fault
from experiments.harness.inprocess import InProcessSupplier
from experiments.harness.lab import BIRTH_MS, YEAR_MS
from experiments.harness.lossy import LosesReceipt, LosesRequest
from experiments.harness.scene import Scene
from experiments.harness.supplier import KEYED
from experiments.tests.base import LabCase
from experiments.tests.buying import Forgets, open_shop, ready
from reconcile import (
    Action,
    EffectPolicy,
    Ledger,
    Operation,
    Query,
    Receipt,
    Receiver,
    Snapshot,
    State,
    SweepSummary,
    UnavailableReceiver,
    close,
    dispatch,
    inquire,
    look,
    next_actions,
    prepare,
    reconcile,
    reconcile_once,
    resend,
)
from reconcile.flows import answers, shop, sweep, work
from reconcile.flows.answers import Answer
from reconcile.flows.receivers import check_receiver
from reconcile.ledger import copies, views
from reconcile.rules import errors, sweep_errors, sweeping
from reconcile.rules.claim import LONGEST_LEASE_MS
from reconcile.rules.obligation import Obligation
from reconcile.rules.operation import Scope

HERE = Scope()
ALL = worker.DECIDES
MINUTE_MS = 60_000
TOKEN = "reconcile.ledger.claims.secrets.token_hex"  # else each run would leave another one


def summary(claimed: int, resolved: int, unknown: int, failed: int) -> SweepSummary:
    return SweepSummary(claimed=claimed, resolved=resolved, unknown=unknown, errors=failed)


class SweepCase(LabCase):
    """A sender's file, and the account or plain receiver that its questions are about."""

    unsafe = False

    def setUp(self) -> None:
        super().setUp()
        self.scene: Scene = self.lab.scene("sweep", unsafe=self.unsafe)
        with self.scene.ledger():
            pass
        self.ledger = Ledger(self.scene.sender, clock=self.lab.clock)
        self.account = InProcessSupplier(
            self.scene.receiver_file, identity="plain", policy=worker.ACCOUNT
        )
        self.plain = self.scene.near(policy=worker.PLAIN)

    def tearDown(self) -> None:
        self.ledger.close()
        super().tearDown()

    def unknown(  # type: ignore[override]
        self, work_id: str = "op_synth_042", *, by: Any = None, **changed: Any
    ) -> Operation:
        """An operation whose effect is there, and whose receipt was lost."""
        by = LosesReceipt(self.account) if by is None else by
        order = {"kind": "start", "payload": {"machine": "review"}, "subject": work_id}
        operation = prepare(self.ledger, by, work_id=work_id, **{**order, **changed})
        dispatch(self.ledger, operation.operation_id, by)
        return look(self.ledger, operation.operation_id)

    def sweep(self, provider: Receiver | None = None, **changed: Any) -> SweepSummary:
        words = {"worker": "worker 1", "scope": HERE, **changed}
        return reconcile_once(self.ledger, provider, **words)

    def rest(self) -> None:
        """Let the first back-off pass."""
        self.lab.pass_time(MINUTE_MS)

    def question(self) -> Obligation:
        (found,) = views.obligations(self.ledger)
        return found

    def state(self, operation: Operation) -> State:
        return look(self.ledger, operation.operation_id).state

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return oracle.rows(self.scene.sender, sql, *values)


class Says:
    """A provider that answers each question as it is told."""

    identity, epoch = "plain", 1

    def __init__(
        self, says: Callable[[Query], Any], *, policy: EffectPolicy = worker.PLAIN
    ) -> None:
        self._says, self.policy, self.asked = says, policy, 0

    def send(self, query: Query) -> Receipt | None:
        raise AssertionError("a sweep sends nothing")

    def snapshot(self, query: Query, *, close: bool = False) -> Any:
        assert not close, "a sweep closes nothing"
        self.asked += 1
        return self._says(query)


def raising(error: BaseException) -> Callable[[Query], Any]:
    def raises(query: Query) -> Any:
        raise error

    return raises


class Summaries(SweepCase):
    def test_the_stub_leaves_the_review_machine_open_and_a_receipt_answers_it(self) -> None:
        """S2, S5: op_synth_042, first with the honest stub, then with a provider that knows."""
        machine = self.unknown()
        self.assertEqual(self.sweep(), summary(1, 0, 1, 0))
        self.assertIs(self.state(machine), State.UNKNOWN)
        self.rest()
        self.assertEqual(self.sweep(self.account), summary(1, 1, 0, 0))
        self.assertIs(self.state(machine), State.CONFIRMED)
        self.assertEqual(self.sweep(self.account), summary(0, 0, 0, 0))

    def test_a_batch_is_ten_and_a_lease_two_minutes_unless_told_otherwise(self) -> None:
        """S2: eleven questions are two sweeps, and a claim ends after 120 seconds."""
        for number in range(11):
            self.unknown(f"w-{number}")
        held, bad = sweep.claim_due(self.ledger, None, worker="worker 1", scope=HERE)
        self.assertEqual((len(held), bad), (10, 0))
        ends = {claim.expires_ms - self.claimed_ms(claim.item) for _, claim in held}
        self.assertEqual(ends, {120_000})
        self.assertEqual(self.sweep(), summary(1, 0, 1, 0))

    def claimed_ms(self, item: str) -> int:
        return int(self.rows("SELECT claimed_ms FROM claim WHERE item = ?", item)[0][0])

    def test_a_listing_that_fails_is_one_error_and_nobody_was_asked(self) -> None:
        """S3: the file is locked by another, or refuses the statement."""
        self.unknown()
        provider = Says(raising(AssertionError("nobody is asked")))
        with (
            Ledger(self.scene.sender, clock=self.lab.clock, busy_ms=0) as hurried,
            closing(sqlite3.connect(self.scene.sender, isolation_level=None)) as other,
        ):
            other.execute("BEGIN IMMEDIATE")
            seen = reconcile_once(hurried, provider, worker="worker 1", scope=HERE)
        self.assertEqual((seen, provider.asked), (summary(0, 0, 0, 1), 0))
        fault = Fault("SELECT number, target, epoch FROM lane W", how="deny")
        with Ledger(self.scene.sender, factory=fault.connection()) as broken:
            seen = reconcile_once(broken, provider, worker="worker 1", scope=HERE)
        self.assertTrue(fault.delivered)
        self.assertEqual((seen, provider.asked), (summary(0, 0, 0, 1), 0))

    def test_whatever_a_provider_does_its_question_stays_open(self) -> None:
        """S5, C10: what throws, or says nothing that is evidence, counts as unknown."""
        other = self.unknown("another").query
        machine = self.unknown()

        def overclaims(query: Query) -> Snapshot:
            return replace(self.plain.snapshot(query), closed=True)

        def forged(field: str, value: object) -> Callable[[Query], Snapshot]:
            def says(query: Query) -> Snapshot:
                made = self.plain.snapshot(query)
                object.__setattr__(made, field, value)  # past its constructor
                return made

            return says

        answers: tuple[Callable[[Query], Any], ...] = (
            raising(errors.NoReply("plain", "timed out")),
            raising(RuntimeError("conflict")),
            raising(OSError()),
            lambda query: None,
            lambda query: "confirmed",
            lambda query: self.plain.snapshot(other),
            lambda query: replace(self.plain.snapshot(query), receiver="someone"),
            lambda query: UnavailableReceiver("plain").snapshot(query),
            forged("closed", "yes"),
            forged("effects", (7,)),
        )
        for number, says in enumerate(answers):
            with self.subTest(number):
                self.lab.pass_time(LONGEST_LEASE_MS)
                self.assertEqual(self.sweep(Says(says), batch=2), summary(2, 0, 2, 0))
                self.assertIs(self.state(machine), State.UNKNOWN)
        self.lab.pass_time(LONGEST_LEASE_MS)
        weak = Says(overclaims, policy=replace(worker.PLAIN, can_close=False))
        self.assertEqual(self.sweep(weak).resolved, 0)

    def test_a_receipt_of_another_operation_answers_nothing(self) -> None:
        """S5: it is kept, and the question stays open."""
        other = self.account.lookup(self.unknown("another").query)
        machine = self.unknown()
        self.account.lookup = lambda query: other  # type: ignore[method-assign]
        done = self.sweep(self.account)
        self.assertEqual((done.claimed, done.resolved, done.unknown), (2, 1, 1))
        self.assertIs(self.state(machine), State.UNKNOWN)

    def test_an_interrupt_passes_on_and_its_claims_end_with_their_lease(self) -> None:
        """S5, S8: an interrupt is nobody's answer."""
        machine = self.unknown()
        with self.assertRaises(KeyboardInterrupt):
            self.sweep(Says(raising(KeyboardInterrupt())))
        self.assertEqual(self.sweep(self.account), summary(0, 0, 0, 0))
        self.lab.pass_time(worker.LEASE_MS)
        self.assertEqual(self.sweep(self.account), summary(1, 1, 0, 0))
        self.assertIs(self.state(machine), State.CONFIRMED)

    def test_bad_words_are_refused_and_nothing_is_written(self) -> None:
        """S2, S7: batches, leases, workers, scopes and providers that are none."""
        self.unknown()
        before = oracle.dump(self.scene.sender)
        words: tuple[dict[str, Any], ...] = (
            *({"lease_ms": value} for value in (0, -1, True, 1.5, LONGEST_LEASE_MS + 1, 2**70)),
            *({"batch": value} for value in (0, -1, True, "10", sweep.LARGEST_BATCH + 1)),
            *({"worker": value} for value in ("", " ", None, 7)),
            *({"scope": value} for value in (None, (), ("a", "b"), ("a", "b", ""), "abc")),
            *({"provider": value} for value in ("plain", object, 7)),
        )
        for changed in words:
            with self.subTest(changed), self.assertRaises(errors.Malformed):
                self.sweep(changed.pop("provider", None), **changed)
        with self.assertRaises(sweep_errors.UnknownScope) as caught:
            self.sweep(scope=("default", "default", "tset"))
        self.assertEqual(caught.exception.scope, "default / default / tset")
        self.assertEqual(oracle.dump(self.scene.sender), before)

    def test_an_adapter_that_cannot_even_be_read_is_refused_and_nothing_is_written(self) -> None:
        """S5: its properties raise, or its policy was made past its constructor."""
        machine = self.unknown()
        before = oracle.dump(self.scene.sender)

        def broken(self: object) -> Any:
            raise OSError

        half = object.__new__(EffectPolicy)
        parts: tuple[tuple[str, Any], ...] = (
            *((name, property(broken)) for name in ("identity", "epoch", "policy", "snapshot")),
            ("policy", half),
        )
        for name, part in parts:
            adapter = type("Adapter", (Says,), {name: part, "__init__": lambda self: None})()
            with self.subTest(name, part=part if part is half else "raises"):
                for call in (
                    lambda by=adapter: self.sweep(by),
                    lambda by=adapter: dispatch(self.ledger, machine.operation_id, by),
                ):
                    with self.assertRaises(errors.Malformed):
                        call()
        self.assertEqual(oracle.dump(self.scene.sender), before)

    def test_the_keyed_supplier_settles_where_its_receipts_alone_may_decide(self) -> None:
        """S2, S6: with nothing but "receipt" in both policies, 1 of 1 is resolved."""
        policy = replace(KEYED, sweep_may_decide=("receipt",))
        account = InProcessSupplier(self.scene.receiver_file, identity="plain", policy=policy)
        machine = self.unknown(by=LosesReceipt(account))
        there = oracle.effects(self.scene.receiver_file)
        self.assertEqual(self.sweep(account), summary(1, 1, 0, 0))
        self.assertIs(self.state(machine), State.CONFIRMED)
        self.assertEqual(oracle.effects(self.scene.receiver_file), there)

    def test_no_kind_of_exception_or_disguised_answer_is_evidence(self) -> None:
        """S5: errors that cannot even say what they are, subclasses, another life."""
        machine = self.unknown()
        true = self.account.lookup(machine.query)
        assert true is not None

        class Mute(Exception):
            def __str__(self) -> str:
                raise ValueError("it says nothing")

        class Disguised(Receipt):
            pass

        disguised = Disguised(**{name: getattr(true, name) for name in Receipt.__slots__})
        forged, without_effect = replace(true), replace(true)
        object.__setattr__(forged, "status", "done")  # past its constructor
        object.__setattr__(without_effect, "effect_id", None)
        answers: tuple[tuple[Callable[[Query], Any], str], ...] = (
            (raising(Mute()), "NoReply"),
            (raising(StopIteration()), "NoReply"),
            (raising(RecursionError()), "NoReply"),
            (raising(errors.NotSent("the line is down")), "NotSent"),
            (
                raising(errors.StaleClaim("x", "a refusal of ours, out of an adapter")),
                "StaleClaim",
            ),
            (lambda query: disguised, "NoReply"),
            (lambda query: forged, "NoReply"),
            (lambda query: without_effect, "NoReply"),
            (lambda query: {"status": "accepted"}, "NoReply"),
            (lambda query: replace(true, epoch=2), "receipt: accepted"),
            (lambda query: replace(true, receiver="someone"), "receipt: accepted"),
            (lambda query: replace(true, payload="7"), "receipt: accepted"),
        )
        for number, (says, found) in enumerate(answers):
            with self.subTest(number):
                self.account.lookup = says  # type: ignore[method-assign, assignment]
                self.assertEqual(self.sweep(self.account), summary(1, 0, 1, 0))
                self.assertEqual(self.question().found, found)
                self.assertIs(self.state(machine), State.UNKNOWN)
                self.lab.pass_time(LONGEST_LEASE_MS)
        self.assertEqual(len(self.rows("SELECT 1 FROM receipt")), 3, "evidence is kept")
        del self.account.lookup
        self.assertEqual(self.sweep(self.account), summary(1, 1, 0, 0))

    def test_what_is_no_evidence_about_the_question_is_not_kept_as_such(self) -> None:
        """S5: a snapshot of another operation, of someone else, or that claims too much."""
        by = LosesReceipt(self.plain)
        other = self.unknown("another", by=by).query
        self.sweep(self.plain)
        weak = replace(worker.PLAIN, can_close=False)
        machine = self.unknown(by=LosesReceipt(self.scene.near(policy=weak)))
        kept = self.rows("SELECT * FROM observation")
        answers: tuple[tuple[Callable[[Query], Any], str], ...] = (
            (lambda query: self.plain.snapshot(other), "WrongQuestion"),
            (lambda query: replace(self.plain.snapshot(query), receiver="me"), "WrongQuestion"),
            (lambda query: replace(self.plain.snapshot(query), epoch=2), "WrongQuestion"),
            (lambda query: replace(self.plain.snapshot(query), closed=True), "Overclaimed"),
        )
        for number, (says, found) in enumerate(answers):
            with self.subTest(number):
                self.assertEqual(self.sweep(Says(says), batch=1).resolved, 0)
                said = "SELECT found FROM obligation ORDER BY operation DESC LIMIT 1"
                self.assertEqual(self.rows(said), [(found,)])
                self.assertEqual(self.rows("SELECT * FROM observation"), kept)
                self.assertIs(self.state(machine), State.UNKNOWN)
                self.hand_back(machine)

    def hand_back(self, operation: Operation) -> None:
        sweep.hand_back(self.ledger, operation.operation_id, actor="ada", reason="mended")

    def test_every_interrupt_passes_on_and_decides_nothing(self) -> None:
        """S5: whatever is no Exception is nobody's answer."""
        machine = self.unknown()
        for kind in (KeyboardInterrupt, SystemExit, GeneratorExit):
            with self.subTest(kind), self.assertRaises(kind):
                self.sweep(Says(raising(kind())))
            self.assertEqual((self.state(machine), self.question().visits), (State.UNKNOWN, 0))
            self.lab.pass_time(worker.LEASE_MS)

    def test_a_sweep_that_is_told_nothing_claims_ten_for_two_minutes(self) -> None:
        """S2: the defaults of the whole sweep, seen in the claims that an interrupt left."""
        for number in range(11):
            self.unknown(f"w-{number}")
        with self.assertRaises(KeyboardInterrupt):
            self.sweep(Says(raising(KeyboardInterrupt())))
        leases = self.rows("SELECT expires_ms - claimed_ms FROM claim")
        self.assertEqual(leases, [(120_000,)] * 10)

    def test_an_adapter_whose_lookup_cannot_even_be_reached_answers_nothing(self) -> None:
        """S5: its property raises, for each question; an interrupt in it passes on."""
        error: BaseException = RuntimeError("not configured")

        class Unreachable(Says):
            @property
            def lookup(self) -> Any:
                raise error

        machine = self.unknown()
        self.unknown("another")
        provider = Unreachable(lambda query: None, policy=worker.ACCOUNT)
        self.assertEqual(self.sweep(provider), summary(2, 0, 2, 0))
        self.assertIs(self.state(machine), State.UNKNOWN)
        self.rest()
        error = KeyboardInterrupt()
        with self.assertRaises(KeyboardInterrupt):
            self.sweep(provider)

    def test_nobody_is_asked_under_a_lease_that_ended(self) -> None:
        """S4, S7, C39: the call before it took the whole lease; the second comes due again."""
        self.unknown("first"), self.unknown("second")

        def slow(query: Query) -> Snapshot:
            self.lab.pass_time(worker.LEASE_MS)
            return UnavailableReceiver("plain").snapshot(query)

        provider = Says(slow)
        self.assertEqual(self.sweep(provider), summary(1, 0, 1, 0))
        self.assertEqual(provider.asked, 1)
        self.rest()
        self.assertEqual(self.sweep(self.account), summary(2, 2, 0, 0))


class Decisions(SweepCase):
    unsafe = True  # two effects of one operation stand in some files

    def closed(self, work_id: str, by: Any, at: Receiver | None = None) -> Operation:
        operation = self.unknown(work_id, by=by)
        by_name: dict[str, Any] = {"purpose": "ask", "authorized_by": "ada"}
        close(self.ledger, operation.operation_id, at or self.plain, **by_name)
        return operation

    def test_what_no_policy_lists_is_kept_for_a_person(self) -> None:
        """S6, R10: by default nothing; then only what the pinned and the present one both list."""
        for name, pinned, present in (
            ("neither", (), ()),
            ("present alone", (), ALL),
            ("pinned alone", ALL, ()),
            ("another word", ALL, ("terminal_absence",)),
        ):
            with self.subTest(name):
                plain = self.scene.near(policy=replace(worker.PLAIN, sweep_may_decide=pinned))
                there = self.closed(f"closed, {name}", LosesReceipt(plain))
                now = self.scene.near(policy=replace(worker.PLAIN, sweep_may_decide=present))
                self.assertEqual(self.sweep(now, batch=1), summary(1, 0, 1, 0))
                self.assertIs(self.state(there), State.UNKNOWN)
                kept = self.rows("SELECT verdict FROM observation ORDER BY operation DESC LIMIT 1")
                self.assertEqual(kept, [("unique_exact_match",)])

    def test_neither_a_receipt_nor_a_failing_lookup_hides_a_snapshot(self) -> None:
        """S6: a source that decides nothing does not keep the next one from being asked."""
        policy = replace(
            worker.ACCOUNT,
            status_source="snapshot",
            can_close=True,
            read_complete=True,
            read_authoritative=True,
            sweep_may_decide=("unique_exact_match",),
        )
        for name, lookup in (("receipt", None), ("failing", raising(OSError()))):
            with self.subTest(name):
                account = InProcessSupplier(
                    self.scene.receiver_file, identity="plain", policy=policy
                )
                machine = self.closed(name, LosesReceipt(account), account)
                if lookup is not None:
                    account.lookup = lookup  # type: ignore[method-assign, assignment]
                self.assertEqual(self.sweep(account), summary(1, 1, 0, 0))
                self.assertIs(self.state(machine), State.CONFIRMED)
        kept = self.rows("SELECT operation, origin FROM receipt")
        self.assertEqual(kept, [(1, "lookup")])

    def test_a_lookup_in_vain_is_written_with_the_sendings_before_it(self) -> None:
        """S5: what `resend` asks for is known after a sweep as well."""
        machine = self.unknown(by=LosesRequest(self.account))
        self.sweep(self.account)
        self.assertEqual(look(self.ledger, machine.operation_id).asked_after, 1)
        self.assertEqual(self.rows("SELECT asked, attempts, found FROM lookup"), [(1, 1, 0)])

    def test_a_receipt_that_no_policy_lists_is_kept_for_a_person(self) -> None:
        """S6, R10: it moves nothing, and is there to be looked at."""
        account = InProcessSupplier(self.scene.receiver_file, identity="plain")
        machine = self.unknown(by=LosesReceipt(account))
        self.assertEqual(self.sweep(self.account), summary(1, 0, 1, 0))
        self.assertEqual(self.rows("SELECT origin FROM receipt"), [("lookup",)])
        self.assertIs(self.state(machine), State.UNKNOWN)
        self.assertEqual(self.question().reference, f"{machine.operation_id}#1")

    def test_what_is_closed_is_answered_and_what_is_open_is_not(self) -> None:
        """S6: unique and absent are resolved where somebody closed; a sweep closes nothing."""
        unique = self.closed("unique", LosesReceipt(self.plain))
        absent = self.closed("absent", LosesRequest(self.plain))
        opened = self.unknown("open", by=LosesReceipt(self.plain))
        closes = oracle.contacts(self.scene.receiver_file)
        self.assertEqual(self.sweep(self.plain), summary(3, 2, 1, 0))
        self.assertEqual(
            [self.state(operation) for operation in (unique, absent, opened)],
            [State.CONFIRMED, State.NOT_APPLIED, State.UNKNOWN],
        )
        self.assertEqual(oracle.contacts(self.scene.receiver_file), closes)
        self.assertEqual(self.sweep(self.plain), summary(0, 0, 0, 0))

    def test_what_evidence_may_not_end_rests_like_everything_else(self) -> None:
        """S6, A12: of a partial effect a person decides, and its question comes due again."""
        plain = self.plain

        class Partly(LosesReceipt):
            def send(self, query: Query) -> Receipt | None:
                receipt = plain.send(query)
                assert receipt is not None
                return replace(receipt, status="partial")

        operation = self.closed("partly", Partly(plain))
        self.assertIs(operation.state, State.PARTIAL)
        for _ in range(2):
            self.assertEqual(self.sweep(plain), summary(1, 0, 1, 0))
            self.assertEqual(self.question().found, "unique_exact_match")
            self.lab.pass_time(sweeping.SLOWEST_MS)
        self.assertIs(self.state(operation), State.PARTIAL)

    def test_a_receiver_that_contradicts_itself_answers_nothing(self) -> None:
        """S5, A12: duplicates and mismatches are kept, open, and due again."""
        twice = self.unknown("twice", by=LosesReceipt(self.plain))
        self.plain.send(twice.query)
        other = self.unknown("other", by=LosesRequest(self.plain))
        self.plain.send(replace(other.query, payload='{"machine":"another"}'))
        self.assertEqual(self.sweep(self.plain), summary(2, 0, 2, 0))
        found = [question.found for question in views.obligations(self.ledger)]
        self.assertEqual(found, ["duplicate_matches", "payload_mismatch"])
        self.rest()
        self.assertEqual(self.sweep(self.plain), summary(2, 0, 2, 0))

    def test_what_was_found_absent_stays_absent_a_year_later(self) -> None:
        """S6, C19: the delayed original is refused by the close that the answer rests on."""
        absent = self.closed("absent", LosesRequest(self.plain))
        self.assertEqual(self.sweep(self.plain), summary(1, 1, 0, 0))
        self.lab.pass_time(YEAR_MS)
        self.plain.send(absent.query)
        self.assertEqual(oracle.effects(self.scene.receiver_file), {})
        self.assertEqual(self.sweep(self.plain), summary(0, 0, 0, 0))
        self.assertIs(self.state(absent), State.NOT_APPLIED)

    def test_visits_in_vain_let_nothing_new_begin(self) -> None:
        """S6, C50, A12: the same need is the same operation, and no twin of it begins."""
        by = LosesRequest(self.account)
        first = self.unknown("first", by=by, subject="machine 7")
        second = self.unknown("second", by=by, subject="machine 8")
        for _ in range(sweeping.MOST_FRUITLESS + 1):
            self.assertEqual(self.sweep(self.account), summary(2, 0, 2, 0))
            for operation in (first, second):
                now = look(self.ledger, operation.operation_id)
                may = next_actions(now, now_ms=self.ledger.now_ms())
                self.assertNotIn(Action.START_NEW, may)
                self.assertNotIn(Action.REPLACE, may)
                self.assertIn(Action.ESCALATE, may)
            self.lab.pass_time(LONGEST_LEASE_MS)
        order: dict[str, Any] = {"kind": "start", "payload": {"machine": "review"}}
        again = prepare(self.ledger, by, work_id="first", subject="machine 7", **order)
        self.assertEqual((again.operation_id, again.state), (first.operation_id, State.UNKNOWN))
        with self.assertRaises(errors.EquivalentUnresolved):
            other = prepare(self.ledger, by, work_id="third", subject="machine 7", **order)
            dispatch(self.ledger, other.operation_id, by)
        self.assertEqual(oracle.effects(self.scene.receiver_file), {})


class Questions(SweepCase):
    def test_a_question_knows_all_that_a_worker_needs(self) -> None:
        """S1: every field, in the commit that records unknown."""
        policy = replace(worker.ACCOUNT, deadline_ms=5000, version=3)
        scope = ("acme", "billing", "test")
        account = InProcessSupplier(self.scene.receiver_file, identity="plain", policy=policy)
        machine = self.unknown(by=LosesReceipt(account), scope=scope, subject="machine 7")
        question = self.question()
        self.assertEqual(
            (
                *(question.key, question.effect_type, question.subject, question.attempt),
                *(tuple(question.scope), question.intent, question.generation),
                *(question.attempt_number, question.claim, question.reference),
                *(question.policy_version, question.sources, question.escalation),
                question.deadline_ms,
            ),
            (
                *(machine.operation_id, "start", "machine 7", 1),
                *(scope, machine.digest, 1),
                *(1, None, None),
                *(3, ("lookup",), None),
                question.opened_ms + 5000,
            ),
        )
        (moved,) = self.rows("SELECT decided_ms FROM decision WHERE cause = 'announced'")
        self.assertEqual(question.opened_ms, moved[0])

    def test_a_question_ends_with_its_answer_and_with_nothing_else(self) -> None:
        """S1, S8, C41: a year, ended leases, visits in vain and a repair leave it open."""
        machine = self.unknown()
        for _ in range(sweeping.MOST_FRUITLESS + 2):
            sweep.claim_due(self.ledger, None, worker="worker 1", scope=HERE)
            self.lab.pass_time(YEAR_MS)
            self.sweep(UnavailableReceiver("plain"))
        sweep.hand_back(self.ledger, machine.operation_id, actor="ada", reason="mended")
        self.lab.pass_time(YEAR_MS)
        self.assertEqual((self.state(machine), self.question().generation), (State.UNKNOWN, 1))
        self.assertEqual(len(self.rows("SELECT 1 FROM obligation")), 1)
        self.sweep(self.account)
        self.assertEqual(views.obligations(self.ledger), [])
        ended = self.rows("SELECT ended_ms FROM obligation")
        self.assertEqual(ended, self.rows("SELECT max(decided_ms) FROM decision"))

    def test_a_fresh_process_sees_the_same_questions(self) -> None:
        """S10: all of it stands in committed rows."""
        self.unknown()
        self.sweep()
        before = views.obligations(self.ledger)
        with Ledger(self.scene.sender, clock=self.lab.clock) as fresh:
            self.assertEqual(views.obligations(fresh), before)
        self.lab.pass_time(worker.LEASE_MS)
        plan = {
            "file": str(self.scene.sender),
            "provider": {"kind": "account", "file": str(self.scene.receiver_file)},
            "clock": self.lab.clock(),
            "steps": ["sweep"],
            "worker": "another process",
            "batch": 10,
            "at": None,
            "how": "exit",
        }
        said, _ = worker.live(plan)
        self.assertEqual(said, [{"claimed": 1, "resolved": 1, "unknown": 0, "errors": 0}])

    def test_a_deadline_and_visits_in_vain_call_a_person_once_and_slow_the_visits(self) -> None:
        """S12, C41: the outcome never changes by it."""
        for name, deadline_ms, visits in (("deadline", 1000, 1), ("visits", None, 8)):
            with self.subTest(name):
                policy = replace(worker.ACCOUNT, deadline_ms=deadline_ms)
                account = InProcessSupplier(
                    self.scene.receiver_file, identity="plain", policy=policy
                )
                machine = self.unknown(name, by=LosesRequest(account))
                for _ in range(visits + 2):
                    self.assertEqual(self.sweep(account), summary(1, 0, 1, 0))
                    self.lab.pass_time(LONGEST_LEASE_MS)
                question = self.question()
                assert question.escalation is not None
                calls = (
                    "SELECT 1 FROM escalation JOIN operation ON number = operation "
                    "WHERE work_id = ?"
                )
                self.assertEqual(len(self.rows(calls, name)), 1)
                slowed = question.due_ms - self.ledger.now_ms()
                self.assertLessEqual(slowed, sweeping.SLOWEST_MS)
                self.assertIs(self.state(machine), State.UNKNOWN)
                account.send(machine.query)
                self.assertEqual(self.sweep(account), summary(1, 1, 0, 0))

    def test_rests_grow_to_a_bound(self) -> None:
        """S12: the first rest is the shortest, none is longer than the one of the called."""
        rests = [sweeping.rests_ms(visit, called=False) for visit in range(1, 12)]
        self.assertEqual(rests, sorted(rests))
        self.assertLess(rests[-1], sweeping.rests_ms(1, called=True))
        self.assertEqual(sweeping.rests_ms(99, called=True), LONGEST_LEASE_MS)

    def test_an_order_keeps_its_money_over_a_year_of_visits(self) -> None:
        """S8, S12, C41: neither age nor a lease without a holder frees it."""
        supplier = Forgets(self.scene.receiver_file)
        open_shop(self.ledger, supplier)
        order, claim = ready(self.ledger, supplier)
        dispatch(self.ledger, order.operation_id, supplier, claim=claim)
        held = shop.budget(self.ledger, "GBP").reserved
        for _ in range(12):
            self.sweep(supplier)
            self.lab.pass_time(YEAR_MS)
        self.assertIs(self.state(order), State.UNKNOWN)
        self.assertEqual(shop.budget(self.ledger, "GBP").reserved, held)
        self.assertGreater(held, 0)

    def refused(self, trigger: str) -> None:
        """Let the file refuse what this trigger is about."""
        with closing(sqlite3.connect(self.scene.sender, isolation_level=None)) as other:
            other.execute(
                f"CREATE TRIGGER not_this BEFORE {trigger} BEGIN SELECT RAISE(ABORT, 'no'); END"
            )

    def test_unknown_is_never_recorded_without_its_question(self) -> None:
        """S1, R4: the file refuses the question, so nothing is announced and nothing leaves."""
        self.refused("INSERT ON obligation")
        with self.assertRaises(errors.StorageFailed):
            self.unknown()
        self.assertEqual(self.rows("SELECT state FROM operation"), [("prepared",)])
        self.assertEqual(self.rows("SELECT 1 FROM attempt"), [])
        self.assertEqual(oracle.contacts(self.scene.receiver_file), [])

    def test_an_answer_is_never_recorded_over_an_open_question(self) -> None:
        """S1, R4: the file refuses to end the question, so the answer does not stand either."""
        machine = self.unknown()
        self.refused("UPDATE OF ended_ms ON obligation")
        before = oracle.dump(self.scene.sender)["decision"]
        self.assertEqual(self.sweep(self.account), summary(1, 0, 0, 1))
        self.assertEqual(oracle.dump(self.scene.sender)["decision"], before)
        self.assertIs(self.state(machine), State.UNKNOWN)

    def test_every_final_decision_ends_the_question_at_its_own_moment(self) -> None:
        """S1: a receipt, a person's evidence and a sweep's, each in the commit that decides."""
        by = LosesReceipt(self.plain)
        inquired = self.unknown("inquired")
        inquire(self.ledger, inquired.operation_id, self.account)
        reviewed = self.unknown("reviewed", by=by)
        seen = self.plain.snapshot(reviewed.query, close=True)
        words: dict[str, Any] = {"reviewer": "ada", "expected_version": reviewed.version}
        reconcile(self.ledger, reviewed.operation_id, seen, **words)
        swept = self.unknown("swept", by=by)
        self.plain.snapshot(swept.query, close=True)
        self.assertEqual(self.sweep(self.plain), summary(1, 1, 0, 0))
        for operation in (inquired, reviewed, swept):
            self.assertIs(self.state(operation), State.CONFIRMED)
        self.assertEqual(
            self.rows("SELECT operation, ended_ms FROM obligation ORDER BY 1"),
            self.rows("SELECT operation, max(decided_ms) FROM decision GROUP BY 1 ORDER BY 1"),
        )

    def test_a_person_is_called_at_the_eighth_visit_and_not_before(self) -> None:
        """S12: the rests before it are those of the table, and the one after it the slowest."""
        self.unknown(by=LosesRequest(self.account))
        for visit in range(1, 9):
            self.assertEqual(self.sweep(self.account), summary(1, 0, 1, 0))
            question = self.question()
            self.assertEqual((question.visits, question.fruitless), (visit, visit))
            called = visit == 8
            self.assertEqual(question.escalation is not None, called)
            table = sweeping.BACK_OFF_MS
            rest = sweeping.SLOWEST_MS if called else table[min(visit, len(table)) - 1]
            lag_ms = self.ledger.now_ms() - (question.due_ms - rest)
            self.assertTrue(0 < lag_ms < 100, lag_ms)  # the clock ticks at each reading
            self.lab.pass_time(rest)

    def test_a_deadline_calls_at_its_moment_and_not_before(self) -> None:
        """S12: the visit before it calls nobody; the next one does, and the state stands."""
        policy = replace(worker.ACCOUNT, deadline_ms=2 * MINUTE_MS)
        account = InProcessSupplier(self.scene.receiver_file, identity="plain", policy=policy)
        machine = self.unknown(by=LosesRequest(account))
        self.sweep(account)
        self.assertIsNone(self.question().escalation)
        self.lab.pass_time(2 * MINUTE_MS)
        self.sweep(account)
        called = self.question().escalation
        assert called is not None
        self.assertEqual(called.why, "its deadline has passed")
        self.assertIs(self.state(machine), State.UNKNOWN)

    def test_after_every_answer_in_vain_one_question_is_open_and_comes_due_again(self) -> None:
        """A12, S5: nothing wedges, whatever was heard; what is heard later still ends it."""
        machine = self.unknown()
        true = self.account.lookup(machine.query)
        assert true is not None
        answers: tuple[Callable[[Query], Any], ...] = (
            raising(RuntimeError()),
            lambda query: None,
            lambda query: "accepted",
            lambda query: replace(true, kind="another"),
            lambda query: replace(true, status="pending", effect_id=None),
        )
        for number, says in enumerate(answers):
            with self.subTest(number):
                self.account.lookup = says  # type: ignore[method-assign, assignment]
                self.assertEqual(self.sweep(self.account), summary(1, 0, 1, 0))
                now_ms, question = self.ledger.now_ms(), self.question()
                self.assertTrue(now_ms < question.due_ms <= now_ms + sweeping.SLOWEST_MS)
                may = next_actions(question.operation, now_ms=now_ms)
                self.assertIn(Action.ESCALATE, may)
                self.lab.pass_time(sweeping.SLOWEST_MS)
        self.assertIs(self.state(machine), State.PENDING)
        del self.account.lookup
        self.assertEqual(self.sweep(self.account), summary(1, 1, 0, 0))


class Claims(SweepCase):
    def claim(self, name: str = "host-1", lease_ms: int = 100) -> sweep.Held:
        (held,), _ = sweep.claim_due(self.ledger, None, worker=name, scope=HERE, lease_ms=lease_ms)
        return held

    def finish(self, held: sweep.Held, seen: Answer) -> bool:
        declared = check_receiver(self.account)
        return sweep.finish(self.ledger, declared, held, seen, worker="host-1")

    def test_a_stalled_workers_token_is_refused_whatever_its_name_and_the_clock(self) -> None:
        """S7, C02: the same name claimed again; the clock steps back; the newest token lands."""
        self.unknown()
        first = self.claim()
        seen = answers.ask(self.account, first[0].operation)
        self.lab.pass_time(101)
        second = self.claim()
        before = oracle.dump(self.scene.sender)
        self.lab.step_back(90)  # the first lease looks live again
        for write in (
            lambda: self.finish(first, seen),
            lambda: work.extend(self.ledger, first[1]),
            lambda: work.release(self.ledger, first[1]),
        ):
            with self.assertRaises(errors.StaleClaim):
                write()
        self.assertEqual(oracle.dump(self.scene.sender), before)
        self.assertTrue(self.finish(second, seen))

    def test_of_three_workers_slower_than_their_leases_one_lands(self) -> None:
        """S6, S7, C39: each lease ended before its answer came; the last to claim may write."""
        machine = self.unknown()
        held = []
        for _ in range(3):
            held.append(self.claim(lease_ms=60))
            self.lab.pass_time(60)
        seen = answers.ask(self.account, held[0][0].operation)
        landed = []
        for one in held:
            self.lab.pass_time(60)
            try:
                landed.append(self.finish(one, seen))
            except errors.StaleClaim:
                landed.append(False)
        self.assertEqual(landed, [False, False, True])
        self.assertIs(self.state(machine), State.CONFIRMED)
        self.assertEqual(len(self.rows("SELECT 1 FROM decision WHERE cause = 'receipt'")), 1)

    def test_a_lease_that_ends_gives_the_question_back_and_proves_nothing(self) -> None:
        """S8: it is unknown while nobody holds it."""
        machine = self.unknown()
        self.claim()
        self.assertEqual(self.sweep(self.account), summary(0, 0, 0, 0))
        self.lab.pass_time(YEAR_MS)
        self.assertIs(self.state(machine), State.UNKNOWN)
        self.assertEqual(self.sweep(self.account), summary(1, 1, 0, 0))

    def test_what_settled_meanwhile_is_skipped_and_nothing_is_written_about_it(self) -> None:
        """S4, S6, C07: another confirmed it between the claim and the answer."""
        machine = self.unknown()
        held = self.claim(lease_ms=worker.LEASE_MS)
        inquire(self.ledger, machine.operation_id, self.account)
        before = oracle.dump(self.scene.sender)
        absent = replace(self.plain.snapshot(machine.query, close=True), effects=())
        for seen in (Answer(), Answer(snapshot=absent)):
            with self.assertRaises(errors.StaleClaim):
                self.finish(held, seen)
        self.assertEqual(oracle.dump(self.scene.sender), before)

    def test_a_lost_race_counts_nowhere(self) -> None:
        """S4: what another took over between claim and answer is no error, and not claimed."""
        self.unknown()

        def stalls(query: Query) -> Snapshot:
            self.lab.pass_time(worker.LEASE_MS)
            with Ledger(self.scene.sender, clock=self.lab.clock) as other:
                reconcile_once(other, self.account, worker="worker 1", scope=HERE)
            return UnavailableReceiver("plain").snapshot(query)

        self.assertEqual(self.sweep(Says(stalls)), summary(0, 0, 0, 0))

    def test_a_sending_after_the_question_was_put_is_not_asked_about(self) -> None:
        """S6, O9: a sweep's lookup in vain speaks of the sendings before it alone."""
        machine = self.unknown(by=LosesRequest(self.account))
        held = self.claim(lease_ms=worker.LEASE_MS)
        seen = answers.ask(self.account, held[0].operation)
        inquire(self.ledger, machine.operation_id, self.account)
        again: Any = LosesRequest(self.account)
        again.limit_s = 1.0
        resend(self.ledger, machine.operation_id, again)
        self.assertFalse(self.finish(held, seen))
        self.assertEqual(look(self.ledger, machine.operation_id).asked_after, 1)

    def test_a_claim_of_something_else_lets_no_answer_in(self) -> None:
        """S7: a worker whose lease was taken over holds another claim, which is live."""
        machine = self.unknown()
        held = self.claim()
        answer = answers.ask(self.account, machine)
        self.lab.pass_time(101)
        self.claim()
        work.enqueue(self.ledger, "another")
        other = work.claim(self.ledger, "another", owner="host-1")
        for claim in (held[1], other):
            with self.subTest(claim.what), self.assertRaises(errors.StaleClaim):
                self.finish((held[0], claim), answer)
        self.assertIs(self.state(machine), State.UNKNOWN)

    def test_what_was_taken_over_is_not_given_back_by_the_one_before(self) -> None:
        """S7, S11: it was too slow for its lease, and another one holds the question now."""
        for name in ("o1", "o2"):
            self.unknown(name, by=LosesRequest(self.account))

        def slowly(query: Query) -> Snapshot:
            self.lab.pass_time(2 * worker.LEASE_MS)
            sweep.claim_due(self.ledger, None, worker="worker 2", scope=HERE, batch=2)
            return self.plain.snapshot(query)

        self.assertEqual(self.sweep(Says(slowly)), summary(0, 0, 0, 0))
        owners = self.rows("SELECT owner FROM claim WHERE expires_ms > ?", self.lab.clock())
        self.assertEqual(owners, [("worker 2",)] * 2)

    def test_a_question_asked_anew_under_a_live_claim_waits_for_its_end(self) -> None:
        """S4, S7: its first sending proved unsent while a worker held the question."""
        case = self

        class Refuses(LosesRequest):
            def send(self, query: Query) -> Receipt | None:
                case.claim(lease_ms=worker.LEASE_MS)
                raise errors.NotSent("the line is down")

        machine = self.unknown(by=Refuses(self.account))
        self.assertIs(machine.state, State.PREPARED)
        dispatch(self.ledger, machine.operation_id, LosesReceipt(self.account))
        self.assertEqual(self.sweep(self.account), summary(0, 0, 0, 0))
        self.lab.pass_time(worker.LEASE_MS)
        self.assertEqual(self.sweep(self.account), summary(1, 1, 0, 0))

    def test_a_repair_fences_what_was_claimed_before_it(self) -> None:
        """S9: a newer generation stales the older, and they are never merged."""
        machine = self.unknown()
        held = self.claim(lease_ms=worker.LEASE_MS)
        seen = answers.ask(self.account, held[0].operation)
        again = sweep.hand_back(
            self.ledger, machine.operation_id, actor="ada", reason="the adapter was mended"
        )
        self.assertEqual((again.repairs, again.fruitless), (1, 0))
        with self.assertRaises(errors.StaleClaim):
            self.finish(held, seen)
        self.assertEqual(self.sweep(self.account), summary(1, 1, 0, 0))
        with self.assertRaises(sweep_errors.NothingOpen):
            sweep.hand_back(self.ledger, machine.operation_id, actor="ada", reason="again")

    def test_a_question_asked_anew_is_another_generation(self) -> None:
        """S1, S9: never sent ends one; the next announcement begins another."""
        stub = UnavailableReceiver("plain", policy=worker.ACCOUNT)
        machine = self.unknown(by=stub)
        self.assertIs(machine.state, State.PREPARED)
        dispatch(self.ledger, machine.operation_id, LosesReceipt(self.account))
        self.assertEqual((self.question().generation, self.question().attempt), (2, 2))
        ended = self.rows("SELECT generation, ended_ms IS NULL FROM obligation ORDER BY 1")
        self.assertEqual(ended, [(1, 0), (2, 1)])

    def test_a_restored_store_sweeps_nothing(self) -> None:
        """S7, O19: it is older than the world, and every claim in it is from before."""
        self.unknown()
        taken = copies.backup(self.ledger, self.scene.sender.with_name("backup.db"))
        with Ledger(taken, clock=self.lab.clock) as old, self.assertRaises(errors.Paused):
            reconcile_once(old, self.account, worker="worker 1", scope=HERE)

    def test_what_moved_meanwhile_and_is_still_open_is_skipped_too(self) -> None:
        """S4, C07: another heard that it is pending; the older reading writes nothing over it."""
        machine = self.unknown()
        held = self.claim(lease_ms=worker.LEASE_MS)
        seen = answers.ask(self.account, held[0].operation)
        true = seen.receipt
        assert true is not None
        pending = replace(true, status="pending", effect_id=None)
        with mock.patch.object(self.account, "lookup", lambda query: pending):
            inquire(self.ledger, machine.operation_id, self.account)
        self.assertIs(self.state(machine), State.PENDING)
        before = oracle.dump(self.scene.sender)
        with self.assertRaises(errors.StaleClaim):
            self.finish(held, seen)
        self.assertEqual(oracle.dump(self.scene.sender), before)
        self.lab.pass_time(worker.LEASE_MS)
        self.assertEqual(self.sweep(self.account), summary(1, 1, 0, 0))

    def test_a_claim_that_a_store_never_gave_is_stale_there(self) -> None:
        """S7: an older copy of the file knows the question, and nobody's claim of it."""
        self.unknown()
        taken = copies.backup(self.ledger, self.scene.sender.with_name("backup.db"))
        held = self.claim(lease_ms=worker.LEASE_MS)
        seen = answers.ask(self.account, held[0].operation)
        declared = check_receiver(self.account)
        with (
            Ledger(taken, clock=self.lab.clock) as old,
            self.assertRaises(errors.StaleClaim),
        ):
            sweep.finish(old, declared, held, seen, worker="host-1")

    def test_a_claim_from_before_a_restore_is_stale(self) -> None:
        """S7: its token is the newest there, and is of another life of the store."""
        self.unknown()
        held = self.claim(lease_ms=worker.LEASE_MS)
        seen = answers.ask(self.account, held[0].operation)
        taken = copies.backup(self.ledger, self.scene.sender.with_name("backup.db"))
        restored = copies.restore(taken, self.scene.sender.with_name("restored.db"))
        before = oracle.dump(restored)
        with Ledger(restored, clock=self.lab.clock) as old:
            declared = check_receiver(self.account)
            with self.assertRaises(errors.StaleClaim):
                sweep.finish(old, declared, held, seen, worker="host-1")
        self.assertEqual(oracle.dump(restored), before)
        self.assertTrue(self.finish(held, seen), "and it is the newest where it was made")

    def test_a_restored_store_is_left_as_it_is(self) -> None:
        """S7: a sweep, a claim and a repair of it are refused, and write nothing."""
        machine = self.unknown()
        taken = copies.backup(self.ledger, self.scene.sender.with_name("backup.db"))
        restored = copies.restore(taken, self.scene.sender.with_name("restored.db"))
        before = oracle.dump(restored)
        with Ledger(restored, clock=self.lab.clock) as old:
            for call in (
                lambda: reconcile_once(old, self.account, worker="host-1", scope=HERE),
                lambda: sweep.claim_due(old, None, worker="host-1", scope=HERE),
                lambda: sweep.hand_back(old, machine.operation_id, actor="ada", reason="mended"),
            ):
                with self.assertRaises(errors.Paused):
                    call()
        self.assertEqual(oracle.dump(restored), before)

    def test_what_was_claimed_in_one_announcement_is_stale_in_the_next(self) -> None:
        """S9: never sent ended the held question; the new one is not merged with it."""
        held: list[sweep.Held] = []
        test = self

        class ClaimedMeanwhile(UnavailableReceiver):
            def send(self, query: Query) -> Receipt | None:
                with Ledger(test.scene.sender, clock=test.lab.clock) as other:
                    found, _ = sweep.claim_due(other, None, worker="host-1", scope=HERE)
                held.extend(found)
                return super().send(query)

        machine = self.unknown(by=ClaimedMeanwhile("plain", policy=worker.ACCOUNT))
        self.assertIs(machine.state, State.PREPARED)
        self.assertEqual([one.generation for one, _ in held], [1])
        dispatch(self.ledger, machine.operation_id, LosesReceipt(self.account))
        before = oracle.dump(self.scene.sender)
        seen = answers.ask(self.account, held[0][0].operation)
        with self.assertRaises(errors.StaleClaim):
            self.finish(held[0], seen)
        self.assertEqual(oracle.dump(self.scene.sender), before)
        self.lab.pass_time(worker.LEASE_MS)
        self.assertEqual(self.sweep(self.account), summary(1, 1, 0, 0))


class BadRows(SweepCase):
    unsafe = True  # rows are spoilt by hand

    def spoil(self, sql: str) -> None:
        """Write past every rule of the file, and put its rules back."""
        with closing(sqlite3.connect(self.scene.sender, isolation_level=None)) as other:
            other.execute("PRAGMA ignore_check_constraints = ON")
            kept = other.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall()
            for name, _ in kept:
                other.execute(f"DROP TRIGGER {name}")
            self.assertEqual(other.execute(sql).rowcount, 1, sql)
            for _, text in kept:
                other.execute(text)

    def test_a_bad_row_is_one_error_and_stops_no_other(self) -> None:
        """S4, C06: a question without its attempt, and rows that no longer parse."""
        newest = "= (SELECT max(number) FROM operation)"
        for version, sql in enumerate(
            (
                f"DELETE FROM attempt WHERE operation {newest}",
                f"UPDATE operation SET scope = '[' WHERE number {newest}",
                f"UPDATE operation SET state = 'perhaps' WHERE number {newest}",
                f"UPDATE operation SET payload = '{{' WHERE number {newest}",
                f"UPDATE operation SET payload = x'00' WHERE number {newest}",
                f"UPDATE operation SET subject = CAST(x'ff' AS TEXT) WHERE number {newest}",
                f"UPDATE obligation SET deadline_ms = 'soon' WHERE operation {newest}",
                f"UPDATE obligation SET fruitless = 'few' WHERE operation {newest}",
                "UPDATE policy SET body = '{}x' WHERE number = (SELECT max(number) FROM policy)",
            ),
            start=2,
        ):
            with self.subTest(sql):
                good = self.unknown(f"good {version}")
                policy = replace(worker.ACCOUNT, version=version)
                account = InProcessSupplier(
                    self.scene.receiver_file, identity="plain", policy=policy
                )
                self.unknown(f"bad {version}", by=LosesRequest(account))
                self.spoil(sql)
                with Ledger(self.scene.sender, clock=self.lab.clock) as fresh:
                    words: dict[str, Any] = {"worker": "worker 1", "scope": HERE}
                    done = reconcile_once(fresh, self.account, **words)
                    self.assertEqual(done, summary(1, 1, 0, 1))
                    self.assertIs(look(fresh, good.operation_id).state, State.CONFIRMED)
                    done = reconcile_once(fresh, self.account, **words)
                    self.assertEqual(done, summary(0, 0, 0, 0))

    def test_a_row_that_the_file_refuses_is_one_error_and_stops_no_other(self) -> None:
        """S4: a trigger of somebody else's lets no claim of it in."""
        self.unknown("bad")
        good = self.unknown("good")
        with closing(sqlite3.connect(self.scene.sender, isolation_level=None)) as other:
            other.execute(
                "CREATE TRIGGER not_this BEFORE INSERT ON claim WHEN NEW.item = '1' "
                "BEGIN SELECT RAISE(ABORT, 'not this'); END"
            )
        self.assertEqual(self.sweep(self.account), summary(1, 1, 0, 1))
        self.assertIs(self.state(good), State.CONFIRMED)
        self.assertEqual(self.sweep(self.account), summary(0, 0, 0, 0))

    def test_an_answer_that_cannot_be_written_is_one_error_and_stops_no_other(self) -> None:
        """S4: the file refuses its decision; the question stays open."""
        bad, good = self.unknown("bad"), self.unknown("good")
        with closing(sqlite3.connect(self.scene.sender, isolation_level=None)) as other:
            other.execute(
                "CREATE TRIGGER not_this BEFORE INSERT ON decision WHEN NEW.operation = 1 "
                "BEGIN SELECT RAISE(ABORT, 'not this'); END"
            )
        self.assertEqual(self.sweep(self.account), summary(2, 1, 0, 1))
        self.assertEqual((self.state(bad), self.state(good)), (State.UNKNOWN, State.CONFIRMED))

    def test_an_answer_that_is_refused_again_and_again_rests_and_calls_a_person(self) -> None:
        """S4, S12: each time is one error and one visit; the eighth calls."""
        self.unknown()
        with closing(sqlite3.connect(self.scene.sender, isolation_level=None)) as other:
            other.execute(
                "CREATE TRIGGER not_this BEFORE INSERT ON decision "
                "BEGIN SELECT RAISE(ABORT, 'not this'); END"
            )
        for number in range(1, sweeping.MOST_FRUITLESS + 1):
            self.assertEqual(self.sweep(self.account), summary(1, 0, 0, 1))
            self.assertEqual(self.sweep(self.account), summary(0, 0, 0, 0))
            question = self.question()
            self.assertEqual((question.visits, question.found), (number, "StorageFailed"))
            self.assertEqual(question.escalation is not None, number == sweeping.MOST_FRUITLESS)
            self.lab.pass_time(LONGEST_LEASE_MS)

    def test_a_row_that_is_nested_too_deeply_to_be_read_is_one_error(self) -> None:
        """S4: it raises no error of its own class out of the sweep."""
        deep = "[" * 200_000
        for column in ("payload", "scope"):
            with self.subTest(column):
                self.unknown(f"bad {column}", by=LosesRequest(self.account))
                good = self.unknown(f"good {column}")
                last = "(SELECT max(number) - 1 FROM operation)"
                self.spoil(f"UPDATE operation SET {column} = '{deep}' WHERE number = {last}")
                self.assertEqual(self.sweep(self.account), summary(1, 1, 0, 1))
                self.assertIs(self.state(good), State.CONFIRMED)

    def test_a_bad_row_comes_due_again_and_blocks_no_later_sweep(self) -> None:
        """S4, A12: it is one error each time it is due, and what is new beside it is answered."""
        self.unknown("bad", by=LosesRequest(self.account))
        self.spoil("DELETE FROM attempt WHERE operation = 1")
        for number in range(3):
            good = self.unknown(f"good {number}")
            self.assertEqual(self.sweep(self.account, batch=2), summary(1, 1, 0, 1))
            self.assertIs(self.state(good), State.CONFIRMED)
            self.assertEqual(self.sweep(self.account), summary(0, 0, 0, 0))
            self.lab.pass_time(sweeping.SLOWEST_MS)
        self.assertEqual(
            self.rows("SELECT state, version FROM operation LIMIT 1"), [("unknown", 2)]
        )


class FairOrder(SweepCase):
    def test_hopeless_rows_do_not_block_and_new_rows_do_not_starve(self) -> None:
        """S11, C06: the third is answered by the second sweep, the first within a bound."""
        hopeless = [self.unknown(f"o{n}", by=LosesRequest(self.account)) for n in (1, 2)]
        third = self.unknown("o3")
        self.sweep(self.account, batch=2)
        self.sweep(self.account, batch=2)
        self.assertIs(self.state(third), State.CONFIRMED)
        self.account.send(hopeless[0].query)
        for number in range(10):
            self.unknown(f"new {number}, 1")
            self.unknown(f"new {number}, 2")
            self.lab.pass_time(MINUTE_MS // 4)
            self.sweep(self.account, batch=2)
            if self.state(hopeless[0]) is State.CONFIRMED:
                break
        self.assertLess(number, 6)

    def test_each_of_501_is_visited_once_before_any_is_visited_twice(self) -> None:
        """S11, C06: in batches of ten, while the first ones come due again."""
        by = LosesRequest(self.account)
        for number in range(501):
            self.unknown(f"w-{number}", by=by)
        for _ in range(50):
            self.lab.pass_time(2_000)
            self.sweep(self.account)
        visits = [visits for (visits,) in self.rows("SELECT visits FROM obligation ORDER BY 1")]
        self.assertEqual((visits[0], visits[1], visits[-1]), (0, 1, 1))
        self.sweep(self.account, batch=1)
        self.assertEqual(self.rows("SELECT DISTINCT visits FROM obligation"), [(1,)])

    def test_what_a_slow_provider_left_unvisited_comes_before_what_was_visited(self) -> None:
        """S11, S8: its calls took the whole lease; what it claimed keeps its place."""
        operations = [self.unknown(f"o{n}", by=LosesRequest(self.account)) for n in (1, 2, 3)]
        takes_ms = iter((1_000, 7_200_000))

        def slowly(query: Query) -> Snapshot:
            self.lab.pass_time(next(takes_ms))
            return self.plain.snapshot(query)

        self.assertEqual(self.sweep(Says(slowly), lease_ms=3_600_000), summary(2, 0, 2, 0))
        self.assertEqual(self.sweep(self.account, batch=1), summary(1, 0, 1, 0))
        visits = {question.key: question.visits for question in views.obligations(self.ledger)}
        self.assertEqual([visits[made.operation_id] for made in operations], [1, 1, 1])

    def test_a_question_from_before_1970_is_one_like_others(self) -> None:
        """S4, S11: a clock that was never set loses nothing."""
        with Ledger(self.scene.sender, clock=lambda: -5) as early:
            by: Any = LosesReceipt(self.account)
            made = prepare(
                early, by, work_id="early", kind="start", payload={"m": 1}, subject="early"
            )
            dispatch(early, made.operation_id, by)
        self.assertEqual(self.question().opened_ms, -5)
        self.assertEqual(self.sweep(self.account), summary(1, 1, 0, 0))

    def test_a_clock_that_jumped_ahead_hides_no_question_for_ever(self) -> None:
        """S11, S12: what is due later than any lease could make it is due."""
        self.unknown()
        self.lab.pass_time(YEAR_MS)
        self.sweep()
        self.lab.step_back(YEAR_MS)
        self.assertEqual(self.sweep(self.account), summary(1, 1, 0, 0))

    def test_workers_of_other_scopes_and_receivers_never_meet(self) -> None:
        """S1, S11: each scope has its own workers, and each receiver its own provider."""
        theirs = self.unknown("theirs", scope=("acme", "billing", "test"))
        nobody = LosesRequest(UnavailableReceiver("nobody"))
        self.unknown("elsewhere", by=nobody)
        self.unknown("mine")
        self.assertEqual(self.sweep(self.account), summary(1, 1, 0, 0))
        self.assertEqual(self.sweep(self.account, scope=theirs.scope), summary(1, 1, 0, 0))
        self.assertEqual(self.sweep(), summary(1, 0, 1, 0))


class Flatness(SweepCase):
    unsafe = True  # rows are written by hand

    def test_a_sweep_takes_the_same_steps_whatever_stands_beside_it(self) -> None:
        """S11: SQLite's own count, at 1,000 and 100,000 open, ended and leased questions."""
        self.unknown()
        steps = []
        for last, due, ended in (
            (1_000, "1", "NULL"),
            (100_000, "1", "NULL"),
            (200_000, "1", "1"),
            (300_000, "9000000000000 + 1", "NULL"),
        ):
            self.fill(last, due, ended)
            steps.append(self.steps())
        self.assertGreater(steps[0], 1000)
        self.assertEqual(len(set(steps)), 1, steps)

    def fill(self, last: int, due: str, ended: str) -> None:
        with closing(sqlite3.connect(self.scene.sender, isolation_level=None)) as other:
            kept = other.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall()
            other.execute("PRAGMA synchronous = OFF")
            other.execute("BEGIN")
            for name, _ in kept:
                other.execute(f"DROP TRIGGER {name}")
            numbers = (
                "WITH RECURSIVE n(i) AS (SELECT (SELECT max(number) + 1 FROM operation) "
                f"UNION ALL SELECT i + 1 FROM n WHERE i < {last}) "
            )
            copied = ", ".join(
                "i" if name == "number" else "'op' || i" if name == "operation_id" else name
                for (name,) in other.execute(
                    "SELECT name FROM pragma_table_info('operation')"
                ).fetchall()
            )
            first = other.execute("SELECT max(number) + 1 FROM operation").fetchone()[0]
            other.execute(
                f"INSERT INTO operation {numbers} SELECT {copied} FROM n, operation "
                "WHERE number = 1"
            )
            other.execute(
                "INSERT INTO attempt SELECT number, 1, 1, NULL, NULL FROM operation "
                f"WHERE number >= {first}"
            )
            other.execute(
                f"INSERT INTO obligation SELECT number, 1, 1, 1, 1, NULL, {due}, 0, 0, NULL, 0, "
                f"{ended} FROM operation WHERE number >= {first}"
            )
            for _, text in kept:
                other.execute(text)
            other.execute("COMMIT")

    def steps(self) -> int:
        passed = 0

        class Counting(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                self.set_progress_handler(count, 1)
                return super().execute(sql, *values)

        def count() -> int:
            nonlocal passed
            passed += 1
            return 0

        clock = iter(range(9_000_000_000_000 - 1000, 9_000_000_000_000))
        with Ledger(self.scene.sender, clock=clock.__next__, factory=Counting) as ledger:
            passed = 0
            done = reconcile_once(
                ledger, UnavailableReceiver("plain"), worker="worker 1", scope=HERE
            )
        self.assertEqual(done, summary(10, 0, 10, 0))
        return passed


class FailingStatements(SweepCase):
    def test_a_failing_statement_leaves_the_file_as_it_stood_at_a_commit(self) -> None:
        """R4, S4: each statement of a sweep denied, then interrupted: never half of a commit."""
        self.unknown()
        counted = Fault()
        self.once(counted)
        self.assertGreater(len(counted.points), 20)
        for how in ("deny", "interrupt"):
            for at, point in enumerate(counted.points):
                self.lab.pass_time(2 * LONGEST_LEASE_MS)
                before, visits = self.content(), self.visits()
                fault = Fault(at, how=how)
                done = self.once(fault)
                with self.subTest(how, at=at, point=point):
                    self.assertTrue(fault.delivered or point in ("ROLLBACK", "COMMIT"))
                    if done is None or not done.claimed:
                        self.assertEqual(self.content(), before)
                    else:  # claimed; if its answer could not be written, that it was visited
                        self.assertEqual(self.visits(), visits + 1)

    def content(self) -> Any:
        return {k: v for k, v in oracle.dump(self.scene.sender).items() if k != "store"}

    def visits(self) -> int:
        return int(self.rows("SELECT sum(visits) FROM obligation")[0][0])

    def once(self, fault: Fault) -> SweepSummary | None:
        """One sweep by the stub, through a connection that breaks; None: it did not begin."""
        try:
            with Ledger(
                self.scene.sender, clock=self.lab.clock, factory=fault.connection()
            ) as ledger:
                return reconcile_once(
                    ledger, UnavailableReceiver("plain"), worker="worker 1", scope=HERE
                )
        except errors.ReconcileError:
            return None

    def test_a_broken_sweep_leaves_the_last_commit_before_the_break_and_no_transaction(
        self,
    ) -> None:
        """R4, S12: the whole file is compared, for each statement of a sweep that resolves; of an
        answer that could not be written, the visit alone is noted.
        """
        self.unknown()
        self.ledger.close()
        start = self.scene.sender.parent.with_name("start")
        shutil.copytree(self.scene.sender.parent, start)
        before = oracle.dump(start / "sender.db")
        whole = Fault()
        done, left = self.broken(start, whole)
        self.assertEqual((done, len(left)), (summary(1, 1, 0, 0), 2))
        for how in ("deny", "interrupt"):
            delivered = 0
            for at, point in enumerate(whole.points):
                with self.subTest(how, at=at, point=point):
                    fault = Fault(at, how=how)
                    said, _ = self.broken(start, fault)
                    delivered += fault.delivered
                    now = oracle.dump(self.scene.sender)
                    if fault.delivered:
                        self.assertNotEqual(said, done)
                        stands = [tables for commit, tables in left if commit < at]
                        stood = stands[-1] if stands else before
                        if said is not None and said.claimed:  # the visit is noted, and no more
                            noted = {"obligation", "claim", "store"}
                            self.assertEqual({t for t in now if now[t] != stood[t]}, noted)
                        else:
                            self.assertEqual(now, stood)
                    else:  # SQLite had ended it before it could be interrupted
                        self.assertEqual((how, said, now), ("interrupt", done, left[-1][1]))
            self.assertGreater(delivered, 20)

    def broken(self, start: Path, fault: Fault) -> tuple[SweepSummary | None, list[Any]]:
        """One sweep of fresh copies under a fault; and what each of its commits left."""
        folder, left = self.scene.sender.parent, []
        shutil.rmtree(folder)
        shutil.copytree(start, folder)
        opened: list[sqlite3.Connection] = []
        file = self.scene.sender

        class Recording(fault.connection()):  # type: ignore[misc]
            def __init__(self, *given: Any, **named: Any) -> None:
                super().__init__(*given, **named)
                opened.append(self)

            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                cursor = super().execute(sql, *values)
                if sql == "COMMIT":
                    left.append((len(fault.points) - 1, oracle.dump(file)))
                return cursor  # type: ignore[no-any-return]

        clock = ticks(BIRTH_MS + 10_000)
        done = None
        with mock.patch(TOKEN, return_value="same"):
            try:
                with Ledger(file, clock=clock.__next__, factory=Recording) as ledger:
                    done = reconcile_once(ledger, self.account, worker="worker 1", scope=HERE)
                    self.assertFalse(opened[0].in_transaction)
            except errors.ReconcileError:
                pass
        return done, left
