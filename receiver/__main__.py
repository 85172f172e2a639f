"""python3 -m receiver FILE [--create IDENTITY] [--crash POINT] [--hold[=POINT]]
or: python3 -m receiver --http FILE [--create IDENTITY] [option …]

The first answers one JSON request a line on standard input with one JSON reply a line on standard
output, until end of file:

  {"request": "apply", "operation": …, "target": …, "kind": …, "payload": …, "compensates": …}
  {"request": "snapshot", "operation": …, "target": …, "close": false}

and {"reply": "receipt" | "snapshot" | "closed" | "error", …}. What cannot be served is answered
with an error that says why, and nothing is applied. With --create the file is made first, if there
is none.

  --crash POINT    end at once, with status 23, at before_begin, before_commit, after_commit (the
                   lost receipt), mid_receipt or after_receipt
  --hold[=POINT]   at before_begin (or before_commit) say {"reply": "holding"} and wait for the
                   exact line "permit OPERATION"; any other line, half a line, or end of file ends
                   the process with nothing applied

The second is a supplier: it knows operations again by their identity, and serves them by HTTP, on
a free port that it names in one line, until end of file, SIGTERM or SIGINT:

  GET /account                         who it is
  PUT /operations/ID                   with {"target", "kind", "payload", "compensates"}
  GET /operations/ID?target=…          the stored receipt, or 404, which proves nothing
  GET /operations/ID/effects?target=…  every effect of the operation
  GET /operations?target=…             every effect of the account, in pages: &after=EFFECT

  --fault NAME            break the first reply to each operation, after its commit, in this way
  --drop-first-response   drop the connection instead of that reply
  --hold-commit           before each commit say {"reply": "holding", "operation": …} and wait for
  --hold-response         the exact line "permit OPERATION"; or after the commit, before the reply
  --busy-conflict         answer 409 while an earlier request of the same operation is worked on
  --reject                decline what is new: stored, and closed
  --not-idempotent        know no operation again
  --retention MS          know an operation again only for so long after its effect
  --lookup-delay MS       let lookups see an effect only after so long
  --now MS                let its clock stand there
"""

import json
import os
import sqlite3
import sys

from . import ledger
from .crash import CRASH_POINTS, EXIT, HOLD_POINTS, Points
from .wire import is_text

FIELDS = {
    "apply": {"request", "operation", "target", "kind", "payload", "compensates"},
    "snapshot": {"request", "operation", "target", "close"},
}


def main(argv):
    if "--http" in argv:
        from . import supplier  # which costs more time to import than a trial takes

        try:
            return supplier.main(argv, _write)
        except OSError:  # nobody reads where it is, so that nobody can ask it
            return 2
    try:
        path, identity, points = _arguments(argv)
        if identity is not None:
            ledger.create(path, identity)
        connection = ledger.open_file(path)
    except (ledger.Refused, ValueError) as error:
        _write({"reply": "error", "why": str(error)})
        return 2
    try:
        for line in sys.stdin.buffer:
            _say(answer(connection, line, points), points)
    finally:
        connection.close()
    return 0


def answer(connection, line, points=Points()):
    """The reply to one request line. A bad line, or a busy file, is answered with an error."""
    try:
        request = _request(line)
        serve = ledger.apply if request["request"] == "apply" else ledger.snapshot
        return serve(connection, request, points)
    except (ledger.Refused, sqlite3.Error) as error:
        return {"reply": "error", "why": str(error)}


def _request(line):
    try:
        request = json.loads(line)
        fields = FIELDS[request["request"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ledger.Refused("the line is no request that this receiver knows") from None
    if set(request) != fields:
        raise ledger.Refused(f"needs exactly the fields {', '.join(sorted(fields))}")
    for name in fields - {"close"}:
        if not (is_text(request[name]) or (name == "compensates" and request[name] is None)):
            raise ledger.Refused(f"{name} is no text")
    if not isinstance(request.get("close", False), bool):
        raise ledger.Refused("close is neither true nor false")
    return request


def _say(reply, points):
    if reply["reply"] != "receipt":
        return _write(reply)
    operation_id = reply["receipt"]["operation_id"]
    if points.crash == "mid_receipt":
        line = _line(reply)
        _send(line[: len(line) // 2])
        points.reach("mid_receipt", operation_id)
    _write(reply)
    points.reach("after_receipt", operation_id)


def _ask(operation_id):
    _write({"reply": "holding"})
    if sys.stdin.buffer.readline() != b"permit " + operation_id.encode() + b"\n":
        os._exit(EXIT + 1)  # no permit: end as a killed process would, with everything undone


def _write(reply):
    _send(_line(reply))


def _line(reply):
    return json.dumps(reply).encode() + b"\n"


def _send(line):
    while line:  # past every buffer, whose mode could be inherited: what is out, is out
        line = line[os.write(1, line) :]


def _arguments(argv):
    path = identity = crash = hold = None
    words = iter(argv)
    for word in words:
        if word == "--create":
            identity = next(words, "")
            if not identity:
                raise ValueError("--create needs an identity")
        elif word == "--crash":
            crash = _point("--crash", next(words, ""), CRASH_POINTS)
        elif word == "--hold" or word.startswith("--hold="):
            hold = _point("--hold", word[len("--hold=") :] or HOLD_POINTS[0], HOLD_POINTS)
        elif path is None and not word.startswith("-"):
            path = word
        else:
            raise ValueError(f"{word!r} is not expected\n{__doc__}")
    if path is None:
        raise ValueError(__doc__)
    return path, identity, Points(crash, hold, _ask)


def _point(option, point, known):
    if point not in known:
        raise ValueError(f"{option} {point!r}: one of {', '.join(known)}")
    return point


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
