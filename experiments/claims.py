"""Every claim as data: its sentence, what proves it, and the fault that must break the proof."""

from __future__ import annotations


def proved_by(chapter: str) -> list[str]:
    return []
