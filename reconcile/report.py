"""What a ledger holds, in words for an operator. Pure: values in, text out."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from . import order_report, sweep_report
from .ledger.views import Entry
from .rules.actions import Action, next_actions
from .rules.diagnosis import Diagnosis
from .rules.errors import Malformed
from .rules.money import Budget
from .rules.obligation import Obligation
from .rules.operation import Operation
from .rules.states import FINAL, MOVES, UNRESOLVED, Cause, State
from .rules.verdicts import Verdict
from .text import age, counted, fields, plain, utc

STATE_SAYS: dict[State, str] = {
    State.PREPARED: "The intent is durable and nothing was sent.",
    State.UNKNOWN: "A request may have left. Outcome not yet established, reconciliation "
    "required, do not submit again.",
    State.PENDING: "The receiver confirms that it exists and is not final. Do not submit again.",
    State.PARTIAL: "Part of a compound effect is committed. Do not submit again; a person decides "
    "about the rest.",
    State.CONFLICT: "Two authoritative sources contradict each other. Do not submit again; a "
    "person decides between them.",
    State.CONFIRMED: "Final: the effect is committed.",
    State.REJECTED: "Final: the receiver declined it.",
    State.FAILED: "Final: the receiver started it, and it failed there; it may have cost "
    "something.",
    State.NOT_APPLIED: "Final: closed at the receiver, and absent. It did not happen and cannot "
    "any more.",
    State.WRITTEN_OFF: "Final: ended by a person's authority, without evidence. It may have "
    "happened.",
    State.REVOKED: "Final: withdrawn before anything was sent.",
}

ACTION_SAYS: dict[Action, str] = {
    Action.DISPATCH: "send it, once",
    Action.RESEND: "send the same identity again, under the receiver's declared guarantee",
    Action.QUERY: "read at {target} and keep the answer with observe; an empty answer proves "
    "nothing",
    Action.CLOSE: "close the operation at {target} and read, in one step there; a late original "
    "is refused from then on; it needs a purpose and the name of who allowed it",
    Action.RECONCILE: "a reviewer decides at version {version}, by a snapshot whose verdict "
    "resolves (unique_exact_match or terminal_absence)",
    Action.ADJUDICATE: "a person decides between the contradicting sources, with a reason",
    Action.WRITE_OFF: "a person ends the question without evidence, with a reason",
    Action.ESCALATE: "call a person who may decide",
    Action.COMPENSATE: "a person approves a new effect that amends {effect_id}, at version "
    "{version}",
    Action.REPLACE: "the same need may be met by a new work item, separately authorised; this "
    "identity is never sent again",
    Action.START_NEW: "another need is a new operation in a work item of its own",
}

ASK_SAYS = (
    "ask {target} for its stored receipt with inquire, which settles by it; none proves nothing"
)
"""What QUERY is where the receiver keeps one receipt for each identity."""

VERDICT_NEXT: dict[Verdict, str] = {
    Verdict.DUPLICATE_MATCHES: "Keep it with observe and call a person. Do not submit again, and "
    "compensate none of the rows on a guess.",
    Verdict.PAYLOAD_MISMATCH: "Keep it with observe and call a person. Do not submit again.",
    Verdict.ACTION_SCOPE_MISMATCH: "Keep it with observe and call a person. Do not submit again.",
    Verdict.EXACT_MATCH_EXISTENCE_ONLY: "Keep it with observe. Close the operation at the "
    "receiver and read there, if its policy allows that, or call a person. Do not submit again.",
    Verdict.UNIQUE_EXACT_MATCH: "Hand the snapshot to reconcile, with the reviewer's name and the "
    "version that the reviewer saw.",
    Verdict.TERMINAL_ABSENCE: "Hand the snapshot to reconcile, with the reviewer's name and the "
    "version that the reviewer saw. A replacement is a new work item, separately authorised.",
    Verdict.INCONCLUSIVE: "Keep it with observe and ask again, or close the operation at the "
    "receiver and read there, if its policy allows that, or call a person. Do not submit again.",
}


def status(
    counts: Mapping[str, int],
    opened: Sequence[Operation],
    *,
    now_ms: int,
    paused: str | None = None,
    budgets: Sequence[Budget] = (),
    drafts: Sequence[Operation] = (),
    questions: Sequence[Obligation] = (),
) -> str:
    """How many operations stand in each state, the money, every open question, every draft."""
    asked = {question.key: question for question in questions}
    lines = order_report.pause(paused)
    lines.append(f"operations: {sum(counts.values())}")
    known = [state.value for state in State]
    for name in (*known, *sorted(set(counts) - set(known))):
        if name in counts:
            lines.append(f"  {plain(name):<12}{counts[name]}")
    for held in budgets:
        lines.append(
            f"money in {plain(held.currency)}: {held.reserved} reserved, {held.spent} spent, "
            f"{held.written_off} written off, of {held.ceiling} (minor units)"
        )
    lines.append(f"open questions: {len(opened)}")
    for operation in opened:
        lines += ["", f"operation {plain(operation.operation_id)}"]
        lines += fields(
            ("work", plain(operation.work_id)),
            ("kind", plain(operation.kind)),
            ("subject", plain(operation.subject)),
            ("state", f"{operation.state.value}, version {operation.version}"),
            ("since", _since(operation.open_since_ms, now_ms)),
            ("why open", _why_open(operation)),
        )
        lines += sweep_report.person_lines(asked.get(operation.operation_id), now_ms)
        lines += order_report.order_lines(operation, now_ms=now_ms)
        lines += _allowed(operation, now_ms)
    lines += _drafts(drafts, now_ms)
    return "\n".join(lines) + "\n"


def _drafts(drafts: Sequence[Operation], now_ms: int) -> list[str]:
    lines = [f"drafts of orders: {len(drafts)}"] if drafts else []
    for operation in drafts:
        lines += ["", f"operation {plain(operation.operation_id)}"]
        lines += fields(("work", plain(operation.work_id)), ("digest", plain(operation.digest)))
        lines += order_report.order_lines(operation, now_ms=now_ms)
        lines += _allowed(operation, now_ms)
    return lines


def show(operation: Operation, entries: Sequence[Entry], *, now_ms: int) -> str:
    """Everything recorded about one operation, its history, and what is allowed next."""
    policy, not_sent = operation.policy, operation.not_sent
    lines = [*order_report.pause(operation.paused), f"operation {plain(operation.operation_id)}"]
    lines += fields(
        ("work", plain(operation.work_id)),
        ("target", f"{plain(operation.target)}, epoch {operation.epoch}"),
        ("kind", plain(operation.kind)),
        ("payload", plain(operation.payload)),
        ("subject", plain(operation.subject)),
        ("scope", plain(" / ".join(operation.scope))),
        ("digest", plain(operation.digest)),
        ("policy", f"{plain(policy.name)}, version {policy.version}"),
        ("state", f"{operation.state.value}, version {operation.version}"),
        ("it says", STATE_SAYS[operation.state]),
        ("effect", plain(operation.effect_id or "no decision names one")),
        ("sendings", f"{operation.attempts}, of which {not_sent} provably never left"),
        ("closing", f"asked for {counted(operation.close_requests, 'time')}"),
    )
    if operation.compensates is not None:
        lines += fields(("amends", f"effect {plain(operation.compensates)}"))
        lines += fields(("approval", _approval(operation)))
    lines += order_report.order_lines(operation, now_ms=now_ms)
    lines.append("  history")
    lines += [f"    {utc(entry.at_ms)}  {plain(entry.says)}" for entry in entries]
    return "\n".join(lines + _allowed(operation, now_ms)) + "\n"


def explain(name: str) -> str:
    """What a verdict proves, what a state says, or what a diagnosis means, and what to do next.

    Raises Malformed, naming the nearest right name, if there is none such.
    """
    wanted = name.strip().lower().replace("-", "_")
    for verdict in Verdict:
        if verdict.value == wanted:
            return _verdict(verdict)
    for state in State:
        if state.value == wanted:
            return _state(state)
    for diagnosis in Diagnosis:
        if diagnosis.value == wanted:
            return _diagnosis(diagnosis)
    verdicts = [verdict.value for verdict in Verdict]
    others = [word.value for word in (*State, *Diagnosis)]
    near = difflib.get_close_matches(wanted, verdicts + others, n=1)
    hint = f"did you mean {near[0]}?" if near else f"the verdicts are {', '.join(verdicts)}"
    raise Malformed("verdict", f"{name!r} names no verdict, state or diagnosis; {hint}")


def _since(first_ms: int | None, now_ms: int) -> str:
    """From the first announcement, the earliest moment at which a request can have left."""
    if first_ms is None:
        return "no announcement is recorded"
    if first_ms > now_ms:
        return f"{utc(first_ms)} (this clock is behind that: its age is not known)"
    return f"{utc(first_ms)} ({age(now_ms - first_ms)} ago)"


def _why_open(operation: Operation) -> str:
    why = [STATE_SAYS[operation.state]]
    if operation.state is State.UNKNOWN:
        left = counted(operation.may_have_left, "sending")
        why.append(f"{left} may have reached {plain(operation.target)}.")
    if operation.close_requests:
        why.append("Closing was asked for before; to close again is harmless.")
    return " ".join(why)


def _allowed(operation: Operation, now_ms: int) -> list[str]:
    actions = next_actions(operation, now_ms=now_ms)
    if not actions:
        return ["  allowed next", "    nothing: it is final; evidence against it is an incident"]
    named = {
        "target": plain(operation.target),
        "version": operation.version,
        "effect_id": plain(operation.effect_id),
    }
    says = ACTION_SAYS
    if operation.policy.stored_receipt:
        says = {**says, Action.QUERY: ASK_SAYS}
    lines = [f"    {action.value:<11}{says[action].format(**named)}" for action in actions]
    return ["  allowed next", *lines]


def _approval(operation: Operation) -> str:
    bound = operation.binding
    if bound is None:
        return "none stands: it may not be sent"
    return (
        f"number {bound.ordinal}, by {plain(bound.approver)}, for operation "
        f"{plain(bound.original_id)} at version {bound.approved_version}; that one is now "
        f"{bound.state.value} at version {bound.version}"
    )


def _verdict(verdict: Verdict) -> str:
    proves = verdict.resolves
    resolves = "no: the question stays open" if proves is None else f"yes: to {proves.value}"
    head = [f"verdict {verdict.value}", f"  {verdict.says}"]
    return (
        "\n".join([*head, *fields(("resolves", resolves), ("do next", VERDICT_NEXT[verdict]))])
        + "\n"
    )


def _diagnosis(diagnosis: Diagnosis) -> str:
    head = f"diagnosis {diagnosis.value}"
    return "\n".join([head, *order_report.advice_lines(diagnosis.advice)]) + "\n"


def _state(state: State) -> str:
    lines = [f"state {state.value}", f"  {STATE_SAYS[state]}"]
    for (source, target), causes in MOVES.items():
        if source is state:
            by = ", ".join(cause.value for cause in Cause if cause in causes)
            lines.append(f"  may become {target.value}, by {by}")
    if state in FINAL:
        lines.append("  nothing moves it any more; evidence against it is kept as an incident")
    if state in UNRESOLVED:
        lines.append("  `status` says for each such operation what is allowed next")
    return "\n".join(lines) + "\n"
