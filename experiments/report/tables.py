"""The tables of the README, made from `results.json`: no number in them is typed."""

from __future__ import annotations

from typing import Any


def where_it_broke(results: dict[str, Any]) -> str:
    """Where it broke, which evidence there is, what it proves, and what the operation becomes."""
    rows = [
        (
            "Where it broke",
            "Effects there",
            "A plain read proves",
            "A closing read proves",
            "It becomes",
        ),
        ("---",) * 5,
    ]
    worlds, evidence = (
        results["e02_three_worlds"]["worlds"],
        results["e02_three_worlds"]["evidence"],
    )
    for name, world in worlds.items():
        found = evidence[name]
        rows.append(
            (
                name,
                world["effects"],
                _code(found["plain read"]),
                _code(found["closing read"]),
                _code(found["becomes"]),
            )
        )
    delayed = results["e03_delayed_original"]["closed"]
    rows.append(
        (
            "request delayed past the close",
            delayed["effects"]["order"],
            _code(delayed["plain read"]),
            _code(delayed["verdict"]),
            _code(delayed["states"]["order"]),
        )
    )
    raced = results["e03_delayed_original"]["race"]["apply first"]
    rows.append(
        (
            "request commits before the close",
            raced["effects"]["order"],
            "",
            _code(raced["verdict"]),
            _code(raced["states"]["order"]),
        )
    )
    doubled = results["e03_delayed_original"]["open"]
    rows.append(
        (
            "sent again, and the first one came too",
            doubled["effects"]["order"],
            _code(doubled["reads"][-1]),
            "",
            _code(doubled["states"]["order"]),
        )
    )
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def _code(word: str) -> str:
    return f"`{word}`"
