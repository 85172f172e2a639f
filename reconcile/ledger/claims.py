"""Claims: who may work on an item. One table and one check, whatever the item is."""

from __future__ import annotations

import secrets

from ..rules import claim as rules
from ..rules import errors
from ..rules.claim import Claim
from .tx import Tx

WORK = "work"
TASK = "task"


def current(tx: Tx, what: str, item: str) -> Claim | None:
    """The newest claim of an item, ended or not; None if it never had one."""
    row = tx.execute(
        "SELECT generation, token, incarnation, owner, expires_ms FROM claim "
        "WHERE what = ? AND item = ? ORDER BY generation DESC LIMIT 1",
        (what, item),
    ).fetchone()
    if row is None:
        return None
    return Claim(
        what=what,
        item=item,
        generation=row[0],
        token=row[1],
        incarnation=row[2],
        owner=row[3],
        expires_ms=row[4],
    )


def take(tx: Tx, what: str, item: str, *, owner: str, lease_ms: int) -> Claim:
    """Claim an item as its next generation, with a fresh token.

    Raises AlreadyClaimed while another claim is live, also one of the same owner: the name may be
    that of a worker that stalled.
    """
    last = current(tx, what, item)
    here = incarnation(tx)
    if last is not None and last.incarnation == here and rules.is_live(last, tx.now_ms):
        raise errors.AlreadyClaimed(item, last.owner, last.expires_ms)
    claim = Claim(
        what=what,
        item=item,
        generation=1 if last is None else last.generation + 1,
        token=secrets.token_hex(16),
        incarnation=here,
        owner=owner,
        expires_ms=tx.now_ms + lease_ms,
    )
    tx.execute(
        "INSERT INTO claim VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            what,
            item,
            claim.generation,
            claim.token,
            here,
            owner,
            tx.now_ms,
            claim.expires_ms,
        ),
    )
    return claim


def assert_current(tx: Tx, claim: Claim) -> Claim:
    """The claim as it stands now. Raises StaleClaim if it is not the live one of its item."""
    now = current(tx, claim.what, claim.item)
    rules.token_fences_worker(claim, now, incarnation=incarnation(tx), now_ms=tx.now_ms)
    assert now is not None
    return now


def end_at(tx: Tx, claim: Claim, expires_ms: int) -> None:
    """Move the end of a claim, which may lie behind us."""
    tx.execute(
        "UPDATE claim SET expires_ms = ? WHERE what = ? AND item = ? AND generation = ?",
        (expires_ms, claim.what, claim.item, claim.generation),
    )


def incarnation(tx: Tx) -> int:
    """Which life of the store this is: one more with each restore."""
    return int(tx.execute("SELECT incarnation FROM store").fetchone()[0])
