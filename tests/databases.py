"""PostgreSQL databases for tests: one that its test left with nothing but rows is emptied and used again.

Making a database and dropping it costs eight times as much as emptying one, and most tests need one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import psycopg

# More than this over an empty log, and scans would read what earlier tests left behind.
_MOST_BYTES_LEFT = 4_000_000
# The server stats a thousand files for the size, a quarter of the time of emptying.
_USES_BETWEEN_LOOKS = 8

_WATCH = """
create schema watch;
create table watch.altered (command text);
create function watch.note() returns event_trigger language plpgsql security definer as
  $$ begin insert into watch.altered values (tg_tag); end $$;
create event trigger watch on ddl_command_end execute function watch.note();
-- Also for those who switch triggers off to tamper with rows.
alter event trigger watch enable always;
"""
_TABLES = "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by relname"
_OTHERS = """
select pg_terminate_backend(pid)
  from pg_stat_activity
 where datname = current_database()
   and pid <> pg_backend_pid()
"""


def named(uri: str, name: str) -> str:
    """Return the URL of another database of the same server."""
    head, _, query = uri.partition("?")
    return head.rsplit("/", 1)[0] + "/" + name + (f"?{query}" if query else "")


class Databases:
    """The copies of one migrated, empty database."""

    def __init__(self, server: str, template: str) -> None:
        self._server = server
        self._template = template
        self._numbers = count(1)
        self._spare: list[str] = []
        self._uses = count()
        # To each that was used once, to empty it again: connecting is most of what that takes.
        self._connections: dict[str, psycopg.Connection[tuple[object, ...]]] = {}
        with psycopg.connect(named(server, template), autocommit=True) as connection:
            self._tables = [name for (name,) in connection.execute(_TABLES)]
            self._filled = " union all ".join(f"select '{name}' where exists (select 1 from {name})" for name in self._tables)
            connection.execute(_WATCH.encode())
            # Last, since the making of it is noted too.
            self._seeded = [name for (name,) in connection.execute(self._filled.encode())]
            for name in self._seeded:
                connection.execute(f"create table watch.{name} as table public.{name}".encode())
            connection.execute("delete from watch.altered")
            self._most_bytes = _bytes(connection) + _MOST_BYTES_LEFT

    @contextmanager
    def one(self) -> Iterator[str]:
        """Yield a database with the schema and no other rows."""
        name = self._spare.pop() if self._spare else self._make()
        yield named(self._server, name)
        if self._empty(name):
            self._spare.append(name)
        else:
            self._connections.pop(name).close()
            with psycopg.connect(self._server, autocommit=True) as connection:
                connection.execute(f"drop database {name} with (force)".encode())

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _make(self) -> str:
        name = f"{self._template}_{next(self._numbers)}"
        with psycopg.connect(self._server, autocommit=True) as connection:
            # Copied file by file: half the time of writing the copy to the WAL as well, which is the default.
            connection.execute(f"create database {name} template {self._template} strategy file_copy".encode())
        return name

    def _empty(self, name: str) -> bool:
        """Delete the rows; return whether the database can be used again."""
        connection = self._connection(name)
        altered = connection.execute("select command from watch.altered limit 1").fetchone()
        if altered is not None or self._is_large(connection):
            return False
        filled = [name for (name,) in connection.execute(self._filled.encode())]
        parts = [*(f"delete from {name}" for name in filled)]
        parts += [f"insert into {name} select * from watch.{name}" for name in self._seeded]
        connection.execute(";".join(parts).encode())
        return True

    def _is_large(self, connection: "psycopg.Connection[tuple[object, ...]]") -> bool:
        """Look at the size now and then; the tests between leave little each."""
        return next(self._uses) % _USES_BETWEEN_LOOKS == 0 and _bytes(connection) > self._most_bytes

    def _connection(self, name: str) -> "psycopg.Connection[tuple[object, ...]]":
        """Return our connection to a database that no test uses."""
        try:
            self._connections[name].execute(_OTHERS)
        except (KeyError, psycopg.OperationalError):
            if name in self._connections:
                self._connections[name].close()  # a test ended all there were
            connection = self._connections[name] = psycopg.connect(named(self._server, name), autocommit=True)
            connection.execute("set session_replication_role = replica")
            connection.execute(_OTHERS)
        return self._connections[name]


def _bytes(connection: "psycopg.Connection[tuple[object, ...]]") -> int:
    row = connection.execute("select pg_database_size(current_database())").fetchone()
    assert row is not None
    return int(str(row[0]))
