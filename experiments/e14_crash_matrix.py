"""Eleven deaths, and what each of them leaves.

Incident
    A team listed what its workers must survive: a timeout, a restart, a stale lease, a backlog.
    Each line had a green test, and most of those tests raised an exception where a process should
    have died. The first real kill left a settlement that was entered twice.

Observable result
    Eleven rows, each with a process that really ended where the row says. In the first the sender
    dies after its send, and a worker with the answer in its hands:
    `M1 timeout to success.state` = "confirmed" over `M1 timeout to success.effects` = 1. Once
    means once: `M3 invoked once.sends` = 1, `M4 settled once.settlements` = 1 and
    `M5 released once.settlements` = 1. A contradiction stays open:
    `M9 conflict.state` = "unknown". The backlog of `M10 backlog.questions` = 501 drains while its
    workers are killed: `M10 backlog.as predicted` = true, `M10 backlog.answered twice` = 0,
    `M10 backlog.killed ten or more` = true. A restored store keeps its unknown:
    `M11 restore.state` = "unknown" and `M11 restore.sweep` = "Paused".

Predict
    1. A worker dies after its claim and before it asks. What does the next sweep find?
       (a) The question is lost with its worker. *Misconception: a claim is ownership.*
       (b) Nothing, until the lease ends; then the question, unchanged.
    2. A worker dies just after the commit that settles an order. Who settles it again?
       (a) The next worker, so that it is surely done. *Misconception: doing it again is harmless.*
       (b) Nobody: the question ended in that commit.
    3. A process dies between a commit and the marker beside the file. Is the store paused?
       (a) Yes: file and marker differ. *Misconception: any difference means a restore.*
       (b) No: the file is ahead of its marker, as only a live one can be.

Run
    python3 run_experiment.py e14_crash_matrix

Read
    1. `experiments/harness/worker.py` `live` is one life of a process, and where it was struck.
    2. `experiments/harness/faults.py` `around` ends it before a statement, a commit, a send or a
       lookup.
    3. `reconcile/flows/sweep.py` `claim_due` claims in one commit; `finish` writes in another.
    4. `reconcile/ledger/obligations.py` `due` lists what a dead worker left, once its lease ended.

Break it
    The unsafe twin finds a claim whose holder is gone and calls the outcome failed:
    `twin.no lease holder, so it failed.state` = "not_applied" over
    `twin.no lease holder, so it failed.effects` = 1.

What this does not show
    Every point: a row dies at one or two of them. The eleven names are of this field; what each of
    them stands for here is this library's own reading. One host; no power loss.

Exercises
    1. Let the worker of M4 die before its second commit instead of after it. Which value changes?
    2. In M8, how many of the three questions are answered before the death, and by which commit?
    3. Set the lease of the workers to one hour. Why does M10 take more lives, and end the same?

Words
    claim, lease, generation, obligation, sweep, marker

Sources
    The crash tests of SQLite: a child dies in the middle of a write, and the parent accepts "all"
    or "nothing" only.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from reconcile import (
    Ledger,
    Operation,
    UnavailableReceiver,
    close,
    dispatch,
    prepare,
    reconcile_once,
)
from reconcile.flows import sweep
from reconcile.flows.answers import Answer
from reconcile.ledger import copies, views
from reconcile.rules.operation import Scope

from .harness import oracle, unsafe, worker
from .harness.inprocess import InProcessReceiver, InProcessSupplier
from .harness.lab import Lab
from .harness.lossy import LosesReceipt, LosesRequest
from .harness.scene import Scene, refusal
from .harness.shop import trading
from .harness.supplier import IDENTITY as SUPPLIER

QUESTIONS = 501
KINDS = ("receipt", "absent", "unique", "duplicate", "mismatch", "stub")
PREDICTED = {"receipt": "confirmed", "absent": "not_applied", "unique": "confirmed"}
NAMES = {
    "INSERT INTO decision VALUES (?, ?, ?, ?,": "before its decision",
    "INSERT INTO observation SELECT ?, coales": "before its observation",
    "COMMIT#1": "after its first commit",
    "COMMIT#2": "after its second commit",
}
BEFORE_DECISION, BEFORE_OBSERVATION = list(NAMES)[:2]

FAULT_SHOWS = (
    *("M1 timeout to success", "M2 timeout to failure", "M3 invoked once", "M4 settled once"),
    *("M5 released once", "M6 marker race", "M7 stale lease", "M8 restart mid-sweep"),
    *("M9 conflict", "M10 backlog", "M11 restore", "trace"),
)
"""The keys that change when every process lives."""


def run(lab: Lab) -> dict[str, Any]:
    """Each row of the matrix in files of its own."""
    told: dict[str, Any] = {}
    first = Life(lab.scene("M1 timeout to success"))
    told["M1 timeout to success"] = timed_out(first)
    name = "M2 timeout to failure"
    told[name] = timed_out(Life(lab.scene(name), rejects=True))
    for name, row in ROWS.items():
        told[name] = row(Life(lab.scene(name, unsafe=name == "M9 conflict")))
    told["M4 settled once"] = settled(lab, "M4 settled once")
    told["M5 released once"] = settled(lab, "M5 released once", "--reject")
    told["M10 backlog"] = backlog(lab)
    told["oracle"] = lab.findings()
    told["twin"] = {"no lease holder, so it failed": nobody_holds_it(lab)}
    return {**dict(sorted(told.items(), key=_number)), "trace": first.scene.trace.to_json()}


def _number(item: tuple[str, Any]) -> int:
    first = item[0].split()[0]
    return int(first[1:]) if first[:1] == "M" else QUESTIONS


class Life:
    """One scene, and the lives of the processes in it. `died` says where each was struck."""

    def __init__(self, scene: Scene, **terms: Any) -> None:
        self.scene, self.lab, self.kind, self.terms = scene, scene.lab, "account", terms
        self.died: list[str] = []

    def lives(
        self, *steps: str, at: str | int | None = None, how: str = "exit", **changed: Any
    ) -> list[Any]:
        """What a process says of its steps until it ends or is struck."""
        file = str(self.scene.receiver_file)
        plan = {
            "file": str(self.scene.sender),
            "provider": {"kind": self.kind, "file": file, "terms": self.terms},
            "clock": self.lab.clock(),
            "steps": steps,
            "worker": "worker 1",
            "batch": 10,
            "at": at if isinstance(at, int) or at is None else self.lab.fault(at),
            "how": how,
            **changed,
        }
        self.lab.pass_time(60_000)  # more than the ticks of its own clock
        said, struck = worker.live(plan)
        if struck is not None:
            named = f"{at}" if f"{at}" in NAMES else struck
            self.died.append(NAMES.get(named, named))
            self.scene.trace.at("sender", f"dies: {self.died[-1]}")
        return said

    def leases_end(self) -> None:
        """Let the lease of a dead worker end."""
        self.lab.pass_time(worker.LEASE_MS)

    def unknown(self, how_many: int, kind: str) -> list[Operation]:
        """Operations whose effect is there, and whose receipt was lost."""
        with self.scene.ledger() as ledger:
            made = [ask(self.scene, ledger, kind, number) for number in range(how_many)]
        self.lab.pass_time(60_000)
        return made

    def state(self) -> str:
        """The state of the one operation, from the sender's file."""
        ((state, _),) = oracle.states(self.scene.sender).values()
        return state

    def effects(self) -> int:
        """How many effects the receiver's file has."""
        return sum(len(rows) for rows in oracle.effects(self.scene.receiver_file).values())

    def count(self, sql: str) -> int:
        """One number from the sender's file."""
        return int(oracle.rows(self.scene.sender, sql)[0][0])


