"""A keyed receiver behind HTTP: each request leaves once, by one connection that is always closed.

No layer below the sender sends again, so four habits of HTTP clients are kept out: no proxy is
asked, no redirect followed, no connection kept for later, and none made anew in silence. Before a
request, on the same connection, the account is asked who it is: an order, a lookup or a listing
reaches nobody else. Refused, or greeted by another account, the request provably never left;
whatever else goes wrong, from the greeting on, proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote, urlsplit

from ..rules import checks
from ..rules.errors import Malformed, NoReply, NotSent
from ..rules.evidence import Effect, Query, Receipt, Snapshot, receipt_from, snapshot_from
from ..rules.identity import canonical_json
from ..rules.policy import EffectPolicy
from .http_call import Call
from .process_receiver import seconds

EFFECT_FIELDS = frozenset(Effect.__dataclass_fields__)


def order_body(query: Query) -> bytes:
    """The proposal as it stands on the wire: the same bytes each time it is sent."""
    names = ("target", "kind", "payload", "compensates")
    return canonical_json({name: getattr(query, name) for name in names}).encode()


class HttpReceiver:
    """One account at `url`, which is http:// with host and port. `limit_s` bounds a whole call.

    `policy` says what the receiver guarantees, and is pinned to what is prepared for it; without
    one nothing is promised. Raises Malformed if an argument is ill-typed. Each call raises NotSent
    if no connection was made, or if another account answered there; NoReply or Malformed for
    whatever else was no answer.
    """

    def __init__(
        self,
        url: str,
        *,
        identity: str,
        policy: EffectPolicy | None = None,
        epoch: int = 1,
        limit_s: float = 30.0,
    ) -> None:
        self._host, self._port = _host_and_port(url)
        self.url = url
        self.identity = checks.text("identity", identity)
        self.epoch = checks.whole("epoch", epoch, least=1)
        self.policy = EffectPolicy() if policy is None else policy
        checks.instance("policy", self.policy, EffectPolicy)
        self.limit_s = seconds("limit_s", limit_s)

    def send(self, query: Query) -> Receipt | None:
        """Send the order once. None if the operation is closed there."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": _quoted(query)}
        with self._greeted() as call:
            status, reply = call.ask(
                "PUT", f"/operations/{_quoted(query)}", order_body(query), headers
            )
        if (status, reply.get("reply")) == (409, "closed"):
            return None
        return receipt_from(self._answer("receipt", status, reply).get("receipt"))

    def lookup(self, query: Query) -> Receipt | None:
        """The stored receipt of the operation. None proves nothing: it may be on its way."""
        with self._greeted() as call:
            status, reply = call.ask("GET", f"/operations/{_quoted(query)}?{self._target}")
        if (status, reply.get("reply")) == (404, "absent"):
            return None
        return receipt_from(self._answer("receipt", status, reply).get("receipt"))

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        """Read every row of the operation. A close is refused before any contact."""
        checks.flag("close", close)
        if close:
            raise NoReply(self.identity, "it has no way to close; nobody was asked")
        with self._greeted() as call:
            path = f"/operations/{_quoted(query)}/effects?{self._target}"
            status, reply = call.ask("GET", path)
        return snapshot_from(query, self._answer("snapshot", status, reply).get("snapshot"))

    def listing(self) -> tuple[Effect, ...]:
        """Every effect of the account, all pages of it, whoever asked for them.

        Raises NoReply if a page does not go on after the one before.
        """
        found: dict[str, Effect] = {}
        path = f"/operations?{self._target}"
        after: str | None = ""
        with self._greeted() as call:
            while after is not None:
                more = f"&after={quote(after, safe='')}" if after else ""
                status, reply = call.ask("GET", path + more)
                page, after = self._page(self._answer("listing", status, reply))
                for effect in page:
                    if effect.effect_id in found:
                        raise NoReply(self.identity, "the listing does not advance")
                    found[effect.effect_id] = effect
        return tuple(found.values())

    @property
    def _target(self) -> str:
        return f"target={quote(self.identity, safe='')}"

    def _answer(self, wanted: str, status: int, reply: dict[str, Any]) -> dict[str, Any]:
        said = reply.get("reply")
        if status != 200 or said != wanted:
            raise NoReply(self.identity, f"{status} {str(said)[:200]}")
        return reply

    def _page(self, reply: dict[str, Any]) -> tuple[list[Effect], str | None]:
        """The effects of one page, and after which one the next begins; None after the last."""
        if (reply.get("receiver"), reply.get("epoch")) != (self.identity, self.epoch):
            raise NoReply(self.identity, "the listing is of another account")
        rows, after = reply.get("effects"), checks.optional_text("next", reply.get("next"))
        if not isinstance(rows, list):
            raise Malformed("effects", f"needs a list, not {type(rows).__name__}")
        for at, row in enumerate(rows):
            if not isinstance(row, dict) or set(row) != EFFECT_FIELDS:
                raise Malformed(f"effects[{at}]", "has not the fields of an effect")
        page = [Effect(**row) for row in rows]
        if after is not None and (not page or after != page[-1].effect_id):
            raise NoReply(self.identity, "the listing does not advance")
        return page, after

    @contextmanager
    def _greeted(self) -> Iterator[Call]:
        """A connection whose other end said that it is this account, in this epoch."""
        with closing(Call(self.identity, self._host, self._port, self.limit_s)) as call:
            status, reply = call.ask("GET", "/account")
            said = self._answer("account", status, reply)
            try:
                identity = checks.text("identity", said.get("identity"))
                epoch = checks.whole("epoch", said.get("epoch"), least=1)
            except Malformed as error:
                raise NoReply(self.identity, f"its greeting: {error}") from error
            if (identity, epoch) != (self.identity, self.epoch):
                raise NotSent(f"{self.url} is {identity!r} in epoch {epoch}")
            yield call


def _quoted(query: Query) -> str:
    return quote(query.operation_id, safe="")


def _host_and_port(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(checks.text("url", url))
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise Malformed("url", f"is no URL: {error}") from error
    plain = not (parts.path.strip("/") or parts.query or parts.fragment or parts.username)
    if parts.scheme != "http" or not host or not port or not plain:
        raise Malformed("url", "needs http:// with host and port, and nothing more")
    return host, port
