"""The completion gate.

Incident
    An agent was to have a change reviewed on a machine of its own. The call that started the
    machine timed out; the agent marked the task done, since the console showed a machine, and
    closed the mission. Two machines ran until the end of the month.

Observable result
    The task is done, the verifier passed it, and one effect is unknown: finishing is refused,
    `over an unknown.finalize` = "UnknownEffect". Once a sweep has the receipt, and the world was
    looked at again, it is finished: `known.stage` = "finished" over `known.effects` = 1. Each of
    the other conditions has a refusal of its own, such as `missing.no verifier passed it` =
    "NotPassed" or `missing.what was seen is old` = "StaleObservation". A mission may fail over an
    unknown, which stays: `failed.stage` = "failed" with `failed.open questions` = 1.

Predict
    1. Every task is done and every check is green. Is the mission finished?
       (a) Yes: that is what done means. *Misconception: done tasks are a known outcome.*
       (b) Not while one of their effects is unknown.
    2. The verifier passed the mission, and then the world was looked at anew. Does the PASS count?
       (a) Yes: nothing was changed. *Misconception: a PASS is about a name.*
       (b) No: it is about a digest, and the generation of the world is in it.
    3. The mission is called failed. What becomes of its unknown effect?
       (a) It failed as well. *Misconception: the goal and the effect end together.*
       (b) It stays unknown, with its open question.

Run
    python3 run_experiment.py e15_completion_gate

Read
    1. `reconcile/rules/mission.py` `finalize` is the list of conditions, in their order.
    2. `reconcile/rules/mission.py` `completed_means_known` is the one this library is about.
    3. `reconcile/flows/mission.py` `command` raises the generation of the world with each effect.
    4. `reconcile/ledger/missions.py` `read` gives the whole mission, as a caller looks at it.

Break it
    The unsafe twin finishes on done tasks: `twin.finished on done tasks.stage` = "finished" with
    `twin.finished on done tasks.unresolved` = 1.

What this does not show
    Whether the check was a good one. References and digests are kept, and are not opened.

Exercises
    1. Make the task optional. Which refusal does `missing.a task is not done` become, and why?
    2. Let the verifier judge before the world is looked at again. Which condition refuses?
    3. Finish the mission of `known` a second time. What does it say?

Words
    mission, task, check, evidence, generation, contract

Sources
    Completion gates of agent frameworks finish on the last task; none is quoted here. The scenario
    is synthetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reconcile import Ledger, Receiver, reconcile_once
from reconcile.flows import mission as flows
from reconcile.flows import work
from reconcile.ledger import views
from reconcile.rules.mission import Evidence, Mission, TaskPlan
from reconcile.rules.operation import Scope

from .e12_sweep import account
from .harness import oracle, unsafe
from .harness.lab import Lab
from .harness.lossy import LosesReceipt
from .harness.scene import Scene, refusal

MISSION, TASK, LIMIT_MS = "review of the change", "start the machine", 60_000
START: dict[str, Any] = {"kind": "start", "payload": {"machine": "review"}, "subject": "machine"}

FAULT_SHOWS = ("over an unknown", "failed", "twin", "trace")
"""The keys that change when no receipt is lost."""


def run(lab: Lab) -> dict[str, Any]:
    """A mission over an unknown, the same one known, each other condition, and the twin."""
    first = lab.scene("machine")
    told: dict[str, Any] = {}
    with first.ledger() as ledger:
        seen = done(first, ledger, lossy(lab, first))
        told["over an unknown"] = {"finalize": finalize(ledger, seen)}
        lab.pass_time(LIMIT_MS)
        told["known"] = known(first, ledger)
    told["missing"] = missing(lab)
    told["failed"] = failed(lab)
    told["oracle"] = lab.findings()
    told["twin"] = {"finished on done tasks": finished_on_done_tasks(lab)}
    return {**told, "trace": first.trace.to_json()}


def lossy(lab: Lab, scene: Scene) -> Receiver:
    """The account that starts machines; its first answer is lost."""
    return account(scene) if lab.neutral else LosesReceipt(account(scene))


def opened(ledger: Ledger, name: str = MISSION) -> Mission:
    """A mission of one mandatory task."""
    plan = [TaskPlan(name=TASK, limit_ms=LIMIT_MS)]
    return flows.open_mission(ledger, name, contract={"goal": name}, tasks=plan)


def observed(ledger: Ledger, name: str = MISSION, *, worker: str = "agent") -> flows.TaskClaim:
    """The task, claimed and freshly observed."""
    seen = flows.look_mission(ledger, name)
    held = flows.claim_task(ledger, seen, TASK, worker=worker)
    return flows.observe_task(ledger, held, reference="the console", digest="as it was shown")


def done(scene: Scene, ledger: Ledger, by: Receiver | None, name: str = MISSION) -> Mission:
    """The mission with its machine started, its task done, and a PASS."""
    opened(ledger, name)
    held = flows.claim_task(ledger, flows.look_mission(ledger, name), TASK, worker="agent")
    held = flows.observe_task(ledger, held, reference="the console", digest="no machine")
    if by is not None:
        told = flows.command(ledger, held, by, **{**START, "subject": f"machine of {name}"})
        scene.name(told.operation_id, "machine")
        held = flows.observe_task(ledger, held, reference="the console", digest="one machine")
    proof = [Evidence(reference="the console", digest="one machine")]
    seen = flows.succeed(ledger, held, checked_by="check of the machine", evidence=proof)
    work.release(ledger, held.claim)
    seen = flows.verify(ledger, seen)
    return flows.judge(ledger, seen, verifier="vera", passed=True, digest=seen.digest)


def finalize(ledger: Ledger, seen: Mission) -> str:
    """The refusal that finishing ends in, or that it was allowed."""
    return refusal(flows.finalize, ledger, seen, actor="ada")


def known(scene: Scene, ledger: Ledger) -> dict[str, Any]:
    """A sweep brings the receipt; the world is looked at once more; then it is finished."""
    reconcile_once(ledger, account(scene), worker="worker", scope=Scope())
    if flows.look_mission(ledger, MISSION).stage.value == "verifying":
        observed(ledger)
        finalize(ledger, flows.look_mission(ledger, MISSION))
    stage = flows.look_mission(ledger, MISSION).stage.value
    return {"stage": stage, "effects": sum(scene.effects().values())}


def missing(lab: Lab) -> dict[str, str]:
    """From a case that passes, one condition is taken away at a time."""
    scene = lab.scene("missing")
    told: dict[str, str] = {}
    with scene.ledger() as ledger:
        for name, spoil in SPOILS.items():
            seen = done(scene, ledger, None, name)
            told[name] = finalize(ledger, spoil(lab, ledger, seen))
        told["nothing is missing"] = finalize(ledger, done(scene, ledger, None, "whole"))
    return told


def _amended(lab: Lab, ledger: Ledger, seen: Mission) -> Mission:
    return flows.amend(ledger, seen, contract={"goal": "another"})


def _looked_before(lab: Lab, ledger: Ledger, seen: Mission) -> Mission:
    flows.resume(ledger, seen.name)
    return seen


def _not_passed(lab: Lab, ledger: Ledger, seen: Mission) -> Mission:
    return flows.judge(ledger, seen, verifier="vera", passed=False, digest=seen.digest)


def _passed_before(lab: Lab, ledger: Ledger, seen: Mission) -> Mission:
    return flows.resume(ledger, seen.name)


def _gave_up(lab: Lab, ledger: Ledger, seen: Mission) -> Mission:
    flows.give_up(ledger, observed(ledger, seen.name))
    now = flows.look_mission(ledger, seen.name)
    return flows.judge(ledger, now, verifier="vera", passed=True, digest=now.digest)


def _grew_old(lab: Lab, ledger: Ledger, seen: Mission) -> Mission:
    lab.pass_time(LIMIT_MS + 1)
    return seen


SPOILS: dict[str, Callable[[Lab, Ledger, Mission], Mission]] = {
    "it is not being verified": _amended,
    "another looked meanwhile": _looked_before,
    "no verifier passed it": _not_passed,
    "the PASS is about another world": _passed_before,
    "a task is not done": _gave_up,
    "what was seen is old": _grew_old,
}


def failed(lab: Lab) -> dict[str, Any]:
    """A mission is called failed over an unknown."""
    scene = lab.scene("failed")
    with scene.ledger() as ledger:
        done(scene, ledger, lossy(lab, scene))
        ended = flows.fail(ledger, MISSION, actor="ada", reason="not wanted any more")
        left = len(views.obligations(ledger))
    return {"stage": ended.stage.value, "open questions": left, "states": scene.states()}


def finished_on_done_tasks(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: every task says done, so the mission is finished."""
    scene = lab.scene("finished on done tasks", unsafe=True)
    with scene.ledger() as ledger:
        done(scene, ledger, lossy(lab, scene))
    unsafe.finish_mission(scene.sender, MISSION)
    ((stage,),) = oracle.rows(scene.sender, "SELECT state FROM mission")
    unresolved = sum(state == "unknown" for state in scene.states().values())
    return {"stage": stage, "unresolved": unresolved, "oracle": scene.findings()}


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    conditions = len(result["missing"]) - 1
    return (
        f"over an unknown, finishing is {result['over an unknown']['finalize']}; known, it is "
        f"{result['known']['stage']}; {conditions} other conditions have a refusal each; a failed "
        f"mission keeps {result['failed']['open questions']} open question"
    )
