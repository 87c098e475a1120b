"""PostgreSQL through psycopg 3: many writers, each locking what it decides on."""

from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg

from decklog.core import fork_safety as forks
from decklog.core.errors import Invalid
from decklog.db.base import PARAMETER, Database
from decklog.db.postgres import bulk, errors, portal, schema
from decklog.db.postgres.connections import CHANNEL, PostgresConnections
from decklog.db.postgres.listener import NotifyListener
from decklog.db.postgres.transactions import READ, READ_BY_SAME_PLANS, PostgresTransactions, given_up
from decklog.db.postgres.wire import Again
from decklog.db.statements import Statements
from decklog.records.values import Values

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from decklog.core.clock import Clock
    from decklog.db.base import Row, T
    from decklog.db.postgres.wire import Result
    from decklog.db.search.entries import Found, Search

# In the order of the function's own parameters.
_APPEND = """
select new_pos, new_hash
  from append_entry(
    :before, :after, :stream, :at, :kind, :subtype, :agent, :agent_id, :group_id, :task_id, :iteration, :phase, :confidence,
    :redacted, :key, :record_table, :record_id, :refs, :body_digest, :payload_digest, :body, :payload, :channel
  )
"""


_STREAM_SIZE = 2**32
# The first half of the advisory locks of streams that have no entry yet.
_BEGINNING = 0x6465636B
_LOCK_STREAM = "select no from streams where name = :stream for update"
# A record without a run of its own is told in the ledger's stream.
_LOCK_STREAM_OF = """
select s.no
  from {table} r
  join streams s on s.name = coalesce(r.run_id, '@ledger')
 where r.id = :id
   for update of s
"""
# What is to be known once a stream is locked: which schema this is, where the stream ends, and whether anybody listens to it. A
# statement of its own, since one that waits for a lock sees what there was before it waited.
_LOCKED = f"""
select v.version, s.name, s.no, e.pos, e.hash, e.at,
       exists (select 1 from listeners l where l.stream in (s.name, '*') and l.until > now())
  from (select max(version) as version from schema_steps) v
  left join {{stream}}
  left join lateral (
    select pos, hash, at
      from entries
     where pos >= s.no * {_STREAM_SIZE} and pos < (s.no + 1) * {_STREAM_SIZE}
     order by pos desc
     limit 1
  ) e on true
"""
_STREAM = _LOCKED.format(stream="streams s on s.name = :stream")
_STREAM_OF = "({table} r join streams s on s.name = coalesce(r.run_id, '@ledger')) on r.id = :id"


