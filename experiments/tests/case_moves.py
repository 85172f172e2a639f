"""Who may move a state, and that nothing else does: the table, the guards, the door, and what
every call refuses.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
import sqlite3
import subprocess
import threading
import unittest
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import reconcile as library
from experiments.harness import oracle
from experiments.harness.plain import IDENTITY, POLICY, receiver_command
from experiments.harness.processes import LIMIT_S, command
from experiments.harness.scene import Scene
from experiments.tests.base import ORDER, LabCase, LosesReceipt, LosesRequest
from reconcile import (
    Action,
    Cause,
    Effect,
    EffectPolicy,
    Ledger,
    Operation,
    ProcessReceiver,
    Query,
    Receipt,
    Receiver,
    ReconcileError,
    Snapshot,
    State,
    ToolResult,
    Transport,
    UnavailableReceiver,
    Verdict,
    approve_compensation,
    canonical_json,
    classify,
    close,
    dispatch,
    look,
    next_actions,
    observe,
    open_questions,
    operation_identity,
    prepare,
    reconcile,
)
from reconcile.rules import errors, identity, move, moves, sending, states
from reconcile.rules.actions import DECISIONS, tool_result
from reconcile.rules.contradictions import contradicts
from reconcile.rules.errors import (
    AlreadyAnnounced,
    Busy,
    ClosingRefused,
    IllegalMove,
    Malformed,
    NoReply,
    NotSent,
    Overclaimed,
    StaleVersion,
    Unbound,
    UnknownOperation,
    Unresolving,
    WrongQuestion,
    WrongReceiver,
)
from reconcile.rules.move import Move
from reconcile.rules.operation import Binding, Scope
from reconcile.rules.verdicts import proves_absence, proves_uniqueness

PACKAGE = Path(library.__file__).parent
EVERY_STATE = {
    "prepared",
    "unknown",
    "pending",
    "partial",
    "conflict",
    "confirmed",
    "rejected",
    "failed",
    "not_applied",
    "written_off",
    "revoked",
}
FINAL = {"confirmed", "rejected", "failed", "not_applied", "written_off", "revoked"}
UNRESOLVED = {"unknown", "pending", "partial", "conflict"}
# Section 4 of the design, written out: cause -> source -> targets. A move to the same state, as
# from pending to pending, is none: the newer receipt is kept, and nothing moves.
TABLE: dict[str, dict[str, set[str]]] = {
    "announced": {"prepared": {"unknown"}},
    "never_sent": {"unknown": {"prepared"}},
    "receipt": {
        "unknown": {"confirmed", "rejected", "failed", "pending", "partial"},
        "pending": {"confirmed", "rejected", "failed", "partial"},
    },
    "evidence": {
        "unknown": {"confirmed", "not_applied"},
        "pending": {"confirmed", "not_applied"},
    },
    "contradiction": {"unknown": {"conflict"}, "pending": {"conflict"}, "partial": {"conflict"}},
    "authority": {
        "conflict": {"confirmed", "rejected", "failed", "not_applied", "written_off"},
        "partial": {"confirmed", "written_off"},
        "unknown": {"written_off"},
        "pending": {"written_off"},
    },
    "withdrawn": {"prepared": {"revoked"}},
}
LEGAL = {
    (source, target, cause)
    for cause, edges in TABLE.items()
    for source, targets in edges.items()
    for target in targets
}
# How to come to each state by lawful moves: (target, cause), one after another.
PATHS: dict[str, tuple[tuple[str, str], ...]] = {
    "prepared": (),
    "unknown": (("unknown", "announced"),),
    "pending": (("unknown", "announced"), ("pending", "receipt")),
    "partial": (("unknown", "announced"), ("partial", "receipt")),
    "conflict": (("unknown", "announced"), ("conflict", "contradiction")),
    "confirmed": (("unknown", "announced"), ("confirmed", "receipt")),
    "rejected": (("unknown", "announced"), ("rejected", "receipt")),
    "failed": (("unknown", "announced"), ("failed", "receipt")),
    "not_applied": (("unknown", "announced"), ("not_applied", "evidence")),
    "written_off": (("unknown", "announced"), ("written_off", "authority")),
    "revoked": (("revoked", "withdrawn"),),
}
STATUS_LEADS_TO = {
    "accepted": "confirmed",
    "rejected": "rejected",
    "failed": "failed",
    "pending": "pending",
    "partial": "partial",
}


class TableOfMoves(LabCase):
    """One table, in the code and in the file."""

    def test_the_table_is_the_one_of_the_design(self) -> None:
        """A2, R10: edge by edge, cause by cause; no state moves to itself."""
        shipped = {
            (source.value, target.value, cause.value)
            for (source, target), causes in states.MOVES.items()
            for cause in causes
        }
        self.assertEqual(shipped, LEGAL)
        self.assertEqual({state.value for state in State}, EVERY_STATE)
        self.assertEqual({cause.value for cause in Cause}, set(TABLE))
        self.assertFalse([edge for edge in shipped if edge[0] == edge[1]])
        self.assertEqual({state.value for state in states.FINAL}, FINAL)
        self.assertEqual({state.value for state in states.UNRESOLVED}, UNRESOLVED)

    def test_every_illegal_move_is_refused_by_the_code(self) -> None:
        """A2: all 847 triples of source, target and cause."""
        seen = 0
        for source, target, cause in itertools.product(State, State, Cause):
            operation = bare(state=source, version=5)
            triple = (source.value, target.value, cause.value)
            if triple in LEGAL:
                made = move.move_of(operation, target, cause, "ann")
                self.assertEqual((made.target, made.version), (target, 6))
            else:
                with self.assertRaises(IllegalMove) as caught:
                    move.move_of(operation, target, cause, "ann")
                self.assertEqual(tuple(vars(caught.exception).values()), triple)
            self.assertIs(states.is_legal(source, target, cause), triple in LEGAL)
            seen += 1
        self.assertEqual(seen, 11 * 11 * 7)

    def test_every_illegal_move_is_refused_by_the_file(self) -> None:
        """A2, R10: by plain SQL on a second connection, from a real row in each state."""
        scene = self.lab.scene(unsafe=True)
        with self.standing_everywhere(scene) as (connection, numbers):
            for source, target, cause in itertools.product(PATHS, EVERY_STATE, TABLE):
                number, version = numbers[source], len(PATHS[source]) + 2
                with self.subTest(source=source, target=target, cause=cause):
                    connection.execute("BEGIN")
                    if (source, target, cause) in LEGAL:
                        write_decision(connection, number, version, source, target, cause)
                        self.assertEqual(state_of(connection, number), (target, version))
                    else:
                        with self.assertRaisesRegex(sqlite3.IntegrityError, "no legal move"):
                            write_decision(connection, number, version, source, target, cause)
                        self.assertEqual(state_of(connection, number), (source, version - 1))
                    connection.execute("ROLLBACK")

    def test_a_decision_from_another_state_or_version_is_refused_by_the_file(self) -> None:
        """A2: a lawful edge counts only from where the operation stands, at its next version."""
        scene = self.lab.scene(unsafe=True)
        with self.standing_everywhere(scene) as (connection, numbers):
            for source, target, cause in sorted(LEGAL):
                number, version = numbers[source], len(PATHS[source]) + 2
                for wrong in (0, 1, version - 1, version + 1, version + 2):
                    with self.assertRaises(sqlite3.IntegrityError):
                        write_decision(connection, number, wrong, source, target, cause)
                for other in EVERY_STATE - {source}:
                    with self.assertRaises(sqlite3.IntegrityError):
                        write_decision(connection, numbers[other], version, source, target, cause)

    def test_no_plain_update_moves_a_state_or_a_version(self) -> None:
        """A2, R10: without a decision row, UPDATE is refused for every pair of states."""
        scene = self.lab.scene(unsafe=True)
        with self.standing_everywhere(scene) as (connection, numbers):
            for source, target in itertools.product(PATHS, EVERY_STATE):
                for rise in (0, 1):
                    with self.assertRaises(sqlite3.IntegrityError):
                        connection.execute(
                            "UPDATE operation SET state = ?, version = version + ? "
                            "WHERE number = ?",
                            (target, rise, numbers[source]),
                        )

    def test_the_copy_of_the_table_in_the_file_is_the_table(self) -> None:
        """A2: legal_move holds the same edges, and nothing can be added or taken away."""
        scene = self.lab.scene()
        with scene.ledger():
            found = set(oracle.rows(scene.sender, "SELECT source, target, cause FROM legal_move"))
        self.assertEqual(found, LEGAL)
        with closing(sqlite3.connect(scene.sender, isolation_level=None)) as connection:
            for attack in (
                "DELETE FROM legal_move",
                "UPDATE legal_move SET cause = 'announced' WHERE cause = 'receipt'",
                "INSERT OR REPLACE INTO legal_move SELECT * FROM legal_move",
            ):
                with self.assertRaises(sqlite3.IntegrityError):
                    connection.execute(attack)

    def test_check_lists_in_the_file_equal_the_enums(self) -> None:
        """A2: states, causes, transports, resolving verdicts and ends without effect."""
        sql = (PACKAGE / "ledger" / "schema.sql").read_text("utf-8")
        for before, wanted in (
            ("CHECK (state IN", {state.value for state in State}),
            ("CHECK (cause IN", {cause.value for cause in Cause}),
            ("CHECK (transport IN", {transport.value for transport in Transport}),
            ("c.state NOT IN", {state.value for state in states.ENDED_WITHOUT_EFFECT}),
        ):
            self.assertEqual(sql.count(before), 1, before)
            listed = re.sub("--.*", "", sql.split(before)[1]).split(")")[0]
            words = re.findall(r"'(\w+)'", listed)
            self.assertEqual(sorted(words), sorted(wanted), before)
        proves = set(re.findall(r"verdict = '(\w+)' AND target = '(\w+)'", sql))
        resolving = {(found.value, found.resolves.value) for found in Verdict if found.resolves}
        self.assertEqual(proves, resolving)

    def standing_everywhere(self, scene: Scene) -> Standing:
        """A second connection, and an operation in each state, brought there by lawful rows."""
        with scene.ledger() as ledger:
            made = {
                state: prepare(
                    ledger, scene.near(), **{**ORDER, "work_id": state, "subject": state}
                )
                for state in PATHS
            }
        return Standing(scene, {state: operation.number for state, operation in made.items()})


class TransportIsNotOutcome(LabCase):
    """How a call went is one fact, and what is known of the effect another."""

    def test_every_transport_can_go_with_every_outcome(self) -> None:
        """A1: the result carries both as they are, all 44 pairs; only the outcome is final or
        not.
        """
        for transport, state in itertools.product(Transport, State):
            result = tool_result(bare(state=state), transport, now_ms=0)
            self.assertEqual((result.transport, result.outcome), (transport, state))
            self.assertIs(result.authoritative, state.value in FINAL)

    def test_a_silent_or_broken_call_goes_with_every_outcome_that_evidence_brings(self) -> None:
        """A1, A11: unknown, confirmed and not applied, each with every way that a call can go."""
        for how, outcome in itertools.product(WAYS, (None, *MEANWHILE)):
            if how == "not_sent" and outcome == "confirmed":
                continue  # it would be a lie of the adapter: nothing left, and it is there
            scene = self.lab.scene(f"{how}-{outcome}")
            with self.subTest(how=how, outcome=outcome), scene.ledger() as ledger:
                operation = prepare(ledger, scene.near(), **ORDER)
                seen = dispatch(ledger, operation.operation_id, Meanwhile(scene, how, outcome))
                still = "prepared" if how == "not_sent" else "unknown"
                self.assertEqual(seen.transport.value, how)
                self.assertEqual(seen.outcome.value, outcome or still)
                found = oracle.rows(scene.sender, "SELECT transport FROM attempt")
                self.assertEqual(found, [(how,)])

    def test_each_status_of_a_receipt_leads_to_its_state(self) -> None:
        """A1, A3, E13: five receipts by dispatch; the question ends with the three that are
        conclusive.
        """
        for status, wanted in STATUS_LEADS_TO.items():
            scene = self.lab.scene(status, unsafe=True)
            with self.subTest(status), scene.ledger() as ledger:
                operation = prepare(ledger, scene.near(), **ORDER)
                seen = dispatch(ledger, operation.operation_id, Answers(receipt_for, status))
                self.assertEqual(seen.outcome.value, wanted)
                self.assertIs(seen.transport, Transport.RESPONSE_RECEIVED)
                self.assertIs(seen.authoritative, wanted in FINAL)
                named = None if status == "rejected" else "there-1"
                self.assertEqual(seen.receiver_reference, named)
                self.assertEqual(len(open_questions(ledger)), int(wanted in UNRESOLVED))
                self.assertEqual(look(ledger, operation.operation_id).version, 3)
                with self.assertRaises(AlreadyAnnounced):
                    dispatch(ledger, operation.operation_id, MustNotBeCalled())

    def test_evidence_ends_what_a_receipt_left_pending(self) -> None:
        """A3: pending is confirmed, or not applied, by a closing read, and partial by neither."""
        for status, applied, wanted in (
            ("pending", True, "confirmed"),
            ("pending", False, "not_applied"),
            ("partial", True, "IllegalMove"),
            ("partial", False, "IllegalMove"),
        ):
            scene = self.lab.scene(f"{status}-{applied}")
            with self.subTest(status=status, applied=applied), scene.ledger() as ledger:
                operation = prepare(ledger, scene.near(), **ORDER)
                answers = Answers(receipt_for, status, first=scene.near() if applied else None)
                dispatch(ledger, operation.operation_id, answers)
                facts = closed_read(scene, ledger, operation)
                self.assertEqual(decided(ledger, operation, facts, version=3), wanted)

    def test_whatever_a_receiver_raises_the_outcome_is_unknown(self) -> None:
        """A1: errors of every class, ours and sqlite3's included, say how the call went and no
        more.
        """
        raised: tuple[Exception, ...] = (
            ValueError("no"),
            OSError(111, "refused"),
            TimeoutError(),
            ConnectionResetError(),
            BrokenPipeError(),
            EOFError(),
            StopIteration(),
            RecursionError(),
            MemoryError(),
            AssertionError(),
            sqlite3.OperationalError("database is locked"),
            subprocess.TimeoutExpired("receiver", 1),
            Malformed("reply", "is no JSON"),
            NoReply("plain", "silence"),
            ReconcileError(),
            Exception(),
        )
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            for at, error in enumerate(raised):
                operation = prepare(ledger, scene.near(), **numbered(at))
                seen = dispatch(ledger, operation.operation_id, Raises(error))
                with self.subTest(error=error):
                    self.assertIs(seen.outcome, State.UNKNOWN)
                    self.assertIs(seen.transport, Transport.TRANSPORT_FAILED)
                    self.assertIsNone(seen.receiver_reference)
            self.assertEqual(len(open_questions(ledger)), len(raised))

    def test_whatever_a_receiver_returns_in_place_of_a_receipt_it_stays_unknown(self) -> None:
        """A1, E13: a value of a wrong type came back, so a response was received and nothing is
        known.
        """
        scene = self.lab.scene()
        wrong: tuple[Any, ...] = ("accepted", True, 1, {"status": "accepted"}, b"", 0, False)
        wrong += ("", [], {}, Receipt)
        with scene.ledger() as ledger:
            for at, value in enumerate(wrong):
                operation = prepare(ledger, scene.near(), **numbered(at))
                seen = dispatch(ledger, operation.operation_id, Answers(lambda *_, v=value: v, ""))
                with self.subTest(value=value):
                    self.assertIs(seen.outcome, State.UNKNOWN)
                    self.assertIs(seen.transport, Transport.RESPONSE_RECEIVED)
        self.assertEqual(oracle.rows(scene.sender, "SELECT * FROM receipt"), [])

    def test_an_interrupt_passes_on_and_unknown_is_committed_already(self) -> None:
        """A1, L2: KeyboardInterrupt, SystemExit and GeneratorExit; the attempt has no ending."""
        for error in (KeyboardInterrupt(), SystemExit(0), GeneratorExit()):
            scene = self.lab.scene(type(error).__name__)
            with self.subTest(error=error), scene.ledger() as ledger:
                operation = prepare(ledger, scene.near(), **ORDER)
                with self.assertRaises(type(error)):
                    dispatch(ledger, operation.operation_id, Raises(error))
                self.assertIs(look(ledger, operation.operation_id).state, State.UNKNOWN)
                self.assertEqual(len(open_questions(ledger)), 1)
            self.assertEqual(oracle.rows(scene.sender, "SELECT transport FROM attempt"), [(None,)])

    def test_unknown_and_its_question_and_its_attempt_are_committed_before_the_request(
        self,
    ) -> None:
        """A1, L2: announce-before-act: what the receiver finds in the sender's file as it is
        called.
        """
        scene = self.lab.scene()
        found: list[Any] = []

        def peek(query: Query, _: str) -> None:
            found.append(oracle.states(scene.sender)[query.operation_id])
            found.append(oracle.rows(scene.sender, "SELECT attempt, transport FROM attempt"))
            found.append(oracle.rows(scene.sender, "SELECT generation, ended_ms FROM obligation"))

        with scene.ledger() as ledger:
            operation = prepare(ledger, scene.near(), **ORDER)
            dispatch(ledger, operation.operation_id, Answers(peek, ""))
        self.assertEqual(found, [("unknown", 2), [(1, None)], [(1, None)]])


class NeverSent(LabCase):
    """The one proof that nothing left, and who alone may give it."""

    def test_the_call_that_owns_the_permission_takes_the_announcement_back(self) -> None:
        """L13: unknown to prepared; the question ends; the next dispatch is generation 2."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = prepare(ledger, scene.near(), **ORDER)
            seen = dispatch(ledger, operation.operation_id, Raises(NotSent("no adapter")))
            self.assertEqual(
                (seen.transport, seen.outcome, seen.next_actions),
                (Transport.NOT_SENT, State.PREPARED, (Action.DISPATCH,)),
            )
            back = look(ledger, operation.operation_id)
            self.assertEqual((back.version, back.attempts, back.may_have_left), (3, 1, 0))
            self.assertEqual(open_questions(ledger), [])
            again = dispatch(ledger, operation.operation_id, LosesReceipt(scene.near()))
            self.assertIs(again.outcome, State.UNKNOWN)
            self.assertEqual(len(open_questions(ledger)), 1)
        asked = oracle.rows(
            scene.sender, "SELECT generation, ended_ms IS NULL FROM obligation ORDER BY 1"
        )
        self.assertEqual(asked, [(1, 0), (2, 1)])
        sent = oracle.rows(scene.sender, "SELECT attempt, transport FROM attempt ORDER BY 1")
        self.assertEqual(sent, [(1, "not_sent"), (2, "sent")])
        causes = oracle.rows(scene.sender, "SELECT cause FROM decision ORDER BY version")
        self.assertEqual([cause for (cause,) in causes], ["announced", "never_sent", "announced"])

    def test_it_may_be_proved_again_and_again(self) -> None:
        """L13: three calls that sent nothing, then one that is confirmed by its single send."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = prepare(ledger, scene.near(), **ORDER)
            for _ in range(3):
                stub = UnavailableReceiver(IDENTITY)
                self.assertIs(
                    dispatch(ledger, operation.operation_id, stub).outcome, State.PREPARED
                )
            seen = dispatch(ledger, operation.operation_id, scene.near())
            self.assertIs(seen.outcome, State.CONFIRMED)
            self.assertEqual(look(ledger, operation.operation_id).version, 9)

    def test_never_while_an_earlier_attempt_may_have_left(self) -> None:
        """L13: one other that is silent, failed, or without an ending, is enough."""
        self.assertIsNotNone(sending.never_sent(bare(state=State.UNKNOWN, attempts=1, not_sent=1)))
        for attempts, not_sent in ((1, 0), (2, 1), (2, 0), (5, 4)):
            operation = bare(state=State.UNKNOWN, attempts=attempts, not_sent=not_sent)
            self.assertIsNone(sending.never_sent(operation))
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = prepare(ledger, scene.near(), **ORDER)

            def another(query: Query, _: str) -> None:
                plain_sql(scene, "INSERT INTO attempt VALUES (1, 2, 0, NULL, NULL)")
                raise NotSent("but another may have left")

            seen = dispatch(ledger, operation.operation_id, Answers(another, ""))
            self.assertEqual((seen.transport, seen.outcome), (Transport.NOT_SENT, State.UNKNOWN))

    def test_it_moves_nothing_but_an_unknown(self) -> None:
        """L13: what moved meanwhile stays where it went."""
        for state in State:
            back = sending.never_sent(bare(state=state, attempts=1, not_sent=1))
            self.assertIs(back is not None, state is State.UNKNOWN, state)

    def test_a_recovered_process_can_never_claim_it(self) -> None:
        """L13, L7: the sender dies by os._exit before the send; the next one finds unknown and no
        proof.
        """
        scene = self.lab.scene()
        plan = {
            "file": str(scene.sender),
            "receiver": receiver_command(scene.receiver_file),
            "clock": 1,
            "steps": ["order"],
            "at": "before send",
        }
        died = subprocess.run(
            command("experiments.harness.actor", json.dumps(plan)),
            capture_output=True,
            timeout=LIMIT_S,
        )
        self.assertEqual((died.returncode, died.stdout), (29, b""), died.stderr)
        self.assertEqual(oracle.contacts(scene.receiver_file), [])
        self.assertEqual(oracle.rows(scene.sender, "SELECT transport FROM attempt"), [(None,)])
        with scene.ledger() as ledger:
            (operation,) = open_questions(ledger)
            self.assertIs(operation.state, State.UNKNOWN)
            self.assertEqual(operation.may_have_left, 1)
            self.assertIsNone(sending.never_sent(operation))
            before = oracle.dump(scene.sender)
            for receiver in (UnavailableReceiver(IDENTITY), scene.near(), Raises(NotSent("no"))):
                with self.assertRaises(AlreadyAnnounced):
                    dispatch(ledger, operation.operation_id, receiver)
            self.assertEqual(oracle.dump(scene.sender), before)


class ReviewHasItsConditions(LabCase):
    """From a case that passes, each condition alone."""

    def test_each_missing_condition_has_its_own_refusal_and_writes_nothing(self) -> None:
        """R1: reviewer, operation, payload, policy, verdict, state and version, one at a time."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = self.unknown(scene, ledger)
            facts = closed_read(scene, ledger, operation)
            prepared = prepare(ledger, scene.near(), **{**ORDER, "work_id": "prepared"})
            absent = empty(prepared, closed=True)
            bound = prepare(ledger, scene.near(policy=EffectPolicy()), **{**ORDER, "work_id": "d"})
            dispatch(ledger, bound.operation_id, LosesRequest(scene.near(policy=EffectPolicy())))
            good: dict[str, Any] = {
                "operation_id": operation.operation_id,
                "snapshot": facts,
                "reviewer": "rita",
                "expected_version": 2,
            }
            other_payload = replace(facts, query=replace(facts.query, payload="{}"))
            refusals: tuple[tuple[type[ReconcileError], dict[str, Any]], ...] = (
                (Malformed, {"reviewer": ""}),
                (Malformed, {"reviewer": " \t"}),
                (UnknownOperation, {"operation_id": "f" * 32}),
                (WrongQuestion, {"operation_id": prepared.operation_id}),
                (WrongQuestion, {"snapshot": other_payload}),
                (Unresolving, {"snapshot": replace(facts, closed=False)}),
                (Unresolving, {"snapshot": replace(facts, complete=False)}),
                (Unresolving, {"snapshot": replace(facts, effects=(), closed=False)}),
                (StaleVersion, {"expected_version": 1}),
                (StaleVersion, {"expected_version": 3}),
                (
                    IllegalMove,
                    {
                        "operation_id": prepared.operation_id,
                        "snapshot": absent,
                        "expected_version": 1,
                    },
                ),
                (
                    Overclaimed,
                    {"operation_id": bound.operation_id, "snapshot": empty(bound, closed=True)},
                ),
            )
            before = oracle.dump(scene.sender), oracle.dump(scene.receiver_file)
            for refusal, change in refusals:
                with self.subTest(refusal=refusal, change=change):
                    with self.assertRaises(refusal) as caught:
                        reconcile(ledger, **{**good, **change})
                    self.assertIs(type(caught.exception), refusal)
                    after = oracle.dump(scene.sender), oracle.dump(scene.receiver_file)
                    self.assertEqual(after, before)
            self.assertIs(reconcile(ledger, **good).state, State.CONFIRMED)

    def test_only_unknown_and_pending_are_ended_by_evidence(self) -> None:
        """R1: every other state is IllegalMove, for both verdicts that resolve."""
        for state in State:
            operation = bare(state=state, version=4)
            for effects, target in (((effect_of(operation),), "confirmed"), ((), "not_applied")):
                facts = snapshot_of(operation, effects)
                call = decide_by(operation, facts)
                if state in (State.UNKNOWN, State.PENDING):
                    self.assertEqual(call().target.value, target)
                else:
                    with self.assertRaises(IllegalMove):
                        call()

    def test_the_refusals_come_in_their_order(self) -> None:
        """R1: question, policy, version, verdict, state: the first that fails is the one named."""
        operation = bare(state=State.CONFIRMED, version=4)
        wrong = replace(snapshot_of(operation, ()), receiver="other", closed=False)
        steps: tuple[tuple[type[ReconcileError], Operation, Snapshot, int], ...] = (
            (WrongQuestion, replace(operation, policy=EffectPolicy()), wrong, 9),
            (
                Overclaimed,
                replace(operation, policy=EffectPolicy()),
                snapshot_of(operation, ()),
                9,
            ),
            (StaleVersion, operation, replace(snapshot_of(operation, ()), closed=False), 9),
            (Unresolving, operation, replace(snapshot_of(operation, ()), closed=False), 4),
            (IllegalMove, operation, snapshot_of(operation, ()), 4),
        )
        for refusal, recorded, facts, version in steps:
            with self.assertRaises(refusal):
                moves.decide(recorded, facts, reviewer="rita", expected_version=version)

    def test_state_version_and_evidence_are_one_row(self) -> None:
        """R1, R2: the decision holds reviewer, verdict, effect and the whole snapshot."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = self.unknown(scene, ledger)
            facts = closed_read(scene, ledger, operation)
            done = reconcile(
                ledger, operation.operation_id, facts, reviewer="rita", expected_version=2
            )
            found = look(ledger, operation.operation_id)
            self.assertEqual((done.state, done.version, done.repeated), (found.state, 3, False))
            self.assertEqual(found.effect_id, facts.effects[0].effect_id)
            self.assertEqual(open_questions(ledger), [])
        rows = oracle.rows(
            scene.sender,
            "SELECT source, target, cause, actor, verdict, effect_id, evidence FROM decision "
            "WHERE version = 3",
        )
        wanted = ("unknown", "confirmed", "evidence", "rita", "unique_exact_match")
        self.assertEqual(rows, [(*wanted, facts.effects[0].effect_id, facts.to_json())])

    def test_a_stale_reviewer_changes_nothing_in_either_order(self) -> None:
        """R3, C01: the second of two, whoever looked first; then with the current number."""
        for first, second in (("anna", "bert"), ("bert", "anna")):
            scene = self.lab.scene(first)
            with scene.ledger() as one, scene.ledger() as other:
                operation = prepare(one, scene.near(), **ORDER)
                dispatch(one, operation.operation_id, LosesRequest(scene.near()))
                absent = closed_read(scene, one, operation)
                present = snapshot_of(operation, (effect_of(operation),))
                self.assertEqual(look(other, operation.operation_id).version, 2)
                reconcile(one, operation.operation_id, absent, reviewer=first, expected_version=2)
                before = oracle.dump(scene.sender)
                self.assertEqual(
                    decided(other, operation, present, version=2, by=second), "StaleVersion"
                )
                self.assertEqual(
                    decided(other, operation, present, version=1, by=second), "StaleVersion"
                )
                self.assertEqual(
                    decided(other, operation, present, version=3, by=second), "IllegalMove"
                )
                self.assertEqual(
                    decided(other, operation, absent, version=3, by=second), "IllegalMove"
                )
                self.assertEqual(oracle.dump(scene.sender), before)
            accepted = oracle.rows(scene.sender, "SELECT actor FROM decision WHERE version = 3")
            self.assertEqual(accepted, [(first,)])

    def test_a_reviewer_who_began_before_the_other_committed_is_stale_too(self) -> None:
        """R3, C01: B waits at the lock that A holds, and finds version 3 when it opens."""
        scene = self.lab.scene()
        said: list[str] = []
        with scene.ledger() as ledger:
            operation = prepare(ledger, scene.near(), **ORDER)
            dispatch(ledger, operation.operation_id, LosesRequest(scene.near()))
            absent = closed_read(scene, ledger, operation)
        present = snapshot_of(operation, (effect_of(operation),))

        def second() -> None:
            with Ledger(scene.sender, clock=self.lab.clock, busy_ms=30_000) as other:
                said.append(decided(other, operation, present, version=2, by="bert"))

        class Slow(sqlite3.Connection):
            """Lets the second reviewer begin before the first one commits."""

            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                if sql == "COMMIT" and not waiting.is_alive():
                    with Ledger(scene.sender, clock=lambda: 1, busy_ms=0) as hasty:
                        said.append(decided(hasty, operation, present, version=2, by="bert"))
                    waiting.start()
                return super().execute(sql, *values)

        waiting = threading.Thread(target=second)
        with Ledger(scene.sender, clock=self.lab.clock, factory=Slow) as first:
            reconcile(first, operation.operation_id, absent, reviewer="anna", expected_version=2)
        waiting.join(LIMIT_S)
        self.assertEqual(said, ["Busy", "StaleVersion"])
        self.assertEqual(oracle.states(scene.sender)[operation.operation_id], ("not_applied", 3))
        accepted = oracle.rows(scene.sender, "SELECT actor FROM decision WHERE version = 3")
        self.assertEqual(accepted, [("anna",)])

    def test_a_reader_that_is_open_does_not_make_a_stale_decision_pass(self) -> None:
        """R3, C01: B's view is of before, A commits, and B decides by what it saw."""
        scene = self.lab.scene()
        with scene.ledger() as one, scene.ledger() as other:
            operation = self.unknown(scene, one)
            facts = closed_read(scene, one, operation)
            with other.reading() as tx:
                seen = tx.execute("SELECT version FROM operation").fetchone()[0]
                reconcile(one, operation.operation_id, facts, reviewer="anna", expected_version=2)
                self.assertEqual(tx.execute("SELECT version FROM operation").fetchone()[0], seen)
            self.assertEqual(decided(other, operation, facts, version=seen), "StaleVersion")


