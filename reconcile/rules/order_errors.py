"""Refusals of the purchase path: work, authority, money, delivery. Nothing was written or sent."""

from __future__ import annotations

from .errors import ReconcileError


class UnknownWork(ReconcileError):
    """Raised if no such work item was enqueued in this file."""

    says = "no work item {work_id!r} in this ledger: check its name, or enqueue it first"

    def __init__(self, work_id: str) -> None:
        super().__init__(work_id)
        self.work_id = work_id


class WorkCancelled(ReconcileError):
    """Raised if a work item was cancelled: it may ask and settle, and gives no authority."""

    says = "work item {work_id!r} is cancelled: nothing more is sent for it; enqueue another one"

    def __init__(self, work_id: str) -> None:
        super().__init__(work_id)
        self.work_id = work_id


class LeaseTooShort(ReconcileError):
    """Raised if a call could outlive the claim under which it is made. Both in milliseconds."""

    says = "the claim lasts {left_ms} ms more and a call may take {limit_ms} ms: extend it first"

    def __init__(self, left_ms: int, limit_ms: int) -> None:
        super().__init__(left_ms, limit_ms)
        self.left_ms, self.limit_ms = left_ms, limit_ms


class NoPrice(ReconcileError):
    """Raised if the store has no price of this supplier for a SKU."""

    says = "no price of {supplier!r} for {sku!r} is in this store: set one; a caller names none"

    def __init__(self, sku: str, supplier: str) -> None:
        super().__init__(sku, supplier)
        self.sku, self.supplier = sku, supplier


class NoBudget(ReconcileError):
    """Raised if the store has no budget in a currency, so that nothing may be held in it."""

    says = "no budget in {currency} is in this store: set one first"

    def __init__(self, currency: str) -> None:
        super().__init__(currency)
        self.currency = currency


class NoOrder(ReconcileError):
    """Raised if an operation carries no money: it was not proposed as an order."""

    says = "operation {operation_id} is no order: it was prepared without money; propose it"

    def __init__(self, operation_id: str) -> None:
        super().__init__(operation_id)
        self.operation_id = operation_id


class NotApprovable(ReconcileError):
    """Raised if an order stands where no approval of this kind can be given."""

    says = "operation {operation_id} is {state}: {why}"

    def __init__(self, operation_id: str, state: str, why: str) -> None:
        super().__init__(operation_id, state, why)
        self.operation_id, self.state, self.why = operation_id, state, why


class WrongDigest(ReconcileError):
    """Raised if the digest named is not that of the order: somebody looked at something else."""

    says = "digest {found} is not this order's, which is {expected}: look at the order again"

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(expected, found)
        self.expected, self.found = expected, found


class NotListed(ReconcileError):
    """Raised if an actor is not on the current list of those who may approve."""

    says = "{actor!r} is not on the current list of approvers: ask one who is"

    def __init__(self, actor: str) -> None:
        super().__init__(actor)
        self.actor = actor


class NoApproval(ReconcileError):
    """Raised if an order may not be sent, since no approval was ever given."""

    says = "operation {operation_id} has no approval: approve it first"

    def __init__(self, operation_id: str) -> None:
        super().__init__(operation_id)
        self.operation_id = operation_id


class ApprovalExpired(ReconcileError):
    """Raised if the last approval ended by its own date, in UTC milliseconds."""

    says = (
        "the approval of operation {operation_id} does not hold now, it ends at {expires_ms}: "
        "a new one is needed"
    )

    def __init__(self, operation_id: str, expires_ms: int) -> None:
        super().__init__(operation_id, expires_ms)
        self.operation_id, self.expires_ms = operation_id, expires_ms


class ApprovalRevoked(ReconcileError):
    """Raised if the approval was revoked: it gives no authority, and is not renewed."""

    says = "the approval of operation {operation_id} was revoked by {by!r}: nothing more is sent"

    def __init__(self, operation_id: str, by: str) -> None:
        super().__init__(operation_id, by)
        self.operation_id, self.by = operation_id, by


class UnknownBasis(ReconcileError):
    """Raised if it is not recorded on what basis an approval was given."""

    says = "nobody knows on what basis operation {operation_id} was approved: approve it anew"

    def __init__(self, operation_id: str) -> None:
        super().__init__(operation_id)
        self.operation_id = operation_id


class AutomaticRefused(ReconcileError):
    """Raised if an automatic approval would do what needs a person."""

    says = "operation {operation_id} cannot be approved automatically: {why}"

    def __init__(self, operation_id: str, why: str) -> None:
        super().__init__(operation_id, why)
        self.operation_id, self.why = operation_id, why


class CeilingExceeded(ReconcileError):
    """Raised if spent, reserved and written-off money would pass the ceiling. In minor units."""

    says = (
        "with {pence} more, {total} of {ceiling} {currency} (minor units) would be reserved, "
        "spent or written off; wait until an open order is settled, or raise the ceiling"
    )

    def __init__(self, pence: int, total: int, ceiling: int, currency: str) -> None:
        super().__init__(pence, total, ceiling, currency)
        self.pence, self.total, self.ceiling, self.currency = pence, total, ceiling, currency


class NotAdmitted(ReconcileError):
    """Raised if a receipt is for an order that this store never sent."""

    says = "operation {operation_id} was never sent from this store: a receipt settles nothing"

    def __init__(self, operation_id: str) -> None:
        super().__init__(operation_id)
        self.operation_id = operation_id


class DeliveryRefused(ReconcileError):
    """Raised if a delivery cannot be of this order, or its reference is another one's."""

    says = "delivery {reference!r}: {why}; no stock moved"

    def __init__(self, reference: str, why: str) -> None:
        super().__init__(reference, why)
        self.reference, self.why = reference, why
