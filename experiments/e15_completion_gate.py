"""Every task is done, and the mission is not.

Incident
    An agent was to start a review machine. The start was sent, its answer was lost, and a panel
    showed a green lamp; so the task was ticked, and since every task was ticked the mission was
    reported as finished. The machine had been started twice, and two reviews were billed. In the
    next week the lamp was green for another machine, and none had been started.

Observable result
    The start's answer is lost: `walk.dispatch` = "unknown". The task succeeds all the same, with
    its check and its evidence: `walk.task` = "succeeded"; and a verifier passes what it is shown.
    The mission does not finish: `walk.finalize over the unknown` = "UnknownEffect". A sweep whose
    provider is the stub changes nothing: `walk.the stub's sweep` = "unknown", and `walk.finalize
    after it` = "UnknownEffect". A person closes, a sweep reads what was closed, and the start is
    `walk.evidence` = "confirmed"; that is another world than the verifier saw, so it is
    `walk.finalize at once` = "HashMismatch". Observed and judged again, it is `walk.finalize at
    last` = "finished" with `walk.effects.start` = 1 effect. From a case that passes, each missing
    condition is refused; no verdict and a FAIL are one refusal: `missing.verifying` =
    "NotVerifying", `missing.a verdict` = "NotPassed", `missing.a PASS` = "NotPassed", `missing.the
    same hash` = "HashMismatch", `missing.a fresh observation` = "StaleObservation", `missing.a
    task` = "TaskNotSucceeded", `missing.a known effect` = "UnknownEffect". A mission may fail for
    another reason: `failed.mission` = "failed", and the unknown stays with its question:
    `failed.start` = "unknown", `failed.open questions` = 1. Resuming makes what was seen stale:
    `resumed.with what was seen` = "StaleWorld", `resumed.without looking` = "StaleObservation". A
    worker that saw another contract, world or revision sends nothing: `stale.contract` =
    "StaleContract", `stale.world` = "StaleWorld", `stale.revision` = "StaleRevision", with
    `stale.contacts` = 0.

Predict
    1. Every task of a mission says that it is done. Is the mission?
       (a) Yes, that is what tasks are for. *Misconception: a mission is the sum of its ticks.*
       (b) Not while an effect of it is unknown.
    2. A verifier passed the mission, and then the lost receipt of a start was found. What now?
       (a) It finishes: the last gap is closed. *Misconception: a verdict is about the future.*
       (b) It is observed and judged again: the verifier saw another world.
    3. The mission has to be ended while the start is unknown. What may be written?
       (a) Nothing, until it is known. *Misconception: an unknown freezes everything.*
       (b) That the mission failed; the unknown stays open.
    4. A program resumes its mission after a break of a week, in which nothing was written. What
       may it do?
       (a) Act on what it saw before. *Misconception: the file is the world.*
       (b) Look again.

Run
    python3 run_experiment.py e15_completion_gate

Read
    1. `reconcile/rules/completion.py` `finishes` asks for each condition, in a fixed order.
    2. `reconcile/rules/completion.py` `completed_means_known` is the last one, and the reason for
       all of it.
    3. `reconcile/rules/mission.py` `Mission` has the hash that a verifier judges.
    4. `reconcile/ledger/missions.sql` `operation_changes_the_world` lets whatever becomes known
       make what was seen before stale.
    5. `reconcile/flows/tasks.py` `dispatch` asks in the transaction that announces.

Break it
    The unsafe twin finishes on done tasks, past the triggers. In one world nothing was started,
    and the mission is `twin.finalize on done tasks.never started.mission` = "finished" with
    `twin.finalize on done tasks.never started.effects` = 0 effects. In the other somebody pressed
    again: `twin.finalize on done tasks.started twice.mission` = "finished" with `twin.finalize on
    done tasks.started twice.effects` = 2 effects. The oracle finds that each was finished over an
    unknown start, and that one was started twice; of a start that never was it sees no more than
    the question.

What this does not show
    Whether a check or a verdict is any good: references and digests are kept, not followed. Names
    of workers and verifiers are trusted inputs. That the world moved by another's hand is noticed
    only by looking, within each task's limit.

Exercises
    1. Move the sweep and what is asked about it in `walk` before `verify`. What is refused now,
       and what has to be done again?
    2. Approve a compensation of the start (`approve_compensation`, chapter e06), and lose its
       receipt. May the mission finish?
    3. Open the mission with `Aim(name="spare", limit_ms=1000, mandatory=False)` besides. What does
       the gate say while it is open, and what once it succeeded a minute ago?
    4. Make `completed_means_known` return at once, and run the walk. Which trigger of
       `missions.sql` stops it?

Words
    mission, task, check, evidence, observation, generation, verdict, gate

Sources
    That agents report success over failed or unconfirmed steps is told of the field. Freshness by
    generation and limit: leases and fencing, as in the chapters before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reconcile import Ledger, Receiver, State, close, look, open_questions, reconcile_once
from reconcile.flows import mission, tasks
from reconcile.rules import sweeping
from reconcile.rules.operation import Scope

from .harness import unsafe
from .harness.errand import LIMIT_MS, MISSION, Errand, find_out, shown
from .harness.lab import Lab
from .harness.lossy import LosesReceipt, LosesRequest
from .harness.scene import Scene, refusal
from .harness.worker import PLAIN

FAULT_SHOWS = ("walk", "trace")
"""The keys that change when the machine's answer is not lost."""


