"""Dispatch and resend: the unknown is committed first, the request leaves second."""

from __future__ import annotations

from collections.abc import Callable

from ..ledger import attempts, claims, decisions, operations
from ..ledger.store import Ledger
from ..ledger.tx import Tx
from ..rules import checks, contact, errors, sending
from ..rules.actions import ToolResult, Transport, tool_result
from ..rules.claim import Claim
from ..rules.evidence import Query, Receipt, whole
from ..rules.operation import Operation
from ..rules.order import Lease
from ..rules.receipts import Origin
from .receipts import settle, write
from .receivers import Declared, Receiver, check_receiver, limit_ms


def dispatch(
    ledger: Ledger, operation_id: str, receiver: Receiver, *, claim: Claim | None = None
) -> ToolResult:
    """Commit `unknown`, then send once; commit what came back.

    An order is sent under a live claim of its work item, and only while its authority and money
    stand; its receipt needs neither to settle. An outcome that is not established is the value
    UNKNOWN, whatever the receiver raised or however its process ended. Raises UnknownOperation,
    UnderTask if a task of a mission commands it, StaleClaim, what `sending.announce` raises, or
    Malformed if the receiver does not say by `limit_s` how long an order's call may take, before
    any contact, with nothing written; NotRecorded, with the receipt, if the file could not take
    the end of the call. An interrupt passes on. In both cases the operation stays unknown.
    """

    def admits(tx: Tx, operation: Operation) -> None:
        sending.sent_by_its_own(operation)

    return dispatch_if(ledger, operation_id, receiver, claim=claim, admits=admits)


def dispatch_if(
    ledger: Ledger,
    operation_id: str,
    receiver: Receiver,
    *,
    claim: Claim | None,
    admits: Callable[[Tx, Operation], None],
) -> ToolResult:
    """As `dispatch`; `admits` is asked in the transaction that announces, and raises to refuse."""
    declared = _checked(ledger, operation_id, receiver, claim)
    limit = 0 if claim is None else limit_ms(receiver)
    with ledger.transaction() as tx:
        operation, lease = _under_claim(tx, operation_id, claim, limit)
        admits(tx, operation)
        move = sending.announce(
            operation, receiver=declared.identity, epoch=declared.epoch, lease=lease
        )
        decisions.record(tx, move)
        attempt = attempts.start(tx, operation)
    return _send_and_settle(ledger, operation, attempt, receiver)


def resend(
    ledger: Ledger, operation_id: str, receiver: Receiver, *, claim: Claim | None = None
) -> ToolResult:
    """Send the same identity and the same bytes again, under a guarantee; another attempt.

    No state moves by it: what a second sending does not hear, says nothing of the first. Raises
    UnknownOperation, or what `sending.resend` raises, before any contact, with nothing written;
    NotRecorded as `dispatch` does.
    """
    declared = _checked(ledger, operation_id, receiver, claim)
    limit = limit_ms(receiver)  # a memory that ends needs a call that does
    with ledger.transaction() as tx:
        operation, lease = _under_claim(tx, operation_id, claim, limit)
        sending.resend(
            operation,
            declared.policy,
            receiver=declared.identity,
            epoch=declared.epoch,
            now_ms=tx.now_ms,
            limit_ms=limit,
            lease=lease,
        )
        attempt = attempts.start(tx, operation)
    return _send_and_settle(ledger, operation, attempt, receiver)


def _checked(ledger: object, operation_id: object, receiver: object, claim: object) -> Declared:
    checks.instance("ledger", ledger, Ledger)
    checks.text("operation_id", operation_id)
    if claim is not None:
        checks.instance("claim", claim, Claim)
    return check_receiver(receiver)


def _under_claim(
    tx: Tx, operation_id: str, claim: Claim | None, limit: int
) -> tuple[Operation, Lease | None]:
    """The operation, and how long its sender may still work on it, if that is asked."""
    operation = operations.read(tx, operation_id)
    contact.restored_starts_paused(operation)  # which every claim from before is stale by, too
    if claim is None:
        return operation, None
    if (claim.what, claim.item) != (claims.WORK, operation.work_id):
        raise errors.StaleClaim(operation.work_id, f"this one is of {claim.what} {claim.item!r}")
    current = claims.assert_current(tx, claim)
    return operation, Lease(now_ms=tx.now_ms, expires_ms=current.expires_ms, limit_ms=limit)


def _send_and_settle(
    ledger: Ledger, operation: Operation, attempt: int, receiver: Receiver
) -> ToolResult:
    transport, receipt, said = _send(receiver, operation.query)
    try:
        with ledger.transaction() as tx:
            attempts.end(tx, operation, attempt, transport, said)
            now, done = operations.read(tx, operation.operation_id), None
            if transport is Transport.NOT_SENT:
                done = write(tx, sending.never_sent(now))
            elif receipt is not None:
                done = settle(
                    tx, now, receipt, Origin.REPLY, actor=sending.SENDER, attempt=attempt
                )
            known = now if done is None else done.applied_to(now)
            return tool_result(known, transport, now_ms=tx.now_ms)
    except Exception as error:  # a clock, say, of whatever class: what came back must not be lost
        raise errors.NotRecorded(
            operation.operation_id, transport.value, str(error), receipt
        ) from error


def _send(receiver: Receiver, query: Query) -> tuple[Transport, Receipt | None, str | None]:
    try:
        reply = receiver.send(query)
    except errors.NotSent as error:
        return Transport.NOT_SENT, None, _why(error)
    except errors.NoReply as error:
        return Transport.TRANSPORT_FAILED, None, _why(error)
    except Exception as error:  # of whatever class: its text is anybody's, and is not kept
        return Transport.TRANSPORT_FAILED, None, type(error).__name__
    if reply is None:
        return Transport.SENT, None, None
    return Transport.RESPONSE_RECEIVED, _whole(reply), None


def _whole(reply: object) -> Receipt | None:
    """The reply, if it is a receipt that its own constructor lets pass."""
    if type(reply) is not Receipt:
        return None
    try:
        made: Receipt = whole(reply)
        return made
    except Exception:  # an adapter made it past the constructor, or changed it since
        return None


def _why(error: errors.ReconcileError) -> str:
    why = getattr(error, "why", None)  # of a subclass, which may have none
    return why if isinstance(why, str) else type(error).__name__
