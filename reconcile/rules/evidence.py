"""What is asked, and what is answered. A snapshot carries its question.

These are the only two kinds of evidence. A *receipt* is the receiver's own statement about one
operation. A *snapshot* is every row it has for that operation, read in one of its transactions,
with three flags that say how far the reading may be trusted. Constructors refuse what could not be
classified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import checks
from .errors import Malformed
from .identity import canonical_json, fields_of
from .states import State

FLAGS = ("complete", "authoritative", "closed")

OUTCOME_OF: dict[str, State] = {
    "accepted": State.CONFIRMED,
    "rejected": State.REJECTED,
    "failed": State.FAILED,
    "pending": State.PENDING,
    "partial": State.PARTIAL,
}
"""What each status of a receipt says of the effect."""

CONCLUSIVE = ("accepted", "rejected", "failed")
"""The statuses after which nothing more is to come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The exact effect asked about, as it was pinned when the operation was prepared.

    `payload` is canonical JSON text. `compensates` is the effect id that a compensation amends;
    None for an original. `epoch` counts the receiver's lives: an answer from another life is no
    answer.
    """

    operation_id: str
    target: str
    kind: str
    payload: str
    compensates: str | None
    epoch: int

    def __post_init__(self) -> None:
        for name in ("operation_id", "target", "kind", "payload"):
            checks.text(f"query.{name}", getattr(self, name))
        checks.optional_text("query.compensates", self.compensates)
        checks.whole("query.epoch", self.epoch, least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One committed row at the receiver, as it stands there."""

    effect_id: str
    operation_id: str
    kind: str
    payload: str
    compensates: str | None

    def __post_init__(self) -> None:
        for name in ("effect_id", "operation_id", "kind", "payload"):
            checks.text(f"effect.{name}", getattr(self, name))
        checks.optional_text("effect.compensates", self.compensates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Question and answer: every row for one operation, read in one receiver transaction.

    `complete`: all rows of the operation are here. `authoritative`: read where writes commit, not
    from a copy that may lag. `closed`: no later write of this operation can commit. The receiver
    and epoch that answered are kept as they named themselves; whether they were the ones asked is
    judged by the rules. Raises Malformed if a flag is no boolean or a row belongs to another
    operation.
    """

    query: Query
    effects: tuple[Effect, ...]
    complete: bool
    authoritative: bool
    closed: bool
    receiver: str
    epoch: int

    def __post_init__(self) -> None:
        checks.instance("snapshot.query", self.query, Query)
        for name in FLAGS:
            checks.flag(f"snapshot.{name}", getattr(self, name))
        checks.text("snapshot.receiver", self.receiver)
        checks.whole("snapshot.epoch", self.epoch, least=1)
        checks.instance("snapshot.effects", self.effects, tuple)
        for at, effect in enumerate(self.effects):
            checks.instance(f"snapshot.effects[{at}]", effect, Effect)
            if effect.operation_id != self.query.operation_id:
                raise Malformed(f"snapshot.effects[{at}]", "belongs to another operation")

    def to_json(self) -> str:
        """Canonical text of question and answer: stored, and what snapshots are compared by."""
        effects = [fields_of(effect) for effect in self.effects]
        return canonical_json(
            {**fields_of(self), "query": fields_of(self.query), "effects": effects}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The receiver's statement about one operation, bound to its kind, payload and amended effect.

    `status` is one of accepted, rejected, failed, pending, partial. `effect_id` is the receiver's
    own id, which an accepted receipt always has and a rejected one never. Raises Malformed if a
    field is ill-typed or the status is none of these.
    """

    operation_id: str
    status: str
    effect_id: str | None
    kind: str
    payload: str
    compensates: str | None
    receiver: str
    epoch: int

    def __post_init__(self) -> None:
        for name in ("operation_id", "status", "kind", "payload", "receiver"):
            checks.text(f"receipt.{name}", getattr(self, name))
        for name in ("effect_id", "compensates"):
            checks.optional_text(f"receipt.{name}", getattr(self, name))
        checks.whole("receipt.epoch", self.epoch, least=1)
        if self.status not in OUTCOME_OF:
            raise Malformed(
                "receipt.status", f"{self.status!r} is none of {', '.join(OUTCOME_OF)}"
            )
        if self.status == "accepted" and self.effect_id is None:
            raise Malformed("receipt.effect_id", "an accepted receipt names its effect")
        if self.status == "rejected" and self.effect_id is not None:
            raise Malformed("receipt.effect_id", "a rejection that names an effect is none")

    @property
    def query(self) -> Query:
        """The question that this receipt answers."""
        return Query(
            operation_id=self.operation_id,
            target=self.receiver,
            kind=self.kind,
            payload=self.payload,
            compensates=self.compensates,
            epoch=self.epoch,
        )

    def to_json(self) -> str:
        """Canonical text: stored, and what receipts are compared by."""
        return canonical_json(fields_of(self))


def whole(value: Any) -> Any:
    """An equal value, made anew by its constructor, as are the values inside it.

    An adapter can make one past its constructor, or change it since. Raises whatever the
    constructor raises.
    """
    if type(value) is tuple:
        return tuple(whole(part) for part in value)
    if isinstance(value, (Query, Effect, Snapshot, Receipt)):
        return type(value)(**{name: whole(part) for name, part in fields_of(value).items()})
    return value


_EFFECT = frozenset(Effect.__dataclass_fields__)
_RECEIPT = frozenset(Receipt.__dataclass_fields__)
_SNAPSHOT = frozenset({"operation_id", "effects", *FLAGS, "receiver", "epoch"})


def snapshot_from(query: Query, reply: object) -> Snapshot:
    """Read a reply strictly: exactly these fields, and the operation it was asked about.

    Raises Malformed, naming the place, if the reply is anything else.
    """
    fields = _exactly("snapshot", reply, _SNAPSHOT)
    if fields["operation_id"] != query.operation_id:
        raise Malformed("snapshot.operation_id", "answers about another operation")
    rows = fields["effects"]
    if type(rows) is not list:
        raise Malformed("snapshot.effects", f"needs a list, not {type(rows).__name__}")
    effects = tuple(
        Effect(**_exactly(f"snapshot.effects[{at}]", row, _EFFECT)) for at, row in enumerate(rows)
    )
    answer = {name: fields[name] for name in (*FLAGS, "receiver", "epoch")}
    return Snapshot(query=query, effects=effects, **answer)


def receipt_from(reply: object) -> Receipt:
    """Read a receipt strictly. Raises Malformed, naming the place, if it is anything else."""
    return Receipt(**_exactly("receipt", reply, _RECEIPT))


def _exactly(place: str, value: object, names: frozenset[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Malformed(place, f"needs an object, not {type(value).__name__}")
    if set(value) != names:
        missing = ", ".join(sorted(names - set(value))) or "none"
        odd = ", ".join(sorted(map(str, set(value) - names))) or "none"
        raise Malformed(place, f"fields that are missing: {missing}; not expected: {odd}")
    return value
