"""Two reviewers, one decision.

Incident
    Two people had the same stuck payment on their screens. One recorded that it had not been
    made. The other, who had looked a minute earlier, recorded that it had. The database kept the
    first state; the log showed the second verdict; and whoever read the newest line believed it.

Observable result
    Whichever of the two began first, the later click ends in `orders.ada first.second` =
    "StaleVersion" and `orders.bob first.second` = "StaleVersion", and the file holds
    `orders.ada first.decisions` = 1 decision. Asking again with the current version ends in
    `orders.ada first.with the current version` = "IllegalMove". Whichever statement of a decision
    SQLite fails, `every statement.refused` = true and `every statement.nothing written` = true. A
    reviewer whose process dies just after its commit finds `lost acknowledgement.same again` =
    "repeated"; anybody else finds `lost acknowledgement.somebody else` = "StaleVersion".

Predict
    1. Both looked at version 2. Ada decides. What does Bob's click do?
       (a) It is recorded as a second opinion. *Misconception: a log line is harmless.*
       (b) It writes nothing at all.
    2. The disk fills between evidence and state. What is in the file?
       (a) The evidence, to be completed later. *Misconception: half a decision is half true.*
       (b) Neither.
    3. The commit succeeded and the reviewer's program died before it heard so. It asks again.
       (a) It is refused, the version moved. *Misconception: an unheard answer is a lost one.*
       (b) It is given the stored decision, marked as repeated.

Run
    python3 run_experiment.py e05_review

Read
    1. `reconcile/flows/review.py` `reconcile` reads and writes in one immediate transaction.
    2. `reconcile/rules/moves.py` `one_decision_per_version` compares versions.
    3. `reconcile/ledger/decisions.py` `record` writes state, version and evidence as one row.
    4. `reconcile/ledger/decisions.py` `repeat_of` finds the decision whose acknowledgement was
       lost.
    5. `experiments/harness/faults.py` `Fault` lets SQLite fail one statement after another.

Break it
    The unsafe twin updates the row where the state is still open, does not look whether it
    matched, and appends its verdict. The oracle finds `twin.verdict without a move.oracle.0` =
    "one-decision-per-version: charge has a gap before version 4".

What this does not show
    Names of reviewers are trusted inputs, not authenticated. Two reviewers here are two
    connections of one machine; the file's lock is what puts them in order.

Exercises
    1. Let both bring different evidence. Does the order decide who is right, or only who is
       heard?
    2. Read the file after the process died, with `sqlite3`, and find the decision.
    3. Remove the version from the guard and run the tests. Which one tells you?

Words
    decision, version, evidence, repeated, stale

Sources
    Optimistic concurrency by version (Kung and Robinson, 1981). The lost update with a verdict
    that is written all the same is reported of an approval routine in the field.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from itertools import count
from typing import Any

from reconcile import Decision, Ledger, Operation, Snapshot, close, look, reconcile

from .harness import oracle, unsafe
from .harness.faults import EXIT, Fault
from .harness.lab import Lab
from .harness.plain import receiver_command
from .harness.processes import Child, command
from .harness.scene import Scene, refusal

FAULT_SHOWS = ("lost acknowledgement",)
"""The keys that change when the reviewer's process lives to hear of its commit."""


def run(lab: Lab) -> dict[str, Any]:
    """Two reviewers in both orders, every statement failing, a lost acknowledgement, a twin."""
    scene = lab.scene("ada first")
    told = {
        "orders": {
            "ada first": two_reviewers(scene, "ada", "bob"),
            "bob first": two_reviewers(lab.scene("bob first"), "bob", "ada"),
        },
        "every statement": every_statement(lab),
        "trigger on the evidence": refused_by_a_trigger(lab),
        "lost acknowledgement": lost_acknowledgement(lab),
    }
    return {
        **told,
        "oracle": lab.findings(),
        "twin": {"verdict without a move": verdict_without_a_move(lab)},
        "trace": scene.trace.to_json(),
    }


def closed_charge(scene: Scene, ledger: Ledger) -> tuple[Operation, Snapshot]:
    """A charge whose receipt was lost, and the closing answer about it."""
    charge = scene.unknown(ledger)
    facts = close(
        ledger, charge.operation_id, scene.near(), purpose="find out", authorized_by="ada"
    )
    return charge, facts


def click(ledger: Ledger, seen: Operation, facts: Snapshot, who: str) -> Decision:
    """Decide about the operation as it was seen on the screen."""
    return reconcile(ledger, seen.operation_id, facts, reviewer=who, expected_version=seen.version)


