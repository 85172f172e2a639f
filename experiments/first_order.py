"""The smallest program that buys: a price, an approval, held money, and a supplier over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reconcile import (
    EffectPolicy,
    HttpReceiver,
    Ledger,
    Receiver,
    State,
    dispatch,
    inquire,
    look,
)
from reconcile.flows import orders, shop, work
from reconcile.rules import errors

HOUR_MS = 3600 * 1000


def buy_vanilla(store: Path, supplier: Receiver, tubs: int) -> str:
    """Order once, however often this is called for the same tubs; what is known, in words."""
    with Ledger(store) as ledger:
        work.enqueue(ledger, "restock of Monday")
        with work.holding(ledger, "restock of Monday", owner="worker 1") as claim:
            order = orders.propose(ledger, supplier, claim=claim, sku="SKU-VANILLA", quantity=tubs)
            if order.state is State.PREPARED:
                until, digest = ledger.now_ms() + HOUR_MS, order.digest
                orders.approve(
                    ledger, order.operation_id, digest=digest, actor="lucy", expires_ms=until
                )
                dispatch(ledger, order.operation_id, supplier, claim=claim)
            if look(ledger, order.operation_id).state is State.UNKNOWN:  # ask; never order anew
                with suppress(errors.NoReply, errors.NotSent):  # no answer says nothing
                    inquire(ledger, order.operation_id, supplier)
        state, money = look(ledger, order.operation_id).state, shop.budget(ledger, "GBP")
    return f"{state.value}; {money.reserved} reserved, {money.spent} spent"


def open_shop(store: Path) -> None:
    """What the store knows by itself: what may be spent, what a tub costs, who may approve."""
    with Ledger(store) as ledger:
        shop.set_budget(ledger, currency="GBP", ceiling=2000, set_by="lucy")
        shop.set_price(
            ledger,
            "SKU-VANILLA",
            supplier="lucy-local",
            unit_cost=250,
            currency="GBP",
            set_by="lucy",
        )
        shop.list_approver(ledger, "lucy")


@contextmanager
def supplier(file: Path, *words: str) -> Iterator[Receiver]:
    """The teaching supplier on a file that it makes if there is none; it ends with the block."""
    command = [sys.executable, "-m", "receiver", "--http", str(file), "--create", "lucy-local"]
    pipe = subprocess.PIPE  # the end of its input ends it
    with subprocess.Popen([*command, *words], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        policy = EffectPolicy(
            name="supplier by HTTP",
            stored_receipt=True,
            resend_same=True,
            identity_scope="account",
            identity_retention_ms=24 * HOUR_MS,
        )
        yield HttpReceiver(url, identity="lucy-local", policy=policy)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("python3 -m experiments.first_order FOLDER, in the folder of this project")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    open_shop(folder / "store.db")
    with supplier(folder / "supplier.db", "--drop-first-response") as lucy:
        try:
            print(buy_vanilla(folder / "store.db", lucy, 6))
        except errors.AlreadyClaimed as held:  # an earlier run was cut short, and may still send
            print(held)
    print(f"look into it: python3 -m reconcile status {folder / 'store.db'}")
