"""Prepare and dispatch: the unknown is committed first, the request leaves second."""

from __future__ import annotations

from collections.abc import Mapping

from ..ledger import decisions, operations
from ..ledger.store import Ledger
from ..ledger.tx import Tx
from ..rules import checks, errors, moves
from ..rules.actions import ToolResult, Transport, tool_result
from ..rules.evidence import Query, Receipt
from ..rules.identity import operation_identity, payload_text, proposal_of
from ..rules.operation import Operation, Scope
from .receivers import Receiver, check_receiver


def prepare(
    ledger: Ledger,
    receiver: Receiver,
    *,
    work_id: str,
    kind: str,
    payload: Mapping[str, object],
    subject: str,
    scope: tuple[str, str, str] = Scope(),
) -> Operation:
    """The durable intent: one operation for one proposal within one work item. Nothing is sent.

    `receiver` gives target, epoch and policy, which are pinned. `payload` is a dict of JSON
    values, `subject` what the effect is about, `scope` (tenant, project, environment). Preparing
    the same again returns the stored operation, wherever it stands and under the policy pinned
    then. Raises Malformed if a part is ill-typed or the payload has no canonical text;
    IdentityTaken if the same was prepared about another subject, in another scope, or in another
    epoch.
    """
    checks.instance("ledger", ledger, Ledger)
    check_receiver(receiver)
    checks.text("kind", kind)
    checks.text("subject", subject)
    identity = operation_identity(work_id, receiver.identity, proposal_of(kind, payload, None))
    whose, text = _scope(scope), payload_text(payload)
    with ledger.transaction() as tx:
        stored = operations.find(tx, identity.operation_id)
        if stored is None:
            return operations.add(
                tx,
                identity,
                work_id=work_id,
                target=receiver.identity,
                epoch=receiver.epoch,
                kind=kind,
                payload=text,
                subject=subject,
                scope=whose,
                policy=receiver.policy,
            )
    for name, now, then in (
        ("subject", subject, stored.subject),
        ("scope", whose, stored.scope),
        ("epoch", receiver.epoch, stored.epoch),
    ):
        if now != then:
            raise errors.IdentityTaken(identity.operation_id, name)
    return stored


def dispatch(ledger: Ledger, operation_id: str, receiver: Receiver) -> ToolResult:
    """Commit `unknown`, then send once; commit what came back.

    An outcome that is not established is the value UNKNOWN, whatever the receiver raised or
    however its process ended. Raises UnknownOperation, AlreadyAnnounced, WrongReceiver or Unbound
    before any contact, with nothing written; NotRecorded, with the receipt, if the file could not
    take the end of the call. An interrupt passes on. In both cases the operation stays unknown.
    """
    checks.instance("ledger", ledger, Ledger)
    checks.text("operation_id", operation_id)
    check_receiver(receiver)
    with ledger.transaction() as tx:
        operation = operations.read(tx, operation_id)
        move = moves.announce(operation, receiver=receiver.identity, epoch=receiver.epoch)
        decisions.record(tx, move)
        attempt = operations.start_attempt(tx, operation)

    transport, receipt = _send(receiver, operation.query)

    try:
        with ledger.transaction() as tx:
            operations.end_attempt(tx, operation, attempt, transport, receipt)
            known = _settle(tx, operations.read(tx, operation_id), attempt, transport, receipt)
            return tool_result(known, transport, now_ms=tx.now_ms)
    except Exception as error:  # a clock, say, of whatever class: what came back must not be lost
        raise errors.NotRecorded(operation_id, transport.value, str(error), receipt) from error


def _send(receiver: Receiver, query: Query) -> tuple[Transport, Receipt | None]:
    try:
        reply = receiver.send(query)
    except errors.NotSent:
        return Transport.NOT_SENT, None
    except Exception:  # of whatever class: it says how the call went, and nothing of the effect
        return Transport.TRANSPORT_FAILED, None
    if reply is None:
        return Transport.SENT, None
    return Transport.RESPONSE_RECEIVED, reply if type(reply) is Receipt else None


def _settle(
    tx: Tx, operation: Operation, attempt: int, transport: Transport, receipt: Receipt | None
) -> Operation:
    """Write what the end of an attempt entitles to, if anything; the operation as it is then."""
    if transport is Transport.NOT_SENT:
        entitled: moves.Move | moves.Incident | None = moves.never_sent(operation)
    else:
        entitled = None if receipt is None else moves.settle(operation, receipt)
    if entitled is None:
        return operation
    if isinstance(entitled, moves.Incident):
        decisions.notice(tx, entitled)
    else:
        decisions.record(tx, entitled, attempt=attempt)
    return entitled.after


def _scope(scope: object) -> Scope:
    if not isinstance(scope, tuple) or len(scope) != 3:
        raise errors.Malformed("scope", "needs three names: tenant, project, environment")
    for name, part in zip(Scope._fields, scope, strict=True):
        checks.text(f"scope.{name}", part)
    return Scope(*scope)
