"""The operator's commands, and every file that they may be pointed at.

Each command runs as a process of its own, from another working directory and isolated from the
environment, since that is how an operator meets it. Only a lock and an interrupt are shown within
this process, where no time has to pass.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from reconcile import (
    Action,
    EffectPolicy,
    Ledger,
    Operation,
    Query,
    Receipt,
    State,
    UnavailableReceiver,
    Verdict,
    approve_compensation,
    close,
    dispatch,
    look,
    prepare,
    report,
)
from reconcile import __main__ as commands
from reconcile.ledger import views
from reconcile.rules import errors

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60
NOT_SHOWN = 77  # how a child says that this machine cannot show the case

STUB = """\
import runpy, sys
sys.path.append(sys.argv.pop(1))
runpy.run_module("reconcile", run_name="__main__", alter_sys=True)
"""

KILLED_SENDER = """\
import os, sys
sys.path.append(sys.argv.pop(1))
from reconcile import Ledger, UnavailableReceiver, dispatch, prepare
class Deadly(UnavailableReceiver):
    def send(self, query):
        os._exit(9)
receiver, ledger = Deadly("plain"), Ledger(sys.argv[1])
operation = prepare(ledger, receiver, work_id="w", kind="charge", payload={}, subject="s")
dispatch(ledger, operation.operation_id, receiver)
"""

# The first answer is for nobody: it imports all that is needed, while that may still be read.
WITHOUT_RIGHTS = f"""\
import contextlib, io, os, sys
sys.path.append(sys.argv.pop(1))
from reconcile import __main__ as commands
path = sys.argv[2]
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    commands.main(sys.argv[1:])
if hasattr(os, "geteuid") and os.geteuid() == 0:
    os.seteuid(65534)  # root may write anywhere
folder = os.path.dirname(path)
if not os.access(path, os.R_OK, effective_ids=True) or os.access(
    folder, os.W_OK, effective_ids=True
):
    sys.exit({NOT_SHOWN})
sys.exit(commands.main(sys.argv[1:]))
"""


class Silent(UnavailableReceiver):
    """Takes a request and says nothing. It could be closed."""

    def __init__(self, identity: str = "plain") -> None:
        super().__init__(identity)
        self.policy = EffectPolicy(name="closable", can_close=True)

    def send(self, query: Query) -> Receipt | None:
        return None


class Accepting(Silent):
    """Gives a matching receipt for each request."""

    def send(self, query: Query) -> Receipt | None:
        return Receipt(
            operation_id=query.operation_id,
            status="accepted",
            effect_id=f"{query.operation_id}#1",
            kind=query.kind,
            payload=query.payload,
            compensates=query.compensates,
            receiver=self.identity,
            epoch=self.epoch,
        )


def rows_of(path: Path) -> list[str]:
    """Every table with every row, as a plain connection finds them."""
    connection = sqlite3.connect(str(path))
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def run(
    *argv: str | Path, stub: str = STUB, options: tuple[str, ...] = (), **changed: Any
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-I", "-W", "error", *options, "-c", stub, str(ROOT)]
    given: dict[str, Any] = {
        "cwd": tempfile.gettempdir(),
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "timeout": LIMIT_S,
        **changed,
    }
    done: subprocess.CompletedProcess[bytes]
    done = subprocess.run([*command, *map(str, argv)], check=False, **given)
    return done


class CommandCase(unittest.TestCase):
    """A folder for each test, and one ledger with an open question in it."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = self.folder / "sender.db"

    def make(
        self, path: Path | None = None, receiver: Silent | None = None, **parts: Any
    ) -> Operation:
        """A ledger with one dispatched operation, closed again."""
        receiver = Silent() if receiver is None else receiver
        asked = {"work_id": "w-1", "kind": "charge", "payload": {"sum": 5}, "subject": "order-1"}
        with Ledger(self.path if path is None else path) as ledger:
            operation = prepare(ledger, receiver, **{**asked, **parts})
            dispatch(ledger, operation.operation_id, receiver)
            return look(ledger, operation.operation_id)

    def tree(self) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in sorted(self.folder.iterdir()) if p.is_file()}

    def refused(self, done: subprocess.CompletedProcess[bytes], *says: str) -> str:
        """One line on stderr, nothing on stdout, exit status 2."""
        why = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (2, b""), why)
        self.assertRegex(why, r"\Areconcile: [^\n]+\n\Z")
        for part in says:
            self.assertIn(part, why)
        return why

    def answered(self, done: subprocess.CompletedProcess[bytes], *says: str) -> str:
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        text = done.stdout.decode()
        for part in says:
            self.assertIn(part, text)
        return text


