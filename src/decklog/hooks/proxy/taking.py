"""Separate process that takes the proxy's lines into the log; it outlives the proxy."""

import os
import select
import sys
import time
from collections.abc import Mapping

from decklog.agents.spool import Spool
from decklog.location.locate import LogLocation, of_session, spool_folder
from decklog.log import Decklog

# Lines within this time are taken in together.
_TOGETHER_SECONDS = 0.1
# Delay before the next try if a log can't be written.
_AGAIN_SECONDS = 2.0
# Number of tries after the end of the proxy; then the next intake takes over.
_LAST_TRIES = 5
_CHUNK = 65536


class Taker:
    """The proxy's end of the pipe to the intake process."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        os.set_blocking(pipe, False)

    def wake(self) -> None:
        """Signal that lines wait; a full pipe already signals it."""
        try:
            os.write(self._pipe, b"\n")
        except OSError:
            # The pipe is full, or the process is gone and the next intake takes over.
            return

    def tell(self, folder: str) -> None:
        """Send a folder whose sessions are recorded from now on."""
        os.set_blocking(self._pipe, True)
        try:
            os.write(self._pipe, os.fsencode(folder).replace(b"\n", b"\0") + b"\n")
        except OSError:
            return
        finally:
            os.set_blocking(self._pipe, False)


def start(environment: Mapping[str, str], db: str | None) -> Taker:
    """Start the process in a new session, so that it survives the proxy."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    if os.fork():
        os.close(reading)
        return Taker(writing)
    try:
        os.close(writing)
        os.setsid()
        silence = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silence, descriptor)
        _Taking(reading, environment, db).run()
    finally:
        os._exit(0)


class _Taking:
    """Intake loop that runs while the proxy lives, and once more after its end."""

    def __init__(self, pipe: int, environment: Mapping[str, str], db: str | None) -> None:
        self._pipe = pipe
        self._environment = environment
        self._db = db
        self._places: dict[str, tuple[LogLocation, Spool]] = {}
        self._logs: dict[str, Decklog] = {}
        self._rest = b""

    def run(self) -> None:
        is_done, is_open = True, True
        while is_open:
            # A failed intake is retried even if no line follows.
            select.select([self._pipe], [], [], None if is_done else _AGAIN_SECONDS)
            is_open = self._read_pipe()
            # One round at a time: a fast sender would otherwise keep the CPU busy.
            is_done = self._take_in(is_one_round=True)
        for _ in range(_LAST_TRIES):
            if self._take_in(is_one_round=False):
                return
            time.sleep(_AGAIN_SECONDS)

    def _read_pipe(self) -> bool:
        """Read the pipe for a moment; return False if the proxy is gone."""
        end = time.monotonic() + _TOGETHER_SECONDS
        while (left := end - time.monotonic()) > 0:
            if select.select([self._pipe], [], [], left)[0]:
                words = os.read(self._pipe, _CHUNK)
                if not words:
                    return False
                self._learn(words)
        return True

    def _learn(self, words: bytes) -> None:
        *lines, self._rest = (self._rest + words).split(b"\n")
        for folder in filter(None, lines):
            path = os.fsdecode(folder.replace(b"\0", b"\n"))
            place = of_session(path, self._environment, self._db)
            if place is not None:
                spool = spool_folder(place)
                self._places.setdefault(spool, (place, Spool(spool)))

    def _take_in(self, *, is_one_round: bool) -> bool:
        """Take in the lines of every log; return False if some still wait."""
        done = [self._take_in_at(place, spool, is_one_round=is_one_round) for place, spool in self._places.values()]
        return all(done)

    def _take_in_at(self, place: LogLocation, spool: Spool, *, is_one_round: bool) -> bool:
        from decklog.agents.intake import take_in

        try:
            spool.sync()
            log = self._logs.get(spool.folder)
            if log is None:
                log = self._logs[spool.folder] = place.open()
            return not take_in(log, spool, is_one_round=is_one_round).is_left_to_another and spool.is_empty
        except Exception as problem:  # noqa: BLE001
            # The next round retries the intake; `decklog doctor agents` shows the error.
            spool.say_trouble(problem)
            if (log := self._logs.pop(spool.folder, None)) is not None:
                log.close()
            return False
