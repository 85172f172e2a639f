"""What two files say when they are laid side by side: the sender's, and the receiver's account.

A diagnosis is no evidence. A listing is read at one moment and closes nothing, so that what is not
in it may still arrive; it says where to look, and which question to ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from .evidence import Effect
from .operation import Operation
from .states import ENDED_WITHOUT_EFFECT, UNRESOLVED, State


class Diagnosis(Enum):
    """What is the matter with one operation, or with one effect that nobody knows."""

    LOST_RECEIPT = "lost_receipt"
    FAULT_BEFORE_RECEIVER = "fault_before_receiver"
    CONFIRMED_WITHOUT_EFFECT = "confirmed_without_effect"
    EFFECT_UNANNOUNCED = "effect_unannounced"
    EFFECT_AGAINST_FINAL = "effect_against_final"
    EFFECT_DIFFERS = "effect_differs"
    MORE_THAN_ONE_EFFECT = "more_than_one_effect"

    @property
    def advice(self) -> Advice:
        """What a person needs who was woken for it."""
        return _ADVICE[self]


class Advice(NamedTuple):
    """Four short answers, in the order in which they are asked at night."""

    known: str
    not_known: str
    safe: str
    ask: str


_NOT_SAFE = "Do not submit again under another identity, and free no money."
_ADVICE = {
    Diagnosis.LOST_RECEIPT: Advice(
        "The effect stands at the receiver, exactly as asked for; its receipt did not come here.",
        "Whether it is the only one that will ever stand there.",
        f"Ask for its stored receipt (inquire), as often as you like. {_NOT_SAFE}",
        "Please send the receipt of this operation again.",
    ),
    Diagnosis.FAULT_BEFORE_RECEIVER: Advice(
        "A request may have left, and nothing of it stands at the receiver now.",
        "Whether it was lost on the way or is still on its way: absence here is no proof.",
        f"Wait and ask again; resend the same identity where that is offered. {_NOT_SAFE}",
        "Did this operation reach you, and can you refuse it from now on, in writing?",
    ),
    Diagnosis.CONFIRMED_WITHOUT_EFFECT: Advice(
        "It is confirmed here, and that effect does not stand in the receiver's account.",
        "Whose receipt that was: the path that brought the evidence is wrong.",
        "Change nothing here. Look at the receipt and at where it came from (show).",
        "Is this effect yours, and in which account does it stand?",
    ),
    Diagnosis.EFFECT_UNANNOUNCED: Advice(
        "An effect stands in the account that was never announced from this store.",
        "Who asked for it: another program, this store before it was restored, or a stranger.",
        "Adopt nothing and amend nothing by itself. A restored store stays paused.",
        "Who asked for this operation, when, and with which credentials?",
    ),
    Diagnosis.EFFECT_AGAINST_FINAL: Advice(
        "It ended here as never having happened, and an effect of it stands at the receiver.",
        "Which of the two statements of the receiver is wrong.",
        "Keep the reading as evidence (observe): it becomes an incident. Call a person.",
        "You rejected or closed this operation; why does an effect of it stand?",
    ),
    Diagnosis.EFFECT_DIFFERS: Advice(
        "One effect stands under this identity, with another kind or payload than was asked for.",
        "Who used the identity for that, and whether ours will follow.",
        f"Keep it as evidence (observe). It resolves nothing. {_NOT_SAFE}",
        "Which request made this effect? Please send its whole text.",
    ),
    Diagnosis.MORE_THAN_ONE_EFFECT: Advice(
        "More than one effect stands under this identity.",
        "Which of them, if any, is the one that was meant.",
        f"Keep it as evidence (observe), and compensate none of them on a guess. {_NOT_SAFE}",
        "Do you know identities again, and since when did you not know this one?",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One diagnosis. `state` is None where no row here knows the operation."""

    diagnosis: Diagnosis
    operation_id: str
    state: State | None
    effects: tuple[Effect, ...]


def diagnose(operations: Sequence[Operation], effects: Sequence[Effect]) -> list[Finding]:
    """What does not agree, operations first in their order, then effects that no row knows.

    All operations are of the receiver whose account the effects are.
    """
    there: dict[str, list[Effect]] = {}
    for effect in effects:
        there.setdefault(effect.operation_id, []).append(effect)
    here = {operation.operation_id: operation for operation in operations}
    found = [
        _finding(operation, diagnosis, there)
        for operation in operations
        for diagnosis in [_of_one(operation, there.get(operation.operation_id, []))]
        if diagnosis is not None
    ]
    strangers = [operation_id for operation_id in there if operation_id not in here]
    return found + [
        Finding(
            diagnosis=Diagnosis.EFFECT_UNANNOUNCED,
            operation_id=operation_id,
            state=None,
            effects=tuple(there[operation_id]),
        )
        for operation_id in strangers
    ]


def _of_one(operation: Operation, effects: Sequence[Effect]) -> Diagnosis | None:
    if not effects:
        if operation.state is State.CONFIRMED:
            return Diagnosis.CONFIRMED_WITHOUT_EFFECT
        left = operation.state in UNRESOLVED
        return Diagnosis.FAULT_BEFORE_RECEIVER if left else None
    if not operation.may_have_left:
        return Diagnosis.EFFECT_UNANNOUNCED
    there = [effect.effect_id for effect in effects]
    if operation.state is State.CONFIRMED and operation.effect_id not in there:
        return Diagnosis.CONFIRMED_WITHOUT_EFFECT
    if len(effects) > 1:
        return Diagnosis.MORE_THAN_ONE_EFFECT
    if operation.state in ENDED_WITHOUT_EFFECT:
        return Diagnosis.EFFECT_AGAINST_FINAL
    proposed = (operation.kind, operation.payload, operation.compensates)
    if (effects[0].kind, effects[0].payload, effects[0].compensates) != proposed:
        return Diagnosis.EFFECT_DIFFERS
    return Diagnosis.LOST_RECEIPT if operation.state in UNRESOLVED else None


def _finding(
    operation: Operation, diagnosis: Diagnosis, there: Mapping[str, Sequence[Effect]]
) -> Finding:
    return Finding(
        diagnosis=diagnosis,
        operation_id=operation.operation_id,
        state=operation.state,
        effects=tuple(there.get(operation.operation_id, ())),
    )
