"""Output of a command on its way to disk: the beginning and the end of each stream, and what came in between is counted.

Each stream has one file for its beginning and two that take turns for its end. Every piece carries the time when it arrived, in
nanoseconds, which orders the pieces of both streams, and its place in its stream, which shows where something was left out.
"""

import os
import struct
import time

STREAMS = ("stdout", "stderr")
DEFAULT_CAP = 1024 * 1024
HEAD = struct.Struct(">QQI")


class OutputSpool:
    """Takes the output of one command and keeps at most about `cap` bytes of each stream."""

    def __init__(self, folder: str, cap: int) -> None:
        self._arrived = 0
        self._streams = {name: _Stream(os.path.join(folder, name), max(cap, 4)) for name in STREAMS}

    def take(self, stream: str, data: bytes) -> None:
        """Keep one piece of output, or what there is room for."""
        # Never the same twice, and never back: the order counts, whatever the clock does.
        self._arrived = max(self._arrived + 1, time.time_ns())
        self._streams[stream].take(self._arrived, data)

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

    def take(self, arrived: int, data: bytes) -> None:
        room = max(self._half - self._place, 0)
        if room:
            self._write(arrived, data[:room])
            data = data[room:]
        # Of a large piece only its end can stay: the rest would be overwritten at once.
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
