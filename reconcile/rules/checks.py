"""Values from outside, checked where they enter: returned as they are, or refused by name."""

from __future__ import annotations

from typing import TypeVar

from .errors import Malformed

T = TypeVar("T")

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


def text(place: str, value: object) -> str:
    """Non-blank text that UTF-8 can carry. Raises Malformed if it is anything else."""
    if type(value) is not str:
        raise Malformed(place, f"needs text, not {type(value).__name__}")
    if not value.strip():
        raise Malformed(place, "is empty")
    return encodable(place, value)


def encodable(place: str, value: str) -> str:
    """Raises Malformed if the text holds half of a surrogate pair, which no encoding can carry."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Malformed(place, "holds a lone surrogate, which is no character") from error
    return value


def optional_text(place: str, value: object) -> str | None:
    """None, or non-blank text as `text` asks for it."""
    return None if value is None else text(place, value)


def whole(place: str, value: object, *, least: int = INT_MIN, most: int = INT_MAX) -> int:
    """An integer of at most 64 bits. Raises Malformed if it is anything else, or out of range."""
    if type(value) is not int:
        raise Malformed(place, f"needs a whole number, not {type(value).__name__}")
    if not least <= value <= most:
        raise Malformed(place, f"is outside {least} … {most}")
    return value


def flag(place: str, value: object) -> bool:
    """Raises Malformed if the value is not a boolean: 1, None and 'false' are not."""
    if type(value) is not bool:
        raise Malformed(place, f"needs a boolean, not {type(value).__name__}")
    return value


def instance(place: str, value: object, wanted: type) -> None:
    """Raises Malformed if the value is no instance of the type."""
    if not isinstance(value, wanted):
        raise Malformed(place, f"needs a {wanted.__name__}, not {type(value).__name__}")


def several(place: str, value: object, wanted: type[T]) -> tuple[T, ...]:
    """A list or tuple of instances, as a tuple. Raises Malformed if it is anything else."""
    if not isinstance(value, (list, tuple)):
        raise Malformed(place, f"needs a list, not {type(value).__name__}")
    for at, part in enumerate(value):
        instance(f"{place}[{at}]", part, wanted)
    return tuple(value)
