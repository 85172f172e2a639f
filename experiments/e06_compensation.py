"""Compensation is an effect.

Incident
    A clerk refunded a charge; the refund's answer never came. Since "a refund can do no harm" the
    program sent it again, and again. In another shop, the programmer had set the payment's status
    to `refunded`, and no money ever went back.

Observable result
    Every approval that is not exact is refused before contact: `refused.another effect` =
    "Unbound", `refused.another amount` = "AlreadyApproved", `refused.before it is confirmed` =
    "Unbound". The one that is exact is sent once and loses its receipt: `refund.dispatch` =
    "unknown", `refund.blind retry` = "AlreadyAnnounced". In the end there are `effects.charge` =
    1 and `effects.refund` = 1 effects: the charge still stands. An incident after the approval
    ends in `incident.dispatch` = "Unbound". The unsafe twin that flips a status leaves
    `twin.status flip.effects.charge` = 1 charge and nothing else.

Predict
    1. The charge is confirmed. How many effects does its complete refund leave at the receiver?
       (a) None. *Misconception: a compensation undoes.*
       (b) Two: a charge, and a refund of it.
    2. The refund was approved, and then a second charge came to light. May it still be sent?
       (a) Yes, it was approved. *Misconception: an approval outlives what was approved.*
       (b) No: it was bound to the version that the approver saw.
    3. An approval for 1500 stands. May a refund of 15000 be approved beside it?
       (a) Yes, another sum is another refund. *Misconception: the sum makes the identity of a
           need.*
       (b) No: one effect has one live approval.

Run
    python3 run_experiment.py --show e06_compensation

Read
    1. `reconcile/flows/compensation.py` `approve_compensation` commits approval and draft
       together.
    2. `reconcile/rules/bindings.py` `bind` asks for the exact effect at the version the approver
       saw.
    3. `reconcile/rules/bindings.py` `compensation_is_bound` asks again when it is dispatched.
    4. `reconcile/rules/bindings.py` `superseded` says when another approval may follow.
    5. `reconcile/rules/contradictions.py` `contradicts` finds what cannot be at a final state.

Break it
    The unsafe twin writes `twin.status flip.states.charge` = "not_applied" instead of sending a
    refund. The oracle reads the receiver's file and finds the charge there.

What this does not show
    A compensation is no refund of a bank and takes no e-mail back. Who approves is a trusted
    input. Compensating one of two effects of a conflict is another chapter's matter.

Exercises
    1. Let the refund end as not applied, and approve another. What differs in its identity?
    2. Compensate the refund. What is the original of that compensation?
    3. Give the refund the kind `charge` and the same sum. Why is it still another operation?

Words
    compensation, approval, incident, effect

Sources
    Sagas (Garcia-Molina and Salem, 1987): a compensating transaction is a transaction. That
    clean-up refunded the winner's payment, and that approvals fired twice, is reported of shops
    and agents.
"""

from __future__ import annotations

from typing import Any

from reconcile import (
    Ledger,
    Operation,
    Receiver,
    State,
    approve_compensation,
    close,
    dispatch,
    look,
    observe,
    operation_identity,
    prepare,
    reconcile,
)

from .harness import unsafe
from .harness.lab import Lab
from .harness.scene import CHARGE, Scene, refusal

FAULT_SHOWS = ("refund", "trace")
"""The keys that change when the refund's receipt is not lost."""


def run(lab: Lab) -> dict[str, Any]:
    """Approvals that are not exact, a refund that is unknown, an incident, the unsafe twin."""
    scene = lab.scene()
    with scene.ledger() as ledger:
        refused, charge = before_confirmed(scene, ledger)
        refund = approve(ledger, charge)
        scene.name(refund, "refund")
        refused |= beside_the_approval(ledger, charge, scene.receiver())
        contacts = len(scene.contacts())
        told = lose_and_find_out(lab, scene, ledger, refund)
        refused["used approval"] = refusal(dispatch, ledger, refund.operation_id, scene.receiver())
    return {
        "refused": refused,
        "contacts before the refund": contacts,
        "refund": told,
        "effects": scene.effects(),
        "states": scene.states(),
        "oracle": scene.findings(),
        "incident": incident(lab),
        "twin": {"status flip": status_flip(lab)},
        "trace": scene.trace.to_json(),
    }


def approve(ledger: Ledger, charge: Operation, **changed: Any) -> Operation:
    """The exact approval of a charge's refund, or one with something changed."""
    exact = {
        "effect_id": charge.effect_id,
        "kind": "refund",
        "payload": {"pence": 1500},
        "approver": "ada",
        "expected_version": charge.version,
    }
    return approve_compensation(ledger, charge.operation_id, **{**exact, **changed})


