"""The operator's commands about orders: what each says, writes and refuses, in every state.

Most run through `main`, in this process, since a table of fifty refusals needs no fifty processes;
each command runs as a process of its own as well, as an operator meets it. Times are the true
ones here: a command takes no clock.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sqlite3
import time
import unittest
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from experiments.harness import oracle, unsafe
from experiments.harness.lossy import LosesRequest
from experiments.harness.scene import Scene
from experiments.harness.shop import Shop as Trade
from experiments.harness.shop import trading
from experiments.harness.supplier import BLIND, IDENTITY, KEYED
from experiments.tests.base import LabCase
from experiments.tests.case_commands import run
from experiments.tests.shop import (
    DAY_MS,
    HOUR_MS,
    Near,
    Shop,
    ShopCase,
    answer,
    declined,
    lost,
    refused,
)
from reconcile import (
    Action,
    Effect,
    EffectPolicy,
    Operation,
    Query,
    Receipt,
    dispatch,
    look,
    observe,
    prepare,
    report,
)
from reconcile import __main__ as commands
from reconcile.flows import shop, work
from reconcile.ledger import operations
from reconcile.ledger.copies import backup, restore
from reconcile.order_commands import read_receipt
from reconcile.rules.diagnosis import Diagnosis
from reconcile.rules.errors import StorageFailed
from reconcile.rules.identity import fields_of
from reconcile.rules.order_errors import ApprovalRevoked

MINUTE_MS = 60_000
RECEIPTS = ("receipt.json", "true.json", "odd.json")
ESCAPE = "\x1b[2J\noperation forged\u202e"


def main(*argv: object, busy_ms: int = 5000) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of one command, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = commands.main([str(word) for word in argv], busy_ms=busy_ms)
    return status, out.getvalue(), err.getvalue()


def text_of(receipt: Receipt, **changed: object) -> str:
    """A receipt as its file holds it, or one with fields changed."""
    return json.dumps({**fields_of(receipt), **changed})


def pending(near: Near, query: Query) -> Receipt:
    """It is taken, and nothing is final."""
    return answer(query, status="pending", effect_id=None)


class OrderCommandCase(ShopCase):
    """A shop at this very moment, since the commands read the clock of the host."""

    def open(self, name: str, *, policy: EffectPolicy = KEYED) -> Shop:
        one = super().open(name, policy=policy)
        one.clock.now_ms = time.time_ns() // 1_000_000
        one.reclaim()
        return one

    def told(self, *argv: object, says: tuple[str, ...] = ()) -> str:
        """The answer of a command that is not refused."""
        status, out, err = main(*argv)
        self.assertEqual((status, err), (0, ""))
        for part in says:
            self.assertIn(part, out)
        return out

    def no(self, one: Shop, *argv: object, says: tuple[str, ...] = ()) -> str:
        """The line of a command that is refused, and wrote nothing on either side."""
        before = one.written()
        status, out, err = main(*argv)
        self.assertEqual((status, out), (2, ""), err)
        self.assertRegex(err, r"\Areconcile: [^\n]+\n\Z")
        for part in says:
            self.assertIn(part, err)
        self.assertEqual(one.written(), before)
        return err

    def approve(self, one: Shop, order: Operation, **changed: object) -> list[object]:
        given = {"digest": order.digest, "actor": "lucy", "minutes": 60, **changed}
        return self._words("approve", one, order, given)

    def revoke(self, one: Shop, order: Operation, **changed: object) -> list[object]:
        given = {"actor": "ada", "reason": "not needed any more", **changed}
        return self._words("revoke", one, order, given)

    def resolve(self, one: Shop, order: Operation, **changed: object) -> list[object]:
        given = {
            "receipt": self.file(one, text_of(answer(order.query)), "true.json"),
            "digest": order.digest,
            "supplier": IDENTITY,
            "actor": "lucy",
            "reference": "letter of 3 May",
            **changed,
        }
        return self._words("resolve-order", one, order, given)

    def _words(
        self, name: str, one: Shop, order: Operation, given: dict[str, object]
    ) -> list[object]:
        operation_id = given.pop("operation", order.operation_id)
        options = [f"--{option}={value}" for option, value in given.items()]
        return [name, one.scene.sender, operation_id, *options]

    def file(self, one: Shop, content: str | bytes, name: str = "receipt.json") -> Path:
        path = one.scene.sender.with_name(name)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def every(self, one: Shop, order: Operation) -> Iterator[list[object]]:
        """Each of the three commands that decide, with lawful words."""
        yield self.approve(one, order)
        yield self.revoke(one, order)
        yield self.resolve(one, order)

    def restored(self, one: Shop) -> Path:
        """A store made from a backup of the shop's, which is paused."""
        copy = backup(one.ledger, one.scene.sender.with_name("backup.db"))
        return restore(copy, one.scene.sender.with_name("restored.db"))


