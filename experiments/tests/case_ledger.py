"""The sender's file: what no plain SQL can do to it, and how it opens, waits, refuses and ends.

The attacks come from a second connection that knows nothing of this library. They are made from
the file's own description, so that a table, a key or a column added later is attacked as well.
"""

from __future__ import annotations

import ast
import os
import pickle
import re
import sqlite3
import subprocess
import sys
import threading
import unittest
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import reconcile as library
from experiments.harness import oracle
from experiments.harness.processes import ISOLATED, LIMIT_S, root_of
from experiments.harness.scene import Scene
from experiments.tests.base import ORDER, LabCase, LosesRequest
from reconcile import (
    Cause,
    Effect,
    Ledger,
    Snapshot,
    State,
    Transport,
    approve_compensation,
    close,
    dispatch,
    look,
    observe,
    prepare,
)
from reconcile.rules import errors

ROOT = Path(root_of("reconcile"))
MAY_CHANGE = {
    "operation": {"state", "version", "effect_id"},
    "attempt": {"transport"},
    "obligation": {"due_ms", "ended_ms"},
}
"""Written here a second time. A table that is not named may not change at all."""

IDENTITY_COLUMNS = (
    *("number", "operation_id", "digest", "work_id", "target", "epoch", "kind", "payload"),
    *("compensates", "subject", "scope", "policy", "prepared_ms"),
)

SEAL = re.compile(r"_is_not_(replaced|removed|changed)$")
KINDS = ("replace", "update", "update or replace", "delete", "upsert")


class PlainSqlAgainstEveryTable(LabCase):
    """A populated file, and a second connection with every way to overwrite a row."""

    def setUp(self) -> None:
        super().setUp()
        self.scene = self.lab.scene()
        populate(self, self.scene)
        self.file = self.scene.sender

    def test_every_table_is_populated_so_that_no_attack_is_idle(self) -> None:
        """R6: the attacks below reach a row, and two where one has to evict another."""
        for table, rows in oracle.dump(self.file).items():
            with self.subTest(table):
                self.assertGreaterEqual(len(rows), 2 if table != "policy" else 1)

    def test_no_attack_on_any_table_changes_a_byte_of_a_row(self) -> None:
        """R6, C08, O3: REPLACE, upsert, UPDATE and DELETE, with recursive triggers on and off."""
        self._every_attack_is_refused()

    def test_the_seals_alone_refuse_every_attack_on_every_unique_key(self) -> None:
        """R6, C08: with all other triggers dropped, so that none can cover for a forgotten key."""
        with plain(self.file) as other:
            for name in triggers(other):
                if not SEAL.search(name):
                    other.execute(f"DROP TRIGGER {name}")
        self._every_attack_is_refused()

    def test_without_its_seal_each_table_falls_to_each_kind_of_attack(self) -> None:
        """R6, C08: the attacks are real, since every kind of them succeeds on unsealed tables."""
        with plain(self.file) as other:
            for name in triggers(other):
                other.execute(f"DROP TRIGGER {name}")
            through: dict[str, set[str]] = {}
            for table, kind, sql, values in attacks(other):
                other.execute("BEGIN")
                with suppress(sqlite3.IntegrityError):
                    other.execute(sql, values)
                    through.setdefault(table, set()).add(kind)
                other.execute("ROLLBACK")
        wanted = set(KINDS)
        for table in oracle.dump(self.file):
            with self.subTest(table):
                one_row = {"update or replace"} if table == "policy" else set()
                self.assertEqual(through[table] | one_row, wanted)

    def test_no_table_has_a_hidden_rowid_to_be_replaced_by(self) -> None:
        """R6: each is WITHOUT ROWID or names its rowid as its integer primary key."""
        with plain(self.file) as other:
            for table in tables(other):
                key = [row for row in columns(other, table) if row[5]]
                with self.subTest(table):
                    if len(key) != 1 or key[0][2] != "INTEGER":
                        with self.assertRaisesRegex(sqlite3.OperationalError, "no such column"):
                            other.execute(f"SELECT rowid FROM {table}")

    def test_the_identity_of_an_operation_outlives_every_ordinary_update(self) -> None:
        """O3: no identity column changes, by a plain connection or through the ledger's own."""
        before = oracle.dump(self.file)
        for column in IDENTITY_COLUMNS:
            sql = f"UPDATE operation SET {column} = 77"
            with self.subTest(column), plain(self.file) as other:
                with self.assertRaisesRegex(sqlite3.IntegrityError, r"\Aoperation: "):
                    other.execute(sql)
                with (
                    self.scene.ledger() as ledger,
                    self.assertRaisesRegex(errors.StorageFailed, "operation: "),
                    ledger.transaction() as tx,
                ):
                    tx.execute(sql)
        self.assertEqual(oracle.dump(self.file), before)

    def test_the_table_of_moves_takes_no_new_row(self) -> None:
        """A2: a plain INSERT into it would make any illegal move legal."""
        before = oracle.dump(self.file)
        with plain(self.file) as other, self.assertRaises(sqlite3.IntegrityError):
            other.execute("INSERT INTO legal_move VALUES ('confirmed', 'prepared', 'authority')")
        self.assertEqual(oracle.dump(self.file), before)

    def _every_attack_is_refused(self) -> None:
        before = oracle.dump(self.file)
        for recursive in ("OFF", "ON"):
            with plain(self.file) as other:
                other.execute(f"PRAGMA recursive_triggers = {recursive}")
                for table, kind, sql, values in attacks(other):
                    with (  # refused by a trigger of this table, and not by a slip in the attack
                        self.subTest(table, kind=kind, recursive=recursive, sql=sql),
                        self.assertRaisesRegex(sqlite3.IntegrityError, rf"\A{table}: "),
                    ):
                        other.execute(sql, values)
        self.assertEqual(oracle.dump(self.file), before)


