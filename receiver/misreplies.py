"""How a reply can go wrong after its commit, by name.

Each function is given the connection, the status and the reply that would have been honest. The
connection is closed afterwards.
"""

import json
import socket
import struct
import sys

from . import wire

CLOSE = "Connection: close"


def no_bytes(connection, status, reply):
    """The connection is closed, and not one byte of the reply leaves."""


def short_body(connection, status, reply):
    """The body is shorter than its length says."""
    connection.sendall(wire.head(status, "Content-Length: 4000", CLOSE) + _half(reply))


def cut_json(connection, status, reply):
    """No length is said, so the end of the connection looks like the end of the body."""
    connection.sendall(wire.head(200, CLOSE) + _half(reply))


def bad_status_line(connection, status, reply):
    """What comes is no HTTP."""
    connection.sendall(b"ACCEPTED, more or less\r\n\r\n" + json.dumps(reply).encode())


def stall(connection, status, reply):
    """Half a body, and then nothing until the client goes away or the server stops."""
    body = json.dumps(reply).encode()
    connection.sendall(wire.head(status, f"Content-Length: {len(body)}") + _half(reply))
    while connection.recv(4096):
        pass


def reset(connection, status, reply):
    """The connection is reset, as a crashed machine's is."""
    linger = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    socket.close(connection.detach())  # closed in the middle: files on it would delay a close


def redirect(connection, status, reply):
    """Another place is named, where nobody listens: whoever follows is refused there."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    elsewhere = f"Location: http://127.0.0.1:{port}/operations/elsewhere"
    connection.sendall(wire.message(302, {"reply": "moved"}, elsewhere, CLOSE))


def wrong_receipt(connection, status, reply):
    """A whole receipt, of another operation."""
    if "receipt" in reply:
        other = {"operation_id": "another operation", "effect_id": "another operation#1"}
        reply = {**reply, "receipt": {**reply["receipt"], **other}}
    connection.sendall(wire.message(status, reply, CLOSE))


def error_after_commit(connection, status, reply):
    """A failure is claimed, after the effect was made."""
    connection.sendall(wire.message(500, {"reply": "error", "why": "it broke"}, CLOSE))


def conflict_in_progress(connection, status, reply):
    """An earlier request is said to be still worked on."""
    connection.sendall(wire.message(409, {"reply": "in_progress"}, CLOSE))


def conflict_exists(connection, status, reply):
    """It is said to exist, and not whose it is."""
    connection.sendall(wire.message(409, {"reply": "exists"}, CLOSE))


def _half(reply):
    body = json.dumps(reply).encode()
    return body[: len(body) // 2]


MISREPLIES = {
    "short-body": short_body,
    "no-bytes": no_bytes,
    "cut-json": cut_json,
    "bad-status-line": bad_status_line,
    "stall": stall,
    "reset": reset,
    "redirect": redirect,
    "wrong-receipt": wrong_receipt,
    "error-after-commit": error_after_commit,
    "conflict-in-progress": conflict_in_progress,
    "conflict-exists": conflict_exists,
}
