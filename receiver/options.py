"""The words after --http, read one by one: each option once, and none that would do nothing."""

from .account import Terms
from .misreplies import MISREPLIES

SWITCHES = (
    "--drop-first-response",
    "--busy-conflict",
    "--hold-response",
    "--hold-commit",
    "--reject",
    "--not-idempotent",
)
DURATIONS = ("--retention", "--lookup-delay", "--now")
SENSELESS = (
    ("--drop-first-response", "--fault"),
    ("--not-idempotent", "--retention"),
    ("--not-idempotent", "--lookup-delay"),
    ("--not-idempotent", "--busy-conflict"),
    ("--not-idempotent", "--reject"),
    ("--reject", "--retention"),
)
"""Pairs of which one leaves the other without a meaning."""


class Options:
    """How a supplier serves. Raises ValueError, naming the word, if a word is none of its own."""

    def __init__(self, argv):
        given = _given(argv)
        for one, other in SENSELESS:
            if one in given and other in given:
                raise ValueError(f"{one} and {other} make no sense together")
        if "FILE" not in given:
            raise ValueError("--http needs a FILE")
        self.path, self.identity = given["FILE"], given.get("--create")
        self.misreply = MISREPLIES.get(given.get("--fault"))
        if "--drop-first-response" in given:
            self.misreply = MISREPLIES["no-bytes"]
        self.busy_conflict = "--busy-conflict" in given
        self.hold_response, self.hold_commit = "--hold-response" in given, "--hold-commit" in given
        self.terms = Terms(
            rejects="--reject" in given,
            keyed="--not-idempotent" not in given,
            retention_ms=given.get("--retention"),
            lookup_delay_ms=given.get("--lookup-delay", 0),
            now_ms=given.get("--now"),
        )


def _given(argv):
    given = {}
    words = iter(argv)
    for word in words:
        name = word if word.startswith("-") else "FILE"
        if name in given:
            raise ValueError(f"{word!r} is one {name} too many")
        if name == "--http" or name in SWITCHES:
            given[name] = True
        elif name == "FILE":
            given[name] = word
        else:
            given[name] = _value(name, next(words, ""))
    return given


def _value(name, word):
    if name in DURATIONS:
        if not (word.isascii() and word.isdigit() and len(word) < 19):
            raise ValueError(f"{name} {word!r}: needs a whole number of milliseconds")
        return int(word)
    if name == "--fault":
        if word not in MISREPLIES:
            raise ValueError(f"{name} {word!r}: one of {', '.join(MISREPLIES)}")
        return word
    if name == "--create":
        if not word:
            raise ValueError("--create needs an identity")
        return word
    raise ValueError(f"{name!r} is not expected with --http")
