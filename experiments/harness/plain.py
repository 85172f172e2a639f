"""The plain receiver, as its sender knows it: its command, its name, its guarantees."""

from __future__ import annotations

from pathlib import Path

from reconcile import EffectPolicy

from .processes import command

IDENTITY = "plain"
POLICY = EffectPolicy(
    name="plain receiver",
    status_source="snapshot",
    read_complete=True,
    read_authoritative=True,
    can_close=True,
)
"""It reads honestly and can close. It knows no identities: a second request is a second effect."""


def receiver_command(
    file: Path, *, crash: str | None = None, hold: str | None = None
) -> list[str]:
    """The command that starts it on a file, to end or to wait at a point if one is named."""
    words = [str(file)]
    if crash is not None:
        words += ["--crash", crash]
    if hold is not None:
        words += [f"--hold={hold}"]
    return command("receiver.__main__", *words)
