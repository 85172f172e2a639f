"""Obligation: the open question of one operation, and what has been done about it.

Its state is that of its operation; what stands here is who works on it, when it may be worked on
next, and when a person is called.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import checks
from .claim import Claim
from .operation import Operation, Scope
from .policy import EffectPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    """That a person was called, at which moment (UTC milliseconds) and why."""

    why: str
    called_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Obligation:
    """One open question at one moment. Times are UTC milliseconds.

    Raises Malformed if a number is none: a row was written past the library.
    """

    operation: Operation
    generation: int  # the how-many-th announcement after a proof that nothing was sent
    attempt: int  # the sending that the question began with
    opened_ms: int
    deadline_ms: int | None  # None: the policy names none
    due_ms: int  # when it may next be worked on
    visits: int  # how often somebody looked
    fruitless: int  # and how often in vain since it was last handed back
    found: str | None  # what the last visit came to; None: nobody looked yet
    repairs: int  # how often a person handed it back
    claim: Claim | None  # the newest, live or not; None: nobody ever claimed it
    escalation: Escalation | None  # None: no person is called just now
    reference: str | None  # the receiver's own id of the effect, where anything names it

    def __post_init__(self) -> None:
        for name in ("generation", "attempt", "visits", "fruitless", "repairs"):
            checks.whole(f"obligation.{name}", getattr(self, name), least=0)
        for name in ("opened_ms", "due_ms"):
            checks.whole(f"obligation.{name}", getattr(self, name))
        if self.deadline_ms is not None:
            checks.whole("obligation.deadline_ms", self.deadline_ms)

    @property
    def effect_type(self) -> str:
        return self.operation.kind

    @property
    def subject(self) -> str:
        return self.operation.subject

    @property
    def scope(self) -> Scope:
        return self.operation.scope

    @property
    def intent(self) -> str:
        """The digest of target and proposal."""
        return self.operation.digest

    @property
    def key(self) -> str:
        """The one stable key that is asked about: a fresh one asks about another effect."""
        return self.operation.operation_id

    @property
    def attempt_number(self) -> int:
        """How many sendings were announced by now."""
        return self.operation.attempts

    @property
    def policy_version(self) -> int:
        return self.operation.policy.version

    @property
    def sources(self) -> tuple[str, ...]:
        """Where its outcome is asked for, in this order."""
        return sources_of(self.operation.policy)


def sources_of(policy: EffectPolicy) -> tuple[str, ...]:
    """What a receiver of this policy is asked: its stored receipt, a snapshot, or both."""
    lookup = ("lookup",) if policy.stored_receipt else ()
    reads = not lookup or policy.status_source == "snapshot"
    return (*lookup, "snapshot") if reads else lookup