class ApprovingByCommand(OrderCommandCase):
    """Authority, and nothing sent."""

    def test_approving_a_draft_holds_its_money_and_says_that_it_may_be_dispatched(self) -> None:
        """O5, O6: nothing is sent, and the library sends it by this approval."""
        draft = self.shop.propose()
        out = self.told(*self.approve(self.shop, draft))
        for part in (
            f"order {draft.operation_id}: approved\n",
            "0 sendings of 1 order",
            "1500 GBP (minor units), held",
            "by lucy, basis operator, until 20",
            "operator  not needed\n",
            "next      dispatch it, under a claim of its work item",
        ):
            self.assertIn(part, out)
        self.assertEqual((self.shop.state(draft), self.shop.money()), ("prepared", (1500, 0, 0)))
        self.assertEqual(self.shop.near.heard, [])
        self.shop.clock.now_ms = time.time_ns() // 1_000_000
        self.shop.dispatch(draft)
        self.assertEqual(self.shop.state(draft), "confirmed")

    def test_approving_again_gives_the_newest_end_and_holds_nothing_more(self) -> None:
        """O6: twice by command."""
        draft = self.shop.propose()
        self.told(*self.approve(self.shop, draft))
        self.told(*self.approve(self.shop, draft, minutes=1440))
        approval = self.shop.look(draft).order
        assert approval is not None and approval.approval is not None
        self.assertEqual(approval.approval.ordinal, 2)
        length_ms = approval.approval.expires_ms - approval.approval.approved_ms
        self.assertLessEqual(abs(length_ms - 1440 * MINUTE_MS), 1000)
        self.assertEqual(self.shop.money(), (1500, 0, 0))

    def test_approving_an_uncertain_order_says_to_ask_first_and_moves_nothing(self) -> None:
        """O12: identity, digest, reservation, state and the duty to ask stay as they are."""
        order = self.shop.unknown()
        out = self.told(*self.approve(self.shop, order))
        self.assertIn("ask for its receipt first (inquire)", out)
        self.assertIn("1 sending of 1 order", out)
        self.assertNotIn("dispatch it", out)
        after = self.shop.look(order)
        self.assertEqual((after.digest, after.state, after.version), (order.digest, *_at(order)))
        self.assertEqual(self.shop.money(), (1500, 0, 0))
        self.assertNotIn(Action.RESEND, self.shop.offers(order))

    def test_renewal_needs_the_guarantee_that_was_pinned(self) -> None:
        """O12: a blind supplier's order is not renewed, by command either."""
        blind = self.open("blind", policy=BLIND)
        order = blind.unknown()
        self.no(blind, *self.approve(blind, order), says=("blind supplier",))

    def test_only_a_draft_or_an_uncertain_order_is_approved(self) -> None:
        """O6, O12: settled, rejected, revoked, cancelled, and uncertain ones that were revoked."""
        for name, order, says in self.beyond_approval():
            with self.subTest(name):
                self.no(self.shops[-1], *self.approve(self.shops[-1], order), says=(says,))

    def beyond_approval(self) -> Iterator[tuple[str, Operation, str]]:
        one = self.open("confirmed")
        order = one.unknown()
        one.inquire(order)
        yield "confirmed", order, "is confirmed"
        one = self.open("rejected")
        order = one.unknown(fault=declined)
        yield "rejected", order, "is rejected"
        one = self.open("revoked")
        order = one.propose()
        one.revoke(order)
        yield "revoked", order, "is revoked"
        one = self.open("uncertain and revoked")
        order = one.unknown()
        one.revoke(order)
        yield "uncertain and revoked", order, "revoked by 'ada'"
        for name, make, says in (
            ("draft", "propose", "is revoked: only a draft"),  # cancelling withdraws it
            ("uncertain", "unknown", "is cancelled"),
        ):
            one = self.open(f"{name} and cancelled")
            order = getattr(one, make)()
            one.cancel()
            yield f"{name} and cancelled", order, says

    def test_minutes_are_a_whole_number_from_1_to_1440_in_plain_digits(self) -> None:
        """O5, O6: every other way to write a length of time is refused, with the bounds named."""
        draft = self.shop.propose()
        for text in (
            *("0", "-1", "+1", "1441", "01441", "1e3", "1.0", "1_0", "0x10", "", " ", " 5", "5 "),
            *(
                "\u0661\u0662",
                "\uff15",
                "\u00b2",
                "5\n",
                "9" * 5000,
                "nan",
                "None",
                "\u2212\uff11",
            ),
        ):
            with self.subTest(text[:10]):
                says = ("--minutes", "from 1 to 1440")
                self.no(self.shop, *self.approve(self.shop, draft, minutes=text), says=says)
        for text in ("1", "1440", "0060"):
            with self.subTest(text):
                self.told(*self.approve(self.shop, draft, minutes=text))

    def test_the_actor_must_be_on_the_list_today_and_the_digest_that_of_the_order(self) -> None:
        """O6, O12: for a draft, and for an uncertain order."""
        uncertain = self.open("uncertain")
        shop.list_approver(self.shop.ledger, "gone")
        shop.list_approver(self.shop.ledger, "gone", listed=False)
        for one, order in ((self.shop, self.shop.propose()), (uncertain, uncertain.unknown())):
            for changed, says in (
                ({"actor": "mallory"}, "'mallory' is not on the current list"),
                ({"actor": "gone"}, "is not on the current list"),
                ({"actor": "Lucy"}, "is not on the current list"),
                ({"actor": ""}, "actor: is empty"),
                ({"actor": "\udcff"}, "lone surrogate"),
                ({"digest": order.digest[:-1]}, "look at the order again"),
                ({"digest": order.digest.upper()}, "look at the order again"),
                ({"digest": ""}, "digest: is empty"),
            ):
                with self.subTest(order.state, **changed):
                    if changed == {"actor": "gone"} and one is uncertain:
                        continue
                    self.no(one, *self.approve(one, order, **changed), says=(says,))

    def test_an_approval_over_the_ceiling_is_refused_by_command(self) -> None:
        """O6, O7: the figures stand in the line."""
        draft = self.shop.propose()
        self.shop.budget(1000)
        self.no(self.shop, *self.approve(self.shop, draft), says=("1500 of 1000 GBP",))


def _at(order: Operation) -> tuple[object, int]:
    return order.state, order.version


class RevokingByCommand(OrderCommandCase):
    """It says whether that was in time, and says only what is true."""

    def test_revoking_before_anything_left_is_in_time_and_frees_the_money(self) -> None:
        """O11: approved or not; again gives the same answer."""
        for name, make in (("draft", "propose"), ("approved", "approved")):
            one = self.open(name)
            order = getattr(one, make)()
            for _ in range(2):
                out = self.told(*self.revoke(one, order))
                self.assertIn("in time: nothing had left, the order is ended", out)
                self.assertNotIn("too late", out)
            self.assertEqual((one.state(order), one.money()), ("revoked", (0, 0, 0)))

    def test_revoking_after_a_refused_connection_is_in_time(self) -> None:
        """O11: the sending provably never left."""
        order = self.shop.unknown(fault=refused)
        self.assertIn("in time", self.told(*self.revoke(self.shop, order)))
        self.assertEqual(self.shop.money(), (0, 0, 0))

    def test_revoking_an_uncertain_order_says_that_it_may_be_too_late(self) -> None:
        """O11: for either supplier; state and money stay, and a receipt settles it."""
        for name, policy in (("keyed", KEYED), ("blind", BLIND)):
            one = self.open(name, policy=policy)
            order = one.unknown()
            for _ in range(2):
                out = self.told(*self.revoke(one, order))
                self.assertIn("it may be too late: a request may have left", out)
                self.assertIn("revoked by ada: nothing more is sent", out)
                self.assertIn("1500 GBP (minor units), held", out)
            self.assertEqual((one.state(order), one.money()), ("unknown", (1500, 0, 0)))
            self.told(*self.resolve(one, order))
            self.assertEqual((one.state(order), one.money()), ("confirmed", (0, 1500, 0)))

    def test_revoking_what_is_final_promises_nothing_that_could_still_happen(self) -> None:
        """O11: a confirmed or rejected order is not said to wait for a receipt."""
        confirmed = self.open("confirmed")
        order = confirmed.unknown()
        confirmed.inquire(order)
        rejected = self.open("rejected")
        ended = rejected.unknown(fault=declined)
        for one, final in ((confirmed, order), (rejected, ended)):
            money, state = one.money(), one.state(final)
            out = self.told(*self.revoke(one, final))
            with self.subTest(state):
                self.assertIn(f"too late to matter: it is {state}, which is final", out)
                for lie in ("a receipt still settles it", "may be too late", "in time:"):
                    self.assertNotIn(lie, out)
                self.assertEqual((one.state(final), one.money()), (state, money))

    def test_revoking_needs_a_name_and_a_reason_and_no_place_on_the_list(self) -> None:
        """O11: it can only make less happen."""
        draft = self.shop.approved()
        for changed in ({"actor": ""}, {"reason": ""}, {"reason": " "}, {"reason": "\udc80"}):
            with self.subTest(**changed):
                self.no(self.shop, *self.revoke(self.shop, draft, **changed))
        self.told(*self.revoke(self.shop, draft, actor="somebody"))
        with self.assertRaises(ApprovalRevoked):
            order = self.open("other").unknown()
            self.shops[-1].revoke(order)
            self.shops[-1].renew(order)


