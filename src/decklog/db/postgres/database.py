"""PostgreSQL through psycopg 3: many writers, each locking what it decides on."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import psycopg

from decklog.core import fork_safety as forks
from decklog.core.clock import Clock
from decklog.core.errors import Invalid, LostWrites
from decklog.db.base import STREAM_SIZE, Row, build_upsert
from decklog.db.postgres import errors, partitions, schema
from decklog.db.postgres.connections import PostgresConnections
from decklog.db.postgres.listener import NotifyListener
from decklog.db.postgres.search import PostgresSearch
from decklog.db.postgres.session import NotBegun, Session, Statement, Take
from decklog.db.postgres.transactions import PostgresTransactions, retries_exhausted_error
from decklog.db.search.marks import not_indexed
from decklog.db.statements import PARAMETER, Statements
from decklog.db.text_search import Span
from decklog.records.values import Values

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult


# The first half of the advisory locks of streams that have no entry yet.
_BEGINNING = 0x6465636B
_LOCK_STREAM = "select * from lock_stream(:stream)"
# A record without a run belongs to the ledger's stream.
_LOCK_STREAM_OF = "select * from lock_stream((select coalesce(run_id, '@ledger') from {table} where id = :id))"
# Since PostgreSQL 14, and not on every system: the server refuses it where it can't notice that a client is gone.
_END_WITH_CLIENT = """
select set_config('client_connection_check_interval', '1000', true)
 where current_setting('server_version_num')::integer >= 140000
   and version() like '%linux%'
"""
# In the range that is never archived: the numbers before its end are left for them.
_START_RESERVED = """
insert into streams (no, name, created_at, in_order)
select end_no - :place, :stream, :at, 1 from entry_ranges order by first_no limit 1
on conflict do nothing
"""
# Once in a transaction: PostgreSQL would pass over all versions of the row that the transaction made before.
_KEEP_HEAD = b"update streams set head_seq = $2, head_hash = $3, head_at = $4 where no = $1"
# In every statement that reads the heads.
_HEAD_READERS = ("head_", "lock_stream")
_NEWEST_HEAD = f"(s.no * {STREAM_SIZE} + s.head_seq)"
_WRONG_HEADS = f"""
select s.name
  from streams s
 where not exists (select 1 from entry_ranges r where r.archive is not null and s.no >= r.first_no and s.no < r.end_no)
   and case when s.head_seq between 0 and {STREAM_SIZE - 1}
       then not exists (select 1 from entries e
                         where e.pos = {_NEWEST_HEAD} and e.seq = s.head_seq and e.hash = s.head_hash and e.at = s.head_at)
         or exists (select 1 from entries e where e.pos > {_NEWEST_HEAD} and e.pos < (s.no + 1) * {STREAM_SIZE})
       else true end
 order by s.no
"""
DERIVE_HEADS = f"""
update streams s
   set head_seq = h.seq, head_hash = h.hash, head_at = h.at
  from (
    select t.no, coalesce(e.seq, 0) as seq, coalesce(e.hash, '') as hash, coalesce(e.at, '') as at
      from streams t
      left join lateral (
        select seq, hash, at
          from entries
         where pos >= t.no * {STREAM_SIZE} and pos < (t.no + 1) * {STREAM_SIZE}
         order by pos desc
         limit 1
      ) e on true
  ) h
 where h.no = s.no
   and not exists (select 1 from entry_ranges r where r.archive is not null and s.no >= r.first_no and s.no < r.end_no)
   and (s.head_seq, s.head_hash, s.head_at) is distinct from (h.seq, h.hash, h.at)
