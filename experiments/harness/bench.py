"""Speeds, as ratios within one run: ours against the barest thing that does the same.

Nothing here is a test: a machine may be busy. Each ratio is a quotient of medians of rounds in
turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from statistics import median
from typing import Any
from unittest import mock

from reconcile import Ledger, Operation, Query, Receipt, Receiver, dispatch, prepare
from reconcile.flows import orders, shop
from reconcile.flows.process_receiver import apply_request
from reconcile.rules.claim import Claim

from . import bench_sweeps
from .bare import Recorded, Step, commits, exchange, open_bare, play
from .lab import Lab
from .plain import IDENTITY, POLICY
from .processes import ISOLATED
from .runner import run_all
from .scene import CHARGE
from .shop import CURRENCY, HOUR_MS, SKU, trading
from .templates import put_ledger

ROUNDS, ORDERS = 9, 60
Orders = Callable[[Recorded], None]
Send = Callable[[Query], object]


def report() -> str:
    """Every ratio with its aim, a line each."""
    with Lab() as lab:
        trial, bare = _in_turn(ROUNDS, *_trial(lab))
        charges, charge_commits = _charges(lab)
        bought, order_commits = _orders(lab)
        swept = bench_sweeps.against_bare(lab)
        batched = bench_sweeps.against_one_by_one(lab)
        alone, _ = bench_sweeps.together(lab, 1)
        four, longest_s = bench_sweeps.together(lab, 4)
    whole, processes = _whole_check()
    cores = os.cpu_count() or 1
    return "\n".join(
        (
            "lost receipt, a trial / a bare start of the same interpreter: "
            f"{trial / bare:.2f} (aim: at most 3)",
            f"prepare, dispatch and settle, {charge_commits} commits, ours / bare SQL of the same "
            f"rows, as rates: {charges:.2f} (aim: at least 0.6)",
            f"propose, approve, dispatch and settle over HTTP, {order_commits} commits, ours / "
            f"bare SQL and the same exchange, as rates: {bought:.2f} (aim: at least 0.6)",
            f"open questions answered, ours / bare SQL of the same rows, as rates: {swept:.2f} "
            "(aim: at least 0.5)",
            "the same in batches of ten / with a commit for each claim, as rates: "
            f"{batched:.2f} (aim: above 1.5)",
            f"four worker processes on one file / one, as rates: {four / alone:.2f}; none lost, "
            f"none resolved twice; the longest batch of ten took {longest_s:.2f} s",
            f"all chapters / {processes} processes x one trial / {cores} cores: "
            f"{whole / (processes * trial / cores):.2f} (aim: at most 1.5)",
        )
    )


def _in_turn(rounds: int, *things: Callable[[], object]) -> list[float]:
    """The median seconds of each, measured in turn so that a busy moment hits all alike."""
    seconds: list[list[float]] = [[] for _ in things]
    for _ in range(rounds):
        for taken, thing in zip(seconds, things, strict=True):
            begin = time.perf_counter()
            thing()
            taken.append(time.perf_counter() - begin)
    return [median(taken) for taken in seconds]


def _trial(lab: Lab) -> tuple[Callable[[], object], Callable[[], object]]:
    """A receiver that commits and dies, the sender's file opened again; and a bare start."""
    scene = lab.scene("trial", unsafe=True)  # one operation, sent in every round
    with scene.ledger() as ledger:
        operation = prepare(ledger, scene.near(), work_id="trial", **CHARGE)
    request = json.dumps(apply_request(operation.query)).encode() + b"\n"

    def trial() -> None:
        reply = scene.raw_reply(request, crash="after_commit")
        assert reply == b"", reply
        Ledger(scene.sender).close()

    def bare() -> None:
        subprocess.run([sys.executable, *ISOLATED, "-c", ""], check=True, stdin=subprocess.DEVNULL)

    return trial, bare


class _Instant:
    """A receiver that costs nothing, so that the sender's own work is measured."""

    identity, epoch, policy = IDENTITY, 1, POLICY

    def send(self, query: Query) -> Receipt:
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

    def snapshot(self, query: Query, *, close: bool = False) -> Any:
        raise NotImplementedError("nobody asks it")


def _against_bare(lab: Lab, name: str, buy: Orders, send: Send) -> tuple[float, int]:
    """The rate of these orders as a part of their bare replay's, and the commits of one order."""
    recorded = Recorded()
    with closing(open_bare(lab.scene(f"bare {name}", unsafe=True).sender)) as connection:
        steps: list[Step] = []

        def ours() -> None:
            buy(recorded)
            steps[:] = recorded.taken()

        our_s, bare_s = _in_turn(ROUNDS, ours, lambda: play(connection, steps, send))
    return bare_s / our_s, commits(steps) // ORDERS


def _charges(lab: Lab) -> tuple[float, int]:
    """Charges to a receiver that costs nothing, so that the sender's own work is measured."""
    scene, numbers, instant = lab.scene("charges", unsafe=True), count(1), _Instant()
    put_ledger(scene.sender)

    def buy(recorded: Recorded) -> None:
        receiver = recorded.receiver(instant)
        with Ledger(scene.sender, factory=recorded.connection()) as ledger:
            for _ in range(ORDERS):
                order = prepare(ledger, receiver, work_id=f"order-{next(numbers)}", **CHARGE)
                dispatch(ledger, order.operation_id, receiver)

    return _against_bare(lab, "charges", buy, lambda query: None)


def _orders(lab: Lab) -> tuple[float, int]:
    """Orders with money to a supplier over HTTP, each of another quantity, under one claim."""
    with trading(lab, "orders", unsafe=True) as trade:
        with trade.ledger() as ledger:
            shop.set_budget(ledger, currency=CURRENCY, ceiling=2**60, set_by="lucy")
            claim, tubs = trade.claim(ledger), count(1)

        def buy(recorded: Recorded) -> None:
            supplier = recorded.receiver(trade.supplier.receiver())
            with trade.ledger(factory=recorded.connection()) as ledger:
                for _ in range(ORDERS):
                    order = _approved(ledger, supplier, claim, next(tubs))
                    seen = dispatch(ledger, order.operation_id, supplier, claim=claim)
                    assert seen.authoritative, seen

        return _against_bare(lab, "orders", buy, lambda query: exchange(trade.supplier.url, query))


def _approved(ledger: Ledger, supplier: Receiver, claim: Claim, tubs: int) -> Operation:
    order = orders.propose(ledger, supplier, claim=claim, sku=SKU, quantity=tubs)
    until = ledger.now_ms() + HOUR_MS
    return orders.approve(
        ledger, order.operation_id, digest=order.digest, actor="lucy", expires_ms=until
    )


def _whole_check() -> tuple[float, int]:
    """The seconds of a run of all chapters, and how many processes it starts."""
    started = count()
    original = subprocess.Popen.__init__

    def counting(self: Any, *args: Any, **kwargs: Any) -> None:
        next(started)
        original(self, *args, **kwargs)

    with mock.patch.object(subprocess.Popen, "__init__", counting):
        begin = time.perf_counter()
        run_all()
        return time.perf_counter() - begin, next(started)
