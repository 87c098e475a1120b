"""Verification of the log while the dashboard runs: one separate process at a time. The last result is kept.

A thread would slow down every page: it releases the interpreter only 200 times a second, and a page waits for it at each row.
The process reports each step. The verified positions are kept only in this memory, so that nobody can forge them. The next
verification continues from there, after a stop or when the log has grown.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock, Thread
from time import monotonic
from typing import Any

from decklog.core.clock import to_text
from decklog.core.errors import DecklogError
from decklog.log import Decklog
from decklog.transfer.verify_steps import Steps


class NowAndThen:
    """Throttle that allows one call per interval; the first call is always allowed."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._said = -seconds

    def is_time(self) -> bool:
        now = monotonic()
        if now - self._said < self._seconds:
            return False
        self._said = now
        return True


# `-P` leaves out the working directory: agents may have put modules there.
PROGRAM = (sys.executable, "-P", "-m", "decklog.web.verifying")
# Lower priority than agents and pages.
_NICE = 10
# Progress is sent this often: all open pages reload each time.
_NEWS_SECONDS = 2.0


@dataclass(frozen=True)
class Verified:
    """The result of a verification. `found` has counts and problems; it is None if it failed with the error `code`."""

    began_at: datetime
    ended_at: datetime
    found: dict[str, Any] | None
    code: str | None = None

    @property
    def word(self) -> str:
        """The status of the log by this result."""
        return "not verified" if self.found is None else "verified" if self.found["ok"] else "damaged"

    def as_dict(self) -> dict[str, Any]:
        times = {"began_at": to_text(self.began_at), "ended_at": to_text(self.ended_at)}
        return {"word": self.word, **times, "code": self.code, "found": self.found}


@dataclass(frozen=True)
class VerifyStatus:
    """The running verification, if any, and the last result, if any.

    `progress` is the last finished step of a running or stopped verification: what was checked, and how much of the total.
    `heads` counts the streams that are verified up to an entry, from which the next verification can continue.
    """

    began_at: datetime | None = None
    last: Verified | None = None
    progress: dict[str, Any] | None = None
    heads: int = 0

    @property
    def is_stopped(self) -> bool:
        return self.began_at is None and self.progress is not None

    def as_dict(self) -> dict[str, Any]:
        began = None if self.began_at is None else to_text(self.began_at)
        last = None if self.last is None else self.last.as_dict()
        steps = {"progress": self.progress, "is_stopped": self.is_stopped, "heads": self.heads}
        return {"is_running": began is not None, "began_at": began, "last": last, **steps}


class Verifying:
    """Starts verifications, tracks the running one and keeps the last result until the server stops."""

    def __init__(self, program: Sequence[str] = PROGRAM) -> None:
        self._program = program
        self._gate = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = self._is_stopped = False
        # The verified position of each stream.
        self._heads: dict[str, Any] = {}
        self._status = VerifyStatus()
        self._news = NowAndThen(_NEWS_SECONDS)

    def begin(self, log: Decklog, tell: Callable[[], object], *, anew: bool = False) -> bool:
        """Start a verification and return True; return False if one is running. With `anew` it starts from the beginning.

        `tell` is called on progress, throttled, and at the end.
        """
        with self._gate:
            if self._process is not None or self._is_over:
                return False
            self._heads = {} if anew else self._heads
            given = json.dumps([log.db.target, bool(log.db.read_only), self._heads]).encode()
            # Input by stdin: arguments are public on the machine, and an address may have a password.
            # A new session, because Ctrl-C at the terminal is for the server, which stops this process.
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
            process = self._process = subprocess.Popen(self._program, **pipes)
            self._is_stopped = False
            self._status = VerifyStatus(log.clock.now(), self._status.last, heads=len(self._heads))
        Thread(target=self._wait, args=(process, given, log, tell), name="decklog verify", daemon=True).start()
        return True

    def _wait(self, process: subprocess.Popen[bytes], given: bytes, log: Decklog, tell: Callable[[], object]) -> None:
        found: dict[str, Any] = {"code": "ended"}
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            # A process that exits before it reads this is reported as failed.
            with suppress(BrokenPipeError):
                process.stdin.write(given)
                process.stdin.close()
            for line in process.stdout:
                found = _read(line)
                if "step" in found:
                    self._note(found["step"], tell)
        is_done = process.returncode == 0 and "step" not in found
        with self._gate:
            self._finish(found if is_done else {"code": "ended"}, log.clock.now())
        tell()

    def _note(self, step: dict[str, Any], tell: Callable[[], object]) -> None:
        """Store the positions that a step has verified."""
        with self._gate:
            self._heads = {**self._heads, **step.get("heads", {})}
            progress = {name: step[name] for name in ("what", "done", "whole")}
            self._status = replace(self._status, progress=progress, heads=len(self._heads))
        if self._news.is_time():
            tell()

    def _finish(self, found: dict[str, Any], now: datetime) -> None:
        self._process, began_at = None, self._status.began_at
        assert began_at is not None
        if self._is_stopped:
            self._status = replace(self._status, began_at=None)
            return
        code = found.get("code")
        if code is None and not found["ok"]:
            self._heads = {}
        self._status = VerifyStatus(None, Verified(began_at, now, None if code else found, code), heads=len(self._heads))

    def stop(self) -> None:
        """Stop the running verification; verified positions are kept."""
        with self._gate:
            self._is_stopped = self._process is not None
            if self._process is not None:
                self._process.kill()

    def end(self) -> None:
        """Stop the running verification for good, with the server."""
        with self._gate:
            self._is_over = True
            process = self._process
        if process is not None:
            process.kill()

    @property
    def status(self) -> VerifyStatus:
        with self._gate:
            return self._status


def _read(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {"code": "ended"}
    return found if isinstance(found, dict) else {"code": "ended"}


def main() -> None:
    """Verify the log that stdin names, and print each step and the result as JSON."""
    os.nice(_NICE)
    target, read_only, known = json.load(sys.stdin)
    try:
        with Decklog.open(target, read_only=read_only) as log:
            result = Steps(log, known).run(lambda step: print(json.dumps({"step": step}), flush=True))
            is_derived = {problem.table for problem in result.problems} <= log.derived_tables()
    except DecklogError as problem:
        print(json.dumps({"code": problem.code}))
    else:
        print(json.dumps({**result.as_dict(), "is_derived": is_derived}))


if __name__ == "__main__":
    main()
