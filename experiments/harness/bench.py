"""Speeds, as ratios within one run: ours against the barest thing that does the same.

Nothing here is a test: a machine may be busy. Each ratio is a quotient of medians of rounds in
turn.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from importlib import resources
from itertools import count
from statistics import median
from typing import Any
from unittest import mock

from reconcile import Ledger, Query, Receipt, dispatch, prepare
from reconcile.flows.process_receiver import apply_request
from reconcile.ledger import schema

from . import oracle
from .lab import Lab
from .plain import IDENTITY, POLICY
from .processes import ISOLATED
from .runner import run_all
from .scene import CHARGE

ROUNDS, ORDERS = 9, 60


def report() -> str:
    """Every ratio with its aim, a line each."""
    with Lab() as lab:
        trial, bare = _in_turn(ROUNDS, *_trial(lab))
        ours, plain = _in_turn(ROUNDS, *_commits(lab))
    whole, processes = _whole_check()
    cores = os.cpu_count() or 1
    return "\n".join(
        (
            "lost receipt, a trial / a bare start of the same interpreter: "
            f"{trial / bare:.2f} (aim: at most 3)",
            "prepare, dispatch and settle, ours / bare SQL of the same rows, as rates: "
            f"{plain / ours:.2f} (aim: at least 0.6)",
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


def _commits(lab: Lab) -> tuple[Callable[[], object], Callable[[], object]]:
    """Orders through the library; and the same rows in the same commits, by bare SQL."""
    scene, bare, numbers = lab.scene("ours", unsafe=True), lab.scene("bare", unsafe=True), count(1)
    instant = _Instant()

    def ours() -> None:
        with Ledger(scene.sender) as ledger:
            for _ in range(ORDERS):
                order = prepare(ledger, instant, work_id=f"order-{next(numbers)}", **CHARGE)
                dispatch(ledger, order.operation_id, instant)

    ours()
    example = oracle.dump(scene.sender)
    with closing(sqlite3.connect(bare.sender, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        script = resources.files("reconcile.ledger").joinpath("schema.sql").read_text("utf-8")
        for statement in schema.statements(script):
            if "CREATE TRIGGER" not in statement:
                connection.execute(statement)
    bare_numbers = count(1)

    def plain() -> None:
        with closing(sqlite3.connect(bare.sender, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            for _ in range(ORDERS):
                _bare_order(connection, next(bare_numbers), example)

    plain()
    rows = {table: len(found) for table, found in oracle.dump(bare.sender).items()}
    assert all(
        rows[t] == len(example[t]) for t in ("operation", "attempt", "decision", "obligation")
    )
    return ours, plain


def _bare_order(connection: sqlite3.Connection, number: int, example: dict[str, Any]) -> None:
    """What one order leaves in the file, without a rule, a check or a trigger."""
    values = list(example["operation"][0])
    values[0], values[1], values[13:] = number, f"{number:032x}", ["prepared", 1, None]
    announced, settled = (list(row) for row in example["decision"][:2])
    receipt, execute = list(example["receipt"][0]), connection.execute
    announced[0] = settled[0] = receipt[0] = number
    commits: tuple[tuple[tuple[str, list[Any]], ...], ...] = (
        ((f"INSERT INTO operation VALUES ({_marks(values)})", values),),
        (
            (f"INSERT INTO decision VALUES ({_marks(announced)})", announced),
            ("UPDATE operation SET state = 'unknown', version = 2 WHERE number = ?", [number]),
            ("INSERT INTO obligation VALUES (?, 1, 0, 0, NULL)", [number]),
            ("INSERT INTO attempt VALUES (?, 1, 0, NULL)", [number]),
        ),
        (
            ("UPDATE attempt SET transport = 'sent' WHERE operation = ?", [number]),
            (f"INSERT INTO receipt VALUES ({_marks(receipt)})", receipt),
            (f"INSERT INTO decision VALUES ({_marks(settled)})", settled),
            ("UPDATE operation SET state = 'confirmed', version = 3 WHERE number = ?", [number]),
            ("UPDATE obligation SET ended_ms = 0 WHERE operation = ?", [number]),
        ),
    )
    for commit in commits:
        execute("BEGIN IMMEDIATE")
        for sql, values in commit:
            execute(sql, values)
        execute("COMMIT")


def _marks(values: list[Any]) -> str:
    return ", ".join("?" * len(values))


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
