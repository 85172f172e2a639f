"""A person looks: close and read, keep evidence, decide by it."""

from __future__ import annotations

from ..ledger import attempts, decisions, operations
from ..ledger.decisions import Decision
from ..ledger.store import Ledger
from ..rules import checks, moves, sending
from ..rules.evidence import Snapshot
from ..rules.verdicts import Verdict, classify
from .receivers import Receiver, answer_of, check_receiver


def observe(ledger: Ledger, operation_id: str, snapshot: Snapshot) -> Verdict:
    """Keep a snapshot as evidence and say what it proves. No state moves, whatever it proves.

    On a final operation, evidence that cannot hold there is also written as an incident, once for
    each evidence, and the version rises. Raises UnknownOperation, WrongQuestion, Overclaimed or
    Malformed if it cannot be evidence about this operation.
    """
    checks.instance("ledger", ledger, Ledger)
    checks.text("operation_id", operation_id)
    verdict = classify(snapshot)
    with ledger.transaction() as tx:
        operation = operations.read(tx, operation_id)
        incident = moves.keep(operation, snapshot)
        decisions.observe(tx, operation, snapshot, verdict)
        if incident is not None:
            decisions.notice(tx, incident)
    return verdict


def close(
    ledger: Ledger, operation_id: str, receiver: Receiver, *, purpose: str, authorized_by: str
) -> Snapshot:
    """Close the operation at the receiver and read, in one transaction there. A mutation there.

    The request with its purpose and who allowed it is committed before it leaves. That permission
    is assumed, not authenticated. Closing again is harmless and gives the same answer; so do that
    after NoReply. Nothing is decided here: hand the snapshot to `observe` or `reconcile`. Raises
    UnknownOperation, WrongReceiver, ClosingRefused or Malformed before any contact; NoReply,
    NotSent or Malformed if no snapshot came back.
    """
    checks.instance("ledger", ledger, Ledger)
    declared = check_receiver(receiver)
    for name, value in (
        ("operation_id", operation_id),
        ("purpose", purpose),
        ("authorized_by", authorized_by),
    ):
        checks.text(name, value)
    with ledger.transaction() as tx:
        operation = operations.read(tx, operation_id)
        sending.close(operation, declared.policy, receiver=declared.identity, epoch=declared.epoch)
        attempts.request_close(tx, operation, purpose=purpose, authorized_by=authorized_by)
    query = operation.query
    closed: Snapshot = answer_of(
        declared.identity, lambda: receiver.snapshot(query, close=True), Snapshot
    )
    return closed


def reconcile(
    ledger: Ledger, operation_id: str, snapshot: Snapshot, *, reviewer: str, expected_version: int
) -> Decision:
    """Decide by a resolving snapshot: confirmed, or not applied, with its evidence.

    `expected_version` is the one the reviewer saw. The same call again returns the stored
    decision, marked as repeated, since the acknowledgement of its commit may have been lost.
    Raises UnknownOperation, Malformed, WrongQuestion, Overclaimed, StaleVersion, Unresolving or
    IllegalMove if one condition is missing; nothing is written then.
    """
    checks.instance("ledger", ledger, Ledger)
    checks.text("operation_id", operation_id)
    checks.text("reviewer", reviewer)
    checks.whole("expected_version", expected_version, least=1)
    checks.instance("snapshot", snapshot, Snapshot)
    with ledger.transaction() as tx:
        operation = operations.read(tx, operation_id)
        stored = decisions.repeat_of(
            tx, operation, snapshot, reviewer=reviewer, expected_version=expected_version
        )
        return stored or decisions.record(
            tx,
            moves.decide(
                operation, snapshot, reviewer=reviewer, expected_version=expected_version
            ),
        )
