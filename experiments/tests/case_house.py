"""The house: what ships imports only what it may, and keeps to its rooms and its words."""

from __future__ import annotations

import ast
import re
import sys
import unittest
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("reconcile", "receiver", "experiments")
ROOMS = (
    ("reconcile/rules/", ("reconcile.rules",)),
    ("reconcile/ledger/", ("reconcile.rules", "reconcile.ledger")),
    ("reconcile/flows/", ("reconcile.rules", "reconcile.ledger", "reconcile.flows")),
    ("reconcile/", ("reconcile",)),
    ("receiver/", ("receiver",)),
    ("experiments/harness/oracle.py", ()),
    ("experiments/harness/inprocess.py", ("reconcile", "receiver", "experiments")),
    ("experiments/model/", ("reconcile.rules", "experiments.model")),
    ("experiments/", ("reconcile", "experiments")),
    ("run_experiment.py", ("experiments",)),
    ("test_reconciliation.py", ("experiments",)),
)
"""Each room, the longest prefix first, and whom of ours it may import."""
IMPURE = {
    "os",
    "sys",
    "time",
    "datetime",
    "random",
    "secrets",
    "sqlite3",
    "subprocess",
    "threading",
    "socket",
    "http",
    "pathlib",
    "io",
    "logging",
}


class House(unittest.TestCase):
    def test_everything_imported_is_of_the_standard_library_or_ours(self) -> None:
        """P1: every import of every source is parsed."""
        ours = {*SHIPPED, "run_experiment", "test_reconciliation"}
        for file, tree in sources():
            for module in imported(file, tree):
                head = module.split(".")[0]
                self.assertTrue(
                    head in ours or head in sys.stdlib_module_names, f"{file}: {module}"
                )

    def test_every_room_imports_only_rooms_it_may_enter(self) -> None:
        """Rules, ledger, flows, commands; the receiver imports nothing of the sender."""
        for file, tree in sources():
            allowed = next(allowed for prefix, allowed in ROOMS if file.startswith(prefix))
            for module in imported(file, tree):
                if module.split(".")[0] in (*SHIPPED, "run_experiment", "test_reconciliation"):
                    entered = any(module == a or module.startswith(f"{a}.") for a in allowed)
                    self.assertTrue(entered, f"{file} imports {module}")

    def test_the_rules_are_pure(self) -> None:
        """No rule reaches a file, a clock, randomness or SQL."""
        for file, tree in sources():
            if file.startswith("reconcile/rules/"):
                heads = {module.split(".")[0] for module in imported(file, tree)}
                self.assertFalse(heads & IMPURE, file)

    def test_no_sleep_orders_anything(self) -> None:
        """P6: no sleep is called, and a timer only ends a hung process."""
        for file, tree in sources():
            calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
            names = {getattr(call, "attr", getattr(call, "id", "")) for call in calls}
            self.assertNotIn("sleep", names, file)
            if "Timer" in names:
                self.assertEqual(file, "experiments/harness/processes.py")

    def test_no_chapter_or_module_lacks_its_docstring(self) -> None:
        """Every module says what it is for, and every public function what the caller gets."""
        for file, tree in sources():
            self.assertTrue(ast.get_docstring(tree), file)
            if file.startswith("reconcile/") and "__main__" not in file:
                for node in tree.body:
                    if not isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                        continue
                    if not node.name.startswith("_"):
                        self.assertTrue(ast.get_docstring(node), f"{file}: {node.name}")

    def test_no_exported_function_lacks_its_contract(self) -> None:
        """Every public name has a docstring, and every name of __all__ exists."""
        import reconcile

        for name in reconcile.__all__:
            self.assertTrue(getattr(reconcile, name).__doc__, name)

    def test_banned_words_stand_nowhere(self) -> None:
        """Silence is never called failed, and nothing is called guaranteed or safe to retry."""
        for file, _ in sources():
            text = (ROOT / file).read_text(encoding="utf-8")
            if not file.startswith("experiments/tests/"):
                self.assertFalse(re.search(r"safe to retry|guaranteed|exactly once", text), file)

    def test_only_the_named_things_stand_at_the_top(self) -> None:
        """The house has eight rooms and doors; all else is a dot file."""
        allowed = {
            *SHIPPED,
            "test_reconciliation.py",
            "run_experiment.py",
            "results.json",
            "README.md",
            "pyproject.toml",
            "__pycache__",
            "build",
        }
        found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
        self.assertLessEqual({name for name in found if not name.endswith(".egg-info")}, allowed)


@cache
def sources() -> list[tuple[str, ast.Module]]:
    """Every Python file that ships or tests, by its path from the root, parsed."""
    files = [file for room in SHIPPED for file in sorted((ROOT / room).rglob("*.py"))]
    files += [ROOT / "run_experiment.py", ROOT / "test_reconciliation.py"]
    return [
        (file.relative_to(ROOT).as_posix(), ast.parse(file.read_text(encoding="utf-8")))
        for file in files
    ]


def imported(file: str, tree: ast.Module) -> list[str]:
    """The dotted names that a file imports, relative ones made absolute."""
    package, found = Path(file).parent.parts, []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            found += [f"{module}.{alias.name}" for alias in node.names]
    return found
