"""The other side, its process, its file, and the pipe between: what each can and cannot do.

Where a receiver has to misbehave it is a small script given as the command of `ProcessReceiver`;
everywhere else it is the teaching receiver itself, as a process that really ends or really
waits.
"""

from __future__ import annotations

import ast
import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import unittest
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import reconcile as library
from experiments.harness import oracle, unsafe
from experiments.harness.inprocess import create
from experiments.harness.lab import YEAR_MS
from experiments.harness.plain import IDENTITY, POLICY, receiver_command
from experiments.harness.processes import LIMIT_S, Child, command, root_of
from experiments.harness.scene import Scene
from experiments.tests.base import ORDER, LabCase, LosesReceipt, LosesRequest
from experiments.tests.case_ledger import KINDS, attacks, plain, tables, triggers
from reconcile import (
    Ledger,
    Operation,
    ProcessReceiver,
    Query,
    Snapshot,
    Verdict,
    approve_compensation,
    classify,
    close,
    dispatch,
    look,
    observe,
    prepare,
)
from reconcile.flows import process_receiver
from reconcile.flows.process_receiver import apply_request, snapshot_request
from reconcile.rules import errors

LOST, NO_PERMIT = 23, 24
CHARGE = Query(
    operation_id="c" * 32,
    target=IDENTITY,
    kind="charge",
    payload='{"pence":1500}',
    compensates=None,
    epoch=1,
)
REFUND = Query(
    operation_id="d" * 32,
    target=IDENTITY,
    kind="refund",
    payload='{"pence":1500}',
    compensates=f"{'c' * 32}#1",
    epoch=1,
)
APPLY = {  # point: effects, and how the reply ends
    "before_begin": (0, "nothing"),
    "before_commit": (0, "nothing"),
    "after_commit": (1, "nothing"),
    "mid_receipt": (1, "half a line"),
    "after_receipt": (1, "a line"),
}
POSIX = hasattr(os, "fork") and hasattr(os, "mkfifo")


class TwoSides(LabCase):
    """Two files, and no transaction that spans both."""

    def test_sender_and_receiver_own_separate_files_with_no_table_in_common(self) -> None:
        """L1: neither file holds anything of the other."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            self.unknown(scene, ledger)
        sender, receiver = oracle.dump(scene.sender), oracle.dump(scene.receiver_file)
        self.assertEqual(set(sender) & set(receiver), set())
        self.assertEqual((len(sender["operation"]), len(receiver["effect"])), (1, 1))

    def test_no_transaction_of_the_sender_is_open_while_a_receiver_is_asked(self) -> None:
        """L1: during send and closing read anybody may write to the sender's file at once."""
        scene = self.lab.scene()
        asked: list[str] = []

        class Looking(LosesReceipt):
            def send(self, query: Query) -> Any:
                self._write("send")
                return super().send(query)

            def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
                self._write("snapshot")
                return super().snapshot(query, close=close)

            def _write(self, what: str) -> None:
                with plain(scene.sender) as other:  # waits for nobody
                    other.execute("BEGIN IMMEDIATE")
                    other.execute("ROLLBACK")
                asked.append(what)

        with scene.ledger() as ledger:
            receiver = Looking(scene.near())
            made = prepare(ledger, receiver, **ORDER)
            dispatch(ledger, made.operation_id, receiver)
            close(ledger, made.operation_id, receiver, purpose="p", authorized_by="ada")
            self.assertFalse(scene.opened[0].in_transaction)
        self.assertEqual(asked, ["send", "snapshot"])

    def test_a_second_dispatch_is_refused_before_the_receiver_is_contacted(self) -> None:
        """L5: the receiver's own log of applies and closes has one line, before and after."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            made = prepare(ledger, scene.receiver(), **ORDER)
            scene.name(made, "charge")
            dispatch(ledger, made.operation_id, scene.receiver(crash="after_commit"))
            before = oracle.dump(scene.sender)
            for receiver in (scene.receiver(), scene.near()):
                with self.assertRaises(errors.AlreadyAnnounced):
                    dispatch(ledger, made.operation_id, receiver)
        self.assertEqual(scene.contacts(), [["apply", "charge"]])
        self.assertEqual(scene.effects(), {"charge": 1})
        self.assertEqual(oracle.dump(scene.sender), before)

    def test_a_second_direct_call_makes_a_second_effect(self) -> None:
        """L6: the plain receiver is truly not idempotent."""
        scene = self.lab.scene()
        first, second = (scene.receiver().send(CHARGE) for _ in range(2))
        assert first is not None and second is not None
        self.assertNotEqual(first.effect_id, second.effect_id)
        self.assertEqual(len(oracle.effects(scene.receiver_file)[CHARGE.operation_id]), 2)

    def test_no_unique_key_of_the_receiver_is_the_operation_or_its_payload(self) -> None:
        """L6: the only unique key of an effect counts the effects of its operation."""
        with plain(self.lab.scene().receiver_file) as other:
            indexes = other.execute("PRAGMA index_list(effect)").fetchall()
            keys = [
                [part[2] for part in other.execute(f"PRAGMA index_info({index[1]})").fetchall()]
                for index in indexes
                if index[2]
            ]
        self.assertEqual([key[:2] for key in keys], [["operation_id", "number"]])


class TheLostReceipt(LabCase):
    """Every point at which the receiver's process can end."""

    def test_every_crash_point_is_hit_and_leaves_its_number_of_effects(self) -> None:
        """L3: status 23 at each, and the effect is there exactly from its commit on."""
        points = self.points()
        self.assertEqual(set(points), set(APPLY))
        for point, (effects, _) in APPLY.items():
            with self.subTest(point):
                scene = self.lab.scene(point)
                receiver = self.direct(scene, crash=point)
                receipt = receiver.send(CHARGE)
                self.assertEqual(receiver.last_exit, LOST)
                self.assertEqual(receipt is not None, point == "after_receipt")
                self.assertEqual(self.effects(scene), effects)
                self.assertEqual(oracle.contacts(scene.receiver_file), [("apply", "c" * 32)])

    def test_not_one_byte_of_a_lost_receipt_reaches_the_sender(self) -> None:
        """L3: and the control shows that the same pipe would have carried it."""
        request = json.dumps(apply_request(CHARGE)).encode() + b"\n"
        whole = self.lab.scene("whole").raw_reply(request, crash=None)
        self.assertEqual(json.loads(whole)["reply"], "receipt")
        for point, (_, ends) in APPLY.items():
            with self.subTest(point):
                said = self.lab.scene(point).raw_reply(request, crash=point)
                if ends == "nothing":
                    self.assertEqual(said, b"")
                elif ends == "half a line":
                    self.assertTrue(whole.startswith(said) and 0 < len(said) < len(whole))
                    self.assertNotIn(b"\n", said)
                else:
                    self.assertEqual(said, whole)

    def test_what_a_dying_receiver_printed_is_lost_whatever_the_environment_says(self) -> None:
        """L3, C05: PYTHONUNBUFFERED changes nothing, since the child inherits no such setting."""
        for setting in ("", "1"):
            scene = self.lab.scene(f"unbuffered {setting}")
            with (
                self.subTest(setting),
                mock.patch.dict(os.environ, {"PYTHONUNBUFFERED": setting}),
            ):
                self.assertIsNone(self.direct(scene, crash="after_commit").send(CHARGE))
                self.assertEqual(self.effects(scene), 1)

    def test_only_a_whole_receipt_confirms_and_the_effect_alone_does_not(self) -> None:
        """L3, L4: half a line is no receipt; the file, opened again, still says unknown."""
        for point in APPLY:
            scene = self.lab.scene(point)
            with scene.ledger() as ledger:
                made = prepare(ledger, scene.near(), **ORDER)
                said = dispatch(ledger, made.operation_id, scene.receiver(crash=point))
            wanted = "confirmed" if point == "after_receipt" else "unknown"
            with self.subTest(point), scene.ledger() as ledger:
                self.assertEqual(said.outcome.value, wanted)
                self.assertEqual(look(ledger, made.operation_id).state.value, wanted)

    def test_a_receiver_that_dies_while_it_closes_has_closed_only_after_its_commit(self) -> None:
        """E7, E10: the same points on the way of a closing read."""
        for point, closed in (("before_begin", 0), ("before_commit", 0), ("after_commit", 1)):
            scene = self.lab.scene(point)
            receiver = self.direct(scene, crash=point)
            with self.subTest(point), self.assertRaises(errors.NoReply):
                receiver.snapshot(CHARGE, close=True)
            self.assertEqual(receiver.last_exit, LOST)
            self.assertEqual(len(oracle.closed(scene.receiver_file)), closed)

    def points(self) -> tuple[str, ...]:
        """The crash points that the receiver's own help lists."""
        said = subprocess.run(
            command("receiver.__main__", "--crash", "nowhere"),
            stdout=subprocess.PIPE,
            timeout=LIMIT_S,
        ).stdout
        return tuple(json.loads(said)["why"].rpartition(": one of ")[2].split(", "))

    def direct(self, scene: Scene, *, crash: str | None = None) -> ProcessReceiver:
        argv = receiver_command(scene.receiver_file, crash=crash)
        return ProcessReceiver(argv, identity=IDENTITY, policy=POLICY, limit_s=LIMIT_S)

    def effects(self, scene: Scene) -> int:
        return len(oracle.effects(scene.receiver_file).get(CHARGE.operation_id, []))


