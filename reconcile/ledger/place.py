"""Where a ledger stands: a path that names a file, and the file behind it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ..rules import errors


def place_of(path: object, *, must_exist: bool) -> Path:
    """The absolute path of a ledger: a later change of directory must not move it.

    Raises Malformed if it names no file, ForeignFile if it is a folder, StorageFailed if the
    system refuses it or a file must be there and is not.
    """
    named = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(named, str) or not named or "\0" in named:
        raise errors.Malformed("path", f"{path!r} names no file")
    place = Path(named).absolute()
    try:
        os.fsencode(named)
        folder, there = place.is_dir(), place.is_file()
    except UnicodeEncodeError as error:
        raise errors.Malformed(
            "path", f"{named!r} is no name that this system can have"
        ) from error
    except OSError as error:
        raise errors.StorageFailed(str(place), str(error.strerror)) from error
    if folder:
        raise errors.ForeignFile(str(place), "is a folder: name a file in it")
    if must_exist and not there:
        raise errors.StorageFailed(str(place), "no such file: name a sender's ledger")
    return place


def file_at(place: Path) -> tuple[int, int] | None:
    """Which file stands there; None if none does."""
    with suppress(OSError):
        found = os.stat(place)
        return found.st_dev, found.st_ino
    return None
