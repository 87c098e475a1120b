"""The refs that a run uses: branches of the user, refs of ours at a remote, and where the commits of a run are.

Only a person's own command moves a branch: forward, by compare-and-swap, and never over a changed file. With a remote, the target
of a run is the remote's, and the ref in the clone follows it. What an attempt left is at the remote before the log names it, so
that every reader of the log can fetch it. An unreachable remote is an outage.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from decklog.conductor.git.repository import REF_PREFIX, GitResult, Repository, check_own, ref_part, run_git
from decklog.core.errors import Conflict, NotFound, TimedOut, Unavailable

# In the user's own folder the user's settings count, filters and ignored files among them; hooks do not run.
_AS_THE_USER = {"GIT_CONFIG_NOSYSTEM": "0"}
_SHOWN = 10
LONGEST_SECONDS = 120.0
# A remote is reached as the user reaches it, and only in ways that start no program of the remote's choice.
_SETTINGS = (
    *(f"protocol.{way}.allow=always" for way in ("file", "ssh", "http", "https", "git")),
    *("http.lowSpeedLimit=1", "http.lowSpeedTime=30"),
)
_PASSED = ("SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_SSH", "http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY")
_NO_QUESTIONS = "ssh -oBatchMode=yes -oConnectTimeout=15"
# Switch off what the user's settings could add to a fetch or a push.
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-prune", "--no-write-fetch-head", "--no-recurse-submodules")
_PUSH = ("push", "--quiet", "--porcelain", "--no-verify", "--no-follow-tags", "--no-signed", "--recurse-submodules=no")
SHORTEST_WAIT, LONGEST_WAIT = 0.2, 15.0
_Result = TypeVar("_Result")


class Branches:
    """The user's branches of one repository."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def current(self) -> str:
        """Return the branch that is checked out in the repository's folder."""
        words = ["symbolic-ref", "--quiet", "--short", "HEAD"]
        found = run_git(words, variables={}, cwd=self._repository.folder, accepted=(0, 1))
        if found.code:
            raise Conflict("no branch is checked out here", hint="Name one: decklog run land RUN --branch main")
        return found.text

    def commit(self, branch: str) -> str:
        """Return the commit that a branch is at."""
        found = self._repository.ref(f"refs/heads/{branch}")
        if found is None:
            raise NotFound(f"there is no branch {branch!r}", hint="See: git branch", branch=branch)
        return found

    def worktree(self, branch: str) -> Path | None:
        """Return the folder in which a branch is checked out; None if there is none."""
        listed = self._repository.on_refs("worktree", "list", "--porcelain", "-z").out.decode(errors="surrogateescape")
        for one in listed.split("\0\0"):
            lines = one.strip("\0").split("\0")
            if f"branch refs/heads/{branch}" in lines:
                return Path(lines[0].removeprefix("worktree "))
        return None

    def refuse_dirty(self, worktree: Path, branch: str) -> None:
        """Raise Conflict for a folder with uncommitted changes, which are never stashed or overwritten."""
        changed = self._in(worktree, "status", "--porcelain", "--untracked-files=no").text
        if changed:
            paths = [line.strip().split(" ", 1)[-1] for line in changed.splitlines()]
            raise Conflict(
                f"{branch} is checked out in {worktree} with uncommitted changes: {', '.join(paths[:_SHOWN])}",
                hint="Commit or stash them, then land.",
                paths=paths,
            )

    def move(self, branch: str, new: str, old: str, worktree: Path | None) -> None:
        """Move a branch forward from `old` to `new`, and update the files where it is checked out.

        Raise Conflict if it is no longer checked out in `worktree`: a merge there would move another branch.
        """
        if self.worktree(branch) != worktree:
            raise _branch_moved(branch)
        if worktree is None:
            moved = self._repository.on_refs("update-ref", f"refs/heads/{branch}", new, old, accepted=(0, 1, 128)).code == 0
        else:
            if self.commit(branch) != old:
                raise _branch_moved(branch)
            try:
                moved = self._in(worktree, "merge", "--ff-only", "--quiet", new).code == 0
            except Unavailable as problem:
                raise Conflict(f"{branch} was not moved: {problem.message}", hint="Move the files in the way.") from problem
        if not moved:
            raise _branch_moved(branch)

    def _in(self, worktree: Path, *words: str) -> GitResult:
        return run_git(words, variables=_AS_THE_USER, cwd=worktree)