def timed_out(life: Life) -> dict[str, Any]:
    """M1, M2: the sender dies after its send, a worker with the answer in its hands."""
    with life.scene.ledger():
        pass
    life.lives("order", at="after send")
    between = [life.state()]
    life.lives("sweep", at=BEFORE_DECISION)
    between.append(life.state())
    life.leases_end()
    life.lives("sweep")
    return {
        "died": life.died,
        "in between": between,
        "state": life.state(),
        "effects": life.effects(),
    }


def invoked_once(life: Life) -> dict[str, Any]:
    """M3: a new process orders again what an earlier one may have sent."""
    with life.scene.ledger():
        pass
    life.lives("order", at="after send")
    again = life.lives("order", "sweep")
    sends = [request for request, _ in oracle.contacts(life.scene.receiver_file)].count("apply")
    return {"died": life.died, "ordered again": again[0], "sends": sends, "state": life.state()}


def settled(lab: Lab, name: str, *options: str) -> dict[str, Any]:
    """M4, M5: an order with money; its worker dies just after the commit that settles it."""
    options = ("--drop-first-response", *options)
    with trading(lab, name, options=options, policy=worker.ACCOUNT) as trade:
        with trade.ledger() as ledger:
            order_id, claim = trade.ready(ledger)
            dispatch(ledger, order_id, trade.receiver(), claim=claim)
        life = Life(trade.scene)
        to = {"url": trade.supplier.url, "identity": SUPPLIER}
        life.lives("sweep", at="COMMIT#2", how="exit_after", provider=to)
        life.leases_end()
        later = life.lives("sweep", provider=to)
        with trade.ledger() as ledger:
            money = trade.money(ledger)
        return {
            "died": life.died,
            "the next sweep": later[0],
            "state": life.state(),
            "settlements": life.count("SELECT count(*) FROM entry WHERE settles = 1"),
            "money": money,
        }


