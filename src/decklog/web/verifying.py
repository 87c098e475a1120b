"""Verify the log in a separate process while the dashboard runs, and keep the last result.

A thread would slow down every page: it releases the interpreter only 200 times a second, and pages wait for it at each row.
The process reports each step. Verified positions are kept in memory only, so that they can't be forged. The next verification
continues from them, after a stop or when the log has grown.
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
from decklog.transfer.verify_steps import VerifySteps


class Throttle:
    """Throttle that allows one call per interval; the first call is always allowed."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last_call = -seconds

    def is_due(self) -> bool:
        now = monotonic()
        if now - self._last_call < self._seconds:
            return False
        self._last_call = now
        return True


# `-P` leaves out the working directory: agents may have put modules there.
PROGRAM = (sys.executable, "-P", "-m", "decklog.web.verifying")
# Lower priority than agents and pages.
_NICE = 10
# Progress is sent this often: all open pages reload each time.
_PROGRESS_SECONDS = 2.0


@dataclass(frozen=True)
class VerifyResult:
    """The result of a verification. `found` has counts and problems; it is None after the error `code`."""

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
    """The running verification and the last result, if any.

    `progress` is the last finished step of a running or stopped verification: its subject, and the done part of the total.
    `heads` counts the streams with a verified position, from which the next verification can continue.
    """

    began_at: datetime | None = None
    last: VerifyResult | None = None
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


class LogVerifier:
    """Starts verifications, tracks the running one and keeps the last result until the server stops."""

    def __init__(self, program: Sequence[str] = PROGRAM) -> None:
        self._program = program
        self._gate = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = self._is_stopped = False
        # The verified position of each stream.
        self._heads: dict[str, Any] = {}
        self._status = VerifyStatus()
        self._progress_throttle = Throttle(_PROGRESS_SECONDS)

    def begin(self, log: Decklog, on_change: Callable[[], object], *, from_start: bool = False) -> bool:
        """Start a verification and return True; return False if one is running. With `from_start` it starts from the beginning.

        `on_change` is called on progress, throttled, and at the end.
        """
        with self._gate:
            if self._process is not None or self._is_over:
                return False
            self._heads = {} if from_start else self._heads
            settings = json.dumps([log.db.target, bool(log.db.read_only), self._heads]).encode()
            # Use stdin, as other users can read arguments and an address may have a password.
            # Use a new session, as Ctrl-C is for the server, which then stops this process.
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
            process = self._process = subprocess.Popen(self._program, **pipes)
            self._is_stopped = False
            self._status = VerifyStatus(log.clock.now(), self._status.last, heads=len(self._heads))
        Thread(target=self._wait, args=(process, settings, log, on_change), name="decklog verify", daemon=True).start()
        return True

    def _wait(self, process: subprocess.Popen[bytes], settings: bytes, log: Decklog, on_change: Callable[[], object]) -> None:
        found: dict[str, Any] = {"code": "ended"}
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            # A process that exits before it reads this is reported as failed.
            with suppress(BrokenPipeError):
                process.stdin.write(settings)
                process.stdin.close()
            for line in process.stdout:
                found = _read(line)
                if "step" in found:
                    self._store_progress(found["step"], on_change)
        is_done = process.returncode == 0 and "step" not in found
        with self._gate:
            self._finish(found if is_done else {"code": "ended"}, log.clock.now())
        on_change()

    def _store_progress(self, step: dict[str, Any], on_change: Callable[[], object]) -> None:
        """Store the positions that a step has verified."""
        with self._gate:
            self._heads = {**self._heads, **step.get("heads", {})}
            progress = {name: step[name] for name in ("what", "done", "whole")}
            self._status = replace(self._status, progress=progress, heads=len(self._heads))
        if self._progress_throttle.is_due():
            on_change()

    def _finish(self, found: dict[str, Any], now: datetime) -> None:
        self._process, began_at = None, self._status.began_at
        assert began_at is not None
        if self._is_stopped:
            self._status = replace(self._status, began_at=None)
            return
        code = found.get("code")
        if code is None and not found["ok"]:
            self._heads = {}
        self._status = VerifyStatus(None, VerifyResult(began_at, now, None if code else found, code), heads=len(self._heads))

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
            result = VerifySteps(log, known).run(lambda step: print(json.dumps({"step": step}), flush=True))
            is_derived = {problem.table for problem in result.problems} <= log.derived_tables()
    except DecklogError as problem:
        print(json.dumps({"code": problem.code}))
    else:
        print(json.dumps({**result.as_dict(), "is_derived": is_derived}))


if __name__ == "__main__":
    main()
