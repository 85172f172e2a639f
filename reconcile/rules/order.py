"""Order: what an operation carries when it buys. Its authority and its money, at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .money import Budget

LONGEST_APPROVAL_MS = 24 * 3600 * 1000


class Basis(Enum):
    """Why an approval counts."""

    OPERATOR = "operator"  # a person on the list looked at it
    AUTOMATIC = "automatic"  # it fits the automatic allowance of the budget
    UNKNOWN = "unknown"  # it was taken over from elsewhere, and nobody knows


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One grant of authority for one exact proposal. Live while now < `expires_ms` (UTC ms)."""

    ordinal: int  # the how-many-th of this order; the last one counts
    digest: str
    basis: Basis
    actor: str
    approved_ms: int
    expires_ms: int
    revoked_by: str | None  # None: it was not revoked
    listed: bool  # whether its actor is on today's list


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is bought, by whose authority, with which money. Amounts are whole minor units."""

    sku: str
    quantity: int
    unit_cost: int
    currency: str
    amount: int  # quantity times unit cost
    held: bool  # the amount is reserved, and not settled
    became: str | None  # spend, release or write_off; None: not settled
    delivered: int  # how many arrived
    cancelled_by: str | None  # who cancelled its work item; None: nobody did
    approval: Approval | None  # None: none was given
    budget: Budget  # of its currency, this order's own reservation included


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Under which claim, and how long, a call is made. All in UTC milliseconds."""

    now_ms: int
    expires_ms: int
    limit_ms: int  # how long the receiver's call may take
