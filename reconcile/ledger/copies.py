"""Backups and restored stores. Both act on nothing: they may be older than the world.

A copy is made by SQLite (`VACUUM INTO`, one statement through the one seam), so that it holds what
was committed and nothing else. A plain copy of the file would miss the commits that are in the log
beside it, and open cleanly. The copy is paused before it has its name, so that no crash leaves one
that would act.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..rules import errors
from . import marker, opening
from .place import place_of
from .store import Ledger
from .tx import Tx


def backup(ledger: Ledger, to: str | os.PathLike[str]) -> Path:
    """A backup of all that is committed, in a new file. It is paused, and no part of it acts.

    Returns its path. Raises StorageFailed if the file exists already, if the log of one that is
    gone stands there, or if it cannot be written.
    """
    place = _free(to)
    with _copied(ledger, place) as part:
        with Ledger(part, clock=ledger.now_ms, must_exist=True) as copy, copy.transaction() as tx:
            _pause(tx, f"it is a backup of {ledger.path.name}")
        _named(part, place)
    return place


def restore(backup_file: str | os.PathLike[str], to: str | os.PathLike[str]) -> Path:
    """A store made from a backup, as a new incarnation, paused. Nothing unpauses it by itself.

    Returns its path; its marker is written beside it. Raises StorageFailed as `backup` does,
    ForeignFile if the backup is no ledger, or empty.
    """
    place = _free(to)
    known = opening.marked(place)  # of the ledger that stood here, which may be gone
    with (
        Ledger(backup_file, must_exist=True) as source,  # only looking, SQLite would not copy
        _copied(source, place) as part,
    ):
        with Ledger(part, must_exist=True) as copy, copy.transaction() as tx:
            _pause(tx, f"it was restored from {source.path.name}")
            incarnation, acts = tx.execute("SELECT incarnation, acts FROM store").fetchone()
            incarnation = max(incarnation, known[0] if known else 0) + 1
            tx.execute("UPDATE store SET incarnation = ?", (incarnation,))
        _free(place)  # a ledger made there meanwhile keeps its own marker
        try:
            marker.write(place, incarnation, acts)
        except OSError as error:
            raise errors.StorageFailed(str(place), f"its marker: {error}") from error
        _named(part, place)
    return place


def _free(to: str | os.PathLike[str]) -> Path:
    place = place_of(to, must_exist=False)
    if place.exists():
        raise errors.StorageFailed(str(place), "exists already: name a new file")
    log = _with(place, "-wal")
    if log.exists():  # SQLite would take it for the log of the copy, and write it over that
        why = f"the log {log.name} of a ledger that is gone stands beside it: move it away first"
        raise errors.StorageFailed(str(place), why)
    return place


@contextmanager
def _copied(ledger: Ledger, place: Path) -> Iterator[Path]:
    """A copy under a name that nobody else has, gone with what is beside it in the end."""
    try:
        handle, name = tempfile.mkstemp(".part", f"{place.name}.", place.parent)
        os.close(handle)
    except OSError as error:
        raise errors.StorageFailed(str(place), str(error)) from error
    part = Path(name)
    try:
        ledger.copy_into(part)
        with suppress(OSError):  # else it could be read by its maker alone
            shutil.copymode(ledger.path, part)
        yield part
    finally:
        for end in ("", "-wal", "-shm"):
            with suppress(OSError):
                _with(part, end).unlink()


def _named(part: Path, place: Path) -> None:
    """Give the copy its name, unless another program gave that to a file meanwhile."""
    if _with(part, "-wal").exists():  # what it says of itself is not in the file yet
        raise errors.StorageFailed(str(part), "is held open by another program: try again")
    try:
        os.link(part, place)
    except FileExistsError as error:
        raise errors.StorageFailed(str(place), "exists already: name a new file") from error
    except OSError:  # no links in this file system: the check was made a moment ago
        try:
            os.replace(part, place)
        except OSError as error:
            raise errors.StorageFailed(str(place), str(error)) from error


def _pause(tx: Tx, why: str) -> None:
    tx.execute("UPDATE store SET paused_why = ?", (why,))


def _with(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)
