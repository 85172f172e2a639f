"""What a snapshot proves and what it does not, what a receipt is, and how far each is trusted."""

from __future__ import annotations

import itertools
import json
import sqlite3
import unittest
from contextlib import closing
from dataclasses import replace
from typing import Any, TypeVar

from experiments.harness import oracle
from experiments.harness.lossy import answering
from experiments.harness.plain import IDENTITY, POLICY
from experiments.harness.scene import Scene
from experiments.tests.base import ORDER, LabCase, LosesReceipt, LosesRequest
from reconcile import (
    Effect,
    EffectPolicy,
    Ledger,
    Operation,
    ProcessReceiver,
    Query,
    Receipt,
    Receiver,
    Snapshot,
    State,
    Transport,
    UnavailableReceiver,
    Verdict,
    classify,
    close,
    dispatch,
    look,
    observe,
    prepare,
    reconcile,
)
from reconcile.rules import moves, receipts
from reconcile.rules.errors import (
    Malformed,
    NoReply,
    Overclaimed,
    Unresolving,
    WrongQuestion,
)
from reconcile.rules.evidence import CONCLUSIVE, OUTCOME_OF, receipt_from, snapshot_from
from reconcile.rules.move import Move
from reconcile.rules.operation import Scope
from reconcile.rules.receipts import Origin

Value = TypeVar("Value")
BITS = (False, True)
FLAGS = ("complete", "authoritative", "closed")
ALL = (True, True, True)
QUERY = Query(
    operation_id="op-1",
    target=IDENTITY,
    kind="charge",
    payload='{"pence":1500}',
    compensates=None,
    epoch=1,
)
MATCH = Effect(
    effect_id="op-1#1",
    operation_id="op-1",
    kind="charge",
    payload='{"pence":1500}',
    compensates=None,
)
COPY = replace(MATCH, effect_id="op-1#2")
OTHER_PAYLOAD = replace(MATCH, payload='{"pence":1501}')
OTHER_KIND = replace(MATCH, kind="refund")
OTHER_EFFECT = replace(MATCH, compensates="op-0#1")
OTHER_ALL = replace(MATCH, kind="refund", payload='{"pence":1501}', compensates="op-0#1")


