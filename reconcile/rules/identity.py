"""Canonical JSON, and the one identity that an operation keeps through every attempt.

One text stands for one value, so "the same payload" is one relation in the sender, on the wire, at
the receiver and in both files: equality of text. What has no single text is refused here, before
any row is written: a float (1.0 and 1 would be equal numbers with different texts), an integer
beyond 64 bits, half of a surrogate pair, a key that is not text. Unicode is not normalised:
different code points are different text.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from . import checks
from .errors import Malformed

LONGEST_PAYLOAD = 1 << 22  # characters: an answer with several such rows is still one line
DEEPEST = 64  # a bound of our own: the parser's differs between Python versions
_encode = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode


class Identity(NamedTuple):
    """What names one operation: `operation_id`, 32 hex digits, and the proposal's `digest`."""

    operation_id: str
    digest: str


def canonical_json(value: object) -> str:
    """The one text of a JSON value: sorted keys, no spaces, ASCII.

    Raises Malformed, naming the path from `$`, if the value or a part of it has no single text.
    """
    _check(value, "$", DEEPEST)
    return _encode(value)


def fields_of(value: Any) -> dict[str, object]:
    """The fields of a dataclass by name, as they are: asdict() would copy every part of them."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def payload_text(payload: Mapping[str, object]) -> str:
    """The canonical text of a payload. Raises Malformed if it is too long for a reply."""
    text = canonical_json(payload)
    if len(text) > LONGEST_PAYLOAD:
        raise Malformed(
            "payload", f"is longer than {LONGEST_PAYLOAD} characters; send a reference"
        )
    return text


def digest_of(text: str) -> str:
    """sha256 of a text, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def operation_identity(work_id: str, target: str, proposal: Mapping[str, object]) -> Identity:
    """The identity of one proposal to one target within one work item, the same at each call.

    digest = sha256(target, newline, canonical JSON); identity = uuid5(NAMESPACE_URL, work id,
    colon, digest). Both joins can be taken apart in one way only: canonical JSON holds no newline
    and a digest no colon. Raises Malformed if a part is empty or the proposal has no canonical
    text.
    """
    checks.text("work_id", work_id)
    checks.text("target", target)
    if not isinstance(proposal, Mapping):
        raise Malformed("proposal", f"needs a mapping, not {type(proposal).__name__}")
    digest = digest_of(f"{target}\n{canonical_json(proposal)}")
    return Identity(uuid.uuid5(uuid.NAMESPACE_URL, f"{work_id}:{digest}").hex, digest)


def proposal_of(
    kind: str, payload: Mapping[str, object], compensates: str | None
) -> dict[str, object]:
    """What an operation proposes: the payload *with its kind*, and the effect it amends.

    Without the kind, a charge and the refund of the same sum would share one identity.
    Raises Malformed if the payload is no mapping.
    """
    if not isinstance(payload, Mapping):
        raise Malformed("payload", f"needs a mapping, not {type(payload).__name__}")
    proposal: dict[str, object] = {"kind": kind, "payload": payload}
    return proposal if compensates is None else {**proposal, "compensates": compensates}


def _check(value: object, path: str, depth: int) -> None:
    if depth < 0:
        raise Malformed(path, f"is nested deeper than {DEEPEST}")
    if value is None or type(value) is bool:
        return
    if type(value) is int:
        checks.whole(path, value)
    elif type(value) is str:
        checks.encodable(path, value)
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(value):
            _check(item, f"{path}[{at}]", depth - 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            if type(key) is not str:
                raise Malformed(path, f"has a key that is a {type(key).__name__}, not text")
            _check(item, f"{path}.{checks.encodable(path, key)}", depth - 1)
    else:
        raise Malformed(
            path, f"{type(value).__name__} has no single text; use whole numbers and text"
        )
