"""What a log held before it was damaged, and how much of that is still in a damaged copy: told by its pages, without Decklog.

The tree of entries is walked here by itself, by SQLite's file format. An entry is still in a copy when every page that it lay
on is found there byte for byte, wherever that is now.
"""

import hashlib
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

PAGE, WAL_HEADER, FRAME_HEADER = 4096, 32, 24
# All columns but the place in the file and in the chain, which a recovery gives anew.
CONTENT = (
    "stream, at, kind, subtype, agent, agent_id, group_id, task_id, iteration, phase, confidence, redacted, key, record_table, "
    "record_id, refs, body_digest, payload_digest, body, payload"
)
Place = tuple[str, int]


@dataclass
class Truth:
    """Every entry of a log by its stream and number: what it says, and the digests of the pages that it lies on."""

    content: dict[Place, tuple[Any, ...]] = field(default_factory=dict)
    pages: dict[Place, frozenset[bytes]] = field(default_factory=dict)
    hashes: dict[Place, str] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path, folder: Path) -> "Truth":
        """Read a sound log, by a copy of it."""
        copy = copy_of(path, folder / "truth.db")
        truth, places = cls(), {}
        connection = apsw.Connection(str(copy))
        rows: Any = connection.execute(f"select pos, seq, hash, {CONTENT} from entries")
        for pos, seq, hash, *content in rows:
            place = places[pos] = content[0], seq
            truth.content[place], truth.hashes[place] = tuple(content), hash
        root: Any = connection.execute("select rootpage from sqlite_schema where name = 'entries'").fetchall()[0][0]
        connection.close()
        newest = _newest_pages(path)
        for rowid, numbers in _walk(newest, root):
            truth.pages[places[rowid]] = frozenset(hashlib.sha1(newest[number]).digest() for number in numbers)
        if truth.pages.keys() != truth.content.keys():
            raise AssertionError("the walk of the tree and SQLite disagree")
        return truth

    def still_in(self, path: Path) -> set[Place]:
        """Tell which entries a damaged copy still has the pages of."""
        there = set(_pages_anywhere(path))
        return {place for place, pages in self.pages.items() if pages <= there}

    def found_in(self, path: Path) -> tuple[set[Place], int]:
        """Tell which entries a log has, word for word, and count those that come after one that they stood before."""
        seqs: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for (_, seq), content in sorted(self.content.items(), reverse=True):
            seqs[content].append(seq)
        found, last, mark_out_of_order = set(), Counter[str](), 0
        connection = apsw.Connection(str(path))
        for content in connection.execute(f"select {CONTENT} from entries order by pos"):
            if left := seqs[tuple(content)]:
                stream, seq = str(content[0]), left.pop()
                mark_out_of_order += seq < last[stream]
                last[stream] = seq
                found.add((stream, seq))
        connection.close()
        return found, mark_out_of_order


def copy_of(path: Path, other: Path) -> Path:
    for suffix in ("", "-wal"):
        if os.path.exists(f"{path}{suffix}"):
            shutil.copyfile(f"{path}{suffix}", f"{other}{suffix}")
    return other


def _newest_pages(path: Path) -> dict[int, bytes]:
    """Give each page as it is after the last commit of a sound log."""
    main = path.read_bytes()
    pages = {start // PAGE + 1: main[start : start + PAGE] for start in range(0, len(main), PAGE)}
    wal = Path(f"{path}-wal").read_bytes()
    waiting: dict[int, bytes] = {}
    for start in range(WAL_HEADER, len(wal) - PAGE - FRAME_HEADER + 1, PAGE + FRAME_HEADER):
        if wal[start + 8 : start + 16] != wal[16:24]:
            break
        waiting[int.from_bytes(wal[start : start + 4], "big")] = wal[start + FRAME_HEADER : start + FRAME_HEADER + PAGE]
        if any(wal[start + 4 : start + 8]):
            pages |= waiting
            waiting = {}
    return pages


def _pages_anywhere(path: Path) -> Iterator[bytes]:
    """Digest all pages of a copy, in the file or in frames, whichever of its files they are in."""
    for suffix in ("", "-wal"):
        content = Path(f"{path}{suffix}").read_bytes() if os.path.exists(f"{path}{suffix}") else b""
        for first, step in ((0, PAGE), (WAL_HEADER + FRAME_HEADER, PAGE + FRAME_HEADER)):
            for start in range(first, len(content) - PAGE + 1, step):
                yield hashlib.sha1(content[start : start + PAGE]).digest()


def _walk(pages: dict[int, bytes], number: int) -> Iterator[tuple[int, list[int]]]:
    """Give the row id of each row of a table, with the pages that it lies on."""
    page = pages[number]
    head = 12 if page[0] == 5 else 8
    count = int.from_bytes(page[3:5], "big")
    cells = [int.from_bytes(page[head + 2 * index : head + 2 * index + 2], "big") for index in range(count)]
    if page[0] == 5:
        for cell in cells:
            yield from _walk(pages, int.from_bytes(page[cell : cell + 4], "big"))
        yield from _walk(pages, int.from_bytes(page[8:12], "big"))
        return
    for cell in cells:
        size, cell = _varint(page, cell)
        rowid, cell = _varint(page, cell)
        yield rowid, [number, *_overflow(pages, page, cell, size)]


def _overflow(pages: dict[int, bytes], page: bytes, cell: int, size: int) -> Iterator[int]:
    if size <= PAGE - 35:
        return
    least = (PAGE - 12) * 32 // 255 - 23
    local = least + (size - least) % (PAGE - 4)
    local = local if local <= PAGE - 35 else least
    following = int.from_bytes(page[cell + local : cell + local + 4], "big")
    while following:
        yield following
        following = int.from_bytes(pages[following][:4], "big")


def _varint(page: bytes, place: int) -> tuple[int, int]:
    value = 0
    while True:
        value = value << 7 | page[place] & 0x7F
        place += 1
        if page[place - 1] < 0x80:
            return value, place