class RepeatedDecision(LabCase):
    """A commit whose acknowledgement was lost is seen as done."""

    def test_the_same_decision_again_is_answered_and_marked(self) -> None:
        """R9: for both verdicts, from the same file opened again, as often as one likes."""
        for applied in (True, False):
            scene = self.lab.scene(str(applied))
            with scene.ledger() as ledger:
                operation, facts = self.asked(scene, ledger, applied=applied)
                done = reconcile(
                    ledger, operation.operation_id, facts, reviewer="rita", expected_version=2
                )
            before = oracle.dump(scene.sender)
            for _ in range(2):
                with scene.ledger() as ledger:
                    again = reconcile(
                        ledger, operation.operation_id, facts, reviewer="rita", expected_version=2
                    )
                self.assertEqual(again, replace(done, repeated=True))
            self.assertEqual(oracle.dump(scene.sender), before)

    def test_any_difference_is_a_stale_version(self) -> None:
        """R9: another reviewer, another version, or evidence that differs in one letter."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation, facts = self.asked(scene, ledger, applied=True)
            reconcile(ledger, operation.operation_id, facts, reviewer="rita", expected_version=2)
            before = oracle.dump(scene.sender)
            row = facts.effects[0]
            for seen in (
                replace(facts, closed=False),
                replace(facts, effects=()),
                replace(facts, effects=(replace(row, effect_id=row.effect_id + "x"),)),
                replace(facts, effects=(row, replace(row, effect_id="other"))),
            ):
                self.assertEqual(decided(ledger, operation, seen, version=2), "StaleVersion")
            for by in ("Rita", "rita ", "bert", "sender"):
                self.assertEqual(
                    decided(ledger, operation, facts, version=2, by=by), "StaleVersion"
                )
            for version in (1, 4, 2**62):
                self.assertEqual(
                    decided(ledger, operation, facts, version=version), "StaleVersion"
                )
            self.assertEqual(oracle.dump(scene.sender), before)

    def test_an_incident_since_does_not_unmake_the_stored_decision(self) -> None:
        """R9, R11: the version went on, and the answer is the decision that was made."""
        scene = self.lab.scene(unsafe=True)
        with scene.ledger() as ledger:
            operation, facts = self.asked(scene, ledger, applied=True)
            done = reconcile(
                ledger, operation.operation_id, facts, reviewer="rita", expected_version=2
            )
            observe(ledger, operation.operation_id, empty(operation, closed=True))
            self.assertEqual(look(ledger, operation.operation_id).version, 4)
            again = reconcile(
                ledger, operation.operation_id, facts, reviewer="rita", expected_version=2
            )
            self.assertEqual(again, replace(done, repeated=True))

    def asked(self, scene: Scene, ledger: Ledger, *, applied: bool) -> tuple[Operation, Snapshot]:
        operation = prepare(ledger, scene.near(), **ORDER)
        lost = LosesReceipt(scene.near()) if applied else LosesRequest(scene.near())
        dispatch(ledger, operation.operation_id, lost)
        return operation, closed_read(scene, ledger, operation)


class RepliesThatPretend(LabCase):
    """A1: what only looks like a receipt, or breaks while it is written down."""

    def test_a_receipt_of_a_subclass_is_no_receipt(self) -> None:
        """A1, E13: its methods could say anything; something came back, and nothing is known."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = prepare(ledger, scene.near(), **ORDER)
            seen = dispatch(ledger, operation.operation_id, Pretends(scene.near()))
        self.assertEqual(seen.transport.value, "response_received")
        self.assertEqual(seen.outcome.value, "unknown")

    def test_errors_and_receipts_that_are_hollow_say_how_the_call_went_and_no_more(self) -> None:
        """A1, E13: subclasses without words, errors without text, a receipt past its checks."""

        class Mute(Exception):
            def __str__(self) -> str:
                raise ValueError("nothing to say")

        def wordless(kind: type[BaseException]) -> BaseException:
            words = ("x", "y") if kind is errors.NoReply else ("x",)
            error: BaseException = type("Wordless", (kind,), {})(*words)
            vars(error).clear()
            return error

        hollow = object.__new__(Receipt)
        for at, (says, transport) in enumerate(
            (
                (wordless(errors.NotSent), "not_sent"),
                (wordless(errors.NoReply), "transport_failed"),
                (Mute(), "transport_failed"),
                (hollow, "response_received"),
            )
        ):
            scene = self.lab.scene(f"hollow {at}")
            with self.subTest(at), scene.ledger() as ledger:
                operation = prepare(ledger, scene.near(), **ORDER)
                seen = dispatch(ledger, operation.operation_id, Says(says))
                self.assertEqual(seen.transport.value, transport)
                self.assertIn(seen.outcome.value, ("prepared", "unknown"))

    def test_a_clock_that_breaks_after_the_send_loses_no_receipt(self) -> None:
        """A1, L2: the error carries what came back, and the operation stays unknown."""
        scene = self.lab.scene()
        times = iter((1, 2))
        with scene.ledger(clock=lambda: next(times)) as ledger:
            operation = prepare(ledger, scene.near(), **ORDER)
            with self.assertRaises(errors.NotRecorded) as caught:
                dispatch(ledger, operation.operation_id, scene.near())
        self.assertIsInstance(caught.exception.receipt, Receipt)
        self.assertEqual(list(scene.states().values()), ["unknown"])

    def test_a_policy_of_a_subclass_is_refused_before_it_is_pinned(self) -> None:
        """A2: with a field more it could not be read from the file again."""
        scene = self.lab.scene()
        near = scene.near(policy=WiderPolicy())
        with scene.ledger() as ledger, self.assertRaises(errors.Malformed):
            prepare(ledger, near, **ORDER)
        self.assertEqual(oracle.states(scene.sender), {})

    def test_a_payload_too_long_for_a_reply_is_refused(self) -> None:
        """O2: it could be sent, and never be read back."""
        scene = self.lab.scene()
        long = {**ORDER, "payload": {"memo": "x" * (1 << 22)}}
        with scene.ledger() as ledger, self.assertRaisesRegex(errors.Malformed, "payload"):
            prepare(ledger, scene.near(), **long)
        self.assertEqual(oracle.states(scene.sender), {})


