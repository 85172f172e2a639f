"""When a mission may be called finished: the completion gate.

A mission is a contract, its tasks, and what was seen of the world. Done tasks are no proof: what
was seen may be old, what was verified may have changed since, and an effect may be unknown. Each
condition is a function of its own, with a refusal of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from . import mission_errors as errors
from .identity import canonical_json, digest_of


class Stage(Enum):
    """Where a mission stands. The last two are final."""

    RUNNING = "running"
    VERIFYING = "verifying"
    FINISHED = "finished"
    FAILED = "failed"


ENDED = frozenset({Stage.FINISHED, Stage.FAILED})
SUCCEEDED = "succeeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """What a task is to be. `limit_ms`: how old what was seen for it may be."""

    name: str
    limit_ms: int
    mandatory: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What was seen of the world for a task: where, its digest, in which generation, and when."""

    reference: str
    digest: str
    world: int
    contract_version: int
    observed_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Where evidence can be found, and the digest of what is there."""

    reference: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task of a mission, at one moment."""

    name: str
    mandatory: bool
    limit_ms: int
    work_id: str  # of its operations
    state: str  # open, succeeded or failed
    contract_version: int | None  # the contract that it was done for; None: it is not done
    checked_by: str | None  # the reference of its check; None: there is none
    evidence: tuple[Evidence, ...]  # for the contract that it was done for
    sighting: Sighting | None  # the newest; None: nobody looked


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """A verifier's word about a mission as its digest was."""

    verifier: str
    passed: bool
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mission:
    """A mission at one moment: what a caller looked at, and decides by."""

    number: int
    name: str
    contract: str  # canonical JSON
    contract_version: int
    world: int
    stage: Stage
    revision: int
    tasks: tuple[Task, ...]
    verification: Verification | None  # the last; None: nobody verified it
    unresolved: str | None  # an operation of it whose outcome nobody knows; None: there is none

    @property
    def digest(self) -> str:
        """The hash of what a verifier looks at: contract, world, tasks, checks and evidence."""
        tasks = [
            [
                *(task.name, task.mandatory, task.state, task.checked_by, task.contract_version),
                [[each.reference, each.digest] for each in task.evidence],
            ]
            for task in self.tasks
        ]
        return digest_of(canonical_json([self.contract, self.contract_version, self.world, tasks]))

    def task(self, name: str) -> Task:
        """The task of this name. Raises UnknownMission if there is none."""
        for task in self.tasks:
            if task.name == name:
                return task
        raise errors.UnknownMission(f"{self.name}: {name}")


# --- the conditions -----------------------------------------------------------------------------


def goes_on(mission: Mission) -> None:
    """Raises MissionEnded if it has ended."""
    if mission.stage in ENDED:
        raise errors.MissionEnded(mission.name, mission.stage.value)


def same_moment(seen: Mission, now: Mission) -> None:
    """Raises StaleView if world, contract or mission changed since the caller looked."""
    for what in ("world", "contract_version", "revision"):
        expected, found = getattr(seen, what), getattr(now, what)
        if expected != found:
            raise errors.StaleView(what, expected, found)


def is_fresh(mission: Mission, task: Task, now_ms: int) -> None:
    """Raises StaleObservation unless what was seen is of this world and contract, and not old."""
    seen = task.sighting
    if seen is None:
        raise errors.StaleObservation(task.name, "nothing was seen for it yet")
    if seen.world != mission.world:
        raise errors.StaleObservation(task.name, "it was seen in an older generation of the world")
    if seen.contract_version != mission.contract_version:
        raise errors.StaleObservation(task.name, "it was seen under an older contract")
    if not 0 <= now_ms - seen.observed_ms <= task.limit_ms:
        raise errors.StaleObservation(task.name, "what was seen is older than its limit")


def has_evidence(task: Task, checked_by: str, evidence: tuple[Evidence, ...]) -> None:
    """Raises NoEvidence if a success would have no check, or no evidence."""
    if not checked_by.strip():
        raise errors.NoEvidence(task.name, "the reference of its check")
    if not evidence:
        raise errors.NoEvidence(task.name, "a reference to evidence")


def is_verifying(mission: Mission) -> None:
    """Raises NotVerifying unless the mission is being verified."""
    if mission.stage is not Stage.VERIFYING:
        raise errors.NotVerifying(mission.name, mission.stage.value)


def is_passed(mission: Mission) -> Verification:
    """The verifier's PASS. Raises NotPassed if there is none, or if the last word is another."""
    said = mission.verification
    if said is None:
        raise errors.NotPassed(mission.name, "nobody verified it")
    if not said.passed:
        raise errors.NotPassed(mission.name, f"{said.verifier} did not pass it")
    return said


def is_about_this(mission: Mission, said: Verification) -> None:
    """Raises OtherDigest if the PASS is about the mission as it no longer is."""
    if said.digest != mission.digest:
        raise errors.OtherDigest(said.digest, mission.digest)


def is_done(mission: Mission) -> None:
    """Raises TaskOpen if a mandatory task has not succeeded under the contract as it is."""
    for task in mission.tasks:
        done = task.state == SUCCEEDED and task.contract_version == mission.contract_version
        if task.mandatory and not done:
            state = task.state if task.state != SUCCEEDED else "done under an older contract"
            raise errors.TaskOpen(task.name, state)


def is_seen(mission: Mission, now_ms: int) -> None:
    """Raises StaleObservation unless every mandatory task was seen in the world as it is."""
    for task in mission.tasks:
        if task.mandatory:
            is_fresh(mission, task, now_ms)


def completed_means_known(mission: Mission) -> None:
    """completed-means-known: raises UnknownEffect over an operation whose outcome nobody knows."""
    if mission.unresolved is not None:
        raise errors.UnknownEffect(mission.unresolved)


# --- the guard ----------------------------------------------------------------------------------


def finalize(seen: Mission, now: Mission, now_ms: int) -> None:
    """May this mission be called finished?

    Raises MissionEnded, StaleView, NotVerifying, NotPassed, OtherDigest, TaskOpen,
    StaleObservation or UnknownEffect, in this order, if one condition is missing.
    """
    goes_on(now)
    same_moment(seen, now)
    is_verifying(now)
    is_about_this(now, is_passed(now))
    is_done(now)
    is_seen(now, now_ms)
    completed_means_known(now)
