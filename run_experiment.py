"""Run the experiments, on real processes and real SQLite files.

  python3 run_experiment.py              run all; a line for each chapter, the claims it proves
  python3 run_experiment.py NAME …       run some
  python3 run_experiment.py --check      run all and compare with results.json beside this file
  python3 run_experiment.py --show NAME  draw the four-lane sequence of a run

Exit status: 0 done, or the same; 1 the results differ; 2 could not run; 130 interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import signal
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:  # PYTHONSAFEPATH leaves it out
    sys.path.insert(0, str(HERE))

from experiments import CHAPTERS  # noqa: E402
from experiments.claims import proved_by  # noqa: E402
from experiments.harness import bench, compare, runner  # noqa: E402
from experiments.report import lanes  # noqa: E402

RESULTS = HERE / "results.json"


class CannotRun(Exception):
    """Raised if what was asked cannot be done; its text is for the person who asked."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="run_experiment.py",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    made.add_argument(
        "names", nargs="*", metavar="NAME", help="chapters to run; none: all of them"
    )
    made.add_argument("--list", action="store_true", help="name the chapters, in reading order")
    made.add_argument(
        "--check",
        nargs="?",
        const=str(RESULTS),
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


def main(argv: list[str]) -> int:
    """Do what the command line says; returns the exit status."""
    asked = parser().parse_args(argv)
    try:
        refuse_mixtures(asked)
        if asked.list:
            return say("\n".join(CHAPTERS))
        if asked.bench:
            return say(bench.report())
        if asked.show is not None:
            name = known(asked.show)
            return say(lanes.draw(results_of([name], None)[name]["trace"]))
        return run(asked)
    except CannotRun as error:
        print(f"run_experiment.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("run_experiment.py: interrupted; nothing was left behind", file=sys.stderr)
        return 130


def refuse_mixtures(asked: argparse.Namespace) -> None:
    """Raises CannotRun if two things are asked that cannot be done at once."""
    alone = [name for name in ("list", "bench", "show", "check") if getattr(asked, name)]
    if len(alone) > 1:
        raise CannotRun(f"--{alone[0]} or --{alone[1]}, not both")
    if asked.names and alone:
        raise CannotRun(f"names or --{alone[0]}, not both")
    if asked.write and (asked.names or alone):
        raise CannotRun(
            "--write writes the results of all chapters: give it neither names nor --check"
        )


def run(asked: argparse.Namespace) -> int:
    """Run the chapters, tell what was observed, and compare or keep it where that is asked."""
    names = [known(name) for name in dict.fromkeys(asked.names)] or list(CHAPTERS)
    expected = None if asked.check is None else read(Path(asked.check))
    keep = None if asked.keep is None else Path(asked.keep)
    results = results_of(names, keep)
    if asked.output is not None:
        write(Path(asked.output), results)
    if asked.write:
        write(RESULTS, results)
    if expected is None:
        return say("\n".join(told(name, results[name]) for name in names))
    found = list(compare.differences(expected, results))
    for difference in found:
        print(difference)
    verdict = f"{len(found)} differences from" if found else "the same as"
    say(f"{len(names)} chapters ran: {verdict} {Path(asked.check).name}")
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
    """Two lines for one chapter: what was observed, and which claims that proves."""
    return f"{name}: {runner.line_of(name, result)}\n    proves {', '.join(proved_by(name))}"


def known(name: str) -> str:
    """The name of a chapter. Raises CannotRun with the nearest right one if there is none such."""
    if name in CHAPTERS:
        return name
    near = difflib.get_close_matches(name, CHAPTERS, n=1, cutoff=0.3)
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
    print(text)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
