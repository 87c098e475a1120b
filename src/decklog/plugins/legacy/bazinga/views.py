"""What readers of a bazinga database expect on PostgreSQL: its tables, as views in a schema of their own."""

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from decklog.core.errors import Denied

if TYPE_CHECKING:
    from decklog.db.base import Database

SCHEMA = "bazinga"
_MAKING = 4919131752989214


@lru_cache
def shipped() -> dict[str, str]:
    """Return each view's name and its select, as this Decklog ships them."""
    with open(os.path.join(os.path.dirname(__file__), "views.postgres.sql"), encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("--")]
    found = {}
    for statement in "".join(lines).split(";\n"):
        name, _, select = statement.strip().removeprefix("create view ").partition(" as\n")
        if select:
            found[name] = select
    return found


def make(database: "Database") -> None:
    """Make the views, or make them anew where they are not the shipped ones. A log that can't be changed goes without."""
    if database.read_only or not database.read(lambda: missing(database)):
        return
    try:
        database.write(lambda: _make(database))
    except Denied:
        # This role may not; its questions bring the views with them.
        return


def missing(database: "Database") -> dict[str, str]:
    """Return the views that a log lacks or has in another form."""
    found = database.one("select obj_description(to_regnamespace(:schema)::oid, 'pg_namespace')", {"schema": SCHEMA})
    return {} if found == (_digest(),) else dict(shipped())


def _make(database: "Database") -> None:
    database.rows("select pg_advisory_xact_lock(:number)", {"number": _MAKING})
    if missing(database):
        database.rows(f"drop schema if exists {SCHEMA} cascade", {})
        database.rows(f"create schema {SCHEMA}", {})
        for name, select in shipped().items():
            database.rows(f"create view {SCHEMA}.{name} as\n{select}", {})
        database.rows(f"comment on schema {SCHEMA} is '{_digest()}'", {})


def _digest() -> str:
    import hashlib

    return hashlib.sha256(repr(shipped()).encode()).hexdigest()