class EveryTriggerIsNeeded(LabCase):
    """Each rule in schema.sql, attacked twice: as it stands, and with its one trigger dropped."""

    def setUp(self) -> None:
        super().setUp()
        scene = self.lab.scene("attacked", unsafe=True)
        populate(self, scene)
        self.file = scene.sender

    def test_every_trigger_of_the_schema_has_an_attack_here(self) -> None:
        """A2: a trigger that nothing attacks could be dropped unseen."""
        with plain(self.file) as other:
            rules = {name for name in triggers(other) if not SEAL.search(name)}
        self.assertEqual(rules, set(RULES) | {"decision_moves", "incident_raises_the_version"})

    def test_each_attack_is_refused_by_its_trigger_and_succeeds_without_it(self) -> None:
        """A2: operations, decisions, incidents, approvals, attempts and obligations."""
        for name, ways in RULES.items():
            for way in ways:
                with self.subTest(name, way=way[-1]), plain(self.file) as other:
                    other.execute("BEGIN")
                    *before, attack = way
                    for statement in before:
                        other.execute(statement)
                    with self.assertRaises(sqlite3.IntegrityError) as caught:
                        other.execute(attack)
                    self.assertIn(says(other, name), str(caught.exception))
                    other.execute(f"DROP TRIGGER {name}")
                    self.assertEqual(other.execute(attack).rowcount, 1)
                    other.execute("ROLLBACK")

    def test_an_appended_decision_moves_its_operation_in_the_same_statement(self) -> None:
        """A2: the decision row is the mover; without its trigger nothing moves."""
        state = "SELECT state, version FROM operation WHERE work_id = 'open'"
        with plain(self.file) as other:
            for moved, drop in ((("written_off", 3), ""), (("unknown", 2), "decision_moves")):
                other.execute("BEGIN")
                if drop:
                    other.execute(f"DROP TRIGGER {drop}")
                other.execute(decides("open", "written_off", "authority"))
                self.assertEqual(other.execute(state).fetchone(), moved)
                other.execute("ROLLBACK")

    def test_an_appended_incident_raises_the_version_in_the_same_statement(self) -> None:
        """A2, R11: the incident row raises the version and leaves the state."""
        state = "SELECT state, version FROM operation WHERE work_id = 'kept'"
        notice = (
            "INSERT INTO incident SELECT number, version + 1, 'd', 'e', 0 FROM operation "
            "WHERE work_id = 'kept'"
        )
        with plain(self.file) as other:
            for version, drop in ((4, ""), (3, "incident_raises_the_version")):
                other.execute("BEGIN")
                if drop:
                    other.execute(f"DROP TRIGGER {drop}")
                other.execute(notice)
                self.assertEqual(other.execute(state).fetchone(), ("confirmed", version))
                other.execute("ROLLBACK")

    def test_a_decision_from_another_state_or_version_is_refused(self) -> None:
        """A2: the row must begin where the operation stands, and make its very next version."""
        good = decides("open", "written_off", "authority")
        with plain(self.file) as other:
            for odd in (
                good.replace("version + 1", "version"),
                good.replace("version + 1", "version + 2"),
                good.replace("state,", "'conflict',"),
            ):
                self.assertNotEqual(odd, good)
                with self.subTest(odd), self.assertRaises(sqlite3.IntegrityError):
                    other.execute(odd)
            self.assertEqual(other.execute(good).rowcount, 1)

    def test_the_database_accepts_exactly_the_moves_of_the_design(self) -> None:
        """A2: all states x states x causes; the legal ones are written here a second time."""
        with plain(self.file) as other:
            accepted = set()
            mover = sql_of(other, "operation_follows_its_rows")
            for source in State:
                other.execute("BEGIN")
                other.execute("DROP TRIGGER operation_follows_its_rows")
                other.execute(
                    "UPDATE operation SET state = ? WHERE work_id = 'open'", (source.value,)
                )
                other.execute(mover)
                other.execute(_insert("receipt", "number, 1, '{}', 0", "open"))
                for target in State:
                    for cause in Cause:
                        other.execute("SAVEPOINT move")
                        with suppress(sqlite3.IntegrityError):
                            other.execute(decides("open", target.value, cause.value))
                            accepted.add((source.value, target.value, cause.value))
                        other.execute("ROLLBACK TO move")
                other.execute("ROLLBACK")
        self.assertEqual(accepted, LEGAL)

    def test_a_decision_without_what_entitles_it_is_refused_by_its_checks(self) -> None:
        """A2, E13: a verdict proves its own state alone, and authority gives a reason."""
        row = "INSERT INTO decision SELECT number, version + 1, state, {}, 0 FROM operation "
        with plain(self.file) as other:
            for values in (
                "'not_applied', 'evidence', 'eve', 'unique_exact_match', NULL, '{}', NULL, NULL",
                "'confirmed', 'evidence', 'eve', 'terminal_absence', NULL, '{}', NULL, NULL",
                "'confirmed', 'evidence', 'eve', NULL, NULL, '{}', NULL, NULL",
                "'confirmed', 'evidence', 'eve', 'unique_exact_match', NULL, NULL, NULL, NULL",
                "'written_off', 'authority', 'eve', NULL, NULL, NULL, NULL, ''",
                "'written_off', 'authority', 'eve', NULL, NULL, NULL, NULL, NULL",
            ):
                with self.subTest(values), self.assertRaisesRegex(Exception, "CHECK"):
                    other.execute(row.replace("{}", values, 1) + "WHERE work_id = 'open'")

    def test_the_lists_in_the_file_are_the_enums(self) -> None:
        """A1, A2: CHECK lists stand written out, and say what the enums say."""
        with plain(self.file) as other:
            for table, column, enum in (
                ("operation", "state", State),
                ("decision", "cause", Cause),
                ("attempt", "transport", Transport),
            ):
                listed = re.search(rf"\b{column} IN \((.*?)\)", sql_of(other, table), re.DOTALL)
                assert listed is not None
                with self.subTest(table):
                    self.assertEqual(
                        re.findall(r"'(\w+)'", listed[1]), [member.value for member in enum]
                    )


class OneWayToAskSQLite(unittest.TestCase):
    """The seam is complete only if nothing goes round it."""

    def test_nothing_but_execute_is_ever_called_on_a_connection(self) -> None:
        """C15: executescript commits what is open, a with-block begins nothing."""
        banned = {"cursor", "executescript", "executemany", "commit", "rollback"}
        for file in sources("reconcile", "receiver"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Attribute):
                    self.assertNotIn(node.attr, banned, f"{file}:{node.lineno}")
                if isinstance(node, ast.withitem):
                    named = ast.unparse(node.context_expr).rpartition(".")[2]
                    self.assertNotIn("connection", named, f"{file}: with {named}")

    def test_sql_stands_only_in_the_two_rooms_that_hold_files(self) -> None:
        """C15: no statement, execute or sqlite3 outside reconcile/ledger and receiver."""
        for file in sources("reconcile"):
            if "ledger" in file.relative_to(ROOT).parts:
                continue
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    self.assertIsNone(STATEMENT.match(node.value), f"{file}: {node.value!r}")
                if isinstance(node, ast.Attribute):
                    self.assertNotEqual(node.attr, "execute", str(file))
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    self.assertNotIn("sqlite3", ast.unparse(node), str(file))

    def test_no_statement_attaches_a_second_file(self) -> None:
        """L1: one connection, one file, in both rooms."""
        for file in (*sources("reconcile", "receiver"), *ROOT.glob("rec*/**/*.sql")):
            self.assertNotRegex(file.read_text("utf-8"), r"\bATTACH\b", str(file))


