"""What cannot hold at a final state. Such evidence never moves it: it becomes an incident."""

from __future__ import annotations

from .evidence import OUTCOME_OF, Receipt, Snapshot
from .operation import Operation
from .states import ENDED_WITHOUT_EFFECT, State
from .verdicts import Verdict, classify


def contradicts(operation: Operation, evidence: Snapshot | Receipt) -> bool:
    """Whether this evidence and the final state of the operation cannot both be true."""
    if isinstance(evidence, Snapshot):
        return _snapshot_contradicts(operation, evidence)
    return _receipt_contradicts(operation, evidence)


def _snapshot_contradicts(operation: Operation, snapshot: Snapshot) -> bool:
    verdict = classify(snapshot)
    if verdict is Verdict.INCONCLUSIVE:
        return False
    if operation.state is State.CONFIRMED:
        exact = verdict in (Verdict.UNIQUE_EXACT_MATCH, Verdict.EXACT_MATCH_EXISTENCE_ONLY)
        return not exact or snapshot.effects[0].effect_id != operation.effect_id
    if operation.state is State.WRITTEN_OFF:
        return True  # it was ended because nothing could be known, and this is known
    return verdict is not Verdict.TERMINAL_ABSENCE


def _receipt_contradicts(operation: Operation, receipt: Receipt) -> bool:
    state, said = operation.state, OUTCOME_OF[receipt.status]
    if (
        said is State.PENDING
    ):  # older news of what ended since, unless it ended as never having been
        return state in (State.NOT_APPLIED, State.REVOKED)
    if said is State.PARTIAL:  # part of it is committed
        return state in ENDED_WITHOUT_EFFECT or state is State.WRITTEN_OFF
    if said is State.REJECTED:
        return state not in ENDED_WITHOUT_EFFECT
    if said is State.CONFIRMED and state is State.CONFIRMED:
        return receipt.effect_id != operation.effect_id
    return said is not state
