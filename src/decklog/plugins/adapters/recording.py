"""Record events of a framework: write them to the spool at once, and import them into the log in a thread.

The log never blocks the loop and never raises into it. Events that can't be imported stay in the spool, as those of hooks do,
until the next import.
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
from decklog.plugins.adapters.loops.calls import to_json_value

# A session, facts about the event, and the event.
RecordedEvent = tuple[str, dict[str, Any], dict[str, Any]]

_logger = logging.getLogger("decklog.plugins.adapters")
# Import events in batches after this time; by then a loop has completed a span that it just started.
_BATCH_SECONDS = 0.02
# The pause before a retry when the log can't be written; it doubles each time.
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 30.0
_PATIENCE_SECONDS = 5.0
_MOST_RUNS_CHECKED = 100


class EventRecorder:
    """Records the sessions of one program in this process. The base class of framework adapters.

    `trouble` is the problem with recording, if any.
    """

    def __init__(self, log: Decklog | AsyncDecklog, program: str) -> None:
        self.log = log.log if isinstance(log, AsyncDecklog) else log
        self._program = program
        self._spool = Spool(find_spool_folder(self.log))
        self._deferred: deque[Callable[[], Iterable[RecordedEvent]]] = deque()
        self._wake, self._flush_now = threading.Event(), threading.Event()
        self._start_lock = threading.Lock()
        self._delivery_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._has_closed_runs = False
        self._is_log_open = True
        self.trouble: str | None = None
        # Not `close`: adapters end sessions there, but a session that is open at exit is interrupted.
        atexit.register(self._stop)

    # Called by loops: these methods never raise and never wait for the log

    def record(self, session: str, facts: dict[str, Any], payload: dict[str, Any]) -> None:
        """Write an event to the spool, where it outlives this process."""
        self._write_to_spool([(session, facts, payload)])
        self._wake_thread()

    def record_later(self, make: Callable[[], Iterable[RecordedEvent]]) -> None:
        """Build and write events a moment later, when their source objects are complete."""
        self._deferred.append(make)
        self._wake_thread()

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
        """Wait until all events so far are in the log. Return False on timeout or if the log was closed.

        The remaining events stay in the spool.
        """
        end = time.monotonic() + seconds
        self._flush_now.set()
        try:
            while not self._deliver() or self._deferred or not self._spool.is_empty:
                if not self._is_log_open or time.monotonic() >= end:
                    return False
                time.sleep(_BATCH_SECONDS / 2)
            return True
        finally:
            self._flush_now.clear()

    def close(self) -> None:
        """Import waiting events, if possible, and end the thread."""
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

    def _wake_thread(self) -> None:
        self._wake.set()
        with self._start_lock:
            # A forked child does not have the parent's thread.
            if (self._thread is None or not self._thread.is_alive()) and not self._is_closed:
                self._thread = threading.Thread(target=self._run_thread, name="decklog-recording", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError as problem:  # the interpreter is going down
                    self.warn(problem)

    def _run_thread(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while self._is_log_open and not self._is_closed:
            self._wake.wait()
            self._flush_now.wait(_BATCH_SECONDS)
            self._wake.clear()
            if self._deliver():
                pause = _FIRST_PAUSE_SECONDS
            elif not self._is_closed:
                self._flush_now.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                self._wake.set()

    def _deliver(self) -> bool:
        """Write deferred events and import all waiting events; return False if the log refused."""
        with self._delivery_lock:
            while self._deferred:
                self._write_to_spool(self._build_events(self._deferred.popleft()))
            try:
                run_intake(self.log, self._spool)
                if not self._has_closed_runs:
                    # Only after the events of dead processes are imported.
                    close_interrupted(self.log, most=_MOST_RUNS_CHECKED)
                    self._has_closed_runs = True
            except Exception as problem:  # noqa: BLE001
                # Events stay in the spool; `decklog doctor agents` shows why.
                self._is_log_open = not isinstance(problem, Closed)
                self.warn(problem)
                self._save_problem(problem)
                return False
        self.trouble = None
        return True

    def _build_events(self, make: Callable[[], Iterable[RecordedEvent]]) -> list[RecordedEvent]:
        try:
            return list(make())
        except Exception as problem:  # noqa: BLE001
            # The objects of other programs may raise anything.
            self.warn(problem)
            return []

    def _write_to_spool(self, events: Iterable[RecordedEvent]) -> None:
        try:
            for session, facts, payload in events:
                content = json.dumps(to_json_value(payload)).encode()
                self._spool.put(self._program, session, {**facts, "session": session}, content, is_synced=False)
        except Exception as problem:  # noqa: BLE001
            # A full disk must not stop the agent.
            self.warn(problem)

    def _save_problem(self, problem: BaseException) -> None:
        try:
            self._spool.store_error(problem)
        except OSError as other:
            self.warn(other)


def find_spool_folder(log: Decklog) -> str:
    """Return the spool folder of a log, which its hooks use too."""
    found = locate(None)
    place = found if found.target == log.db.target else LogLocation(log.db.target, "named by the program", is_named=True)
    return spool_folder(place)
