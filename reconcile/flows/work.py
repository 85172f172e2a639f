"""Work items and claims: what is to be done, and who may do it now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..ledger import claims, decisions, operations, purchases
from ..ledger import work as items
from ..ledger.store import Ledger
from ..rules import admission, checks, contact, order_errors
from ..rules.claim import LONGEST_LEASE_MS, Claim
from ..rules.errors import StaleClaim


def enqueue(ledger: Ledger, work_id: str) -> str:
    """Write down something to be done; returns its name. Enqueuing it again changes nothing."""
    checks.instance("ledger", ledger, Ledger)
    checks.text("work_id", work_id)
    with ledger.transaction() as tx:
        items.enqueue(tx, work_id)
    return work_id


def claim(ledger: Ledger, work_id: str, *, owner: str, lease_ms: int = 120_000) -> Claim:
    """The right to work on an item for so long, as its next generation and with a fresh token.

    `owner` is a name for people; it gives no right. Raises UnknownWork, WorkCancelled,
    AlreadyClaimed while another claim is live, or Malformed, also for more than a day.
    """
    checks.instance("ledger", ledger, Ledger)
    checks.text("work_id", work_id)
    checks.text("owner", owner)
    checks.whole("lease_ms", lease_ms, least=1, most=LONGEST_LEASE_MS)
    with ledger.transaction() as tx:
        if items.cancelled_by(tx, work_id) is not None:
            raise order_errors.WorkCancelled(work_id)
        return claims.take(tx, claims.WORK, work_id, owner=owner, lease_ms=lease_ms)


def extend(ledger: Ledger, held: Claim, *, lease_ms: int = 120_000) -> Claim:
    """The same claim, ending so long from now. Raises StaleClaim if it is not the live one."""
    checks.instance("ledger", ledger, Ledger)
    checks.instance("claim", held, Claim)
    checks.whole("lease_ms", lease_ms, least=1, most=LONGEST_LEASE_MS)
    with ledger.transaction() as tx:
        claims.assert_current(tx, held)
        claims.end_at(tx, held, tx.now_ms + lease_ms)
        return claims.assert_current(tx, held)


def release(ledger: Ledger, held: Claim) -> None:
    """Give the item back now. Raises StaleClaim if it is not the live claim any more."""
    checks.instance("ledger", ledger, Ledger)
    checks.instance("claim", held, Claim)
    with ledger.transaction() as tx:
        claims.assert_current(tx, held)
        claims.end_at(tx, held, tx.now_ms)


@contextmanager
def holding(
    ledger: Ledger, work_id: str, *, owner: str, lease_ms: int = 120_000
) -> Iterator[Claim]:
    """The claim of a work item for the length of a block, and released after it.

    One that ended meanwhile, or was taken by another, is not released. Raises as `claim` does.
    """
    held = claim(ledger, work_id, owner=owner, lease_ms=lease_ms)
    try:
        yield held
    finally:
        with suppress(StaleClaim):
            release(ledger, held)


def cancel(ledger: Ledger, work_id: str, *, actor: str, reason: str) -> None:
    """Cancel a work item: its drafts are withdrawn and their money is freed.

    What may have left stays unknown, keeps its money, and settles when its receipt comes; nothing
    more is sent for it. Cancelling again withdraws what was on its way and never left. Raises
    UnknownWork, or Paused in a paused store.
    """
    checks.instance("ledger", ledger, Ledger)
    for name, value in (("work_id", work_id), ("actor", actor), ("reason", reason)):
        checks.text(name, value)
    with ledger.transaction() as tx:
        first = items.cancelled_by(tx, work_id) is None
        contact.store_is_live(items.paused_why(tx))
        if first:
            items.cancel(tx, work_id, actor=actor, reason=reason)
        for draft in operations.read_all(tx, purchases.drafts(tx, work_id=work_id)):
            if admission.in_time(draft):
                decisions.record(tx, admission.withdraw(draft, actor=actor, reason=reason))
