"""The supplier: a process behind HTTP that knows orders again, and what it does to its replies."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import unittest
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from experiments.harness import oracle
from experiments.harness.plain import receiver_command
from experiments.harness.processes import LIMIT_S, command
from experiments.harness.supplier import IDENTITY, Supplier

POSIX = os.name == "posix"
ORDER: dict[str, Any] = {
    "target": IDENTITY,
    "kind": "order",
    "payload": '{"quantity":6}',
    "compensates": None,
}
OTHER = {**ORDER, "payload": '{"quantity":7}'}
BROKEN: dict[str, type[Exception]] = {  # how a plain client of the standard library meets it
    "short-body": http.client.IncompleteRead,
    "no-bytes": http.client.RemoteDisconnected,
    "cut-json": json.JSONDecodeError,
    "bad-status-line": http.client.BadStatusLine,
    "stall": TimeoutError,
    "reset": ConnectionResetError,
}
WHOLE = {  # status, and what it says
    "redirect": (302, "moved"),
    "wrong-receipt": (200, "receipt"),
    "error-after-commit": (500, "error"),
    "conflict-in-progress": (409, "in_progress"),
    "conflict-exists": (409, "exists"),
}


class SupplierCase(unittest.TestCase):
    """Gives `self.file` and suppliers on it. Its end fails on a process or thread that is left."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="reconcile-")
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "supplier.db"
        self.running: list[Supplier] = []
        self.addCleanup(lambda: self.assertEqual(living(), [threading.main_thread()]))
        self.addCleanup(self.end_all)

    def end_all(self) -> None:
        for supplier in self.running:
            supplier.close()

    def start(self, *options: str, file: Path | None = None, prelude: str = "") -> Supplier:
        supplier = Supplier(file or self.file, options=options, prelude=prelude)
        self.running.append(supplier)
        return supplier

    def effects(self) -> int:
        return sum(map(len, oracle.effects(self.file).values()))