class ResolvingByCommand(OrderCommandCase):
    """A receipt from a file, once."""

    def test_a_receipt_settles_an_uncertain_order_and_a_second_time_moves_nothing(self) -> None:
        """O13, O8: for either supplier; one decision and one settlement, whatever reference."""
        for name, policy in (("keyed", KEYED), ("blind", BLIND)):
            with self.subTest(name):
                one = self.open(name, policy=policy)
                order = one.unknown()
                self.told(*self.resolve(one, order), says=("confirmed, version 3, decided by",))
                moved = self.moved(one)
                for changed in ({}, {"reference": "another letter"}):
                    out = self.told(*self.resolve(one, order, **changed))
                    self.assertIn("version 3, stood already; nothing moved", out)
                self.assertEqual(self.moved(one), moved)
                self.assertEqual((one.state(order), one.money()), ("confirmed", (0, 1500, 0)))
                self.assertIn("1500 GBP (minor units), spent", out)
                self.assertIn("0 of 6; accepted is not delivered", out)

    def moved(self, one: Shop) -> object:
        found = oracle.dump(one.scene.sender)
        return [found[table] for table in ("operation", "decision", "entry", "obligation")]

    def test_a_rejected_receipt_frees_the_money_and_a_failed_one_keeps_counting_it(self) -> None:
        """O8: conclusive either way."""
        for status, money, says in (
            ("rejected", (0, 0, 0), "free again"),
            ("failed", (0, 0, 1500), "written off"),
        ):
            one = self.open(status)
            order = one.unknown(fault=_unanswered)
            with self.subTest(status):
                path = self.file(one, text_of(answer(order.query), status=status, effect_id=None))
                self.told(*self.resolve(one, order, receipt=path), says=(says,))
                self.assertEqual((one.state(order), one.money()), (status, money))

    def test_the_reference_has_1_to_500_characters(self) -> None:
        """O13: characters and not bytes; blank is none."""
        for length in (1, 500):
            one = self.open(f"{length}")
            order = one.unknown()
            self.told(*self.resolve(one, order, reference="é" * length))
            self.assertEqual(one.state(order), "confirmed")
        order = self.shop.unknown()
        for text in ("", " ", "x" * 501, "é" * 501, "\udcff"):
            with self.subTest(text[:3], length=len(text)):
                words = self.resolve(self.shop, order, reference=text)
                self.no(self.shop, *words, says=("reference",))

    def test_digest_supplier_actor_and_operation_must_each_be_the_right_one(self) -> None:
        """O13: one wrong at a time; money and state stay."""
        order = self.shop.unknown()
        for changed, says in (
            ({"digest": "f" * 64}, "look at the order again"),
            ({"supplier": "other"}, "other"),
            ({"supplier": ""}, "supplier: is empty"),
            ({"actor": "ada"}, "not on the current list"),
            ({"actor": ""}, "actor: is empty"),
            ({"operation": "f" * 32}, "no operation"),
            ({"operation": order.operation_id[:8]}, order.operation_id[:8]),
            ({"operation": ""}, "operation_id: is empty"),
            ({"operation": "\udcff"}, "lone surrogate"),
        ):
            with self.subTest(**changed):
                self.no(self.shop, *self.resolve(self.shop, order, **changed), says=(says,))
        self.assertEqual((self.shop.state(order), self.shop.money()), ("unknown", (1500, 0, 0)))

    def test_what_was_never_sent_or_carries_no_money_is_settled_by_no_receipt(self) -> None:
        """O8, O13: a draft, one withdrawn, and an operation that is no order."""
        draft = self.shop.approved()
        self.no(self.shop, *self.resolve(self.shop, draft), says=("never sent",))
        self.shop.revoke(draft)
        self.no(self.shop, *self.resolve(self.shop, draft), says=("never sent",))
        bare = prepare(
            self.shop.ledger, self.shop.near, work_id="w", kind="k", payload={}, subject="s"
        )
        for words in self.every(self.shop, bare):
            with self.subTest(words[0]):
                self.no(self.shop, *words, says=("is no order",))

    def test_a_receipt_of_another_proposal_is_kept_and_refused(self) -> None:
        """O8: for seven; of another supplier, epoch, kind; money and state stay."""
        order = self.shop.unknown()
        seven = order.payload.replace('"quantity":6', '"quantity":7')
        self.assertNotEqual(seven, order.payload)
        for changed in (
            {"payload": seven},
            {"receiver": "other"},
            {"epoch": 2},
            {"kind": "refund"},
            {"compensates": "x#1"},
        ):
            with self.subTest(**changed):
                self.contradicts(order, "names another proposal, supplier or epoch", **changed)
        self.assertEqual((self.shop.state(order), self.shop.money()), ("unknown", (1500, 0, 0)))

    def test_a_receipt_that_contradicts_what_is_final_is_kept_and_refused(self) -> None:
        """O8: it becomes an incident; no money moves again."""
        order = self.shop.unknown()
        self.shop.resolve(order)
        says = "it says rejected, and the order is confirmed"
        self.contradicts(order, says, status="rejected", effect_id=None)
        self.assertEqual((self.shop.state(order), self.shop.money()), ("confirmed", (0, 1500, 0)))

    def contradicts(self, order: Operation, says: str, **changed: object) -> None:
        kept = len(oracle.receipts(self.shop.scene.sender))
        path = self.file(self.shop, text_of(answer(order.query), **changed))
        status, out, err = main(*self.resolve(self.shop, order, receipt=path))
        self.assertEqual((status, out), (2, ""))
        self.assertRegex(err, r"\Areconcile: [^\n]+\n\Z")
        self.assertIn(says, err)
        self.assertEqual(len(oracle.receipts(self.shop.scene.sender)), kept + 1)

    def test_a_receipt_that_concludes_nothing_is_refused(self) -> None:
        """O8, O13: pending, partial, and one about another operation."""
        order = self.shop.unknown()
        for changed in (
            {"status": "pending", "effect_id": None},
            {"status": "partial"},
            {"operation_id": "f" * 32},
        ):
            with self.subTest(**changed):
                path = self.file(self.shop, text_of(answer(order.query), **changed))
                self.no(self.shop, *self.resolve(self.shop, order, receipt=path))

    def test_a_receipt_is_no_action_of_an_agent_and_of_no_list(self) -> None:
        """O13: in no state of an order is handing in a receipt offered."""
        names = {action.value for action in Action}
        self.assertFalse(names & {"resolve_order", "resolve-order", "hand_in", "settle"})
        order = self.shop.propose()
        for step in ("draft", "approved", "unknown", "confirmed"):
            if step == "approved":
                self.shop.approve(order)
            if step == "unknown":
                self.shop.near.faults = [lost]
                seen = self.shop.dispatch(order)
                self.assertFalse({a.value for a in seen.next_actions} & {"resolve_order"})
            if step == "confirmed":
                self.shop.resolve(order)
            text = report.show(self.shop.look(order), (), now_ms=self.shop.clock.now_ms)
            self.assertNotIn("resolve", text.split("allowed next")[1])


