"""What a guard returns, not yet written: a change of state, or evidence against a final one."""

from __future__ import annotations

from dataclasses import dataclass

from . import checks, contact, errors
from .evidence import Receipt, Snapshot
from .operation import Operation
from .states import Cause, State, is_legal
from .verdicts import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A lawful change of state, not yet written. `version` is the one that it makes."""

    operation: Operation
    target: State
    version: int
    cause: Cause
    actor: str
    verdict: Verdict | None = None
    effect_id: str | None = None
    snapshot: Snapshot | None = None
    receipt: Receipt | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Evidence against a final state. It raises the version and leaves the state."""

    operation: Operation
    version: int
    evidence: Snapshot | Receipt


def move_of(operation: Operation, target: State, cause: Cause, actor: str) -> Move:
    """The move of an operation to a state.

    Raises Paused if its store moves nothing now, IllegalMove if the table does not have the move.
    """
    checks.text("actor", actor)
    contact.restored_starts_paused(operation)
    if not is_legal(operation.state, target, cause):
        raise errors.IllegalMove(operation.state.value, target.value, cause.value)
    version = operation.version + 1
    return Move(operation=operation, target=target, version=version, cause=cause, actor=actor)
