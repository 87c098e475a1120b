"""Finding everything that is still readable in a damaged file. The file itself is only copied, never opened as a database."""

import os
import shutil
import tempfile
from dataclasses import dataclass

from decklog.clock import from_text
from decklog.db.sqlite.damaged import readable_rows
from decklog.errors import DecklogError, NotFound
from decklog.records import Record, to_json
from decklog.stores.journal import chain
from decklog.stores.journal.replication import linked
from decklog.stores.journal.rows import COLUMNS
from decklog.transfer.progress import Progress
from decklog.transfer.recover.findings import Findings
from decklog.transfer.recover.pages import Pages
from decklog.transfer.unfinished import sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

_BLOCK = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Found:
    """One entry as it was, and whether it follows from one that is known."""

    values: "dict[str, Any]"
    proven: bool


class Salvage:
    """A folder of its own with copies to work on; it goes when the work is done."""

    def __init__(self, path: str, near: str, progress: Progress) -> None:
        if not os.path.isfile(path):
            raise NotFound(f"there is no file {path} to recover", path=path)
        self._progress = progress
        sweep(near)
        self._folder = tempfile.mkdtemp(prefix=f".decklog-recover-{os.getpid()}-", dir=near)
        self._raw = os.path.join(self._folder, "raw.db")
        self._opened = os.path.join(self._folder, "opened.db")
        self.unreadable_bytes = 0
        for suffix in ("", "-wal"):
            if os.path.exists(path + suffix):
                self.unreadable_bytes += _copy(path + suffix, self._raw + suffix)
                shutil.copyfile(self._raw + suffix, self._opened + suffix)

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder)

    def place_for(self, name: str) -> str:
        """Name a file in the working folder."""
        return os.path.join(self._folder, name)

    def is_whole(self) -> bool:
        """Say whether the file is in no need of recovery: every page can be read, every chain verifies, no WAL is torn."""
        from decklog.app import Decklog

        self._progress("looking for damage", 0, 0)
        try:
            with Decklog.open(self._opened) as log:
                return not log.db.check_wal(crashes=True) and not log.db.check_pages(1) and log.journal.verify().ok
        except (DecklogError, ValueError, TypeError, KeyError, AttributeError):
            return False

    def find(self, classes: "dict[str, type[Record]]") -> Findings:
        """Read all pages, and the tables as far as SQLite can."""
        findings = Findings(os.path.join(self._folder, "found.db"), COLUMNS)
        pages = Pages(self._raw)
        findings.take_pages(pages, lambda done, whole: self._progress("reading pages", done, whole))
        for place, record_class in enumerate(classes.values()):
            for row in readable_rows(self._opened, record_class.table):
                self._take(findings, place, record_class, row)
        return findings

    def _take(self, findings: Findings, place: int, record_class: type[Record], row: "dict[str, Any]") -> None:
        image = {name: row.get(name) for name in record_class.columns()}
        try:
            record_class.from_row(image.keys(), image.values())
            findings.take_record(record_class.stream_of(image), place, record_class.id_of(image), to_json(image))
        except (DecklogError, ValueError, TypeError, KeyError):
            return  # a row that no record can be made of is damage, not data


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


def proven(findings: Findings, stream: str) -> "Iterator[Found]":
    """Give a stream's entries in order, of several versions the one that fits its neighbours.

    An entry whose predecessor is lost can't be proven itself. One that contradicts a proven predecessor is damage.
    """
    before: Found | None = None
    waiting: list[dict[str, Any]] = []
    for seq, versions in findings.entries(stream):
        usable = [values for values in versions if _is_sound(values)]
        if waiting:
            before = _first_after_gap(waiting, usable if waiting[0]["seq"] == seq - 1 else [])
            waiting = []
            yield before
        previous = chain.START if seq == 1 else None
        if before is not None and before.values["seq"] == seq - 1:
            previous = before.values["hash"]
        if previous is None:
            waiting = usable
            continue
        fitting = [values for values in usable if _fits(previous, values)]
        if fitting:
            before = Found(values=fitting[0], proven=True)
            yield before
        elif before is not None and not before.proven:
            waiting = usable
    if waiting:
        yield _first_after_gap(waiting, [])


def _first_after_gap(versions: "list[dict[str, Any]]", following: "list[dict[str, Any]]") -> Found:
    """Choose the version that the next entry follows from."""
    for values in versions:
        if any(_fits(values["hash"], after) for after in following):
            return Found(values=values, proven=False)
    return Found(values=versions[0], proven=False)


def _fits(previous: str, values: "dict[str, Any]") -> bool:
    try:
        return bool(linked(previous, values) == values["hash"])
    except DecklogError:
        return False


def _is_sound(values: "dict[str, Any]") -> bool:
    """Say whether columns hold what they may hold at all."""
    for name in COLUMNS[1:]:
        kind = int if name in ("seq", "iteration", "redacted") else str
        if values[name] is not None and type(values[name]) is not kind:
            return False
    try:
        from_text(values["at"])
    except ValueError:
        return False
    return values["redacted"] in (0, 1)
