"""A scene: one sender's file, one receiver's file, and everything that happens between them."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconcile import (
    EffectPolicy,
    Ledger,
    Operation,
    ProcessReceiver,
    Query,
    ReconcileError,
    dispatch,
    look,
    prepare,
)

from . import oracle
from .inprocess import InProcessReceiver
from .lossy import LosesReceipt
from .permits import Held
from .plain import IDENTITY, POLICY, receiver_command
from .processes import LIMIT_S
from .templates import put_ledger
from .trace import Trace, watching
from .traced import Traced

if TYPE_CHECKING:
    from .lab import Lab

CHARGE: dict[str, Any] = {"kind": "charge", "payload": {"pence": 1500}, "subject": "invoice-17"}
"""What a scene's operations propose, where nothing else is said."""


class Scene:
    """Fresh files, operations named by role. `unsafe`: the files are meant to be rejected."""

    def __init__(self, lab: Lab, folder: Path, *, unsafe: bool) -> None:
        self.lab, self.title, self.unsafe = lab, folder.name, unsafe
        self.sender, self.receiver_file = folder / "sender.db", folder / "receiver.db"
        self.trace = Trace()
        self.opened: list[sqlite3.Connection] = []
        self.undelivered: list[str] = []  # faults that were named and did not happen
        self._seen: set[str] = set()

    # --- acting ---------------------------------------------------------------------------------

    def ledger(self, **options: Any) -> Ledger:
        """Open the sender's file, watched, on the lab's clock; a new one is copied."""
        if self.sender.exists():
            self.trace.at("sender.db", "file opened again")
        else:
            put_ledger(self.sender)
        options = {
            "clock": self.lab.clock,
            "factory": watching(self.trace, self.opened),
            **options,
        }
        return Ledger(self.sender, **options)

    def receiver(self, *, crash: str | None = None, policy: EffectPolicy = POLICY) -> Traced:
        """The receiver as a process for each request, ended at a crash point if one is named."""
        argv = receiver_command(self.receiver_file, crash=crash)
        inner = ProcessReceiver(argv, identity=IDENTITY, policy=policy, limit_s=LIMIT_S)
        return Traced(self, inner, crash=crash)

    def near(self, *, policy: EffectPolicy = POLICY) -> InProcessReceiver:
        """The same receiver without a process, where none has to die."""
        return InProcessReceiver(self.receiver_file, identity=IDENTITY, policy=policy)

    def held(self, *, at: str | None = "before_begin") -> Held:
        """The receiver as a process that nobody waits for; it holds at a point, if any."""
        held = Held(self, at=at)
        self.lab.children.append(held.child)
        return held

    def unknown(self, ledger: Ledger, role: str = "charge", **changed: Any) -> Operation:
        """An operation that was done and whose receipt was lost, under its role."""
        lossy = Traced(self, LosesReceipt(self.near()))
        operation = prepare(ledger, lossy, **{**CHARGE, "work_id": role, **changed})
        self.name(operation, role)
        dispatch(ledger, operation.operation_id, lossy)
        return look(ledger, operation.operation_id)

    def raw_reply(self, request: bytes, *, crash: str | None) -> bytes:
        """Every byte that a receiver process writes for one request, up to its end."""
        argv = receiver_command(self.receiver_file, crash=crash)
        return subprocess.run(
            argv, input=request, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT_S
        ).stdout

    def name(self, operation: Operation | Query | str, role: str) -> None:
        """Call an operation by its role in everything that is reported."""
        identity = operation if isinstance(operation, str) else operation.operation_id
        self.trace.roles[identity] = role

    def copy(self, name: str) -> Scene:
        """A scene with the same files, to be spoilt: an unsafe twin that begins here."""
        twin = self.lab.scene(name, unsafe=True)
        shutil.copytree(self.sender.parent, twin.sender.parent, dirs_exist_ok=True)
        twin.trace.roles.update(self.trace.roles)
        return twin

    # --- seeing ---------------------------------------------------------------------------------

    def effects(self) -> dict[str, int]:
        """How many effects each operation has, counted from the receiver's file."""
        found = dict.fromkeys(self.trace.roles.values(), 0)
        for operation_id, rows in oracle.effects(self.receiver_file).items():
            found[self.trace.by_role(operation_id)] = len(rows)
        return found

    def states(self) -> dict[str, str]:
        """The state of each operation, read from the sender's file."""
        found = oracle.states(self.sender)
        return {self.trace.by_role(i): state for i, (state, _) in found.items()}

    def contacts(self) -> list[list[str]]:
        """The receiver's own log of applies and closes."""
        return [
            [request, self.trace.by_role(i or "the account")]
            for request, i in oracle.contacts(self.receiver_file)
        ]

    def findings(self) -> list[str]:
        """What the oracle says cannot be true of the two files."""
        return [
            self.trace.by_role(line) for line in oracle.findings(self.sender, self.receiver_file)
        ]

    def witness(self) -> None:
        """Put on the trace what is new at the receiver, read from its file."""
        for line in oracle.committed(self.receiver_file):
            if line not in self._seen:
                self._seen.add(line)
                self.trace.at("receiver.db", line)


def refusal(call: Callable[..., object], *words: object, **named: object) -> str:
    """The name of the refusal that a call ends in; "allowed" if it ends in none."""
    try:
        call(*words, **named)
    except ReconcileError as error:
        return type(error).__name__
    return "allowed"
