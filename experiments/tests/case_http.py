"""The adapter to a supplier behind HTTP: what it sends, and what is an answer."""

from __future__ import annotations

import json
import os
import socket
import threading
import unittest
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any
from unittest import mock

from experiments.harness import oracle
from experiments.harness.inprocess import InProcessSupplier, create
from experiments.harness.supplier import BLIND, IDENTITY, KEYED, Supplier
from experiments.tests.case_supplier import BROKEN, WHOLE, SupplierCase, close_by_pipe
from reconcile.flows import http_call
from reconcile.flows.http_receiver import HttpReceiver, order_body
from reconcile.rules.errors import Malformed, NoReply, NotSent, ReconcileError
from reconcile.rules.evidence import Query

QUERY = Query(
    operation_id="c" * 32,
    target=IDENTITY,
    kind="order",
    payload='{"quantity":6}',
    compensates=None,
    epoch=1,
)
CLOSED = replace(QUERY, operation_id="d" * 32)
GREETING = {"reply": "account", "identity": IDENTITY, "epoch": 1}
RECEIPT = {
    "operation_id": QUERY.operation_id,
    "status": "accepted",
    "effect_id": f"{QUERY.operation_id}#1",
    "kind": "order",
    "payload": QUERY.payload,
    "compensates": None,
    "receiver": IDENTITY,
    "epoch": 1,
}


