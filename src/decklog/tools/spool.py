"""Output of a command on its way to disk: the beginning and the end of each stream, and what came in between is counted.

Each stream has one file for its beginning and two that take turns for its end. Every piece carries a number, which orders
the pieces of both streams as they arrived, and its place in its stream, which shows where something was left out.
"""

import codecs
import os
import struct
from dataclasses import dataclass
from pathlib import Path

STREAMS = ("stdout", "stderr")
DEFAULT_CAP = 1024 * 1024
_HEAD = struct.Struct(">QQI")


class Spool:
    """Takes the output of one command and keeps at most about `cap` bytes of each stream."""

    def __init__(self, folder: str, cap: int) -> None:
        self._number = 0
        self._streams = {name: _Stream(os.path.join(folder, name), max(cap, 4)) for name in STREAMS}

    def take(self, stream: str, data: bytes) -> None:
        """Keep one piece of output, or what there is room for."""
        self._streams[stream].take(self._number, data)
        self._number += 1

    def close(self) -> None:
        """Let go of the files."""
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

    def take(self, number: int, data: bytes) -> None:
        room = max(self._half - self._place, 0)
        if room:
            self._write(number, data[:room])
            data = data[room:]
        while data:
            if self._in_turn == 0 or self._in_turn >= self._quarter:
                self._turn, self._in_turn = self._turn ^ 1, 0
                self._open(f"tail{self._turn}")
            piece = data[: self._quarter]
            self._write(number, piece)
            self._in_turn += len(piece)
            data = data[len(piece) :]

    def _write(self, number: int, data: bytes) -> None:
        assert self._file is not None
        whole = _HEAD.pack(number, self._place, len(data)) + data
        while whole:
            whole = whole[os.write(self._file, whole) :]
        self._place = self._place + len(data)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


@dataclass(frozen=True)
class Chunk:
    """A passage of output from one stream."""

    stream: str
    text: str


@dataclass(frozen=True)
class Output:
    """What was kept of a command's output, in the order it arrived, and how many bytes were not."""

    chunks: tuple[Chunk, ...]
    cut_bytes: int

    @property
    def text(self) -> str:
        return "".join(chunk.text for chunk in self.chunks)


def read_output(folder: str | Path) -> Output:
    """Read what a spool keeps, also while it is being written."""
    pieces = sorted(
        (number, place, stream, data)
        for stream in STREAMS
        for part in ("head", "tail0", "tail1")
        for number, place, data in _pieces(Path(folder, f"{stream}.{part}"))
    )
    return _Reader().read(pieces)


def _pieces(path: Path) -> list[tuple[int, int, bytes]]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    found, at = [], 0
    while at + _HEAD.size <= len(content):
        number, place, size = _HEAD.unpack_from(content, at)
        at += _HEAD.size
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
        # No journal and no terminal takes a NUL byte.
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
        if self.texts and self.texts[-1][0] == stream:
            self.texts[-1][1].append(text)
        else:
            self.texts.append((stream, [text]))
