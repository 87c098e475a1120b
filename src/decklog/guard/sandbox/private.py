"""Split a directory tree into parts that everybody may read and parts that only their owner may.

File modes do not restrict root, so a sandbox that runs as root must exclude the private parts itself.
"""

import os
import stat
import time
from dataclasses import dataclass, field
from functools import lru_cache

_FILE, _DIRECTORY = stat.S_IROTH, stat.S_IROTH | stat.S_IXOTH
# How long what was found is believed: a look takes as long as a tenth of a command, and what others install comes seldom.
_BELIEVED_SECONDS = 5


@dataclass
class PrivateParts:
    """Files and directories of a tree: wholly public, private, or public with private parts in it."""

    public: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    private: list[str] = field(default_factory=list)


def parts_of(tree: str) -> PrivateParts:
    """Sort out a tree; links are left out, since what they lead to is sorted where it lies."""
    return _parts_at(tree, int(time.monotonic() / _BELIEVED_SECONDS))


@lru_cache(maxsize=8)
def _parts_at(tree: str, _when: int) -> PrivateParts:
    parts = PrivateParts()
    _sort(tree, parts)
    return parts


def _sort(path: str, parts: PrivateParts) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    needed = _DIRECTORY if stat.S_ISDIR(mode) else _FILE
    if mode & needed != needed:
        parts.private.append(path)
    elif not stat.S_ISDIR(mode):
        parts.public.append(path)
    else:
        _sort_directory(path, parts)


def _sort_directory(path: str, parts: PrivateParts) -> None:
    inner = PrivateParts()
    with os.scandir(path) as entries:
        found = [entry.path for entry in entries if not entry.is_symlink()]
    for one in found:
        _sort(one, inner)
    if inner.private:
        parts.mixed += [path, *inner.mixed]
        parts.public += inner.public
        parts.private += inner.private
    else:
        parts.public.append(path)
