"""An order with money.

Incident
    A shop ordered six tubs for 1500 pence, and the connection broke before the answer. Somebody
    read "error", freed the money, and ordered again under a new number. Twelve tubs came, and the
    month's money was gone twice.

Observable result
    The supplier commits and drops the connection: `dispatch.outcome` = "unknown", with
    `before.rows at the supplier` = 1 and `before.money.reserved` = 1500. The file is closed and
    opened again: `reopened.money.reserved` = 1500. One lookup makes it `lookup.state` =
    "confirmed", with `after.money.spent` = 1500 and `after.money.reserved` = 0. There are
    `after.orders` = 1 order, `after.sends` = 1 send and `after.settlements` = 1 settlement, also
    after the same receipt comes again (`the same receipt again` = "repeated"). A receipt for seven
    is refused: `a receipt for seven` = "ContradictingReceipt". On hand are still
    `after.on hand` = 2 tubs, until a delivery is recorded: `delivered` = 8.

Predict
    1. The connection broke without a byte of an answer. How much money may be spent on other
       things?
       (a) 2000: the order failed. *Misconception: an error is an answer.*
       (b) 500: the order may exist.
       (c) 2000, once the approval has expired. *Misconception: time frees money.*
    2. The lookup finds the receipt. How often was the order sent?
       (a) Twice, the lookup counts. *Misconception: asking is sending.*
       (b) Once.
    3. The order is accepted. How many tubs are on hand?
       (a) Eight. *Misconception: accepted is delivered.*
       (b) Two.

Run
    python3 run_experiment.py e07_order

Read
    1. `reconcile/flows/orders.py` `propose` takes the price from the store, `approve` reserves.
    2. `reconcile/rules/admission.py` `authority_stands` is asked again when the order leaves.
    3. `reconcile/flows/sender.py` `dispatch` commits `unknown` first, as for any operation.
    4. `reconcile/flows/inquiry.py` `inquire` asks for the stored receipt.
    5. `reconcile/rules/money.py` `MONEY` says what each final state does to held money, and
       `reconcile/ledger/orders.sql` `operation_moves_its_money` does it with the state.

Break it
    The unsafe twin gives the need a new identity and orders again: `twin.new identity.effects` =
    2 orders stand at the supplier for one need. The other twin frees the money at the timeout and
    lets a second order have it: `twin.release on timeout.money.reserved` = 500 are held, and the
    first order exists as well.

What this does not show
    The supplier is a teaching one on one host. It has no delivery service; deliveries are typed in
    by a person. One currency, no tax, and no price that changes between approval and receipt.

Exercises
    1. Let the supplier reject the order. Write down each transition of the money, not only the
       final zero; `experiments/tests/case_exercises.py` works it.
    2. Lower the ceiling to 1000 after the approval. Which refusal keeps the order from leaving?
    3. Hand in the receipt by `python3 -m reconcile resolve-order` instead of asking.

Words
    order, reservation, admission, receipt, settlement, ceiling, delivery

Sources
    Held funds as a journal of entries that is only added to: TigerBeetle's two-phase transfers.
    Receipts under one idempotency key: Stripe's API, and Helland, *Life beyond Distributed
    Transactions* (2007).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reconcile import Ledger, Receipt, State, dispatch, inquire, look, operation_identity
from reconcile.flows import settlement, shop

from .harness import oracle, unsafe
from .harness.lab import Lab
from .harness.scene import Scene, refusal
from .harness.shop import SKU, TUBS, Shop, trading
from .harness.supplier import IDENTITY

FAULT_SHOWS = ("dispatch", "before", "reopened", "diagnosis", "twin", "trace")
"""The keys that change when the supplier answers the first time."""

PUBLISHED = {
    "sku": "SKU-VANILLA",
    "quantity": 6,
    "unit_cost_pence": 250,
    "supplier": "lucy-local",
    "currency": "GBP",
}
"""A proposal whose identity in `morning-work` was published; an operation's has its kind, too."""


def run(lab: Lab) -> dict[str, Any]:
    """One order whose first answer is lost, from the price to the delivery; and two twins."""
    with trading(lab, options=lab.option("--drop-first-response")) as trade:
        told = buy(trade)
        scene = trade.scene
        told["oracle"] = lab.findings()
    made = operation_identity("morning-work", IDENTITY, PUBLISHED).operation_id
    told["published identity made"] = made == "ceb546fd645b56efac7a081a836c4abb"
    told["twin"] = {
        "new identity": new_identity(lab),
        "release on timeout": release_on_timeout(lab),
    }
    return {**told, "trace": scene.trace.to_json()}


