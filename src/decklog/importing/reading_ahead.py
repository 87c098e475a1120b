"""Reading in a process of its own: while one takes a source apart, the other writes what came before.

What is read goes through a pipe, and little more than it holds waits in memory. Either process may be killed: the reader ends
with the pipe, and whoever writes is told.
"""

import fcntl
import gc
import os
import pickle
import subprocess
import sys
from collections import deque
from contextlib import suppress
from importlib import import_module
from termios import FIONREAD
from threading import Condition, Thread
from typing import TYPE_CHECKING

from decklog.core.cores import usable_cores
from decklog.core.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO, Any

    # Gives what it reads, part by part; it is told what share of the work that either side can do is the reader's.
    Reading = Callable[[Any, "Balance"], Iterator[Any]]

# To start a process costs as much as writing some megabytes.
WORTH_A_PROCESS = 8 * 1024**2
_PIPE_BYTES = 1024**2
# Only Linux can change the size of a pipe.
_SET_PIPE_SIZE, _GET_PIPE_SIZE = (getattr(fcntl, f"F_{name}PIPE_SZ", None) for name in ("SET", "GET"))
_USUAL_PIPE_BYTES = 16 * 1024
# So much waits to be sent, about twice what a writer takes at once.
_AHEAD_BYTES = 4 * 1024**2
_STEP, _LEAST_SHARE = 0.05, 0.2
# What the writer tells the reader each time that it asks for more.
_HAS_MORE, _WAITS = b"1", b"0"
_SIGNS = 4096
# Where the two were as fast as each other for transcripts of code and logs.
_FIRST_SHARE = 0.6


class Balance:
    """Which of two processes does what both can do: the one that would else wait for the other."""

    def __init__(self, share: float) -> None:
        self.share = share
        self._owed = 0.0

    def is_mine(self) -> bool:
        """Say whether the reader does the next piece."""
        self._owed += self.share
        if self._owed < 1:
            return False
        self._owed -= 1
        return True

    def adjust(self, *, is_writer_behind: bool) -> None:
        """Take more of the work while the writer has not taken what was read before, and less while it waits for more."""
        step = _STEP if is_writer_behind else -_STEP
        self.share = min(1.0, max(_LEAST_SHARE, self.share + step))


def read(reading: "Reading", asked: "Any", size: int) -> "Iterator[Any]":
    """Give what a function reads, in its order; in another process where so many bytes are worth it and a core is there."""
    if size < WORTH_A_PROCESS or usable_cores() < 2:
        # The writer checks and redacts what it gets anyway.
        yield from reading(asked, Balance(0.0))
        return
    yield from _read_there(reading, asked)


def _read_there(reading: "Reading", asked: "Any") -> "Iterator[Any]":
    words = [sys.executable, "-P", "-m", __name__, reading.__module__, reading.__qualname__]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # In a session of its own: who is interrupted at the terminal ends it.
    process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(OSError):
            if _SET_PIPE_SIZE is not None:
                fcntl.fcntl(process.stdout.fileno(), _SET_PIPE_SIZE, _PIPE_BYTES)
        _ask(process.stdin, asked)
        # A reader that has read all takes no signs any more, and waits until all that it read is taken.
        os.set_blocking(process.stdin.fileno(), False)
        while (part := _next(process.stdout)) is not None:
            if isinstance(part, BaseException):
                raise part
            yield part
            _tell(process.stdin, _HAS_MORE if _waiting(process.stdout) else _WAITS)
    finally:
        process.kill()
        process.stdout.close()
        # What nobody took any more is of no use.
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.wait()


def _ask(pipe: "IO[bytes]", asked: "Any") -> None:
    """Tell the reader what to read."""
    try:
        pickle.dump(asked, pipe)
        pipe.flush()
    except BrokenPipeError:
        raise _ended() from None


