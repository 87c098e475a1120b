"""Taking what can be read out of a damaged SQLite file into a new log, and saying exactly what is missing."""

import os
from dataclasses import asdict, dataclass, field

from decklog.db.sqlite.backup import publish
from decklog.errors import Conflict, Damaged, Invalid, NotFound
from decklog.stores.journal.replication import Replication
from decklog.transfer.move.move import is_same
from decklog.transfer.progress import Progress, silent
from decklog.transfer.recover.rebuild import Rebuild, StreamReport
from decklog.transfer.recover.salvage import Salvage, proven

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from decklog.app import Decklog
    from decklog.transfer.recover.findings import Findings


@dataclass(kw_only=True)
class Recovered:
    """What was found and what was not. `to` is None when the file was whole and nothing was made."""

    file: str
    to: str | None
    whole: bool = False
    entries: int = 0
    blobs: int = 0
    missing_blobs: int = 0
    unreadable_bytes: int = 0
    streams: list[StreamReport] = field(default_factory=list)

    def as_dict(self) -> "dict[str, Any]":
        return {**asdict(self), "streams": [report.as_dict() for report in self.streams]}


def recover(file: str, to: str | None = None, *, progress: Progress = silent) -> Recovered:
    """Make a new log from a damaged file, which is never changed; a file that is whole is left alone."""
    file = os.path.abspath(file)
    to = os.path.abspath(to or f"{os.path.splitext(os.path.basename(file))[0]}.recovered.db")
    if is_same(file, to):
        raise Invalid("what is recovered goes into a new file, never over the damaged one")
    if os.path.lexists(to):
        raise Conflict(f"{to} is there already, and was left as it is", hint="Name another file with --to.", path=to)
    os.makedirs(os.path.dirname(to), mode=0o700, exist_ok=True)
    with Salvage(file, os.path.dirname(to), progress) as salvage:
        if salvage.is_whole():
            return Recovered(file=file, to=None, whole=True)
        report = Recovered(file=file, to=to, unreadable_bytes=salvage.unreadable_bytes)
        partial = salvage.place_for("new.db")
        _fill(partial, salvage, report, progress)
        publish(partial, to, overwrite=False)
    return report


def _fill(path: str, salvage: Salvage, report: Recovered, progress: Progress) -> None:
    from decklog.app import Decklog

    with Decklog.open(path, durability="relaxed") as log:
        classes = log.record_classes()
        findings = salvage.find(classes)
        try:
            _fill_streams(log, findings, report, progress)
        finally:
            findings.close()
        progress("verifying", 0, 0)
        result = log.journal.verify()
        if not result.ok:
            assert result.first is not None
            raise Damaged(f"what was recovered does not verify: {result.first.what}", hint="This is a fault in Decklog itself.")
        report.entries = result.entries
        report.missing_blobs = _missing_blobs(log)


def _fill_streams(log: "Decklog", findings: "Findings", report: Recovered, progress: Progress) -> None:
    streams = findings.streams()
    if not streams:
        raise NotFound(f"nothing of a log can be read in {report.file}", hint="Look for a backup: decklog restore FILE")
    for digest, content in findings.blobs():
        Replication.of(log).take_blobs([(digest, content)])
        report.blobs += 1
    classes = list(log.record_classes().values())
    for number, stream in enumerate(streams, 1):
        records = [(classes[place], record_id, image) for place, record_id, image in findings.records(stream)]
        report.streams.append(Rebuild(log, stream, records).run(proven(findings, stream)))
        progress("rebuilding streams", number, len(streams))


def _missing_blobs(log: "Decklog") -> int:
    """Count the texts that entries name and nobody has; retention may have dropped some of them."""
    sql = """
        select count(*)
          from entries
         where (body is null and body_digest is not null and body_digest not in (select digest from blobs))
            or (payload is null and payload_digest is not null and payload_digest not in (select digest from blobs))
    """
    row = log.db.read(lambda: log.db.one(sql, {}))
    return int(row[0]) if row else 0
