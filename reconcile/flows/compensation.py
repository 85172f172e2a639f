"""A new operation that amends one committed effect. Approval and preparation commit together.

It is an effect like any other: announced, perhaps unknown, and reconciled by the same door.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ledger import compensations, decisions, operations
from ..ledger.store import Ledger
from ..ledger.tx import Tx
from ..rules import admission, bindings, checks, moves
from ..rules.identity import canonical_json, operation_identity, payload_text, proposal_of
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

    It goes to the original's receiver under the original's pinned policy. The approval is bound
    to the effect, the original and its version: an incident meanwhile makes it stale, and
    approving again at the new version withdraws the stale draft. The same approval again returns
    the stored operation while it is live; once it ended without effect, another one begins.
    Raises UnknownOperation, Malformed, StaleVersion, Unbound, or AlreadyApproved while another
    approval of this effect is live.
    """
    checks.instance("ledger", ledger, Ledger)
    words = {"operation_id": operation_id, "effect_id": effect_id, "approver": approver}
    for name, value in {**words, "kind": kind}.items():
        checks.text(name, value)
    checks.whole("expected_version", expected_version, least=1)
    canonical_json(proposal_of(kind, payload, effect_id))  # refused before the file is touched
    text = payload_text(payload)
    with ledger.transaction() as tx:
        original = operations.read(tx, operation_id)
        latest = compensations.latest(tx, original, effect_id)
        if latest is not None and not bindings.superseded(latest):
            asked = (operation_id, approver, expected_version, kind, text)
            if latest.binding is not None and asked == _approved(latest, latest.binding):
                return latest
        binding = moves.approve(
            original,
            effect_id=effect_id,
            approver=approver,
            expected_version=expected_version,
            latest=latest,
        )
        if latest is not None and latest.state is State.PREPARED:
            reason = "the approval went stale"
            decisions.record(tx, admission.withdraw(latest, actor=approver, reason=reason))
        return _prepare(tx, original, binding, kind, payload)


def _approved(compensation: Operation, bound: Binding) -> tuple[str, str, int, str, str]:
    looked_at = (bound.original_id, bound.approver, bound.approved_version)
    return *looked_at, compensation.kind, compensation.payload


def _prepare(
    tx: Tx, original: Operation, binding: Binding, kind: str, payload: Mapping[str, object]
) -> Operation:
    # The work item is original, effect and ordinal: it can be taken apart in one way only.
    work_id = f"{original.operation_id}:{binding.effect_id}:{binding.ordinal}"
    proposal = proposal_of(kind, payload, binding.effect_id)
    identity = operation_identity(work_id, original.target, proposal)
    compensation = operations.add(
        tx,
        identity,
        work_id=work_id,
        target=original.target,
        epoch=original.epoch,
        kind=kind,
        payload=payload_text(payload),
        subject=original.subject,
        scope=original.scope,
        policy=original.policy,
        compensates=binding.effect_id,
    )
    compensations.add(tx, compensation, original, binding)
    return operations.read(tx, identity.operation_id)
