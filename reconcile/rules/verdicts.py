"""What a snapshot proves. One classifier, a total function of one value.

The order of `Verdict` is the order of precedence. Two of the seven resolve; all others are kept as
observations.
"""

from __future__ import annotations

from enum import Enum

from . import checks
from .evidence import Snapshot
from .states import State


class Verdict(Enum):
    """What one snapshot proves about one operation."""

    DUPLICATE_MATCHES = "duplicate_matches"
    PAYLOAD_MISMATCH = "payload_mismatch"
    ACTION_SCOPE_MISMATCH = "action_scope_mismatch"
    EXACT_MATCH_EXISTENCE_ONLY = "exact_match_existence_only"
    UNIQUE_EXACT_MATCH = "unique_exact_match"
    TERMINAL_ABSENCE = "terminal_absence"
    INCONCLUSIVE = "inconclusive"

    @property
    def resolves(self) -> State | None:
        """The final state this verdict proves; None where the question stays open."""
        return _RESOLVES.get(self)

    @property
    def says(self) -> str:
        """One sentence for a person."""
        return _SAYS[self]


_RESOLVES = {
    Verdict.UNIQUE_EXACT_MATCH: State.CONFIRMED,
    Verdict.TERMINAL_ABSENCE: State.NOT_APPLIED,
}

_SAYS = {
    Verdict.DUPLICATE_MATCHES: "The receiver has more than one effect for this operation. "
    "None of them is *the* effect; a person decides.",
    Verdict.PAYLOAD_MISMATCH: "The receiver has one effect for this operation, "
    "with another payload. It is not what was asked for.",
    Verdict.ACTION_SCOPE_MISMATCH: "The receiver has one effect for this operation, "
    "of another kind or amending another effect. It is not what was asked for.",
    Verdict.EXACT_MATCH_EXISTENCE_ONLY: "The effect exists. Whether it is the only one is open: "
    "a late original or a copy could still follow.",
    Verdict.UNIQUE_EXACT_MATCH: "The effect exists, it is exactly what was asked for, "
    "and no other can follow: confirmed.",
    Verdict.TERMINAL_ABSENCE: "There is no effect, and none can follow, "
    "since the operation is closed at the receiver: not applied.",
    Verdict.INCONCLUSIVE: "Nothing was found, and that proves nothing: "
    "the request may still be on its way.",
}


def classify(snapshot: Snapshot) -> Verdict:
    """The verdict of a snapshot. The order of rows changes nothing; of several none is picked.

    Raises Malformed if the argument is no Snapshot; of every Snapshot it has a verdict.
    """
    checks.instance("snapshot", snapshot, Snapshot)
    query, effects = snapshot.query, snapshot.effects
    if (snapshot.receiver, snapshot.epoch) != (query.target, query.epoch):
        return (
            Verdict.INCONCLUSIVE
        )  # rows of another receiver, or another life, prove nothing here
    if len(effects) > 1:
        return Verdict.DUPLICATE_MATCHES
    if not effects:
        return Verdict.TERMINAL_ABSENCE if proves_absence(snapshot) else Verdict.INCONCLUSIVE
    effect = effects[0]
    if effect.payload != query.payload:
        return Verdict.PAYLOAD_MISMATCH
    if (effect.kind, effect.compensates) != (query.kind, query.compensates):
        return Verdict.ACTION_SCOPE_MISMATCH
    if proves_uniqueness(snapshot):
        return Verdict.UNIQUE_EXACT_MATCH
    return Verdict.EXACT_MATCH_EXISTENCE_ONLY


def proves_absence(snapshot: Snapshot) -> bool:
    """absence-needs-closure: empty is absence only if complete, authoritative and closed."""
    return snapshot.complete and snapshot.authoritative and snapshot.closed


def proves_uniqueness(snapshot: Snapshot) -> bool:
    """uniqueness-needs-closure: one is unique only if complete, authoritative and closed."""
    return snapshot.complete and snapshot.authoritative and snapshot.closed