class ExitStatusDecidesNothing(LabCase):
    """Every way to end, with every kind of reply."""

    REPLIES = (
        "a valid receipt",
        "nothing",
        "another operation",
        "half a receipt",
        "another payload",
        "no end of line",
        "no JSON",
        "closed",
        "an error",
    )
    ENDS = ("0", "1", "23", "killed")

    def test_the_state_depends_on_the_reply_alone(self) -> None:
        """L8, C30: 0, 1, 23 and a signal; only a valid receipt confirms, and nothing is failed."""
        for says in self.REPLIES:
            for ends in self.ENDS:
                with self.subTest(says, ends=ends):
                    state, status = self.state(says, ends)
                    self.assertEqual(status, -signal.SIGKILL if ends == "killed" else int(ends))
                    confirms = says == "a valid receipt"
                    self.assertEqual(state, "confirmed" if confirms else "unknown")

    def test_an_exit_status_as_windows_gives_it_decides_nothing(self) -> None:
        """L8, C30: STATUS_CONTROL_C_EXIT, through a stub around Popen.wait."""
        wait = subprocess.Popen.wait

        def stub(process: Any, timeout: float | None = None) -> int:
            wait(process, timeout)
            return 3221225786

        for says in self.REPLIES:
            with self.subTest(says), mock.patch.object(subprocess.Popen, "wait", stub):
                state, status = self.state(says, "0")
                self.assertEqual(status, 3221225786)
                self.assertEqual(state == "confirmed", says == "a valid receipt")
                self.assertIn(state, ("confirmed", "unknown"))

    def test_a_signal_after_the_receipt_takes_nothing_from_it(self) -> None:
        """L8, C30: the receipt came first; the process is killed while it tidies up."""
        scene = self.lab.scene("tidies", unsafe=True)
        with mock.patch.object(process_receiver, "TIDY_S", 0.1):
            state, status = self.state("a valid receipt", "never", scene)
        self.assertEqual((state, status), ("confirmed", -signal.SIGKILL))

    def state(self, says: str, ends: str, scene: Scene | None = None) -> tuple[str, int | None]:
        """The state after a dispatch to such a receiver, from the file, and how it ended."""
        self.made = getattr(self, "made", 0) + 1
        scene = scene or self.lab.scene(f"run {self.made}", unsafe=True)
        receiver = script(REPLIES, says, ends)
        with scene.ledger() as ledger:
            made = prepare(ledger, receiver, **ORDER)
            dispatch(ledger, made.operation_id, receiver)
        return oracle.states(scene.sender)[made.operation_id][0], receiver.last_exit


