"""Spooling of the messages between an editor and an agent, with a separate process for the intake.

Each line is stored in the spool of its session's log before it is relayed. So even after a kill, no message that a side received
is lost. The proxy never waits for the log.
"""

import json
import os
import sys
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from decklog.agents.acp.wire import home_of
from decklog.agents.intake import Connection
from decklog.agents.spool import Spool
from decklog.core.errors import NotAccepted
from decklog.hooks.proxy import taking
from decklog.location.locate import LogLocation, of_session, spool_folder

# Check for room after this number of lines, and for each long line.
_LINES_BETWEEN = 64
_LONG = 1 << 20
_MOST_COMPLAINTS = 20


class Recording:
    """Record of one connection."""

    def __init__(self, environment: Mapping[str, str], db: str | None) -> None:
        self.name = uuid.uuid4().hex[:16]
        self._environment = environment
        self._db = db
        self._lock = threading.Lock()
        self._number = 0
        self._places: dict[str, _LogSpool | None] = {}
        # Fork before any thread starts: forking a process with threads is unsafe.
        self._taker = taking.start(environment, db)

    def has_log(self, folder: str) -> bool:
        """Return whether sessions of a folder are recorded."""
        with self._lock:
            return self._place(folder) is not None

    def put(
        self,
        program: str,
        session: str,
        folder: str,
        facts: dict[str, Any],
        line: bytes,
        *,
        captured: dict[str, Any] | None = None,
    ) -> None:
        """Store a line of a session; do nothing if its folder has no log."""
        with self._lock:
            place = self._place(folder)
            if place is None:
                return
            self._number += 1
            own = {"c": self.name, "n": self._number, "cwd": folder, "home": home_of(program, self._environment)}
            more = {"provenance": captured} if captured else {}
            place.put(program, session, {**self._named(session), "acp": {**own, **facts}, **more}, line)
            self._taker.wake()

    def _place(self, folder: str) -> "_LogSpool | None":
        if folder not in self._places:
            place = of_session(folder, self._environment, self._db)
            self._places[folder] = None if place is None else self._spool_of(place)
            if self._places[folder] is not None:
                self._taker.tell(folder)
        return self._places[folder]

    def _spool_of(self, place: LogLocation) -> "_LogSpool | None":
        try:
            return self._opened(spool_folder(place))
        except NotAccepted as problem:
            sys.stderr.write(f"decklog proxy: {problem}\n  {problem.hint}\n")
            return None

    def _opened(self, spool: str) -> "_LogSpool":
        known = (place for place in self._places.values() if place is not None and place.folder == spool)
        return next(known, None) or _LogSpool(spool, self.name)

    def _named(self, session: str) -> dict[str, Any]:
        named = {"run": "DECKLOG_RUN_ID", "task": "DECKLOG_TASK_ID"}
        given = {fact: self._environment[name] for fact, name in named.items() if self._environment.get(name)}
        return {**given, "session": session}


class _LogSpool:
    """Spool of one log, with the connection's file."""

    def __init__(self, folder: str, name: str) -> None:
        self.folder = folder
        self._spool = Spool(folder)
        self._connection = Connection(folder, name)
        self._sessions: set[tuple[str, str]] = set()
        self._lines = 0

    def put(self, program: str, session: str, facts: dict[str, Any], line: bytes) -> None:
        if (program, session) not in self._sessions:
            self._sessions.add((program, session))
            kept = {name: facts["acp"][name] for name in ("c", "cwd", "home")}
            self._connection.add(program, session, {**facts, "acp": kept})
        is_looked_at = self._lines % _LINES_BETWEEN == 0 or len(line) > _LONG
        self._lines += 1
        if is_looked_at and not self._spool.has_room(len(line)):
            self._lines = 0
            self._spool.drop(program, len(line))
            return
        self._spool.append(program, session, facts, line)


class Complaints:
    """Reports of recording errors on stderr: each once, and ignored if nobody reads."""

    def __init__(self) -> None:
        self._told: set[bytes] = set()

    def say(self, problem: BaseException) -> None:
        line = f"decklog acp: {json.dumps(f'{type(problem).__name__}: {problem}')[1:-1]}\n".encode()
        if line in self._told or len(self._told) >= _MOST_COMPLAINTS:
            return
        self._told.add(line)
        with suppress(OSError):
            os.write(2, line)
