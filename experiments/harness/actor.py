"""A sender that is a process of its own, so that it can really die. It follows a plan.

The plan is one JSON object: the sender's `file`, the `receiver` command, the `clock` to start
from, the `steps` (order, decide), and the fault: `at` and `how`, as in `faults`. It says one JSON
line for each step it survived.
"""

from __future__ import annotations

import json
import sys
from itertools import count
from typing import Any

import reconcile as library

from .faults import Fault
from .plain import IDENTITY, POLICY

ORDER: dict[str, Any] = {
    "work_id": "order-1",
    "kind": "charge",
    "payload": {"pence": 1500},
    "subject": "invoice-1",
}


def main(argv: list[str]) -> int:
    plan = json.loads(argv[0])
    fault = Fault(plan.get("at"), how=plan.get("how", "exit"))
    plain = library.ProcessReceiver(plan["receiver"], identity=IDENTITY, policy=POLICY)
    receiver = fault.receiver(plain)
    clock = count(plan["clock"]).__next__
    with library.Ledger(plan["file"], clock=clock, factory=fault.connection()) as ledger:
        for step in plan["steps"]:
            said = _order(ledger, receiver) if step == "order" else _decide(ledger, receiver, plan)
            _say({"step": step, "said": said})
    _say({"step": "end", "points": fault.points})
    return 0


def _order(ledger: library.Ledger, receiver: library.Receiver) -> str:
    operation = library.prepare(ledger, receiver, **ORDER)
    return library.dispatch(ledger, operation.operation_id, receiver).outcome.value


def _decide(ledger: library.Ledger, receiver: library.Receiver, plan: dict[str, Any]) -> str:
    operation = library.look(ledger, plan["operation_id"])
    facts = receiver.snapshot(operation.query, close=True)
    done = library.reconcile(
        ledger,
        operation.operation_id,
        facts,
        reviewer=plan["reviewer"],
        expected_version=plan["version"],
    )
    return done.state.value


def _say(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
