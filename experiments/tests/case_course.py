"""The course: every chapter has its shape, every number its source, every listing its file."""

from __future__ import annotations

import ast
import importlib
import io
import json
import re
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from experiments import CHAPTERS
from experiments.first_order import buy_vanilla, open_shop
from experiments.first_use import order_vanilla
from experiments.harness import command, compare, oracle
from experiments.harness.supplier import Supplier
from experiments.report.tables import where_it_broke
from experiments.tests.base import LabCase
from reconcile import State
from reconcile.ledger.store import SQLITE_FLOOR

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = (
    "Incident",
    "Observable result",
    "Predict",
    "Run",
    "Read",
    "Break it",
    "What this does not show",
    "Exercises",
    "Words",
    "Sources",
)
WORDS = (
    "requested",
    "sending",
    "accepted",
    "pending",
    "succeeded",
    "rejected",
    "failed",
    "known failed",
    "authoritatively absent",
    "partially succeeded",
    "outcome unknown",
    "in doubt",
    "reconciliation conflict",
    "administratively resolved",
    "written off",
    "permanently indeterminate",
    "delivered",
    "revoked",
)
BOUND = re.compile(r"`([^`]+)` = (\[[^\]]*\]|\"[^\"]*\"|[\w.-]*\w)")


class Chapters(unittest.TestCase):
    def test_every_chapter_has_its_sections_in_order(self) -> None:
        """C1: from the incident to the sources, and none is empty."""
        for name in CHAPTERS:
            found = [
                head for head in re.findall(r"^(\w[^\n]*)$", doc(name), re.M) if head in SECTIONS
            ]
            self.assertEqual(found, list(SECTIONS), name)
            for head in SECTIONS:
                self.assertTrue(section(name, head).strip(), f"{name}: {head} is empty")

    def test_every_prediction_has_a_wrong_option_that_names_its_misconception(self) -> None:
        """C1: three to five questions, each with a right answer and a misconception."""
        for name in CHAPTERS:
            questions = re.split(r"^\s+\d\. ", section(name, "Predict"), flags=re.M)[1:]
            self.assertIn(len(questions), (3, 4, 5), name)
            for question in questions:
                options = re.split(r"^\s+\([a-z]\) ", question, flags=re.M)[1:]
                named = [option for option in options if "*Misconception: " in option]
                self.assertEqual(len(options) - len(named), 1, f"{name}: {question}")

    def test_every_step_names_a_file_and_a_function_that_exist(self) -> None:
        """C1: a reader who follows a step arrives."""
        for name in CHAPTERS:
            steps = re.findall(r"`([\w/]+\.(?:py|sql))`\s+`(\w+)`", section(name, "Read"))
            self.assertGreaterEqual(len(steps), 4, name)
            for file, function in steps:
                self.assertIn(function, defined(ROOT / file), f"{name}: {file}")

    def test_the_command_of_every_chapter_is_one_that_the_runner_takes(self) -> None:
        """C1: what stands under Run can be typed."""
        for name in CHAPTERS:
            words = section(name, "Run").split()
            self.assertEqual(words[:2], ["python3", "run_experiment.py"])
            asked = command.parser().parse_args(words[2:])
            self.assertIn(name, [*asked.names, asked.show])

    def test_every_number_of_a_chapter_is_read_from_the_results(self) -> None:
        """C2: each `key` = value is the one in results.json, and no digit stands free."""
        for name in CHAPTERS:
            for head in ("Observable result", "Break it"):
                text = " ".join(section(name, head).split())
                for key, value in BOUND.findall(text):
                    self.assertEqual(at(results()[name], key), json.loads(value), f"{name}: {key}")
                free = BOUND.sub("", text)
                self.assertFalse(
                    re.findall(r"\d", free), f"{name}: a number without a source: {free}"
                )

    def test_a_changed_number_is_noticed(self) -> None:
        """C2: the check above can fail."""
        ((key, value),) = BOUND.findall("`effects.charge` = 2")
        self.assertNotEqual(at(results()["e01_lost_receipt"], key), json.loads(value))

    def test_every_twin_of_the_issue_is_played(self) -> None:
        """C1: each chapter breaks it on purpose, and names the habit."""
        twins = {twin for name in CHAPTERS for twin in results()[name]["twin"]}
        self.assertLessEqual(
            {
                "blind retry",
                "timeout means failed",
                "timeout means done",
                "empty means absent",
                "first match is final",
                "status flip",
                "forgotten close",
                "new identity",
                "release on timeout",
                "green status",
                "conflict is failure",
                "plain file copy",
            },
            twins,
        )


