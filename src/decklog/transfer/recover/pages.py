"""Read the rows of a SQLite file page by page, without SQLite, to find rows behind damaged pages too."""

import mmap
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import error as TooShort
from struct import unpack_from
from typing import Any

from decklog.db.sqlite.damage import FRAME_HEADER_SIZE, HEADER_SIZE, WriteAheadLog, is_page_size

_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_TYPE_SIZES = {**_INTEGERS, 0: 0, 7: 8, 8: 0, 9: 0}
_CONSTANTS = {0: None, 8: 0, 9: 1}
# The errors raised by decoding bytes that are not a row.
UNREADABLE = (IndexError, ValueError, KeyError, TooShort)


def varint(data: bytes, place: int) -> tuple[int, int]:
    """Read a variable-length integer; return it and the position after it."""
    value = 0
    for _ in range(8):
        byte = data[place]
        place += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place
    value = value << 8 | data[place]
    return (value - (1 << 64) if value >= 1 << 63 else value), place + 1


def types_at(data: bytes, place: int) -> tuple[list[int], int]:
    """Read the header of a row; return the types of its columns and the length of the header."""
    size, start = varint(data, place)
    end, types = place + size, []
    if not 1 <= size <= 4096 or end > len(data):
        raise ValueError("this is no row's head")
    while start < end:
        byte = data[start]
        if byte < 0x80:
            start += 1
        else:
            byte, start = varint(data, start)
        types.append(byte)
    return types, size


def size_of(types: list[int]) -> int:
    """Return the size of values of some types in bytes."""
    return sum(kind - 12 >> 1 if kind >= 12 else _TYPE_SIZES[kind] for kind in types)


def spans_of(payload: bytes) -> list[tuple[int, int, int]]:
    """Return the type, start and end of each value of a row."""
    types, place = types_at(payload, 0)
    spans = []
    for kind in types:
        end = place + (kind - 12 >> 1 if kind >= 12 else _TYPE_SIZES[kind])
        spans.append((kind, place, end))
        place = end
    if place != len(payload):
        raise ValueError("a row's values do not fill it")
    return spans


def value_of(kind: int, data: bytes, *, errors: str = "strict") -> Any:
    """Decode one value; `errors` is as in `bytes.decode`."""
    if kind >= 12:
        return data.decode(errors=errors) if kind & 1 else data
    if kind in _INTEGERS:
        return int.from_bytes(data, "big", signed=True)
    return unpack_from(">d", data)[0] if kind == 7 else _CONSTANTS[kind]


def values_of(payload: bytes, *, errors: str = "strict") -> list[Any]:
    """Decode a whole row."""
    return [value_of(kind, payload[start:end], errors=errors) for kind, start, end in spans_of(payload)]


_MAGIC = b"SQLite format 3\0"
_LEAF, _OTHER_TREES = 13, (2, 5, 10)
_LARGEST_ROW = 256 * 1024 * 1024
_SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
_SAMPLED = 400
# The header of an entry: null for its position, the stream, the number, a time of 27 characters, a hash of 32 bytes.
_ENTRY = re.compile(rb"[\x18-\x7f]\x00(?:[\x0d-\x7f]|[\x81-\x83][\x00-\x7f])[\x01-\x06\x08\x09]CL", re.DOTALL)


@dataclass(frozen=True)
class Cell:
    """One row as found: its row id, its bytes, and its first overflow page."""

    # None if unknown.
    rowid: int | None
    payload: bytes
    overflow: int = 0


@dataclass(frozen=True)
class DatabasePage:
    """One page as found. `is_newest` if no later version was found; `number` is 0 if unknown."""

    index: int
    number: int
    content: bytes
    is_newest: bool


