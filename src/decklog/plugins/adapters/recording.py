"""Record events of a framework: they are written to the spool at once, and taken into the log by a thread.

The loop is never held up by the log and never ended by it. What can't be taken in waits in the spool, where hooks leave theirs
too; the next one who takes events in finds it there.
"""

import atexit
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Self

from decklog.agents.closing import close_interrupted
from decklog.agents.intake import run_intake
from decklog.agents.spool import Spool
from decklog.aio.log import AsyncDecklog
from decklog.core.errors import Closed
from decklog.location.locate import LogLocation, locate, spool_folder
from decklog.log import Decklog
from decklog.plugins.adapters.loops.calls import as_json

# A session, facts about the event, and the event.
RecordedEvent = tuple[str, dict[str, Any], dict[str, Any]]

_logger = logging.getLogger("decklog.plugins.adapters")
# What comes so soon after each other is written together, and what a loop adds to a span right after its start is there by then.
_TOGETHER_SECONDS = 0.02
# A log that can't be written is tried again after this, then twice this, and so on.
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 30.0
_PATIENCE_SECONDS = 5.0
_LOOKED_AT = 100


class EventRecorder:
    """Records the sessions of one program in this process. Adapters of frameworks derive from it.

    `trouble` is why not everything is on record yet; None when it is.
    """

    def __init__(self, log: Decklog | AsyncDecklog, program: str) -> None:
        self.log = log.log if isinstance(log, AsyncDecklog) else log
        self._program = program
        self._spool = Spool(spool_of(self.log))
        self._soon: deque[Callable[[], Iterable[RecordedEvent]]] = deque()
        self._wake, self._hurry = threading.Event(), threading.Event()
        self._starting = threading.Lock()
        self._taking = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._has_looked = False
        self._is_log_open = True
        self.trouble: str | None = None
        # Not `close`, which ends sessions in an adapter: at exit, one that was not closed is interrupted.
        atexit.register(self._stop)

    # What a loop calls: nothing here raises, and nothing waits for the log

    def record(self, session: str, facts: dict[str, Any], payload: dict[str, Any]) -> None:
        """Note an event; from then on it outlives this process."""
        self._note([(session, facts, payload)])
        self._poke()

    def soon(self, make: Callable[[], Iterable[RecordedEvent]]) -> None:
        """Note events a moment later, when what they are made of is complete."""
        self._soon.append(make)
        self._poke()

    def warn(self, problem: BaseException | str) -> None:
        """Log a warning about a problem with recording, once for each problem."""
        text = problem if isinstance(problem, str) else f"{type(problem).__name__}: {problem}"
        if text != self.trouble:
            self.trouble = text
            _logger.warning("not everything is on record yet: %s", text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, _problem: BaseException | None, _trace: object) -> None:
        self.close()

    # Waiting for delivery

    def flush(self, seconds: float = _PATIENCE_SECONDS) -> bool:
        """Wait until all events so far are in the log; return False when that takes longer or the log was closed.

        They stay in the spool then.
        """
        end = time.monotonic() + seconds
        self._hurry.set()
        try:
            while not self._take() or self._soon or not self._spool.is_empty:
                if not self._is_log_open or time.monotonic() >= end:
                    return False
                time.sleep(_TOGETHER_SECONDS / 2)
            return True
        finally:
            self._hurry.clear()

    def close(self) -> None:
        """Take in what waits, as far as that is possible, and end the thread."""
        self._stop()

    def _stop(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        atexit.unregister(self._stop)
        self.flush()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_PATIENCE_SECONDS)

    # The thread

    def _poke(self) -> None:
        self._wake.set()
        with self._starting:
            # After a fork the thread is the parent's.
            if (self._thread is None or not self._thread.is_alive()) and not self._is_closed:
                self._thread = threading.Thread(target=self._work, name="decklog-recording", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError as problem:  # the interpreter is going down
                    self.warn(problem)

    def _work(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while self._is_log_open and not self._is_closed:
            self._wake.wait()
            self._hurry.wait(_TOGETHER_SECONDS)
            self._wake.clear()
            if self._take():
                pause = _FIRST_PAUSE_SECONDS
            elif not self._is_closed:
                self._hurry.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                self._wake.set()

    def _take(self) -> bool:
        """Note what is complete by now and take in what waits; False when the log did not let us."""
        with self._taking:
            while self._soon:
                self._note(self._made(self._soon.popleft()))
            try:
                run_intake(self.log, self._spool)
                if not self._has_looked:
                    # After what a process that died has left to be taken in.
                    close_interrupted(self.log, most=_LOOKED_AT)
                    self._has_looked = True
            except Exception as problem:  # noqa: BLE001
                # Events stay in the spool; `decklog doctor agents` shows why.
                self._is_log_open = not isinstance(problem, Closed)
                self.warn(problem)
                self._leave_word(problem)
                return False
        self.trouble = None
        return True

    def _made(self, make: Callable[[], Iterable[RecordedEvent]]) -> list[RecordedEvent]:
        try:
            return list(make())
        except Exception as problem:  # noqa: BLE001
            # Other programs may put anything anywhere.
            self.warn(problem)
            return []

    def _note(self, events: Iterable[RecordedEvent]) -> None:
        try:
            for session, facts, payload in events:
                content = json.dumps(as_json(payload)).encode()
                self._spool.put(self._program, session, {**facts, "session": session}, content, is_synced=False)
        except Exception as problem:  # noqa: BLE001
            # A full disk is nothing that an agent should stop for.
            self.warn(problem)

    def _leave_word(self, problem: BaseException) -> None:
        try:
            self._spool.store_error(problem)
        except OSError as other:
            self.warn(other)


def spool_of(log: Decklog) -> str:
    """Return the spool folder of a log, which its hooks use, too."""
    found = locate(None)
    place = found if found.target == log.db.target else LogLocation(log.db.target, "named by the program", is_named=True)
    return spool_folder(place)
