"""Three worlds behind one row.

Incident
    A worker died while it ordered. Its table said `unknown`. One engineer restarted it and
    ordered again; in her world the first order stood. Another marked it as done; in his world
    nothing had ever been sent.

Observable result
    Three runs, each with real processes. The sender dies in all three before it reads a reply:
    `worlds.killed before the send.effects` = 0, `worlds.receiver dies before its commit.effects`
    = 0, `worlds.receiver dies after its commit.effects` = 1. In each, the state is `states` =
    ["unknown"], and `sender files identical` = true: every table, every row.

Predict
    1. How many of the three sender files differ from the first one?
       (a) Two: something else happened. *Misconception: the sender's file records the world.*
       (b) None: it records what the sender knew, and it knew the same.
    2. Which rule is right: "no reply means failed", or "no reply means done"?
       (a) The first, nearly always. *Misconception: a frequent outcome is a known one.*
       (b) Neither: each is wrong in one of the worlds at least.
    3. Could a better log at the sender tell the worlds apart?
       (a) Yes, log after the send as well. *Misconception: the crash waits for the log.*
       (b) No: in the last two it died at the same point.

Run
    python3 run_experiment.py e02_three_worlds

Read
    1. `experiments/harness/actor.py` `main` is a sender in a process of its own.
    2. `experiments/harness/faults.py` `Fault` ends it on one side of its send.
    3. `reconcile/ledger/decisions.py` `record` wrote `unknown` before that.
    4. `experiments/harness/oracle.py` `dump` reads every table of the file that is left.
    5. `reconcile/rules/actions.py` `next_actions` offers the same in all three worlds.
    6. `reconcile/flows/review.py` `close` brings the evidence that tells them apart.

Break it
    The unsafe twins each write one word for silence. "Timeout means failed" contradicts the
    receiver's file in `twin.timeout means failed.wrong in` = ["receiver dies after its commit"];
    "timeout means done" in `twin.timeout means done.wrong in` = ["killed before the send",
    "receiver dies before its commit"]. The oracle rejects both in all three worlds, since no
    decision says so.

What this does not show
    Two hosts: here a killed process is the only thing that separates sender and receiver. The
    state has the same bytes because the clock is the lab's; with a real clock the times would
    differ, and would still say nothing about the effect.

Exercises
    1. Let the sender live in the third world. Which table differs now, and in what?
    2. Add a fourth world: the receiver commits twice. Is the sender's file another one?
    3. Write the rule that is wrong in none of the worlds. How many words does it need?

Words
    attempt, transport, unknown, effect

Sources
    "Two generals" (Akkoyunlu, Ekanadham, Huber, 1975; Gray, 1978): no last message can be known
    to have arrived. The table of worlds follows Maelstrom's distinction of definite and
    indefinite errors.
"""

from __future__ import annotations

import json
from typing import Any

from reconcile import close, observe, open_questions, reconcile

from .harness import oracle, unsafe
from .harness.faults import EXIT
from .harness.lab import BIRTH_MS, Lab
from .harness.plain import receiver_command
from .harness.processes import Child, command
from .harness.scene import Scene

WORLDS: dict[str, tuple[str, str | None]] = {
    "killed before the send": ("before send", None),
    "receiver dies before its commit": ("after send", "before_commit"),
    "receiver dies after its commit": ("after send", "after_commit"),
}
"""Where the sender dies, and where its receiver does."""

FAULT_SHOWS = ("worlds", "twin", "evidence", "trace")
"""The keys that change when the receivers do not die: the second world has an effect then."""


def run(lab: Lab) -> dict[str, Any]:
    """The same order in three worlds; what two habits would have written; what evidence proves."""
    scenes = {name: world(lab, lab.scene(name), name) for name in WORLDS}
    dumps = [oracle.dump(scene.sender) for scene in scenes.values()]
    told = {
        "worlds": {
            name: {"effects": scene.effects()["order"], "contacts": scene.contacts()}
            for name, scene in scenes.items()
        },
        "states": sorted({scene.states()["order"] for scene in scenes.values()}),
        "sender files identical": all(dump == dumps[0] for dump in dumps),
        "twin": {
            "timeout means failed": habit(scenes, "failed", if_effects=1),
            "timeout means done": habit(scenes, "confirmed", if_effects=0),
        },
    }
    evidence = {name: find_out(scene) for name, scene in scenes.items()}
    return {
        **told,
        "evidence": evidence,
        "oracle": [line for scene in scenes.values() for line in scene.findings()],
        "trace": [event for scene in scenes.values() for event in scene.trace.to_json()],
    }


def world(lab: Lab, scene: Scene, name: str) -> Scene:
    """One run of the sender, as a process that ends itself before it reads a reply."""
    point, crash = WORLDS[name]
    receiver = receiver_command(scene.receiver_file, crash=lab.fault(crash) if crash else None)
    plan = {"file": str(scene.sender), "receiver": receiver, "clock": BIRTH_MS, "steps": ["order"]}
    child = Child(command("experiments.harness.actor", json.dumps({**plan, "at": point})))
    child.must_die(EXIT)
    (operation_id,) = oracle.states(scene.sender)
    scene.name(operation_id, "order")
    scene.trace.at("sender.db", f"order: {scene.states()['order']}, in the world '{name}'")
    scene.witness()
    scene.trace.at("sender", f"dies {point}")
    return scene


def habit(scenes: dict[str, Scene], state: str, *, if_effects: int) -> dict[str, Any]:
    """Write one word for silence in every world: where does the receiver's file disagree?"""
    wrong, rejected = [], 0
    for where, scene in scenes.items():
        twin = scene.copy(f"{where}, {state}")
        unsafe.flip_state(twin.sender, next(iter(oracle.states(twin.sender))), state)
        if twin.effects()["order"] == if_effects:
            wrong.append(where)
        rejected += bool(twin.findings())
    return {"wrong in": wrong, "rejected by the oracle": rejected}


def find_out(scene: Scene) -> dict[str, str]:
    """What a plain read proves, what a closing read proves, and what the order becomes."""
    receiver = scene.receiver()
    with scene.ledger() as ledger:
        (order,) = open_questions(ledger)
        plain = observe(ledger, order.operation_id, receiver.snapshot(order.query))
        facts = close(
            ledger, order.operation_id, receiver, purpose="find out", authorized_by="ada"
        )
        done = reconcile(
            ledger, order.operation_id, facts, reviewer="ada", expected_version=order.version
        )
    return {
        "plain read": plain.value,
        "closing read": str(done.verdict and done.verdict.value),
        "becomes": done.state.value,
    }


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    effects = ", ".join(str(world["effects"]) for world in result["worlds"].values())
    same = "the same" if result["sender files identical"] else "different"
    failed, done = (len(twin["wrong in"]) for twin in result["twin"].values())
    return (
        f"three worlds with {effects} effects leave {same} sender files, all "
        f"{result['states'][0]}; 'timeout means failed' is wrong in {failed} of them and "
        f"'timeout means done' in {done}"
    )
