"""Run chapters, side by side, each in a lab of its own; report them in reading order."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .. import CHAPTERS
from .lab import Lab


def run_one(name: str, *, keep: Path | None = None, neutral: bool = False) -> dict[str, Any]:
    """The semantic result of one chapter. Raises what the chapter raises, and LeftBehind."""
    chapter = importlib.import_module(f"experiments.{name}")
    with Lab(neutral=neutral, keep=None if keep is None else keep / name) as lab:
        result: dict[str, Any] = chapter.run(lab)
    return result


def run_all(
    names: Sequence[str] = CHAPTERS,
    *,
    keep: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, dict[str, Any]]:
    """The results of these chapters by name, in the given order.

    They run in threads that mostly wait for processes. The first failure ends the run: what has
    not begun is not begun, and what runs is waited for, so that nothing is left behind.
    """
    for name in names:  # in this thread: importing in several at once has an order of its own
        importlib.import_module(f"experiments.{name}")
    threads = 2 * (os.cpu_count() or 1)  # each waits for processes most of its time
    pool = ThreadPoolExecutor(max_workers=threads)
    try:
        runs = {name: pool.submit(run_one, name, keep=keep) for name in names}
        results = {}
        for name, run in runs.items():
            results[name] = run.result()
            progress(name)
        return results
    finally:
        pool.shutdown(cancel_futures=True)


def line_of(name: str, result: dict[str, Any]) -> str:
    """The result of one chapter in one line that a person understands."""
    line: str = importlib.import_module(f"experiments.{name}").line(result)
    return line
