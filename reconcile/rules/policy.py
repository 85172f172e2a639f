"""What a receiver guarantees, declared once and pinned to each operation.

The default promises nothing: nothing may be resent, nothing closed, nothing decided without a
person, and no reading is trusted beyond the row it shows. Forgetting to declare is therefore safe.
A newer policy never rewrites an older operation: evidence is judged under the pinned one, and what
needs a guarantee needs it from the pinned and the present policy both.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from . import checks
from .errors import Malformed
from .identity import canonical_json, fields_of
from .states import State
from .verdicts import Verdict

CATEGORIES = (
    "pure_read",
    "idempotent",
    "reversible",
    "irreversible",
    "monetary",
    "physical",
    "notification",
    "security",
)
IDENTITY_SCOPES = ("none", "operation", "account")
STATUS_SOURCES = ("none", "snapshot", "lookup", "notification")
STRATEGIES = ("escalate", "query", "close", "resend")
SWEEP_MAY_DECIDE = (*(verdict.value for verdict in Verdict if verdict.resolves), "receipt")


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectPolicy:
    """A receiver's guarantees. Durations are milliseconds; None means "not declared".

    Raises Malformed, naming the field, if a value is ill-typed or not in its list.
    """

    name: str = "undeclared"
    version: int = 1
    category: str = "irreversible"  # what kind of effect it is, for people and diagnostics
    # --- identity: does the receiver know an operation again?
    identity_scope: str = "none"  # within what the receiver keeps identities apart
    identity_retention_ms: int | None = None  # how long it remembers one, from the first send
    identity_margin_ms: int = 0  # how far before its end the memory is no longer counted on
    resend_same: bool = False  # the same identity sent again makes no second effect
    stored_receipt: bool = False  # it keeps one receipt per identity and gives it on lookup
    # --- reading: how far may a snapshot be trusted?
    status_source: str = "none"  # where the outcome is asked for
    read_complete: bool = False  # a plain read shows every row of the operation
    read_authoritative: bool = False  # a plain read is made where writes commit
    freshness_ms: int | None = None  # how old a reading may be; None: no bound is declared
    can_close: bool = False  # the receiver has a close barrier
    notification_authority: bool = False  # an authenticated notification may end the question
    # --- what to do about an unknown
    strategy: str = "escalate"  # what is tried first
    sweep_may_decide: tuple[str, ...] = ()  # verdicts, or "receipt", that need no person
    deadline_ms: int | None = None  # after this long a person is called; None: no deadline
    states_in_use: tuple[str, ...] = tuple(state.value for state in State)

    def __post_init__(self) -> None:
        checks.text("policy.name", self.name)
        checks.whole("policy.version", self.version, least=1)
        for name in (
            "resend_same",
            "stored_receipt",
            "read_complete",
            "read_authoritative",
            "can_close",
            "notification_authority",
        ):
            checks.flag(f"policy.{name}", getattr(self, name))
        checks.whole("policy.identity_margin_ms", self.identity_margin_ms, least=0)
        for name in ("identity_retention_ms", "freshness_ms", "deadline_ms"):
            if getattr(self, name) is not None:
                checks.whole(f"policy.{name}", getattr(self, name), least=0)
        for name, allowed in (
            ("category", CATEGORIES),
            ("identity_scope", IDENTITY_SCOPES),
            ("status_source", STATUS_SOURCES),
            ("strategy", STRATEGIES),
        ):
            _one_of(f"policy.{name}", getattr(self, name), allowed)
        _each_of("policy.sweep_may_decide", self.sweep_may_decide, SWEEP_MAY_DECIDE)
        _each_of("policy.states_in_use", self.states_in_use, tuple(state.value for state in State))

    def declares(self, flag: str) -> bool:
        """Whether a snapshot of this receiver may claim the flag at all."""
        return {
            "complete": self.read_complete,
            "authoritative": self.read_authoritative,
            "closed": self.can_close,
        }[flag]

    def to_json(self) -> str:
        """Canonical text; two policies are the same when their texts are."""
        return _text_of(self)


@lru_cache
def _text_of(policy: EffectPolicy) -> str:
    return canonical_json(fields_of(policy))


def policy_from(text: str) -> EffectPolicy:
    """Read a stored policy. Raises Malformed if it is none, or has fields of another version."""
    try:
        fields: dict[str, Any] = json.loads(text)
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return EffectPolicy(**{**fields, **lists})
    except (ValueError, TypeError, AttributeError) as error:
        raise Malformed(
            "policy", f"the stored text is no policy of this version: {error}"
        ) from error


def _one_of(place: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise Malformed(place, f"{value!r} is none of {', '.join(allowed)}")


def _each_of(place: str, values: object, allowed: tuple[str, ...]) -> None:
    checks.instance(place, values, tuple)
    for value in values:  # type: ignore[attr-defined]
        _one_of(place, value, allowed)