class WhatTheCommandsSay(CommandCase):
    def test_status_says_why_a_question_is_open_and_what_is_allowed_next(self) -> None:
        operation = self.make()
        self.answered(
            run("status", self.path),
            "operations: 1\n",
            "open questions: 1\n",
            operation.operation_id,
            "w-1",
            "order-1",
            "unknown, version 2",
            " ago)",
            "Outcome not yet established, reconciliation required, do not submit again.",
            "1 sending may have reached plain.",
            "close      close the operation at plain",
            "reconcile  a reviewer decides at version 2",
        )

    def test_status_counts_an_ended_operation_and_asks_nothing_about_it(self) -> None:
        self.make(receiver=Accepting())
        text = self.answered(run("status", self.path), "open questions: 0\n")
        self.assertRegex(text, r"confirmed +1\n")

    def test_status_shows_every_open_question_and_not_the_first_hundred(self) -> None:
        receiver = Silent()
        with Ledger(self.path) as ledger:
            for number in range(103):
                operation = prepare(
                    ledger,
                    receiver,
                    work_id=f"w-{number}",
                    kind="k",
                    payload={},
                    subject=f"s-{number}",
                )
                dispatch(ledger, operation.operation_id, receiver)
        text = self.answered(run("status", self.path), "open questions: 103\n")
        self.assertEqual(text.count("\noperation "), 103)

    def test_show_gives_all_that_is_recorded_and_the_history(self) -> None:
        operation = self.make()
        with Ledger(self.path) as ledger, contextlib.suppress(errors.ReconcileError):
            close(ledger, operation.operation_id, Silent(), purpose="audit", authorized_by="ann")
        self.answered(
            run("show", self.path, operation.operation_id),
            operation.operation_id,
            "w-1",
            "plain, epoch 1",
            '{"sum":5}',
            "closable, version 1",
            operation.digest,
            "prepared -> unknown (version 2), cause announced",
            "attempt 1 announced; the call: sent",
            "close requested, purpose: audit, allowed by ann",
            "allowed next",
        )

    def test_show_names_the_approval_that_binds_a_compensation(self) -> None:
        original = self.make(receiver=Accepting())
        assert original.effect_id is not None
        with Ledger(self.path) as ledger:
            bound = approve_compensation(
                ledger,
                original.operation_id,
                effect_id=original.effect_id,
                kind="refund",
                payload={"sum": 5},
                approver="ann",
                expected_version=original.version,
            )
        self.answered(
            run("show", self.path, bound.operation_id),
            f"effect {original.effect_id}",
            f"number 1, by ann, for operation {original.operation_id} at version 3",
            "dispatch   send it, once",
        )
        self.answered(run("show", self.path, original.operation_id), "compensate", "start_new")

    def test_explain_knows_every_verdict_and_every_state(self) -> None:
        for verdict in Verdict:
            done, out = 0, io.StringIO()
            with self.subTest(verdict), contextlib.redirect_stdout(out):
                done = commands.main(["explain", verdict.value])
            self.assertEqual((done, verdict.says in out.getvalue()), (0, True))
            resolves = "yes: to " if verdict.resolves else "no: the question stays open"
            self.assertIn(resolves, out.getvalue())
        for state in State:
            out = io.StringIO()
            with self.subTest(state), contextlib.redirect_stdout(out):
                done = commands.main(["explain", state.value])
            self.assertEqual(
                (done, out.getvalue().startswith(f"state {state.value}\n")), (0, True)
            )
        self.assertEqual(set(report.ACTION_SAYS), set(Action))

    def test_a_wrong_name_gets_the_nearest_right_one(self) -> None:
        self.refused(run("explain", "terminal_absense"), "did you mean terminal_absence?")
        self.refused(run("explain", "unknwon"), "did you mean unknown?")
        self.refused(run("explain", "zzz"), *(verdict.value for verdict in Verdict))

    def test_a_part_of_an_identity_is_refused_with_the_whole_ones_that_begin_so(self) -> None:
        whole = self.make().operation_id
        self.refused(run("show", self.path, whole[:8]), f"begin so: {whole}")
        self.refused(run("show", self.path, whole[:5]), "no operation")
        self.refused(run("show", self.path, "f" * 32), "no operation")

    def test_wrong_arguments_are_refused_in_one_line_and_help_is_not(self) -> None:
        for argv in ((), ("status",), ("stauts", "x"), ("status", "a", "b"), ("--nope",)):
            with self.subTest(argv):
                self.refused(run(*argv), "--help")
        self.answered(run("--help"), "status FILE", "show FILE OPERATION", "explain VERDICT")

    def test_the_answer_does_not_depend_on_the_locale(self) -> None:
        operation = self.make(work_id="Größe-日本", payload={"who": "Zoë"}, subject="naïve")
        environment = {**os.environ, "LC_ALL": "C"}
        for options in ((), ("-X", "utf8=0")):
            with self.subTest(options):
                done = run(
                    "show", self.path, operation.operation_id, options=options, env=environment
                )
                self.answered(done, "Größe-日本", "naïve", r"Zo\u00eb")

    def test_no_name_in_a_ledger_can_draw_a_line_or_move_a_cursor(self) -> None:
        self.make(work_id="w\noperation forged", subject="\x1b[2J\u202e")
        text = self.answered(run("status", self.path), r"w\noperation forged", r"\x1b[2J\u202e")
        self.assertEqual(text.count("\noperation "), 1)


