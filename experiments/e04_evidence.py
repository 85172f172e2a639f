"""What evidence proves.

Incident
    A support tool asked the payment service for an order and got a list with two entries. It took
    the first. Its colleague asked a search index instead, got an empty list marked "complete",
    and refunded nothing for a payment that had been made.

Observable result
    Of `cells.asked` = 48 cells, every combination of rows, payload, kind and the three flags,
    `cells.resolving` = 2 resolve anything: one to confirmed, one to not_applied. The other
    `cells.refused.Unresolving` = 46 are refused by the ledger, and nothing is written. Malformed
    and foreign answers are refused where they enter, and the operation stays `state after` =
    "unknown". A lookup that claims more than its policy declares ends in `overclaim.observe` =
    "Overclaimed"; with the flags lowered it is kept as `overclaim.lowered` = "inconclusive".

Predict
    1. One row, exactly what was asked for, complete and authoritative, but not closed. Confirmed?
       (a) Yes, three of four are good. *Misconception: flags add up.*
       (b) No: existence only. Each flag guards against another world.
    2. Two rows, both exact, all flags set. Which one is confirmed?
       (a) The first. *Misconception: the first match is the match.*
       (b) Neither: no row is named, and a person decides.
    3. A caller sets `authoritative` on what a search index returned. What happens?
       (a) It is believed. *Misconception: evidence is what the caller says it is.*
       (b) It is refused, since the pinned policy declares no such reading.

Run
    python3 run_experiment.py e04_evidence

Read
    1. `reconcile/rules/evidence.py` `Snapshot` refuses what could not be classified.
    2. `reconcile/rules/verdicts.py` `classify` has a verdict for all else.
    3. `reconcile/rules/moves.py` `mismatch_never_resolves` compares question with question.
    4. `reconcile/rules/moves.py` `within_policy` compares each flag with the pinned policy.
    5. `reconcile/flows/review.py` `reconcile` writes the two that resolve.

Break it
    The unsafe twin takes the first row of `twin.first row counts.effects.order` = 2 and calls the
    order `twin.first row counts.states.order` = "confirmed". The oracle rejects the files.

What this does not show
    The flags are trusted inputs: an adapter that lies within its policy is believed, and the
    cells of this chapter are made up to be exactly such lies. Nothing is signed or authenticated.

Exercises
    1. Sort the 48 cells by what world each missing flag leaves open.
    2. Give the lookup a policy that declares `read_authoritative`. What changes, and what does
       not?
    3. Write an answer with `"closed": 1` and follow it to its refusal.

Words
    verdict, complete, authoritative, closed, observation, evidence

Sources
    Precedence of verdicts after TigerBeetle's result codes, which are ordered so that one input
    has one answer. That not-found answers were taken for absence is reported of payment,
    infrastructure and deployment tools.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from reconcile import (
    Effect,
    EffectPolicy,
    Ledger,
    Operation,
    ProcessReceiver,
    Query,
    Receiver,
    Snapshot,
    classify,
    dispatch,
    look,
    observe,
    prepare,
    reconcile,
)

from .harness import unsafe
from .harness.lab import Lab
from .harness.lossy import LosesRequest, answering
from .harness.plain import IDENTITY, POLICY
from .harness.scene import Scene, refusal

LOOKUP = EffectPolicy(name="search index", status_source="lookup")
FAULT_SHOWS = ("overclaim",)
"""The keys that change when the lookup claims no more than its policy declares."""


def run(lab: Lab) -> dict[str, Any]:
    """All cells, malformed and foreign answers, a lookup that claims too much, the unsafe twin."""
    scene = lab.scene()
    with scene.ledger() as ledger:
        order = unanswered(scene, ledger, "order", POLICY)
        found = {
            "malformed": malformed(ledger, order),
            "foreign": foreign(ledger, order),
            "overclaim": overclaim(lab, scene, ledger),
        }
        state = look(ledger, order.operation_id).state.value
    return {
        "cells": all_cells(lab),
        **found,
        "state after": state,
        "oracle": scene.findings(),
        "twin": {"first row counts": first_row_counts(lab)},
        "trace": scene.trace.to_json(),
    }


def unanswered(scene: Scene, ledger: Ledger, work: str, policy: EffectPolicy) -> Operation:
    """An operation whose request never arrived, which its sender cannot know."""
    lossy = LosesRequest(scene.near(policy=policy))
    order = prepare(ledger, lossy, work_id=work, kind="order", payload={"tubs": 6}, subject=work)
    scene.name(order, work)
    dispatch(ledger, order.operation_id, lossy)
    return look(ledger, order.operation_id)


def cells(query: Query) -> Iterator[Snapshot]:
    """None, one or two rows, payload and scope varying for one, under every setting of flags."""
    exact = Effect(
        effect_id="e1",
        operation_id=query.operation_id,
        kind=query.kind,
        payload=query.payload,
        compensates=query.compensates,
    )
    others = [replace(exact, payload='{"tubs":7}'), replace(exact, kind="refund")]
    both = replace(others[0], kind="refund")
    answers = [
        (),
        *((row,) for row in (exact, *others, both)),
        (exact, replace(exact, effect_id="e2")),
    ]
    for effects, flags in product(answers, product((False, True), repeat=3)):
        complete, authoritative, closed = flags
        yield Snapshot(
            query=query,
            effects=effects,
            complete=complete,
            authoritative=authoritative,
            closed=closed,
            receiver=query.target,
            epoch=query.epoch,
        )


def all_cells(lab: Lab) -> dict[str, Any]:
    """Bring each cell to the ledger as evidence about an operation of its own."""
    scene = lab.scene("cells", unsafe=True)  # made-up answers: the flags are trusted inputs
    verdicts: Counter[str] = Counter()
    became: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    with scene.ledger() as ledger:
        for number in range(48):
            order = unanswered(scene, ledger, f"cell-{number}", POLICY)
            snapshot = list(cells(order.query))[number]
            verdicts[classify(snapshot).value] += 1
            said = refusal(
                reconcile,
                ledger,
                order.operation_id,
                snapshot,
                reviewer="ada",
                expected_version=order.version,
            )
            state = look(ledger, order.operation_id).state.value
            (became if said == "allowed" else refused)[state if said == "allowed" else said] += 1
    return {
        "asked": sum(verdicts.values()),
        "by verdict": dict(sorted(verdicts.items())),
        "resolving": sum(became.values()),
        "became": dict(sorted(became.items())),
        "refused": dict(refused),
    }


def malformed(ledger: Ledger, order: Operation) -> dict[str, str]:
    """Answers of a receiver process that are none, each with the refusal they end in."""
    told = {}
    for name, line in bad_lines(order):
        receiver = ProcessReceiver(answering(line), identity=IDENTITY, policy=POLICY)
        told[name] = refusal(read_and_keep, ledger, order, receiver)
    return told


def read_and_keep(ledger: Ledger, order: Operation, receiver: Receiver) -> None:
    observe(ledger, order.operation_id, receiver.snapshot(order.query))


def bad_lines(order: Operation) -> Iterator[tuple[str, bytes]]:
    """A good answer with one thing wrong in it at a time."""
    row = {
        "effect_id": "e1",
        "operation_id": order.operation_id,
        "kind": order.kind,
        "payload": order.payload,
        "compensates": None,
    }
    good = {
        "operation_id": order.operation_id,
        "effects": [],
        "complete": True,
        "authoritative": True,
        "closed": False,
        "receiver": IDENTITY,
        "epoch": 1,
    }

    def reply(**changed: object) -> bytes:
        return json.dumps({"reply": "snapshot", "snapshot": {**good, **changed}}).encode() + b"\n"

    yield "good", reply()
    yield "silence", b""
    yield "half a line", reply()[:40]
    yield "no JSON", b"<html>\n"
    yield "a flag that is 1", reply(closed=1)
    yield "a flag that is text", reply(complete="false")
    yield "an unexpected field", reply(total=0)
    yield "rows that are no list", reply(effects={})
    yield "another operation", reply(operation_id="0" * 32)
    yield "a row of another operation", reply(effects=[{**row, "operation_id": "0" * 32}])
    yield "a row without a kind", reply(effects=[{k: v for k, v in row.items() if k != "kind"}])
    yield "another receiver", reply(receiver="somebody else")
    yield "another epoch", reply(epoch=2)


def foreign(ledger: Ledger, order: Operation) -> dict[str, str]:
    """Well-formed answers to other questions."""
    told = {}
    others: dict[str, Any] = {
        "operation_id": "0" * 32,
        "target": "other",
        "kind": "refund",
        "payload": '{"tubs":7}',
        "compensates": "e0",
        "epoch": 2,
    }
    for name, value in others.items():
        question = replace(order.query, **{name: value})
        told[name] = refusal(observe, ledger, order.operation_id, next(cells(question)))
    return told


def overclaim(lab: Lab, scene: Scene, ledger: Ledger) -> dict[str, str]:
    """An empty list from a search index, handed in as complete and authoritative."""
    order = unanswered(scene, ledger, "looked up", LOOKUP)
    lowered = next(cells(order.query))
    claims = bool(lab.fault("overclaim"))
    raised = replace(lowered, complete=claims, authoritative=claims)
    return {
        "observe": refusal(observe, ledger, order.operation_id, raised),
        "lowered": observe(ledger, order.operation_id, lowered).value,
        "state": look(ledger, order.operation_id).state.value,
    }


def first_row_counts(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: two effects, and the first one is taken for *the* one."""
    scene = lab.scene("first row counts", unsafe=True)
    with scene.ledger() as ledger:
        order = unanswered(scene, ledger, "order", POLICY)
    for _ in range(2):
        scene.near().send(order.query)
    first = scene.near().snapshot(order.query, close=True).effects[0]
    unsafe.flip_state(scene.sender, order.operation_id, "confirmed", effect_id=first.effect_id)
    return {"effects": scene.effects(), "states": scene.states(), "oracle": scene.findings()}


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    cells = result["cells"]
    bad = sum(said != "allowed" for said in result["malformed"].values())
    return (
        f"{cells['resolving']} of {cells['asked']} kinds of evidence resolve anything; {bad} "
        f"malformed and {len(result['foreign'])} foreign answers are refused, and so is a "
        f"lookup that claims more than its policy; the order stays {result['state after']}"
    )
