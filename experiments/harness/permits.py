"""A receiver that waits for a permit. Order is made by permits and pipes, never by time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconcile import EffectPolicy, Query, Receipt, Snapshot
from reconcile.flows.process_receiver import apply_request, snapshot_request

from .plain import IDENTITY, POLICY
from .processes import Child

if TYPE_CHECKING:
    from .scene import Scene


class Held:
    """One request on its way: it left, its process waits, and whoever sent it has stopped
    waiting."""

    def __init__(self, scene: Scene, argv: list[str]) -> None:
        self.child = Child(argv)
        self.identity, self.epoch = IDENTITY, 1
        self.policy: EffectPolicy = POLICY
        self._scene, self._operation_id = scene, ""

    def send(self, query: Query) -> Receipt | None:
        """Send, see it arrive, and give up waiting."""
        self.start(apply_request(query))
        return None

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        raise NotImplementedError("this one only carries a delayed original")

    def start(self, request: dict[str, Any], *, holds: bool = True) -> None:
        """Write the request; wait until the process says that it holds, unless another one blocks
        it."""
        self._operation_id = request["operation"]
        self._scene.trace.at("sender", f"{_verb(request)} {self._operation_id}", to="receiver")
        self.child.ask(request)
        if holds:
            said = self.child.hear()
            assert said == {"reply": "holding"}, said
            self._scene.trace.at("receiver", f"holds {self._operation_id}")

    def close(self, query: Query) -> None:
        """Ask to close and read, and see it hold."""
        self.start(snapshot_request(query, close=True))

    def grant(self) -> dict[str, Any] | None:
        """Write the exact permit, wait for the end, and return the reply: None if there was
        none."""
        return self.answer(f"permit {self._operation_id}\n".encode(), "permit")

    def answer(self, line: bytes, says: str) -> dict[str, Any] | None:
        """Write any line instead of the permit, then close standard input; return the reply."""
        self._scene.trace.at("sender", f"{says} {self._operation_id}", to="receiver")
        self.child.say(line)
        self.child.close_input()
        reply = self.child.hear()
        self.child.end()
        self._scene.witness()
        self._scene.trace.at(
            "receiver", "no reply" if reply is None else f"{reply['reply']}", to="sender"
        )
        return reply


def _verb(request: dict[str, Any]) -> str:
    if request["request"] == "apply":
        return "apply"
    return "close and read" if request["close"] else "read"
