"""Spooling of the messages between an editor and an agent, with a separate process for the intake.

Each line is stored in the spool of its session's log before it is relayed. So even after a kill, no message that a side received
is lost. The proxy never waits for the log.
"""

import json
import os
import select
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from decklog.agents.intake import run_intake
from decklog.agents.sessions import HISTORIES
from decklog.agents.spool import Connection, Spool
from decklog.core.errors import NotAccepted
from decklog.hooks.hook import run_detached
from decklog.location.locate import LogLocation, locate_session_log, spool_folder
from decklog.log import Decklog

# Lines within this time are recorded together.
_BATCH_SECONDS = 0.1
# Delay before the next try if a log can't be written.
_RETRY_SECONDS = 2.0
# Number of tries after the end of the proxy; the next intake records the rest.
_LAST_TRIES = 5
_CHUNK = 65536
_MOST_REPORTS = 20
# Variables that name the run and the task of a session.
_VARIABLES = {"run": "DECKLOG_RUN_ID", "task": "DECKLOG_TASK_ID"}


class Recording:
    """Record of one connection."""

    def __init__(self, environment: Mapping[str, str], db: str | None) -> None:
        self.name = uuid.uuid4().hex[:16]
        self._environment = environment
        self._db = db
        self._lock = threading.Lock()
        self._number = 0
        # Spool of each folder; None for a folder without a log.
        self._spools: dict[str, Spool | None] = {}
        self._connections: dict[str, Connection] = {}
        self._sessions: set[tuple[str, str, str]] = set()
        # Fork before any thread starts: forking a process with threads is unsafe.
        self._intake = IntakeProcess(environment, db)

    def has_log(self, folder: str) -> bool:
        """Return whether sessions of a folder are recorded."""
        with self._lock:
            return self._spool(folder) is not None

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
            spool = self._spool(folder)
            if spool is None:
                return
            self._number += 1
            named = {fact: self._environment[name] for fact, name in _VARIABLES.items() if self._environment.get(name)}
            common = {**named, "session": session}
            home = HISTORIES[program].home_in(self._environment) if program in HISTORIES else None
            connection_facts = {"c": self.name, "cwd": folder, "home": home}
            if (key := (spool.folder, program, session)) not in self._sessions:
                self._sessions.add(key)
                self._connections[spool.folder].add(program, session, {**common, "acp": connection_facts})
            more = {"provenance": captured} if captured else {}
            spool.put(
                program,
                session,
                {**common, "acp": {**connection_facts, "n": self._number, **facts}, **more},
                line,
                is_synced=False,
            )
            self._intake.wake()

    def _spool(self, folder: str) -> Spool | None:
        if folder not in self._spools:
            location = locate_session_log(folder, self._environment, self._db)
            try:
                found = None if location is None else spool_folder(location)
            except NotAccepted as problem:
                sys.stderr.write(f"decklog proxy: {problem}\n  {problem.hint}\n")
                found = None
            if found is not None and found not in self._connections:
                self._connections[found] = Connection(found, self.name)
            self._spools[folder] = None if found is None else Spool(found)
            if found is not None:
                self._intake.add_folder(folder)
        return self._spools[folder]


class ErrorReporter:
    """Reporter of recording errors on stderr, each only once."""

    def __init__(self) -> None:
        self._reported: set[bytes] = set()

    def report(self, problem: BaseException) -> None:
        line = f"decklog acp: {json.dumps(f'{type(problem).__name__}: {problem}')[1:-1]}\n".encode()
        if line in self._reported or len(self._reported) >= _MOST_REPORTS:
            return
        self._reported.add(line)
        with suppress(OSError):
            os.write(2, line)


class IntakeProcess:
    """Separate process that records the lines in the log, and the proxy's end of the pipe to it. It outlives the proxy."""

    def __init__(self, environment: Mapping[str, str], db: str | None) -> None:
        reading, self._pipe = os.pipe()

        def work() -> None:
            os.close(self._pipe)
            _IntakeLoop(reading, environment, db).run()

        run_detached(work)
        os.close(reading)
        os.set_blocking(self._pipe, False)

    def wake(self) -> None:
        """Signal that lines wait; a full pipe already signals it."""
        # If the process is gone, the next intake records the lines.
        with suppress(OSError):
            os.write(self._pipe, b"\n")

    def add_folder(self, folder: str) -> None:
        """Send a folder whose sessions are recorded from now on."""
        os.set_blocking(self._pipe, True)
        with suppress(OSError):
            os.write(self._pipe, os.fsencode(folder).replace(b"\n", b"\0") + b"\n")
        os.set_blocking(self._pipe, False)


class _IntakeLoop:
    """Intake loop that runs while the proxy lives, and once more after its end."""

    def __init__(self, pipe: int, environment: Mapping[str, str], db: str | None) -> None:
        self._pipe = pipe
        self._environment = environment
        self._db = db
        self._spools: dict[str, tuple[LogLocation, Spool]] = {}
        self._logs: dict[str, Decklog] = {}
        self._incomplete_line = b""

    def run(self) -> None:
        is_done, is_open = True, True
        while is_open:
            # A failed intake is retried even if no line follows.
            select.select([self._pipe], [], [], None if is_done else _RETRY_SECONDS)
            is_open = self._read_pipe()
            # One round at a time: a fast sender would otherwise keep the CPU busy.
            is_done = self._run_intake(is_one_round=True)
        for _ in range(_LAST_TRIES):
            if self._run_intake(is_one_round=False):
                return
            time.sleep(_RETRY_SECONDS)

    def _read_pipe(self) -> bool:
        """Read the pipe for a moment; return False if the proxy is gone."""
        end = time.monotonic() + _BATCH_SECONDS
        while (left := end - time.monotonic()) > 0:
            if select.select([self._pipe], [], [], left)[0]:
                words = os.read(self._pipe, _CHUNK)
                if not words:
                    return False
                self._add_folders(words)
        return True

    def _add_folders(self, words: bytes) -> None:
        *lines, self._incomplete_line = (self._incomplete_line + words).split(b"\n")
        for folder in filter(None, lines):
            path = os.fsdecode(folder.replace(b"\0", b"\n"))
            location = locate_session_log(path, self._environment, self._db)
            if location is not None:
                spool = spool_folder(location)
                self._spools.setdefault(spool, (location, Spool(spool)))

    def _run_intake(self, *, is_one_round: bool) -> bool:
        """Run the intake for every log; return False if lines still wait."""
        is_done = True
        for location, spool in self._spools.values():
            try:
                spool.sync()
                if spool.folder not in self._logs:
                    self._logs[spool.folder] = location.open()
                result = run_intake(self._logs[spool.folder], spool, is_one_round=is_one_round)
                is_done &= not result.was_locked and spool.is_empty
            except Exception as problem:  # noqa: BLE001
                # The next round retries the intake; `decklog doctor agents` shows the error.
                spool.store_error(problem)
                if (log := self._logs.pop(spool.folder, None)) is not None:
                    log.close()
                is_done = False
        return is_done
