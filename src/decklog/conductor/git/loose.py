"""Objects in files of their own, as whatever was just made is, read without starting git. What is in a pack is git's to read."""

import hashlib
import zlib
from itertools import takewhile
from pathlib import Path

from decklog.dataclass import dataclass

_LONGEST_HEAD = 64


@dataclass(frozen=True)
class Commit:
    """What is asked of a commit: the files that it holds, and what it comes after."""

    tree: str
    parents: tuple[str, ...]


def is_name(text: str) -> bool:
    """Say whether a text names an object in full."""
    return len(text) in (40, 64) and not set(text) - set("0123456789abcdef")


def commit(objects: Path, name: str) -> Commit | None:
    """Read a commit; None when it is no file of its own, no commit, or not whole."""
    try:
        content = zlib.decompress(_path(objects, name).read_bytes())
    except (OSError, zlib.error):
        return None
    digest = hashlib.sha1(content, usedforsecurity=False) if len(name) == 40 else hashlib.sha256(content)
    head, _, body = content.partition(b"\0")
    return parsed(body) if head.startswith(b"commit ") and digest.hexdigest() == name else None


def parsed(content: bytes) -> Commit:
    """Read the text of a commit."""
    first, *rest = content.split(b"\n")
    parents = takewhile(lambda line: line.startswith(b"parent "), rest)
    return Commit(first.removeprefix(b"tree ").decode(), tuple(line.removeprefix(b"parent ").decode() for line in parents))


def size(objects: Path, name: str) -> int | None:
    """Give the size of an object; None when it is no file of its own."""
    try:
        with open(_path(objects, name), "rb") as file:
            head = zlib.decompressobj().decompress(file.read(_LONGEST_HEAD), _LONGEST_HEAD)
    except (OSError, zlib.error):
        return None
    words = head.partition(b"\0")[0].split()
    return int(words[1]) if len(words) == 2 and words[1].isdigit() else None


def _path(objects: Path, name: str) -> Path:
    return objects / name[:2] / name[2:]
