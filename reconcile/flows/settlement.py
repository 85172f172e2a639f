"""What a person hands in: a receipt for an uncertain order, and goods that arrived."""

from __future__ import annotations

from ..ledger import approvals, catalogue, decisions, operations
from ..ledger.catalogue import Delivery
from ..ledger.decisions import Decision
from ..ledger.store import Ledger
from ..rules import admission, checks, contact, order_errors, receipts
from ..rules.delivery import may_be_delivered
from ..rules.errors import ContradictingReceipt, Malformed
from ..rules.evidence import Receipt
from ..rules.receipts import Origin
from .receipts import settle

LONGEST_REFERENCE = 500  # characters


def resolve_order(
    ledger: Ledger,
    operation_id: str,
    receipt: Receipt,
    *,
    digest: str,
    supplier: str,
    actor: str,
    reference: str,
) -> Decision:
    """Settle an order by a conclusive receipt that a listed person hands in, in one transaction.

    `supplier` and `digest` say what the person looked at, `reference` where the original of the
    receipt can be found. The same again returns the stored decision, marked as repeated. One that
    contradicts what is recorded is kept, and refused. It is for people: no agent's list of actions
    has it. Raises UnknownOperation, NoOrder, WrongDigest, NotListed, Malformed, what
    `receipts.hand_in` raises, or, with the receipt kept, ContradictingReceipt.
    """
    checks.instance("ledger", ledger, Ledger)
    words = {"operation_id": operation_id, "digest": digest, "supplier": supplier, "actor": actor}
    for name, value in {**words, "reference": reference}.items():
        checks.text(name, value)
    if len(reference) > LONGEST_REFERENCE:
        raise Malformed("reference", f"is longer than {LONGEST_REFERENCE} characters")
    checks.instance("receipt", receipt, Receipt)
    with ledger.transaction() as tx:
        operation = operations.read(tx, operation_id)
        admission.order_of(operation)
        receipts.hand_in(operation, receipt, supplier=supplier)
        admission.same_digest(operation, digest)
        if not approvals.is_listed(tx, actor):
            raise order_errors.NotListed(actor)
        done = settle(tx, operation, receipt, Origin.OPERATOR, actor=actor, reference=reference)
        if done is None and receipts.agrees(operation, receipt):
            done = decisions.last(tx, operation)
    if done is None:
        raise ContradictingReceipt(operation_id, receipts.why_not(operation, receipt))
    return done


def deliver(
    ledger: Ledger, operation_id: str, *, reference: str, quantity: int, actor: str
) -> int | None:
    """Record goods that arrived for an order; returns what is on hand now, None if never counted.

    Accepted is not delivered: no receipt moves stock, and no delivery moves a state or money. The
    same delivery again changes nothing. Raises UnknownOperation, NoOrder, Paused, Malformed, or
    DeliveryRefused if the reference is another delivery's, the order cannot have happened, or more
    would arrive than was ordered.
    """
    checks.instance("ledger", ledger, Ledger)
    for name, value in (
        ("operation_id", operation_id),
        ("reference", reference),
        ("actor", actor),
    ):
        checks.text(name, value)
    checks.whole("quantity", quantity, least=1)
    with ledger.transaction() as tx:
        operation = operations.read(tx, operation_id)
        order = admission.order_of(operation)
        contact.restored_starts_paused(operation)
        stored = catalogue.delivered(tx, reference)
        if stored is None:
            may_be_delivered(operation, reference=reference, quantity=quantity)
            catalogue.deliver(tx, operation, reference=reference, quantity=quantity, actor=actor)
        elif stored != Delivery(reference, operation.number, quantity, actor):
            why = "was recorded already, with another order, quantity or name"
            raise order_errors.DeliveryRefused(reference, why)
        return catalogue.on_hand(tx, order.sku)
