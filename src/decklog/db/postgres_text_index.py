"""The text index of a PostgreSQL log: what to do without it, and having the server make it by itself.

To make it takes the server several times as long as to take the entries in. A move into an empty log therefore leaves it out. It
is made `concurrently`, which keeps nobody from writing, by a session that nobody waits for: a server goes on with a statement
when the one who sent it is gone.
"""

import psycopg

from decklog.db import postgres_errors, schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from decklog.db.base import Database

    Connection = psycopg.Connection[Any]
    State = Literal["ready", "missing", "being made", "not ours"]

# Whoever makes an index beside writers holds this lock; so does a vacuum, after which the next search looks again.
_STATE = """
    select case
           when (select indisvalid from pg_index where indexrelid = to_regclass('entries_by_text')) then 'ready'
           when not (select pg_has_role(relowner, 'usage') from pg_class where oid = 'entries'::regclass) then 'not ours'
           when exists (select 1
                          from pg_locks
                         where relation = 'entries'::regclass
                           and database = (select oid from pg_database where datname = current_database())
                           and mode = 'ShareUpdateExclusiveLock') then 'being made'
           else 'missing'
           end
"""
# An index that is there and not valid is from a session that was ended in the middle.
_DROP_UNFINISHED = """
    do $$ begin
      if exists (select 1 from pg_index where indexrelid = to_regclass('entries_by_text') and not indisvalid) then
        drop index entries_by_text;
      end if;
    end $$
"""


def state(database: "Database") -> "State":
    """Say whether searches have the index; only the owner of a table may make one."""
    row = database.one(_STATE, {})
    assert row is not None
    found: State = row[0]
    return found


def leave_out(database: "Database") -> None:
    database.rows("drop index if exists entries_by_text", {})


def start(url: str) -> "Connection | None":
    """Have the server make the index, and give the session that does; None when the table is locked right now."""
    try:
        connection: Connection = psycopg.connect(url, autocommit=True)
    except psycopg.Error as problem:
        raise postgres_errors.translate(problem) from problem
    try:
        connection.execute("set lock_timeout = '1s'")
        connection.execute(_DROP_UNFINISHED)
        connection.execute("set lock_timeout = 0")
        connection.execute("set maintenance_work_mem = '256MB'")
        # Nobody waits for it, and others need the cores.
        connection.execute("set max_parallel_maintenance_workers = 0")
    except psycopg.errors.LockNotAvailable:
        connection.close()
        return None
    except psycopg.Error as problem:
        connection.close()
        raise postgres_errors.translate(problem) from problem
    connection.pgconn.send_query(definition().encode())
    return connection


def definition() -> str:
    """Read how the index is made from the step that made it."""
    text = schema.text_of(schema.steps("postgres")[0], "postgres")
    begin = text.index("create index entries_by_text")
    return text[begin : text.index(";", begin)].replace("create index", "create index concurrently if not exists")
