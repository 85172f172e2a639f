"""How fast open questions are answered, beside the barest thing that writes the same rows."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from itertools import count
from statistics import median
from typing import Any

from reconcile import Ledger, Query, Receipt, Snapshot, dispatch, prepare, reconcile_once
from reconcile.rules.operation import Scope

from . import oracle, worker
from .bare import Recorded, open_bare, play
from .inprocess import InProcessSupplier
from .lab import Lab
from .lossy import LosesReceipt
from .plain import IDENTITY
from .processes import Child
from .scene import CHARGE
from .supplier import KEYED
from .templates import put_ledger

ROUNDS, QUESTIONS, SHARED = 7, 60, 600
POLICY = replace(KEYED, sweep_may_decide=("receipt",))


class _Keeps:
    """A provider that costs nothing: every reply is lost, and every receipt is kept."""

    identity, epoch, policy = IDENTITY, 1, POLICY

    def send(self, query: Query) -> Receipt | None:
        return None

    def lookup(self, query: Query) -> Receipt:
        return Receipt(
            operation_id=query.operation_id,
            status="accepted",
            effect_id=f"{query.operation_id}#1",
            kind=query.kind,
            payload=query.payload,
            compensates=query.compensates,
            receiver=IDENTITY,
            epoch=1,
        )

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        raise NotImplementedError("its receipts say everything")


def against_bare(lab: Lab) -> float:
    """The rate of answers as a part of that of bare SQL, the same rows in the same commits."""
    scene, numbers, recorded = lab.scene("sweeps", unsafe=True), count(1), Recorded()
    put_ledger(scene.sender)
    ours_s: list[float] = []
    bare_s: list[float] = []
    with (
        closing(open_bare(lab.scene("bare sweeps", unsafe=True).sender)) as bare,
        Ledger(scene.sender, factory=recorded.connection()) as ledger,
    ):
        for _ in range(ROUNDS):
            _ask(ledger, numbers)
            play(bare, recorded.taken(), _nobody)
            ours_s.append(_drain(ledger, batch=10))
            steps = recorded.taken()
            begin = time.perf_counter()
            play(bare, steps, _nobody)
            bare_s.append(time.perf_counter() - begin)
    return median(bare_s) / median(ours_s)


def against_one_by_one(lab: Lab) -> float:
    """The rate of answers in batches of ten, beside a commit for each claim."""
    scene, numbers = lab.scene("batches", unsafe=True), count(1)
    put_ledger(scene.sender)
    seconds: dict[int, list[float]] = {1: [], 10: []}
    with Ledger(scene.sender) as ledger:
        for _ in range(ROUNDS):
            for batch, taken in seconds.items():
                _ask(ledger, numbers)
                taken.append(_drain(ledger, batch=batch))
    return median(seconds[1]) / median(seconds[10])


def together(lab: Lab, workers: int) -> tuple[float, float]:
    """How many questions a second so many worker processes answer together on one file, and the
    longest that one of them took for a batch of ten, in seconds.

    Raises AssertionError if one was lost, or answered twice.
    """
    scene = lab.scene(f"{workers} workers", unsafe=True)
    put_ledger(scene.sender)
    account = InProcessSupplier(scene.receiver_file, identity=IDENTITY, policy=worker.ACCOUNT)
    lossy: Any = LosesReceipt(account)
    with Ledger(scene.sender, clock=lab.clock) as ledger:
        for number in range(SHARED):
            work_id = f"charge-{number}"
            words = {**CHARGE, "work_id": work_id, "subject": work_id}
            dispatch(ledger, prepare(ledger, lossy, **words).operation_id, lossy)
    plan = {
        "file": str(scene.sender),
        "provider": {"kind": "account", "file": str(scene.receiver_file)},
        "clock": lab.clock(),
        "steps": ["sweep"] * (SHARED // 10 + 1),
        "batch": 10,
        "at": None,
        "how": "exit",
    }
    plans = [{**plan, "worker": f"worker {number}"} for number in range(workers)]
    begin = time.perf_counter()
    children = [worker.start(each) for each in plans]
    lab.children += children
    lines = [line for child in children for line in _heard(child)]
    seconds = time.perf_counter() - begin
    assert sum(line["said"]["resolved"] for line in lines) == SHARED, lines
    decided = "SELECT count(*) FROM decision WHERE cause = 'receipt'"
    assert oracle.rows(scene.sender, decided) == [(SHARED,)]
    return SHARED / seconds, max(line["took_ms"] for line in lines) / 1000


def _heard(child: Child) -> list[dict[str, Any]]:
    """Every line of a process that lives to its end."""
    lines = []
    while (line := child.hear()) is not None:
        lines.append(line)
    assert child.end() == 0
    return lines


def _nobody(query: Query) -> None:
    return None


def _ask(ledger: Ledger, numbers: count[int]) -> None:
    """As many open questions as a round answers."""
    for _ in range(QUESTIONS):
        named = {"work_id": f"charge-{next(numbers)}"}
        operation = prepare(ledger, _Keeps(), **{**CHARGE, **named, "subject": named["work_id"]})
        dispatch(ledger, operation.operation_id, _Keeps())


def _drain(ledger: Ledger, *, batch: int) -> float:
    """The seconds that it took to answer them all."""
    begin, left = time.perf_counter(), QUESTIONS
    while left:
        done = reconcile_once(ledger, _Keeps(), worker="bench", scope=Scope(), batch=batch)
        assert done.resolved and not done.errors, done
        left -= done.resolved
    return time.perf_counter() - begin
