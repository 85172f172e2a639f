"""Run test classes on every core, and report them as one run.

Each class runs in a worker process that was started afresh, so that nothing forks beside threads
and no class depends on what another left behind. The report is unittest's own: failures whole, one
line with the number of tests, and OK or FAILED.
"""

from __future__ import annotations

import io
import os
import sys
import time
import unittest
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import NamedTuple

HEAVY = ("case_claims", "case_order_statements", "case_copies", "case_runner", "case_statements")
"""The modules whose classes are begun first, so that none of them is waited for alone."""


class Ran(NamedTuple):
    """What became of one class: how many tests ran, how many did not hold, and the report."""

    tests: int
    failed: int
    report: str


def run(classes: Sequence[type[unittest.TestCase]]) -> int:
    """Run the classes side by side, report on standard error, and return the exit status."""
    begin = time.perf_counter()
    done: list[Ran] = []
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        runs = [pool.submit(run_class, f"{c.__module__}.{c.__name__}") for c in _in_order(classes)]
        for finished in as_completed(runs):
            done.append(finished.result())
            print("F" if done[-1].failed else ".", end="", file=sys.stderr, flush=True)
    failed = sum(ran.failed for ran in done)
    print(file=sys.stderr)
    for ran in done:
        if ran.failed:
            print(ran.report, file=sys.stderr)
    tests, seconds = sum(ran.tests for ran in done), time.perf_counter() - begin
    print(f"{'-' * 70}\nRan {tests} tests in {seconds:.3f}s\n", file=sys.stderr)
    print(f"FAILED (failures={failed})" if failed else "OK", file=sys.stderr, flush=True)
    return 1 if failed or not tests else 0


def run_class(name: str) -> Ran:
    """Run one class by its dotted name, in this process."""
    report = io.StringIO()
    suite = unittest.defaultTestLoader.loadTestsFromName(name)
    result = unittest.TextTestRunner(stream=report).run(suite)
    sys.stdout.flush()
    broken = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    return Ran(result.testsRun, broken, report.getvalue())


def _in_order(classes: Sequence[type[unittest.TestCase]]) -> list[type[unittest.TestCase]]:
    def place(found: type[unittest.TestCase]) -> int:
        module = found.__module__.rpartition(".")[2]
        return HEAVY.index(module) if module in HEAVY else len(HEAVY)

    return sorted(classes, key=place)
