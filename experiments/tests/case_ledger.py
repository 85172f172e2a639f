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
from experiments.harness.errand import LIMIT_MS, Errand
from experiments.harness.lab import BIRTH_MS
from experiments.harness.processes import ISOLATED, LIMIT_S, root_of
from experiments.harness.scene import Scene
from experiments.tests.base import ORDER, LabCase, LosesReceipt, LosesRequest
from experiments.tests.buying import (
    Answers,
    Forgets,
    Keyed,
    approved,
    open_shop,
    proposed,
    ready,
)
from reconcile import (
    Cause,
    DistinctNeed,
    Effect,
    Ledger,
    Snapshot,
    State,
    Transport,
    approve_compensation,
    close,
    dispatch,
    inquire,
    look,
    observe,
    prepare,
)
from reconcile.flows import mission, orders, settlement, shop, sweep, work
from reconcile.ledger.claims import OBLIGATION, TASK, WORK
from reconcile.rules import errors
from reconcile.rules.delivery import MAY_ARRIVE
from reconcile.rules.mission import MissionState, TaskState, work_of
from reconcile.rules.money import MONEY
from reconcile.rules.order import LONGEST_APPROVAL_MS, Basis
from reconcile.rules.receipts import Origin
from reconcile.rules.states import ENDED_WITHOUT_EFFECT, UNRESOLVED

ROOT = Path(root_of("reconcile"))
MAY_CHANGE = {
    "operation": {"state", "version", "effect_id"},
    "attempt": {"transport", "said"},
    "obligation": {"due_ms", "visits", "fruitless", "found", "repairs", "ended_ms"},
    "escalation": {"repaired_by", "reason", "repaired_ms"},
    "store": {"incarnation", "acts", "paused_why"},
    "work": {"cancelled_by", "reason", "cancelled_ms"},
    "claim": {"generation", "token", "incarnation", "owner", "claimed_ms", "expires_ms"},
    "approver": {"listed", "changed_ms"},
    "approval": {"revoked_by", "reason", "revoked_ms"},
    "mission": {
        *("contract_version", "world", "counts_from_ms", "revision", "state"),
        *("ended_by", "reason", "ended_ms"),
    },
}
"""Written here a second time. A table that is not named may not change at all."""

IDENTITY_COLUMNS = (
    *("number", "operation_id", "digest", "work_id", "target", "epoch", "kind", "payload"),
    *("compensates", "subject", "scope", "policy", "prepared_ms"),
)

TABLES = 36

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
                self.assertGreaterEqual(len(rows), 2 if table != "store" else 1)

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
        for table in oracle.dump(self.file):
            with self.subTest(table):  # the one row of the store has its number by a check, too
                covered = {"update", "update or replace"} if table == "store" else set()
                self.assertEqual(through[table], set(KINDS) - covered)

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
        self.assertEqual(rules, set(RULES) | MOVERS)

    def test_each_attack_is_refused_by_its_trigger_and_succeeds_without_it(self) -> None:
        """A2, O8, M2: operations and all that hangs on them, money, questions and missions."""
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
                other.execute(_receipt("open"))
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

    def test_a_need_that_was_declared_distinct_is_announced_beside_the_open_one(self) -> None:
        """O4: by name and reason; the trigger that refuses a second need asks for that."""
        with plain(self.file) as other:
            other.execute(_twin("open"))
            other.execute("INSERT INTO distinct_need VALUES (100, 'ada', 'two were wanted', 0)")
            self.assertEqual(other.execute(_announces("forged")).rowcount, 1)

    def test_no_second_row_of_the_store_is_let_in_by_check_or_seal(self) -> None:
        """O19: one row says of the file what it is."""
        with plain(self.file) as other:
            for number in ("1", "2", "0", "NULL"):
                for verb in ("INSERT", "REPLACE", "INSERT OR IGNORE"):
                    with suppress(sqlite3.IntegrityError):
                        other.execute(f"{verb} INTO store VALUES ({number}, 9, 9, NULL)")
            rows = other.execute("SELECT number, incarnation FROM store").fetchall()
        self.assertEqual(rows, [(1, 1)])

    def test_the_lists_in_the_file_are_the_enums(self) -> None:
        """A1, A2: CHECK lists stand written out, and say what the enums say."""
        with plain(self.file) as other:
            for table, column, values in (
                ("operation", "state", [member.value for member in State]),
                ("decision", "cause", [member.value for member in Cause]),
                ("attempt", "transport", [member.value for member in Transport]),
                ("receipt", "origin", [member.value for member in Origin]),
                ("approval", "basis", [member.value for member in Basis]),
                ("entry", "does", ["reserve", *dict.fromkeys(MONEY.values())]),
                ("claim", "what", [WORK, OBLIGATION, TASK]),
                ("mission", "state", [member.value for member in MissionState]),
                ("task_end", "state", [member.value for member in TaskState][1:]),
            ):
                with self.subTest(table):
                    self.assertEqual(listed(other, table, column), values)

    def test_the_lists_in_its_triggers_are_those_of_the_rules(self) -> None:
        """O4, O17, K3: what is unresolved, what ended without effect, what may be delivered."""
        with plain(self.file) as other:
            for name, column, states in (
                ("operation_unresolved", "state", UNRESOLVED),
                ("decision_announces_no_second_need", "o.state", UNRESOLVED),
                ("compensation_is_the_only_live_one", "c.state NOT", ENDED_WITHOUT_EFFECT),
                ("delivery_is_of_what_was_ordered", "o.state NOT", set(State) - MAY_ARRIVE),
            ):
                with self.subTest(name):
                    wanted = sorted(state.value for state in states)
                    self.assertEqual(sorted(listed(other, name, column)), wanted)

    def test_the_table_of_money_in_the_file_is_the_one_of_the_rules(self) -> None:
        """O6, O8: what becomes of held money is one table; what it omits stays held."""
        with plain(self.file) as other:
            rows = other.execute("SELECT state, does FROM money_move").fetchall()
        self.assertEqual(dict(rows), {state.value: does for state, does in MONEY.items()})
        self.assertEqual(dict(rows), SETTLES)

    def test_the_longest_approval_in_the_file_is_the_one_of_the_rules(self) -> None:
        """O5: a day, and not a millisecond more or none at all."""
        with plain(self.file) as other:
            for lasts_ms, lawful in (
                (LONGEST_APPROVAL_MS, True),
                (1, True),
                (LONGEST_APPROVAL_MS + 1, False),
                (0, False),
            ):
                grant = _grant("wanted").replace("3600000", str(lasts_ms))
                other.execute("BEGIN")
                with self.subTest(lasts_ms):
                    if lawful:
                        self.assertEqual(other.execute(grant).rowcount, 1)
                    else:
                        with self.assertRaisesRegex(sqlite3.IntegrityError, "CHECK"):
                            other.execute(grant)
                other.execute("ROLLBACK")


