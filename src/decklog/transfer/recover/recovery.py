"""Taking what can be read out of a damaged SQLite file into a new log, and saying exactly what is missing."""

import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.db.sqlite.backup import publish
from decklog.db.sqlite.file import unusable
from decklog.journal.replication import Replication
from decklog.transfer.move.move import is_same
from decklog.transfer.progress import Progress, silent
from decklog.transfer.recover.lost_texts import tell_lost_texts
from decklog.transfer.recover.proof import BitRepair, StreamProof
from decklog.transfer.recover.rebuild import Rebuild, StreamReport
from decklog.transfer.recover.salvage import Salvage

if TYPE_CHECKING:
    from typing import Any

    from decklog.log import Decklog
    from decklog.transfer.recover.findings import RecoveredRows


_FEW = 10


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
    # What `verify` says of the new log: nothing, unless a proof of the manager's was among what is lost.
    problems: list[str] = field(default_factory=list)
    streams: list[StreamReport] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """Say in words what did not come back as it was."""
        if self.whole:
            return ["the file is whole; there is nothing to recover"]
        gaps = [f"{report.stream} {low}-{high or ''}" for report in self.streams for low, high in report.missing]
        altered = [f"{report.stream}:{seq}" for report in self.streams for seq in report.altered]
        said = [("lost", gaps), ("damaged, and kept as they read", altered)]
        notes = [f"entries {what}: {_some(named)}" for what, named in said if named]
        return [*notes, *(f"verify says of the new log: {problem}" for problem in self.problems[:_FEW])]

    def as_dict(self) -> "dict[str, Any]":
        return {**asdict(self), "streams": [report.as_dict() for report in self.streams]}


def recover(file: str, to: str | None = None, *, progress: Progress = silent) -> Recovered:
    """Make a new log from a damaged file, which is never changed; a file that is whole is left alone."""
    for named in (file, to or ""):
        _check_is_no_address(named)
    file = os.path.abspath(file)
    to = os.path.abspath(to or f"{os.path.splitext(os.path.basename(file))[0]}.recovered.db")
    if is_same(file, to):
        raise Invalid("what is recovered goes into a new file, never over the damaged one")
    if os.path.lexists(to):
        raise Conflict(f"{to} is there already, and was left as it is", hint="Name another file with --to.", path=to)
    try:
        os.makedirs(os.path.dirname(to), mode=0o700, exist_ok=True)
        return _recover(file, to, progress)
    except OSError as problem:
        raise unusable(os.path.dirname(to), problem) from None


def _recover(file: str, to: str, progress: Progress) -> Recovered:
    with Salvage(file, os.path.dirname(to), progress) as salvage:
        if salvage.is_whole():
            return Recovered(file=file, to=None, whole=True)
        report = Recovered(file=file, to=to, unreadable_bytes=salvage.unreadable_bytes)
        partial = salvage.place_for("new.db")
        _fill(partial, salvage, report, progress)
        publish(partial, to, overwrite=False)
    return report


def _some(named: list[str]) -> str:
    return ", ".join(named[:_FEW]) + (f" and {len(named) - _FEW} more" if len(named) > _FEW else "")


def _check_is_no_address(named: str) -> None:
    """Refuse a server's address, without showing it: there may be a password in it."""
    if "://" in named:
        raise Invalid(
            "a log is recovered from a SQLite file into another one, not from or into a server",
            hint="A server's own backup mends its database; `decklog move` then takes a recovered file there.",
        )


def _fill(path: str, salvage: Salvage, report: Recovered, progress: Progress) -> None:
    from decklog.log import Decklog

    with Decklog.open(path, durability="relaxed") as log:
        sound = salvage.place_for("sound.db")
        log.db.back_up(sound, lambda _done, _whole: None)
        salvage.take_tables(log.record_classes(), sound)
        _fill_streams(log, salvage.findings, report, progress)
        # The running sums of budgets are in no entry: they are made from the charges that came.
        log.rebuild()
        tell_lost_texts(log)
        progress("verifying", 0, 0)
        result = log.journal.verify()
        report.problems = [problem.what for problem in result.problems]
        report.entries = result.entries
        report.missing_blobs = _missing_blobs(log)


def _fill_streams(log: "Decklog", findings: "RecoveredRows", report: Recovered, progress: Progress) -> None:
    streams, mending = findings.streams(), BitRepair()
    if not streams:
        raise NotFound(f"nothing of a log can be read in {report.file}", hint="Look for a backup: decklog restore FILE")
    for digest, content in findings.blobs():
        Replication.of(log).take_blobs([(digest, content)])
        report.blobs += 1

    def stand_in(run: str) -> None:
        report.streams.append(Rebuild(log, run, findings, stand_in).stand_in())

    for number, stream in enumerate(streams, 1):
        report.streams.append(Rebuild(log, stream, findings, stand_in).run(StreamProof(findings, stream, mending).run()))
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