class Transactions(LabCase):
    def setUp(self) -> None:
        super().setUp()
        self.scene = self.lab.scene()

    def test_a_transaction_refuses_to_nest_and_the_outer_one_goes_on(self) -> None:
        """C15: the refusal of the inner one ends, commits and undoes nothing."""
        with self.scene.ledger() as ledger:
            with ledger.transaction() as tx:
                tx.execute(POLICY_ROW, (1, "first"))
                for inner in (ledger.transaction, ledger.reading):
                    with self.assertRaises(errors.LedgerMisused), inner():
                        self.fail("a second transaction was opened")
                self.assertEqual(self.policies(), [])
                tx.execute(POLICY_ROW, (2, "second"))
            self.assertEqual(self.policies(), ["first", "second"])

    def test_a_flow_inside_a_transaction_is_refused_and_the_outer_one_goes_on(self) -> None:
        """C15: a caller's transaction never becomes part of one of ours."""
        with self.scene.ledger() as ledger:
            with ledger.transaction() as tx:
                tx.execute(POLICY_ROW, (1, "first"))
                with self.assertRaises(errors.LedgerMisused):
                    prepare(ledger, self.scene.near(), **ORDER)
            self.assertEqual(self.policies(), ["first"])
            self.assertEqual(oracle.states(self.scene.sender), {})

    def test_a_transaction_that_sqlite_ended_takes_no_more_statements(self) -> None:
        """C15, R4: after an interrupt, code that went on would write in autocommit."""
        with self.scene.ledger(factory=Ended) as ledger:
            with self.assertRaises(errors.LedgerMisused), ledger.transaction() as tx:
                tx.execute(POLICY_ROW, (1, "first"))
                with self.assertRaises(sqlite3.OperationalError):
                    tx.execute(MANY_POLICIES)
                tx.execute(POLICY_ROW, (2, "second"))
            self.assertTrue(Ended.by_sqlite)
            self.assertEqual(self.policies(), [])

    def test_a_transaction_that_sqlite_ended_is_never_reported_as_committed(self) -> None:
        """R4: the block swallowed the error; the end of it must not look like success."""
        with self.scene.ledger(factory=Ended) as ledger:
            with self.assertRaises(errors.ReconcileError), ledger.transaction() as tx:
                tx.execute(POLICY_ROW, (1, "first"))
                with suppress(sqlite3.OperationalError):
                    tx.execute(MANY_POLICIES)
            self.assertEqual(self.policies(), [])

    def test_the_first_error_is_never_masked_by_a_failing_rollback(self) -> None:
        """R4: the error of the block passes, whatever becomes of ROLLBACK."""
        for first, seen in (
            (ValueError("first"), ValueError),
            (KeyboardInterrupt("first"), KeyboardInterrupt),
            (sqlite3.OperationalError("first"), errors.StorageFailed),
        ):
            with self.subTest(seen), self.scene.ledger(factory=NeverRollsBack) as ledger:
                NeverRollsBack.refused = 0
                NeverRollsBack.opened = True
                self.addCleanup(setattr, NeverRollsBack, "opened", False)
                with self.assertRaisesRegex(seen, "first"), ledger.transaction() as tx:
                    tx.execute(POLICY_ROW, (1, "first"))
                    raise first
                self.assertEqual(NeverRollsBack.refused, 1)
                NeverRollsBack.opened = False
            self.assertEqual(self.policies(), [])

    def test_an_interrupt_undoes_the_transaction_and_passes_on(self) -> None:
        """R4: KeyboardInterrupt, SystemExit and GeneratorExit are no commits."""
        with self.scene.ledger() as ledger:
            for interrupt in (KeyboardInterrupt, SystemExit, GeneratorExit):
                with self.subTest(interrupt):
                    with self.assertRaises(interrupt), ledger.transaction() as tx:
                        tx.execute(POLICY_ROW, (1, "first"))
                        raise interrupt
                    self.assertEqual(self.policies(), [])
            with ledger.transaction() as tx:  # and the ledger still works
                tx.execute(POLICY_ROW, (1, "first"))
        self.assertEqual(self.policies(), ["first"])

    def test_a_clock_that_gives_no_whole_number_stops_the_call_before_it_begins(self) -> None:
        """R4: a time that is no integer never reaches a row."""
        self.scene.ledger().close()
        for odd in (1.5, True, None, "1", 2**63, -(2**63) - 1):
            with (
                self.subTest(odd),
                self.scene.ledger(clock=lambda odd=odd: odd) as ledger,
                self.assertRaisesRegex(errors.Malformed, "clock"),
            ):
                prepare(ledger, self.scene.near(), **ORDER)
        self.assertEqual(oracle.states(self.scene.sender), {})

    def policies(self) -> list[str]:
        return [
            body
            for (body,) in oracle.rows(
                self.scene.sender, "SELECT body FROM policy WHERE number < 9"
            )
        ]


class WhatBecomesOfTheFile(LabCase):
    """R4: a ledger writes only to the file and in the process that opened it."""

    def test_a_ledger_whose_file_was_replaced_sends_nothing_more(self) -> None:
        """R4, L5: moved, removed or replaced while it was open, it is refused by name."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = prepare(ledger, scene.near(), **ORDER)
            os.replace(scene.sender, scene.sender.with_name("moved.db"))
            with self.assertRaisesRegex(errors.StorageFailed, "moved, replaced or removed"):
                dispatch(ledger, operation.operation_id, scene.near())
            os.replace(scene.sender.with_name("moved.db"), scene.sender)
        self.assertEqual(scene.contacts(), [])

    def test_a_ledger_opened_before_a_fork_is_refused_in_the_child(self) -> None:
        """R4, L5: two processes on one connection would lose rows of each other."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            operation = prepare(ledger, scene.near(), **ORDER)
            with (
                mock.patch.object(os, "getpid", return_value=-1),
                self.assertRaisesRegex(errors.LedgerMisused, "fork"),
            ):
                dispatch(ledger, operation.operation_id, scene.near())
        self.assertEqual(scene.contacts(), [])

    def test_a_first_open_that_cannot_switch_waits_no_longer_than_its_bound(self) -> None:
        """R4: a reader of a file in another journal mode; the wait is counted in statements."""
        file = self.lab.scene().sender
        Ledger(file).close()
        with plain(file) as reader:
            reader.execute("PRAGMA journal_mode = DELETE")
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM operation").fetchall()
            Switching.tries = 0
            with self.assertRaises(errors.Busy):
                Ledger(file, busy_ms=20, factory=Switching)
            reader.execute("ROLLBACK")
        self.assertLess(Switching.tries, 10)

    def test_a_file_so_damaged_that_its_errors_are_no_text_is_refused(self) -> None:
        """R4: sqlite3 fails to decode its own words; ours is still one typed error."""
        file = self.lab.scene().sender
        Ledger(file).close()
        with self.assertRaises(errors.ForeignFile):
            Ledger(file, factory=Garbles)

    def test_an_interrupt_just_after_begin_leaves_a_ledger_that_works(self) -> None:
        """R4: the write lock is given back, and the next call is served."""
        scene = self.lab.scene()
        with scene.ledger(factory=InterruptedBegin) as ledger:
            InterruptedBegin.due = True
            with self.assertRaises(KeyboardInterrupt):
                prepare(ledger, scene.near(), **ORDER)
            prepare(ledger, scene.near(), **ORDER)
        self.assertEqual(len(oracle.states(scene.sender)), 1)


class Switching(sqlite3.Connection):
    """Counts how often the switch to WAL is asked for."""

    tries = 0

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        Switching.tries += sql.startswith("PRAGMA journal_mode")
        return super().execute(sql, *values)


class Garbles(sqlite3.Connection):
    """What sqlite3 does when a damaged page stands in the text of an error."""

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if "sqlite_master" in sql:
            b"\xff".decode("utf-8")
        return super().execute(sql, *values)


class InterruptedBegin(sqlite3.Connection):
    """The interrupt comes when BEGIN IMMEDIATE has its lock and has not returned yet."""

    due = False

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        cursor = super().execute(sql, *values)
        if sql == "BEGIN IMMEDIATE" and InterruptedBegin.due:
            InterruptedBegin.due = False
            raise KeyboardInterrupt
        return cursor