class FortyEightCells(unittest.TestCase):
    """The classifier, cell by cell, against a table that is written out here."""

    def test_every_cell_has_its_verdict(self) -> None:
        """E1, E2, E3: 8 + 32 + 8 cells, each against the sentence of its row."""
        seen = 0
        for flags in itertools.product(BITS, repeat=3):
            with self.subTest(flags=flags):
                empty = "terminal_absence" if flags == ALL else "inconclusive"
                unique = "unique_exact_match" if flags == ALL else "exact_match_existence_only"
                for effects, wanted in (
                    ((), empty),
                    ((MATCH,), unique),
                    ((OTHER_PAYLOAD,), "payload_mismatch"),
                    ((OTHER_KIND,), "action_scope_mismatch"),
                    ((OTHER_ALL,), "payload_mismatch"),
                    ((MATCH, COPY), "duplicate_matches"),
                ):
                    self.assertEqual(classify(snapshot(effects, flags)).value, wanted)
                    seen += 1
        self.assertEqual(seen, 48)

    def test_the_forty_eight_cells_are_8_and_32_and_8(self) -> None:
        """E3: payload and scope vary only for one match, and exactly two cells resolve."""
        resolving = []
        for number, flags in cells():
            effects = {0: (), 2: (MATCH, COPY)}.get(number[0], one_effect(*number[1:]))
            verdict = classify(snapshot(effects, flags))
            if verdict.resolves is not None:
                resolving.append((number, flags, verdict, verdict.resolves))
        self.assertEqual(len(list(cells())), 48)
        self.assertEqual(
            resolving,
            [
                ((0,), ALL, Verdict.TERMINAL_ABSENCE, State.NOT_APPLIED),
                ((1, True, True), ALL, Verdict.UNIQUE_EXACT_MATCH, State.CONFIRMED),
            ],
        )

    def test_the_seven_verdicts_are_these_and_two_of_them_resolve(self) -> None:
        """E1, E3: no eighth word, and each of the seven is reached."""
        words = {
            "duplicate_matches": None,
            "payload_mismatch": None,
            "action_scope_mismatch": None,
            "exact_match_existence_only": None,
            "unique_exact_match": State.CONFIRMED,
            "terminal_absence": State.NOT_APPLIED,
            "inconclusive": None,
        }
        self.assertEqual({verdict.value: verdict.resolves for verdict in Verdict}, words)
        self.assertTrue(all(verdict.says for verdict in Verdict))
        reached = set()
        for effects in ((), (MATCH,), (OTHER_PAYLOAD,), (OTHER_KIND,), (MATCH, COPY)):
            reached |= {
                classify(snapshot(effects, flags)) for flags in itertools.product(BITS, repeat=3)
            }
        self.assertEqual(reached, set(Verdict))

    def test_empty_is_never_absence_unless_all_three_flags_stand(self) -> None:
        """E5, C09: seven readings out of eight prove nothing at all."""
        for flags in itertools.product(BITS, repeat=3):
            verdict = classify(snapshot((), flags))
            wanted = Verdict.TERMINAL_ABSENCE if flags == ALL else Verdict.INCONCLUSIVE
            self.assertIs(verdict, wanted, flags)

    def test_one_match_is_never_unique_unless_all_three_flags_stand(self) -> None:
        """E6, C09: seven readings out of eight prove that it exists and no more."""
        for flags in itertools.product(BITS, repeat=3):
            verdict = classify(snapshot((MATCH,), flags))
            wanted = (
                Verdict.UNIQUE_EXACT_MATCH if flags == ALL else Verdict.EXACT_MATCH_EXISTENCE_ONLY
            )
            self.assertIs(verdict, wanted, flags)

    def test_payload_comes_before_scope_and_number_before_both(self) -> None:
        """E2: kind and compensated effect are one question, asked after the payload."""
        for effects, wanted in (
            ((OTHER_KIND,), Verdict.ACTION_SCOPE_MISMATCH),
            ((OTHER_EFFECT,), Verdict.ACTION_SCOPE_MISMATCH),
            ((OTHER_ALL,), Verdict.PAYLOAD_MISMATCH),
            ((OTHER_PAYLOAD, OTHER_ALL), Verdict.DUPLICATE_MATCHES),
            ((OTHER_KIND, OTHER_EFFECT, MATCH), Verdict.DUPLICATE_MATCHES),
        ):
            for flags in itertools.product(BITS, repeat=3):
                self.assertIs(classify(snapshot(effects, flags)), wanted)

    def test_a_compensation_is_matched_by_the_effect_that_it_amends(self) -> None:
        """E2: of two refunds of one sum, each answers its own question alone."""
        asked = replace(QUERY, kind="refund", compensates="op-0#1")
        mine = replace(MATCH, kind="refund", compensates="op-0#1")
        other = replace(mine, compensates="op-0#2")
        none = replace(mine, compensates=None)
        for row, wanted in (
            (mine, Verdict.UNIQUE_EXACT_MATCH),
            (other, Verdict.ACTION_SCOPE_MISMATCH),
            (none, Verdict.ACTION_SCOPE_MISMATCH),
        ):
            self.assertIs(classify(snapshot((row,), ALL, query=asked)), wanted)

    def test_the_order_of_rows_changes_nothing(self) -> None:
        """E2: every permutation of up to four rows, under all flags."""
        rows = (MATCH, COPY, OTHER_PAYLOAD, OTHER_KIND)
        for number in (2, 3, 4):
            for chosen in itertools.combinations(rows, number):
                for flags in itertools.product(BITS, repeat=3):
                    verdicts = {
                        classify(snapshot(order, flags))
                        for order in itertools.permutations(chosen)
                    }
                    self.assertEqual(verdicts, {Verdict.DUPLICATE_MATCHES})

    def test_a_row_of_another_receiver_or_epoch_proves_not_even_existence(self) -> None:
        """E4: such a snapshot is inconclusive, whatever it shows and claims."""
        for changed in ({"receiver": "other"}, {"epoch": 2}, {"receiver": "Plain", "epoch": 1}):
            for effects in ((), (MATCH,), (OTHER_PAYLOAD,), (OTHER_KIND,), (MATCH, COPY)):
                for flags in itertools.product(BITS, repeat=3):
                    foreign = replace(snapshot(effects, flags), **changed)
                    self.assertIs(classify(foreign), Verdict.INCONCLUSIVE)

    def test_classify_takes_a_snapshot_and_nothing_else(self) -> None:
        """E1, E4: a list of rows, a receipt or nothing is Malformed."""
        others: tuple[Any, ...] = (None, (), [MATCH], {}, receipt(), QUERY, Snapshot)
        for other in others:
            with self.assertRaises(Malformed):
                classify(other)


