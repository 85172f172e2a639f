"""Backups and restored stores. Both act on nothing: they may be older than the world.

A copy is made by SQLite (`VACUUM INTO`, one statement through the one seam), so that it holds what
was committed and nothing else. A plain copy of the file would miss the commits that are in the log
beside it, and open cleanly. The copy is paused before it has its name, so that no crash leaves one
that would act.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..rules import errors
from . import marker
from .place import place_of
from .store import Ledger
from .tx import Tx


def backup(ledger: Ledger, to: str | os.PathLike[str]) -> Path:
    """A backup of all that is committed, in a new file. It is paused, and no part of it acts.

    Returns its path. Raises StorageFailed if the file exists already, if the log of one that is
    gone stands there, or if it cannot be written.
    """
    place = _free(to)
    part = _copy(ledger, place)
    with Ledger(part, clock=ledger.now_ms) as copy, copy.transaction() as tx:
        _pause(tx, f"it is a backup of {ledger.path.name}")
    return _named(part, place)


def restore(backup_file: str | os.PathLike[str], to: str | os.PathLike[str]) -> Path:
    """A store made from a backup, as a new incarnation, paused. Nothing unpauses it by itself.

    Returns its path; its marker is written beside it. Raises StorageFailed as `backup` does,
    ForeignFile if the backup is no ledger, or empty.
    """
    place = _free(to)
    with Ledger(backup_file, must_exist=True) as source:  # only looking, SQLite would not copy
        part = _copy(source, place)
        name = source.path.name
    known = marker.read(place)  # of the ledger that stood here, which may be gone
    with Ledger(part) as copy, copy.transaction() as tx:
        _pause(tx, f"it was restored from {name}")
        before = tx.execute("SELECT incarnation, sends FROM store").fetchone()
        incarnation = max(before[0], known[0] if known else 0) + 1
        tx.execute("UPDATE store SET incarnation = ?", (incarnation,))
    try:
        marker.write(place, incarnation, before[1])
    except OSError as error:
        raise errors.StorageFailed(str(place), f"its marker: {error}") from error
    return _named(part, place)


def _free(to: str | os.PathLike[str]) -> Path:
    place = place_of(to, must_exist=False)
    if place.exists():
        raise errors.StorageFailed(str(place), "exists already: name a new file")
    log = _with(place, "-wal")
    if log.exists():  # SQLite would take it for the log of the copy, and write it over that
        why = f"the log {log.name} of a ledger that is gone stands beside it: move it away first"
        raise errors.StorageFailed(str(place), why)
    return place


def _copy(ledger: Ledger, place: Path) -> Path:
    part = _with(place, ".part")
    _forget(part)  # one that a crash left
    ledger.copy_into(part)
    return part


def _named(part: Path, place: Path) -> Path:
    if _with(part, "-wal").exists():  # what it says of itself is not in the file yet
        raise errors.StorageFailed(str(part), "is held open by another program: try again")
    try:
        os.replace(part, place)
    except OSError as error:
        raise errors.StorageFailed(str(place), str(error)) from error
    return place


def _pause(tx: Tx, why: str) -> None:
    tx.execute("UPDATE store SET paused_why = ?", (why,))


def _forget(part: Path) -> None:
    try:
        for end in ("", "-wal", "-shm"):
            _with(part, end).unlink(missing_ok=True)
    except OSError as error:
        raise errors.StorageFailed(str(part), str(error)) from error


def _with(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)
