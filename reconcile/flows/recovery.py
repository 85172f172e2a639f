"""After a fault, or a restore: what the receiver has that no row here knows. Nothing is moved.

Backups and restored stores are made in `ledger/copies.py`. A restored store is paused; it asks and
keeps what it hears, and a person decides what becomes of it.
"""

from __future__ import annotations

from ..ledger import operations
from ..ledger.store import Ledger
from ..rules import checks, errors
from ..rules.diagnosis import Diagnosis, Finding, diagnose
from ..rules.evidence import Effect
from ..rules.operation import Operation
from ..rules.states import State
from .receivers import Declared, Receiver, answer_of, check_receiver


def compare(ledger: Ledger, receiver: Receiver) -> list[Finding]:
    """Lay the ledger beside the whole account of a receiver, and say what does not agree.

    Nothing is written on either side. Raises Malformed if the receiver lists no account; NoReply
    or NotSent if it gave no answer.
    """
    checks.instance("ledger", ledger, Ledger)
    declared = check_receiver(receiver)
    before = _operations(ledger, declared)
    effects = _listing(receiver, declared.identity)
    after = _operations(ledger, declared)
    # What was confirmed while the account was read may stand there since, and not in the reading.
    confirmed = {o.operation_id for o in before if o.state is State.CONFIRMED}
    return [
        finding
        for finding in diagnose(after, effects)
        if finding.diagnosis is not Diagnosis.CONFIRMED_WITHOUT_EFFECT
        or finding.operation_id in confirmed
    ]


def strangers(ledger: Ledger, receiver: Receiver) -> list[Effect]:
    """The effects of a receiver's account that no row here announced. Raises as `compare` does."""
    return [
        effect
        for finding in compare(ledger, receiver)
        if finding.diagnosis is Diagnosis.EFFECT_UNANNOUNCED
        for effect in finding.effects
    ]


def _operations(ledger: Ledger, declared: Declared) -> list[Operation]:
    with ledger.reading() as tx:
        return operations.of_target(tx, declared.identity, declared.epoch)


def _listing(receiver: Receiver, identity: str) -> tuple[Effect, ...]:
    listing = getattr(receiver, "listing", None)
    if not callable(listing):
        raise errors.Malformed("receiver", "has no listing(): its account cannot be read")
    effects: tuple[Effect, ...] = answer_of(identity, listing, tuple)
    for at, effect in enumerate(effects):
        checks.instance(f"listing[{at}]", effect, Effect)
    return effects