def run(lab: Lab) -> dict[str, Any]:
    """The walk, each condition taken away, a failed mission, a resumed one, and the twin."""
    scene = lab.scene()
    return {
        "walk": walk(lab, scene),
        "missing": {name: missing(lab, name, without) for name, without in MISSING.items()},
        "failed": failed(lab.scene("failed")),
        "resumed": resumed(lab.scene("resumed")),
        "stale": stale(lab.scene("stale")),
        "oracle": lab.findings(),
        "twin": {"finalize on done tasks": finalize_on_done_tasks(lab)},
        "trace": scene.trace.to_json(),
    }


def walk(lab: Lab, scene: Scene) -> dict[str, Any]:
    """The machine starts and its answer is lost; the evidence comes, and then it can finish."""
    with scene.ledger() as ledger:
        errand = Errand(ledger)
        claim = errand.begin()
        operation = errand.command(scene.near(policy=PLAIN), claim)
        scene.name(operation, "start")
        crash = lab.fault("after_commit")
        sent = errand.send(operation, scene.receiver(crash=crash, policy=PLAIN), claim)
        errand.observe(what="the lamp is green")
        errand.succeed(claim)
        errand.verify()
        told = {
            "dispatch": sent.outcome.value,
            "task": errand.look().tasks[0].state.value,
            "finalize over the unknown": refusal(errand.finalize),
        }
        if sent.outcome is State.UNKNOWN:
            told["the stub's sweep"] = sweep(errand, None)
            told["finalize after it"] = refusal(errand.finalize)
            lab.pass_time(sweeping.BACK_OFF_MS[0])
            answers = scene.receiver(policy=PLAIN)
            by = {"purpose": "find out", "authorized_by": "ada"}
            close(ledger, operation.operation_id, answers, **by)
            told["a provider's sweep"] = sweep(errand, answers)
            told["evidence"] = look(ledger, operation.operation_id).state.value
            told["finalize at once"] = refusal(errand.finalize)
            errand.observe(what="the lamp is green")
            errand.judge()
        told["finalize at last"] = errand.finalize().state.value
        worlds = errand.look().world
    return {**told, "worlds": worlds, "effects": scene.effects()}


def sweep(errand: Errand, provider: Receiver | None) -> str:
    """One visit to whatever is open, and what it came to."""
    done = reconcile_once(errand.ledger, provider, worker="sweeper", scope=Scope())
    return "resolved" if done.resolved else "unknown"


# --- each condition taken away from a case that passes ------------------------------------------


def passing(scene: Scene, ledger: Ledger) -> Errand:
    """A mission that would finish now."""
    errand = Errand(ledger)
    scene.name(errand.done(scene.near()), "start")
    return errand


def missing(lab: Lab, name: str, without: Callable[[Lab, Scene, Ledger], Errand]) -> str:
    """What finalizing is refused with; "allowed" if it is not."""
    scene = lab.scene(f"missing {name}")
    with scene.ledger() as ledger:
        return refusal(without(lab, scene, ledger).finalize)


def without_verifying(lab: Lab, scene: Scene, ledger: Ledger) -> Errand:
    """All is there, and nobody handed it over."""
    errand = Errand(ledger)
    operation, claim = errand.start(scene.near())
    scene.name(operation, "start")
    errand.succeed(claim)
    return errand


def without_a_verdict(lab: Lab, scene: Scene, ledger: Ledger) -> Errand:
    """It was handed over, and no verifier spoke."""
    errand = without_verifying(lab, scene, ledger)
    mission.verify(ledger, MISSION)
    return errand


def without_a_pass(lab: Lab, scene: Scene, ledger: Ledger) -> Errand:
    """The last word is FAIL, and it was handed over again."""
    errand = passing(scene, ledger)
    errand.judge(passed=False)
    mission.verify(ledger, MISSION)
    return errand


def without_the_same_hash(lab: Lab, scene: Scene, ledger: Ledger) -> Errand:
    """After the PASS somebody saw something else."""
    errand = passing(scene, ledger)
    errand.observe(what="the lamp is out")
    return errand


def without_a_fresh_observation(lab: Lab, scene: Scene, ledger: Ledger) -> Errand:
    """It was seen too long ago."""
    errand = passing(scene, ledger)
    lab.pass_time(LIMIT_MS + 1)
    return errand


def without_a_task(lab: Lab, scene: Scene, ledger: Ledger) -> Errand:
    """It was given up, and the verifier passed that."""
    errand = Errand(ledger)
    operation, claim = errand.start(scene.near())
    scene.name(operation, "start")
    tasks.give_up(ledger, claim=claim, seen=errand.seen, reason="no power")
    errand.verify()
    return errand