class ConstructionRefusesWhatCannotBeClassified(unittest.TestCase):
    """Flags, rows and fields are checked where they enter, so that classify is total."""

    def test_a_flag_is_a_boolean_and_nothing_that_looks_like_one(self) -> None:
        """E4, C09: 1, 0, None and words are refused, naming the flag."""
        wrong: tuple[Any, ...] = (1, 0, None, "true", "false", "", [], 1.0)
        for flag in FLAGS:
            for bad in wrong:
                with self.subTest(flag=flag, bad=bad), self.assertRaises(Malformed) as caught:
                    changed(snapshot((), ALL), flag, bad)
                self.assertEqual(caught.exception.place, f"snapshot.{flag}")

    def test_a_row_of_another_operation_is_refused(self) -> None:
        """E4: alone, and among rows that do belong; the place says which row it is."""
        foreign = replace(MATCH, operation_id="op-2")
        for effects, at in (((foreign,), 0), ((MATCH, foreign), 1), ((foreign, MATCH), 0)):
            with self.assertRaises(Malformed) as caught:
                snapshot(effects, ALL)
            self.assertEqual(caught.exception.place, f"snapshot.effects[{at}]")

    def test_effects_are_a_tuple_of_effects(self) -> None:
        """E4: what could change later, or is no row, is refused."""
        wrong: tuple[Any, ...] = ([MATCH], None, MATCH, iter((MATCH,)), {MATCH}, {}, "ab")
        for bad in wrong:
            with self.assertRaises(Malformed) as caught:
                snapshot(bad, ALL)
            self.assertEqual(caught.exception.place, "snapshot.effects")
        for row in (None, "op-1#1", {"effect_id": "op-1#1"}, receipt()):
            with self.assertRaises(Malformed) as caught:
                snapshot((MATCH, row), ALL)
            self.assertEqual(caught.exception.place, "snapshot.effects[1]")

    def test_every_field_of_every_value_is_checked_by_name(self) -> None:
        """E4: texts, optional texts and epochs of queries, effects, snapshots and receipts."""
        bad_text = ("", "  ", 5, b"x", True, "\ud800", ["x"])
        bad_epoch = (0, -1, True, "1", 1.0, None, 2**63)
        for value, name in (
            (QUERY, "query"),
            (MATCH, "effect"),
            (snapshot((), ALL), "snapshot"),
            (receipt(), "receipt"),
        ):
            for field in type(value).__dataclass_fields__:
                if field in (*FLAGS, "query", "effects"):
                    continue
                bad = bad_epoch if field == "epoch" else bad_text
                may_be_none = field == "compensates" or (name, field) == ("receipt", "effect_id")
                for wrong in bad if may_be_none or field == "epoch" else (*bad, None):
                    with self.subTest(field=field, wrong=wrong), self.assertRaises(Malformed) as e:
                        changed(value, field, wrong)
                    self.assertEqual(e.exception.place, f"{name}.{field}")
        for no_query in (None, "op-1", MATCH):
            with self.assertRaises(Malformed):
                snapshot((), ALL, query=no_query)


