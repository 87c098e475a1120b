"""Verifying the log while the dashboard goes on: in a process of its own, one at a time; what came of it last is kept.

A thread would take the processor from every page that is read meanwhile: it hands it on 200 times a second, and a page waits its
turn at each row. A process also uses the other cores.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from threading import Lock, Thread
from typing import Any

from decklog.app import Decklog
from decklog.clock import to_text
from decklog.dataclass import dataclass
from decklog.errors import DecklogError

# Without the folder that the server was started in: whatever agents put there is not ours to run.
PROGRAM = (sys.executable, "-P", "-m", "decklog.web.verifying")
# Whoever works comes first.
_NICE = 10


@dataclass(frozen=True)
class Verified:
    """What came of it: `found` is what was checked and what is wrong; nothing where it could not be done, for `code`."""

    began_at: datetime
    ended_at: datetime
    found: dict[str, Any] | None
    code: str | None = None

    @property
    def word(self) -> str:
        """How the log stands by it."""
        return "not verified" if self.found is None else "whole" if self.found["ok"] else "not whole"

    def as_dict(self) -> dict[str, Any]:
        times = {"began_at": to_text(self.began_at), "ended_at": to_text(self.ended_at)}
        return {"word": self.word, **times, "code": self.code, "found": self.found}


@dataclass(frozen=True)
class Standing:
    """Since when it goes on, if it does, and what came of it last, if it ever did."""

    began_at: datetime | None = None
    last: Verified | None = None

    def as_dict(self) -> dict[str, Any]:
        began = None if self.began_at is None else to_text(self.began_at)
        return {"is_running": began is not None, "began_at": began, "last": None if self.last is None else self.last.as_dict()}


class Verifying:
    """Begins it, knows whether it goes on, and keeps what came of it last for as long as the server runs."""

    def __init__(self, program: Sequence[str] = PROGRAM) -> None:
        self._program = program
        self._gate = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False
        self._standing = Standing()

    def begin(self, log: Decklog, on_end: Callable[[], object]) -> bool:
        """Begin, and say so; no where it goes on already."""
        given = json.dumps([log.db.target, bool(log.db.read_only)]).encode()
        with self._gate:
            if self._process is not None or self._is_over:
                return False
            # Not among its arguments, which everyone on the machine can read: an address may hold a password. In a session of its
            # own: Ctrl-C at the terminal is for the server, which ends it.
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
            process = self._process = subprocess.Popen(self._program, **pipes)
            self._standing = Standing(log.clock.now(), self._standing.last)
        Thread(target=self._wait, args=(process, given, log, on_end), name="decklog verify", daemon=True).start()
        return True

    def _wait(self, process: "subprocess.Popen[bytes]", given: bytes, log: Decklog, on_end: Callable[[], object]) -> None:
        said, _ = process.communicate(given)
        found = _read(said) if process.returncode == 0 else {"code": "ended"}
        code = found.get("code")
        with self._gate:
            began_at = self._standing.began_at
            assert began_at is not None
            self._standing = Standing(None, Verified(began_at, log.clock.now(), None if code else found, code))
            self._process = None
        on_end()

    def end(self) -> None:
        """End what goes on, with the server."""
        with self._gate:
            self._is_over = True
            process = self._process
        if process is not None:
            process.kill()

    @property
    def standing(self) -> Standing:
        with self._gate:
            return self._standing


def _read(said: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(said)
    except ValueError:
        return {"code": "ended"}
    return found


def main() -> None:
    """Verify the log that is named on standard input, and print what came of it."""
    os.nice(_NICE)
    target, read_only = json.load(sys.stdin)
    try:
        with Decklog.open(target, read_only=read_only) as log:
            result = log.journal.verify()
            is_derived = {problem.table for problem in result.problems} <= log.derived_tables()
    except DecklogError as problem:
        print(json.dumps({"code": problem.code}))
    else:
        print(json.dumps({**result.as_dict(), "is_derived": is_derived}))


if __name__ == "__main__":
    main()
