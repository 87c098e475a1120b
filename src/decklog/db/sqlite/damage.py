"""Damage in a SQLite file: what SQLite leaves unread of its write-ahead log, and rows around unreadable pages."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple

import apsw

from decklog.core.errors import Damaged

Sums = tuple[int, int]


HEADER_SIZE, FRAME_HEADER_SIZE = 32, 24
_SUM = 0xFFFFFFFF
_WORD = 4


def checksum(content: bytes, order: str, sums: Sums = (0, 0)) -> Sums:
    """Go on with SQLite's checksum over some more bytes."""
    words = _words(content, order)
    first, second = sums
    each = iter(words)
    for one, other in zip(each, each, strict=True):
        first = first + one + second & _SUM
        second = second + other + first & _SUM
    return first, second


def checksums(content: memoryview, order: str, page_size: int, begins: Sequence[Sums]) -> list[Sums]:
    """Return the checksums of the first frames of a write-ahead log, each begun with what is given for it."""
    step = FRAME_HEADER_SIZE + page_size
    found: list[Sums] = []
    for start, sums in zip(range(HEADER_SIZE, HEADER_SIZE + len(begins) * step, step), begins, strict=True):
        # Of a frame's header the checksum covers the first eight bytes.
        covered = bytes(content[start : start + 8]) + bytes(content[start + FRAME_HEADER_SIZE : start + step])
        found.append(checksum(covered, order, sums))
    return found


def _words(content: bytes, order: str) -> memoryview:
    """Read bytes as words in the byte order of the log."""
    if order == sys.byteorder:
        return memoryview(content).cast("I")
    turned = bytearray(len(content))
    for place in range(_WORD):
        turned[place::_WORD] = content[_WORD - 1 - place :: _WORD]
    return memoryview(turned).cast("I")


_ORDERS = {0x377F0682: "little", 0x377F0683: "big"}
_USUAL_PAGE_SIZE = 4096
# Each round adds one to the first salt, and a file of noise should not look like one of them.
_MOST_ROUNDS = 100_000
# A writer that is at work shows half of a commit; damage looks the same a moment later.
_SECONDS_BETWEEN_LOOKS = 0.05
_MOST_LOOKS = 20
# How far behind the last commit a first look goes: less costs a call nothing, and damage seldom is larger.
_SLOTS_LOOKED_AT = 64


class Frame(NamedTuple):
    """One page in a write-ahead log, by its number and where its content begins; `is_current` when it is of this round."""

    page: int
    start: int
    is_commit: bool
    is_current: bool
    # Whether it follows from the frame before it; False where that is unknown, or in former rounds.
    follows: bool


class Cause(StrEnum):
    """What may have left a write-ahead log as it is; the one that does least harm."""

    # A process ended in the middle of its last write, or the end was cut off; both look the same.
    KILLED = "a commit that a crash cut short, or damage"
    # The disk had written a later page of the last commit and not an earlier one.
    POWER_CUT = "a commit that a power cut cut short, or damage"
    # There are commits behind it, which begin only when the one before is on the disk.
    DAMAGE = "acknowledged commits are among them"


class Damage(NamedTuple):
    """What SQLite leaves unread, and what it takes to leave it so."""

    what: str
    cause: Cause