class FilesThatAreNoLedger(CommandCase):
    def test_a_missing_file_is_refused_in_one_line_and_not_made(self) -> None:
        self.refused(run("status", self.path), str(self.path), "no such file")
        self.refused(run("status", self.folder / "no" / "such.db"), "no such file")
        self.refused(run("status", ""), "names no file")
        self.assertEqual(self.tree(), {})

    def test_a_name_too_long_for_the_system_is_refused_in_one_line(self) -> None:
        self.refused(run("status", self.folder / ("n" * 300)), "nnn")

    def test_a_directory_is_refused_in_one_line(self) -> None:
        self.refused(run("status", self.folder), str(self.folder), "is a folder")

    def test_an_empty_file_is_refused_and_stays_empty(self) -> None:
        self.path.touch()
        self.refused(run("status", self.path), "is no ledger")
        self.assertEqual(self.tree(), {"sender.db": b""})

    def test_the_database_of_another_program_is_refused_and_left_as_it_is(self) -> None:
        for mark in (0, 7):
            other = self.folder / f"other-{mark}.db"
            connection = sqlite3.connect(str(other))
            connection.execute(f"PRAGMA application_id = {mark}")
            connection.execute("CREATE TABLE t (x)")
            connection.close()
            before = self.tree()
            with self.subTest(mark):
                self.refused(run("status", other), str(other), "another program")
                self.assertEqual(self.tree(), before)

    def test_a_database_that_counts_its_own_versions_is_not_taken_for_a_ledger(self) -> None:
        connection = sqlite3.connect(str(self.path))
        connection.execute("PRAGMA user_version = 5")
        connection.execute("CREATE TABLE t (x)")
        connection.close()
        before = self.tree()
        for way in (Ledger, Ledger.inspect):
            with self.subTest(way), self.assertRaises(errors.ForeignFile):
                way(self.path).close()
        self.assertEqual(self.tree(), before)

    def test_a_ledger_of_another_schema_is_refused(self) -> None:
        self.make()
        connection = sqlite3.connect(str(self.path))
        connection.execute("PRAGMA user_version = 99")
        connection.close()
        self.refused(run("status", self.path), "schema 99")

    def test_a_file_that_is_no_database_is_refused(self) -> None:
        self.path.write_bytes(b"no database at all, but long enough to be one\n" * 40)
        before = self.tree()
        self.refused(run("status", self.path), str(self.path), "is no ledger")
        self.assertEqual(self.tree(), before)

    def test_a_ledger_with_overwritten_pages_is_refused(self) -> None:
        operation = self.make()
        whole = self.path.read_bytes()
        self.path.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
        self.refused(run("status", self.path), str(self.path))
        self.refused(run("show", self.path, operation.operation_id), str(self.path))
        self.path.write_bytes(whole[:4096])
        self.refused(run("status", self.path), str(self.path))

    def test_a_ledger_with_a_row_that_no_library_wrote_is_refused(self) -> None:
        operation = self.make()
        connection = sqlite3.connect(str(self.path))
        connection.execute("DROP TRIGGER operation_is_not_changed")
        connection.execute("DROP TRIGGER operation_follows_its_rows")
        connection.execute("UPDATE operation SET scope = 'no list'")
        connection.commit()
        connection.close()
        for argv in (("status", self.path), ("show", self.path, operation.operation_id)):
            self.refused(run(*argv), str(self.path))


