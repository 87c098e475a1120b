"""Branches of the user's, which only a person's own command moves: forward, by compare-and-swap, and never over a dirty file."""

from pathlib import Path

from decklog.conductor.git.calls import GitResult, call
from decklog.conductor.git.repository import Repository
from decklog.core.errors import Conflict, NotFound, Unavailable

# In the user's own folder the user's own settings count, filters and ignored files among them; hooks do not run.
_AS_THE_USER = {"GIT_CONFIG_NOSYSTEM": "0"}
_SHOWN = 10


class Branches:
    """The user's branches of one repository."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def current(self, cwd: Path) -> str:
        """Name the branch that is checked out in a folder."""
        found = call(["symbolic-ref", "--quiet", "--short", "HEAD"], variables={}, cwd=cwd, accepted=(0, 1))
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
        """Find the folder in which a branch is checked out; none is null."""
        listed = self._repository.on_refs("worktree", "list", "--porcelain", "-z").out.decode(errors="surrogateescape")
        for one in listed.split("\0\0"):
            lines = one.strip("\0").split("\0")
            if f"branch refs/heads/{branch}" in lines:
                return Path(lines[0].removeprefix("worktree "))
        return None

    def refuse_dirty(self, worktree: Path, branch: str) -> None:
        """Refuse a folder with changes that are not committed: nothing of it is touched, stashed or overwritten."""
        changed = self._in(worktree, "status", "--porcelain", "--untracked-files=no").text
        if changed:
            paths = [line.strip().split(" ", 1)[-1] for line in changed.splitlines()]
            raise Conflict(
                f"{branch} is checked out in {worktree}, with changes that are not committed: {', '.join(paths[:_SHOWN])}",
                hint="Commit or stash them, then land.",
                paths=paths,
            )

    def move(self, branch: str, new: str, old: str, worktree: Path | None) -> None:
        """Move a branch forward from one commit to another, with the files where it is checked out.

        It is checked out where it was, or nowhere as before: a merge would move whatever branch is there by now, and a branch
        that is moved under files leaves them behind.
        """
        if self.worktree(branch) != worktree:
            raise _gone_on(branch)
        if worktree is None:
            moved = self._repository.on_refs("update-ref", f"refs/heads/{branch}", new, old, accepted=(0, 1, 128)).code == 0
        else:
            if self.commit(branch) != old:
                raise _gone_on(branch)
            try:
                moved = self._in(worktree, "merge", "--ff-only", "--quiet", new).code == 0
            except Unavailable as problem:
                raise Conflict(f"{branch} was left as it is: {problem.message}", hint="Move what is in the way.") from problem
        if not moved:
            raise _gone_on(branch)

    def _in(self, worktree: Path, *words: str) -> GitResult:
        return call(words, variables=_AS_THE_USER, cwd=worktree)


def _gone_on(branch: str) -> Conflict:
    return Conflict(f"{branch} has gone on meanwhile", hint="Land again: what is there now is looked at anew.")