def _unanswered(near: Near, query: Query) -> None:
    return None


MISSING = object()
WRONG_FIELDS: dict[str, tuple[object, ...]] = {
    "operation_id": (None, 1, "", " ", [], {}, True, "\ud800", MISSING),
    "status": (None, 1, "", "done", "ACCEPTED", "accepted ", "\udfff", [], {"a": 1}, MISSING),
    "effect_id": (None, 1, "", [], False, "\ud800", MISSING),
    "kind": (None, 1, "", [], "\ud800", MISSING),
    "payload": (None, 1, "", {"quantity": 6}, [], "\ud800", MISSING),
    "compensates": (1, "", [], False, "\ud800", MISSING),
    "receiver": (None, 1, "", [], "\ud800", MISSING),
    "epoch": (None, "1", 0, -1, 1.0, True, 2**63, [], 10**400, MISSING),
}


class ReceiptFiles(OrderCommandCase):
    """Every file that is no receipt."""

    def test_every_field_of_a_receipt_is_read_strictly(self) -> None:
        """O13: each wrong value, and each field left out, is refused by its place."""
        order = self.shop.unknown()
        true = fields_of(answer(order.query))
        self.assertEqual(set(true), set(WRONG_FIELDS))
        for name, values in WRONG_FIELDS.items():
            for value in values:
                said = {**true, name: value}
                if value is MISSING:
                    del said[name]
                place = name if value is MISSING else f"receipt.{name}: "
                path = self.file(self.shop, json.dumps(said))
                with self.subTest(name, value=repr(value)[:20]):
                    self.no(
                        self.shop, *self.resolve(self.shop, order, receipt=path), says=(place,)
                    )
        self.assertEqual((self.shop.state(order), self.shop.money()), ("unknown", (1500, 0, 0)))
        self.told(*self.resolve(self.shop, order))

    def test_a_file_that_is_no_receipt_is_refused_by_its_name(self) -> None:
        """O13: whatever stands in it; nothing is written, and no traceback shown."""
        order = self.shop.unknown()
        true = text_of(answer(order.query))
        for name, content in (
            ("empty", b""),
            ("blank", b" \n"),
            ("not UTF-8", b"\xff\xfe" + true.encode()),
            ("another encoding", true.encode("utf-16")),
            ("a byte order mark", b"\xef\xbb\xbf" + true.encode()),
            ("not JSON", b"accepted"),
            ("cut short", true[:-1].encode()),
            ("two objects", (true + true).encode()),
            ("text after it", (true + "x").encode()),
            ("no number", true.replace('"epoch": 1', '"epoch": NaN').encode()),
            ("infinity", true.replace('"epoch": 1', '"epoch": -Infinity').encode()),
            ("a name twice", (true[:-1] + ', "epoch": 1}').encode()),
            ("a name twice, deeper", (true[:-1] + ', "x": {"a": 1, "a": 1}}').encode()),
            ("deep nesting", b"[" * 200_000),
            ("deep objects", b'{"a":' * 200_000),
            ("an over-long number", true.replace(": 1}", f": {'1' * 10_000}}}").encode()),
        ):
            path = self.file(self.shop, content, "odd.json")
            with self.subTest(name):
                says = "receipt.epoch" if name == "an over-long number" else str(path)
                err = self.no(self.shop, *self.resolve(self.shop, order, receipt=path))
                self.assertTrue(says in err or str(path) in err, err)

    def test_json_that_is_no_object_of_a_receipt_is_refused(self) -> None:
        """O13: lists, numbers, fields too many, among them one that draws on the terminal."""
        order = self.shop.unknown()
        true = fields_of(answer(order.query))
        for content in (
            *("[]", "1", "null", "true", '"accepted"', "{}"),
            json.dumps([true]),
            json.dumps({"receipt": true}),
            json.dumps({**true, "more": 1}),
            json.dumps({**true, ESCAPE: 1}),
            json.dumps({**true, "\ud800": 1}),
        ):
            path = self.file(self.shop, content, "odd.json")
            with self.subTest(content[:20]):
                words = self.resolve(self.shop, order, receipt=path)
                err = self.no(self.shop, *words, says=("receipt: ",))
                self.assertNotIn("\x1b", err)

    def test_a_refusal_stays_readable_however_much_was_handed_in(self) -> None:
        """O13: a status of a million letters is quoted in part."""
        order = self.shop.unknown()
        path = self.file(self.shop, text_of(answer(order.query), status="x" * 1_000_000))
        err = self.no(self.shop, *self.resolve(self.shop, order, receipt=path))
        self.assertLess(len(err), 3000)

    def test_what_cannot_be_read_as_a_file_is_refused_and_a_huge_one_is_not_read(self) -> None:
        """O13: missing, a folder, no name, a name too long, and a sparse file of 64 GB."""
        order = self.shop.unknown()
        folder = self.shop.scene.sender.parent
        huge = folder / "huge.json"
        with huge.open("wb") as file:
            file.truncate(1 << 36)
        for path, says in (
            (folder / "none.json", "none.json: cannot be read"),
            (folder, "cannot be read"),
            ("", "cannot be read"),
            ("n" * 300, "cannot be read"),
            ("a\0b", "cannot be read"),
            (huge, "huge.json: is longer than 67108864 bytes"),
        ):
            with self.subTest(str(path)[:40]):
                words = self.resolve(self.shop, order, receipt=path)
                self.no(self.shop, *words, says=(says,))
        huge.unlink()
        self.assertFalse((folder / "none.json").exists())


