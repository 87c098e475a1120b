"""The journal: an append-only, hash-chained list of entries per stream. All records are derived from it."""

from collections.abc import Callable, Generator, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from decklog.core.errors import Invalid, LostWrites, NotFound
from decklog.db.base import Database, Row
from decklog.db.search.entries import search as search_entries
from decklog.db.search.marks import entries_in, index_everything, index_some, not_indexed
from decklog.db.text_search import Found, Query, Search
from decklog.db.where import Where, page_size, parse_enum, parse_moment
from decklog.journal.entry import (
    ConfidenceLike,
    Entry,
    EntryKind,
    EntryKindLike,
    NewEntries,
    ReasoningPhase,
    ReasoningPhaseLike,
)
from decklog.journal.rows import (
    SELECT,
    STREAM_SIZE,
    StreamChanges,
    StreamHead,
    find_stream_number,
    format_cursor,
    list_heads,
    load_entries,
    load_entry,
    newest_position,
    parse_cursor,
)
from decklog.journal.tail import Tail, cursor_at_heads, find_stream_changes
from decklog.journal.time_index import Times
from decklog.journal.undo import Undo
from decklog.journal.writer import Writer, WrittenEntries
from decklog.records.operations import (
    WaitStep,
    check_committed,
    follows,
    prepares_to_write,
    reads,
    reads_in_steps,
    within_lease,
    writes,
    writes_in_steps,
)
from decklog.records.record import Page, Record

if TYPE_CHECKING:
    from decklog.journal.verify import Audit, Verification, Verifier

R = TypeVar("R", bound=Record)
_Span = tuple[datetime | None, datetime | None]

_TAGS = ("kind", "agent", "agent_id", "phase")
_INDEXED_FIELDS = {"subtype", "group_id", "task_id"}
_RECENT_ENTRIES = 2000
# Subtype of the events in @desk about acknowledged entries that a failover lost.
LOST_WRITES = "writes.lost"
_IN_STREAM = "pos >= :start and pos < :end"
# A search by time reads at most this many streams for one page.
_MAX_STREAMS = 50


