"""What a SQLite file needs now and then: a look at its health, and its space given back."""

import os

import apsw

from decklog.db import schema
from decklog.db.sqlite import errors, file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from decklog.db.sqlite.connections import Connections


def facts(connections: "Connections") -> "dict[str, Any]":
    """Describe the engine and the file for `doctor`."""
    connection = connections.readers.mine().connection

    def pragma(name: str) -> "Any":
        row = connection.execute(f"pragma {name}").fetchone()
        return row[0] if row else None

    wal = connections.path + "-wal"
    status = os.stat(connections.path)
    return {
        "engine": "sqlite",
        "engine_version": apsw.sqlite_lib_version(),
        "path": connections.path,
        "filesystem": file.filesystem_of(connections.path),
        "schema": pragma("user_version"),
        "schema_supported": schema.latest("sqlite"),
        "journal_mode": pragma("journal_mode"),
        "synchronous": {1: "normal", 2: "full"}.get(pragma("synchronous"), "other"),
        "bytes": status.st_size,
        "wal_bytes": os.path.getsize(wal) if os.path.exists(wal) else 0,
        "mode": oct(status.st_mode & 0o777),
        "read_only": connections.read_only,
        "steps": _steps(connection),
    }


def _steps(connection: apsw.Connection) -> "list[dict[str, Any]]":
    rows = connection.execute("select version, name, applied_at from schema_steps order by version")
    return [{"version": version, "name": name, "applied_at": at} for version, name, at in rows]


def vacuum(connections: "Connections") -> None:
    """Write the file anew without what was dropped."""
    connection = connections.connect()
    connections.lock.acquire()
    try:
        connection.execute("vacuum")
        connection.execute("pragma wal_checkpoint(truncate)")
    except apsw.Error as problem:
        raise errors.translate(problem, connections.path) from problem
    finally:
        connections.lock.release()
        connection.close()
