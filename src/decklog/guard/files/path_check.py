"""Check whether a path may be used under a root, and resolve it.

`resolve` only checks. Tools open files with `decklog.guard.files.root.Root`, which applies the same check and then opens exactly
the checked path, so that a concurrent change is denied too.
"""

import errno
import os
import stat
from dataclasses import replace
from pathlib import Path

from decklog.core.errors import Invalid, NotFound
from decklog.guard.files.access import SECRETS, AccessRules, Op, build_denial, resolve_names, split
from decklog.guard.files.open_beneath import PASS, ResolvedPath, canonical

__all__ = ["DEFAULT", "SECRETS", "AccessRules", "Op", "find_root_paths", "judge", "resolve", "rules_for"]

DEFAULT = AccessRules()
LONGEST_POINTER = 4096


def resolve(
    root: str | os.PathLike[str], path: str | os.PathLike[str], op: str = "read", *, rules: AccessRules = DEFAULT
) -> Path:
    """Return the absolute path without links for a path under the root; raise Denied for one that leads outside.

    `op` is `read`, `write` or `list`. A missing file resolves to its future path. `Denied` has the rule in `details` and a
    remedy in `hint`.
    """
    fd, root_paths = open_directory(root), find_root_paths(root)
    try:
        place = judge(fd, root_paths, os.fspath(path), _op(op), rules_for(fd, root_paths, rules))
    finally:
        os.close(fd)
    return Path(root_paths[0]) if place.path == "." else Path(root_paths[0], place.path)


def _op(op: str) -> Op:
    try:
        return Op(op)
    except ValueError:
        raise Invalid(f"{op!r} is not an operation", hint="Use read, write or list.", op=op) from None


def open_directory(root: str | os.PathLike[str]) -> int:
    """Open the root directory by its real path."""
    real = os.path.realpath(root)
    if real == "/":
        raise Invalid("The root is the whole file system", hint="Name the repository's directory.", root=real)
    try:
        return os.open(real, PASS)
    except NotADirectoryError:
        raise Invalid(f"The root {real} is not a directory", hint="Name a directory.", root=real) from None
    except FileNotFoundError:
        raise NotFound(f"The root {real} does not exist", hint="Create it first.", root=real) from None


def find_root_paths(root: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the absolute paths of the root: its real path, and the given one."""
    return tuple(dict.fromkeys((os.path.realpath(root), os.path.abspath(root))))


def judge(root_fd: int, root_paths: tuple[str, ...], path: str, op: Op, rules: AccessRules) -> ResolvedPath:
    """Resolve a path beneath the root; raise Denied for its spelling, a link, a rule or the kind of file."""
    parts = split(path, root_paths, op)
    spelled = "/".join(resolve_names(parts)) or "."
    rules.judge(spelled, op)
    try:
        place = canonical(root_fd, parts, root_paths, path, op)
    except PermissionError:
        raise build_denial("permission", path, op) from None
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ELOOP, errno.ENOTDIR):
            raise
        # A link was replaced concurrently, or a file by a link.
        raise build_denial("symlink-race", path, op) from None
    if place.path != spelled:
        # Check both paths: a link may give a protected file another name, or a protected name another file.
        rules.judge(place.path, op)
    if op is Op.WRITE:
        rules.judge_allowed(place.path)
    if place.found is not None:
        rules.judge_file(place.path, op, place.found)
    elif parts[-1] in ("", ".", "..") and op is not Op.LIST:
        raise build_denial("directory", path, op)
    return place


def rules_for(root_fd: int, root_paths: tuple[str, ...], rules: AccessRules) -> AccessRules:
    """Return the rules, with the directory that `.git` points to if it is inside the root."""
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
    inside = os.path.relpath(os.path.join(root_paths[0], target), root_paths[0])
    return rules if inside == "." or inside.startswith("..") else replace(rules, git_home=inside)


def _git_pointer(root_fd: int) -> str:
    fd = os.open(".git", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=root_fd)
    try:
        return os.fsdecode(os.read(fd, LONGEST_POINTER)).removeprefix("gitdir:").strip()
    finally:
        os.close(fd)