def _tell(pipe: "IO[bytes]", sign: bytes) -> None:
    """Tell the reader whether the writer has to wait for it, unless it has ended or listens no more."""
    with suppress(BrokenPipeError, BlockingIOError):
        os.write(pipe.fileno(), sign)


def _told(pipe: "IO[bytes]") -> bytes:
    """Take what the writer has told since it was last asked."""
    try:
        return os.read(pipe.fileno(), _SIGNS)
    except BlockingIOError:
        return b""


def _next(pipe: "IO[bytes]") -> "Any":
    """Take the next part from the pipe; None is the last one."""
    try:
        return pickle.load(pipe)
    except (EOFError, pickle.UnpicklingError):
        raise _ended() from None


def _ended() -> Unavailable:
    return Unavailable("the process that reads ahead ended before it had read all", hint="Run the import again.")


def _waiting(pipe: "IO[bytes]") -> int:
    """Count the bytes in a pipe that nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(pipe.fileno(), FIONREAD, bytes(4)), sys.byteorder)


class Sending:
    """Sends parts in a thread of its own, so that the next ones are read while the writer is busy with those before.

    The pipe alone holds less than the writer takes at once: it would have to wait for the rest of it, and the reader before that.
    """

    def __init__(self, pipe: "IO[bytes]") -> None:
        # A part that does not fit into the rest of a page of the pipe begins the next one, so that up to half of it stays empty.
        size = _USUAL_PIPE_BYTES if _GET_PIPE_SIZE is None else fcntl.fcntl(pipe.fileno(), _GET_PIPE_SIZE)
        self._pipe, self._room = pipe, size // 2
        self._parts: deque[bytes] = deque()
        self._bytes = 0
        self._changed = Condition()
        Thread(target=self._send, daemon=True).start()

    def put(self, part: bytes) -> None:
        """Send a part after those before, once few enough bytes of them are left."""
        with self._changed:
            if not self._bytes and _waiting(self._pipe) + len(part) <= self._room:
                self._write(part)
                return
            self._changed.wait_for(lambda: self._bytes < _AHEAD_BYTES)
            self._parts.append(part)
            self._bytes += len(part)
            self._changed.notify_all()

    def finish(self) -> None:
        """Wait until all is sent."""
        with self._changed:
            self._changed.wait_for(lambda: not self._bytes)

    def _write(self, part: bytes) -> None:
        self._pipe.write(part)
        self._pipe.flush()

    def _send(self) -> None:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._parts)
                    part = self._parts.popleft()
                self._write(part)
                with self._changed:
                    self._bytes -= len(part)
                    self._changed.notify_all()
        except BrokenPipeError:
            # Nobody is there any more to read for.
            os._exit(0)


def _main() -> None:
    reading: Reading = getattr(import_module(sys.argv[1]), sys.argv[2])
    # What is loaded stays: nobody need look through it for what can be freed.
    gc.freeze()
    balance = Balance(_FIRST_SHARE)
    sending, signs = Sending(sys.stdout.buffer), sys.stdin.buffer
    try:
        asked = pickle.load(signs)
        os.set_blocking(signs.fileno(), False)
        for part in reading(asked, balance):
            # Not by how long a write takes, which on a busy machine is anybody's time, nor by what waits in the pipe: that holds
            # less than the writer takes at once, and so is empty while the writer is far behind.
            for sign in _told(signs):
                balance.adjust(is_writer_behind=sign == _HAS_MORE[0])
            sending.put(pickle.dumps(part, pickle.HIGHEST_PROTOCOL))
        last = None
    except Exception as problem:  # noqa: BLE001 - whoever asked is told, as if it had read by itself
        last = problem
    sending.put(pickle.dumps(last))
    sending.finish()


if __name__ == "__main__":
    with suppress(BrokenPipeError, KeyboardInterrupt):
        _main()
    # Nothing is left to be flushed, and a pipe that nobody reads would be complained about.
    os._exit(0)
