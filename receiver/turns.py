"""Whose turn it is: one request at a time works on an identity, and waits where it is told to."""

import threading


class Stopped(Exception):
    """Raised in a request that waits while the server stops. Its reply is dropped."""


class Turns:
    """Shared by all requests of a server. `say` announces a request that holds."""

    def __init__(self, say):
        self._say = say
        self._changed = threading.Condition()
        self._working, self._holding = set(), set()
        self._stopped = False

    def enter(self, operation_id, *, wait):
        """Take the turn of an identity; without `wait`, whether it was free."""
        with self._changed:
            if operation_id in self._working and not wait:
                return False
            self._until(lambda: operation_id not in self._working)
            self._working.add(operation_id)
            return True

    def leave(self, operation_id):
        """Give the turn back."""
        with self._changed:
            self._working.remove(operation_id)
            self._changed.notify_all()

    def hold(self, operation_id):
        """Say so, and wait for the permit of this identity."""
        with self._changed:
            self._holding.add(operation_id)
            self._say({"reply": "holding", "operation": operation_id})
            self._until(lambda: operation_id not in self._holding)

    def permit(self, line):
        """Let the one go on whose exact permit this line is. Any other line changes nothing."""
        with self._changed:
            for operation_id in tuple(self._holding):
                if line == b"permit " + operation_id.encode() + b"\n":
                    self._holding.remove(operation_id)
            self._changed.notify_all()

    def stop(self):
        """Wake whoever waits, to end."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _until(self, true):
        self._changed.wait_for(lambda: self._stopped or true())
        if self._stopped:
            raise Stopped