class KnowsOrdersAgain(SupplierCase):
    """One identity, one effect, one receipt."""

    def test_the_same_order_again_gives_the_same_receipt_and_no_second_effect(self) -> None:
        """O14, O9: also after a restart, and a lookup gives it as well."""
        supplier = self.start()
        first = put(supplier, "op-1")
        self.assertEqual((first[0], first[1]["receipt"]["status"]), (200, "accepted"))
        self.assertEqual(put(supplier, "op-1"), first)
        supplier.close()
        again = self.start()
        self.assertEqual(put(again, "op-1"), first)
        self.assertEqual(get(again, "/operations/op-1"), first)
        self.assertEqual(self.effects(), 1)
        self.assertEqual(again.announced["epoch"], 1)

    def test_another_proposal_under_a_known_identity_is_a_mismatch_and_leaves_nothing(
        self,
    ) -> None:
        """C12, C16: whichever part of the proposal differs."""
        supplier = self.start()
        put(supplier, "op-1")
        for changed in ({"payload": "{}"}, {"kind": "cancel"}, {"compensates": "op-0#1"}):
            with self.subTest(changed):
                said = put(supplier, "op-1", {**ORDER, **changed})
                self.assertEqual(said, (409, {"reply": "mismatch"}))
        self.assertEqual(self.effects(), 1)

    def test_identities_that_differ_in_anything_are_different(self) -> None:
        """C32: case, spaces, %, _, slashes, and other alphabets; lookups are exact."""
        names = (
            "op-1",
            "OP-1",
            "op-1 ",
            " op-1",
            "op%1",
            "op_1",
            "op/1",
            "op?1",
            "op#1",
            "öp",
            "+",
        )
        supplier = self.start()
        for at, name in enumerate(names):
            self.assertEqual(get(supplier, path_of(name))[0], 404, name)
            put(supplier, name, {**ORDER, "payload": f'{{"n":{at}}}'})
        for at, name in enumerate(names):
            with self.subTest(name):
                status, said = get(supplier, path_of(name))
                self.assertEqual((status, said["receipt"]["operation_id"]), (200, name))
                self.assertEqual(said["receipt"]["payload"], f'{{"n":{at}}}')
                effects = get(supplier, path_of(name) + "/effects")[1]["snapshot"]["effects"]
                self.assertEqual([e["effect_id"] for e in effects], [f"{name}#1"])

    def test_an_absent_order_may_still_come(self) -> None:
        """O8: a lookup that finds nothing closes nothing."""
        supplier = self.start()
        self.assertEqual(get(supplier, "/operations/op-1"), (404, {"reply": "absent"}))
        self.assertEqual(put(supplier, "op-1")[0], 200)

    def test_a_snapshot_is_closed_only_where_a_mark_stands_and_leaves_no_trace(self) -> None:
        """O9: this supplier cannot be asked to close; the pipe to the same file can."""
        supplier = self.start()
        put(supplier, "op-1")
        before = oracle.dump(self.file)
        snapshot = get(supplier, "/operations/op-1/effects")[1]["snapshot"]
        self.assertEqual((snapshot["complete"], snapshot["authoritative"]), (True, True))
        self.assertEqual((snapshot["closed"], len(snapshot["effects"])), (False, 1))
        self.assertEqual(oracle.dump(self.file), before)
        for name in ("op-1", "op-2"):
            close_by_pipe(self.file, name)
        self.assertTrue(get(supplier, "/operations/op-1/effects")[1]["snapshot"]["closed"])
        self.assertEqual(put(supplier, "op-1")[1]["reply"], "receipt")  # what is stored, is stored
        self.assertEqual(put(supplier, "op-2"), (409, {"reply": "closed"}))
        self.assertEqual(self.effects(), 1)

    def test_a_rejection_is_stored_and_closes_the_operation_to_late_originals(self) -> None:
        """O8: by HTTP, after a restart, and by the pipe; a lookup gives the rejection."""
        supplier = self.start("--reject")
        first = put(supplier, "op-1")
        receipt = first[1]["receipt"]
        self.assertEqual((receipt["status"], receipt["effect_id"]), ("rejected", None))
        supplier.close()
        later = self.start()
        self.assertEqual(put(later, "op-1"), first)
        self.assertEqual(get(later, "/operations/op-1"), first)
        self.assertEqual(put(later, "op-1", OTHER), (409, {"reply": "mismatch"}))
        self.assertEqual(
            by_pipe(self.file, {**ORDER, "request": "apply", "operation": "op-1"})["reply"],
            "closed",
        )
        self.assertEqual((oracle.closed(self.file), oracle.declined(self.file)), (["op-1"],) * 2)
        self.assertEqual(self.effects(), 0)

    def test_a_supplier_that_knows_no_identities_makes_an_effect_each_time(self) -> None:
        """O10: and its lookups find nothing, ever."""
        supplier = self.start("--not-idempotent")
        made = [put(supplier, "op-1")[1]["receipt"]["effect_id"] for _ in range(3)]
        self.assertEqual(made, ["op-1#1", "op-1#2", "op-1#3"])
        self.assertEqual(get(supplier, "/operations/op-1"), (404, {"reply": "absent"}))

    def test_an_identity_is_known_for_its_retention_and_not_a_moment_longer(self) -> None:
        """O18, C26: at 9, 10 and 11 of 10, each after a restart."""
        self.start("--now", "0").close()
        for now, known in (
            (0, False),
            (9, True),
            (10, False),
            (11, True),
            (19, True),
            (20, False),
        ):
            with self.subTest(now), self.start("--retention", "10", "--now", str(now)) as supplier:
                self.assertEqual(get(supplier, "/operations/op-1")[0], 200 if known else 404)
                put(supplier, "op-1")
        self.assertEqual(self.effects(), 3)  # at 0, 10 and 20

    def test_lookups_that_lag_see_an_effect_only_later(self) -> None:
        """O18: they alone; the snapshot and the order itself know it at once."""
        with self.start("--lookup-delay", "5", "--now", "100") as supplier:
            first = put(supplier, "op-1")
            self.assertEqual(get(supplier, "/operations/op-1")[0], 404)
            self.assertEqual(put(supplier, "op-1"), first)
            shown = get(supplier, "/operations/op-1/effects")[1]["snapshot"]["effects"]
            self.assertEqual(len(shown), 1)
        for now, status in ((104, 404), (105, 200)):
            with self.start("--lookup-delay", "5", "--now", str(now)) as supplier:
                self.assertEqual(get(supplier, "/operations/op-1")[0], status)

    def test_the_listing_shows_every_effect_of_the_account_in_pages(self) -> None:
        """O19: in order, whoever asked for them, also what came by the pipe."""
        supplier = self.start(prelude="from receiver import account; account.PAGE = 2")
        names = ["a", "b", "b#1", "c", "d"]
        for name in reversed(names):
            put(supplier, name)
        by_pipe(self.file, {**ORDER, "request": "apply", "operation": "b"})
        seen, pages, after = [], 0, ""
        while after is not None:
            page = get(supplier, "/operations", f"&after={quote(after, safe='')}" if after else "")
            self.assertEqual((page[1]["receiver"], page[1]["epoch"]), (IDENTITY, 1))
            seen += [effect["effect_id"] for effect in page[1]["effects"]]
            pages, after = pages + 1, page[1]["next"]
        self.assertEqual(seen, ["a#1", "b#1", "b#2", "b#1#1", "c#1", "d#1"])
        self.assertEqual(pages, 3)
        self.assertEqual(
            [c for c in oracle.contacts(self.file) if c[0] == "list"], [("list", "")] * 3
        )