class Pipes(LabCase):
    """What a child may do to its pipes, and what that proves: nothing."""

    def setUp(self) -> None:
        super().setUp()
        self.scene = self.lab.scene("run", unsafe=True)

    def test_only_the_exact_permit_lets_a_held_receiver_go_on(self) -> None:
        """L12, C29: not end of file, half a line, another name, a space more, or another end."""
        name = CHARGE.operation_id.encode()
        for at in ("before_begin", "before_commit"):
            for line in (
                b"",
                b"perm",
                b"permit " + name,
                b"permit " + name[:-1] + b"\n",
                b"permit " + REFUND.operation_id.encode() + b"\n",
                b"permit  " + name + b"\n",
                b"permit " + name + b" \n",
                b" permit " + name + b"\n",
                b"permit " + name + b"\r\n",
                b"PERMIT " + name + b"\n",
                b"\npermit " + name + b"\n",
            ):
                with self.subTest(at, line=line):
                    held = self.scene.held(at=at)
                    held.send(CHARGE)
                    held.finish(line)
                    self.assertEqual((held.reply, held.child.end()), (None, NO_PERMIT))
        self.assertEqual(oracle.effects(self.scene.receiver_file), {})
        held = self.scene.held()
        held.send(CHARGE)
        self.assertEqual((held.grant(), held.child.end()), ("receipt", 0))

    def test_a_held_close_without_its_permit_closes_nothing(self) -> None:
        """L12: the same line guards a close."""
        for at in ("before_begin", "before_commit"):
            held = self.scene.held(at=at)
            held.start(snapshot_request(CHARGE, close=True))
            self.assertEqual(held.finish(b"permit\n"), "no reply")
        self.assertEqual(oracle.closed(self.scene.receiver_file), [])

    def test_a_child_that_ended_before_its_permit_applied_nothing(self) -> None:
        """L12, C29: the permit meets a broken pipe, which escapes as no error."""
        held = self.scene.held(at="before_commit")
        held.send(CHARGE)
        os.kill(held.child.pid, signal.SIGKILL)
        self.assertIsNone(held.child.hear())  # it is gone, and its output with it
        self.assertEqual(held.grant(), "no reply")
        self.assertEqual(held.child.end(), -signal.SIGKILL)
        self.assertEqual(oracle.effects(self.scene.receiver_file), {})

    def test_a_child_that_floods_its_error_output_blocks_nobody(self) -> None:
        """C29: 200 kB before the answer, past what any pipe holds."""
        receiver = script(FLOODS)
        self.assertEqual(self.dispatched(receiver), "confirmed")
        self.assertEqual(receiver.last_exit, 0)

    def test_a_child_that_ends_before_it_reads_leaves_unknown_and_its_exit_status(self) -> None:
        """C29, L8: no BrokenPipeError escapes, for a short request or a very long one."""
        for size in (1, 1 << 20):
            receiver = script("import os; os._exit(7)")
            with self.subTest(size):
                self.assertEqual(self.dispatched(receiver, size), "unknown")
                self.assertEqual(receiver.last_exit, 7)

    def test_a_child_that_answers_before_it_reads_is_heard(self) -> None:
        """C29: what it said still counts, although the request could not be written whole."""
        size = 1 << 20
        with self.scene.ledger() as ledger:
            made = prepare(ledger, script(""), **long_order(size))
            receiver = script(ANSWERS_UNREAD, made.operation_id, str(size))
            said = dispatch(ledger, made.operation_id, receiver)
        self.assertEqual(said.outcome.value, "confirmed")

    def test_a_request_larger_than_the_pipe_to_a_child_that_never_reads_is_bounded(self) -> None:
        """C29: the caller goes on, the child is gone, and the operation is unknown."""
        receiver = script("import signal\nwhile True: signal.pause()", limit_s=0.3)
        self.assertEqual(self.dispatched(receiver, 1 << 20), "unknown")
        self.assertEqual(receiver.last_exit, -signal.SIGKILL)

    @unittest.skipUnless(POSIX, "not shown here: there are no forks")
    def test_a_grandchild_of_the_group_that_keeps_the_output_is_gone_afterwards(self) -> None:
        """C29: whether its parent ended in silence or hangs; both are bounded and reaped."""
        for parent in ("ends", "hangs"):
            with self.subTest(parent), self.grandchild() as (fifo, reading):
                receiver = script(FORKS, fifo, "same group", parent, limit_s=0.3)
                self.assertEqual(self.dispatched(receiver), "unknown")
                self.assertIsInstance(receiver.last_exit, int)
                said = until_gone(reading)
                self.assertRegex(said, rb"\A\d+\n\Z", "the grandchild never lived")

    @unittest.skipUnless(POSIX, "not shown here: there are no forks")
    def test_a_grandchild_of_its_own_session_cannot_hold_up_the_caller(self) -> None:
        """C29: the call returns while that process still lives and holds the pipe."""
        for parent in ("ends", "hangs"):
            with self.subTest(parent), self.grandchild() as (fifo, reading):
                receiver = script(FORKS, fifo, "own session", parent, limit_s=0.3)
                with mock.patch.object(process_receiver, "LAST_S", 0.1):
                    self.assertEqual(self.dispatched(receiver), "unknown")
                pid = int(os.read(reading, 100))
                os.kill(pid, 0)  # it lives
                os.kill(pid, signal.SIGKILL)
                self.assertEqual(until_gone(reading), b"")
                for thread in threading.enumerate():  # which ends, now that the pipe is free
                    if isinstance(thread, process_receiver._Talk):
                        thread.join(LIMIT_S)
                        self.assertFalse(thread.is_alive())

    @unittest.skipUnless(POSIX, "not shown here: there are no forks")
    def test_a_receipt_counts_although_a_grandchild_keeps_the_output_open(self) -> None:
        """C29, L8: a reply ends with its line, and not with the last process that holds a pipe."""
        with self.grandchild() as (fifo, reading):
            receiver = script(FORKS, fifo, "own session", "answers", limit_s=LIMIT_S)
            self.assertEqual(self.dispatched(receiver), "confirmed")
            pid = int(os.read(reading, 100))
            os.kill(pid, signal.SIGKILL)
            self.assertEqual(until_gone(reading), b"")

    def test_an_interrupt_of_the_caller_leaves_no_process_and_an_honest_unknown(self) -> None:
        """C29, P7: Ctrl-C during the wait; unknown is committed already."""
        receiver = script("import signal\nwhile True: signal.pause()", limit_s=LIMIT_S)
        with self.scene.ledger() as ledger:
            made = prepare(ledger, receiver, **ORDER)
            with (
                mock.patch.object(
                    process_receiver._Talk, "join", side_effect=[KeyboardInterrupt, None]
                ),
                self.assertRaises(KeyboardInterrupt),
            ):
                dispatch(ledger, made.operation_id, receiver)
        self.assertEqual(oracle.states(self.scene.sender)[made.operation_id], ("unknown", 2))
        self.assertEqual(receiver.last_exit, -signal.SIGKILL)

    def test_a_receiver_that_cannot_be_started_proves_that_nothing_left(self) -> None:
        """L13: the one proof there is, made by the call that owned the permission."""
        receiver = ProcessReceiver(
            [str(self.scene.sender) + ".exe"], identity=IDENTITY, policy=POLICY
        )
        self.assertEqual(self.dispatched(receiver), "prepared")
        self.assertIsNone(receiver.last_exit)

    def dispatched(self, receiver: ProcessReceiver, size: int = 1) -> str:
        with self.scene.ledger() as ledger:
            self.made = getattr(self, "made", 0) + 1
            made = prepare(ledger, receiver, **long_order(size, f"w-{self.made}"))
            return dispatch(ledger, made.operation_id, receiver).outcome.value

    @contextmanager
    def grandchild(self) -> Iterator[tuple[str, int]]:
        """A named pipe that tells whether a grandchild lives: it reads to its end once it is
        gone.
        """
        fifo = str(self.scene.sender.with_name("fifo"))
        os.mkfifo(fifo)
        reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        try:
            yield fifo, reading
        finally:
            os.close(reading)
            os.unlink(fifo)


