"""Reading and checking what a target lacks in a process of its own, while the one that asks writes it.

Threads would not do: whoever checks computes, and lets whoever writes go on for a row at a time.
"""

import json
import marshal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from decklog.journal.chain import HASH, SEQ, Stretch
from decklog.transfer.move import child as processes
from decklog.transfer.move.child import child
from decklog.transfer.reading import rows_of

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from typing import IO

    from decklog.log import Decklog

    # A stream, the number and hash of the entry to go on after, and the number of the last that is wanted.
    Lacking = tuple[str, int, str, int]

_LENGTH = 8


def stretches(log: "Decklog", lacking: "Iterable[Lacking]") -> "Iterator[Stretch]":
    """Yield what is lacking, each entry checked against the one before it."""
    for stream, after, previous, until in lacking:
        for rows in rows_of(log, stream, after=after, until=until):
            yield Stretch.checked(stream, previous, rows)
            previous = rows[-1][HASH]


@contextmanager
def _read_here(log: "Decklog", lacking: "list[Lacking]") -> "Iterator[Iterator[Stretch]]":
    yield stretches(log, lacking)


@contextmanager
def _read_elsewhere(log: "Decklog", lacking: "list[Lacking]") -> "Iterator[Iterator[Stretch]]":
    with child(__name__, [log.db.target, lacking]) as reading:
        yield _as_they_come(log, lacking, reading)


def read_ahead(log: "Decklog", lacking: "list[Lacking]") -> "AbstractContextManager[Iterator[Stretch]]":
    """Begin to read what is lacking. Another process would see nothing of a transaction that the caller holds open."""
    entries = sum(until - after for _, after, _, until in lacking)
    is_own = log.db.is_in_transaction or log.db.is_reading
    return (_read_here if is_own or entries < processes.WORTH_A_PROCESS else _read_elsewhere)(log, lacking)


def _as_they_come(log: "Decklog", lacking: "list[Lacking]", reading: "subprocess.Popen[bytes]") -> "Iterator[Stretch]":
    """Yield the stretches that a process sends; where it stops too soon, go on here, and meet what it has met."""
    assert reading.stdout is not None
    left = {stream: (stream, after, previous, until) for stream, after, previous, until in lacking}
    for stretch in _received(reading.stdout):
        last, until = stretch.rows[-1], left[stretch.stream][-1]
        left[stretch.stream] = stretch.stream, last[SEQ], last[HASH], until
        yield stretch
    yield from stretches(log, [one for one in left.values() if one[1] < one[-1]])


def _received(pipe: "IO[bytes]") -> "Iterator[Stretch]":
    while len(length := pipe.read(_LENGTH)) == _LENGTH:
        size = int.from_bytes(length, "big")
        said = pipe.read(size)
        if len(said) < size:
            return
        yield Stretch(*marshal.loads(said))


def main() -> None:
    """Read the log that is named on standard input; write what it gives on standard output, piece by piece."""
    from decklog.log import Decklog

    target, lacking = json.load(sys.stdin)
    with Decklog.open(target, read_only=True) as log:
        for stretch in stretches(log, lacking):
            said = marshal.dumps((stretch.stream, stretch.previous, stretch.rows, stretch.images))
            sys.stdout.buffer.write(len(said).to_bytes(_LENGTH, "big"))
            sys.stdout.buffer.write(said)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
