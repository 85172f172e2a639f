"""Refusals. *Unknown* is a value and never an exception; misuse is an exception and never a value.

Every refusal is a subclass of `ReconcileError`, carries what it is about as attributes, and says
what was refused, why, and what to do next. The call that raised it wrote nothing, unless its
docstring says otherwise.

Source: the shape, one small tree whose members carry data, is that of `itsdangerous/exc.py`.
"""

from __future__ import annotations


class ReconcileError(Exception):
    """Base of every refusal. `str()` fills the template `says` from the attributes."""

    says = "refused"

    def __str__(self) -> str:
        return self.says.format(**vars(self))


# --- values from outside ------------------------------------------------------------------------


class Malformed(ReconcileError):
    """Raised if a value from outside is not what it claims to be. `place` names the part of it."""

    says = "{place}: {why}"

    def __init__(self, place: str, why: str) -> None:
        super().__init__(place, why)
        self.place, self.why = place, why


class UnknownOperation(ReconcileError):
    """Raised if the ledger holds no such operation: it was never prepared in this file."""

    says = "no operation {operation_id!r} in this ledger: check the identity, or prepare it first"

    def __init__(self, operation_id: str) -> None:
        super().__init__(operation_id)
        self.operation_id = operation_id


class IdentityTaken(ReconcileError):
    """Raised if the same work, target and proposal stand already with other pinned columns."""

    says = (
        "operation {operation_id} stands already with another {differs}: one work item has one "
        "intent; use the stored values, or another work_id for another need"
    )

    def __init__(self, operation_id: str, differs: str) -> None:
        super().__init__(operation_id, differs)
        self.operation_id, self.differs = operation_id, differs


# --- moves --------------------------------------------------------------------------------------


class IllegalMove(ReconcileError):
    """Raised if the table of moves has no such edge for this cause."""

    says = "{source} -> {target} is no move for cause {cause}: look at the operation again"

    def __init__(self, source: str, target: str, cause: str) -> None:
        super().__init__(source, target, cause)
        self.source, self.target, self.cause = source, target, cause


class AlreadyAnnounced(ReconcileError):
    """Raised if a request may have left before, so that another could act twice."""

    says = (
        "operation {operation_id} is {state}: only a prepared one is sent, since a second request "
        "could act twice; ask the receiver, do not send again"
    )

    def __init__(self, operation_id: str, state: str) -> None:
        super().__init__(operation_id, state)
        self.operation_id, self.state = operation_id, state


class EquivalentUnresolved(ReconcileError):
    """Raised if an equivalent operation is unresolved; `operation_id` is that one."""

    says = (
        "operation {operation_id} of the same target, kind and subject is unresolved: find out "
        "about that one first, or have a distinct need authorised by name and reason"
    )

    def __init__(self, operation_id: str) -> None:
        super().__init__(operation_id)
        self.operation_id = operation_id


class EffectSeen(ReconcileError):
    """Raised if evidence is kept that a prepared operation has an effect already."""

    says = (
        "operation {operation_id} was never sent from this file, and an effect of it was seen: "
        "to send it would do it twice; call a person"
    )

    def __init__(self, operation_id: str) -> None:
        super().__init__(operation_id)
        self.operation_id = operation_id


class UnderTask(ReconcileError):
    """Raised if something else than its task would send what a task of a mission commands."""

    says = (
        "operation {operation_id} is commanded by task {task}, which alone may send it, once: "
        "dispatch it by its task, or find out what became of it"
    )

    def __init__(self, operation_id: str, task: str) -> None:
        super().__init__(operation_id, task)
        self.operation_id, self.task = operation_id, task


class ResendRefused(ReconcileError):
    """Raised, before any contact, if the same identity may not be sent again now."""

    says = "operation {operation_id} may not be sent again: {why}"

    def __init__(self, operation_id: str, why: str) -> None:
        super().__init__(operation_id, why)
        self.operation_id, self.why = operation_id, why


class NoGuarantee(ReconcileError):
    """Raised if no declared guarantee makes the same identity, sent again, one effect."""

    says = (
        "the {which} policy {policy!r} does not declare that identities are kept apart, and that "
        "the same one sent again makes no second effect: it is sent once; ask, or call a person"
    )

    def __init__(self, which: str, policy: str) -> None:
        super().__init__(which, policy)
        self.which, self.policy = which, policy


class StaleVersion(ReconcileError):
    """Raised if the operation moved since the caller read it."""

    says = "expected version {expected}, found {found}: it moved; look again before deciding"

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(expected, found)
        self.expected, self.found = expected, found


class Unresolving(ReconcileError):
    """Raised if the verdict of a snapshot ends nothing. Keep the snapshot with `observe`."""

    says = (
        "{verdict} resolves nothing: keep it with observe, and bring a closed snapshot or escalate"
    )

    def __init__(self, verdict: str) -> None:
        super().__init__(verdict)
        self.verdict = verdict


# --- evidence -----------------------------------------------------------------------------------


class WrongReceiver(ReconcileError):
    """Raised if a receiver, or its epoch, is not the one that the operation was prepared for."""

    says = (
        "the operation is for {expected}, this is {found}: nothing was sent; "
        "use the receiver it was prepared for"
    )

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(expected, found)
        self.expected, self.found = expected, found


