"""A remote of the user's through which refs of our own travel from clone to clone; nothing else of it is read or written."""

import os
from collections.abc import Mapping, Sequence

from decklog.conductor.git.calls import GitResult, call
from decklog.conductor.git.repository import Repository, check_own
from decklog.core.errors import Conflict, NotFound, TimedOut, Unavailable

LONGEST_SECONDS = 120.0
# A remote is the user's: it is reached as the user reaches it, and only in ways that start no program of the remote's choice.
_SETTINGS = (
    *(f"protocol.{way}.allow=always" for way in ("file", "ssh", "http", "https", "git")),
    *("http.lowSpeedLimit=1", "http.lowSpeedTime=30"),
)
_PASSED = ("SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_SSH", "http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY")
_NO_QUESTIONS = "ssh -oBatchMode=yes -oConnectTimeout=15"
# What the user's settings could add to a fetch or a push.
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-prune", "--no-write-fetch-head", "--no-recurse-submodules")
_PUSH = ("push", "--quiet", "--porcelain", "--no-verify", "--no-follow-tags", "--no-signed", "--recurse-submodules=no")


class Remote:
    """One remote of a repository. Whatever keeps it from being reached is `Unavailable`."""

    def __init__(self, repository: Repository, name: str) -> None:
        self._repository = repository
        self.name = name

    def check(self) -> None:
        """Refuse a name that this clone has no remote of."""
        found = self._repository.on_refs("config", "--get", f"remote.{self.name}.url", accepted=(0, 1))
        if found.code:
            raise NotFound(
                f"this clone has no remote {self.name!r}", hint=f"Add it: git remote add {self.name} URL", remote=self.name
            )

    def refs(self, beneath: str) -> dict[str, str]:
        """Return all refs beneath a name, or of that name, as the remote has them now."""
        lines = self._call("ls-remote", "--quiet", "--refs", self.name, beneath, f"{beneath}/*").text.splitlines()
        return {name: value for value, _, name in (line.partition("\t") for line in lines)}

    def push(self, refs: Mapping[str, str]) -> None:
        """Let the remote hold these refs as well, all of them or none."""
        for name in refs:
            check_own(name)
        if refs:
            self._call(*_PUSH, "--atomic", self.name, *(f"+{value}:{name}" for name, value in refs.items()))

    def swap(self, name: str, new: str, old: str | None) -> bool:
        """Move a ref of the remote from one commit to another; say no when it is no longer at the first, or not missing."""
        check_own(name)
        words = (*_PUSH, f"--force-with-lease={name}:{old or ''}", self.name, f"{new}:{name}")
        if self._call(*words, accepted=(0, 1)).code == 0:
            return True
        now = self.refs(name).get(name)
        if now == old:
            raise Unavailable(f"remote {self.name} refuses {name}", hint="Look at what its server says: git push --dry-run")
        return False

    def offer(self, branch: str, commit: str, *, known: Sequence[str]) -> None:
        """Let the remote have a branch of ours, unless it has one of that name that is none of those we know."""
        ref = f"refs/heads/{branch}"
        now = self.refs(ref).get(ref)
        if now is not None and now not in known:
            raise Conflict(f"remote {self.name} has another branch {branch} already", hint="Rename it there, then go on.")
        self._call(*_PUSH, f"--force-with-lease={ref}:{now or ''}", self.name, f"{commit}:{ref}")

    def drop(self, names: Sequence[str]) -> None:
        """Drop refs of our own at the remote; those that it does not have are no trouble."""
        there = self.refs(os.path.commonpath(names)) if names else {}
        gone = [f":{name}" for name in names if name in there]
        if gone:
            self._call(*_PUSH, "--atomic", self.name, *gone)

    def fetch(self, refs: Sequence[str]) -> None:
        """Get what refs of the remote hold, each given as NAME, or as NAME:NAME to have it here too, forward only."""
        with self._repository.locked():
            self._call(*_FETCH, "--stdin", self.name, given="".join(f"{ref}\n" for ref in refs).encode())

    def _call(self, *words: str, given: bytes | None = None, accepted: Sequence[int] = (0,)) -> GitResult:
        variables = {name: os.environ[name] for name in _PASSED if name in os.environ}
        own = {"GIT_DIR": str(self._repository.common), "GIT_CONFIG_NOSYSTEM": "0", **self._ssh(), **variables}
        try:
            return call(words, variables=own, given=given, accepted=accepted, settings=_SETTINGS, seconds=LONGEST_SECONDS)
        except (TimedOut, Unavailable) as problem:
            raise Unavailable(
                f"remote {self.name} can't be reached: {problem.message}",
                hint=f"Try it: git ls-remote {self.name}",
                remote=self.name,
            ) from problem

    def _ssh(self) -> dict[str, str]:
        """Have ssh ask nothing, unless the user has said how to call it."""
        given = self._repository.on_refs("config", "--get", "core.sshCommand", accepted=(0, 1)).code == 0
        return {} if given else {"GIT_SSH_COMMAND": _NO_QUESTIONS}
