"""Projects: several teams on one server, each with its database and roles.

A database is chosen when a connection is made, so this also holds behind a pooler, where a search path would not.
"""

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg
from psycopg.sql import SQL, Identifier

from decklog.core.errors import Conflict, Invalid
from decklog.db.postgres.errors import translate
from decklog.db.postgres.roles import role_names, statements

if TYPE_CHECKING:
    from collections.abc import Callable

_MARK = "Decklog project"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LIST = """
select datname,
       has_database_privilege(oid, 'connect'),
       case when has_database_privilege(oid, 'connect') then pg_database_size(oid) end
  from pg_database
 where shobj_description(oid, 'pg_database') = %s
 order by datname
"""


def url_of(server: str, name: str) -> str:
    """Return the address of a project on a server, whose address names any of its databases."""
    return urlsplit(server)._replace(path=f"/{name}").geturl()


def create(server: str, name: str, migrate: "Callable[[str], None]") -> None:
    """Create the database and the roles of a project; one that exists is completed and migrated.

    Members of its roles can connect to it. Others can't, except superusers and those who may act as its owner.
    """
    if not _NAME.fullmatch(name):
        raise Invalid(f"{name!r} can't name a project", hint="Use up to 40 of a-z, 0-9 and _, a letter first.", field="name")
    roles = role_names(name)
    database = Identifier(name)
    try:
        with psycopg.connect(server, autocommit=True) as connection:
            _create_database(connection, name)
            connection.execute(SQL("revoke all on database {} from public").format(database))
        migrate(url_of(server, name))
        with psycopg.connect(url_of(server, name), autocommit=True) as connection:
            connection.execute(statements(prefix=name).encode())
            connection.execute(SQL("grant connect, temporary on database {} to {}").format(database, Identifier(roles.reader)))
    except psycopg.Error as problem:
        raise translate(problem) from problem


def _create_database(connection: "psycopg.Connection[Any]", name: str) -> None:
    found = connection.execute(
        "select shobj_description(oid, 'pg_database') from pg_database where datname = %s", [name]
    ).fetchone()
    if found is None:
        connection.execute(SQL("create database {}").format(Identifier(name)))
        connection.execute(SQL("comment on database {} is {}").format(Identifier(name), _MARK))
    elif found[0] != _MARK:
        raise Conflict(f"the server has a database {name} that is no project", hint="Choose another name.")


def projects(server: str) -> "list[dict[str, Any]]":
    """List the projects of a server: name, whether this login can open it, and its size."""
    try:
        with psycopg.connect(server, autocommit=True) as connection:
            rows = connection.execute(_LIST, [_MARK]).fetchall()
    except psycopg.Error as problem:
        raise translate(problem) from problem
    return [{"name": name, "can_open": can_open, "bytes": size} for name, can_open, size in rows]
