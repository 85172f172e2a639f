"""A receiver that traces what passes it, and notes a crash that was not delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile import (
    Effect,
    EffectPolicy,
    ProcessReceiver,
    Query,
    Receipt,
    Receiver,
    ReconcileError,
    Snapshot,
)

from . import oracle
from .processes import LIMIT_S

if TYPE_CHECKING:
    from .scene import Scene

CRASH_EXIT = 23


class Traced:
    """Stands between the library and a receiver, and changes nothing."""

    def __init__(self, scene: Scene, inner: Receiver, *, crash: str | None = None) -> None:
        self._scene, self._inner, self._crash = scene, inner, crash
        self.identity, self.epoch = inner.identity, inner.epoch
        self.policy: EffectPolicy = inner.policy
        self.limit_s = getattr(inner, "limit_s", LIMIT_S)

    def send(self, query: Query) -> Receipt | None:
        self._arrow(f"apply {query.operation_id}")
        try:
            receipt = self._inner.send(query)
        except ReconcileError as error:
            self._scene.witness()
            self._answer(f"no receipt: {type(error).__name__}")
            raise
        self._scene.witness()
        self._died()
        if receipt is None:
            shut = query.operation_id in oracle.closed(self._scene.receiver_file)
            self._answer(f"{query.operation_id} is closed" if shut else "no receipt")
        else:
            self._answer(f"receipt: {receipt.status} {receipt.effect_id}")
        return receipt

    def lookup(self, query: Query) -> Receipt | None:
        self._arrow(f"ask for the receipt of {query.operation_id}")
        found: Receipt | None = self._inner.lookup(query)  # type: ignore[attr-defined]
        self._answer("none is kept" if found is None else f"receipt: {found.status}")
        return found

    def listing(self) -> tuple[Effect, ...]:
        self._arrow("list the account")
        found: tuple[Effect, ...] = self._inner.listing()  # type: ignore[attr-defined]
        self._answer(f"effects: {len(found)}")
        return found

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        self._arrow(f"{'close and read' if close else 'read'} {query.operation_id}")
        try:
            snapshot = self._inner.snapshot(query, close=close)
        finally:
            self._scene.witness()
            self._died()
        flags = [
            name for name in ("complete", "authoritative", "closed") if getattr(snapshot, name)
        ]
        self._answer(f"effects: {len(snapshot.effects)}; {', '.join(flags)}")
        return snapshot

    def _arrow(self, says: str) -> None:
        self._scene.trace.at("sender", says, to="receiver")

    def _answer(self, says: str) -> None:
        self._scene.trace.at("receiver", says, to="sender")

    def _died(self) -> None:
        if self._crash is None:
            return
        ended = self._inner.last_exit if isinstance(self._inner, ProcessReceiver) else None
        if ended != CRASH_EXIT:
            # Not raised: dispatch takes whatever a send raises for a call that failed.
            self._scene.undelivered.append(f"{self._crash}: the process ended with {ended}")
            return
        self._scene.trace.at("receiver", f"dies at {self._crash}")