def _branch_moved(branch: str) -> Conflict:
    return Conflict(f"{branch} has moved meanwhile", hint="Land again, on its newest commit.")


class Remote:
    """One remote of a repository. Its methods raise Unavailable if it is unreachable."""

    def __init__(self, repository: Repository, name: str) -> None:
        self._repository = repository
        self.name = name

    def check(self) -> None:
        """Raise NotFound if this clone has no such remote."""
        found = self._repository.on_refs("config", "--get", f"remote.{self.name}.url", accepted=(0, 1))
        if found.code:
            raise NotFound(
                f"this clone has no remote {self.name!r}", hint=f"Add it: git remote add {self.name} URL", remote=self.name
            )

    def refs(self, beneath: str) -> dict[str, str]:
        """Return the current refs of the remote that equal a name or are below it, with their commits."""
        lines = self._call("ls-remote", "--quiet", "--refs", self.name, beneath, f"{beneath}/*").text.splitlines()
        return {name: value for value, _, name in (line.partition("\t") for line in lines)}

    def push(self, refs: Mapping[str, str]) -> None:
        """Push refs of Decklog, all of them or none."""
        for name in refs:
            check_own(name)
        if refs:
            self._call(*_PUSH, "--atomic", self.name, *(f"+{value}:{name}" for name, value in refs.items()))

    def swap(self, name: str, new: str, old: str | None) -> bool:
        """Move a ref of the remote from `old` to `new`; return False if it was not at `old`."""
        check_own(name)
        words = (*_PUSH, f"--force-with-lease={name}:{old or ''}", self.name, f"{new}:{name}")
        if self._call(*words, accepted=(0, 1)).code == 0:
            return True
        now = self.refs(name).get(name)
        if now == old:
            raise Unavailable(f"remote {self.name} refuses {name}", hint="See its server's answer: git push --dry-run")
        return False

    def push_branch(self, branch: str, commit: str, *, known: Sequence[str]) -> None:
        """Push a branch. Raise Conflict if the remote has another branch of that name."""
        ref = f"refs/heads/{branch}"
        now = self.refs(ref).get(ref)
        if now is not None and now not in known:
            raise Conflict(f"remote {self.name} has another branch {branch} already", hint="Rename it there, then go on.")
        self._call(*_PUSH, f"--force-with-lease={ref}:{now or ''}", self.name, f"{commit}:{ref}")

    def drop(self, names: Sequence[str]) -> None:
        """Delete refs of Decklog at the remote, those that it has."""
        remote_refs = self.refs(os.path.commonpath(names)) if names else {}
        gone = [f":{name}" for name in names if name in remote_refs]
        if gone:
            self._call(*_PUSH, "--atomic", self.name, *gone)

    def fetch(self, refs: Sequence[str]) -> None:
        """Fetch refs of the remote. NAME fetches only the commits, NAME:NAME also sets the local ref, forward only."""
        with self._repository.locked():
            self._call(*_FETCH, "--stdin", self.name, given="".join(f"{ref}\n" for ref in refs).encode())

    def _call(self, *words: str, given: bytes | None = None, accepted: Sequence[int] = (0,)) -> GitResult:
        variables = {name: os.environ[name] for name in _PASSED if name in os.environ}
        # Keep ssh from prompting, unless the user has set how to call it.
        is_set = self._repository.on_refs("config", "--get", "core.sshCommand", accepted=(0, 1)).code == 0
        ssh = {} if is_set else {"GIT_SSH_COMMAND": _NO_QUESTIONS}
        own = {"GIT_DIR": str(self._repository.common), "GIT_CONFIG_NOSYSTEM": "0", **ssh, **variables}
        try:
            return run_git(
                words,
                variables=own,
                # A remote's address may be a path relative to the folder of the repository.
                cwd=self._repository.folder,
                given=given,
                accepted=accepted,
                settings=_SETTINGS,
                seconds=LONGEST_SECONDS,
            )
        except (TimedOut, Unavailable) as problem:
            raise Unavailable(
                f"remote {self.name} can't be reached: {problem.message}",
                hint=f"Try it: git ls-remote {self.name}",
                remote=self.name,
            ) from problem


