"""The smallest program that uses the library: order, and say honestly what became of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from reconcile import EffectPolicy, Ledger, ProcessReceiver, Receiver, State, dispatch, prepare


def order_vanilla(file: Path, supplier: Receiver, tubs: int) -> str:
    """Order once, however often this is called for the same tubs; what is known, in words."""
    with Ledger(file) as ledger:
        order = prepare(
            ledger,
            supplier,
            work_id="restock of Monday",
            kind="order",
            payload={"sku": "SKU-VANILLA", "tubs": tubs},
            subject="SKU-VANILLA",
        )
        if order.state is not State.PREPARED:  # an earlier run asked for the same thing
            return f"already {order.state.value}; nothing was sent"
        seen = dispatch(ledger, order.operation_id, supplier)
    outcome, allowed = seen.outcome.value, [action.value for action in seen.next_actions]
    if seen.outcome is State.UNKNOWN:  # not an error, and not a reason to order again
        return f"not established; now: {', '.join(allowed)}"
    return outcome


def supplier(file: Path, *words: str) -> Receiver:
    """The teaching receiver on a file that it makes if there is none."""
    command = [sys.executable, "-m", "receiver", str(file)]
    subprocess.run([*command, "--create", "plain"], stdin=subprocess.DEVNULL, check=True)
    policy = EffectPolicy(read_complete=True, read_authoritative=True, can_close=True)
    return ProcessReceiver([*command, *words], identity="plain", policy=policy)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("python3 -m experiments.first_use FOLDER, in the folder of this project")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    loses_the_receipt = supplier(folder / "receiver.db", "--crash", "after_commit")
    print(order_vanilla(folder / "sender.db", loses_the_receipt, 6))
    print(f"look into it: python3 -m reconcile status {folder / 'sender.db'}")