class AgainstTheSupplier(SupplierCase):
    """The adapter and the real process."""

    def test_an_order_a_lookup_a_snapshot_and_a_listing_agree(self) -> None:
        """O9, O14, O19: one receipt, one effect, in every way it can be asked for."""
        receiver = self.start().receiver()
        self.assertIsNone(receiver.lookup(QUERY))
        receipt = receiver.send(QUERY)
        assert receipt is not None
        self.assertEqual((receipt.status, receipt.query), ("accepted", QUERY))
        self.assertEqual(receiver.lookup(QUERY), receipt)
        facts = receiver.snapshot(QUERY)
        self.assertEqual((facts.complete, facts.authoritative, facts.closed), (True, True, False))
        self.assertEqual(receiver.listing(), facts.effects)
        self.assertEqual(
            (receiver.policy, self.start().receiver(policy=BLIND).policy), (KEYED, BLIND)
        )

    def test_every_broken_reply_is_no_reply_and_the_lookup_finds_the_effect(self) -> None:
        """O15, C03: no raw error escapes."""
        for name in BROKEN:
            with self.subTest(name), self.breaking(name) as supplier:
                with self.assertRaises(NoReply):
                    supplier.receiver(limit_s=0.3 if name == "stall" else 30).send(QUERY)
                self.found_once(supplier)

    def test_every_wrong_reply_is_no_reply_and_the_lookup_finds_the_effect(self) -> None:
        """O15, C12: a wrong receipt alone is handed on, to be judged by the sender's rules."""
        for name in WHOLE:
            with self.subTest(name), self.breaking(name) as supplier:
                if name == "wrong-receipt":
                    said = supplier.receiver().send(QUERY)
                    assert said is not None
                    self.assertNotEqual(said.query, QUERY)
                else:
                    with self.assertRaises(NoReply):
                        supplier.receiver().send(QUERY)
                self.found_once(supplier)

    def test_a_supplier_within_the_process_answers_and_notes_what_the_real_one_does(self) -> None:
        """O9, O14: under each term of its account; values, refusals and every row of its file."""
        for words, terms in (
            ((), {}),
            (("--reject",), {"rejects": True}),
            (("--not-idempotent",), {"keyed": False}),
            (("--retention", "0"), {"retention_ms": 0}),
            (("--lookup-delay", "1"), {"lookup_delay_ms": 1}),
        ):
            with self.subTest(words):
                far, near = (self.file.with_name(f"{at}{words}.db") for at in ("far", "near"))
                real = self.start("--now", "5", *words, file=far).receiver()
                create(near, IDENTITY)
                for file in (far, near):
                    close_by_pipe(file, CLOSED.operation_id)
                within = InProcessSupplier(near, clock=lambda: 5, **terms)
                self.assertEqual(told_by(within), told_by(real))
                self.assertEqual(oracle.dump(near), oracle.dump(far))

    def breaking(self, fault: str) -> Supplier:
        self.file = self.file.with_name(f"{fault}.db")
        return self.start("--fault", fault)

    def found_once(self, supplier: Supplier) -> None:
        """One send was received, one effect stands, and the lookup has its receipt."""
        self.assertEqual(self.effects(), 1)
        self.assertEqual(len(oracle.bodies(self.file, QUERY.operation_id)), 1)
        found = supplier.receiver().lookup(QUERY)
        assert found is not None
        self.assertEqual(found.query, QUERY)

    def test_requests_received_equal_sends_made_whatever_the_environment_says(self) -> None:
        """O20, C44: proxies set, replies dropped and redirected; the same bytes each time."""
        with Scripted([]) as proxy:
            names = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
            with mock.patch.dict(os.environ, dict.fromkeys(names, proxy.url)):
                for fault in ("no-bytes", "redirect", "reset"):
                    self.file = self.file.with_name(f"{fault}.db")
                    receiver = self.start("--fault", fault).receiver()
                    for sends in (1, 2, 3):
                        with suppress(NoReply):
                            receiver.send(QUERY)
                        bodies = oracle.bodies(self.file, QUERY.operation_id)
                        self.assertEqual(bodies, [order_body(QUERY).decode()] * sends)
                    self.assertEqual(self.effects(), 1)
            self.assertEqual(proxy.heard, [])

    def test_nothing_reaches_an_account_of_another_name_or_epoch(self) -> None:
        """O9: neither order nor lookup nor listing; the file has not a line more."""
        supplier = self.start()
        for named in ({"identity": "somebody else"}, {"identity": IDENTITY, "epoch": 2}):
            receiver = HttpReceiver(supplier.url, **named)
            for ask in asks(receiver):
                with self.subTest(named), self.assertRaises(NotSent):
                    ask()
        self.assertEqual(oracle.contacts(self.file), [])

    def test_a_mismatch_is_no_reply_and_a_closed_operation_has_none(self) -> None:
        """O15, C12: another proposal under the identity; a close mark."""
        receiver = self.start().receiver()
        receiver.send(QUERY)
        with self.assertRaisesRegex(NoReply, "409 mismatch"):
            receiver.send(replace(QUERY, payload="{}"))
        close_by_pipe(self.file, "op-2")
        self.assertIsNone(receiver.send(replace(QUERY, operation_id="op-2")))
        self.assertEqual(self.effects(), 1)

    def test_identities_are_asked_about_exactly(self) -> None:
        """C32: whatever characters they hold."""
        receiver = self.start().receiver()
        names = ("op", "OP", "op ", "o%", "o_", "a/b", "a?b", "a#b", "ö\n", "..", "a+b", "%2e")
        for name in names:
            query = replace(QUERY, operation_id=name)
            with self.subTest(name):
                self.assertIsNone(receiver.lookup(query))
                self.assertEqual(receiver.send(query), receiver.lookup(query))
                self.assertEqual(len(receiver.snapshot(query).effects), 1)
        self.assertEqual({effect.operation_id for effect in receiver.listing()}, set(names))

    def test_a_listing_of_many_pages_is_read_whole(self) -> None:
        """O19: one call, every effect, in order."""
        receiver = self.start(prelude="from receiver import account; account.PAGE = 2").receiver()
        for name in "edcba":
            receiver.send(replace(QUERY, operation_id=name))
        self.assertEqual([e.effect_id for e in receiver.listing()], [f"{n}#1" for n in "abcde"])

    def test_a_close_is_refused_before_any_contact(self) -> None:
        """O9: this supplier has no way to close."""
        supplier = self.start()
        supplier.close()
        with self.assertRaises(NoReply):
            supplier.receiver().snapshot(QUERY, close=True)

    def test_a_refused_connection_is_the_one_thing_that_was_never_sent(self) -> None:
        """O15: nobody listens any more."""
        supplier = self.start()
        supplier.close()
        for ask in asks(supplier.receiver()):
            with self.assertRaises(NotSent):
                ask()


