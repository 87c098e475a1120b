"""Writing the journal: every entry of every stream passes through here."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from decklog.core.errors import Conflict, NotFound
from decklog.core.fork_safety import once
from decklog.db.search.marks import ENTRIES_BETWEEN_STEPS, STREAMS_BETWEEN_STEPS
from decklog.journal import attribution, chain
from decklog.journal.blobs import INLINE_CHARACTERS, keep
from decklog.journal.entry import Entry
from decklog.journal.preparing import change_columns, checked, columns_of, row_of
from decklog.journal.rows import COLUMNS, HEAD, RESERVED, SELECT, STREAM_SIZE, entry_at, load, rows_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from decklog.core.clock import Clock
    from decklog.db.base import Database
    from decklog.records.record import Record

    # Entries whose keys came before: in the batch, by its place; in the journal, by its position.
    Known = tuple[dict[int, int], dict[int, int]]


# A batch of this size or more comes from an import, which would only be slowed down by indexing.
_BULK = 64


class Writer:
    """Appends entries, each chained to the one before it in its stream."""

    def __init__(self, db: "Database", clock: "Clock") -> None:
        self._db = db
        self._clock = clock

    @once
    def _plain_insert(self) -> str:
        return self._db.insert_of("entries", COLUMNS)

    @once
    def _insert_once(self) -> str:
        return f"{self._plain_insert} on conflict do nothing"

    def append(self, prepared: "dict[str, Any]") -> Entry:
        """Append one entry as it was prepared, or give the first one with its key."""
        # A copy: what is prepared must serve again when the transaction is tried again.
        columns = [*prepared.values()]
        if columns[chain.AT] is None:
            columns[chain.AT] = self._clock.told()
        if _is_long(columns[chain.BODY], columns[chain.PAYLOAD]):
            if columns[chain.KEY] is not None:
                # The key is looked up before a text is kept: that of an entry which lost its own must not come back.
                written: Entry = self._write([columns], "")[0]
                return written
            if self._db.locks_rows:
                # A long text becomes a blob, and whoever writes the same one waits for this.
                self._db.lock_stream(columns[chain.STREAM])
            self._move_all_long(columns)
        return load(self._db, tuple(columns)) if self.change(columns) else self._first(dict(zip(COLUMNS, columns, strict=True)))

    def append_many(self, prepared: "Sequence[Collection[Any]]") -> "WrittenEntries":
        """Append several prepared entries; for a key that came before, the first entry with it stands in the place."""
        return self._write(prepared, self.now())

    def prepared(self, given: "dict[str, Any]") -> "dict[str, Any]":
        """Check an entry and give its columns, in their order, but for its place, its hash and a time that is not given.

        It needs no transaction: those who wait for one need not wait for this.
        """
        given = checked(given)
        if (who := attribution.acting.get()) is not None:
            given = _attributed(given, who)
        return columns_of(self._db.values, given)

    def prepared_many(self, entries: "list[dict[str, Any]]") -> "Sequence[Collection[Any]]":
        """Do so for several entries, and give their columns as rows."""
        if (who := attribution.acting.get()) is not None:
            entries = [_attributed(given, who) for given in entries]
        values = self._db.values
        try:
            values.look_through(entries)
            return [row_of(values, given) for given in entries]
        finally:
            values.let_go()

    def bound(self, given: "dict[str, Any]") -> "dict[str, Any]":
        """Check an entry and make it fit for its columns, to be written among others."""
        values = self.prepared(given)
        if values["at"] is None:
            values["at"] = self.now()
        return values

    def write(self, batch: "list[list[Any]]") -> "WrittenEntries":
        """Append what records became, in their order."""
        return self._write(batch, "")

    def _write(self, given: "Iterable[Collection[Any]]", now: str) -> "WrittenEntries":
        """Append rows that lack their place and their hash, in their order. Those without a time have this one.

        The given rows stay unchanged: they must serve again when the transaction is tried again.
        """
        batch = [*map(list, given)]
        # In one order by all who write to several.
        times = {row[chain.STREAM]: row[chain.AT] or now for row in reversed(batch)}
        # Before the keys are looked up: from here on nobody else adds one.
        heads = {stream: self.head(stream, at=times[stream]) for stream in sorted(times)}
        starts = {stream: head[0] for stream, head in heads.items()}
        repeated, found = self._known(batch)
        rows: list[list[Any] | None] = [*batch]
        fresh = batch
        if found or repeated:
            for place in (*found, *repeated):
                rows[place] = None
            fresh = [row for row in rows if row is not None]
        self._link_all(fresh, heads, now)
        self._db.memo.update((("head", stream), head) for stream, head in heads.items())
        self._db.insert("entries", COLUMNS, fresh)  # type: ignore[arg-type]
        if len(fresh) < _BULK:
            self._index_some(starts, heads)
        for stream in dict.fromkeys([row[chain.STREAM] for row in fresh]):
            self._db.announce(stream)
        first = {place: rows[earlier][0] for place, earlier in repeated.items() if place not in found}  # type: ignore[index]
        return WrittenEntries(rows, {**found, **first}, self._db)

    def _index_some(self, starts: "dict[str, int]", heads: "dict[str, tuple[Any, ...]]") -> None:
        """Have entries indexed in the background, of each stream that grew past a multiple of so many."""
        for stream, start in starts.items():
            end = heads[stream][0]
            if start // ENTRIES_BETWEEN_STEPS != end // ENTRIES_BETWEEN_STEPS:
                self._db.index_soon(end // STREAM_SIZE)

    def _link_all(self, rows: "list[list[Any]]", heads: "dict[str, tuple[Any, ...]]", now: str) -> None:
        """Give rows their numbers and hashes, each as the head of its stream."""
        for row in rows:
            if row[chain.RECORD_TABLE] is None and _is_long(row[chain.BODY], row[chain.PAYLOAD]):
                self._move_all_long(row)
        for stream, own in groupby(rows, key=itemgetter(chain.STREAM)):
            heads[stream], goes_back = chain.extend(heads[stream], own, now)
            if goes_back:
                self._order(stream)

    def _known(self, batch: "list[list[Any]]") -> "Known":
        """Find which of a batch have a key that came before: in the batch, with its place; in the journal, with its position."""
        if not any(row[chain.KEY] is not None for row in batch):
            return {}, {}
        from decklog.journal import known_keys

        return known_keys.find(self._db, batch)

    def now(self) -> str:
        """Return the time as columns hold it."""
        return self._clock.told()

    def changed(
        self,
        record_class: "type[Record]",
        names: "tuple[str, ...]",
        row: "tuple[Any, ...]",
        did: str,
        note: str | None,
        redacted: bool,
    ) -> "list[Any]":
        """Build the journal entry for a record change, as columns. The stores call it in the transaction that changes the row."""
        body = None
        if note is not None:
            body, cleaned = self._db.values.text("note", note)
            redacted = redacted or cleaned
        named, image = record_class.named(names, row), record_class.image_of(names, row)
        columns = change_columns(record_class.table, named, image, did, body, redacted)
        columns[chain.AT] = self._clock.told()
        act = attribution.proving.get()
        if act is not None:
            act.add(record_class.table, columns[chain.RECORD_ID], columns[chain.PAYLOAD])
            columns[chain.REFS] = act.refs
        who = attribution.acting.get()
        if who is not None:
            for name, value in self._db.values.bind(who)[0].items():
                place = COLUMNS.index(name)
                columns[place] = value if columns[place] is None else columns[place]
        return columns

    def change(self, columns: "list[Any]", new_stream: bool = False) -> bool:
        """Chain and insert one entry, of which nothing is long; say whether it is new, rather than known by its key."""
        db = self._db
        stream, at = columns[chain.STREAM], columns[chain.AT]
        if db.append_entry is not None and (columns[chain.KEY] is not None or not self._is_at_hand(stream)):
            return self._insert_there(columns, new_stream)
        before = db.memo.get(("head", stream)) or self.head(stream, new_stream, at=at)
        columns[0] = position = before[0] + 1
        columns[chain.SEQ] = position % STREAM_SIZE
        columns[chain.HASH] = hashed = chain.hashed(before[1], columns)
        if columns[chain.KEY] is None:
            db.put_off(self._plain_insert, COLUMNS, columns)
        elif not db.insert_one(self._insert_once, COLUMNS, columns):
            db.memo["head", stream] = before
            return False
        db.memo["head", stream] = position, hashed, at
        if at < before[2]:
            self._order(stream)
        db.announce(stream)
        if not position % ENTRIES_BETWEEN_STEPS:
            db.index_soon(position // STREAM_SIZE)
        return True

    def _insert_there(self, columns: "list[Any]", new_stream: bool) -> bool:
        """Have the database chain and insert an entry, all in one statement."""
        stream, at, append = columns[chain.STREAM], columns[chain.AT], self._db.append_entry
        assert append is not None
        values, (before, after) = dict(zip(COLUMNS, columns, strict=True)), chain.halves(columns)
        written = append(values, before, after)
        if not written:
            self._start(stream, new_stream, at)
            written = append(values, before, after)
        position, hashed = written
        if position is None:
            if columns[chain.KEY] is None:
                raise Conflict(f"an entry of {stream} could not be written in its place; try again", stream=stream)
            return False
        columns[0], columns[chain.SEQ], columns[chain.HASH] = position, position % STREAM_SIZE, hashed
        self._db.memo["head", stream] = (position, hashed, at)
        if not position % ENTRIES_BETWEEN_STEPS:
            self._db.index_soon(position // STREAM_SIZE)
        return True

    def _is_at_hand(self, stream: str) -> bool:
        """Return whether a stream's last entry is known: it was written here, or came with the lock."""
        return ("head", stream) in self._db.memo or self._db.head_at_hand(stream) is not None

    def _move_all_long(self, columns: "list[Any]") -> None:
        """Move texts that are too long for a row to blobs. What a record became stays in its row, whatever its length."""
        for text, digest in ((chain.BODY, chain.BODY_DIGEST), (chain.PAYLOAD, chain.PAYLOAD_DIGEST)):
            found = columns[text]
            if found is not None and len(found) > INLINE_CHARACTERS:
                columns[digest], columns[text] = keep(self._db, found.encode()), None

    def head(self, stream: str, new_stream: bool = False, *, at: str = "") -> "tuple[Any, ...]":
        """Find a stream's last entry; nobody else appends to it until this transaction ends.

        A stream that has none yet begins at the time of its first entry.
        """
        head: tuple[Any, ...] | None = self._db.memo.get(("head", stream))
        if head is None:
            number = self._db.lock_stream(stream)
            if number is None:
                number = self._start(stream, new_stream, at)
            start = number * STREAM_SIZE
            head = self._db.head_at_hand(stream)
            if head is None:
                head = self._db.one(HEAD, {"start": start, "end": start + STREAM_SIZE})
            if head is None or head[0] is None:
                head = start, chain.START, ""
        return head

    def out_of_order(self, stream: str) -> None:
        """Remember that this stream's times do not only grow, so that nobody searches them by halves."""
        self._db.count("update streams set in_order = 0 where name = :stream and in_order = 1", {"stream": stream})

    def _order(self, stream: str) -> None:
        """Note an entry that is older than the one before it."""
        if ("unordered", stream) not in self._db.memo:
            self.out_of_order(stream)
            self._db.memo["unordered", stream] = True

    def _start(self, stream: str, new_stream: bool, at: str) -> int:
        if not (new_stream or stream in RESERVED):
            from decklog.db.near_ids import meant

            raise NotFound(
                f"there is no run {stream!r} to write to",
                hint=meant(self._db, "runs", stream, "Start it first: decklog runs start GOAL --run ID"),
                stream=stream,
            )
        self._db.count(
            "insert into streams (name, created_at, in_order) values (:stream, :at, 1) on conflict do nothing",
            {"stream": stream, "at": at},
        )
        number = self._db.lock_stream(stream)
        assert number is not None
        if not number % STREAMS_BETWEEN_STEPS:
            self._db.index_soon(number)
        return number

    def _first(self, values: "Mapping[str, Any]") -> Entry:
        _, rows = self._db.rows(
            f"""
            {SELECT}
             where stream = :stream
               and coalesce(subtype, '') = coalesce(:subtype, '')
               and coalesce(group_id, '') = coalesce(:group_id, '')
               and key = :key
            """,
            values,
        )
        if not rows:
            raise Conflict(f"an entry of {values['stream']} was written twice at {values['seq']}; try again")
        return load(self._db, rows[0]).marked_already()


