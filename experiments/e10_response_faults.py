"""Every way in which an answer can break.

Incident
    A client caught "network errors" around its call. A body that ended early was of another family
    of errors and escaped; a redirect to a closed port looked like a connection that was refused; a
    409 was read as "declined", and the money was freed. All three orders existed.

Observable result
    `summary.faults` = 12 answers break, each in its own way, and leave the order unknown with its
    money held: `summary.unknown with the money held` = 12. One lookup each confirms
    `summary.confirmed by one lookup` = 11 of them, with one send. The last is the `mismatch`,
    where somebody else used our identity for another proposal:
    `mismatch.after the lookup` = "unknown". Of all faults of a connection, only a refused one is
    known never to have left: `refused connection.outcome` = "prepared", with
    `refused connection.held` = 1500.

Predict
    1. The supplier answers 409. What became of the order?
       (a) It was declined. *Misconception: an error status is a no.*
       (b) It exists already. *Misconception: it is a yes.*
       (c) That depends on which of three conflicts it is, and it is asked.
    2. The reply is 200, with the receipt of another order. Is this one accepted?
       (a) Yes, 200 is success. *Misconception: a green status is a receipt.*
       (b) It stays unknown.
    3. The client was redirected to a port where nobody listens: "connection refused". Did the
       order leave?
       (a) No. *Misconception: the last error tells the whole story.*
       (b) Yes; a redirect is an answer to a request that arrived.

Run
    python3 run_experiment.py e10_response_faults

Read
    1. `receiver/misreplies.py` `MISREPLIES` has each fault by its name.
    2. `reconcile/flows/http_receiver.py` `HttpReceiver` greets the account, sends once, and takes
       nothing but a receipt for one; `reconcile/rules/receipts.py` `receipt_answers` asks whose it
       is.
    3. `reconcile/flows/sender.py` `_send` says how a call went, and nothing of the effect.
    4. `reconcile/rules/sending.py` `never_sent` is the only way back.

Break it
    One unsafe twin trusts the green status of a reply that declines: `twin.green status.state` =
    "confirmed" with `twin.green status.effects` = 0 orders of ours. The other takes a conflict for
    a no and frees the money of an order that exists: `twin.conflict is failure.effects` = 1.

What this does not show
    Loopback on one host. No partition, no TLS, no proxy between, no HTTP/2; packets are not lost.

Exercises
    1. Add a fault that answers 200 with the right receipt twice. Is that a fault?
    2. Which of these would `curl` call a success?
    3. Make the client follow redirects. What do the supplier's rows and the sends say then?

Words
    short body, reset, redirect, conflict, status, never sent

Sources
    RFC 9110 on what a client may conclude from a broken response; the families of errors of
    `http.client` as measured; reports of 409 taken for success and for failure.
"""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from reconcile import Ledger, Operation, dispatch, inquire, look
from reconcile.flows.http_receiver import HttpReceiver
from reconcile.rules.claim import Claim

from .harness import unsafe
from .harness.lab import Lab
from .harness.processes import LIMIT_S
from .harness.shop import Shop, trading
from .harness.supplier import IDENTITY, KEYED

FAULTS = (
    "short-body",
    "no-bytes",
    "cut-json",
    "bad-status-line",
    "stall",
    "reset",
    "redirect",
    "wrong-receipt",
    "error-after-commit",
    "conflict-in-progress",
    "conflict-exists",
)
"""The faults that the supplier is told. The twelfth needs none: the identity was used before."""

SHOWN = "no-bytes"  # the one whose sequence is drawn
STALL_S = 2.0  # bounds the call that the stall would hang; nothing is ordered by it
FAULT_SHOWS = ("faults", "summary", "twin", "trace")
"""The keys that change when every answer is whole."""


def run(lab: Lab) -> dict[str, Any]:
    """One order for each fault; the identity used by somebody else; a refused connection."""
    with ThreadPoolExecutor(max_workers=len(FAULTS)) as pool:  # each waits for its supplier
        rows = list(pool.map(lambda fault: one(lab, fault), FAULTS))
    told: dict[str, Any] = {"faults": dict(zip(FAULTS, rows, strict=True))}
    told["mismatch"] = mismatch(lab)
    rows.append(told["mismatch"])
    told["summary"] = {
        "faults": len(rows),
        "unknown with the money held": [(row["outcome"], row["held"]) for row in rows].count(
            ("unknown", 1500)
        ),
        "confirmed by one lookup": [
            (row["after the lookup"], row["sends"], row["effects"]) for row in rows
        ].count(("confirmed", 1, 1)),
    }
    told["refused connection"] = refused_connection(lab)
    told["oracle"] = lab.findings()
    told["twin"] = {
        "green status": green_status(lab),
        "conflict is failure": conflict_is_failure(lab),
    }
    (shown,) = (scene for scene in lab.scenes if scene.title == SHOWN)
    return {**told, "trace": shown.trace.to_json()}


