"""Open questions: born with `unknown`, ended with its answer, each in the same commit."""

from __future__ import annotations

from ..rules.operation import Operation
from .tx import Tx


def begin(tx: Tx, operation: Operation) -> None:
    """Open the question of this operation, as its next generation."""
    tx.execute(
        "INSERT INTO obligation SELECT ?, coalesce(max(generation), 0) + 1, ?, ?, NULL "
        "FROM obligation WHERE operation = ?",
        (operation.number, tx.now_ms, tx.now_ms, operation.number),
    )


def end(tx: Tx, operation: Operation) -> None:
    """End the open question of this operation; without one, do nothing."""
    tx.execute(
        "UPDATE obligation SET ended_ms = ? WHERE operation = ? AND ended_ms IS NULL",
        (tx.now_ms, operation.number),
    )
