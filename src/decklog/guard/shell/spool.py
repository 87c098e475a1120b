"""Store the output of a command: the beginning and the end of each stream; the middle is only counted.

Each stream has one file for its beginning and two alternating files for its end. Each chunk has its arrival time in nanoseconds,
which orders both streams, and its offset in the stream, which shows gaps.
"""

import codecs
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

STREAMS = ("stdout", "stderr")
DEFAULT_CAP = 1024 * 1024
HEAD = struct.Struct(">QQI")


class OutputSpool:
    """Writes the output of one command, about `cap` bytes of each stream at most."""

    def __init__(self, folder: str, cap: int) -> None:
        self._arrived = 0
        self._streams = {name: _Stream(os.path.join(folder, name), max(cap, 4)) for name in STREAMS}

    def take(self, stream: str, data: bytes) -> None:
        """Write one chunk of output, or as much as fits."""
        # Strictly increasing, even if the clock goes back.
        self._arrived = max(self._arrived + 1, time.time_ns())
        self._streams[stream].take(self._arrived, data)

    def close(self) -> None:
        """Close the files."""
        for stream in self._streams.values():
            stream.close()


class _Stream:
    def __init__(self, path: str, cap: int) -> None:
        self._path = path
        self._half, self._quarter = cap // 2, cap // 4
        self._place = 0
        self._turn = 0
        self._in_turn = 0
        self._file: int | None = None
        self._open("head")

    def _open(self, part: str) -> None:
        self.close()
        self._file = os.open(f"{self._path}.{part}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)

    def take(self, arrived: int, data: bytes) -> None:
        room = max(self._half - self._place, 0)
        if room:
            self._write(arrived, data[:room])
            data = data[room:]
        # Skip the part of a large chunk that would be overwritten at once.
        skipped = max(len(data) - 2 * self._quarter, 0)
        self._place += skipped
        data = data[skipped:]
        while data:
            if self._in_turn in (0, self._quarter):
                self._turn, self._in_turn = self._turn ^ 1, 0
                self._open(f"tail{self._turn}")
            piece = data[: self._quarter - self._in_turn]
            self._write(arrived, piece)
            self._in_turn += len(piece)
            data = data[len(piece) :]

    def _write(self, arrived: int, data: bytes) -> None:
        assert self._file is not None
        whole = HEAD.pack(arrived, self._place, len(data)) + data
        while whole:
            whole = whole[os.write(self._file, whole) :]
        self._place += len(data)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


@dataclass(frozen=True)
class Chunk:
    """A part of the output from one stream."""

    stream: str
    text: str


@dataclass(frozen=True)
class Output:
    """The stored output of a command in order of arrival, and the number of bytes left out."""

    chunks: tuple[Chunk, ...]
    cut_bytes: int

    @property
    def text(self) -> str:
        return "".join(chunk.text for chunk in self.chunks)


def read_output(folder: str | Path) -> Output:
    """Read the output; the command may still be running."""
    pieces = sorted(
        (number, place, stream, data)
        for stream in STREAMS
        for part in ("head", "tail0", "tail1")
        for number, place, data in _pieces(os.path.join(folder, f"{stream}.{part}"))
    )
    return _Reader().read(pieces)


def _pieces(path: str) -> list[tuple[int, int, bytes]]:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return []
    found, at = [], 0
    while at + HEAD.size <= len(content):
        number, place, size = HEAD.unpack_from(content, at)
        at += HEAD.size
        if at + size > len(content):
            break
        found.append((number, place, content[at : at + size]))
        at += size
    return found


class _Reader:
    def __init__(self) -> None:
        make = codecs.getincrementaldecoder("utf-8")
        self.decoders = {stream: make(errors="replace") for stream in STREAMS}
        self.places = dict.fromkeys(STREAMS, 0)
        self.texts: list[tuple[str, list[str]]] = []
        self.cut = 0

    def read(self, pieces: list[tuple[int, int, str, bytes]]) -> Output:
        for _, place, stream, data in pieces:
            missing = place - self.places[stream]
            if missing > 0:
                self.cut += missing
                self._add(stream, f"{self.decoders[stream].decode(b'', final=True)}\n[… {missing} bytes left out …]\n")
                self.decoders[stream].reset()
            self.places[stream] = place + len(data)
            self._add(stream, self.decoders[stream].decode(data))
        for stream in STREAMS:
            self._add(stream, self.decoders[stream].decode(b"", final=True))
        return Output(tuple(Chunk(stream, "".join(parts)) for stream, parts in self.texts), self.cut)

    def _add(self, stream: str, text: str) -> None:
        if not text:
            return
        # NUL bytes can't be stored or shown.
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
        if self.texts and self.texts[-1][0] == stream:
            self.texts[-1][1].append(text)
        else:
            self.texts.append((stream, [text]))