class TheFileOfACommand(OrderCommandCase):
    """No command that decides makes, takes over, or waits for a file without end."""

    def test_a_file_that_does_not_exist_is_never_made(self) -> None:
        """O13, P7: nor its folder, nor a marker beside it."""
        order = self.shop.unknown()
        folder = self.shop.scene.sender.parent
        missing = folder / "none.db"
        for words in self.every(self.shop, order):
            with self.subTest(words[0]):
                before = sorted(p.name for p in folder.iterdir())
                for path in (missing, folder / "no" / "none.db", folder, ""):
                    self.no(self.shop, words[0], path, *words[2:])
                self.assertEqual(sorted(p.name for p in folder.iterdir()), before)

    def test_an_empty_or_foreign_file_stays_as_it_is(self) -> None:
        """O13: an empty file does not become a ledger."""
        order = self.shop.unknown()
        folder = self.shop.scene.sender.parent / "foreign"
        folder.mkdir()
        (folder / "empty.db").touch()
        (folder / "text.db").write_bytes(b"no database at all\n" * 400)
        with closing(sqlite3.connect(folder / "other.db")) as other:
            other.execute("CREATE TABLE t (x)")
        before = {p.name: p.read_bytes() for p in folder.iterdir()}
        for words in self.every(self.shop, order):
            for name in sorted(before):
                with self.subTest(words[0], file=name):
                    self.no(self.shop, words[0], folder / name, *words[2:], says=(name,))
        self.assertEqual({p.name: p.read_bytes() for p in folder.iterdir()}, before)

    def test_a_locked_ledger_is_refused_as_busy_and_nothing_is_written(self) -> None:
        """O13: after the bounded wait."""
        order = self.shop.unknown()
        before = self.shop.written()
        with closing(sqlite3.connect(self.shop.scene.sender, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            for words in self.every(self.shop, order):
                with self.subTest(words[0]):
                    status, out, err = main(*words, busy_ms=0)
                    self.assertEqual((status, out), (2, ""))
                    self.assertRegex(err, r"\Areconcile: [^\n]+locked[^\n]+try again\n\Z")
            holder.execute("ROLLBACK")
        self.assertEqual(self.shop.written(), before)

    def test_a_paused_store_is_not_decided_about_and_says_so_everywhere(self) -> None:
        """O13, L13: approve, revoke and resolve-order are refused; looking shows PAUSED first."""
        order, draft = self.shop.unknown(), self.open("draft")
        self.paused(self.shop, order)
        self.paused(draft, draft.approved())

    def paused(self, one: Shop, order: Operation) -> None:
        copy = self.restored(one)
        before = oracle.dump(copy)
        for words in self.every(one, order):
            with self.subTest(words[0], state=order.state):
                self.no(one, words[0], copy, *words[2:], says=("paused", "call a person"))
        for words in (["status", copy], ["show", copy, order.operation_id]):
            text = self.told(*words)
            self.assertTrue(text.startswith("PAUSED: it was restored from backup.db"), text)
        self.assertIn("operator  needed: a paused store", text)
        self.assertEqual(oracle.dump(copy), before)

    def test_each_command_works_as_a_process_of_its_own(self) -> None:
        """O13, P7: from another folder, isolated, with warnings as errors; nothing is left."""
        order = self.shop.propose()
        folder = self.shop.scene.sender.parent
        before = sorted(p.name for p in folder.iterdir())
        for words, status in (
            (self.approve(self.shop, order, minutes=0), 2),
            (self.approve(self.shop, order), 0),
            (self.resolve(self.shop, order), 2),
            (self.revoke(self.shop, order), 0),
            (self.approve(self.shop, order), 2),
        ):
            done = run(*map(str, words))
            with self.subTest(words[0], status=status):
                self.assertEqual(done.returncode, status, done.stderr)
                told, silent = (done.stdout, done.stderr)[:: 1 if status == 0 else -1]
                self.assertEqual(silent, b"")
                self.assertEqual(told.count(b"\n") > 1, status == 0)
                self.assertNotIn(b"Traceback", told)
        after = [name for name in before if name not in RECEIPTS]
        self.assertEqual(sorted(p.name for p in folder.iterdir() if p.name not in RECEIPTS), after)

    def test_what_is_committed_is_not_called_refused_when_nobody_hears_the_answer(self) -> None:
        """O13: a full output, a reader that went away, no output at all."""
        for name in ("full", "gone", "closed"):
            one = self.open(name)
            order = one.approved()
            words = list(map(str, self.revoke(one, order)))
            with self.subTest(name):
                self.unheard(name, words)
                self.assertEqual((one.state(order), one.money()), ("revoked", (0, 0, 0)))

    def unheard(self, name: str, words: list[str]) -> None:
        if name == "full":
            if not os.path.exists("/dev/full"):
                print("not shown here: a full output, since there is no such device")
                self.told(*words)
                return
            with open("/dev/full", "wb") as full:
                done = run(*words, stdout=full)
            self.assertEqual(done.returncode, 2)
            line = done.stderr.decode()
            self.assertRegex(line, r"\Areconcile: it is done and recorded, and [^\n]+show\n\Z")
        elif name == "gone":
            reading, writing = os.pipe()
            os.close(reading)
            try:
                done = run(*words, stdout=writing)
            finally:
                os.close(writing)
            self.assertEqual((done.returncode, done.stderr), (141, b""))
        else:
            stub = CLOSED_STDOUT
            done = run(*words, stub=stub)
            self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_an_interrupt_ends_quietly_and_nothing_is_written(self) -> None:
        """O13, P7: within the transaction of each command that decides."""
        order = self.shop.unknown()
        before = self.shop.written()
        for words in self.every(self.shop, order):
            with (
                self.subTest(words[0]),
                mock.patch.object(operations, "read", side_effect=KeyboardInterrupt),
            ):
                self.assertEqual(main(*words), (130, "", ""))
        self.assertEqual(self.shop.written(), before)

    def test_options_are_all_needed_and_none_is_abbreviated(self) -> None:
        """O13: each left out in turn, refused by its name."""
        order = self.shop.unknown()
        for words in self.every(self.shop, order):
            for at in range(3, len(words)):
                name = str(words[at]).partition("=")[0]
                with self.subTest(words[0], without=name):
                    self.no(self.shop, *words[:at], *words[at + 1 :], says=(name,))
            short = [str(word).replace("--actor", "--act") for word in words]
            self.no(self.shop, *short)


CLOSED_STDOUT = """\
import os, runpy, sys
sys.path.append(sys.argv.pop(1))
os.close(1)
sys.stdout = None
runpy.run_module("reconcile", run_name="__main__", alter_sys=True)
"""


class WhatIsSaidOfOrders(OrderCommandCase):
    """True in each state: money, authority, deliveries, and whether a person is needed."""

    def lines(self, one: Shop, order: Operation) -> dict[str, str]:
        text = self.told("show", one.scene.sender, order.operation_id)
        parts = [line.strip().partition(" ") for line in text.splitlines()]
        return {name: value.strip() for name, _, value in reversed(parts)}

    def test_a_draft_says_that_a_person_is_needed_until_its_approval_stands(self) -> None:
        """O6, O17: none, given, ended by time, by the list, by the ceiling."""
        draft = self.shop.propose()
        said = self.lines(self.shop, draft)
        self.assertEqual(said["buys"], "6 of SKU-VANILLA at 250")
        self.assertEqual(said["money"], "1500 GBP (minor units), nothing is reserved for it")
        self.assertEqual(said["authority"], "none: it may not be sent")
        self.assertRegex(said["operator"], "^needed: .* has no approval: approve it first$")
        self.assertEqual(said["sent"], "0 sendings of 1 order")
        self.assertEqual(said["delivered"], "0 of 6; accepted is not delivered")
        self.shop.approve(draft)
        self.assertEqual(self.lines(self.shop, draft)["operator"], "not needed")
        self.shop.budget(1000)
        self.assertRegex(self.lines(self.shop, draft)["operator"], "^needed: .*1500 of 1000 GBP")
        self.shop.budget(2000)
        shop.list_approver(self.shop.ledger, "lucy", listed=False)
        said = self.lines(self.shop, draft)
        self.assertIn("no longer on the list", said["authority"])
        self.assertRegex(said["operator"], "^needed: 'lucy' is not on the current list")

    def test_a_draft_beside_an_uncertain_order_of_the_same_need_waits_for_a_person(self) -> None:
        """O4, O6: approved as it is, it would be refused; the open one is named."""
        one = self.shop
        one.budget(9000)
        first = one.claimed("evening-work")
        draft = one.approved(2, claim=first)
        open_one = one.unknown()
        said = self.lines(one, draft)["operator"]
        self.assertTrue(said.startswith("needed: "), said)
        self.assertIn(open_one.operation_id, said)

    def test_a_draft_whose_effect_was_seen_already_waits_for_a_person(self) -> None:
        """O6, L13: approved as it is, it would do it twice."""
        draft = self.shop.approved()
        query = draft.query
        effect = Effect(
            effect_id=f"{query.operation_id}#1",
            operation_id=query.operation_id,
            kind=query.kind,
            payload=query.payload,
            compensates=None,
        )
        reading = self.shop.near.snapshot(query)
        observe(self.shop.ledger, query.operation_id, replace(reading, effects=(effect,)))
        self.assertTrue(self.lines(self.shop, draft)["operator"].startswith("needed: "))

    def test_an_approval_that_ended_by_time_is_not_shown_as_one_that_lasts(self) -> None:
        """O6: of a draft and of an uncertain order."""
        for name, make in (("draft", "approved"), ("uncertain", "unknown")):
            one = self.open(name)
            one.clock.now_ms -= 2 * HOUR_MS
            work.release(one.ledger, one.claim)
            one.reclaim()
            order = getattr(one, make)()
            said = self.lines(one, order)
            with self.subTest(name):
                self.assertRegex(said["authority"], "ended at .*: nothing is sent under it$")
                self.assertEqual(said["operator"].startswith("needed"), name == "draft")

    def test_an_uncertain_order_says_whether_a_person_is_needed_by_its_supplier(self) -> None:
        """O14, O20: keyed: not yet; blind: needed; `status` says so, too."""
        for name, policy, says in (
            ("keyed", KEYED, "not needed yet: its supplier keeps a receipt"),
            ("blind", BLIND, "needed: its supplier keeps no receipt"),
        ):
            one = self.open(name, policy=policy)
            order = one.unknown()
            said = self.lines(one, order)
            with self.subTest(name):
                self.assertTrue(said["operator"].startswith(says), said["operator"])
                self.assertTrue(said["money"].endswith("until its outcome is known"))
                self.assertEqual(said["sent"], "1 sending of 1 order")
                parts = (
                    *("operations: 1\n", "unknown     1\n", "open questions: 1\n", says),
                    "money in GBP: 1500 reserved, 0 spent, 0 written off, of 2000 (minor",
                    *("1 sending of 1 order", "1 sending may have reached lucy-local."),
                )
                self.told("status", one.scene.sender, says=parts)

    def test_an_uncertain_order_that_its_supplier_may_have_forgotten_needs_a_person(self) -> None:
        """O14: after the declared time nobody is told that the stored receipt will do."""
        one = self.open("old")
        one.clock.now_ms -= 2 * DAY_MS
        one.reclaim()
        said = self.lines(one, one.unknown())
        self.assertTrue(said["operator"].startswith("needed: its supplier may have forgotten"))
        self.assertIn("resolve-order", said["operator"])

    def test_sends_and_orders_are_two_numbers_after_a_resend(self) -> None:
        """O20: two sendings are one order, in `show` and in `status`."""
        order = self.shop.unknown(fault=_unanswered)
        self.shop.near.faults = [_unanswered]
        self.shop.inquire(order)
        self.shop.resend(order)
        self.assertEqual(self.lines(self.shop, order)["sent"], "2 sendings of 1 order")
        self.told("status", self.shop.scene.sender, says=("2 sendings of 1 order",))

    def test_a_pending_order_of_a_blind_supplier_needs_a_person(self) -> None:
        """O14: it is open, though its supplier confirmed that it exists."""
        one = self.open("pending", policy=BLIND)
        order = one.unknown(fault=pending)
        self.assertEqual(one.state(order), "pending")
        self.assertTrue(self.lines(one, order)["operator"].startswith("needed"))

    def test_a_final_order_needs_nobody_and_says_what_became_of_its_money(self) -> None:
        """O8, O17: spent, free, and delivered only when that was recorded."""
        order = self.shop.unknown()
        self.shop.inquire(order)
        self.shop.deliver(order, 4)
        said = self.lines(self.shop, order)
        self.assertEqual(said["money"], "1500 GBP (minor units), spent")
        self.assertEqual(said["delivered"], "4 of 6; accepted is not delivered")
        self.assertEqual(said["operator"], "not needed")
        one = self.open("revoked")
        ended = one.approved()
        one.revoke(ended)
        said = self.lines(one, ended)
        self.assertEqual(said["money"], "1500 GBP (minor units), free again")
        self.assertIn("revoked by ada: nothing more is sent", said["authority"])
        self.assertEqual(said["operator"], "not needed")

    def test_a_cancelled_work_item_is_named_as_what_ended_the_authority(self) -> None:
        """O10: of a draft and of an uncertain order, whose question stays open."""
        for name, make in (("draft", "approved"), ("uncertain", "unknown")):
            one = self.open(name)
            order = getattr(one, make)()
            one.cancel()
            said = self.lines(one, order)
            with self.subTest(name):
                says = "its work item was cancelled by ada: nothing more is sent"
                self.assertEqual(said["authority"], says)

    def test_no_name_of_an_order_can_draw_a_line_or_move_a_cursor(self) -> None:
        """O13, O20: SKU, currency, approver and reasons are escaped, in every answer."""
        one, ledger = self.shop, self.shop.ledger
        shop.set_budget(ledger, currency=ESCAPE, ceiling=2000, set_by="mo")
        shop.set_price(
            ledger, ESCAPE, supplier=IDENTITY, unit_cost=250, currency=ESCAPE, set_by="mo"
        )
        shop.list_approver(ledger, ESCAPE)
        draft = one.propose(sku=ESCAPE)
        answers = [
            self.told(*self.approve(one, draft, actor=ESCAPE)),
            self.told("show", one.scene.sender, draft.operation_id),
        ]
        one.clock.now_ms = time.time_ns() // 1_000_000
        one.near.faults = [lost]
        one.dispatch(draft)
        answers += [
            self.told("status", one.scene.sender),
            self.told(*self.revoke(one, draft, actor=ESCAPE, reason=ESCAPE)),
            self.told(*self.resolve(one, draft, actor=ESCAPE, reference=ESCAPE)),
            self.told("show", one.scene.sender, draft.operation_id),
        ]
        for text in answers:
            self.assertFalse({"\x1b", "\u202e"} & set(text))
            self.assertNotIn("\noperation forged", text)
            self.assertIn("\\x1b", text)


class NeverArrives(LosesRequest):
    """The request of an order never arrives, and the sender cannot tell."""

    limit_s = 1.0


class TheDiagnosis(LabCase):
    """Both sides beside each other: a real supplier, and a command that asks it."""

    def setUp(self) -> None:
        super().setUp()
        self.made = 0

    @contextlib.contextmanager
    def trade(self, *options: str, unsafe: bool = False, **named: Any) -> Iterator[Trade]:
        self.made += 1
        with trading(self.lab, f"t{self.made}", options=options, unsafe=unsafe, **named) as trade:
            yield trade

    def ordered(self, trade: Trade, *, loses: bool = False) -> Operation:
        with trade.ledger() as ledger:
            order_id, claim = trade.ready(ledger)
            way = NeverArrives(trade.supplier.receiver(policy=trade.policy))
            dispatch(ledger, order_id, way if loses else trade.receiver(), claim=claim)
            return look(ledger, order_id)

    def asked(self, trade: Trade, **changed: str) -> list[str]:
        given = {"supplier": IDENTITY, "url": trade.supplier.url, **changed}
        options = [f"--{name}={value}" for name, value in given.items()]
        return ["diagnose", str(trade.scene.sender), *options]

    def stands(self, scene: Scene) -> object:
        """Every row of both sides, and not the supplier's log of what it was asked."""
        there = oracle.dump(scene.receiver_file)
        return oracle.dump(scene.sender), {k: v for k, v in there.items() if k != "contact"}

    def told(self, trade: Trade, *says: str) -> str:
        before, asked = self.stands(trade.scene), len(oracle.contacts(trade.scene.receiver_file))
        status, text, err = main(*self.asked(trade))
        self.assertEqual((status, err), (0, ""))
        for part in says:
            self.assertIn(part, text)
        self.assertEqual(self.stands(trade.scene), before)
        new = oracle.contacts(trade.scene.receiver_file)[asked:]
        self.assertFalse([request for request, _ in new if request in ("apply", "close")])
        return text

    def test_a_lost_receipt_is_found_and_says_what_to_ask(self) -> None:
        """O16, O20: by a process of its own; one order, one sending, four answers."""
        with self.trade("--drop-first-response") as trade:
            order = self.ordered(trade)
            self.told(
                trade,
                "1 finding against the account of lucy-local\n",
                f"operation {order.operation_id}\n",
                "finding   lost_receipt\n",
                "here      unknown, version 2; 1 order, 1 sending\n",
                f"there     1 effect: {order.operation_id}#1\n",
                *("1500 GBP (minor units), held", "known     ", "not known ", "safe      "),
                *("ask       Please send the receipt", "(inquire)"),
            )
            done = run(*self.asked(trade))
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertIn(b"lost_receipt", done.stdout)

    def test_a_lost_receipt_that_nobody_keeps_is_not_said_to_be_asked_for(self) -> None:
        """O14, O16: a blind supplier has no lookup; the advice is to get one from a person."""
        with self.trade("--drop-first-response", policy=BLIND) as trade:
            self.ordered(trade)
            text = self.told(trade, "lost_receipt", "hand it in with resolve-order")
            self.assertNotIn("inquire", text)

    def test_a_fault_before_the_supplier_is_told_from_a_lost_receipt(self) -> None:
        """O16: absence there is no proof, and the words say so."""
        with self.trade() as trade:
            self.ordered(trade, loses=True)
            text = self.told(
                trade, "finding   fault_before_receiver\n", "0 effects: none", "is no proof"
            )
            self.assertNotIn("lost_receipt", text)

    def test_a_confirmed_order_without_a_row_means_a_wrong_path_of_evidence(self) -> None:
        """O16: no row there, and confirmed here."""
        with self.trade(unsafe=True) as trade:
            order = self.ordered(trade, loses=True)
            effect_id = f"{order.operation_id}#1"
            unsafe.flip_state(
                trade.scene.sender, order.operation_id, "confirmed", effect_id=effect_id
            )
            self.told(
                trade,
                *("finding   confirmed_without_effect\n", "0 effects: none"),
                "the path that brought the evidence is wrong",
            )

    def test_a_row_that_nobody_announced_is_shown_and_not_adopted(self) -> None:
        """O16: a stranger's order, and one of a draft here."""
        with self.trade(unsafe=True) as trade, trade.ledger() as ledger:
            claim = trade.claim(ledger)
            draft = trade.draft(ledger, claim)
            stranger = replace(draft.query, operation_id="e" * 32)
            for query in (draft.query, stranger):
                unsafe.send_past_the_library(trade.supplier.receiver(), query)
            text = self.told(trade, "2 findings", "here      no row knows it\n", "e" * 32)
            self.assertEqual(text.count("finding   effect_unannounced\n"), 2)
            self.assertIn("here      prepared, version 1; 1 order, 0 sendings\n", text)

    def test_agreement_is_said_in_one_line(self) -> None:
        """O16: a confirmed order, and a draft that neither side expects there."""
        with self.trade() as trade:
            self.ordered(trade)
            with trade.ledger() as ledger:
                trade.draft(ledger, trade.claim(ledger, "w-2"), "draft", tubs=1)
            text = self.told(trade)
            self.assertEqual(text, "this ledger and the account of lucy-local agree\n")

    def test_a_paused_store_is_diagnosed_and_says_that_it_is_paused(self) -> None:
        """O16, L13: what it sent after its backup stands there unannounced."""
        with self.trade() as trade:
            with trade.ledger() as ledger:
                copy = backup(ledger, trade.scene.sender.with_name("backup.db"))
            self.ordered(trade)
            old = restore(copy, trade.scene.sender.with_name("old.db"))
            before = oracle.dump(old)
            words = self.asked(trade)
            status, text, _ = main(words[0], old, *words[2:])
            self.assertEqual((status, oracle.dump(old)), (0, before))
            self.assertTrue(text.startswith("PAUSED: it was restored from backup.db"), text)
            self.assertIn("effect_unannounced", text)

    def test_a_supplier_that_does_not_answer_as_itself_is_refused(self) -> None:
        """O16: another identity, every url that is none, and one that is not running."""
        with self.trade("--drop-first-response") as trade:
            self.ordered(trade)
            self.no(trade, {"supplier": "other"}, "is 'lucy-local' in epoch 1")
            self.no(trade, {"supplier": ""}, "identity: is empty")
            port = trade.supplier.url.rpartition(":")[2]
            for url in (
                *("", " ", "nonsense", "ftp://127.0.0.1:1", "http://127.0.0.1", "http://:80"),
                *("http://127.0.0.1:99999", "http://127.0.0.1:x", "http://[::1", "http://a b:1"),
                *(f"http://127.0.0.1:{port}/x", f"http://127.0.0.1:{port}?x=1", "http://\udcff:1"),
                *(f"https://127.0.0.1:{port}", f"http://u:p@127.0.0.1:{port}", "http://\u0661:1"),
                *(f"http://{'a' * 70}:1", f"http://a..b:{port}", "http://127.0.0.1:0"),
            ):
                with self.subTest(url):
                    self.no(trade, {"url": url})
            url = trade.supplier.url
        done = run(*self.asked(trade, url=url))
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertRegex(done.stderr.decode(), r"\Areconcile: [^\n]+\n\Z")

    def no(self, trade: Trade, changed: dict[str, str], *says: str) -> None:
        before = self.stands(trade.scene)
        status, out, err = main(*self.asked(trade, **changed))
        self.assertEqual((status, out), (2, ""), err)
        self.assertRegex(err, r"\Areconcile: [^\n]+\n\Z")
        for part in says:
            self.assertIn(part, err)
        self.assertEqual(self.stands(trade.scene), before)

    def test_diagnose_makes_no_file(self) -> None:
        """O16, P7: a missing, empty and foreign ledger; nothing beside them either."""
        with self.trade() as trade:
            folder = trade.scene.sender.parent / "none"
            folder.mkdir()
            (folder / "empty.db").touch()
            (folder / "text.db").write_bytes(b"no database\n" * 400)
            before = {p.name: p.read_bytes() for p in folder.iterdir()}
            words = self.asked(trade)
            for name in ("missing.db", "empty.db", "text.db", ""):
                with self.subTest(name):
                    status, out, err = main(words[0], folder / name, *words[2:])
                    self.assertEqual((status, out), (2, ""))
                    self.assertRegex(err, r"\Areconcile: [^\n]+\n\Z")
            self.assertEqual({p.name: p.read_bytes() for p in folder.iterdir()}, before)
            shutil.rmtree(folder)


if __name__ == "__main__":
    unittest.main()


class AskingByCommand(LabCase):
    """`inquire`, and what explains a word: commands that help before anybody decides."""

    def test_inquire_settles_by_the_stored_receipt_and_sends_no_order(self) -> None:
        """O9, O14: found; then again, nothing moves; the supplier was sent one order."""
        options = ("--drop-first-response",)
        with trading(self.lab, options=options) as trade:
            with trade.ledger() as ledger:
                order_id, claim = trade.ready(ledger)
                dispatch(ledger, order_id, trade.receiver(), claim=claim)
            words = ("inquire", trade.scene.sender, order_id, f"--url={trade.supplier.url}")
            status, out, err = main(*words)
            self.assertEqual((status, err), (0, ""))
            self.assertIn("a receipt came: it was unknown, and is confirmed", out)
            self.assertIn("1500 GBP (minor units), spent", out)
            self.assertIn("nothing moved", main(*words)[1])
        asked = [request for request, _ in oracle.contacts(trade.scene.receiver_file)]
        self.assertEqual(asked, ["apply", "lookup", "lookup"])

    def test_inquire_that_finds_nothing_says_that_this_proves_nothing(self) -> None:
        """O9, O10: the order stays unknown, and its money held."""
        options = ("--drop-first-response", "--lookup-delay", "1000000000")
        with trading(self.lab, options=options) as trade:
            with trade.ledger() as ledger:
                order_id, claim = trade.ready(ledger)
                dispatch(ledger, order_id, trade.receiver(), claim=claim)
            words = ("inquire", trade.scene.sender, order_id, f"--url={trade.supplier.url}")
            self.assertIn("no receipt is stored there, which proves nothing", main(*words)[1])
        self.assertEqual(trade.scene.states(), {"order": "unknown"})

    def test_status_names_every_draft_with_the_digest_that_an_approval_needs(self) -> None:
        """O5, O13: who is to approve finds the order without a query."""
        with trading(self.lab) as trade:
            with trade.ledger() as ledger:
                draft = trade.draft(ledger, trade.claim(ledger))
            said = main("status", trade.scene.sender)[1]
        for part in ("drafts of orders: 1\n", draft.operation_id, draft.digest, "no approval"):
            self.assertIn(part, said)

    def test_every_diagnosis_is_explained_by_its_name(self) -> None:
        """O16: the four answers, without a file."""
        for diagnosis in Diagnosis:
            status, out, _ = main("explain", diagnosis.value)
            self.assertEqual(status, 0)
            for answer_ in diagnosis.advice:
                self.assertIn(answer_, out)

    def test_a_receipt_that_is_no_file_is_refused_and_not_waited_for(self) -> None:
        """O13: a pipe without a writer would be waited for all night."""
        folder = self.lab.scene().sender.parent
        with self.assertRaises(StorageFailed):
            read_receipt(str(folder))
        if hasattr(os, "mkfifo"):
            os.mkfifo(folder / "pipe")
            with self.assertRaises(StorageFailed):
                read_receipt(str(folder / "pipe"))

    def test_a_receipt_is_read_as_its_reply_brought_it(self) -> None:
        """O13: within its envelope, or alone."""
        with trading(self.lab) as trade, trade.ledger() as ledger:
            order_id, _ = trade.ready(ledger)
            receipt = answer(look(ledger, order_id).query)
            file = trade.scene.sender.with_name("reply.json")
            for text in (
                text_of(receipt),
                f'{{"reply": "receipt", "receipt": {text_of(receipt)}}}',
            ):
                file.write_text(text, encoding="utf-8")
                self.assertEqual(read_receipt(str(file)), receipt)
