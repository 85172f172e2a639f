"""An open transaction, as everything in this room is given it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..rules import errors, sweep_errors
from ..rules.policy import EffectPolicy

_NO_TEXT = "Could not decode to UTF-8"  # an OperationalError, which has no code on 3.10


class Tx:
    """An open transaction: the only thing that executes SQL. Time stands still inside it."""

    __slots__ = ("_connection", "now_ms", "paused", "policies")

    def __init__(
        self,
        connection: sqlite3.Connection,
        now_ms: int,
        policies: dict[int, EffectPolicy],
        paused: str | None = None,
    ) -> None:
        self._connection, self.now_ms, self.policies = connection, now_ms, policies
        self.paused = paused  # why this copy may be older than the world, where it only looks

    def execute(self, sql: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        """Run one statement. Raises LedgerMisused if SQLite ended the transaction by itself."""
        # SQLite ends a transaction by itself on a full disk, an I/O error or an interrupt. Code
        # that went on would run each later statement as a transaction of its own.
        if not self._connection.in_transaction:
            raise errors.LedgerMisused(
                "SQLite ended this transaction: nothing more may be written in it"
            )
        return self._connection.execute(sql, values)

    @contextmanager
    def part(self) -> Iterator[None]:
        """A part that is undone alone if it fails, so that one bad row does not stop the others.

        Raises RowRefused if a constraint or a trigger refused a row, or if its text is none.
        Whatever else SQLite raises is about the file, and ends the whole transaction.
        """
        self.execute("SAVEPOINT part")
        try:
            yield
        except Exception as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO part")
                self._connection.execute("RELEASE part")
            if isinstance(error, sqlite3.IntegrityError) or _NO_TEXT in str(error):
                raise sweep_errors.RowRefused(str(error)) from error
            raise
        self.execute("RELEASE part")
