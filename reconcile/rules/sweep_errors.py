"""Refusals of what concerns open questions and those who look for their answers."""

from __future__ import annotations

from .errors import ReconcileError


class UnknownScope(ReconcileError):
    """Raised if nothing was ever announced in a scope: tenant / project / environment."""

    says = (
        "nothing was ever sent in scope {scope}: check the three names (tenant, project, "
        "environment), or sweep again once something was"
    )

    def __init__(self, scope: str) -> None:
        super().__init__(scope)
        self.scope = scope


class NothingOpen(ReconcileError):
    """Raised if an operation has no open question that could be handed back."""

    says = "operation {operation_id} is {state}: it has no open question to hand back"

    def __init__(self, operation_id: str, state: str) -> None:
        super().__init__(operation_id, state)
        self.operation_id, self.state = operation_id, state


class RowRefused(ReconcileError):
    """Raised if the file refused one row of a batch; the rest is not touched by it."""

    says = "the file refused a row: {why}; look at it with `show`, and call a person"

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
