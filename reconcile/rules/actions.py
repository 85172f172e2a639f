"""What is allowed now: a pure function. An unsafe action is simply not in its answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from . import checks
from .operation import Operation
from .sending import why_not_dispatch, why_not_resend
from .states import ENDED_WITHOUT_EFFECT, FINAL, UNRESOLVED, State


class Action(Enum):
    """Everything that a caller may ever be offered."""

    DISPATCH = "dispatch"  # send the prepared intent, once
    RESEND = "resend"  # send the same identity again, under a guarantee
    QUERY = "query"  # read at the receiver; changes nothing there
    CLOSE = "close"  # close and read: a mutation there, with a named permission
    RECONCILE = "reconcile"  # a reviewer decides on a resolving snapshot
    ADJUDICATE = "adjudicate"  # a person decides between contradicting sources
    WRITE_OFF = "write_off"  # a person ends the question without evidence
    ESCALATE = "escalate"  # call a person
    COMPENSATE = "compensate"  # a person approves a new effect that amends this one
    REPLACE = "replace"  # a new identity for the same need, separately authorised
    START_NEW = "start_new"  # a new operation for another need


DECISIONS = frozenset(
    {Action.RECONCILE, Action.ADJUDICATE, Action.WRITE_OFF, Action.COMPENSATE, Action.REPLACE}
)
"""What only a person may do. An agent's list never holds one."""


class Transport(Enum):
    """How a call went. It says nothing about the effect."""

    NOT_SENT = "not_sent"  # proved by the call itself: not one byte of the request left
    SENT = "sent"  # the request left and no receipt came back
    RESPONSE_RECEIVED = "response_received"  # something came back
    TRANSPORT_FAILED = "transport_failed"  # the call ended in an error, which proves nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a caller learns from one dispatch: how the call went, and, apart, what is known.

    `receiver_reference` is the receiver's own id of the effect, None while it is not known.
    `authoritative` is true when the outcome is final. `next_actions` never holds a decision.
    """

    operation_id: str
    receiver_reference: str | None
    transport: Transport
    outcome: State
    authoritative: bool
    next_actions: tuple[Action, ...]


def next_actions(operation: Operation, *, now_ms: int) -> tuple[Action, ...]:
    """Every action allowed on this operation now, decisions included, in the order of `Action`.

    Every unresolved state has one that resolves or escalates, so that nothing wedges.
    Raises Malformed if an argument is ill-typed.
    """
    checks.instance("operation", operation, Operation)
    checks.whole("now_ms", now_ms)
    state = operation.state
    if state is State.PREPARED:
        ready = why_not_dispatch(operation, now_ms) is None
        return (Action.DISPATCH if ready else Action.ESCALATE,)
    if state in UNRESOLVED:
        # Only a closed snapshot resolves, and only a policy that declares closing lets one in.
        closes = operation.policy.can_close and operation.paused is None
        reviewed = closes and state in (State.UNKNOWN, State.PENDING)
        return tuple(
            action
            for action, offered in (
                (Action.RESEND, why_not_resend(operation, now_ms) is None),
                (Action.QUERY, True),
                (Action.CLOSE, closes),
                (Action.RECONCILE, reviewed),
                (Action.ESCALATE, True),
            )
            if offered
        )
    if state is State.CONFIRMED:
        return (
            (Action.COMPENSATE, Action.START_NEW) if operation.effect_id else (Action.START_NEW,)
        )
    return (Action.REPLACE,) if state in ENDED_WITHOUT_EFFECT else ()


def tool_result(operation: Operation, transport: Transport, *, now_ms: int) -> ToolResult:
    """The result of a dispatch, for an agent: no decision is among its actions."""
    allowed = next_actions(operation, now_ms=now_ms)
    return ToolResult(
        operation_id=operation.operation_id,
        receiver_reference=operation.effect_id,
        transport=transport,
        outcome=operation.state,
        authoritative=operation.state in FINAL,
        next_actions=tuple(action for action in allowed if action not in DECISIONS),
    )
