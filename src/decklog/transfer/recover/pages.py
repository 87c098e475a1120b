"""Reads the rows of a SQLite file page by page, without SQLite: what a damaged page was the way to is found all the same."""

import os
from struct import error as TooShort
from struct import unpack_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Row = tuple[int, list[Any]]

_LEAF = 13
_LARGEST_ROW = 256 * 1024 * 1024
_WAL_HEADER, _FRAME_HEADER = 32, 24
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


class Pages:
    """All pages of a file and of the WAL beside it, in whatever state they are."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self._main = file.read() if os.path.getsize(path) < 1 << 20 else _mapped(file)
        wal = f"{path}-wal"
        with open(wal if os.path.exists(wal) else os.devnull, "rb") as file:
            self._wal = file.read()
        self.size = self._page_size()
        self.count = -(-len(self._main) // self.size)
        self._frames = list(self._read_frames())
        self._newest = dict(self._frames)

    def _page_size(self) -> int:
        """Take the page size from the header, or the usual one where the header is damaged."""
        size = int.from_bytes(self._main[16:18], "big")
        size = 65536 if size == 1 else size
        return size if 512 <= size <= 65536 and size & (size - 1) == 0 else 4096

    def _read_frames(self) -> "Iterator[tuple[int, int]]":
        """Find the WAL's frames of its present round; a torn end is simply where they stop being whole."""
        salts, step = self._wal[16:24], _FRAME_HEADER + self.size
        for start in range(_WAL_HEADER, len(self._wal) - step + 1, step):
            if self._wal[start + 8 : start + 16] == salts:
                yield int.from_bytes(self._wal[start : start + 4], "big"), start + _FRAME_HEADER

    @property
    def frames(self) -> int:
        return len(self._frames)

    def rows(self, fits: "Callable[[list[int]], bool]", progress: "Callable[[int, int], None]") -> "Iterator[Row]":
        """Give the rows of all table leaves whose column types fit: their row id and values."""
        for number in range(1, self.count + 1):
            if number % 500 == 0:
                progress(number, self.count)
            start = (number - 1) * self.size
            yield from self._leaf(self._main[start : start + self.size], number, fits)
        for number, start in self._frames:
            yield from self._leaf(self._wal[start : start + self.size], number, fits)

    def _leaf(self, page: bytes, number: int, fits: "Callable[[list[int]], bool]") -> "Iterator[Row]":
        head = 100 if number == 1 else 0
        if len(page) <= head + 8 or page[head] != _LEAF:
            return
        cells = int.from_bytes(page[head + 3 : head + 5], "big")
        for place in range(head + 8, min(head + 8 + 2 * cells, len(page) - 1), 2):
            cell = int.from_bytes(page[place : place + 2], "big")
            try:
                row = self._row(page, cell, fits)
            except (IndexError, ValueError, TooShort):
                continue  # this cell is damaged; the next one need not be
            if row is not None:
                yield row

    def _row(self, page: bytes, cell: int, fits: "Callable[[list[int]], bool]") -> "Row | None":
        size, place = _varint(page, cell)
        rowid, place = _varint(page, place)
        if not 0 < size <= _LARGEST_ROW:
            return None
        local = self._local_size(size)
        header_size, start = _varint(page, place)
        if header_size > local or not fits(types := _types(page, start, place + header_size)):
            return None
        payload = page[place : place + local]
        if local < size:
            payload += self._overflow(int.from_bytes(page[place + local : place + local + 4], "big"), size - local)
        if len(payload) != size:
            return None
        return rowid, _values(payload, header_size, types)

    def _local_size(self, size: int) -> int:
        """Say how much of a row lies on its leaf; the rest is on overflow pages."""
        if size <= self.size - 35:
            return size
        least = (self.size - 12) * 32 // 255 - 23
        local = least + (size - least) % (self.size - 4)
        return local if local <= self.size - 35 else least

    def _overflow(self, number: int, left: int) -> bytes:
        parts = []
        while left > 0 and number:
            page = self._page(number)
            number, part = int.from_bytes(page[:4], "big"), page[4 : 4 + min(left, self.size - 4)]
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _page(self, number: int) -> bytes:
        if (start := self._newest.get(number)) is not None:
            return self._wal[start : start + self.size]
        return self._main[(number - 1) * self.size : number * self.size]


def _mapped(file: "Any") -> "Any":
    import mmap

    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for _ in range(8):
        byte = data[place]
        place += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place
    value = value << 8 | data[place]
    return (value - (1 << 64) if value >= 1 << 63 else value), place + 1


def _types(page: bytes, place: int, end: int) -> list[int]:
    types = []
    while place < end:
        byte = page[place]
        if byte < 0x80:
            place += 1
        else:
            byte, place = _varint(page, place)
        types.append(byte)
    return types


def _values(payload: bytes, place: int, types: list[int]) -> "list[Any]":
    values: list[Any] = []
    for kind in types:
        if kind >= 12:
            end = place + (kind - 12 >> 1)
            values.append(payload[place:end].decode() if kind & 1 else payload[place:end])
            place = end
        elif (size := _INTEGERS.get(kind)) is not None:
            values.append(int.from_bytes(payload[place : place + size], "big", signed=True))
            place += size
        elif kind == 7:
            values.append(unpack_from(">d", payload, place)[0])
            place += 8
        else:
            values.append({0: None, 8: 0, 9: 1}[kind])
    if place != len(payload):
        raise ValueError("a row's values do not fill it")
    return values
