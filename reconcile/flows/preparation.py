"""Prepare: the durable intent, one operation for one proposal within one work item."""

from __future__ import annotations

from collections.abc import Mapping

from ..ledger import operations
from ..ledger.store import Ledger
from ..ledger.tx import Tx
from ..rules import checks, errors, sending
from ..rules.identity import operation_identity, payload_text, proposal_of
from ..rules.operation import DistinctNeed, Operation, Scope
from ..rules.states import State
from .receivers import Declared, Receiver, check_receiver


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
    declared = check_receiver(receiver)
    with ledger.transaction() as tx:
        return prepare_in(
            tx,
            declared,
            work_id=work_id,
            kind=kind,
            payload=payload,
            subject=subject,
            scope=scope,
            distinct_need=distinct_need,
        )


def prepare_in(
    tx: Tx,
    declared: Declared,
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
    identity = operation_identity(work_id, declared.identity, proposal_of(kind, payload, None))
    whose, text = scope_of(scope), payload_text(payload)
    stored = operations.find(tx, identity.operation_id)
    if stored is not None:
        for name, now, then in (
            ("subject", subject, stored.subject),
            ("scope", whose, stored.scope),
            ("epoch", declared.epoch, stored.epoch),
        ):
            if now != then:
                raise errors.IdentityTaken(identity.operation_id, name)
        late = stored.state is State.PREPARED and not stored.distinct
        if distinct_need is None or not late:
            return stored
        operations.declare_distinct(tx, stored, distinct_need)  # another became unknown meanwhile
        return operations.read(tx, stored.operation_id)
    need = {"target": declared.identity, "kind": kind, "subject": subject}
    twin = operations.twin_of(tx, **need, scope=whose)
    sending.no_new_while_unknown(twin, distinct=distinct_need is not None)
    operation = operations.add(
        tx,
        identity,
        work_id=work_id,
        **need,
        epoch=declared.epoch,
        payload=text,
        scope=whose,
        policy=declared.policy,
    )
    if distinct_need is not None:
        operations.declare_distinct(tx, operation, distinct_need)
    return operation


def scope_of(scope: object) -> Scope:
    """A scope from outside. Raises Malformed if it is not three names."""
    if not isinstance(scope, tuple) or len(scope) != 3:
        raise errors.Malformed("scope", "needs three names: tenant, project, environment")
    for name, part in zip(Scope._fields, scope, strict=True):
        checks.text(f"scope.{name}", part)
    return Scope(*scope)