class AtTheSameMoment(SupplierCase):
    """Requests of one identity that overlap: real threads, ordered by permits."""

    def test_of_two_orders_at_once_the_second_waits_and_gets_the_same_receipt(self) -> None:
        """C16: held before the commit and after it; one effect."""
        for hold in ("--hold-commit", "--hold-response"):
            with self.subTest(hold):
                name = f"op{hold}"
                first, second = self.two(self.start(hold), name, ORDER)
                self.assertEqual(first, second)
                self.assertEqual(first[0], 200)
                self.assertEqual(len(oracle.effects(self.file)[name]), 1)

    def test_of_two_bodies_at_once_one_is_done_and_the_other_left_nothing(self) -> None:
        """C16: whichever comes first, that one stands."""
        supplier = self.start("--hold-commit")
        for name, one, other in (("op-1", ORDER, OTHER), ("op-2", OTHER, ORDER)):
            with self.subTest(name):
                first, second = self.two(supplier, name, other, one=one)
                self.assertEqual((first[0], second), (200, (409, {"reply": "mismatch"})))
                (effect,) = oracle.effects(self.file)[name]
                self.assertEqual(effect["payload"], one["payload"])

    def test_a_busy_identity_is_refused_at_once_where_the_supplier_says_so(self) -> None:
        """C12: 409 in progress, before and after the commit; other identities go on."""
        for hold in ("--hold-commit", "--hold-response"):
            supplier = self.start(hold, "--busy-conflict")
            with self.subTest(hold), ThreadPoolExecutor() as pool:
                first = pool.submit(put, supplier, hold)
                self.assertEqual(supplier.wait_until_holding(), hold)
                self.assertEqual(put(supplier, hold), (409, {"reply": "in_progress"}))
                aside = pool.submit(put, supplier, f"aside{hold}")
                supplier.permit(supplier.wait_until_holding())
                self.assertEqual(aside.result(LIMIT_S)[0], 200)
                supplier.permit(hold)
                self.assertEqual(first.result(LIMIT_S)[0], 200)

    def test_many_orders_at_once_make_one_effect(self) -> None:
        """C16: eight threads, one identity, nothing held."""
        supplier = self.start()
        with ThreadPoolExecutor(8) as pool:
            said = list(pool.map(lambda _: json.dumps(put(supplier, "op-1")), range(8)))
        self.assertEqual(len(set(said)), 1)
        self.assertEqual(self.effects(), 1)

    def test_two_suppliers_of_one_file_make_one_effect(self) -> None:
        """C16: the transaction decides, not a lock of one process."""
        both = self.start(), self.start()
        with ThreadPoolExecutor(8) as pool:
            said = list(pool.map(lambda at: json.dumps(put(both[at % 2], "op-1")), range(8)))
        self.assertEqual((len(set(said)), self.effects()), (1, 1))

    def test_nobody_writes_between_the_look_for_an_identity_and_its_effect(self) -> None:
        """C16: whoever tries it meanwhile, with a connection of his own, finds the file held."""
        supplier = self.start(
            prelude="import sqlite3 as q; from receiver import account as a; known = a._known; "
            "other = lambda: q.connect(sys.argv[2], timeout=0, isolation_level=None); "
            "tried = lambda: other().execute('BEGIN IMMEDIATE').execute('ROLLBACK'); "
            "a._known = lambda *w: (known(*w), tried())[0]"
        )
        status, said = put(supplier, "op-1")
        self.assertEqual((status, said["why"]), (503, "database is locked"))
        self.assertEqual(self.effects(), 0)

    def test_only_the_exact_permit_lets_a_held_reply_go(self) -> None:
        """O15: any other line changes nothing."""
        supplier = self.start("--hold-response")
        with ThreadPoolExecutor() as pool:
            first = pool.submit(put, supplier, "op-1")
            supplier.wait_until_holding()
            for line in (b"permit op-2\n", b"permit op-1 \n", b"PERMIT op-1\n", b"\n"):
                supplier.child.say(line)
            self.assertEqual(get(supplier, "/operations/op-1")[0], 200)  # it goes on with others
            self.assertFalse(first.done())
            supplier.permit("op-1")
            self.assertEqual(first.result(LIMIT_S)[0], 200)

    def two(
        self, supplier: Supplier, name: str, other: dict[str, Any], *, one: dict[str, Any] = ORDER
    ) -> tuple[Any, Any]:
        """The first holds, the second has arrived, and only then permits are given."""
        with ThreadPoolExecutor() as pool:
            first = pool.submit(put, supplier, name, one)
            supplier.wait_until_holding()
            second = pool.submit(put, supplier, name, other)
            while len(oracle.bodies(self.file, name)) < 2:
                get(supplier, "/account")  # until its arrival stands in the file
            supplier.permit(name)
            if supplier.wait_until_holding() == name:
                supplier.permit(name)
            return first.result(LIMIT_S), second.result(LIMIT_S)


