"""Compare two results more strictly than `==`: keys, types, and the order inside lists."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


class Absent:
    """Stands where one side has nothing."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = Absent()


@dataclass(frozen=True, slots=True)
class Difference:
    """One place at which found is not what was expected."""

    path: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.path}: expected {_show(self.expected)}, found {_show(self.found)}"


def differences(expected: Any, found: Any, path: str = "$") -> Iterator[Difference]:
    """Every difference, in the order of the expected value; none if both are the same."""
    if type(expected) is not type(found):
        yield Difference(path, expected, found)
    elif isinstance(expected, dict):
        for key in [*expected, *(key for key in found if key not in expected)]:
            yield from differences(
                expected.get(key, ABSENT), found.get(key, ABSENT), f"{path}.{key}"
            )
    elif isinstance(expected, list):
        for at in range(max(len(expected), len(found))):
            ours = expected[at] if at < len(expected) else ABSENT
            theirs = found[at] if at < len(found) else ABSENT
            yield from differences(ours, theirs, f"{path}[{at}]")
    elif expected != found:
        yield Difference(path, expected, found)


def to_text(results: Any) -> str:
    """The text of a results file: the same bytes for the same results."""
    return json.dumps(results, indent=1, ensure_ascii=True) + "\n"


def from_text(text: str) -> Any:
    """Read a results file. Raises ValueError if it is no JSON, or names a key twice."""
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _show(value: Any) -> str:
    return repr(value) if value is ABSENT else json.dumps(value, ensure_ascii=True)