class CloseAgainstApply(LabCase):
    """A close and an original race; real processes, held where their order is made."""

    def test_an_original_that_commits_before_the_close_is_in_its_answer(self) -> None:
        """E7, C16c, C36: the close waits for the apply that holds the file, and then sees it."""
        scene, made = self.sent("before_commit")
        racer = scene.held(at=None)
        racer.start(snapshot_request(made.query, close=True))
        self.assertEqual((self.held.grant(), racer.finish()), ("receipt", "snapshot"))
        self.assertEqual(self.seen(racer.reply), (True, 1))
        self.assertEqual(scene.effects(), {"charge": 1})

    def test_an_original_that_comes_after_the_close_is_refused(self) -> None:
        """E7, C16c, C36: the apply waits for the close that holds the file, and is refused."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            made = self.announced(scene, ledger)
        closing_one, racer = scene.held(at="before_commit"), scene.held(at=None)
        closing_one.start(snapshot_request(made.query, close=True))
        racer.start(apply_request(made.query))
        self.assertEqual((closing_one.grant(), racer.finish()), ("snapshot", "closed"))
        self.assertEqual(self.seen(closing_one.reply), (True, 0))
        self.assertEqual(racer.reply, {"reply": "closed"})
        self.assertEqual(scene.effects(), {"charge": 0})

    def test_an_original_held_before_it_begins_is_refused_after_a_close(self) -> None:
        """E7, C36: it was logged before the close and comes too late all the same."""
        scene, made = self.sent("before_begin")
        with scene.ledger() as ledger:
            facts = self.closed(ledger, made, scene.receiver())
            self.assertEqual(classify(facts), Verdict.TERMINAL_ABSENCE)
            self.assertEqual(self.held.grant(), "closed")
            again = self.closed(ledger, made, scene.receiver())
        self.assertEqual(again, facts)
        self.assertEqual(
            scene.contacts(),
            [["apply", "charge"], ["close", "charge"], ["close", "charge"]],
        )

    def test_a_close_held_before_it_begins_sees_the_original_that_overtook_it(self) -> None:
        """E7, C36: cancelling was asked for first, and the effect is in the answer."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            made = self.announced(scene, ledger)
            closing_one = scene.held(at="before_begin")
            closing_one.start(snapshot_request(made.query, close=True))
            self.assertIsNotNone(scene.receiver().send(made.query))
            self.assertEqual(closing_one.grant(), "snapshot")
            self.assertEqual(self.seen(closing_one.reply), (True, 1))
            facts = self.closed(ledger, made, scene.receiver())
            self.assertEqual(classify(facts), Verdict.UNIQUE_EXACT_MATCH)
            self.assertEqual(decided(ledger, made, facts), "confirmed")

    def test_nobody_commits_between_the_look_for_a_mark_and_the_write(self) -> None:
        """E7, C16, C22: apply and close hold the file from the look on: no overtaking."""
        scene = self.lab.scene()
        tried: list[str] = []

        class Overtaken(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                cursor = super().execute(sql, *values)
                if sql.startswith("SELECT 1 FROM closed"):
                    with closing(connect(scene.receiver_file, timeout=0)) as other:
                        try:
                            other.execute("INSERT INTO closed VALUES ('overtook')")
                            tried.append("overtook")
                        except sqlite3.OperationalError as error:
                            tried.append(str(error))
                return cursor

        connect = sqlite3.connect
        with mock.patch.object(
            sqlite3, "connect", lambda *a, **k: connect(*a, **{**k, "factory": Overtaken})
        ):
            self.assertIsNotNone(scene.near().send(CHARGE))
            self.assertTrue(scene.near().snapshot(CHARGE, close=True).closed)
        self.assertEqual(set(tried), {"database is locked"})
        self.assertGreaterEqual(len(tried), 2)

    def test_a_close_that_gave_no_snapshot_decides_nothing(self) -> None:
        """C36: an acknowledgement without the rows is no evidence."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            made = self.unknown(scene, ledger)
            for reply in ({"reply": "accepted"}, {"reply": "closed"}, {}):
                with self.subTest(reply), self.assertRaises(errors.NoReply):
                    self.closed(ledger, made, script(SAYS, json.dumps(reply)))
            self.assertEqual(look(ledger, made.operation_id).state, made.state)

    def sent(self, at: str) -> tuple[Scene, Operation]:
        """An original on its way: its process is held at a point."""
        scene = self.lab.scene()
        self.held = scene.held(at=at)
        with scene.ledger() as ledger:
            made = prepare(ledger, scene.near(), **ORDER)
            scene.name(made, "charge")
            dispatch(ledger, made.operation_id, self.held)
        return scene, made

    def announced(self, scene: Scene, ledger: Ledger) -> Operation:
        """An original that has not arrived yet."""
        made = prepare(ledger, scene.near(), **ORDER)
        scene.name(made, "charge")
        dispatch(ledger, made.operation_id, LosesRequest(scene.near()))
        return look(ledger, made.operation_id)

    def closed(self, ledger: Ledger, made: Operation, receiver: library.Receiver) -> Snapshot:
        return close(ledger, made.operation_id, receiver, purpose="find out", authorized_by="ada")

    def seen(self, answer: dict[str, Any] | None) -> tuple[bool, int]:
        assert answer is not None
        return answer["snapshot"]["closed"], len(answer["snapshot"]["effects"])


class ReadingAndClosing(LabCase):
    """A plain read changes nothing; a close is a mutation that is asked for by name."""

    def setUp(self) -> None:
        super().setUp()
        self.scene = self.lab.scene()

    def test_a_plain_read_changes_nothing_and_logs_nothing(self) -> None:
        """E8: every table is equal before and after, with and without rows of the operation."""
        self.scene.receiver().send(CHARGE)
        before = oracle.dump(self.scene.receiver_file)
        for query in (CHARGE, REFUND):
            for receiver in (self.scene.receiver(), self.scene.near()):
                self.assertFalse(receiver.snapshot(query).closed)
        self.assertEqual(oracle.dump(self.scene.receiver_file), before)

    def test_a_plain_read_could_not_write_if_it_wanted_to(self) -> None:
        """E8: the receiver reads under query_only, and only a close ends that."""
        seen: list[tuple[str, int]] = []

        class Watching(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                only = super().execute("PRAGMA query_only").fetchone()[0]
                seen.append((" ".join(sql.split())[:11], only))
                return super().execute(sql, *values)

        connect = sqlite3.connect
        with mock.patch.object(
            sqlite3, "connect", lambda *a, **k: connect(*a, **{**k, "factory": Watching})
        ):
            self.scene.near().snapshot(CHARGE)
        reads = [only for sql, only in seen if sql in ("BEGIN", "SELECT 1 FR", "SELECT numb")]
        self.assertGreaterEqual(len(reads), 3)
        self.assertEqual(set(reads), {1})

    def test_closing_is_off_unless_it_is_asked_for(self) -> None:
        """E8, C36: the default of a snapshot closes nothing; a flag that is no boolean neither."""
        process = ProcessReceiver(receiver_command(self.scene.receiver_file), identity=IDENTITY)
        for receiver in (process, self.scene.receiver(), self.scene.near()):
            self.assertFalse(receiver.snapshot(CHARGE).closed)
        for odd in (1, "true", None):
            with self.subTest(odd), self.assertRaises(errors.Malformed):
                process.snapshot(CHARGE, close=odd)  # type: ignore[arg-type]
        self.assertEqual(oracle.closed(self.scene.receiver_file), [])

    def test_the_request_to_close_is_committed_before_the_receiver_is_contacted(self) -> None:
        """E8: a receiver that reads the sender's file first thing finds purpose and permission."""
        report = self.scene.sender.with_name("report")
        with self.scene.ledger() as ledger:
            made = self.unknown(self.scene, ledger)
            spy = script(SPIES, str(self.scene.sender), str(report))
            with self.assertRaises(errors.NoReply):
                close(ledger, made.operation_id, spy, purpose="find out", authorized_by="ada")
        self.assertEqual(json.loads(report.read_text("utf-8")), [["find out", "ada"]])

    def test_permission_to_read_never_implies_permission_to_close(self) -> None:
        """E8: purpose and who allowed it are both needed, and nobody is asked without them."""
        with self.scene.ledger() as ledger:
            made = self.unknown(self.scene, ledger)
            odds: list[dict[str, Any]] = [
                {"purpose": ""},
                {"authorized_by": ""},
                {"purpose": None},
            ]
            for odd in odds:
                with self.subTest(odd), self.assertRaises(errors.Malformed):
                    close(
                        ledger,
                        made.operation_id,
                        self.scene.near(),
                        **{"purpose": "p", "authorized_by": "a", **odd},
                    )
            for left_out in ({"purpose": "p"}, {"authorized_by": "a"}):
                with self.assertRaises(TypeError):
                    close(ledger, made.operation_id, self.scene.near(), **left_out)
        self.assertEqual(oracle.rows(self.scene.sender, "SELECT * FROM close_request"), [])
        self.assertEqual(self.scene.contacts(), [["apply", "charge"]])

    def test_a_close_whose_reply_was_lost_is_harmless_to_repeat(self) -> None:
        """E10, C36: the mark stands, the late original is refused, the answer is the same."""
        with self.scene.ledger() as ledger:
            made = prepare(ledger, self.scene.near(), **ORDER)
            self.scene.name(made, "charge")
            late = self.scene.held()
            dispatch(ledger, made.operation_id, late)
            with self.assertRaises(errors.NoReply):
                self.close(ledger, made, self.scene.receiver(crash="after_commit"))
            self.assertEqual(oracle.closed(self.scene.receiver_file), [made.operation_id])
            self.assertEqual(late.grant(), "closed")
            again, once_more = (self.close(ledger, made, self.scene.receiver()) for _ in "ab")
            self.assertEqual(again, once_more)
            self.assertEqual(decided(ledger, made, again), "not_applied")
        first = self.lab.scene("first").receiver().snapshot(made.query, close=True)
        self.assertEqual(again, first)
        marks = oracle.rows(self.scene.receiver_file, "SELECT count(*) FROM closed")
        self.assertEqual(marks, [(1,)])

    def test_a_late_original_is_refused_a_year_later(self) -> None:
        """E9, C19: the mark outlives every permit, process and clock."""
        with self.scene.ledger() as ledger:
            made = prepare(ledger, self.scene.near(), **ORDER)
            self.scene.name(made, "charge")
            late = self.scene.held()
            dispatch(ledger, made.operation_id, late)
            facts = self.close(ledger, made, self.scene.receiver())
            self.assertEqual(decided(ledger, made, facts), "not_applied")
            closed_ms = ledger.now_ms()
        self.lab.pass_time(YEAR_MS)
        self.assertEqual(late.grant(), "closed")
        self.assertIsNone(self.scene.receiver().send(made.query))
        with self.scene.ledger() as ledger:
            self.assertGreater(ledger.now_ms() - closed_ms, YEAR_MS)
            later = self.scene.receiver().snapshot(made.query)
            self.assertEqual(observe(ledger, made.operation_id, later), Verdict.TERMINAL_ABSENCE)
        self.assertEqual((self.scene.effects(), self.scene.states()), NOT_APPLIED)

    def test_a_receiver_that_forgets_its_close_marks_breaks_an_absence_that_was_proved(
        self,
    ) -> None:
        """E9, C19: the hazard, in files that are meant to be wrong; the oracle says which rule."""
        scene = self.lab.scene("forgets", unsafe=True)
        with scene.ledger() as ledger:
            made = prepare(ledger, scene.near(), **ORDER)
            scene.name(made, "charge")
            late = scene.held()
            dispatch(ledger, made.operation_id, late)
            facts = self.close(ledger, made, scene.receiver())
            self.assertEqual(decided(ledger, made, facts), "not_applied")
        self.assertEqual(scene.findings(), [])
        self.assertEqual(unsafe.forget_closes(scene.receiver_file), 1)
        self.assertEqual(late.grant(), "receipt")
        self.assertEqual(
            scene.findings(), ["absence-needs-closure: charge is not_applied with an effect"]
        )

    def test_a_receiver_that_forgets_its_close_marks_lets_a_duplicate_in(self) -> None:
        """E9: one match was proved to be unique, and a copy of its request arrives."""
        scene = self.lab.scene("forgets", unsafe=True)
        with scene.ledger() as ledger:
            made = self.unknown(scene, ledger)
            facts = self.close(ledger, made, scene.near())
            self.assertEqual(decided(ledger, made, facts), "confirmed")
            self.assertIsNone(scene.near().send(made.query))
            unsafe.forget_closes(scene.receiver_file)
            self.assertIsNotNone(scene.near().send(made.query))
        self.assertEqual(scene.findings(), ["one-effect: charge has 2 effects"])

    def test_closing_an_operation_does_not_close_its_compensation(self) -> None:
        """E11: the original was closed to find out, and its refund goes through."""
        with self.scene.ledger() as ledger:
            made = self.unknown(self.scene, ledger)
            facts = self.close(ledger, made, self.scene.receiver())
            self.assertEqual(decided(ledger, made, facts), "confirmed")
            refund = approve_compensation(
                ledger,
                made.operation_id,
                effect_id=facts.effects[0].effect_id,
                kind="refund",
                payload={"pence": 1500},
                approver="ada",
                expected_version=made.version + 1,
            )
            said = dispatch(ledger, refund.operation_id, self.scene.receiver())
        self.assertEqual(said.outcome.value, "confirmed")
        self.assertEqual(oracle.closed(self.scene.receiver_file), [made.operation_id])

    def test_closing_a_compensation_does_not_close_its_original(self) -> None:
        """E11: and each of the two is refused once it is closed itself."""
        near = self.scene.near()
        near.snapshot(REFUND, close=True)
        self.assertIsNone(near.send(REFUND))
        self.assertIsNotNone(near.send(CHARGE))
        self.assertFalse(near.snapshot(CHARGE).closed)
        near.snapshot(CHARGE, close=True)
        self.assertIsNone(near.send(CHARGE))

    def close(self, ledger: Ledger, made: Operation, receiver: library.Receiver) -> Snapshot:
        return close(ledger, made.operation_id, receiver, purpose="find out", authorized_by="ada")


class TheReceiversFile(LabCase):
    """What plain SQL, wrong files and many processes can do to it."""

    def setUp(self) -> None:
        super().setUp()
        self.scene = self.lab.scene()
        self.file = self.scene.receiver_file
        self.folder = self.file.parent

    def test_no_attack_on_any_table_changes_a_byte_of_a_row(self) -> None:
        """R6, C08, E9: REPLACE, upsert, UPDATE and DELETE, with recursive triggers on and off."""
        self.populate()
        before = oracle.dump(self.file)
        for recursive in ("OFF", "ON"):
            with plain(self.file) as other:
                other.execute(f"PRAGMA recursive_triggers = {recursive}")
                for table, kind, sql, values in attacks(other, {}):
                    with (
                        self.subTest(table, kind=kind, recursive=recursive, sql=sql),
                        self.assertRaisesRegex(sqlite3.IntegrityError, rf"\A{table}: "),
                    ):
                        other.execute(sql, values)
        self.assertEqual(oracle.dump(self.file), before)
        self.assertIsNone(self.scene.near().send(CHARGE))  # what was closed stays closed

    def test_without_its_triggers_each_table_falls_to_each_kind_of_attack(self) -> None:
        """R6, C08: so the attacks above are real."""
        self.populate()
        through: dict[str, set[str]] = {}
        with plain(self.file) as other:
            for name in triggers(other):
                other.execute(f"DROP TRIGGER {name}")
            for table, kind, sql, values in attacks(other, {}):
                other.execute("BEGIN")
                try:
                    other.execute(sql, values)
                    through.setdefault(table, set()).add(kind)
                except sqlite3.IntegrityError:
                    pass
                other.execute("ROLLBACK")
            for table in tables(other):
                one_row = {"update or replace"} if table == "self" else set()
                with self.subTest(table):
                    self.assertEqual(through[table] | one_row, set(KINDS))

    def test_no_plain_insert_gets_an_effect_past_a_close_mark(self) -> None:
        """E7, E9: the file itself refuses it, and without that trigger it would not."""
        self.populate()
        late = "INSERT INTO effect VALUES (?, 9, 'charge', '{}', NULL, 0)"
        with plain(self.file) as other:
            with self.assertRaisesRegex(sqlite3.IntegrityError, "effect: the operation is closed"):
                other.execute(late, (CHARGE.operation_id,))
            other.execute("BEGIN")
            other.execute("DROP TRIGGER effect_not_after_close")
            self.assertEqual(other.execute(late, (CHARGE.operation_id,)).rowcount, 1)
            other.execute("ROLLBACK")

    def test_a_request_to_another_receiver_is_refused_and_leaves_no_trace(self) -> None:
        """E4: neither applied, nor closed, nor logged."""
        before = oracle.dump(self.file)
        for request in (apply_request(CHARGE), snapshot_request(CHARGE, close=True)):
            said = self.replies({**request, "target": "somebody else"})
            self.assertEqual([line["reply"] for line in said], ["error"])
            self.assertIn("'plain', not 'somebody else'", said[0]["why"])
        self.assertEqual(oracle.dump(self.file), before)

    def test_a_malformed_line_is_answered_with_an_error_and_applies_nothing(self) -> None:
        """P7: each gets its one answer, and the next good request is served as ever."""
        before = oracle.dump(self.file)
        lines = malformed()
        said = self.lines(*lines, json.dumps(apply_request(CHARGE)).encode())
        for line, reply in zip(lines, said, strict=False):
            with self.subTest(line[:70]):
                self.assertEqual((reply["reply"], bool(reply["why"])), ("error", True))
        self.assertEqual([reply["reply"] for reply in said[len(lines) :]], ["receipt"])
        with closing(sqlite3.connect(self.file)) as other:
            self.assertEqual(other.execute("SELECT count(*) FROM effect").fetchone(), (1,))
        self.assertEqual(oracle.dump(self.file)["closed"], before["closed"])

    def test_a_text_that_no_file_can_hold_is_answered_with_an_error(self) -> None:
        """O2: half a surrogate pair in any field; the process lives and applies nothing."""
        for name in ("operation", "kind", "payload", "compensates"):
            request = {**apply_request(CHARGE), name: "\ud800"}
            with self.subTest(name):
                said = self.replies(request, snapshot_request(CHARGE, close=False))
                self.assertEqual([line["reply"] for line in said], ["error", "snapshot"])
        self.assertEqual(oracle.dump(self.file)["effect"], [])
        self.assertEqual(oracle.dump(self.file)["contact"], [])

    def test_a_missing_file_is_not_made_by_asking_for_it(self) -> None:
        """E5: an empty answer from a file that was never there would be a lie."""
        missing = self.folder / "missing.db"
        for request in (snapshot_request(CHARGE, close=False), apply_request(CHARGE)):
            status, said = self.ended(str(missing), request=request)
            self.assertEqual((status, said["reply"]), (2, "error"))
            self.assertIn("no such file", said["why"])
        self.assertFalse(missing.exists())

    def test_a_foreign_file_is_refused_and_no_byte_of_it_changes(self) -> None:
        """P7: to serve from it and to create in it, one line of error each."""
        for name, make in self.foreign().items():
            file = self.folder / f"{name}.db"
            make(file)
            before = file.read_bytes()
            for words in ((str(file),), (str(file), "--create", IDENTITY)):
                if name == "empty" and len(words) > 1:
                    continue  # that is how a file begins
                with self.subTest(name, words=words[1:]):
                    status, said = self.ended(*words)
                    self.assertEqual((status, said["reply"]), (2, "error"))
                    self.assertIn(str(file), said["why"])
                    self.assertEqual(file.read_bytes(), before)

    def test_a_folder_and_a_missing_folder_are_refused_in_one_line(self) -> None:
        """P7: to serve and to create; no traceback, and nothing is made."""
        for path in (str(self.folder), str(self.folder / "no" / "such.db")):
            for words in ((path,), (path, "--create", IDENTITY)):
                with self.subTest(words):
                    status, said = self.ended(*words)
                    self.assertEqual((status, said["reply"]), (2, "error"))
        self.assertFalse((self.folder / "no").exists())

    def test_a_file_of_another_version_is_not_served(self) -> None:
        """P7: one line of error, and nothing is applied."""
        file = self.folder / "later.db"
        shutil.copyfile(self.file, file)
        with plain(file) as other:
            other.execute("PRAGMA user_version = 9")
        status, said = self.ended(str(file))
        self.assertEqual((status, said["reply"]), (2, "error"))
        self.assertIn("schema 9", said["why"])

    def test_a_file_keeps_its_first_identity(self) -> None:
        """L1: to create it again is harmless, and under another name it is refused."""
        before = oracle.dump(self.file)
        self.assertEqual(self.ended(str(self.file), "--create", IDENTITY)[0], 0)
        status, said = self.ended(str(self.file), "--create", "another")
        self.assertEqual((status, said["reply"]), (2, "error"))
        self.assertEqual(oracle.dump(self.file), before)

    def test_wrong_arguments_are_refused_in_one_line(self) -> None:
        """P7: with the name of what was wrong."""
        for words in (
            (),
            ("--crash", "nowhere"),
            (str(self.file), "--crash"),
            (str(self.file), "--hold=after_commit"),
            (str(self.file), "--create"),
            (str(self.file), "two.db"),
            (str(self.file), "--nope"),
        ):
            with self.subTest(words):
                status, said = self.ended(*words)
                self.assertEqual((status, said["reply"]), (2, "error"))

    def test_concurrent_creates_and_applies_of_several_processes_lose_nothing(self) -> None:
        """C22, L6: six make one new file at once, and each applies five times."""
        new, each, many = self.folder / "new.db", 5, 6
        argv = command("receiver.__main__", str(new), "--create", IDENTITY)
        children = [Child(argv) for _ in range(many)]
        self.lab.children += children
        for _ in range(each):
            for child in children:
                child.ask(apply_request(CHARGE))
        said = [child.hear() for child in children for _ in range(each)]
        self.assertEqual([child.end() for child in children], [0] * many)
        numbers = {reply["receipt"]["effect_id"] for reply in said if reply}
        self.assertEqual(len(numbers), each * many)
        self.assertEqual(len(oracle.effects(new)[CHARGE.operation_id]), each * many)
        self.assertEqual(oracle.contacts(new), [("apply", CHARGE.operation_id)] * each * many)
        self.assertEqual(len(oracle.dump(new)["self"]), 1)

    def test_concurrent_first_creates_all_succeed(self) -> None:
        """C22: the switch to WAL does not wait for a lock, so the receiver does."""
        for at in range(12):
            new = self.folder / f"new {at}.db"
            start = threading.Barrier(8)
            failed: list[str] = []

            def first(new: Path = new, start: Any = start, failed: Any = failed) -> None:
                start.wait(LIMIT_S)
                try:
                    create(new, IDENTITY)
                except Exception as error:
                    failed.append(repr(error))

            threads = [threading.Thread(target=first) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failed, [])
            self.assertEqual(oracle.dump(new)["self"], [(1, IDENTITY, 1)])

    def populate(self) -> None:
        """Two rows in every table that can have two."""
        near = self.scene.near()
        for query in (CHARGE, REFUND):
            near.send(query)
            near.snapshot(query, close=True)
        with plain(self.file) as other:  # what this receiver itself never does
            for operation_id in ("e" * 32, "f" * 32):
                other.execute(
                    "INSERT INTO declined VALUES (?, 'charge', '{}', NULL)", (operation_id,)
                )
        for table, rows in oracle.dump(self.file).items():
            self.assertGreaterEqual(len(rows), 1 if table == "self" else 2)

    def foreign(self) -> dict[str, Any]:
        def theirs(file: Path) -> None:
            with plain(file) as other:
                other.execute("CREATE TABLE theirs (x)")

        return {
            "tables": theirs,
            "text": lambda file: file.write_bytes(b"no database, long enough to be one\n" * 40),
            "empty": lambda file: file.touch(),
            "a sender": lambda file: Ledger(file).close(),
        }

    def lines(self, *lines: bytes) -> list[dict[str, Any]]:
        """The replies of one process to these lines, in order."""
        child = subprocess.run(
            receiver_command(self.file),
            input=b"".join(line + b"\n" for line in lines),
            capture_output=True,
            timeout=LIMIT_S,
        )
        self.assertEqual(child.stderr.decode(), "")
        return [json.loads(line) for line in child.stdout.splitlines()]

    def replies(self, *requests: dict[str, object]) -> list[dict[str, Any]]:
        return self.lines(*(json.dumps(request).encode() for request in requests))

    def ended(
        self, *words: str, request: dict[str, object] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Exit status and the one line of a receiver started with these words."""
        child = subprocess.run(
            command("receiver.__main__", *words),
            input=b"" if request is None else json.dumps(request).encode() + b"\n",
            capture_output=True,
            timeout=LIMIT_S,
        )
        self.assertEqual(child.stderr.decode(), "")
        said = child.stdout.splitlines()
        self.assertLessEqual(len(said), 1)
        return child.returncode, json.loads(said[0]) if said else {}


class TheReceiversSources(unittest.TestCase):
    """What the other side may lean on, read from its sources."""

    def test_the_receiver_imports_nothing_of_the_sender_and_nothing_slow(self) -> None:
        """L1: two sides share the wire and no code; each trial starts the process anew."""
        banned = {"reconcile", "dataclasses", "typing", "argparse", "tempfile", "pathlib"}
        self.assertEqual(self.imports() & banned, set())

    def test_no_close_mark_has_an_age_and_nothing_is_purged(self) -> None:
        """E9, C19: a clock dates effects and bounds waits; no statement removes a row, and a mark
        has no date to go by.
        """
        self.assertEqual(self.imports() & {"datetime", "sched"}, set())
        schema = (Path(root_of("receiver")) / "receiver" / "schema.sql").read_text("utf-8")
        self.assertIn("CREATE TABLE closed (operation_id TEXT PRIMARY KEY NOT NULL)", schema)
        for file, tree in self.trees().items():
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    self.assertNotRegex(node.value, r"\bDELETE\b|\bREPLACE\b|\bDROP\b", str(file))
                if isinstance(node, ast.FunctionDef):
                    self.assertNotRegex(node.name, r"purge|expire|forget|clean|prune", str(file))

    def test_the_pipe_pays_nothing_for_what_serves_http(self) -> None:
        """L1: each trial starts the process anew, and a server takes longer to import than it."""
        words = "import sys; sys.path.append(sys.argv[1]); import receiver.__main__"
        loaded = subprocess.run(
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                f"{words}; print(*sys.modules)",
                root_of("receiver"),
            ],
            capture_output=True,
            timeout=LIMIT_S,
            check=True,
        ).stdout.split()
        for module in ("http.server", "http.client", "socketserver", "urllib.parse", "threading"):
            self.assertNotIn(module.encode(), loaded)

    def imports(self) -> set[str]:
        found: set[str] = set()
        for tree in self.trees().values():
            for node in ast.walk(tree):
                if isinstance(node, ast.Import):
                    found |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    found.add(str(node.module).split(".")[0])
        self.assertIn("sqlite3", found)
        return found

    def trees(self) -> dict[Path, ast.Module]:
        files = sorted((Path(root_of("receiver")) / "receiver").rglob("*.py"))
        self.assertGreaterEqual(len(files), 4)
        return {file: ast.parse(file.read_text("utf-8")) for file in files}


# --- receivers that are scripts -----------------------------------------------------------------

RECEIPT = """\
import json, os, signal, sys
def receipt(request):
    return {
        "operation_id": request["operation"], "status": "accepted", "effect_id": "their#1",
        "kind": request["kind"], "payload": request["payload"],
        "compensates": request["compensates"], "receiver": request["target"], "epoch": 1,
    }
def line(receipt):
    return json.dumps({"reply": "receipt", "receipt": receipt}).encode() + b"\\n"
def out(text):
    while text:
        text = text[os.write(1, text):]
"""

REPLIES = (
    RECEIPT
    + """\
says, ends = sys.argv[1:]
said = receipt(json.loads(sys.stdin.buffer.readline()))
if says == "another operation":
    said["operation_id"] = "0" * 32
if says == "another payload":
    said["payload"] = '{"pence":15000}'
text = line(said)
if says == "half a receipt":
    text = text[: len(text) // 2]
if says == "no end of line":
    text = text[:-1]
if says == "no JSON":
    text = b"accepted\\n"
if says == "closed":
    text = b'{"reply": "closed"}\\n'
if says == "an error":
    text = b'{"reply": "error", "why": "no"}\\n'
if says != "nothing":
    out(text)
while ends == "never":
    signal.pause()
if ends == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
os._exit(int(ends))
"""
)

FLOODS = (
    RECEIPT
    + """\
request = json.loads(sys.stdin.buffer.readline())
flood = b"x" * 200_000
while flood:
    flood = flood[os.write(2, flood):]
out(line(receipt(request)))
"""
)

ANSWERS_UNREAD = (
    RECEIPT
    + """\
os.close(0)
operation, size = sys.argv[1:]
payload = '{"note":"' + "x" * int(size) + '","pence":1500}'
out(line(receipt({
    "operation": operation, "kind": "charge", "payload": payload, "compensates": None,
    "target": "plain",
})))
"""
)

FORKS = (
    RECEIPT
    + """\
fifo, where, parent = sys.argv[1:]
request = json.loads(sys.stdin.buffer.readline())
ready, told = os.pipe()
if os.fork() == 0:
    if where == "own session":
        os.setsid()
    alive = os.open(fifo, os.O_WRONLY)
    os.write(alive, b"%d\\n" % os.getpid())
    os.write(told, b".")
    while True:
        signal.pause()
os.read(ready, 1)
if parent == "answers":
    out(line(receipt(request)))
while parent == "hangs":
    signal.pause()
os._exit(0)
"""
)

SAYS = "import sys; sys.stdin.buffer.readline(); print(sys.argv[1])"

SPIES = """\
import json, sqlite3, sys
sender, report = sys.argv[1:]
other = sqlite3.connect(sender)
found = other.execute("SELECT purpose, authorized_by FROM close_request").fetchall()
other.close()
with open(report, "x", encoding="utf-8") as out:
    json.dump(found, out)
"""


def script(text: str, *words: str, limit_s: float = LIMIT_S) -> ProcessReceiver:
    """A receiver that is this script, with the name and the policy of the plain one."""
    argv = [sys.executable, "-I", "-S", "-c", text, *words]
    return ProcessReceiver(argv, identity=IDENTITY, policy=POLICY, limit_s=limit_s)


def until_gone(reading: int) -> bytes:
    """Everything that is left in a named pipe, once nobody holds its other end any more."""
    said = b""
    while True:
        ready, _, _ = select.select([reading], [], [], LIMIT_S)
        assert ready, "a process still holds the pipe"
        part = os.read(reading, 100)
        if not part:
            return said
        said += part


# --- requests and decisions ---------------------------------------------------------------------

NOT_APPLIED = ({"charge": 0}, {"charge": "not_applied"})


def long_order(size: int, work_id: str = "w-1") -> dict[str, Any]:
    payload = {"pence": 1500, "note": "x" * size}
    return {**ORDER, "work_id": work_id, "subject": work_id, "payload": payload}


def decided(ledger: Ledger, made: Operation, facts: Snapshot) -> str:
    done = library.reconcile(
        ledger,
        made.operation_id,
        facts,
        reviewer="ada",
        expected_version=look(ledger, made.operation_id).version,
    )
    return done.state.value


def malformed() -> list[bytes]:
    """Lines that are no request, one fault each."""
    good, read = apply_request(CHARGE), snapshot_request(CHARGE, close=False)
    texts: tuple[Any, ...] = ("", None, 1, {})
    names: tuple[Any, ...] = ("", None, 5, [], True)
    flags: tuple[Any, ...] = (1, 0, "true", None, [])
    odd: list[dict[str, Any]] = [
        {},
        {"request": "apply"},
        {**good, "request": "purge"},
        {**good, "request": None},
        {**good, "request": ["apply"]},
        {**good, "extra": 1},
        {**read, "extra": 1},
        *({**good, name: value} for name in ("kind", "payload") for value in texts),
        *({**good, "operation": value} for value in names),
        {**good, "compensates": 5},
        {**good, "close": True},
        *({**read, "close": value} for value in flags),
        *({k: v for k, v in good.items() if k != name} for name in good),
        *({k: v for k, v in read.items() if k != name} for name in read),
    ]
    return [
        *(json.dumps(line).encode() for line in odd),
        *(b"", b"apply", b"null", b"1", b"[]", b'"apply"', b"NaN", b"\xff\xfe", b"{", b"[" * 9999),
        b"1" * 5000,
        b"{" + b'"a":' * 3000,
        json.dumps(good).encode()[:-1],
    ]


if __name__ == "__main__":
    unittest.main()
