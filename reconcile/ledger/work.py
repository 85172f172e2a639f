"""Work items: what is to be done, and whether somebody cancelled it."""

from __future__ import annotations

from ..rules import order_errors
from .tx import Tx


def enqueue(tx: Tx, work_id: str) -> None:
    """Write a work item; one that stands already stays as it is."""
    if tx.execute("SELECT 1 FROM work WHERE work_id = ?", (work_id,)).fetchone() is None:
        tx.execute("INSERT INTO work (work_id, enqueued_ms) VALUES (?, ?)", (work_id, tx.now_ms))


def cancelled_by(tx: Tx, work_id: str) -> str | None:
    """Who cancelled a work item; None if nobody did. Raises UnknownWork if there is none such."""
    row = tx.execute("SELECT cancelled_by FROM work WHERE work_id = ?", (work_id,)).fetchone()
    if row is None:
        raise order_errors.UnknownWork(work_id)
    return None if row[0] is None else str(row[0])


def cancel(tx: Tx, work_id: str, *, actor: str, reason: str) -> None:
    """Write that a work item is cancelled, which is never undone."""
    tx.execute(
        "UPDATE work SET cancelled_by = ?, reason = ?, cancelled_ms = ? WHERE work_id = ?",
        (actor, reason, tx.now_ms, work_id),
    )


def paused_why(tx: Tx) -> str | None:
    """Why the store that holds the items acts on nothing; None if it is live."""
    stored: str | None = tx.execute("SELECT paused_why FROM store").fetchone()[0]
    return stored or tx.paused