class WriteAheadLog:
    """The content of one, damaged or not."""

    def __init__(self, content: bytes, page_size: int | None = None) -> None:
        self._content = memoryview(content)
        self._size = len(content)
        self._order, self.has_sound_header = self._read_header()
        self.page_size = self._page_size(page_size)
        self._step = FRAME_HEADER_SIZE + self.page_size
        self.slots = max(0, self._size - HEADER_SIZE) // self._step
        self.salts = bytes(self._content[16:24]) if self.has_sound_header else self._salts_of_frames()
        self._frames: list[Frame | None] | None = None

    def _read_header(self) -> tuple[str, bool]:
        head = bytes(self._content[:HEADER_SIZE])
        order = _ORDERS.get(int.from_bytes(head[:4], "big"))
        if order is None or len(head) < HEADER_SIZE:
            return "little", False
        return order, checksum(head[:24], order) == stored_sums(head, 24)

    def _page_size(self, known: int | None) -> int:
        size = int.from_bytes(self._content[8:12], "big")
        if self.has_sound_header or (known is None and is_page_size(size)):
            return size
        return known or _USUAL_PAGE_SIZE

    def _salts_of_frames(self) -> bytes:
        """Take the salts of the first frames that agree: a round begins at the start of the file."""
        heads = (self._head(slot)[8:16] for slot in range(self.slots))
        return next((one for one, other in pairwise(heads) if one == other and any(one)), bytes(8))

    def _head(self, slot: int) -> bytes:
        start = HEADER_SIZE + slot * self._step
        return bytes(self._content[start : start + FRAME_HEADER_SIZE])

    @property
    def frames(self) -> list[Frame | None]:
        """Every place for a frame, in order; None where neither this round nor an earlier one has left one."""
        if self._frames is None:
            self._frames = list(self._read_frames())
        return self._frames

    def _read_frames(self) -> Iterator[Frame | None]:
        heads = [self._head(slot) for slot in range(self.slots)]
        stored = [stored_sums(bytes(self._content[:HEADER_SIZE]), 24), *(stored_sums(head, 16) for head in heads)]
        # Of former rounds, which lie behind this one, a file may have thousands.
        current = max((slot for slot, head in enumerate(heads, 1) if head[8:16] == self.salts), default=0)
        sums = checksums(self._content, self._order, self.page_size, stored[:current])
        for slot, head in enumerate(heads):
            if self._is_of_a_round(head[8:16]):
                page, is_current = int.from_bytes(head[:4], "big"), head[8:16] == self.salts
                follows = is_current and sums[slot] == stored[slot + 1]
                start = HEADER_SIZE + slot * self._step + FRAME_HEADER_SIZE
                yield Frame(page, start, is_commit=any(head[4:8]), is_current=is_current, follows=follows)
            else:
                yield None

    def _is_of_a_round(self, salts: bytes) -> bool:
        """Return whether salts are of this round or, each begun anew with the next number, of one before it."""
        age = (int.from_bytes(self.salts[:4], "big") - int.from_bytes(salts[:4], "big")) & _SUM
        return any(salts) and (salts == self.salts or 1 <= age <= _MOST_ROUNDS)

    @property
    def read_by_sqlite(self) -> int:
        """Count the frames that SQLite reads: up to the last commit before the first that is not whole."""
        last = 0
        if not self.has_sound_header:
            return last
        for count, frame in enumerate(self.frames, 1):
            if frame is None or not frame.is_current or not frame.follows:
                break
            if frame.is_commit:
                last = count
        return last

    @property
    def committed(self) -> int:
        """Count the frames up to the last committed one, read by SQLite or not.

        A place that holds nothing may have held a commit.
        """
        last = [slot for slot, frame in enumerate(self.frames) if frame is None or (frame.is_current and frame.is_commit)]
        return last[-1] + 1 if last else 0

    def damage(self) -> Damage | None:
        """Name what is there and left unread, if anything is."""
        if not self._size:
            return None
        if not self.has_sound_header:
            what = f"the header of the write-ahead log is damaged, and {self.slots} pages behind it are not read"
            return Damage(what, Cause.DAMAGE)
        read, committed = self.read_by_sqlite, self.committed
        if committed > read:
            broken = read + self._whole_after(read)
            cause = self._cause(broken)
            frames = f"{committed - read} frames from {read + 1} on are not read: {cause}"
            return Damage(f"frame {broken + 1} of the write-ahead log is damaged, and {frames}", cause)
        return self._cut_short()

    def _whole_after(self, read: int) -> int:
        """Count the frames behind the last commit that still are whole."""
        whole = 0
        for frame in self.frames[read:]:
            if frame is None or not frame.is_current or not frame.follows:
                break
            whole += 1
        return whole

    def _cause(self, broken: int) -> Cause:
        """Return the likely cause: behind a broken frame, a power cut leaves at most one commit, a crash none."""
        most = commits = 0
        for frame in self.frames[broken + 1 :]:
            if frame is None or not frame.is_current or not frame.follows:
                commits = 0
            elif frame.is_commit:
                commits += 1
                most = max(most, commits)
        if most > 1:
            return Cause.DAMAGE
        return Cause.POWER_CUT if most or None in self.frames[broken:] else Cause.KILLED

    def _cut_short(self) -> Damage | None:
        """Look for a transaction without its commit at the end. Its commit was never written, or was cut off with the end."""
        read = self.read_by_sqlite
        pages = self._whole_after(read)
        if pages:
            what = f"{pages} pages at the end of the write-ahead log are of a transaction without its commit"
            return Damage(f"{what}: {Cause.KILLED}", Cause.KILLED)
        rest = self._size - HEADER_SIZE - self.slots * self._step
        if rest > FRAME_HEADER_SIZE and self._head(self.slots)[8:16] == self.salts and read == self.slots:
            return Damage(f"the write-ahead log ends in the middle of a page: {Cause.KILLED}", Cause.KILLED)
        return None


