"""A lock between processes that is handed on in the order it was asked for."""

import fcntl
import os
from _thread import allocate_lock, start_new_thread
from time import monotonic, sleep

from decklog.core.errors import Busy
from decklog.db.sqlite.file import unusable

# Who had to wait for the lock keeps it so long, if it comes back for it at once: what it knows of the file stays true meanwhile,
# and to hand the lock on takes as long as a commit.
TURN_SECONDS = 0.004
# Who is away longer than this after a commit has something else to do.
_SOON = 0.001
# How often it is looked whether the lock is kept by one who does not come back.
_LOOK = 0.001
# How long one stays away after a whole turn, since the next one has to wake up first.
_AWAY = 0.0002


class FairLock:
    """An exclusive `flock` on a sidecar file.

    SQLite's own busy handler sleeps and tries again, so under load a writer may starve; the kernel queues those who wait
    for a `flock` and wakes them in turn.

    Where nobody waits, the lock is given back at each release. Where somebody may, it is handed on by time: after each commit, if
    there is a pause, else after some milliseconds.
    """

    def __init__(self, path: str, timeout_seconds: float) -> None:
        self.path = path
        self.timeout_seconds = timeout_seconds
        self._descriptor = self._open()
        # A wait that was given up goes on in its thread, and is resumed by the next one: there is never more than one.
        self._waiting: _Waiting | None = None
        # Whether others were at it when it was last taken: they may wait for it now.
        self._has_rivals = False
        self._turn = _Turn()

    def acquire(self) -> None:
        if self._has_rivals and self._turn.goes_on():
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._has_rivals = False
        except BlockingIOError:
            self._wait()
            self._has_rivals = True
            self._turn.begin(self._descriptor)

    def release(self) -> None:
        if not (self._has_rivals and self._turn.is_kept()):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _wait(self) -> None:
        # A blocking flock can't be given a time limit, and a holder may be frozen: wait in another thread, so that
        # the caller can give up.
        waiting = self._begin_waiting()
        try:
            if waiting.granted_within(self.timeout_seconds):
                return
        except BaseException:
            # A signal's handler raised, and nobody is left to use the lock.
            if not self._gave_up(waiting):
                self.release()
            raise
        if not self._gave_up(waiting):
            return
        raise Busy(
            f"another process has been writing to this log for {self.timeout_seconds:g} seconds",
            hint=f"Try again; if it stays so, `lsof {self.path}` names the processes that have it open.",
        )

    def _begin_waiting(self) -> "_Waiting":
        waiting, self._waiting = self._waiting, None
        if waiting is not None and waiting.taken_up():
            os.close(self._descriptor)
            self._descriptor = waiting.descriptor
            return waiting
        waiting = _Waiting(self._descriptor)
        start_new_thread(waiting.run, ())
        return waiting

    def _gave_up(self, waiting: "_Waiting") -> bool:
        """Stop waiting; False when the lock came at the last moment."""
        given_up = waiting.give_up()
        if given_up:
            # The waiting thread keeps the descriptor, and gives the lock straight back when it comes.
            self._waiting = waiting
            self._descriptor = self._open()
        return given_up

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise unusable(self.path, problem) from problem

    def close(self) -> None:
        self._turn.end()
        os.close(self._descriptor)

    def close_in_child(self) -> None:
        """Let go of the descriptors that a fork has copied: while they are open, the parent's death would not free the lock."""
        os.close(self._descriptor)  # the turn stays the parent's
        if self._waiting is not None:
            self._waiting.close_in_child()


class _Turn:
    """The time in which a process that waited for the lock keeps it between its commits."""

    def __init__(self) -> None:
        self._descriptor = -1
        self._ends_at = self._left_at = 0.0
        self._is_quick = self._is_idle = self._is_watched = False
        self._deciding = allocate_lock()

    def begin(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._ends_at = monotonic() + TURN_SECONDS

    def is_kept(self) -> bool:
        """Leave the lock for a moment; False if it is to be given back."""
        with self._deciding:
            self._left_at = monotonic()
            self._is_idle = self._is_quick and self._left_at < self._ends_at and (self._is_watched or self._begin_watch())
            return self._is_idle

    def goes_on(self) -> bool:
        """Come back to the lock; False if it has to be taken anew."""
        with self._deciding:
            self._is_quick = monotonic() - self._left_at < _SOON
            if self._is_idle:
                self._is_idle = False
                return True
        if self._is_quick and self._left_at >= self._ends_at:
            sleep(_AWAY)
        return False

    def end(self) -> None:
        with self._deciding:
            self._give_back()

    def _begin_watch(self) -> bool:
        """Have the lock watched; False where no thread can be had, as at the end of a program: then nobody would give it back."""
        try:
            start_new_thread(self._watch, ())
        except RuntimeError:
            return False
        self._is_watched = True
        return True

    def _watch(self) -> None:
        """Give the lock back if it is not come back to; runs in a thread, for as long as the turn."""
        while self._is_watched:
            sleep(_LOOK)
            with self._deciding:
                now = monotonic()
                if self._is_idle and now - self._left_at > _SOON:
                    self._give_back()
                self._is_watched = now < self._ends_at or self._is_idle

    def _give_back(self) -> None:
        self._ends_at = 0.0
        if self._is_idle:
            self._is_idle = False
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)


class _Waiting:
    """One wait for the lock, which its owner may give up and take up again."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._deciding = allocate_lock()
        self._done = allocate_lock()
        self._done.acquire()
        self._given_up = False
        self._is_over = False

    def run(self) -> None:
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        with self._deciding:
            self._is_over = True
            if self._given_up:
                # Closing alone would not do: a process that was forked meanwhile has the same lock open.
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)
                os.close(self.descriptor)
            else:
                self._done.release()

    def granted_within(self, seconds: float) -> bool:
        return self._done.acquire(timeout=seconds)

    def give_up(self) -> bool:
        with self._deciding:
            self._given_up = not self._done.acquire(blocking=False)
            return self._given_up

    def taken_up(self) -> bool:
        """Go on with a wait that was given up; False when the lock has come and gone."""
        with self._deciding:
            if not self._is_over:
                self._given_up = False
            return not self._is_over

    def close_in_child(self) -> None:
        # The parent's thread is not here. Whether it had closed the descriptor is as it was at the fork.
        if not self._is_over:
            os.close(self.descriptor)
