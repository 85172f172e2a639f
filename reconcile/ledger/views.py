"""What a person asks a ledger. Nothing here writes."""

from __future__ import annotations

from dataclasses import dataclass

from ..rules import checks
from ..rules.money import Budget
from ..rules.obligation import Obligation
from ..rules.operation import Operation
from . import obligations as questions
from . import operations, reservations
from .store import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of an operation's history: when, and what was written."""

    at_ms: int
    says: str


def look(ledger: Ledger, operation_id: str) -> Operation:
    """Everything recorded about one operation, at one moment.

    Raises UnknownOperation if there is none, Malformed if the identity is no text.
    """
    checks.instance("ledger", ledger, Ledger)
    checks.text("operation_id", operation_id)
    with ledger.reading() as tx:
        return operations.read(tx, operation_id)


def open_questions(ledger: Ledger, *, limit: int = 100) -> list[Operation]:
    """The unresolved operations, the longest due first, at most `limit` of them."""
    checks.instance("ledger", ledger, Ledger)
    checks.whole("limit", limit, least=1)
    with ledger.reading() as tx:
        return operations.read_all(tx, questions.open_numbers(tx, limit=limit))


def obligations(ledger: Ledger, *, limit: int = 100) -> list[Obligation]:
    """The same questions with all that was done about them, at most `limit` of them."""
    checks.instance("ledger", ledger, Ledger)
    checks.whole("limit", limit, least=1)
    with ledger.reading() as tx:
        return questions.all_open(tx, limit=limit)


def count_called(ledger: Ledger) -> int:
    """About how many open questions a person is called, or is to be: their deadline passed."""
    checks.instance("ledger", ledger, Ledger)
    with ledger.reading() as tx:
        return questions.count_called(tx)


def count_by_state(ledger: Ledger) -> dict[str, int]:
    """How many operations stand in each state; a state that none is in is left out."""
    checks.instance("ledger", ledger, Ledger)
    with ledger.reading() as tx:
        return dict(
            tx.execute(
                "SELECT state, count(*) FROM operation GROUP BY state ORDER BY state"
            ).fetchall()
        )


def budgets(ledger: Ledger) -> list[Budget]:
    """How the money of each currency stands, by its name."""
    checks.instance("ledger", ledger, Ledger)
    with ledger.reading() as tx:
        names = tx.execute("SELECT DISTINCT currency FROM budget ORDER BY currency").fetchall()
        return [reservations.budget(tx, currency) for (currency,) in names]


def drafts(ledger: Ledger, *, limit: int = 100) -> list[Operation]:
    """The orders that were not sent yet, in order of preparation, at most `limit` of them."""
    checks.instance("ledger", ledger, Ledger)
    checks.whole("limit", limit, least=1)
    with ledger.reading() as tx:
        rows = tx.execute(
            "SELECT o.number FROM operation o JOIN purchase p ON p.operation = o.number "
            "WHERE o.state = 'prepared' ORDER BY o.number LIMIT ?",
            (limit,),
        ).fetchall()
        return operations.read_all(tx, [row[0] for row in rows])


def history(ledger: Ledger, operation_id: str) -> list[Entry]:
    """What was written about one operation, oldest first.

    Within one moment the order is the one in which such rows are written. Raises UnknownOperation
    if there is none, Malformed if the identity is no text.
    """
    checks.instance("ledger", ledger, Ledger)
    checks.text("operation_id", operation_id)
    with ledger.reading() as tx:
        operation = operations.read(tx, operation_id)
        found = [Entry(at_ms=operation.prepared_ms, says="prepared")]
        for sql in _HISTORY:
            rows = tx.execute(sql, (operation.number,)).fetchall()
            found += [Entry(at_ms=at_ms, says=says) for at_ms, says in rows]
    return sorted(found, key=lambda entry: entry.at_ms)  # which keeps the order of equals


_DECISION = (
    "SELECT decided_ms, source || ' -> ' || target || ' (version ' || version || ')'"
    " || ', cause ' || cause || ', by ' || actor || coalesce(', verdict ' || verdict, '')"
    " || coalesce(', because ' || reason, '') FROM decision WHERE operation = ?"
)
_HISTORY = (
    "SELECT authorized_ms, 'a distinct need, by ' || authorized_by || ', because ' || reason"
    " FROM distinct_need WHERE operation = ?",
    "SELECT approved_ms, 'approval ' || ordinal || ' by ' || actor || ', basis ' || basis"
    " FROM approval WHERE operation = ? ORDER BY ordinal",
    f"{_DECISION} AND cause = 'announced' ORDER BY version",
    "SELECT announced_ms, 'attempt ' || attempt || ' announced; the call: '"
    " || coalesce(transport, 'the sender did not live to say')"
    " || coalesce(' (' || said || ')', '')"
    " FROM attempt WHERE operation = ? ORDER BY attempt",
    "SELECT asked_ms, 'asked for its stored receipt: ' || iif(found, 'it came', 'none came')"
    " FROM lookup WHERE operation = ? ORDER BY asked",
    "SELECT received_ms, 'receipt by ' || origin || coalesce(' to attempt ' || attempt, '')"
    " || coalesce(', handed in by ' || actor || ', original: ' || reference, '')"
    " FROM receipt WHERE operation = ? ORDER BY received",
    "SELECT asked_ms, 'close requested, purpose: ' || purpose || ', allowed by ' || authorized_by"
    " FROM close_request WHERE operation = ? ORDER BY asked",
    "SELECT observed_ms, 'observed: ' || verdict"
    " FROM observation WHERE operation = ? ORDER BY seen",
    f"{_DECISION} AND cause <> 'announced' ORDER BY version",
    "SELECT called_ms, 'a person was called: ' || why"
    " FROM escalation WHERE operation = ? ORDER BY generation, called",
    "SELECT repaired_ms, 'handed back to the sweeps by ' || repaired_by || ', because ' || reason"
    " FROM escalation WHERE operation = ? AND repaired_ms IS NOT NULL ORDER BY generation, called",
    "SELECT revoked_ms, 'approval ' || ordinal || ' revoked by ' || revoked_by"
    " || ', because ' || reason FROM approval WHERE operation = ? AND revoked_ms IS NOT NULL",
    "SELECT delivered_ms, quantity || ' delivered, reference ' || reference || ', recorded by '"
    " || recorded_by FROM delivery WHERE operation = ? ORDER BY delivered_ms, reference",
    "SELECT noticed_ms, 'INCIDENT (version ' || version || '): evidence against a final state'"
    " FROM incident WHERE operation = ? ORDER BY version",
)
