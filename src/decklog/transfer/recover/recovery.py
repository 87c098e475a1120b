"""Recover a damaged SQLite file into a new log, and report what is missing."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Self

from decklog.core.errors import Conflict, DecklogError, Invalid, NotFound
from decklog.db.sqlite.backup import publish
from decklog.db.sqlite.damage import has_readable_schema, readable_rows
from decklog.db.sqlite.file import unusable
from decklog.journal import chain
from decklog.journal.replication import Replication
from decklog.log import Decklog
from decklog.records.record import Record
from decklog.records.values import to_json
from decklog.transfer.move import is_same
from decklog.transfer.reading import Progress, no_progress
from decklog.transfer.recover.findings import RecoveredRows
from decklog.transfer.recover.pages import Pages
from decklog.transfer.recover.proof import BitRepair, StreamProof, follows, is_sound
from decklog.transfer.recover.rebuild import Rebuild, StreamReport, record_lost_texts
from decklog.transfer.restore import remove_leftovers

_BLOCK = 1024 * 1024
_SMALLEST = 512
# The errors raised by decoding damaged values, in addition to our own.
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)


class Salvage:
    """A folder with working copies, removed at the end."""

    def __init__(self, path: str, near: str, progress: Progress) -> None:
        if not os.path.isfile(path) and not os.path.isfile(f"{path}-wal"):
            raise NotFound(f"there is no file {path} to recover", path=path)
        self._progress = progress
        remove_leftovers(near)
        self._folder = tempfile.mkdtemp(prefix=f".decklog-recover-{os.getpid()}-", dir=near)
        self._raw = os.path.join(self._folder, "raw.db")
        self.unreadable_bytes = 0
        self._findings: RecoveredRows | None = None
        try:
            for suffix in ("", "-wal", "-journal"):
                if os.path.isfile(path + suffix):
                    self.unreadable_bytes += _copy(path + suffix, self._raw + suffix)
        except BaseException:
            shutil.rmtree(self._folder)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._findings is not None:
            self._findings.close()
        shutil.rmtree(self._folder)

    def place_for(self, name: str) -> str:
        """Return the path of a file in the working folder."""
        return os.path.join(self._folder, name)

    @cached_property
    def _pages(self) -> Pages:
        return Pages(self._raw)

    @property
    def findings(self) -> RecoveredRows:
        """The rows found by reading all pages."""
        if self._findings is None:
            self._findings = RecoveredRows(self.place_for("found.db"))
            self._findings.take_pages(self._pages, lambda done, whole: self._progress("reading pages", done, whole))
        return self._findings

    def is_whole(self) -> bool:
        """Return whether the file needs no recovery: it is readable, verifies, and no page holds hidden rows."""
        self._progress("looking for damage", 0, 0)
        # SQLite treats an empty file as a new database, and removes its write-ahead log.
        if self.unreadable_bytes or not os.path.isfile(self._raw) or os.path.getsize(self._raw) < _SMALLEST:
            return False
        opened = self.place_for("opened.db")
        for suffix in ("", "-wal", "-journal"):
            if os.path.exists(self._raw + suffix):
                shutil.copyfile(self._raw + suffix, opened + suffix)
        try:
            with Decklog.open(opened) as log:
                if any(log.db.check_wal()) or any(log.db.check_pages(1, None, no_progress)) or not log.journal.verify().ok:
                    return False
                return self._shows_all_entries(log)
        except (DecklogError, *_UNREADABLE):
            return False

    def _shows_all_entries(self, log: Decklog) -> bool:
        """Return whether no page has an entry after the visible end of a stream."""
        shown = {head["stream"]: (head["seq"], head["hash"]) for head in log.journal.heads()}
        for stream in self.findings.streams():
            seq, hash = shown.get(stream, (0, chain.START))
            found = (version.values() for version in self.findings.at(stream, seq + 1))
            if any(values is not None and is_sound(values) and follows(hash, values) for values in found):
                return False
        return True

    def take_tables(self, classes: Mapping[str, type[Record]], sound: str) -> None:
        """Load the rows of all tables as far as SQLite can; `sound` is a log with the same schema page."""
        merged = self._merged(sound)
        for place, record_class in enumerate(classes.values()):
            for row in readable_rows(merged, record_class.table):
                self._take(place, record_class, row)

    def _merged(self, sound: str) -> str:
        """Write the newest version of each page to one file, even if SQLite would not read it from the write-ahead log."""
        merged, pages = self.place_for("merged.db"), self._pages
        with open(merged, "wb") as file:
            for number, content in pages.newest():
                file.seek((number - 1) * pages.size)
                file.write(content)
        _disable_wal(merged)
        if not has_readable_schema(merged):
            with open(sound, "rb") as other, open(merged, "r+b") as file:
                file.write(other.read(pages.size))
            _disable_wal(merged)
        return merged

    def _take(self, place: int, record_class: type[Record], row: dict[str, Any]) -> None:
        image = {name: row.get(name) for name in record_class.columns()}
        try:
            record = record_class.from_row(tuple(image), tuple(image.values()))
            for name in image:
                getattr(record, name)
            stream = record_class.stream_of(image)
            self.findings.take_record(stream, place, record_class.id_of(image), to_json(image))
        except (DecklogError, *_UNREADABLE):
            return  # a row that is no valid record is damage, not data


def _disable_wal(path: str) -> None:
    """Set the header of a file to rollback mode, so that SQLite expects no write-ahead log."""
    with open(path, "r+b") as file:
        file.seek(18)
        file.write(b"\1\1")


def _copy(path: str, copied: str) -> int:
    """Copy a file block by block; return the number of unreadable bytes, which become zeros."""
    lost = 0
    source, size = os.open(path, os.O_RDONLY | os.O_CLOEXEC), os.path.getsize(path)
    with open(copied, "wb") as file:
        try:
            for start in range(0, size, _BLOCK):
                wanted = min(_BLOCK, size - start)
                try:
                    block = os.pread(source, wanted, start)
                except OSError:
                    block, lost = b"", lost + wanted
                file.write(block.ljust(wanted, b"\0"))
        finally:
            os.close(source)
    return lost


_FEW = 10


@dataclass(kw_only=True)
class Recovered:
    """The outcome of a recovery. `to` is None if the file was intact and nothing was created."""

    file: str
    to: str | None
    whole: bool = False
    entries: int = 0
    blobs: int = 0
    missing_blobs: int = 0
    unreadable_bytes: int = 0
    # The problems that `verify` finds in the new log: none, unless a signature of the owner was lost.
    problems: list[str] = field(default_factory=list)
    streams: list[StreamReport] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """Describe what is missing or changed."""
        if self.whole:
            return ["the file is whole; there is nothing to recover"]
        gaps = [f"{report.stream} {low}-{high or ''}" for report in self.streams for low, high in report.missing]
        altered = [f"{report.stream}:{seq}" for report in self.streams for seq in report.altered]
        said = [("lost", gaps), ("damaged, and kept as they read", altered)]
        notes = [f"entries {what}: {_some(named)}" for what, named in said if named]
        return [*notes, *(f"verify reports on the new log: {problem}" for problem in self.problems[:_FEW])]

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "streams": [report.as_dict() for report in self.streams]}


def recover(file: str, to: str | None = None, *, progress: Progress = no_progress) -> Recovered:
    """Recover a damaged file into a new log. The damaged file is never changed, and an intact one is left alone."""
    for named in (file, to or ""):
        _check_is_no_address(named)
    file = os.path.abspath(file)
    to = os.path.abspath(to or f"{os.path.splitext(os.path.basename(file))[0]}.recovered.db")
    if is_same(file, to):
        raise Invalid("what is recovered goes into a new file, never over the damaged one")
    if os.path.lexists(to):
        raise Conflict(f"{to} exists already and was not changed", hint="Name another file with --to.", path=to)
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
    """Refuse a server's address without showing it: it may contain a password."""
    if "://" in named:
        raise Invalid(
            "a log is recovered from a SQLite file into another one, not from or into a server",
            hint="A server's own backup mends its database; `decklog move` then takes a recovered file there.",
        )


