"""What is asked of a file when it is opened: whether it is ours, in WAL mode, and live."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from ..rules import errors
from . import border, marker, schema
from .tx import Tx

WAL_TRIES = 100  # each waits for a writer, within busy_ms


def is_ours(tx: Tx, path: Path) -> bool:
    """Whether the file is a ledger, and not empty. Raises ForeignFile if it is neither."""
    application = tx.execute("PRAGMA application_id").fetchone()[0]
    version = tx.execute("PRAGMA user_version").fetchone()[0]
    tables = tx.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if (application, version, tables) == (0, 0, 0):
        return False
    if application != schema.APPLICATION_ID:
        raise errors.ForeignFile(str(path), "belongs to another program; it was not changed")
    if version != schema.SCHEMA_VERSION:
        why = f"has schema {version}, this library has {schema.SCHEMA_VERSION}"
        raise errors.ForeignFile(str(path), f"{why}: use the version that made it")
    return True


def use_wal(connection: sqlite3.Connection, path: Path, busy_ms: int) -> None:
    """The switch to WAL waits for no lock; BEGIN IMMEDIATE does: wait there, ask again."""
    deadline = time.monotonic() + busy_ms / 1000
    for _ in range(WAL_TRIES):
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if not border.is_lock(error) or time.monotonic() > deadline:
                raise
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    raise errors.Busy(str(path), busy_ms)


def mark_birth(path: Path) -> None:
    """Write the marker of a new file before its commit: without one it would look restored.

    One that tells of anything written, or of a restore, stays: the ledger that it is about is
    gone, and this empty one is older than the world. Raises StorageFailed if it cannot be written.
    """
    if marked(path) in (None, (1, 0)):
        try:
            marker.write(path, 1, 0)
        except OSError as error:
            raise errors.StorageFailed(str(path), f"its marker: {error}") from error


def marked(path: Path) -> tuple[int, int] | None:
    """What the marker of a ledger says; None if there is none.

    Raises StorageFailed if it cannot be read just now: that must not look like its absence.
    """
    try:
        return marker.read(path)
    except OSError as error:
        raise errors.StorageFailed(str(path), f"its marker: {error}") from error


def why_paused(tx: Tx, path: Path, known: tuple[int, int] | None) -> str | None:
    """Why the store acts on nothing; None if it is live. `known` is what its marker says."""
    row = tx.execute("SELECT incarnation, acts, paused_why FROM store").fetchone()
    if row is None:
        raise errors.ForeignFile(str(path), "says nothing of itself: look at a backup")
    incarnation, acts, paused_why = row
    return paused_why or marker.why_older(path, known, incarnation, acts)


def catch_up(tx: Tx, path: Path) -> None:
    """Put the marker of a live store where its file is: a process may have died in between."""
    incarnation, acts = tx.execute("SELECT incarnation, acts FROM store").fetchone()
    marker.raise_to(path, incarnation, acts)


def pause(tx: Tx, why: str) -> None:
    """Write that the store acts on nothing; one that is paused already stays as it is."""
    tx.execute("UPDATE store SET paused_why = ? WHERE paused_why IS NULL", (why,))
