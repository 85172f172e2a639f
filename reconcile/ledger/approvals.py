"""Approvals: which compensation is bound to which effect, by whom, and at which version."""

from __future__ import annotations

from ..rules.operation import Binding, Operation
from . import operations
from .tx import Tx


def latest(tx: Tx, original: Operation, effect_id: str) -> Operation | None:
    """The last compensation approved for this effect; None if there was none."""
    row = tx.execute(
        "SELECT operation FROM approval WHERE original = ? AND effect_id = ? "
        "ORDER BY ordinal DESC LIMIT 1",
        (original.number, effect_id),
    ).fetchone()
    return None if row is None else operations.read_all(tx, [row[0]])[0]


def add(tx: Tx, compensation: Operation, original: Operation, binding: Binding) -> None:
    tx.execute(
        "INSERT INTO approval VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            compensation.number,
            original.number,
            binding.effect_id,
            binding.ordinal,
            binding.approved_version,
            binding.approver,
            tx.now_ms,
        ),
    )