def two_reviewers(scene: Scene, first: str, second: str) -> dict[str, Any]:
    """Both look, over connections of their own; then the one decides, and the other."""
    with scene.ledger() as ours, scene.ledger() as theirs:
        charge, facts = closed_charge(scene, ours)
        seen = {first: look(ours, charge.operation_id), second: look(theirs, charge.operation_id)}

        told = {
            "first": refusal(click, ours, seen[first], facts, first),
            "second": refusal(click, theirs, seen[second], facts, second),
            "with the current version": refusal(
                click, theirs, look(theirs, charge.operation_id), facts, second
            ),
        }
    deciders = [
        actor
        for (actor,) in oracle.rows(
            scene.sender, "SELECT actor FROM decision WHERE cause = 'evidence'"
        )
    ]
    return {
        **told,
        "decisions": len(deciders),
        "decided by": deciders,
        "states": scene.states(),
        "oracle": scene.findings(),
    }


def every_statement(lab: Lab) -> dict[str, bool]:
    """Let SQLite refuse one statement after another, from opening the file to the commit."""
    scene = lab.scene("every statement")
    with scene.ledger() as ledger:
        charge, facts = closed_charge(scene, ledger)
    before = oracle.dump(scene.sender)

    def decide(fault: Fault) -> str:
        with scene.ledger(factory=fault.connection()) as ledger:
            return click(ledger, charge, facts, "ada").state.value

    said, unwritten = [], True
    for number in count():
        fault = Fault(number, how="deny")
        said.append(refusal(decide, fault))
        if not fault.delivered:
            break
        unwritten &= oracle.dump(scene.sender) == before
    return {
        "refused": "allowed" not in said[:-1],
        "nothing written": unwritten,
        "decided when none fails": said[-1] == "allowed",
    }


def refused_by_a_trigger(lab: Lab) -> dict[str, Any]:
    """A trigger of somebody else's aborts the insert of the evidence."""
    scene = lab.scene("trigger")
    with scene.ledger() as ledger:
        charge, facts = closed_charge(scene, ledger)
    with closing(sqlite3.connect(scene.sender, isolation_level=None)) as other:
        other.execute(
            "CREATE TRIGGER full BEFORE INSERT ON decision WHEN NEW.cause = 'evidence' "
            "BEGIN SELECT RAISE(ABORT, 'no room for evidence'); END"
        )
    before = oracle.dump(scene.sender)
    with scene.ledger() as ledger:
        said = refusal(click, ledger, charge, facts, "ada")
    return {
        "said": said,
        "nothing written": oracle.dump(scene.sender) == before,
        "states": scene.states(),
    }


def lost_acknowledgement(lab: Lab) -> dict[str, Any]:
    """The reviewer's process commits and dies; then the same click again, and somebody else's."""
    scene = lab.scene("lost acknowledgement")
    with scene.ledger() as ledger:
        charge, facts = closed_charge(scene, ledger)
    plan = {
        "file": str(scene.sender),
        "receiver": receiver_command(scene.receiver_file),
        "clock": lab.clock(),
        "steps": ["decide"],
        "operation_id": charge.operation_id,
        "reviewer": "ada",
        "version": charge.version,
        "at": lab.fault("COMMIT"),
        "how": "exit_after",
    }
    child = Child(command("experiments.harness.actor", json.dumps(plan)))
    heard = child.hear()
    died = child.end() == EXIT
    with scene.ledger() as ledger:
        again = click(ledger, charge, facts, "ada")
        other = refusal(click, ledger, charge, facts, "bob")
    return {
        "process": "died unheard" if died and heard is None else "ended",
        "same again": "repeated" if again.repeated else "decided",
        "somebody else": other,
        "states": scene.states(),
        "oracle": scene.findings(),
    }


def verdict_without_a_move(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: its update matches no row, and it appends its verdict all the same."""
    scene = lab.scene("verdict without a move", unsafe=True)
    with scene.ledger() as ledger:
        charge, facts = closed_charge(scene, ledger)
        click(ledger, charge, facts, "ada")
    unsafe.append_decision(
        scene.sender, charge.operation_id, target="not_applied", version=4, actor="bob"
    )
    return {"states": scene.states(), "oracle": scene.findings()}


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    ada, bob = result["orders"]["ada first"], result["orders"]["bob first"]
    return (
        f"two reviewers in either order make {ada['decisions']} decision, and the later click is "
        f"{bob['second']}; no failing statement leaves half of one; a commit whose "
        f"acknowledgement was lost is {result['lost acknowledgement']['same again']}, "
        "not done twice"
    )