"""
# From this number of rows on a copy is faster than inserts.
_WORTH_A_COPY = 50


class PostgresDatabase(PostgresSearch, PostgresTransactions):
    """A log in a PostgreSQL database."""

    engine = "postgres"
    finds_tags_by_search = False
    locks_rows = True
    keeps_heads = True
    packs_blobs = False
    # Statements with numbered parameters, and the parameters' names in that order; shared by all logs of a process.
    _numbered: Statements[tuple[bytes, tuple[str, ...]]] = Statements()

    def __init__(self, target: str, connections: PostgresConnections, *, values: Values, clock: Clock) -> None:
        super().__init__(connections)
        self.target = target
        self.values = values
        self.clock = clock
        self.most_transactions = connections.pool_size
        self._listener = NotifyListener(connections)
        self._names: Statements[tuple[str, ...]] = Statements()
        forks.notify_of_forks(self)

    @property
    def read_only(self) -> bool:  # type: ignore[override]
        """Whether this log takes no writes: it was opened so, the role may not write, or the server is a standby."""
        return self.connections.read_only or self.connections.is_standby

    @contextmanager
    def patiently(self) -> Iterator[None]:
        connection = self.connection()
        usual, connection.patience_seconds = connection.patience_seconds, None
        try:
            yield
        finally:
            connection.patience_seconds = usual

    def close(self) -> None:
        self._listener.close()
        super().close()

    def after_fork_in_child(self) -> None:
        super().after_fork_in_child()
        # Its thread stayed with the parent.
        self._listener = NotifyListener(self.connections)

    # Statements

    def _number(self, sql: str) -> tuple[bytes, tuple[str, ...]]:
        numbers: dict[str, int] = {}

        def numbered(match: re.Match[str]) -> str:
            return f"${numbers.setdefault(match[1], len(numbers) + 1)}"

        text = PARAMETER.sub(numbered, sql).encode()
        return self._numbered.keep(sql, (text, tuple(numbers)))

    def _session(self, sql: str) -> Session:
        """Return what runs a statement, after it was given what the statement has to find."""
        session = self.session()
        if session.before_commit and any(word in sql for word in _HEAD_READERS):
            session.queue_before_commit()
        return session

    def _run(self, sql: str, parameters: Mapping[str, Any]) -> "PGresult":
        text, names = self._numbered.get(sql) or self._number(sql)
        with self._translated():
            return self._session(sql).run(text, [parameters[name] for name in names])

    def _queue(self, sql: str, parameters: Mapping[str, Any], take: Take | None = None) -> Statement:
        """Send a statement together with the next one."""
        text, names = self._numbered.get(sql) or self._number(sql)
        with self._translated():
            return self._session(sql).queue(text, [parameters[name] for name in names], take)

    def _flush(self) -> None:
        with self._translated():
            self.session().flush()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise our errors instead of psycopg's."""
        try:
            yield
        except psycopg.Error as problem:
            raise errors.translate(problem) from problem
        except UnicodeEncodeError as problem:
            raise Invalid(f"a value can't be stored: {problem}") from problem
        except NotBegun as problem:
            # A block of the caller's own code is never run again.
            raise retries_exhausted_error(problem) if self.is_in_transaction else problem from problem.__cause__

    def rows(self, sql: str, parameters: Mapping[str, Any]) -> tuple[tuple[str, ...], list[Row]]:
        result = self._run(sql, parameters)
        return self._names_of(sql, result), self.session().rows_of(result)

    def _names_of(self, sql: str, result: "PGresult") -> tuple[str, ...]:
        # Describing forty columns takes as long as the query: it is done once for each statement.
        names = self._names.get(sql)
        if names is None:
            columns = (result.fname(place) or b"" for place in range(result.nfields))
            names = self._names.keep(sql, tuple(column.decode() for column in columns))
        return names

    def queue_query(self, sql: str, parameters: Mapping[str, Any]) -> Callable[[], tuple[tuple[str, ...], list[Row]]]:
        statement = self._queue(sql, parameters)

        def answer() -> tuple[tuple[str, ...], list[Row]]:
            if statement.result is None:
                self._flush()
            assert statement.result is not None
            return self._names_of(sql, statement.result), self.session().rows_of(statement.result)

        return answer

    def one(self, sql: str, parameters: Mapping[str, Any]) -> Row | None:
        found = self.session().rows_of(self._run(sql, parameters))
        return found[0] if found else None

    def count(self, sql: str, parameters: Mapping[str, Any]) -> int:
        return self._run(sql, parameters).command_tuples or 0

    def each(self, sql: str, parameters: Mapping[str, Any]) -> Iterator[Row]:
        text, names = self._numbered.get(sql) or self._number(sql)
        with self._translated():
            yield from self._session(sql).each(text, [parameters[name] for name in names])

    def many(self, sql: str, parameters: list[dict[str, Any]]) -> None:
        for bound in parameters:
            self._queue(sql, bound)
        self._flush()

    def insert(self, table: str, names: tuple[str, ...], rows: list[Row]) -> None:
        if len(rows) >= _WORTH_A_COPY:
            self._copy(table, names, rows)
            return
        sql = self.insert_of(table, names)
        for row in rows:
            self._queue(sql, dict(zip(names, row, strict=True)))

    def put(self, table: str, names: tuple[str, ...], identity: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
        if len(rows) < _WORTH_A_COPY:
            super().put(table, names, identity, rows)
            return
        staged = f"staged_{table}"
        self.count(f"create temporary table if not exists {staged} (like {table}) on commit drop", {})
        self.count(f"truncate {staged}", {})
        self._copy(staged, names, map(itemgetter(*names), rows))
        self.count(build_upsert(table, names, identity, f"select {', '.join(names)} from {staged}"), {})

    def _copy(self, table: str, names: tuple[str, ...], rows: Iterable[Row]) -> None:
        text = f"copy {table} ({', '.join(names)}) from stdin".encode()
        with (
            self._translated(),
            self.session().exclusive() as connection,
            connection.cursor() as cursor,
            cursor.copy(text) as copy,
        ):
            for row in rows:
                copy.write_row(row)

    def hold(self, table: str) -> None:
        # This waits until the writers of the table have committed, and sees what they wrote.
        self.rows(f"lock table {table} in exclusive mode", {})

    def lock_stream(self, stream: str) -> int | None:
        memo = self.memo
        self.lock_stream_next(stream)
        self._flush()
        # Decisions about runs read @desk before and after they lock a run: locking its name too would deadlock.
        is_locked_by_name = stream.startswith("@") and stream != "@desk"
        if ("stream", stream) not in memo and is_locked_by_name and ("begins", stream) not in memo:
            # A stream of no run has no row before its first entry: its name is locked instead.
            memo["begins", stream] = True
            self.rows(f"select pg_advisory_xact_lock({_BEGINNING}, hashtext(:stream))", {"stream": stream})
            return self.lock_stream(stream)
        number: int | None = memo.get(("stream", stream))
        return number

    def start_stream(self, stream: str, at: str, reserved_place: int | None) -> int:
        if reserved_place is not None:
            self.count(_START_RESERVED, {"stream": stream, "at": at, "place": reserved_place + 1})
            reserved = self.lock_stream(stream)
            assert reserved is not None
            return reserved
        number = super().start_stream(stream, at, None)
        self._queue("select make_room_for_stream(:number)", {"number": number})
        return number

    def lock_stream_next(self, stream: str) -> None:
        if ("stream", stream) not in self.memo:
            self._queue(_LOCK_STREAM, {"stream": stream}, self._locked)

    def lock_stream_of_next(self, table: str, record_id: str) -> None:
        if ("lock of", table, record_id) not in self.memo:
            self._queue(_LOCK_STREAM_OF.format(table=table), {"id": record_id}, self._locked)
            self.memo["lock of", table, record_id] = True

    def _locked(self, rows: list[Row]) -> None:
        """Remember the head of a stream that is locked now; there is none without a name."""
        version, name, number, position, hashed, at, is_listened_to = rows[0]
        self.check_version(self.session(), version)
        if name is None:
            return
        memo = self.memo
        memo["stream", name] = number
        memo.setdefault(("locked at", name), (position, hashed, at))
        if not is_listened_to:
            # A listener that comes later looks at the heads first, and again soon.
            memo["announced", name] = True

    def head_of(self, stream: str, number: int) -> Row | None:
        head = self.memo.get(("locked at", stream))
        if head is None:
            return super().head_of(stream, number)
        return head if head[2] else None

    def store_head(self, stream: str, position: int, hash: str, at: str) -> None:
        number, seq = divmod(position, STREAM_SIZE)
        self.session().before_commit[number] = _KEEP_HEAD, (number, seq, hash, at)
        # To be acknowledged with the commit.
        written = self.connection().written
        before = written.get(stream)
        written[stream] = (position, hash)

        def restore() -> None:
            if before is None:
                written.pop(stream, None)
            else:
                written[stream] = before

        self.if_undone(restore)
        if ("announced", stream) not in self.memo:
            self._queue("select announce(:stream)", {"stream": stream})
            self.memo["announced", stream] = True

    def wrong_heads(self) -> list[str]:
        return [name for (name,) in self.rows(_WRONG_HEADS, {})[1]]

    def archived(self) -> dict[str, str]:
        return partitions.archived(self)

    def derive_heads(self) -> None:
        self.count(DERIVE_HEADS, {})

    def on_lost_writes(self, record: Callable[[LostWrites], None]) -> None:
        self.acknowledged.record = record

    def wait_for_change(self, seconds: float, stream: str | None = None) -> None:
        self.connections.check_open()
        with self._translated():
            self._listener.wait(stream, seconds)

    def watch(self, stream: str | None, wake: Callable[[], None]) -> Callable[[], None]:
        self.connections.check_open()
        with self._translated():
            return self._listener.watch(stream, wake)

    # Search

    def unindexed(self, stream_no: int | None, *, going_on: bool = False, first: int = 0) -> list[Span]:
        return not_indexed(self, stream_no, going_on=going_on, first=first)

    # Schema

    def prepare(self, *, migrate: bool) -> None:
        """Check the schema; change it only with `migrate`."""
        if migrate:
            self.migrate()
        self.read(self._look_at_schema)

    def _look_at_schema(self) -> None:
        self.version = schema.check_version(self)
        # A role that may not write entries has a log that is for reading only.
        if self.one("select has_table_privilege('entries', 'insert')", {}) != (True,):
            self.connections.read_only = True

    def migrate(self) -> list[str]:
        return schema.migrate(self)

    def end_with_client(self) -> None:
        self._queue(_END_WITH_CLIENT, {})

    def check_schema(self) -> Iterator[dict[str, Any]]:
        return schema.differences(self, self.connections.url)

    def server_gauges(self) -> dict[str, float]:
        pool = self.connections.pool().get_stats()
        found = {
            "pool_connections": pool.get("pool_size", 0),
            "pool_waiting": pool.get("requests_waiting", 0),
            "pool_waits_total": pool.get("requests_queued", 0),
            "pool_wait_seconds_total": pool.get("requests_wait_ms", 0) / 1000,
        }
        state = schema.replication(self)
        lag = state["replication_lag_seconds"]
        return {**found, "standby": float(state["is_standby"]), **({} if lag is None else {"replication_lag_seconds": lag})}

    def facts(self) -> dict[str, Any]:
        return self.read(lambda: schema.facts(self))


def open_postgres(
    url: str,
    *,
    values: Values,
    clock: Clock | None,
    durability: str = "full",
    read_only: bool = False,
    busy_seconds: float = 30.0,
    migrate: bool = False,
    pool_size: int = 16,
) -> PostgresDatabase:
    """Connect to a database; its schema is changed only when `migrate` asks for it.

    Without a clock of the caller's own, the time is the server's.
    """
    if url.partition("?")[0].count("@") > 1:
        # What follows the first one would be taken for the host, and the driver's error would show it.
        raise Invalid("the address has more than one @; in a user name or a password write it as %40", field="target")
    connections = PostgresConnections(
        url, durability=durability, read_only=read_only, busy_seconds=busy_seconds, pool_size=pool_size
    )
    database = PostgresDatabase(url, connections, values=values, clock=clock or connections.clock)
    try:
        database.prepare(migrate=migrate)
    except BaseException:
        database.close()
        raise
    return database
