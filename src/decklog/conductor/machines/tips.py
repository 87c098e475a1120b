"""Where the commits of a run are: in this clone, and at the remote that its hosts share, if it has one.

With a remote, the target is the remote's, and the ref in the clone follows it. What an attempt left is at the remote before the
log is told of it, so that whoever reads the log can have it. A remote that is away is weather.
"""

import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from decklog.conductor.git.remote import Remote
from decklog.conductor.git.repository import HOME, Repository, ref_part
from decklog.core.errors import Conflict, NotFound, Unavailable

SHORTEST_WAIT, LONGEST_WAIT = 0.2, 15.0
_T = TypeVar("_T")


class Tips:
    """The refs of one run, as this host has them and shares them. `home` is the ref that all of them lie beneath."""

    def __init__(self, repository: Repository, home: str, remote: Remote | None) -> None:
        self._repository = repository
        self._home = home
        self._remote = remote
        self._lock = threading.Lock()
        self._wait = SHORTEST_WAIT
        self._next_try = 0.0
        self.trouble: str | None = None

    @property
    def is_shared(self) -> bool:
        """Whether there is a remote through which others get them."""
        return self._remote is not None

    @property
    def target(self) -> str:
        """The ref that holds what has landed."""
        return f"{self._home}/target"

    # The target

    def begin(self, commit: str) -> None:
        """Let the target of a run that begins be at its first commit, here and at the remote."""
        if self._remote is not None and not self._remote.swap(self.target, commit, None):
            self._follow()
        elif self._repository.ref(self.target) is None:
            self._repository.set_refs({self.target: commit})

    def join(self) -> None:
        """Get the target of a run that another host has begun."""
        assert self._remote is not None
        self._remote.check()
        if self.target not in self._remote.refs(self.target):
            raise NotFound(
                f"remote {self._remote.name} has no {self.target}",
                hint="Name the remote that the run's hosts share: decklog run work RUN --remote NAME",
                remote=self._remote.name,
            )
        self._follow()

    def target_commit(self) -> str:
        """Return the commit that the target is at now."""
        if self._remote is not None:
            self._reached(self._follow)
        found = self._repository.ref(self.target)
        if found is None:
            raise NotFound(f"{self.target} does not exist here", hint="See what is kept: decklog run rescue")
        return found

    def _follow(self) -> None:
        assert self._remote is not None
        self._remote.fetch([f"{self.target}:{self.target}"])

    def advance(self, new: str, old: str) -> bool:
        """Move the target from one commit to another; say no when it is no longer at the first."""
        remote = self._remote
        if remote is None:
            return self._repository.swap_ref(self.target, new, old)
        is_moved = self._reached(lambda: remote.swap(self.target, new, old))
        self._reached(self._follow)
        return is_moved

    # What attempts left

    def publish(self, beneath: str, wanted_end: Callable[[], str | None]) -> None:
        """Have the remote hold refs of this clone as well; wait for one that is away, unless it is wanted otherwise."""
        remote = self._remote
        if remote is None:
            return None
        refs = self._repository.refs(beneath)
        while True:
            try:
                return self._reached(lambda: remote.push(refs))
            except Unavailable:
                if wanted_end() is not None:
                    raise
            time.sleep(min(self._wait, 1.0))

    def bring(self, commits: Iterable[object]) -> None:
        """Make sure that commits are here, which may be another host's."""
        missing = [str(commit) for commit in commits if commit and not self._repository.has(str(commit))]
        remote = self._remote
        if not missing or remote is None:
            return
        there, here = self._reached(lambda: remote.refs(self._home)), self._repository.refs(self._home)
        # A ref of this clone is never overwritten: it may hold what the remote has not seen yet.
        wanted = [name if name in here else f"{name}:{name}" for name, value in there.items() if here.get(name) != value]
        if wanted:
            self._reached(lambda: remote.fetch(wanted))
        if left := [commit for commit in missing if not self._repository.has(commit)]:
            raise Conflict(
                f"remote {remote.name} does not have commit {left[0][:12]}, which the log tells of",
                hint="Have the host that made it push it again: decklog run work there.",
                commits=left,
            )

    def drop(self, names: list[str]) -> None:
        """Drop refs here and at the remote."""
        if self._remote is not None:
            self._remote.drop(names)
        self._repository.drop_refs(names)

    # Weather

    def is_away(self) -> bool:
        """Return whether the remote was out of reach when it was tried last; once in a while it is tried again."""
        remote = self._remote
        if remote is None or self.trouble is None:
            return False
        with self._lock:
            if self.trouble is None or time.monotonic() < self._next_try:
                return self.trouble is not None
            try:
                self._reached(lambda: remote.refs(self.target))
            except Unavailable:
                return True
            return False

    def _reached(self, act: Callable[[], _T]) -> _T:
        """Do something with the remote, and take note of whether it is there."""
        try:
            found = act()
        except Unavailable as problem:
            self.trouble = problem.message
            self._next_try = time.monotonic() + self._wait
            self._wait = min(2 * self._wait, LONGEST_WAIT)
            raise
        self.trouble, self._wait = None, SHORTEST_WAIT
        return found


def home_of(run_id: str) -> str:
    """Name the ref that all refs of a run lie beneath."""
    return f"{HOME}/{ref_part(run_id)}"


def tips_of(repository: Repository, run_id: str, remote: str | None) -> Tips:
    """Return the refs of a run, shared by a remote of that name if there is one."""
    return Tips(repository, home_of(run_id), None if remote is None else Remote(repository, remote))