class PostgresDatabase(Database):
    """A log in a PostgreSQL database."""

    engine = "postgres"
    finds_tags_by_search = False
    locks_rows = True
    packs_blobs = False
    # Of all logs of a process: how a statement is spelled depends on nothing else.
    _spelled: "Statements[str]" = Statements()
    # The same as libpq takes it, with its parameters' names in the order of their numbers.
    _numbered: "Statements[tuple[bytes, tuple[str, ...]]]" = Statements()

    def __init__(self, connections: PostgresConnections, *, values: Values, clock: "Clock") -> None:
        self.target = connections.url
        self.read_only = connections.read_only
        self.values = values
        self.clock = clock
        self.connections = connections
        self.most_transactions = connections.pool_size
        self._transactions = PostgresTransactions(connections)
        self._listener = NotifyListener(connections)
        self._names: Statements[tuple[str, ...]] = Statements()
        forks.follow(self)

    # Transactions

    @property
    def memo(self) -> "dict[Any, Any]":  # type: ignore[override]
        return self._transactions.memo

    def write(self, job: "Callable[[], T]") -> "T":
        return self._transactions.write(job)

    def submit(self, job: "Callable[[], T]") -> "Any":
        return self._transactions.submit(job)

    def read(self, job: "Callable[[], T]", *, same_plans: bool = False) -> "T":
        return self._transactions.read(job, READ_BY_SAME_PLANS if same_plans else READ)

    def transaction(self) -> "AbstractContextManager[None]":
        return self._transactions.transaction()

    def if_undone(self, act: "Callable[[], None]") -> None:
        self._transactions.if_undone(act)

    @contextmanager
    def patiently(self) -> "Iterator[None]":
        connection = self._transactions.here()
        usual, connection.patience_seconds = connection.patience_seconds, None
        try:
            yield
        finally:
            connection.patience_seconds = usual

    @property
    def is_in_transaction(self) -> bool:
        return self._transactions.is_held()

    @property
    def is_reading(self) -> bool:
        return self._transactions.is_reading()

    def close(self) -> None:
        self._listener.close()
        self._transactions.close()

    def before_fork(self) -> None:
        self._transactions.before_fork()

    def after_fork_in_parent(self) -> None:
        self._transactions.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        self._transactions.after_fork_in_child()
        # Its thread stayed with the parent.
        self._listener = NotifyListener(self.connections)

    # Statements

    def _spell(self, sql: str) -> str:
        spelled = self._spelled.get(sql)
        if spelled is None:
            spelled = self._spelled.keep(sql, PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%")))
        return spelled

    def _number(self, sql: str) -> "tuple[bytes, tuple[str, ...]]":
        numbers: dict[str, int] = {}

        def numbered(match: "re.Match[str]") -> str:
            return f"${numbers.setdefault(match[1], len(numbers) + 1)}"

        text = PARAMETER.sub(numbered, sql).encode()
        return self._numbered.keep(sql, (text, tuple(numbers)))

    def _ask(self, how: "Callable[..., T]", sql: str, parameters: "Mapping[str, Any]", *more: "Any") -> "T":
        """Send a statement in one of the wire's ways."""
        text, names = self._numbered.get(sql) or self._number(sql)
        return self._heard(how, text, [parameters[name] for name in names], *more)

    def _heard(self, how: "Callable[..., T]", *what: "Any") -> "T":
        """Do something on the wire, and tell in our words what the server says against it."""
        try:
            return how(*what)
        except Again as problem:
            if not self._transactions.is_held():
                raise
            raise given_up(problem) from problem.__cause__  # a block of the caller's own is never run again
        except psycopg.Error as problem:
            raise errors.translate(problem) from problem
        except UnicodeEncodeError as problem:
            raise Invalid(f"a value can't be stored: {problem}") from None

    def rows(self, sql: str, parameters: "Mapping[str, Any]") -> "tuple[tuple[str, ...], list[Row]]":
        result, found = self._ask(self._transactions.wire().rows, sql, parameters)
        return self._names_of(sql, result), found

    def _names_of(self, sql: str, result: "Result") -> "tuple[str, ...]":
        # Describing forty columns takes as long as asking for them: it is done once for each statement.
        names = self._names.get(sql)
        if names is None:
            columns = (result.fname(place) or b"" for place in range(result.nfields))
            names = self._names.keep(sql, tuple(column.decode() for column in columns))
        return names

    def ask(self, sql: str, parameters: "Mapping[str, Any]") -> "Callable[[], tuple[tuple[str, ...], list[Row]]]":
        wire = self._transactions.wire()
        found: list[list[Row]] = []
        statement = self._ask(wire.later, sql, parameters, found.append)

        def answer() -> "tuple[tuple[str, ...], list[Row]]":
            if not found:
                self._heard(wire.flush)
            assert statement.result is not None
            return self._names_of(sql, statement.result), found[0]

        return answer

    def one(self, sql: str, parameters: "Mapping[str, Any]") -> "Row | None":
        _, found = self._ask(self._transactions.wire().rows, sql, parameters)
        return found[0] if found else None

    def count(self, sql: str, parameters: "Mapping[str, Any]") -> int:
        return self._ask(self._transactions.wire().count, sql, parameters)

    def each(self, sql: str, parameters: "Mapping[str, Any]") -> "Iterator[Row]":
        text, names = self._numbered.get(sql) or self._number(sql)
        yield from portal.each(self._transactions.at(), text, [parameters[name] for name in names], self._heard)

    def many(self, sql: str, parameters: "list[dict[str, Any]]") -> None:
        if len(parameters) >= bulk.WORTH_A_COPY:
            with _translated():
                bulk.many(self._transactions.here(), sql, self._spell(sql), parameters)
            return
        # All on one way: each waits for the last.
        for bound in parameters[:-1]:
            self._ask(self._transactions.wire().later, sql, bound)
        if parameters:
            self.count(sql, parameters[-1])

    def insert(self, table: str, names: "tuple[str, ...]", rows: "list[Row]") -> None:
        if len(rows) < bulk.WORTH_A_COPY:
            self.many(self.insert_of(table, names), [dict(zip(names, row, strict=True)) for row in rows])
            return
        with _translated():
            bulk.insert(self._transactions.here(), table, names, rows)

    def put(self, table: str, names: "tuple[str, ...]", identity: "tuple[str, ...]", rows: "list[dict[str, Any]]") -> None:
        if len(rows) < bulk.WORTH_A_COPY:
            super().put(table, names, identity, rows)
            return
        with _translated():
            bulk.put(self._transactions.here(), table, names, identity, rows)

    def hold(self, table: str) -> None:
        # Whoever wrote to the table waits for nobody: this waits until they have committed, and what they wrote can be seen.
        self.rows(f"lock table {table} in exclusive mode", {})

    def lock_stream(self, stream: str) -> int | None:
        memo = self.memo
        if ("stream", stream) not in memo and ("lock", stream) in memo:
            self._heard(self._transactions.wire().flush)
        if ("stream", stream) not in memo:
            # One that was not there when it was to be locked may have been begun since.
            self._lock_next(_LOCK_STREAM, _STREAM, {"stream": stream})
            self._heard(self._transactions.wire().flush)
        # Decisions about runs read @desk before and after they lock a run: locking its name too would deadlock.
        is_locked_by_name = stream.startswith("@") and stream != "@desk"
        if ("stream", stream) not in memo and is_locked_by_name and ("begins", stream) not in memo:
            # A stream of no run has no row before its first entry. Its name is locked instead, and whoever waited looks again.
            memo["begins", stream] = True
            self.rows(f"select pg_advisory_xact_lock({_BEGINNING}, hashtext(:stream))", {"stream": stream})
            return self.lock_stream(stream)
        number: int | None = memo.get(("stream", stream))
        return number

    def lock_stream_next(self, stream: str) -> None:
        if ("stream", stream) not in self.memo and ("lock", stream) not in self.memo:
            self._lock_next(_LOCK_STREAM, _STREAM, {"stream": stream})
            self.memo["lock", stream] = True

    def lock_stream_of_next(self, table: str, record_id: str) -> None:
        if ("lock of", table, record_id) not in self.memo:
            found = _LOCKED.format(stream=_STREAM_OF.format(table=table))
            self._lock_next(_LOCK_STREAM_OF.format(table=table), found, {"id": record_id})
            self.memo["lock of", table, record_id] = True

    def _lock_next(self, lock: str, found: str, parameters: "Mapping[str, Any]") -> None:
        wire = self._transactions.wire()
        locked: list[list[Row]] = []
        self._ask(wire.later, lock, parameters, locked.append)
        asked = self._ask(wire.later, found, parameters, lambda rows: self._remember(rows[0], is_locked=bool(locked[0])))
        asked.tells_check = True

    def _remember(self, found: "Row", *, is_locked: bool) -> None:
        version, name, number, position, hashed, at, is_listened_to = found
        self._transactions.check_version(version)
        if not is_locked:
            # None was there, or one was begun between the two statements, and others may go on with it.
            return
        memo = self.memo
        memo["stream", name] = number
        memo.setdefault(("locked at", name), (position, hashed, at))
        if not is_listened_to:
            # Whoever begins to listen from now on looks at the heads first, and again soon.
            memo["announced", name] = True

    def head_at_hand(self, stream: str) -> "Row | None":
        head: Row | None = self.memo.get(("locked at", stream))
        return head

    def append_entry(self, values: "Mapping[str, Any]", before: str, after: str) -> "Row":
        return self.one(_APPEND, {**values, "before": before, "after": after, "channel": CHANNEL}) or ()

    def put_off(self, sql: str, names: "tuple[str, ...]", row: "Sequence[Any]") -> None:
        self._ask(self._transactions.wire().later, sql, dict(zip(names, row, strict=True)))

    def announce(self, stream: str) -> None:
        if ("announced", stream) not in self.memo:
            bound = {"channel": CHANNEL, "stream": stream}
            self._ask(self._transactions.wire().later, "select announce(:channel, :stream)", bound)
            self.memo["announced", stream] = True

    def wait_for_change(self, seconds: float, stream: str | None = None) -> None:
        self.connections.check_open()
        with _translated():
            self._listener.wait(stream, seconds)

    def watch(self, stream: str | None, wake: "Callable[[], None]") -> "Callable[[], None]":
        self.connections.check_open()
        with _translated():
            return self._listener.watch(stream, wake)

    # Search

    def forget_text(self, positions: "list[int]") -> None:
        from decklog.db.postgres import search

        search.forget(self, positions)

    def index_entries(self, mark: int, end: int) -> None:
        from decklog.db.postgres import search

        search.index(self, mark, end)

    def search(self, select: str, asked: "Search") -> "Found":
        from decklog.db.postgres import search

        return search.search(self, select, asked)

    # Schema

    def prepare(self, *, migrate: bool) -> None:
        """Make sure of the schema; change it only when `migrate` says so."""
        if migrate:
            self.migrate()
        self.read(self._look_at_schema)

    def _look_at_schema(self) -> None:
        self._transactions.version = schema.check_version(self)
        if not self.read_only and not schema.may_append(self):
            self.read_only = self.connections.read_only = True

    def migrate(self) -> list[str]:
        return schema.migrate(self, self._transactions)

    def check_text(self) -> "Iterator[dict[str, Any]]":
        from decklog.db.postgres import search
        from decklog.db.search import entries_check

        return entries_check.findings(self, search.flaws(self))

    def forget_all_text(self) -> None:
        from decklog.db.postgres import search

        self.write(lambda: search.forget_all(self))

    def check_schema(self) -> "Iterator[dict[str, Any]]":
        from decklog.db.postgres import catalogue

        return catalogue.differences(self, self.connections.url)

    def facts(self) -> "dict[str, Any]":
        return self.read(lambda: schema.facts(self))


@contextmanager
def _translated() -> "Iterator[None]":
    try:
        yield
    except psycopg.Error as problem:
        raise errors.translate(problem) from problem


def open_postgres(
    url: str,
    *,
    values: Values,
    clock: "Clock | None",
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
    database = PostgresDatabase(connections, values=values, clock=clock or connections.clock)
    try:
        database.prepare(migrate=migrate)
    except BaseException:
        database.close()
        raise
    return database
