"""The command line of the operator: which commands there are, and what each of them needs."""

from __future__ import annotations

import argparse
from typing import NoReturn

from .rules import errors

_ABOUT = """\
Look into the ledger of a sender. These commands change no row, send nothing, decide nothing:

  status FILE             how many operations stand in each state, and every open question:
                          why it is open, and what is allowed next
  obligations FILE        every open question: its age, who works on it, its deadline, what
                          comes next
  show FILE OPERATION     everything recorded about one operation, and its history
  explain VERDICT         what a verdict proves, or what a state says, and what to do next
  diagnose FILE           what does not agree with a supplier's account, and what to ask it

This asks a supplier for the receipt it stored, and settles by it; it sends no order:

  inquire FILE OPERATION

This visits every open question that is due, and writes what a supplier, if one is named, says
of it; it sends no order, closes nothing, and decides what the policies and --may-decide all list:

  sweep FILE

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


class Parser(argparse.ArgumentParser):
    """Refuses as everything else here does: by one error, and not by printing its usage."""

    def error(self, message: str) -> NoReturn:
        raise errors.Malformed("arguments", f"{message}; try: {self.prog} --help")


def parser() -> Parser:
    """The command line."""
    raw = argparse.RawDescriptionHelpFormatter
    made = Parser(
        prog="python3 -m reconcile",
        usage="%(prog)s COMMAND …",
        description=_ABOUT,
        epilog=_AFTER,
        formatter_class=raw,
        allow_abbrev=False,
    )
    commands = made.add_subparsers(
        dest="command", metavar="COMMAND", required=True, help=argparse.SUPPRESS
    )
    for name, (about, places, options) in _COMMANDS.items():
        needed = [f"--{option} {option.upper()}" for option in options]
        spare = [f"[--{option} {option.upper()}]" for option in _SPARE.get(name, {})]
        usage = " ".join(("python3 -m reconcile", name, *map(str.upper, places), *needed, *spare))
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
        for option, default in _SPARE.get(name, {}).items():
            command.add_argument(
                f"--{option}", metavar=option.upper(), default=default, help=_PLACES[option]
            )
    return made


_PLACES = {
    "file": "the ledger file of a sender",
    "operation": "the whole operation id, 32 hex digits, as `status` prints it",
    "verdict": "a verdict, a state or a diagnosis, such as terminal_absence or lost_receipt",
    "digest": "the digest of the order that was looked at, as `show` prints it",
    "actor": "who decides: a name on the list of approvers (revoke: any name)",
    "minutes": "how long the approval lasts, 1 to 1440",
    "reason": "why, in words that will be read later",
    "receipt": "the file of the receipt: one JSON object, as the supplier gave it",
    "supplier": "the supplier's account, which is the target of the order",
    "reference": "where the original of the receipt can be found, 1 to 500 characters",
    "url": "where the supplier listens, http://HOST:PORT",
    "worker": "who sweeps: a name for people, which gives no right",
    "scope": "whose questions: TENANT/PROJECT/ENVIRONMENT; without it, default/default/default",
    "batch": "how many questions are claimed at once, 1 to 1000",
    "may-decide": "what needs no person today, where the pinned policy lists it, too: receipt, "
    "unique_exact_match, terminal_absence, with commas between",
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
    "obligations": ("Every open question, and what is done about it.", ("file",), ()),
    "sweep": (
        "Visit every open question that is due. Without --supplier and --url nobody is asked.",
        ("file",),
        ("worker",),
    ),
    "inquire": (
        "Ask the supplier for the receipt that it stored. None proves nothing.",
        _ORDER,
        ("url",),
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
_SPARE: dict[str, dict[str, str | None]] = {
    "sweep": {"supplier": None, "url": None, "may-decide": "", "scope": None, "batch": "10"},
}
"""Options that may be left out, and what they are then."""

DECIDING = ("inquire", "sweep", "approve", "revoke", "resolve-order")
"""The commands that write, and whose answer may be lost after that."""
