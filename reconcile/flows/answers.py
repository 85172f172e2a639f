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
    asked = False
    try:
        lookup = getattr(provider, "lookup", None)
        if "lookup" in sources and callable(lookup):
            found = answer_of(query.target, lambda: lookup(query), Receipt, type(None))
            asked = True
            if found is not None:
                return Answer(asked=True, receipt=found)
        if "snapshot" in sources or not asked:
            read = answer_of(query.target, lambda: provider.snapshot(query), Snapshot)
            return Answer(asked=asked, snapshot=read)
    except Exception as error:  # of whatever class: a property of an adapter may raise, too
        return Answer(asked=asked, failed=type(error).__name__)
    return Answer(asked=True)


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
    if answer.receipt is not None:
        found = f"{sweeping.RECEIPT}: {answer.receipt.status}"
        if sweeping.may_decide(operation, present, sweeping.RECEIPT):
            return settle(tx, operation, answer.receipt, Origin.LOOKUP, actor=actor), found
        sendings.keep(tx, operation, answer.receipt, Origin.LOOKUP)
        return None, found
    if answer.snapshot is None:
        return None, answer.failed or "no stored receipt"
    try:
        move = sweeping.decide(operation, present, answer.snapshot, actor=actor)
    except (errors.WrongQuestion, errors.Overclaimed) as refusal:
        return None, type(refusal).__name__
    verdict = classify(answer.snapshot)
    if move is not None:
        return decisions.record(tx, move), verdict.value
    decisions.observe(tx, operation, answer.snapshot, verdict)
    return None, verdict.value