class Readme(unittest.TestCase):
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    def test_the_output_shown_is_what_the_runner_prints(self) -> None:
        """C2: made again from results.json by the runner's own printing."""
        with mock.patch.object(command, "results_of", lambda names, keep: results()):
            printed = io.StringIO()
            with redirect_stdout(printed):
                self.assertEqual(command.main([], results=ROOT / "results.json"), 0)
        self.assertEqual(fenced(self.text, "output: run_experiment.py"), printed.getvalue())

    def test_every_listing_is_cut_from_a_file_that_runs(self) -> None:
        """C2: to the letter."""
        cuts = re.findall(r"<!-- (cut: (\S+) (\w+)) -->", self.text)
        self.assertTrue(cuts)
        for mark, file, function in cuts:
            self.assertEqual(fenced(self.text, mark), source_of(ROOT / file, function))
        self.assertEqual(len(cuts), self.text.count("```python"))

    def test_the_table_of_evidence_is_made_from_the_results(self) -> None:
        """C2: where it broke, evidence, verdict."""
        self.assertIn(
            "<!-- table: where_it_broke -->\n" + where_it_broke(results()) + "\n", self.text
        )

    def test_no_number_of_its_prose_stands_without_a_source(self) -> None:
        """C2: outside listings and tables, only versions have digits, and those are checked."""
        prose = re.sub(
            r"```.*?```|<!--.*?-->|`[^`]*`|^\|[^\n]*$|^\d+\.|\(experiments/\w+\.py\)",
            "",
            self.text,
            flags=re.S | re.M,
        )
        floor = ".".join(map(str, SQLITE_FLOOR[:2]))
        self.assertEqual(sorted(set(re.findall(r"\d[\d.]*\d|\d", prose))), ["3.10", floor])

    def test_every_outcome_word_of_the_field_has_one_of_our_states(self) -> None:
        """P9: each word once, mapped to a state or recorded apart."""
        table = self.text.split("<!-- table: outcome words -->")[1].split("\n\n")[0]
        rows = re.findall(r"^\| ([\w ]+) \| `?([\w ]+?)`? \|$", table, re.M)[1:]
        self.assertEqual(sorted(word for word, _ in rows), sorted(WORDS))
        allowed = {state.value for state in State} | {"recorded apart"}
        self.assertLessEqual({ours for _, ours in rows}, allowed)

    def test_the_list_of_what_it_is_not_is_complete(self) -> None:
        """P8: every limit is named."""
        (limits,) = re.findall(r"^## Not …\n(.*?)^## ", self.text, re.M | re.S)
        limits = " ".join(limits.split())
        for word in (
            "real service",
            "credentials",
            "customers",
            "money",
            "model",
            "tokens",
            "partition",
            "power loss",
            "disk corruption",
            "consensus",
            "third party",
            "names of people",
            "evidence flags",
            "payload text",
            "file access",
            "signed",
            "tamper-proof",
            "replicated service",
            "closing read",
            "no refund",
            "e-mail",
            "live provider",
            "exactly-once",
            "lost intents",
            "dishonest adapters",
            "expired keys",
            "killed worker",
            "benchmark",
            "synthetic",
        ):
            self.assertIn(word, limits)

    def test_every_chapter_and_module_it_names_exists(self) -> None:
        """C2: and every chapter is named, in reading order."""
        self.assertEqual(tuple(re.findall(r"\]\(experiments/(\w+)\.py\)", self.text)), CHAPTERS)
        tour = self.text.split("## The modules")[1].split("\n## ")[0]
        named = set(re.findall(r"`(?:[\w/]+/)?(\w+\.py)`", tour))
        shipped = {path.name for path in (ROOT / "reconcile").rglob("*.py")} - {"__init__.py"}
        self.assertEqual(shipped - named, set(), "the tour leaves out")
        items = re.split(r"^\d+\. ", tour, flags=re.M)[1:]
        self.assertTrue(items)
        for item in items:
            folder = ROOT
            for name in re.findall(r"`([\w/]+(?:\.py|\.sql|/))`", item):
                path = ROOT / name if "/" in name else folder / name
                self.assertTrue(path.exists(), name)
                folder = path.parent