def _fill(path: str, salvage: Salvage, report: Recovered, progress: Progress) -> None:
    with Decklog.open(path, durability="relaxed") as log:
        sound = salvage.place_for("sound.db")
        log.db.back_up(sound, lambda _done, _whole: None)
        salvage.take_tables(log.record_classes(), sound)
        _fill_streams(log, salvage.findings, report, progress)
        # Budgets' totals are in no entry, so compute them from the recovered charges.
        log.rebuild()
        record_lost_texts(log)
        progress("verifying", 0, 0)
        result = log.journal.verify()
        report.problems = [problem.what for problem in result.problems]
        report.entries = result.entries
        report.missing_blobs = _missing_blobs(log)


def _fill_streams(log: Decklog, findings: RecoveredRows, report: Recovered, progress: Progress) -> None:
    streams, mending = findings.streams(), BitRepair()
    if not streams:
        raise NotFound(f"nothing of a log can be read in {report.file}", hint="Look for a backup: decklog restore FILE")
    for digest, content in findings.blobs():
        Replication.of(log).import_blobs([(digest, content)])
        report.blobs += 1

    def stand_in(run: str) -> None:
        report.streams.append(Rebuild(log, run, findings, stand_in).stand_in())

    for number, stream in enumerate(streams, 1):
        report.streams.append(Rebuild(log, stream, findings, stand_in).run(StreamProof(findings, stream, mending).run()))
        progress("rebuilding streams", number, len(streams))


def _missing_blobs(log: Decklog) -> int:
    """Count the texts that entries refer to and that are missing; retention may have dropped some."""
    sql = """
        select count(*)
          from entries
         where (body is null and body_digest is not null and body_digest not in (select digest from blobs))
            or (payload is null and payload_digest is not null and payload_digest not in (select digest from blobs))
    """
    row = log.db.read(lambda: log.db.one(sql, {}))
    return int(row[0]) if row else 0