def buy(trade: Shop) -> dict[str, Any]:
    """Propose, approve, send; look into both files; ask; settle once; record the delivery."""
    supplier, told = trade.receiver(), dict[str, Any]()
    with trade.ledger() as ledger:
        claim = trade.claim(ledger)
        order = trade.approve(ledger, trade.draft(ledger, claim))
        seen = dispatch(ledger, order.operation_id, supplier, claim=claim)
        told["dispatch"] = {
            "outcome": seen.outcome.value,
            "next": [action.value for action in seen.next_actions],
        }
        told["before"] = figures(trade, ledger)
    with trade.ledger() as ledger:  # opened again: nothing but the file is left
        told["reopened"] = {
            "state": look(ledger, order.operation_id).state.value,
            "money": trade.money(ledger),
        }
        told["diagnosis"] = trade.diagnosis(ledger)
        told["lookup"] = {"state": inquire(ledger, order.operation_id, supplier).state.value}
        inquire(ledger, order.operation_id, supplier)
        told |= hand_in(ledger, order.operation_id, kept_receipt(trade.scene))
        told["after"] = figures(trade, ledger)
        told["delivered"] = settlement.deliver(
            ledger, order.operation_id, reference="van-1", quantity=TUBS, actor="lucy"
        )
        told["money after the delivery"] = trade.money(ledger)
    return told


def figures(trade: Shop, ledger: Ledger) -> dict[str, Any]:
    """What stands in both files: money, the supplier's rows, sends and settlements, the shelf."""
    sends, settlements, orders = oracle.rows(
        trade.scene.sender,
        "SELECT (SELECT count(*) FROM attempt), (SELECT count(*) FROM entry WHERE settles = 1), "
        "(SELECT count(*) FROM purchase)",
    )[0]
    return {
        "money": trade.money(ledger),
        "rows at the supplier": sum(trade.scene.effects().values()),
        "orders": orders,
        "sends": sends,
        "settlements": settlements,
        "on hand": shop.on_hand(ledger, SKU),
    }


def kept_receipt(scene: Scene) -> Receipt:
    """The receipt that settled the order, as the store kept it."""
    return Receipt(**oracle.receipts(scene.sender)[0])


def hand_in(ledger: Ledger, operation_id: str, receipt: Receipt) -> dict[str, str]:
    """Hand the receipt in by a person: the same one, and one for seven."""
    order = look(ledger, operation_id)
    words = {
        "digest": order.digest,
        "supplier": IDENTITY,
        "actor": "lucy",
        "reference": "e-mail of Monday",
    }
    again = settlement.resolve_order(ledger, operation_id, receipt, **words)
    seven = replace(receipt, payload=receipt.payload.replace('"quantity":6', '"quantity":7'))
    return {
        "the same receipt again": "repeated" if again.repeated else "settled",
        "a receipt for seven": refusal(
            settlement.resolve_order, ledger, operation_id, seven, **words
        ),
    }


def new_identity(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: no answer, so the same need goes out under another work item."""
    with trading(
        lab, "new identity", options=lab.option("--drop-first-response"), unsafe=True
    ) as trade:
        with trade.ledger() as ledger:
            first, claim = trade.ready(ledger)
            seen = dispatch(ledger, first, trade.receiver(), claim=claim)
            if seen.outcome is State.UNKNOWN:
                retry = unsafe.same_need_again(look(ledger, first).query)
                trade.scene.name(retry, "order again")
                unsafe.send_past_the_library(trade.supplier.receiver(), retry)
        effects = trade.scene.effects()
        return {"effects": sum(effects.values()), "oracle": trade.scene.findings()}


def release_on_timeout(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: no answer, so the money is freed, and the next order takes it."""
    with trading(
        lab, "release on timeout", options=lab.option("--drop-first-response"), unsafe=True
    ) as trade:
        with trade.ledger() as ledger:
            first, claim = trade.ready(ledger)
            seen = dispatch(ledger, first, trade.receiver(), claim=claim)
        if seen.outcome is State.UNKNOWN:
            unsafe.release(trade.scene.sender, first)
        with trade.ledger() as ledger:
            trade.approve(ledger, trade.draft(ledger, trade.claim(ledger), "next", tubs=2))
            money = trade.money(ledger)
        return {
            "money": money,
            "rows at the supplier": sum(trade.scene.effects().values()),
            "oracle": trade.scene.findings(),
        }


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    before, after = result["before"]["money"], result["after"]
    money = after["money"]
    return (
        f"the answer was lost with {result['before']['rows at the supplier']} order at the "
        f"supplier and {before['reserved']}/{before['spent']} reserved/spent; one lookup made it "
        f"{result['lookup']['state']} with {money['reserved']}/{money['spent']}, "
        f"{after['orders']} order, {after['sends']} send, {after['settlements']} settlement; "
        f"a new identity orders {result['twin']['new identity']['effects']} times"
    )
