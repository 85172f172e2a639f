"""Operation: everything recorded about one intended effect, read at one moment.

Rules take it whole, so that no rule ever asks the ledger a second question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from . import checks
from .evidence import Query
from .order import Order
from .policy import EffectPolicy
from .states import State


class Scope(NamedTuple):
    """Whose operation it is. Workers of different scopes never meet."""

    tenant: str = "default"
    project: str = "default"
    environment: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctNeed:
    """That a need is another one, though an equivalent operation may be unresolved: who says so,
    and why. Raises Malformed if either is missing.
    """

    authorized_by: str
    reason: str

    def __post_init__(self) -> None:
        checks.text("distinct_need.authorized_by", self.authorized_by)
        checks.text("distinct_need.reason", self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a compensation was approved for, and how its original stands now."""

    original_id: str  # operation id of the original
    effect_id: str  # the one effect that may be amended
    approved_version: int  # the original's version when the approver looked
    ordinal: int  # the how-many-th approval for this effect
    approver: str
    state: State  # the original's state now
    version: int  # the original's version now


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One intended effect, whatever the number of attempts. Times are UTC milliseconds."""

    number: int  # its place in this file, never shown outside it
    operation_id: str
    digest: str  # of target and proposal: what an approval names
    work_id: str
    target: str  # the receiver's identity
    epoch: int  # the receiver's epoch when this was prepared
    kind: str
    payload: str  # canonical JSON text
    subject: str  # what the effect is about
    scope: Scope
    policy: EffectPolicy  # as the receiver declared it when this was prepared
    prepared_ms: int
    state: State = State.PREPARED
    version: int = 1
    effect_id: str | None = None  # None: no decision names one effect
    compensates: str | None = None  # None: an original, no compensation
    binding: Binding | None = None  # None: no approval stands for it
    attempts: int = 0  # announced sendings
    not_sent: int = 0  # of these, proved by their own call never to have left
    first_sent_ms: int | None = None  # None: nothing was announced
    open_since_ms: int | None = None  # None: no question is open
    close_requests: int = 0  # requests to close that may have left
    asked_after: int = 0  # announced sendings when its stored receipt was last asked for, in vain
    effect_seen: bool = False  # it is prepared, and kept evidence shows an effect of it
    twin: str | None = None  # an equivalent operation that is unresolved; None: there is none
    distinct: bool = False  # its need was authorised as a distinct one
    order: Order | None = None  # None: it carries no money
    under: str | None = None  # the task of a mission that alone may send it; None: there is none
    paused: str | None = None  # why its store is paused; None: it is not

    @property
    def query(self) -> Query:
        """The exact question whose answer is evidence for this operation."""
        return Query(
            operation_id=self.operation_id,
            target=self.target,
            kind=self.kind,
            payload=self.payload,
            compensates=self.compensates,
            epoch=self.epoch,
        )

    @property
    def may_have_left(self) -> int:
        """How many sendings may have reached the receiver."""
        return self.attempts - self.not_sent