class RepliesThatBreak(SupplierCase):
    """After the commit, by name: delivered once for each operation, and the effect is there."""

    def test_each_broken_reply_is_delivered_once_and_the_effect_is_in_the_file(self) -> None:
        """O15, C03: for each operation; then the reply is honest."""
        for name, expected in BROKEN.items():
            with self.subTest(name), self.breaking(name) as supplier:
                for operation_id in ("op-1", "op-2"):
                    with self.assertRaises(expected):
                        put(supplier, operation_id, limit_s=0.1 if name == "stall" else LIMIT_S)
                    self.honest(supplier, operation_id)

    def test_each_wrong_reply_is_delivered_once_and_the_effect_is_in_the_file(self) -> None:
        """O15, C12: whole replies that say something else than what was done."""
        for name, expected in WHOLE.items():
            with self.subTest(name), self.breaking(name) as supplier:
                for operation_id in ("op-1", "op-2"):
                    status, said = put(supplier, operation_id)
                    self.assertEqual((status, said["reply"]), expected)
                    self.honest(supplier, operation_id)

    def test_every_fault_that_the_supplier_lists_is_tried(self) -> None:
        """O15: its own help says which there are."""
        _, said = refused(str(self.file), "--fault", "none such")
        listed = said["why"].rpartition(": one of ")[2].split(", ")
        self.assertEqual(set(listed), {*BROKEN, *WHOLE})

    def test_a_wrong_receipt_is_of_another_operation(self) -> None:
        """O15: whole and well formed, and not the answer."""
        said = put(self.start("--fault", "wrong-receipt"), "op-1")[1]["receipt"]
        self.assertNotEqual(said["operation_id"], "op-1")
        self.assertEqual(said["payload"], ORDER["payload"])

    def test_a_dropped_first_response_is_not_dropped_again_after_a_restart(self) -> None:
        """O14: which reply is the first is derived from the file."""
        with self.start("--drop-first-response") as supplier:
            with self.assertRaises(http.client.RemoteDisconnected):
                put(supplier, "op-1")
            self.assertEqual(self.effects(), 1)
        with self.start("--drop-first-response") as supplier:
            self.assertEqual(put(supplier, "op-1")[0], 200)
            with self.assertRaises(http.client.RemoteDisconnected):
                put(supplier, "op-2")
        self.assertEqual(self.effects(), 2)

    def breaking(self, fault: str) -> Supplier:
        self.file = self.file.with_name(f"{fault}.db")
        return self.start("--fault", fault)

    def honest(self, supplier: Supplier, operation_id: str) -> None:
        """The effect was made before the reply broke, and the next reply says so."""
        self.assertEqual(len(oracle.effects(self.file)[operation_id]), 1)
        status, said = put(supplier, operation_id)
        self.assertEqual((status, said["receipt"]["operation_id"]), (200, operation_id))
        self.assertEqual(len(oracle.effects(self.file)[operation_id]), 1)


