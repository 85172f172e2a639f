"""The operator's commands that write, and the one that asks a supplier. Each answers in text.

They open an existing ledger and never make one. Names of people are taken as given: what they do
is written under them, and nothing here checks who types.
"""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from . import order_report
from .flows import inquiry, orders, recovery, settlement
from .flows.http_receiver import HttpReceiver
from .flows.receivers import UnavailableReceiver
from .ledger import views
from .ledger.store import Ledger
from .rules.errors import Malformed, StorageFailed
from .rules.evidence import Receipt, receipt_from
from .rules.order import LONGEST_APPROVAL_MS
from .rules.states import State

LONGEST_FILE = 1 << 26  # bytes of a receipt's file
MINUTE_MS = 60_000
LONGEST_MINUTES = LONGEST_APPROVAL_MS // MINUTE_MS


def approve(given: Namespace, busy_ms: int) -> str:
    """Approve a draft, or renew the approval of an uncertain order, as a person on the list."""
    minutes = _minutes(given.minutes)
    with _writing(given.file, busy_ms) as ledger:
        order = views.look(ledger, given.operation)
        grant = {
            "digest": given.digest,
            "actor": given.actor,
            "expires_ms": ledger.now_ms() + minutes * MINUTE_MS,
        }
        if order.state is State.UNKNOWN:
            # What the supplier declares today is asked again when the order is sent.
            supplier = UnavailableReceiver(order.target, epoch=order.epoch, policy=order.policy)
            done = orders.renew(ledger, given.operation, supplier, **grant)
        else:
            done = orders.approve(ledger, given.operation, **grant)
        return order_report.approved(done, now_ms=ledger.now_ms())


def revoke(given: Namespace, busy_ms: int) -> str:
    """Take authority back, and say whether that was in time."""
    with _writing(given.file, busy_ms) as ledger:
        done = orders.revoke(ledger, given.operation, actor=given.actor, reason=given.reason)
        return order_report.revoked(done, now_ms=ledger.now_ms())


def resolve_order(given: Namespace, busy_ms: int) -> str:
    """Settle an uncertain order by a receipt from a file."""
    receipt = read_receipt(given.receipt)
    with _writing(given.file, busy_ms) as ledger:
        done = settlement.resolve_order(
            ledger,
            given.operation,
            receipt,
            digest=given.digest,
            supplier=given.supplier,
            actor=given.actor,
            reference=given.reference,
        )
        order = views.look(ledger, given.operation)
        return order_report.resolved(done, order, now_ms=ledger.now_ms())


def inquire(given: Namespace, busy_ms: int) -> str:
    """Ask a keyed supplier for its stored receipt, and settle by it."""
    with _writing(given.file, busy_ms) as ledger:
        before = views.look(ledger, given.operation)
        supplier = HttpReceiver(
            given.url, identity=before.target, epoch=before.epoch, policy=before.policy
        )
        found = inquiry.inquire(ledger, given.operation, supplier)
        return order_report.asked(before, found, now_ms=ledger.now_ms())


def diagnose(given: Namespace, busy_ms: int) -> str:
    """Lay the ledger beside the supplier's account and say what does not agree. Writes nothing."""
    supplier = HttpReceiver(given.url, identity=given.supplier)
    with Ledger.inspect(given.file, busy_ms=busy_ms) as ledger:
        findings = recovery.compare(ledger, supplier)
        known = {
            finding.operation_id: views.look(ledger, finding.operation_id)
            for finding in findings
            if finding.state is not None
        }
        told = order_report.diagnosis(
            findings, known, supplier=given.supplier, now_ms=ledger.now_ms()
        )
        return "".join(f"{line}\n" for line in order_report.pause(ledger.paused)) + told


def _writing(path: str, busy_ms: int) -> Ledger:
    return Ledger(path, busy_ms=busy_ms, must_exist=True)


def read_receipt(path: str) -> Receipt:
    """The receipt in a file: one JSON object with exactly the fields of a receipt.

    It may stand in the reply that brought it, as a lookup gives it.
    Raises Malformed, naming the place, if it is anything else; StorageFailed if it cannot be read.
    """
    try:
        if not Path(path).is_file():
            raise StorageFailed(path, "cannot be read: it is no file")
        with Path(path).open("rb") as file:
            text = file.read(LONGEST_FILE + 1)
    except (OSError, ValueError) as error:
        raise StorageFailed(path, f"cannot be read: {error}") from error
    if len(text) > LONGEST_FILE:
        raise Malformed(path, f"is longer than {LONGEST_FILE} bytes: that is no receipt")
    try:
        found = json.loads(text.decode(), object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Malformed(path, f"is no JSON text in UTF-8: {error}") from error
    if isinstance(found, dict) and set(found) == {"reply", "receipt"}:  # as it came by HTTP
        found = found["receipt"]
    return receipt_from(found)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _minutes(text: str) -> int:
    plain = text.isascii() and text.isdecimal() and 0 < len(text) <= len(str(LONGEST_MINUTES))
    if not (plain and 1 <= int(text) <= LONGEST_MINUTES):
        raise Malformed(
            "--minutes", f"needs a whole number from 1 to {LONGEST_MINUTES}, not {text!r}"
        )
    return int(text)
