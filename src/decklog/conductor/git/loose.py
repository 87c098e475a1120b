"""Objects in files of their own, as whatever was just made is, read and made without starting git. A pack is git's to read."""

import hashlib
import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from secrets import token_hex

from decklog.core.disk import sync_descriptor

_LONGEST_HEAD = 64
# As git has it: what is made is packed later.
_QUICKLY = 1
# What git leaves out of a name at its ends, and within.
_CRUD = "".join(map(chr, range(33))) + ".,:;<>\"\\'"
_NOT_WITHIN = frozenset("\n<>")
_LAST_PLAIN = "\ufdcf"


@dataclass(frozen=True)
class Commit:
    """What is asked of a commit: the files that it holds, and what it comes after."""

    tree: str
    parents: tuple[str, ...]


def is_name(text: str) -> bool:
    """Return whether a text names an object in full."""
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
    """Return the size of an object; None when it is no file of its own."""
    try:
        with open(_path(objects, name), "rb") as file:
            head = zlib.decompressobj().decompress(file.read(_LONGEST_HEAD), _LONGEST_HEAD)
    except (OSError, zlib.error):
        return None
    words = head.partition(b"\0")[0].split()
    return int(words[1]) if len(words) == 2 and words[1].isdigit() else None


def is_here(objects: Path, name: str) -> bool:
    """Return whether an object is a file of its own."""
    return _path(objects, name).is_file()


def commit_text(tree: str, parents: Sequence[str], message: str, person: tuple[str, str], at: int) -> bytes | None:
    """Write the text of a commit as git does; None where git would not write all of it as it is given."""
    is_plain = max(message, default="") <= _LAST_PLAIN and "\0" not in message and all(map(_is_plain, person))
    if not is_plain:
        return None
    who = f"{person[0]} <{person[1]}> {at} +0000"
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {who}", f"committer {who}"]
    return "\n".join([*lines, "", message]).encode()


def _is_plain(name: str) -> bool:
    return bool(name) and name.strip(_CRUD) == name and not _NOT_WITHIN & set(name) and max(name) <= _LAST_PLAIN


def make(objects: Path, kind: str, body: bytes, *, is_sha256: bool) -> str | None:
    """Put an object on disk for good and give its name; None where that can't be done, which git says better."""
    content = f"{kind} {len(body)}\0".encode() + body
    digest = hashlib.sha256(content) if is_sha256 else hashlib.sha1(content, usedforsecurity=False)
    name = digest.hexdigest()
    path = _path(objects, name)
    try:
        # As if it were new: nothing that was just asked for is old enough to be dropped.
        os.utime(path)
    except FileNotFoundError:
        return name if _is_put(path, zlib.compress(content, _QUICKLY)) else None
    except OSError:
        return None
    return name


def _is_put(path: Path, content: bytes) -> bool:
    """Return a file its name once all of it is on disk. What a crash leaves has a name that git drops some day."""
    new = path.with_name(f"tmp_obj_{token_hex(8)}")
    try:
        path.parent.mkdir(exist_ok=True)
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            sync_descriptor(handle)
        new.rename(path)
    except OSError:
        with suppress(OSError):
            new.unlink()
        return False
    return True


def _path(objects: Path, name: str) -> Path:
    return objects / name[:2] / name[2:]
