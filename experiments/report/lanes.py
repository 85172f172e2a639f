"""The four-lane sequence of a run, drawn for a terminal from its trace."""

from __future__ import annotations

from typing import Any

from ..harness.trace import LANES

AT = (9, 29, 49, 69)  # the column of each lane
LEFT, RIGHT = 6, 79
LEGEND = "* something happened there   x a process ends   | at the left: an operation is unknown"


def draw(trace: list[dict[str, Any]]) -> str:
    """Lines of text: a column for each file and each process, time downwards.

    `*` is a commit, `x` an end, an arrow a request or an answer, and the bar at the left stands
    as long as some operation is unknown.
    """
    lines = [_header(), _lanes({})]
    waiting: set[str] = set()
    for number, event in enumerate(trace, 1):
        _follow(waiting, event)
        lines += _event(number, event, "|" if waiting else " ")
    lines += ["", LEGEND]
    return "\n".join(line.rstrip() for line in lines)


def _follow(waiting: set[str], event: dict[str, Any]) -> None:
    if event["lane"] != "sender.db" or ": " not in event["says"]:
        return
    role, says = event["says"].split(": ", 1)
    if says.startswith("unknown"):
        waiting.add(role)
    elif ", version " in says:
        waiting.discard(role)


def _event(number: int, event: dict[str, Any], bar: str) -> list[str]:
    start = AT[LANES.index(event["lane"])]
    if "to" in event:
        return _arrow(number, event["says"], start, AT[LANES.index(event["to"])], bar)
    mark = "x" if event["says"].startswith("dies") else "*"
    return [_place(_lanes({start: mark}, number, bar), start, event["says"])]


def _arrow(number: int, says: str, start: int, end: int, bar: str) -> list[str]:
    left, right = min(start, end), max(start, end)
    shaft = "-" * (right - left - 2)
    drawn = f"{shaft}>" if end > start else f"<{shaft}"
    line = _lanes({}, number, bar)
    line = line[: left + 1] + drawn + line[right:]
    return [_place(line, right, says)]


def _place(line: str, at: int, says: str) -> str:
    """Put the words right of a mark; the lanes behind them are covered."""
    return line[: at + 1] + " " + says + line[at + 2 + len(says) :]


def _header() -> str:
    line = " " * RIGHT
    for at, lane in zip(AT, LANES, strict=True):
        begin = at - len(lane) // 2
        line = line[:begin] + lane + line[begin + len(lane) :]
    return line


def _lanes(marks: dict[int, str], number: int | None = None, bar: str = " ") -> str:
    line = f"{'' if number is None else number:>3} {bar} ".ljust(LEFT)
    return line + "".join(
        marks.get(column, "|") if column in AT else " " for column in range(LEFT, RIGHT)
    )
