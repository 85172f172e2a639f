"""The account of a keyed receiver: orders known again by identity, lookups, and the whole listing.

Each is one transaction. An identity is looked for in the same immediate transaction that would
make the effect, so that of two requests with one identity the second finds the first.
"""

from . import ledger

PAGE = 500  # effects in one page of the listing


class Terms:
    """What this account does with identities: durations in milliseconds, None where unbounded."""

    def __init__(
        self, *, rejects=False, keyed=True, retention_ms=None, lookup_delay_ms=0, now_ms=None
    ):
        self.rejects, self.keyed = rejects, keyed
        self.retention_ms, self.lookup_delay_ms = retention_ms, lookup_delay_ms
        self._now_ms = now_ms

    def now_ms(self):
        """The clock of this account, which may be made to stand."""
        return ledger.now_ms() if self._now_ms is None else self._now_ms

    def oldest_ms(self):
        """When the oldest effect was made whose identity is still known."""
        if self.retention_ms is None:
            return -(2**63)
        return self.now_ms() - self.retention_ms + 1


def note_order(connection, request, body):
    """Log a request for an effect before anything is done; whether it is the first of its name."""
    ledger.check_target(connection, request)
    operation_id = request["operation"]
    number = ledger.log(connection, "apply", operation_id, body)
    earlier = connection.execute(
        "SELECT 1 FROM contact WHERE operation_id = ? AND request = 'apply' AND number < ?",
        (operation_id, number),
    ).fetchone()
    return earlier is None


def order(connection, request, terms):
    """Make the effect once, or give the stored receipt of its identity; (status, reply)."""
    operation_id = request["operation"]
    identity, epoch = ledger.check_target(connection, request)
    connection.execute("BEGIN IMMEDIATE")
    try:
        known = _known(connection, operation_id, terms)
        if known is not None:
            if any(known[name] != request[name] for name in ("kind", "payload", "compensates")):
                return 409, {"reply": "mismatch"}
            return 200, ledger.receipt(known, known["status"], known["effect_id"], identity, epoch)
        if ledger.is_closed(connection, operation_id):
            return 409, {"reply": "closed"}
        if terms.rejects:
            status, effect_id = "rejected", _decline(connection, request)
        else:
            status = "accepted"
            effect_id = ledger.add_effect(connection, request, terms.now_ms())
        connection.execute("COMMIT")
    finally:
        ledger.undo(connection)
    return 200, ledger.receipt(request, status, effect_id, identity, epoch)


def lookup(connection, request, terms):
    """The stored receipt of an identity. `absent` proves nothing: it may be on its way."""
    operation_id = request["operation"]
    identity, epoch = ledger.check_target(connection, request)
    ledger.log(connection, "lookup", operation_id)
    connection.execute("BEGIN")
    try:
        seen_ms = terms.now_ms() - terms.lookup_delay_ms if terms.lookup_delay_ms else 2**63 - 1
        known = _known(connection, operation_id, terms, seen_ms)
    finally:
        ledger.undo(connection)
    if known is None:
        return 404, {"reply": "absent"}
    return 200, ledger.receipt(known, known["status"], known["effect_id"], identity, epoch)


def listing(connection, request, after):
    """A page of every effect of the account, in the order of (operation, number)."""
    identity, epoch = ledger.check_target(connection, request)
    operation_id, number = ("", 0) if after is None else _place(after)
    ledger.log(connection, "list", None)
    rows = connection.execute(
        "SELECT operation_id, number, kind, payload, compensates FROM effect "
        "WHERE (operation_id, number) > (?, ?) ORDER BY operation_id, number LIMIT ?",
        (operation_id, number, PAGE + 1),
    ).fetchall()
    effects = [ledger.effect(*row) for row in rows[:PAGE]]
    return 200, {
        "reply": "listing",
        "receiver": identity,
        "epoch": epoch,
        "effects": effects,
        "next": effects[-1]["effect_id"] if len(rows) > PAGE else None,
    }


def _known(connection, operation_id, terms, made_until_ms=2**63 - 1):
    """What is stored for an identity: its rejection, or its first effect that is remembered."""
    if not terms.keyed:
        return None
    declined = connection.execute(
        "SELECT kind, payload, compensates FROM declined WHERE operation_id = ?", (operation_id,)
    ).fetchone()
    if declined is not None:
        return _stored(operation_id, "rejected", None, *declined)
    found = connection.execute(
        "SELECT number, kind, payload, compensates FROM effect WHERE operation_id = ? "
        "AND made_ms BETWEEN ? AND ? ORDER BY number LIMIT 1",
        (operation_id, terms.oldest_ms(), made_until_ms),
    ).fetchone()
    if found is None:
        return None
    return _stored(operation_id, "accepted", f"{operation_id}#{found[0]}", *found[1:])


def _stored(operation_id, status, effect_id, kind, payload, compensates):
    return {
        "operation": operation_id,
        "status": status,
        "effect_id": effect_id,
        "kind": kind,
        "payload": payload,
        "compensates": compensates,
    }


def _decline(connection, request):
    """Store the rejection and the close mark together; a declined operation has no effect id."""
    operation_id = request["operation"]
    connection.execute(
        "INSERT INTO declined VALUES (?, ?, ?, ?)",
        (operation_id, request["kind"], request["payload"], request["compensates"]),
    )
    connection.execute("INSERT INTO closed VALUES (?)", (operation_id,))


def _place(effect_id):
    operation_id, _, number = effect_id.rpartition("#")
    if not (operation_id and number.isascii() and number.isdigit() and len(number) < 19):
        raise ledger.Refused("after is no effect id of this account")
    return operation_id, int(number)
