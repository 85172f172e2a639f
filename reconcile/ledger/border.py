"""The border at which errors of sqlite3 become this library's."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ..rules import errors


def ours(error: Exception, path: Path, busy_ms: int) -> errors.ReconcileError:
    """The library's error for one of sqlite3, by its text: 3.10 has no codes on exceptions."""
    why = str(error)
    if is_lock(error):
        return errors.Busy(str(path), busy_ms)
    if isinstance(error, UnicodeDecodeError) or "not a database" in why:
        return errors.ForeignFile(str(path), "is no ledger: it is of another kind, or damaged")
    if isinstance(error, sqlite3.ProgrammingError):
        return errors.LedgerMisused(why)
    if "unable to open" in why or "readonly" in why:
        why += (
            f"; the folder {path.parent} must exist and be writable, also for looking, since "
            "SQLite keeps its log beside the file: copy the file and its -wal elsewhere"
        )
    return errors.StorageFailed(str(path), why)


def is_lock(error: Exception) -> bool:
    """Whether another connection holds the file, so that trying again may help."""
    held = "locked" in str(error) or "busy" in str(error)
    return isinstance(error, sqlite3.OperationalError) and held
