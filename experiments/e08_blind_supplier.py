"""A supplier that can be asked nothing.

Incident
    A small supplier took orders over its website and kept no numbers of its customers. After a
    broken connection a worker sent the order again "to be safe", and a cleaner freed the money the
    next day, since the approval had expired. Both were wrong on the same order.

Observable result
    The order is sent once: `dispatch.outcome` = "unknown". Asking finds nothing and proves
    nothing: `asked.state` = "unknown". Sending again is refused before any contact: `resend` =
    "NoGuarantee", and so is renewing: `renew` = "NoGuarantee". Revoking says that it may be too
    late: `revoke.in time` = false. A year later `a year later.state` = "unknown" with
    `a year later.money.reserved` = 1500, and the order says that a person is needed:
    `a year later.needs an operator` = true. A receipt that a person hands in ends it: `handed in`
    = "confirmed". The supplier was sent `sends at the supplier` = 1 order.

Predict
    1. The supplier keeps no identities. What may the worker do after silence?
       (a) Send again with the same number. *Misconception: a number protects by being the same.*
       (b) Ask, and call a person.
    2. The approval expired, and was revoked as well. Where is the money?
       (a) Free: nobody may spend it. *Misconception: authority and money end together.*
       (b) Held: the order may exist.
    3. A lookup answers "not found". What is known?
       (a) The order does not exist. *Misconception: not found is absence.*
       (b) Nothing new.

Run
    python3 run_experiment.py e08_blind_supplier

Read
    1. `experiments/harness/supplier.py` `BLIND` declares nothing.
    2. `reconcile/rules/contact.py` `resend_is_declared` refuses before any contact.
    3. `reconcile/flows/orders.py` `revoke` says whether it was in time.
    4. `reconcile/flows/settlement.py` `resolve_order` is the way out, and a person's.

Break it
    The unsafe twin sends the same identity again to a supplier that knows no identities:
    `twin.same identity again.effects` = 2.

What this does not show
    How a person finds out. The library says what to ask, keeps the money, and waits.

Exercises
    1. Declare `resend_same`, `identity_scope` and `identity_retention_ms` in the policy of this
       supplier, although none is true. The lab stops the run: what did it find, and in which file?
    2. Which line of `python3 -m reconcile status` tells the operator that nobody else will act?
    3. Let the receipt that is handed in say "rejected", with no effect. The lab stops the run
       again. Who lied, and what happened to the money?

Words
    guarantee, identity, operator, reference, revocation

Sources
    Idempotency keys as a promise of the receiver, not a property of the request: the IETF draft
    *The Idempotency-Key HTTP Header Field*.
"""

from __future__ import annotations

from typing import Any

from reconcile import Ledger, Receipt, dispatch, inquire, look, resend
from reconcile.flows import orders, settlement, work
from reconcile.order_report import needs

from .harness import unsafe
from .harness.lab import YEAR_MS, Lab
from .harness.scene import refusal
from .harness.shop import HOUR_MS, Shop, trading
from .harness.supplier import BLIND, IDENTITY

FAULT_SHOWS = ("dispatch", "asked", "renew", "revoke", "a year later", "trace")
"""The keys that change when the supplier answers the first time."""


def run(lab: Lab) -> dict[str, Any]:
    """One order to a supplier without a guarantee, through everything that must not free it."""
    with trading(lab, options=blind(lab), policy=BLIND) as trade:
        told = through_a_year(trade)
        told["sends at the supplier"] = len(
            [contact for contact in trade.scene.contacts() if contact[0] == "apply"]
        )
        told["effects"] = trade.scene.effects()
        told["oracle"] = lab.findings()
        scene = trade.scene
    told["twin"] = {"same identity again": same_identity_again(lab)}
    return {**told, "trace": scene.trace.to_json()}


def blind(lab: Lab) -> tuple[str, ...]:
    """A supplier that keeps no identities, and the fault of this chapter."""
    return ("--not-idempotent", *lab.option("--drop-first-response"))


def through_a_year(trade: Shop) -> dict[str, Any]:
    """Send once; ask, resend, renew, revoke, cancel, wait; then a person brings the receipt."""
    supplier, told = trade.receiver(), dict[str, Any]()
    with trade.ledger() as ledger:
        order_id, claim = trade.ready(ledger)
        told["dispatch"] = {
            "outcome": dispatch(ledger, order_id, supplier, claim=claim).outcome.value
        }
        told["asked"] = {"state": inquire(ledger, order_id, supplier).state.value}
        told["resend"] = refusal(resend, ledger, order_id, supplier, claim=claim)
        told["renew"] = renewal(trade, ledger, order_id)
        revoked = orders.revoke(ledger, order_id, actor="lucy", reason="too dear")
        told["revoke"] = {"in time": revoked.in_time, "money": trade.money(ledger)}
        work.cancel(ledger, claim.item, actor="lucy", reason="shop closed")
        trade.scene.lab.pass_time(YEAR_MS)
        told["a year later"] = {
            "state": look(ledger, order_id).state.value,
            "money": trade.money(ledger),
            "needs an operator": needs(look(ledger, order_id)).startswith("needed"),
        }
        told["handed in"] = hand_in(ledger, order_id)
        told["money at the end"] = trade.money(ledger)
    return told


def renewal(trade: Shop, ledger: Ledger, order_id: str) -> str:
    """What becomes of an attempt to renew the approval."""
    return refusal(
        orders.renew,
        ledger,
        order_id,
        trade.receiver(),
        digest=look(ledger, order_id).digest,
        actor="lucy",
        expires_ms=ledger.now_ms() + HOUR_MS,
    )


def hand_in(ledger: Ledger, order_id: str) -> str:
    """A person at the supplier read the order from the screen; lucy hands the receipt in."""
    order = look(ledger, order_id)
    receipt = Receipt(
        operation_id=order_id,
        status="accepted",
        effect_id=f"{order_id}#1",
        kind=order.kind,
        payload=order.payload,
        compensates=None,
        receiver=IDENTITY,
        epoch=1,
    )
    done = settlement.resolve_order(
        ledger,
        order_id,
        receipt,
        digest=order.digest,
        supplier=IDENTITY,
        actor="lucy",
        reference="photograph of the order book, 14 May",
    )
    return done.state.value


def same_identity_again(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: no answer, so the very same request goes out again."""
    with trading(lab, "again", options=blind(lab), policy=BLIND, unsafe=True) as trade:
        with trade.ledger() as ledger:
            order_id, claim = trade.ready(ledger)
            dispatch(ledger, order_id, trade.receiver(), claim=claim)
            unsafe.send_past_the_library(trade.supplier.receiver(), look(ledger, order_id).query)
        return {
            "effects": sum(trade.scene.effects().values()),
            "oracle": trade.scene.findings(),
        }


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    later = result["a year later"]
    return (
        f"sent {result['sends at the supplier']} time; resending is {result['resend']}, renewing "
        f"{result['renew']}; revoked, cancelled and a year later it is {later['state']} with "
        f"{later['money']['reserved']} held; a receipt that a person hands in makes it "
        f"{result['handed in']}; the same request again makes "
        f"{result['twin']['same identity again']['effects']} orders"
    )
