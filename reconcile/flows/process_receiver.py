"""A receiver that is a process, started for one request: one JSON line in, at most one out.

Three habits of pipes are kept out. Reading ends at the first line, since waiting for end of file
waits for every grandchild that holds the pipe. The process leads a group of its own, which is
ended as a whole. And how it exits decides nothing: a receipt that came is a receipt, and silence
with status 0 is silence.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from ..rules import checks
from ..rules.errors import Malformed, NoReply, NotSent
from ..rules.evidence import Query, Receipt, Snapshot, receipt_from, snapshot_from
from ..rules.policy import EffectPolicy

LONGEST_LINE = 1 << 26  # bytes; a reply without an end is no reply
TIDY_S = 5.0  # how long a process may live on after its reply, within its limit
LAST_S = 0.5  # how long a pipe is waited for whose process was ended: it may be held elsewhere


def apply_request(query: Query) -> dict[str, object]:
    """The request to make the effect, as it stands on the wire."""
    return {
        "request": "apply",
        "operation": query.operation_id,
        "target": query.target,
        "kind": query.kind,
        "payload": query.payload,
        "compensates": query.compensates,
    }


def snapshot_request(query: Query, *, close: bool) -> dict[str, object]:
    """The request to read, or to close and read, as it stands on the wire."""
    return {
        "request": "snapshot",
        "operation": query.operation_id,
        "target": query.target,
        "close": close,
    }


def seconds(place: str, value: object) -> float:
    """A time limit. Raises Malformed if it is no number of seconds above 0."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 < value < threading.TIMEOUT_MAX
    ):
        raise Malformed(place, "needs a number of seconds above 0")
    return value


class ProcessReceiver:
    """Starts `argv` for each call. `limit_s` bounds a call; one that it ended proves nothing.

    `policy` says what the receiver guarantees, and is pinned to what is prepared for it; without
    one nothing is promised, and no snapshot of it can resolve anything. `last_exit` is the exit
    status of the last process, for people: no state depends on it. It is None before the first
    call. One thread uses a receiver at a time. Raises Malformed if an argument is ill-typed.
    """

    def __init__(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        identity: str,
        policy: EffectPolicy | None = None,
        epoch: int = 1,
        limit_s: float = 30.0,
    ) -> None:
        words = list(argv) if isinstance(argv, (list, tuple)) else []
        if not words or not all(isinstance(word, (str, os.PathLike)) for word in words):
            raise Malformed("argv", "needs a command as a list of words")
        self.argv = [os.fspath(word) for word in words]
        self.identity = checks.text("identity", identity)
        self.epoch = checks.whole("epoch", epoch, least=1)
        self.policy = EffectPolicy() if policy is None else policy
        checks.instance("policy", self.policy, EffectPolicy)
        self.limit_s = seconds("limit_s", limit_s)
        self.last_exit: int | None = None

    def send(self, query: Query) -> Receipt | None:
        """Send the request once. None if no receipt came: it was silent, or answered `closed`.

        Raises NotSent if the process could not be started; Malformed if what came back is no
        reply at all.
        """
        reply = self._exchange(apply_request(query))
        if reply is None or reply.get("reply") == "closed":
            return None
        if reply.get("reply") != "receipt":
            raise Malformed("reply", f"{_short(reply)} is no receipt")
        return receipt_from(reply.get("receipt"))

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        """Read, or close and read. Raises NotSent, NoReply or Malformed if none came back."""
        checks.flag("close", close)
        reply = self._exchange(snapshot_request(query, close=close))
        if reply is None:
            raise NoReply(self.identity, f"no whole line came; exit status {self.last_exit}")
        if reply.get("reply") != "snapshot":
            raise NoReply(self.identity, _short(reply))
        return snapshot_from(query, reply.get("snapshot"))

    def _exchange(self, request: dict[str, object]) -> dict[str, object] | None:
        line = self._one_line(json.dumps(request).encode() + b"\n")
        if not line.endswith(b"\n"):
            return None  # half a line is no reply
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Malformed("reply", "is no JSON") from error
        if not isinstance(reply, dict):
            raise Malformed("reply", f"needs an object, not {type(reply).__name__}")
        return reply

    def _one_line(self, request: bytes) -> bytes:
        try:
            process = subprocess.Popen(
                self.argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # no process: nothing can have left
            raise NotSent(f"{self.argv[0]}: {error}") from error
        deadline = time.monotonic() + self.limit_s
        talk = _Talk(process, request)
        try:
            talk.start()
            talk.join(self.limit_s)
            if not talk.is_alive():  # it has said what it says; let it tidy up
                with suppress(subprocess.TimeoutExpired):
                    process.wait(min(TIDY_S, max(0.0, deadline - time.monotonic())))
        finally:  # an interrupt, too, leaves no process behind
            _end_group(process)
            with suppress(subprocess.TimeoutExpired):  # it may be another user's by now
                self.last_exit = process.wait(TIDY_S)
            if talk.ident is not None:  # None: no thread could be had
                talk.join(LAST_S)
        return talk.line


class _Talk(threading.Thread):
    """Writes the request and reads one line. In a thread, since pipes have no time limit.

    It owns the pipes. A process that left the group and holds them cannot hold up the
    caller.
    """

    def __init__(self, process: subprocess.Popen[bytes], request: bytes) -> None:
        super().__init__(daemon=True)
        self._process, self._request, self.line = process, request, b""

    def run(self) -> None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        with suppress(OSError, ValueError):  # it ended before it read: what it said still counts
            stdin.write(self._request)
            stdin.close()
        try:
            self.line = stdout.readline(LONGEST_LINE)
        finally:
            stdout.close()
            with suppress(OSError):
                stdin.close()


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the process and all it started; on Windows, without such groups, the process alone."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):  # it ended by itself, as it should
        pass


def _short(reply: dict[str, object]) -> str:
    """What a reply says of itself, for an error's text."""
    return (
        " ".join(str(reply[name])[:200] for name in ("reply", "why") if name in reply)
        or "it has no 'reply'"
    )
