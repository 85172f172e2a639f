"""Mission: a contract, its tasks and what they show, read at one moment; and what names it.

Rules take it whole, so that no rule asks the ledger a second question.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from . import checks
from .errors import Malformed
from .identity import canonical_json, digest_of
from .operation import Operation

LONGEST_REFERENCE = 500


class MissionState(Enum):
    """How far a mission is. The last two are final."""

    RUNNING = "running"
    VERIFYING = "verifying"  # nothing is worked on; a verifier looks
    FINISHED = "finished"
    FAILED = "failed"


class TaskState(Enum):
    """How a task stands under the contract of today; another contract opens it again."""

    OPEN = "open"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Seen(NamedTuple):
    """Which mission a caller looked at: what it does is refused if any of these moved since."""

    contract_version: int
    world: int
    revision: int


def seen_of(seen: object) -> Seen:
    """What a caller hands in as seen. Raises Malformed if it is no Seen of three numbers."""
    checks.instance("seen", seen, Seen)
    assert isinstance(seen, Seen)
    for name, part in zip(Seen._fields, seen, strict=True):
        checks.whole(f"seen.{name}", part, least=1)
    return seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Where something can be found, and the sha256 of what stood there, in hex.

    Raises Malformed on a reference of no or more than 500 characters, or one with a NUL, or
    another digest.
    """

    reference: str
    digest: str

    def __post_init__(self) -> None:
        checks.text("reference", self.reference)
        if "\0" in self.reference:
            raise Malformed("reference", "holds a NUL, at which SQLite would end it")
        if len(self.reference) > LONGEST_REFERENCE:
            raise Malformed("reference", f"is longer than {LONGEST_REFERENCE} characters")
        checks.text("digest", self.digest)
        if len(self.digest) != 64 or set(self.digest) - set("0123456789abcdef"):
            raise Malformed("digest", "is no sha256 in 64 hex digits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """A task as a contract asks for it. `limit_ms`: how old what was seen of it may be.

    Raises Malformed if a part is ill-typed.
    """

    name: str
    limit_ms: int
    mandatory: bool = True

    def __post_init__(self) -> None:
        checks.text("task", self.name)
        checks.whole("limit_ms", self.limit_ms, least=1)
        checks.flag("mandatory", self.mandatory)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """A contract, in canonical JSON, with the tasks that it brings, and who set it."""

    contract: str
    aims: tuple[Aim, ...]
    set_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What was seen of a task, and when (UTC milliseconds), in which world."""

    what: Reference
    contract_version: int
    world: int
    observer: str
    observed_ms: int

    @property
    def said(self) -> list[object]:
        """What a verifier judges of it: what was seen and of which world; not when or by whom."""
        return [self.what.reference, self.what.digest, self.contract_version, self.world]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task at one moment, under the contract of today."""

    number: int  # its place in this file
    aim: Aim
    work_id: str  # the work item of its operations, and the item of its claims
    state: TaskState
    ended_by: str | None  # None: it is open
    check: Reference | None  # None: it did not succeed
    evidence: tuple[Reference, ...]
    sighting: Sighting | None  # the last one; None: nobody looked yet
    operations: tuple[Operation, ...]  # those that are not final, and their compensations

    @property
    def counts(self) -> bool:
        """Whether "finished" says something of it: it must succeed, or says that it did."""
        return self.aim.mandatory or self.state is TaskState.SUCCEEDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a verifier said of the mission that had this hash, at this revision of it."""

    verifier: str
    passed: bool
    hash: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mission:
    """A mission at one moment, with its tasks. Times are UTC milliseconds."""

    number: int  # its place in this file
    name: str
    contract: str  # canonical JSON: what is to be reached
    contract_version: int
    world: int  # the generation: one more whenever the world may have changed
    revision: int  # one more with each change of the mission itself
    state: MissionState
    ended_by: str | None  # None: it is not ended
    reason: str | None  # why it failed
    counts_from_ms: int  # when this world and contract began: an earlier look is of another
    tasks: tuple[Task, ...]
    judgement: Judgement | None  # the last one; None: no verifier spoke
    paused: str | None  # why its store acts on nothing; None: it is live

    @property
    def seen(self) -> Seen:
        """What a caller that looked at this says to have seen."""
        return Seen(self.contract_version, self.world, self.revision)

    @property
    def hash(self) -> str:
        """sha256 of what a verifier judges: contract, world, and each task with what it shows."""
        tasks = [
            {
                "name": task.aim.name,
                "limit_ms": task.aim.limit_ms,
                "mandatory": task.aim.mandatory,
                "state": task.state.value,
                "check": _said(task.check),
                "evidence": [_said(part) for part in task.evidence],
                "seen": task.sighting and task.sighting.said,
            }
            for task in self.tasks
        ]
        return digest_of(canonical_json([self.contract, self.contract_version, self.world, tasks]))


def work_of(mission: str, task: str) -> str:
    """The work item of a task: its parts can be taken apart in one way only."""
    return canonical_json([mission, task])


def _said(part: Reference | None) -> list[str] | None:
    return None if part is None else [part.reference, part.digest]