class RunRefs:
    """The refs of one run, here and at the remote of its hosts. `home` is the prefix of all of them."""

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
        """Whether other hosts share the refs through a remote."""
        return self._remote is not None

    @property
    def target(self) -> str:
        """The ref of the landed commits."""
        return f"{self._home}/target"

    # The target

    def begin(self, commit: str) -> None:
        """Set the target of a new run to its first commit, here and at the remote."""
        if self._remote is not None and not self._remote.swap(self.target, commit, None):
            self._follow()
        elif self._repository.ref(self.target) is None:
            self._repository.set_refs({self.target: commit})

    def join(self) -> None:
        """Fetch the target of a run that another host has begun."""
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
        """Return the commit that the target is at."""
        if self._remote is not None:
            self._contact(self._follow)
        found = self._repository.ref(self.target)
        if found is None:
            raise NotFound(f"this clone has no {self.target}", hint="List the kept commits: decklog run rescue")
        return found

    def _follow(self) -> None:
        assert self._remote is not None
        self._remote.fetch([f"{self.target}:{self.target}"])

    def advance(self, new: str, old: str) -> bool:
        """Move the target from `old` to `new`; return False if it was not at `old`."""
        remote = self._remote
        if remote is None:
            return self._repository.swap_ref(self.target, new, old)
        is_moved = self._contact(lambda: remote.swap(self.target, new, old))
        self._contact(self._follow)
        return is_moved

    # Saved work of attempts

    def publish(self, beneath: str, end_reason: Callable[[], str | None]) -> None:
        """Push refs of this clone to the remote. Retry during an outage until `end_reason` returns a reason to stop."""
        remote = self._remote
        if remote is None:
            return None
        refs = self._repository.refs(beneath)
        while True:
            try:
                return self._contact(lambda: remote.push(refs))
            except Unavailable:
                if end_reason() is not None:
                    raise
            time.sleep(min(self._wait, 1.0))

    def fetch_missing(self, commits: Iterable[object]) -> None:
        """Fetch those commits that this clone does not have."""
        missing = [str(commit) for commit in commits if commit and not self._repository.has(str(commit))]
        remote = self._remote
        if not missing or remote is None:
            return
        theirs, local = self._contact(lambda: remote.refs(self._home)), self._repository.refs(self._home)
        # Never overwrite a ref of this clone: its commits may not be at the remote yet.
        wanted = [name if name in local else f"{name}:{name}" for name, value in theirs.items() if local.get(name) != value]
        if wanted:
            self._contact(lambda: remote.fetch(wanted))
        if left := [commit for commit in missing if not self._repository.has(commit)]:
            raise Conflict(
                f"remote {remote.name} does not have commit {left[0][:12]}, which the log names",
                hint="Push it again from the host that created it: run decklog run work there.",
                commits=left,
            )

    def drop(self, names: list[str]) -> None:
        """Delete refs in this clone and at the remote."""
        if self._remote is not None:
            self._remote.drop(names)
        self._repository.drop_refs(names)

    # Outages

    def is_unreachable(self) -> bool:
        """Return whether the remote is unreachable; try it again after a wait."""
        remote = self._remote
        if remote is None or self.trouble is None:
            return False
        with self._lock:
            if self.trouble is None or time.monotonic() < self._next_try:
                return self.trouble is not None
            try:
                self._contact(lambda: remote.refs(self.target))
            except Unavailable:
                return True
            return False

    def _contact(self, act: Callable[[], _Result]) -> _Result:
        """Call the remote, and remember whether it was reachable."""
        try:
            found = act()
        except Unavailable as problem:
            self.trouble = problem.message
            self._next_try = time.monotonic() + self._wait
            self._wait = min(2 * self._wait, LONGEST_WAIT)
            raise
        self.trouble, self._wait = None, SHORTEST_WAIT
        return found


def ref_prefix(run_id: str) -> str:
    """Return the prefix of all refs of a run."""
    return f"{REF_PREFIX}/{ref_part(run_id)}"


def run_refs(repository: Repository, run_id: str, remote: str | None) -> RunRefs:
    """Return the refs of a run, shared through a remote if one is named."""
    return RunRefs(repository, ref_prefix(run_id), None if remote is None else Remote(repository, remote))
