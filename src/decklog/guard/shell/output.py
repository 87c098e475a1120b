"""Read the stored output of a command: both streams in order of arrival."""

import codecs
import os
from dataclasses import dataclass
from pathlib import Path

from decklog.guard.shell.spool import HEAD, STREAMS


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
