"""How a process of ours is started and talked to: isolated, by the line, never left behind.

An isolated interpreter (`-I -S`) inherits no `PYTHON*` setting, no site files and no working
directory. The root of the packages is *appended* to its path: put first, it would let a stray
file shadow the standard library.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

LIMIT_S = 60.0  # bounds a hung run, and orders nothing
ISOLATED = ("-I", "-S", "-X", "utf8")


def root_of(package: str) -> str:
    """The folder in which an importable package stands, from a clone or installed."""
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.origin is not None, f"{package} is not importable"
    return str(Path(spec.origin).resolve().parent.parent)


def command(module: str, *words: str) -> list[str]:
    """The command that runs `main` of a module with these words, from any working directory."""
    boot = (
        "import sys; sys.path.append(sys.argv.pop(1)); "
        f"from {module} import main; sys.exit(main(sys.argv[1:]))"
    )
    return [sys.executable, *ISOLATED, "-c", boot, root_of(module.split(".")[0]), *words]


class FaultNotDelivered(AssertionError):
    """Raised if a process was told to end, or to wait, and did not: the run shows nothing."""


class Child:
    """A process that we talk to by the line. A run that hits the time limit fails loudly."""

    def __init__(self, argv: list[str]) -> None:
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._hung = False
        self._watchdog = threading.Timer(LIMIT_S, self._overrun)
        self._watchdog.daemon = True
        self._watchdog.start()

    def say(self, line: bytes) -> None:
        """Write bytes to its standard input. A child that ended already hears nothing."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def ask(self, request: dict[str, object]) -> None:
        self.say(json.dumps(request).encode() + b"\n")

    def hear(self) -> dict[str, Any] | None:
        """The next line as an object; None if it ended without one."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def must_die(self, status: int) -> None:
        """Wait for its end. Raises FaultNotDelivered if it said anything, or ended otherwise."""
        said, ended = self.hear(), self.end()
        if said is not None or ended != status:
            raise FaultNotDelivered(f"it said {said} and ended with {ended}, not {status}")

    def close_input(self) -> None:
        """Let it read end of file."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def end(self) -> int:
        """Close its pipes, wait for it, and return its exit status."""
        self.close_input()
        assert self._process.stdout is not None
        self._process.stdout.close()
        status = self._process.wait()
        self._watchdog.cancel()
        if self._hung:
            raise TimeoutError(f"a process was ended after {LIMIT_S} s: {self._process.args!r}")
        return status

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    def kill(self) -> None:
        """End it now, whatever it does."""
        self._process.kill()
        self.end()

    def _overrun(self) -> None:
        self._hung = True
        self._process.kill()
