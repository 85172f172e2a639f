"""Copies of a ledger: a backup, a restored store, a file put back or moved. None of them acts.

Nothing inside a file can tell that it is an old copy. So the tests make copies in every way that
an operator would, and ask each for the same two things: it knows that it is one, and nothing is
sent or decided from it.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import unittest
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import reconcile as library
from experiments.harness import oracle
from experiments.harness.faults import EXIT, Fault
from experiments.harness.lab import BIRTH_MS
from experiments.harness.plain import receiver_command
from experiments.harness.processes import ISOLATED, LIMIT_S, Child, command, root_of
from experiments.harness.supplier import KEYED
from experiments.tests.base import ORDER, LabCase
from experiments.tests.buying import (
    Forgets,
    Keyed,
    Unreached,
    open_shop,
    proposed,
    ready,
)
from experiments.tests.shop import answer
from reconcile import (
    Action,
    Ledger,
    Operation,
    State,
    UnavailableReceiver,
    close,
    dispatch,
    inquire,
    look,
    next_actions,
    observe,
    prepare,
    resend,
)
from reconcile.flows import orders, settlement, work
from reconcile.flows.recovery import strangers
from reconcile.ledger import copies, marker
from reconcile.rules import errors, sending

CLOSING = replace(KEYED, can_close=True)
ROOT = root_of("reconcile")
Call = Callable[[Ledger], object]


class CopyCase(LabCase):
    """A live ledger with orders, and places for copies of it."""

    def setUp(self) -> None:
        super().setUp()
        self.scene = self.lab.scene("life", unsafe=True)  # a copy put back is no lawful file
        self.supplier = Keyed(self.scene.receiver_file, CLOSING)
        self.folder = self.scene.sender.parent
        self.kept, self.elsewhere = self.folder / "kept.db", self.folder / "elsewhere.db"

    def ledger(self, file: Path | None = None, **options: Any) -> Ledger:
        return Ledger(file or self.scene.sender, clock=self.lab.clock, **options)

    def made(self, ledger: Ledger, work_id: str) -> Operation:
        return prepare(ledger, self.supplier, **{**ORDER, "work_id": work_id, "subject": work_id})

    def sent(self, ledger: Ledger, work_id: str) -> Operation:
        """An operation that was done and whose receipt was lost."""
        operation = self.made(ledger, work_id)
        dispatch(ledger, operation.operation_id, Forgets(self.scene.receiver_file, CLOSING))
        return look(ledger, operation.operation_id)

    def assert_acts_on_nothing(self, file: Path, why: str) -> None:
        """A copy says why it is paused, in the file too, and sends nothing."""
        with self.ledger(file) as ledger:
            self.assertRegex(str(ledger.paused), why)
            operation = self.made(ledger, f"asked of {file.name}")
            before, there = oracle.dump(file), oracle.dump(self.scene.receiver_file)
            with self.assertRaisesRegex(errors.Paused, why):
                dispatch(ledger, operation.operation_id, self.supplier)
        self.assertRegex(str(store(file)[2]), why)
        self.assertEqual(oracle.dump(file), before)
        self.assertEqual(oracle.dump(self.scene.receiver_file), there)

    def assert_live(self, file: Path) -> None:
        with self.ledger(file) as ledger:
            self.assertIsNone(ledger.paused)
        self.assertIsNone(store(file)[2])


class TheBackup(CopyCase):
    def test_a_backup_holds_what_is_only_in_the_log_and_a_file_copy_does_not(self) -> None:
        """O19, C14: both are taken in the same moment, and both open without a complaint."""
        copied = self.folder / "copied.db"
        with self.ledger() as ledger:
            first = self.made(ledger, "first")
        with self.ledger() as ledger:
            second = self.made(ledger, "second")
            shutil.copyfile(self.scene.sender, copied)
            copies.backup(ledger, self.kept)
        self.assertEqual(list(oracle.states(copied)), [first.operation_id])
        self.assertEqual(list(oracle.states(self.kept)), [first.operation_id, second.operation_id])
        for file in (copied, self.kept):
            self.assertEqual(oracle.rows(file, "PRAGMA integrity_check"), [("ok",)])

    def test_a_backup_leaves_the_ledger_as_it_was_and_live(self) -> None:
        """O19: no row, no marker and no pause of the ledger changes by it."""
        with self.ledger() as ledger:
            self.sent(ledger, "sent")
            before, beside = oracle.dump(self.scene.sender), marker.read(self.scene.sender)
            self.assertEqual(copies.backup(ledger, self.kept), self.kept)
            self.assertEqual(oracle.dump(self.scene.sender), before)
            self.assertEqual(marker.read(self.scene.sender), beside)
            self.sent(ledger, "afterwards")
        self.assert_live(self.scene.sender)
        there = sorted(path.name for path in self.folder.glob("kept*"))
        self.assertEqual(there, ["kept.db"])

    def test_a_backup_differs_from_its_ledger_by_its_pause_alone(self) -> None:
        """O19, C14: every committed row of every table is in it; its pause is one more write."""
        with self.ledger() as ledger:
            self.sent(ledger, "sent")
            copies.backup(ledger, self.kept)
        there, here = oracle.dump(self.kept), oracle.dump(self.scene.sender)
        self.assertEqual(here.pop("store"), [(1, 1, 3, None)])
        self.assertEqual(there.pop("store"), [(1, 1, 4, "it is a backup of sender.db")])
        self.assertEqual(there, here)

    def test_a_backup_is_paused_by_itself_whatever_marker_is_beside_it(self) -> None:
        """O19: also under the name of the ledger, beside the marker of the ledger."""
        with self.ledger() as ledger:
            self.sent(ledger, "sent")
            copies.backup(ledger, self.kept)
        os.replace(self.kept, self.scene.sender)
        self.assert_acts_on_nothing(self.scene.sender, "backup of sender.db")

    def test_no_copy_is_made_over_what_stands_there(self) -> None:
        """O19: neither over a file, a ledger, itself or a folder; not a byte changes."""
        taken, folder = self.folder / "taken", self.folder / "folder"
        taken.write_bytes(b"precious")
        folder.mkdir()
        with self.ledger() as ledger:
            copies.backup(ledger, self.kept)
            before = oracle.dump(self.scene.sender)
            for place in (taken, self.scene.sender, self.kept, folder):
                tries: tuple[Callable[[], object], ...] = (
                    partial(copies.backup, ledger, place),
                    partial(copies.restore, self.kept, place),
                )
                for copy in tries:
                    with (
                        self.subTest(place),
                        self.assertRaises((errors.StorageFailed, errors.ForeignFile)),
                    ):
                        copy()
            self.assertEqual(oracle.dump(self.scene.sender), before)
        self.assertEqual(taken.read_bytes(), b"precious")
        self.assert_live(self.scene.sender)
        self.assertEqual(list(self.folder.glob("*.part*")), [])

    def test_of_two_backups_to_one_name_at_once_one_succeeds_and_is_whole(self) -> None:
        """O19, C14: the other is told so, whichever of its steps it had reached."""
        with self.ledger() as ledger:
            self.sent(ledger, "sent")
        rows = oracle.dump(self.scene.sender)
        del rows["store"]
        start = threading.Barrier(2)

        def backed_up(place: Path) -> bool:
            with self.ledger() as ledger:
                start.wait(LIMIT_S)
                try:
                    return copies.backup(ledger, place) == place
                except errors.StorageFailed:
                    return False

        with ThreadPoolExecutor(2) as pool:
            for turn in range(30):
                place = self.folder / f"at once {turn}.db"
                done = list(pool.map(backed_up, [place] * 2))
                there = oracle.dump(place)
                with self.subTest(turn=turn):
                    self.assertEqual(sorted(done), [False, True])
                    self.assertRegex(str(there.pop("store")), "it is a backup of sender.db")
                    self.assertEqual(there, rows)
        self.assertEqual(list(self.folder.glob("*.part*")), [])

    def test_a_backup_that_another_one_overtakes_leaves_that_one_whole(self) -> None:
        """O19, C14: it ends between the copy of the first one and its name."""

        class Overtaken(Ledger):
            def copy_into(at, path: Path) -> None:
                super().copy_into(path)
                with self.ledger() as other:
                    self.made(other, "afterwards")
                    copies.backup(other, self.kept)

        with self.ledger() as ledger:
            self.sent(ledger, "sent")
        with (
            Overtaken(self.scene.sender, clock=self.lab.clock) as ledger,
            self.assertRaisesRegex(errors.StorageFailed, "exists already"),
        ):
            copies.backup(ledger, self.kept)
        there, here = oracle.dump(self.kept), oracle.dump(self.scene.sender)
        self.assertEqual(there.pop("store"), [(1, 1, 5, "it is a backup of sender.db")])
        del here["store"]
        self.assertEqual(there, here)
        self.assertEqual(list(self.folder.glob("*.part*")), [])

    def test_a_restore_that_a_new_ledger_overtakes_leaves_that_one_live(self) -> None:
        """O19: it is told that the name is taken, and changes no marker that is not its own."""

        class Overtaken(Ledger):
            def copy_into(at, path: Path) -> None:
                super().copy_into(path)
                with self.ledger(self.elsewhere) as other:
                    self.made(other, "meanwhile")

        with self.ledger() as ledger:
            copies.backup(ledger, self.kept)
        with (
            mock.patch.object(copies, "Ledger", Overtaken),
            self.assertRaisesRegex(errors.StorageFailed, "exists already"),
        ):
            copies.restore(self.kept, self.elsewhere)
        self.assert_live(self.elsewhere)
        self.assertEqual(marker.read(self.elsewhere), (1, 1))

    def test_no_copy_removes_a_file_that_it_did_not_make_whatever_its_name(self) -> None:
        """O19: a backup, or a live ledger, that is called as a part of a copy might be."""
        part = self.folder / "bk.db.part"
        with self.ledger() as ledger:
            sent = self.sent(ledger, "sent")
            copies.backup(ledger, part)
            before = part.read_bytes()
            copies.restore(part, self.folder / "bk.db")
            self.assertEqual(part.read_bytes(), before)
            with self.ledger(self.folder / "x.db.part") as live:
                other = self.made(live, "of a live one")
                copies.backup(ledger, self.folder / "x.db")
                self.assertEqual(look(live, other.operation_id).work_id, "of a live one")
                self.made(live, "afterwards")
        self.assertEqual(len(oracle.states(self.folder / "x.db.part")), 2)
        self.assert_live(self.folder / "x.db.part")
        for copy in ("bk.db.part", "bk.db", "x.db"):
            self.assertEqual(list(oracle.states(self.folder / copy)), [sent.operation_id])

    def test_a_copy_gets_its_name_also_where_a_file_can_have_one_name_alone(self) -> None:
        """O19: it is renamed where the file system has no links; a failure is a typed error."""
        no_links = mock.patch.object(os, "link", side_effect=PermissionError("no links here"))
        with self.ledger() as ledger, no_links:
            copies.backup(ledger, self.kept)
            copies.restore(self.kept, self.elsewhere)
            with (
                mock.patch.object(os, "replace", side_effect=OSError("nor names")),
                self.assertRaisesRegex(errors.StorageFailed, "nor names"),
            ):
                copies.backup(ledger, self.folder / "unnamed.db")
        self.assert_acts_on_nothing(self.kept, "backup of sender.db")
        self.assert_acts_on_nothing(self.elsewhere, "restored from kept.db")
        self.assertFalse((self.folder / "unnamed.db").exists())
        self.assertEqual(list(self.folder.glob("*.part*")), [])

    def test_no_copy_is_made_beside_the_log_of_a_ledger_that_is_gone(self) -> None:
        """O19: SQLite would write that log over the copy, pause and all."""
        with self.ledger() as ledger:
            copies.backup(ledger, self.kept)
            self.made(ledger, "in the log")
            shutil.copyfile(f"{self.scene.sender}-wal", self.folder / "lost.db-wal")
            tries: tuple[Callable[[], object], ...] = (
                lambda: copies.backup(ledger, self.folder / "lost.db"),
                lambda: copies.restore(self.kept, self.folder / "lost.db"),
            )
            for copy in tries:
                with self.assertRaisesRegex(errors.StorageFailed, "lost.db-wal.*move it away"):
                    copy()
        os.remove(self.folder / "lost.db-wal")
        self.assertEqual(copies.restore(self.kept, self.folder / "lost.db").name, "lost.db")

    def test_what_is_no_backup_is_not_restored_and_not_changed(self) -> None:
        """O19, C14: nothing there, an empty file, text, another program's file."""
        empty, text, other = (self.folder / name for name in ("empty", "text", "other"))
        empty.touch()
        text.write_bytes(b"no database, but long enough to be one\n" * 40)
        with closing(sqlite3.connect(other, isolation_level=None)) as connection:
            connection.execute("CREATE TABLE theirs (x)")
        for file in (empty, text, other):
            before = file.read_bytes()
            with self.subTest(file.name), self.assertRaises(errors.ForeignFile):
                copies.restore(file, self.elsewhere)
            self.assertEqual(file.read_bytes(), before)
        with self.assertRaises(errors.StorageFailed):
            copies.restore(self.folder / "missing", self.elsewhere)
        self.assertFalse((self.folder / "missing").exists())
        self.assertEqual(list(self.folder.glob("elsewhere*")), [])

    def test_no_backup_is_taken_inside_a_transaction_or_of_a_closed_ledger(self) -> None:
        """O19: it would hold what is not committed, or nothing."""
        with self.ledger() as ledger:
            with ledger.transaction(), self.assertRaises(errors.LedgerMisused):
                copies.backup(ledger, self.kept)
            with ledger.reading(), self.assertRaises(errors.LedgerMisused):
                copies.backup(ledger, self.kept)
        with self.assertRaisesRegex(errors.LedgerMisused, "closed"):
            copies.backup(ledger, self.kept)
        self.assertFalse(self.kept.exists())