def before_confirmed(scene: Scene, ledger: Ledger) -> tuple[dict[str, str], Operation]:
    """Existence is not enough to compensate; then find out, so that the charge is confirmed."""
    charge, receiver = scene.unknown(ledger), scene.receiver()
    there = receiver.snapshot(charge.query)
    observe(ledger, charge.operation_id, there)
    exists = there.effects[0].effect_id
    refused = {"before it is confirmed": refusal(approve, ledger, charge, effect_id=exists)}
    find_out(ledger, charge.operation_id, receiver)
    return refused, look(ledger, charge.operation_id)


def beside_the_approval(ledger: Ledger, charge: Operation, receiver: Receiver) -> dict[str, str]:
    """Everything that is not the one approved refund, refused before contact."""
    free_hand = operation_identity(
        "by hand", charge.target, {"kind": "refund", "payload": {"pence": 1500}}
    )

    return {
        "another effect": refusal(approve, ledger, charge, effect_id="charge#2"),
        "another amount": refusal(approve, ledger, charge, payload={"pence": 15000}),
        "another kind": refusal(approve, ledger, charge, kind="credit note"),
        "another version": refusal(approve, ledger, charge, expected_version=2),
        "no approval": refusal(dispatch, ledger, free_hand.operation_id, receiver),
        "the same approval again": refusal(approve, ledger, charge),
    }


def find_out(ledger: Ledger, operation_id: str, receiver: Receiver) -> State:
    """Close, read and decide: the same door for a charge and for its compensation."""
    before = look(ledger, operation_id)
    if before.state is not State.UNKNOWN:
        return before.state
    facts = close(ledger, operation_id, receiver, purpose="find out", authorized_by="ada")
    done = reconcile(ledger, operation_id, facts, reviewer="ada", expected_version=before.version)
    return done.state


def lose_and_find_out(lab: Lab, scene: Scene, ledger: Ledger, refund: Operation) -> dict[str, Any]:
    """The refund loses its receipt, a retry is refused, and its own question is asked."""
    seen = dispatch(ledger, refund.operation_id, scene.receiver(crash=lab.fault("after_commit")))
    answers = scene.receiver()
    return {
        "dispatch": seen.outcome.value,
        "blind retry": refusal(dispatch, ledger, refund.operation_id, answers),
        "found out": find_out(ledger, refund.operation_id, answers).value,
        "charge meanwhile": look(
            ledger, str(refund.binding and refund.binding.original_id)
        ).state.value,
    }


def incident(lab: Lab) -> dict[str, Any]:
    """The channel doubles the charge at a receiver that cannot know, after an approval."""
    scene = lab.scene("incident", unsafe=True)  # two effects are what this scene is about
    receiver = scene.near()
    with scene.ledger() as ledger:
        charge = prepare(ledger, receiver, work_id="charge", **CHARGE)
        scene.name(charge, "charge")
        dispatch(ledger, charge.operation_id, receiver)
        charge = look(ledger, charge.operation_id)
        refund = approve(ledger, charge)
        scene.name(refund, "refund")
        receiver.send(charge.query)  # not by us: the same request, delivered twice
        verdict = observe(ledger, charge.operation_id, receiver.snapshot(charge.query, close=True))
        told = {
            "observed": verdict.value,
            "charge": look(ledger, charge.operation_id).state.value,
            "dispatch": refusal(dispatch, ledger, refund.operation_id, receiver),
        }
        again = approve(ledger, look(ledger, charge.operation_id))
        scene.name(again, "refund approved again")
        return {**told, "states": scene.states(), "effects": scene.effects()}


def status_flip(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: a status says that the charge is gone."""
    scene = lab.scene("status flip", unsafe=True)
    with scene.ledger() as ledger:
        charge = scene.unknown(ledger)
        find_out(ledger, charge.operation_id, scene.near())
    unsafe.flip_state(scene.sender, charge.operation_id, "not_applied")
    return {"effects": scene.effects(), "states": scene.states(), "oracle": scene.findings()}


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    effects, refund = result["effects"], result["refund"]
    refused = sum(said != "allowed" for said in result["refused"].values())
    return (
        f"{refused} approvals and sends that are not exact are refused before contact; the refund "
        f"is {refund['dispatch']}, then {refund['found out']}: {effects['charge']} charge and "
        f"{effects['refund']} refund stand; a status flip leaves the charge where it was"
    )
