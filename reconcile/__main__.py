"""The operator's commands: look into a sender's ledger, and decide about orders.

Those that look open a ledger through `Ledger.inspect` alone. A failure is one line on stderr and
exit status 2, never a traceback, since it is read at night by someone in a hurry.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from . import arguments, report, sweep_report
from .ledger import views
from .ledger.store import Ledger
from .rules import errors
from .text import plain

LONGEST_REFUSAL = 2000  # characters: what was handed in may be quoted in it
REFUSED, INTERRUPTED, NOBODY_READS = 2, 130, 141  # the last two as a shell counts signals
PREFIX_LEAST = 6  # digits of an identity from which a guess at the whole one is worth showing


def main(argv: Sequence[str] | None = None, *, busy_ms: int = 5000) -> int:
    """Answer one command and return its exit status. `busy_ms` bounds the wait for a locked file.

    `--help` ends by SystemExit, as argparse does.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the answer must not depend on the locale
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        given = _given(argv)
        answer = _answer(given, busy_ms)
    except BrokenPipeError:
        return NOBODY_READS
    except KeyboardInterrupt:
        return INTERRUPTED
    except (errors.ReconcileError, OSError) as error:
        return _refuse(str(error))
    return _tell(given.command, answer)


def _tell(command: str, answer: str) -> int:
    """Write the answer, and return the exit status."""
    try:
        _say(answer)
    except BrokenPipeError:
        return NOBODY_READS
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        why = f"the answer could not be written: {error}"
        if command in arguments.DECIDING:  # it is committed by now, and must not look refused
            why = f"it is done and recorded, and {why}; look at it with show"
        return _refuse(why)
    return 0


def _given(argv: Sequence[str] | None) -> argparse.Namespace:
    try:
        return arguments.parser().parse_args(argv)
    except SystemExit:
        _say("")  # a help text that nobody reads must fail here, not while Python ends
        raise


def _answer(given: argparse.Namespace, busy_ms: int) -> str:
    if given.command == "status":
        return _status(given.file, busy_ms)
    if given.command == "show":
        return _show(given.file, given.operation, busy_ms)
    if given.command == "obligations":
        return _obligations(given.file, busy_ms)
    if given.command == "explain":
        return report.explain(given.verdict)
    from . import order_commands, sweep_commands  # here: HTTP would double the time of a look

    name = given.command.replace("-", "_")
    with _rows_of(given.file):
        where = sweep_commands if hasattr(sweep_commands, name) else order_commands
        answer: str = getattr(where, name)(given, busy_ms)
    return answer


def _status(path: str, busy_ms: int) -> str:
    with _looking(path, busy_ms) as ledger:
        counts = views.count_by_state(ledger)
        limit = max(1, sum(counts.values()))
        opened = views.open_questions(ledger, limit=limit)
        return report.status(
            counts,
            opened,
            now_ms=ledger.now_ms(),
            paused=ledger.paused,
            budgets=views.budgets(ledger),
            drafts=views.drafts(ledger, limit=limit),
            questions=views.obligations(ledger, limit=limit),
        )


def _obligations(path: str, busy_ms: int) -> str:
    with _looking(path, busy_ms) as ledger:
        limit = max(1, sum(views.count_by_state(ledger).values()))
        found = views.obligations(ledger, limit=limit)
        return sweep_report.obligations(found, now_ms=ledger.now_ms())


def _show(path: str, operation_id: str, busy_ms: int) -> str:
    with _looking(path, busy_ms) as ledger:
        try:
            operation = views.look(ledger, operation_id)
        except errors.UnknownOperation:
            _refuse_part(ledger, operation_id)
            raise
        entries = views.history(ledger, operation_id)
        return report.show(operation, entries, now_ms=ledger.now_ms())


def _refuse_part(ledger: Ledger, part: str) -> None:
    """Name the open operations whose identity begins so. One is never picked for the operator: the
    views do not search the ended ones, so that what is alone here may not be alone in the file.
    """
    if len(part) < PREFIX_LEAST:
        return
    total = max(1, sum(views.count_by_state(ledger).values()))
    begin_so = [
        operation.operation_id
        for operation in views.open_questions(ledger, limit=total)
        if operation.operation_id.startswith(part)
    ]
    if begin_so:
        raise errors.Malformed(
            "operation",
            f"{part!r} is a part of an identity: give the whole of it; "
            f"of the open ones these begin so: {', '.join(begin_so[:3])}",
        )


@contextmanager
def _looking(path: str, busy_ms: int) -> Iterator[Ledger]:
    with Ledger.inspect(path, busy_ms=busy_ms) as ledger, _rows_of(path):
        yield ledger


@contextmanager
def _rows_of(path: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, LookupError) as error:  # a sound file with unsound rows
        why = f"holds a row that this library never wrote ({error}); look at a backup"
        raise errors.ForeignFile(path, why) from error


def _say(text: str) -> None:
    if sys.stdout is None:  # the caller closed it
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:  # what stays in the buffer must not fail once more while Python ends
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _refuse(why: str) -> int:
    line = plain(why)
    if len(line) > LONGEST_REFUSAL:
        line = f"{line[:LONGEST_REFUSAL]} …"
    with suppress(OSError):
        print(f"reconcile: {line}", file=sys.stderr, flush=True)
    return REFUSED


if __name__ == "__main__":
    sys.exit(main())
