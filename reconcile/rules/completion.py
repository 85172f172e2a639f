"""The completion gate: nothing calls a mission finished over an unknown effect.

A task's own word is no evidence for its mission. So the gate asks for all of it at one moment: a
verifier's PASS about exactly what stands now, what was seen lately and of this world, every task
that must succeed, and no operation whose outcome is open. Whatever is sent, and whatever becomes
known of it, makes another generation of the world: what was seen before it is stale.
"""

from __future__ import annotations

from . import contact, mission_errors
from .mission import Mission, MissionState, Reference, Seen, Task, TaskState
from .operation import Operation
from .states import UNRESOLVED, State

# --- the rules, one for each condition ----------------------------------------------------------


def not_ended(mission: Mission) -> None:
    """Raises MissionEnded if it finished or failed: nothing of it moves any more."""
    if mission.state in (MissionState.FINISHED, MissionState.FAILED):
        raise mission_errors.MissionEnded(mission.name, mission.state.value)


def is_running(mission: Mission) -> None:
    """Raises NotRunning if nothing may be worked on, since a verifier looks."""
    if mission.state is not MissionState.RUNNING:
        raise mission_errors.NotRunning(mission.name, mission.state.value)


def is_verifying(mission: Mission) -> None:
    """Raises NotVerifying if work goes on."""
    if mission.state is not MissionState.VERIFYING:
        raise mission_errors.NotVerifying(mission.name, mission.state.value)


def same_contract(mission: Mission, seen: Seen) -> None:
    """Raises StaleContract if the contract was amended since the caller looked."""
    if seen.contract_version != mission.contract_version:
        raise mission_errors.StaleContract(seen.contract_version, mission.contract_version)


def commanded_today(mission: Mission, version: int) -> None:
    """Raises StaleContract if an operation was commanded under an older contract, or never."""
    if version != mission.contract_version:
        raise mission_errors.StaleContract(version, mission.contract_version)


def same_world(mission: Mission, seen: Seen) -> None:
    """Raises StaleWorld if the world may have changed since the caller looked."""
    if seen.world != mission.world:
        raise mission_errors.StaleWorld(seen.world, mission.world)


def same_revision(mission: Mission, seen: Seen) -> None:
    """Raises StaleRevision if it was handed over or given back since the caller looked."""
    if seen.revision != mission.revision:
        raise mission_errors.StaleRevision(seen.revision, mission.revision)


def seen_lately(mission: Mission, task: Task, now_ms: int) -> None:
    """Raises StaleObservation unless the task was seen in this world, and not too long ago."""
    last = task.sighting
    if last is None:
        why = "it was never observed"
    elif last.contract_version != mission.contract_version:
        why = f"what was seen is of contract version {last.contract_version}"
    elif last.world != mission.world:
        why = f"what was seen is of world {last.world}, and this is {mission.world}"
    elif not 0 <= now_ms - last.observed_ms <= task.aim.limit_ms:
        why = f"it was seen {now_ms - last.observed_ms} ms ago, the limit is {task.aim.limit_ms}"
    else:
        return
    raise mission_errors.StaleObservation(task.aim.name, why)


def looked_in_time(mission: Mission, task: Task, observed_ms: int) -> None:
    """Raises StaleObservation for a look from before this world, or this contract, began."""
    if observed_ms < mission.counts_from_ms:
        why = f"at {observed_ms} it was another world: this one began at {mission.counts_from_ms}"
        raise mission_errors.StaleObservation(task.aim.name, why)


def task_is_open(task: Task) -> None:
    """Raises TaskEnded if it succeeded or was given up under the contract of today."""
    if task.state is not TaskState.OPEN:
        raise mission_errors.TaskEnded(task.aim.name, task.state.value)


def has_check(task: Task, check: Reference | None) -> None:
    """Raises NoCheck if no check is named that was made of the task."""
    if check is None:
        raise mission_errors.NoCheck(task.aim.name)


def has_evidence(task: Task, evidence: tuple[Reference, ...]) -> None:
    """Raises NoEvidence if nothing is named that shows the success."""
    if not evidence:
        raise mission_errors.NoEvidence(task.aim.name)


def verifier_did_not_work(mission: Mission, verifier: str) -> None:
    """Raises OwnWork if the verifier would judge a success of its own."""
    for task in mission.tasks:
        if task.state is TaskState.SUCCEEDED and task.ended_by == verifier:
            raise mission_errors.OwnWork(verifier, task.aim.name)