class EvidenceAnswersItsOwnQuestion(LabCase):
    """observe and reconcile take evidence about this operation, this receiver and this epoch."""

    def test_another_question_is_refused_by_both_and_nothing_is_written(self) -> None:
        """E4: operation, payload, kind, target, compensated effect, epoch, receiver: one at a
        time.
        """
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = self.unknown(scene, ledger)
            facts = closed_read(scene, ledger, operation)
            before = oracle.dump(scene.sender)
            for differs, other in wrong_questions(facts):
                for call in (
                    lambda s=other: observe(ledger, operation.operation_id, s),
                    lambda s=other: reconcile(
                        ledger,
                        operation.operation_id,
                        s,
                        reviewer="rita",
                        expected_version=2,
                    ),
                ):
                    with self.subTest(differs), self.assertRaises(WrongQuestion) as caught:
                        call()
                    self.assertIn(differs, caught.exception.differs)
                    self.assertEqual(oracle.dump(scene.sender), before)
            done = reconcile(
                ledger, operation.operation_id, facts, reviewer="rita", expected_version=2
            )
            self.assertIs(done.state, State.CONFIRMED)

    def test_evidence_for_one_operation_never_ends_another(self) -> None:
        """E4: two honest snapshots, each refused at the other operation."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            one = self.unknown(scene, ledger)
            other = self.unknown(scene, ledger, work_id="w-2")
            facts = closed_read(scene, ledger, other)
            with self.assertRaises(WrongQuestion):
                reconcile(ledger, one.operation_id, facts, reviewer="rita", expected_version=2)
            self.assertIs(look(ledger, one.operation_id).state, State.UNKNOWN)

    def test_duplicates_and_mismatches_are_kept_and_name_no_row(self) -> None:
        """E2, E4: the verdict is a word, the decision is refused, no effect id is recorded."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = self.unknown(scene, ledger)
            identity = operation.operation_id
            row = Effect(
                effect_id=f"{identity}#1",
                operation_id=identity,
                kind=operation.kind,
                payload=operation.payload,
                compensates=None,
            )
            copy = replace(row, effect_id=f"{identity}#2")
            for effects, verdict in (
                ((row, copy), Verdict.DUPLICATE_MATCHES),
                ((copy, row), Verdict.DUPLICATE_MATCHES),
                ((replace(row, payload="{}"),), Verdict.PAYLOAD_MISMATCH),
                ((replace(row, kind="refund"),), Verdict.ACTION_SCOPE_MISMATCH),
            ):
                seen = snapshot(effects, ALL, query=operation.query)
                self.assertIs(observe(ledger, identity, seen), verdict)
                with self.assertRaises(Unresolving) as caught:
                    reconcile(ledger, identity, seen, reviewer="rita", expected_version=2)
                self.assertEqual(vars(caught.exception), {"verdict": verdict.value})
                self.assertEqual(look(ledger, identity), operation)
            self.assertIsNone(operation.effect_id)
        columns = "name FROM pragma_table_info('observation')"
        self.assertNotIn(("effect_id",), oracle.rows(scene.sender, f"SELECT {columns}"))
        decided = oracle.rows(scene.sender, "SELECT cause, effect_id FROM decision")
        self.assertEqual(decided, [("announced", None)])

    def test_observing_moves_nothing_whatever_it_proves(self) -> None:
        """E13, E5, E6: a resolving snapshot is kept with its verdict; the state stays."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = self.unknown(scene, ledger)
            facts = closed_read(scene, ledger, operation)
            self.assertIs(
                observe(ledger, operation.operation_id, facts), Verdict.UNIQUE_EXACT_MATCH
            )
            self.assertIs(look(ledger, operation.operation_id).state, State.UNKNOWN)
        kept = oracle.rows(scene.sender, "SELECT seen, verdict, evidence FROM observation")
        self.assertEqual(kept, [(1, "unique_exact_match", facts.to_json())])
        self.assertEqual(oracle.rows(scene.sender, "SELECT * FROM receipt"), [])

    def test_no_such_order_is_never_proof_that_it_did_not_happen(self) -> None:
        """C09, E5, E7: complete and authoritative is not enough while the original is held."""
        scene = self.lab.scene()
        held = scene.held()
        with scene.ledger() as ledger:
            operation = prepare(ledger, scene.near(), **ORDER)
            self.assertIs(dispatch(ledger, operation.operation_id, held).outcome, State.UNKNOWN)
            empty = scene.receiver().snapshot(operation.query)
            self.assertEqual((empty.effects, flags_of(empty)), ((), (True, True, False)))
            before = oracle.dump(scene.sender)
            with self.assertRaises(Unresolving):
                reconcile(
                    ledger, operation.operation_id, empty, reviewer="rita", expected_version=2
                )
            self.assertEqual(oracle.dump(scene.sender), before)
            held.grant()
            self.assertEqual(len(oracle.effects(scene.receiver_file)[operation.operation_id]), 1)
            facts = scene.receiver().snapshot(operation.query, close=True)
            self.assertIs(classify(facts), Verdict.UNIQUE_EXACT_MATCH)


class ReceiptsAndSnapshots(LabCase):
    """Two kinds of evidence, and what each is allowed to say."""

    def test_a_receipt_has_one_of_five_statuses_and_three_are_conclusive(self) -> None:
        """E13: every other word is refused, and an accepted one names its effect."""
        said = {status: outcome.value for status, outcome in OUTCOME_OF.items()}
        self.assertEqual(
            said,
            {
                "accepted": "confirmed",
                "rejected": "rejected",
                "failed": "failed",
                "pending": "pending",
                "partial": "partial",
            },
        )
        self.assertEqual(CONCLUSIVE, ("accepted", "rejected", "failed"))
        for status in OUTCOME_OF:
            named = None if status == "rejected" else "e1"
            self.assertEqual(receipt(status=status, effect_id=named).status, status)
        for status in ("Accepted", "accepted ", "ok", "unknown", "closed", "timeout", "succeeded"):
            with self.assertRaises(Malformed) as caught:
                receipt(status=status)
            self.assertEqual(caught.exception.place, "receipt.status")
        with self.assertRaises(Malformed):
            receipt(status="accepted", effect_id=None)
        with self.assertRaises(Malformed):  # it would free money over an effect that it names
            receipt(status="rejected", effect_id="e1")

    def test_the_direct_reply_of_our_single_send_confirms(self) -> None:
        """E13: by a real process; the receipt stands in the same commit as the decision."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = prepare(ledger, scene.receiver(), **ORDER)
            seen = dispatch(ledger, operation.operation_id, scene.receiver())
            self.assertEqual(
                (seen.outcome, seen.transport), (State.CONFIRMED, Transport.RESPONSE_RECEIVED)
            )
        decided = oracle.rows(
            scene.sender, "SELECT cause, receipt FROM decision WHERE target = 'confirmed'"
        )
        self.assertEqual(decided, [("receipt", 1)])
        self.assertEqual(len(oracle.rows(scene.sender, "SELECT * FROM receipt")), 1)

    def test_a_reply_does_not_speak_where_two_sends_may_have_left(self) -> None:
        """E13: the receipt is kept, and the operation stays unknown."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = prepare(ledger, scene.near(), **ORDER)
            seen = dispatch(ledger, operation.operation_id, SendsTwice(scene))
            self.assertEqual(
                (seen.outcome, seen.transport), (State.UNKNOWN, Transport.RESPONSE_RECEIVED)
            )
            self.assertEqual(look(ledger, operation.operation_id).may_have_left, 2)
        self.assertEqual(len(oracle.rows(scene.sender, "SELECT * FROM receipt")), 1)

    def test_only_a_receipt_for_exactly_this_effect_settles(self) -> None:
        """E13, E4: each of the fields that bind it, one at a time; kept, and still unknown."""
        for field, value in (
            ("operation_id", "op-9"),
            ("kind", "refund"),
            ("payload", '{"pence":1501}'),
            ("compensates", "op-0#1"),
            ("receiver", "other"),
            ("epoch", 2),
        ):
            scene = self.lab.scene(field)
            with self.subTest(field), scene.ledger() as ledger:
                operation = prepare(ledger, scene.near(), **ORDER)
                seen = dispatch(
                    ledger, operation.operation_id, Misquotes(scene.near(), {field: value})
                )
                self.assertIs(seen.outcome, State.UNKNOWN)
                self.assertIs(seen.transport, Transport.RESPONSE_RECEIVED)
                self.assertFalse(seen.authoritative)
                kept = oracle.rows(scene.sender, "SELECT body FROM receipt")
                self.assertEqual(json.loads(kept[0][0])[field], value)

    def test_a_plain_read_never_yields_a_receipt(self) -> None:
        """E13: a receipt in the place of a snapshot, and a snapshot in the place of a receipt."""
        answers_receipt = says({"reply": "receipt", "receipt": as_json(receipt())})
        for close_too in BITS:
            with self.assertRaises(NoReply):
                answers_receipt.snapshot(QUERY, close=close_too)
        answer = {"reply": "snapshot", "snapshot": snapshot_json()}
        with self.assertRaises(Malformed) as caught:
            says(answer).send(QUERY)
        self.assertEqual(caught.exception.place, "reply")
        self.assertIsInstance(says(answer).snapshot(QUERY), Snapshot)

    def test_a_snapshot_in_the_place_of_a_receipt_leaves_it_unknown(self) -> None:
        """E13: also one that would resolve, through dispatch."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = prepare(ledger, scene.near(), **ORDER)
            seen = dispatch(ledger, operation.operation_id, ReadsInstead(scene.near()))
            self.assertIs(seen.outcome, State.UNKNOWN)
        self.assertEqual(oracle.rows(scene.sender, "SELECT * FROM receipt"), [])


