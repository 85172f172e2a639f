"""Every statement of every writing call fails once; a process dies at every statement of an order.

The unfaulted run says how many points there are and what each of its commits left in the file. A
run that is broken at a point must leave exactly what the last commit before that point left.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import unittest
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import reconcile as library
from experiments.harness import oracle
from experiments.harness.faults import EXIT, Fault
from experiments.harness.lab import BIRTH_MS
from experiments.harness.plain import IDENTITY, POLICY, receiver_command
from experiments.harness.processes import Child, command
from experiments.harness.scene import Scene
from experiments.tests.base import ORDER, LabCase, LosesReceipt, LosesRequest
from reconcile import (
    Ledger,
    Operation,
    ProcessReceiver,
    ReconcileError,
    Snapshot,
    State,
    approve_compensation,
    close,
    dispatch,
    look,
    observe,
    open_questions,
    prepare,
)
from reconcile.ledger.marker import beside
from reconcile.rules import errors

Call = Callable[[Ledger, library.Receiver], object]
EDGES = ("before send", "after send")
LONG = "x" * 100_000


class Commit(NamedTuple):
    """What stood in the sender's file once a point was passed."""

    at: int
    tables: dict[str, list[tuple[Any, ...]]]


class StatementCase(LabCase):
    """Prepares files once, and runs a call on fresh copies of them."""

    def setUp(self) -> None:
        super().setUp()
        self.start = self.lab.scene("start")
        self.scene = self.lab.scene("run")
        self.connections: list[sqlite3.Connection] = []

    def fresh(self) -> None:
        """Put the prepared files back."""
        for file, prepared in (
            (self.scene.sender, self.start.sender),
            (self.scene.receiver_file, self.start.receiver_file),
        ):
            for left in file.parent.glob(f"{file.name}*"):
                left.unlink()
            if prepared.exists():
                put_at(prepared, file)

    def run_once(self, call: Call, fault: Fault) -> tuple[object, list[Commit]]:
        """Open and call under one fault; what it returned or raised, and what each commit left."""
        self.fresh()
        commits: list[Commit] = []
        self.connections.clear()
        test, file = self, self.scene.sender

        class Recording(fault.connection()):  # type: ignore[misc]
            def __init__(self, *given: Any, **named: Any) -> None:
                super().__init__(*given, **named)
                test.connections.append(self)

            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                cursor = super().execute(sql, *values)
                if sql == "COMMIT":
                    commits.append(Commit(len(fault.points) - 1, oracle.dump(file)))
                return cursor  # type: ignore[no-any-return]

        clock = count(BIRTH_MS + 10_000).__next__
        try:
            with Ledger(file, clock=clock, factory=Recording) as ledger:
                try:
                    said: object = call(ledger, self.other_side(fault))
                except ReconcileError as error:
                    said = error
                self.assertEqual(self.connections[0].in_transaction, False)
        except ReconcileError as error:  # opening failed: the connection is closed
            said = error
            with self.assertRaises(sqlite3.ProgrammingError):
                self.connections[0].execute("SELECT 1")
        return said, commits

    def other_side(self, fault: Fault) -> library.Receiver:
        """The receiver that a call is given: both edges of its sends are points."""
        return fault.receiver(self.scene.near())

    def tables(self) -> dict[str, list[tuple[Any, ...]]]:
        return oracle.dump(self.scene.sender) if self.scene.sender.exists() else {}

    def there(self) -> dict[str, list[tuple[Any, ...]]]:
        """The receiver's file, but for its notes of who only looked something up."""
        found = oracle.dump(self.scene.receiver_file)
        return {**found, "contact": [row for row in found["contact"] if row[1] != "lookup"]}

    def sweep(self, call: Call, *, commits: int, since: int = 0) -> None:
        """Deny, then interrupt, each statement of a call, `since` leaving out the first ones."""
        self.fresh()
        before, there = self.tables(), self.there()
        whole = Fault()
        answer, left = self.run_once(call, whole)
        self.assertNotIsInstance(answer, ReconcileError)
        self.assertEqual(len(left), commits)
        self.assertEqual([line for line in whole.bypassed if not line.startswith("--")], [])
        after = self.tables()
        self.assertEqual(after, left[-1].tables if left else before)

        for how in ("deny", "interrupt"):
            delivered = 0
            for at, point in enumerate(whole.points):
                if point in EDGES or at < since:
                    continue
                with self.subTest(how, at=at, point=point):
                    fault = Fault(at, how=how)
                    said, _ = self.run_once(call, fault)
                    self.assertEqual(fault.points[: at + 1], whole.points[: at + 1])
                    delivered += fault.delivered
                    if fault.delivered:
                        stands = [commit.tables for commit in left if commit.at < at]
                        kind = errors.NotRecorded if stands else errors.StorageFailed
                        self.assertIsInstance(said, kind)
                        self.assertEqual(self.tables(), stands[-1] if stands else before)
                        if not stands:  # nothing was announced, so nothing was asked for
                            self.assertEqual(self.there(), there)
                    else:
                        self.assertEqual((how, said), ("interrupt", answer))
                        self.assertEqual(self.tables(), after)
            enough = len(whole.points) - since - 3
            self.assertGreater(delivered, min(2, enough) if how == "interrupt" else enough)
        self.fresh()

    # --- what the calls start from --------------------------------------------------------------

    def prepared(self, **changed: Any) -> Operation:
        with self.start.ledger() as ledger:
            return prepare(ledger, self.start.near(), **{**ORDER, **changed})

    def lost(self, **changed: Any) -> tuple[Operation, Snapshot]:
        """An unknown operation whose effect exists, and the plain reading that shows it."""
        with self.start.ledger() as ledger:
            operation = self.unknown(self.start, ledger, **changed)
        return operation, self.start.near().snapshot(operation.query)

    def closed(self) -> tuple[Operation, Snapshot]:
        operation, _ = self.lost()
        return operation, self.start.near().snapshot(operation.query, close=True)

    def confirmed(self, **changed: Any) -> Operation:
        operation = self.prepared(**changed)
        with self.start.ledger() as ledger:
            dispatch(ledger, operation.operation_id, self.start.near())
            return look(ledger, operation.operation_id)

    def contradicted(self, operation: Operation) -> None:
        """Evidence against a confirmed operation: an incident, and every approval is stale."""
        seen = self.start.near().snapshot(operation.query, close=True)
        with self.start.ledger() as ledger:
            observe(ledger, operation.operation_id, replace(seen, effects=()))