def without_a_known_effect(lab: Lab, scene: Scene, ledger: Ledger) -> Errand:
    """Everything says yes, and the answer to the start was lost."""
    errand = Errand(ledger)
    scene.name(errand.done(LosesReceipt(scene.near())), "start")
    return errand


MISSING: dict[str, Callable[[Lab, Scene, Ledger], Errand]] = {
    "nothing": lambda lab, scene, ledger: passing(scene, ledger),
    "verifying": without_verifying,
    "a verdict": without_a_verdict,
    "a PASS": without_a_pass,
    "the same hash": without_the_same_hash,
    "a fresh observation": without_a_fresh_observation,
    "a task": without_a_task,
    "a known effect": without_a_known_effect,
}


# --- failing, resuming, and what is stale -------------------------------------------------------


def failed(scene: Scene) -> dict[str, Any]:
    """It fails for another reason; the unknown stays, and is found out about later."""
    with scene.ledger() as ledger:
        errand = Errand(ledger)
        operation = errand.done(LosesReceipt(scene.near()))
        scene.name(operation, "start")
        mission.fail(ledger, MISSION, by="ada", reason="the reviewers went home")
        told = {
            "mission": errand.look().state.value,
            "start": look(ledger, operation.operation_id).state.value,
            "open questions": len(open_questions(ledger)),
            "finalize": refusal(errand.finalize),
            "evidence": find_out(ledger, operation.operation_id, scene.near()),
        }
        return {
            **told,
            "open questions later": len(open_questions(ledger)),
            "mission later": errand.look().state.value,
        }


def resumed(scene: Scene) -> dict[str, str]:
    """A break of unknown length: what was seen before it is not acted on."""
    with scene.ledger() as ledger:
        errand = Errand(ledger)
        errand.observe()
        before = errand.seen
        mission.resume(ledger, MISSION)
        told = {
            "with what was seen": refusal(errand.claim, seen=before),
            "without looking": refusal(errand.claim),
        }
        errand.observe()
        return {**told, "after looking": refusal(errand.claim)}


def stale(scene: Scene) -> dict[str, Any]:
    """What a worker is refused that saw another contract, world or revision."""
    with scene.ledger() as ledger:
        errand = Errand(ledger)
        claim = errand.begin()
        operation = errand.command(scene.near(), claim)
        scene.name(operation, "start")
        first = errand.seen
        mission.amend(ledger, MISSION, contract={"machine": "review-4"}, seen=first, by="ada")
        told: dict[str, Any] = {
            "contract": refusal(errand.send, operation, scene.near(), claim, seen=first)
        }
        errand.observe()
        told["commanded before"] = refusal(errand.send, operation, scene.near(), claim)
        errand.command(scene.near(), claim)
        second = errand.seen
        mission.wake(ledger, MISSION)
        told["world"] = refusal(errand.send, operation, scene.near(), claim, seen=second)
        errand.observe()
        third = errand.seen
        errand.verify()
        errand.judge(passed=False)
        told["revision"] = refusal(errand.send, operation, scene.near(), claim, seen=third)
        told["contacts"] = len(scene.contacts())
        told["as it is"] = errand.send(operation, scene.near(), claim).outcome.value
    return told


# --- the unsafe twin ----------------------------------------------------------------------------


def finalize_on_done_tasks(lab: Lab) -> dict[str, Any]:
    """Every task says done, so the mission is: over nothing, and over two starts."""
    told: dict[str, Any] = {}
    for name, times in (("never started", 0), ("started twice", 2)):
        scene = lab.scene(name, unsafe=True)
        with scene.ledger() as ledger:
            errand = Errand(ledger)
            lossy = LosesReceipt(scene.near()) if times else LosesRequest(scene.near())
            operation, claim = errand.start(lossy)
            scene.name(operation, "start")
            errand.succeed(claim, check=shown("the lamp is green"))
            if times:  # "no answer, so press again"
                unsafe.send_past_the_library(scene.near(), operation.query)
        unsafe.finish(scene.sender, MISSION)
        with scene.ledger() as ledger:
            said = mission.look_mission(ledger, MISSION).state.value
        told[name] = {
            "mission": said,
            "effects": scene.effects()["start"],
            "oracle": scene.findings(),
        }
    told["oracle"] = [line for name in told for line in told[name]["oracle"]]
    return told


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    walked, twin = result["walk"], result["twin"]["finalize on done tasks"]
    refused = [said for name, said in result["missing"].items() if name != "nothing"]
    return (
        f"over the unknown start finalizing is {walked['finalize over the unknown']}, once it is "
        f"{walked['evidence']} and judged again it is {walked['finalize at last']}; "
        f"{len(refused)} missing conditions are refused in {len(set(refused))} ways; a failed "
        f"mission keeps {result['failed']['open questions']} open question; on done tasks it is "
        f"finished over {twin['never started']['effects']} starts, and over "
        f"{twin['started twice']['effects']}"
    )
