"""A request leaves, the reply never comes. The honest record is *unknown*, until evidence."""

from .flows.compensation import approve_compensation
from .flows.http_receiver import HttpReceiver
from .flows.inquiry import inquire
from .flows.preparation import prepare
from .flows.process_receiver import ProcessReceiver
from .flows.receivers import Receiver, UnavailableReceiver
from .flows.review import close, observe, reconcile
from .flows.sender import dispatch, resend
from .flows.sweep import SweepSummary, reconcile_once
from .ledger.decisions import Decision
from .ledger.store import Ledger
from .ledger.views import look, open_questions
from .rules.actions import Action, ToolResult, Transport, next_actions
from .rules.errors import ReconcileError
from .rules.evidence import Effect, Query, Receipt, Snapshot
from .rules.identity import canonical_json, operation_identity
from .rules.operation import DistinctNeed, Operation
from .rules.policy import EffectPolicy
from .rules.states import Cause, State
from .rules.verdicts import Verdict, classify

__all__ = [
    "Action",
    "Cause",
    "Decision",
    "DistinctNeed",
    "Effect",
    "EffectPolicy",
    "HttpReceiver",
    "Ledger",
    "Operation",
    "ProcessReceiver",
    "Query",
    "Receipt",
    "Receiver",
    "ReconcileError",
    "Snapshot",
    "State",
    "SweepSummary",
    "ToolResult",
    "Transport",
    "UnavailableReceiver",
    "Verdict",
    "approve_compensation",
    "canonical_json",
    "classify",
    "close",
    "dispatch",
    "inquire",
    "look",
    "next_actions",
    "observe",
    "open_questions",
    "operation_identity",
    "prepare",
    "reconcile",
    "reconcile_once",
    "resend",
]