class WrongQuestion(ReconcileError):
    """Raised if evidence answers another question, or comes from another receiver or epoch."""

    says = (
        "the evidence answers another question: {differs} differs; ask with this operation's query"
    )

    def __init__(self, differs: str) -> None:
        super().__init__(differs)
        self.differs = differs


class Overclaimed(ReconcileError):
    """Raised if a snapshot claims a flag that the operation's pinned policy does not declare."""

    says = (
        "the snapshot claims to be {flags}, which the pinned policy {policy!r} does not declare: "
        "lower the flag, which a caller may never raise; a forgotten policy is not mended later"
    )

    def __init__(self, flags: str, policy: str) -> None:
        super().__init__(flags, policy)
        self.flags, self.policy = flags, policy


class Inconclusive(ReconcileError):
    """Raised if a receipt that was handed in ends nothing, by its status."""

    says = "a receipt that says {status!r} ends nothing: ask for one that is conclusive"

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


class ContradictingReceipt(ReconcileError):
    """Raised if a receipt does not fit what is recorded. The receipt was kept; nothing moved."""

    says = (
        "the receipt settles nothing of operation {operation_id} ({why}): it is kept, no state "
        "and no money moved; call a person"
    )

    def __init__(self, operation_id: str, why: str) -> None:
        super().__init__(operation_id, why)
        self.operation_id, self.why = operation_id, why


class NoReply(ReconcileError):
    """Raised if a receiver gave no usable answer. It is evidence of nothing; ask again."""

    says = "{receiver!r} gave no usable answer ({why}): nothing is known from it; ask again"

    def __init__(self, receiver: str, why: str) -> None:
        super().__init__(receiver, why)
        self.receiver, self.why = receiver, why


class NotRecorded(ReconcileError):
    """Raised if the end of a call could not be written: how it went, and what it brought.

    The operation stays unknown, which is committed. `transport` says how the call went, `receipt`
    is what came back, None if nothing did.
    """

    says = (
        "operation {operation_id} stays unknown: its call went {transport}, and that could not be "
        "written ({why}); reconcile it, do not send it again; what came back: {receipt}"
    )

    def __init__(
        self, operation_id: str, transport: str, why: str, receipt: object = None
    ) -> None:
        super().__init__(operation_id, transport, why, receipt)
        self.operation_id, self.transport = operation_id, transport
        self.why, self.receipt = why, receipt


class NotSent(ReconcileError):
    """Raised by a receiver adapter that can prove that not one byte of the request left."""

    says = "nothing was sent: {why}"

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


# --- permissions --------------------------------------------------------------------------------


class ClosingRefused(ReconcileError):
    """Raised, before the receiver is contacted, if an operation may not be closed there."""

    says = "operation {operation_id} may not be closed: {why}"

    def __init__(self, operation_id: str, why: str) -> None:
        super().__init__(operation_id, why)
        self.operation_id, self.why = operation_id, why


class StaleClaim(ReconcileError):
    """Raised if a write comes under a claim that is no longer, or never was, the current one."""

    says = "the claim on {item!r} does not hold: {why}; nothing was written, claim it again"

    def __init__(self, item: str, why: str) -> None:
        super().__init__(item, why)
        self.item, self.why = item, why


class AlreadyClaimed(ReconcileError):
    """Raised if somebody, perhaps of the same name, has a live claim. Times are UTC ms."""

    says = "{item!r} is claimed by {owner!r} until {expires_ms}: wait, or take another one"

    def __init__(self, item: str, owner: str, expires_ms: int) -> None:
        super().__init__(item, owner, expires_ms)
        self.item, self.owner, self.expires_ms = item, owner, expires_ms


class Paused(ReconcileError):
    """Raised if the store is paused: it may be older than the world, and acts on nothing."""

    says = (
        "this store is paused ({why}): it sends, closes and settles nothing; look at what the "
        "receiver has that no row here knows, and call a person"
    )

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Unbound(ReconcileError):
    """Raised if a compensation is not bound to the confirmed effect at the approved version."""

    says = "effect {effect_id!r}: {why}"

    def __init__(self, effect_id: str, why: str) -> None:
        super().__init__(effect_id, why)
        self.effect_id, self.why = effect_id, why


class AlreadyApproved(ReconcileError):
    """Raised if the effect has a live approval already; `operation_id` is its compensation."""

    says = (
        "effect {effect_id!r} has a live approval, operation {operation_id}: use that one; "
        "another is possible only after it ended without effect"
    )

    def __init__(self, effect_id: str, operation_id: str) -> None:
        super().__init__(effect_id, operation_id)
        self.effect_id, self.operation_id = effect_id, operation_id


# --- the file -----------------------------------------------------------------------------------


class LedgerMisused(ReconcileError):
    """Raised if a ledger is used as it does not offer: nested, closed, or only for looking."""

    says = "{why}"

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class ForeignFile(ReconcileError):
    """Raised if a path holds no ledger that this version can use. The file was not changed."""

    says = "{path}: {why}"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why


class Busy(ReconcileError):
    """Raised if the file stayed locked past the timeout. Nothing was written; try again."""

    says = "{path}: locked for longer than {busy_ms} ms; nothing was written, try again"

    def __init__(self, path: str, busy_ms: int) -> None:
        super().__init__(path, busy_ms)
        self.path, self.busy_ms = path, busy_ms


class StorageFailed(ReconcileError):
    """Raised if SQLite could not do its work: disk full, I/O error, damaged or read-only file."""

    says = "{path}: {why}; nothing of this call was written"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why