class Pages:
    """All pages of a file and of its write-ahead log, damaged or not."""

    def __init__(self, path: str) -> None:
        contents = [content for content in map(_read, (path, f"{path}-wal")) if len(content)]
        self.size = _page_size(contents)
        # A user may have swapped the file and its write-ahead log.
        is_log = [_is_write_ahead_log(content, self.size) for content in contents]
        self._files = [content for content, other in zip(contents, is_log, strict=True) if not other]
        self._logs = [content for content, other in zip(contents, is_log, strict=True) if other]
        # Every version of every page: the file's content, the offset in it, and the page number.
        self._places = [*self._places_in_files(), *self._places_in_logs()]
        self._newest: dict[int, int] = {}
        for index, (_, _, number, is_sound) in enumerate(self._places):
            if number and (is_sound or number not in self._newest):
                self._newest[number] = index
        self._claimed: set[int] = set()

    def _places_in_files(self) -> Iterator[tuple[bytes, int, int, bool]]:
        for content in self._files:
            for number in range(1, -(-len(content) // self.size) + 1):
                yield content, (number - 1) * self.size, number, True

    def _places_in_logs(self) -> Iterator[tuple[bytes, int, int, bool]]:
        """Yield the committed frames, those before the last WAL reset first, and those with an unknown page."""
        for content in self._logs:
            log = WriteAheadLog(content, self.size)
            frames = log.frames
            earlier = [place for place, frame in enumerate(frames) if frame is not None and not frame.is_current]
            last = max((place for place in earlier if frames[place].is_commit), default=-1)  # type: ignore[union-attr]
            for place in earlier:
                if (frame := frames[place]) is not None and place <= last:
                    yield content, frame.start, 0, False
            for place, frame in enumerate(frames[: log.committed]):
                if frame is None:
                    yield content, HEADER_SIZE + place * (FRAME_HEADER_SIZE + self.size) + FRAME_HEADER_SIZE, 0, False
                elif frame.is_current:
                    # After a damaged frame, the checksum chain can't be checked.
                    is_sound = frame.follows or place == 0 or frames[place - 1] is None
                    yield content, frame.start, frame.page, is_sound

    @property
    def count(self) -> int:
        return len(self._places)

    def all(self, progress: Callable[[int, int], None]) -> Iterator[DatabasePage]:
        """Yield every version of every page."""
        for index in range(self.count):
            if index % 500 == 0:
                progress(index, self.count)
            yield self.at(index)

    def at(self, index: int) -> DatabasePage:
        """Return one version of one page."""
        content, start, number, _ = self._places[index]
        return DatabasePage(index, number, content[start : start + self.size], self._newest.get(number) == index)

    def newest(self) -> Iterator[tuple[int, bytes]]:
        """Yield the newest version of each page by its number."""
        for number in sorted(self._newest):
            yield number, self._page(number)

    # Rows

    def cells(self, page: DatabasePage) -> tuple[list[Cell], bool]:
        """Return the readable rows of a leaf, and whether its list covers all of the page."""
        head = 100 if page.content.startswith(_MAGIC) else 0
        kind = page.content[head] if len(page.content) > head + 8 else 0
        if kind != _LEAF:
            return [], kind in _OTHER_TREES
        found: list[Cell] = []
        count = int.from_bytes(page.content[head + 3 : head + 5], "big")
        places = range(head + 8, min(head + 8 + 2 * count, len(page.content) - 1), 2)
        for place in places:
            try:
                found.append(self._cell(page.content, int.from_bytes(page.content[place : place + 2], "big")))
            except UNREADABLE:
                continue  # skip a damaged cell
        return found, len(found) == count

    def _cell(self, page: bytes, place: int) -> Cell:
        size, place = varint(page, place)
        rowid, place = varint(page, place)
        if not 0 < size <= _LARGEST_ROW:
            raise ValueError("no row has this size")
        return self._whole(rowid, page, place, size)

    def _whole(self, rowid: int | None, page: bytes, place: int, size: int) -> Cell:
        """Join a row with its overflow pages."""
        local = self._local_size(size)
        payload = page[place : place + local]
        overflow = int.from_bytes(page[place + local : place + local + 4], "big") if local < size else 0
        if overflow:
            payload += b"".join(content for _, content in self._overflow(overflow, size - local))
        if len(payload) != size:
            raise ValueError("a part of this row is missing")
        return Cell(rowid, payload, overflow)

    def _local_size(self, size: int) -> int:
        """Return how many bytes of a row are on its leaf; the rest is on overflow pages."""
        if size <= self.size - 35:
            return size
        least = (self.size - 12) * 32 // 255 - 23
        local = least + (size - least) % (self.size - 4)
        return local if local <= self.size - 35 else least

    def _overflow(self, number: int, left: int) -> Iterator[tuple[int, bytes]]:
        seen: set[int] = set()
        while left > 0 and number in self._newest and number not in seen:
            seen.add(number)
            page = self._page(number)
            part = page[4 : 4 + min(left, self.size - 4)]
            yield number, part
            number, left = int.from_bytes(page[:4], "big"), left - len(part)

    def _page(self, number: int) -> bytes:
        content, start, _, _ = self._places[self._newest[number]]
        return content[start : start + self.size]

    # Rows missing from page lists

    def claim(self, cell: Cell) -> None:
        """Mark the overflow pages of a row as its own."""
        if cell.overflow:
            self._claimed.update(number for number, _ in self._overflow(cell.overflow, len(cell.payload)))

    def stray_entries(self, page: DatabasePage) -> Iterator[Cell]:
        """Find entries in a page by their pattern, ignoring the page's own list."""
        if page.number in self._claimed:
            return
        for match in _ENTRY.finditer(page.content):
            try:
                types, head = types_at(page.content, match.start())
                yield self._whole(_rowid_before(page.content, match.start()), page.content, match.start(), head + size_of(types))
            except UNREADABLE:
                continue


def _rowid_before(page: bytes, place: int) -> int | None:
    """Decode the row id before a position: only the last byte of a number is below 128."""
    start = place - 1
    while start > 0 and place - start < 9 and page[start - 1] >= 0x80:
        start -= 1
    rowid, end = varint(page, start)
    return rowid if end == place else None


def _read(path: str) -> bytes:
    if not os.path.exists(path) or not os.path.getsize(path):
        return b""
    with open(path, "rb") as file:
        # A slice of a memory map is bytes, too.
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # type: ignore[return-value]


def _page_size(contents: list[bytes]) -> int:
    """Return the page size from a header; if all are damaged, the size with the most valid pages."""
    for content in contents:
        size = int.from_bytes(content[16:18], "big")
        if content[:16] == _MAGIC and is_page_size(65536 if size == 1 else size):
            return 65536 if size == 1 else size
        if (log := WriteAheadLog(content[:HEADER_SIZE])).has_sound_header:
            return log.page_size
    shares = {size: max((max(_share(one, size), _share_in_log(one, size)) for one in contents), default=0.0) for size in _SIZES}
    # Prefer the smallest good size: multiples of the page size match as well, its fractions rarely.
    return next(size for size in _SIZES if shares[size] >= 0.8 * max(shares.values()))


def _is_write_ahead_log(content: bytes, size: int) -> bool:
    if content[:16] == _MAGIC:
        return False
    return WriteAheadLog(content[:HEADER_SIZE]).has_sound_header or _share_in_log(content, size) > _share(content, size)


def _share(content: bytes, size: int, start: int = 0, gap: int = 0) -> float:
    """Return the share of sampled pages that begin like pages of a tree."""
    step = size + gap
    places = range(start, len(content) - 8, max(1, len(content) // step // _SAMPLED) * step)
    return sum(_begins_a_tree(content[place : place + 8], size) for place in places) / max(1, len(places))


def _begins_a_tree(head: bytes, size: int) -> bool:
    """Return whether this is a valid page header: rows follow their list; without rows, the content starts at the page's end."""
    count, rows = int.from_bytes(head[3:5], "big"), int.from_bytes(head[5:7], "big") or 65536
    return head[0] in (_LEAF, *_OTHER_TREES) and (8 + 2 * count <= rows <= size if count else rows == size)


def _share_in_log(content: bytes, size: int) -> float:
    return _share(content, size, HEADER_SIZE + FRAME_HEADER_SIZE, FRAME_HEADER_SIZE)
