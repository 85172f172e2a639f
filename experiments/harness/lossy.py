"""Receivers that lose something on the way, and processes that answer as they are told."""

from __future__ import annotations

import sys

from reconcile import Query, Receipt, Receiver, Snapshot

from .processes import ISOLATED


class LosesReceipt:
    """The receiver does what it is asked, and nothing of its receipt comes back."""

    def __init__(self, inner: Receiver) -> None:
        self._inner = inner
        self.identity, self.epoch, self.policy = inner.identity, inner.epoch, inner.policy

    def send(self, query: Query) -> Receipt | None:
        self._inner.send(query)
        return None

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        return self._inner.snapshot(query, close=close)


class LosesRequest(LosesReceipt):
    """The request never arrives, and the sender cannot tell."""

    def send(self, query: Query) -> Receipt | None:
        return None


def answering(line: bytes, *, status: int = 0) -> list[str]:
    """The command of a process that reads a request, writes these bytes, and ends like this."""
    words = f"import os, sys; sys.stdin.readline(); os.write(1, {line!r}); os._exit({status})"
    return [sys.executable, *ISOLATED, "-c", words]