def is_page_size(size: int) -> bool:
    return 512 <= size <= 65536 and size & (size - 1) == 0


def stored_sums(head: bytes, place: int) -> tuple[int, int]:
    return int.from_bytes(head[place : place + 4], "big"), int.from_bytes(head[place + 4 : place + 8], "big")


def damage_of(path: str) -> Damage | None:
    """Name what is damaged in the write-ahead log of a file. What a writer is just writing is not."""
    found = None
    for _ in range(_MOST_LOOKS):
        before, found = found, WriteAheadLog(_content(f"{path}-wal")).damage()
        if found is None or (before is not None and found.what == before.what):
            return found
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return None


def _content(wal: str) -> bytes:
    # Locks lie on the file itself and on its index, never on the log: it may be opened and closed.
    try:
        with open(wal, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def damaged(path: str, what: str) -> Damaged:
    return Damaged(
        f"{path}: {what}",
        hint=f"Nothing was changed. Copy the file and its -wal away first; then run: decklog recover {path}",
        path=path,
    )


def check_unused(path: str) -> None:
    """Refuse to begin a log where one has lost its file and kept its write-ahead log, which SQLite would remove."""
    slots = WriteAheadLog(_content(f"{path}-wal")).slots
    # A process that creates the log writes the file before its write-ahead log: it is looked at after that.
    if slots and not (os.path.exists(path) and os.path.getsize(path)):
        raise damaged(path, f"the file is gone or empty, and {slots} pages wait for it in its write-ahead log")


def looks_damaged(path: str, read: int) -> bool:
    """Return, by a few bytes, whether a closer look is needed when SQLite reads `read` frames of the write-ahead log."""
    try:
        with open(f"{path}-wal", "rb") as file:
            head = file.read(HEADER_SIZE)
            if not head:
                return False
            size = int.from_bytes(head[8:12], "big")
            order = _ORDERS.get(int.from_bytes(head[:4], "big"))
            if order is None or not is_page_size(size) or checksum(head[:24], order) != stored_sums(head, 24):
                return True
            step = FRAME_HEADER_SIZE + size
            descriptor, start = file.fileno(), HEADER_SIZE + read * step
            slots = range(start, start + _SLOTS_LOOKED_AT * step, step)
            return any(os.pread(descriptor, 8, slot + 8) == head[16:24] for slot in slots)
    except FileNotFoundError:
        return False


_MOST_TRIES = 400


def has_readable_schema(path: str) -> bool:
    """Return whether the way to the tables of a file can be read."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return bool(connection.execute("select count(*) from sqlite_schema").fetchall())
    except apsw.Error:
        return False
    finally:
        connection.close()


def readable_rows(path: str, table: str) -> Iterator[dict[str, Any]]:
    """Yield the readable rows of a table: forwards up to damage, backwards up to it, and by halves between."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        pages: Any = connection.execute("pragma page_count").fetchall()
        spans: list[tuple[int, int]] = [(1, max(1000, pages[0][0] * 500))]
        for _ in range(_MOST_TRIES):
            if not spans:
                return
            low, high = spans.pop()
            reading = _Span(connection, table, low, high)
            yield from reading.rows()
            spans += reading.unread()
    except apsw.Error:
        return  # not even the schema can be read: there is nothing to be had this way
    finally:
        connection.close()


class _Span:
    """Some rows of a table by their row ids, read from both ends."""

    def __init__(self, connection: apsw.Connection, table: str, low: int, high: int) -> None:
        self._connection = connection
        self._table = table
        self._low = low
        self._high = high
        self._is_read = False

    def rows(self) -> Iterator[dict[str, Any]]:
        for rowid, row in self._until_damage("asc"):
            self._low = rowid + 1
            yield row
        if not self._is_read:
            for rowid, row in self._until_damage("desc"):
                self._high = rowid - 1
                yield row

    def _until_damage(self, order: str) -> Iterator[tuple[int, dict[str, Any]]]:
        sql = f"select rowid, * from {self._table} where rowid between ? and ? order by rowid {order}"
        try:
            cursor = self._connection.execute(sql, (self._low, self._high))
            for row in cursor:
                names = [column[0] for column in cursor.get_description()]
                yield row[0], dict(zip(names[1:], row[1:], strict=True))
        except (apsw.Error, UnicodeDecodeError):
            return
        self._is_read = True

    def unread(self) -> list[tuple[int, int]]:
        """Halve what neither direction reached."""
        if self._is_read or self._high <= self._low:
            return []
        middle = (self._low + self._high) // 2
        return [(self._low, middle), (middle + 1, self._high)]
