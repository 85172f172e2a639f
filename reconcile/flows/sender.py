"""Prepare, dispatch and resend: the unknown is committed first, the request leaves second."""

from __future__ import annotations

from collections.abc import Mapping

from ..ledger import attempts, claims, decisions, operations
from ..ledger.store import Ledger
from ..ledger.tx import Tx
from ..rules import checks, contact, errors, receipts, sending
from ..rules.actions import ToolResult, Transport, tool_result
from ..rules.claim import Claim
from ..rules.evidence import Query, Receipt
from ..rules.identity import operation_identity, payload_text, proposal_of
from ..rules.move import Incident, Move
from ..rules.operation import DistinctNeed, Operation, Scope
from ..rules.order import Lease
from ..rules.receipts import Origin
from ..rules.states import State
from .receivers import Receiver, check_receiver, limit_ms


def prepare(
    ledger: Ledger,
    receiver: Receiver,
    *,
    work_id: str,
    kind: str,
    payload: Mapping[str, object],
    subject: str,
    scope: tuple[str, str, str] = Scope(),
    distinct_need: DistinctNeed | None = None,
) -> Operation:
    """The durable intent: one operation for one proposal within one work item. Nothing is sent.

    `receiver` gives target, epoch and policy, which are pinned. `payload` is a dict of JSON
    values, `subject` what the effect is about, `scope` (tenant, project, environment). Preparing
    the same again returns the stored operation, wherever it stands and under the policy pinned
    then. A new one is refused while another of the same target, kind, subject and scope is
    unresolved, unless a named person declared a distinct need; one that is declared for a stored
    draft is added to it. Raises Malformed if a part is ill-typed or the payload has no canonical
    text; EquivalentUnresolved; IdentityTaken if the same was prepared about another subject, in
    another scope, or in another epoch.
    """
    checks.instance("ledger", ledger, Ledger)
    check_receiver(receiver)
    with ledger.transaction() as tx:
        return prepare_in(
            tx,
            receiver,
            work_id=work_id,
            kind=kind,
            payload=payload,
            subject=subject,
            scope=scope,
            distinct_need=distinct_need,
        )


def prepare_in(
    tx: Tx,
    receiver: Receiver,
    *,
    work_id: str,
    kind: str,
    payload: Mapping[str, object],
    subject: str,
    scope: tuple[str, str, str],
    distinct_need: DistinctNeed | None,
) -> Operation:
    """As `prepare`, within a transaction that writes more. Raises as it does."""
    checks.text("kind", kind)
    checks.text("subject", subject)
    if distinct_need is not None:
        checks.instance("distinct_need", distinct_need, DistinctNeed)
    identity = operation_identity(work_id, receiver.identity, proposal_of(kind, payload, None))
    whose, text = _scope(scope), payload_text(payload)
    stored = operations.find(tx, identity.operation_id)
    if stored is not None:
        for name, now, then in (
            ("subject", subject, stored.subject),
            ("scope", whose, stored.scope),
            ("epoch", receiver.epoch, stored.epoch),
        ):
            if now != then:
                raise errors.IdentityTaken(identity.operation_id, name)
        late = stored.state is State.PREPARED and not stored.distinct
        if distinct_need is None or not late:
            return stored
        operations.declare_distinct(tx, stored, distinct_need)  # another became unknown meanwhile
        return operations.read(tx, stored.operation_id)
    need = {"target": receiver.identity, "kind": kind, "subject": subject}
    twin = operations.twin_of(tx, **need, scope=whose)
    sending.no_new_while_unknown(twin, distinct=distinct_need is not None)
    operation = operations.add(
        tx,
        identity,
        work_id=work_id,
        **need,
        epoch=receiver.epoch,
        payload=text,
        scope=whose,
        policy=receiver.policy,
    )
    if distinct_need is not None:
        operations.declare_distinct(tx, operation, distinct_need)
    return operation


def dispatch(
    ledger: Ledger, operation_id: str, receiver: Receiver, *, claim: Claim | None = None
) -> ToolResult:
    """Commit `unknown`, then send once; commit what came back.

    An order is sent under a live claim of its work item, and only while its authority and money
    stand. An outcome that is not established is the value UNKNOWN, whatever the receiver raised
    or however its process ended. Raises UnknownOperation, or what `sending.announce` raises,
    before any contact, with nothing written; NotRecorded, with the receipt, if the file could not
    take the end of the call. An interrupt passes on. In both cases the operation stays unknown.
    """
    limit = _checked(ledger, operation_id, receiver, claim)
    with ledger.transaction() as tx:
        operation, lease = _under_claim(tx, operation_id, claim, limit)
        move = sending.announce(
            operation, receiver=receiver.identity, epoch=receiver.epoch, lease=lease
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
    limit = _checked(ledger, operation_id, receiver, claim)
    with ledger.transaction() as tx:
        operation, lease = _under_claim(tx, operation_id, claim, limit)
        sending.resend(
            operation,
            receiver.policy,
            receiver=receiver.identity,
            epoch=receiver.epoch,
            now_ms=tx.now_ms,
            lease=lease,
        )
        attempt = attempts.start(tx, operation)
    return _send_and_settle(ledger, operation, attempt, receiver)


def _checked(ledger: object, operation_id: object, receiver: object, claim: object) -> int | None:
    checks.instance("ledger", ledger, Ledger)
    checks.text("operation_id", operation_id)
    check_receiver(receiver)
    if claim is not None:
        checks.instance("claim", claim, Claim)
    return None if claim is None else limit_ms(receiver)


def _under_claim(
    tx: Tx, operation_id: str, claim: Claim | None, limit: int | None
) -> tuple[Operation, Lease | None]:
    """The operation, and how long its sender may still work on it, if that is asked."""
    operation = operations.read(tx, operation_id)
    contact.restored_starts_paused(operation)  # which every claim from before is stale by, too
    if claim is None or limit is None:
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
            now = operations.read(tx, operation.operation_id)
            if transport is Transport.NOT_SENT:
                write(tx, sending.never_sent(now))
            elif receipt is not None:
                settle(tx, now, receipt, Origin.REPLY, actor=sending.SENDER, attempt=attempt)
            known = operations.read(tx, operation.operation_id)
            return tool_result(known, transport, now_ms=tx.now_ms)
    except Exception as error:  # a clock, say, of whatever class: what came back must not be lost
        raise errors.NotRecorded(
            operation.operation_id, transport.value, str(error), receipt
        ) from error


def _send(receiver: Receiver, query: Query) -> tuple[Transport, Receipt | None, str | None]:
    try:
        reply = receiver.send(query)
    except errors.NotSent as error:
        return Transport.NOT_SENT, None, error.why
    except errors.NoReply as error:
        return Transport.TRANSPORT_FAILED, None, error.why
    except Exception as error:  # of whatever class: its text is anybody's, and is not kept
        return Transport.TRANSPORT_FAILED, None, type(error).__name__
    if reply is None:
        return Transport.SENT, None, None
    return Transport.RESPONSE_RECEIVED, reply if type(reply) is Receipt else None, None


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


def _scope(scope: object) -> Scope:
    if not isinstance(scope, tuple) or len(scope) != 3:
        raise errors.Malformed("scope", "needs three names: tenant, project, environment")
    for name, part in zip(Scope._fields, scope, strict=True):
        checks.text(f"scope.{name}", part)
    return Scope(*scope)
