"""Who may still send it.

Incident
    An order was approved on Friday for one day, and its answer was lost. On Monday somebody
    revoked it and was told "done"; the supplier delivered on Tuesday. Nobody had said that taking
    back authority and taking back an order are two things.

Observable result
    Revoked before it left, it is never sent: `revoked before.in time` = true, with
    `revoked before.effects` = 0 and `revoked before.money.reserved` = 0. Revoked after it left,
    the answer is honest: `revoked after.in time` = false, the money stays (`revoked after.held` =
    1500), and the receipt still settles it: `revoked after.state` = "confirmed". An expired
    approval sends nothing (`expired.dispatch` = "ApprovalExpired") and frees nothing
    (`expired.held` = 1500). A renewed one may send the same identity again, after asking:
    `renewed.resend before asking` = "ResendRefused", then `renewed.effects` = 1 effect with
    `renewed.sends` = 2 sends. Renewal is refused in `renewal refused` each for its own reason. An
    automatic approval counts only while it fits: `automatic.allowance lowered` =
    "AutomaticRefused".

Predict
    1. The order was sent, its answer lost, and the approval is revoked. Will goods come?
       (a) No, it was revoked. *Misconception: authority is an effect.*
       (b) Perhaps.
    2. The approval expired before the order left. Where is the money?
       (a) Free. *Misconception: a date decides.*
       (b) Held, until a person approves it anew or revokes it.
    3. A manager left the company after approving. The order leaves an hour later.
       (a) It was approved, so it goes. *Misconception: approved once is approved.*
       (b) It is refused: who may approve is asked when it leaves.

Run
    python3 run_experiment.py e09_authority

Read
    1. `reconcile/rules/admission.py` `admission_rechecks_authority` asks for the lease, and
       `authority_stands` in the same file for the rest, when it leaves.
    2. `reconcile/flows/orders.py` `renew` adds an approval and touches nothing else.
    3. `reconcile/rules/admission.py` `in_time` says when revoking ends an order.
    4. `reconcile/flows/work.py` `cancel` withdraws drafts, and nothing that may have left.

Break it
    The unsafe twin takes "revoked" for "not ordered" and calls the order ended: `twin.revoked is
    not ordered.state` = "revoked" while `twin.revoked is not ordered.effects` = 1 order stands.

What this does not show
    Names are trusted inputs: nobody is authenticated. A list of approvers is a row in a file.

Exercises
    1. Revoke between the commit that announces and the arrival at the supplier. Which answer is
       right?
    2. Let two people approve the same draft. How much is reserved?
    3. Set the clock back after the approval expired. Does it live again?

Words
    approval, basis, expiry, revocation, renewal, allowance, authorisation point

Sources
    Time-of-check to time-of-use: the recheck stands in the transaction that announces. Budgets
    with held funds: reports of holds that were dropped while the work still ran.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reconcile import EffectPolicy, Ledger, UnavailableReceiver, dispatch, inquire, look, resend
from reconcile.flows import orders, shop, work
from reconcile.rules.claim import Claim
from reconcile.rules.order import Basis

from .harness import oracle, unsafe
from .harness.lab import YEAR_MS, Lab
from .harness.scene import refusal
from .harness.shop import CEILING, CURRENCY, HOUR_MS, Shop, trading
from .harness.supplier import IDENTITY, KEYED

FAULT_SHOWS = ("revoked after", "renewed", "renewal refused", "cancelled", "twin", "trace")
"""The keys that change when the supplier answers the first time."""


def run(lab: Lab) -> dict[str, Any]:
    """Authority that ends before an order leaves, after it left, and comes again."""
    with lost(lab, "run") as (trade, ledger, order_id, claim):
        revoked_after = revoke_after(trade, ledger, order_id, claim)
        scene = trade.scene
    told: dict[str, Any] = {
        "revoked before": revoked_before(lab),
        "revoked after": revoked_after,
        "expired": expired(lab),
        "renewed": renewed(lab),
        "renewal refused": renewal_refused(lab),
        "automatic": automatic(lab),
        "list and ceiling": list_and_ceiling(lab),
        "cancelled": cancelled(lab),
    }
    told["oracle"] = lab.findings()
    told["twin"] = {"revoked is not ordered": revoked_is_not_ordered(lab)}
    return {**told, "trace": scene.trace.to_json()}


@contextmanager
def approved(
    lab: Lab, name: str, *, policy: EffectPolicy = KEYED, unsafe: bool = False
) -> Iterator[tuple[Shop, Ledger, str, Claim]]:
    """A shop with one approved order that was not sent yet."""
    options = lab.option("--drop-first-response")
    with (
        trading(lab, name, options=options, policy=policy, unsafe=unsafe) as trade,
        trade.ledger() as ledger,
    ):
        order_id, claim = trade.ready(ledger)
        yield trade, ledger, order_id, claim


@contextmanager
def lost(lab: Lab, name: str, **changed: Any) -> Iterator[tuple[Shop, Ledger, str, Claim]]:
    """The same, sent, its first answer lost."""
    with approved(lab, name, **changed) as (trade, ledger, order_id, claim):
        dispatch(ledger, order_id, trade.receiver(), claim=claim)
        yield trade, ledger, order_id, claim


def revoked_before(lab: Lab) -> dict[str, Any]:
    """Taken back before anything left: ended, and the money free."""
    with approved(lab, "revoked before") as (trade, ledger, order_id, claim):
        done = orders.revoke(ledger, order_id, actor="lucy", reason="too dear")
        again = orders.revoke(ledger, order_id, actor="lucy", reason="too dear")
        return {
            "in time": done.in_time,
            "said again": again.in_time,
            "state": done.operation.state.value,
            "dispatch": refusal(dispatch, ledger, order_id, trade.receiver(), claim=claim),
            "money": trade.money(ledger),
            "effects": sum(trade.scene.effects().values()),
        }


def revoke_after(trade: Shop, ledger: Ledger, order_id: str, claim: Claim) -> dict[str, Any]:
    """Taken back after it left: an honest answer, no second send, and the receipt settles."""
    supplier = trade.receiver()
    done = orders.revoke(ledger, order_id, actor="lucy", reason="too dear")
    held = trade.money(ledger)["reserved"]
    again = refusal(resend, ledger, order_id, supplier, claim=claim)
    state = inquire(ledger, order_id, supplier).state.value
    return {
        "in time": done.in_time,
        "held": held,
        "resend": again,
        "state": state,
        "money": trade.money(ledger),
        "effects": sum(trade.scene.effects().values()),
    }


def expired(lab: Lab) -> dict[str, Any]:
    """The approval ends before the order leaves: nothing is sent, nothing is freed."""
    with approved(lab, "expired") as (trade, ledger, order_id, claim):
        lab.pass_time(HOUR_MS)
        claim = trade.claim(ledger, claim.item)
        told = {
            "dispatch": refusal(dispatch, ledger, order_id, trade.receiver(), claim=claim),
            "held": trade.money(ledger)["reserved"],
        }
        trade.approve(ledger, look(ledger, order_id))
        told["held after approving again"] = trade.money(ledger)["reserved"]
        return told


def renewed(lab: Lab) -> dict[str, Any]:
    """An uncertain order whose approval ended is renewed, asked about, and sent again."""
    with lost(lab, "renewed") as (trade, ledger, order_id, claim):
        trade.supplier.close()
        before = look(ledger, order_id)
        lab.pass_time(HOUR_MS)
        claim = trade.claim(ledger, claim.item)
        # Its reading copy lags, so that asking finds nothing and the order is sent once more.
        with trade.again("--lookup-delay", str(YEAR_MS)) as supplier:
            told = {
                "resend": refusal(resend, ledger, order_id, supplier, claim=claim),
                "renew": refusal(renew, ledger, order_id, supplier, ledger.now_ms() + HOUR_MS),
                "resend before asking": refusal(resend, ledger, order_id, supplier, claim=claim),
            }
            asked = inquire(ledger, order_id, supplier)
            told["asked"] = asked.state.value
            told["resend after asking"] = refusal(resend, ledger, order_id, supplier, claim=claim)
        after = look(ledger, order_id)
        return {
            **told,
            "identity kept": before.digest == after.digest,
            "state": after.state.value,
            "sends": after.attempts,
            "effects": sum(trade.scene.effects().values()),
            "money": trade.money(ledger),
        }


def renew(ledger: Ledger, order_id: str, supplier: Any, expires_ms: int, **changed: Any) -> None:
    """Renew as lucy, or as changed."""
    grant = {"digest": look(ledger, order_id).digest, "actor": "lucy", "expires_ms": expires_ms}
    orders.renew(ledger, order_id, supplier, **{**grant, **changed})


def renewal_refused(lab: Lab) -> dict[str, str]:
    """From a renewal that would pass, one condition taken away at a time."""
    told = {}
    with lost(lab, "renewal refused") as (trade, ledger, order_id, claim):
        until, keyed = ledger.now_ms() + 2 * HOUR_MS, trade.receiver()
        bare = UnavailableReceiver(IDENTITY)
        other = UnavailableReceiver("another supplier", policy=KEYED)
        told["no guarantee"] = refusal(renew, ledger, order_id, bare, until)
        told["another target"] = refusal(renew, ledger, order_id, other, until)
        told["not on the list"] = refusal(renew, ledger, order_id, keyed, until, actor="bob")
        told["another digest"] = refusal(renew, ledger, order_id, keyed, until, digest="0" * 64)
        told["automatic"] = refusal(renew, ledger, order_id, keyed, until, basis=Basis.AUTOMATIC)
        shop.set_budget(ledger, currency=CURRENCY, ceiling=1000, set_by="lucy")
        told["over the ceiling"] = refusal(renew, ledger, order_id, keyed, until)
        shop.set_budget(ledger, currency=CURRENCY, ceiling=CEILING, set_by="lucy")
        told["nothing taken away"] = refusal(renew, ledger, order_id, keyed, until)
        orders.revoke(ledger, order_id, actor="lucy", reason="too dear")
        told["revoked"] = refusal(renew, ledger, order_id, keyed, until)
        work.cancel(ledger, claim.item, actor="lucy", reason="shop closed")
        told["cancelled"] = refusal(renew, ledger, order_id, keyed, until)
    return told


def automatic(lab: Lab) -> dict[str, Any]:
    """A grant without a person, which must still fit when the order leaves."""
    with trading(lab, "automatic") as trade, trade.ledger() as ledger:
        claim = trade.claim(ledger)
        draft = trade.draft(ledger, claim)
        grant = {"actor": "rule 1", "basis": Basis.AUTOMATIC}
        told: dict[str, Any] = {"too large": refusal(trade.approve, ledger, draft, **grant)}
        shop.set_budget(ledger, currency=CURRENCY, ceiling=CEILING, automatic=1500, set_by="lucy")
        told["fits"] = refusal(trade.approve, ledger, draft, **grant)
        shop.set_budget(ledger, currency=CURRENCY, ceiling=CEILING, set_by="lucy")
        told["allowance lowered"] = refusal(
            dispatch, ledger, draft.operation_id, trade.receiver(), claim=claim
        )
        told["effects"] = sum(trade.scene.effects().values())
        return told


def list_and_ceiling(lab: Lab) -> dict[str, str]:
    """What was true when the order was approved, and is not when it leaves."""
    told = {}
    with approved(lab, "list") as (trade, ledger, order_id, claim):
        send = (dispatch, ledger, order_id, trade.receiver())
        shop.list_approver(ledger, "lucy", listed=False)
        told["approver left"] = refusal(*send, claim=claim)
        shop.list_approver(ledger, "lucy")
        shop.set_budget(ledger, currency=CURRENCY, ceiling=1000, set_by="lucy")
        told["ceiling lowered"] = refusal(*send, claim=claim)
        shop.set_budget(ledger, currency=CURRENCY, ceiling=CEILING, set_by="lucy")
        told["no claim"] = refusal(*send)
        work.release(ledger, claim)
        told["claim given back"] = refusal(*send, claim=claim)
        short = work.claim(ledger, claim.item, owner="worker", lease_ms=1000)
        told["lease shorter than a call"] = refusal(*send, claim=short)
    return told


def cancelled(lab: Lab) -> dict[str, Any]:
    """The work is called off: a draft ends, an uncertain order keeps its money and settles."""
    with approved(lab, "cancelled before") as (trade, ledger, order_id, claim):
        work.cancel(ledger, claim.item, actor="lucy", reason="shop closed")
        before = {"state": look(ledger, order_id).state.value, "money": trade.money(ledger)}
    with lost(lab, "cancelled after") as (trade, ledger, order_id, claim):
        work.cancel(ledger, claim.item, actor="lucy", reason="shop closed")
        after = {
            "state": look(ledger, order_id).state.value,
            "money": trade.money(ledger),
            "receipt makes it": inquire(ledger, order_id, trade.receiver()).state.value,
        }
    return {"before": before, "after": after}


def revoked_is_not_ordered(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: revoking after the send is written as the end of the order."""
    with lost(lab, "revoked is not ordered", unsafe=True) as (trade, ledger, order_id, _):
        unknown = look(ledger, order_id).open_since_ms is not None
    if unknown:
        unsafe.flip_state(trade.scene.sender, order_id, "revoked")
    ((state,),) = oracle.rows(trade.scene.sender, "SELECT state FROM operation")
    return {
        "state": state,
        "effects": sum(trade.scene.effects().values()),
        "oracle": trade.scene.findings(),
    }


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    after, renewed = result["revoked after"], result["renewed"]
    refused = [said for said in result["renewal refused"].values() if said != "allowed"]
    return (
        f"revoked before it left: in time, {result['revoked before']['effects']} effects; after: "
        f"perhaps too late, {after['held']} held, and {after['state']} by its receipt; renewed, "
        f"{renewed['sends']} sends make {renewed['effects']} effect; {len(refused)} renewals are "
        "refused, each for its own reason"
    )
