"""Ask first: the stored receipt of a keyed receiver, before anything is sent again."""

from __future__ import annotations

from ..ledger import attempts, operations
from ..ledger.store import Ledger
from ..rules import checks, contact, errors, sending
from ..rules.evidence import Receipt
from ..rules.operation import Operation
from ..rules.receipts import Origin
from .receipts import settle
from .receivers import Receiver, answer_of, check_receiver


def inquire(ledger: Ledger, operation_id: str, receiver: Receiver) -> Operation:
    """Ask the receiver for its stored receipt, and write what it entitles to.

    Returns the operation as it is then. A receipt settles where the pinned policy declares one
    stored receipt for each identity; elsewhere it is kept. None proves nothing, and is written as
    asked in vain, which `resend` asks for. Raises UnknownOperation, WrongReceiver, or Malformed if
    the receiver has no lookup, before any contact; NoReply or NotSent if it gave no answer.
    """
    checks.instance("ledger", ledger, Ledger)
    checks.text("operation_id", operation_id)
    declared = check_receiver(receiver)
    lookup = getattr(receiver, "lookup", None)
    if not callable(lookup):
        raise errors.Malformed("receiver", "has no lookup(): it keeps no receipts to be asked for")
    with ledger.reading() as tx:
        operation = operations.read(tx, operation_id)
    contact.right_receiver(operation, declared.identity, declared.epoch)

    receipt: Receipt | None = answer_of(
        declared.identity, lambda: lookup(operation.query), Receipt, type(None)
    )

    with ledger.transaction() as tx:
        now = operations.read(tx, operation_id)
        attempts.asked(tx, now, attempts=operation.attempts, found=receipt is not None)
        if receipt is not None:
            settle(tx, now, receipt, Origin.LOOKUP, actor=sending.SENDER)
        return operations.read(tx, operation_id)