class FlagsAreNeverRaised(LabCase):
    """Evidence is trusted as far as the pinned policy declares, and no further."""

    def test_under_the_default_policy_no_flag_may_be_claimed(self) -> None:
        """E14: any flag is Overclaimed, by observe and by reconcile; none at all is kept."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = self.under(scene, ledger, EffectPolicy())
            before = oracle.dump(scene.sender)
            for flags in itertools.product(BITS, repeat=3):
                claimed = " and ".join(
                    name for name, flag in zip(FLAGS, flags, strict=True) if flag
                )
                if not claimed:
                    continue
                seen = snapshot((), flags, query=operation.query)
                for call in both(ledger, operation, seen):
                    with self.subTest(claimed), self.assertRaises(Overclaimed) as caught:
                        call()
                    self.assertEqual(caught.exception.flags, claimed)
            self.assertEqual(oracle.dump(scene.sender), before)
            bare = snapshot((), (False, False, False), query=operation.query)
            self.assertIs(observe(ledger, operation.operation_id, bare), Verdict.INCONCLUSIVE)

    def test_each_flag_is_bound_by_its_own_line_of_the_policy(self) -> None:
        """E14: from a policy that declares all, one declaration at a time is left out."""
        for number, (declaration, flag) in enumerate(
            (
                ("read_complete", "complete"),
                ("read_authoritative", "authoritative"),
                ("can_close", "closed"),
            )
        ):
            scene = self.lab.scene(declaration)
            with self.subTest(flag), scene.ledger() as ledger:
                operation = self.under(scene, ledger, changed(POLICY, declaration, False))
                before = oracle.dump(scene.sender)
                flags = (number != 2, number != 2, number == 2)
                seen = snapshot((), flags, query=operation.query)
                for call in both(ledger, operation, seen):
                    with self.assertRaises(Overclaimed) as caught:
                        call()
                    self.assertEqual(caught.exception.flags, flag)
                self.assertEqual(oracle.dump(scene.sender), before)
                lowered = changed(seen, flag, False)
                observe(ledger, operation.operation_id, lowered)

    def test_a_flag_may_always_be_lowered(self) -> None:
        """E14: every combination below the policy is kept, and only all three resolve."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = self.unknown(scene, ledger)
            facts = closed_read(scene, ledger, operation)
            self.assertEqual(flags_of(facts), ALL)
            for flags in itertools.product(BITS, repeat=3):
                complete, authoritative, closed = flags
                lowered = replace(
                    facts, complete=complete, authoritative=authoritative, closed=closed
                )
                verdict = observe(ledger, operation.operation_id, lowered)
                self.assertIs(verdict is Verdict.UNIQUE_EXACT_MATCH, flags == ALL)

    def test_a_raised_flag_is_judged_under_the_pinned_policy_not_the_present(self) -> None:
        """E14: a receiver that promises more today lends nothing to yesterday's operation."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = self.under(scene, ledger, EffectPolicy())
            again = prepare(ledger, scene.near(policy=POLICY), **ORDER)
            self.assertEqual(again, look(ledger, operation.operation_id))
            facts = scene.near(policy=POLICY).snapshot(operation.query, close=True)
            self.assertEqual(flags_of(facts), ALL)
            for call in both(ledger, operation, facts):
                with self.assertRaises(Overclaimed):
                    call()
            self.assertIs(look(ledger, operation.operation_id).state, State.UNKNOWN)

    def test_the_teaching_receivers_plain_read_is_closed_exactly_when_a_mark_stands(self) -> None:
        """E14, E8: by real processes; complete and authoritative always, and nothing is marked."""
        scene = self.lab.scene()
        receiver = scene.receiver()
        for query in (QUERY, replace(QUERY, operation_id="op-2")):
            before = oracle.dump(scene.receiver_file)
            self.assertEqual(flags_of(receiver.snapshot(query)), (True, True, False))
            self.assertEqual(oracle.dump(scene.receiver_file), before)
            self.assertEqual(flags_of(receiver.snapshot(query, close=True)), ALL)
            self.assertEqual(flags_of(receiver.snapshot(query)), ALL)
        self.assertEqual(oracle.closed(scene.receiver_file), ["op-1", "op-2"])

    def test_the_stub_claims_nothing(self) -> None:
        """E14: a receiver without an adapter finds nothing and raises no flag, closing or not."""
        stub = UnavailableReceiver(IDENTITY)
        self.assertEqual(stub.policy, EffectPolicy())
        for close_too in BITS:
            found = stub.snapshot(QUERY, close=close_too)
            self.assertEqual((found.effects, flags_of(found)), ((), (False, False, False)))
            self.assertIs(classify(found), Verdict.INCONCLUSIVE)

    def under(self, scene: Scene, ledger: Ledger, policy: EffectPolicy) -> Operation:
        """An operation that was prepared under this policy and never answered."""
        operation = prepare(ledger, scene.near(policy=policy), **ORDER)
        dispatch(ledger, operation.operation_id, LosesRequest(scene.near(policy=policy)))
        return look(ledger, operation.operation_id)


class JsonIsReadStrictly(unittest.TestCase):
    """A reply has exactly its fields, of exactly their types, or it is Malformed by place."""

    def test_a_complete_reply_is_read_as_it_stands(self) -> None:
        """E4: the control: both kinds, with a row and without."""
        self.assertEqual(snapshot_from(QUERY, snapshot_json()), snapshot((MATCH,), ALL))
        self.assertEqual(
            snapshot_from(QUERY, {**snapshot_json(), "effects": []}), snapshot((), ALL)
        )
        self.assertEqual(receipt_from(as_json(receipt())), receipt())

    def test_every_missing_field_is_named(self) -> None:
        """E4: of the snapshot, of its rows, and of the receipt."""
        for name, read, whole in readers():
            for field in whole:
                less = {key: value for key, value in whole.items() if key != field}
                with self.subTest(name=name, field=field), self.assertRaises(Malformed) as caught:
                    read(less)
                self.assertEqual(caught.exception.place, name)
                self.assertIn(field, caught.exception.why)

    def test_every_unexpected_field_is_named(self) -> None:
        """E4: an answer that says more than it was asked is not understood."""
        for name, read, whole in readers():
            for extra in ("query", "note", "Closed", "closed "):
                with self.subTest(name=name, extra=extra), self.assertRaises(Malformed) as caught:
                    read({**whole, extra: True})
                self.assertEqual(caught.exception.place, name)
                self.assertIn(extra, caught.exception.why)
            with self.assertRaises(Malformed) as caught:
                read(dict([*whole.items(), (5, "five")]))
            self.assertIn("5", caught.exception.why)

    def test_every_ill_typed_field_is_named(self) -> None:
        """E4, C09: booleans as words or numbers, numbers as texts, texts as anything."""
        for name, read, whole in readers():
            for field, value in whole.items():
                for wrong in ill_typed(name, field, value):
                    with self.subTest(name=name, field=field, wrong=wrong):
                        with self.assertRaises(Malformed) as caught:
                            read({**whole, field: wrong})
                        self.assertIn(f".{field}", caught.exception.place)

    def test_a_reply_that_is_no_object_is_refused(self) -> None:
        """E4: whatever JSON could hold in its place."""
        for other in (None, [], "accepted", 1, True, 1.5, [as_json(receipt())]):
            for read in (receipt_from, lambda reply: snapshot_from(QUERY, reply)):
                with self.assertRaises(Malformed):
                    read(other)
            no_rows: tuple[Any, ...] = (None, {}, "rows", 0, [other])
            for bad_rows in no_rows:
                with self.assertRaises(Malformed) as caught:
                    snapshot_from(QUERY, {**snapshot_json(), "effects": bad_rows})
                self.assertIn("snapshot.effects", caught.exception.place)

    def test_a_reply_about_another_operation_is_refused(self) -> None:
        """E4: in its head, and in a row."""
        with self.assertRaises(Malformed) as caught:
            snapshot_from(QUERY, {**snapshot_json(), "operation_id": "op-2"})
        self.assertEqual(caught.exception.place, "snapshot.operation_id")
        row = {**as_json(MATCH), "operation_id": "op-2"}
        with self.assertRaises(Malformed) as caught:
            snapshot_from(QUERY, {**snapshot_json(), "effects": [row]})
        self.assertEqual(caught.exception.place, "snapshot.effects[0]")

    def test_malformed_replies_of_a_process_are_no_evidence(self) -> None:
        """E4, E13: a read that brings nonsense raises, and a send that does is unknown."""
        for line in ("null", "[]", '"accepted"', "{", '{"reply": 1}', "[" * 5000, "NaN", '{"a":'):
            process = says(line)
            with self.subTest(line[:9]), self.assertRaises((Malformed, NoReply)):
                process.snapshot(QUERY)
            with self.subTest(line[:9]), self.assertRaises(Malformed):
                process.send(QUERY)


class RulesStandAlone(unittest.TestCase):
    """The named rules of evidence, each without a file."""

    def test_closing_and_reading_is_complete_by_itself(self) -> None:
        """E14: where the policy can close, a closed snapshot needs no other declaration."""
        operation = bare_operation(EffectPolicy(can_close=True))
        moves.within_policy(operation, snapshot((), ALL, query=operation.query))
        for flags in itertools.product(BITS, BITS, (False,)):
            if any(flags):
                with self.assertRaises(Overclaimed):
                    moves.within_policy(operation, snapshot((), flags, query=operation.query))

    def test_a_receipt_is_ours_only_alone(self) -> None:
        """E13: with none, one, two or three sends that may have left."""
        for attempts, not_sent, settles in (
            (1, 0, True),
            (2, 1, True),
            (2, 0, False),
            (3, 1, False),
        ):
            operation = replace(
                bare_operation(POLICY),
                state=State.UNKNOWN,
                version=2,
                attempts=attempts,
                not_sent=not_sent,
            )
            moved = receipts.settle(operation, receipt(), Origin.REPLY, actor="sender")
            self.assertIs(isinstance(moved, Move), settles, (attempts, not_sent))


class SendsTwice(LosesReceipt):
    """Another send of the same operation is announced while ours is on its way."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene.near())
        self._scene = scene

    def send(self, query: Query) -> Receipt | None:
        announce_another(self._scene)
        return self._inner.send(query)