class WhereLedgersMayStand(CommandCase):
    def test_odd_names_of_folders_and_files_work(self) -> None:
        for name in ("with space", "a#b", "a?b", "a%20b%", "größe-日本", "-x", "a'b&mode=ro"):
            folder = self.folder / name
            folder.mkdir()
            operation = self.make(folder / name)
            with self.subTest(name):
                self.answered(run("status", folder / name), operation.operation_id)
                self.answered(run("status", f"./{name}", cwd=folder), operation.operation_id)
                self.answered(run("status", "--", name, cwd=folder), operation.operation_id)
                there = sorted(p.name for p in folder.iterdir())
                self.assertEqual(there, [name, f"{name}.marker"])

    def test_a_read_only_folder_is_refused_with_advice(self) -> None:
        kept = self.folder / "kept"
        kept.mkdir()
        path = kept / "sender.db"
        self.make(path)
        path.chmod(0o666)
        self.folder.chmod(0o755)
        kept.chmod(0o555)
        try:
            done = run("status", path, stub=WITHOUT_RIGHTS)
        finally:
            kept.chmod(0o755)
        if done.returncode == NOT_SHOWN:
            print("not shown here: a read-only folder, since nothing is read-only to this user")
            return
        self.refused(done, str(path), "must exist and be writable", "copy the file")
        there = sorted(p.name for p in kept.iterdir())
        self.assertEqual(there, ["sender.db", "sender.db.marker"])

    def test_a_locked_ledger_is_refused_as_busy(self) -> None:
        self.make()
        holder = sqlite3.connect(str(self.path), isolation_level=None)
        self.addCleanup(holder.close)
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        with self.assertRaises(errors.Busy):
            Ledger.inspect(self.path, busy_ms=0)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = commands.main(["status", str(self.path)], busy_ms=0)
        self.assertEqual((status, out.getvalue()), (2, ""))
        self.assertRegex(err.getvalue(), r"\Areconcile: [^\n]+locked[^\n]+try again\n\Z")


class LookingWritesNothing(CommandCase):
    def test_a_closed_ledger_stays_the_same_to_the_byte(self) -> None:
        operation = self.make()
        before = self.tree()
        self.answered(run("status", self.path))
        self.answered(run("show", self.path, operation.operation_id))
        self.assertEqual(self.tree(), before)
        self.assertEqual(list(before), ["sender.db", "sender.db.marker"])

    def test_a_killed_senders_log_is_read_and_no_row_changes(self) -> None:
        """SQLite may move its log into the file when the last reader goes: bytes, not rows."""
        self.assertEqual(run(self.path, stub=KILLED_SENDER).returncode, 9)
        before = self.tree()
        self.assertIn("sender.db-wal", before)
        copy = self.folder / "copy"
        copy.mkdir()
        for name, content in before.items():
            (copy / name).write_bytes(content)
        self.answered(run("status", self.path), "unknown, version 2", "do not submit again")
        self.assertLessEqual(set(self.tree()), set(before))
        self.assertEqual(rows_of(self.path), rows_of(copy / "sender.db"))

    def test_an_open_sender_is_not_held_up_and_not_waited_for(self) -> None:
        operation = self.make()
        with Ledger(self.path) as ledger:
            with ledger.transaction():
                self.answered(run("status", self.path), operation.operation_id)
            prepare(ledger, Silent(), work_id="w-2", kind="k", payload={}, subject="s")

    def test_a_write_through_an_inspected_ledger_is_refused(self) -> None:
        self.make()
        before = self.tree()
        with Ledger.inspect(self.path) as ledger:
            with self.assertRaises(errors.LedgerMisused):
                prepare(ledger, Silent(), work_id="w-2", kind="k", payload={}, subject="s")
            with self.assertRaises(errors.StorageFailed), ledger.reading() as tx:
                tx.execute("INSERT INTO policy VALUES (99, 'lawful, were it not for looking')")
        self.assertEqual(self.tree(), before)


