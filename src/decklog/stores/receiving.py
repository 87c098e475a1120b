"""Taking entries over as they are: what moving a log, reading an export and recovery have in common.

An entry that is received keeps its number and its hash. It is checked against the one before it, inserted, and its post-image
is put into the table it is about, so the projections of the receiving log are made from the journal alone.
"""

from decklog.errors import Conflict, Damaged, Invalid
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
        fresh: list[dict[str, Any]] = []
        for entry in entries:
            values = {**dict.fromkeys(COLUMNS), **entry}
            if len(values) != len(COLUMNS):
                raise Invalid(f"an entry has the fields {', '.join(FIELDS)}; got {', '.join(entry)}")
            if self._follows(values):
                fresh.append(values)
        self.db.many(INSERT, fresh)
        self._project(fresh)
        for stream in dict.fromkeys(values["stream"] for values in fresh):
            self.db.announce(stream)
        return len(fresh)

    def _follows(self, values: "dict[str, Any]") -> bool:
        """Check an entry against its stream's head and make it the head; False when it is here already."""
        stream = values["stream"]
        head = self._head(stream, new_stream=True)
        seen = head[0] % STREAM_SIZE
        if values["seq"] <= seen:
            self._compare(values, head[0] - seen + values["seq"])
            return False
        if values["seq"] != seen + 1:
            raise Conflict(
                f"{stream} has entries up to {seen}; {values['seq']} would leave a gap", stream=stream, seq=values["seq"]
            )
        digests = {
            name: values[f"{name}_digest"] if values[name] is None else chain.digest(values[name]) for name in ("body", "payload")
        }
        if chain.link(head[1], {**values, **digests, "redacted": values["redacted"] or None}) != values["hash"]:
            raise Damaged(f"entry {stream}:{values['seq']} does not match its hash", stream=stream, seq=values["seq"])
        values["pos"] = head[0] + 1
        if values["at"] < head[2]:
            self._out_of_order(stream)
        self.db.memo["head", stream] = (values["pos"], values["hash"], values["at"])
        return True

    def _compare(self, values: "dict[str, Any]", pos: int) -> None:
        row = self.db.one("select hash from entries where pos = :pos", {"pos": pos})
        if row is None or row[0] != values["hash"]:
            raise Conflict(
                f"entry {values['stream']}:{values['seq']} is another one here",
                hint="The two logs went different ways; take the stream into an empty log.",
                stream=values["stream"],
                seq=values["seq"],
            )

    def _project(self, entries: "list[dict[str, Any]]") -> None:
        """Put the post-images into their tables; of several for one record in a batch only the last is needed."""
        newest: dict[tuple[str, str], dict[str, Any]] = {}
        for values in entries:
            if values["record_table"] is not None:
                newest.setdefault((values["record_table"], values["record_id"]), {})["payload"] = values["payload"]
        classes = self.record_classes()
        by_table: dict[str, list[dict[str, Any]]] = {}
        for (table, _), held in newest.items():
            by_table.setdefault(table, []).append(from_json(held["payload"]))
        for table in sorted(by_table, key=list(classes).index):
            self._put_all(classes[table], by_table[table])

    def _put_all(self, record_class: type[Record], images: "list[dict[str, Any]]") -> None:
        names = record_class.columns()
        kept = [{name: image.get(name) for name in names} for image in images if not image.get("removed")]
        self.db.many(_upsert_of(record_class), kept)
        for image in images:
            if image.get("removed"):
                condition = " and ".join(f"{name} = :{name}" for name in record_class.identity)
                self.db.count(f"delete from {record_class.table} where {condition}", image)

    @reads
    def blob_digests(self) -> list[str]:
        """List the digests of all kept texts and bytes."""
        _, rows = self.db.rows("select digest from blobs order by digest", {})
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


def _upsert_of(record_class: type[Record]) -> str:
    names = record_class.columns()
    values = ", ".join(":" + name for name in names)
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in record_class.identity)
    act = f"do update set {changes}" if changes else "do nothing"
    return (
        f"insert into {record_class.table} ({', '.join(names)}) values ({values}) "
        f"on conflict ({', '.join(record_class.identity)}) {act}"
    )
