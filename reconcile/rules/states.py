"""The states of an operation and who may move it: the one table, in code and in the file.

A state says what is known of the effect, never how a call went. `MOVES` is copied into every
ledger file, and a trigger refuses each decision that is not in it, so plain SQL from another
connection obeys it too.
"""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """What is known of one intended effect."""

    PREPARED = "prepared"  # the intent is durable, nothing was sent
    UNKNOWN = "unknown"  # a request may have left; its outcome is not established
    PENDING = "pending"  # the receiver confirms that it exists and is not final
    PARTIAL = "partial"  # part of a compound effect is committed
    CONFLICT = "conflict"  # two authoritative sources contradict each other
    CONFIRMED = "confirmed"  # final: the effect is committed
    REJECTED = "rejected"  # final: the receiver declined it
    FAILED = "failed"  # final: the receiver started it, and it failed there
    NOT_APPLIED = "not_applied"  # final: closed at the receiver, and absent
    WRITTEN_OFF = "written_off"  # final: ended by authority, without evidence
    REVOKED = "revoked"  # final: withdrawn before anything was sent


class Cause(Enum):
    """What entitles a move. Silence, age, exit status and missing rows are not in this list."""

    ANNOUNCED = "announced"  # a request is about to leave
    NEVER_SENT = "never_sent"  # the call that owned the permission to send proves it unused
    RECEIPT = "receipt"  # the receiver's conclusive statement
    EVIDENCE = "evidence"  # a resolving snapshot
    CONTRADICTION = "contradiction"  # sources that are both authoritative disagree
    AUTHORITY = "authority"  # a named person, with a reason
    WITHDRAWN = "withdrawn"  # permission withdrawn before the authorisation point


def _table() -> dict[tuple[State, State], frozenset[Cause]]:
    s, c = State, Cause
    ends = (s.CONFIRMED, s.REJECTED, s.FAILED)
    edges = [
        (c.ANNOUNCED, (s.PREPARED,), (s.UNKNOWN,)),
        (c.NEVER_SENT, (s.UNKNOWN,), (s.PREPARED,)),
        (c.RECEIPT, (s.UNKNOWN,), (*ends, s.PENDING, s.PARTIAL)),
        (c.RECEIPT, (s.PENDING,), (*ends, s.PARTIAL)),
        (c.EVIDENCE, (s.UNKNOWN, s.PENDING), (s.CONFIRMED, s.NOT_APPLIED)),
        (c.CONTRADICTION, (s.UNKNOWN, s.PENDING, s.PARTIAL), (s.CONFLICT,)),
        (c.AUTHORITY, (s.CONFLICT,), (*ends, s.NOT_APPLIED)),
        (c.AUTHORITY, (s.PARTIAL,), (s.CONFIRMED,)),
        (c.AUTHORITY, (s.UNKNOWN, s.PENDING, s.PARTIAL, s.CONFLICT), (s.WRITTEN_OFF,)),
        (c.WITHDRAWN, (s.PREPARED,), (s.REVOKED,)),
    ]
    moves: dict[tuple[State, State], frozenset[Cause]] = {}
    for cause, sources, targets in edges:
        for source in sources:
            for target in targets:
                moves[source, target] = moves.get((source, target), frozenset()) | {cause}
    return moves


MOVES: dict[tuple[State, State], frozenset[Cause]] = _table()
FINAL: frozenset[State] = frozenset(State) - {source for source, _ in MOVES}
UNRESOLVED: frozenset[State] = frozenset(State) - FINAL - {State.PREPARED}
ENDED_WITHOUT_EFFECT: frozenset[State] = frozenset(
    {State.NOT_APPLIED, State.REJECTED, State.REVOKED}
)


def is_legal(source: State, target: State, cause: Cause) -> bool:
    """Whether the table lets this cause move an operation from source to target."""
    return cause in MOVES.get((source, target), frozenset())
