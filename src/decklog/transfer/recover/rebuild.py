"""Making one stream of a new log from what recovery found of the old one."""

from dataclasses import asdict, dataclass, field

from decklog.clock import to_text
from decklog.errors import DecklogError, NotFound
from decklog.records import Record, from_json, to_json
from decklog.stores.journal import chain
from decklog.stores.journal.replication import Replication, linked
from decklog.stores.journal.rows import COLUMNS
from decklog.transfer.recover.salvage import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from decklog.app import Decklog

    Values = dict[str, Any]

_TOGETHER = 500
_NOTHING: "dict[str, Any]" = dict.fromkeys(COLUMNS[1:])


@dataclass(kw_only=True)
class StreamReport:
    """What became of a stream. `kept` entries are as they were; `renumbered` ones follow a gap."""

    stream: str
    kept: int = 0
    renumbered: int = 0
    unproven: int = 0
    missing: list[list[int]] = field(default_factory=list)
    from_tables: int = 0
    unplaced: int = 0

    def as_dict(self) -> "dict[str, Any]":
        return asdict(self)


class Rebuild:
    """Writes a stream anew: as it was up to the first gap, and from there in a chain of its own.

    After a gap no old hash can be continued. Each stretch of entries behind one begins with an event `recovered` that
    names the numbers that are missing, the old number of the first entry, and the old hashes of all.
    """

    def __init__(self, log: "Decklog", stream: str, records: "list[tuple[type[Record], str, str]]") -> None:
        self._log = log
        self._stream = stream
        self._records = records
        self._seq, self._hash = 0, chain.START
        self._old_seq = 0
        self._broken = False
        self.report = StreamReport(stream=stream)

    def run(self, found: "Iterable[Found]") -> StreamReport:
        batch: list[Found] = []
        for item in found:
            gap = item.values["seq"] != self._old_seq + 1
            if gap or len(batch) >= _TOGETHER:
                self._write(batch)
                batch = []
            if gap:
                self.report.missing.append([self._old_seq + 1, item.values["seq"] - 1])
            self._old_seq = item.values["seq"]
            batch.append(item)
        self._write(batch)
        self._add_newer_records()
        return self.report

    # Entries

    def _write(self, batch: "list[Found]") -> None:
        if not batch:
            return
        if not self._broken and batch[0].proven and batch[0].values["seq"] == self._seq + 1 and self._keep(batch):
            return
        self._begin_stretch(batch)
        self._append([found.values for found in batch])
        self.report.renumbered += len(batch)
        self.report.unproven += sum(not found.proven for found in batch)

    def _keep(self, batch: "list[Found]") -> bool:
        """Take entries as they are; False when their records can't stand, which only a gap elsewhere explains."""
        try:
            Replication.of(self._log).receive([found.values for found in batch])
        except DecklogError:
            return False
        self._seq, self._hash = batch[-1].values["seq"], batch[-1].values["hash"]
        self.report.kept += len(batch)
        return True

    def _begin_stretch(self, batch: "list[Found]") -> None:
        first = batch[0].values["seq"]
        missing = next(([low, high] for low, high in self.report.missing if high == first - 1), None)
        said = f"entries {missing[0]} to {missing[1]} are missing" if missing else "the stretch goes on"
        self._tell(
            f"Recovered from a damaged file: {said}; what follows had the numbers from {first} on.",
            {
                "missing": missing,
                "first": first,
                "hashes": [found.values["hash"] for found in batch],
                "unproven": [found.values["seq"] for found in batch if not found.proven],
            },
        )
        if not self._broken:
            self._broken = True
            self._add_lost_records()

    def _tell(self, body: str, payload: "Values") -> None:
        self._append([{**_NOTHING, "kind": "event", "subtype": "recovered", "body": body, "payload": to_json(payload)}])

    def _append(self, entries: "list[Values]") -> None:
        """Chain entries to the stream's end; those whose record can't stand are kept as events that tell of it."""
        try:
            self._receive(entries)
        except DecklogError:
            for values in entries:
                self._append_one(values)

    def _append_one(self, values: "Values") -> None:
        try:
            try:
                self._receive([values])
            except NotFound:
                self._stand_in_for_run()
                self._receive([values])
        except DecklogError as problem:
            self.report.unplaced += 1
            told = {"unplaced": {name: value for name, value in values.items() if value is not None}, "because": problem.message}
            plain = {
                "kind": "event",
                "subtype": "recovered",
                "body": "An entry that can't stand by itself.",
                "payload": to_json(told),
            }
            self._receive([{**_NOTHING, **plain, "at": values["at"]}])

    def _receive(self, entries: "list[Values]") -> None:
        seq, hash, linked_ones = self._seq, self._hash, []
        for values in entries:
            seq += 1
            at = values["at"] or to_text(self._log.clock.now())
            entry = {**values, "stream": self._stream, "seq": seq, "at": at, "redacted": values["redacted"] or 0}
            hash = entry["hash"] = linked(hash, entry)
            linked_ones.append(entry)
        Replication.of(self._log).receive(linked_ones)
        self._seq, self._hash = seq, hash

    # Records

    def _add_lost_records(self) -> None:
        """Put rows of the old tables whose first image is lost, so that later entries find what they refer to."""
        for record_class, record_id, image in self._records:
            if self._newest_image(record_class, record_id) is None:
                self._add_record(record_class, record_id, image)

    def _add_newer_records(self) -> None:
        """Put rows of the old tables that are newer than any entry that was found: their last entries are lost."""
        for record_class, record_id, image in self._records:
            known = self._newest_image(record_class, record_id)
            row = from_json(image)
            if known is None or str(row.get("updated_at") or "") > str(known.get("updated_at") or ""):
                if not self._broken:
                    self._broken = True
                    self._tell(
                        "Recovered from a damaged file: the end of this stream is missing.",
                        {"missing": [self._old_seq + 1, None]},
                    )
                self._add_record(record_class, record_id, image)

    def _newest_image(self, record_class: type[Record], record_id: str) -> "Values | None":
        sql = "select payload from entries where record_table = :table and record_id = :id order by seq desc limit 1"
        bound = {"table": record_class.table, "id": record_id}
        row = self._log.db.read(lambda: self._log.db.one(sql, bound))
        return from_json(row[0]) if row else None

    def _add_record(self, record_class: type[Record], record_id: str, image: str) -> None:
        change = {
            "kind": "change",
            "subtype": "changed",
            "body": "Recovered from the table; the entry that said so is lost.",
            "payload": image,
            "record_table": record_class.table,
            "record_id": record_id,
            "task_id": record_class.task_of(from_json(image)),
        }
        self._append_one({**_NOTHING, **change})
        self.report.from_tables += 1

    def _stand_in_for_run(self) -> None:
        """Make a run of which nothing but its entries is left, so that its other records have one to belong to."""
        run_class = self._log.record_classes()["runs"]
        now = to_text(self._log.clock.now())
        known = {"id": self._stream, "goal": "(lost with a damaged file)", "status": "active", "metadata": "{}"}
        image = {**dict.fromkeys(run_class.columns()), **known, "cycles": 0, "replans": 0, "started_at": now, "updated_at": now}
        if self._newest_image(run_class, self._stream) is not None:
            return
        change = {"kind": "change", "subtype": "added", "body": "A stand-in: the run itself is lost.", "payload": to_json(image)}
        self._receive([{**_NOTHING, **change, "record_table": "runs", "record_id": self._stream}])
