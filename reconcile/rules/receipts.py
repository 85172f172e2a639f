"""When a receipt speaks for the effect, and what it entitles to.

A plain receiver numbers what it does and does not know that two requests were one operation, so
that its reply speaks only for a single send. A receiver that declares one stored receipt for each
identity speaks for all of them, and so does a named operator with a reference.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from . import contact, errors, moves, order_errors
from .evidence import CONCLUSIVE, OUTCOME_OF, Receipt
from .move import Incident, Move, move_of
from .operation import Operation
from .states import Cause, State, is_legal


class Origin(Enum):
    """How a receipt came here."""

    REPLY = "reply"  # the direct reply to a send
    LOOKUP = "lookup"  # asked for by identity, at a receiver that stores one for each
    OPERATOR = "operator"  # handed in by a named person, with a reference to its evidence


def receipt_answers(operation: Operation, receipt: Receipt) -> bool:
    """mismatch-never-resolves, for receipts: whether it answers exactly this operation."""
    return receipt.query == operation.query


def receipt_speaks(operation: Operation, receipt: Receipt, origin: Origin) -> bool:
    """Whether a receipt of this origin says what became of the effect, whatever was sent."""
    if not moves.own_effect(operation, receipt.effect_id):
        return False
    if origin is Origin.REPLY:
        return operation.may_have_left == 1 or operation.policy.stored_receipt
    if origin is Origin.LOOKUP:
        return operation.policy.stored_receipt
    return origin is Origin.OPERATOR  # who comes by another way has no authority yet


def settle(
    operation: Operation, receipt: Receipt, origin: Origin, *, actor: str
) -> Move | Incident | None:
    """What a receipt entitles to. None: it is kept, and nothing moves."""
    if not receipt_answers(operation, receipt):
        return None
    target = OUTCOME_OF[receipt.status]
    # A paused store keeps what it hears and moves nothing.
    speaks = operation.paused is None and receipt_speaks(operation, receipt, origin)
    if speaks and is_legal(operation.state, target, Cause.RECEIPT):
        move = move_of(operation, target, Cause.RECEIPT, actor)
        return replace(move, effect_id=receipt.effect_id, receipt=receipt)
    return moves.final_stays_final(operation, receipt)


def agrees(operation: Operation, receipt: Receipt) -> bool:
    """Whether a receipt says what is final already, of the same effect."""
    said = OUTCOME_OF[receipt.status] is operation.state
    same_effect = receipt.effect_id == operation.effect_id
    return receipt_answers(operation, receipt) and said and same_effect


def why_not(operation: Operation, receipt: Receipt) -> str:
    """Why a receipt that was handed in settled nothing, for a person."""
    if not receipt_answers(operation, receipt):
        return "it names another proposal, supplier or epoch"
    return f"it says {receipt.status}, and the order is {operation.state.value}"


def hand_in(operation: Operation, receipt: Receipt, *, supplier: str) -> None:
    """May an operator hand this receipt in?

    Raises Paused, WrongReceiver, WrongQuestion if it is about another operation, Inconclusive, or
    NotAdmitted if nothing was ever sent.
    """
    contact.restored_starts_paused(operation)
    contact.right_receiver(operation, supplier, operation.epoch)
    if receipt.operation_id != operation.operation_id:
        raise errors.WrongQuestion("operation_id")
    if receipt.status not in CONCLUSIVE:
        raise errors.Inconclusive(receipt.status)
    if operation.state is State.PREPARED or not operation.may_have_left:
        raise order_errors.NotAdmitted(operation.operation_id)
