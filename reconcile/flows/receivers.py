"""The seam: how a request leaves, and what may come back. Every receiver stands behind it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from ..rules import checks
from ..rules.errors import Malformed, NoReply, NotSent, ReconcileError
from ..rules.evidence import Query, Receipt, Snapshot, whole
from ..rules.policy import EffectPolicy


class Receiver(Protocol):
    """One other side. Identity, epoch and policy are pinned to each operation prepared for it.

    It bounds its own calls in time; `limit_s`, in seconds, says how, and orders need it. A fault
    of an adapter looks like a lost reply, so try `send` by itself first. `send` raises NotSent
    only if it can prove that not one byte left; any other exception, of whatever class, proves
    nothing. A keyed receiver also has `lookup(query)
    -> Receipt | None`, where None proves nothing, and one that keeps accounts has `listing() ->
    tuple[Effect, ...]`, every effect of the account.
    """

    @property
    def identity(self) -> str: ...

    @property
    def epoch(self) -> int: ...

    @property
    def policy(self) -> EffectPolicy: ...

    def send(self, query: Query) -> Receipt | None:
        """Send the request once. A receipt, or None if it left and none came back."""

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        """Read every row of the operation. With `close`, close and read in one transaction."""


class Declared(NamedTuple):
    """What a receiver said of itself, read once: an adapter may say something else next time."""

    identity: str
    epoch: int
    policy: EffectPolicy


def check_receiver(receiver: object) -> Declared:
    """What a receiver declares. Raises Malformed, before any contact, if it is no receiver."""
    for name in ("send", "snapshot"):
        if isinstance(receiver, type) or not callable(_part(receiver, name)):
            kind = type(receiver).__name__
            raise Malformed("receiver", f"needs a receiver, with {name}(); it is a {kind}")
    identity = checks.text("receiver.identity", _part(receiver, "identity"))
    epoch = checks.whole("receiver.epoch", _part(receiver, "epoch"), least=1)
    policy = _part(receiver, "policy")
    if type(policy) is not EffectPolicy:  # a subclass could not be read again from the file
        raise Malformed("receiver.policy", f"needs an EffectPolicy, not {type(policy).__name__}")
    try:
        return Declared(identity, epoch, replace(policy))
    except (AttributeError, TypeError) as error:  # it was made past its constructor
        raise Malformed("receiver.policy", f"is not whole ({words_of(error)})") from error


def _part(receiver: object, name: str) -> Any:
    """An attribute of an adapter, whose properties are its own code; None if there is none."""
    try:
        return getattr(receiver, name, None)
    except Exception as error:
        raise Malformed(f"receiver.{name}", f"cannot be read ({words_of(error)})") from error


def limit_ms(receiver: object) -> int:
    """How long a call of this receiver may take, by its `limit_s`. Raises Malformed if untold.

    Money leaves only under a claim that outlasts the call, so that the bound must be known.
    """
    limit_s = _part(receiver, "limit_s")
    if isinstance(limit_s, bool) or not isinstance(limit_s, (int, float)) or not 0 < limit_s < 1e9:
        raise Malformed(
            "receiver.limit_s", "needs the seconds that bound a call, to send an order"
        )
    return math.ceil(limit_s * 1000)


class UnavailableReceiver:
    """The honest stub, for a receiver without an adapter: it sends nothing, finds nothing, and
    claims nothing, unless a policy is named that it declares.
    """

    def __init__(
        self, identity: str, *, epoch: int = 1, policy: EffectPolicy | None = None
    ) -> None:
        self.identity = checks.text("identity", identity)
        self.epoch = checks.whole("epoch", epoch, least=1)
        self.policy = EffectPolicy() if policy is None else policy
        checks.instance("policy", self.policy, EffectPolicy)

    def send(self, query: Query) -> Receipt | None:
        """Raises NotSent, always."""
        raise NotSent(f"{self.identity!r} has no adapter")

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        """An empty snapshot with no flag set: it proves nothing, and closes nothing."""
        return Snapshot(
            query=query,
            effects=(),
            complete=False,
            authoritative=False,
            closed=False,
            receiver=self.identity,
            epoch=self.epoch,
        )


def answer_of(identity: str, ask: Callable[[], object], *wanted: type) -> Any:
    """What an adapter answered, which is of one of the wanted types exactly, and whole.

    Raises NoReply for whatever goes wrong in the adapter, and for an answer of another type or
    one that its own constructor refuses; a refusal of this library passes on.
    """
    try:
        answer = ask()
    except ReconcileError:
        raise
    except Exception as error:
        raise NoReply(identity, words_of(error)) from error
    if type(answer) not in wanted:
        names = " or ".join(kind.__name__ for kind in wanted)
        raise NoReply(identity, f"it returned a {type(answer).__name__}, not a {names}")
    try:
        return whole(answer)
    except Exception as error:
        why = f"it returned a {type(answer).__name__} that is none ({words_of(error)})"
        raise NoReply(identity, why) from error


def words_of(error: Exception) -> str:
    """What an error of an adapter says, in words that can be kept; its name alone, if it fails."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # it cannot even say what it is
        return type(error).__name__
