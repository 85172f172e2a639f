"""Rules taken away and faults left out, by name: each must break the proof of a claim.

A removal replaces one function of one module: guards call rules through their modules for that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from reconcile.flows import answers, http_receiver, recovery, sender, sweep
from reconcile.ledger import catalogue, decisions, obligations, schema, store
from reconcile.ledger.tx import Tx
from reconcile.rules import (
    actions,
    admission,
    bindings,
    claim,
    completion,
    contact,
    identity,
    money,
    moves,
    receipts,
    sending,
    sweeping,
    verdicts,
)
from reconcile.rules.actions import Transport
from reconcile.rules.states import Cause, State

from . import compare, lab, oracle, permits, plain, scene, unsafe

Removal = Callable[[], AbstractContextManager[Any]]


def removing(module: Any, name: str, instead: Any) -> Removal:
    """A removal: within the context, calls of module.name do something else."""
    return lambda: mock.patch.object(module, name, instead)


def both(*removals: Removal) -> Removal:
    """Several removals as one: a rule and the trigger that says it once more."""

    @contextmanager
    def removed() -> Iterator[None]:
        with ExitStack() as stack:
            for removal in removals:
                stack.enter_context(removal())
            yield

    return removed


def in_the_receiver(patch: str) -> Removal:
    """A removal on the other side: every receiver process runs this before it serves."""

    def spoilt(file: Path, **points: Any) -> list[str]:
        argv = plain.receiver_command(file, **points)
        at = argv.index("-c") + 1
        boot = argv[at].replace("sys.exit(", f"{patch}; sys.exit(")
        return [*argv[:at], boot, *argv[at + 1 :]]

    return both(
        removing(scene, "receiver_command", spoilt), removing(permits, "receiver_command", spoilt)
    )


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _unguarded(script: str) -> Iterator[str]:
    """The tables, and the two triggers that move an operation: without those nothing works."""
    for sql in _statements(script):
        if "CREATE TRIGGER" not in sql or re.search("decision_moves|incident_raises", sql):
            yield sql


def _without_the_trigger_on_attempts(script: str) -> Iterator[str]:
    return (sql for sql in _statements(script) if "attempt_follows_its_announcement" not in sql)


def _record_all_but_announcements(tx: Any, move: Any, **more: Any) -> Any:
    return None if move.cause is Cause.ANNOUNCED else _record(tx, move, **more)


def _always_back(operation: Any) -> Any:
    return _never_sent(replace(operation, not_sent=operation.attempts))


def _everything_resolves(snapshot: Any) -> tuple[verdicts.Verdict, State]:
    found = State.CONFIRMED if snapshot.effects else State.NOT_APPLIED
    return verdicts.classify(snapshot), found


def _forgetful_grant(self: permits.Held) -> str:
    if self.at == "before_begin":  # one that holds inside its transaction has the file's lock
        unsafe.forget_closes(self.scene.receiver_file)
    return _grant(self)


def _bind_anything(original: Any, *, effect_id: str, approver: str, latest: Any) -> Any:
    confirmed = replace(original, state=State.CONFIRMED, effect_id=effect_id)
    return _bind(confirmed, effect_id=effect_id, approver=approver, latest=latest)


class _CommittingTx(Tx):
    """What `with connection` does in manual mode: every statement is a transaction of its own."""

    def execute(self, sql: str, values: Any = ()) -> Any:
        cursor = super().execute(sql, values)
        if sql.startswith(("INSERT", "UPDATE")) and "RETURNING" not in sql:
            self._connection.execute("COMMIT")
            self._connection.execute("BEGIN IMMEDIATE")
        return cursor


def _by_age(tx: Any, lane: int, *, limit: int) -> Any:
    return tx.execute(
        "SELECT 0, operation FROM obligation WHERE lane = ? AND ended_ms IS NULL AND due_ms <= ? "
        "ORDER BY operation LIMIT ?",
        (lane, tx.now_ms, limit),
    ).fetchall()


def _send_twice(self: Any, query: Any) -> Any:
    _http_send(self, query)
    return _http_send(self, query)


def _failed_means_nothing_left(*args: Any) -> Any:
    transport, receipt, said = _send(*args)
    return (Transport.NOT_SENT if receipt is None else transport), receipt, said


_statements, _grant, _send = schema.statements, permits.Held.grant, sender._send
_digest, _bind = identity.digest_of, bindings.bind
_http_send = http_receiver.HttpReceiver.send
_record, _never_sent = decisions.record, sending.never_sent

REMOVALS: dict[str, Removal] = {
    "the crash is left out": removing(lab.Lab, "fault", lambda self, point: None),
    "the receiver forgets its close marks": removing(permits.Held, "grant", _forgetful_grant),
    "announce-before-act": both(
        removing(decisions, "record", _record_all_but_announcements),
        removing(schema, "statements", _without_the_trigger_on_attempts),
    ),
    "an earlier attempt is forgotten": removing(sending, "never_sent", _always_back),
    "the receiver ignores close marks": in_the_receiver(
        "from receiver import ledger; ledger.is_closed = lambda *_: False"
    ),
    "the receiver closes everything at once": in_the_receiver(
        "from receiver import ledger; "
        "ledger.is_closed = lambda c, _: c.execute('SELECT 1 FROM closed').fetchone() is not None"
    ),
    "the receiver refuses a second close": in_the_receiver(
        "from receiver import ledger as l; log = l.log; "
        "l.log = lambda c, r, o: log(c, r, o) if not l.is_closed(c, o) else 1 / 0"
    ),
    "the receiver knows identities": in_the_receiver(
        "from receiver import ledger as l; apply = l.apply; "
        "l.apply = lambda c, r, p: {'reply': 'closed'} if c.execute('SELECT 1 FROM effect "
        "WHERE operation_id = ?', (r['operation'],)).fetchone() else apply(c, r, p)"
    ),
    "any line is a permit": in_the_receiver(
        "import receiver.__main__ as m; "
        "m._ask = lambda _: (m._write({'reply': 'holding'}), sys.stdin.buffer.readline())"
    ),
    "one-effect": removing(sending, "one_effect", _nothing),
    "silence-decides-nothing": removing(moves, "resolving", _everything_resolves),
    "silence is taken for never sent": removing(sender, "_send", _failed_means_nothing_left),
    "absence-needs-closure": removing(verdicts, "proves_absence", lambda snapshot: True),
    "uniqueness-needs-closure": removing(verdicts, "proves_uniqueness", lambda snapshot: True),
    "closing-needs-permission": removing(contact, "closing_needs_permission", _nothing),
    "mismatch-never-resolves": removing(moves, "mismatch_never_resolves", _nothing),
    "mismatch-never-resolves, receipts": removing(receipts, "receipt_answers", lambda *_: True),
    "evidence is trusted beyond its policy": removing(moves, "within_policy", _nothing),
    "one-decision-per-version": removing(moves, "one_decision_per_version", _nothing),
    "a lost acknowledgement is not recognised": removing(decisions, "repeat_of", _nothing),
    "final-stays-final": removing(moves, "final_stays_final", _nothing),
    "no-new-while-unknown": removing(sending, "no_new_while_unknown", _nothing),
    "same-identity-only": removing(sending, "same_identity_only", _nothing),
    "a memory never ends": removing(sending, "_why_not_again", _nothing),
    "a guarantee is taken for declared": removing(contact, "resend_is_declared", _nothing),
    "restored-starts-paused": removing(contact, "restored_starts_paused", _nothing),
    "admission-rechecks-authority": removing(admission, "admission_rechecks_authority", _nothing),
    "any digest is approved": removing(admission, "same_digest", _nothing),
    "revoking is always in time": removing(admission, "in_time", lambda _: True),
    "unknown-holds-money": removing(money, "MONEY", {**money.MONEY, State.UNKNOWN: "release"}),
    "a delivery is known by nothing": both(
        removing(catalogue, "delivered", _nothing), removing(schema, "seal", _nothing)
    ),
    "a failed listing passes on": removing(sweep, "_FILE_FAILED", ()),
    "one bad row ends the sweep": removing(sweep, "_BAD_ROW", ()),
    "an answer of any type counts": removing(answers, "answer_of", lambda _, ask, *__: ask()),
    "an unresolved state has no action": removing(actions, "UNRESOLVED", frozenset()),
    "an answered question stays open": removing(obligations, "end", _nothing),
    "a sweep decides nothing": removing(sweeping, "may_decide", lambda *_: False),
    "a sweep decides everything": removing(sweeping, "may_decide", lambda *_: True),
    "token-fences-worker": removing(claim, "token_fences_worker", _nothing),
    "two generations are merged": removing(sweeping, "newer_generation_stales", _nothing),
    "nobody is called": removing(sweeping, "calls_a_person", _nothing),
    "questions are ordered by age alone": both(
        removing(obligations, "due", _by_age), removing(sweeping, "rests_ms", lambda *_, **__: 0)
    ),
    "an account is read as empty": removing(recovery, "_listing", lambda *_: ()),
    "a lower layer sends again": removing(http_receiver.HttpReceiver, "send", _send_twice),
    "completed-means-known": removing(completion, "completed_means_known", _nothing),
    "a task is taken at its word": removing(completion, "has_evidence", _nothing),
    "what was seen stays true": removing(completion, "seen_lately", _nothing),
    "compensation-is-bound": removing(bindings, "compensation_is_bound", _nothing),
    "every approval is superseded": removing(bindings, "superseded", lambda _: True),
    "any effect may be bound": removing(bindings, "bind", _bind_anything),
    "the file commits every statement": removing(store, "Tx", _CommittingTx),
    "rows are not sealed": removing(schema, "seal", _nothing),
    "the file has no triggers": removing(schema, "statements", _unguarded),
    "the file guards nothing": both(
        removing(schema, "seal", _nothing), removing(schema, "statements", _unguarded)
    ),
    "any value has a canonical text": removing(identity, "_check", _nothing),
    "the digest forgets the target": removing(
        identity, "digest_of", lambda text: _digest(text.partition("\n")[2])
    ),
    "results are compared by ==": removing(
        compare,
        "differences",
        lambda a, b, path="$": iter(()) if a == b else iter([compare.Difference(path, a, b)]),
    ),
    "the oracle sees nothing": removing(oracle, "findings", lambda *_: []),
}
