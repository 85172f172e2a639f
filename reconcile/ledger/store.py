"""The sender's one SQLite file: open it, and change it in short transactions.

Everything asked of SQLite goes through `Connection.execute`, one statement a call: no cursors,
scripts, `with connection`, or transactions that begin by themselves. So a connection class given
as `factory` sees every statement, in the same order on every Python, and errors of sqlite3 become
this library's at one border.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..rules import checks, errors
from ..rules.policy import EffectPolicy
from . import border, marker, opening, schema
from .place import file_at, place_of
from .tx import Tx

SQLITE_FLOOR = (3, 35, 0)  # the first with RETURNING
_COUNT = "UPDATE store SET acts = acts + 1 RETURNING incarnation, acts"
LONGEST_WAIT_MS = 24 * 3600 * 1000


def system_clock() -> int:
    """UTC milliseconds."""
    return time.time_ns() // 1_000_000


class Ledger:
    """An open ledger file, made on first use. A context manager; one thread uses it at a time.

    `clock` gives UTC milliseconds. `factory` is the connection class. `busy_ms` bounds the wait
    for another process's transaction. With `must_exist` no ledger is made. `paused` says why the
    store acted on nothing when it was opened: it is a restored copy, or may be one; None: it was
    live. Raises ForeignFile if the path holds something else, StorageFailed if it cannot be opened
    or made, Busy if it stayed locked, Malformed if an argument is ill-typed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Callable[[], int] = system_clock,
        factory: type[sqlite3.Connection] = sqlite3.Connection,
        busy_ms: int = 5000,
        must_exist: bool = False,
    ) -> None:
        self._prepare(path, clock, busy_ms, looking=False, must_exist=must_exist)
        self._connect(str(self.path), factory, uri=False)

    @classmethod
    def inspect(
        cls,
        path: str | os.PathLike[str],
        *,
        clock: Callable[[], int] = system_clock,
        factory: type[sqlite3.Connection] = sqlite3.Connection,
        busy_ms: int = 5000,
    ) -> Ledger:
        """Open an existing ledger only for looking: a write through it is refused.

        The file is opened for writing and told `query_only`, since SQLite's read-only modes answer
        wrongly after a crash or leave files behind. So the folder must be writable. Raises as
        opening does, and StorageFailed if there is no such file.
        """
        ledger = cls.__new__(cls)
        ledger._prepare(path, clock, busy_ms, looking=True, must_exist=True)
        ledger._connect(ledger.path.as_uri() + "?mode=rw", factory, uri=True)
        return ledger

    def _prepare(
        self,
        path: str | os.PathLike[str],
        clock: Callable[[], int],
        busy_ms: int,
        *,
        looking: bool,
        must_exist: bool,
    ) -> None:
        if sqlite3.sqlite_version_info < SQLITE_FLOOR:
            floor = ".".join(map(str, SQLITE_FLOOR))
            raise errors.StorageFailed(
                str(path), f"SQLite {sqlite3.sqlite_version} is older than {floor}"
            )
        if not callable(clock):
            raise errors.Malformed("clock", "needs a function that gives UTC milliseconds")
        self._busy_ms = checks.whole("busy_ms", busy_ms, least=0, most=LONGEST_WAIT_MS)
        self._clock, self._looking, self._closed = clock, looking, False
        self._must_exist = must_exist
        self._pid, self._inside = os.getpid(), False
        self._file: tuple[int, int] | None = None
        self._policies: dict[int, EffectPolicy] = {}
        self.paused: str | None = None
        self.path = place_of(path, must_exist=must_exist)
        self._real = Path(os.path.realpath(self.path))  # where its marker stands, behind any link

    def _connect(self, name: str, factory: type[sqlite3.Connection], *, uri: bool) -> None:
        if not (isinstance(factory, type) and issubclass(factory, sqlite3.Connection)):
            raise errors.Malformed("factory", "needs a subclass of sqlite3.Connection")
        try:
            self._connection = sqlite3.connect(
                name, isolation_level=None, timeout=self._busy_ms / 1000, factory=factory, uri=uri
            )
        except sqlite3.Error as error:
            raise border.ours(error, self.path, self._busy_ms) from error
        try:
            self._open()
            self._file = file_at(self.path)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._connection.close()
            raise border.ours(error, self.path, self._busy_ms) from error
        except BaseException:
            self._connection.close()
            raise

    def _open(self) -> None:
        known = opening.marked(self.path)  # before the file: it can only be ahead of this
        with self._unit("BEGIN", "ROLLBACK", clock=lambda: 0) as tx:
            born = opening.is_ours(tx, self.path)
            if born:
                self.paused = opening.why_paused(tx, self.path, known)
                if self.paused is None and not self._looking:
                    opening.catch_up(tx, self._real)
        execute = self._connection.execute
        if self._must_exist and not born:
            raise errors.ForeignFile(str(self.path), "is empty: it is no ledger yet")
        if self._looking:
            execute("PRAGMA query_only = ON")
            return
        opening.use_wal(self._connection, self.path, self._busy_ms)
        execute("PRAGMA synchronous = FULL")
        execute("PRAGMA foreign_keys = ON")
        if not born or self.paused is not None:
            with self._unit("BEGIN IMMEDIATE", "COMMIT", clock=lambda: 0) as tx:
                if not opening.is_ours(tx, self.path):  # else another process made it meanwhile
                    schema.create(tx)
                    opening.mark_birth(self.path)
                self.paused = opening.why_paused(tx, self.path, opening.marked(self.path))
                if self.paused is not None:
                    opening.pause(tx, self.paused)

    @contextmanager
    def transaction(self) -> Iterator[Tx]:
        """One immediate transaction: all of the block is committed, or nothing of it.

        Raises LedgerMisused if one is open already or the ledger is only for looking, Busy if
        another process held the file too long, StorageFailed if SQLite could not write. An
        interrupt undoes it and passes on.
        """
        if self._looking:
            raise errors.LedgerMisused(
                f"{self.path} was opened for looking: open it with Ledger to change it"
            )
        with self._unit("BEGIN IMMEDIATE", "COMMIT", clock=self._clock, counted=True) as tx:
            yield tx

    @contextmanager
    def reading(self) -> Iterator[Tx]:
        """One consistent view: no write lock, and nothing left. Raises as transaction() does."""
        with self._unit("BEGIN", "ROLLBACK", clock=self._clock) as tx:
            yield tx

    @contextmanager
    def _unit(
        self, begin: str, end: str, *, clock: Callable[[], int], counted: bool = False
    ) -> Iterator[Tx]:
        self._still_ours()
        if self._inside:
            raise errors.LedgerMisused("a transaction is open in this ledger: they do not nest")
        execute = self._connection.execute
        try:
            try:
                self._inside = True
                if self._connection.in_transaction:  # an interrupt cut the last one's end short
                    execute("ROLLBACK")
                execute(begin)
                # Asked after the wait for the lock: a rule must not judge by a moment before it.
                now_ms = checks.whole("clock", clock())
                before = self._connection.total_changes
                yield Tx(self._connection, now_ms, self._policies, self.paused)
                wrote = self._connection.total_changes > before
                acts = execute(_COUNT).fetchone() if counted and wrote else None
                execute(end)
                if acts is not None:
                    marker.raise_to(self._real, *acts)
            except BaseException:
                self._undo()
                raise
            finally:
                self._inside = False
        except (sqlite3.Error, UnicodeDecodeError) as error:  # a damaged file garbles error texts
            raise border.ours(error, self.path, self._busy_ms) from error
        except OverflowError as error:
            raise errors.Malformed(
                "a number", "is beyond the 64 bits that a file holds"
            ) from error

    def _still_ours(self) -> None:
        """Raises LedgerMisused in a forked child, StorageFailed if the file is another one now."""
        if self._closed:
            raise errors.LedgerMisused(f"{self.path} is closed: open it again")
        if os.getpid() != self._pid:
            raise errors.LedgerMisused(
                f"{self.path} was opened before a fork: open it in the child"
            )
        if self._file is not None and self._file != file_at(self.path):
            why = (
                "was moved, replaced or removed while it was open: close it and look for the file"
            )
            raise errors.StorageFailed(str(self.path), why)

    def _undo(self) -> None:
        self._policies.clear()  # what was read may be undone, too
        with suppress(sqlite3.Error):  # the first error is the one to report
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def copy_into(self, path: Path) -> None:
        """Let SQLite write all that is committed into a new file. Raises StorageFailed or Busy."""
        self._still_ours()
        if self._inside:
            raise errors.LedgerMisused("a transaction is open in this ledger: end it first")
        try:
            self._connection.execute("VACUUM INTO ?", (str(path),))
        except sqlite3.Error as error:
            raise border.ours(error, path, self._busy_ms) from error

    def now_ms(self) -> int:
        """What this ledger's clock says. Raises Malformed if that is no time."""
        return checks.whole("clock", self._clock())

    def close(self) -> None:
        """Close the file. Closing again does nothing. Raises LedgerMisused in another thread."""
        try:
            self._connection.close()
        except sqlite3.Error as error:
            raise border.ours(error, self.path, self._busy_ms) from error
        self._closed = True

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
