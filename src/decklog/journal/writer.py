"""Writes all entries of the journal."""

from collections.abc import Iterable, Sequence
from typing import Any

from decklog.core.clock import Clock
from decklog.core.errors import NotFound
from decklog.db.base import Database
from decklog.db.search.marks import ENTRIES_BETWEEN_STEPS, STREAMS_BETWEEN_STEPS, index_near
from decklog.db.where import suggest_id
from decklog.journal import attribution, chain
from decklog.journal.blobs import INLINE_CHARACTERS, store_blob
from decklog.journal.new_entry import EMPTY, EntryRow, find_keys, prepare_entry
from decklog.journal.rows import COLUMNS, RESERVED, RESERVED_PLACES, STREAM_SIZE, entry_at, load_entry, rows_at
from decklog.records.record import Record

# Position, hash and time of a stream's last entry.
Head = tuple[int, str, str]


class Writer:
    """Appends entries, each chained to the one before it in its stream."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def now(self) -> str:
        """Return the current time as column text."""
        return self._clock.now_text()

    # Before the transaction

    def prepare(self, given: dict[str, Any]) -> EntryRow:
        """Check and redact an entry, attribute it to the context, and return its columns."""
        return prepare_entry(self._db.values, _attribute(given))

    def prepare_many(self, entries: list[dict[str, Any]]) -> list[EntryRow]:
        """Prepare several entries; their texts are scanned in one batch."""
        entries = list(map(_attribute, entries))
        values = self._db.values
        with values.scan_batch(entries):
            return [prepare_entry(values, given) for given in entries]

    def build_change_entry(
        self,
        record_class: type[Record],
        names: tuple[str, ...],
        row: tuple[Any, ...],
        action: str,
        note: str | None,
        redacted: bool,
    ) -> EntryRow:
        """Build the journal entry for a record change, in the transaction that changes the row."""
        body = None
        if note is not None:
            body, is_note_redacted = self._db.values.bind_text("note", note)
            redacted = redacted or is_note_redacted
        # Image and ids have column values, which are already redacted.
        stream, record_id, group_id, task_id, is_row_redacted = record_class.entry_fields(names, row)
        change: dict[str, Any] = {
            "stream": stream, "at": self._clock.now_text(), "kind": "change", "subtype": action, "group_id": group_id,
            "task_id": task_id, "redacted": int(redacted or is_row_redacted), "record_table": record_class.table,
            "record_id": record_id, "body": body, "payload": record_class.image_of(names, row),
        }  # fmt: skip
        act = attribution.owner_act.get()
        if act is not None:
            act.add(record_class.table, record_id, change["payload"])
            change["refs"] = act.refs
        actor = attribution.acting.get()
        if actor is not None:
            for name, value in self._db.values.bind(actor)[0].items():
                if change.get(name) is None:
                    change[name] = value
        return tuple({**EMPTY, **change}.values())

    # Writing

    def write(self, rows: Iterable[Sequence[Any]], *, new_stream: bool = False) -> "WrittenEntries":
        """Append prepared entries. Nothing else writes to the journal.

        A row without a time gets the current one. For an existing key, the result has the first entry with that key.
        """
        # Copy the rows: a retry of the transaction needs them unchanged.
        batch = [[*row] for row in rows]
        now, times = "", dict[str, str]()
        for row in batch:
            if row[chain.AT] is None:
                row[chain.AT] = now = now or self._clock.now_text()
            times.setdefault(row[chain.STREAM], row[chain.AT])
        heads, repeated, known = self._lock(batch, times, new_stream)
        fresh = [row for place, row in enumerate(batch) if place not in known and place not in repeated]
        for row in fresh:
            self._link(row, heads)
        self._db.insert("entries", COLUMNS, fresh)  # type: ignore[arg-type]
        self.store_heads(heads)
        grown = [head[0] // STREAM_SIZE for head in heads.values() if head[0] % ENTRIES_BETWEEN_STEPS < len(fresh)]
        if grown:
            self._index_soon(max(grown))
        for place, earlier in repeated.items():
            known.setdefault(place, batch[earlier][0])
        return WrittenEntries(batch, known, self._db)

    def _lock(
        self, batch: list[list[Any]], times: dict[str, str], new_stream: bool
    ) -> tuple[dict[str, Head], dict[int, int], dict[int, int]]:
        """Lock the streams of a batch; return their heads, and the repeated and known keys as `find_keys` does."""
        db = self._db
        # Lock in the same order everywhere, to avoid deadlocks.
        streams = sorted(times)
        for stream in streams:
            db.lock_stream_next(stream)
        # Look up keys after locking: from then on nobody else can add one.
        known = find_keys(db, batch)
        heads = {stream: self.lock_head(stream, new_stream, at=times[stream]) for stream in streams}
        if known is None:
            return heads, {}, {}
        if any(db.memo.pop(("started", stream), False) for stream in streams):
            known = find_keys(db, batch) or known
        return heads, *known()

    def _link(self, row: list[Any], heads: dict[str, Head]) -> None:
        """Chain an entry to the head of its stream; it becomes the new head."""
        if row[chain.RECORD_TABLE] is None:
            # Store long texts as blobs. The image of a record stays in its row.
            for _, place, digest in chain.TEXTS:
                text = row[place]
                if text is not None and len(text) > INLINE_CHARACTERS:
                    row[digest], row[place] = store_blob(self._db, text.encode()), None
        stream, at = row[chain.STREAM], row[chain.AT]
        position, previous, latest = heads[stream]
        position += 1
        row[0], row[chain.SEQ] = position, position % STREAM_SIZE
        row[chain.HASH] = hashed = chain.hash_row(previous, row)
        heads[stream] = position, hashed, at
        if at < latest and ("unordered", stream) not in self._db.memo:
            self.mark_out_of_order(stream)
            self._db.memo["unordered", stream] = True

    def _index_soon(self, number: int) -> None:
        """Index entries of a stream, and of streams that started shortly before it, in the background."""
        self._db.submit_upkeep(lambda: index_near(self._db, number))

    def store_heads(self, heads: dict[str, Head]) -> None:
        """Store the heads of streams, cache them for this transaction, and notify readers that tail them."""
        for stream, head in heads.items():
            self._db.memo["head", stream] = head
            self._db.store_head(stream, *head)

    def lock_head(self, stream: str, new_stream: bool = False, *, at: str = "") -> Head:
        """Lock a stream until this transaction ends, and return its last entry.

        A new stream starts at the time of its first entry.
        """
        head: Head | None = self._db.memo.get(("head", stream))
        if head is None:
            number = self._db.lock_stream(stream)
            if number is None:
                number = self._start(stream, new_stream, at)
            head = self._db.head_of(stream, number) or (number * STREAM_SIZE, chain.START, "")
        return head

    def mark_out_of_order(self, stream: str) -> None:
        """Record that the times of a stream are not ascending, so that they are not searched by bisection."""
        self._db.count("update streams set in_order = 0 where name = :stream and in_order = 1", {"stream": stream})

    def _start(self, stream: str, new_stream: bool, at: str) -> int:
        if not (new_stream or stream in RESERVED):
            raise NotFound(
                f"there is no run {stream!r} to write to",
                hint=suggest_id(self._db, "runs", stream, "Start it first: decklog runs start GOAL --run ID"),
                stream=stream,
            )
        number = self._db.start_stream(stream, at, RESERVED_PLACES.index(stream) if stream in RESERVED else None)
        self._db.memo["started", stream] = True
        if not number % STREAMS_BETWEEN_STEPS:
            self._index_soon(number)
        return number


class WrittenEntries(Sequence):  # type: ignore[type-arg]
    """Entries just written, or found by their keys. Each is built on access, since few of thousands are used."""

    def __init__(self, rows: Sequence[Sequence[Any]], known: dict[int, int], db: Database) -> None:
        self._rows = rows
        self._db = db
        # Places of the entries that already existed, with their positions in the journal.
        self.known = known

    def __len__(self) -> int:
        return len(self._rows)

    def known_rows(self, places: Iterable[int]) -> dict[int, tuple[Any, ...]]:
        """Return the rows of the entries at some places that already existed, read in one query."""
        wanted = {place: self.known[place] for place in places if place in self.known}
        found = rows_at(self._db, [*wanted.values()])
        return {place: found[position] for place, position in wanted.items()}

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[index] for index in range(*place.indices(len(self)))]
        place = range(len(self._rows))[place]
        if place in self.known:
            return entry_at(self._db, self.known[place]).mark_already()
        row = tuple(self._rows[place])
        if row[chain.BODY_DIGEST] is None and row[chain.PAYLOAD_DIGEST] is None:
            return load_entry(self._db, row)
        # A long text is loaded in a new transaction.
        return self._db.read(lambda: load_entry(self._db, row))


def _attribute(given: dict[str, Any]) -> dict[str, Any]:
    """Fill in the acting agent, task and group where an entry does not name them."""
    actor = attribution.acting.get()
    if actor is None:
        return given
    return {**actor, **{name: value for name, value in given.items() if value is not None}}
