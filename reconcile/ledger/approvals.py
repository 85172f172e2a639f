"""Authority for orders: who may approve today, and what was approved and revoked."""

from __future__ import annotations

from ..rules.operation import Operation
from ..rules.order import Approval, Basis, Order
from .tx import Tx


def last(tx: Tx, number: int) -> Approval | None:
    """The newest approval of an order, which is the one that counts; None if there is none."""
    row = tx.execute(
        "SELECT ordinal, digest, basis, actor, approved_ms, expires_ms, revoked_by "
        "FROM approval WHERE operation = ? ORDER BY ordinal DESC LIMIT 1",
        (number,),
    ).fetchone()
    if row is None:
        return None
    return Approval(
        ordinal=row[0],
        digest=row[1],
        basis=Basis(row[2]),
        actor=row[3],
        approved_ms=row[4],
        expires_ms=row[5],
        revoked_by=row[6],
        listed=is_listed(tx, row[3]),
    )


def is_listed(tx: Tx, name: str) -> bool:
    """Whether somebody is on today's list of approvers."""
    row = tx.execute("SELECT listed FROM approver WHERE name = ?", (name,)).fetchone()
    return row is not None and bool(row[0])


def list_approver(tx: Tx, name: str, *, listed: bool) -> None:
    """Put somebody on the list, or take them off it."""
    if tx.execute("SELECT 1 FROM approver WHERE name = ?", (name,)).fetchone() is None:
        tx.execute("INSERT INTO approver VALUES (?, ?, ?)", (name, int(listed), tx.now_ms))
    else:
        tx.execute(
            "UPDATE approver SET listed = ?, changed_ms = ? WHERE name = ?",
            (int(listed), tx.now_ms, name),
        )


def asked(
    tx: Tx, order: Order, digest: str, *, actor: str, basis: Basis, expires_ms: int
) -> Approval:
    """The next approval of an order, as somebody asks for it: neither judged nor written yet."""
    return Approval(
        ordinal=1 if order.approval is None else order.approval.ordinal + 1,
        digest=digest,
        basis=basis,
        actor=actor,
        approved_ms=tx.now_ms,
        expires_ms=expires_ms,
        revoked_by=None,
        listed=is_listed(tx, actor),
    )


def add(tx: Tx, operation: Operation, approval: Approval) -> None:
    """Write an approval."""
    tx.execute(
        "INSERT INTO approval (operation, ordinal, digest, basis, actor, approved_ms, expires_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            operation.number,
            approval.ordinal,
            approval.digest,
            approval.basis.value,
            approval.actor,
            approval.approved_ms,
            approval.expires_ms,
        ),
    )


def revoke(tx: Tx, operation: Operation, *, actor: str, reason: str) -> None:
    """Write that the last approval was revoked; one that was, stays as it is."""
    tx.execute(
        "UPDATE approval SET revoked_by = ?, reason = ?, revoked_ms = ? WHERE operation = ? "
        "AND revoked_ms IS NULL "
        "AND ordinal = (SELECT max(ordinal) FROM approval WHERE operation = ?)",
        (actor, reason, tx.now_ms, operation.number, operation.number),
    )
