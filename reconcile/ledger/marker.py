"""The marker outside the file: how a restored store is told from a live one.

Nothing inside a file can tell that the file is an old copy. So a small file beside it, which no
backup of the ledger contains, says which incarnation lives here and how many requests it
announced. A ledger that has no marker, or another one's, or announced fewer than its marker says,
may be older than the world.

The marker is written just after the commit that announces. It may lag, if the process dies
between, and then notices less; it is never ahead, so that it pauses no store that is live.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

SUFFIX = ".marker"
WIDTH = 20  # digits of each number: one write replaces both


def beside(ledger: Path) -> Path:
    """Where the marker of a ledger stands: beside the file itself, whatever link names it."""
    file = Path(os.path.realpath(ledger))
    return file.with_name(file.name + SUFFIX)


def read(ledger: Path) -> tuple[int, int] | None:
    """Incarnation and announced requests; None if no marker can be read."""
    with suppress(OSError, ValueError):
        incarnation, sends = beside(ledger).read_bytes().split()
        return int(incarnation), int(sends)
    return None


def write(ledger: Path, incarnation: int, sends: int) -> None:
    """Make the marker, or put one number higher. Raises OSError if it cannot be written."""
    line = b"%0*d %0*d\n" % (WIDTH, incarnation, WIDTH, sends)
    try:
        with open(beside(ledger), "r+b", buffering=0) as file:
            file.write(line)
    except FileNotFoundError:
        beside(ledger).write_bytes(line)


def raise_to(ledger: Path, incarnation: int, sends: int) -> None:
    """Put the marker higher, if it is lower; one that cannot be written stays as it is."""
    known = read(ledger)
    if known is not None and known[0] == incarnation and known[1] < sends:
        with suppress(OSError):
            write(ledger, incarnation, sends)


def why_older(
    ledger: Path, known: tuple[int, int] | None, incarnation: int, sends: int
) -> str | None:
    """Why a file that says this of itself may be older than the world; None if nothing says so.

    `known` is what its marker said.
    """
    if known is None:
        return f"its marker {beside(ledger).name} is not beside it: it was moved or restored"
    if known[0] != incarnation:
        return f"the marker beside it is of incarnation {known[0]}, the file of {incarnation}"
    if known[1] > sends:
        return f"{known[1]} requests were announced here, and this copy knows of {sends}"
    return None
