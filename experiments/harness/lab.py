"""The lab, which a chapter is given: files, processes, a clock that only rises, traces."""

from __future__ import annotations

import shutil
import tempfile
from itertools import count
from pathlib import Path
from types import TracebackType

from .plain import IDENTITY
from .processes import Child
from .scene import Scene
from .templates import put_receiver

BIRTH_MS = 1_700_000_000_000  # the lab's first moment; results never show it
YEAR_MS = 365 * 24 * 3600 * 1000


class LeftBehind(AssertionError):
    """Raised if something outlives its lab, cannot be true of its files, or did not strike."""


class Lab:
    """A context manager. `neutral`: every fault that a chapter names is left out.

    Leaving it raises LeftBehind if a connection is open, a process lives, or the oracle finds
    something in a scene that was not declared unsafe. `keep`: a folder that receives the files;
    None: they are removed.
    """

    def __init__(self, *, neutral: bool = False, keep: Path | None = None) -> None:
        self.neutral, self._keep = neutral, keep
        self.children: list[Child] = []
        self.scenes: list[Scene] = []
        self._ticks = count(BIRTH_MS)
        self._later_ms = 0
        self._folder = Path(tempfile.mkdtemp(prefix="reconcile-"))

    def clock(self) -> int:
        """UTC milliseconds, one more at each reading."""
        return next(self._ticks) + self._later_ms

    def pass_time(self, ms: int) -> None:
        """Let time pass, forwards."""
        assert ms >= 0
        self._later_ms += ms

    def step_back(self, ms: int) -> None:
        """Set the clock back, as a host's clock may be."""
        assert ms >= 0
        self._later_ms -= ms

    def fault(self, point: str) -> str | None:
        """The crash point that a chapter is about; None in a neutral lab."""
        return None if self.neutral else point

    def option(self, *words: str) -> tuple[str, ...]:
        """The options by which a supplier is told its fault; none in a neutral lab."""
        return () if self.fault(words[0]) is None else words

    def scene(self, name: str = "run", *, unsafe: bool = False, identity: str = IDENTITY) -> Scene:
        """Fresh files: the receiver's copied from a template, the sender's made when opened."""
        folder = self._folder / name.replace(" ", "-")
        folder.mkdir()
        put_receiver(folder / "receiver.db", identity)
        scene = Scene(self, folder, unsafe=unsafe)
        self.scenes.append(scene)
        return scene

    def findings(self) -> list[str]:
        """What the oracle finds in the files of every scene that is not meant to be rejected."""
        safe = [scene for scene in self.scenes if not scene.unsafe and scene.sender.exists()]
        return [line for scene in safe for line in scene.findings()]

    def close(self, *, judge: bool = True) -> None:
        """End what is left and remove the files. Raises LeftBehind if anything was left."""
        left = [f"{len(scene.opened)} open connections" for scene in self.scenes if scene.opened]
        for scene in self.scenes:
            for connection in tuple(scene.opened):
                connection.close()
        for child in self.children:
            if not child.ended:
                left.append("a living process")
                child.kill()
        if judge:
            left += [line for scene in self.scenes for line in scene.undelivered]
            left += self.findings()
        try:
            if self._keep is not None:
                shutil.copytree(self._folder, self._keep, dirs_exist_ok=True)
        finally:
            shutil.rmtree(self._folder)
        if left and judge:
            raise LeftBehind("; ".join(left))

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(judge=kind is None)
