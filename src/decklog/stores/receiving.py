"""Taking entries over as they are: what moving a log, reading an export and recovery have in common.

An entry that is received keeps its number and its hash. It is checked against the one before it, inserted, and its post-image
is put into the table it is about, so the projections of the receiving log are made from the journal alone.
"""

from decklog.errors import Conflict, Damaged, Invalid, NotFound
from decklog.operations import reads, writes
from decklog.records import Record, from_json
from decklog.stores import chain
from decklog.stores.journal_writer import COLUMNS, INSERT, STREAM_SIZE, JournalWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

FIELDS = tuple(name for name in COLUMNS if name != "pos")
_SELECT = f"select {', '.join(FIELDS)} from entries"
_NOTHING: "dict[str, Any]" = dict.fromkeys(COLUMNS)


class Receiving(JournalWriter):
    """Gives entries out and takes them in, column by column."""

    @reads
    def given_out(self, stream: str, *, after: int = 0, limit: int = 1000) -> "list[dict[str, Any]]":
        """List a stream's entries after a number as plain columns, oldest first, exactly as they are stored."""
        number = self.number_of(stream)
        if number is None:
            return []
        start = number * STREAM_SIZE
        _, rows = self.db.rows(
            f"{_SELECT} where pos > :after and pos < :end order by pos limit {limit}",
            {"after": start + after, "end": start + STREAM_SIZE},
        )
        return [dict(zip(FIELDS, row, strict=True)) for row in rows]

    @writes(manager_only=True)
    def receive(self, entries: list[dict[str, object]]) -> int:
        """Take entries of another log in, in their order; give how many were new.

        Each must follow from the one before it. Entries that are here already are compared and skipped.
        """
        known: dict[int, dict[str, Any]] = {}
        fresh: list[dict[str, Any]] = []
        for entry in entries:
            values: dict[str, Any] = {**_NOTHING, **entry}
            if len(values) != len(COLUMNS):
                raise Invalid(f"an entry has the fields {', '.join(FIELDS)}; got {', '.join(entry)}")
            if self._follows(values):
                fresh.append(values)
            else:
                known[values["pos"]] = values
        self._compare(known)
        self.db.many(INSERT, fresh)
        self._project(fresh)
        for stream in dict.fromkeys(values["stream"] for values in fresh):
            self.db.announce(stream)
        # What stores remember of their tables may be old now; the heads are what was just written.
        for key in [key for key in self.db.memo if key[0] != "head"]:
            del self.db.memo[key]
        return len(fresh)

    def _follows(self, values: "dict[str, Any]") -> bool:
        """Check an entry against its stream's head and make it the head; False when it is here already."""
        stream, seq = values["stream"], values["seq"]
        head = self.db.memo.get(("head", stream)) or self._head(stream, new_stream=True)
        seen = head[0] % STREAM_SIZE
        values["pos"] = head[0] - seen + seq
        if seq <= seen:
            return False
        if seq != seen + 1:
            raise Conflict(f"{stream} has entries up to {seen}; {seq} would leave a gap", stream=stream, seq=seq)
        if linked(head[1], values) != values["hash"]:
            raise Damaged(f"entry {stream}:{seq} does not match its hash", stream=stream, seq=seq)
        if values["at"] < head[2]:
            self._out_of_order(stream)
        self.db.memo["head", stream] = (values["pos"], values["hash"], values["at"])
        return True

    def _compare(self, known: "dict[int, dict[str, Any]]") -> None:
        """Make sure that entries which are here already are the same ones."""
        if not known:
            return
        _, rows = self.db.rows(f"select pos, hash from entries where pos in ({', '.join(map(str, known))})", {})
        here: dict[int, str] = dict(rows)
        for pos, values in known.items():
            if here.get(pos) != values["hash"]:
                raise Conflict(
                    f"entry {values['stream']}:{values['seq']} is another one here",
                    hint="The two logs went different ways; take the stream into an empty log.",
                    stream=values["stream"],
                    seq=values["seq"],
                )

    def _project(self, entries: "list[dict[str, Any]]") -> None:
        """Put the post-images into their tables."""
        changes = [values for values in entries if values["record_table"] is not None]
        if not changes:
            return
        try:
            self.db.write(lambda: self._put_newest(changes))
        except (Conflict, NotFound):
            # Something unique passed from one record to another within the batch: only their own order shows how.
            for values in changes:
                self._put_newest([values])

    def _put_newest(self, changes: "list[dict[str, Any]]") -> None:
        """Put each record's last image; removals go first, so that what they held is free."""
        newest = {(values["record_table"], values["record_id"]): values for values in changes}
        classes = self.record_classes()
        kept: dict[str, list[dict[str, Any]]] = {table: [] for table in classes}
        removed: dict[str, list[dict[str, Any]]] = {table: [] for table in classes}
        for (table, _), values in newest.items():
            if table not in classes:
                raise _unusable(values, f"tells of {table!r}, a kind of record that this Decklog does not know")
            image = _image_of(values)
            (removed if image.get("removed") else kept)[table].append(image)
        for table in reversed(classes):
            self._remove_all(classes[table], removed[table])
        for table, record_class in classes.items():
            self._put_all(record_class, kept[table])

    def _remove_all(self, record_class: type[Record], images: "list[dict[str, Any]]") -> None:
        condition = " and ".join(f"{name} = :{name}" for name in record_class.identity)
        for image in images:
            self.db.count(f"delete from {record_class.table} where {condition}", image)

    def _put_all(self, record_class: type[Record], images: "list[dict[str, Any]]") -> None:
        if images:
            names = record_class.columns()
            nothing = dict.fromkeys(names)
            self.db.put(record_class.table, names, record_class.identity, [{**nothing, **image} for image in images])

    @reads
    def blob_digests(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """List the digests of kept texts and bytes in their order, all of them or so many after one."""
        most = "" if limit is None else f"limit {limit}"
        _, rows = self.db.rows(f"select digest from blobs where digest > :after order by digest {most}", {"after": after})
        return [row[0] for row in rows]

    def blobs(self, digests: list[str]) -> "Iterator[tuple[str, bytes]]":
        """Give kept bytes by their digests."""
        for digest in digests:
            content = self.db.read(lambda digest=digest: self.kept(digest))  # type: ignore[misc]
            if content is not None:
                yield digest, content

    @writes(manager_only=True)
    def receive_blob(self, digest: str, content: bytes) -> None:
        """Take kept bytes of another log in; they must match their digest."""
        from hashlib import sha256

        if sha256(content).hexdigest() != digest:
            raise Damaged(f"blob {digest} does not match its digest", digest=digest)
        self.keep(content, digest)


def linked(previous: str, values: "dict[str, Any]") -> str:
    """Hash an entry as it came; a text that has a digest beside it must match it."""
    digests = {}
    for name in ("body", "payload"):
        text, kept = values[name], values[f"{name}_digest"]
        digests[name] = kept if text is None else chain.digest(text)
        if kept is not None and kept != digests[name]:
            raise _unusable(values, f"has a {name} that does not match its digest")
    return chain.link(previous, {**values, **digests, "redacted": values["redacted"] or None})


def _image_of(values: "dict[str, Any]") -> "dict[str, Any]":
    try:
        image = from_json(values["payload"])
    except (TypeError, ValueError):
        image = None
    if not isinstance(image, dict):
        raise _unusable(values, "tells of a change, and its payload is no JSON object")
    return image


def _unusable(values: "dict[str, Any]", why: str) -> Damaged:
    return Damaged(f"entry {values['stream']}:{values['seq']} {why}", stream=values["stream"], seq=values["seq"])
