"""An errand: one mission on one ledger, and the calls by which it comes to its end.

The world of the mission chapter: a task starts a review machine, and somebody looks whether it
runs. Scenarios are synthetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconcile import Ledger, Operation, Receiver, ToolResult, close, look, reconcile
from reconcile.flows import mission, tasks
from reconcile.rules.claim import Claim
from reconcile.rules.identity import digest_of
from reconcile.rules.mission import Aim, Mission, Reference, Seen

MISSION, TASK = "op_synth_042", "start"
LIMIT_MS = 3600 * 1000
AIM = Aim(name=TASK, limit_ms=LIMIT_MS)
CONTRACT: dict[str, object] = {"machine": "review-3", "state": "running"}
START: dict[str, Any] = {
    "kind": "start",
    "payload": {"machine": "review-3"},
    "subject": "review-3",
}


def shown(what: str) -> Reference:
    """A reference to a piece of evidence, and the digest of its text."""
    return Reference(reference=what, digest=digest_of(what))


class Errand:
    """The mission of this name on a ledger; without aims, one that was opened before.

    What is asked of it, it looks at first.
    """

    def __init__(
        self, ledger: Ledger, name: str = MISSION, *, aims: Sequence[Aim] = (AIM,)
    ) -> None:
        self.ledger, self.name = ledger, name
        if aims:
            mission.open_mission(ledger, name, contract=CONTRACT, aims=aims, by="ada")

    def look(self) -> Mission:
        """The mission as it stands."""
        return mission.look_mission(self.ledger, self.name)

    @property
    def seen(self) -> Seen:
        """What somebody saw who looked just now."""
        return self.look().seen

    def observe(self, task: str = TASK, *, what: str = "the panel", **changed: Any) -> Mission:
        """Somebody looks at a task, now, or as changed."""
        given = {"what": shown(what), "observer": "cam", "seen": self.seen, **changed}
        given.setdefault("observed_ms", self.ledger.now_ms())
        return tasks.observe_task(self.ledger, self.name, task, **given)

    def claim(self, task: str = TASK, **changed: Any) -> Claim:
        """A task, claimed for an hour."""
        given = {"seen": self.seen, "owner": "worker", "lease_ms": LIMIT_MS, **changed}
        return tasks.claim_task(self.ledger, self.name, task, **given)

    def command(self, receiver: Receiver, claim: Claim, **changed: Any) -> Operation:
        """The operation that starts the machine, prepared."""
        given = {**START, "seen": self.seen, **changed}
        return tasks.command(self.ledger, receiver, claim=claim, **given)

    def send(
        self, operation: Operation, receiver: Receiver, claim: Claim, **changed: Any
    ) -> ToolResult:
        """It, sent."""
        given = {"seen": self.seen, **changed}
        return tasks.dispatch(self.ledger, operation.operation_id, receiver, claim=claim, **given)

    def succeed(self, claim: Claim, **changed: Any) -> Mission:
        """The task says that it is done, by a check and a piece of evidence."""
        given = {"seen": self.seen, "check": shown("panel test"), **changed}
        given.setdefault("evidence", (shown("photograph of the panel"),))
        return tasks.succeed(self.ledger, claim=claim, **given)

    def judge(self, *, passed: bool = True, **changed: Any) -> Mission:
        """A verifier's word about the mission as it stands."""
        given = {"verifier": "vera", "judged_hash": self.look().hash, **changed}
        return mission.judge(self.ledger, self.name, passed=passed, **given)

    def verify(self) -> Mission:
        """It is handed over, and a verifier says PASS."""
        mission.verify(self.ledger, self.name)
        return self.judge()

    def finalize(self) -> Mission:
        """It is to be finished."""
        return mission.finalize(self.ledger, self.name, by="ada")

    def begin(self, task: str = TASK) -> Claim:
        """Looked at and claimed."""
        self.observe(task)
        return self.claim(task)

    def start(self, receiver: Receiver, **changed: Any) -> tuple[Operation, Claim]:
        """Looked at, claimed, commanded, sent, and looked at again."""
        claim = self.begin()
        operation = self.command(receiver, claim, **changed)
        self.send(operation, receiver, claim)
        self.observe()
        return look(self.ledger, operation.operation_id), claim

    def done(self, receiver: Receiver, **changed: Any) -> Operation:
        """All that a mission needs to finish, if its operation is known."""
        operation, claim = self.start(receiver, **changed)
        self.succeed(claim)
        self.verify()
        return operation


def find_out(ledger: Ledger, operation_id: str, receiver: Receiver) -> str:
    """Close, read and decide: the state that the evidence makes, in a word."""
    facts = close(ledger, operation_id, receiver, purpose="find out", authorized_by="ada")
    version = look(ledger, operation_id).version
    done = reconcile(ledger, operation_id, facts, reviewer="ada", expected_version=version)
    return done.state.value