class Journal:
    """Appends entries and finds them again."""

    # Records are derived from entries, so the journal itself has none.
    records = ()  # type: tuple[type[Record], ...]

    def __init__(
        self,
        db: Database,
        writer: Writer,
        record_classes: Callable[[], Mapping[str, type[Record]]],
        audits: "Callable[[], dict[str, Audit]]",
    ) -> None:
        self._db = db
        self._writer = writer
        self.record_classes = record_classes
        self._audits = audits

    def record_lost_writes(self, problem: LostWrites) -> None:
        """Append an event about lost acknowledged entries; `decklog doctor` shows it."""
        self.append(
            "@desk", problem.message, kind=EntryKind.EVENT, subtype=LOST_WRITES, payload={"lost": problem.details["lost"]}
        )

    @prepares_to_write
    def append(
        self,
        stream: str,
        body: str | None = None,
        *,
        kind: EntryKindLike = EntryKind.INTERACTION,
        subtype: str | None = None,
        agent: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        task_id: str | None = None,
        iteration: int | None = None,
        payload: object = None,
        phase: ReasoningPhaseLike | None = None,
        confidence: ConfidenceLike | None = None,
        refs: list[str] | None = None,
        key: str | None = None,
        at: datetime | None = None,
    ) -> Entry:
        """Append one entry to a run's stream.

        If an entry with the same stream, subtype, group and key exists, return that entry, marked `already`.
        """
        fields = {
            "stream": stream, "at": at, "kind": kind, "subtype": subtype, "agent": agent, "agent_id": agent_id,
            "group_id": group_id, "task_id": task_id, "iteration": iteration, "phase": phase, "confidence": confidence,
            "key": key, "refs": refs, "body": body, "payload": payload,
        }  # fmt: skip
        row = self._writer.prepare(fields)
        entry: Entry = within_lease(self._db, lambda: self._writer.write([row])[0])
        return entry

    @prepares_to_write
    def append_many(self, entries: NewEntries) -> WrittenEntries:
        """Append several entries in one transaction, each given as the arguments of `append`.

        If the journal or the list already has an entry with a given key, the result is that entry, marked `already`.
        """
        known = {*Journal.append.__wrapped__.__kwdefaults__, "stream", "body"}  # type: ignore[attr-defined]
        for fields in entries:
            if not known.issuperset(fields) or "stream" not in fields:
                raise Invalid(f"an entry needs a stream and takes {', '.join(sorted(known))}; got {', '.join(fields)}")
        return within_lease(self._db, partial(self._writer.write, self._writer.prepare_many([*map(dict, entries)])))

    @reads
    def get(self, stream: str, seq: int | None = None) -> Entry:
        """Get one entry by its stream and its number, or by its id, STREAM:NUMBER."""
        if seq is None:
            stream, seq = _parse_entry_id(stream)
        if not 0 < seq < STREAM_SIZE:
            # This number would lead to a position in another stream.
            raise NotFound(f"there is no entry {stream}:{seq}")
        number = find_stream_number(self._db, stream)
        _, rows = self._db.rows(f"{SELECT} where pos = :pos", {"pos": (number or 0) * STREAM_SIZE + seq})
        if number is None or not rows:
            raise NotFound(f"there is no entry {stream}:{seq}", hint=f"See what is there: decklog journal find {stream}")
        return load_entry(self._db, rows[0])

    @reads_in_steps
    def find(
        self,
        stream: str | None = None,
        *,
        kind: EntryKindLike | None = None,
        subtype: str | None = None,
        agent: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        task_id: str | None = None,
        phase: ReasoningPhaseLike | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        text: str | None = None,
        oldest_first: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Entry]:
        """List entries, newest first; `after` is the cursor of the previous page.

        Without a stream, entries are ordered by stream, the newest stream first. A search by time reads at most 50 streams
        for one page; if there are more, `is_cut` is true, and `next` continues the search.
        """
        where = Where(Entry)
        where.equal(
            kind=kind and parse_enum(EntryKind, kind, "kind").value,
            subtype=subtype,
            agent=agent,
            agent_id=agent_id,
            group_id=group_id,
            task_id=task_id,
            phase=phase and parse_enum(ReasoningPhase, phase, "phase").value,
        )
        if (agent or subtype) and kind != EntryKind.CHANGE:
            where.add("kind <> 'change'")  # lets the planner use the partial indexes on agent and subtype
        if text is not None and not text.strip():
            raise Invalid("search needs at least one word", field="text")
        query = None if text is None else Query(text)
        search = _FindOptions(query, oldest_first, page_size(limit), parse_cursor(self._db, after))
        if search.query is not None and not search.query.terms:
            return Page()
        number = None
        if stream is not None and (number := self._db.read(lambda: find_stream_number(self._db, stream))) is None:
            return Page()
        return self._db.read(lambda: self._find(where, number, (since, until), search))

    def _find(self, where: Where, number: int | None, span: _Span, search: "_FindOptions") -> Page[Entry]:
        if number is None and span != (None, None) and search.query is None and not _INDEXED_FIELDS & where.bound.keys():
            found = self._find_by_time(where, span, search)
        else:
            found = self._find_in_stream(where, number, span, search)
        rows = found.rows
        more = rows[search.limit - 1][0] if len(rows) > search.limit else found.stopped_at
        return Page(
            load_entries(self._db, rows[: search.limit]),
            next=None if more is None else format_cursor(self._db, more),
            not_indexed=found.not_indexed,
            is_cut=found.stopped_at is not None,
        )

    def _find_by_time(self, where: Where, span: _Span, search: "_FindOptions") -> Found:
        """Find entries of a time span, stream by stream, in the streams that have entries of that time."""
        since, until = span
        streams = Times(self._db).streams(
            since, until, after=search.after, oldest_first=search.oldest_first, most=_MAX_STREAMS + 1
        )
        rows: list[Row] = []
        for number, is_inside in streams[:_MAX_STREAMS]:
            rest = _FindOptions(None, search.oldest_first, search.limit - len(rows), search.after)
            rows += self._find_in_stream(where.copy(), number, (None, None) if is_inside else span, rest).rows
            if len(rows) > search.limit:
                return Found(rows)
        if len(streams) <= _MAX_STREAMS:
            return Found(rows)
        last = streams[_MAX_STREAMS - 1][0]
        return Found(rows, stopped_at=newest_position(self._db, last) if search.oldest_first else last * STREAM_SIZE + 1)

    def _find_in_stream(self, where: Where, number: int | None, span: _Span, search: "_FindOptions") -> Found:
        """Find entries of one stream, or of all."""
        if span != (None, None):
            Times(self._db).narrow(where, number, *span)
        if number is not None:
            where.add(_IN_STREAM, start=number * STREAM_SIZE, end=(number + 1) * STREAM_SIZE)
        return self._find_matches(where, number, search)

    def _find_matches(self, where: Where, number: int | None, search: "_FindOptions") -> Found:
        tags = {name: where.bound[name] for name in _TAGS if name in where.bound}
        if search.query is not None:
            return self._find_by_index(where, tags, number, search)
        if not tags or not self._db.finds_tags_by_search or _INDEXED_FIELDS & where.bound.keys():
            return Found(self._find_in_order(where, search))
        recent = self._find_recent(where, number, search)
        if len(recent) > search.limit:
            return Found(recent)
        return self._find_by_index(where, tags, number, search)

    def _find_by_index(self, where: Where, tags: dict[str, str], number: int | None, search: "_FindOptions") -> Found:
        request = Search(
            query=search.query or Query(""),
            tags=tags if self._db.finds_tags_by_search else {},
            # The search itself limits the stream.
            condition=" and ".join(clause for clause in where.clauses if clause != _IN_STREAM),
            bound=where.bound,
            oldest_first=search.oldest_first,
            limit=search.limit + 1,
            after=search.after,
            stream_no=number,
        )
        return search_entries(self._db, SELECT, request)

    def _find_recent(self, where: Where, number: int | None, search: "_FindOptions") -> list[Row]:
        """Find matches among the latest entries of a stream. Frequent values usually fill a page from there."""
        if number is None or search.oldest_first:
            return []
        top = search.after or newest_position(self._db, number) + 1
        recent = where.copy()
        recent.add("pos >= :lowest", lowest=top - _RECENT_ENTRIES)
        return self._find_in_order(recent, search)

    def _find_in_order(self, where: Where, search: "_FindOptions") -> list[Row]:
        if search.after is not None:
            where.add("pos > :after" if search.oldest_first else "pos < :after", after=search.after)
        order = f"order by pos {'asc' if search.oldest_first else 'desc'} limit {search.limit + 1}"
        if "task_id" not in where.bound:
            return self._db.rows(f"{SELECT} {where.sql} {order}", where.bound)[1]
        # Changes of the task itself are found by record, other entries by task: no index covers both.
        changes = f"{SELECT} {where.sql} and record_table = 'tasks' and record_id = :task_id {order}"
        rest = f"{SELECT} {where.sql} and record_table is distinct from 'tasks' {order}"
        return self._db.rows(f"select * from ({changes}) changes union all select * from ({rest}) rest {order}", where.bound)[1]

    @reads_in_steps
    def search(self, words: str, *, stream: str | None = None, limit: int = 20, after: str | None = None) -> Page[Entry]:
        """Find entries whose text has all the words, newest first; `word*` matches a prefix.

        A prefix with very many matches is searched in 2,000 entries at a time: then `is_cut` is true, and `next` continues.
        """
        return self.find(stream, text=words, limit=limit, after=after)

    @writes_in_steps
    def index(self) -> dict[str, int]:
        """Index all entries for search, in small steps that barely delay writers.

        Needed only after very many entries were written at once while no `serve` was running.
        """
        return {"indexed": sum(index_everything(self._db))}

    def index_some(self, *, going_on: bool = False) -> int:
        """Index a few entries of all streams, or of unfinished runs; return how many are left."""
        return index_some(self._db, going_on=going_on)

    def not_indexed(self) -> int:
        """Count the entries missing from the text index, in unfinished and new streams. Call it in a read."""
        return entries_in(not_indexed(self._db, None, going_on=True))

    @follows
    def tail(
        self,
        stream: str | None = None,
        *,
        after: int | None = None,
        follow: bool = True,
        timeout_seconds: float | None = None,
    ) -> Generator[WaitStep | list[Entry], Any, None]:
        """Yield entries as they are committed, once and in order, starting after an entry number.

        Without a stream, every stream is followed from its beginning. It ends after `timeout_seconds` with nothing new.
        """
        return Tail(self._db).entries(stream, after=after, follow=follow, timeout_seconds=timeout_seconds)

    @reads
    def heads(self) -> list[StreamHead]:
        """List every stream with the number and hash of its last entry."""
        return list_heads(self._db)

    @reads
    def now(self, *, going_on: bool = False) -> str:
        """Return a cursor at the last entry of every stream, for `since`.

        `going_on` leaves out finished runs, which keeps the cursor short; use it with `since` and `going_on`. If such a run
        is resumed later, all its entries count as new.
        """
        check_committed(self._db, "journal.now")
        return cursor_at_heads(self._db, going_on=going_on)

    @reads
    def since(self, cursor: str, *, going_on: bool = False) -> StreamChanges:
        """Return the streams with entries after a cursor, the range of their numbers, and the next cursor.

        `going_on` checks only unfinished runs, new streams and streams of no run, so finished runs cost nothing. A call
        without it finds what was written to finished runs meanwhile.
        """
        check_committed(self._db, "journal.since")
        return find_stream_changes(self._db, cursor, going_on=going_on)

    @reads
    def history(self, table: str, record_id: str, *, limit: int = 20, after: str | None = None) -> Page[Entry]:
        """List the changes of a record, oldest first."""
        self._record_class(table)
        where = Where(Entry)
        where.equal(record_table=table, record_id=record_id)
        if after is not None:
            where.add("seq > :after", after=(parse_cursor(self._db, after) or 0) % STREAM_SIZE)
        size = page_size(limit)
        _, rows = self._db.rows(f"{SELECT} {where.sql} order by seq limit {size + 1}", where.bound)
        entries = load_entries(self._db, rows)
        if not entries and after is None:
            raise NotFound(f"no entry records {table} {record_id!r}")
        return Page(entries[:size], next=format_cursor(self._db, rows[size - 1][0]) if len(entries) > size else None)

    if TYPE_CHECKING:

        @overload
        def at(self, table: str, record_id: str, when: str) -> Record: ...
        @overload
        def at(self, table: type[R], record_id: str, when: str) -> R: ...

    @reads  # type: ignore[misc]
    def at(self, table: str, record_id: str, when: str) -> Record:
        """Return a record as it was at an entry (a number, or STREAM:NUMBER) or at a time.

        In Python, pass a record class instead of the table name to get a result of that class.
        """
        record_class = self._record_class(table if isinstance(table, str) else table.table)
        table = record_class.table
        where = Where(Entry)
        where.equal(record_table=table, record_id=record_id)
        stream = self._find_stream(table, record_id)
        number = find_stream_number(self._db, stream) or 0
        where.add(_IN_STREAM, start=number * STREAM_SIZE, end=(number + 1) * STREAM_SIZE)  # only its partition is read
        moment = parse_moment(when, stream)
        if isinstance(moment, datetime):
            where.between("at", None, moment)
        else:
            newest = newest_position(self._db, number) % STREAM_SIZE
            if moment > newest:
                # The query below would return the current state.
                raise NotFound(f"{stream} has entries 1 to {newest}; there is no {moment} yet", stream=stream, seq=newest)
            where.add("seq <= :seq", seq=moment)
        _, found = self._db.rows(f"{SELECT} {where.sql} order by seq desc limit 1", where.bound)
        image = load_entry(self._db, found[0]).payload if found else None
        if not isinstance(image, dict) or image.get("removed"):
            raise NotFound(f"there was no {table} {record_id!r} at {when}")
        return record_class.from_image(image)

    @writes
    def undo(self, table: str, record_id: str, *, reason: str, entry: int | None = None) -> Record:
        """Undo the last change of a record with a new entry; a second undo restores the change.

        Edits of runs, groups, plans, tasks and schedules can be undone; for tasks and schedules also a pause or resume, and
        for tasks an abandonment. Leases, money, approvals, trust and evidence can't be undone. With `entry`, the number of
        the change to undo, the call fails if a later change exists.
        """
        record_class = self._record_class(table)
        if not reason.strip():
            raise Invalid("undo needs a reason", field="reason")
        undo = Undo(self._db, self._writer, record_class)
        return undo.run(self._find_stream(table, record_id), record_id, reason, entry)

    def _find_stream(self, table: str, record_id: str) -> str:
        """Return the stream of a record; raise NotFound if no entry records it."""
        row = self._db.one(
            "select stream from entries where record_table = :table and record_id = :id limit 1",
            {"table": table, "id": record_id},
        )
        if row is None:
            raise NotFound(f"no entry records {table} {record_id!r}", table=table, id=record_id)
        return str(row[0])

    def _record_class(self, table: str) -> type[Record]:
        classes = self.record_classes()
        if table not in classes:
            raise Invalid(f"there is no kind of record {table!r}; there are {', '.join(sorted(classes))}")
        return classes[table]

    @reads_in_steps
    def verify(
        self, stream: str | None = None, *, anchor: str | None = None, since_anchor: bool = False, full: bool = False
    ) -> "Verification":
        """Check the hash chains, and compare every record with the journal; the result names the first problem.

        Without a stream, derived data is checked too: indexes, sums, words, the schema and the owner's signatures.
        `anchor` is a file outside the log with the heads of the streams; it reveals a truncated stream. With `since_anchor`,
        only entries after these heads and their records are checked. In a large log, the text index is compared with a
        sample of the entries; with `full`, with all of them.
        """
        if not since_anchor:
            return self.verifier(full=full).run(stream, anchor)
        if anchor is None or stream is not None:
            raise Invalid("since_anchor needs an anchor file, and can't be combined with a stream", field="since_anchor")
        return self.verifier().run_since(anchor)

    def verifier(self, *, full: bool = False) -> "Verifier":
        """Return a verifier for this log, with all its checks."""
        # Imported here because every command imports the journal, and few verify it.
        from decklog.journal.verify import Verifier

        return Verifier(self._db, self.record_classes(), self._audits(), full=full)


def _parse_entry_id(entry_id: str) -> tuple[str, int]:
    """Split the id of an entry into its stream and number."""
    stream, _, number = entry_id.rpartition(":")
    if not stream or not (number.isascii() and number.isdigit()):
        raise Invalid(f"{entry_id!r} is not the id of an entry; write STREAM:NUMBER, or the stream and then the number")
    return stream, int(number)


class _FindOptions(NamedTuple):
    """The query and paging options of one search."""

    query: Query | None
    oldest_first: bool
    limit: int
    after: int | None