class AgainstAnyServer(SupplierCase):
    """The adapter and replies that no honest supplier gives."""

    def test_a_greeting_that_names_nobody_is_no_reply_and_nothing_is_sent_after_it(self) -> None:
        """O9, O15: only a definite other name is proof."""
        for said in (
            b"",
            b"HTTP/1.1 500 no\r\nContent-Length: 2\r\n\r\n{}",
            reply(GREETING, status=302),
            reply({"reply": "account"}),
            reply({**GREETING, "epoch": "1"}),
            reply({**GREETING, "reply": "receipt"}),
            reply([]),
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        ):
            with self.subTest(said), Scripted([said]) as server:
                with self.assertRaises(NoReply):
                    server.receiver().send(QUERY)
                self.assertEqual(len(server.heard), 1)
                self.assertTrue(server.heard[0].startswith(b"GET /account "))

    def test_a_reply_that_is_no_receipt_is_never_taken_for_one(self) -> None:
        """O15, C03: of whatever status and form."""
        for said in (
            reply({"reply": "receipt", "receipt": RECEIPT}, status=202),
            reply({"reply": "receipt", "receipt": {**RECEIPT, "epoch": "1"}}),
            reply({"reply": "receipt", "receipt": {**RECEIPT, "more": 1}}),
            reply({"reply": "receipt"}),
            reply({"reply": "snapshot", "receipt": RECEIPT}),
            reply({"reply": "closed"}),
            reply({"reply": "absent"}, status=404),
            reply("receipt"),
            b"HTTP/1.1 204 \r\n\r\n",
            b"HTTP/1.1 200 \r\nContent-Length: 99999999999\r\n\r\n{",
            b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            reply({"reply": "receipt", "receipt": RECEIPT}).replace(b"Length: ", b"Length: 1"),
            b"HTTP/1.1 200 \r\n\r\n" + b"[" * 9999,
            b"HTTP/1.1 200 \r\n\r\n\xff",
            b"HTTP/1.1 200 \r\n" + b"a: b\r\n" * 200 + b"\r\n",
            b"SSH-2.0-x\r\n",
        ):
            with self.subTest(said[:60]), Scripted([reply(GREETING), said]) as server:
                with self.assertRaises((NoReply, Malformed)):
                    server.receiver().send(QUERY)
                self.assertEqual(len(server.heard), 2)

    def test_not_found_is_an_answer_only_to_a_lookup_and_only_as_absent(self) -> None:
        """O8: and it proves nothing; a stranger's 404 is no answer at all."""
        with Scripted([reply(GREETING), reply({"reply": "absent"}, status=404)]) as server:
            self.assertIsNone(server.receiver().lookup(QUERY))
        for said in (reply({"reply": "error"}, status=404), reply({"reply": "absent"})):
            with Scripted([reply(GREETING), said]) as server, self.assertRaises(NoReply):
                server.receiver().lookup(QUERY)

    def test_a_server_that_drips_is_bounded_as_a_whole(self) -> None:
        """O15: a byte at a time, each in time by itself."""
        with (
            Scripted([reply(GREETING)], drips=b"HTTP/1.1 200 OK\r\n") as server,
            self.assertRaisesRegex(NoReply, "timed out"),
        ):
            server.receiver(limit_s=0.2).send(QUERY)

    def test_a_reply_above_the_bound_is_no_reply(self) -> None:
        """O15: with and without a length."""
        body = json.dumps({"reply": "receipt", "receipt": RECEIPT}).encode()
        for head in (b"Content-Length: %d\r\n" % len(body), b""):
            with Scripted(
                [reply(GREETING), b"HTTP/1.1 200 \r\n" + head + b"\r\n" + body]
            ) as server:
                receiver = server.receiver()
                with (
                    mock.patch.object(http_call, "LONGEST_REPLY", len(body) - 1),
                    self.assertRaises(NoReply),
                ):
                    receiver.send(QUERY)

    def test_a_listing_that_does_not_advance_is_refused(self) -> None:
        """O19: the same page again, an empty page that goes on, a stranger's page."""
        row = {name: RECEIPT[name] for name in ("effect_id", "operation_id", "kind", "payload")}
        page = {"reply": "listing", "receiver": IDENTITY, "epoch": 1, "next": row["effect_id"]}
        page["effects"] = [{**row, "compensates": None}]
        last = {**page, "next": None}
        for pages in (
            [page, page, last],
            [{**page, "effects": []}, last],
            [{**page, "next": "another#1"}, {**last, "effects": []}],
            [{**page, "receiver": "another"}],
            [{**page, "epoch": 2}],
            [{**page, "effects": None}],
            [{**page, "effects": [row]}],
            [{**page, "next": 1}],
        ):
            replies = [reply(GREETING), *map(reply, pages)]
            with (
                self.subTest(pages),
                Scripted(replies) as server,
                self.assertRaises((NoReply, Malformed)),
            ):
                server.receiver().listing()

    def test_a_connection_that_was_closed_after_the_greeting_is_not_made_anew(self) -> None:
        """O20, C44: no second connection, and not one byte of the order on any."""
        closing = reply(GREETING).replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
        with Scripted([closing]) as server, self.assertRaises(NoReply):
            server.receiver().send(QUERY)
        self.assertEqual((len(server.heard), server.connections), (1, 1))

    def test_an_interrupt_passes_on_and_leaves_no_connection(self) -> None:
        """O15: Ctrl-C while the reply is waited for."""
        with (
            Scripted([reply(GREETING)]) as server,
            mock.patch.object(json, "loads", side_effect=KeyboardInterrupt),
            self.assertRaises(KeyboardInterrupt),
        ):
            server.receiver().send(QUERY)

    def test_wrong_arguments_are_refused_by_name(self) -> None:
        """P7: before any contact."""
        good: dict[str, Any] = {"url": "http://127.0.0.1:1", "identity": IDENTITY}
        for url in (
            "",
            "127.0.0.1:1",
            "https://a:1",
            "http://a",
            "http://:1",
            "http://a:x",
            5,
            "http://a:1/path",
            "http://u@a:1",
            "http://a:1?q",
            "http://a:99999",
        ):
            with self.subTest(url), self.assertRaises(Malformed):
                HttpReceiver(**{**good, "url": url})
        for odd in (
            {"identity": ""},
            {"epoch": 0},
            {"policy": 1},
            {"limit_s": 0},
            {"limit_s": True},
            {"limit_s": "1"},
            {"limit_s": float("inf")},
        ):
            with self.subTest(odd), self.assertRaises(Malformed):
                HttpReceiver(**{**good, **odd})


