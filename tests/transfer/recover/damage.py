"""Damage of the kinds that disks, crashes and people do to the files of a log, and what became of a copy that has it."""

import hashlib
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import apsw

from decklog import Decklog
from decklog.core.errors import DecklogError
from decklog.transfer.doctor import find_problems
from decklog.transfer.recover.rebuild import FROM_TABLE
from decklog.transfer.recover.recovery import Recovered, recover
from tests.transfer.recover.truth import FRAME_HEADER, PAGE, WAL_HEADER, Place, Truth, copy_of

FILES = ("", "-wal")
FRAME = FRAME_HEADER + PAGE


def damaged_copy(source: Path, folder: Path, seed: int) -> tuple[Path, str]:
    """Copy a log's files and damage the copy, the same way for the same seed; say how."""
    kind = list(KINDS)[seed % len(KINDS)]
    path = copy_of(source, folder / f"damaged-{seed}.db")
    if (seed // len(KINDS)) % 2 and kind not in IN_WAL:
        _without_wal(path)
    KINDS[kind](path, random.Random(seed))
    return path, kind


def _without_wal(path: Path) -> None:
    """Close a log, as its last user does: what waited in the write-ahead log is in the file."""
    connection = apsw.Connection(str(path))
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()


def _write(path: str, start: int, content: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(start)
        file.write(content)


def _some_pages(path: Path, chance: random.Random, *, most: int = 20) -> list[int]:
    pages = os.path.getsize(path) // PAGE
    return [chance.randrange(1, pages) for _ in range(chance.randint(1, most))]


def _noise(path: Path, chance: random.Random) -> None:
    """Some pages are overwritten with noise."""
    for page in _some_pages(path, chance):
        _write(str(path), page * PAGE, chance.randbytes(PAGE))


def _zeros(path: Path, chance: random.Random) -> None:
    """Some ranges that begin and end anywhere are zeros."""
    size = os.path.getsize(path)
    for _ in range(chance.randint(1, 8)):
        start = chance.randrange(PAGE, size - 1)
        _write(str(path), start, bytes(min(chance.randint(100, 30_000), size - start)))


def _first_page(path: Path, chance: random.Random) -> None:
    """The first page is gone, with the header, and two more."""
    for page in [0, *_some_pages(path, chance, most=2)]:
        _write(str(path), page * PAGE, chance.choice([chance.randbytes(PAGE), bytes(PAGE)]))


def _header(path: Path, chance: random.Random) -> None:
    """The header of the file is gone."""
    _write(str(path), 0, chance.choice([chance.randbytes(100), bytes(100), bytes(16)]))


def _truncated(path: Path, chance: random.Random) -> None:
    """The file is cut off anywhere from a tenth on; one in five has lost all of it, and kept its write-ahead log."""
    pages = os.path.getsize(path) // PAGE
    cut = (
        0
        if chance.random() < 0.2 and os.path.exists(f"{path}-wal")
        else chance.randint(pages // 10, pages - 1) * PAGE + chance.choice([0, 17])
    )
    os.truncate(path, cut)


def _swapped_pages(path: Path, chance: random.Random) -> None:
    """Pages stand in each other's place."""
    content = path.read_bytes()
    for one, other in zip(_some_pages(path, chance), _some_pages(path, chance), strict=False):
        _write(str(path), one * PAGE, content[other * PAGE : (other + 1) * PAGE])
        _write(str(path), other * PAGE, content[one * PAGE : (one + 1) * PAGE])


def _swapped_files(path: Path, chance: random.Random) -> None:
    """The file and its write-ahead log have each other's name, or one of them is gone."""
    way = chance.randrange(3)
    wal = f"{path}-wal"
    if way == 0:
        os.unlink(path)
    elif way == 1:
        os.replace(wal, path)
    else:
        os.rename(path, f"{path}-other")
        os.rename(wal, path)
        os.rename(f"{path}-other", wal)


def _wal_header(path: Path, chance: random.Random) -> None:
    """The header of the write-ahead log is damaged."""
    _write(f"{path}-wal", 0, chance.choice([bytes(WAL_HEADER), chance.randbytes(WAL_HEADER), bytes(4)]))


def _wal_frames(path: Path, chance: random.Random) -> None:
    """Some frames of the write-ahead log are damaged, and sometimes its end is cut off."""
    size = os.path.getsize(f"{path}-wal")
    for _ in range(chance.randint(1, 5)):
        length = chance.choice([1, 24, 3000, 2 * FRAME])
        start = chance.randrange(WAL_HEADER, size - length - 10 * FRAME)
        _write(f"{path}-wal", start, chance.choice([bytes(length), chance.randbytes(length)]))
    if chance.random() < 0.3:
        os.truncate(f"{path}-wal", chance.randrange(size * 3 // 4, size))


def _bits(path: Path, chance: random.Random) -> None:
    """Some single bits have flipped, anywhere in both files."""
    for _ in range(chance.randint(1, 12)):
        name = f"{path}{chance.choice(FILES)}"
        start = chance.randrange(os.path.getsize(name))
        byte = Path(name).read_bytes()[start]
        _write(name, start, bytes([byte ^ 1 << chance.randrange(8)]))


KINDS: dict[str, Callable[[Path, random.Random], None]] = {
    "pages of noise": _noise,
    "zeroed ranges": _zeros,
    "the first page": _first_page,
    "the header": _header,
    "truncated": _truncated,
    "swapped pages": _swapped_pages,
    "swapped files": _swapped_files,
    "the WAL's header": _wal_header,
    "frames of the WAL": _wal_frames,
    "single bits": _bits,
}


# What is about the write-ahead log needs one.
IN_WAL = ("swapped files", "the WAL's header", "frames of the WAL", "single bits")


@dataclass(kw_only=True)
class Outcome:
    """What became of one damaged copy. `there` are the entries that it still has, `back` those of them that were recovered."""

    kind: str
    there: int = 0
    back: int = 0
    # Entries that came back although not all of their pages are in the copy as they were.
    besides: int = 0
    is_untouched: bool = True
    is_called_whole: bool = False
    is_falsely_whole: bool = False
    is_unseen: bool = False
    mark_out_of_order: int = 0
    # Numbers said to be missing, and records said to have lost their entry, that are not and have not.
    falsely_lost: int = 0
    problems: int = 0
    failed: str = ""


def digest(path: Path) -> dict[str, str]:
    names = [f"{path}{suffix}" for suffix in (*FILES, "-shm", "-lock", "-journal") if os.path.exists(f"{path}{suffix}")]
    return {name: hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in names}


def try_out(source: Path, truth: Truth, folder: Path, seed: int) -> Outcome:
    """Damage a copy, recover it, and compare what came back with the truth."""
    path, kind = damaged_copy(source, folder, seed)
    before, new = digest(path), folder / f"new-{seed}" / "log.db"
    there, outcome = truth.still_in(path), Outcome(kind=kind)
    outcome.there = len(there)
    try:
        report = recover(str(path), str(new))
    except DecklogError as problem:
        outcome.failed = f"{problem.code}: {problem.message}"
        outcome.is_untouched = digest(path) == before
        return outcome
    outcome.is_untouched = digest(path) == before and os.listdir(new.parent) in (["log.db"], [])
    outcome.is_called_whole, outcome.problems = report.whole, len(report.problems)
    found, outcome.mark_out_of_order = truth.found_in(copy_of(path, folder / f"seen-{seed}.db") if report.whole else new)
    outcome.back, outcome.besides = len(found & there), len(found - there)
    outcome.is_falsely_whole = report.whole and bool(there - found)
    outcome.falsely_lost = 0 if report.whole else _falsely_lost(truth, found, report, new)
    outcome.is_unseen = not report.whole and not _is_seen(copy_of(path, folder / f"looked-at-{seed}.db"))
    return outcome


def _falsely_lost(truth: Truth, found: set[Place], report: Recovered, new: Path) -> int:
    """Count what is said to be lost and is there."""
    said = 0
    for stream in report.streams:
        seqs = sorted(seq for name, seq in truth.content if name == stream.stream)
        for low, high in stream.missing:
            said += sum((stream.stream, seq) in found for seq in seqs if seq >= (low or 1) and (high is None or seq <= high))
            # Behind the end of a stream nothing can be missing.
            said += high is not None and high > max(seqs, default=0)
        said += sum((stream.stream, seq) in found for seq in stream.altered)
    lost = {content[13:15] for place, content in truth.content.items() if place not in found}
    connection = apsw.Connection(str(new))
    told = connection.execute("select record_table, record_id from entries where body = ?", (FROM_TABLE,)).fetchall()
    connection.close()
    return said + sum(record not in lost for record in told)


def _is_seen(path: Path) -> bool:
    """Say whether opening a copy, verifying it or doctor tells that something is wrong; whatever else they raise is a fault."""
    try:
        with Decklog.open(path) as log:
            return not log.journal.verify().ok or bool(find_problems(log, log.db.facts(), deep=True))
    except DecklogError:
        return True
