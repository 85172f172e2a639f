"""Who may work on something now: a claim is a fresh token, and the newest one counts.

A worker's name proves nothing, since it survives the worker; nor does a clock, which may step
back. So each write under a claim compares its token, in the transaction that writes.

Source: fencing tokens, as Kleppmann describes them for distributed locks (2016).
"""

from __future__ import annotations

from dataclasses import dataclass

from . import checks, errors

LONGEST_LEASE_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to work on one item until a moment. Times are UTC milliseconds.

    Raises Malformed if a part is ill-typed.
    """

    what: str  # the kind of item: work, obligation or task
    item: str
    generation: int  # the how-many-th claim of the item
    token: str
    incarnation: int  # of the file: a restored one fences every claim from before
    owner: str  # a name, for people
    expires_ms: int

    def __post_init__(self) -> None:
        for name in ("what", "item", "token", "owner"):
            checks.text(f"claim.{name}", getattr(self, name))
        for name in ("generation", "incarnation", "expires_ms"):
            checks.whole(f"claim.{name}", getattr(self, name))


def is_live(claim: Claim, now_ms: int) -> bool:
    """Whether it has not ended; one that ends later than any lease could is a clock's mistake."""
    return now_ms < claim.expires_ms <= now_ms + LONGEST_LEASE_MS


def token_fences_worker(claim: Claim, current: Claim | None, *, incarnation: int) -> None:
    """token-fences-worker. Raises StaleClaim if another claim came after this one.

    No clock is asked. A lease that ended and that nobody took over since is still the newest: it
    proves nothing, and takes nothing from what its holder has seen.
    """
    if current is None or claim.token != current.token:
        raise errors.StaleClaim(claim.item, "another claim came after it, or it is not of here")
    if current.incarnation != incarnation:
        raise errors.StaleClaim(claim.item, "it was made before this store was restored")


def lease_has_not_ended(current: Claim, now_ms: int) -> None:
    """What leaves under a claim, leaves within its lease. Raises StaleClaim if that ended."""
    if not is_live(current, now_ms):
        raise errors.StaleClaim(current.item, f"it ended at {current.expires_ms}")
