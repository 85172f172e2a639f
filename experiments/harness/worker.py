"""A worker that is a process of its own, so that it can really die. It follows a plan.

The plan is one JSON object: the sender's `file`; the `provider`, as `provider_of` names it; the
`clock` to start from; `steps`, in order; and the fault, `at` and `how` as in `faults`. With `hold`
it says so with each answer in its hands, and waits for the exact permit line. It says one JSON
line for each step that it survived, and one that says where it was struck.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import reconcile as library
from reconcile.rules.operation import Scope

from .faults import EXIT, Fault
from .inprocess import InProcessSupplier
from .plain import IDENTITY, POLICY
from .processes import Child, FaultNotDelivered, command
from .supplier import KEYED

LEASE_MS = 120_000
PERMIT = b"go on\n"
DECIDES = ("unique_exact_match", "terminal_absence", "receipt")
PLAIN = replace(POLICY, sweep_may_decide=DECIDES)
ACCOUNT = replace(KEYED, sweep_may_decide=DECIDES)


def main(argv: list[str]) -> int:
    plan = json.loads(argv[0])
    fault = Fault(plan["at"], how=plan["how"], tell=lambda point: _say({"struck": point}))
    provider = fault.receiver(provider_of(plan["provider"]))
    if plan.get("hold"):
        provider = _Holds(provider)
    clock = count(plan["clock"]).__next__
    with library.Ledger(plan["file"], clock=clock, factory=fault.connection()) as ledger:
        for step in plan["steps"]:
            began = time.perf_counter()
            said = _sweep(ledger, provider, plan) if step == "sweep" else _order(ledger, provider)
            took_ms = round((time.perf_counter() - began) * 1000)
            _say({"step": step, "said": said, "took_ms": took_ms})
    return 0


def provider_of(plan: dict[str, Any]) -> library.Receiver:
    """The provider that a plan names: an account, by HTTP if it has a `url`, or the stub."""
    if "url" in plan:
        return library.HttpReceiver(plan["url"], identity=plan["identity"], policy=ACCOUNT)
    if plan["kind"] == "stub":
        return library.UnavailableReceiver(plan["identity"])
    terms = {"identity": IDENTITY, "policy": ACCOUNT, **plan.get("terms", {})}
    return InProcessSupplier(Path(plan["file"]), **terms)


class _Holds:
    """A provider whose answers wait for a permit, so that leases end meanwhile."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.identity, self.epoch, self.policy = inner.identity, inner.epoch, inner.policy

    def send(self, query: library.Query) -> library.Receipt | None:
        raise AssertionError("a worker that holds sends nothing")

    def snapshot(self, query: library.Query, *, close: bool = False) -> library.Snapshot:
        found: library.Snapshot = self._inner.snapshot(query, close=close)
        return found

    def lookup(self, query: library.Query) -> library.Receipt | None:
        found: library.Receipt | None = self._inner.lookup(query)
        _say({"holding": True})
        if sys.stdin.buffer.readline() != PERMIT:
            os._exit(EXIT)
        return found


def _sweep(
    ledger: library.Ledger, provider: library.Receiver, plan: dict[str, Any]
) -> dict[str, int]:
    done = library.reconcile_once(
        ledger,
        provider,
        worker=plan["worker"],
        scope=Scope(),
        batch=plan["batch"],
        lease_ms=LEASE_MS,
    )
    return {name: getattr(done, name) for name in library.SweepSummary.__dataclass_fields__}


def _order(ledger: library.Ledger, provider: library.Receiver) -> str:
    """Order once, as a process does that knows nothing of its earlier lives."""
    order = {"work_id": "order", "kind": "charge", "payload": {"pence": 1500}, "subject": "bill"}
    operation = library.prepare(ledger, provider, **order)  # type: ignore[arg-type]
    try:
        return library.dispatch(ledger, operation.operation_id, provider).outcome.value
    except library.ReconcileError as refusal:
        return type(refusal).__name__


def _say(line: dict[str, object]) -> None:
    os.write(1, (json.dumps(line) + "\n").encode())


def live(plan: dict[str, Any]) -> tuple[list[Any], str | None]:
    """One life of such a process: what it said step by step, and where it was struck.

    None: it was not to be struck. Raises FaultNotDelivered if it ended in any other way than its
    plan says.
    """
    return told_by(start(plan), plan)


def start(plan: dict[str, Any]) -> Child:
    """Such a process, begun."""
    return Child(command("experiments.harness.worker", json.dumps(plan)))


def told_by(child: Child, plan: dict[str, Any]) -> tuple[list[Any], str | None]:
    """What a process says to its end, as `live` gives it. Raises as that does."""
    lines = []
    while (line := child.hear()) is not None:
        lines.append(line)
    status = child.end()
    struck = lines.pop()["struck"] if lines and "struck" in lines[-1] else None
    lived = (status, struck) == (0, None)
    may_live = plan["at"] is None or isinstance(plan["at"], int)  # it may end before a number
    if (lived and not may_live) or (not lived and (status != EXIT or struck is None)):
        raise FaultNotDelivered(f"ended with {status}, struck at {struck}: {plan['at']}")
    return [line["said"] for line in lines], struck


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
