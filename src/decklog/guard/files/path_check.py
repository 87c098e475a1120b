"""Decide whether a path may be used under a root, and where it leads.

`resolve` is the judgement alone. The tools open files through `decklog.guard.files.root.Root`, which applies
the same judgement and then opens what was judged, so that a change of the disk in between is refused too.
"""

import errno
import os
import stat
from dataclasses import replace
from pathlib import Path

from decklog.core.errors import Invalid, NotFound
from decklog.guard.files.access import SECRETS, AccessRules, Op, denied, flattened, split
from decklog.guard.files.open_beneath import PASS, ResolvedPath, canonical

__all__ = ["DEFAULT", "SECRETS", "AccessRules", "Op", "homes_of", "judge", "resolve", "rules_for"]

DEFAULT = AccessRules()
LONGEST_POINTER = 4096


def resolve(
    root: str | os.PathLike[str], path: str | os.PathLike[str], op: str = "read", *, rules: AccessRules = DEFAULT
) -> Path:
    """Return the absolute path, free of links, that a path under the root leads to; refuse one that gets out.

    `op` is `read`, `write` or `list`. A file that does not exist yet resolves to where it would be. Raises
    `Denied` with the rule that fired in `details` and a remedy in `hint`.
    """
    fd, homes = open_directory(root), homes_of(root)
    try:
        place = judge(fd, homes, os.fspath(path), _op(op), rules_for(fd, homes, rules))
    finally:
        os.close(fd)
    return Path(homes[0]) if place.path == "." else Path(homes[0], place.path)


def _op(op: str) -> Op:
    try:
        return Op(op)
    except ValueError:
        raise Invalid(f"{op!r} is not an operation", hint="Use read, write or list.", op=op) from None


def open_directory(root: str | os.PathLike[str]) -> int:
    """Open the root directory itself, by its real path."""
    real = os.path.realpath(root)
    if real == "/":
        raise Invalid("The root is the whole file system", hint="Name the repository's directory.", root=real)
    try:
        return os.open(real, PASS)
    except NotADirectoryError:
        raise Invalid(f"The root {real} is not a directory", hint="Name a directory.", root=real) from None
    except FileNotFoundError:
        raise NotFound(f"The root {real} does not exist", hint="Create it first.", root=real) from None


def homes_of(root: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the absolute spellings of the root: its real path first, then as it was given."""
    return tuple(dict.fromkeys((os.path.realpath(root), os.path.abspath(root))))


def judge(root_fd: int, homes: tuple[str, ...], path: str, op: Op, rules: AccessRules) -> ResolvedPath:
    """Find where a path leads beneath the root, or refuse it by spelling, links, rules or kind."""
    parts = split(path, homes, op)
    spelled = "/".join(flattened(parts)) or "."
    rules.judge(spelled, op)
    try:
        place = canonical(root_fd, parts, homes, path, op)
    except PermissionError:
        raise denied("permission", path, op) from None
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ELOOP, errno.ENOTDIR):
            raise
        # What was a link a moment ago is none now, or the other way round.
        raise denied("symlink-race", path, op) from None
    if place.path != spelled:
        # A link may give a guarded file an innocent name, or a guarded name an innocent file: judge both.
        rules.judge(place.path, op)
    if op is Op.WRITE:
        rules.judge_allowed(place.path)
    if place.found is not None:
        rules.judge_file(place.path, op, place.found)
    elif parts[-1] in ("", ".", "..") and op is not Op.LIST:
        raise denied("directory", path, op)
    return place


def rules_for(root_fd: int, homes: tuple[str, ...], rules: AccessRules) -> AccessRules:
    """Add to the rules the directory that `.git` points to, if it points to one inside the root."""
    try:
        found = os.stat(".git", dir_fd=root_fd, follow_symlinks=False)
    except OSError:
        return rules
    if stat.S_ISLNK(found.st_mode):
        target = os.readlink(".git", dir_fd=root_fd)
    elif stat.S_ISREG(found.st_mode):
        target = _git_pointer(root_fd)
    else:
        return rules
    inside = os.path.relpath(os.path.join(homes[0], target), homes[0])
    return rules if inside == "." or inside.startswith("..") else replace(rules, git_home=inside)


def _git_pointer(root_fd: int) -> str:
    fd = os.open(".git", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=root_fd)
    try:
        return os.fsdecode(os.read(fd, LONGEST_POINTER)).removeprefix("gitdir:").strip()
    finally:
        os.close(fd)
