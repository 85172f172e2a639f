"""Refusals of missions, one for each condition that is missing. Nothing was written or sent."""

from __future__ import annotations

from .errors import ReconcileError


class UnknownMission(ReconcileError):
    """Raised if no such mission, or no such task of it, was opened in this file."""

    says = "no mission or task {name!r} in this ledger: check its name, or open it first"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class MissionTaken(ReconcileError):
    """Raised if a name stands already for something else."""

    says = "{name!r} stands already, with {differs}: look at it, or take another name"

    def __init__(self, name: str, differs: str) -> None:
        super().__init__(name, differs)
        self.name, self.differs = name, differs


class NoMandatoryTask(ReconcileError):
    """Raised if nothing would have to succeed for a mission to finish."""

    says = "mission {mission!r} asks for nothing: name at least one task that must succeed"

    def __init__(self, mission: str) -> None:
        super().__init__(mission)
        self.mission = mission


class MissionEnded(ReconcileError):
    """Raised if a mission finished or failed: both are final."""

    says = "mission {mission!r} is {state}, which is final: open another one"

    def __init__(self, mission: str, state: str) -> None:
        super().__init__(mission, state)
        self.mission, self.state = mission, state


class NotRunning(ReconcileError):
    """Raised if something would be worked on while a verifier looks."""

    says = "mission {mission!r} is {state}: work goes on after a FAIL, or under a new contract"

    def __init__(self, mission: str, state: str) -> None:
        super().__init__(mission, state)
        self.mission, self.state = mission, state


class NotVerifying(ReconcileError):
    """Raised if a mission would be judged or finished while work goes on."""

    says = "mission {mission!r} is {state}: only one under verification is judged or finished"

    def __init__(self, mission: str, state: str) -> None:
        super().__init__(mission, state)
        self.mission, self.state = mission, state


class StaleContract(ReconcileError):
    """Raised if the contract was amended since the caller looked, or commanded an operation."""

    says = "this is of contract version {expected}, and {found} holds: look, and command again"

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(expected, found)
        self.expected, self.found = expected, found


class StaleWorld(ReconcileError):
    """Raised if the world may have changed since the caller looked."""

    says = "world {expected} was seen, and this is {found}: observe the tasks again"

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(expected, found)
        self.expected, self.found = expected, found


class StaleRevision(ReconcileError):
    """Raised if the mission moved since the caller looked, under the same contract and world."""

    says = "revision {expected} was seen, and this is {found}: look at the mission again"

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(expected, found)
        self.expected, self.found = expected, found


class StaleObservation(ReconcileError):
    """Raised if what was last seen of a task says nothing of it as it is now."""

    says = "task {task!r} needs to be observed again: {why}"

    def __init__(self, task: str, why: str) -> None:
        super().__init__(task, why)
        self.task, self.why = task, why


class TaskEnded(ReconcileError):
    """Raised if a task ended, under the contract of today, in another way."""

    says = "task {task!r} has {state}: under this contract it stays so; amend the contract"

    def __init__(self, task: str, state: str) -> None:
        super().__init__(task, state)
        self.task, self.state = task, state


class NoCheck(ReconcileError):
    """Raised if a task would succeed without a check."""

    says = "task {task!r} does not succeed without a check: name the check that was made"

    def __init__(self, task: str) -> None:
        super().__init__(task)
        self.task = task


class NoEvidence(ReconcileError):
    """Raised if a task would succeed without evidence."""

    says = "task {task!r} does not succeed on its own word: name at least one piece of evidence"

    def __init__(self, task: str) -> None:
        super().__init__(task)
        self.task = task


class OwnWork(ReconcileError):
    """Raised if a verifier would judge its own success."""

    says = "{verifier!r} made task {task!r} succeed, and does not verify it: ask somebody else"

    def __init__(self, verifier: str, task: str) -> None:
        super().__init__(verifier, task)
        self.verifier, self.task = verifier, task


class NotPassed(ReconcileError):
    """Raised if a mission would finish without a verifier's PASS."""

    says = "mission {mission!r} has no PASS: {why}; have it judged as it stands"

    def __init__(self, mission: str, why: str) -> None:
        super().__init__(mission, why)
        self.mission, self.why = mission, why


class HashMismatch(ReconcileError):
    """Raised if a verifier judged something else than what stands now."""

    says = "the verdict is about {expected}, and {found} stands now: have it judged again"

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(expected, found)
        self.expected, self.found = expected, found


class TaskNotSucceeded(ReconcileError):
    """Raised if a mission would finish without a task that must succeed."""

    says = "task {task!r} must succeed and is {state}: the mission does not finish without it"

    def __init__(self, task: str, state: str) -> None:
        super().__init__(task, state)
        self.task, self.state = task, state


class UnknownEffect(ReconcileError):
    """Raised if a mission would finish over an effect of which nobody knows."""

    says = (
        "operation {operation_id} of task {task!r} is {state}: find out about it first; the "
        "mission may fail meanwhile, and never finishes over an unknown"
    )

    def __init__(self, task: str, operation_id: str, state: str) -> None:
        super().__init__(task, operation_id, state)
        self.task, self.operation_id, self.state = task, operation_id, state
