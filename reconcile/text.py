"""How values become lines that a terminal shows as they are.

Text from a ledger is trusted as data and never as terminal commands: whatever is not printable is
shown escaped, so that no name can clear a screen or draw a second line.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone


def plain(text: object) -> str:
    """One line that a terminal shows as it is: what is not printable stands escaped."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in str(text)
    )


def utc(at_ms: int) -> str:
    """A time in ISO 8601; the bare number where the calendar ends before it."""
    try:
        at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=at_ms)
    except OverflowError:
        return f"{at_ms} ms"
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def age(length_ms: int) -> str:
    """A length of time in its two largest units."""
    rest = length_ms // 1000
    parts: list[str] = []
    for unit, seconds in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        if rest >= seconds or (unit == "s" and not parts):
            parts.append(f"{rest // seconds} {unit}")
            rest %= seconds
    return " ".join(parts[:2])


def counted(number: int, thing: str) -> str:
    """A number of things, in the right number."""
    return f"{number} {thing}{'s' * (number != 1)}"


def fields(*pairs: tuple[str, str]) -> list[str]:
    """A line for each name and its value."""
    return [f"  {name:<10}{value}" for name, value in pairs]