def one(lab: Lab, fault: str) -> dict[str, Any]:
    """An order whose first answer breaks in this way."""
    with (
        trading(lab, fault, options=lab.option("--fault", fault)) as trade,
        trade.ledger() as ledger,
    ):
        order_id, claim = trade.ready(ledger)
        return sent(trade, ledger, order_id, claim, limit_s=STALL_S if fault == "stall" else None)


def mismatch(lab: Lab) -> dict[str, Any]:
    """Somebody else used our identity for another proposal: 409, and its receipt is not ours."""
    with trading(lab, "mismatch") as trade, trade.ledger() as ledger:
        order_id, claim = trade.ready(ledger)
        put(trade.supplier.url, look(ledger, order_id), payload="{}")
        return sent(trade, ledger, order_id, claim)


def sent(
    trade: Shop, ledger: Ledger, order_id: str, claim: Claim, *, limit_s: float | None = None
) -> dict[str, Any]:
    """What is known after the send, and after one lookup; both files counted."""
    seen = dispatch(ledger, order_id, trade.receiver(limit_s=limit_s), claim=claim)
    held = trade.money(ledger)["reserved"]
    found = inquire(ledger, order_id, trade.receiver())
    return {
        "transport": seen.transport.value,
        "outcome": seen.outcome.value,
        "held": held,
        "effects": sum(trade.scene.effects().values()),
        "after the lookup": found.state.value,
        "sends": found.attempts,
        "money": trade.money(ledger),
    }


def refused_connection(lab: Lab) -> dict[str, Any]:
    """Nobody listens: the only fault after which it is known that nothing left."""
    with trading(lab, "refused connection") as trade, trade.ledger() as ledger:
        order_id, claim = trade.ready(ledger)
        nobody = HttpReceiver(nobody_listens(), identity=IDENTITY, policy=KEYED)
        seen = dispatch(ledger, order_id, nobody, claim=claim)
        return {
            "transport": seen.transport.value,
            "outcome": seen.outcome.value,
            "held": trade.money(ledger)["reserved"],
            "sent later": dispatch(ledger, order_id, trade.receiver(), claim=claim).outcome.value,
            "effects": sum(trade.scene.effects().values()),
        }


def nobody_listens() -> str:
    """An address at which a connection is refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    return f"http://127.0.0.1:{port}"


def put(url: str, operation: Operation, **changed: str) -> int:
    """Send an order as any client would, and return the status alone; 0 without one."""
    body = {name: getattr(operation.query, name) for name in ("target", "kind", "payload")}
    connection = HTTPConnection(urlsplit(url).netloc, timeout=LIMIT_S)
    try:
        connection.request(
            "PUT",
            f"/operations/{operation.operation_id}",
            json.dumps({**body, "compensates": None, **changed}),
        )
        return connection.getresponse().status
    finally:
        connection.close()


def green_status(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: 200 is success, whatever the body says; it is a receipt that says no."""
    with trading(lab, "green status", options=lab.option("--reject"), unsafe=True) as trade:
        with trade.ledger() as ledger:
            order_id, _ = trade.ready(ledger)
            status = put(trade.supplier.url, look(ledger, order_id))
        if status == 200:
            unsafe.flip_state(trade.scene.sender, order_id, "confirmed")
        return judged(trade)


def conflict_is_failure(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: 409 is a no, so that the order is called rejected and its money free."""
    options = lab.option("--fault", "conflict-exists")
    with trading(lab, "conflict is failure", options=options, unsafe=True) as trade:
        with trade.ledger() as ledger:
            order_id, _ = trade.ready(ledger)
            status = put(trade.supplier.url, look(ledger, order_id))
        if status == 409:
            unsafe.release(trade.scene.sender, order_id)
        return judged(trade)


def judged(trade: Shop) -> dict[str, Any]:
    """What a twin left in both files, and what the oracle says of that."""
    return {
        "state": trade.scene.states()["order"],
        "effects": trade.scene.effects()["order"],
        "oracle": trade.scene.findings(),
    }


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    summary, refused = result["summary"], result["refused connection"]
    return (
        f"of {summary['faults']} broken answers {summary['unknown with the money held']} leave "
        f"the order unknown with its money held, and {summary['confirmed by one lookup']} are "
        "confirmed by one lookup with one send; the other one is somebody else's order under our "
        f"identity, and stays {result['mismatch']['after the lookup']}; only a refused connection "
        f"goes back to {refused['outcome']}"
    )