class WrittenEntries(Sequence):  # type: ignore[type-arg]
    """Entries that were just written or known by their keys, each made when it is looked at: of thousands few are."""

    def __init__(self, rows: "Sequence[Sequence[Any] | None]", known: "dict[int, int]", db: "Database") -> None:
        # None in the place of each that was known.
        self._rows = rows
        self._db = db
        # The places of those that were known, with their positions in the journal.
        self.known = known

    def __len__(self) -> int:
        return len(self._rows)

    def known_rows(self, places: "Iterable[int]") -> "dict[int, tuple[Any, ...]]":
        """Return the whole rows of those in some places that were known, read together."""
        asked = {place: self.known[place] for place in places if place in self.known}
        found = rows_at(self._db, [*asked.values()])
        return {place: found[position] for place, position in asked.items()}

    def __getitem__(self, place: "Any") -> "Any":
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        if place in self.known:
            return entry_at(self._db, self.known[place]).marked_already()
        row = tuple(self._rows[place] or ())
        if row[chain.BODY_DIGEST] is None and row[chain.PAYLOAD_DIGEST] is None:
            return load(self._db, row)
        # The transaction that wrote it is over, and a long text has to be fetched.
        return self._db.read(lambda: load(self._db, row))


def _attributed(given: "dict[str, Any]", who: "dict[str, Any]") -> "dict[str, Any]":
    """Return an entry with whoever acts, where it does not say so itself."""
    return {**who, **{name: value for name, value in given.items() if value is not None}}


def _is_long(body: str | None, payload: str | None) -> bool:
    """Return whether a text of an entry is too long for its row."""
    return (body is not None and len(body) > INLINE_CHARACTERS) or (payload is not None and len(payload) > INLINE_CHARACTERS)