class PretendedReceipt(Receipt):
    """Its own type, and so its own methods."""


class Pretends(LosesReceipt):
    """Does what it is asked, and answers with something that only looks like a receipt."""

    def send(self, query: Query) -> Receipt | None:
        receipt = self._inner.send(query)
        assert receipt is not None
        fields: dict[str, Any] = identity.fields_of(receipt)
        return PretendedReceipt(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class WiderPolicy(EffectPolicy):
    more: bool = True


class TheEnd(LabCase):
    """Final stays final; what contradicts it is an incident."""

    def test_not_applied_ends_the_flow(self) -> None:
        """R5: no dispatch, no review, no close, no second row; the need has a new work item."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = prepare(ledger, scene.near(), **ORDER)
            dispatch(ledger, operation.operation_id, LosesRequest(scene.near()))
            facts = closed_read(scene, ledger, operation)
            self.assertEqual(decided(ledger, operation, facts, version=2), "not_applied")
            ended = look(ledger, operation.operation_id)
            self.assertEqual(next_actions(ended, now_ms=0), (Action.REPLACE,))
            before = oracle.dump(scene.sender), oracle.dump(scene.receiver_file)
            with self.assertRaises(AlreadyAnnounced):
                dispatch(ledger, operation.operation_id, scene.near())
            with self.assertRaises(ClosingRefused):
                closed_read(scene, ledger, operation)
            present = snapshot_of(operation, (effect_of(operation),))
            self.assertEqual(decided(ledger, operation, present, version=3), "IllegalMove")
            self.assertEqual(prepare(ledger, scene.near(), **ORDER), ended)
            after = oracle.dump(scene.sender), oracle.dump(scene.receiver_file)
            self.assertEqual(after, before)
            self.assertEqual(len(oracle.states(scene.sender)), 1)
            other = prepare(ledger, scene.near(), **{**ORDER, "work_id": "w-2"})
            self.assertIs(
                dispatch(ledger, other.operation_id, scene.near()).outcome, State.CONFIRMED
            )

    def test_what_contradicts_each_final_state(self) -> None:
        """R11: every final state against every verdict and every status of a receipt."""
        for state, wanted in INCIDENT_AT.items():
            operation = bare(state=State(state), version=4, effect_id="op-1#1")
            found = {
                name for name, seen in evidence_about(operation) if contradicts(operation, seen)
            }
            with self.subTest(state):
                self.assertEqual(found, wanted)
            for name, seen in evidence_about(operation):
                incident = moves.final_stays_final(operation, seen)
                self.assertIs(incident is not None, name in found)
                if incident is not None:
                    self.assertEqual((incident.version, incident.evidence), (5, seen))
        self.assertEqual(set(INCIDENT_AT), FINAL)

    def test_nothing_is_an_incident_before_the_end(self) -> None:
        """R11: prepared and unresolved operations have none, whatever is seen."""
        for state in State:
            if state.value not in FINAL:
                operation = bare(state=state, effect_id="op-1#1")
                for _, seen in evidence_about(operation):
                    self.assertIsNone(moves.final_stays_final(operation, seen))

    def test_an_incident_raises_the_version_once_for_each_evidence(self) -> None:
        """R11: the state stays, the snapshot is kept each time, the incident once for its
        digest.
        """
        scene = self.lab.scene(unsafe=True)
        with scene.ledger() as ledger:
            operation = self.unknown(scene, ledger)
            facts = closed_read(scene, ledger, operation)
            decided(ledger, operation, facts, version=2)
            ended = look(ledger, operation.operation_id)
            absent = empty(operation, closed=True)
            row = facts.effects[0]
            twice = replace(facts, effects=(row, replace(row, effect_id="other")))
            for seen, version in ((absent, 4), (absent, 4), (twice, 5), (absent, 5), (twice, 5)):
                observe(ledger, operation.operation_id, seen)
                found = look(ledger, operation.operation_id)
                self.assertEqual(found, replace(ended, version=version, close_requests=1))
            observe(ledger, operation.operation_id, facts)  # it agrees, and is no incident
            self.assertEqual(look(ledger, operation.operation_id).version, 5)
        kept = oracle.rows(scene.sender, "SELECT count(*) FROM observation")
        self.assertEqual(kept, [(6,)])
        noticed = oracle.rows(scene.sender, "SELECT version, evidence FROM incident ORDER BY 1")
        self.assertEqual(noticed, [(4, absent.to_json()), (5, twice.to_json())])

    def test_a_late_receipt_for_a_final_operation_is_kept_and_moves_nothing(self) -> None:
        """R11, A1: a reviewer was quicker; a receipt that agrees is none, one that does not is
        an incident.
        """
        for outcome, status, incidents in (
            ("confirmed", "accepted", 0),
            ("confirmed", "pending", 0),
            ("confirmed", "rejected", 1),
            ("confirmed", "failed", 1),
            ("not_applied", "accepted", 1),
            ("not_applied", "rejected", 0),
            ("not_applied", "pending", 1),
        ):
            scene = self.lab.scene(f"{outcome}-{status}", unsafe=True)
            with self.subTest(outcome=outcome, status=status), scene.ledger() as ledger:
                operation = prepare(ledger, scene.near(), **ORDER)
                late = Meanwhile(scene, "response_received", outcome, status=status)
                seen = dispatch(ledger, operation.operation_id, late)
                self.assertEqual(seen.outcome.value, outcome)
                self.assertIs(seen.transport, Transport.RESPONSE_RECEIVED)
                self.assertEqual(look(ledger, operation.operation_id).version, 3 + incidents)
            kept = oracle.rows(scene.sender, "SELECT count(*) FROM receipt")
            noticed = oracle.rows(scene.sender, "SELECT count(*) FROM incident")
            self.assertEqual((kept, noticed), ([(1,)], [(incidents,)]))


class OneDoor(unittest.TestCase):
    """All moves pass one place, and the sources say so."""

    def test_a_decision_is_written_in_exactly_one_place(self) -> None:
        """R10: `INSERT INTO decision` stands in decisions.record and nowhere else."""
        self.assertEqual(places_of(r"INTO\s+decision\b"), ["ledger/decisions.py record"])

    def test_an_incident_is_written_in_exactly_one_place(self) -> None:
        """R10, R11: the same for incidents."""
        self.assertEqual(places_of(r"INTO\s+incident\b"), ["ledger/decisions.py notice"])

    def test_no_module_updates_an_operation(self) -> None:
        """R10: only the two triggers of the file do."""
        self.assertEqual(places_of(r"UPDATE\s+(OR\s+\w+\s+)?operation\b"), [])
        self.assertEqual(places_of(r"REPLACE\s+INTO|DELETE\s+FROM"), [])
        sql = (PACKAGE / "ledger" / "schema.sql").read_text("utf-8")
        triggers = re.findall(r"CREATE TRIGGER (\w+)([^;]*;)", sql)
        updating = [name for name, body in triggers if re.search(r"\bUPDATE operation\b", body)]
        self.assertEqual(updating, ["decision_moves", "incident_raises_the_version"])

    def test_a_move_is_made_by_the_guards_alone(self) -> None:
        """R10: no module outside rules/moves.py builds a Move or an Incident."""
        makers = {
            f"{path.relative_to(PACKAGE).as_posix()} {node.func.id}"
            for path, tree in sources()
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("Move", "Incident")
        }
        self.assertEqual(makers, {"rules/move.py Move", "rules/moves.py Incident"})

    def test_every_move_names_its_actor(self) -> None:
        """R10: an empty or ill-typed name is Malformed, for every lawful move."""
        for source, target, cause in sorted(LEGAL):
            for nobody in ("", " ", None, 5):
                with self.assertRaises(Malformed):
                    move.move_of(
                        bare(state=State(source)),
                        State(target),
                        Cause(cause),
                        nobody,  # type: ignore[arg-type]
                    )


class WhatIsAllowedNow(LabCase):
    """Every state has its actions, and an agent is never offered a decision."""

    def test_the_actions_of_every_state(self) -> None:
        """A7, A12: what each state must offer, and what it must never offer."""
        a = Action
        starts = {a.DISPATCH, a.RESEND, a.REPLACE, a.START_NEW, a.COMPENSATE}
        rows: dict[str, tuple[set[Action], set[Action]]] = {
            "prepared": ({a.DISPATCH}, {a.RESEND, a.RECONCILE, a.CLOSE, a.COMPENSATE}),
            "unknown": ({a.QUERY, a.CLOSE, a.RECONCILE, a.ESCALATE}, starts),
            "pending": ({a.QUERY, a.CLOSE, a.RECONCILE, a.ESCALATE}, starts),
            "partial": ({a.QUERY, a.ESCALATE}, starts | {a.RECONCILE}),
            "conflict": ({a.QUERY, a.ESCALATE}, starts | {a.RECONCILE}),
            "confirmed": ({a.COMPENSATE, a.START_NEW}, {a.DISPATCH, a.RESEND, a.RECONCILE}),
            "rejected": ({a.REPLACE}, {a.DISPATCH, a.RESEND, a.RECONCILE, a.COMPENSATE}),
            "not_applied": ({a.REPLACE}, {a.DISPATCH, a.RESEND, a.RECONCILE, a.COMPENSATE}),
            "revoked": ({a.REPLACE}, {a.DISPATCH, a.RESEND, a.RECONCILE, a.COMPENSATE}),
            "failed": (set(), {a.DISPATCH, a.RESEND, a.RECONCILE, a.COMPENSATE}),
            "written_off": (set(), {a.DISPATCH, a.RESEND, a.RECONCILE, a.COMPENSATE}),
        }
        self.assertEqual(set(rows), EVERY_STATE)
        for state, (offered, withheld) in rows.items():
            found = next_actions(bare(state=State(state), effect_id="op-1#1"), now_ms=0)
            with self.subTest(state):
                self.assertLessEqual(offered, set(found))
                self.assertFalse(withheld & set(found))
                order = list(Action)
                self.assertEqual(list(found), sorted(set(found), key=order.index))

    def test_nothing_wedges(self) -> None:
        """A12: every state that is not final offers what resolves it or calls a person, under
        every policy.
        """
        ways_on = {Action.RECONCILE, Action.ADJUDICATE, Action.WRITE_OFF, Action.ESCALATE}
        for state, policy in itertools.product(State, (POLICY, EffectPolicy())):
            found = set(next_actions(bare(state=state, policy=policy), now_ms=0))
            if state.value in UNRESOLVED:
                self.assertTrue(found & ways_on, state)
            elif state is State.PREPARED:
                self.assertEqual(found, {Action.DISPATCH})

    def test_what_needs_a_guarantee_is_absent_without_it(self) -> None:
        """A7: no closing without a close barrier; no compensation without an effect."""
        for state in UNRESOLVED:
            found = next_actions(bare(state=State(state), policy=EffectPolicy()), now_ms=0)
            self.assertNotIn(Action.CLOSE, found)
        confirmed = bare(state=State.CONFIRMED, effect_id=None)
        self.assertNotIn(Action.COMPENSATE, next_actions(confirmed, now_ms=0))

    def test_an_unbound_compensation_calls_a_person(self) -> None:
        """A12: it cannot be sent, and is not left without a way on."""
        draft = bare(compensates="op-0#1")
        self.assertEqual(next_actions(draft, now_ms=0), (Action.ESCALATE,))
        bound = replace(draft, binding=binding())
        self.assertEqual(next_actions(bound, now_ms=0), (Action.DISPATCH,))

    def test_an_agent_is_never_offered_a_decision(self) -> None:
        """A7, A8, R10: for every state, transport and policy; nothing else is left out."""
        self.assertEqual(
            {action.value for action in DECISIONS},
            {"reconcile", "adjudicate", "write_off", "compensate", "replace"},
        )
        for state, transport, policy in itertools.product(
            State, Transport, (POLICY, EffectPolicy())
        ):
            operation = bare(state=state, policy=policy, effect_id="op-1#1")
            result = tool_result(operation, transport, now_ms=0)
            allowed = next_actions(operation, now_ms=0)
            self.assertEqual(
                result.next_actions, tuple(act for act in allowed if act not in DECISIONS)
            )

    def test_a_result_carries_no_error_text(self) -> None:
        """A8: what an adapter raised is not passed on to an agent."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = prepare(ledger, scene.near(), **ORDER)
            seen = dispatch(ledger, operation.operation_id, Raises(ValueError("sekrit")))
            self.assertIsInstance(seen, ToolResult)
            self.assertNotIn("sekrit", repr(seen))
        for rows in oracle.dump(scene.sender).values():
            self.assertNotIn("sekrit", repr(rows))


class RulesAlone(unittest.TestCase):
    """Each named rule of moves.py and verdicts.py, from a case that passes."""

    def test_one_effect_lets_only_an_unsent_intent_leave(self) -> None:
        """A2, L5: one-effect · same-identity-only: every other state, and any attempt that may
        have left.
        """
        for state in State:
            operation = bare(state=state, version=2)
            call = announce_by(operation)
            if state is State.PREPARED:
                self.assertEqual(call().target, State.UNKNOWN)
            else:
                with self.assertRaises(AlreadyAnnounced) as caught:
                    call()
                self.assertEqual(caught.exception.state, state.value)
        for attempts, not_sent, allowed in (
            (1, 1, True),
            (3, 3, True),
            (1, 0, False),
            (3, 2, False),
        ):
            call = announce_by(bare(attempts=attempts, not_sent=not_sent))
            if allowed:
                call()
            else:
                with self.assertRaises(AlreadyAnnounced):
                    call()

    def test_a_request_leaves_only_for_its_own_receiver_and_epoch(self) -> None:
        """R1, E4: mismatch-never-resolves, before contact, for announcing and for closing."""
        for receiver, epoch in (("other", 1), ("Plain", 1), ("plain ", 1), (IDENTITY, 2)):
            with self.assertRaises(WrongReceiver):
                sending.announce(bare(), receiver=receiver, epoch=epoch)
            with self.assertRaises(WrongReceiver):
                sending.close(bare(state=State.UNKNOWN), POLICY, receiver=receiver, epoch=epoch)

    def test_closing_needs_both_policies_and_an_open_question(self) -> None:
        """E8: closing-needs-permission: state, pinned policy, present policy, one at a time."""
        for state in State:
            operation = bare(state=state)
            if state.value in UNRESOLVED:
                sending.close(operation, POLICY, receiver=IDENTITY, epoch=1)
            else:
                with self.assertRaises(ClosingRefused):
                    sending.close(operation, POLICY, receiver=IDENTITY, epoch=1)
        unable = replace(POLICY, can_close=False)
        unknown = bare(state=State.UNKNOWN)
        with self.assertRaisesRegex(ClosingRefused, "pinned"):
            sending.close(replace(unknown, policy=unable), POLICY, receiver=IDENTITY, epoch=1)
        with self.assertRaisesRegex(ClosingRefused, "present"):
            sending.close(unknown, unable, receiver=IDENTITY, epoch=1)

    def test_a_compensation_leaves_only_while_it_is_bound(self) -> None:
        """K3: compensation-is-bound: approval, effect, state and version of the original."""
        draft = bare(compensates="op-0#1", binding=binding())
        self.assertIs(announce_by(draft)().target, State.UNKNOWN)
        broken = [replace(draft, binding=None)]
        broken.append(replace(draft, binding=replace(binding(), effect_id="op-0#2")))
        broken.append(replace(draft, binding=replace(binding(), version=4)))
        broken += [
            replace(draft, binding=replace(binding(), state=state))
            for state in State
            if state is not State.CONFIRMED
        ]
        for operation in broken:
            with self.assertRaises(Unbound):
                announce_by(operation)()

    def test_closure_alone_proves_absence_and_uniqueness(self) -> None:
        """E5, E6: absence-needs-closure · uniqueness-needs-closure: each flag alone is missed."""
        operation = bare(state=State.UNKNOWN)
        whole = snapshot_of(operation, ())
        self.assertTrue(proves_absence(whole) and proves_uniqueness(whole))
        for less in (
            replace(whole, complete=False),
            replace(whole, authoritative=False),
            replace(whole, closed=False),
        ):
            self.assertFalse(proves_absence(less) or proves_uniqueness(less))

    def test_silence_decides_nothing(self) -> None:
        """R1: only the two verdicts that resolve name a state."""
        operation = bare(state=State.UNKNOWN)
        for name, seen in evidence_about(operation):
            if not isinstance(seen, Snapshot):
                continue
            if name.startswith(("unique_exact_match", "terminal_absence")):
                self.assertTrue(name.startswith(moves.resolving(seen)[0].value))
            else:
                with self.assertRaises(Unresolving):
                    moves.resolving(seen)


class RefusedBeforeContact(LabCase):
    """What is refused leaves no trace in either file."""

    def test_another_receiver_or_epoch_is_never_contacted(self) -> None:
        """E4, R1: mismatch-never-resolves, by dispatch and by close."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            draft = prepare(ledger, scene.near(), **ORDER)
            unknown = self.unknown(scene, ledger)
            before = oracle.dump(scene.sender), oracle.dump(scene.receiver_file)
            for identity, epoch in (("other", 1), (IDENTITY, 2)):
                stranger = MustNotBeCalled()
                stranger.identity, stranger.epoch = identity, epoch
                with self.assertRaises(WrongReceiver):
                    dispatch(ledger, draft.operation_id, stranger)
                with self.assertRaises(WrongReceiver):
                    close(
                        ledger,
                        unknown.operation_id,
                        stranger,
                        purpose="look",
                        authorized_by="ann",
                    )
            after = oracle.dump(scene.sender), oracle.dump(scene.receiver_file)
            self.assertEqual(after, before)

    def test_a_second_dispatch_is_never_contacted(self) -> None:
        """R1, L5: one-effect: after a lost receipt, the receiver's own log shows one apply."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            unknown = self.unknown(scene, ledger)
            before = oracle.dump(scene.sender), oracle.dump(scene.receiver_file)
            for receiver in (scene.near(), MustNotBeCalled()):
                with self.assertRaises(AlreadyAnnounced):
                    dispatch(ledger, unknown.operation_id, receiver)
            after = oracle.dump(scene.sender), oracle.dump(scene.receiver_file)
            self.assertEqual(after, before)
            contacts = oracle.contacts(scene.receiver_file)
            self.assertEqual(contacts, [("apply", unknown.operation_id)])


class BadArguments(LabCase):
    """Every public call with a wrong type or an empty text is Malformed, and writes nothing."""

    def test_every_ill_typed_argument_is_malformed_and_writes_nothing(self) -> None:
        """R1, A2: each argument of each call that takes a ledger, one at a time."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            calls = self.good_calls(scene, ledger)
            before = oracle.dump(scene.sender), oracle.dump(scene.receiver_file)
            for call, good in calls:
                for name, wrong in itertools.chain(*(bad_values(name) for name in good)):
                    with self.subTest(call=call.__name__, name=name, wrong=repr(wrong)[:20]):
                        with self.assertRaises(Malformed):
                            call(**{**good, "ledger": ledger, name: wrong})
                        after = oracle.dump(scene.sender), oracle.dump(scene.receiver_file)
                        self.assertEqual(after, before)

    def test_what_is_no_ledger_is_malformed(self) -> None:
        """R1: the first argument of every call, in place of an open ledger."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            for call, good in self.good_calls(scene, ledger):
                for wrong in (None, str(scene.sender), Ledger):
                    named = self.subTest(call=call.__name__, wrong=repr(wrong)[:20])
                    with named, self.assertRaises(Malformed):
                        call(**{**good, "ledger": wrong})

    def test_what_is_no_receiver_is_malformed_and_nothing_is_written(self) -> None:
        """R1: prepare, dispatch and close, with a thing that has none of a receiver's parts."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            calls = [pair for pair in self.good_calls(scene, ledger) if "receiver" in pair[1]]
            before = oracle.dump(scene.sender)
            for call, good in calls:
                for wrong in (None, IDENTITY, POLICY):
                    with self.subTest(call=call.__name__, wrong=repr(wrong)[:20]):
                        with self.assertRaises(Malformed):
                            call(**{**good, "ledger": ledger, "receiver": wrong})
                        self.assertEqual(oracle.dump(scene.sender), before)

    def test_a_receiver_with_ill_typed_parts_is_refused_before_contact(self) -> None:
        """R1, E4: identity, epoch and policy, one at a time; True is no epoch 1."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            calls = [pair for pair in self.good_calls(scene, ledger) if "receiver" in pair[1]]
            for call, good in calls:
                for part, wrong in (
                    ("identity", ""),
                    ("identity", None),
                    ("identity", 5),
                    ("epoch", True),
                    ("epoch", 1.0),
                    ("epoch", "1"),
                    ("epoch", None),
                    ("epoch", 0),
                    ("policy", None),
                    ("policy", {}),
                    ("policy", EffectPolicy),
                ):
                    if call is dispatch and part == "policy":
                        continue  # sending asks nothing of it
                    receiver = LosesReceipt(scene.near())
                    setattr(receiver, part, wrong)
                    before = oracle.dump(scene.sender), oracle.dump(scene.receiver_file)
                    with self.subTest(call=call.__name__, part=part, wrong=wrong):
                        with self.assertRaises((Malformed, WrongReceiver)):
                            call(**{**good, "ledger": ledger, "receiver": receiver})
                        after = oracle.dump(scene.sender), oracle.dump(scene.receiver_file)
                        self.assertEqual(after, before)

    def test_an_unknown_operation_is_named(self) -> None:
        """R1: by every call that takes an identity, and nothing is written."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            calls = [pair for pair in self.good_calls(scene, ledger) if "operation_id" in pair[1]]
            before = oracle.dump(scene.sender)
            for call, good in calls:
                with self.subTest(call.__name__), self.assertRaises(UnknownOperation) as caught:
                    call(**{**good, "ledger": ledger, "operation_id": "{nobody}"})
                self.assertIn("'{nobody}'", str(caught.exception))
                self.assertEqual(oracle.dump(scene.sender), before)

    def test_pure_functions_refuse_what_is_ill_typed(self) -> None:
        """R1, A7: identity, classification and actions."""
        for call in (
            lambda: classify(None),  # type: ignore[arg-type]
            lambda: next_actions(None, now_ms=0),  # type: ignore[arg-type]
            lambda: next_actions("op-1", now_ms=0),  # type: ignore[arg-type]
            lambda: next_actions(bare(), now_ms=True),
            lambda: next_actions(bare(), now_ms=1.0),  # type: ignore[arg-type]
            lambda: next_actions(bare(), now_ms=None),  # type: ignore[arg-type]
            lambda: operation_identity("", "t", {}),
            lambda: operation_identity("w", "t", None),  # type: ignore[arg-type]
            lambda: canonical_json(object()),
        ):
            with self.assertRaises(Malformed):
                call()

    def test_a_policy_refuses_what_is_ill_typed_by_the_name_of_its_field(self) -> None:
        """E14: every field, with values that are not of its kind or not in its list."""
        for field, value in EffectPolicy().__dataclass_fields__.items():
            default = value.default
            wrong: tuple[Any, ...] = (0.5, b"x", object())
            if type(default) is bool:
                wrong += (0, 1, None, "true")
            elif field == "version":
                wrong += (0, -1, True, None, "1")
            elif field.endswith("_ms"):
                wrong += (-1, True, "1", 2**63)
            elif type(default) is tuple:
                wrong += (["receipt"], "receipt", ("nonsense",), (None,), None)
            else:
                wrong += ("", " ", None, 5) if field == "name" else ("", "nonsense", None, 5)
            for bad in wrong:
                with self.subTest(field=field, bad=bad), self.assertRaises(Malformed) as caught:
                    EffectPolicy(**{field: bad})
                self.assertEqual(caught.exception.place, f"policy.{field}")

    def test_receivers_refuse_what_is_ill_typed(self) -> None:
        """R1: the process receiver and the stub, argument by argument."""
        changes: tuple[dict[str, Any], ...] = (
            {"argv": []},
            {"argv": "receiver"},
            {"argv": b"receiver"},
            {"argv": [5]},
            {"argv": None},
            {"argv": 5},
            {"identity": ""},
            {"identity": None},
            {"policy": "plain"},
            {"policy": EffectPolicy},
            {"epoch": 0},
            {"epoch": True},
            {"epoch": None},
            {"limit_s": 0},
            {"limit_s": -1.0},
            {"limit_s": True},
            {"limit_s": "1"},
            {"limit_s": None},
            {"limit_s": float("nan")},
            {"limit_s": float("inf")},
        )
        for change in changes:
            good: dict[str, Any] = {"argv": ["receiver"], "identity": IDENTITY}
            with self.subTest(change=change), self.assertRaises(Malformed):
                ProcessReceiver(**{**good, **change})
        stubs: tuple[dict[str, Any], ...] = (
            {"identity": ""},
            {"identity": None},
            {"identity": 5},
        )
        for stub in stubs:
            with self.subTest(stub=stub), self.assertRaises(Malformed):
                UnavailableReceiver(**stub)
        for epoch in (0, True, None, "1"):
            with self.subTest(epoch=epoch), self.assertRaises(Malformed):
                UnavailableReceiver(IDENTITY, epoch=epoch)  # type: ignore[arg-type]

    def test_a_ledger_refuses_what_is_ill_typed(self) -> None:
        """R1: path, clock, connection class and time limit, for opening and for looking."""
        scene = self.lab.scene()
        with scene.ledger():
            pass
        for change in (
            {"path": None},
            {"path": 5},
            {"path": ""},
            {"path": b"x"},
            {"path": "a\0b"},
            {"path": "\ud800"},
            {"clock": None},
            {"clock": 5},
            {"factory": None},
            {"factory": int},
            {"factory": "sqlite3.Connection"},
            {"busy_ms": -1},
            {"busy_ms": True},
            {"busy_ms": 1.5},
            {"busy_ms": None},
            {"busy_ms": "5000"},
        ):
            good: dict[str, Any] = {"path": scene.sender}
            for opened in (Ledger, Ledger.inspect):
                named = self.subTest(change=change, opened=opened.__qualname__)
                with named, self.assertRaises(Malformed):
                    opened(**{**good, **change}).close()

    def good_calls(
        self, scene: Scene, ledger: Ledger
    ) -> list[tuple[Callable[..., Any], dict[str, Any]]]:
        """Every public call that takes a ledger, with arguments that would pass."""
        near = scene.near()
        draft = prepare(ledger, near, **{**ORDER, "work_id": "draft"})
        confirmed = prepare(ledger, near, **{**ORDER, "work_id": "confirmed"})
        dispatch(ledger, confirmed.operation_id, near)
        unknown = prepare(ledger, near, **{**ORDER, "work_id": "unknown"})
        dispatch(ledger, unknown.operation_id, LosesReceipt(near))
        facts = closed_read(scene, ledger, unknown)
        one = {"operation_id": unknown.operation_id}
        return [
            (prepare, {"receiver": near, "scope": ("t", "p", "e"), **ORDER}),
            (dispatch, {"operation_id": draft.operation_id, "receiver": near}),
            (close, {**one, "receiver": near, "purpose": "look", "authorized_by": "ann"}),
            (observe, {**one, "snapshot": facts}),
            (reconcile, {**one, "snapshot": facts, "reviewer": "rita", "expected_version": 2}),
            (
                approve_compensation,
                {
                    "operation_id": confirmed.operation_id,
                    "effect_id": f"{confirmed.operation_id}#1",
                    "kind": "refund",
                    "payload": {"pence": 1500},
                    "approver": "ann",
                    "expected_version": 3,
                },
            ),
            (look, one),
            (open_questions, {"limit": 100}),
        ]


# --- receivers ----------------------------------------------------------------------------------


class Raises:
    """A receiver whose send ends in this error."""

    identity, epoch, policy = IDENTITY, 1, POLICY

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def send(self, query: Query) -> Receipt | None:
        raise self._error

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        raise self._error


class Says:
    """A receiver that raises, or returns, this."""

    identity, epoch, policy = IDENTITY, 1, POLICY

    def __init__(self, says: Any) -> None:
        self._says = says

    def send(self, query: Query) -> Any:
        if isinstance(self._says, BaseException):
            raise self._says
        return self._says

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        raise NotImplementedError


class Answers:
    """A receiver that gives what a function says. `first` is one that makes the effect before."""

    identity, epoch, policy = IDENTITY, 1, POLICY

    def __init__(
        self, answer: Callable[[Query, str], Any], status: str, *, first: Receiver | None = None
    ) -> None:
        self._answer, self._status, self._first = answer, status, first

    def send(self, query: Query) -> Receipt | None:
        if self._first is not None:
            self._first.send(query)
        answer: Receipt | None = self._answer(query, self._status)
        return answer

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        raise AssertionError("not asked here")


class MustNotBeCalled:
    """A receiver that no request may reach. If one does, the call does not end in its refusal."""

    identity, epoch, policy = IDENTITY, 1, POLICY

    def send(self, query: Query) -> Receipt | None:
        raise AssertionError("a request left")  # dispatch takes it for a failed call, and returns

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        raise AssertionError("a request left")


WAYS = ("not_sent", "sent", "response_received", "transport_failed")
MEANWHILE = ("confirmed", "not_applied")


class Meanwhile:
    """While our call is on its way a reviewer decides, through a ledger of their own; then our
    call ends in one of the four ways.
    """

    identity, epoch, policy = IDENTITY, 1, POLICY

    def __init__(
        self, scene: Scene, how: str, outcome: str | None, *, status: str = "accepted"
    ) -> None:
        self._scene, self._how, self._outcome, self._status = scene, how, outcome, status

    def send(self, query: Query) -> Any:
        near = self._scene.near()
        if self._outcome == "confirmed":
            near.send(query)
        if self._outcome is not None:
            with self._scene.ledger() as ledger:
                operation = look(ledger, query.operation_id)
                facts = closed_read(self._scene, ledger, operation)
                said = decided(ledger, operation, facts, version=operation.version)
                assert said == self._outcome, said
        if self._how == "not_sent":
            raise NotSent("the permission is unused")
        if self._how == "transport_failed":
            raise ConnectionResetError
        if self._how == "response_received":
            if self._outcome is None:
                return "no receipt at all"
            named = None if self._status == "rejected" else f"{query.operation_id}#1"
            return replace(receipt_for(query, self._status), effect_id=named)
        return None

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        return self._scene.near().snapshot(query, close=close)


# --- values -------------------------------------------------------------------------------------


def bare(**changed: Any) -> Operation:
    """An operation that no file holds."""
    fields: dict[str, Any] = {
        "number": 1,
        "operation_id": "op-1",
        "digest": "d",
        "work_id": "w",
        "target": IDENTITY,
        "epoch": 1,
        "kind": "charge",
        "payload": '{"pence":1500}',
        "subject": "invoice-1",
        "scope": Scope(),
        "policy": POLICY,
        "prepared_ms": 0,
    }
    return Operation(**{**fields, **changed})


def binding() -> Binding:
    return Binding(
        original_id="op-0",
        effect_id="op-0#1",
        approved_version=3,
        ordinal=1,
        approver="ann",
        state=State.CONFIRMED,
        version=3,
    )


def effect_of(operation: Operation, number: int = 1) -> Effect:
    return Effect(
        effect_id=f"{operation.operation_id}#{number}",
        operation_id=operation.operation_id,
        kind=operation.kind,
        payload=operation.payload,
        compensates=operation.compensates,
    )


def snapshot_of(operation: Operation, effects: tuple[Effect, ...]) -> Snapshot:
    """A closing read that shows these rows."""
    return Snapshot(
        query=operation.query,
        effects=effects,
        complete=True,
        authoritative=True,
        closed=True,
        receiver=operation.target,
        epoch=operation.epoch,
    )


def empty(operation: Operation, *, closed: bool) -> Snapshot:
    return replace(snapshot_of(operation, ()), closed=closed)


def receipt_for(query: Query, status: str) -> Receipt:
    return Receipt(
        operation_id=query.operation_id,
        status=status,
        effect_id=None if status == "rejected" else "there-1",
        kind=query.kind,
        payload=query.payload,
        compensates=query.compensates,
        receiver=query.target,
        epoch=query.epoch,
    )


def evidence_about(operation: Operation) -> list[tuple[str, Snapshot | Receipt]]:
    """Every verdict and every status, by name; "another effect" is a match with another id."""
    row = effect_of(operation)
    whole = snapshot_of(operation, (row,))
    other = replace(row, effect_id="op-1#7")
    found: list[tuple[str, Snapshot | Receipt]] = [
        ("duplicate_matches", replace(whole, effects=(row, effect_of(operation, 2)))),
        ("payload_mismatch", replace(whole, effects=(replace(row, payload="{}"),))),
        ("action_scope_mismatch", replace(whole, effects=(replace(row, kind="refund"),))),
        ("exact_match_existence_only", replace(whole, closed=False)),
        ("unique_exact_match", whole),
        ("terminal_absence", replace(whole, effects=())),
        ("inconclusive", replace(whole, effects=(), closed=False)),
        ("unique_exact_match of another effect", replace(whole, effects=(other,))),
        (
            "exact_match_existence_only of another effect",
            replace(whole, effects=(other,), closed=False),
        ),
    ]
    for name, seen in found[:7]:
        assert isinstance(seen, Snapshot) and classify(seen).value == name, name
    for status in STATUS_LEADS_TO:
        named = None if status == "rejected" else "op-1#1"
        said = replace(receipt_for(operation.query, status), effect_id=named)
        found.append((status, said))
    other_receipt = replace(receipt_for(operation.query, "accepted"), effect_id="op-1#7")
    return [*found, ("accepted, another effect", other_receipt)]


ROWS_SEEN = {
    "duplicate_matches",
    "payload_mismatch",
    "action_scope_mismatch",
    "exact_match_existence_only",
    "unique_exact_match",
    "unique_exact_match of another effect",
    "exact_match_existence_only of another effect",
}
ACCEPTED = {"accepted", "accepted, another effect"}
# What cannot hold at each final state. `pending` is older news of what ended since, unless it
# ended as never having been. `partial` says that something is committed, so it cannot hold where
# it ended without an effect, or where it was ended because nothing was known.
INCIDENT_AT: dict[str, set[str]] = {
    "confirmed": {
        "duplicate_matches",
        "payload_mismatch",
        "action_scope_mismatch",
        "terminal_absence",
        "unique_exact_match of another effect",
        "exact_match_existence_only of another effect",
        "accepted, another effect",
        "rejected",
        "failed",
    },
    "rejected": ROWS_SEEN | ACCEPTED | {"failed", "partial"},
    "failed": ROWS_SEEN | ACCEPTED | {"rejected"},
    "not_applied": ROWS_SEEN | ACCEPTED | {"failed", "pending", "partial"},
    "written_off": ROWS_SEEN | ACCEPTED | {"terminal_absence", "rejected", "failed", "partial"},
    "revoked": ROWS_SEEN | ACCEPTED | {"failed", "pending", "partial"},
}


# --- acting -------------------------------------------------------------------------------------


def closed_read(scene: Scene, ledger: Ledger, operation: Operation) -> Snapshot:
    return close(ledger, operation.operation_id, scene.near(), purpose="look", authorized_by="ann")


def decided(
    ledger: Ledger, operation: Operation, facts: Snapshot, *, version: int, by: str = "rita"
) -> str:
    """The state that a review led to, or the name of its refusal."""
    try:
        done = reconcile(
            ledger, operation.operation_id, facts, reviewer=by, expected_version=version
        )
    except (StaleVersion, IllegalMove, Busy) as error:
        return type(error).__name__
    return done.state.value


def decide_by(operation: Operation, facts: Snapshot) -> Callable[[], Move]:
    return lambda: moves.decide(
        operation, facts, reviewer="rita", expected_version=operation.version
    )


def announce_by(operation: Operation) -> Callable[[], Move]:
    return lambda: sending.announce(operation, receiver=operation.target, epoch=operation.epoch)


def bad_values(name: str) -> Iterator[tuple[str, Any]]:
    """What must not stand in the place of this argument."""
    wrong: dict[str, tuple[Any, ...]] = {
        "expected_version": (None, "2", True, 2.0, 0, -1, 2**63),
        "limit": (None, "1", True, 1.0, 0, -1),
        "payload": (None, "", [], 5, {1: 2}, {"a": 1.5}, {"a": {1}}, {"a": "\ud800"}),
        "snapshot": (None, "", {}, (), Snapshot, receipt_for(bare().query, "accepted")),
        "scope": (
            None,
            "abc",
            ("a", "b"),
            ["a", "b", "c"],
            ("a", "b", ""),
            ("a", 5, "c"),
            ("a", "b", "c", "d"),
        ),
        "receiver": (),  # stands in a test of its own
    }
    for value in wrong.get(name, (None, 5, True, b"x", "", "  ", "\n", "\ud800", ["x"])):
        yield name, value


def numbered(at: int) -> dict[str, Any]:
    """An order with a need of its own."""
    return {**ORDER, "work_id": f"w{at}", "subject": f"invoice-{at}"}


# --- files and sources --------------------------------------------------------------------------


def plain_sql(scene: Scene, sql: str) -> None:
    with closing(sqlite3.connect(scene.sender, isolation_level=None)) as connection:
        connection.execute(sql)


class Standing:
    """A plain second connection to a file in which an operation stands in each state."""

    def __init__(self, scene: Scene, numbers: dict[str, int]) -> None:
        self._numbers = numbers
        self._connection = sqlite3.connect(scene.sender, isolation_level=None)

    def __enter__(self) -> tuple[sqlite3.Connection, dict[str, int]]:
        for state, number in self._numbers.items():
            source = "prepared"
            for step, (target, cause) in enumerate(PATHS[state]):
                write_decision(self._connection, number, step + 2, source, target, cause)
                source = target
            assert state_of(self._connection, number) == (state, len(PATHS[state]) + 1)
        return self._connection, self._numbers

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def write_decision(
    connection: sqlite3.Connection, number: int, version: int, source: str, target: str, cause: str
) -> None:
    """A decision row with all that its cause asks for, so that only the move can be at fault."""
    evidence = cause == "evidence"
    absent = target == "not_applied"
    there = "SELECT 1 FROM receipt WHERE operation = ?"
    if cause == "receipt" and not connection.execute(there, (number,)).fetchone():
        connection.execute(
            "INSERT INTO receipt VALUES (?, 1, 'reply', 1, NULL, NULL, '{}', 0)", (number,)
        )
    connection.execute(
        "INSERT INTO decision VALUES (?, ?, ?, ?, ?, 'ann', ?, NULL, ?, ?, 'because', 0)",
        (
            number,
            version,
            source,
            target,
            cause,
            ("terminal_absence" if absent else "unique_exact_match") if evidence else None,
            "{}" if evidence else None,
            1 if cause == "receipt" else None,
        ),
    )


def state_of(connection: sqlite3.Connection, number: int) -> tuple[str, int]:
    row: tuple[str, int] = connection.execute(
        "SELECT state, version FROM operation WHERE number = ?", (number,)
    ).fetchone()
    return row


def sources() -> Iterator[tuple[Path, ast.Module]]:
    """Every module of the library, parsed."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, ast.parse(path.read_text("utf-8"))


def places_of(pattern: str) -> list[str]:
    """Where a piece of SQL stands in the library: file and function, for each text that has it."""
    found = []
    for path, tree in sources():
        for function in ast.walk(tree):
            if isinstance(function, (ast.FunctionDef, ast.Module)):
                found += [
                    f"{path.relative_to(PACKAGE).as_posix()} {getattr(function, 'name', 'module')}"
                    for text in texts_of(function)
                    if re.search(pattern, text, re.IGNORECASE)
                ]
    return found


def texts_of(function: ast.AST) -> Iterator[str]:
    """The texts of one function, docstrings left out, without those of functions inside it."""
    for child in ast.iter_child_nodes(function):
        if isinstance(child, ast.FunctionDef):
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
        yield from texts_of(child)
