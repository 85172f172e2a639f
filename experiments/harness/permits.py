"""A receiver that waits for a permit. Order is made by permits and pipes, never by time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconcile import EffectPolicy, Query, Receipt, Snapshot
from reconcile.flows.process_receiver import apply_request

from .plain import IDENTITY, POLICY, receiver_command
from .processes import Child

if TYPE_CHECKING:
    from .scene import Scene


class Held:
    """One request on its way in a process of its own, and nobody waits for its reply.

    With a hold point the process says that it holds there, and goes on only by the exact permit.
    Without one it goes on by itself, as soon as no other process blocks it.
    """

    def __init__(self, scene: Scene, *, at: str | None) -> None:
        self.child = Child(receiver_command(scene.receiver_file, hold=at))
        self.identity, self.epoch = IDENTITY, 1
        self.policy: EffectPolicy = POLICY
        self.reply: dict[str, Any] | None = None
        self.scene, self.at, self._operation_id = scene, at, ""

    def send(self, query: Query) -> Receipt | None:
        """Send, see it arrive, and give up waiting."""
        self.start(apply_request(query))
        return None

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        raise NotImplementedError("this one carries a request, and nobody waits for it")

    def start(self, request: dict[str, Any]) -> None:
        """Write the request; with a hold point, wait until the process says that it holds."""
        self._operation_id = request["operation"]
        self.scene.trace.at("sender", f"{_verb(request)} {self._operation_id}", to="receiver")
        self.child.ask(request)
        if self.at is not None:
            said = self.child.hear()
            if said != {"reply": "holding"}:
                # Not raised: dispatch takes whatever a send raises for a call that failed.
                self.scene.undelivered.append(f"it was to hold at {self.at}, and said {said}")
                return
            self.scene.trace.at("receiver", f"holds {self._operation_id} at {self.at}")

    def grant(self) -> str:
        """Write the exact permit and finish. Granting again changes nothing."""
        return self.finish(f"permit {self._operation_id}\n".encode())

    def finish(self, line: bytes = b"") -> str:
        """Write a line, if any, close standard input, wait for the end; the reply in a word."""
        if not self.child.ended:
            if line:
                self.scene.trace.at(
                    "sender", self.scene.trace.by_role(line.decode()).strip(), to="receiver"
                )
            self.child.say(line)
            self.child.close_input()
            self.reply = self.child.hear()
            self.child.end()
            self.scene.witness()
            self.scene.trace.at("receiver", self._word(), to="sender")
        return self._word()

    def _word(self) -> str:
        return "no reply" if self.reply is None else str(self.reply["reply"])


def _verb(request: dict[str, Any]) -> str:
    if request["request"] == "apply":
        return "apply"
    return "close and read" if request["close"] else "read"
