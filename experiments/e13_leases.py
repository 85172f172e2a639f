"""A lease that ended is no news.

Incident
    A worker stalled in the middle of a sweep, and its lease ended. The machine that watched the
    leases called its charge failed, since nobody held it; another worker of the same name took
    over, and then the first one woke up and wrote what it had seen.

Observable result
    A sweep says four numbers: claimed, resolved, unknown, errors; an answer that came too late
    counts in none. A worker dies with its claim: until the lease ends nobody else works on the
    question, `killed.before the lease ends` = [0, 0, 0, 0], and what is known stays
    `killed.meanwhile` = "unknown". Then the next worker answers it: `killed.after it` = [1, 1, 0,
    0]. A worker that stalls, whose clock says that its lease is live, and whose name is that of
    its replacement, writes nothing: `stalled.the stalled one` = [0, 0, 0, 0] and
    `stalled.generations` = 2, until the next sweep makes it `stalled.state` = "confirmed". Two
    workers on one scope answer `two workers.resolved` = 20 questions with `two workers.decisions`
    = 20.

Predict
    1. The lease ended and nobody holds the question. What became of the charge?
       (a) It failed: somebody would hold it otherwise. *Misconception: no worker, no effect.*
       (b) Nobody knows. The charge left before the worker began to look.
    2. A worker's lease ended, another one of the same name claimed, and the first wakes with the
       receipt in its hands. May it write?
       (a) Yes: it is the owner. *Misconception: a name is an identity.*
       (b) No: another claim came after its token.
    3. Its own clock says that its lease is live. Does that let it write?
       (a) Yes: a lease is a time. *Misconception: clocks of two processes agree.*
       (b) No: to write, no clock is asked, and the newest token is.

Run
    python3 run_experiment.py e13_leases

Read
    1. `reconcile/rules/claim.py` `token_fences_worker` compares tokens, and asks no clock.
    2. `reconcile/flows/sweep.py` `finish` checks the token in the transaction that writes.
    3. `reconcile/ledger/claims.py` `take` makes the next generation, with a fresh token.
    4. `experiments/harness/worker.py` `start` begins a worker that is a process of its own.

Break it
    Two unsafe twins. No lease holder, so it was not applied: `twin.no lease holder, so it
    failed.state` = "not_applied" over `twin.no lease holder, so it failed.effects` = 1. Ownership
    by name: a replacement of the same name answered, and the stalled worker wakes. A program that
    compares names finds `twin.ownership by worker name.the claim is of` = "worker 1", and appends
    a verdict of its own in that name. So the file holds `twin.ownership by worker name.final
    verdicts` = ["confirmed", "not_applied"] of one question.

What this does not show
    One source of this field resolves toward failed where a lease has no holder. This library
    departs from it on purpose: a lease says who looks, and never what happened. Clocks here belong
    to processes of one host.

Exercises
    1. Take `assert_newest` out of `finish`. What does the stalled one write? Give its replacement
       the receipt as well (leave `stub` out): what refuses the stalled one then?
    2. Copy `stalled` to a scene of its own in which each of three workers holds its answer for
       longer than its lease. Which of them writes?
    3. Give the worker in `by_name` another name than its replacement. Which values change?

Words
    lease, claim, token, generation, zombie

Sources
    Fencing tokens: Kleppmann, *How to do distributed locking* (2016).
"""

from __future__ import annotations

from typing import Any

from .e12_sweep import account, started
from .harness import oracle, unsafe, worker
from .harness.lab import Lab
from .harness.lossy import LosesReceipt
from .harness.processes import Child
from .harness.scene import Scene

QUESTIONS = 20

FAULT_SHOWS = ("killed", "stalled", "twin", "trace")
"""The keys that change when no worker dies or stalls."""


def run(lab: Lab) -> dict[str, Any]:
    """Workers that are killed, that stall, and that meet; all of them real processes."""
    first = lab.scene("killed")
    told: dict[str, Any] = {"killed": killed(lab, first)}
    told["stalled"] = stalled(lab, lab.scene("stalled"))
    told["two workers"] = two_workers(lab, lab.scene("two workers"))
    told["oracle"] = lab.findings()
    told["twin"] = {
        "no lease holder, so it failed": no_holder(lab),
        "ownership by worker name": by_name(lab),
    }
    return {**told, "trace": first.trace.to_json()}


def plan(scene: Scene, **changed: Any) -> dict[str, Any]:
    """One sweep by worker 1, from now on; time passes by more than its own clock will count."""
    now = scene.lab.clock()
    scene.lab.pass_time(60_000)
    return {
        "file": str(scene.sender),
        "provider": {"kind": "account", "file": str(scene.receiver_file)},
        "clock": now,
        "steps": ["sweep"],
        "worker": "worker 1",
        "batch": 10,
        "at": None,
        "how": "exit",
        **changed,
    }


def swept(said: list[Any]) -> list[int]:
    """Claimed, resolved, unknown and errors of all sweeps of a process."""
    return [
        sum(each[name] for each in said) for name in ("claimed", "resolved", "unknown", "errors")
    ]