def marker_race(life: Life) -> dict[str, Any]:
    """M6: a process dies between a commit and the marker beside the file."""
    with life.scene.ledger():
        pass
    life.lives("order", at="COMMIT#1", how="exit_after")
    with life.scene.ledger() as ledger:
        paused = ledger.paused is not None
    life.lives("order", "sweep")
    return {"died": life.died, "paused": paused, "state": life.state(), "effects": life.effects()}


def stale_lease(life: Life) -> dict[str, Any]:
    """M7: a worker dies with its claim; what it held is of no use once another took over."""
    life.unknown(1, "receipt")
    life.lives("sweep", at="COMMIT#1", how="exit_after")
    early = life.lives("sweep")
    with life.scene.ledger() as ledger:
        held = [found for found in views.obligations(ledger) if found.claim is not None]
    life.leases_end()
    life.lives("sweep", at="COMMIT#1", how="exit_after", worker="worker 1")
    with life.scene.ledger() as ledger:
        old = [
            refusal(sweep.finish, ledger, None, (found, found.claim), Answer(), worker="w")
            for found in held
        ]
    life.leases_end()
    life.lives("sweep")
    return {
        "died": life.died,
        "a sweep before the lease ends": early[0],
        "with the old token": old,
        "generations": life.count("SELECT generation FROM claim"),
        "state": life.state(),
    }


def restarted(life: Life) -> dict[str, Any]:
    """M8: a worker dies after the first of three answers, and is started again."""
    life.unknown(3, "receipt")
    life.lives("sweep", at="COMMIT#2", how="exit_after")
    between = life.count("SELECT count(*) FROM obligation WHERE ended_ms IS NULL")
    life.leases_end()
    later = life.lives("sweep")
    return {
        "died": life.died,
        "still open": between,
        "the next sweep": later[0],
        "states": dict(Counter(state for state, _ in oracle.states(life.scene.sender).values())),
        "decisions": life.count("SELECT count(*) FROM decision WHERE cause = 'receipt'"),
    }


def conflict(life: Life) -> dict[str, Any]:
    """M9: the receiver has two effects of one operation; a worker dies before it can say so."""
    life.unknown(1, "duplicate")
    life.lives("sweep", at=BEFORE_OBSERVATION)
    kept = life.count("SELECT count(*) FROM observation")
    life.leases_end()
    life.lives("sweep")
    with life.scene.ledger() as ledger:
        (left,) = views.obligations(ledger)
    return {
        "died": life.died,
        "kept before": kept,
        "found": left.found,
        "state": life.state(),
        "effects": life.effects(),
    }


def restored(life: Life) -> dict[str, Any]:
    """M11: a worker dies, and the store is put back from a backup: its unknown stays unknown."""
    life.unknown(1, "receipt")
    with life.scene.ledger() as ledger:
        taken = copies.backup(ledger, life.scene.sender.with_name("backup.db"))
    life.lives("sweep", at=BEFORE_DECISION)
    back = copies.restore(taken, life.scene.sender.with_name("restored.db"))
    with Ledger(back, clock=life.lab.clock) as ledger:
        again = refusal(reconcile_once, ledger, None, worker="worker 1", scope=Scope())
    ((state, _),) = oracle.states(back).values()
    return {"died": life.died, "state": state, "sweep": again}


ROWS: dict[str, Callable[[Life], dict[str, Any]]] = {
    "M3 invoked once": invoked_once,
    "M6 marker race": marker_race,
    "M7 stale lease": stale_lease,
    "M8 restart mid-sweep": restarted,
    "M9 conflict": conflict,
    "M11 restore": restored,
}


# --- the backlog --------------------------------------------------------------------------------