def verifier_passed(mission: Mission) -> None:
    """Raises NotPassed unless the last word of a verifier was PASS."""
    if mission.judgement is None:
        raise mission_errors.NotPassed(mission.name, "no verifier judged it")
    if not mission.judgement.passed:
        raise mission_errors.NotPassed(mission.name, f"{mission.judgement.verifier!r} said FAIL")


def hash_matches(mission: Mission) -> None:
    """Raises HashMismatch if the verifier's word is about another mission than stands now."""
    if mission.judgement is not None and mission.judgement.hash != mission.hash:
        raise mission_errors.HashMismatch(mission.judgement.hash, mission.hash)


def word_is_of_today(mission: Mission) -> None:
    """Raises NotPassed if the mission moved since its verifier spoke, wherever it came to."""
    word = mission.judgement
    if word is not None and word.revision != mission.revision:
        why = f"{word.verifier!r} judged revision {word.revision}, and this is {mission.revision}"
        raise mission_errors.NotPassed(mission.name, why)


def tasks_succeeded(mission: Mission) -> None:
    """Raises TaskNotSucceeded if one that must succeed did not, under the contract of today."""
    for task in mission.tasks:
        if task.aim.mandatory and task.state is not TaskState.SUCCEEDED:
            raise mission_errors.TaskNotSucceeded(task.aim.name, task.state.value)


def completed_means_known(mission: Mission) -> None:
    """completed-means-known: raises UnknownEffect if an effect of the mission is not known."""
    for task in mission.tasks:
        for operation in task.operations:
            if operation.state in UNRESOLVED or operation.effect_seen:
                state = operation.state.value
                raise mission_errors.UnknownEffect(task.aim.name, operation.operation_id, state)


# --- the guards ---------------------------------------------------------------------------------


def moves(mission: Mission) -> None:
    """May anything of it change? Raises Paused or MissionEnded if not."""
    contact.store_is_live(mission.paused)
    not_ended(mission)


def looked_at(mission: Mission, seen: Seen) -> None:
    """As `moves`, for a caller that looked. Raises also StaleContract, StaleWorld, StaleRevision.

    In this order, since a new contract or world is a new revision as well.
    """
    moves(mission)
    same_contract(mission, seen)
    same_world(mission, seen)
    same_revision(mission, seen)


def observes(mission: Mission, task: Task, seen: Seen, observed_ms: int) -> None:
    """May a look be kept? Raises as `looked_at`, or StaleObservation if not."""
    looked_at(mission, seen)
    looked_in_time(mission, task, observed_ms)


def works_on(mission: Mission, task: Task, seen: Seen) -> None:
    """May a task be worked on? Raises as `looked_at`, NotRunning, or TaskEnded if not."""
    looked_at(mission, seen)
    is_running(mission)
    task_is_open(task)


def acts_on(mission: Mission, task: Task, seen: Seen, now_ms: int) -> None:
    """May it be claimed, command, or succeed? Raises as `works_on`, or StaleObservation if not."""
    works_on(mission, task, seen)
    seen_lately(mission, task, now_ms)


def succeeds(
    task: Task, check: Reference | None, evidence: tuple[Reference, ...]
) -> tuple[Reference, tuple[Reference, ...]]:
    """Check and evidence of a success. Raises NoCheck or NoEvidence if either is missing."""
    has_check(task, check)
    has_evidence(task, evidence)
    assert check is not None
    return check, evidence


def judges(mission: Mission, verifier: str) -> None:
    """May a verifier speak? Raises as `moves`, NotVerifying, or OwnWork if not."""
    moves(mission)
    is_verifying(mission)
    verifier_did_not_work(mission, verifier)


def finishes(mission: Mission, now_ms: int) -> None:
    """The completion gate. Raises for the first condition that is missing, in this order:

    Paused, MissionEnded, NotVerifying, NotPassed, HashMismatch, NotPassed for a word that is not
    of today, OwnWork, StaleObservation, TaskNotSucceeded, UnknownEffect.
    """
    moves(mission)
    is_verifying(mission)
    verifier_passed(mission)
    hash_matches(mission)
    word_is_of_today(mission)
    if mission.judgement is not None:
        verifier_did_not_work(mission, mission.judgement.verifier)
    for task in mission.tasks:
        if task.counts:
            seen_lately(mission, task, now_ms)
    tasks_succeeded(mission)
    completed_means_known(mission)


def drafts(mission: Mission) -> list[Operation]:
    """What was prepared and never left: the end of a mission withdraws it. No compensation is:
    a person approved it apart.
    """
    return [
        operation
        for task in mission.tasks
        for operation in task.operations
        if operation.state is State.PREPARED
        and not operation.effect_seen
        and operation.compensates is None
    ]
