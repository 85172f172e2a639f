"""What left, and what came back: sendings, receipts, lookups, requests to close."""

from __future__ import annotations

from ..rules.actions import Transport
from ..rules.evidence import Receipt
from ..rules.operation import Operation
from ..rules.receipts import Origin
from .tx import Tx

LONGEST_WORD = 200  # characters of what an adapter said of a failed call


def start(tx: Tx, operation: Operation) -> int:
    """Write that one request is about to leave; returns which attempt it is."""
    attempt = operation.attempts + 1
    tx.execute(
        "INSERT INTO attempt (operation, attempt, announced_ms) VALUES (?, ?, ?)",
        (operation.number, attempt, tx.now_ms),
    )
    return attempt


def end(
    tx: Tx, operation: Operation, attempt: int, transport: Transport, said: str | None
) -> None:
    """Write how the call went, and what the adapter said if it failed."""
    if said is not None:  # an adapter's text: cut, and such as the file can hold
        said = str(said)[:LONGEST_WORD].encode("utf-8", "backslashreplace").decode()
    tx.execute(
        "UPDATE attempt SET transport = ?, said = ? WHERE operation = ? AND attempt = ?",
        (transport.value, said, operation.number, attempt),
    )


def keep(
    tx: Tx,
    operation: Operation,
    receipt: Receipt,
    origin: Origin,
    *,
    attempt: int | None = None,
    actor: str | None = None,
    reference: str | None = None,
) -> int:
    """Keep a receipt; returns which one of its operation it is.

    The same text by another way than a reply is kept once for each way and reference.
    """
    body = receipt.to_json()
    stored = tx.execute(
        "SELECT received FROM receipt WHERE operation = ? AND origin = ? AND body = ? "
        "AND attempt IS NULL AND reference IS ?",
        (operation.number, origin.value, body, reference),
    ).fetchone()
    if stored is not None:
        return int(stored[0])
    row = tx.execute(
        "INSERT INTO receipt SELECT ?, coalesce(max(received), 0) + 1, ?, ?, ?, ?, ?, ? "
        "FROM receipt WHERE operation = ? RETURNING received",
        (
            operation.number,
            origin.value,
            attempt,
            actor,
            reference,
            body,
            tx.now_ms,
            operation.number,
        ),
    ).fetchone()
    return int(row[0])


def asked(tx: Tx, operation: Operation, *, attempts: int, found: bool) -> None:
    """Write that the stored receipt was asked for, after so many sendings, and whether it came."""
    tx.execute(
        "INSERT INTO lookup SELECT ?, coalesce(max(asked), 0) + 1, ?, ?, ? "
        "FROM lookup WHERE operation = ?",
        (operation.number, attempts, int(found), tx.now_ms, operation.number),
    )


def request_close(tx: Tx, operation: Operation, *, purpose: str, authorized_by: str) -> None:
    """Write that a request to close is about to leave, why, and who allowed it."""
    tx.execute(
        "INSERT INTO close_request VALUES (?, ?, ?, ?, ?)",
        (operation.number, operation.close_requests + 1, purpose, authorized_by, tx.now_ms),
    )
