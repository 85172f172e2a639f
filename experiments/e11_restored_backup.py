"""The store that came back from the past.

Incident
    A disk died, and last night's backup was put in place. In the morning the worker found an order
    that, as far as its file knew, had never been sent, and sent it. It had been sent at noon, on
    the disk that died.

Observable result
    The backup, taken by the library while a commit stood only in the log, contains that commit:
    `copies.by the library` = 1 order, and `copies.by copying the file` = 0. The restored store is
    paused: `restored.dispatch` = "Paused", with `restored.sends` = 0. The account-wide reading
    lists what no row here announced: `restored.unannounced` = 1 effect. Proposing the same again
    gives the same identity: `restored.same identity` = true; asking finds the receipt, which is
    kept and moves nothing: `restored.state after asking` = "prepared". Even unpaused it would not
    be sent: `restored.effect seen` = "EffectSeen". An old copy put in the place of the live file
    by hand is noticed by the marker beside it: `put back by hand.paused` = true. There is
    `effects` = 1 effect in total.

Predict
    1. The restored file says "prepared, nothing was sent". Is that true?
       (a) Yes, it is in the file. *Misconception: a file knows what happened after it.*
       (b) It was true when the backup was made.
    2. The main file of a database in use is copied. It opens, and its check says "ok". What is in
       it?
       (a) Everything. *Misconception: what opens is whole.*
       (b) What was not in the log any more.
    3. The account lists an effect that no row here knows. What should the store do with it?
       (a) Adopt it: it is surely ours. *Misconception: what fits is ours.*
       (b) Show it to a person.

Run
    python3 run_experiment.py e11_restored_backup

Read
    1. `reconcile/ledger/copies.py` `backup` and `restore`: both are paused before they have a
       name.
    2. `reconcile/ledger/marker.py` `why_older` tells a restored store from a live one.
    3. `reconcile/rules/contact.py` `restored_starts_paused` is asked by every move.
    4. `reconcile/flows/recovery.py` `strangers` lists what no row announced.
    5. `reconcile/rules/sending.py` `nothing_was_seen` keeps a prepared order from leaving.

Break it
    The unsafe twin copies the file, puts it back, forges the marker, and lets the worker go on
    with a supplier that knows no identities: `twin.plain file copy.effects` = 2.

What this does not show
    Reopening a restored store: that needs a person who has looked at each stranger, and is not
    built. A store copied together with its marker is not noticed: nothing outside tells it apart.

Exercises
    1. Restore twice from the same backup. What keeps the two from being taken for one?
    2. Delete the marker of a live store. What happens, and why is that the right way round?
    3. Which claim of a worker outlives the restore?

Words
    backup, restore, marker, incarnation, paused, account-wide reading

Sources
    `VACUUM INTO` in the documentation of SQLite. Tokens that a restored service repeats: reports
    of jobs that ran twice, or vanished, after a restore.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from reconcile import dispatch, inquire, look
from reconcile.flows import recovery
from reconcile.ledger import copies, marker
from reconcile.rules import sending
from reconcile.rules.claim import Claim

from .harness import oracle
from .harness.lab import Lab
from .harness.scene import refusal
from .harness.shop import Shop, trading

FAULT_SHOWS = ("restored", "put back by hand", "effects", "twin", "trace")
"""The keys that change when nothing was sent after the backup."""


def run(lab: Lab) -> dict[str, Any]:
    """A backup, a send after it, a loss, and the store that was restored; and what a copy is."""
    with trading(lab) as trade:
        told: dict[str, Any] = {"copies": two_copies(lab)}
        order_id, claim, taken = before_the_loss(lab, trade)
        told["restored"] = restored(trade, order_id, claim, taken)
        told["effects"] = sum(trade.scene.effects().values())
        told["put back by hand"] = put_back_by_hand(lab)
        told["oracle"] = lab.findings()
        scene = trade.scene
    told["twin"] = {"plain file copy": plain_file_copy(lab)}
    return {**told, "trace": scene.trace.to_json()}


def two_copies(lab: Lab) -> dict[str, int]:
    """While the last commit stands only in the log: a backup, and a copy of the file."""
    with trading(lab, "copies") as trade, trade.ledger() as ledger:
        folder = trade.scene.sender.parent
        trade.ready(ledger)
        taken = copies.backup(ledger, folder / "backup.db")
        copied = Path(shutil.copyfile(trade.scene.sender, folder / "copied.db"))
        return {"by the library": orders_in(taken), "by copying the file": orders_in(copied)}


def orders_in(file: Path) -> int:
    """How many orders a file holds; none if it does not even hold the tables."""
    return len(oracle.dump(file).get("purchase", []))


def before_the_loss(lab: Lab, trade: Shop) -> tuple[str, Claim, Path]:
    """Approve, back up, and send; the answer comes to a file that is lost soon after."""
    with trade.ledger() as ledger:
        order_id, claim = trade.ready(ledger)
        taken = copies.backup(ledger, trade.scene.sender.with_name("backup.db"))
        if not lab.neutral:
            dispatch(ledger, order_id, trade.receiver(), claim=claim)
    for left in trade.scene.sender.parent.glob("sender.db*"):
        if left != marker.beside(trade.scene.sender):  # it stands elsewhere, and is not lost
            left.unlink()
    return order_id, claim, taken


def restored(trade: Shop, order_id: str, claim: Claim, taken: Path) -> dict[str, Any]:
    """What the restored store does, which is nothing, and what it finds out."""
    copies.restore(taken, trade.scene.sender)
    supplier = trade.receiver()
    with trade.ledger() as ledger:
        told: dict[str, Any] = {
            "paused": ledger.paused is not None,
            "dispatch": refusal(dispatch, ledger, order_id, supplier, claim=claim),
            "old claim": refusal(trade.draft, ledger, claim),
            "unannounced": len(recovery.strangers(ledger, supplier)),
        }
        again = trade.draft(ledger, trade.claim(ledger, claim.item))
        told["same identity"] = again.operation_id == order_id
        found = inquire(ledger, order_id, supplier)
        told["state after asking"] = found.state.value
        told["effect seen"] = refusal(sending.nothing_was_seen, replace(found, paused=None))
        told["money"] = trade.money(ledger)
        told["sends"] = look(ledger, order_id).attempts
        return told


def put_back_by_hand(lab: Lab) -> dict[str, Any]:
    """A copy of the closed file is put back over it, after more was sent."""
    with trading(lab, "put back") as trade:
        with trade.ledger() as ledger:
            order_id, claim = trade.ready(ledger)
        kept = shutil.copyfile(trade.scene.sender, trade.scene.sender.with_name("kept.db"))
        if not lab.neutral:
            with trade.ledger() as ledger:
                dispatch(ledger, order_id, trade.receiver(), claim=claim)
        shutil.copyfile(kept, trade.scene.sender)
        with trade.ledger() as ledger:
            paused = ledger.paused is not None
            again = refusal(dispatch, ledger, order_id, trade.receiver(), claim=claim)
        return {"paused": paused, "dispatch": again}


def plain_file_copy(lab: Lab) -> dict[str, Any]:
    """The unsafe twin: a file copy is put back, its marker forged, and the worker goes on."""
    with trading(lab, "copy", options=("--not-idempotent",), unsafe=True) as trade:
        sender = trade.scene.sender
        with trade.ledger() as ledger:
            order_id, claim = trade.ready(ledger)
        kept = shutil.copyfile(sender, sender.with_name("kept.db"))
        if not lab.neutral:
            send(trade, order_id, claim)
        shutil.copyfile(kept, sender)
        marker.write(sender, 1, 0)
        send(trade, order_id, claim)
        return {
            "effects": sum(trade.scene.effects().values()),
            "oracle": trade.scene.findings(),
        }


def send(trade: Shop, order_id: str, claim: Claim) -> None:
    """Open the store and send the order."""
    with trade.ledger() as ledger:
        dispatch(ledger, order_id, trade.receiver(), claim=claim)


def line(result: dict[str, Any]) -> str:
    """The result in one line."""
    copies_, found = result["copies"], result["restored"]
    return (
        f"a backup holds {copies_['by the library']} order, a copy of the file "
        f"{copies_['by copying the file']}; the restored store is {found['dispatch']} with "
        f"{found['sends']} sends and lists {found['unannounced']} effect that it never announced; "
        f"{result['effects']} effect in total; a plain copy that goes on makes "
        f"{result['twin']['plain file copy']['effects']}"
    )
