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
from typing import NoReturn

from . import report
from .ledger import views
from .ledger.store import Ledger
from .rules import errors
from .text import plain

LONGEST_REFUSAL = 2000  # characters: what was handed in may be quoted in it
REFUSED, INTERRUPTED, NOBODY_READS = 2, 130, 141  # the last two as a shell counts signals
PREFIX_LEAST = 6  # digits of an identity from which a guess at the whole one is worth showing

_ABOUT = """\
Look into the ledger of a sender. These commands change no row, send nothing, decide nothing:

  status FILE             how many operations stand in each state, and every open question:
                          why it is open, and what is allowed next
  show FILE OPERATION     everything recorded about one operation, and its history
  explain VERDICT         what a verdict proves, or what a state says, and what to do next
  diagnose FILE           what does not agree with a supplier's account, and what to ask it

These write what a person on the list of approvers decides about an order, and send nothing:

  approve FILE OPERATION        give authority to send it, or to send it again
  revoke FILE OPERATION         take authority back, and be told whether that was in time
  resolve-order FILE OPERATION  settle it by a receipt from a file

`COMMAND --help` names what a command needs.
"""

_AFTER = """\
An operation that is `unknown` may have happened: reconcile it, do not submit it again.
Exit status: 0 answered, 2 refused (one line on stderr says why and what to do).
"""


class _Parser(argparse.ArgumentParser):
    """Refuses as everything else here does: by one error, and not by printing its usage."""

    def error(self, message: str) -> NoReturn:
        raise errors.Malformed("arguments", f"{message}; try: {self.prog} --help")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        _say("")  # a help text that nobody reads must fail here, not while Python ends
        raise SystemExit(status)


def main(argv: Sequence[str] | None = None, *, busy_ms: int = 5000) -> int:
    """Answer one command and return its exit status. `busy_ms` bounds the wait for a locked file.

    `--help` ends by SystemExit, as argparse does.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the answer must not depend on the locale
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        given = _parser().parse_args(argv)
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
        if command in _DECIDING:  # it is committed by now, and must not look refused
            why = f"it is done and recorded, and {why}; look at it with show"
        return _refuse(why)
    return 0


def _parser() -> _Parser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog="python3 -m reconcile",
        usage="%(prog)s COMMAND …",
        description=_ABOUT,
        epilog=_AFTER,
        formatter_class=raw,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, help=argparse.SUPPRESS
    )
    for name, (about, places, options) in _COMMANDS.items():
        needed = [f"--{option} {option.upper()}" for option in options]
        usage = " ".join(("python3 -m reconcile", name, *map(str.upper, places), *needed))
        command = commands.add_parser(
            name,
            usage=usage,
            description=about,
            prog=f"python3 -m reconcile {name}",
            allow_abbrev=False,
        )
        for place in places:
            command.add_argument(place, metavar=place.upper(), help=_PLACES[place])
        for option in options:
            command.add_argument(
                f"--{option}", metavar=option.upper(), required=True, help=_PLACES[option]
            )
    return parser


_PLACES = {
    "file": "the ledger file of a sender",
    "operation": "the whole operation id, 32 hex digits, as `status` prints it",
    "verdict": "the name of a verdict or of a state, such as terminal_absence or unknown",
    "digest": "the digest of the order that was looked at, as `show` prints it",
    "actor": "who decides: a name on the list of approvers (revoke: any name)",
    "minutes": "how long the approval lasts, 1 to 1440",
    "reason": "why, in words that will be read later",
    "receipt": "the file of the receipt: one JSON object, as the supplier gave it",
    "supplier": "the supplier's account, which is the target of the order",
    "reference": "where the original of the receipt can be found, 1 to 500 characters",
    "url": "where the supplier listens, http://HOST:PORT",
}
_ORDER = ("file", "operation")
_COMMANDS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "status": ("What is open in a ledger, why, and what is allowed next.", ("file",), ()),
    "show": ("Everything recorded about one operation.", _ORDER, ()),
    "explain": ("What a verdict proves, or what a state says.", ("verdict",), ()),
    "diagnose": (
        "What does not agree with a supplier's account. Nothing is written on either side.",
        ("file",),
        ("supplier", "url"),
    ),
    "approve": (
        "Approve a draft, or renew an uncertain order, which is asked about before it is sent.",
        _ORDER,
        ("digest", "actor", "minutes"),
    ),
    "revoke": (
        "Take authority back; it says whether that was in time.",
        _ORDER,
        ("actor", "reason"),
    ),
    "resolve-order": (
        "Settle an order by a conclusive receipt. Doing it twice is doing it once.",
        _ORDER,
        ("receipt", "digest", "supplier", "actor", "reference"),
    ),
}


_DECIDING = ("approve", "revoke", "resolve-order")


def _answer(given: argparse.Namespace, busy_ms: int) -> str:
    if given.command == "status":
        return _status(given.file, busy_ms)
    if given.command == "show":
        return _show(given.file, given.operation, busy_ms)
    if given.command == "explain":
        return report.explain(given.verdict)
    from . import order_commands  # here, since HTTP would double the time of a look

    name = given.command.replace("-", "_")
    with _rows_of(given.file):
        answer: str = getattr(order_commands, name)(given, busy_ms)
    return answer


def _status(path: str, busy_ms: int) -> str:
    with _looking(path, busy_ms) as ledger:
        counts = views.count_by_state(ledger)
        opened = views.open_questions(ledger, limit=max(1, sum(counts.values())))
        return report.status(
            counts,
            opened,
            now_ms=ledger.now_ms(),
            paused=ledger.paused,
            budgets=views.budgets(ledger),
        )


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