class TheJournalOfMoney(LabCase):
    """O8: what is held, spent and written off follows from the states, also by plain SQL."""

    def setUp(self) -> None:
        super().setUp()
        scene = self.lab.scene("journal", unsafe=True)
        populate(self, scene)
        self.file = scene.sender

    def test_the_journal_of_a_populated_file_adds_up_to_what_stands_in_it(self) -> None:
        """O5, O6, O8: one reservation for each approved order, one settlement for each end."""
        with plain(self.file) as other:
            found = other.execute(
                "SELECT o.work_id, o.state, e.does FROM entry e "
                "JOIN operation o ON o.number = e.operation ORDER BY e.number"
            ).fetchall()
            self.assertEqual(figures(other), (4500, 1500, 1500))
        wanted = []
        for name, state in (
            ("bought", "confirmed"),
            ("declined", "rejected"),
            ("botched", "failed"),
            ("lost", "unknown"),
            ("wanted", "prepared"),
            ("dropped", "revoked"),
            ("unclear", "prepared"),
        ):
            does = ["reserve", *([SETTLES[state]] if state in SETTLES else [])]
            wanted += [(name, state, word) for word in does]
        self.assertEqual(found, wanted)

    def test_a_decision_by_plain_sql_moves_its_money_in_the_same_statement(self) -> None:
        """O8, A2: to every state that an uncertain order can reach, once, and at its moment."""
        reached = set()
        with plain(self.file) as other:
            for target, cause in FROM_UNKNOWN:
                other.execute("BEGIN")
                other.execute(_receipt("lost"))
                before = figures(other)
                other.execute(decides("lost", target, cause).replace("'why', 0", "'why', 77"))
                does = SETTLES.get(target)
                with self.subTest(target, cause=cause):
                    self.assertEqual(figures(other), settled(before, does))
                    rows = other.execute(
                        f"SELECT does, amount, entered_ms FROM entry WHERE settles AND {LOST}"
                    ).fetchall()
                    self.assertEqual(rows, [(does, 1500, 77)] if does else [])
                reached.add(does)
                other.execute("ROLLBACK")
        self.assertEqual(reached, {None, "spend", "release", "write_off"})

    def test_without_its_trigger_a_decision_moves_no_money(self) -> None:
        """O8: so it is that trigger which moves it, and nothing in the library."""
        with plain(self.file) as other:
            other.execute("DROP TRIGGER operation_moves_its_money")
            before = figures(other)
            other.execute(decides("lost", "written_off", "authority"))
            self.assertEqual(figures(other), before)

    def test_a_draft_that_was_announced_by_plain_sql_still_holds_its_money(self) -> None:
        """O6: unknown and prepared hold, there and back again."""
        with plain(self.file) as other:
            before = figures(other)
            for target, cause in (("unknown", "announced"), ("prepared", "never_sent")):
                other.execute(decides("wanted", target, cause))
                self.assertEqual(figures(other), before)

    def test_an_order_that_went_through_several_states_is_settled_once(self) -> None:
        """O8: conflict, then an end by authority; no state after it moves money again."""
        with plain(self.file) as other:
            before = figures(other)
            for target, cause in (("conflict", "contradiction"), ("failed", "authority")):
                other.execute(decides("lost", target, cause))
            self.assertEqual(figures(other), settled(before, "write_off"))
            other.execute(_insert("incident", "number, version + 1, 'd', 'e', 0", "lost"))
            self.assertEqual(figures(other), settled(before, "write_off"))
            for does in ("spend", "release", "write_off"):
                with self.subTest(does), self.assertRaises(sqlite3.IntegrityError):
                    other.execute(_entry("lost", does))

    def test_an_order_is_never_settled_twice_even_if_no_trigger_stands(self) -> None:
        """O8: the key of the journal has one reservation and one settlement for each order."""
        with plain(self.file) as other:
            for name in triggers(other):
                other.execute(f"DROP TRIGGER {name}")
            for does in ("reserve", "release", "spend", "write_off"):
                with (
                    self.subTest(does),
                    self.assertRaisesRegex(sqlite3.IntegrityError, "UNIQUE"),
                ):
                    other.execute(_entry("bought", does))

    def test_no_figure_is_ever_negative_even_if_no_trigger_stands(self) -> None:
        """O8: by the checks of the database alone, each figure and the amount."""
        with plain(self.file) as other:
            for name in triggers(other):
                other.execute(f"DROP TRIGGER {name}")
            self.assertEqual(other.execute(JOURNAL_ROW, (1, 0, 0, 0)).rowcount, 1)
            other.execute("DELETE FROM entry WHERE currency = 'XXX'")
            for row in ((0, 1, 1, 1), (-1, 1, 1, 1), (1, -1, 0, 0), (1, 0, -1, 0), (1, 0, 0, -1)):
                with self.subTest(row), self.assertRaisesRegex(sqlite3.IntegrityError, "CHECK"):
                    other.execute(JOURNAL_ROW, row)

    def test_held_spent_and_written_off_money_all_count_against_the_ceiling(self) -> None:
        """O5, O8: the last reservation that fits fills it to the penny."""
        with plain(self.file) as other:
            for short, lawful in ((0, True), (1, False)):
                ceiling = sum(figures(other)) + 1500 - short
                other.execute("BEGIN")
                other.execute("INSERT INTO budget VALUES ('GBP', 9, ?, 0, 'eve', 0)", (ceiling,))
                with self.subTest(ceiling):
                    if lawful:
                        self.assertEqual(other.execute(_entry("idle")).rowcount, 1)
                    else:
                        with self.assertRaisesRegex(sqlite3.IntegrityError, "ceiling"):
                            other.execute(_entry("idle"))
                other.execute("ROLLBACK")

    def test_a_lowered_ceiling_keeps_no_order_from_being_settled(self) -> None:
        """O7: what happened is recorded, whatever may be spent today."""
        with plain(self.file) as other:
            other.execute("INSERT INTO budget VALUES ('GBP', 9, 0, 0, 'eve', 0)")
            before = figures(other)
            other.execute(_receipt("lost"))
            other.execute(decides("lost", "confirmed", "receipt"))
            self.assertEqual(figures(other), settled(before, "spend"))

    def test_each_currency_has_a_journal_of_its_own(self) -> None:
        """O5: a reservation in one moves no figure of another."""
        with plain(self.file) as other:
            before = figures(other)
            other.execute(_twin("idle", need="'a desk'"))
            other.execute(_purchase("forged", currency="EUR"))
            other.execute(_entry("forged"))
            self.assertEqual(figures(other), before)
            self.assertEqual(figures(other, "EUR"), (500, 0, 0))


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

    def test_the_moment_is_asked_for_after_the_wait_for_the_lock(self) -> None:
        """O7, O18: a rule that judged by a moment before it would let through what has ended."""
        happened: list[str] = []

        class Telling(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                happened.append(sql)
                return super().execute(sql, *values)

        def clock() -> int:
            happened.append("clock")
            return self.lab.clock()

        with self.scene.ledger(factory=Telling, clock=clock) as ledger:
            happened.clear()
            with ledger.transaction():
                self.assertEqual(happened, ["BEGIN IMMEDIATE", "clock"])

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
            self.assertEqual(len(tables(other)), TABLES)
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
        for version in (1, 99):
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
            there = [name, f"{name}.marker", "text", "text.marker"]
            self.assertEqual(sorted(p.name for p in folder.iterdir()), sorted(there))

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
    incident, a draft, one whose sender died, a kept one, one whose approval went stale, and
    purchases.
    """
    near = scene.near()
    with scene.ledger() as ledger:
        paid = case.unknown(scene, ledger, work_id="paid")
        confirm(ledger, scene, paid.operation_id)
        refund = approve(ledger, look(ledger, paid.operation_id))
        dispatch(ledger, refund.operation_id, near)

        case.unknown(scene, ledger, work_id="open")

        absent = intent(ledger, near, "absent")
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

        need = DistinctNeed(authorized_by="ada", reason="two were wanted")
        intent(ledger, near, "draft", distinct_need=need)

        cut = intent(ledger, near, "cut", distinct_need=need)
        with suppress(KeyboardInterrupt):
            dispatch(ledger, cut.operation_id, Interrupted(near))

        kept = intent(ledger, near, "kept")
        dispatch(ledger, kept.operation_id, near)

        stale = intent(ledger, near, "stale")
        dispatch(ledger, stale.operation_id, near)
        approve(ledger, look(ledger, stale.operation_id))
        there = near.snapshot(stale.query, close=True)
        observe(ledger, stale.operation_id, replace(there, effects=()))
        populate_questions(ledger, near)
        populate_orders(ledger, scene)
        populate_missions(ledger, scene)


def populate_questions(ledger: Ledger, near: library.Receiver) -> None:
    """Two questions that a person handed back, and a lane of another scope."""
    elsewhere = intent(ledger, near, "elsewhere", scope=("acme", "billing", "test"))
    dispatch(ledger, elsewhere.operation_id, LosesRequest(near))
    for question in library.open_questions(ledger):
        if question.work_id in ("open", "cut"):
            sweep.hand_back(ledger, question.operation_id, actor="ada", reason="it answers again")


def intent(ledger: Ledger, near: library.Receiver, work_id: str, **more: Any) -> library.Operation:
    """A draft about a subject of its own, since equivalent ones wait for each other."""
    changed = {"work_id": work_id, "subject": f"invoice of {work_id}", **more}
    return prepare(ledger, near, **{**ORDER, **changed})


def populate_orders(ledger: Ledger, scene: Scene) -> None:
    """Orders by the name of their work item and SKU: bought, declined, botched (failed), lost
    (unknown and asked about), wanted (approved), idle (no approval), dropped (revoked),
    cancelled, and one of unknown basis.
    """
    supplier = Keyed(scene.receiver_file)
    skus = ("bought", "declined", "botched", "lost", "wanted", "idle", "dropped", "cancelled")
    open_shop(ledger, supplier, skus=(*skus, "unclear"))
    shop.set_budget(ledger, currency="EUR", ceiling=99_000, set_by="ada")
    shop.list_approver(ledger, "bob", listed=False)
    for counted, sku in enumerate(("bought", "lost")):
        shop.count_stock(ledger, sku, counted)

    at: dict[str, library.Operation] = {}
    for name, by in (
        ("bought", supplier),
        ("declined", Answers(scene.receiver_file, "rejected")),
        ("botched", Answers(scene.receiver_file, "failed")),
        ("lost", Forgets(scene.receiver_file)),
    ):
        at[name], claim = ready(ledger, supplier, work_id=name, sku=name)
        dispatch(ledger, at[name].operation_id, by, claim=claim)
    for _ in range(2):
        inquire(ledger, at["lost"].operation_id, Forgets(scene.receiver_file))
    for number, of in enumerate(("bought", "lost")):
        settlement.deliver(
            ledger, at[of].operation_id, reference=f"van-{number}", quantity=1, actor="bob"
        )

    ready(ledger, supplier, work_id="wanted", sku="wanted")
    proposed(ledger, supplier, work_id="idle", sku="idle")
    dropped, _ = ready(ledger, supplier, work_id="dropped", sku="dropped")
    orders.revoke(ledger, dropped.operation_id, actor="ada", reason="too many")
    proposed(ledger, supplier, work_id="cancelled", sku="cancelled")
    work.cancel(ledger, "cancelled", actor="ada", reason="not wanted")
    unclear, _ = proposed(ledger, supplier, work_id="unclear", sku="unclear")
    approved(ledger, unclear, basis=Basis.UNKNOWN)


def populate_missions(ledger: Ledger, scene: Scene) -> None:
    """Missions by name: won (finished), lost (failed), ripe (all but finished), stuck (the same,
    over an unknown), lacking (verified with its task open), going (with a draft).
    """
    near = scene.near()
    at = {name: Errand(ledger, name) for name in MISSIONS}
    for name in ("won", "ripe"):
        at[name].done(near, subject=name)
    at["won"].finalize()
    mission.fail(ledger, "lost", by="ada", reason="no power")
    at["stuck"].done(LosesReceipt(near), subject="stuck")
    for name in ("lacking", "going"):  # it succeeds under the first contract, and is open again
        claim = at[name].begin()
        at[name].succeed(claim)
        mission.amend(ledger, name, contract={"now": 2}, seen=at[name].seen, by="ada")
        at[name].observe()
    at["lacking"].verify()
    at["going"].command(near, claim, subject="going")


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


def listed(other: sqlite3.Connection, name: str, column: str) -> list[str]:
    """The words of the list that a column of a table, an index or a trigger is compared with."""
    found = re.search(rf"\b{column} IN \((.*?)\)", sql_of(other, name), re.DOTALL)
    assert found is not None, name
    return re.findall(r"'(\w+)'", found[1])


def figures(other: sqlite3.Connection, currency: str = "GBP") -> tuple[int, int, int]:
    """Reserved, spent and written off, as the newest entry of a currency says."""
    row = other.execute(
        "SELECT reserved, spent, written_off FROM entry WHERE currency = ? "
        "ORDER BY number DESC LIMIT 1",
        (currency,),
    ).fetchone()
    return row[0], row[1], row[2]


def settled(before: tuple[int, int, int], does: str | None) -> tuple[int, int, int]:
    """The figures once an order of 1500 is settled like this; None: it is not."""
    reserved, spent, written_off = before
    return (
        reserved - (1500 if does else 0),
        spent + (1500 if does == "spend" else 0),
        written_off + (1500 if does == "write_off" else 0),
    )


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
        f"INSERT INTO compensation SELECT {compensation}, number, {effect}, {ordinal}, {version}, "
        f"'eve', 0 FROM operation WHERE work_id = '{original}'"
    )


def _of(work_id: str) -> str:
    return f"operation = (SELECT number FROM operation WHERE work_id = '{work_id}')"


def _insert(table: str, values: str, work_id: str) -> str:
    return f"INSERT INTO {table} SELECT {values} FROM operation WHERE work_id = '{work_id}'"


def _twin(work_id: str, *, supplier: str = "target", need: str = "subject") -> str:
    """One more draft that meets the need of another, at the same receiver."""
    return (
        f"INSERT INTO operation SELECT 100, 'forged', digest, 'forged', {supplier}, epoch, kind, "
        f"payload, NULL, {need}, scope, policy, prepared_ms, 'prepared', 1, NULL "
        f"FROM operation WHERE work_id = '{work_id}'"
    )


def _purchase(work_id: str, *, sku: str = "subject", currency: str = "GBP") -> str:
    return _insert("purchase", f"number, {sku}, 1, 500, '{currency}', 500", work_id)


def _grant(
    work_id: str,
    *,
    digest: str = "digest",
    basis: str = "operator",
    actor: str = "ada",
    revoked: str = "NULL",
    since_ms: int = 0,
) -> str:
    """One more approval of an order, an hour long."""
    ends_ms, by = since_ms + 3_600_000, "NULL" if revoked == "NULL" else "'eve'"
    return _insert(
        "approval",
        f"number, 9, {digest}, '{basis}', '{actor}', {since_ms}, {ends_ms}, {by}, {by}, {revoked}",
        work_id,
    )


def _announces(work_id: str, at_ms: int = 1) -> str:
    return decides(work_id, "unknown", "announced").replace("'why', 0 ", f"'why', {at_ms} ")


def _entry(
    work_id: str,
    does: str = "reserve",
    *,
    number: str = "1 + coalesce(max(e.number), 0)",
    currency: str = "p.currency",
    amount: str = "p.amount",
    odd: tuple[str, str, str] = ("0", "0", "0"),
) -> str:
    """The next entry of the journal for an order, with each sum as odd as is said."""
    signs = {"reserve": "+", "spend": "-", "release": "-", "write_off": "-"}
    sums = ", ".join(
        f"coalesce((SELECT {figure} FROM entry WHERE currency = {currency} "
        f"ORDER BY number DESC LIMIT 1), 0) {change} + {more}"
        for figure, change, more in zip(
            ("reserved", "spent", "written_off"),
            (
                f"{signs[does]} {amount}",
                f"+ {amount}" if does == "spend" else "",
                f"+ {amount}" if does == "write_off" else "",
            ),
            odd,
            strict=True,
        )
    )
    return (
        f"INSERT INTO entry SELECT {currency}, {number}, o.number, {int(does != 'reserve')}, "
        f"'{does}', {amount}, {sums}, 0 "
        "FROM operation o JOIN purchase p ON p.operation = o.number "
        f"LEFT JOIN entry e ON e.currency = {currency} WHERE o.work_id = '{work_id}' "
        "GROUP BY o.number"
    )


def _receipt(work_id: str) -> str:
    return _insert("receipt", "number, 1, 'lookup', NULL, NULL, NULL, '{}', 0", work_id)


def _delivers(work_id: str, quantity: int) -> str:
    return _insert("delivery", f"'a bike', number, {quantity}, 'eve', 0", work_id)


_QUESTION = "number, 2, 1, 1, 0, NULL, 0, 0, 0, NULL, 0, {}"
_CALL = "number, 1, 7, 'w', 0, {}"
_MOVE = "UPDATE operation SET {} WHERE work_id = 'open'"
_PAUSES = "UPDATE store SET paused_why = 'a copy'"
_CANCELS = "UPDATE work SET cancelled_by = 'eve', reason = 'r', cancelled_ms = 1 WHERE work_id = "

MISSIONS = ("won", "lost", "ripe", "stuck", "lacking", "going")
GOING = work_of("going", "start")
_OF_GOING = f"work_id = '{GOING}'"
LATELY_MS = BIRTH_MS + LIMIT_MS // 2  # while everything that was seen counts


def _mission(name: str, *changes: str) -> str:
    """The next revision of a mission, or another one if it is said."""
    said = (
        changes if any("revision" in c for c in changes) else (*changes, "revision = revision + 1")
    )
    return f"UPDATE mission SET {', '.join(said)} WHERE name = '{name}'"


def _finishes(name: str, *changes: str, at_ms: int = LATELY_MS) -> str:
    ends = ("state = 'finished'", "ended_by = 'eve'", f"ended_ms = {at_ms}")
    return _mission(name, *ends, *changes)


def _in(name: str, table: str, values: str) -> str:
    """One more row of a mission (m) with its task (t)."""
    return (
        f"INSERT INTO {table} SELECT {values} FROM mission m JOIN task t ON t.mission = m.number "
        f"WHERE m.name = '{name}'"
    )


def _opens(state: str = "'running'", counts: str = "1, 1, 1", ended: str = "NULL") -> str:
    by = "NULL" if ended == "NULL" else "'eve'"
    version, world, revision = counts.split(", ")
    moves = f"{version}, {world}, 0, {revision}"
    return f"INSERT INTO mission VALUES (100, 'x', 0, {moves}, {state}, {by}, NULL, {ended})"


_ENDED = ("ended_by", "ended_ms", "reason")
_WORD = "m.number, {}, 'eve', {}, 'h', {}, 0"
_AGAIN = _mission("ripe", "state = 'verifying'")
_SEES = "t.number, {seen}, {version}, {world}, 'r', 'd', 'eve', {at}"
_NEXT = "1 + (SELECT count(*) FROM sighting WHERE task = t.number)"
_NOW = {
    **{"seen": _NEXT, "version": "m.contract_version", "world": "m.world"},
    **{"at": "m.counts_from_ms"},
}
_GIVES_UP = "t.number, {version}, 'failed', NULL, NULL, 'why', 'eve', 0"
_TODAY = _GIVES_UP.format(version="m.contract_version")
_STRAY = (
    f"INSERT INTO operation SELECT 100, 'forged', digest, '{GOING}', target, epoch, kind, "
    "payload, NULL, 'stray', scope, policy, prepared_ms, 'prepared', 1, NULL FROM operation "
    "WHERE work_id = 'draft'"
)


RULES: dict[str, tuple[tuple[str, ...], ...]] = {
    "legal_move_is_complete": (
        ("INSERT INTO legal_move VALUES ('confirmed', 'prepared', 'authority')",),
    ),
    "money_move_is_complete": (("INSERT INTO money_move VALUES ('unknown', 'release')",),),
    "store_only_grows_older": (
        ("UPDATE store SET incarnation = incarnation - 1",),
        ("UPDATE store SET acts = acts - 1",),
        (_PAUSES, "UPDATE store SET paused_why = NULL"),
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
    "decision_moves_no_paused_store": (
        (_PAUSES, decides("open", "written_off", "authority")),
        (_PAUSES, _announces("draft")),
    ),
    "decision_announces_no_second_need": ((_twin("open"), _announces("forged")),),
    "decision_announces_what_is_admitted": (
        (_announces("idle"),),  # no approval at all
        (_grant("idle"), _announces("idle")),  # no money is held
        (_announces("wanted", 2**62),),  # the approval ended
        (_CANCELS + "'wanted'", _announces("wanted")),
        (_grant("wanted", basis="unknown"), _announces("wanted")),
        (  # the last one counts
            _grant("wanted"),
            "UPDATE approval SET revoked_by = 'eve', reason = 'r', revoked_ms = 1 "
            f"WHERE ordinal = 9 AND {_of('wanted')}",
            _announces("wanted"),
        ),
        (_announces("unclear"),),
    ),
    "decision_announces_what_is_bound": (
        (  # no approval at all
            _compensation("kept"),
            decides("forged", "unknown", "announced"),
        ),
        (  # approved, and the original moved since
            "INSERT INTO decision SELECT c.number, 2, 'prepared', 'unknown', 'announced', 'eve', "
            "NULL, NULL, NULL, NULL, NULL, 0 FROM operation c JOIN compensation a "
            "ON a.operation = c.number JOIN operation o ON o.number = a.original "
            "WHERE o.work_id = 'stale'",
        ),
    ),
    "incident_is_lawful": (
        (_insert("incident", "number, version + 1, 'd', 'e', 0", "open"),),
        (_insert("incident", "number, version + 1, 'd', 'e', 0", "draft"),),
    ),
    "compensation_binds_a_confirmed_effect": (
        (_compensation("open", "'e'"), _approval("open", "'e'")),  # not confirmed
        (_compensation("kept"), _approval("kept", version="version - 1")),
        (_compensation("kept"), _approval("kept", version="version + 1")),
        (_compensation("kept", "'e'"), _approval("kept", "'e'")),  # not its effect
        (_compensation("kept", "'e'"), _approval("kept")),  # amends another effect
        (  # sent already
            _compensation("kept"),
            _approval("kept", ordinal=1),
            decides("forged", "unknown", "announced"),
            "DROP TRIGGER compensation_is_the_only_live_one",
            "DROP TRIGGER compensation_is_not_replaced",
            "DROP TRIGGER compensation_is_not_removed",
            "DELETE FROM compensation WHERE operation = 100",
            _approval("kept"),
        ),
    ),
    "compensation_is_the_only_live_one": (
        (_compensation("paid"), _approval("paid")),
        (_compensation("stale"), _approval("stale")),
    ),
    "attempt_follows_its_announcement": (
        (_insert("attempt", "number, 1, 0, NULL, NULL", "draft"),),
        (_insert("attempt", "number, 2, 0, NULL, NULL", "kept"),),
        (_insert("attempt", "number, 2, 0, 'sent', NULL", "open"),),
    ),
    "attempt_follows_no_close": (
        (
            _insert("close_request", "number, 1, 'p', 'eve', 0", "open"),
            _insert("attempt", "number, 2, 0, NULL, NULL", "open"),
        ),
        (_PAUSES, _insert("attempt", "number, 2, 0, NULL, NULL", "open")),
    ),
    "attempt_ends_once": (
        (f"UPDATE attempt SET transport = 'not_sent' WHERE {_of('open')}",),
        (f"UPDATE attempt SET transport = NULL WHERE {_of('open')}",),
    ),
    "obligation_is_the_only_open_one": (
        (_insert("obligation", _QUESTION.format("NULL"), "open"),),
    ),
    "obligation_begins_with_unknown": (
        (_insert("obligation", _QUESTION.format("NULL"), "paid"),),
        (_insert("obligation", _QUESTION.format("1"), "paid"),),
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
    "obligation_counts_only_rise": (
        (
            f"UPDATE obligation SET visits = 2 WHERE {_of('open')}",
            f"UPDATE obligation SET visits = 1 WHERE {_of('open')}",
        ),
        (f"UPDATE obligation SET repairs = 0 WHERE {_of('open')}",),
        (
            f"UPDATE obligation SET fruitless = 2 WHERE {_of('open')}",
            f"UPDATE obligation SET fruitless = 0 WHERE {_of('open')}",
        ),
    ),
    "escalation_calls_once": (
        (_insert("escalation", _CALL.format("NULL, NULL, NULL"), "paid"),),
        (_insert("escalation", _CALL.format("'eve', 'r', 1"), "open"),),
        (
            _insert("escalation", _CALL.format("NULL, NULL, NULL"), "open"),
            _insert("escalation", _CALL.format("NULL, NULL, NULL").replace("7", "8"), "open"),
        ),
    ),
    "escalation_is_answered_once": (
        (f"UPDATE escalation SET repaired_by = 'eve' WHERE {_of('open')}",),
    ),
    "claim_generations_only_rise": (
        ("UPDATE claim SET generation = 0 WHERE item = 'lost'",),
        ("UPDATE claim SET token = 'mine' WHERE item = 'lost'",),
        ("UPDATE claim SET owner = 'eve' WHERE item = 'lost'",),
        ("UPDATE claim SET incarnation = 9 WHERE item = 'lost'",),
        ("UPDATE claim SET generation = 9 WHERE item = 'lost'",),
    ),
    "work_is_cancelled_once": (
        ("UPDATE work SET cancelled_by = 'eve' WHERE work_id = 'cancelled'",),
        (
            "UPDATE work SET cancelled_by = NULL, reason = NULL, cancelled_ms = NULL "
            "WHERE work_id = 'cancelled'",
        ),
    ),
    "purchase_is_of_a_draft": (
        (_purchase("open"),),
        (_purchase("kept"),),
        (_purchase("draft", sku="'another'"),),
        (  # never sent, and a draft again, at version 3
            _announces("draft"),
            decides("draft", "prepared", "never_sent"),
            _purchase("draft"),
        ),
    ),
    "approval_names_its_digest": (
        (_grant("wanted", digest="'another'"),),
        (_grant("wanted", actor="bob"),),
        (_grant("wanted", actor="nobody"),),
        (_grant("wanted", revoked="1"),),
        (_grant("bought"),),
        (_grant("dropped"),),
    ),
    "approval_is_revoked_once": (
        (f"UPDATE approval SET revoked_by = 'eve' WHERE {_of('dropped')}",),
        (
            "UPDATE approval SET revoked_by = NULL, reason = NULL, revoked_ms = NULL "
            f"WHERE {_of('dropped')}",
        ),
    ),
    "entry_follows_the_last": (
        (_entry("idle", number="2 + max(e.number)"),),
        (_entry("idle", number="0"),),
    ),
    "entry_is_of_its_order": (
        (_entry("idle", amount="(p.amount - 1)"),),
        (_entry("idle", currency="'EUR'"),),
    ),
    "entry_adds_up": (
        (_entry("idle", odd=("1", "0", "0")),),
        (_entry("idle", odd=("-1", "0", "0")),),
        (_entry("idle", odd=("0", "-1", "0")),),
        (_entry("idle", odd=("0", "0", "-1")),),
        (  # the first of its currency
            _twin("idle", need="'a desk'"),
            _purchase("forged", currency="EUR"),
            _entry("forged", odd=("-1", "0", "0")),
        ),
    ),
    "entry_reserves_within_the_ceiling": (
        (_entry("cancelled"),),  # revoked: no draft any more
        ("INSERT INTO budget VALUES ('GBP', 9, 8999, 0, 'eve', 0)", _entry("idle")),
        (  # no budget at all
            _twin("idle", need="'a desk'"),
            _purchase("forged", currency="JPY"),
            _entry("forged"),
        ),
    ),
    "entry_settles_as_the_state_says": (
        (_entry("lost", "spend"),),
        (_entry("lost", "release"),),
        (_entry("lost", "write_off"),),
        (_entry("wanted", "release"),),
        (_entry("cancelled", "release"),),  # revoked, and nothing was ever held for it
        (  # the state says another settlement
            "DROP TRIGGER operation_moves_its_money",
            _receipt("lost"),
            decides("lost", "confirmed", "receipt"),
            _entry("lost", "release"),
        ),
    ),
    "delivery_is_of_what_was_ordered": (
        (_delivers("dropped", 1),),
        (_delivers("declined", 1),),
        (_delivers("wanted", 1),),
        (_delivers("bought", 3),),  # of three one has arrived
    ),
    "mission_begins_running": (
        (_opens("'verifying'"),),
        (_opens("'finished'", ended="1"),),
        *((_opens(counts=counts),) for counts in ("2, 1, 1", "1, 2, 1", "1, 1, 2")),
    ),
    "mission_ends_once": tuple(
        (_mission(name, "state = 'running'", *(f"{c} = NULL" for c in _ENDED)),)
        for name in ("won", "lost")
    ),
    "mission_counts_rise": (
        (_mission("going", "revision = revision"),),
        (_mission("going", "revision = revision + 2"),),
        (_mission("going", "world = world - 1"),),
        (_mission("going", "contract_version = 1"),),
    ),
    "mission_has_its_contract": (
        (_mission("going", "contract_version = 3"),),
        (
            "DROP TRIGGER contract_begins_the_work_again",
            _in("ripe", "contract", "m.number, 2, '{}', 'eve', 0"),
            _mission("ripe", "contract_version = 2"),
        ),
    ),
    "mission_finishes_when_verified": (
        (_mission("ripe", "state = 'running'"), _finishes("ripe")),
        (_in("ripe", "verification", _WORD.format(2, 0, "m.revision")), _finishes("ripe")),
        (_in("ripe", "verification", _WORD.format(2, 1, "m.revision")), _AGAIN, _finishes("ripe")),
        (_finishes("ripe", "world = world + 1"),),
        (_PAUSES, _finishes("ripe")),
    ),
    "mission_finishes_on_what_was_seen": (
        (_finishes("ripe", at_ms=1),),
        (_finishes("ripe", at_ms=BIRTH_MS + 2 * LIMIT_MS),),
        (
            _mission("ripe", "world = world + 1"),
            _in("ripe", "verification", _WORD.format(2, 1, "m.revision")),
            _finishes("ripe"),
        ),
    ),
    "mission_finishes_with_its_tasks": ((_finishes("lacking"),),),
    "mission_finishes_over_no_unknown": ((_finishes("stuck"),),),
    "contract_follows_the_last": (
        (
            "DROP TRIGGER mission_has_its_contract",
            _in("going", "contract", "m.number, 4, '{}', 'eve', 0"),
        ),
        (
            "DROP TRIGGER contract_begins_the_work_again",
            _in("won", "contract", "m.number, 2, '{}', 'eve', 0"),
        ),
    ),
    "task_begins_without_operations": (
        ("INSERT INTO task VALUES (100, 1, 'x', 1, 1, 'open', 1)",),
    ),
    "sighting_is_of_this_world": (
        (_in("going", "sighting", _SEES.format(**{**_NOW, "seen": f"1 + {_NEXT}"})),),
        (_in("going", "sighting", _SEES.format(**{**_NOW, "version": "1"})),),
        (_in("ripe", "sighting", _SEES.format(**{**_NOW, "world": "1"})),),
        (_in("ripe", "sighting", _SEES.format(**{**_NOW, "at": "m.counts_from_ms - 1"})),),
        (_in("won", "sighting", _SEES.format(**_NOW)),),
    ),
    "evidence_comes_before_its_end": (
        (_in("ripe", "evidence", "t.number, m.contract_version, 9, 'r', 'd'"),),
    ),
    "task_end_is_of_running_work": (
        (_in("lacking", "task_end", _TODAY),),
        (_in("going", "task_end", _GIVES_UP.format(version="9")),),
        (_in("lost", "task_end", _TODAY),),
    ),
    "task_end_has_its_evidence": (
        (_in("going", "task_end", "t.number, 2, 'succeeded', 'c', 'd', NULL, 'eve', 0"),),
    ),
    "verification_is_of_its_mission": (
        (_in("going", "verification", _WORD.format(1, 1, "m.revision")),),
        (_in("ripe", "verification", _WORD.format(9, 1, "m.revision")),),
        (_in("ripe", "verification", _WORD.format(2, 1, "m.revision - 1")),),
    ),
    "decision_announces_what_its_mission_saw": (
        (_announces(GOING),),
        (_announces(GOING, BIRTH_MS + 2 * LIMIT_MS),),
        (_mission("going", "state = 'verifying'"), _announces(GOING, LATELY_MS)),
        (_mission("going", "world = world + 1"), _announces(GOING, LATELY_MS)),
        (_in("going", "task_end", _TODAY), _announces(GOING, LATELY_MS)),
        (  # seen under another contract, and commanded under this one
            _in("going", "contract", "m.number, 3, '{}', 'eve', 0"),
            f"INSERT INTO command SELECT number, 3, 'eve', 0 FROM operation WHERE {_OF_GOING}",
            _announces(GOING, LATELY_MS),
        ),
        (  # commanded under another contract, and seen under this one
            _in("going", "contract", "m.number, 3, '{}', 'eve', 0"),
            _in("going", "sighting", _SEES.format(**{**_NOW, "at": LATELY_MS})),
            _announces(GOING, LATELY_MS),
        ),
        (  # nobody commanded it
            _STRAY,
            _announces(GOING, LATELY_MS).replace(_OF_GOING, "number = 100"),
        ),
    ),
}
"""Each trigger with its attacks: a way is one statement, or several of which the last attacks."""

MOVERS = {
    "decision_moves",
    "incident_raises_the_version",
    "operation_moves_its_money",
    "contract_begins_the_work_again",
    "operation_joins_its_task",
    "compensation_joins_its_task",
    "attempt_changes_the_world",
    "operation_changes_the_world",
}
"""They refuse nothing: each has a test of its own that drops it."""

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

SETTLES = {
    "confirmed": "spend",
    "rejected": "release",
    "not_applied": "release",
    "revoked": "release",
    "written_off": "write_off",
    "failed": "write_off",
}
"""What ends do to held money, by section 4 of the design, written here a second time."""

FROM_UNKNOWN = [(target, cause) for source, target, cause in sorted(LEGAL) if source == "unknown"]
LOST = _of("lost")
JOURNAL_ROW = "INSERT INTO entry VALUES ('XXX', 1, 999, 0, 'reserve', ?, ?, ?, ?, 0)"

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
    "our version and tables": _database("PRAGMA user_version = 2", _TABLE),
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
