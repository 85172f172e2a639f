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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..rules import checks, errors
from ..rules.policy import EffectPolicy
from . import schema

SQLITE_FLOOR = (3, 35, 0)  # the first with RETURNING
WAL_TRIES = 100  # each waits for a writer, within busy_ms


def system_clock() -> int:
    """UTC milliseconds."""
    return time.time_ns() // 1_000_000


class Tx:
    """An open transaction: the only thing that executes SQL. Time stands still inside it."""

    __slots__ = ("_connection", "now_ms", "policies")

    def __init__(
        self, connection: sqlite3.Connection, now_ms: int, policies: dict[int, EffectPolicy]
    ) -> None:
        self._connection, self.now_ms, self.policies = connection, now_ms, policies

    def execute(self, sql: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        # SQLite ends a transaction by itself on a full disk, an I/O error or an interrupt. Code
        # that went on would run each later statement as a transaction of its own.
        if not self._connection.in_transaction:
            raise errors.LedgerMisused(
                "SQLite ended this transaction: nothing more may be written in it"
            )
        return self._connection.execute(sql, values)


class Ledger:
    """An open ledger file, made on first use. A context manager; one thread uses it at a time.

    `clock` gives UTC milliseconds. `factory` is the connection class. `busy_ms` bounds the wait
    for another process's transaction. Raises ForeignFile if the path holds something else,
    StorageFailed if it cannot be opened or made, Busy if it stayed locked, Malformed if an
    argument is ill-typed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Callable[[], int] = system_clock,
        factory: type[sqlite3.Connection] = sqlite3.Connection,
        busy_ms: int = 5000,
    ) -> None:
        self._prepare(path, clock, busy_ms, looking=False)
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
        ledger._prepare(path, clock, busy_ms, looking=True)
        if not ledger.path.is_file():
            raise errors.StorageFailed(
                str(ledger.path), "no such file: name the ledger of the sender"
            )
        ledger._connect(ledger.path.as_uri() + "?mode=rw", factory, uri=True)
        return ledger

    def _prepare(
        self,
        path: str | os.PathLike[str],
        clock: Callable[[], int],
        busy_ms: int,
        *,
        looking: bool,
    ) -> None:
        if sqlite3.sqlite_version_info < SQLITE_FLOOR:
            floor = ".".join(map(str, SQLITE_FLOOR))
            raise errors.StorageFailed(
                str(path), f"SQLite {sqlite3.sqlite_version} is older than {floor}"
            )
        if (
            not isinstance(path, (str, os.PathLike))
            or "\0" in os.fspath(path)
            or not os.fspath(path)
        ):
            raise errors.Malformed("path", f"{path!r} names no file")
        self._busy_ms = checks.whole("busy_ms", busy_ms, least=0)
        self._clock, self._looking, self._closed = clock, looking, False
        self._policies: dict[int, EffectPolicy] = {}
        self.path = Path(path).absolute()  # a later change of directory must not move the ledger
        if self.path.is_dir():
            raise errors.ForeignFile(str(self.path), "is a folder: name a file in it")

    def _connect(self, name: str, factory: type[sqlite3.Connection], *, uri: bool) -> None:
        try:
            self._connection = sqlite3.connect(
                name, isolation_level=None, timeout=self._busy_ms / 1000, factory=factory, uri=uri
            )
        except sqlite3.Error as error:
            raise self._ours(error) from error
        try:
            self._open()
        except sqlite3.Error as error:
            self._connection.close()
            raise self._ours(error) from error
        except BaseException:
            self._connection.close()
            raise

    def _open(self) -> None:
        found = self._header()
        if found == (0, 0) and self._looking:
            raise errors.ForeignFile(
                str(self.path), "is no ledger: it is empty, or of another program"
            )
        if found[0] not in (0, schema.APPLICATION_ID) or (found == (0, 0) and self._tables()):
            raise errors.ForeignFile(
                str(self.path), "belongs to another program; it was not changed"
            )
        if found[0] and found[1] != schema.SCHEMA_VERSION:
            raise errors.ForeignFile(
                str(self.path),
                f"has schema {found[1]}, this library has "
                f"{schema.SCHEMA_VERSION}: use the version that made it",
            )
        execute = self._connection.execute
        if self._looking:
            execute("PRAGMA query_only = ON")
            return
        self._use_wal()
        execute("PRAGMA synchronous = FULL")
        execute("PRAGMA foreign_keys = ON")
        if found == (0, 0):
            with self.transaction() as tx:
                if self._header() == (0, 0):  # else another process made it meanwhile
                    schema.create(tx)

    def _header(self) -> tuple[int, int]:
        execute = self._connection.execute
        return (
            execute("PRAGMA application_id").fetchone()[0],
            execute("PRAGMA user_version").fetchone()[0],
        )

    def _tables(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])

    def _use_wal(self) -> None:
        """The switch to WAL does not wait for a lock, and BEGIN IMMEDIATE does: wait there, and
        ask again.
        """
        for _ in range(WAL_TRIES):
            try:
                self._connection.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as error:
                if not _is_lock(error):
                    raise
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.execute("ROLLBACK")
        raise errors.Busy(str(self.path), self._busy_ms)

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
        with self._unit("BEGIN IMMEDIATE", "COMMIT") as tx:
            yield tx

    @contextmanager
    def reading(self) -> Iterator[Tx]:
        """One consistent view. It takes no write lock and leaves nothing. Raises as transaction()
        does.
        """
        with self._unit("BEGIN", "ROLLBACK") as tx:
            yield tx

    @contextmanager
    def _unit(self, begin: str, end: str) -> Iterator[Tx]:
        if self._closed:
            raise errors.LedgerMisused(f"{self.path} is closed: open it again")
        try:
            if self._connection.in_transaction:
                raise errors.LedgerMisused(
                    "a transaction is open in this ledger: they do not nest"
                )
            now_ms = checks.whole("clock", self._clock())
            self._connection.execute(begin)
            try:
                yield Tx(self._connection, now_ms, self._policies)
                self._connection.execute(end)
            except BaseException:
                self._undo()
                raise
        except sqlite3.Error as error:
            raise self._ours(error) from error

    def _undo(self) -> None:
        self._policies.clear()  # what was read may be undone, too
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                pass  # the first error is the one to report

    def _ours(self, error: sqlite3.Error) -> errors.ReconcileError:
        """The library's error for one of sqlite3. Texts are compared: 3.10 has no codes on
        exceptions.
        """
        path, why = str(self.path), str(error)
        if _is_lock(error):
            return errors.Busy(path, self._busy_ms)
        if "not a database" in why:
            return errors.ForeignFile(path, "is no ledger: it is of another kind, or damaged")
        if isinstance(error, sqlite3.ProgrammingError):
            return errors.LedgerMisused(why)
        if "unable to open" in why or "readonly" in why:
            why += (
                f"; the folder {self.path.parent} must exist and be writable, "
                "also for looking, since SQLite "
                "keeps its log beside the file: copy the file and its -wal to a folder of your own"
            )
        return errors.StorageFailed(path, why)

    def now_ms(self) -> int:
        """What this ledger's clock says."""
        return self._clock()

    def close(self) -> None:
        """Close the file. Closing again does nothing."""
        self._closed = True
        self._connection.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_lock(error: sqlite3.Error) -> bool:
    return isinstance(error, sqlite3.OperationalError) and (
        "locked" in str(error) or "busy" in str(error)
    )
