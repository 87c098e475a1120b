"""Finding everything that is still readable in a damaged file. The file itself is only copied, never opened as a database."""

import os
import shutil
import tempfile
from functools import cached_property
from typing import TYPE_CHECKING

from decklog.core.errors import DecklogError, NotFound
from decklog.db.sqlite.damage.tables import has_readable_schema, readable_rows
from decklog.journal import chain
from decklog.records.record import Record
from decklog.records.values import to_json
from decklog.transfer.progress import Progress, silent
from decklog.transfer.recover.findings import RecoveredRows
from decklog.transfer.recover.pages import Pages
from decklog.transfer.recover.proof import follows, is_sound
from decklog.transfer.unfinished import sweep

if TYPE_CHECKING:
    from typing import Any, Self

    from decklog.log import Decklog

_BLOCK = 1024 * 1024
_SMALLEST = 512
# What reading values that were damaged ends in, besides errors of our own.
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)


class Salvage:
    """A folder of its own with copies to work on; it goes when the work is done."""

    def __init__(self, path: str, near: str, progress: Progress) -> None:
        if not os.path.isfile(path) and not os.path.isfile(f"{path}-wal"):
            raise NotFound(f"there is no file {path} to recover", path=path)
        self._progress = progress
        sweep(near)
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

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        if self._findings is not None:
            self._findings.close()
        shutil.rmtree(self._folder)

    def place_for(self, name: str) -> str:
        """Name a file in the working folder."""
        return os.path.join(self._folder, name)

    @cached_property
    def _pages(self) -> Pages:
        return Pages(self._raw)

    @property
    def findings(self) -> RecoveredRows:
        """What was found by reading all pages."""
        if self._findings is None:
            self._findings = RecoveredRows(self.place_for("found.db"))
            self._findings.take_pages(self._pages, lambda done, whole: self._progress("reading pages", done, whole))
        return self._findings

    def is_whole(self) -> bool:
        """Return whether the file needs no recovery: it is readable, verifies, and no page holds hidden rows."""
        from decklog.log import Decklog

        self._progress("looking for damage", 0, 0)
        # SQLite takes what is empty for a new database, and removes the log beside it.
        if self.unreadable_bytes or not os.path.isfile(self._raw) or os.path.getsize(self._raw) < _SMALLEST:
            return False
        opened = self.place_for("opened.db")
        for suffix in ("", "-wal", "-journal"):
            if os.path.exists(self._raw + suffix):
                shutil.copyfile(self._raw + suffix, opened + suffix)
        try:
            with Decklog.open(opened) as log:
                if any(log.db.check_wal()) or any(log.db.check_pages(1, None, silent)) or not log.journal.verify().ok:
                    return False
                return self._shows_all(log)
        except (DecklogError, *_UNREADABLE):
            return False

    def _shows_all(self, log: "Decklog") -> bool:
        """Return whether no stream goes on, in any page, behind what the log shows of it."""
        shown = {head["stream"]: (head["seq"], head["hash"]) for head in log.journal.heads()}
        for stream in self.findings.streams():
            seq, hash = shown.get(stream, (0, chain.START))
            found = (version.values() for version in self.findings.at(stream, seq + 1))
            if any(values is not None and is_sound(values) and follows(hash, values) for values in found):
                return False
        return True

    def take_tables(self, classes: "dict[str, type[Record]]", sound: str) -> None:
        """Read the rows of all tables as far as SQLite can; `sound` is a log whose first page leads to the same tables."""
        merged = self._merged(sound)
        for place, record_class in enumerate(classes.values()):
            for row in readable_rows(merged, record_class.table):
                self._take(place, record_class, row)

    def _merged(self, sound: str) -> str:
        """Write one file of the newest pages, whether SQLite would read them in the write-ahead log or not."""
        merged, pages = self.place_for("merged.db"), self._pages
        with open(merged, "wb") as file:
            for number, content in pages.newest():
                file.seek((number - 1) * pages.size)
                file.write(content)
        _without_log(merged)
        if not has_readable_schema(merged):
            with open(sound, "rb") as other, open(merged, "r+b") as file:
                file.write(other.read(pages.size))
            _without_log(merged)
        return merged

    def _take(self, place: int, record_class: type[Record], row: "dict[str, Any]") -> None:
        image = {name: row.get(name) for name in record_class.columns()}
        try:
            record = record_class.from_row(tuple(image), tuple(image.values()))
            for name in image:
                getattr(record, name)
            stream = record_class.stream_of(image)
            self.findings.take_record(stream, place, record_class.id_of(image), to_json(image))
        except (DecklogError, *_UNREADABLE):
            return  # a row that no record can be made of is damage, not data


def _without_log(path: str) -> None:
    """Have a header say that its file has no write-ahead log, so that SQLite looks for none."""
    with open(path, "r+b") as file:
        file.seek(18)
        file.write(b"\1\1")


def _copy(path: str, copied: str) -> int:
    """Copy a file block by block; what the disk can't give is left as zeros and counted."""
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
