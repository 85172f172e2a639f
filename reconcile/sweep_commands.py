"""The operator's sweep: every question that is due is visited once, batch by batch."""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import suppress

from . import sweep_report
from .flows.http_receiver import HttpReceiver
from .flows.preparation import scope_of
from .flows.receivers import Receiver
from .flows.sweep import SweepSummary, reconcile_once
from .ledger import views
from .ledger.store import Ledger
from .rules.errors import Malformed
from .rules.operation import Scope
from .rules.policy import EffectPolicy


def sweep(given: Namespace, busy_ms: int) -> str:
    """Sweep until nothing is due, or until a sweep only meets errors."""
    provider, scope, batch = _provider(given), _scope(given.scope), _batch(given.batch)
    total = SweepSummary(claimed=0, resolved=0, unknown=0, errors=0)
    with Ledger(given.file, busy_ms=busy_ms, must_exist=True) as ledger:
        while True:
            done = reconcile_once(ledger, provider, worker=given.worker, scope=scope, batch=batch)
            total = _sum(total, done)
            _progress(total)
            if not done.claimed:
                break
        called = views.count_called(ledger)
    _progress(None)
    return sweep_report.swept(total, called=called)


def _provider(given: Namespace) -> Receiver | None:
    """The supplier at --url; without one the honest stub, which finds nothing."""
    if given.url is None and given.supplier is None:
        return None
    if given.url is None or given.supplier is None:
        raise Malformed("arguments", "--supplier and --url are given together, or neither is")
    words = tuple(filter(None, given.may_decide.split(",")))
    present = EffectPolicy(name="given to this sweep", sweep_may_decide=words)
    return HttpReceiver(given.url, identity=given.supplier, policy=present)


def _scope(text: str | None) -> Scope:
    return Scope() if text is None else scope_of(tuple(text.split("/")))


def _batch(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 4):
        raise Malformed("--batch", f"needs a whole number, not {text!r}")
    return int(text)


def _sum(left: SweepSummary, right: SweepSummary) -> SweepSummary:
    names = SweepSummary.__dataclass_fields__
    return SweepSummary(**{name: getattr(left, name) + getattr(right, name) for name in names})


def _progress(total: SweepSummary | None) -> None:
    """One line on a terminal, rewritten by each batch; nothing elsewhere. None ends it."""
    if sys.stderr is None or not sys.stderr.isatty():
        return
    line = "" if total is None else sweep_report.tally(total)
    with suppress(OSError):  # who watches may go away; the sweep goes on
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()
