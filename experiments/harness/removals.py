"""Rules taken away and faults left out, by name: what must break the proof of the claim that needs them.

A removal replaces one function of one module, which is why guards call rules through their modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from reconcile.flows import sender
from reconcile.ledger import decisions, obligations, schema
from reconcile.rules import bindings, checks, identity, moves, verdicts
from reconcile.rules.states import State

from . import compare, lab, oracle, permits, unsafe

Removal = Callable[[], AbstractContextManager[Any]]


def removing(module: Any, name: str, instead: Callable[..., Any]) -> Removal:
    """A removal: within the context, calls of module.name do something else."""
    return lambda: mock.patch.object(module, name, instead)


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _tables_alone(script: str) -> Iterator[str]:
    return (sql for sql in _statements(script) if "CREATE TRIGGER" not in sql)


def _everything_resolves(snapshot: Any) -> tuple[verdicts.Verdict, State]:
    found = State.CONFIRMED if snapshot.effects else State.NOT_APPLIED
    return verdicts.classify(snapshot), found


def _forgetful_grant(self: permits.Held) -> str:
    unsafe.forget_closes(self.scene.receiver_file)
    return _grant(self)


def _failed_means_nothing_left(*args: Any) -> Any:
    transport, receipt = _send(*args)
    return (sender.Transport.NOT_SENT if receipt is None else transport), receipt


_statements, _grant, _send = schema.statements, permits.Held.grant, sender._send
_digest = identity.digest_of

REMOVALS: dict[str, Removal] = {
    "the crash is left out": removing(lab.Lab, "fault", lambda self, point: None),
    "the receiver forgets its close marks": removing(permits.Held, "grant", _forgetful_grant),
    "one-effect": removing(moves, "one_effect", _nothing),
    "silence-decides-nothing": removing(moves, "resolving", _everything_resolves),
    "silence is taken for never sent": removing(sender, "_send", _failed_means_nothing_left),
    "absence-needs-closure": removing(verdicts, "proves_absence", lambda snapshot: True),
    "uniqueness-needs-closure": removing(verdicts, "proves_uniqueness", lambda snapshot: True),
    "closing-needs-permission": removing(moves, "closing_needs_permission", _nothing),
    "mismatch-never-resolves": removing(moves, "mismatch_never_resolves", _nothing),
    "mismatch-never-resolves, receipts": removing(moves, "receipt_answers", lambda *_: True),
    "evidence is trusted beyond its policy": removing(moves, "within_policy", _nothing),
    "one-decision-per-version": removing(moves, "one_decision_per_version", _nothing),
    "a lost acknowledgement is not recognised": removing(decisions, "repeat_of", _nothing),
    "final-stays-final": removing(moves, "final_stays_final", _nothing),
    "compensation-is-bound": removing(bindings, "compensation_is_bound", _nothing),
    "every approval is superseded": removing(bindings, "superseded", lambda _: True),
    "nothing-wedges": removing(obligations, "begin", _nothing),
    "rows are not sealed": removing(schema, "seal", _nothing),
    "the file has no triggers": removing(schema, "statements", _tables_alone),
    "any value has a canonical text": removing(identity, "_check", _nothing),
    "any text names something": removing(checks, "text", lambda place, value: value),
    "the digest forgets the target": removing(
        identity, "digest_of", lambda text: _digest(text.partition("\n")[2])
    ),
    "results are compared by ==": removing(
        compare,
        "differences",
        lambda a, b: iter(()) if a == b else iter([compare.Difference("$", a, b)]),
    ),
    "the oracle sees nothing": removing(oracle, "findings", lambda *_: []),
}
