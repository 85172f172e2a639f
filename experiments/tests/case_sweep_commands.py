"""The operator's sweep and list of open questions, as another process sees them."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from unittest import mock

from experiments.harness import oracle, worker
from experiments.harness.lab import Lab
from experiments.harness.shop import trading
from experiments.harness.supplier import IDENTITY
from experiments.tests.case_commands import CommandCase, Silent, run
from reconcile import Ledger, dispatch
from reconcile import __main__ as commands


class Deadline(Silent):
    """A receiver whose policy calls a person at once."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = replace(self.policy, deadline_ms=0)


class OpenQuestions(CommandCase):
    def test_obligations_tells_age_owner_deadline_and_next_step(self) -> None:
        """S1, S12: and that an owner says nothing of the outcome."""
        operation = self.make()
        self.answered(
            run("obligations", self.path),
            "open questions: 1\n",
            operation.operation_id,
            "state     unknown, version 2",
            "owner     nobody, which says nothing of the outcome",
            "deadline  none",
            "visits    none yet",
            "next      it is due for a visit now",
        )

    def test_a_sweep_without_a_supplier_asks_nobody_and_answers_nothing(self) -> None:
        """S2, S5: the honest stub; the question rests afterwards."""
        self.make()
        done = run("sweep", self.path, "--worker", "night shift")
        self.answered(done, "claimed 1: 0 resolved, 1 still unknown; 0 errors\n")
        again = run("sweep", self.path, "--worker", "night shift")
        self.answered(again, "claimed 0: 0 resolved, 0 still unknown; 0 errors\n")
        self.answered(
            run("obligations", self.path),
            "visits    1, the last came to: inconclusive",
            "next      the next visit is due at ",
        )

    def test_status_and_obligations_say_that_a_person_is_called(self) -> None:
        """S12: before any sweep noticed, and after one did; show keeps it in the history."""
        operation = self.make(receiver=Deadline())
        self.answered(run("status", self.path), "person    needed: its deadline has passed")
        done = run("sweep", self.path, "--worker", "night shift")
        self.answered(done, "a person is needed for 1 open question: see obligations\n")
        self.answered(run("status", self.path), "person    called at ", "its deadline has passed")
        self.answered(
            run("obligations", self.path), ", passed\n", "a person decides, or repairs what"
        )
        self.answered(
            run("show", self.path, operation.operation_id),
            "a person was called: its deadline has passed",
        )

    def test_bad_words_are_refused_in_one_line_and_change_nothing(self) -> None:
        """S2, S3: each names the thing."""
        self.make()
        before = oracle.dump(self.path)
        sweep = ("sweep", self.path, "--worker", "night shift")
        for words, says in (
            (("sweep", self.path), "--worker"),
            ((*sweep, "--url", "http://127.0.0.1:1"), "--supplier and --url"),
            ((*sweep, "--supplier", "lucy"), "--supplier and --url"),
            ((*sweep, "--batch", "ten"), "--batch"),
            ((*sweep, "--batch", "0"), "batch"),
            ((*sweep, "--scope", "acme"), "scope"),
            ((*sweep, "--scope", "a/b/c"), "nothing was ever sent in scope a / b / c"),
            (
                (*sweep, "--supplier", "l", "--url", "http://127.0.0.1:1", "--may-decide", "all"),
                "all",
            ),
        ):
            with self.subTest(words):
                self.refused(run(*words), says)
        self.assertEqual(oracle.dump(self.path), before)

    def test_progress_is_shown_on_a_terminal_alone(self) -> None:
        """S2: one line, rewritten, and taken away in the end."""
        self.make()

        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        shown = Terminal()
        with mock.patch.object(sys, "stderr", shown), redirect_stdout(io.StringIO()):
            status = commands.main(["sweep", str(self.path), "--worker", "night shift"])
        self.assertEqual(status, 0)
        self.assertIn("claimed 1: 0 resolved, 1 still unknown", shown.getvalue())
        self.assertTrue(shown.getvalue().endswith("\r\x1b[K"))


class SweepsOverHttp(CommandCase):
    def test_what_the_operator_lets_it_decide_is_decided_and_nothing_else(self) -> None:
        """S6, R10: the receipt is kept by the first sweep, and settles in the second."""
        with (
            Lab() as lab,
            trading(lab, options=("--drop-first-response",), policy=worker.ACCOUNT) as trade,
        ):
            with trade.ledger(clock=past) as ledger:
                order_id, claim = trade.ready(ledger)
                dispatch(ledger, order_id, trade.receiver(), claim=claim)
            file = trade.scene.sender
            at = ("--supplier", IDENTITY, "--url", trade.supplier.url)
            sweep = ("sweep", file, "--worker", "night shift", *at)
            self.answered(run(*sweep), "claimed 1: 0 resolved, 1 still unknown; 0 errors\n")
            with Ledger(file) as ledger, ledger.transaction() as tx:
                tx.execute("UPDATE obligation SET due_ms = 0 WHERE ended_ms IS NULL")
            done = run(*sweep, "--may-decide", "receipt")
            self.answered(done, "claimed 1: 1 resolved, 0 still unknown; 0 errors\n")
            self.assertEqual(trade.scene.states(), {"order": "confirmed"})


def past() -> int:
    """A moment before every process of today."""
    return 1_700_000_000_000
