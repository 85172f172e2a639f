"""What an operator is told about orders: what is known, what is not, what is safe, what to ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .flows.orders import Revocation
from .ledger.decisions import Decision
from .rules import sending
from .rules.diagnosis import Advice, Diagnosis, Finding
from .rules.operation import Operation
from .rules.order import Basis, Order
from .rules.states import FINAL, State
from .text import counted, fields, plain, utc

SHOWN = 5  # effects of one finding that are named

MONEY_SAYS = {
    None: "nothing is reserved for it",
    "reserve": "held: it is neither free nor spent until its outcome is known",
    "spend": "spent",
    "release": "free again",
    "write_off": "written off: neither spent nor free, and it counts against the ceiling",
}


def money(order: Order) -> str:
    """What became of the money of an order, in a line."""
    does = "reserve" if order.held else order.became
    amount = f"{order.amount} {plain(order.currency)} (minor units)"
    return f"{amount}, {MONEY_SAYS[does]}"


def authority(order: Order, *, now_ms: int) -> str:
    """Who approved an order, until when, and what ended that, in a line."""
    approval = order.approval
    if order.cancelled_by is not None:
        return f"its work item was cancelled by {plain(order.cancelled_by)}: nothing more is sent"
    if approval is None:
        return "none: it may not be sent"
    who = f"by {plain(approval.actor)}, basis {approval.basis.value}"
    if approval.revoked_by is not None:
        return f"{who}, revoked by {plain(approval.revoked_by)}: nothing more is sent"
    if now_ms >= approval.expires_ms:
        return f"{who}, ended at {utc(approval.expires_ms)}: nothing is sent under it"
    if approval.basis is Basis.UNKNOWN:
        return f"{who}: nothing is sent under it, approve it anew"
    if approval.basis is Basis.OPERATOR and not approval.listed:
        return f"{who}, who is no longer on the list of approvers: nothing is sent under it"
    return f"{who}, until {utc(approval.expires_ms)}"


def pause(why: str | None) -> list[str]:
    """The line that stands above everything else while a store is paused."""
    return [] if why is None else [f"PAUSED: {plain(why)}; nothing is sent or decided from here"]


def order_lines(operation: Operation, *, now_ms: int) -> list[str]:
    """What an order adds to what is told of an operation; nothing if it carries no money."""
    order = operation.order
    if order is None:
        return []
    bought = f"{order.quantity} of {plain(order.sku)} at {order.unit_cost}"
    arrived = f"{order.delivered} of {order.quantity}; accepted is not delivered"
    return fields(
        ("buys", bought),
        ("sent", f"{counted(operation.attempts, 'sending')} of 1 order"),
        ("money", money(order)),
        ("authority", authority(order, now_ms=now_ms)),
        ("delivered", arrived),
        ("operator", needs(operation, now_ms=now_ms)),
    )


def needs(operation: Operation, *, now_ms: int | None = None) -> str:
    """Whether an order can go on, or end, without a person. Without a time, as if it was approved.

    What ends an uncertain one is said by what its supplier declared.
    """
    if operation.state in FINAL:
        return "not needed"
    if operation.paused is not None:
        return "needed: a paused store sends nothing and settles nothing; call a person"
    if operation.state is State.PREPARED:
        why = None if now_ms is None else sending.why_not_dispatch(operation, now_ms)
        return "not needed" if why is None else f"needed: {plain(why)}"
    if operation.state not in (State.UNKNOWN, State.PENDING):
        return "needed: a person decides about it"
    by_hand = "get a receipt from a person there and hand it in with resolve-order"
    if not operation.policy.stored_receipt:
        kept = "its supplier keeps no receipt that could be asked for, and nothing is sent again"
        return f"needed: {kept}; {by_hand}"
    if _forgotten(operation, now_ms):
        return f"needed: its supplier may have forgotten it by now; ask (inquire), or {by_hand}"
    return "not needed yet: its supplier keeps a receipt that can be asked for (inquire)"


def _forgotten(operation: Operation, now_ms: int | None) -> bool:
    """Whether the time is over for which its supplier declared that it knows an identity again."""
    first_ms, remembers_ms = operation.first_sent_ms, operation.policy.identity_retention_ms
    if now_ms is None or first_ms is None or remembers_ms is None:
        return False
    return now_ms >= first_ms + remembers_ms


def approved(operation: Operation, *, now_ms: int) -> str:
    """What an approval came to."""
    head = f"order {plain(operation.operation_id)}: approved\n"
    again = "ask for its receipt first (inquire); only then may the same identity be sent again"
    next_step = again if operation.may_have_left else "dispatch it, under a claim of its work item"
    lines = [*order_lines(operation, now_ms=now_ms), *fields(("next", next_step))]
    return head + "\n".join(lines) + "\n"


def asked(before: Operation, found: Operation, *, now_ms: int) -> str:
    """What asking for the stored receipt came to."""
    if found.asked_after == found.attempts and found.open_since_ms is not None:
        says = "no receipt is stored there, which proves nothing; it stays as it is"
    elif found.version == before.version:
        says = "a receipt came and was kept; nothing moved"
    else:
        says = f"a receipt came: it was {before.state.value}, and is {found.state.value}"
    head = f"operation {plain(found.operation_id)}: {says}\n"
    return head + "\n".join(order_lines(found, now_ms=now_ms)) + "\n"


def revoked(done: Revocation, *, now_ms: int) -> str:
    """Whether revoking was in time."""
    operation = done.operation
    head = f"order {plain(operation.operation_id)}: {_in_time(done)}\n"
    return head + "\n".join(order_lines(operation, now_ms=now_ms)) + "\n"


def _in_time(done: Revocation) -> str:
    state = done.operation.state
    if done.in_time:
        return "in time: nothing had left, the order is ended, and none of its money is held"
    if state in FINAL:
        return f"too late to matter: it is {state.value}, which is final; nothing of it moved"
    return (
        "it may be too late: a request may have left. The order stays as it is, its money "
        "stays where it is, nothing more is sent, and a receipt still settles it. Ask the "
        "supplier whether it can still refuse the order"
    )


def resolved(done: Decision, operation: Operation, *, now_ms: int) -> str:
    """What a receipt that was handed in came to."""
    how = "stood already; nothing moved" if done.repeated else "decided by this receipt"
    head = f"order {plain(done.operation_id)}: {done.state.value}, version {done.version}, {how}\n"
    return head + "\n".join(order_lines(operation, now_ms=now_ms)) + "\n"


def diagnosis(
    findings: Sequence[Finding],
    known: Mapping[str, Operation],
    *,
    supplier: str,
    now_ms: int,
) -> str:
    """Every finding, with the four answers that are needed at night."""
    if not findings:
        return f"this ledger and the account of {plain(supplier)} agree\n"
    head = f"{counted(len(findings), 'finding')} against the account of {plain(supplier)}"
    lines = [head]
    for finding in findings:
        operation, advice = known.get(finding.operation_id), finding.diagnosis.advice
        lines += ["", f"operation {plain(finding.operation_id)}"]
        lines += fields(
            ("finding", finding.diagnosis.value),
            ("here", _here(operation)),
            ("there", f"{counted(len(finding.effects), 'effect')}: {_effects(finding)}"),
        )
        if operation is not None:
            lines += order_lines(operation, now_ms=now_ms)
        lines += advice_lines(advice._replace(safe=_safe(finding, operation)))
    return "\n".join(lines) + "\n"


def advice_lines(advice: Advice) -> list[str]:
    """The four answers of a diagnosis, a line each."""
    return fields(
        ("known", advice.known),
        ("not known", advice.not_known),
        ("safe", advice.safe),
        ("ask", advice.ask),
    )


def _here(operation: Operation | None) -> str:
    if operation is None:
        return "no row knows it"
    sends, what = operation.attempts, "order" if operation.order else "operation"
    at = f"{operation.state.value}, version {operation.version}"
    return f"{at}; 1 {what}, {counted(sends, 'sending')}"


def _safe(finding: Finding, operation: Operation | None) -> str:
    """The advice, except that no stored receipt is asked of a receiver that keeps none."""
    lost = finding.diagnosis is Diagnosis.LOST_RECEIPT
    if not lost or operation is None or operation.policy.stored_receipt:
        return finding.diagnosis.advice.safe
    hand_in = " and hand it in with resolve-order" if operation.order else ", and call a reviewer"
    return (
        f"It keeps no receipt that could be asked for: get one from a person there{hand_in}. "
        "Do not submit again under another identity, and free no money."
    )


def _effects(finding: Finding) -> str:
    shown = [plain(effect.effect_id) for effect in finding.effects[:SHOWN]]
    more = ["…"] if len(finding.effects) > SHOWN else []
    return ", ".join(shown + more) or "none"
