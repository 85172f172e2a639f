"""The supplier as its customer knows it: a process of its own, and what it guarantees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from reconcile.flows.http_receiver import HttpReceiver
from reconcile.rules.policy import EffectPolicy

from .processes import LIMIT_S, Child, command

IDENTITY = "lucy-local"
DAY_MS = 24 * 3600 * 1000
KEYED = EffectPolicy(
    name="keyed supplier",
    category="monetary",
    identity_scope="account",
    identity_retention_ms=DAY_MS,
    resend_same=True,
    stored_receipt=True,
    status_source="lookup",
    read_complete=True,
    read_authoritative=True,
    strategy="resend",
)
"""It knows an order again for a day, keeps one receipt of it, and has no way to close."""
BLIND = EffectPolicy(name="blind supplier", category="monetary")
"""It guarantees nothing, and can be asked nothing."""


class Supplier:
    """A context manager around one supplier process; leaving it ends the process cleanly.

    `prelude` is what the process runs before it serves, for tests that set one of its constants.
    """

    def __init__(self, file: Path, *, options: Sequence[str] = (), prelude: str = "") -> None:
        words = ("--http", str(file), "--create", IDENTITY, *options)
        argv = command("receiver.__main__", *words)
        if prelude:
            at = argv.index("-c") + 1
            argv[at] = argv[at].replace("sys.exit(", f"{prelude}; sys.exit(")
        self.child = Child(argv)
        said = self.child.hear()
        if said is None or said["reply"] != "listening":
            self.child.kill()
            raise AssertionError(f"the supplier does not listen: {said}")
        self.url = str(said["url"])
        self.announced: dict[str, Any] = said

    def receiver(self, *, policy: EffectPolicy = KEYED, limit_s: float = LIMIT_S) -> HttpReceiver:
        """The adapter to this account."""
        return HttpReceiver(self.url, identity=IDENTITY, policy=policy, limit_s=limit_s)

    def wait_until_holding(self) -> str:
        """The operation that holds, once one does."""
        said = self.child.hear()
        assert said is not None and said["reply"] == "holding", f"it holds nothing: {said}"
        return str(said["operation"])

    def permit(self, operation_id: str) -> None:
        """Let the operation go on."""
        self.child.say(b"permit " + operation_id.encode() + b"\n")

    def close(self) -> None:
        """End it by the end of its input. Raises AssertionError if it ends otherwise."""
        if not self.child.ended:
            status = self.child.end()
            assert status == 0, f"the supplier ended with {status}"

    def __enter__(self) -> Supplier:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
