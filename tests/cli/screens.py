"""A terminal of its own for a program, read as a screen."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pyte

from tests.db.processes import environment


class Terminal:
    """Runs `decklog` on a terminal of a size, types, and gives what is to be seen."""

    def __init__(self, *words: str, cwd: Path, columns: int = 100, lines: int = 30, **variables: str) -> None:
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._ours, theirs = pty.openpty()
        self._size(theirs, columns, lines)
        own = {"HOME": str(cwd / "home"), "TERM": "linux", "LC_ALL": "C.UTF-8", **variables}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "decklog", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            env={name: value for name, value in environment(**own).items() if name not in ("COLUMNS", "LINES")},
            start_new_session=True,
        )
        os.close(theirs)
        os.set_blocking(self._ours, False)
        self.sent = b""
        # To read every character of the screen takes as long as a test waits before it looks again.
        self._read: str | None = None

    @staticmethod
    def _size(file: int, columns: int, lines: int) -> None:
        fcntl.ioctl(file, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, columns: int, lines: int) -> None:
        self._screen.resize(lines, columns)
        self._read = None
        self._size(self._ours, columns, lines)
        self.process.send_signal(signal.SIGWINCH)

    def hang_up(self) -> None:
        """Close the terminal, as a lost connection does."""
        os.dup2(os.open(os.devnull, os.O_RDWR), self._ours)

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    @property
    def shown(self) -> str:
        """Take in what came, and give the screen as text."""
        while True:
            try:
                part = os.read(self._ours, 65536)
            except (BlockingIOError, OSError):
                break
            if not part:
                break
            self.sent += part
            self._stream.feed(part)
            self._read = None
        if self._read is None:
            self._read = "\n".join(line.rstrip() for line in self._screen.display)
        return self._read

    @property
    def cells(self) -> list[list[pyte.screens.Char]]:
        """Give the characters of the screen with their colours, line by line."""
        buffer, size = self._screen.buffer, self._screen
        return [[buffer[line][column] for column in range(size.columns)] for line in range(size.lines)]

    def shows(self, *texts: str) -> bool:
        seen = self.shown
        return all(text in seen for text in texts)

    def style_of(self, text: str) -> object:
        """Give the character that a text begins with, with its colours."""
        for number, line in enumerate(self._screen.display):
            if (place := line.find(text)) >= 0:
                return self._screen.buffer[number][place]
        raise AssertionError(f"{text!r} is not on the screen:\n{self.shown}")

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        os.close(self._ours)
