"""The receiver's one file: apply, read, and close-and-read, each in one transaction.

Every write transaction is immediate and looks for a close mark before it commits. So a close and
an apply that race have an order: the effect is in the closing answer, or it is refused.
"""

import os
import sqlite3

from .crash import Points

SCHEMA_VERSION = 1
BUSY_S = 5
WAL_TRIES = 100


class Refused(Exception):
    """Raised if a request or a file is not what this receiver serves. Nothing was applied."""


def create(path, identity):
    """Make a new receiver file with its identity, in epoch 1. An existing one is left as it is.

    Raises Refused if an existing file has another identity or is no receiver's.
    """
    try:
        connection = _connect(path)
        try:
            if not _tables(connection):
                _use_wal(connection)
                _fill(connection, identity)
            found = _self(connection)[0]
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise Refused(f"{path}: {error}") from error
    if found != identity:
        raise Refused(f"{path} is the file of {found!r}, not of {identity!r}")


def _fill(connection, identity):
    connection.execute("BEGIN IMMEDIATE")
    if not _tables(connection):  # else another process made it meanwhile
        for statement in _statements():
            connection.execute(statement)
        connection.execute("INSERT INTO self VALUES (1, ?, 1)", (identity,))
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def open_file(path):
    """Open an existing receiver file; one made here would answer with a lie."""
    if not os.path.isfile(path):
        raise Refused(f"{path}: no such file; make it with --create IDENTITY")
    connection = _connect(path)
    try:
        _self(connection)
        connection.execute("PRAGMA synchronous = FULL")
    except (sqlite3.Error, Refused) as error:
        connection.close()
        raise Refused(f"{path} is no receiver's file: {error}") from error
    return connection


def apply(connection, request, points=Points()):
    """Commit one more effect and give its receipt; answer `closed` if the operation is closed."""
    operation_id = request["operation"]
    identity, epoch = _check_target(connection, request)
    _log(connection, "apply", operation_id)
    points.reach("before_begin", operation_id)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _is_closed(connection, operation_id):
            return {"reply": "closed"}
        number = connection.execute(
            "SELECT count(*) + 1 FROM effect WHERE operation_id = ?", (operation_id,)
        ).fetchone()[0]
        connection.execute(
            "INSERT INTO effect VALUES (?, ?, ?, ?, ?)",
            (operation_id, number, request["kind"], request["payload"], request["compensates"]),
        )
        points.reach("before_commit", operation_id)
        connection.execute("COMMIT")
    finally:
        _undo(connection)
    points.reach("after_commit", operation_id)
    return {
        "reply": "receipt",
        "receipt": {
            "operation_id": operation_id,
            "status": "accepted",
            "effect_id": f"{operation_id}#{number}",
            "kind": request["kind"],
            "payload": request["payload"],
            "compensates": request["compensates"],
            "receiver": identity,
            "epoch": epoch,
        },
    }


def snapshot(connection, request, points=Points()):
    """Every row of one operation. With `close`, its mark is written first, in one transaction."""
    operation_id, close = request["operation"], request["close"]
    identity, epoch = _check_target(connection, request)
    if close:
        _log(connection, "close", operation_id)
        points.reach("before_begin", operation_id)
    connection.execute("PRAGMA query_only = " + ("OFF" if close else "ON"))
    connection.execute("BEGIN IMMEDIATE" if close else "BEGIN")
    try:
        if close and not _is_closed(connection, operation_id):
            connection.execute("INSERT INTO closed VALUES (?)", (operation_id,))
        closed = _is_closed(connection, operation_id)
        rows = connection.execute(
            "SELECT number, kind, payload, compensates FROM effect WHERE operation_id = ? "
            "ORDER BY number",
            (operation_id,),
        ).fetchall()
        if close:
            points.reach("before_commit", operation_id)
        connection.execute("COMMIT")
    finally:
        _undo(connection)
        connection.execute("PRAGMA query_only = OFF")
    if close:
        points.reach("after_commit", operation_id)
    return {
        "reply": "snapshot",
        "snapshot": {
            "operation_id": operation_id,
            "complete": True,
            "authoritative": True,
            "closed": closed,
            "receiver": identity,
            "epoch": epoch,
            "effects": [
                {
                    "effect_id": f"{operation_id}#{number}",
                    "operation_id": operation_id,
                    "kind": kind,
                    "payload": payload,
                    "compensates": compensates,
                }
                for number, kind, payload, compensates in rows
            ],
        },
    }


def _connect(path):
    return sqlite3.connect(os.path.abspath(path), isolation_level=None, timeout=BUSY_S)


def _use_wal(connection):
    # The switch to WAL does not wait for a lock, and BEGIN IMMEDIATE does: wait there, ask again.
    for _ in range(WAL_TRIES):
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    else:
        raise Refused("the file stayed locked; try again")
    connection.execute("PRAGMA synchronous = FULL")


def _statements():
    statement = ""
    with open(
        os.path.join(os.path.dirname(os.path.abspath(__file__)), "schema.sql"), encoding="utf-8"
    ) as script:
        for line in script:
            statement += line
            if sqlite3.complete_statement(statement):
                yield statement
                statement = ""


def _tables(connection):
    return connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _self(connection):
    """Identity and epoch. Raises Refused if the file has none, or is of another version."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    found = connection.execute("SELECT identity, epoch FROM self").fetchone()
    if found is None or version != SCHEMA_VERSION:
        raise Refused(f"it has no identity, or schema {version} instead of {SCHEMA_VERSION}")
    return found


def _check_target(connection, request):
    identity, epoch = _self(connection)
    if request["target"] != identity:
        raise Refused(f"this is {identity!r}, not {request['target']!r}")
    return identity, epoch


def _is_closed(connection, operation_id):
    return (
        connection.execute(
            "SELECT 1 FROM closed WHERE operation_id = ?", (operation_id,)
        ).fetchone()
        is not None
    )


def _log(connection, request, operation_id):
    connection.execute(
        "INSERT INTO contact SELECT coalesce(max(number), 0) + 1, ?, ? FROM contact",
        (request, operation_id),
    )


def _undo(connection):
    if connection.in_transaction:
        connection.execute("ROLLBACK")
