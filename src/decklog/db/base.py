"""The interface of a database: statements with named parameters, and transactions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from decklog.core.clock import Clock
from decklog.core.errors import LostWrites
from decklog.db import callers
from decklog.db.callers import TaskContext
from decklog.db.schema import APPLIED, latest, required
from decklog.db.text_search import Found, Search, Span
from decklog.records.values import Values

T = TypeVar("T")

Row = tuple[Any, ...]

# A position is the stream's number times this, and the entry's number within the stream.
STREAM_SIZE = 2**32
_HEAD = "select head_pos, head_hash, head_at from stream_heads where no = :number"


class Database(ABC):
    """One open database. Every statement runs in the caller's current transaction."""

    engine: str
    target: str
    # Whether kind, agent and phase are found through `search`, because they have no index.
    finds_tags_by_search: bool
    # Whether removing entries from the text index takes far longer than indexing them.
    forgets_words_slowly: bool = False
    # Whether transactions lock rows and may wait for each other; otherwise there is a single writer.
    locks_rows: bool
    # Whether the row of each stream has its last entry; otherwise it is looked up.
    keeps_heads: bool = False
    # True if Decklog compresses long values, because the database does not.
    packs_blobs: bool
    most_transactions: int
    read_only: bool
    values: Values
    clock: Clock
    # A cache for transactions, cleared when one fails or when others may have changed the data.
    memo: dict[Any, Any]

    @property
    def file(self) -> str | None:
        """The file of the log, which the guard protects; None for a server."""
        return self.target if self.engine == "sqlite" else None

    @abstractmethod
    def write(self, job: Callable[[], T]) -> T:
        """Run a job in one transaction, all or nothing; inside another one it is a savepoint.

        The job may run more than once if the engine asks for a retry, so it must only change the database.
        """

    @abstractmethod
    def submit(self, job: Callable[[], T]) -> Any:
        """Queue a job for a transaction in the background; return a Future that is done once it is committed."""

    def submit_upkeep(self, job: Callable[[], object]) -> None:
        """Queue a job without a result."""
        self.submit(job)

    @abstractmethod
    def read(self, job: Callable[[], T], *, same_plans: bool = False) -> T:
        """Run a job whose statements all see one consistent snapshot.

        With `same_plans` a server reuses one plan per statement: for statements whose best plan does not depend on parameters.
        """

    def within(self, seconds: float) -> AbstractContextManager[None]:
        """Limit the reads of a block to a number of seconds; a longer read raises `TimedOut`."""
        return callers.within(seconds)

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Hold one write transaction open for a block of the caller's own code, which is never retried.

        It belongs to the thread or task that opened it. Other callers have their own, or get Busy where waiting would deadlock.
        """

    @abstractmethod
    def if_undone(self, act: Callable[[], None]) -> None:
        """Call a function if the caller's current transaction is rolled back."""

    def patiently(self) -> AbstractContextManager[None]:
        """Allow the statements of a block to take any time without treating the server as lost. In a transaction."""
        return nullcontext()

    @property
    @abstractmethod
    def is_in_transaction(self) -> bool:
        """Whether the caller holds a `transaction()` of this log open."""

    @property
    @abstractmethod
    def is_reading(self) -> bool:
        """Whether the caller is inside a `read`."""

    @abstractmethod
    def rows(self, sql: str, parameters: Mapping[str, Any]) -> tuple[tuple[str, ...], list[Row]]:
        """Run one statement; return its column names and all its rows."""

    def queue_query(self, sql: str, parameters: Mapping[str, Any]) -> Callable[[], tuple[tuple[str, ...], list[Row]]]:
        """Queue a statement for the round trip of the next one. Call the result for its columns and rows."""
        found = self.rows(sql, parameters)
        return lambda: found

    def queue_rows(self, sql: str, parameters: Mapping[str, Any]) -> Callable[[], list[Row]]:
        """Queue a statement as `queue_query` does. Call the result for its rows."""
        answer = self.queue_query(sql, parameters)
        return lambda: answer()[1]

    @abstractmethod
    def count(self, sql: str, parameters: Mapping[str, Any]) -> int:
        """Run one statement without a result; return how many rows it wrote."""

    @abstractmethod
    def each(self, sql: str, parameters: Mapping[str, Any]) -> Iterator[Row]:
        """Run one statement and yield its rows one by one, without loading all of them."""

    @abstractmethod
    def many(self, sql: str, parameters: list[dict[str, Any]]) -> None:
        """Run one statement for each set of parameters."""

    @abstractmethod
    def insert(self, table: str, names: tuple[str, ...], rows: list[Row]) -> None:
        """Insert rows with values in the order of the names. They may be sent with the next statement."""

    def insert_of(self, table: str, names: tuple[str, ...]) -> str:
        """Build the statement that inserts one row, with a parameter for each column."""
        return f"insert into {table} ({', '.join(names)}) values ({', '.join(':' + name for name in names)})"

    @abstractmethod
    def lock_stream(self, stream: str) -> int | None:
        """Lock a stream until the transaction ends; return its number."""

    def start_stream(self, stream: str, at: str, reserved_place: int | None) -> int:  # noqa: ARG002 - where streams lie together
        """Add and lock a stream; return its number. Streams of no run have reserved places."""
        sql = "insert into streams (name, created_at, in_order) values (:stream, :at, 1) on conflict do nothing"
        self.count(sql, {"stream": stream, "at": at})
        number = self.lock_stream(stream)
        assert number is not None
        return number

    def lock_stream_next(self, stream: str) -> None:  # noqa: B027 - one writer has all streams where there is only one
        """Lock a stream before the next statement runs."""

    def lock_stream_of_next(self, table: str, record_id: str) -> None:  # noqa: B027 - the same
        """Lock the stream of the record with an id before the next statement runs."""

    def head_of(self, stream: str, number: int) -> Row | None:  # noqa: ARG002 - by its number
        """Return position, hash and time of the last entry of a locked stream; None if it has none."""
        return self.one(_HEAD, {"number": number})

    def store_head(self, stream: str, position: int, hash: str, at: str) -> None:  # noqa: B027 - a file looks it up
        """Store the last entry of a stream in its row, and notify its readers at the commit."""

    def wrong_heads(self) -> list[str]:
        """Return the streams whose stored head differs from their last entry. In a read."""
        return []

    def archived(self) -> dict[str, str]:
        """Return the archived streams, with the names of the archive files. In a read."""
        return {}

    def derive_heads(self) -> None:  # noqa: B027 - as for `store_head`
        """Rebuild the heads of all streams from their entries. In a transaction."""

    def on_lost_writes(self, record: Callable[[LostWrites], None]) -> None:  # noqa: B027 - a file can't fail over
        """Call `record` before LostWrites is raised, so that the loss is recorded."""

    @abstractmethod
    def wait_for_change(self, seconds: float, stream: str | None = None) -> None:
        """Sleep until something may have been committed to a stream, or to any, or until a timeout.

        The first call returns at once, so that the caller checks for earlier commits.
        """

    @abstractmethod
    def watch(self, stream: str | None, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` in a background thread whenever something may have been committed to a stream, or to any.

        Call the result to stop. All watchers share one thread.
        """

    def task_context(self) -> TaskContext:
        """Return a context that represents the calling task in other threads."""
        return TaskContext()

    def on_behalf_of(self, task_context: TaskContext) -> AbstractContextManager[None]:
        """Run the block for a task of another thread, inside its transaction if it has one."""
        return callers.act_for(task_context)

    @abstractmethod
    def unindexed(self, stream_no: int | None, *, going_on: bool = False, first: int = 0) -> list[Span]:
        """List the entries missing from the text index: of one stream, or of the streams from number `first` on."""

    @abstractmethod
    def index_entries(self, mark: int, end: int) -> None:
        """Add the words of the entries after a mark up to a position to the text index. In a transaction."""

    @abstractmethod
    def search(self, select: str, spec: Search) -> Found:
        """Find entries by the text index; `select` names their columns."""

    @abstractmethod
    def migrate(self) -> list[str]:
        """Bring the schema up to date; return the names of the steps that were applied."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Describe the engine, its version and its settings."""

    def schema_versions(self) -> tuple[int, int, int]:
        """Return three schema steps: the log's newest, the newest required one, and the newest that this program knows."""
        applied = self.rows(APPLIED, {})[1]
        newest = max((version for version, *_ in applied), default=0)
        return newest, required(applied), latest(self.engine)

    def server_gauges(self) -> dict[str, float]:
        """Measure the connections and the replication of a server; a file has none. In a transaction."""
        return {}

    @abstractmethod
    def close(self) -> None: ...

    def put(self, table: str, names: tuple[str, ...], identity: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
        """Insert rows with different keys; replace existing rows with the same key."""
        self.many(build_upsert(table, names, identity, f"values ({', '.join(':' + name for name in names)})"), rows)

    def back_up(self, path: str, progress: Callable[[int, int], None]) -> None:  # noqa: B027 - a server has no file to copy
        """Copy the file of this log, as of now. Does nothing for a server."""

    def check_indexes(self, most: int) -> list[dict[str, Any]]:  # noqa: ARG002 - a server's indexes are the server's
        """Find rows that are missing in an index, or indexed under another key; return at most `most` problems."""
        return []

    def each_as_is(self, sql: str, parameters: Mapping[str, Any]) -> Iterator[Row]:
        """Run `each`, but yield a text that is not UTF-8 as bytes."""
        return self.each(sql, parameters)

    @abstractmethod
    def check_text(self, pieces: list[Span] | None) -> Iterator[dict[str, Any]]:
        """Yield a problem for each entry with wrong or missing words in the text index.

        Check the given pieces, or all entries.
        """

    @abstractmethod
    def forget_all_text(self) -> None:
        """Clear the text index; entries are indexed again in steps."""

    @abstractmethod
    def check_schema(self) -> Iterator[dict[str, Any]]:
        """Yield a problem for each table, index, trigger and view that differs from the migrations."""

    def end_with_client(self) -> None:  # noqa: B027 - a file has no server
        """Make the server cancel this transaction soon after this process ends."""

    def check_pages(
        self,
        most: int,  # noqa: ARG002 - a server checks its own pages
        seconds: float | None,  # noqa: ARG002
        progress: Callable[[str, int, int], None],  # noqa: ARG002
    ) -> tuple[list[str], list[str]]:
        """Find pages that can't be read; return at most `most` of them, and the tables that were not checked in time."""
        return [], []

    def check_wal(self) -> tuple[list[str], list[str]]:
        """Return damaged parts of a write-ahead log, and unused parts that a crash may have left."""
        return [], []

    def hold(self, table: str) -> None:  # noqa: B027 - one writer has all tables where there is only one
        """Lock a table against other writers until this transaction ends."""

    def compact(self) -> None:  # noqa: B027 - a server does this without us
        """Return the space of deleted data to the system, and erase it from the file."""

    def free_pages(self) -> int:
        """Return the number of free pages of a file."""
        return 0

    def give_back(self, pages: int) -> None:  # noqa: B027 - a server keeps its own files
        """Return free pages to the system. In a transaction."""

    def checkpoint(self) -> None:  # noqa: B027 - a server does this without us
        """Copy the write-ahead log into the file, as far as possible without blocking anybody."""

    def file_bytes(self) -> int:
        """Return the size of the file; 0 for a server."""
        return 0

    def size_of(self, column: str) -> str:
        """Return an expression for the number of bytes of a text."""
        return f"octet_length({column})"

    def drop_texts(self, entries: list[dict[str, Any]]) -> None:
        """Replace the texts of entries by their digests; each is given as `pos`, `body` and `payload`."""
        sql = "update entries set body = null, payload = null, body_digest = :body, payload_digest = :payload where pos = :pos"
        self.many(sql, entries)

    def forget_text(self, positions: list[int]) -> None:  # noqa: B027 - an engine may keep no words
        """Remove entries from the text index, after their texts were dropped."""

    def made_at(self) -> str:
        """Return when the log was created, to the microsecond. It identifies the log at its location."""
        found = self.read(lambda: self.one("select applied_at from schema_steps where version = 1", {}))
        return str(found[0]) if found else ""

    def one(self, sql: str, parameters: Mapping[str, Any]) -> Row | None:
        """Run one statement; return its first row."""
        _, rows = self.rows(sql, parameters)
        return rows[0] if rows else None


def build_upsert(table: str, names: tuple[str, ...], identity: tuple[str, ...], values: str) -> str:
    """Build the statement that inserts rows, or replaces rows with the same key."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in identity)
    action = f"do update set {changes}" if changes else "do nothing"
    return f"insert into {table} ({', '.join(names)}) {values} on conflict ({', '.join(identity)}) {action}"
