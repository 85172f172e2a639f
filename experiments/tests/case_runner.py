"""The two commands: what they print, compare, refuse, and leave behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from experiments import CHAPTERS
from experiments.harness.compare import differences, from_text, to_text
from experiments.harness.lab import Lab, LeftBehind
from experiments.harness.processes import LIMIT_S
from experiments.harness.scene import CHARGE
from reconcile import dispatch, prepare

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "run_experiment.py"
QUICK = "e06_compensation"


class Comparison(unittest.TestCase):
    def test_it_is_stricter_than_equality(self) -> None:
        """P3: keys, types, and the order inside lists all count, and each is named by its path."""
        for expected, found, path in (
            ({"a": 1}, {"a": 1, "b": 2}, "$.b"),
            ({"a": 1, "b": 2}, {"a": 1}, "$.b"),
            ({"a": 1}, {"a": True}, "$.a"),
            ({"a": 1}, {"a": 1.0}, "$.a"),
            ({"a": 0}, {"a": False}, "$.a"),
            ({"a": 0}, {"a": -0.0}, "$.a"),
            ({"a": [1, 2]}, {"a": [2, 1]}, "$.a[0]"),
            ({"a": [1]}, {"a": [1, 2]}, "$.a[1]"),
            ({"a": [1, 2]}, {"a": [1]}, "$.a[1]"),
            ({"a": None}, {}, "$.a"),
            ({"a": {"b": [{"c": "x"}]}}, {"a": {"b": [{"c": "y"}]}}, "$.a.b[0].c"),
            ([], {}, "$"),
        ):
            seen = list(differences(expected, found))
            self.assertEqual([difference.path for difference in seen[:1]], [path])
            self.assertIn("expected", str(seen[0]))

    def test_the_same_has_no_difference(self) -> None:
        """P3: also when its keys stand in another order, which JSON does not count."""
        self.assertEqual(
            list(differences({"a": [1, {"b": None}], "c": 2}, {"c": 2, "a": [1, {"b": None}]})), []
        )

    def test_a_key_that_stands_twice_is_refused(self) -> None:
        """P3: one of the two would be compared and the other forgotten."""
        with self.assertRaises(ValueError):
            from_text('{"a": 1, "a": 2}')

    def test_text_and_value_are_each_others_inverse(self) -> None:
        """P4: the same results are the same bytes."""
        value = {"é": [1, None, True, "x"]}
        self.assertEqual(from_text(to_text(value)), value)
        self.assertTrue(to_text(value).isascii())


class FaultsStrike(unittest.TestCase):
    """C05: a fault that was named and did not happen is an error of the run."""

    def test_a_crash_that_never_struck_is_noticed_although_dispatch_swallows_it(self) -> None:
        """L3: the receiver answers `closed` and never reaches the point; the lab says so."""
        with self.assertRaisesRegex(LeftBehind, "after_commit"), Lab() as lab:
            scene = lab.scene()
            with scene.ledger() as ledger:
                order = prepare(ledger, scene.near(), work_id="w", **CHARGE)
                scene.near().snapshot(order.query, close=True)
                dispatch(ledger, order.operation_id, scene.receiver(crash="after_commit"))

    def test_a_process_that_never_held_is_noticed(self) -> None:
        """L12: it was to wait inside its transaction, and was refused before."""
        with self.assertRaisesRegex(LeftBehind, "was to hold"), Lab() as lab:
            scene = lab.scene()
            with scene.ledger() as ledger:
                order = prepare(ledger, scene.near(), work_id="w", **CHARGE)
                scene.near().snapshot(order.query, close=True)
                held = scene.held(at="before_commit")
                dispatch(ledger, order.operation_id, held)
                held.finish()


class Commands(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.scratch = self.folder / "scratch"
        self.scratch.mkdir()

    def run_it(
        self, *words: str, script: Path = RUN, python: str = sys.executable
    ) -> tuple[int, str, str]:
        """The command from an unrelated folder; it must leave nothing in its scratch folder."""
        environment = {**os.environ, "TMPDIR": str(self.scratch), "TEMP": str(self.scratch)}
        done = subprocess.run(
            [python, "-W", "error", str(script), *words],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT_S * 5,
        )
        self.assertEqual(list(self.scratch.iterdir()), [], "files were left behind")
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_check_reproduces_the_results_beside_the_script(self) -> None:
        """P2, P7: exit 0, from another working directory, and no file is left."""
        status, out, err = self.run_it("--check")
        self.assertEqual((status, err), (0, ""), out)
        self.assertIn("the same as results.json", out)

    def test_check_against_a_file_that_differs_says_where_and_keeps_the_reproduction(self) -> None:
        """P2, P3: exit 1, the path of each difference, and the output all the same."""
        results = from_text((ROOT / "results.json").read_text(encoding="utf-8"))
        results["e01_lost_receipt"]["effects"]["charge"] = 2
        other, kept = self.folder / "other.json", self.folder / "kept.json"
        other.write_text(to_text(results), encoding="utf-8")
        status, out, _ = self.run_it("--check", str(other), "--output", str(kept))
        self.assertEqual(status, 1)
        self.assertIn("$.e01_lost_receipt.effects.charge: expected 2, found 1", out)
        self.assertEqual(kept.read_bytes(), (ROOT / "results.json").read_bytes())

    def test_two_pythons_give_the_same_bytes(self) -> None:
        """P4: the oldest other one; not shown here on a machine that has one Python."""
        others = other_pythons()
        if not others:
            print("not shown here: this machine has one Python")
            return
        kept = self.folder / "kept.json"
        status, _, err = self.run_it("--output", str(kept), python=others[0])
        self.assertEqual(status, 0, err)
        self.assertEqual(kept.read_bytes(), (ROOT / "results.json").read_bytes(), others[0])

    def test_the_results_hold_nothing_of_one_run_or_one_machine(self) -> None:
        """P4: no time, process id, path, port, identity or platform word."""
        text = (ROOT / "results.json").read_text(encoding="utf-8")
        self.assertNotRegex(text, r"[0-9a-f]{32}|\d{6,}|[/\\](?!b)|linux|darwin|win32|\d\.\d+\.\d")
        self.assertEqual(list(json.loads(text)), list(CHAPTERS))

    def test_what_cannot_be_done_is_said_in_one_line(self) -> None:
        """P2: exit 2, one line, no traceback, and the nearest right name."""
        missing = str(self.folder / "missing.json")
        broken = self.folder / "broken.json"
        broken.write_text("{", encoding="utf-8")
        for words, hint in (
            (("e01_lost_reciept",), "did you mean e01_lost_receipt?"),
            (("--show", "e9"), "no chapter 'e9'"),
            (("--check", missing), missing),
            (("--check", str(broken)), "broken.json"),
            (("--check", str(self.folder)), str(self.folder)),
            ((QUICK, "--list"), "not both"),
            (("--check", "--bench"), "not both"),
            (("--list", "--output", missing), "leave it out"),
            (("--show", QUICK, "--output", missing), "leave it out"),
            (("--write", QUICK), "--write"),
            ((QUICK, "--output", str(self.folder)), str(self.folder)),
        ):
            status, out, err = self.run_it(*words)
            self.assertEqual((status, out), (2, ""), words)
            self.assertIn(hint, err)
            self.assertEqual(err.count("\n"), 1, err)

    def test_names_or_check_not_both(self) -> None:
        """P2: a name before --check is a mixture, and refused."""
        status, _, err = self.run_it(QUICK, "--check")
        self.assertEqual(status, 2)
        self.assertIn("not both", err)

    def test_list_names_the_chapters_in_reading_order(self) -> None:
        self.assertEqual(self.run_it("--list"), (0, "\n".join(CHAPTERS) + "\n", ""))

    def test_some_chapters_are_run_and_their_files_kept_where_asked(self) -> None:
        """P2: --keep leaves the SQLite files of each scene."""
        kept = self.folder / "kept files"
        status, out, err = self.run_it(QUICK, "--keep", str(kept))
        self.assertEqual((status, err), (0, ""))
        self.assertTrue(out.startswith(QUICK))
        self.assertTrue((kept / QUICK / "run" / "sender.db").is_file())

    def test_files_that_cannot_be_kept_are_an_error_and_nothing_is_left(self) -> None:
        """P7: the folder asked for is a file; the scratch folder is empty all the same."""
        taken = self.folder / "taken"
        taken.write_text("", encoding="utf-8")
        status, out, err = self.run_it(QUICK, "--keep", str(taken))
        self.assertEqual((status, out), (2, ""))
        self.assertIn("taken", err)

    def test_show_draws_four_lanes(self) -> None:
        status, out, _ = self.run_it("--show", QUICK)
        self.assertEqual(status, 0)
        self.assertEqual(
            out.split("\n")[0].split(), ["sender.db", "sender", "receiver", "receiver.db"]
        )
        self.assertIn("x dies at after_commit", out)

    def test_an_interrupt_leaves_nothing_behind(self) -> None:
        """P7: while a receiver waits for a permit; its process is gone, and so are the files."""
        script = self.folder / "interrupted.py"
        script.write_text(INTERRUPTED.format(root=str(ROOT)), encoding="utf-8")
        status, out, err = self.run_it(script=script)
        self.assertEqual(status, 130, err)
        self.assertIn("interrupted", err)
        with self.assertRaises(ProcessLookupError):
            os.kill(int(out), 0)

    def test_a_chapter_that_fails_is_an_error_of_the_run(self) -> None:
        """P2: exit 2, with what it said, and nothing left."""
        script = self.folder / "failing.py"
        script.write_text(FAILING.format(root=str(ROOT)), encoding="utf-8")
        status, _, err = self.run_it(script=script)
        self.assertEqual(status, 2)
        self.assertIn("a chapter could not run: ZeroDivisionError", err)


class Tests(unittest.TestCase):
    def test_unittest_and_pytest_find_the_same_tests_each_once(self) -> None:
        """P5: by the one door; pytest is asked where it is installed."""
        here = subprocess.run(
            [sys.executable, "-c", FOUND], cwd=ROOT, capture_output=True, text=True, check=True
        )
        names = here.stdout.split()
        self.assertEqual(len(names), len(set(names)))
        self.assertGreater(len(names), 100)
        asked = subprocess.run(
            [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        if "No module named pytest" in asked.stderr:
            print("not shown here: pytest is not installed")
            return
        by_pytest = [
            line.split("::", 1)[1].replace("::", ".")
            for line in asked.stdout.split("\n")
            if "::" in line
        ]
        by_unittest = [".".join(name.split(".")[-2:]) for name in names]
        self.assertEqual(sorted(by_pytest), sorted(by_unittest))


def other_pythons() -> list[str]:
    """One interpreter of every other version from 3.10 up that can be found."""
    here, found = sys.version_info[:2], []
    roots = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    roots += sorted((Path.home() / ".pyenv" / "versions").glob("*/bin"))
    for minor in range(10, 20):
        if (3, minor) == here:
            continue
        for root in roots:
            python = shutil.which(f"python3.{minor}", path=str(root))
            if python and works(python):
                found.append(python)
                break
    return found


def works(python: str) -> bool:
    asked = subprocess.run([python, "-c", "import sqlite3"], capture_output=True)
    return asked.returncode == 0


FOUND = """
import unittest
def walk(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from walk(test)
        else:
            yield test.id()
print("\\n".join(walk(unittest.defaultTestLoader.discover("."))))
"""

INTERRUPTED = """
import signal, sys
sys.path.insert(0, {root!r})
from experiments import e06_compensation
from experiments.harness import command

def run(lab):
    held = lab.scene("held").held()
    print(held.child.pid, flush=True)
    signal.raise_signal(signal.SIGINT)
    return {{"trace": []}}

e06_compensation.run = run
sys.exit(command.main(["--show", "e06_compensation"], results=None))
"""

FAILING = """
import sys
sys.path.insert(0, {root!r})
from experiments import e06_compensation
from experiments.harness import command
e06_compensation.run = lambda lab: 1 / 0
sys.exit(command.main(["e06_compensation"], results=None))
"""
