"""The lost receipt.

Incident
    A billing agent charged an invoice. The payment service committed the charge and died before
    it could say so. The agent took the silence for a failure, charged again, and the customer
    paid twice.

Observable result
    The receiver's file holds `effects.charge` = 1 and `effects.refund` = 1, counted by a reader
    that imports neither side. Of the first receipt, `receipt bytes` = 0 arrived. The sender's
    file, opened again, says `reopened` = "unknown". The second dispatch ends in `second dispatch`
    = "AlreadyAnnounced", and the receiver has been contacted `contacts after refusal` = 1 time.
    The plain read gives `plain read` = "exact_match_existence_only", the closing read `closing
    read` = "unique_exact_match". The unsafe twin's file holds `twin.blind retry.effects.charge` =
    2.

Predict
    1. The receiver committed and then died. What does the sender's file say?
       (a) failed: no receipt came. *Misconception: silence is an answer.*
       (b) confirmed: it did happen. *Misconception: the sender knows what the receiver knows.*
       (c) unknown.
    2. A plain read shows exactly one matching effect. May the sender call it confirmed?
       (a) Yes, it is there. *Misconception: existence is uniqueness.*
       (b) No: another copy of the request may still be on its way.
    3. The refund's receipt is lost as well. What is done?
       (a) Send it again, a refund harms nobody. *Misconception: a compensation is no effect.*
       (b) Ask, close, and decide, as for the charge.

Run
    python3 run_experiment.py --show e01_lost_receipt

Read
    1. `reconcile/flows/sender.py` `dispatch` commits `unknown` before the request leaves.
    2. `reconcile/rules/sending.py` `one_effect` refuses the second dispatch.
    3. `receiver/ledger.py` `apply` commits the effect; `receiver/crash.py` `Points` ends the
       process.
    4. `reconcile/flows/review.py` `close` asks the receiver to close and read in one transaction.
    5. `reconcile/rules/verdicts.py` `classify` says what the answer proves.
    6. `reconcile/flows/review.py` `reconcile` commits state, version and evidence together.
    7. `reconcile/flows/compensation.py` `approve_compensation` prepares the refund, bound to the
       effect.

Break it
    The unsafe twin takes silence for failure and sends again. The receiver is honest and not
    idempotent, so it does what it is asked: the oracle finds `twin.blind retry.oracle.0` =
    "one-effect: charge has 2 effects".

What this does not show
    No real payment service, customer or money. Both processes run on one host: no partition, no
    power loss, no disk corruption. A closing read is a capability that many real tools lack. A
    compensation is a new effect; it makes nothing unhappen.

Exercises
    1. Move the crash to `before_commit` and predict every line of the result before you run it.
    2. Leave the receiver without `can_close` in its policy. Which action is still offered, and to
       whom?
    3. Let the crash come at `mid_receipt`. Half a receipt arrives: what may the sender conclude?

Words
    operation, attempt, effect, receipt, snapshot, close barrier, verdict, decision, compensation

Sources
    The end-to-end argument (Saltzer, Reed, Clark, 1984): only the ends can say that it happened.
    The isolation of the two files follows the crash tests of SQLite: a process dies, and what is
    left is judged by reading the files.
"""

from __future__ import annotations

import json
from typing import Any

from reconcile import (
    Ledger,
    Receiver,
    State,
    approve_compensation,
    close,
    dispatch,
    look,
    observe,
    prepare,
    reconcile,
)
from reconcile.flows.process_receiver import apply_request

from .harness.lab import Lab
from .harness.scene import Scene, refusal

FAULT_SHOWS = (
    "dispatch",
    "reopened",
    "closing read",
    "repeated",
    "refund",
    "receipt bytes",
    "contacts",
    "trace",
)
"""The keys that change when the crash is left out."""


