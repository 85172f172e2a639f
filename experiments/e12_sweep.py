"""Nobody sits beside every unknown.

Incident
    A job that started review machines lost one answer in a thousand, and put each on a list for a
    person. In spring the list had four hundred lines. Somebody wrote a script that asked for them
    all, and called failed whatever was not found: it asked under new keys.

Observable result
    The honest stub answers nothing: `review machine.stub` = [1, 0, 1, 0], which is claimed,
    resolved, unknown and errors. A provider that has the receipt ends the question:
    `review machine.provider` = [1, 1, 0, 0], with `review machine.state` = "confirmed" over
    `review machine.effects` = 1. A provider that throws, contradicts itself, or talks of something
    else leaves it open: `no evidence.it throws` = [1, 0, 1, 0]. Where no policy lets a sweep
    decide, the evidence is kept: `nobody may decide.state` = "unknown". What a person closed is
    answered, and what is open is not: `closed.summary` = [3, 2, 1, 0]; a sweep closed
    `closed.closed by sweeps` = 0 of them.

Predict
    1. The provider finds nothing under the operation's key. What is known?
       (a) It did not happen. *Misconception: not found is absence.*
       (b) Nothing new; it is asked again later.
    2. Two of three questions can never be answered, and a batch takes two. When is the third
       visited?
       (a) Never: the two oldest come first. *Misconception: the oldest is the most urgent.*
       (b) By the second sweep.
    3. The receipt is found, and the policy lists nothing that a sweep may decide. What happens?
       (a) It is settled: a receipt is a receipt. *Misconception: evidence decides by itself.*
       (b) It is kept, and a person decides.

Run
    python3 run_experiment.py e12_sweep

Read
    1. `reconcile/flows/sweep.py` `reconcile_once` claims, asks and writes; it sends and closes
       nothing.
    2. `reconcile/rules/sweeping.py` `may_decide` is what a sweep may do by itself.
    3. `reconcile/ledger/obligations.py` `due` is the one order of the queue.
    4. `experiments/e12_sweep.py` `Directory` turns a source that says found, receipt and conflict
       into a receiver.

Break it
    Two unsafe twins. A fresh key asks about another effect, so that a second machine is started:
    `twin.a fresh key asks.effects` = 2. What was not found is called failed:
    `twin.found nothing, so it failed.state` = "not_applied" over
    `twin.found nothing, so it failed.effects` = 1. And a queue that is ordered by age alone never
    comes to the third: `visits of the third.by age alone` = 0, where the library's order comes to
    it in the second sweep: `visits of the third.by the library` = 1.

What this does not show
    A provider that never returns: it is a process that is killed, and its lease ends. The next
    chapter has such a worker.

Exercises
    1. Let `Directory` return None for a conflict instead of raising. Which number changes, if any?
    2. Give the plain receiver's policy no `sweep_may_decide`. What does `closed.summary` become?
    3. Sweep ten times within a minute. How often is the open question visited, and why?

Words
    obligation, sweep, provider, stub, back-off

Sources
    Fair queues with a visit mark: the reports of sweeps that read the same hopeless rows for ever
    are those of many job queues; no one of them is quoted here.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from unittest import mock

from reconcile import (
    EffectPolicy,
    Ledger,
    Operation,
    Query,
    Receipt,
    Receiver,
    Snapshot,
    SweepSummary,
    UnavailableReceiver,
    close,
    dispatch,
    look,
    prepare,
    reconcile_once,
)
from reconcile.ledger import views
from reconcile.rules import sweeping
from reconcile.rules.errors import NoReply
from reconcile.rules.operation import Scope

from .harness import oracle, removals, unsafe, worker
from .harness.inprocess import InProcessSupplier
from .harness.lab import Lab
from .harness.lossy import LosesReceipt, LosesRequest
from .harness.plain import IDENTITY
from .harness.scene import Scene
from .harness.traced import Traced

FAULT_SHOWS = ("review machine", "no evidence", "nobody may decide", "closed", "twin", "trace")
"""The keys that change when no receipt is lost."""


class Directory:
    """A source that answers a key with found, receipt and conflict, as a receiver.

    It throws on a conflict, since a source that contradicts itself has said nothing.
    """

    epoch = 1

    def __init__(self, account: InProcessSupplier, policy: EffectPolicy = worker.ACCOUNT) -> None:
        self._account, self.identity, self.policy = account, account.identity, policy
        self.conflict = False

    def ask(self, key: Query) -> dict[str, Any]:
        """What the source says of a key."""
        receipt = self._account.lookup(key)
        return {"found": receipt is not None, "receipt": receipt, "conflict": self.conflict}

    def lookup(self, query: Query) -> Receipt | None:
        said = self.ask(query)
        if said["conflict"]:
            raise NoReply(self.identity, "it has two answers")
        receipt: Receipt | None = said["receipt"] if said["found"] else None
        return receipt

    def send(self, query: Query) -> Receipt | None:
        return self._account.send(query)

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        return self._account.snapshot(query, close=close)


def run(lab: Lab) -> dict[str, Any]:
    """One question and its providers, many questions, and the twins."""
    first = lab.scene("review machine")
    told: dict[str, Any] = {"review machine": review_machine(lab, first)}
    told["no evidence"] = no_evidence(lab)
    told["nobody may decide"] = nobody_may_decide(lab)
    told["closed"] = closed(lab)
    told["visits of the third"] = visits_of_the_third(lab)
    told["oracle"] = lab.findings()
    told["twin"] = {
        "a fresh key asks": fresh_key(lab),
        "found nothing, so it failed": found_nothing(lab),
    }
    return {**told, "trace": first.trace.to_json()}


def account(scene: Scene, policy: EffectPolicy = worker.ACCOUNT) -> InProcessSupplier:
    """The receiver that keeps receipts."""
    return InProcessSupplier(scene.receiver_file, identity=IDENTITY, policy=policy)


def started(
    scene: Scene, ledger: Ledger, by: Receiver, role: str = "review machine", *, lost: bool = True
) -> Operation:
    """A machine that was started; in a neutral lab, or without a loss, its receipt came back."""
    sender: Any = LosesReceipt(by) if lost and not scene.lab.neutral else by
    work_id = "op_synth_042" if role == "review machine" else role
    payload = {"machine": role}
    made = prepare(ledger, sender, work_id=work_id, kind="start", payload=payload, subject=role)
    scene.name(made, role)
    dispatch(ledger, made.operation_id, sender)
    return made


def sweep(ledger: Ledger, provider: Receiver | None, **more: Any) -> list[int]:
    """Claimed, resolved, unknown and errors of one sweep."""
    done = reconcile_once(ledger, provider, worker="worker", scope=Scope(), **more)
    return [getattr(done, name) for name in SweepSummary.__dataclass_fields__]


def review_machine(lab: Lab, scene: Scene) -> dict[str, Any]:
    """The synthetic op_synth_042: the stub first, a provider that knows after the rest."""
    with scene.ledger() as ledger:
        directory = Directory(account(scene))
        machine = started(scene, ledger, account(scene))
        told: dict[str, Any] = {}
        if not lab.neutral:
            told["stub"] = sweep(ledger, None)
            lab.pass_time(sweeping.BACK_OFF_MS[0])
            told["provider"] = sweep(ledger, Traced(scene, directory))
        told["state"] = look(ledger, machine.operation_id).state.value
    return {**told, "effects": sum(scene.effects().values())}


def no_evidence(lab: Lab) -> dict[str, list[int]]:
    """Providers that say nothing about the question."""
    scene = lab.scene("no evidence")
    told: dict[str, list[int]] = {}
    with scene.ledger() as ledger:
        started(scene, ledger, account(scene))
        other = replace(account(scene).lookup(_query(ledger)), operation_id="another")  # type: ignore[type-var]
        conflicting, throwing, elsewhere = (Directory(account(scene)) for _ in range(3))
        conflicting.conflict = True
        for name, provider, ask in (
            ("it throws", throwing, mock.Mock(side_effect=RuntimeError("no connection"))),
            ("it has two answers", conflicting, conflicting.ask),
            ("it answers about another", elsewhere, lambda key: {**_FOUND, "receipt": other}),
        ):
            with mock.patch.object(provider, "ask", ask):
                told[name] = sweep(ledger, provider)
            lab.pass_time(sweeping.SLOWEST_MS)
    return told


_FOUND = {"found": True, "conflict": False}


def _query(ledger: Ledger) -> Query:
    """The question of the first operation."""
    with ledger.reading() as tx:
        (row,) = tx.execute("SELECT operation_id FROM operation").fetchall()
    return look(ledger, row[0]).query


def nobody_may_decide(lab: Lab) -> dict[str, Any]:
    """The receipt is there, and no policy lets a sweep settle by it."""
    scene = lab.scene("nobody may decide")
    silent = replace(worker.ACCOUNT, sweep_may_decide=())
    with scene.ledger() as ledger:
        machine = started(scene, ledger, account(scene, silent))
        summary = sweep(ledger, account(scene))
        kept = len(oracle.rows(scene.sender, "SELECT 1 FROM receipt WHERE origin = 'lookup'"))
        state = look(ledger, machine.operation_id).state.value
    return {"summary": summary, "receipts kept": kept, "state": state}


def closed(lab: Lab) -> dict[str, Any]:
    """A plain receiver, where a person closed two of three operations."""
    scene = lab.scene("closed")
    near = scene.near(policy=worker.PLAIN)
    with scene.ledger() as ledger:
        for role, by in (("unique", near), ("absent", LosesRequest(near)), ("open", near)):
            made = started(scene, ledger, by, role)
            if role != "open" and look(ledger, made.operation_id).open_since_ms is not None:
                close(ledger, made.operation_id, near, purpose="find out", authorized_by="ada")
        before = _closes(scene)
        summary = sweep(ledger, near)
    states = scene.states()
    return {"summary": summary, "states": states, "closed by sweeps": _closes(scene) - before}


def _closes(scene: Scene) -> int:
    return [request for request, _ in oracle.contacts(scene.receiver_file)].count("close")


def visits_of_the_third(lab: Lab) -> dict[str, int]:
    """Two sweeps with batches of two over three hopeless questions, in two orders."""
    told: dict[str, int] = {}
    for name, order in (
        ("by the library", nullcontext),
        ("by age alone", removals.REMOVALS["questions are ordered by age alone"]),
    ):
        scene = lab.scene(f"order {name}")
        with scene.ledger() as ledger, order():
            nobody = LosesRequest(UnavailableReceiver(IDENTITY, policy=worker.ACCOUNT))
            for role in ("first", "second", "third"):
                started(scene, ledger, nobody, role, lost=False)
            for _ in range(2):
                sweep(ledger, account(scene), batch=2)
            told[name] = {q.subject: q.visits for q in views.obligations(ledger)}["third"]
    return told


# --- the unsafe twins ---------------------------------------------------------------------------


def fresh_key(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: asked under a new key nothing is found, so a new machine is started."""
    scene = lab.scene("a fresh key asks", unsafe=True)
    with scene.ledger() as ledger:
        machine = started(scene, ledger, account(scene))
        fresh = unsafe.same_need_again(machine.query)
        found = account(scene).lookup(fresh)
        if found is None and not lab.neutral:
            scene.name(fresh, "review machine again")
            unsafe.send_past_the_library(account(scene), fresh)
    return {
        "found": found is not None,
        "effects": sum(scene.effects().values()),
        "oracle": scene.findings(),
    }


def found_nothing(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: the stub found nothing, so it failed."""
    scene = lab.scene("found nothing", unsafe=True)
    with scene.ledger() as ledger:
        machine = started(scene, ledger, account(scene))
    unsafe.flip_state(scene.sender, machine.operation_id, "not_applied")
    return {
        "state": oracle.states(scene.sender)[machine.operation_id][0],
        "effects": sum(scene.effects().values()),
        "oracle": scene.findings(),
    }


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    machine, twins = result["review machine"], result["twin"]
    third = result["visits of the third"]["by age alone"]
    return (
        f"the stub leaves {machine['stub'][2]} open, a provider resolves "
        f"{machine['provider'][1]}; of three at a plain receiver the "
        f"{result['closed']['summary'][1]} that a person closed are answered; a fresh key starts "
        f"{twins['a fresh key asks']['effects']} machines, and by age alone the third is visited "
        f"{third} times"
    )