class CommandsThatAreCutShort(CommandCase):
    def test_a_reader_that_went_away_is_no_error(self) -> None:
        self.make()
        for argv in (("status", self.path), ("explain", "unknown"), ("--help",)):
            reading, writing = os.pipe()
            os.close(reading)
            try:
                done = run(*argv, stdout=writing)
            finally:
                os.close(writing)
            with self.subTest(argv):
                self.assertEqual((done.returncode, done.stderr), (141, b""))

    def test_an_output_that_is_full_is_refused_in_one_line(self) -> None:
        if not os.path.exists("/dev/full"):
            print("not shown here: a full output, since there is no such device")
            return
        with open("/dev/full", "wb") as full:
            done = run("explain", "unknown", stdout=full)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr.decode(), r"\Areconcile: [^\n]+\n\Z")

    def test_an_interrupt_ends_quietly_and_closes_the_file(self) -> None:
        self.make()
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.object(views, "open_questions", side_effect=KeyboardInterrupt),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            status = commands.main(["status", str(self.path)])
        self.assertEqual((status, out.getvalue(), err.getvalue()), (130, "", ""))
        self.assertEqual(list(self.tree()), ["sender.db", "sender.db.marker"])


class FullDisk(sqlite3.Connection):
    """May use the pages that the file has, and not one more."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        pages = self.execute("PRAGMA page_count").fetchone()[0]
        self.execute(f"PRAGMA max_page_count = {max(1, pages)}")


class StorageThatFails(CommandCase):
    def test_a_full_disk_writes_nothing_at_all(self) -> None:
        self.make()
        before = rows_of(self.path)
        with Ledger(self.path, factory=FullDisk) as ledger:
            with self.assertRaises(errors.StorageFailed) as caught:
                prepare(
                    ledger,
                    Silent(),
                    work_id="w-2",
                    kind="charge",
                    payload={"long": "x" * 100_000},
                    subject="s",
                )
            self.assertEqual(views.count_by_state(ledger), {"unknown": 1})
        self.assertIn(str(self.path), str(caught.exception))
        self.assertIn("full", str(caught.exception))
        self.assertEqual(rows_of(self.path), before)

    def test_a_disk_full_at_birth_leaves_no_half_made_ledger(self) -> None:
        with self.assertRaises(errors.StorageFailed):
            Ledger(self.path, factory=FullDisk)
        self.assertEqual([line for line in rows_of(self.path) if "TABLE" in line], [])
        with Ledger(self.path) as ledger:  # and the next one makes it whole
            self.assertEqual(views.count_by_state(ledger), {})

    def test_a_ledger_locked_past_its_timeout_is_busy_and_writes_nothing(self) -> None:
        operation = self.make()
        before = rows_of(self.path)
        holder = sqlite3.connect(str(self.path), isolation_level=None)
        self.addCleanup(holder.close)
        with Ledger(self.path, busy_ms=0) as ledger:
            holder.execute("BEGIN IMMEDIATE")
            with self.assertRaises(errors.Busy) as caught:
                prepare(ledger, Silent(), work_id="w-2", kind="k", payload={}, subject="s")
            self.assertEqual(look(ledger, operation.operation_id), operation)
            holder.execute("ROLLBACK")
            prepare(
                ledger,
                Silent(),
                work_id="w-1",
                kind="charge",
                payload={"sum": 5},
                subject="order-1",
            )
        self.assertIn(str(self.path), str(caught.exception))
        self.assertEqual(rows_of(self.path), before)


if __name__ == "__main__":
    unittest.main()