class TheRestoredStore(CopyCase):
    def test_a_backup_and_a_restored_store_write_send_and_decide_nothing(self) -> None:
        """O19, C14: each call is refused with Paused there, and is served by the live ledger."""
        with self.ledger() as ledger:
            calls = self.calls(ledger)
            copies.backup(ledger, self.kept)
        copies.restore(self.kept, self.elsewhere)
        there = oracle.dump(self.scene.receiver_file)
        for file in (self.kept, self.elsewhere):
            with self.ledger(file) as copy:
                before = oracle.dump(file)
                for name, call in calls.items():
                    with self.subTest(name, file=file.name), self.assertRaises(errors.Paused):
                        call(copy)
                    self.assertEqual(oracle.dump(file), before)
        self.assertEqual(oracle.dump(self.scene.receiver_file), there)
        with self.ledger() as ledger:
            for name, call in calls.items():
                with self.subTest(name, file="the live one"):
                    call(ledger)

    def calls(self, ledger: Ledger) -> dict[str, Call]:
        """One call of each kind that acts, on an operation of its own."""
        draft = self.made(ledger, "draft")
        again, open_one, judged = (self.sent(ledger, name) for name in ("again", "shut", "judged"))
        inquire(ledger, again.operation_id, Forgets(self.scene.receiver_file, CLOSING))
        facts = self.supplier.snapshot(judged.query, close=True)
        skus = ("wanted", "lost", "renewed", "dropped", "arrives")
        open_shop(ledger, self.supplier, skus=skus)
        wanted, _ = proposed(ledger, self.supplier, work_id="wanted", sku="wanted")
        dropped, _ = ready(ledger, self.supplier, work_id="dropped", sku="dropped")
        lost, renewed, arrives = (self.ordered(ledger, sku) for sku in skus[1:3] + skus[4:])
        hour: dict[str, Any] = {"actor": "ada", "expires_ms": ledger.now_ms() + 3_600_000}
        handed_in = answer(lost.query)
        return {
            "dispatch": lambda at: dispatch(at, draft.operation_id, self.supplier),
            "resend": lambda at: resend(at, again.operation_id, self.supplier),
            "close": lambda at: close(
                at, open_one.operation_id, self.supplier, purpose="p", authorized_by="ada"
            ),
            "reconcile": lambda at: library.reconcile(
                at,
                judged.operation_id,
                facts,
                reviewer="ada",
                expected_version=judged.version,
            ),
            "approve": lambda at: orders.approve(
                at, wanted.operation_id, digest=wanted.digest, **hour
            ),
            "renew": lambda at: orders.renew(
                at, renewed.operation_id, self.supplier, digest=renewed.digest, **hour
            ),
            "revoke": lambda at: orders.revoke(
                at, dropped.operation_id, actor="ada", reason="too many"
            ),
            "resolve_order": lambda at: settlement.resolve_order(
                at,
                lost.operation_id,
                handed_in,
                digest=lost.digest,
                supplier=lost.target,
                actor="ada",
                reference="letter 7",
            ),
            "deliver": lambda at: settlement.deliver(
                at, arrives.operation_id, reference="van", quantity=1, actor="bob"
            ),
        }

    def ordered(self, ledger: Ledger, sku: str) -> Operation:
        order, claim = ready(ledger, self.supplier, work_id=sku, sku=sku)
        by = Forgets(self.scene.receiver_file, CLOSING)
        dispatch(ledger, order.operation_id, by, claim=claim)
        return look(ledger, order.operation_id)

    def test_a_restored_store_keeps_the_receipt_it_asks_for_and_moves_nothing(self) -> None:
        """O19, C14: the order left after the backup; its row here is still a draft."""
        order = self.restored_draft()
        with self.ledger(self.elsewhere) as ledger:
            told = inquire(ledger, order.operation_id, self.supplier)
            self.assertEqual((told.state, told.version), (State.PREPARED, 1))
            self.assertTrue(told.effect_seen)
            self.assertEqual(next_actions(told, now_ms=ledger.now_ms()), (Action.ESCALATE,))
        rows = oracle.rows(self.elsewhere, "SELECT origin FROM receipt")
        self.assertEqual(rows, [("lookup",)])
        self.assertEqual(oracle.rows(self.elsewhere, "SELECT found FROM lookup"), [(1,)])
        self.assertEqual(oracle.rows(self.elsewhere, "SELECT * FROM decision"), [])
        self.assertEqual(oracle.rows(self.elsewhere, "SELECT does FROM entry"), [("reserve",)])

    def test_a_restored_store_keeps_a_receipt_of_an_uncertain_order_and_holds_its_money(
        self,
    ) -> None:
        """O19, O6: it is kept and not refused, and settles nothing before a person says so."""
        with self.ledger() as ledger:
            open_shop(ledger, self.supplier)
            order = self.ordered(ledger, "lamp")
            copies.backup(ledger, self.kept)
        copies.restore(self.kept, self.elsewhere)
        with self.ledger(self.elsewhere) as ledger:
            told = inquire(ledger, order.operation_id, self.supplier)
        self.assertEqual((told.state, told.version), (State.UNKNOWN, 2))
        rows = oracle.rows(self.elsewhere, "SELECT origin FROM receipt")
        self.assertEqual(rows, [("lookup",)])
        self.assertEqual(oracle.rows(self.elsewhere, "SELECT does FROM entry"), [("reserve",)])

    def test_what_was_seen_in_a_restored_store_would_be_refused_also_if_it_were_live(self) -> None:
        """O19, C14: by the rule, whether a receipt or a reading showed the effect."""
        order = self.restored_draft()
        at: dict[str, Any] = {"receiver": order.target, "epoch": order.epoch}
        with self.ledger(self.elsewhere) as ledger:
            unpaused = replace(look(ledger, order.operation_id), paused=None)
            sending.nothing_was_seen(unpaused)  # not yet
            observe(ledger, order.operation_id, self.supplier.snapshot(order.query))
            seen = replace(look(ledger, order.operation_id), paused=None)
            with self.assertRaises(errors.EffectSeen):
                sending.announce(seen, **at)
            refusal = sending.why_not_dispatch(seen, ledger.now_ms())
            self.assertIsInstance(refusal, errors.EffectSeen)
        self.scene.sender.unlink()
        again = copies.restore(self.kept, self.folder / "again.db")
        with self.ledger(again) as ledger:
            inquire(ledger, order.operation_id, self.supplier)
            seen = replace(look(ledger, order.operation_id), paused=None)
            with self.assertRaises(errors.EffectSeen):
                sending.announce(seen, **at)

    def test_a_lookup_in_vain_in_a_restored_store_shows_no_effect(self) -> None:
        """O19: none stored proves nothing, so it stands as asked and not as seen."""
        order = self.restored_draft()
        with self.ledger(self.elsewhere) as ledger:
            told = inquire(
                ledger, order.operation_id, Unreached(self.scene.receiver_file, CLOSING)
            )
            self.assertFalse(told.effect_seen)
            self.assertIsNotNone(told.paused)

    def restored_draft(self) -> Operation:
        """An approved draft in a restored store, which the lost store sent after the backup."""
        with self.ledger() as ledger:
            open_shop(ledger, self.supplier)
            order, claim = ready(ledger, self.supplier)
            copies.backup(ledger, self.kept)
            by = Forgets(self.scene.receiver_file, CLOSING)
            dispatch(ledger, order.operation_id, by, claim=claim)
        copies.restore(self.kept, self.elsewhere)
        return order

    def test_the_same_intent_proposed_again_is_the_same_operation_and_finds_its_effect(
        self,
    ) -> None:
        """O19, C14: its row was lost with the store; there is one effect in the end."""
        with self.ledger() as ledger:
            open_shop(ledger, self.supplier)
            copies.backup(ledger, self.kept)
            order, claim = ready(ledger, self.supplier)
            by = Forgets(self.scene.receiver_file, CLOSING)
            dispatch(ledger, order.operation_id, by, claim=claim)
        copies.restore(self.kept, self.elsewhere)
        with self.ledger(self.elsewhere) as ledger:
            self.assertEqual(
                [effect.operation_id for effect in strangers(ledger, self.supplier)],
                [order.operation_id],
            )
            again, _ = proposed(ledger, self.supplier)
            self.assertEqual(again.operation_id, order.operation_id)
            told = inquire(ledger, again.operation_id, self.supplier)
            self.assertEqual((told.state, told.effect_seen), (State.PREPARED, True))
        effects = oracle.effects(self.scene.receiver_file)
        self.assertEqual(
            {at: len(found) for at, found in effects.items()}, {order.operation_id: 1}
        )

    def test_a_claim_from_before_a_restore_is_stale_and_a_new_one_can_be_had(self) -> None:
        """O19: by the incarnation, though its token is in the file and its lease still runs."""
        with self.ledger() as ledger:
            open_shop(ledger, self.supplier)
            order, before = ready(ledger, self.supplier)
            copies.backup(ledger, self.kept)
        copies.restore(self.kept, self.elsewhere)
        with self.ledger(self.elsewhere) as ledger:
            for call in (
                lambda: work.extend(ledger, before),
                lambda: work.release(ledger, before),
                lambda: orders.propose(
                    ledger, self.supplier, claim=before, sku="lamp", quantity=1
                ),
            ):
                with self.assertRaisesRegex(errors.StaleClaim, "before this store was restored"):
                    call()
            after = work.claim(ledger, before.item, owner="worker")
            self.assertEqual((after.generation, after.incarnation), (2, 2))
            for claim in (before, after):
                with self.assertRaises(errors.Paused):
                    dispatch(ledger, order.operation_id, self.supplier, claim=claim)
        with self.ledger() as ledger:
            work.extend(ledger, before)

    def test_the_account_lists_what_no_row_of_the_restored_store_announced(self) -> None:
        """O19, C14: one whose row is gone, one whose row is a draft; adopted is neither."""
        with self.ledger() as ledger:
            self.sent(ledger, "known")
            draft = self.made(ledger, "draft")
            copies.backup(ledger, self.kept)
            dispatch(ledger, draft.operation_id, Forgets(self.scene.receiver_file, CLOSING))
            gone = self.sent(ledger, "gone")
            self.assertEqual(strangers(ledger, self.supplier), [])
        copies.restore(self.kept, self.elsewhere)
        before = oracle.dump(self.elsewhere)
        with self.ledger(self.elsewhere) as ledger:
            found = strangers(ledger, self.supplier)
        wanted = [f"{operation.operation_id}#1" for operation in (draft, gone)]
        self.assertEqual([effect.effect_id for effect in found], wanted)
        self.assertEqual(oracle.dump(self.elsewhere), before)

    def test_an_account_that_cannot_be_listed_is_said_to_be_so(self) -> None:
        """O19: an empty list would be a lie; whatever an adapter raises is no reply."""

        class Broken(Keyed):
            def listing(self) -> Any:
                raise ValueError("half a page")

        class Odd(Keyed):
            def listing(self) -> Any:
                return ("an effect",)

        with self.ledger() as ledger:
            for receiver, kind in (
                (UnavailableReceiver("plain"), errors.Malformed),
                (Broken(self.scene.receiver_file), errors.NoReply),
                (Odd(self.scene.receiver_file), errors.Malformed),
            ):
                with self.subTest(type(receiver).__name__), self.assertRaises(kind):
                    strangers(ledger, receiver)