def unknown(scene: Scene, how_many: int = 1) -> None:
    """Open questions whose receipts the account keeps."""
    with scene.ledger() as ledger:
        for number in range(how_many):
            role = "charge" if how_many == 1 else f"charge {number}"
            by: Any = LosesReceipt(account(scene))
            started(scene, ledger, by, role, lost=False)
    scene.lab.pass_time(60_000)


def state(scene: Scene) -> str:
    """The state of the one charge, from the sender's file."""
    return scene.states()["charge"]


def killed(lab: Lab, scene: Scene) -> dict[str, Any]:
    """A worker dies just after the commit that claims."""
    unknown(scene)
    _, struck = worker.live(plan(scene, at=lab.fault("COMMIT#1"), how="exit_after"))
    if struck is not None:
        scene.trace.at("sender", "worker 1 dies with its claim")
    early, _ = worker.live(plan(scene))
    meanwhile = state(scene)
    lab.pass_time(worker.LEASE_MS)
    scene.trace.at("sender", "the lease has ended")
    late, _ = worker.live(plan(scene))
    scene.trace.at("sender.db", f"charge: {state(scene)}")
    return {
        "died": struck is not None,
        "before the lease ends": swept(early),
        "meanwhile": meanwhile,
        "after it": swept(late),
        "state": state(scene),
    }


def hold(lab: Lab, its: dict[str, Any]) -> Child:
    """A worker of this plan, begun, with an answer in its hands."""
    zombie = worker.start(its)
    lab.children.append(zombie)
    held = zombie.hear()
    assert held == {"holding": True}, held
    return zombie


def stalled(lab: Lab, scene: Scene) -> dict[str, Any]:
    """A worker holds the receipt in its hands while its lease ends and its replacement looks."""
    unknown(scene)
    its = plan(scene, hold=True)
    zombie = hold(lab, its)
    if not lab.neutral:
        lab.pass_time(worker.LEASE_MS)
        stub = {"kind": "stub", "identity": "plain"}
        worker.live(plan(scene, provider=stub))
    zombie.say(worker.PERMIT)
    woken, _ = worker.told_by(zombie, its)
    told = {
        "the stalled one": swept(woken),
        "meanwhile": state(scene),
        "generations": oracle.rows(scene.sender, "SELECT generation FROM claim")[0][0],
    }
    lab.pass_time(2 * worker.LEASE_MS)
    worker.live(plan(scene))
    return {**told, "state": state(scene)}


def two_workers(lab: Lab, scene: Scene) -> dict[str, Any]:
    """Two processes on one scope at once: which of them takes which question is left to them."""
    unknown(scene, QUESTIONS)
    plans = [plan(scene, worker=f"worker {n}", steps=["sweep"] * 12, batch=2) for n in (1, 2)]
    both = [worker.start(each) for each in plans]
    lab.children += both
    sums = [swept(worker.told_by(child, its)[0]) for child, its in zip(both, plans, strict=True)]
    decided = "SELECT count(*) FROM decision WHERE cause = 'receipt'"
    return {
        "resolved": sum(each[1] for each in sums),
        "errors": sum(each[3] for each in sums),
        "decisions": oracle.rows(scene.sender, decided)[0][0],
    }


# --- the unsafe twins ---------------------------------------------------------------------------


def no_holder(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: the lease ended, nobody holds the question, so the charge failed."""
    scene = lab.scene("no lease holder", unsafe=True)
    unknown(scene)
    worker.live(plan(scene, at=lab.fault("COMMIT#1"), how="exit_after"))
    lab.pass_time(worker.LEASE_MS)
    identity = next(iter(oracle.states(scene.sender)))
    if not lab.neutral:
        unsafe.flip_state(scene.sender, identity, "not_applied")
    return {
        "state": state(scene),
        "effects": sum(scene.effects().values()),
        "oracle": scene.findings(),
    }


def by_name(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: a replacement of the same name answered, and the stalled worker is let in
    as well, since the name on the claim is its own.
    """
    scene = lab.scene("ownership by name", unsafe=True)
    unknown(scene)
    its = plan(scene, hold=True)
    zombie = hold(lab, its)
    if not lab.neutral:
        lab.pass_time(worker.LEASE_MS)
        worker.live(plan(scene))
    zombie.say(worker.PERMIT)
    worker.told_by(zombie, its)
    ((owner, identity),) = oracle.rows(
        scene.sender, "SELECT owner, operation_id FROM claim, operation"
    )
    if owner == its["worker"] and not lab.neutral:
        unsafe.append_decision(
            scene.sender, identity, target="not_applied", version=4, actor=f"sweep by {owner}"
        )
    final = "SELECT target FROM decision WHERE target IN ('confirmed', 'not_applied')"
    return {
        "the claim is of": owner,
        "final verdicts": [target for (target,) in oracle.rows(scene.sender, final)],
        "oracle": scene.findings(),
    }


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    killed_, both = result["killed"], result["two workers"]
    return (
        f"a worker died with its claim: {killed_['meanwhile']} until the lease ended, then "
        f"{killed_['state']}; a stalled one wrote {result['stalled']['the stalled one'][1]} "
        f"answers; two workers gave {both['resolved']} answers with {both['decisions']} decisions"
    )
