"""Pinned policies: each text once, read once for each transaction's ledger."""

from __future__ import annotations

from ..rules.policy import EffectPolicy, policy_from
from .tx import Tx


def pin(tx: Tx, policy: EffectPolicy) -> int:
    """The number under which this policy stands; it is written if it does not yet."""
    body = policy.to_json()
    row = tx.execute("SELECT number FROM policy WHERE body = ?", (body,)).fetchone()
    if row is None:
        row = tx.execute(
            "INSERT INTO policy SELECT coalesce(max(number), 0) + 1, ? "
            "FROM policy RETURNING number",
            (body,),
        ).fetchone()
    return int(row[0])


def pinned(tx: Tx, number: int) -> EffectPolicy:
    """The policy of this number."""
    known = tx.policies.get(number)
    if known is None:
        body = tx.execute("SELECT body FROM policy WHERE number = ?", (number,)).fetchone()[0]
        known = tx.policies[number] = policy_from(body)
    return known
