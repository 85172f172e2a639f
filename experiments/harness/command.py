"""The command behind `run_experiment.py`: run chapters, and tell, compare, keep or draw them.

Exit status: 0 done, or the same; 1 the results differ; 2 could not run; 130 interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from pathlib import Path
from typing import Any

from .. import CHAPTERS
from ..claims import proved_by
from ..report import lanes
from . import bench, compare, runner

ABOUT = """\
Run the experiments, on real processes and real SQLite files.

  python3 run_experiment.py              run all; a line for each chapter, and its claims
  python3 run_experiment.py NAME …       run some
  python3 run_experiment.py --check      run all and compare with results.json beside this file
  python3 run_experiment.py --show NAME  draw the four-lane sequence of a run
"""
AFTER = "Exit status: 0 done, or the same; 1 the results differ; 2 could not run; 130 interrupted."


class CannotRun(Exception):
    """Raised if what was asked cannot be done; its text is for the person who asked."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="run_experiment.py",
        description=ABOUT,
        epilog=AFTER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "names", nargs="*", metavar="NAME", help="chapters to run; none: all of them"
    )
    made.add_argument("--list", action="store_true", help="name the chapters, in reading order")
    made.add_argument(
        "--check",
        nargs="?",
        const="",
        metavar="FILE",
        help="compare with FILE (results.json, if none is named)",
    )
    made.add_argument("--output", metavar="FILE", help="keep the results of this run in FILE")
    made.add_argument(
        "--write", action="store_true", help="write results.json, after a run of all"
    )
    made.add_argument(
        "--keep", metavar="DIR", help="keep the SQLite files in DIR, to look into them"
    )
    made.add_argument("--show", metavar="NAME", help="run NAME and draw its four-lane sequence")
    made.add_argument(
        "--bench", action="store_true", help="print speeds as ratios within this run"
    )
    return made


def main(argv: list[str], *, results: Path) -> int:
    """Do what the command line says; returns the exit status. `results` is compared with."""
    asked = parser().parse_args(argv)
    try:
        refuse_mixtures(asked)
        if asked.list:
            return say("\n".join(CHAPTERS))
        if asked.bench:
            return say(bench.report())
        if asked.show is not None:
            name = known(asked.show)
            keep = None if asked.keep is None else Path(asked.keep)
            return say(lanes.draw(results_of([name], keep)[name]["trace"]))
        return run(asked, results)
    except CannotRun as error:
        print(f"run_experiment.py: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read this went away, and Python shall not say so once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        print(f"run_experiment.py: {error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except KeyboardInterrupt:
        print("run_experiment.py: interrupted; nothing was left behind", file=sys.stderr)
        return 130


def refuse_mixtures(asked: argparse.Namespace) -> None:
    """Raises CannotRun if two things are asked that cannot be done at once."""
    given = {"list": asked.list, "bench": asked.bench, "show": asked.show is not None}
    alone = [name for name, there in {**given, "check": asked.check is not None}.items() if there]
    if len(alone) > 1:
        raise CannotRun(f"--{alone[0]} or --{alone[1]}, not both")
    if asked.names and alone:
        raise CannotRun(f"names or --{alone[0]}, not both")
    idle = [name for name in ("output", "keep") if getattr(asked, name) is not None]
    if idle and (asked.list or asked.bench or (asked.show is not None and idle[0] == "output")):
        raise CannotRun(f"--{alone[0]} has nothing that --{idle[0]} could have: leave it out")
    if asked.write and (asked.names or alone):
        raise CannotRun(
            "--write writes the results of all chapters: give it neither names nor --check"
        )


def run(asked: argparse.Namespace, stored: Path) -> int:
    """Run the chapters, tell what was observed, and compare or keep it where that is asked."""
    names = [known(name) for name in dict.fromkeys(asked.names)] or list(CHAPTERS)
    against = None if asked.check is None else Path(asked.check) if asked.check else stored
    expected = None if against is None else read(against)
    keep = None if asked.keep is None else Path(asked.keep)
    results = results_of(names, keep)
    if asked.output is not None:
        write(Path(asked.output), results)
    if asked.write:
        write(stored, results)
    if against is None:
        return say("\n".join(told(name, results[name]) for name in names))
    found = list(compare.differences(expected, results))
    for difference in found:
        print(difference)
    verdict = f"{len(found)} differences from" if found else "the same as"
    say(f"{len(names)} chapters ran: {verdict} {against.name}")
    return 1 if found else 0


def results_of(names: list[str], keep: Path | None) -> dict[str, Any]:
    """Run them. Raises CannotRun if a chapter fails, with what it said."""
    watched = sys.stderr.isatty()

    def progress(name: str) -> None:
        if watched:
            print(f"  {name}", file=sys.stderr)

    try:
        return runner.run_all(names, keep=keep, progress=progress)
    except Exception as error:
        raise CannotRun(f"a chapter could not run: {type(error).__name__}: {error}") from error


def told(name: str, result: dict[str, Any]) -> str:
    """Two lines for one chapter: what was observed, and which claims rest on it."""
    return f"{name}: {runner.line_of(name, result)}\n    for claims {', '.join(proved_by(name))}"


def known(name: str) -> str:
    """The name of a chapter. Raises CannotRun with the nearest right one if there is none such."""
    if name in CHAPTERS:
        return name
    near = [chapter for chapter in CHAPTERS if name and chapter.startswith(name)][:1]
    near = near or difflib.get_close_matches(name, CHAPTERS, n=1, cutoff=0.3)
    hint = f"did you mean {near[0]}?" if near else "--list names them"
    raise CannotRun(f"no chapter {name!r}; {hint}")


def read(path: Path) -> Any:
    """A results file. Raises CannotRun if it cannot be read."""
    try:
        return compare.from_text(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CannotRun(f"{path}: {error}; write it by --write or --output") from error


def write(path: Path, results: Any) -> None:
    """Write a results file. Raises CannotRun if it cannot be written."""
    try:
        path.write_text(compare.to_text(results), encoding="utf-8", newline="\n")
    except OSError as error:
        raise CannotRun(f"{path}: {error}") from error


def say(text: str) -> int:
    print(text, flush=True)
    return 0
