"""The delayed original.

Incident
    A gateway held a payment request for a minute. The client read the receiver's records, found
    nothing, sent it again past all rules, read once more and found exactly one payment. Everyone
    went home; then the gateway let the first request through.

Observable result
    Without a close, the reads say `open.reads` = ["inconclusive", "exact_match_existence_only",
    "duplicate_matches"], and the receiver's file ends with `open.effects.order` = 2. With a
    closing read the late original gets the reply `closed.late original` = "closed", the order is
    `closed.states.order` = "not_applied", and `closed.effects.order` = 0. Racing with a close, an
    apply that commits first is in the answer (`race.apply first.verdict` = "unique_exact_match"),
    and one that comes second is refused (`race.close first.verdict` = "terminal_absence"): there
    are `race.apply first.effects.order` = 1 and `race.close first.effects.order` = 0 effects. The
    mark has no age, and the receiver no clock: a year later it still stands, with `a year
    later.late original` = "closed".

Predict
    1. An honest, complete, authoritative read finds nothing. Did it not happen?
       (a) It did not. *Misconception: absence is the same as not yet.*
       (b) Nobody knows: the request may be on its way.
    2. After the retry, the read finds exactly one. Is the matter settled?
       (a) Yes, one is what we wanted. *Misconception: the first match is final.*
       (b) No: the original can still make it two.
    3. A close and an apply race. How many outcomes are possible?
       (a) Three: it may be absent in the answer and come later. *Misconception: closing and
       reading are two steps.*
       (b) Two: in the answer, or refused.

Run
    python3 run_experiment.py --show e03_delayed_original

    It draws the schedule with a close; the others are in results.json.

Read
    1. `receiver/__main__.py` `_ask` waits for the exact permit line.
    2. `receiver/ledger.py` `snapshot` writes the close mark and reads in one immediate
       transaction.
    3. `receiver/ledger.py` `apply` looks for the mark inside its own.
    4. `reconcile/rules/verdicts.py` `proves_absence` asks for all three flags.
    5. `experiments/harness/permits.py` `Held` holds a request on its way: no clock makes the
       order.

Break it
    Two habits and a careless receiver are played to their end. "Empty means absent" records
    not_applied, and the original arrives:
    `twin.empty means absent.effects.order` = 1. "The first match is final" confirms, and the
    original arrives: `twin.first match is final.effects.order` = 2. A receiver that purges its
    close marks lets a closed original in:
    `twin.forgotten close.effects.order` = 1. The oracle, a check of both files, rejects all three.

What this does not show
    A network that delays: here a process waits for a line. The flags simulate no replicated
    service; a receiver that reads from a lagging copy must say so by its policy. Many real tools
    have no close.

Exercises
    1. Grant the permit before the first read. Which lines of the result change?
    2. Send `permit` without an operation and explain what the receiver does.
    3. Make the close two transactions in a copy of the receiver and find the order that breaks
       it.

Words
    close barrier, snapshot, complete, authoritative, closed, terminal absence

Sources
    Fencing and tombstones (Kleppmann, "How to do distributed locking", 2016; Cassandra's
    tombstones and the resurrection of deleted rows). That empty reads after a timeout were taken
    for deletion is reported of infrastructure and payment tools alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reconcile import (
    Ledger,
    Operation,
    Receiver,
    Snapshot,
    classify,
    close,
    dispatch,
    look,
    prepare,
    reconcile,
)
from reconcile.flows.process_receiver import snapshot_request
from reconcile.rules.evidence import snapshot_from

from .harness import unsafe
from .harness.lab import YEAR_MS, Lab
from .harness.permits import Held
from .harness.scene import Scene

PAYMENT: dict[str, Any] = {
    "work_id": "payment-3",
    "kind": "payment",
    "payload": {"pence": 900},
    "subject": "bill-3",
}
FAULT_SHOWS = ("open",)
"""The keys that change when the first original is not delayed: the first read finds it then."""


def run(lab: Lab) -> dict[str, Any]:
    """The schedule without and with a close, the race in both orders, and three habits."""
    scene = lab.scene("closed")
    told = {
        "open": left_open(lab),
        "closed": closed(scene),
        "race": {"apply first": apply_first(lab), "close first": close_first(lab)},
        "a year later": a_year_later(lab),
    }
    return {
        **told,
        "oracle": lab.findings(),
        "twin": {
            "empty means absent": empty_means_absent(lab),
            "first match is final": first_match_is_final(lab),
            "forgotten close": forgotten_close(lab),
        },
        "trace": scene.trace.to_json(),
    }


def ordered(scene: Scene, original: Held) -> Operation:
    """A payment that is on its way in the process of `original`, and unknown to its sender."""
    with scene.ledger() as ledger:
        order = prepare(ledger, original, **PAYMENT)
        scene.name(order, "order")
        dispatch(ledger, order.operation_id, original)
    return order


def left_open(lab: Lab) -> dict[str, Any]:
    """Read, send again past the library, read, let the original arrive, read."""
    scene = lab.scene("open", unsafe=True)
    original, receiver = scene.held(), scene.receiver()
    order = ordered(scene, original)
    if lab.fault("delay") is None:
        original.grant()
    reads = [classify(receiver.snapshot(order.query))]
    receiver.send(order.query)
    reads.append(classify(receiver.snapshot(order.query)))
    original.grant()
    reads.append(classify(receiver.snapshot(order.query)))
    return {"reads": [verdict.value for verdict in reads], **judged(scene)}


def closed(scene: Scene) -> dict[str, Any]:
    """Read, close and read, decide; then let the original arrive."""
    original, receiver = scene.held(), scene.receiver()
    order = ordered(scene, original)
    plain = classify(receiver.snapshot(order.query))
    verdict = close_and_decide(scene, order, receiver)
    late = original.grant()
    return {"plain read": plain.value, "verdict": verdict, "late original": late, **judged(scene)}


def close_and_decide(scene: Scene, order: Operation, receiver: Receiver) -> str:
    """Close and read through the library, decide by the answer, and say what it proved."""
    with scene.ledger() as ledger:
        facts = close(
            ledger, order.operation_id, receiver, purpose="end the wait", authorized_by="ada"
        )
        return decide(ledger, order, facts)


def decide(ledger: Ledger, order: Operation, facts: Snapshot) -> str:
    version = look(ledger, order.operation_id).version
    reconcile(ledger, order.operation_id, facts, reviewer="ada", expected_version=version)
    return classify(facts).value


def apply_first(lab: Lab) -> dict[str, Any]:
    """The apply holds inside its transaction: a close that is asked for can only follow it."""
    scene = lab.scene("apply first")
    original, closing = scene.held(at="before_commit"), scene.held(at=None)
    order = ordered(scene, original)
    closing.start(snapshot_request(order.query, close=True))
    return raced(scene, order, original.grant, closing)


def close_first(lab: Lab) -> dict[str, Any]:
    """The close, past the library, holds inside its transaction: the apply can only follow it."""
    scene = lab.scene("close first")
    original, closing = scene.held(at=None), scene.held(at="before_commit")
    with scene.ledger() as ledger:
        draft = prepare(ledger, original, **PAYMENT)
    closing.start(snapshot_request(draft.query, close=True))
    order = ordered(scene, original)
    closing.grant()
    return raced(scene, order, original.finish, closing)


def raced(
    scene: Scene, order: Operation, arrive: Callable[[], str], closing: Held
) -> dict[str, Any]:
    """Let both end, and decide by the closing answer."""
    apply = arrive()
    closing.finish()
    facts = snapshot_from(order.query, (closing.reply or {}).get("snapshot"))
    with scene.ledger() as ledger:
        verdict = decide(ledger, order, facts)
    return {"apply": apply, "verdict": verdict, **judged(scene)}


def a_year_later(lab: Lab) -> dict[str, Any]:
    """The original is on its way for a year; the mark is older than every memory of it."""
    scene = lab.scene("a year later")
    original = scene.held()
    order = ordered(scene, original)
    close_and_decide(scene, order, scene.receiver())
    lab.pass_time(YEAR_MS)
    return {"late original": original.grant(), **judged(scene)}


def empty_means_absent(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: the read was empty, so it did not happen."""
    scene = lab.scene("empty means absent", unsafe=True)
    original = scene.held()
    order = ordered(scene, original)
    read = classify(scene.receiver().snapshot(order.query))
    unsafe.flip_state(scene.sender, order.operation_id, "not_applied")
    original.grant()
    return {"read": read.value, **judged(scene)}


