"""Folders with the files of a commit, in which checks run: one that is proven to be as it was made serves the next check too.

The proof is a look at everything. Each file that was written must be there as the same file, with the same mode, the same times
and the same content, read again: on some file systems a file that is written through memory keeps its times. What else lies there
is removed. The repository in the folder, whose settings a check could have changed, is always made anew. Whatever differs, and
whatever a check left running or was ended in, has the whole folder made anew.
"""

import hashlib
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from decklog.conductor.git import places
from decklog.conductor.git.places import Workspace
from decklog.conductor.git.removal import Removal
from decklog.conductor.git.repository import Person, Repository
from decklog.core.errors import DecklogError

_AT_ONCE = 1024 * 1024


@dataclass(frozen=True)
class _Known:
    """What a file or a folder is known by: what the system says of it, and the digest of its content."""

    facts: tuple[int, ...]
    digest: bytes


class Checkout:
    """A folder with the files of one commit, of which a check sees `tree`. It is left well when its check came to its own end."""

    def __init__(self, place: Workspace) -> None:
        self._place = place
        self._known: dict[str, _Known] = {}
        self._index = b""
        self.is_left_well = False

    @property
    def folder(self) -> Path:
        return self._place.folder

    @property
    def tree(self) -> Path:
        return self._place.tree

    def make(self, repository: Repository, commit: str, person: Person) -> None:
        """Write the files of a commit."""
        places.make(repository, self._place, commit, person)
        self._learn()

    def is_moved(self, repository: Repository, commit: str, person: Person, removal: Removal) -> bool:
        """Hold the files of another commit, if all is as it was made; say no when it is not, or git would not."""
        try:
            if not self._is_proven(removal):
                return False
            removal.take(self._place.git)
            places.fill(repository, self.tree, self._place.index, commit, person)
            self._learn()
        except (DecklogError, OSError):
            return False
        return True

    def _learn(self) -> None:
        """Remember what was written; what is the same file as before was read already."""
        top = os.fspath(self.tree)
        self._known = {path: self._learnt(top, path, facts) for path, facts in _found(top).items()}
        self._index = _digest_of_index(self._place.index)

    def _learnt(self, top: str, path: str, facts: tuple[int, ...]) -> _Known:
        known = self._known.get(path)
        return known if known is not None and known.facts == facts else _Known(facts, _digest(f"{top}/{path}", facts))

    def _is_proven(self, removal: Removal) -> bool:
        """Return whether everything that was written is there as it was; what else is there goes."""
        top = os.fspath(self.tree)
        found = _found(top)
        is_same = all(
            found.get(path) == known.facts and _digest(f"{top}/{path}", known.facts) == known.digest
            for path, known in self._known.items()
        )
        if not is_same or _digest_of_index(self._place.index) != self._index:
            return False
        for path in found:
            if path not in self._known and os.path.dirname(path) in self._known:
                removal.take(self.tree / path)
        return True


class Checkouts:
    """Gives checks the files of commits. Inside of `kept` a few folders are kept for those who come later."""

    def __init__(self, removal: Removal | None = None) -> None:
        self.removal = removal or Removal()
        self._spare: list[Checkout] = []
        self._most = 0
        self._numbers = count(1)
        self._lock = threading.Lock()

    @contextmanager
    def kept(self, most: int) -> Iterator[None]:
        """Keep at most so many folders for as long as the block lasts."""
        self._most = most
        try:
            yield
        finally:
            self._most = 0
            while (spare := self._taken()) is not None:
                self.removal.take(spare.folder)

    @contextmanager
    def of(self, repository: Repository, commit: str, person: Person, beneath: Path) -> Iterator[Checkout]:
        """Lend a folder with the files of a commit."""
        checkout = self._prepared(repository, commit, person, beneath)
        checkout.is_left_well = False
        try:
            yield checkout
        finally:
            self._give_back(checkout)

    def _prepared(self, repository: Repository, commit: str, person: Person, beneath: Path) -> Checkout:
        spare = self._taken()
        if spare is not None:
            if spare.is_moved(repository, commit, person, self.removal):
                return spare
            self.removal.take(spare.folder)
        made = Checkout(Workspace(beneath / f"files.{next(self._numbers)}", ""))
        made.make(repository, commit, person)
        return made

    def _taken(self) -> Checkout | None:
        with self._lock:
            return self._spare.pop() if self._spare else None

    def _give_back(self, checkout: Checkout) -> None:
        with self._lock:
            is_kept = checkout.is_left_well and len(self._spare) < self._most
            if is_kept:
                self._spare.append(checkout)
        if not is_kept:
            self.removal.take(checkout.folder)


# These go through thousands of files for each check: paths stay texts, and the system is asked as little as can be.


def _found(top: str) -> dict[str, tuple[int, ...]]:
    """Return what the system says of every file and folder, the folder itself by an empty name, its repository left out."""
    found = {"": _facts(os.lstat(top))}
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        before = f"{folder}/" if folder else ""
        with os.scandir(f"{top}/{folder}") as entries:
            for entry in entries:
                path = before + entry.name
                if path != ".git":
                    found[path] = facts = _facts(entry.stat(follow_symlinks=False))
                    if stat.S_ISDIR(facts[2]):
                        waiting.append(path)
    return found


def _facts(of: os.stat_result) -> tuple[int, ...]:
    if stat.S_ISDIR(of.st_mode):
        # Whatever came and went in a folder changed its times.
        return of.st_dev, of.st_ino, of.st_mode
    return of.st_dev, of.st_ino, of.st_mode, of.st_nlink, of.st_uid, of.st_size, of.st_mtime_ns, of.st_ctime_ns


def _digest(path: str, facts: tuple[int, ...]) -> bytes:
    """Read what is a file by its facts, or where a link leads; a folder has no content of its own."""
    if stat.S_ISDIR(facts[2]):
        return b""
    if stat.S_ISLNK(facts[2]):
        return os.fsencode(os.readlink(path))
    # One more than there should be: all of a small file is read at once, and what was added to it too.
    at_once = min(facts[5], _AT_ONCE) + 1
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        data = os.read(handle, at_once)
        digest = hashlib.blake2b(data)
        while len(data) == at_once:
            data = os.read(handle, at_once)
            digest.update(data)
    finally:
        os.close(handle)
    return digest.digest()


def _digest_of_index(path: Path) -> bytes:
    return _digest(os.fspath(path), _facts(path.lstat()))