class TheMarker(CopyCase):
    def test_an_older_file_put_back_over_its_ledger_is_noticed(self) -> None:
        """O19, C14: it knows of fewer writes than the marker tells of."""
        with self.ledger() as ledger:
            self.sent(ledger, "before")
        shutil.copyfile(self.scene.sender, self.kept)
        with self.ledger() as ledger:
            self.sent(ledger, "after")
        shutil.copyfile(self.kept, self.scene.sender)
        self.assert_acts_on_nothing(self.scene.sender, "6 writes were made here.* knows of 3")

    def test_an_old_copy_put_back_after_a_revocation_or_cancellation_sends_nothing(self) -> None:
        """O19, C14: no request left after the copy was made, and an order in it was withdrawn."""
        undo: dict[str, Callable[[Ledger, Operation], object]] = {
            "revoked": lambda ledger, order: orders.revoke(
                ledger, order.operation_id, actor="ada", reason="too many"
            ),
            "cancelled": lambda ledger, order: work.cancel(
                ledger, order.work_id, actor="ada", reason="no need"
            ),
        }
        with self.ledger() as ledger:
            open_shop(ledger, self.supplier, skus=tuple(undo))
        for name, call in undo.items():
            file = self.folder / f"{name}.db"
            for beside in (Path, marker.beside):
                shutil.copyfile(beside(self.scene.sender), beside(file))
            with self.ledger(file) as ledger:
                order, claim = ready(ledger, self.supplier, work_id=name, sku=name)
            shutil.copyfile(file, self.kept)
            with self.ledger(file) as ledger:
                call(ledger, order)
                self.assertIs(look(ledger, order.operation_id).state, State.REVOKED)
            shutil.copyfile(self.kept, file)
            with self.subTest(name), self.ledger(file) as ledger:
                self.assertIs(look(ledger, order.operation_id).state, State.PREPARED)
                with self.assertRaisesRegex(errors.Paused, "writes were made here"):
                    dispatch(ledger, order.operation_id, self.supplier, claim=claim)
            self.assert_acts_on_nothing(file, "writes were made here")
        self.assertEqual(self.scene.contacts(), [])

    def test_a_file_copy_that_knows_of_every_write_is_as_good_as_its_ledger(self) -> None:
        """O19: what no marker can tell, and need not; looks and refused calls are no writes."""
        with self.ledger() as ledger:
            sent = self.sent(ledger, "sent")
        shutil.copyfile(self.scene.sender, self.kept)
        with self.ledger() as ledger:
            self.assertEqual(self.made(ledger, "sent").operation_id, sent.operation_id)
            with self.assertRaises(errors.AlreadyAnnounced):
                dispatch(ledger, sent.operation_id, self.supplier)
        shutil.copyfile(self.kept, self.scene.sender)
        self.assert_live(self.scene.sender)

    def test_a_marker_is_raised_by_each_commit_that_changes_a_row_and_by_no_other(self) -> None:
        """O19: also one that sends nothing; it says what the file says."""
        with self.ledger() as ledger:
            self.assertEqual(marker.read(self.scene.sender), (1, 0))
            for count in (1, 2, 3):
                self.made(ledger, f"draft {count}")
                self.assertEqual(marker.read(self.scene.sender), (1, count))
                self.assertEqual(store(self.scene.sender)[1], count)
                with ledger.transaction() as tx:
                    tx.execute("UPDATE operation SET version = 2 WHERE number < 0")
                with suppress(ValueError), ledger.transaction() as tx:
                    tx.execute("UPDATE store SET incarnation = incarnation")
                    raise ValueError("undone")
        self.assertEqual(marker.read(self.scene.sender), (1, 3))
        self.assertEqual(store(self.scene.sender)[1], 3)

    def test_a_ledger_moved_without_its_marker_is_noticed_and_with_it_is_live(self) -> None:
        """O19: the pause is written, so that a marker that comes later does not end it."""
        with self.ledger() as ledger:
            self.sent(ledger, "sent")
        shutil.copyfile(self.scene.sender, self.kept)
        shutil.copyfile(marker.beside(self.scene.sender), marker.beside(self.kept))
        self.assert_live(self.kept)
        shutil.copyfile(self.scene.sender, self.elsewhere)
        self.assert_acts_on_nothing(self.elsewhere, "elsewhere.db.marker is not beside it")
        shutil.copyfile(marker.beside(self.scene.sender), marker.beside(self.elsewhere))
        self.assert_acts_on_nothing(self.elsewhere, "elsewhere.db.marker is not beside it")

    def test_looking_at_a_copy_tells_of_its_pause_and_writes_none(self) -> None:
        """O19: an operator who looks first can still bring the marker."""
        with self.ledger() as ledger:
            sent = self.sent(ledger, "sent")
        shutil.copyfile(self.scene.sender, self.elsewhere)
        with Ledger.inspect(self.elsewhere, clock=self.lab.clock) as ledger:
            self.assertIn("is not beside it", str(ledger.paused))
            self.assertEqual(look(ledger, sent.operation_id).paused, ledger.paused)
        shutil.copyfile(marker.beside(self.scene.sender), marker.beside(self.elsewhere))
        self.assert_live(self.elsewhere)

    def test_a_damaged_marker_is_none(self) -> None:
        """O19: what cannot be read tells nothing, so that the store starts paused."""
        for odd in (b"", b"1\n", b"1 0 0\n", b"one two\n", b"\xff\xfe"):
            file = self.folder / f"odd {odd.hex()}.db"
            Ledger(file).close()
            marker.beside(file).write_bytes(odd)
            with self.subTest(odd):
                self.assert_acts_on_nothing(file, "is not beside it")

    def test_a_restored_store_takes_the_place_of_a_lost_one_as_a_higher_incarnation(self) -> None:
        """O19: than the backup has, and than the marker of the lost one tells of."""
        with self.ledger() as ledger:
            copies.backup(ledger, self.kept)
            self.sent(ledger, "sent")
        for incarnation in (2, 3, 4):
            self.scene.sender.unlink()
            self.assertEqual(copies.restore(self.kept, self.scene.sender), self.scene.sender)
            self.assertEqual(store(self.scene.sender)[0], incarnation)
            self.assertEqual(marker.read(self.scene.sender), (incarnation, 1))
            self.assert_acts_on_nothing(self.scene.sender, "restored from kept.db")
        again = copies.restore(self.scene.sender, self.elsewhere)
        self.assertEqual(store(again)[0], 5)

    def test_the_lost_ledger_itself_put_back_over_its_successor_is_noticed(self) -> None:
        """O19: it knows of every write, and is of an incarnation that ended."""
        with self.ledger() as ledger:
            self.sent(ledger, "sent")
            copies.backup(ledger, self.kept)
        lost = self.folder / "lost.db"
        os.replace(self.scene.sender, lost)
        copies.restore(self.kept, self.scene.sender)
        os.replace(lost, self.scene.sender)
        self.assert_acts_on_nothing(self.scene.sender, "of incarnation 2, the file of 1")

    def test_an_empty_ledger_beside_the_marker_of_a_lost_one_starts_paused(self) -> None:
        """O19: if that one was written to, or was restored: nothing here knows of it."""
        with self.ledger() as ledger:
            copies.backup(ledger, self.kept)
            self.sent(ledger, "sent")
        self.scene.sender.unlink()
        self.assert_acts_on_nothing(self.scene.sender, "3 writes were made here.* knows of 0")
        restored = copies.restore(self.kept, self.elsewhere)
        restored.unlink()
        self.assert_acts_on_nothing(self.elsewhere, "of incarnation 2, the file of 1")

    def test_an_empty_ledger_in_the_place_of_an_empty_one_is_live(self) -> None:
        """O19: nothing can be missing in it."""
        self.ledger().close()
        self.scene.sender.unlink()
        self.assert_live(self.scene.sender)

    def test_a_ledger_opened_through_a_link_is_live_and_has_one_marker(self) -> None:
        """O19: another name for the same file is no copy of it."""
        link = self.folder / "link.db"
        try:
            link.symlink_to(self.scene.sender)
        except OSError:
            self.skipTest("this system makes no links")
        for file in (link, self.scene.sender, link):
            with self.ledger(file) as ledger:
                self.assertIsNone(ledger.paused)
                self.sent(ledger, f"by {file.name} {self.lab.clock()}")
        self.assertEqual(marker.read(self.scene.sender), (1, 9))
        self.assertEqual([p.name for p in self.folder.glob("*.marker")], ["sender.db.marker"])

    def test_a_new_ledger_whose_marker_cannot_be_written_is_not_made(self) -> None:
        """O19: without a marker it would look restored at its next opening."""
        marker.beside(self.scene.sender).mkdir()
        with self.assertRaisesRegex(errors.StorageFailed, "its marker"):
            self.ledger()
        self.assertEqual(oracle.dump(self.scene.sender), {})
        marker.beside(self.scene.sender).rmdir()
        self.assert_live(self.scene.sender)

    def test_a_marker_that_cannot_be_raised_stops_no_request(self) -> None:
        """O19: it lags, and notices less, until the next write or opening puts it right."""
        refused = PermissionError("not now")
        unread = mock.patch.object(Path, "read_bytes", side_effect=refused)
        unwritten = mock.patch.object(marker, "open", create=True, side_effect=refused)
        for name, broken_off in (("unread", unread), ("unwritten", unwritten)):
            with self.ledger() as ledger:
                operation = self.made(ledger, name)
                before = store(self.scene.sender)[:2]
                with broken_off:
                    told = dispatch(ledger, operation.operation_id, self.supplier)
                self.assertEqual(told.outcome, State.CONFIRMED)
                self.assertEqual(marker.read(self.scene.sender), before)
                self.made(ledger, f"{name} before")
                self.assertEqual(marker.read(self.scene.sender), store(self.scene.sender)[:2])
                operation = self.made(ledger, f"{name} at the end")
                with broken_off:
                    dispatch(ledger, operation.operation_id, self.supplier)
            self.assertNotEqual(marker.read(self.scene.sender), store(self.scene.sender)[:2])
            self.assert_live(self.scene.sender)
            self.assertEqual(marker.read(self.scene.sender), store(self.scene.sender)[:2])

    def test_a_marker_that_lags_is_caught_up_at_the_next_opening_and_tells_again(self) -> None:
        """O19: one that looks raises nothing; a copy from before the write is noticed then."""
        with self.ledger() as ledger:
            self.sent(ledger, "before")
        shutil.copyfile(self.scene.sender, self.kept)
        with self.ledger() as ledger, mock.patch.object(marker, "raise_to"):
            self.made(ledger, "unmarked")
        self.assertEqual(store(self.scene.sender)[:2], (1, 4))
        Ledger.inspect(self.scene.sender).close()
        self.assertEqual(marker.read(self.scene.sender), (1, 3))
        self.assert_live(self.scene.sender)
        self.assertEqual(marker.read(self.scene.sender), (1, 4))
        shutil.copyfile(self.kept, self.scene.sender)
        self.assert_acts_on_nothing(self.scene.sender, "4 writes were made here.* knows of 3")

    def test_a_marker_that_cannot_be_read_just_now_pauses_nothing_and_writes_nothing(self) -> None:
        """O19, R4: too many open files are no restore; the store is live once it can be read."""
        with self.ledger() as ledger:
            self.sent(ledger, "sent")
            copies.backup(ledger, self.kept)
        beside = marker.beside(self.scene.sender)
        before, known = self.scene.sender.read_bytes(), beside.read_bytes()
        busy, missing = OSError(errno.EMFILE, "Too many open files"), FileNotFoundError()
        openings: tuple[Callable[[Path], Ledger], ...] = (Ledger, Ledger.inspect)
        for opening in openings:
            with (
                self.subTest("no handle is left", opening=opening),
                mock.patch.object(Path, "read_bytes", side_effect=busy),
                self.assertRaisesRegex(errors.StorageFailed, "its marker: .*Too many open"),
            ):
                opening(self.scene.sender)
        with (
            self.subTest("none is left the second time"),
            mock.patch.object(Path, "read_bytes", side_effect=[missing, busy]),
            self.assertRaisesRegex(errors.StorageFailed, "its marker: .*Too many open"),
        ):
            self.ledger()
        aside = self.folder / "aside"
        os.replace(beside, aside)
        beside.mkdir()
        for opening in openings:
            with (
                self.subTest("a folder", opening=opening),
                self.assertRaises(errors.StorageFailed),
            ):
                opening(self.scene.sender)
        with self.assertRaisesRegex(errors.StorageFailed, "its marker"):
            self.restored_there(self.scene.sender)
        beside.rmdir()
        os.replace(aside, beside)
        self.assertEqual((self.scene.sender.read_bytes(), beside.read_bytes()), (before, known))
        self.assert_live(self.scene.sender)

    def restored_there(self, place: Path) -> None:
        """A restore in the place of a ledger that is away for so long."""
        away = self.folder / "away.db"
        os.replace(place, away)
        try:
            copies.restore(self.kept, place)
        finally:
            self.assertFalse(place.exists())
            os.replace(away, place)

    def test_a_sender_that_dies_between_commit_and_marker_leaves_a_live_ledger(self) -> None:
        """O19: a real process ends just after the commit that announces."""
        whole = self.lab.scene("whole")
        for scene in (whole, self.scene):
            scene.ledger().close()
        plan = {
            "file": str(whole.sender),
            "receiver": receiver_command(whole.receiver_file),
            "clock": BIRTH_MS,
            "steps": ["order"],
        }
        points = self.acted(plan) or []
        announces = points.index("before send") - 1
        self.assertEqual(points[announces], "COMMIT")
        plan = {**plan, "file": str(self.scene.sender), "at": announces, "how": "exit_after"}
        self.assertIsNone(self.acted(plan))
        self.assertEqual(store(self.scene.sender)[:2], (1, 2))
        self.assertEqual(marker.read(self.scene.sender), (1, 1))
        self.assert_live(self.scene.sender)
        self.assertEqual(marker.read(self.scene.sender), (1, 2))

    def acted(self, plan: dict[str, Any]) -> list[str] | None:
        """The points that a sender passed; None if it died on its way."""
        child = Child(command("experiments.harness.actor", json.dumps(plan)))
        self.lab.children.append(child)
        points = None
        while (line := child.hear()) is not None:
            points = line.get("points", points)
        self.assertEqual(child.end(), 0 if points is not None else EXIT)
        return points

    def test_the_marker_is_at_no_statement_ahead_of_what_is_committed(self) -> None:
        """O19: it would pause a store that is live; and it is raised before the request leaves."""
        file, ahead = self.scene.sender, []

        class Watched(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                cursor = super().execute(sql, *values)
                known = marker.read(file)
                if known is not None and known > store(file)[:2]:
                    ahead.append(sql)
                return cursor

        class Looks(Keyed):
            raised: tuple[int, int] | None = None

            def send(self, query: library.Query) -> library.Receipt | None:
                Looks.raised = marker.read(file)
                return super().send(query)

        self.ledger().close()
        with self.ledger(factory=Watched) as ledger:
            for count in (1, 2, 3):
                operation = self.made(ledger, f"sent {count}")
                dispatch(ledger, operation.operation_id, Looks(self.scene.receiver_file, CLOSING))
                self.assertEqual(Looks.raised, (1, 3 * count - 1))
        self.assertEqual(ahead, [])

    def test_no_opening_finds_a_ledger_paused_while_other_processes_announce(self) -> None:
        """O19: two senders announce as fast as they can; the marker lags, and is never ahead."""
        self.ledger().close()
        words = [ROOT, str(self.scene.sender)]
        senders = [
            subprocess.Popen(
                [sys.executable, *ISOLATED, "-c", ANNOUNCES, *words, str(at)],
                stdout=subprocess.PIPE,
            )
            for at in range(2)
        ]
        found, openings = set(), 0
        try:
            while any(sender.poll() is None for sender in senders):
                with Ledger(self.scene.sender, busy_ms=50_000) as ledger:
                    found.add(ledger.paused)
                with Ledger.inspect(self.scene.sender, busy_ms=50_000) as ledger:
                    found.add(ledger.paused)
                openings += 2
        finally:
            said = [sender.communicate(timeout=LIMIT_S)[0] for sender in senders]
        self.assertEqual(said, [b"announced\n"] * 2)
        self.assertEqual(found, {None})
        self.assertGreater(openings, 10)
        known, (incarnation, acts, why) = marker.read(self.scene.sender), store(self.scene.sender)
        self.assertEqual((acts, why), (2 * (1 + 2 * ANNOUNCEMENTS), None))
        assert known is not None
        self.assertLessEqual(known, (incarnation, acts))


class NothingUnpauses(CopyCase):
    def test_neither_openings_nor_copies_nor_the_right_marker_end_a_pause(self) -> None:
        """O19: a person must, and no call of this library does."""
        with self.ledger() as ledger:
            self.sent(ledger, "sent")
            copies.backup(ledger, self.kept)
        copies.restore(self.kept, self.elsewhere)
        for file in (self.kept, self.elsewhere):
            marker.beside(file).unlink(missing_ok=True)
            marker.write(file, *store(file)[:2])
            for _ in range(3):
                self.assert_acts_on_nothing(file, "backup|restored")
            with self.ledger(file) as ledger:
                copy = copies.backup(ledger, file.with_suffix(".copy"))
            self.assert_acts_on_nothing(copy, "backup of")
            self.assert_acts_on_nothing(
                copies.restore(copy, file.with_suffix(".again")), "restored from"
            )

    def test_no_plain_statement_ends_a_pause(self) -> None:
        """O19: UPDATE, REPLACE, upsert and DELETE, with recursive triggers on and off."""
        with self.ledger() as ledger:
            copies.backup(ledger, self.kept)
        before = oracle.dump(self.kept)
        for recursive in ("OFF", "ON"):
            for sql in (
                "UPDATE store SET paused_why = NULL",
                "UPDATE OR REPLACE store SET paused_why = NULL",
                "UPDATE store SET paused_why = NULL, incarnation = incarnation + 1",
                "INSERT OR REPLACE INTO store VALUES (1, 1, 0, NULL)",
                "REPLACE INTO store VALUES (1, 1, 0, NULL)",
                "INSERT INTO store VALUES (1, 1, 0, NULL) "
                "ON CONFLICT (number) DO UPDATE SET paused_why = NULL",
                "DELETE FROM store",
            ):
                with (
                    self.subTest(sql, recursive=recursive),
                    closing(sqlite3.connect(self.kept, isolation_level=None)) as other,
                ):
                    other.execute(f"PRAGMA recursive_triggers = {recursive}")
                    with self.assertRaisesRegex(sqlite3.IntegrityError, r"\Astore: "):
                        other.execute(sql)
        self.assertEqual(oracle.dump(self.kept), before)

    def test_a_pause_that_comes_while_a_ledger_is_open_is_obeyed(self) -> None:
        """O19: it stands in the file, and each call reads it there."""
        with self.ledger() as ledger:
            operation = self.made(ledger, "draft")
            with closing(sqlite3.connect(self.scene.sender, isolation_level=None)) as other:
                other.execute("UPDATE store SET paused_why = 'told so'")
            with self.assertRaisesRegex(errors.Paused, "told so"):
                dispatch(ledger, operation.operation_id, self.supplier)
        self.assertEqual(self.scene.contacts(), [])


class TheCrash(CopyCase):
    """A process dies, or a statement fails, at every point of making a ledger or a copy."""

    def test_a_ledger_whose_making_failed_at_any_statement_is_live_once_it_is_made(self) -> None:
        """O19: the marker is written before the commit, and is true of an empty ledger."""
        whole = Fault()
        self.ledger(self.kept, factory=whole.connection()).close()
        self.assertGreater(len(whole.points), 100)
        for at, point in enumerate(whole.points):
            if at % 8 and at < len(whole.points) - 12:  # all alike: a table, a row, a trigger
                continue
            file = self.folder / f"made {at}.db"
            fault = Fault(at, how="deny")
            with suppress(errors.ReconcileError):
                self.ledger(file, factory=fault.connection()).close()
            with self.subTest(at=at, point=point):
                self.assertTrue(fault.delivered)
                self.assert_live(file)
                self.assertEqual(marker.read(file), (1, 0))
            for left in self.folder.glob(f"{file.name}*"):
                left.unlink()

    def test_a_process_that_dies_about_the_commit_that_makes_a_ledger_leaves_it_live(self) -> None:
        """O19, C15: before it, with its marker already there, or just after it."""
        for at, how in (("COMMIT", "exit"), ("COMMIT", "exit_after"), ("write", "exit_after")):
            file = self.folder / f"{at} {how}.db"
            self.assertEqual(self.died("open", file, file, at, how)[0], EXIT)
            with self.subTest(at, how=how):
                self.assertEqual(marker.read(file), (1, 0))
                self.assertEqual(bool(oracle.dump(file)), (at, how) == ("COMMIT", "exit_after"))
                self.assert_live(file)

    def test_a_backup_that_dies_at_any_point_leaves_no_copy_that_acts(self) -> None:
        """O19: nor does the ledger look restored, and the next backup succeeds."""
        with self.ledger() as ledger:
            self.sent(ledger, "sent")
        points = self.passed("backup", self.scene.sender)
        self.assertEqual(points[-1], "link")
        for at, how, place in self.deaths("backup", self.scene.sender, points):
            with self.subTest(how, at=at, point=points[at]):
                self.assertEqual(place.exists(), (points[at], how) == ("link", "exit_after"))
                self.judge_copy(place)
                self.assert_live(self.scene.sender)
                place.unlink(missing_ok=True)
                with self.ledger() as ledger:
                    copies.backup(ledger, place)
                self.judge_copy(place)

    def test_a_restore_that_dies_at_any_point_leaves_no_store_that_acts(self) -> None:
        """O19: neither the copy, nor an empty one that is made in its place, nor the backup."""
        with self.ledger() as ledger:
            copies.backup(ledger, self.kept)
            self.sent(ledger, "sent")
        points = self.passed("restore", self.kept)
        self.assertEqual(points[-2:], ["write", "link"])
        for at, how, place in self.deaths("restore", self.kept, points):
            with self.subTest(how, at=at, point=points[at]):
                self.assertEqual(place.exists(), (points[at], how) == ("link", "exit_after"))
                self.judge_copy(place)
                self.assertIsNotNone(store(self.kept)[2])
                if not place.exists():
                    with self.ledger(place) as ledger:
                        self.assertIsNotNone(ledger.paused)
                place.unlink()
                self.assertGreater(store(copies.restore(self.kept, place))[0], 1)
                self.judge_copy(place)

    def test_a_statement_that_fails_while_a_copy_is_made_is_a_typed_error(self) -> None:
        """O19, R4: at every statement; the target does not exist, and the ledger is live."""
        with self.ledger() as ledger:
            self.sent(ledger, "sent")
            copies.backup(ledger, self.kept)
        for verb, source in (("backup", self.scene.sender), ("restore", self.kept)):
            points = self.passed(verb, source)
            for at, point in enumerate(points):
                if point in ("write", "link"):
                    continue
                place = self.folder / f"{verb} denied {at}.db"
                fault = Fault(at, how="deny")
                with self.subTest(verb, at=at, point=point):
                    with self.assertRaises(errors.StorageFailed), broken(fault):
                        copied(verb, source, place, fault)
                    self.assertTrue(fault.delivered)
                    self.assertFalse(place.exists())
                    self.assertEqual(list(self.folder.glob(f"{place.name}*.part*")), [])
        self.assert_live(self.scene.sender)

    def judge_copy(self, place: Path) -> None:
        """What stands at the place, and what was left on the way, acts on nothing."""
        for file in (place, *self.folder.glob(f"{place.name}.*.part")):
            if file.exists() and oracle.dump(file):
                with self.ledger(file) as ledger:
                    self.assertIsNotNone(ledger.paused, file.name)
        if place.exists():
            self.assertIsNotNone(store(place)[2])

    def passed(self, verb: str, source: Path) -> list[str]:
        """The points of an undisturbed run."""
        fault = Fault()
        with broken(fault):
            copied(verb, source, self.folder / f"{verb} whole.db", fault)
        return fault.points

    def deaths(self, verb: str, source: Path, points: list[str]) -> list[tuple[int, str, Path]]:
        """A real process for each point, ended before it, and one just after the last."""
        plans = [
            (at, how, self.folder / f"{verb} {how} {at}.db")
            for at, how in (
                *((at, "exit") for at in range(len(points))),
                (len(points) - 1, "exit_after"),
            )
        ]
        for _, _, place in plans:  # what the lost ledger had written there
            if verb == "restore":
                shutil.copyfile(marker.beside(self.scene.sender), marker.beside(place))
        with ThreadPoolExecutor(4) as pool:
            ends = list(pool.map(lambda p: self.died(verb, source, p[2], p[0], p[1]), plans))
        self.assertEqual(ends, [(EXIT, b"")] * len(plans))
        return plans

    def died(
        self, verb: str, source: Path, place: Path, at: int | str, how: str
    ) -> tuple[int, bytes]:
        words = [ROOT, verb, str(source), str(place), json.dumps(at), how]
        done = subprocess.run(
            [sys.executable, *ISOLATED, "-c", DIES, *words],
            stdout=subprocess.PIPE,
            timeout=LIMIT_S,
        )
        return done.returncode, done.stdout


# --- copies, and processes that make them -------------------------------------------------------


def store(file: Path) -> tuple[int, int, str | None]:
    """Incarnation, count of writes and pause, as they stand in a file."""
    (row,) = oracle.rows(file, "SELECT incarnation, acts, paused_why FROM store")
    return row[0], row[1], row[2]


@contextmanager
def broken(fault: Fault) -> Iterator[None]:
    """Copies are made under a fault: at each statement, and about each change of a name."""

    def passing(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def run(*given: object) -> object:
            due = fault.around(name)
            done = call(*given)
            if due:
                os._exit(EXIT)
            return done

        return run

    class Breaks(Ledger):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **{"factory": fault.connection(), **named})

        @classmethod
        def inspect(cls, *given: Any, **named: Any) -> Ledger:
            return super().inspect(*given, **{"factory": fault.connection(), **named})

    with ExitStack() as changed:
        for where, name, other in (
            (copies, "Ledger", Breaks),
            (os, "link", passing("link", os.link)),
            (marker, "write", passing("write", marker.write)),
        ):
            changed.enter_context(mock.patch.object(where, name, other))
        yield


def copied(verb: str, source: Path, place: Path, fault: Fault) -> None:
    """Make a backup, a restored store, or a new ledger."""
    if verb == "restore":
        copies.restore(source, place)
        return
    with Ledger(source, factory=fault.connection()) as ledger:
        if verb == "backup":
            copies.backup(ledger, place)


DIES = """\
import json, sys
from pathlib import Path
root, verb, source, place, at, how = sys.argv[1:]
sys.path.append(root)
from experiments.harness.faults import Fault
from experiments.tests.case_copies import broken, copied
fault = Fault(json.loads(at), how=how)
with broken(fault):
    copied(verb, Path(source), Path(place), fault)
"""

ANNOUNCEMENTS = 150
ANNOUNCES = f"""\
import sys
root, file, name = sys.argv[1:]
sys.path.append(root)
from reconcile import Ledger, UnavailableReceiver, dispatch, prepare
receiver = UnavailableReceiver("plain")
with Ledger(file, busy_ms=50_000) as ledger:
    made = prepare(ledger, receiver, work_id=name, kind="k", payload={{}}, subject=name)
    for _ in range({ANNOUNCEMENTS}):
        dispatch(ledger, made.operation_id, receiver)
print("announced")
"""
"""Each announcement is taken back at once, since nothing was sent; so the next one may follow.
Both are writes, and so is the preparation."""

if __name__ == "__main__":
    unittest.main()
