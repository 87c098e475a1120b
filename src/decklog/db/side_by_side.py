"""Reading one moment of a log in several processes side by side, since one Python process uses one core.

Whoever reads is forked, and each takes the next part that nobody has taken yet. A process that ends before it has said what came
of its parts is an error: what it was to look at was not looked at.
"""

import marshal
import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from decklog.core.cores import usable_cores
from decklog.core.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    # Looks at something and says what came of it, in plain values; None where whoever asked has to look for themselves.
    Part = Callable[[], Any]

# More share one disk and one cache, and would gain little.
_MOST_PROCESSES = 4
# Each part's number is one byte in a pipe.
MOST_PARTS = 255
_BEGIN, _BEGUN, _GO = b"b", b"r", b"g"
_LENGTH = 8


def processes() -> int:
    """Return how many processes can read side by side, this one among them.

    A child of a process with other threads would have their locks, held for ever.
    """
    if threading.active_count() > 1 or not _has_one_thread():
        return 1
    return min(_MOST_PROCESSES, usable_cores())


def _has_one_thread() -> bool:
    """Ask the kernel too: libraries have threads that Python does not know of."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


class Queue:
    """The numbers of parts that are still to be taken, in a pipe that all processes read from."""

    def __init__(self, count: int) -> None:
        self._reading, writing = os.pipe()
        os.write(writing, bytes(range(count)))
        os.close(writing)

    def __iter__(self) -> "Iterator[int]":
        while number := os.read(self._reading, 1):
            yield number[0]

    def close(self) -> None:
        os.close(self._reading)


class Helper:
    """A forked process that reads the same moment, as its parent sees it.

    `read` runs a job in one consistent read, and `look` is a first statement, which settles what the read will see.
    """

    def __init__(
        self, parts: "Sequence[Part]", queue: Queue, *, read: "Callable[[Callable[[], Any]], Any]", look: "Callable[[], object]"
    ) -> None:
        told, self._telling = os.pipe()
        self._hearing, saying = os.pipe()
        self._has_answered = False
        self.pid = os.fork()
        if self.pid:
            os.close(told)
            os.close(saying)
            return
        try:
            os.close(self._telling)
            os.close(self._hearing)
            _Child(parts, queue, told, saying).work(read, look)
            os._exit(0)
        finally:
            os._exit(1)

    def begin(self) -> None:
        """Have a read begun, in place of the one that was begun before."""
        self._tell(_BEGIN)

    def wait_until_begun(self) -> None:
        if os.read(self._hearing, 1) != _BEGUN:
            raise _gone()

    def go(self) -> None:
        """Have parts taken and looked at."""
        self._tell(_GO)

    def answer(self) -> "dict[int, Any]":
        """Wait for what came of the parts that were taken, by their numbers."""
        said = b""
        while more := os.read(self._hearing, 1 << 16):
            said += more
        if len(said) < _LENGTH or len(said) - _LENGTH != int.from_bytes(said[:_LENGTH], "big"):
            raise _gone()
        self._has_answered = True
        found: dict[int, Any] = marshal.loads(said[_LENGTH:])
        return found

    def end(self) -> None:
        """Let go of the process; one that is still at work is ended."""
        os.close(self._telling)
        os.close(self._hearing)
        with suppress(ChildProcessError):  # a program may have all its children forgotten as they end
            if not self._has_answered and os.waitpid(self.pid, os.WNOHANG) == (0, 0):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def _tell(self, word: bytes) -> None:
        try:
            os.write(self._telling, word)
        except BrokenPipeError:
            raise _gone() from None


def _gone() -> Unavailable:
    return Unavailable(
        "a process that read a part of the log ended before it was done, so that part was not looked at",
        hint="Try again; where it happens again, see what ends processes here, such as too little memory.",
    )


class _Child:
    """What a helper does in its own process."""

    def __init__(self, parts: "Sequence[Part]", queue: Queue, told: int, saying: int) -> None:
        self._parts = parts
        self._queue = queue
        self._told = told
        self._saying = saying

    def work(self, read: "Callable[[Callable[[], Any]], Any]", look: "Callable[[], object]") -> None:
        word = os.read(self._told, 1)
        while word == _BEGIN:
            word = read(lambda: self._begun(look))

    def _begun(self, look: "Callable[[], object]") -> bytes:
        """Settle the moment, and look at parts if it is the right one; else give the next word."""
        look()
        os.write(self._saying, _BEGUN)
        word = os.read(self._told, 1)
        if word == _GO:
            answer = marshal.dumps({number: self._came_of(number) for number in self._queue})
            said = memoryview(len(answer).to_bytes(_LENGTH, "big") + answer)
            while said:
                said = said[os.write(self._saying, said) :]
        return word

    def _came_of(self, number: int) -> "Any":
        try:
            return self._parts[number]()
        except Exception:  # noqa: BLE001 - whoever asked looks for themselves, and meets the same
            return None


def taken(parts: "Sequence[Part]", queue: Queue, helpers: "Sequence[Helper]") -> "list[Any]":
    """Look at parts together with helpers that have begun; give what came of each."""
    for helper in helpers:
        helper.go()
    found = {number: parts[number]() for number in queue}
    for helper in helpers:
        found |= helper.answer()
    if len(found) < len(parts):
        raise _gone()
    return [found[number] for number in range(len(parts))]