def backlog(lab: Lab) -> dict[str, Any]:
    """M10: 501 questions of mixed kinds, workers killed at statements chosen by a fixed seed."""
    life = Life(lab.scene("M10 backlog", unsafe=True))  # a channel doubled some of it
    kinds = [KINDS[number % len(KINDS)] for number in range(QUESTIONS)]
    with life.scene.ledger():
        pass
    with Ledger(life.scene.sender, clock=lab.clock) as ledger:  # too much of it to be traced
        asked = {
            ask(life.scene, ledger, kind, number).operation_id: kind
            for number, kind in enumerate(kinds)
        }
    lab.pass_time(60_000)
    chosen = random.Random(QUESTIONS)
    while life.count("SELECT count(*) FROM obligation WHERE ended_ms IS NULL AND visits = 0"):
        for kind in ("account", "stub"):
            life.kind = kind
            at = None if lab.neutral else chosen.randrange(50, 2500)
            life.lives(*["sweep"] * 12, at=at, provider=provider_plan(life))
        life.leases_end()
    states = {i: state for i, (state, _) in oracle.states(life.scene.sender).items()}
    return {
        "questions": len(asked),
        "states": dict(sorted(Counter(states.values()).items())),
        "by kind": {
            kind: sorted({states[i] for i in asked if asked[i] == kind}) for kind in KINDS
        },
        "as predicted": states == predicted(life.scene, asked),
        "answered twice": life.count(
            "SELECT count(*) FROM (SELECT operation FROM decision "
            "WHERE cause IN ('receipt', 'evidence') GROUP BY operation HAVING count(*) > 1)"
        ),
        "killed ten or more": len(life.died) >= 10,
        "oracle": dict(Counter(finding.split(":")[0] for finding in life.scene.findings())),
    }


def provider_plan(life: Life) -> dict[str, Any]:
    """The provider of one kind; the stub stands for a receiver that nobody can reach."""
    if life.kind == "stub":
        return {"kind": "stub", "identity": "nobody"}
    return {"kind": life.kind, "file": str(life.scene.receiver_file)}


def ask(scene: Scene, ledger: Ledger, kind: str, number: int) -> Operation:
    """One operation whose reply was lost, and what the receiver's file shall have of it."""
    plain = InProcessReceiver(scene.receiver_file, identity="plain", policy=worker.PLAIN)
    order = {"work_id": f"{kind} {number}", "kind": "charge", "payload": {"pence": number}}
    by: Any = LosesReceipt(plain)
    if kind == "receipt":
        account = InProcessSupplier(scene.receiver_file, policy=worker.ACCOUNT, identity="plain")
        by = LosesReceipt(account)
    elif kind in ("absent", "mismatch"):
        by = LosesRequest(plain)
    elif kind == "stub":
        by = LosesRequest(UnavailableReceiver("nobody"))
    made = prepare(ledger, by, **order, subject=f"bill {kind} {number}")  # type: ignore[arg-type]
    scene.name(made, f"{kind} {number}")
    dispatch(ledger, made.operation_id, by)
    if kind == "duplicate":  # the channel did it twice
        plain.send(made.query)
    elif kind == "mismatch":  # somebody used its identity for something else
        plain.send(replace(made.query, payload='{"pence":1}'))
    elif kind in ("absent", "unique"):
        close(ledger, made.operation_id, plain, purpose="find out", authorized_by="ada")
    return made


def predicted(scene: Scene, asked: dict[str, str]) -> dict[str, str]:
    """What each state must be, by the receiver's file alone: one effect and closed, or one stored
    receipt; none and closed; everything else is unknown.
    """
    effects = oracle.effects(scene.receiver_file)
    closed = oracle.closed(scene.receiver_file)
    found = {}
    for operation_id, kind in asked.items():
        there = len(effects.get(operation_id, []))
        sure = kind == "receipt" or operation_id in closed
        ends = {0: "not_applied", 1: "confirmed"}.get(there, "unknown")
        found[operation_id] = ends if sure else "unknown"
    return found


# --- the unsafe twin ----------------------------------------------------------------------------


def nobody_holds_it(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: the worker is gone and its lease has ended, so the charge "failed"."""
    scene = lab.scene("nobody holds it", unsafe=True)
    with scene.ledger() as ledger:
        charge = ask(scene, ledger, "unique", 1)
    unsafe.flip_state(scene.sender, charge.operation_id, "not_applied")
    return {
        "state": oracle.states(scene.sender)[charge.operation_id][0],
        "effects": len(oracle.effects(scene.receiver_file)[charge.operation_id]),
        "oracle": scene.findings(),
    }


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    backlog_ = result["M10 backlog"]
    rows = sum(name.startswith("M") for name in result)
    return (
        f"{rows} rows, each with a process that really ended; sent, settled and released one time "
        f"each; of {backlog_['questions']} questions {backlog_['states']['confirmed']} are "
        f"confirmed, {backlog_['states']['not_applied']} not applied and "
        f"{backlog_['states']['unknown']} unknown, as the receiver's file predicts"
    )
