"""One connection of the supplier: each request is read whole, and answered in JSON."""

import json
import sqlite3
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler

from . import account, ledger, paths, wire
from .turns import Stopped

LONGEST_LINE = 65536
LONGEST_BODY = 1 << 26  # bytes
FIELDS = {"target", "kind", "payload", "compensates"}


class Talk(BaseHTTPRequestHandler):
    """One connection: its requests, one after another."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, request, client_address, server, *, options, turns):
        self._options, self._turns = options, turns
        super().__init__(request, client_address, server)  # which answers every request

    def handle_one_request(self):
        """Read one request whole and answer it; drop the reply if the server stops meanwhile."""
        self.close_connection = True
        self.raw_requestline = self.rfile.readline(LONGEST_LINE + 1)
        self.command = ""
        if not self.raw_requestline.endswith(b"\n"):
            if len(self.raw_requestline) > LONGEST_LINE:
                self.send_error(400, "the request line is too long")
            return
        if not self.parse_request():
            return
        try:
            self._answer()
        except (Stopped, OSError):  # the server stops, or the client went away
            self.close_connection = True

    def send_error(self, code, message=None, explain=None):
        """What the standard library finds wrong with a request, in JSON as everything else."""
        self.close_connection = True
        with suppress(OSError):
            self._reply(code, {"reply": "error", "why": message or "it is no request"})

    def log_message(self, *words):
        """Nothing: what was asked stands in the file."""

    def _answer(self):
        size = self._size()
        if size is None:
            self.send_error(400, f"the length of the body is unclear, or above {LONGEST_BODY}")
            return
        body = self.rfile.read(size)
        if len(body) < size:  # the client went away, and nothing was asked
            self.close_connection = True
            return
        try:
            with closing(self._file()) as connection:
                self._route(connection, body)
        except ledger.WrongTarget as error:
            self._reply(421, {"reply": "error", "why": str(error)})
        except ledger.Refused as error:
            self._reply(400, {"reply": "error", "why": str(error)})
        except sqlite3.Error as error:
            self._reply(503, {"reply": "error", "why": str(error)})

    def _size(self):
        sizes = self.headers.get_all("Content-Length", ["0"])
        one = sizes[0].strip()
        if len(sizes) > 1 or "Transfer-Encoding" in self.headers or len(one) > 18:
            return None
        if not (one.isascii() and one.isdigit()) or int(one) > LONGEST_BODY:
            return None
        return int(one)

    def _file(self):
        try:
            return ledger.open_file(self._options.path)
        except ledger.Refused as error:  # it was a receiver's file when the server began
            raise sqlite3.OperationalError(str(error)) from error

    def _route(self, connection, body):
        parts, fields = paths.taken_apart(self.path)
        terms = self._options.terms
        known = parts[:1] == ["operations"] and parts[2:] in ([], ["effects"])
        if "" in parts or not (known or parts == ["account"]):
            self._reply(404, {"reply": "error", "why": f"no such path: {self.path}"})
        elif self.command == "PUT" and len(parts) == 2:
            wire.exactly(fields, set())
            self._order(connection, {**_proposal(body), "operation": parts[1]}, body)
        elif self.command != "GET":
            self._reply(405, {"reply": "error", "why": f"{self.command} is not served here"})
        elif parts == ["account"]:
            identity, epoch = ledger.who(connection)
            self._reply(200, {"reply": "account", "identity": identity, "epoch": epoch})
        elif parts == ["operations"]:
            wire.exactly(fields, {"target"}, {"after"})
            self._reply(*account.listing(connection, fields, fields.get("after")))
        else:
            wire.exactly(fields, {"target"})
            request = {"target": fields["target"], "operation": parts[1]}
            if len(parts) == 2:
                self._reply(*account.lookup(connection, request, terms))
            else:
                self._reply(200, ledger.snapshot(connection, {**request, "close": False}))

    def _order(self, connection, request, body):
        options, turns = self._options, self._turns
        operation_id = request["operation"]
        first = account.note_order(connection, request, body.decode())
        if not turns.enter(operation_id, wait=not options.busy_conflict):
            self._reply(409, {"reply": "in_progress"})
            return
        try:
            if options.hold_commit:
                turns.hold(operation_id)
            status, reply = account.order(connection, request, options.terms)
            if options.hold_response:
                turns.hold(operation_id)
            if first and options.misreply is not None:
                self.close_connection = True
                options.misreply(self.connection, status, reply)
            else:
                self._reply(status, reply)
        finally:
            turns.leave(operation_id)

    def _reply(self, status, reply):
        lines = ("Connection: close",) if self.close_connection else ()
        whole = wire.message(status, reply, *lines)
        if self.command == "HEAD":
            whole = whole[: whole.index(b"\r\n\r\n") + 4]
        self.connection.sendall(whole)


def _proposal(body):
    """The body of an order, read strictly."""
    try:
        fields = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise ledger.Refused("the body is no JSON") from None
    if not isinstance(fields, dict):
        raise ledger.Refused("the body is no object")
    wire.exactly(fields, FIELDS)
    for name in sorted(FIELDS):
        if not (wire.is_text(fields[name]) or (name == "compensates" and fields[name] is None)):
            raise ledger.Refused(f"{name} is no text")
    return fields