class Misquotes(LosesReceipt):
    """The effect is made, and its receipt says something else in one field."""

    def __init__(self, inner: Receiver, change: dict[str, Any]) -> None:
        super().__init__(inner)
        self._change = change

    def send(self, query: Query) -> Receipt | None:
        reply = self._inner.send(query)
        assert reply is not None
        return replace(reply, **self._change)


class ReadsInstead(LosesReceipt):
    """A send is answered with a closing read."""

    def send(self, query: Query) -> Receipt | None:
        self._inner.send(query)
        return self._inner.snapshot(query, close=True)  # type: ignore[return-value]


def announce_another(scene: Scene) -> None:
    with closing(sqlite3.connect(scene.sender, isolation_level=None)) as connection:
        connection.execute("INSERT INTO attempt VALUES (1, 2, 0, NULL, NULL)")


def snapshot(effects: Any, flags: tuple[bool, ...], *, query: Any = QUERY) -> Snapshot:
    complete, authoritative, closed = flags
    return Snapshot(
        query=query,
        effects=effects,
        complete=complete,
        authoritative=authoritative,
        closed=closed,
        receiver=IDENTITY,
        epoch=1,
    )


def changed(value: Value, field: str, other: Any) -> Value:
    """The same value with another thing in one field, well-typed or not."""
    fields = {field: other}
    return replace(value, **fields)  # type: ignore[type-var]