def told_by(receiver: HttpReceiver | InProcessSupplier) -> list[object]:
    """What it answers, or by which error it refuses, to one of each question."""
    seven = replace(QUERY, payload='{"quantity":7}')
    told: list[object] = []

    def ask(call: Callable[..., object], *words: object, **named: object) -> None:
        try:
            told.append(call(*words, **named))
        except ReconcileError as error:
            told.append(type(error))

    for query in (QUERY, QUERY, seven, CLOSED, replace(QUERY, target="another")):
        for call in (receiver.lookup, receiver.send, receiver.lookup, receiver.snapshot):
            ask(call, query)
    ask(receiver.snapshot, QUERY, close=True)
    ask(receiver.listing)
    receiver.epoch = 2
    for call in (receiver.lookup, receiver.send, receiver.snapshot):
        ask(call, QUERY)
    ask(receiver.listing)
    return told


class Scripted:
    """A server that gives these replies on one connection, one for each request it hears, and
    then closes it; or drips bytes, without an end. Other connections it closes at once.
    """

    def __init__(self, replies: list[bytes], *, drips: bytes = b"") -> None:
        self._replies, self._drips, self.heard = replies, drips, list[bytes]()
        self.connections = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def receiver(self, *, limit_s: float = 30) -> HttpReceiver:
        return HttpReceiver(self.url, identity=IDENTITY, limit_s=limit_s)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                with self._socket.accept()[0] as connection, suppress(OSError):
                    self.connections += 1
                    if self.connections == 1:
                        self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        for said in self._replies:
            self.heard.append(whole_request(connection))
            connection.sendall(said)
        while self._drips and not self._done.wait(0.02):
            connection.sendall(self._drips[:1])
            self._drips = self._drips[1:] or b"a"

    def __enter__(self) -> Scripted:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        with suppress(OSError):  # it may wait still for the first who comes
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


def whole_request(connection: socket.socket) -> bytes:
    """Head and body of one request."""
    said = b""
    while b"\r\n\r\n" not in said and (part := connection.recv(1 << 16)):
        said += part
    head, _, body = said.partition(b"\r\n\r\n")
    sizes = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    size = int(sizes[0].partition(b":")[2]) if sizes else 0
    while len(body) < size and (part := connection.recv(1 << 16)):
        body += part
    return head + b"\r\n\r\n" + body


def reply(said: object, *, status: int = 200) -> bytes:
    body = json.dumps(said).encode()
    return b"HTTP/1.1 %d \r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body


def asks(receiver: HttpReceiver) -> Iterator[Any]:
    """Every way to ask."""
    yield lambda: receiver.send(QUERY)
    yield lambda: receiver.lookup(QUERY)
    yield lambda: receiver.snapshot(QUERY)
    yield receiver.listing


if __name__ == "__main__":
    unittest.main()