class FirstUse(LabCase):
    def test_the_first_program_of_the_readme_orders_once_and_says_what_is_known(self) -> None:
        """C2: its listing runs: not established, then nothing is sent; elsewhere confirmed."""
        scene, other = self.lab.scene("lost"), self.lab.scene("answered")
        said = order_vanilla(scene.sender, scene.receiver(crash="after_commit"), 6)
        self.assertEqual(said, "not established; now: query, close, escalate")
        said = order_vanilla(scene.sender, scene.receiver(), 6)
        self.assertEqual(said, "already unknown; nothing was sent")
        self.assertEqual(sum(scene.effects().values()), 1)
        self.assertEqual(order_vanilla(other.sender, other.receiver(), 6), "confirmed")

    def test_the_first_order_of_the_readme_is_asked_about_and_spends_once(self) -> None:
        """C2, O9, O14: its answer is dropped; one lookup settles, and again nothing is sent."""
        folder = self.lab.scene().sender.parent
        store = folder / "store.db"
        open_shop(store)
        options = ("--drop-first-response",)
        with Supplier(folder / "supplier.db", options=options) as supplier:
            for _ in range(2):
                said = buy_vanilla(store, supplier.receiver(), 6)
                self.assertEqual(said, "confirmed; 0 reserved, 1500 spent")
        asked = [request for request, _ in oracle.contacts(folder / "supplier.db")]
        self.assertEqual(asked, ["apply", "lookup"])


def doc(name: str) -> str:
    text = importlib.import_module(f"experiments.{name}").__doc__
    assert text is not None
    return text


def section(name: str, head: str) -> str:
    """The text under one heading of a chapter."""
    after = doc(name).split(f"\n{head}\n", 1)[1]
    return re.split(rf"^(?:{'|'.join(SECTIONS)})$", after, maxsplit=1, flags=re.M)[0]


def defined(file: Path) -> set[str]:
    """The names of every function, class and table in a file, or of every trigger in a script."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".sql":
        return set(re.findall(r"CREATE TRIGGER (\w+)", text))
    nodes = list(ast.walk(ast.parse(text)))
    return {
        *(node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))),
        *(node.id for node in nodes if isinstance(node, ast.Name) and node.id.isupper()),
    }


def source_of(file: Path, function: str) -> str:
    """One function of a file, to the letter."""
    text = file.read_text(encoding="utf-8")
    (node,) = (
        n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == function
    )
    return "\n".join(text.split("\n")[node.lineno - 1 : node.end_lineno]) + "\n"


def fenced(text: str, mark: str) -> str:
    """The block between fences that follows a mark."""
    return re.split(r"```\w*\n", text.split(f"<!-- {mark} -->\n", 1)[1], maxsplit=2)[1]


def results() -> dict[str, Any]:
    found: dict[str, Any] = compare.from_text((ROOT / "results.json").read_text(encoding="utf-8"))
    return found


def at(result: Any, key: str) -> Any:
    """The value at a dotted key; names may hold spaces, a number counts inside a list."""
    for part in key.split("."):
        result = result[int(part)] if isinstance(result, list) else result[part]
    return result
