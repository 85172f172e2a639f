"""A new operation that amends one committed effect. Approval and preparation commit together.

It is an effect like any other: it is announced, may be unknown, and is reconciled by the same
door.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ledger import approvals, decisions, operations
from ..ledger.store import Ledger, Tx
from ..rules import checks, moves
from ..rules.identity import Identity, canonical_json, operation_identity, proposal_of
from ..rules.operation import Binding, Operation
from ..rules.states import State


def approve_compensation(
    ledger: Ledger,
    operation_id: str,
    *,
    effect_id: str,
    kind: str,
    payload: Mapping[str, object],
    approver: str,
    expected_version: int,
) -> Operation:
    """Approve one compensation of one confirmed effect, and prepare it; send it with `dispatch`.

    It goes to the original's receiver under the original's pinned policy. The approval is bound to
    the effect, the original and its version: an incident meanwhile makes it stale, and approving
    again at the new version withdraws the stale draft. The same approval again returns the stored
    operation. Raises UnknownOperation, Malformed, StaleVersion, Unbound, or AlreadyApproved while
    another approval of this effect is live.
    """
    checks.instance("ledger", ledger, Ledger)
    for name, value in (
        ("operation_id", operation_id),
        ("effect_id", effect_id),
        ("kind", kind),
        ("approver", approver),
    ):
        checks.text(name, value)
    checks.whole("expected_version", expected_version, least=1)
    proposal = proposal_of(kind, payload, effect_id)
    canonical_json(proposal)  # refused before the file is touched
    with ledger.transaction() as tx:
        original = operations.read(tx, operation_id)
        latest = approvals.latest(tx, original, effect_id)
        if latest is not None and _same(latest, original, proposal, approver, expected_version):
            return latest
        binding = moves.approve(
            original,
            effect_id=effect_id,
            approver=approver,
            expected_version=expected_version,
            latest=latest,
        )
        if latest is not None and latest.state is State.PREPARED:
            decisions.record(
                tx, moves.withdraw(latest, actor=approver, reason="the approval went stale")
            )
        return _prepare(
            tx,
            original,
            binding,
            kind,
            payload,
            _identity(original, proposal, effect_id, binding.ordinal),
        )


def _prepare(
    tx: Tx,
    original: Operation,
    binding: Binding,
    kind: str,
    payload: Mapping[str, object],
    identity: Identity,
) -> Operation:
    compensation = operations.add(
        tx,
        identity,
        work_id=_work(original, binding.effect_id, binding.ordinal),
        target=original.target,
        epoch=original.epoch,
        kind=kind,
        payload=canonical_json(payload),
        subject=original.subject,
        scope=original.scope,
        policy=original.policy,
        compensates=binding.effect_id,
    )
    approvals.add(tx, compensation, original, binding)
    return operations.read(tx, identity.operation_id)


def _same(
    latest: Operation,
    original: Operation,
    proposal: Mapping[str, object],
    approver: str,
    expected_version: int,
) -> bool:
    """Whether this very approval stands, so that asking again is answered and not refused."""
    bound = latest.binding
    return (
        bound is not None
        and (bound.approver, bound.approved_version) == (approver, expected_version)
        and (
            latest.operation_id
            == _identity(original, proposal, bound.effect_id, bound.ordinal).operation_id
        )
    )


def _identity(
    original: Operation, proposal: Mapping[str, object], effect_id: str, ordinal: int
) -> Identity:
    return operation_identity(_work(original, effect_id, ordinal), original.target, proposal)


def _work(original: Operation, effect_id: str, ordinal: int) -> str:
    """A compensation's work item: original, effect and ordinal. It can be taken apart in one way
    only.
    """
    return f"{original.operation_id}:{effect_id}:{ordinal}"
