"""Write the journal: every entry of every stream passes through here."""

from collections.abc import Iterable, Sequence
from typing import Any

from decklog.core.clock import Clock
from decklog.core.errors import NotFound
from decklog.db.base import Database
from decklog.db.search.marks import ENTRIES_BETWEEN_STEPS, STREAMS_BETWEEN_STEPS, index_near
from decklog.db.where import suggest_id
from decklog.journal import attribution, chain
from decklog.journal.blobs import INLINE_CHARACTERS, keep
from decklog.journal.new_entry import EMPTY, EntryRow, find_keys, prepare_entry
from decklog.journal.rows import COLUMNS, RESERVED, RESERVED_PLACES, STREAM_SIZE, entry_at, load, rows_at
from decklog.records.record import Record

# Position, hash and time of a stream's last entry.
Head = tuple[int, str, str]


class Writer:
    """Appends entries, each chained to the one before it in its stream."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def now(self) -> str:
        """Return the time as columns hold it."""
        return self._clock.now_text()

    # Before the transaction

    def prepare(self, given: dict[str, Any]) -> EntryRow:
        """Check and redact an entry, attribute it to the context, and return its columns."""
        return prepare_entry(self._db.values, _attribute(given))

    def prepare_many(self, entries: list[dict[str, Any]]) -> list[EntryRow]:
        """Prepare several entries, whose texts are scanned together."""
        entries = list(map(_attribute, entries))
        values = self._db.values
        with values.scanned_together(entries):
            return [prepare_entry(values, given) for given in entries]

    def changed(
        self,
        record_class: type[Record],
        names: tuple[str, ...],
        row: tuple[Any, ...],
        did: str,
        note: str | None,
        redacted: bool,
    ) -> EntryRow:
        """Build the journal entry for a record change; the stores call it in the transaction that changes the row."""
        body = None
        if note is not None:
            body, is_note_redacted = self._db.values.text("note", note)
            redacted = redacted or is_note_redacted
        # Image and ids are made of column values, which were redacted on their way to the row.
        stream, record_id, group_id, task_id, is_row_redacted = record_class.named(names, row)
        change: dict[str, Any] = {
            "stream": stream, "at": self._clock.now_text(), "kind": "change", "subtype": did, "group_id": group_id,
            "task_id": task_id, "redacted": int(redacted or is_row_redacted), "record_table": record_class.table,
            "record_id": record_id, "body": body, "payload": record_class.image_of(names, row),
        }  # fmt: skip
        act = attribution.proving.get()
        if act is not None:
            act.add(record_class.table, record_id, change["payload"])
            change["refs"] = act.refs
        who = attribution.acting.get()
        if who is not None:
            for name, value in self._db.values.bind(who)[0].items():
                if change.get(name) is None:
                    change[name] = value
        return tuple({**EMPTY, **change}.values())

    # Writing

    def write(self, rows: Iterable[Sequence[Any]], *, new_stream: bool = False) -> "WrittenEntries":
        """Append prepared entries. There is no other way into the journal.

        A row without a time gets the present one. For a key that is known, the first entry with it is returned in its place.
        """
        # Copies: the rows must serve again when the transaction is tried again.
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
        self.keep_heads(heads)
        # Index in the background where a stream has grown past a step.
        grown = [head[0] // STREAM_SIZE for head in heads.values() if head[0] % ENTRIES_BETWEEN_STEPS < len(fresh)]
        if grown:
            self._index_soon(max(grown))
        for place, earlier in repeated.items():
            known.setdefault(place, batch[earlier][0])
        return WrittenEntries(batch, known, self._db)

    def _lock(
        self, batch: list[list[Any]], times: dict[str, str], new_stream: bool
    ) -> tuple[dict[str, Head], dict[int, int], dict[int, int]]:
        """Lock the streams of a batch; return their heads, and the entries whose keys came before, as `find_keys` does."""
        db = self._db
        # In one order by all who write to several.
        streams = sorted(times)
        for stream in streams:
            db.lock_stream_next(stream)
        # After the locks: from then on nobody else adds a key.
        known = find_keys(db, batch)
        heads = {stream: self.head(stream, new_stream, at=times[stream]) for stream in streams}
        if known is None:
            return heads, {}, {}
        if any(db.memo.pop(("started", stream), False) for stream in streams):
            known = find_keys(db, batch) or known
        return heads, *known()

    def _link(self, row: list[Any], heads: dict[str, Head]) -> None:
        """Chain an entry to the head of its stream, and make it the head."""
        if row[chain.RECORD_TABLE] is None:
            # Texts that are too long for a row move to blobs. The image of a record stays in its row.
            for _, place, digest in chain.TEXTS:
                text = row[place]
                if text is not None and len(text) > INLINE_CHARACTERS:
                    row[digest], row[place] = keep(self._db, text.encode()), None
        stream, at = row[chain.STREAM], row[chain.AT]
        position, previous, latest = heads[stream]
        position += 1
        row[0], row[chain.SEQ] = position, position % STREAM_SIZE
        row[chain.HASH] = hashed = chain.hash_row(previous, row)
        heads[stream] = position, hashed, at
        if at < latest and ("unordered", stream) not in self._db.memo:
            self.out_of_order(stream)
            self._db.memo["unordered", stream] = True

    def _index_soon(self, number: int) -> None:
        """Index entries of a stream, and of those that began shortly before it, in the background."""
        self._db.submit_upkeep(lambda: index_near(self._db, number))

    def keep_heads(self, heads: dict[str, Head]) -> None:
        """Remember the heads of streams for this transaction, and let the database keep them and wake those who wait."""
        for stream, head in heads.items():
            self._db.memo["head", stream] = head
            self._db.keep_head(stream, *head)

    def head(self, stream: str, new_stream: bool = False, *, at: str = "") -> Head:
        """Find a stream's last entry; nobody else appends to it until this transaction ends.

        A stream that has none yet begins at the time of its first entry.
        """
        head: Head | None = self._db.memo.get(("head", stream))
        if head is None:
            number = self._db.lock_stream(stream)
            if number is None:
                number = self._start(stream, new_stream, at)
            head = self._db.head_of(stream, number) or (number * STREAM_SIZE, chain.START, "")
        return head

    def out_of_order(self, stream: str) -> None:
        """Note that this stream's times do not only grow, so that they are not searched by halves."""
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
    """Entries that were just written or known by their keys, each made when it is looked at: of thousands few are."""

    def __init__(self, rows: Sequence[Sequence[Any]], known: dict[int, int], db: Database) -> None:
        self._rows = rows
        self._db = db
        # The places of those that were known, with their positions in the journal.
        self.known = known

    def __len__(self) -> int:
        return len(self._rows)

    def known_rows(self, places: Iterable[int]) -> dict[int, tuple[Any, ...]]:
        """Return the whole rows of those in some places that were known, read together."""
        asked = {place: self.known[place] for place in places if place in self.known}
        found = rows_at(self._db, [*asked.values()])
        return {place: found[position] for place, position in asked.items()}

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        place = range(len(self._rows))[place]
        if place in self.known:
            return entry_at(self._db, self.known[place]).marked_already()
        row = tuple(self._rows[place])
        if row[chain.BODY_DIGEST] is None and row[chain.PAYLOAD_DIGEST] is None:
            return load(self._db, row)
        # The transaction that wrote it is over, and a long text has to be fetched.
        return self._db.read(lambda: load(self._db, row))


def _attribute(given: dict[str, Any]) -> dict[str, Any]:
    """Fill in the acting agent, task and group where an entry does not name them."""
    who = attribution.acting.get()
    if who is None:
        return given
    return {**who, **{name: value for name, value in given.items() if value is not None}}
