"""Fresh files without their DDL: made once in a process, and copied where many are needed."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from reconcile import Ledger
from reconcile.ledger import marker, schema
from reconcile.rules import money

from .inprocess import create


def put_ledger(place: Path) -> None:
    """A sender's new file, and its marker."""
    # A removal may replace what a file is made by, and must get a file of its own.
    made_by = (schema.seal, schema.statements, tuple(money.MONEY.items()))
    file, mark = _ledger(made_by)
    place.write_bytes(file)
    marker.beside(place).write_bytes(mark)


def put_receiver(place: Path, identity: str) -> None:
    """A receiver's new file."""
    place.write_bytes(_receiver(identity))


@cache
def _ledger(made_by: object) -> tuple[bytes, bytes]:
    with tempfile.TemporaryDirectory(prefix="reconcile-") as folder:
        path = Path(folder) / "template.db"
        Ledger(path).close()
        return path.read_bytes(), marker.beside(path).read_bytes()


@cache
def _receiver(identity: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="reconcile-") as folder:
        path = Path(folder) / "template.db"
        create(path, identity)
        return path.read_bytes()
