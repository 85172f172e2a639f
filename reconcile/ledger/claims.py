"""Claims: who may work on an item. One table and one check, whatever the item is."""

from __future__ import annotations

import secrets

from ..rules import claim as rules
from ..rules import errors
from ..rules.claim import Claim
from .tx import Tx

WORK, OBLIGATION, TASK = "work", "obligation", "task"


def current(tx: Tx, what: str, item: str) -> Claim | None:
    """The newest claim of an item, ended or not; None if it never had one."""
    row = tx.execute(
        "SELECT generation, token, incarnation, owner, expires_ms FROM claim "
        "WHERE what = ? AND item = ?",
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
    _write(tx, claim, first=last is None)
    return claim


def _write(tx: Tx, claim: Claim, *, first: bool) -> None:
    holder = (claim.generation, claim.token, claim.incarnation, claim.owner)
    values = (*holder, tx.now_ms, claim.expires_ms, claim.what, claim.item)
    if first:
        tx.execute(
            "INSERT INTO claim (generation, token, incarnation, owner, claimed_ms, expires_ms, "
            "what, item) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )
    else:
        tx.execute(
            "UPDATE claim SET generation = ?, token = ?, incarnation = ?, owner = ?, "
            "claimed_ms = ?, expires_ms = ? WHERE what = ? AND item = ?",
            values,
        )


def assert_newest(tx: Tx, claim: Claim) -> Claim:
    """The claim as it stands now. Raises StaleClaim if another one of its item came after it."""
    now = current(tx, claim.what, claim.item)
    rules.token_fences_worker(claim, now, incarnation=incarnation(tx))
    assert now is not None
    return now


def assert_current(tx: Tx, claim: Claim) -> Claim:
    """The same, and live. Raises StaleClaim if it is not the newest of its item, or has ended."""
    now = assert_newest(tx, claim)
    rules.lease_has_not_ended(now, tx.now_ms)
    return now


def end_at(tx: Tx, claim: Claim, expires_ms: int) -> None:
    """Move the end of a claim, which may lie behind us."""
    tx.execute(
        "UPDATE claim SET expires_ms = ? WHERE what = ? AND item = ?",
        (expires_ms, claim.what, claim.item),
    )


def incarnation(tx: Tx) -> int:
    """Which life of the store this is: one more with each restore."""
    return int(tx.execute("SELECT incarnation FROM store").fetchone()[0])
