"""One HTTP connection, bounded in time and length as a whole, and never made anew."""

from __future__ import annotations

import http.client
import json
import socket
import time
from typing import Any

from ..rules.errors import NoReply, NotSent

LONGEST_REPLY = 1 << 26  # bytes; a reply without an end is no reply


class Call:
    """One connection to the receiver `identity`, bounded by `limit_s` from its beginning.

    Raises NotSent if no connection was made.
    """

    def __init__(self, identity: str, host: str, port: int, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        self._identity = identity
        self._connection = http.client.HTTPConnection(host, port)
        self._connection.auto_open = 0  # a dropped connection is never made anew
        try:
            plain = socket.create_connection((host, port), limit_s)
        except (OSError, ValueError) as error:  # no connection: nothing can have left
            raise NotSent(f"{host}:{port}: {error}") from error
        # A head and its body leave at once: else the body waits for the head to be acknowledged.
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.sock = _Bounded(plain, deadline)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        """Write one request and read its reply whole. Raises NoReply if none came."""
        try:
            self._connection.request(method, path, body, headers or {})
            with self._connection.getresponse() as response:
                text = self._whole(response)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoReply(self._identity, f"{type(error).__name__}: {_line(error)}") from error
        try:
            reply = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise NoReply(self._identity, f"{response.status}, and no JSON") from error
        if not isinstance(reply, dict):
            raise NoReply(self._identity, f"{response.status}, and no object")
        return response.status, reply

    def _whole(self, response: http.client.HTTPResponse) -> bytes:
        text = b""
        if (response.length or 0) <= LONGEST_REPLY:
            text = response.read(LONGEST_REPLY + 1)
            if response.length:
                raise NoReply(self._identity, "the reply ended early")
        if not 0 < len(text) <= LONGEST_REPLY:
            raise NoReply(self._identity, f"{response.status}, and a reply empty or too long")
        return text

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class _Bounded(socket.socket):
    """A socket with one deadline for everything, so that a server that drips ends as well."""

    def __init__(self, plain: socket.socket, deadline: float) -> None:
        super().__init__(plain.family, plain.type, plain.proto, plain.detach())
        self._deadline = deadline

    def sendall(self, *words: Any) -> None:
        self._wait_no_longer()
        super().sendall(*words)

    def recv_into(self, *words: Any) -> int:
        self._wait_no_longer()
        return super().recv_into(*words)

    def _wait_no_longer(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self.settimeout(left)


def _line(error: Exception) -> str:
    """An error's text as one short line; a reply that was no reply may stand in it."""
    return " ".join(str(error).split())[:200]
