"""Where this process is told to end, and where it is told to wait. It does neither unless told."""

import os

CRASH_POINTS = ("before_begin", "before_commit", "after_commit", "mid_receipt", "after_receipt")
HOLD_POINTS = ("before_begin", "before_commit")
EXIT = 23


class Points:
    """Passed by every request. At `after_commit` the effect stands, and no byte leaves."""

    def __init__(self, crash=None, hold=None, ask=None):
        self.crash, self.hold, self._ask = crash, hold, ask

    def reach(self, point, operation_id):
        """Wait for a permit here, or end here at once, or pass."""
        if self.hold == point:
            self._ask(operation_id)
        if self.crash == point:
            os._exit(EXIT)
