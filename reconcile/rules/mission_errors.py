"""Refusals about missions: one for each condition that is missing."""

from __future__ import annotations

from .errors import ReconcileError


class UnknownMission(ReconcileError):
    """Raised if there is no such mission, or no such task in it."""

    says = "no mission or task {name!r} in this ledger: check the name, or open it first"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class MissionTaken(ReconcileError):
    """Raised if a mission of this name stands already, with another contract or other tasks."""

    says = "mission {name!r} stands already with another {part}: look at it, or take another name"

    def __init__(self, name: str, part: str) -> None:
        super().__init__(name, part)
        self.name, self.part = name, part


class MissionEnded(ReconcileError):
    """Raised if a mission has ended: nothing of it moves any more."""

    says = "mission {name!r} is {state}, which is final: open another one"

    def __init__(self, name: str, state: str) -> None:
        super().__init__(name, state)
        self.name, self.state = name, state


class StaleView(ReconcileError):
    """Raised if the caller looked at an older `what`: world, contract version or revision."""

    says = "this was decided at {what} {expected}, and it is {found} now: look again, then decide"

    def __init__(self, what: str, expected: int, found: int) -> None:
        super().__init__(what, expected, found)
        self.what, self.expected, self.found = what, expected, found


class StaleObservation(ReconcileError):
    """Raised if what was seen for a task is no longer, or never was, of the world as it is."""

    says = "task {task!r}: {why}; observe it again"

    def __init__(self, task: str, why: str) -> None:
        super().__init__(task, why)
        self.task, self.why = task, why


class NoEvidence(ReconcileError):
    """Raised if a task is said to have succeeded without a check, or without evidence."""

    says = "task {task!r} cannot succeed without {missing}"

    def __init__(self, task: str, missing: str) -> None:
        super().__init__(task, missing)
        self.task, self.missing = task, missing


class NotVerifying(ReconcileError):
    """Raised if a mission is not being verified."""

    says = "mission {name!r} is {state}: it is finished or judged only while it is verifying"

    def __init__(self, name: str, state: str) -> None:
        super().__init__(name, state)
        self.name, self.state = name, state


class NotPassed(ReconcileError):
    """Raised if no verifier passed a mission, or the last one did not."""

    says = "mission {name!r} has no verifier's PASS: {why}"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
        self.name, self.why = name, why


class OtherDigest(ReconcileError):
    """Raised if a verifier's word is about a mission as it no longer is."""

    says = "the PASS is about {passed}, and the mission is {found} now: have it verified again"

    def __init__(self, passed: str, found: str) -> None:
        super().__init__(passed, found)
        self.passed, self.found = passed, found


class TaskOpen(ReconcileError):
    """Raised if a mandatory task has not succeeded under the contract as it is."""

    says = "mandatory task {task!r} is {state}: a mission is finished only when all have succeeded"

    def __init__(self, task: str, state: str) -> None:
        super().__init__(task, state)
        self.task, self.state = task, state


class UnknownEffect(ReconcileError):
    """Raised if a mission would be finished over an effect whose outcome nobody knows."""

    says = "operation {operation_id} of this mission is unresolved: reconcile it, then finish"

    def __init__(self, operation_id: str) -> None:
        super().__init__(operation_id)
        self.operation_id = operation_id
