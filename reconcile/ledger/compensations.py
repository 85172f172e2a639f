"""Compensations: which compensation is bound to which effect, by whom, and at which version."""

from __future__ import annotations

from ..rules.operation import Binding, Operation
from . import operations
from .tx import Tx


def latest(tx: Tx, original: Operation, effect_id: str) -> Operation | None:
    """The last compensation approved for this effect of this receiver; None if there was none.

    Looked for by the effect, whatever operation it was confirmed for: a receiver may give one id
    to two operations, and it must not be compensated twice.
    """
    row = tx.execute(
        "SELECT a.operation FROM compensation a JOIN operation o ON o.number = a.original "
        "WHERE a.effect_id = ? AND o.target = ? AND o.epoch = ? "
        "ORDER BY a.approved_ms DESC, a.operation DESC LIMIT 1",
        (effect_id, original.target, original.epoch),
    ).fetchone()
    return None if row is None else operations.read_all(tx, [row[0]])[0]


def add(tx: Tx, compensation: Operation, original: Operation, binding: Binding) -> None:
    """Write what binds a compensation; the file refuses it if the effect is not confirmed now."""
    tx.execute(
        "INSERT INTO compensation VALUES (?, ?, ?, ?, ?, ?, ?)",
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
