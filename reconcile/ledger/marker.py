"""The marker outside the file: how a restored store is told from a live one.

Nothing inside a file can tell that the file is an old copy. So a small file beside it, which no
backup of the ledger contains, says which incarnation lives here and how often it was written to. A
ledger that has no marker, or another one's, or was written to less often than its marker says, may
be older than the world.

The marker is written just after each commit. It may lag, if the process dies between, until the
next write; it is never ahead, so that it pauses no store that is live.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

SUFFIX = ".marker"
WIDTH = 20  # digits of each number: one write replaces both


def beside(ledger: Path) -> Path:
    """Where the marker of a ledger stands: beside the file itself, whatever link names it."""
    return _of(Path(os.path.realpath(ledger)))


def read(ledger: Path) -> tuple[int, int] | None:
    """Incarnation and count of writes; None if there is no marker, or none that makes sense.

    Raises OSError if there is one and it cannot be read.
    """
    return _read(beside(ledger))


def write(ledger: Path, incarnation: int, acts: int) -> None:
    """Make the marker, or put other numbers in it. Raises OSError if it cannot be written."""
    _write(beside(ledger), incarnation, acts)


def raise_to(file: Path, incarnation: int, acts: int) -> None:
    """Put the marker of this very file higher, if it is lower; if that fails it stays as it is."""
    with suppress(OSError):
        known = _read(_of(file))
        if known is not None and known[0] == incarnation and known[1] < acts:
            _write(_of(file), incarnation, acts)


def _of(file: Path) -> Path:
    return file.with_name(file.name + SUFFIX)


def _read(mark: Path) -> tuple[int, int] | None:
    with suppress(FileNotFoundError, ValueError):
        incarnation, acts = mark.read_bytes().split()
        return int(incarnation), int(acts)
    return None


def _write(mark: Path, incarnation: int, acts: int) -> None:
    line = b"%0*d %0*d\n" % (WIDTH, incarnation, WIDTH, acts)
    try:
        with open(mark, "r+b", buffering=0) as file:
            file.write(line)
    except FileNotFoundError:
        mark.write_bytes(line)


def why_older(
    ledger: Path, known: tuple[int, int] | None, incarnation: int, acts: int
) -> str | None:
    """Why a file that says this of itself may be older than the world; None if nothing says so.

    `known` is what its marker said.
    """
    if known is None:
        return f"its marker {beside(ledger).name} is not beside it: it was moved or restored"
    if known[0] != incarnation:
        return f"the marker beside it is of incarnation {known[0]}, the file of {incarnation}"
    if known[1] > acts:
        return f"{known[1]} writes were made here, and this copy knows of {acts}"
    return None
