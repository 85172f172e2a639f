"""The gate: every claim names proofs that exist, and its first proof fails under its fault."""

from __future__ import annotations

import io
import re
import unittest
from contextlib import redirect_stdout
from typing import Any

from experiments.claims import CLAIMS, Claim, proved_by
from experiments.harness.removals import REMOVALS
from experiments.tests.case_course import at, results
from reconcile import ReconcileError

ROWS = {
    "P": range(1, 10),
    "L": range(1, 14),
    "E": (*range(1, 12), 13, 14),
    "R": (*range(1, 7), 9, 10, 11),
    "K": range(1, 7),
    "O": range(1, 21),
    "M": (1, 2, 3),
    "A": (1, 2, 11),
    "C": (1, 2),
    "V": (6,),
}
"""The rows that are proved by now."""


class Gate(unittest.TestCase):
    def test_every_row_is_a_claim_once(self) -> None:
        """The ids are complete for what is built, and none stands twice."""
        wanted = [f"{part}{number}" for part, numbers in ROWS.items() for number in numbers]
        self.assertEqual(sorted(claim.id for claim in CLAIMS), sorted(wanted))

    def test_every_named_test_exists_and_names_its_claim(self) -> None:
        """A test that was renamed, or proves something else, is noticed."""
        for claim in CLAIMS:
            self.assertTrue(claim.tests, claim.id)
            for name in claim.tests:
                (test,) = load(name)
                self.assertNotEqual(type(test).__name__, "_FailedTest", name)
                says = getattr(test, test.id().rsplit(".", 1)[1]).__doc__ or ""
                named = re.findall(r"\b[A-Z]\d+\b", says.split(":")[0])
                self.assertIn(claim.id, named, name)

    def test_every_named_key_exists_in_the_results(self) -> None:
        """A key that went away is noticed."""
        for claim in CLAIMS:
            for key in claim.results:
                self.assertIsNotNone(at(results(), key), f"{claim.id}: {key}")

    def test_every_chapter_proves_something(self) -> None:
        for chapter in results():
            self.assertTrue(proved_by(chapter), chapter)

    def test_every_fault_is_a_removal_that_applies_and_is_used(self) -> None:
        """A removal that no claim names, or that replaces nothing, would be dead."""
        self.assertLessEqual({claim.fault for claim in CLAIMS if claim.fault}, set(REMOVALS))
        self.assertEqual(set(REMOVALS) - {claim.fault for claim in CLAIMS}, set())

    def test_the_first_proof_of_every_claim_fails_under_its_fault(self) -> None:
        """V7 for these rows: a proof that would pass on a library without the rule is none."""
        for claim in CLAIMS:
            if claim.fault is None:
                continue
            with self.subTest(claim.id, fault=claim.fault), REMOVALS[claim.fault]():
                found = verdict_of(claim)
                self.assertTrue(
                    found.failed, f"{claim.id}: {found.broken or 'holds all the same'}"
                )

    def test_the_number_of_claims_without_a_fault_is_told(self) -> None:
        """Rows that are asserted only are listed, and counted aloud."""
        bare = [claim.id for claim in CLAIMS if claim.fault is None]
        print(f"asserted only, {len(bare)} of {len(CLAIMS)} claims: {', '.join(bare)}")
        self.assertLess(len(bare), len(CLAIMS) / 2)


def load(name: str) -> list[Any]:
    """The one test of this name, as a list."""
    return list(unittest.defaultTestLoader.loadTestsFromName(f"experiments.tests.{name}"))


class Verdicts(unittest.TestResult):
    """What a run ends in: `failed` counts proofs that did not hold, `broken` tells the rest.

    A refusal that escapes, and what a lab finds at its end, are how a missing rule shows.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failed, self.broken = 0, list[str]()

    def _take(self, error: Any) -> None:
        if issubclass(error[0], (AssertionError, ReconcileError)):
            self.failed += 1
        else:
            self.broken.append(f"{error[0].__name__}: {error[1]}")

    def addError(self, test: Any, err: Any) -> None:
        self._take(err)

    def addFailure(self, test: Any, err: Any) -> None:
        self._take(err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._take(err)


def verdict_of(claim: Claim) -> Verdicts:
    """The first test of a claim, run now."""
    suite = unittest.defaultTestLoader.loadTestsFromName(f"experiments.tests.{claim.tests[0]}")
    result = Verdicts()
    with redirect_stdout(io.StringIO()):
        suite.run(result)
    return result