def receipt(**others: Any) -> Receipt:
    fields: dict[str, Any] = {
        "operation_id": "op-1",
        "status": "accepted",
        "effect_id": "op-1#1",
        "kind": "charge",
        "payload": '{"pence":1500}',
        "compensates": None,
        "receiver": IDENTITY,
        "epoch": 1,
    }
    return Receipt(**{**fields, **others})


def bare_operation(policy: EffectPolicy) -> Operation:
    return Operation(
        number=1,
        operation_id="op-1",
        digest="d",
        work_id="w",
        target=IDENTITY,
        epoch=1,
        kind="charge",
        payload='{"pence":1500}',
        subject="s",
        scope=Scope(),
        policy=policy,
        prepared_ms=0,
    )


def cells() -> Any:
    """(how many matches, and for one: payload and scope match) x the three flags."""
    for flags in itertools.product(BITS, repeat=3):
        yield (0,), flags
        yield (2,), flags
        for payload, scope in itertools.product(BITS, BITS):
            yield (1, payload, scope), flags


def one_effect(payload: bool = True, scope: bool = True) -> tuple[Effect, ...]:
    row = MATCH if payload else OTHER_PAYLOAD
    return (row if scope else replace(row, kind="refund"),)


def closed_read(scene: Scene, ledger: Ledger, operation: Operation) -> Snapshot:
    return close(ledger, operation.operation_id, scene.near(), purpose="look", authorized_by="ann")


