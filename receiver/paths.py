"""A path as it came, taken apart exactly: no part is guessed, repaired or matched loosely."""

import re
from urllib.parse import unquote_to_bytes

from .ledger import Refused

BROKEN = re.compile(r"%(?![0-9A-Fa-f]{2})")


def taken_apart(path):
    """Its parts, and the fields of its query. Raises Refused if one of them is no text."""
    before, asked, query = path.partition("?")
    if not before.startswith("/"):
        raise Refused("the path does not begin with a slash")
    fields = {}
    for pair in query.split("&") if asked else []:
        name, _, value = pair.partition("=")
        if _decoded(name) in fields:
            raise Refused(f"{name} is given twice")
        fields[_decoded(name)] = _decoded(value)
    return [_decoded(part) for part in before[1:].split("/")], fields


def _decoded(part):
    if BROKEN.search(part) or not part.isascii():
        raise Refused("a part of the path is not percent-encoded")
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise Refused("a part of the path is no UTF-8") from None
