"""What stands on the wire: text that a file can hold, and whole HTTP replies as bytes."""

import json

from .ledger import Refused

PHRASES = {
    200: "OK",
    302: "Found",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    421: "Misdirected Request",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


def is_text(value):
    """Whether it is text, not blank, that UTF-8 can carry."""
    try:
        return isinstance(value, str) and bool(value.strip()) and bool(value.encode())
    except UnicodeEncodeError:  # half a surrogate pair, which no file can hold
        return False


def exactly(fields, needed, allowed=frozenset()):
    """Raises Refused if a field is missing, or is not known."""
    if not needed <= set(fields) <= needed | allowed:
        raise Refused(f"needs exactly the fields {', '.join(sorted(needed))}")


def head(status, *lines):
    """The status line and these header lines, as bytes."""
    first = f"HTTP/1.1 {status} {PHRASES.get(status, 'Refused')}"
    return "\r\n".join((first, "Content-Type: application/json", *lines, "", "")).encode()


def message(status, reply, *lines):
    """A whole honest reply, as bytes."""
    body = json.dumps(reply).encode()
    return head(status, f"Content-Length: {len(body)}", *lines) + body