class Waiting(LabCase):
    """C22: a transaction that reads first and writes later."""

    def test_whoever_reads_first_and_writes_later_cannot_be_overtaken(self) -> None:
        """C22: nobody commits between a flow's read and its write, so the write cannot fail."""
        for name, flow in FLOWS.items():
            scene, call = self.flow(name, flow)
            tried: list[str] = []

            class Overtaken(sqlite3.Connection):
                def execute(self, sql: str, *values: Any, tried: list[str] = tried) -> Any:
                    cursor = super().execute(sql, *values)
                    if "FROM operation o" in sql and not tried:
                        with plain(scene.sender) as other:  # noqa: B023
                            try:
                                other.execute(POLICY_ROW, (9, "overtook"))
                                tried.append("overtook")
                            except sqlite3.OperationalError as error:
                                tried.append(str(error))
                    return cursor

            with self.subTest(name), scene.ledger(factory=Overtaken) as ledger:
                call(ledger)
                self.assertEqual(tried, ["database is locked"])

    def test_a_flow_that_meets_a_writer_waits_and_succeeds(self) -> None:
        """C22: the other one commits when we begin to wait, and not before."""
        for name, flow in FLOWS.items():
            scene, call = self.flow(name, flow)
            held, waits = threading.Event(), threading.Event()

            class Waits(sqlite3.Connection):
                def execute(self, sql: str, *values: Any, waits: Any = waits) -> Any:
                    if sql == "BEGIN IMMEDIATE":
                        waits.set()
                    return super().execute(sql, *values)

            def write(file: Path, held: threading.Event, waits: threading.Event) -> None:
                with plain(file) as other:
                    other.execute("BEGIN IMMEDIATE")
                    held.set()
                    waits.wait(LIMIT_S)
                    other.execute(POLICY_ROW, (9, "the other"))
                    other.execute("COMMIT")

            with self.subTest(name), scene.ledger(factory=Waits, busy_ms=50_000) as ledger:
                writer = threading.Thread(target=write, args=(scene.sender, held, waits))
                writer.start()
                try:
                    self.assertTrue(held.wait(LIMIT_S))
                    call(ledger)
                finally:
                    waits.set()
                    writer.join()
                rows = oracle.rows(scene.sender, "SELECT body FROM policy WHERE number = 9")
                self.assertEqual(rows, [("the other",)])

    def test_a_flow_that_waited_too_long_is_busy_and_wrote_nothing(self) -> None:
        """C22: one typed error that says to try again, and trying again works."""
        for name, flow in FLOWS.items():
            scene, call = self.flow(name, flow)
            with self.subTest(name), scene.ledger(busy_ms=0) as ledger:
                before = oracle.dump(scene.sender)
                with plain(scene.sender) as other:
                    other.execute("BEGIN IMMEDIATE")
                    with self.assertRaisesRegex(errors.Busy, "try again") as caught:
                        call(ledger)
                    other.execute("ROLLBACK")
                self.assertEqual(caught.exception.busy_ms, 0)
                self.assertFalse(scene.opened[0].in_transaction)
                self.assertEqual(oracle.dump(scene.sender), before)
                call(ledger)
                self.assertNotEqual(oracle.dump(scene.sender), before)

    def test_a_first_open_waits_for_a_writer_although_the_switch_to_wal_does_not(self) -> None:
        """C22: SQLite ignores the busy timeout there; the writer ends when we begin to wait."""
        scene = self.lab.scene()
        held, waits = threading.Event(), threading.Event()

        class Waits(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> Any:
                if sql == "BEGIN IMMEDIATE":
                    waits.set()
                return super().execute(sql, *values)

        def write() -> None:
            with plain(scene.sender) as other:
                other.execute("BEGIN IMMEDIATE")
                held.set()
                waits.wait(LIMIT_S)
                other.execute("ROLLBACK")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            self.assertTrue(held.wait(LIMIT_S))
            Ledger(scene.sender, factory=Waits, busy_ms=50_000).close()
        finally:
            waits.set()
            writer.join()
        self.assertEqual(oracle.rows(scene.sender, "PRAGMA journal_mode"), [("wal",)])

    def flow(
        self, name: str, make: Callable[..., Callable[[Ledger], object]]
    ) -> tuple[Scene, Callable[[Ledger], object]]:
        scene = self.lab.scene(name)
        with scene.ledger() as ledger:
            return scene, make(self, scene, ledger)


class FirstOpens(LabCase):
    def test_eight_threads_may_open_one_new_file_at_once(self) -> None:
        """C22: all of them succeed, and the file is made once."""
        for at in range(12):
            file = self.lab.scene(f"threads {at}").sender
            start = threading.Barrier(8)
            failed: list[str] = []

            def first(file: Path = file, start: Any = start, failed: Any = failed) -> None:
                start.wait(LIMIT_S)
                try:
                    Ledger(file).close()
                except Exception as error:
                    failed.append(repr(error))

            threads = [threading.Thread(target=first) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failed, [])
            self.assert_whole(file)

    def test_six_processes_may_open_one_new_file_at_once(self) -> None:
        """C22: each waits for a line that names the file, and all are told together."""
        argv = [sys.executable, *ISOLATED, "-c", OPENER, str(ROOT)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        openers = [subprocess.Popen(argv, **pipes) for _ in range(6)]  # type: ignore[call-overload]
        try:
            for at in range(12):
                file = self.lab.scene(f"processes {at}").sender
                for opener in openers:
                    opener.stdin.write(f"{file}\n".encode())
                    opener.stdin.flush()
                said = [opener.stdout.readline().decode() for opener in openers]
                self.assertEqual(said, ["opened\n"] * 6)
                self.assert_whole(file)
        finally:
            for opener in openers:
                opener.communicate(timeout=LIMIT_S)
        self.assertEqual([opener.returncode for opener in openers], [0] * 6)

    def test_another_process_may_make_the_file_before_any_statement_of_a_first_open(self) -> None:
        """C22: whatever was seen before, it is one file with one set of tables in the end."""
        at = 0
        while True:
            file = self.lab.scene(f"overtaken {at}").sender
            counter = iter(range(at, -1, -1))

            class Overtaken(sqlite3.Connection):
                def execute(self, *given: Any, file: Path = file, left: Any = counter) -> Any:
                    if next(left, None) == 0:
                        with suppress(errors.Busy):  # it is ours already
                            Ledger(file, busy_ms=0).close()
                    return super().execute(*given)

            with self.subTest(at):
                Ledger(file, factory=Overtaken).close()
                self.assert_whole(file)
            if next(counter, None) is not None:  # past the last statement
                break
            at += 1
        self.assertGreater(at, 8)

    def assert_whole(self, file: Path) -> None:
        with plain(file) as other:
            self.assertEqual(len(tables(other)), 11)
            self.assertEqual(other.execute("PRAGMA integrity_check").fetchone(), ("ok",))


class FilesThatAreNotOurs(LabCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = self.lab.scene().sender.parent

    def test_a_file_of_another_program_is_refused_and_no_byte_of_it_changes(self) -> None:
        """R4: by its application id, by its version, by its tables, or by not being SQLite's."""
        for name, make in FOREIGN.items():
            file = self.folder / f"{name}.db"
            make(file)
            before = file.read_bytes()
            for way in (Ledger, Ledger.inspect):
                with self.subTest(name, way=way):
                    with self.assertRaises(errors.ForeignFile) as caught:
                        way(file).close()
                    self.assertIn(str(file), str(caught.exception))
                    self.assertEqual(file.read_bytes(), before)
                    self.assertEqual(list(self.folder.glob(f"{name}.db?*")), [])

    def test_a_ledger_of_another_schema_is_refused_and_no_byte_of_it_changes(self) -> None:
        """R4: older or newer, the version that made it is the one to use."""
        for version in (2, 99):
            file = self.folder / f"schema-{version}.db"
            Ledger(file).close()
            with plain(file) as other:
                other.execute(f"PRAGMA user_version = {version}")
            before = file.read_bytes()
            for way in (Ledger, Ledger.inspect):
                with self.subTest(version, way=way):
                    with self.assertRaisesRegex(errors.ForeignFile, f"schema {version}"):
                        way(file).close()
                    self.assertEqual(file.read_bytes(), before)

    def test_a_folder_is_no_ledger_and_a_missing_folder_is_not_made(self) -> None:
        """R4: both are refused by a typed error that names the path."""
        for way in (Ledger, Ledger.inspect):
            with self.subTest(way), self.assertRaisesRegex(errors.ForeignFile, "folder"):
                way(self.folder)
            missing = self.folder / "no" / "such.db"
            with self.subTest(way):
                with self.assertRaises(errors.StorageFailed) as caught:
                    way(missing)
                self.assertIn(str(missing), str(caught.exception))
            self.assertFalse(missing.parent.exists())

    def test_looking_never_makes_a_file(self) -> None:
        """R4: an empty answer about a mistyped name would be a lie."""
        with self.assertRaisesRegex(errors.StorageFailed, "no such file"):
            Ledger.inspect(self.folder / "mistyped.db")
        (self.folder / "empty.db").touch()
        with self.assertRaises(errors.ForeignFile):
            Ledger.inspect(self.folder / "empty.db")
        self.assertFalse((self.folder / "mistyped.db").exists())
        self.assertEqual((self.folder / "empty.db").stat().st_size, 0)

    def test_what_names_no_file_is_malformed(self) -> None:
        """R4: wrong types, nothing, NUL, bytes in disguise, half a surrogate pair."""
        for odd in (None, 5, b"x", "", "a\0b", Path("a\0b"), Disguised(), "\ud800"):
            for way in (Ledger, Ledger.inspect):
                with self.subTest(odd, way=way):
                    with self.assertRaises(errors.Malformed) as caught:
                        way(odd)  # type: ignore[arg-type]
                    self.assertEqual(caught.exception.place, "path")

    def test_a_name_that_the_system_cannot_hold_is_refused_by_a_typed_error(self) -> None:
        """R4: three hundred letters are too many for one name."""
        for way in (Ledger, Ledger.inspect):
            with self.subTest(way), self.assertRaises(errors.StorageFailed):
                way(self.folder / ("n" * 300))

    def test_a_bad_option_is_malformed_and_makes_no_file(self) -> None:
        """R4: busy_ms is a whole number from 0 up."""
        file = self.folder / "bad.db"
        for odd in (-1, 1.5, True, None, "5", 2**63):
            with self.subTest(odd), self.assertRaisesRegex(errors.Malformed, "busy_ms"):
                Ledger(file, busy_ms=odd)  # type: ignore[arg-type]
        self.assertFalse(file.exists())


class NamesAndHandles(LabCase):
    def setUp(self) -> None:
        super().setUp()
        self.scene = self.lab.scene()
        self.folder = self.scene.sender.parent

    def test_odd_names_of_folders_and_files_work_as_text_and_as_paths(self) -> None:
        """R4: spaces, #, ?, %, quotes, non-ASCII, and what SQLite would take for a URI."""
        for name in ODD_NAMES:
            folder = self.folder / name
            folder.mkdir()
            for path in (folder / name, str(folder / "text")):
                with self.subTest(path):
                    with Ledger(path, clock=self.lab.clock) as ledger:
                        made = prepare(ledger, self.scene.near(), **ORDER)
                    with Ledger.inspect(path, clock=self.lab.clock) as ledger:
                        self.assertEqual(look(ledger, made.operation_id), made)
            self.assertEqual(sorted(p.name for p in folder.iterdir()), sorted([name, "text"]))

    def test_a_ledger_opened_by_a_relative_path_survives_a_change_of_directory(self) -> None:
        """R4: the file stays where it was opened, and its errors name it in full."""
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        back = os.getcwd()
        try:
            os.chdir(self.folder)
            with Ledger("here.db", clock=self.lab.clock) as ledger:
                os.chdir(elsewhere)
                made = prepare(ledger, self.scene.near(), **ORDER)
                self.assertTrue(ledger.path.is_absolute())
            with Ledger("../here.db", clock=self.lab.clock) as ledger:
                self.assertEqual(look(ledger, made.operation_id), made)
        finally:
            os.chdir(back)
        self.assertEqual(list(elsewhere.iterdir()), [])

    def test_a_closed_ledger_refuses_by_a_typed_error_and_closes_again_in_silence(self) -> None:
        """R4: also where the call would only read."""
        with self.scene.ledger() as ledger:
            made = prepare(ledger, self.scene.near(), **ORDER)
        ledger.close()
        for call in (
            lambda: prepare(ledger, self.scene.near(), **ORDER),
            lambda: look(ledger, made.operation_id),
            lambda: library.open_questions(ledger),
            lambda: dispatch(ledger, made.operation_id, self.scene.near()),
        ):
            with self.assertRaisesRegex(errors.LedgerMisused, "closed"):
                call()
        self.assertEqual(self.scene.contacts(), [])

    def test_an_error_inside_a_transaction_is_not_masked_by_the_ledger_being_closed(self) -> None:
        """R4: the first error is the one to report."""
        ledger = self.scene.ledger()
        with self.assertRaisesRegex(ValueError, "first"), ledger.transaction() as tx:
            tx.execute(POLICY_ROW, (1, "first"))
            ledger.close()
            raise ValueError("first")
        self.assertEqual(oracle.rows(self.scene.sender, "SELECT * FROM policy"), [])

    def test_a_ledger_used_from_another_thread_refuses_by_a_typed_error(self) -> None:
        """R4: writing, reading and closing; and the first thread goes on undisturbed."""
        with self.scene.ledger() as ledger:
            for call in (
                lambda: prepare(ledger, self.scene.near(), **ORDER),
                lambda: library.open_questions(ledger),
                ledger.close,
            ):
                self.assertIsInstance(elsewhere(call), errors.LedgerMisused)
            self.assertEqual(library.open_questions(ledger), [])
            prepare(ledger, self.scene.near(), **ORDER)

    def test_a_ledger_for_looking_changes_nothing(self) -> None:
        """R4: neither by a flow nor by a statement."""
        with self.scene.ledger() as ledger:
            made = self.unknown(self.scene, ledger)
        before = oracle.dump(self.scene.sender)
        with Ledger.inspect(self.scene.sender, clock=self.lab.clock) as ledger:
            self.assertEqual(look(ledger, made.operation_id), made)
            with self.assertRaises(errors.LedgerMisused):
                close(
                    ledger,
                    made.operation_id,
                    self.scene.near(),
                    purpose="p",
                    authorized_by="a",
                )
            with self.assertRaises(errors.StorageFailed), ledger.reading() as tx:
                tx.execute(POLICY_ROW, (1, "first"))
        self.assertEqual(oracle.dump(self.scene.sender), before)


class Refusals(unittest.TestCase):
    def test_every_refusal_survives_pickling_with_its_data_and_its_words(self) -> None:
        """R4: a refusal that crosses a process keeps class, attributes and message."""
        for kind in every_refusal():
            refusal = sample(kind)
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                again = pickle.loads(pickle.dumps(refusal, protocol))
                with self.subTest(kind, protocol=protocol):
                    self.assertIs(type(again), kind)
                    self.assertEqual(again.args, refusal.args)
                    self.assertEqual(vars(again), vars(refusal))
                    self.assertEqual(str(again), str(refusal))

    def test_every_refusal_says_its_data_and_carries_it(self) -> None:
        """R4: what it is about stands in its message and in its attributes."""
        for kind in every_refusal():
            refusal = sample(kind)
            for value in vars(refusal).values():
                with self.subTest(kind, value=value):
                    self.assertIn(str(value), str(refusal))
            if kind is not errors.ReconcileError:
                self.assertEqual(refusal.args, tuple(vars(refusal).values()))


# --- a populated file ---------------------------------------------------------------------------


def populate(case: LabCase, scene: Scene) -> None:
    """Rows in every table: a paid order and its refund, an open one, an absent one with an
    incident, a draft, one whose sender died, a kept one, and one whose approval went stale.
    """
    near = scene.near()
    with scene.ledger() as ledger:
        paid = case.unknown(scene, ledger, work_id="paid")
        confirm(ledger, scene, paid.operation_id)
        refund = approve(ledger, look(ledger, paid.operation_id))
        dispatch(ledger, refund.operation_id, near)

        case.unknown(scene, ledger, work_id="open")

        absent = prepare(ledger, near, **{**ORDER, "work_id": "absent"})
        dispatch(ledger, absent.operation_id, LosesRequest(near))
        seen = confirm(ledger, scene, absent.operation_id)
        late = Effect(
            effect_id="late#1",
            operation_id=absent.operation_id,
            kind=absent.kind,
            payload=absent.payload,
            compensates=None,
        )
        observe(ledger, absent.operation_id, replace(seen, effects=(late,)))

        prepare(ledger, near, **{**ORDER, "work_id": "draft"})

        cut = prepare(ledger, near, **{**ORDER, "work_id": "cut"})
        with suppress(KeyboardInterrupt):
            dispatch(ledger, cut.operation_id, Interrupted(near))

        kept = prepare(ledger, near, **{**ORDER, "work_id": "kept"})
        dispatch(ledger, kept.operation_id, near)

        stale = prepare(ledger, near, **{**ORDER, "work_id": "stale"})
        dispatch(ledger, stale.operation_id, near)
        approve(ledger, look(ledger, stale.operation_id))
        there = near.snapshot(stale.query, close=True)
        observe(ledger, stale.operation_id, replace(there, effects=()))


def confirm(ledger: Ledger, scene: Scene, operation_id: str) -> Snapshot:
    """Close, read, keep and decide."""
    facts = close(ledger, operation_id, scene.near(), purpose="find out", authorized_by="ada")
    observe(ledger, operation_id, facts)
    version = look(ledger, operation_id).version
    library.reconcile(ledger, operation_id, facts, reviewer="ada", expected_version=version)
    return facts


def approve(ledger: Ledger, original: library.Operation) -> library.Operation:
    assert original.effect_id is not None
    return approve_compensation(
        ledger,
        original.operation_id,
        effect_id=original.effect_id,
        kind="refund",
        payload={"pence": 1500},
        approver="ada",
        expected_version=original.version,
    )


class Interrupted(LosesRequest):
    """Ctrl-C comes while the request is out: the sender does not live to say how it went."""

    def send(self, query: library.Query) -> None:
        raise KeyboardInterrupt


# --- attacks by plain SQL -----------------------------------------------------------------------


def plain(file: Path) -> closing[sqlite3.Connection]:
    """A second connection, as any program would open it, that waits for nobody."""
    return closing(sqlite3.connect(file, isolation_level=None, timeout=0))


def tables(other: sqlite3.Connection) -> list[str]:
    return [
        name for (name,) in other.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    ]


def triggers(other: sqlite3.Connection) -> list[str]:
    return [
        name for (name,) in other.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    ]


def sql_of(other: sqlite3.Connection, name: str) -> str:
    found = other.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    return str(found[0])


def says(other: sqlite3.Connection, trigger: str) -> str:
    """The words of a trigger's refusal, from its own text."""
    words = re.search(r"RAISE\(ABORT, '(.*?)'\)", sql_of(other, trigger))
    assert words is not None
    return words[1]


def columns(other: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    return other.execute(f"PRAGMA table_info({table})").fetchall()


def keys(other: sqlite3.Connection, table: str) -> list[list[str]]:
    """Every unique key of a table, the primary one first."""
    found = [[row[1] for row in sorted(columns(other, table), key=lambda r: r[5]) if row[5]]]
    for _, index, unique, origin, _ in other.execute(f"PRAGMA index_list({table})").fetchall():
        if unique and origin != "pk":
            parts = other.execute(f"PRAGMA index_info({index})").fetchall()
            found.append([part[2] for part in parts])
    return found


def attacks(
    other: sqlite3.Connection, may_change: dict[str, set[str]] = MAY_CHANGE
) -> Iterator[tuple[str, str, str, tuple[object, ...]]]:
    """(table, kind, statement, values) for every row of every table that the file has."""
    for table in tables(other):
        names = [column[1] for column in columns(other, table)]
        kinds = {column[1]: column[2] for column in columns(other, table)}
        rows = other.execute(f"SELECT * FROM {table} ORDER BY 1 LIMIT 4").fetchall()
        for at, values in enumerate(rows):
            row = dict(zip(names, values, strict=True))
            changed = {name: _another(kinds[name], value) for name, value in row.items()}
            yield from _inserts(other, table, row, changed)
            primary = keys(other, table)[0]
            where = " AND ".join(f"{name} = ?" for name in primary)
            this = tuple(row[name] for name in primary)
            yield table, "delete", f"DELETE FROM {table} WHERE {where}", this
            for name in names:
                if name not in may_change.get(table, ()):
                    sql = f"UPDATE {table} SET {name} = ? WHERE {where}"
                    yield table, "update", sql, (changed[name], *this)
            if len(rows) > 1:  # take the key of another row, which would have to go
                victim = dict(zip(names, rows[at - 1], strict=True))
                for key in keys(other, table):
                    sets = ", ".join(f"{name} = ?" for name in key)
                    sql = f"UPDATE OR REPLACE {table} SET {sets} WHERE {where}"
                    taken = tuple(victim[name] for name in key)
                    yield table, "update or replace", sql, (*taken, *this)


def _inserts(
    other: sqlite3.Connection, table: str, row: dict[str, object], changed: dict[str, object]
) -> Iterator[tuple[str, str, str, tuple[object, ...]]]:
    marks = ", ".join("?" * len(row))
    every = keys(other, table)
    in_a_key = {name for key in every for name in key}
    for verb in ("INSERT OR REPLACE", "REPLACE"):
        for key in every:  # this key alone collides
            values = tuple(row[name] if name in key else changed[name] for name in row)
            yield table, "replace", f"{verb} INTO {table} VALUES ({marks})", values
        for odd in row:  # every key collides, and one other column is altered
            if odd not in in_a_key or len(row) == len(every[0]):
                values = tuple(
                    changed[n] if n == odd and n not in in_a_key else row[n] for n in row
                )
                yield table, "replace", f"{verb} INTO {table} VALUES ({marks})", values
    for key in every:
        last = list(row)[-1]
        sql = (
            f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT ({', '.join(key)}) "
            f"DO UPDATE SET {last} = excluded.{last}"
        )
        values = tuple(row[name] if name in in_a_key else changed[name] for name in row)
        yield table, "upsert", sql, values
        yield table, "upsert", sql, tuple(row.values())


def _another(kind: str, value: object) -> object:
    if kind == "INTEGER":
        return 1000 + (value if isinstance(value, int) else 0)
    return f"{value}x"


def decides(work_id: str, target: str, cause: str) -> str:
    """A decision row with all that its cause asks for, at the next version of an operation."""
    receipt = "1" if cause == "receipt" else "NULL"
    verdict = "terminal_absence" if target == "not_applied" else "unique_exact_match"
    return (
        f"INSERT INTO decision SELECT number, version + 1, state, '{target}', '{cause}', 'eve', "
        f"'{verdict}', effect_id, 'evidence', {receipt}, 'why', 0 "
        f"FROM operation WHERE work_id = '{work_id}'"
    )


def _operation(state: str = "'prepared'", version: str = "1", effect: str = "NULL") -> str:
    """One more operation, as its insert trigger must not like it."""
    return (
        "INSERT INTO operation SELECT 100, 'forged', digest, 'forged', target, epoch, kind, "
        f"payload, compensates, subject, scope, policy, prepared_ms, {state}, {version}, {effect} "
        "FROM operation WHERE work_id = 'draft'"
    )


def _compensation(original: str, effect: str = "effect_id") -> str:
    """One more prepared operation that amends an effect of another."""
    return (
        "INSERT INTO operation SELECT 100, 'forged', digest, 'forged', target, epoch, kind, "
        f"payload, {effect}, subject, scope, policy, prepared_ms, 'prepared', 1, NULL "
        f"FROM operation WHERE work_id = '{original}'"
    )


def _approval(
    original: str,
    effect: str = "effect_id",
    version: str = "version",
    ordinal: int = 9,
    compensation: str = "100",
) -> str:
    return (
        f"INSERT INTO approval SELECT {compensation}, number, {effect}, {ordinal}, {version}, "
        f"'eve', 0 FROM operation WHERE work_id = '{original}'"
    )


def _of(work_id: str) -> str:
    return f"operation = (SELECT number FROM operation WHERE work_id = '{work_id}')"


def _insert(table: str, values: str, work_id: str) -> str:
    return f"INSERT INTO {table} SELECT {values} FROM operation WHERE work_id = '{work_id}'"


_MOVE = "UPDATE operation SET {} WHERE work_id = 'open'"

RULES: dict[str, tuple[tuple[str, ...], ...]] = {
    "legal_move_is_complete": (
        ("INSERT INTO legal_move VALUES ('confirmed', 'prepared', 'authority')",),
    ),
    "operation_starts_prepared": (
        (_operation(state="'unknown'"),),
        (_operation(version="2"),),
        (_operation(effect="'e'"),),
    ),
    "operation_follows_its_rows": (
        (_MOVE.format("state = 'confirmed'"),),
        (_MOVE.format("version = version + 1"),),
        (_MOVE.format("effect_id = 'e'"),),
        (_MOVE.format("state = 'confirmed', version = version + 1, effect_id = 'e'"),),
    ),
    "decision_is_lawful": (
        (decides("open", "confirmed", "authority"),),
        (decides("open", "prepared", "withdrawn"),),
        (decides("absent", "unknown", "announced"),),
    ),
    "decision_has_its_receipt": (
        (
            "INSERT INTO decision SELECT number, version + 1, state, 'confirmed', 'receipt', "
            "'eve', NULL, 'e', NULL, 9, NULL, 0 FROM operation WHERE work_id = 'open'",
        ),
    ),
    "decision_announces_what_is_bound": (
        (  # no approval at all
            _compensation("kept"),
            decides("forged", "unknown", "announced"),
        ),
        (  # approved, and the original moved since
            "INSERT INTO decision SELECT c.number, 2, 'prepared', 'unknown', 'announced', 'eve', "
            "NULL, NULL, NULL, NULL, NULL, 0 FROM operation c JOIN approval a "
            "ON a.operation = c.number JOIN operation o ON o.number = a.original "
            "WHERE o.work_id = 'stale'",
        ),
    ),
    "incident_is_lawful": (
        (_insert("incident", "number, version + 1, 'd', 'e', 0", "open"),),
        (_insert("incident", "number, version + 1, 'd', 'e', 0", "draft"),),
    ),
    "approval_binds_a_confirmed_effect": (
        (_compensation("open", "'e'"), _approval("open", "'e'")),  # not confirmed
        (_compensation("kept"), _approval("kept", version="version - 1")),
        (_compensation("kept"), _approval("kept", version="version + 1")),
        (_compensation("kept", "'e'"), _approval("kept", "'e'")),  # not its effect
        (_compensation("kept", "'e'"), _approval("kept")),  # amends another effect
        (  # sent already
            _compensation("kept"),
            _approval("kept", ordinal=1),
            decides("forged", "unknown", "announced"),
            "DROP TRIGGER approval_is_the_only_live_one",
            "DROP TRIGGER approval_is_not_replaced",
            "DROP TRIGGER approval_is_not_removed",
            "DELETE FROM approval WHERE operation = 100",
            _approval("kept"),
        ),
    ),
    "approval_is_the_only_live_one": (
        (_compensation("paid"), _approval("paid")),
        (_compensation("stale"), _approval("stale")),
    ),
    "attempt_follows_its_announcement": (
        (_insert("attempt", "number, 1, 0, NULL", "draft"),),
        (_insert("attempt", "number, 2, 0, NULL", "kept"),),
        (_insert("attempt", "number, 2, 0, 'sent'", "open"),),
    ),
    "attempt_ends_once": (
        (f"UPDATE attempt SET transport = 'not_sent' WHERE {_of('open')}",),
        (f"UPDATE attempt SET transport = NULL WHERE {_of('open')}",),
    ),
    "obligation_is_the_only_open_one": (
        (_insert("obligation", "number, 2, 0, 0, NULL", "open"),),
    ),
    "obligation_begins_with_unknown": (
        (_insert("obligation", "number, 2, 0, 0, NULL", "paid"),),
        (_insert("obligation", "number, 2, 0, 0, 1", "paid"),),
    ),
    "obligation_ends_once": (
        (f"UPDATE obligation SET ended_ms = NULL WHERE {_of('paid')}",),
        (f"UPDATE obligation SET ended_ms = ended_ms + 1 WHERE {_of('paid')}",),
        (f"UPDATE obligation SET due_ms = due_ms + 1 WHERE {_of('paid')}",),
    ),
    "obligation_ends_with_its_question": (
        (f"UPDATE obligation SET ended_ms = 1 WHERE {_of('open')}",),
        (f"UPDATE obligation SET ended_ms = 1 WHERE {_of('cut')}",),
    ),
}
"""Each trigger with its attacks: a way is one statement, or several of which the last attacks."""

_ENDS = ("confirmed", "rejected", "failed")
LEGAL: set[tuple[str, str, str]] = {
    ("prepared", "unknown", "announced"),
    ("unknown", "prepared", "never_sent"),
    ("prepared", "revoked", "withdrawn"),
    ("partial", "confirmed", "authority"),
    ("conflict", "not_applied", "authority"),
    *(("unknown", end, "receipt") for end in (*_ENDS, "pending", "partial")),
    *(("pending", end, "receipt") for end in (*_ENDS, "partial")),
    *(
        (at, end, "evidence")
        for at in ("unknown", "pending")
        for end in ("confirmed", "not_applied")
    ),
    *((at, "conflict", "contradiction") for at in ("unknown", "pending", "partial")),
    *(("conflict", end, "authority") for end in _ENDS),
    *((at, "written_off", "authority") for at in ("unknown", "pending", "partial", "conflict")),
}
"""Section 4 of the design, written here a second time."""

# --- flows that read first and write later ------------------------------------------------------


def _flow_prepare(case: LabCase, scene: Scene, ledger: Ledger) -> Callable[[Ledger], object]:
    return lambda ledger: prepare(ledger, scene.near(), **ORDER)


def _flow_dispatch(case: LabCase, scene: Scene, ledger: Ledger) -> Callable[[Ledger], object]:
    made = prepare(ledger, scene.near(), **ORDER)
    return lambda ledger: dispatch(ledger, made.operation_id, scene.near())


def _flow_observe(case: LabCase, scene: Scene, ledger: Ledger) -> Callable[[Ledger], object]:
    made = case.unknown(scene, ledger)
    facts = scene.near().snapshot(made.query)
    return lambda ledger: observe(ledger, made.operation_id, facts)


def _flow_close(case: LabCase, scene: Scene, ledger: Ledger) -> Callable[[Ledger], object]:
    made = case.unknown(scene, ledger)
    return lambda ledger: close(
        ledger, made.operation_id, scene.near(), purpose="find out", authorized_by="ada"
    )


def _flow_reconcile(case: LabCase, scene: Scene, ledger: Ledger) -> Callable[[Ledger], object]:
    made = case.unknown(scene, ledger)
    facts = scene.near().snapshot(made.query, close=True)
    return lambda ledger: library.reconcile(
        ledger, made.operation_id, facts, reviewer="ada", expected_version=made.version
    )


def _flow_approve(case: LabCase, scene: Scene, ledger: Ledger) -> Callable[[Ledger], object]:
    made = prepare(ledger, scene.near(), **ORDER)
    dispatch(ledger, made.operation_id, scene.near())
    sent = look(ledger, made.operation_id)
    return lambda ledger: approve(ledger, sent)


FLOWS: dict[str, Callable[[LabCase, Scene, Ledger], Callable[[Ledger], object]]] = {
    "prepare": _flow_prepare,
    "dispatch": _flow_dispatch,
    "observe": _flow_observe,
    "close": _flow_close,
    "reconcile": _flow_reconcile,
    "approve": _flow_approve,
}

# --- connections that SQLite makes fail ---------------------------------------------------------

POLICY_ROW = "INSERT INTO policy VALUES (?, ?)"
MANY_POLICIES = (
    "WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) "
    "INSERT INTO policy SELECT i, 'policy ' || i FROM n"
)


class Ended(sqlite3.Connection):
    """SQLite interrupts the long insert, and ends the transaction by itself."""

    by_sqlite = False

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql != MANY_POLICIES:
            return super().execute(sql, *values)
        self.set_progress_handler(lambda: 1, 1)
        try:
            return super().execute(sql, *values)
        finally:
            self.set_progress_handler(None, 0)
            Ended.by_sqlite = not self.in_transaction


class NeverRollsBack(sqlite3.Connection):
    """SQLite's authorizer refuses ROLLBACK, once the ledger is open."""

    opened, refused = False, 0

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql == "ROLLBACK" and self.opened:
            self.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)
            NeverRollsBack.refused += 1
        return super().execute(sql, *values)


# --- foreign files and odd names ----------------------------------------------------------------


def _database(*statements: str) -> Callable[[Path], None]:
    def make(file: Path) -> None:
        with plain(file) as other:
            for statement in statements:
                other.execute(statement)

    return make


_TABLE = "CREATE TABLE theirs (x)"
FOREIGN: dict[str, Callable[[Path], object]] = {
    "tables": _database(_TABLE),
    "application": _database("PRAGMA application_id = 7"),
    "application and tables": _database("PRAGMA application_id = 7", _TABLE),
    "version and tables": _database("PRAGMA user_version = 5", _TABLE),
    "our version and tables": _database("PRAGMA user_version = 1", _TABLE),
    "a view": _database("CREATE VIEW theirs AS SELECT 1"),
    "text": lambda file: file.write_bytes(b"no database, but long enough to be one\n" * 40),
}


ODD_NAMES = ("a b", "a#b", "a?b", "a%20b%", "größe-日本", "a'b&mode=ro", ":memory:", "file:x")


class Disguised:
    """A path-like object that is bytes within."""

    def __fspath__(self) -> bytes:
        return b"x"


OPENER = """\
import sys
sys.path.append(sys.argv[1])
from reconcile import Ledger
for line in sys.stdin.buffer:
    try:
        Ledger(line.decode().rstrip("\\n")).close()
        said = "opened"
    except Exception as error:
        said = repr(error)
    sys.stdout.write(said + "\\n")
    sys.stdout.flush()
"""


def elsewhere(call: Callable[[], object]) -> BaseException | None:
    """What a call raises in another thread."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0] if raised else None


# --- sources and refusals -----------------------------------------------------------------------

STATEMENT = re.compile(
    r"\s*(SELECT|INSERT|REPLACE|UPDATE|DELETE|PRAGMA|CREATE|DROP|BEGIN|COMMIT|ROLLBACK|WITH)\b"
)


def sources(*packages: str) -> list[Path]:
    found = [file for package in packages for file in sorted((ROOT / package).rglob("*.py"))]
    assert len(found) > 3 * len(packages), found
    return found


def every_refusal() -> list[type[errors.ReconcileError]]:
    found = [errors.ReconcileError]
    for kind in found:
        found += kind.__subclasses__()
    return found


def sample(kind: type[errors.ReconcileError]) -> errors.ReconcileError:
    """One refusal of this class, with data that a careless message would trip over."""
    given = dict(getattr(kind.__init__, "__annotations__", {}))
    given.pop("return", None)
    return kind(*(7 if "int" in str(t) else f"{{{n}}} x" for n, t in given.items()))


if __name__ == "__main__":
    unittest.main()