class TheFailingStatement(StatementCase):
    """R4, C15: the k-th statement of a call fails, for every k, by SQLite's own hand."""

    def test_making_a_new_file_makes_all_of_it_or_nothing(self) -> None:
        """R4, C15: tables, moves, seals and marks are one commit."""
        self.sweep(lambda ledger, _: None, commits=1)

    def test_prepare_writes_the_intent_or_nothing(self) -> None:
        """R4: the operation and its policy go together."""
        with self.start.ledger():
            pass
        self.sweep(lambda ledger, receiver: prepare(ledger, receiver, **ORDER), commits=1)

    def test_dispatch_with_a_receipt_leaves_what_its_last_commit_left(self) -> None:
        """R4, L2: nothing, then unknown, then confirmed; the second commit is all or nothing."""
        at = self.prepared().operation_id
        self.sweep(lambda ledger, receiver: dispatch(ledger, at, receiver), commits=2)

    def test_dispatch_without_a_receipt_leaves_what_its_last_commit_left(self) -> None:
        """R4, L2: the receipt is lost, and only the end of the call is left to write."""
        at = self.prepared().operation_id
        self.sweep(lambda ledger, r: dispatch(ledger, at, LosesReceipt(r)), commits=2)

    def test_dispatch_that_never_sent_leaves_what_its_last_commit_left(self) -> None:
        """R4, L13: unknown, or prepared again with its question ended; never half of that."""
        at = self.prepared().operation_id
        self.sweep(lambda ledger, r: dispatch(ledger, at, NeverSends(r)), commits=2)

    def test_observe_keeps_the_evidence_or_nothing(self) -> None:
        """R4: an observation is one commit."""
        operation, facts = self.lost()
        self.sweep(lambda ledger, _: observe(ledger, operation.operation_id, facts), commits=1)

    def test_observe_that_finds_an_incident_writes_both_or_nothing(self) -> None:
        """R4, R11: observation, incident and version are one commit."""
        operation = self.confirmed()
        facts = self.start.near().snapshot(operation.query, close=True)
        against = replace(facts, effects=())
        self.sweep(lambda ledger, _: observe(ledger, operation.operation_id, against), commits=1)

    def test_close_writes_its_request_or_asks_nobody(self) -> None:
        """R4, E8: the receiver is contacted only after that commit."""
        operation, _ = self.lost()

        def call(ledger: Ledger, receiver: library.Receiver) -> object:
            return close(
                ledger, operation.operation_id, receiver, purpose="p", authorized_by="ada"
            )

        self.sweep(call, commits=1)

    def test_reconcile_writes_state_version_and_evidence_or_nothing(self) -> None:
        """R2, R4: the decision, the move and the end of the question are one commit."""
        operation, facts = self.closed()
        self.sweep(lambda ledger, _: decided(ledger, operation, facts), commits=1)

    def test_approve_compensation_writes_approval_and_intent_or_nothing(self) -> None:
        """R4, K2: both are one commit."""
        original = self.confirmed()
        self.sweep(lambda ledger, _: approved(ledger, original), commits=1)

    def test_approving_again_withdraws_the_stale_draft_or_changes_nothing(self) -> None:
        """R4, K3: withdrawal, approval and intent are one commit."""
        original = self.confirmed()
        with self.start.ledger() as ledger:
            approved(ledger, original)
        self.contradicted(original)
        with self.start.ledger() as ledger:
            original = look(ledger, original.operation_id)
        self.sweep(lambda ledger, _: approved(ledger, original), commits=1)

    def test_dispatch_of_a_compensation_leaves_what_its_last_commit_left(self) -> None:
        """R4, K5: a compensation is an effect like any other."""
        original = self.confirmed()
        with self.start.ledger() as ledger:
            at = approved(ledger, original).operation_id
        self.sweep(lambda ledger, receiver: dispatch(ledger, at, receiver), commits=2)

    def test_looking_changes_nothing_wherever_it_fails(self) -> None:
        """R4: look and open_questions leave no transaction, also when their ROLLBACK fails."""
        operation, _ = self.lost()
        self.sweep(lambda ledger, _: look(ledger, operation.operation_id), commits=0)
        self.sweep(lambda ledger, _: open_questions(ledger), commits=0)

    def test_the_second_reader_of_the_files_finds_every_commit_lawful(self) -> None:
        """R4, V6: what stands between two commits of a dispatch is a state that can be true."""
        at = self.prepared().operation_id
        found: list[list[str]] = []

        class Judged(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                cursor = super().execute(sql, *values)
                if sql == "COMMIT":
                    found.append(scene.findings())
                return cursor

        scene = self.scene
        self.fresh()
        with Ledger(scene.sender, factory=Judged) as ledger:
            dispatch(ledger, at, scene.near())
        self.assertEqual(found, [[], []])


class TheRefusedRow(StatementCase):
    """A trigger of somebody else refuses one row of a commit; the whole commit is undone."""

    def test_a_refused_row_undoes_the_whole_announcement(self) -> None:
        """R4, L2: without decision, obligation and attempt there is no announcement, no send."""
        at = self.prepared().operation_id
        for table in ("decision", "obligation", "attempt"):
            with self.subTest(table):
                self.refused(table, lambda ledger, r: dispatch(ledger, at, r))
                self.assertEqual(self.scene.contacts(), [])

    def test_a_refused_receipt_leaves_the_operation_unknown(self) -> None:
        """R2, R4: the receipt and the decision that it entitles to go together."""
        at = self.prepared().operation_id
        announced = self.run_once(lambda ledger, r: dispatch(ledger, at, r), Fault())[1][0].tables
        for table, stop in (("receipt", ""), ("decision", "WHEN NEW.cause = 'receipt'")):
            with self.subTest(table):
                lost = self.refused(
                    table, lambda ledger, r: dispatch(ledger, at, r), stop, announced
                )
                assert isinstance(lost, errors.NotRecorded)
                self.assertIsInstance(lost.receipt, library.Receipt)
                self.assertEqual(oracle.states(self.scene.sender)[at], ("unknown", 2))
                self.assertEqual(len(oracle.effects(self.scene.receiver_file)[at]), 1)

    def test_a_call_that_never_sent_is_not_reported_as_sent(self) -> None:
        """L13, A1: its end could not be written, and what the error says of it must be true."""
        at = self.prepared().operation_id
        call: Call = lambda ledger, r: dispatch(ledger, at, NeverSends(r))  # noqa: E731
        announced = self.run_once(call, Fault())[1][0].tables
        lost = self.refused("attempt", call, "", announced, event="UPDATE")
        self.assertNotIn("was sent", str(lost))
        self.assertIn("stays unknown", str(lost))

    def test_a_refused_evidence_row_undoes_the_whole_review(self) -> None:
        """R2, R4: without the decision row nothing moves and no question ends."""
        operation, facts = self.closed()
        self.refused("decision", lambda ledger, _: decided(ledger, operation, facts))
        self.refused(
            "obligation",
            lambda ledger, _: decided(ledger, operation, facts),
            event="UPDATE",
        )
        self.refused(
            "operation", lambda ledger, _: decided(ledger, operation, facts), event="UPDATE"
        )

    def test_a_refused_observation_or_incident_undoes_the_other(self) -> None:
        """R4, R11: evidence against a final state is kept and noticed, or neither."""
        operation = self.confirmed()
        facts = self.start.near().snapshot(operation.query, close=True)
        against = replace(facts, effects=())
        for table in ("observation", "incident"):
            with self.subTest(table):
                self.refused(
                    table, lambda ledger, _: observe(ledger, operation.operation_id, against)
                )

    def test_a_refused_close_request_closes_nothing(self) -> None:
        """R4, E8: what is not written first is not asked."""
        operation, _ = self.lost()
        self.refused(
            "close_request",
            lambda ledger, r: close(
                ledger, operation.operation_id, r, purpose="p", authorized_by="ada"
            ),
        )
        self.assertEqual(oracle.closed(self.scene.receiver_file), [])

    def test_a_refused_approval_prepares_no_compensation(self) -> None:
        """R4, K2: approval and intent commit together."""
        original = self.confirmed()
        for table in ("compensation", "operation"):
            with self.subTest(table):
                self.refused(table, lambda ledger, _: approved(ledger, original))

    def refused(
        self,
        table: str,
        call: Call,
        when: str = "",
        stands: dict[str, list[tuple[Any, ...]]] | None = None,
        *,
        event: str = "INSERT",
    ) -> ReconcileError:
        self.fresh()
        with closing(sqlite3.connect(self.scene.sender, isolation_level=None)) as other:
            other.execute(
                f"CREATE TRIGGER stop BEFORE {event} ON {table} {when} "
                "BEGIN SELECT RAISE(ABORT, 'stopped by somebody'); END"
            )
        before = self.tables()
        opened: list[sqlite3.Connection] = []

        class Seen(sqlite3.Connection):
            def __init__(self, *given: Any, **named: Any) -> None:
                super().__init__(*given, **named)
                opened.append(self)

        clock = count(BIRTH_MS + 10_000).__next__
        with Ledger(self.scene.sender, clock=clock, factory=Seen) as ledger:
            kind = errors.StorageFailed if stands is None else errors.NotRecorded
            with self.assertRaisesRegex(kind, "stopped by somebody") as caught:
                call(ledger, self.scene.near())
            self.assertFalse(opened[0].in_transaction)
        self.assertEqual(self.tables(), before if stands is None else stands)
        return caught.exception


class TheFullDisk(StatementCase):
    """The file may not grow by one page: SQLite itself says that the disk is full."""

    def test_a_full_disk_undoes_every_single_commit_call(self) -> None:
        """R4: prepare, observe, reconcile, close and approve write all or nothing."""
        operation, facts = self.lost(payload={"long": LONG})
        shut = self.start.near().snapshot(operation.query, close=True)
        done = self.confirmed(work_id="done")
        big = {"long": LONG}
        calls: dict[str, Call] = {
            "prepare": lambda ledger, r: prepare(
                ledger, r, **{**ORDER, "work_id": "w-9", "payload": big}
            ),
            "observe": lambda ledger, _: observe(ledger, operation.operation_id, facts),
            "reconcile": lambda ledger, _: decided(ledger, operation, shut),
            "close": lambda ledger, r: close(
                ledger, operation.operation_id, r, purpose=LONG, authorized_by="ada"
            ),
            "approve": lambda ledger, _: approved(ledger, done, payload=big),
        }
        for name, call in calls.items():
            with self.subTest(name):
                self.fresh()
                before = self.tables()
                self.full(call)
                self.assertEqual(self.tables(), before)

    def test_a_disk_that_is_full_when_the_receipt_comes_leaves_unknown(self) -> None:
        """R4, L2: the effect exists, and the announcement that was committed before says so."""
        at = self.prepared(payload={"long": LONG}).operation_id
        self.fresh()
        self.full(lambda ledger, r: dispatch(ledger, at, r), errors.NotRecorded)
        self.assertEqual(oracle.states(self.scene.sender)[at], ("unknown", 2))
        self.assertEqual(len(oracle.effects(self.scene.receiver_file)[at]), 1)
        self.assertEqual(oracle.rows(self.scene.sender, "SELECT * FROM receipt"), [])
        self.assertEqual(
            oracle.rows(self.scene.sender, "SELECT transport FROM attempt"), [(None,)]
        )

    def full(self, call: Call, kind: type[ReconcileError] = errors.StorageFailed) -> None:
        opened: list[sqlite3.Connection] = []

        class Full(sqlite3.Connection):
            def __init__(self, *given: Any, **named: Any) -> None:
                super().__init__(*given, **named)
                opened.append(self)
                # one page more than there is: a small row fits, a long text does not
                pages = self.execute("PRAGMA page_count").fetchone()[0]
                self.execute(f"PRAGMA max_page_count = {pages + 1}")

        with Ledger(self.scene.sender, clock=self.lab.clock, factory=Full) as ledger:
            with self.assertRaisesRegex(kind, "full"):
                call(ledger, self.scene.near())
            self.assertFalse(opened[0].in_transaction)


class TheDyingProcess(LabCase):
    """A real sender ends at every statement and on either side of its send."""

    def setUp(self) -> None:
        super().setUp()
        self.start = self.lab.scene("start")
        self.start.ledger().close()

    def test_a_sender_that_dies_at_any_point_leaves_a_lawful_file(self) -> None:
        """R4, L2, L4: never an effect without an announced unknown; every point is hit."""
        points = self.order(self.lab.scene("whole"), None, "exit")[2]
        self.assertEqual([point for point in points if point in EDGES], list(EDGES))
        self.assertEqual(points.count("COMMIT"), 3)
        plans = [(at, how) for at in range(len(points)) for how in ("exit", "exit_after")]
        scenes = [self.lab.scene(f"{how} {at}") for at, how in plans]
        with ThreadPoolExecutor(4) as pool:
            ends = list(pool.map(self.order, scenes, *zip(*plans, strict=True)))
        for (at, how), scene, (status, said, _) in zip(plans, scenes, ends, strict=True):
            with self.subTest(how, at=at, point=points[at]):
                self.assertEqual((status, said), (EXIT, []))
                self.assertEqual(self.outcome(scene), expected(points, at, how))
                self.assertEqual(scene.findings(), [])

    def test_one_point_past_the_last_runs_clean(self) -> None:
        """R4: so the points above are all there are, and the fault alone ended those runs."""
        points = self.order(self.lab.scene("whole"), None, "exit")[2]
        for how in ("exit", "exit_after"):
            scene = self.lab.scene(how)
            status, said, passed = self.order(scene, len(points), how)
            self.assertEqual((status, said, passed), (0, ["confirmed"], points))
            self.assertEqual(self.outcome(scene), (State.CONFIRMED.value, 1))

    def test_a_sender_that_dies_while_making_its_file_leaves_nothing_or_all_of_it(self) -> None:
        """R4, C15: the next one that opens it goes on as if it had been the first."""
        points = self.order(self.lab.scene("first"), None, "exit", new=True)[2]
        commit = points.index("COMMIT")
        for at in (0, 3, 10, commit // 2, commit - 1, commit):
            for how in ("exit", "exit_after") if at == commit else ("exit",):
                with self.subTest(how, at=at):
                    scene = self.lab.scene(f"{how} {at}")
                    self.assertEqual(self.order(scene, at, how, new=True)[0], EXIT)
                    made = how == "exit_after"
                    self.assertEqual(bool(oracle.dump(scene.sender)), made)
                    self.assertEqual(self.order(scene, None, "exit", new=True)[0], 0)
                    self.assertEqual(self.outcome(scene), (State.CONFIRMED.value, 1))

    def test_unknown_is_in_the_file_before_the_receiver_process_is_started(self) -> None:
        """L2: the receiver reads the sender's file first thing, and reports what stands there."""
        scene = self.lab.scene("told", unsafe=True)
        report = scene.sender.with_name("report")
        argv = [sys.executable, "-I", "-S", "-c", LOOKS, str(scene.sender), str(report)]
        receiver = ProcessReceiver(argv, identity=IDENTITY, policy=POLICY)
        with scene.ledger() as ledger:
            made = prepare(ledger, receiver, **ORDER)
            self.assertFalse(report.exists())
            dispatch(ledger, made.operation_id, receiver)
        self.assertEqual(json.loads(report.read_text("utf-8")), ["unknown", 2, 1, 1])

    def order(
        self, scene: Scene, at: int | None, how: str, *, new: bool = False
    ) -> tuple[int, list[str], list[str]]:
        """Exit status of one sender, what it said of its steps, and the points if it lived."""
        if not new:
            put_at(self.start.sender, scene.sender)
        plan = {
            "file": str(scene.sender),
            "receiver": receiver_command(scene.receiver_file),
            "clock": BIRTH_MS,
            "steps": ["order"],
            "at": at,
            "how": how,
        }
        child = Child(command("experiments.harness.actor", json.dumps(plan)))
        self.lab.children.append(child)
        said: list[str] = []
        points: list[str] = []
        while (line := child.hear()) is not None:
            said += [line["said"]] if "said" in line else []
            points = line.get("points", points)
        status = child.end()
        if status == EXIT:  # what it was about to say is lost with it
            said = []
        return status, said, points

    def outcome(self, scene: Scene) -> tuple[str | None, int]:
        states = list(oracle.states(scene.sender).values())
        effects = sum(map(len, oracle.effects(scene.receiver_file).values()))
        return states[0][0] if states else None, effects


# --- calls, and what they must come to ----------------------------------------------------------


def decided(ledger: Ledger, operation: Operation, facts: Snapshot) -> object:
    return library.reconcile(
        ledger,
        operation.operation_id,
        facts,
        reviewer="ada",
        expected_version=operation.version,
    )


def approved(
    ledger: Ledger, original: Operation, payload: dict[str, Any] | None = None
) -> Operation:
    assert original.effect_id is not None
    return approve_compensation(
        ledger,
        original.operation_id,
        effect_id=original.effect_id,
        kind="refund",
        payload=payload or {"pence": 1500},
        approver="ada",
        expected_version=original.version,
    )


def expected(points: list[str], at: int, how: str) -> tuple[str | None, int]:
    """State and effects of an order whose sender ended at this point, or just after it."""
    commits = points[: at + (how == "exit_after")].count("COMMIT")
    states = (None, "prepared", "unknown", "confirmed")
    return states[commits], int(at > points.index("before send"))


def put_at(file: Path, place: Path) -> None:
    """Copy a closed file and, if it is a ledger, the marker beside it."""
    shutil.copyfile(file, place)
    if beside(file).exists():
        shutil.copyfile(beside(file), beside(place))


class NeverSends(LosesRequest):
    """It can prove that not one byte left."""

    def send(self, query: library.Query) -> None:
        raise errors.NotSent("the line is down")


LOOKS = """\
import json, sqlite3, sys
sender, report = sys.argv[1:]
other = sqlite3.connect(sender)
found = other.execute(
    "SELECT state, version, (SELECT count(*) FROM attempt WHERE transport IS NULL), "
    "(SELECT count(*) FROM obligation WHERE ended_ms IS NULL) FROM operation"
).fetchone()
other.close()
with open(report, "x", encoding="utf-8") as out:
    json.dump(found, out)
"""
"""A receiver that never reads its request: what it sees stood before it could."""

if __name__ == "__main__":
    unittest.main()
