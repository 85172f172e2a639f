"""Open questions and sweeps, in words for an operator. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .rules.claim import is_live
from .rules.obligation import Obligation
from .text import age, counted, fields, plain, utc

if TYPE_CHECKING:
    from .flows.sweep import SweepSummary


def obligations(found: Sequence[Obligation], *, now_ms: int) -> str:
    """Each open question: its age, who works on it, its deadline, and what comes next."""
    lines = [f"open questions: {len(found)}"]
    for question in found:
        operation = question.operation
        lines += ["", f"operation {plain(operation.operation_id)}"]
        lines += fields(
            ("work", plain(operation.work_id)),
            ("kind", plain(question.effect_type)),
            ("subject", plain(question.subject)),
            ("scope", plain(" / ".join(question.scope))),
            ("state", f"{operation.state.value}, version {operation.version}"),
            ("asked at", f"{plain(operation.target)}, by {' and '.join(question.sources)}"),
            ("effect", plain(question.reference or "no evidence names one")),
            ("age", _age(question.opened_ms, now_ms)),
            ("owner", _owner(question, now_ms)),
            ("deadline", _deadline(question, now_ms)),
            ("visits", _visits(question)),
            ("next", next_step(question, now_ms)),
        )
    return "\n".join(lines) + "\n"


def person_lines(question: Obligation | None, now_ms: int) -> list[str]:
    """Why a person is called about a question, as lines; none if nobody is."""
    if question is None:
        return []
    if question.escalation is not None:
        when = utc(question.escalation.called_ms)
        return fields(("person", f"called at {when}: {plain(question.escalation.why)}"))
    if overdue(question, now_ms):
        return fields(("person", "needed: its deadline has passed"))
    return []


def next_step(question: Obligation, now_ms: int) -> str:
    """What happens next about a question, and who does it."""
    visit = f"the next visit is due at {utc(question.due_ms)}"
    if question.due_ms <= now_ms:
        visit = "it is due for a visit now"
    if question.claim is not None and is_live(question.claim, now_ms):
        visit = "it is being visited"
    if question.escalation is not None or overdue(question, now_ms):
        return f"a person decides, or repairs what hinders it; meanwhile {visit}"
    return visit


def overdue(question: Obligation, now_ms: int) -> bool:
    """Whether its deadline has passed, though perhaps no sweep came by to notice."""
    return question.deadline_ms is not None and now_ms >= question.deadline_ms


def swept(total: SweepSummary, *, called: int) -> str:
    """What a sweep came to."""
    lines = [tally(total)]
    if called:
        lines.append(f"a person is needed for {counted(called, 'open question')}: see obligations")
    return "\n".join(lines) + "\n"


def tally(total: SweepSummary) -> str:
    """The four numbers of a sweep in one line."""
    return (
        f"claimed {total.claimed}: {total.resolved} resolved, {total.unknown} still unknown; "
        f"{counted(total.errors, 'error')}"
    )


def _age(opened_ms: int, now_ms: int) -> str:
    if opened_ms > now_ms:
        return f"not known: opened at {utc(opened_ms)}, and this clock is behind that"
    return f"{age(now_ms - opened_ms)}, since {utc(opened_ms)}"


def _owner(question: Obligation, now_ms: int) -> str:
    claim = question.claim
    if claim is None or not is_live(claim, now_ms):
        return "nobody, which says nothing of the outcome"
    return f"{plain(claim.owner)}, until {utc(claim.expires_ms)}"


def _deadline(question: Obligation, now_ms: int) -> str:
    if question.deadline_ms is None:
        return "none"
    return f"{utc(question.deadline_ms)}{', passed' if overdue(question, now_ms) else ''}"


def _visits(question: Obligation) -> str:
    if question.found is None:
        return "none yet"
    return f"{question.visits}, the last came to: {plain(question.found)}"
