"""Logs on PostgreSQL as the first schema left them: all entries in one table."""

import psycopg
from psycopg import sql

from decklog import Decklog
from decklog.db import schema


def flatten(url: str) -> None:
    """Turn a log into one of the first schema with the same rows."""
    first = schema.steps("postgres")[0]
    with psycopg.connect(url) as connection:
        connection.execute("alter schema public rename to newer")
        connection.execute("create schema public")
        connection.execute(schema.text_of(first, "postgres").encode())
        connection.execute("set local session_replication_role = replica")
        # Derived tables that a later step replaced are empty.
        names = """
            select relname from pg_class
             where relnamespace = 'public'::regnamespace and relkind = 'r' and to_regclass('newer.' || relname) is not null
        """
        for (name,) in connection.execute(names).fetchall():
            of_table = f"select attname from pg_attribute where attrelid = 'public.{name}'::regclass and attnum > 0"
            columns = [column for (column,) in connection.execute(of_table.encode()).fetchall()]
            listed = sql.SQL(", ").join(map(sql.Identifier, columns))
            copy = "insert into public.{table} ({columns}) overriding system value select {columns} from newer.{table}"
            connection.execute(sql.SQL("delete from public.{}").format(sql.Identifier(name)))
            connection.execute(sql.SQL(copy).format(table=sql.Identifier(name), columns=listed))
        connection.execute("delete from schema_steps where version > 1")
        # As the identity of a log that never had ranges.
        connection.execute("select setval(pg_get_serial_sequence('streams', 'no'), (select max(no) from streams))")
        connection.execute("drop schema newer cascade")


def fill(url: str, runs: int = 6) -> None:
    """Write some runs."""
    with Decklog.open(url, migrate=True) as log:
        for number in range(runs):
            log.runs.start("goal", run_id=f"old_{number}")
            log.journal.append_many([{"stream": f"old_{number}", "body": f"entry {n}", "key": f"k{n}"} for n in range(20)])
        log.inbox.post("ana", "Why so slow?", run_id="old_0")
