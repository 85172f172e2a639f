"""What a receiver answers about an open question, and what is written of it.

Nobody closes here, and nothing is sent. Whoever looks without a person beside it asks like this:
a sweep, and whoever replaces a dead engine.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ledger import attempts as sendings
from ..ledger import decisions
from ..ledger.decisions import Decision
from ..ledger.tx import Tx
from ..rules import errors, sweeping
from ..rules.evidence import Receipt, Snapshot
from ..rules.obligation import sources_of
from ..rules.operation import Operation
from ..rules.policy import EffectPolicy
from ..rules.receipts import Origin
from ..rules.verdicts import classify
from .receipts import settle
from .receivers import Receiver, UnavailableReceiver, answer_of

LONGEST_NAME = 100  # characters of what an adapter calls its error


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a provider said about one question, not yet written."""

    asked: bool = False  # its stored receipt was asked for
    receipt: Receipt | None = None
    snapshot: Snapshot | None = None
    failed: str | None = None  # None: nothing went wrong; else what did, in a word


def ask(provider: Receiver | None, operation: Operation) -> Answer:
    """Ask about the operation's one key, where its policy says that it is answered.

    Nothing is closed. Whatever goes wrong in the provider is an answer that says nothing; an
    interrupt passes on.
    """
    query, sources = operation.query, sources_of(operation.policy)
    if provider is None:
        provider = UnavailableReceiver(query.target, epoch=query.epoch)
    asked, receipt, snapshot, failed = False, None, None, None
    try:
        lookup = getattr(provider, "lookup", None)
        if "lookup" in sources and callable(lookup):
            receipt = answer_of(query.target, lambda: lookup(query), Receipt, type(None))
            asked = True
    except Exception as error:  # of whatever class: a property of an adapter may raise, too
        failed = _name_of(error)
    try:
        if "snapshot" in sources or not (asked or failed):
            snapshot = answer_of(query.target, lambda: provider.snapshot(query), Snapshot)
    except Exception as error:
        failed = _name_of(error)
    return Answer(asked=asked, receipt=receipt, snapshot=snapshot, failed=failed)


def _name_of(error: Exception) -> str:
    return type(error).__name__[:LONGEST_NAME] or "an error without a name"


def write(
    tx: Tx,
    operation: Operation,
    present: EffectPolicy,
    answer: Answer,
    *,
    actor: str,
    attempts: int,
) -> tuple[Decision | None, str]:
    """Keep the evidence, and decide by it where both policies let that be done without a person.

    `attempts`: how many sendings there were when it was asked. Returns the decision, or None, and
    what the answer came to, in a word.
    """
    if answer.asked:
        sendings.asked(tx, operation, attempts=attempts, found=answer.receipt is not None)
    found = answer.failed or "no stored receipt"
    if answer.receipt is not None:
        found = f"{sweeping.RECEIPT}: {answer.receipt.status}"
        if sweeping.may_decide(operation, present, sweeping.RECEIPT):
            done = settle(tx, operation, answer.receipt, Origin.LOOKUP, actor=actor)
            if done is not None:
                return done, found
        else:
            sendings.keep(tx, operation, answer.receipt, Origin.LOOKUP)
    if answer.snapshot is None:
        return None, found
    try:
        move = sweeping.decide(operation, present, answer.snapshot, actor=actor)
    except (errors.WrongQuestion, errors.Overclaimed) as refusal:
        return None, type(refusal).__name__
    verdict = classify(answer.snapshot)
    if move is not None:
        return decisions.record(tx, move), verdict.value
    decisions.observe(tx, operation, answer.snapshot, verdict)
    return None, verdict.value