def run(lab: Lab) -> dict[str, Any]:
    """Charge, lose the receipt, find out, refund, lose that receipt too, and find out again."""
    scene = lab.scene()
    dies, answers = scene.receiver(crash=lab.fault("after_commit")), scene.receiver()
    told: dict[str, Any] = {}
    with scene.ledger() as ledger:
        charge = prepare(
            ledger,
            answers,
            work_id="invoice-17",
            kind="charge",
            payload={"pence": 1500},
            subject="invoice-17",
        )
        scene.name(charge, "charge")
        seen = dispatch(ledger, charge.operation_id, dies)
        told["dispatch"] = {
            "transport": seen.transport.value,
            "outcome": seen.outcome.value,
            "next": [action.value for action in seen.next_actions],
        }

    with scene.ledger() as ledger:  # opened again: nothing but the file is left
        told["reopened"] = look(ledger, charge.operation_id).state.value
        told["second dispatch"] = refusal(dispatch, ledger, charge.operation_id, answers)
        told["contacts after refusal"] = len(scene.contacts())
        told["plain read"] = observe(
            ledger, charge.operation_id, answers.snapshot(charge.query)
        ).value
        told.update(find_out(ledger, charge.operation_id, answers))
        told["refund"] = refund(ledger, scene, charge.operation_id, dies, answers)

    told |= {
        "receipt bytes": receipt_bytes(lab, charge.query),
        "control": control(lab),
        "effects": scene.effects(),
        "states": scene.states(),
        "contacts": scene.contacts(),
        "oracle": scene.findings(),
        "twin": {"blind retry": blind_retry(lab)},
    }
    return {**told, "trace": scene.trace.to_json()}


def find_out(ledger: Ledger, operation_id: str, receiver: Receiver) -> dict[str, Any]:
    """Close, read, and decide by what the answer proves; the same click again changes nothing."""
    before = look(ledger, operation_id)
    if before.state is not State.UNKNOWN:
        return {"closing read": "not needed", "decision": before.state.value, "repeated": False}
    facts = close(ledger, operation_id, receiver, purpose="find out", authorized_by="ada")
    verdict = observe(ledger, operation_id, facts)
    click: dict[str, Any] = {"reviewer": "ada", "expected_version": before.version}
    done = reconcile(ledger, operation_id, facts, **click)
    again = reconcile(ledger, operation_id, facts, **click)
    return {
        "closing read": verdict.value,
        "decision": done.state.value,
        "repeated": again.repeated,
    }


def refund(
    ledger: Ledger, scene: Scene, charge_id: str, dies: Receiver, answers: Receiver
) -> dict[str, Any]:
    """Amend the charge by a new effect, which can be unknown itself."""
    charge = look(ledger, charge_id)
    assert charge.effect_id is not None
    amends = approve_compensation(
        ledger,
        charge_id,
        effect_id=charge.effect_id,
        kind="refund",
        payload={"pence": 1500},
        approver="ada",
        expected_version=charge.version,
    )
    scene.name(amends, "refund")
    seen = dispatch(ledger, amends.operation_id, dies)
    told = {
        "dispatch": seen.outcome.value,
        "blind retry": refusal(dispatch, ledger, amends.operation_id, answers),
    }
    return {**told, **find_out(ledger, amends.operation_id, answers)}


def receipt_bytes(lab: Lab, query: Any) -> int:
    """How many bytes of a receipt reach whoever reads the pipe of the process that dies."""
    request = json.dumps(apply_request(query)).encode() + b"\n"
    return len(lab.scene("bytes").raw_reply(request, crash=lab.fault("after_commit")))


def control(lab: Lab) -> str:
    """The same pipe and the same exit status, with the crash just after the receipt."""
    scene = lab.scene("control")
    with scene.ledger() as ledger:
        receiver = scene.receiver(crash="after_receipt")
        charge = prepare(
            ledger,
            receiver,
            work_id="invoice-17",
            kind="charge",
            payload={"pence": 1500},
            subject="invoice-17",
        )
        return dispatch(ledger, charge.operation_id, receiver).outcome.value


def blind_retry(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: no receipt, so send again."""
    scene = lab.scene("blind retry", unsafe=True)
    with scene.ledger() as ledger:
        charge = prepare(
            ledger,
            scene.receiver(),
            work_id="invoice-17",
            kind="charge",
            payload={"pence": 1500},
            subject="invoice-17",
        )
        scene.name(charge, "charge")
        dispatch(ledger, charge.operation_id, scene.receiver(crash="after_commit"))
        scene.receiver().send(charge.query)  # past the library, which would refuse
    return {"effects": scene.effects(), "states": scene.states(), "oracle": scene.findings()}


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    effects, states = result["effects"], result["states"]
    twice = result["twin"]["blind retry"]["effects"]["charge"]
    return (
        f"{result['receipt bytes']} bytes of receipt came, so the charge was "
        f"{result['reopened']}; closing and reading made it {states['charge']} with "
        f"{effects['charge']} effect, and the refund {states['refund']} with "
        f"{effects['refund']}; a blind retry charges {twice} times"
    )
