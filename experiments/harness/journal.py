"""The oracle's eye on money: whether the journal and the states can both be true.

Written a second time on purpose, as the oracle is: it imports neither side, and has a table of its
own of what each state does to money.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Ask = Callable[..., list[tuple[Any, ...]]]
"""A question in SQL and its values; the rows that answer it."""

BECOMES = {
    "confirmed": "spend",
    "rejected": "release",
    "not_applied": "release",
    "revoked": "release",
    "written_off": "write_off",
    "failed": "write_off",
}


def findings(ask: Ask, effects: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What the money says that cannot be true, by rule; empty if all of it can."""
    found = _sums(ask)
    for number, operation_id, state, sent in ask(
        "SELECT o.number, o.operation_id, o.state, "
        "EXISTS (SELECT 1 FROM attempt t WHERE t.operation = o.number) "
        "FROM operation o JOIN purchase p ON p.operation = o.number ORDER BY o.number"
    ):
        does = [
            row[0]
            for row in ask("SELECT does FROM entry WHERE operation = ? ORDER BY settles", number)
        ]
        settled = does[1:]
        expected = [BECOMES[state]] if state in BECOMES and does else []
        if settled != expected:
            found.append(f"money-moves-once: {operation_id} is {state}, its money {settled}")
        if sent and not does:
            found.append(f"admission-rechecks-authority: {operation_id} left without held money")
        if effects.get(operation_id) and settled == ["release"]:
            found.append(
                f"unknown-holds-money: {operation_id} has an effect and its money is free"
            )
    return found


def _sums(ask: Ask) -> list[str]:
    found = []
    now: dict[str, dict[str, int]] = {}
    for currency, does, amount, reserved, spent, written_off in ask(
        "SELECT currency, does, amount, reserved, spent, written_off FROM entry "
        "ORDER BY currency, number"
    ):
        figures = now.setdefault(currency, {"reserved": 0, "spend": 0, "write_off": 0})
        figures["reserved"] += amount if does == "reserve" else -amount
        if does in ("spend", "write_off"):
            figures[does] += amount
        if [*figures.values()] != [reserved, spent, written_off]:
            found.append(f"money-moves-once: the journal in {currency} does not add up")
    highest: dict[str, int] = dict(
        ask("SELECT currency, max(ceiling) FROM budget GROUP BY currency")
    )
    for currency, figures in now.items():
        if sum(figures.values()) > highest.get(currency, 0):
            found.append(f"unknown-holds-money: more than the ceiling in {currency}")
    return found
