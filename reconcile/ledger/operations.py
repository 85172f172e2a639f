"""Operations and their attempts: rows in, values out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..rules import errors
from ..rules.actions import Transport
from ..rules.evidence import Receipt
from ..rules.identity import Identity, canonical_json
from ..rules.operation import Binding, Operation, Scope
from ..rules.policy import EffectPolicy, policy_from
from ..rules.states import State
from .tx import Tx

_READ = """
SELECT o.number, o.operation_id, o.digest, o.work_id, o.target, o.epoch, o.kind, o.payload,
       o.compensates, o.subject, o.scope, o.policy, o.prepared_ms, o.state, o.version, o.effect_id,
       (SELECT count(*) FROM attempt t WHERE t.operation = o.number),
       (SELECT count(*) FROM attempt t WHERE t.operation = o.number AND t.transport = 'not_sent'),
       (SELECT min(t.announced_ms) FROM attempt t WHERE t.operation = o.number),
       (SELECT count(*) FROM close_request c WHERE c.operation = o.number),
       (SELECT q.opened_ms FROM obligation q WHERE q.operation = o.number AND q.ended_ms IS NULL),
       p.operation_id, a.effect_id, a.version, a.ordinal, a.approver, p.state, p.version
FROM operation o
LEFT JOIN approval a ON a.operation = o.number
LEFT JOIN operation p ON p.number = a.original
WHERE """


def read(tx: Tx, operation_id: str) -> Operation:
    """Everything recorded about one operation. Raises UnknownOperation if there is none."""
    found = find(tx, operation_id)
    if found is None:
        raise errors.UnknownOperation(operation_id)
    return found


def find(tx: Tx, operation_id: str) -> Operation | None:
    """Everything recorded about one operation; None if there is none."""
    row = tx.execute(_READ + "o.operation_id = ?", (operation_id,)).fetchone()
    return None if row is None else _operation(tx, row)


def read_all(tx: Tx, numbers: Sequence[int]) -> list[Operation]:
    """The operations of these numbers, in their order."""
    return [
        _operation(tx, tx.execute(_READ + "o.number = ?", (number,)).fetchone())
        for number in numbers
    ]


def _operation(tx: Tx, row: Sequence[Any]) -> Operation:
    binding = (
        None
        if row[21] is None
        else Binding(
            original_id=row[21],
            effect_id=row[22],
            approved_version=row[23],
            ordinal=row[24],
            approver=row[25],
            state=State(row[26]),
            version=row[27],
        )
    )
    return Operation(
        number=row[0],
        operation_id=row[1],
        digest=row[2],
        work_id=row[3],
        target=row[4],
        epoch=row[5],
        kind=row[6],
        payload=row[7],
        compensates=row[8],
        subject=row[9],
        scope=Scope(*json.loads(row[10])),
        policy=_policy(tx, row[11]),
        prepared_ms=row[12],
        state=State(row[13]),
        version=row[14],
        effect_id=row[15],
        attempts=row[16],
        not_sent=row[17],
        first_sent_ms=row[18],
        close_requests=row[19],
        open_since_ms=row[20],
        binding=binding,
    )


def add(
    tx: Tx,
    identity: Identity,
    *,
    work_id: str,
    target: str,
    epoch: int,
    kind: str,
    payload: str,
    subject: str,
    scope: Scope,
    policy: EffectPolicy,
    compensates: str | None = None,
) -> Operation:
    """Write a new prepared operation and return it."""
    number = tx.execute(
        "INSERT INTO operation (number, operation_id, digest, work_id, target, epoch, kind, "
        "payload, compensates, subject, scope, policy, prepared_ms) "
        "SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? "
        "FROM operation RETURNING number",
        (
            *identity,
            work_id,
            target,
            epoch,
            kind,
            payload,
            compensates,
            subject,
            canonical_json(scope),
            _pin(tx, policy),
            tx.now_ms,
        ),
    ).fetchone()[0]
    return Operation(
        number=number,
        operation_id=identity.operation_id,
        digest=identity.digest,
        work_id=work_id,
        target=target,
        epoch=epoch,
        kind=kind,
        payload=payload,
        compensates=compensates,
        subject=subject,
        scope=scope,
        policy=policy,
        prepared_ms=tx.now_ms,
    )


def start_attempt(tx: Tx, operation: Operation) -> int:
    """Write that one request is about to leave; returns which attempt it is."""
    attempt = operation.attempts + 1
    tx.execute(
        "INSERT INTO attempt (operation, attempt, announced_ms) VALUES (?, ?, ?)",
        (operation.number, attempt, tx.now_ms),
    )
    return attempt


def end_attempt(
    tx: Tx, operation: Operation, attempt: int, transport: Transport, receipt: Receipt | None
) -> None:
    """Write how the call went, and the receipt that it brought, if any."""
    tx.execute(
        "UPDATE attempt SET transport = ? WHERE operation = ? AND attempt = ?",
        (transport.value, operation.number, attempt),
    )
    if receipt is not None:
        tx.execute(
            "INSERT INTO receipt VALUES (?, ?, ?, ?)",
            (operation.number, attempt, receipt.to_json(), tx.now_ms),
        )


def request_close(tx: Tx, operation: Operation, *, purpose: str, authorized_by: str) -> None:
    """Write that a request to close is about to leave, why, and who allowed it."""
    tx.execute(
        "INSERT INTO close_request VALUES (?, ?, ?, ?, ?)",
        (operation.number, operation.close_requests + 1, purpose, authorized_by, tx.now_ms),
    )


def _pin(tx: Tx, policy: EffectPolicy) -> int:
    body = policy.to_json()
    row = tx.execute("SELECT number FROM policy WHERE body = ?", (body,)).fetchone()
    if row is None:
        row = tx.execute(
            "INSERT INTO policy SELECT coalesce(max(number), 0) + 1, ? "
            "FROM policy RETURNING number",
            (body,),
        ).fetchone()
    return int(row[0])


def _policy(tx: Tx, number: int) -> EffectPolicy:
    known = tx.policies.get(number)
    if known is None:
        body = tx.execute("SELECT body FROM policy WHERE number = ?", (number,)).fetchone()[0]
        known = tx.policies[number] = policy_from(body)
    return known
