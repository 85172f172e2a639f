"""The receiver's one file: apply, read, and close-and-read, each in one transaction.

Every write transaction is immediate and looks for a close mark before it commits. So a close and
an apply that race have an order: the effect is in the closing answer, or it is refused.
"""

import os
import sqlite3
import time

from .crash import Points

SCHEMA_VERSION = 2
BUSY_S = 5
WAL_TRIES = 100


class Refused(Exception):
    """Raised if a request or a file is not what this receiver serves. Nothing was applied."""


class WrongTarget(Refused):
    """Raised if a request is meant for another receiver. Not even a trace of it is left."""


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
            found = who(connection)[0]
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
        who(connection)
        connection.execute("PRAGMA synchronous = FULL")
    except (sqlite3.Error, Refused) as error:
        connection.close()
        raise Refused(f"{path} is no receiver's file: {error}") from error
    return connection


def apply(connection, request, points=Points()):
    """Commit one more effect and give its receipt; answer `closed` if the operation is closed."""
    operation_id = request["operation"]
    identity, epoch = check_target(connection, request)
    log(connection, "apply", operation_id)
    points.reach("before_begin", operation_id)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if is_closed(connection, operation_id):
            return {"reply": "closed"}
        effect_id = add_effect(connection, request, now_ms())
        points.reach("before_commit", operation_id)
        connection.execute("COMMIT")
    finally:
        undo(connection)
    points.reach("after_commit", operation_id)
    return receipt(request, "accepted", effect_id, identity, epoch)


def snapshot(connection, request, points=Points()):
    """Every row of one operation. With `close`, its mark is written first, in one transaction."""
    operation_id, close = request["operation"], request["close"]
    identity, epoch = check_target(connection, request)
    if close:
        log(connection, "close", operation_id)
        points.reach("before_begin", operation_id)
    connection.execute("PRAGMA query_only = " + ("OFF" if close else "ON"))
    connection.execute("BEGIN IMMEDIATE" if close else "BEGIN")
    try:
        if close and not is_closed(connection, operation_id):
            connection.execute("INSERT INTO closed VALUES (?)", (operation_id,))
        closed = is_closed(connection, operation_id)
        rows = connection.execute(
            "SELECT number, kind, payload, compensates FROM effect WHERE operation_id = ? "
            "ORDER BY number",
            (operation_id,),
        ).fetchall()
        if close:
            points.reach("before_commit", operation_id)
        connection.execute("COMMIT")
    finally:
        undo(connection)
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
            "effects": [effect(operation_id, *row) for row in rows],
        },
    }


def add_effect(connection, request, made_ms):
    """Insert one more effect, within the caller's transaction; its id."""
    operation_id = request["operation"]
    number = connection.execute(
        "SELECT count(*) + 1 FROM effect WHERE operation_id = ?", (operation_id,)
    ).fetchone()[0]
    proposal = request["kind"], request["payload"], request["compensates"]
    connection.execute(
        "INSERT INTO effect VALUES (?, ?, ?, ?, ?, ?)", (operation_id, number, *proposal, made_ms)
    )
    return f"{operation_id}#{number}"


def receipt(request, status, effect_id, identity, epoch):
    """The reply that states what became of one request."""
    return {
        "reply": "receipt",
        "receipt": {
            "operation_id": request["operation"],
            "status": status,
            "effect_id": effect_id,
            "kind": request["kind"],
            "payload": request["payload"],
            "compensates": request["compensates"],
            "receiver": identity,
            "epoch": epoch,
        },
    }


def effect(operation_id, number, kind, payload, compensates):
    """One effect, as every reading shows it."""
    return {
        "effect_id": f"{operation_id}#{number}",
        "operation_id": operation_id,
        "kind": kind,
        "payload": payload,
        "compensates": compensates,
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


def who(connection):
    """Identity and epoch. Raises Refused if the file has none, or is of another version."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    found = connection.execute("SELECT identity, epoch FROM self").fetchone()
    if found is None or version != SCHEMA_VERSION:
        raise Refused(f"it has no identity, or schema {version} instead of {SCHEMA_VERSION}")
    return found


def check_target(connection, request):
    """Identity and epoch. Raises WrongTarget if the request is meant for another receiver."""
    identity, epoch = who(connection)
    if request["target"] != identity:
        raise WrongTarget(f"this is {identity!r}, not {request['target']!r}")
    return identity, epoch


def is_closed(connection, operation_id):
    """Whether a close mark stands."""
    return (
        connection.execute(
            "SELECT 1 FROM closed WHERE operation_id = ?", (operation_id,)
        ).fetchone()
        is not None
    )


def log(connection, request, operation_id, body=None):
    """Note that something was asked for, before it is done; the number of the note."""
    return connection.execute(
        "INSERT INTO contact SELECT coalesce(max(number), 0) + 1, ?, ?, ? FROM contact",
        (request, operation_id, body),
    ).lastrowid


def undo(connection):
    """End a transaction that did not reach its commit."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def now_ms():
    """UTC milliseconds, by this machine's clock. It dates effects; no close mark has an age."""
    return time.time_ns() // 1_000_000
