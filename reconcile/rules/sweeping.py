"""What a sweep may do by itself: little, and nothing that no policy lists.

A sweep asks and writes down; it never sends, and never closes. What its evidence is worth is said
by the same classifier, and written through the same door, as that of a reviewer. Age, visits in
vain and ended leases call a person and slow the visits; they never change an outcome.
"""

from __future__ import annotations

from . import errors, moves
from .claim import LONGEST_LEASE_MS, Claim
from .evidence import Snapshot
from .move import Move
from .obligation import Obligation
from .operation import Operation
from .policy import EffectPolicy
from .states import Cause, is_legal
from .verdicts import classify

RECEIPT = "receipt"
MINUTE_MS = 60_000
BACK_OFF_MS = (1 * MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, 60 * MINUTE_MS, 360 * MINUTE_MS)
"""How long a question rests after one, two, … visits in vain; after more, as after the last."""
SLOWEST_MS = LONGEST_LEASE_MS  # once a person is called: no row is ever due later than this
MOST_FRUITLESS = 8  # visits in vain, and a person is called

# --- the rules ----------------------------------------------------------------------------------


def may_decide(operation: Operation, present: EffectPolicy, word: str) -> bool:
    """Whether a sweep may decide on this verdict, or on a receipt, without a person.

    Only if the pinned policy and the present one both list it.
    """
    return word in operation.policy.sweep_may_decide and word in present.sweep_may_decide


def claim_is_of(claimed: Obligation, claim: Claim) -> None:
    """token-fences-worker: raises StaleClaim if the claim is of something else."""
    if (claim.what, claim.item) != ("obligation", str(claimed.operation.number)):
        raise errors.StaleClaim(claimed.key, f"this claim is of {claim.what} {claim.item!r}")


def newer_generation_stales(claimed: Obligation, now: Obligation | None) -> None:
    """What was claimed is worked on only while it stands as it was claimed.

    Raises StaleClaim if the question ended since, if it was asked anew or handed back, which makes
    it a newer generation, or if its operation moved: two generations are never merged.
    """
    if now is None:
        raise errors.StaleClaim(claimed.key, "its question was answered meanwhile")
    if (now.generation, now.repairs) != (claimed.generation, claimed.repairs):
        raise errors.StaleClaim(claimed.key, "a newer generation of its question began")
    if now.operation.version != claimed.operation.version:
        raise errors.StaleClaim(claimed.key, "its operation moved meanwhile")


def calls_a_person(obligation: Obligation, *, fruitless: int, now_ms: int) -> str | None:
    """Why a person is to be called about what stays open; None if that is not due."""
    if obligation.deadline_ms is not None and now_ms >= obligation.deadline_ms:
        return "its deadline has passed"
    if fruitless >= MOST_FRUITLESS:
        return f"{fruitless} visits in vain"
    return None


def rests_ms(fruitless: int, *, called: bool) -> int:
    """How long a question rests after a visit in vain: ever longer, and never without a bound."""
    if called:
        return SLOWEST_MS
    return BACK_OFF_MS[min(fruitless, len(BACK_OFF_MS)) - 1]


# --- the guard ----------------------------------------------------------------------------------


def decide(
    operation: Operation, present: EffectPolicy, snapshot: Snapshot, *, actor: str
) -> Move | None:
    """The move that a snapshot entitles a sweep to; None: it is kept, and a person may decide.

    Raises WrongQuestion or Overclaimed if the snapshot is no evidence about this operation.
    """
    moves.keep(operation, snapshot)
    verdict = classify(snapshot)
    if verdict.resolves is None or not may_decide(operation, present, verdict.value):
        return None
    if not is_legal(operation.state, verdict.resolves, Cause.EVIDENCE):
        return None
    return moves.decide(operation, snapshot, reviewer=actor, expected_version=operation.version)