def flags_of(found: Snapshot) -> tuple[bool, bool, bool]:
    return (found.complete, found.authoritative, found.closed)


def both(ledger: Ledger, operation: Operation, seen: Snapshot) -> tuple[Any, Any]:
    """Both doors by which a snapshot comes in."""
    return (
        lambda: observe(ledger, operation.operation_id, seen),
        lambda: reconcile(
            ledger, operation.operation_id, seen, reviewer="rita", expected_version=2
        ),
    )


def wrong_questions(facts: Snapshot) -> list[tuple[str, Snapshot]]:
    """The same snapshot, with one thing different at a time."""
    asked = [
        (field, changed(facts.query, field, value))
        for field, value in (
            ("payload", '{"pence":1501}'),
            ("kind", "refund"),
            ("target", "other"),
            ("compensates", "op-0#1"),
            ("epoch", 2),
        )
    ]
    found = [(field, replace(facts, query=query)) for field, query in asked]
    other = replace(facts.query, operation_id="f" * 32)
    rows = tuple(replace(row, operation_id="f" * 32) for row in facts.effects)
    found.append(("operation_id", replace(facts, query=other, effects=rows)))
    found.append(("receiver", replace(facts, receiver="other")))
    found.append(("epoch", replace(facts, epoch=2)))
    return found


def as_json(value: Effect | Receipt) -> dict[str, Any]:
    return {name: getattr(value, name) for name in type(value).__dataclass_fields__}


def snapshot_json() -> dict[str, Any]:
    return {
        "operation_id": "op-1",
        "effects": [as_json(MATCH)],
        "complete": True,
        "authoritative": True,
        "closed": True,
        "receiver": IDENTITY,
        "epoch": 1,
    }


def readers() -> tuple[tuple[str, Any, dict[str, Any]], ...]:
    """Place, reader and a whole reply, for the three objects that are read."""

    def row(reply: object) -> Snapshot:
        return snapshot_from(QUERY, {**snapshot_json(), "effects": [reply]})

    return (
        ("snapshot", lambda reply: snapshot_from(QUERY, reply), snapshot_json()),
        ("snapshot.effects[0]", row, as_json(MATCH)),
        ("receipt", receipt_from, as_json(receipt())),
    )


def ill_typed(name: str, field: str, value: object) -> tuple[Any, ...]:
    """What must not stand in the place of this value."""
    if type(value) is bool:
        return (0, 1, None, "true", "false", [], 1.0)
    if field == "epoch":
        return (0, -1, True, "1", 1.0, None, 2**63)
    if field == "effects":
        return (None, {}, "", 0, True, (MATCH,))
    bad: tuple[Any, ...] = (5, True, "", "  ", [], {}, "\ud800")
    optional = field == "compensates" or (name, field) == ("receipt", "effect_id")
    return bad if optional else (*bad, None)


def says(answer: object) -> ProcessReceiver:
    """A process that reads one request and writes one line, whatever was asked."""
    line = answer if isinstance(answer, str) else json.dumps(answer)
    return ProcessReceiver(answering(line.encode() + b"\n"), identity=IDENTITY, policy=POLICY)
