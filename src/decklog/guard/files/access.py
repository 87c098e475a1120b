"""Say which files inside the root a tool may read, list and write."""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, cached_property

from decklog.guard.files.gitignore import IgnoreFile
from decklog.guard.files.path_spelling import HONEST, denied, folded, unmask
from decklog.guard.policy.policy import control_files

SECRETS = (
    ".env",
    ".env.*",
    "*.env",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    "!.env.dist",
    "!.env.defaults",
    "!example.env",
    "!sample.env",
    "!template.env",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "!id_*.pub",
    ".ssh/",
    ".gnupg/",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
    ".aws/credentials",
    ".docker/config.json",
)
GIT_NAMES = frozenset({".git", "git~1"})
GIT_CREDENTIALS = frozenset({"config", "config.worktree", "credentials"})
DECKLOG_NAME = ".decklog"


class Op(StrEnum):
    """What a tool wants to do with a path."""

    READ = "read"
    WRITE = "write"
    LIST = "list"


@cache
def _control() -> IgnoreFile:
    return IgnoreFile(control_files(), ignore_case=True)


def _folded_names(path: str) -> list[str]:
    """Return a path's names as a forgiving file system compares them; none if none can be guarded."""
    if HONEST.fullmatch(path):
        lowered = path.lower()
        # A plain ASCII path that spells none of the guarded names folds to none of them.
        if ".git" not in lowered and DECKLOG_NAME not in lowered:
            return []
        return [folded(name) for name in path.split("/")]
    return [folded(name) for name in unmask(path).split("/")]


@dataclass(frozen=True, kw_only=True)
class AccessRules:
    """The paths a tool may touch: globs as in a `.gitignore`, relative to the root.

    `allowed` and `forbidden` are a task's own and bind writing; no `allowed` means everything. `secrets`
    binds reading and writing. A file with more than one hard link is refused unless `allow_hardlinks`,
    because its other name may be outside of the root.
    """

    allowed: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    secrets: tuple[str, ...] = SECRETS
    allow_hardlinks: bool = False
    git_home: str | None = None

    def of_task(self, allowed: Iterable[str] = (), forbidden: Iterable[str] = ()) -> "AccessRules":
        """Return the same rules with a task's own globs."""
        return replace(self, allowed=tuple(allowed), forbidden=tuple(forbidden))

    @cached_property
    def _allowed(self) -> IgnoreFile:
        return IgnoreFile(self.allowed)

    @cached_property
    def _forbidden(self) -> IgnoreFile:
        return IgnoreFile(self.forbidden, ignore_case=True)

    @cached_property
    def _secrets(self) -> IgnoreFile:
        return IgnoreFile(self.secrets, ignore_case=True)

    def judge(self, path: str, op: Op) -> None:
        """Refuse a path, given relative to the root, that the rules keep from this operation."""
        names = _folded_names(path)
        if DECKLOG_NAME in names:
            raise denied("decklog", path, op)
        if names or self.git_home is not None:
            self._judge_git(path, names, op)
        if op is Op.WRITE and _control().covers("/".join(map(folded, unmask(path).split("/")))):
            raise denied("control", path, op)
        if op is not Op.LIST and self._secrets.covers(path):
            raise denied("secret", path, op)
        if op is Op.WRITE and self.forbidden and self._forbidden.covers(path):
            raise denied("forbidden", path, op, forbidden=list(self.forbidden))

    def judge_allowed(self, path: str) -> None:
        """Refuse to write where the task does not allow it; the path is the real place, free of links."""
        if self.allowed and not self._allowed.covers(path):
            raise denied("not-allowed", path, Op.WRITE, allowed=list(self.allowed))

    def _judge_git(self, path: str, names: list[str], op: Op) -> None:
        is_git = not GIT_NAMES.isdisjoint(names) or self._is_git_home(path)
        if is_git and op is Op.WRITE:
            raise denied("git", path, op)
        if is_git and op is Op.READ and folded(path.rpartition("/")[2]) in GIT_CREDENTIALS:
            raise denied("git-credentials", path, op)

    def _is_git_home(self, path: str) -> bool:
        return self.git_home is not None and f"{path}/".startswith(f"{self.git_home}/")

    def judge_file(self, path: str, op: Op, found: os.stat_result) -> None:
        """Refuse a thing on disk that is not a file or directory this operation can use."""
        mode = found.st_mode
        if stat.S_ISDIR(mode):
            if op is Op.WRITE:
                raise denied("directory", path, op)
        elif not stat.S_ISREG(mode):
            raise denied("special-file", path, op)
        elif found.st_nlink > 1 and op is not Op.LIST and not self.allow_hardlinks:
            raise denied("hard-link", path, op, links=found.st_nlink)

    def may_read(self, path: str) -> bool:
        """Return whether the rules let this path be read; the path is one that a walk of the root gave."""
        return not self._secrets.covers(path)
