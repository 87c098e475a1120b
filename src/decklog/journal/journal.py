"""The journal: an append-only, hash-chained list of entries per stream. Everything else in a log is made from it."""

from collections.abc import Callable, Generator, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from decklog.core.errors import Invalid, LostWrites, NotFound
from decklog.db.base import Database, Row
from decklog.db.search.entries import search as search_entries
from decklog.db.search.marks import entries_in, index_everything, index_some, not_indexed
from decklog.db.text_search import Found, Query, Search
from decklog.db.where import Where, enum_of, moment_of, page_size
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
    cursor_at,
    heads,
    load,
    load_all,
    newest_position,
    number_of,
    position_of,
)
from decklog.journal.tail import Tail, cursor_at_heads, moved
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
_INDEXED = {"subtype", "group_id", "task_id"}
_LOOK_BACK = 2000
# The subtype of the events in @desk about acknowledged entries that a failover lost.
LOST_WRITES = "writes.lost"
_IN_STREAM = "pos >= :start and pos < :end"
# The most streams that are looked at for one page of entries of a span of time.
_MOST_STREAMS = 50


class Journal:
    """Appends entries and finds them again."""

    # Entries are what records are made from; the journal keeps no record besides them.
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
        """Write down that acknowledged entries were lost; `decklog doctor` shows it."""
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

        With a key, the first entry with the same stream, subtype, group and key comes back, marked `already`.
        """
        given = {
            "stream": stream, "at": at, "kind": kind, "subtype": subtype, "agent": agent, "agent_id": agent_id,
            "group_id": group_id, "task_id": task_id, "iteration": iteration, "phase": phase, "confidence": confidence,
            "key": key, "refs": refs, "body": body, "payload": payload,
        }  # fmt: skip
        row = self._writer.prepare(given)
        entry: Entry = within_lease(self._db, lambda: self._writer.write([row])[0])
        return entry

    @prepares_to_write
    def append_many(self, entries: NewEntries) -> WrittenEntries:
        """Append several entries in one transaction, each given as the arguments of `append`.

        For a key that is known, in the journal or earlier in the list, the first entry with it comes back, marked `already`.
        """
        known = {*Journal.append.__wrapped__.__kwdefaults__, "stream", "body"}  # type: ignore[attr-defined]
        for given in entries:
            if not known.issuperset(given) or "stream" not in given:
                raise Invalid(f"an entry needs a stream and takes {', '.join(sorted(known))}; got {', '.join(given)}")
        return within_lease(self._db, partial(self._writer.write, self._writer.prepare_many([dict(given) for given in entries])))

    @reads
    def get(self, stream: str, seq: int | None = None) -> Entry:
        """Get one entry by its stream and its number, or by its id, STREAM:NUMBER."""
        if seq is None:
            stream, seq = _parts_of(stream)
        if not 0 < seq < STREAM_SIZE:
            # Such a number would be a position in another stream.
            raise NotFound(f"there is no entry {stream}:{seq}")
        number = number_of(self._db, stream)
        _, rows = self._db.rows(f"{SELECT} where pos = :pos", {"pos": (number or 0) * STREAM_SIZE + seq})
        if number is None or not rows:
            raise NotFound(f"there is no entry {stream}:{seq}", hint=f"See what is there: decklog journal find {stream}")
        return load(self._db, rows[0])

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
        """List entries, newest first; `after` is the cursor that the page before gave.

        Without a stream they come stream by stream, the newest stream first. By time, at most 50 streams are looked at for
        one page; if there are more, `is_cut` is true and `next` goes on.
        """
        where = Where(Entry)
        where.equal(
            kind=kind and enum_of(EntryKind, kind, "kind").value,
            subtype=subtype,
            agent=agent,
            agent_id=agent_id,
            group_id=group_id,
            task_id=task_id,
            phase=phase and enum_of(ReasoningPhase, phase, "phase").value,
        )
        if (agent or subtype) and kind != EntryKind.CHANGE:
            where.add("kind <> 'change'")  # lets the planner use the partial indexes on agent and subtype
        if text is not None and not text.strip():
            raise Invalid("search needs at least one word", field="text")
        query = None if text is None else Query(text)
        search = _Search(query, oldest_first, page_size(limit), position_of(self._db, after))
        if search.query is not None and not search.query.terms:
            return Page()
        number = None
        if stream is not None and (number := self._db.read(lambda: number_of(self._db, stream))) is None:
            return Page()
        return self._db.read(lambda: self._find(where, number, (since, until), search))

    def _find(self, where: Where, number: int | None, span: _Span, search: "_Search") -> Page[Entry]:
        if number is None and span != (None, None) and search.query is None and not _INDEXED & where.bound.keys():
            found = self._found_by_time(where, span, search)
        else:
            found = self._found_in(where, number, span, search)
        rows = found.rows
        more = rows[search.limit - 1][0] if len(rows) > search.limit else found.stopped_at
        return Page(
            load_all(self._db, rows[: search.limit]),
            next=None if more is None else cursor_at(self._db, more),
            not_indexed=found.not_indexed,
            is_cut=found.stopped_at is not None,
        )

    def _found_by_time(self, where: Where, span: _Span, search: "_Search") -> Found:
        """Find entries of a span of time in one stream after the other, of those that were written to at that time."""
        since, until = span
        streams = Times(self._db).streams(
            since, until, after=search.after, oldest_first=search.oldest_first, most=_MOST_STREAMS + 1
        )
        rows: list[Row] = []
        for number, is_inside in streams[:_MOST_STREAMS]:
            rest = _Search(None, search.oldest_first, search.limit - len(rows), search.after)
            rows += self._found_in(where.copy(), number, (None, None) if is_inside else span, rest).rows
            if len(rows) > search.limit:
                return Found(rows)
        if len(streams) <= _MOST_STREAMS:
            return Found(rows)
        last = streams[_MOST_STREAMS - 1][0]
        return Found(rows, stopped_at=newest_position(self._db, last) if search.oldest_first else last * STREAM_SIZE + 1)

    def _found_in(self, where: Where, number: int | None, span: _Span, search: "_Search") -> Found:
        """Find entries of one stream or of all."""
        if span != (None, None):
            Times(self._db).narrow(where, number, *span)
        if number is not None:
            where.add(_IN_STREAM, start=number * STREAM_SIZE, end=(number + 1) * STREAM_SIZE)
        return self._found(where, number, search)

    def _found(self, where: Where, number: int | None, search: "_Search") -> Found:
        tags = {name: where.bound[name] for name in _TAGS if name in where.bound}
        if search.query is not None:
            return self._by_search(where, tags, number, search)
        if not tags or not self._db.finds_tags_by_search or _INDEXED & where.bound.keys():
            return Found(self._in_order(where, search))
        recent = self._recent(where, number, search)
        if len(recent) > search.limit:
            return Found(recent)
        return self._by_search(where, tags, number, search)

    def _by_search(self, where: Where, tags: dict[str, str], number: int | None, search: "_Search") -> Found:
        asked = Search(
            query=search.query or Query(""),
            tags=tags if self._db.finds_tags_by_search else {},
            # The bounds of a stream are conditions of the search itself.
            condition=" and ".join(clause for clause in where.clauses if clause != _IN_STREAM),
            bound=where.bound,
            oldest_first=search.oldest_first,
            limit=search.limit + 1,
            after=search.after,
            stream_no=number,
        )
        return search_entries(self._db, SELECT, asked)

    def _recent(self, where: Where, number: int | None, search: "_Search") -> list[Row]:
        """Look through the latest entries of a stream: what many entries share is usually found there."""
        if number is None or search.oldest_first:
            return []
        top = search.after or newest_position(self._db, number) + 1
        near = where.copy()
        near.add("pos >= :near", near=top - _LOOK_BACK)
        return self._in_order(near, search)

    def _in_order(self, where: Where, search: "_Search") -> list[Row]:
        if search.after is not None:
            where.add("pos > :after" if search.oldest_first else "pos < :after", after=search.after)
        order = f"order by pos {'asc' if search.oldest_first else 'desc'} limit {search.limit + 1}"
        if "task_id" not in where.bound:
            return self._db.rows(f"{SELECT} {where.sql} {order}", where.bound)[1]
        # What the task itself became is found by its record, and all else by its task: no index holds both.
        own = f"{SELECT} {where.sql} and record_table = 'tasks' and record_id = :task_id {order}"
        others = f"{SELECT} {where.sql} and record_table is distinct from 'tasks' {order}"
        return self._db.rows(f"select * from ({own}) own union all select * from ({others}) others {order}", where.bound)[1]

    @reads_in_steps
    def search(self, words: str, *, stream: str | None = None, limit: int = 20, after: str | None = None) -> Page[Entry]:
        """Find entries whose text has all the words, newest first; `word*` matches a beginning.

        A beginning that very many entries have is looked for in 2,000 of them: then `is_cut` is true, and `next` goes on.
        """
        return self.find(stream, text=words, limit=limit, after=after)

    @writes_in_steps
    def index(self) -> dict[str, int]:
        """Index all entries for search, in small steps that writers hardly notice.

        It is needed only after a great many entries were written at once and no `serve` is running.
        """
        return {"indexed": sum(index_everything(self._db))}

    def index_some(self, *, going_on: bool = False) -> int:
        """Index a few entries of all streams, or of unfinished runs; return how many are left."""
        return index_some(self._db, going_on=going_on)

    def not_indexed(self) -> int:
        """Count the entries that are not in the text index, in streams that go on and in new ones. Call it in a read."""
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
        return heads(self._db)

    @reads
    def now(self, *, going_on: bool = False) -> str:
        """Return a cursor at the last entry of every stream, for `since`.

        `going_on` leaves out the runs that are over: such a cursor is short however many they are, and is for `since` with
        `going_on`. Of a run that goes on again later, all that it has counts as new.
        """
        check_committed(self._db, "journal.now")
        return cursor_at_heads(self._db, going_on=going_on)

    @reads
    def since(self, cursor: str, *, going_on: bool = False) -> StreamChanges:
        """Return the streams with entries after a cursor, the range of their numbers, and the next cursor.

        `going_on` looks only at the runs that go on, at new streams and at those of no run: that costs the same however many
        runs are over, and finds what is written to one of these the next time that all are looked at.
        """
        check_committed(self._db, "journal.since")
        return moved(self._db, cursor, going_on=going_on)

    @reads
    def history(self, table: str, record_id: str, *, limit: int = 20, after: str | None = None) -> Page[Entry]:
        """List what a record became, change by change, oldest first."""
        self._class_of(table)
        where = Where(Entry)
        where.equal(record_table=table, record_id=record_id)
        if after is not None:
            where.add("seq > :after", after=(position_of(self._db, after) or 0) % STREAM_SIZE)
        size = page_size(limit)
        _, rows = self._db.rows(f"{SELECT} {where.sql} order by seq limit {size + 1}", where.bound)
        entries = load_all(self._db, rows)
        if not entries and after is None:
            raise NotFound(f"no entry records {table} {record_id!r}")
        return Page(entries[:size], next=cursor_at(self._db, rows[size - 1][0]) if len(entries) > size else None)

    if TYPE_CHECKING:

        @overload
        def at(self, table: str, record_id: str, when: str) -> Record: ...
        @overload
        def at(self, table: type[R], record_id: str, when: str) -> R: ...

    @reads  # type: ignore[misc]
    def at(self, table: str, record_id: str, when: str) -> Record:
        """Return a record as it was at an entry (a number, or STREAM:NUMBER) or at a time.

        In Python, a record's class may stand for the name of its table: what comes back is then of that class.
        """
        record_class = self._class_of(table if isinstance(table, str) else table.table)
        table = record_class.table
        where = Where(Entry)
        where.equal(record_table=table, record_id=record_id)
        stream = self._stream_of(table, record_id)
        number = number_of(self._db, stream) or 0
        where.add(_IN_STREAM, start=number * STREAM_SIZE, end=(number + 1) * STREAM_SIZE)  # only its partition is read
        moment = moment_of(when, stream)
        if isinstance(moment, datetime):
            where.between("at", None, moment)
        else:
            newest = newest_position(self._db, number) % STREAM_SIZE
            if moment > newest:
                # The present state would be taken for it.
                raise NotFound(f"{stream} has entries 1 to {newest}; there is no {moment} yet", stream=stream, seq=newest)
            where.add("seq <= :seq", seq=moment)
        _, found = self._db.rows(f"{SELECT} {where.sql} order by seq desc limit 1", where.bound)
        image = load(self._db, found[0]).payload if found else None
        if not isinstance(image, dict) or image.get("removed"):
            raise NotFound(f"there was no {table} {record_id!r} at {when}")
        return record_class.from_image(image)

    @writes
    def undo(self, table: str, record_id: str, *, reason: str, entry: int | None = None) -> Record:
        """Undo the last change of a record with a new entry; a second undo restores the change.

        Runs, groups, plans, tasks and schedules allow it for what was edited; tasks and schedules also for being paused or
        resumed, tasks for being abandoned. Leases, money, approvals, trust and what is evidence stay as they are. With
        `entry`, the number of the change that is meant, it is refused when another came after it.
        """
        record_class = self._class_of(table)
        if not reason.strip():
            raise Invalid("to take a change back, give a reason", field="reason")
        undo = Undo(self._db, self._writer, record_class)
        return undo.run(self._stream_of(table, record_id), record_id, reason, entry)

    def _stream_of(self, table: str, record_id: str) -> str:
        """Return the stream of a record; refuse one without entries."""
        row = self._db.one(
            "select stream from entries where record_table = :table and record_id = :id limit 1",
            {"table": table, "id": record_id},
        )
        if row is None:
            raise NotFound(f"no entry records {table} {record_id!r}", table=table, id=record_id)
        return str(row[0])

    def _class_of(self, table: str) -> type[Record]:
        classes = self.record_classes()
        if table not in classes:
            raise Invalid(f"there is no kind of record {table!r}; there are {', '.join(sorted(classes))}")
        return classes[table]

    @reads_in_steps
    def verify(
        self, stream: str | None = None, *, anchor: str | None = None, since_anchor: bool = False, full: bool = False
    ) -> "Verification":
        """Walk the hash chains and rebuild every record from the journal; name the first thing that is wrong.

        Without a stream, what is derived is checked too: indexes, sums, words, the schema and the owner's signatures.
        `anchor` is a file outside the log that keeps the streams' heads, so that a cut-off tail shows too. With
        `since_anchor`, only what was written after these heads is read, and the records that it describes. In a large log the
        words of some entries are compared with the text index; with `full`, those of all.
        """
        if not since_anchor:
            return self.verifier(full=full).run(stream, anchor)
        if anchor is None or stream is not None:
            raise Invalid("since_anchor needs an anchor file, and is for all streams", field="since_anchor")
        return self.verifier().run_since(anchor)

    def verifier(self, *, full: bool = False) -> "Verifier":
        """Return what verifies this log, with all its checks."""
        # Here, and not at the top: every command imports the journal, and few verify it.
        from decklog.journal.verify import Verifier

        return Verifier(self._db, self.record_classes(), self._audits(), full=full)


def _parts_of(entry_id: str) -> tuple[str, int]:
    """Read the id of an entry."""
    stream, _, number = entry_id.rpartition(":")
    if not stream or not (number.isascii() and number.isdigit()):
        raise Invalid(f"{entry_id!r} is not the id of an entry; write STREAM:NUMBER, or the stream and then the number")
    return stream, int(number)


class _Search(NamedTuple):
    """How a list was asked for."""

    query: Query | None
    oldest_first: bool
    limit: int
    after: int | None
