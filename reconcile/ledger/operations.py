"""Operations: rows in, values out. A value holds everything that a rule may want to know."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..rules import errors
from ..rules.identity import Identity, canonical_json
from ..rules.operation import Binding, DistinctNeed, Operation, Scope
from ..rules.policy import EffectPolicy
from ..rules.states import State
from . import policies, purchases
from .tx import Tx

_OWN = [
    "number",
    "operation_id",
    "digest",
    "work_id",
    "target",
    "epoch",
    "kind",
    "payload",
    "compensates",
    "subject",
    "scope",
    "policy",
    "prepared_ms",
    "state",
    "version",
    "effect_id",
]
_ALSO = {
    "attempts": "(SELECT count(*) FROM attempt t WHERE t.operation = o.number)",
    "not_sent": "(SELECT count(*) FROM attempt t WHERE t.operation = o.number "
    "AND t.transport = 'not_sent')",
    "first_sent_ms": "(SELECT min(t.announced_ms) FROM attempt t WHERE t.operation = o.number)",
    "close_requests": "(SELECT count(*) FROM close_request c WHERE c.operation = o.number)",
    "asked_after": "coalesce((SELECT l.attempts FROM lookup l "
    "WHERE l.operation = o.number AND l.found = 0 ORDER BY l.asked DESC LIMIT 1), 0)",
    "open_since_ms": "(SELECT q.opened_ms FROM obligation q "
    "WHERE q.operation = o.number AND q.ended_ms IS NULL)",
    "effect_seen": "o.state = 'prepared' AND "
    "(EXISTS (SELECT 1 FROM receipt r WHERE r.operation = o.number) "
    "OR EXISTS (SELECT 1 FROM observation v WHERE v.operation = o.number "
    "AND v.verdict NOT IN ('inconclusive', 'terminal_absence')))",
    "twin": "(SELECT e.operation_id FROM operation e WHERE e.target = o.target "
    "AND e.kind = o.kind AND e.subject = o.subject AND e.scope = o.scope "
    "AND e.state IN ('unknown', 'pending', 'partial', 'conflict') AND e.compensates IS NULL "
    "AND o.compensates IS NULL AND e.number <> o.number LIMIT 1)",
    "distinct": "EXISTS (SELECT 1 FROM distinct_need n WHERE n.operation = o.number)",
    "under": "(SELECT t.work_id FROM task_operation b JOIN task t ON t.number = b.task "
    "WHERE b.operation = o.number AND o.compensates IS NULL)",
    "paused": "(SELECT paused_why FROM store)",
    "buys": "EXISTS (SELECT 1 FROM purchase b WHERE b.operation = o.number)",
}
_BOUND = {
    "original_id": "p.operation_id",
    "effect_id": "a.effect_id",
    "approved_version": "a.version",
    "ordinal": "a.ordinal",
    "approver": "a.approver",
    "state": "p.state",
    "version": "p.version",
}
_NAMES = (*_OWN, *_ALSO)
_READ = (
    "SELECT "
    + ", ".join([*(f"o.{name}" for name in _OWN), *_ALSO.values(), *_BOUND.values()])
    + " FROM operation o LEFT JOIN compensation a ON a.operation = o.number "
    "LEFT JOIN operation p ON p.number = a.original WHERE "
)


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


def of_target(tx: Tx, target: str, epoch: int) -> list[Operation]:
    """Every operation for one receiver in one epoch, in order of preparation."""
    rows = tx.execute(
        _READ + "o.target = ? AND o.epoch = ? ORDER BY o.number", (target, epoch)
    ).fetchall()
    return [_operation(tx, row) for row in rows]


def _operation(tx: Tx, row: Sequence[Any]) -> Operation:
    own = dict(zip(_NAMES, row, strict=False))
    bound = dict(zip(_BOUND, row[len(_NAMES) :], strict=True))
    own["scope"] = Scope(*json.loads(own["scope"]))
    own["policy"] = policies.pinned(tx, own["policy"])
    own["state"] = State(own["state"])
    own["effect_seen"], own["distinct"] = bool(own["effect_seen"]), bool(own["distinct"])
    own["paused"] = own["paused"] or tx.paused
    order = purchases.read(tx, own["number"]) if own.pop("buys") else None
    binding = None
    if bound["original_id"] is not None:
        binding = Binding(**{**bound, "state": State(bound["state"])})
    return Operation(**own, order=order, binding=binding)


def twin_of(tx: Tx, *, target: str, kind: str, subject: str, scope: Scope) -> str | None:
    """An unresolved operation that meets the same need; None if there is none."""
    row = tx.execute(
        "SELECT operation_id FROM operation WHERE target = ? AND kind = ? AND subject = ? "
        "AND scope = ? AND state IN ('unknown', 'pending', 'partial', 'conflict') "
        "AND compensates IS NULL LIMIT 1",
        (target, kind, subject, canonical_json(scope)),
    ).fetchone()
    return None if row is None else str(row[0])


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
    written = {
        "operation_id": identity.operation_id,
        "digest": identity.digest,
        "work_id": work_id,
        "target": target,
        "epoch": epoch,
        "kind": kind,
        "payload": payload,
        "compensates": compensates,
        "subject": subject,
        "prepared_ms": tx.now_ms,
    }
    number = tx.execute(
        f"INSERT INTO operation (number, {', '.join(written)}, scope, policy) "
        f"SELECT coalesce(max(number), 0) + 1, {'?, ' * len(written)} ?, ? "
        "FROM operation RETURNING number",
        (*written.values(), canonical_json(scope), policies.pin(tx, policy)),
    ).fetchone()[0]
    return Operation(number=number, **written, scope=scope, policy=policy)  # type: ignore[arg-type]


def declare_distinct(tx: Tx, operation: Operation, need: DistinctNeed) -> None:
    """Write that a person declared this operation's need to be another one."""
    tx.execute(
        "INSERT INTO distinct_need VALUES (?, ?, ?, ?)",
        (operation.number, need.authorized_by, need.reason, tx.now_ms),
    )