class RequestsThatAreNone(SupplierCase):
    """Garbage, halves, strangers: one JSON reason each, and no trace in the file."""

    def setUp(self) -> None:
        super().setUp()
        self.supplier = self.start()
        self.before = oracle.dump(self.file)

    def tearDown(self) -> None:
        self.assertEqual(put(self.supplier, "good")[0], 200)  # it lives, and serves as ever

    def test_a_bad_path_or_body_is_refused_with_a_reason(self) -> None:
        """O14: 400, 404, 405 and 421; nothing is logged and nothing made."""
        good, target = json.dumps(ORDER), f"target={IDENTITY}"
        bodies = ("", "{", "[]", "null", "[" * 9999, "1" * 5000, '"\\ud800"', "\udcff")
        odd = (
            *({**ORDER, "extra": 1}, {**ORDER, "payload": 1}, {**ORDER, "kind": ""}),
            *({**ORDER, "kind": None}, {**ORDER, "compensates": 1}, {**ORDER, "kind": "\ud800"}),
            {**ORDER, "kind": " "},
            *({k: v for k, v in ORDER.items() if k != name} for name in ORDER),
        )
        for status, method, path, body in (
            *((400, "PUT", "/operations/x", text) for text in bodies),
            *((400, "PUT", "/operations/x", json.dumps(fields)) for fields in odd),
            *((400, "PUT", f"/operations/{name}", good) for name in ("%", "%zz", "%ff", "%1")),
            (421, "PUT", "/operations/x", json.dumps({**ORDER, "target": "other"})),
            (400, "PUT", "/operations/x?target=a", good),
            *((421, "GET", f"/operations{p}?target=other", "") for p in ("", "/x", "/x/effects")),
            *((400, "GET", f"/operations{p}", "") for p in ("", "/x", "/x/effects", "/x?a=1")),
            *((400, "GET", f"/operations?{target}&{q}", "") for q in (target, "b=1", "after=x")),
            *(
                (404, "GET", p, "")
                for p in ("/", "/nothing", "/operations/", "/operations/x/y", "/account/x")
            ),
            *((405, "PUT", p, good) for p in ("/account", "/operations", "/operations/x/effects")),
            *((405, m, "/operations/x", good) for m in ("POST", "DELETE", "PATCH", "BREW")),
        ):
            with self.subTest(method=method, path=path, body=body[:60]):
                said = call(self.supplier, method, path, body.encode(errors="surrogateescape"))
                self.assertEqual((said[0], said[1]["reply"]), (status, "error"))
        self.assertEqual(oracle.dump(self.file), self.before)

    def test_bytes_that_are_no_request_are_answered_in_json_or_dropped(self) -> None:
        """O14: never a page of HTML."""
        for sent in (
            b"\x00\x01\r\n\r\n",
            b"GET\r\n\r\n",
            b"GET /account HTTP/9.9\r\n\r\n",
            b"GET /account HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n",
            b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
            b"PUT /operations/x HTTP/1.1\r\nContent-Length: 67108865\r\n\r\n",
            b"PUT /operations/x HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            b"PUT /operations/x HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            b"PUT /operations/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ):
            with self.subTest(sent[:40]):
                head, _, body = raw(self.supplier, sent).partition(b"\r\n\r\n")
                self.assertRegex(head, rb"\AHTTP/1.1 [45]\d\d ")
                self.assertEqual(json.loads(body)["reply"], "error")
        self.assertEqual(oracle.dump(self.file), self.before)

    def test_a_client_that_goes_away_in_the_middle_asked_for_nothing(self) -> None:
        """O20: half a line, half a head, half a body; the server reads a request whole first."""
        whole = request_bytes("op-1")
        for size in (3, 20, len(whole) - 1):
            self.assertEqual(raw(self.supplier, whole[:size]), b"")
        self.assertIn(b" 400 ", raw(self.supplier, whole[:40]))
        self.assertEqual(oracle.dump(self.file), self.before)
        self.assertIn(b'"accepted"', raw(self.supplier, whole))

    def test_a_client_that_does_not_wait_for_its_reply_disturbs_nobody(self) -> None:
        """O14: its order stands."""
        with socket.create_connection(address(self.supplier), LIMIT_S) as client:
            client.sendall(request_bytes("op-1"))
        while get(self.supplier, "/operations/op-1")[0] != 200:
            pass

    def test_one_connection_carries_several_requests(self) -> None:
        """O14: kept alive, also past a refusal."""
        host, port = address(self.supplier)
        with closing(http.client.HTTPConnection(host, port, timeout=LIMIT_S)) as connection:
            statuses = []
            for path in ("/account", "/nothing", "/account"):
                connection.request("GET", path)
                with connection.getresponse() as response:
                    statuses.append(response.status)
                    json.loads(response.read())
        self.assertEqual(statuses, [200, 404, 200])


class TheProcess(SupplierCase):
    """How it starts, what it refuses, and how it ends."""

    def test_a_busy_file_is_answered_with_503_and_nothing_is_made(self) -> None:
        """O14: another process holds the file; afterwards the same order is served."""
        supplier = self.start(prelude="from receiver import ledger; ledger.BUSY_S = 0.05")
        with closing(sqlite3.connect(self.file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            self.assertEqual(put(supplier, "op-1")[0], 503)
            self.assertEqual(get(supplier, "/operations/op-1/effects")[0], 200)  # reads go on
            other.execute("ROLLBACK")
        self.assertEqual(self.effects(), 0)
        self.assertEqual(put(supplier, "op-1")[0], 200)

    def test_it_ends_cleanly_at_the_end_of_its_input(self) -> None:
        """O14: idle, with an idle client, with held requests and with a stalled one."""
        for options in ((), ("--hold-commit",), ("--hold-response",), ("--fault", "stall")):
            with self.subTest(options):
                self.file = self.file.with_name(f"run{len(self.running)}.db")
                self.assertEqual(self.ended_by(options, lambda s: s.child.close_input()), 0)
                self.assertEqual(self.effects(), 0 if options == ("--hold-commit",) else 1)
                self.assertFalse(self.file.with_name(f"{self.file.name}-wal").exists())

    @unittest.skipUnless(POSIX, "not shown here: signals end a process otherwise")
    def test_it_ends_cleanly_on_a_signal(self) -> None:
        """O14: SIGTERM and SIGINT, with a request held."""
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                ended = self.ended_by(
                    ("--hold-response",), lambda s, number=number: os.kill(s.child.pid, number)
                )
                self.assertEqual(ended, 0)

    def test_nothing_is_ever_written_to_its_error_output(self) -> None:
        """O14: garbage, a client that resets, a fault, a stop."""
        argv = command("receiver.__main__", "--http", str(self.file), "--create", IDENTITY)
        with subprocess.Popen(
            [*argv, "--fault", "reset"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            for sent in (b"\xff\r\n\r\n", request_bytes("op-1"), request_bytes("op-1")[:-1]):
                with socket.create_connection(address(url), LIMIT_S) as client:
                    client.sendall(sent)
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            said = process.communicate(timeout=LIMIT_S)
        self.assertEqual((said, process.returncode), ((b"", b""), 0))

    def test_words_that_are_no_options_are_refused_in_one_line(self) -> None:
        """O14: exit status 2, and no file is made."""
        for words in (
            ("two.db",),
            ("--fault", "nothing"),
            ("--create",),
            ("--reject", "--reject"),
            ("--crash", "after_commit"),
            ("--hold",),
            ("--now", "soon"),
            ("--retention", "-1"),
            (),  # there is no such file
        ):
            self.refuses(*words)
        status, said = refused(str(self.file), "--reject", http=False)
        self.assertEqual((status, said["reply"]), (2, "error"))
        self.assertFalse(self.file.exists())

    def test_options_that_make_no_sense_together_are_refused_in_one_line(self) -> None:
        """O14: one of them would leave the other without a meaning."""
        for words in (
            ("--drop-first-response", "--fault", "reset"),
            ("--not-idempotent", "--retention", "1"),
            ("--not-idempotent", "--lookup-delay", "1"),
            ("--not-idempotent", "--busy-conflict"),
            ("--not-idempotent", "--reject"),
            ("--reject", "--retention", "1"),
        ):
            self.assertIn("make no sense together", self.refuses("--create", IDENTITY, *words))
        self.assertFalse(self.file.exists())

    def refuses(self, *words: str) -> str:
        with self.subTest(words):
            status, said = refused(str(self.file), *words)
            self.assertEqual((status, said["reply"], bool(said["why"])), (2, "error", True))
        return str(said["why"])

    def ended_by(self, options: Sequence[str], stop: Any) -> int:
        """Its status if it is stopped while one client is idle and one waits for a reply."""
        supplier = self.start(*options)
        with socket.create_connection(address(supplier), LIMIT_S) as idle:
            with socket.create_connection(address(supplier), LIMIT_S) as client:
                client.sendall(request_bytes("op-1"))
                if options[:1] == ("--fault",):
                    client.recv(10)
                elif options:
                    supplier.wait_until_holding()
                else:
                    client.recv(1 << 16)
                stop(supplier)
                while client.recv(1 << 16):
                    pass
            self.assertEqual(idle.recv(1), b"")
        self.assertIsNone(supplier.child.hear())
        return supplier.child.end()


def living() -> list[threading.Thread]:
    """The threads of this process; a watchdog that was cancelled may take a moment to end."""
    return [t for t in threading.enumerate() if not isinstance(t, threading.Timer)]


# --- a plain client -----------------------------------------------------------------------------


def address(supplier: Supplier | str) -> tuple[str, int]:
    url = supplier if isinstance(supplier, str) else supplier.url
    host, _, port = url.removeprefix("http://").partition(":")
    return host, int(port)


def call(
    supplier: Supplier, method: str, path: str, body: bytes = b"", *, limit_s: float = LIMIT_S
) -> tuple[int, dict[str, Any]]:
    """One request and its reply, over a connection of its own."""
    host, port = address(supplier)
    with closing(http.client.HTTPConnection(host, port, timeout=limit_s)) as connection:
        connection.request(method, path, body)
        with connection.getresponse() as response:
            return response.status, json.loads(response.read())


def put(
    supplier: Supplier,
    operation_id: str,
    order: dict[str, Any] = ORDER,
    *,
    limit_s: float = LIMIT_S,
) -> tuple[int, dict[str, Any]]:
    body = json.dumps(order).encode()
    return call(supplier, "PUT", path_of(operation_id), body, limit_s=limit_s)


def get(supplier: Supplier, path: str, more: str = "") -> tuple[int, dict[str, Any]]:
    return call(supplier, "GET", f"{path}?target={IDENTITY}{more}" if path != "/account" else path)


def path_of(operation_id: str) -> str:
    return f"/operations/{quote(operation_id, safe='')}"


def request_bytes(operation_id: str) -> bytes:
    body = json.dumps(ORDER).encode()
    head = f"PUT {path_of(operation_id)} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def raw(supplier: Supplier, sent: bytes) -> bytes:
    """Everything that comes back for these bytes, after which the client says no more."""
    said = b""
    with socket.create_connection(address(supplier), LIMIT_S) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        while part := client.recv(1 << 16):
            said += part
    return said


def by_pipe(file: Path, request: dict[str, Any]) -> dict[str, Any]:
    """What the plain receiver answers, on the same file."""
    line = json.dumps(request).encode() + b"\n"
    said = subprocess.run(
        receiver_command(file), input=line, stdout=subprocess.PIPE, timeout=LIMIT_S, check=True
    ).stdout
    reply: dict[str, Any] = json.loads(said)
    return reply


def close_by_pipe(file: Path, operation_id: str) -> None:
    asked = {"request": "snapshot", "operation": operation_id, "target": IDENTITY, "close": True}
    assert by_pipe(file, asked)["snapshot"]["closed"]


def refused(*words: str, http: bool = True) -> tuple[int, dict[str, Any]]:
    """Exit status and the one line of a supplier started with these words."""
    child = subprocess.run(
        command("receiver.__main__", *(("--http",) if http else ()), *words),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT_S,
    )
    assert (child.stderr, child.stdout.count(b"\n")) == (b"", 1), child
    return child.returncode, json.loads(child.stdout)


if __name__ == "__main__":
    unittest.main()
