"""Keep a receipt, however it came, and write what it entitles to: one place for all of them."""

from __future__ import annotations

from ..ledger import attempts, decisions
from ..ledger.tx import Tx
from ..rules import receipts
from ..rules.evidence import Receipt
from ..rules.move import Incident, Move
from ..rules.operation import Operation
from ..rules.receipts import Origin


def settle(
    tx: Tx,
    operation: Operation,
    receipt: Receipt,
    origin: Origin,
    *,
    actor: str,
    attempt: int | None = None,
    reference: str | None = None,
) -> decisions.Decision | None:
    """Keep a receipt and write what it entitles to: the decision, an incident, or nothing more."""
    handed_in_by = actor if origin is Origin.OPERATOR else None
    entitled = receipts.settle(operation, receipt, origin, actor=actor)
    number = attempts.keep(
        tx,
        operation,
        receipt,
        origin,
        attempt=attempt,
        actor=handed_in_by,
        reference=reference,
    )
    return write(tx, entitled, receipt=number)


def write(
    tx: Tx, entitled: Move | Incident | None, *, receipt: int | None = None
) -> decisions.Decision | None:
    """Write what a guard returned; the decision, if it was a move."""
    if isinstance(entitled, Incident):
        decisions.notice(tx, entitled)
    elif entitled is not None:
        return decisions.record(tx, entitled, receipt=receipt)
    return None