def first_match_is_final(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: after the retry there is one, so that is the one."""
    scene = lab.scene("first match is final", unsafe=True)
    original, receiver = scene.held(), scene.receiver()
    order = ordered(scene, original)
    receiver.send(order.query)
    (match,) = receiver.snapshot(order.query).effects
    unsafe.flip_state(scene.sender, order.operation_id, "confirmed", effect_id=match.effect_id)
    original.grant()
    return judged(scene)


def forgotten_close(lab: Lab) -> dict[str, Any]:
    """The unsafe twin is the receiver: it purges its close marks, and the original comes."""
    scene = lab.scene("forgotten close", unsafe=True)
    original = scene.held()
    order = ordered(scene, original)
    close_and_decide(scene, order, scene.receiver())
    purged = unsafe.forget_closes(scene.receiver_file)
    return {"purged": purged, "late original": original.grant(), **judged(scene)}


def judged(scene: Scene) -> dict[str, Any]:
    """What both files say in the end."""
    return {"effects": scene.effects(), "states": scene.states(), "oracle": scene.findings()}


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    return (
        f"left open, the delayed original makes {result['open']['effects']['order']} effects; "
        f"closed, it is refused and the payment is {result['closed']['states']['order']} with "
        f"{result['closed']['effects']['order']}; racing with a close it is in the answer "
        f"({result['race']['apply first']['effects']['order']} effect) or refused "
        f"({result['race']['close first']['effects']['order']} effects)"
    )
