"""A lock between processes that is handed on in the order it was asked for."""

import fcntl
import os
from threading import Event, Lock, Thread
from time import monotonic, sleep

from decklog.core.errors import Busy
from decklog.db.sqlite.file import unusable

# A process that had to wait keeps the lock this long between commits: handing it on costs as much as a commit, and what the
# process has cached stays valid. With several writers on a fast disk this doubles the throughput.
TURN_SECONDS = 0.004
# A pause after a commit that ends the turn, and how often it is checked for.
_PAUSE_SECONDS = 0.001
# A pause after a whole turn, so that the next process can wake up first.
_AWAY_SECONDS = 0.0002


class FairLock:
    """An exclusive `flock` on a sidecar file.

    SQLite's own busy handler sleeps and tries again, so under load a writer may starve. The kernel queues those who wait for a
    `flock` and wakes them in order.

    Without contention the lock is released after each commit. After a wait it is kept for a turn, which ends early at a pause.
    """

    def __init__(self, path: str, timeout_seconds: float) -> None:
        self.path = path
        self.timeout_seconds = timeout_seconds
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise unusable(path, problem) from problem
        # A wait that timed out goes on in its thread, and the next one resumes it: there is never more than one.
        self._waiting: _Waiting | None = None
        self._is_contended = False
        self._turn = _Turn(self._descriptor)

    def acquire(self) -> None:
        if self._is_contended and self._turn.resume():
            return
        if self._waiting is None:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._is_contended = False
                return
            except BlockingIOError:
                pass
        self._wait()
        self._is_contended = True
        self._turn.begin()

    def release(self) -> None:
        if not (self._is_contended and self._turn.pause()):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _wait(self) -> None:
        # A blocking flock has no timeout, and the holder may be frozen: another thread waits, so that this one can give up.
        waiting, self._waiting = self._waiting, None
        if waiting is None or not waiting.resume():
            waiting = _Waiting(self._descriptor)
        try:
            is_granted = waiting.granted.wait(self.timeout_seconds) or not waiting.give_up()
        except BaseException:
            # A signal handler raised, and nobody is left to use the lock.
            if waiting.give_up():
                self._waiting = waiting
            else:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            raise
        if is_granted:
            return
        self._waiting = waiting
        raise Busy(
            f"another process has been writing to this log for {self.timeout_seconds:g} seconds",
            hint=f"Try again; if it stays so, `lsof {self.path}` names the processes that have it open.",
        )

    def close(self) -> None:
        self._turn.end()
        if self._waiting is None or not self._waiting.close_later():
            os.close(self._descriptor)

    def close_in_child(self) -> None:
        """Close the descriptor that a fork has copied: while it is open, the parent's death would not release the lock."""
        os.close(self._descriptor)


class _Turn:
    """The time in which a process that waited for the lock keeps it between its commits."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._ends_at = self._paused_at = 0.0
        # Whether the process came back at once after its last commit, and whether it keeps the lock in a pause now.
        self._is_quick = self._is_kept = self._is_watched = False
        self._deciding = Lock()

    def begin(self) -> None:
        self._ends_at = monotonic() + TURN_SECONDS

    def pause(self) -> bool:
        """Keep the lock during a pause; return False if it has to be released."""
        with self._deciding:
            self._paused_at = monotonic()
            self._is_kept = self._is_quick and self._paused_at < self._ends_at and (self._is_watched or self._start_watch())
            return self._is_kept

    def resume(self) -> bool:
        """End the pause; return False if the lock was released meanwhile."""
        with self._deciding:
            self._is_quick = monotonic() - self._paused_at < _PAUSE_SECONDS
            if self._is_kept:
                self._is_kept = False
                return True
        if self._is_quick and self._paused_at >= self._ends_at:
            sleep(_AWAY_SECONDS)
        return False

    def end(self) -> None:
        with self._deciding:
            self._release()

    def _start_watch(self) -> bool:
        self._is_watched = True
        try:
            Thread(target=self._watch, daemon=True).start()
        except RuntimeError:
            self._is_watched = False  # at the end of a program no thread can be started, and nobody would release the lock
        return self._is_watched

    def _watch(self) -> None:
        """Release the lock after a longer pause; runs in a thread, for as long as the turn."""
        while self._is_watched:
            sleep(_PAUSE_SECONDS)
            with self._deciding:
                now = monotonic()
                if self._is_kept and now - self._paused_at > _PAUSE_SECONDS:
                    self._release()
                self._is_watched = now < self._ends_at or self._is_kept

    def _release(self) -> None:
        self._ends_at = 0.0
        if self._is_kept:
            self._is_kept = False
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)


class _Waiting:
    """A thread that waits for the lock. Its owner may give up and resume; nobody's lock is released as soon as it comes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._deciding = Lock()
        self._is_wanted, self._is_over, self._closes = True, False, False
        self.granted = Event()
        Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._deciding:
            self._is_over = True
            if self._is_wanted:
                self.granted.set()
                return
            # Closing does not release it: a process that was forked meanwhile has the same lock open.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            if self._closes:
                os.close(self._descriptor)

    def give_up(self) -> bool:
        """Stop waiting; return False if the lock came at the last moment."""
        with self._deciding:
            self._is_wanted = self._is_over
            return not self._is_over

    def resume(self) -> bool:
        """Go on waiting; return False if the lock has come and gone."""
        with self._deciding:
            self._is_wanted = not self._is_over
            return self._is_wanted

    def close_later(self) -> bool:
        """Close the descriptor once the wait is over; return False if it is over."""
        with self._deciding:
            self._closes = not self._is_over
            return self._closes
