"""Orders: a purchase is an operation with authority and held money, and goes the same way.

Propose, approve, then `dispatch` under a claim; an uncertain one is asked about with `inquire`,
and sent again with `resend` where the supplier guarantees that. This module adds what money needs,
and no second state machine: who may approve what, until when, and what may still be taken back.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ledger import approvals, catalogue, claims, decisions, operations, purchases, reservations
from ..ledger import work as items
from ..ledger.catalogue import Price
from ..ledger.store import Ledger
from ..ledger.tx import Tx
from ..rules import admission, checks, contact, order_errors, sending
from ..rules.claim import Claim
from ..rules.errors import IdentityTaken
from ..rules.operation import DistinctNeed, Operation, Scope
from ..rules.order import Basis
from ..rules.states import State
from .preparation import prepare_in
from .receivers import Receiver, check_receiver

KIND = "order"


def propose(
    ledger: Ledger,
    supplier: Receiver,
    *,
    claim: Claim,
    sku: str,
    quantity: int,
    scope: tuple[str, str, str] = Scope(),
    distinct_need: DistinctNeed | None = None,
) -> Operation:
    """Prepare an order of so many units at the price of the store, under a claim of its work item.

    Another draft of the same work item and need is withdrawn, unless one of the two is a distinct
    need: it keeps no authority, and proposing it again returns it as revoked. The same proposal
    again returns the stored order. Raises StaleClaim, WorkCancelled, NoPrice, NoBudget,
    EquivalentUnresolved, EffectSeen, IdentityTaken, Paused, or Malformed, also for an amount
    beyond 64 bits.
    """
    checks.instance("ledger", ledger, Ledger)
    declared = check_receiver(supplier)
    checks.instance("claim", claim, Claim)
    checks.text("sku", sku)
    checks.whole("quantity", quantity, least=1)
    with ledger.transaction() as tx:
        held = claims.assert_current(tx, claim)
        if items.cancelled_by(tx, held.item) is not None:
            raise order_errors.WorkCancelled(held.item)
        price = catalogue.price(tx, sku, declared.identity)
        checks.whole("amount", quantity * price.unit_cost, least=1)
        reservations.budget(tx, price.currency)
        operation = prepare_in(
            tx,
            declared,
            work_id=held.item,
            kind=KIND,
            payload=_payload(declared.identity, sku, quantity, price),
            subject=sku,
            scope=scope,
            distinct_need=distinct_need,
        )
        if operation.order is not None:
            return operation
        if operation.version != 1:
            raise IdentityTaken(operation.operation_id, "origin: it was prepared without money")
        purchases.add(tx, operation, sku=sku, quantity=quantity, price=price)
        order = operations.read(tx, operation.operation_id)
        _supersede(tx, order, owner=held.owner)
        return order


def _payload(supplier: str, sku: str, quantity: int, price: Price) -> dict[str, object]:
    return {
        "sku": sku,
        "quantity": quantity,
        "unit_cost_pence": price.unit_cost,
        "supplier": supplier,
        "currency": price.currency,
    }


def _supersede(tx: Tx, order: Operation, *, owner: str) -> None:
    numbers = purchases.drafts(tx, work_id=order.work_id, sku=order.subject)
    drafts = operations.read_all(tx, numbers)
    for seen in drafts:
        sending.nothing_was_seen(seen)  # whoever caused that effect, the need may be met
    for old in admission.superseded_by(order, drafts):
        why = f"superseded by {order.operation_id}"
        decisions.record(tx, admission.withdraw(old, actor=owner, reason=why))


def approve(
    ledger: Ledger,
    operation_id: str,
    *,
    digest: str,
    actor: str,
    expires_ms: int,
    basis: Basis = Basis.OPERATOR,
) -> Operation:
    """Approve one exact draft until a moment, at most a day away, and reserve its money.

    Approving again gives the newest approval and reserves nothing more. `basis` UNKNOWN takes
    over a grant of which nobody knows the basis: it reserves, and admits nothing. Raises
    UnknownOperation, NoOrder, or what `admission.approve` raises.
    """
    _named(ledger, operation_id=operation_id, digest=digest, actor=actor)
    checks.instance("basis", basis, Basis)
    with ledger.transaction() as tx:
        operation = operations.read(tx, operation_id)
        order = admission.order_of(operation)
        asked = approvals.asked(tx, order, digest, actor=actor, basis=basis, expires_ms=expires_ms)
        admission.approve(operation, asked)
        approvals.add(tx, operation, asked)
        if not order.held:
            reservations.reserve(tx, operation, order)
        return operations.read(tx, operation_id)


def renew(
    ledger: Ledger,
    operation_id: str,
    supplier: Receiver,
    *,
    digest: str,
    actor: str,
    expires_ms: int,
    basis: Basis = Basis.OPERATOR,
) -> Operation:
    """Give an uncertain order authority to be sent again, should its supplier guarantee that.

    Identity, digest, reservation and the duty to ask first stay as they are. Raises
    UnknownOperation, NoOrder, or what `admission.renew` raises.
    """
    _named(ledger, operation_id=operation_id, digest=digest, actor=actor)
    declared = check_receiver(supplier)
    checks.instance("basis", basis, Basis)
    with ledger.transaction() as tx:
        operation = operations.read(tx, operation_id)
        order = admission.order_of(operation)
        asked = approvals.asked(tx, order, digest, actor=actor, basis=basis, expires_ms=expires_ms)
        admission.renew(
            operation,
            asked,
            declared.policy,
            receiver=declared.identity,
            epoch=declared.epoch,
        )
        approvals.add(tx, operation, asked)
        return operations.read(tx, operation_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """What revoking came to.

    `in_time`: nothing had left, so the order is ended and its money free. Otherwise it may be too
    late: the order stays as it is, holds its money, and settles when its receipt comes; it is not
    sent again.
    """

    operation: Operation
    in_time: bool


def revoke(ledger: Ledger, operation_id: str, *, actor: str, reason: str) -> Revocation:
    """Take authority back, and say whether that was in time. Revoking again gives the same answer.

    Anybody named may revoke: it can only make less happen. Raises UnknownOperation, NoOrder, or
    Paused.
    """
    _named(ledger, operation_id=operation_id, actor=actor, reason=reason)
    with ledger.transaction() as tx:
        operation = operations.read(tx, operation_id)
        admission.order_of(operation)
        contact.restored_starts_paused(operation)
        approvals.revoke(tx, operation, actor=actor, reason=reason)
        if admission.in_time(operation):
            decisions.record(tx, admission.withdraw(operation, actor=actor, reason=reason))
        now = operations.read(tx, operation_id)
    in_time = now.state is State.REVOKED
    return Revocation(operation=now, in_time=in_time)


def _named(ledger: object, **words: object) -> None:
    checks.instance("ledger", ledger, Ledger)
    for name, value in words.items():
        checks.text(name, value)
