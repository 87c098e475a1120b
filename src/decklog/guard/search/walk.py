"""Walk the files beneath a root, in the order git would list them, without following a link."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from decklog.guard.files.access import Op
from decklog.guard.files.gitignore import Ignores, with_parents
from decklog.guard.files.root import Root, errors_of

NEVER_WALKED = frozenset({".git", ".decklog"})
IGNORE_FILE = ".gitignore"
LARGEST_IGNORE_FILE = 1024 * 1024


@dataclass(frozen=True)
class Skipped:
    """Something a tool left out, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Walked:
    """The files a walk found, as paths relative to the root, and what it had to leave out."""

    files: tuple[str, ...]
    links: tuple[str, ...]
    skipped: tuple[Skipped, ...]


def walk(root: Root, path: str = ".", *, recursive: bool = True, with_ignored: bool = False) -> Walked:
    """Find every file beneath a directory (or the file itself), leaving out what `.gitignore` files list.

    `.git` and `.decklog` are never entered. Links are given apart and not followed.
    """
    place = root.place(path, Op.LIST)
    if place.found is None:
        with errors_of(path, Op.LIST):
            raise FileNotFoundError(2, os.strerror(2), path)
    return _Walk(root, with_ignored=with_ignored).run(place.path, recursive=recursive)


class _Walk:
    def __init__(self, root: Root, *, with_ignored: bool) -> None:
        self.root = root
        self.with_ignored = with_ignored
        self.files: list[str] = []
        self.links: list[str] = []
        self.skipped: list[Skipped] = []

    def run(self, start: str, *, recursive: bool) -> Walked:
        pending: list[tuple[str, Ignores]] = [(start, self._ignores_above(start))]
        while pending:
            directory, ignores = pending.pop()
            below = list(self._enter(directory, ignores))
            pending.extend(below if recursive else ())
        skipped = sorted(self.skipped, key=lambda one: one.path)
        return Walked(tuple(sorted(self.files)), tuple(sorted(self.links)), tuple(skipped))

    def _ignores_above(self, start: str) -> Ignores:
        ignores = Ignores()
        if start == "." or self.with_ignored:
            return ignores
        for directory in (".", *list(with_parents(start))[:-1]):
            text = self._ignore_text("" if directory == "." else f"{directory}/")
            ignores = ignores.entering("" if directory == "." else directory, text)
        return ignores

    def _enter(self, directory: str, ignores: Ignores) -> Iterator[tuple[str, Ignores]]:
        try:
            fd = self.root.open_exact(directory, os.O_RDONLY | os.O_DIRECTORY)
        except NotADirectoryError:
            self.files.append(directory)
            return
        except OSError as error:
            self.skipped.append(Skipped(directory, f"can't be opened: {error.strerror}"))
            return
        try:
            with os.scandir(fd) as entries:
                found = list(entries)
            yield from self._sort_out(directory, found, ignores)
        finally:
            os.close(fd)

    def _sort_out(self, directory: str, entries: list[os.DirEntry[str]], ignores: Ignores) -> Iterator[tuple[str, Ignores]]:
        prefix = "" if directory == "." else f"{directory}/"
        if not self.with_ignored and any(entry.name == IGNORE_FILE for entry in entries):
            ignores = ignores.entering(prefix[:-1], self._ignore_text(prefix))
        for entry in entries:
            path = prefix + entry.name
            is_dir = entry.is_dir(follow_symlinks=False)
            if self._is_never_walked(entry.name, path) or ignores.covers(path, is_dir=is_dir):
                continue
            if not _is_utf8(entry.name):
                shown = os.fsencode(path).decode("utf-8", "replace")
                self.skipped.append(Skipped(shown, "its name is not valid UTF-8"))
            elif is_dir:
                yield path, ignores
            elif entry.is_symlink():
                self.links.append(path)
            elif entry.is_file(follow_symlinks=False):
                self.files.append(path)

    def _is_never_walked(self, name: str, path: str) -> bool:
        return name.lower() in NEVER_WALKED or path == self.root.rules.git_home

    def _ignore_text(self, prefix: str) -> str | None:
        try:
            fd = self.root.open_exact(prefix + IGNORE_FILE, os.O_RDONLY)
        except OSError:
            # Missing, a link (git ignores those too) or not readable: no rules.
            return None
        try:
            return os.read(fd, LARGEST_IGNORE_FILE).decode("utf-8", "replace")
        except OSError:
            return None
        finally:
            os.close(fd)


def _is_utf8(name: str) -> bool:
    return name.isascii() or not any("\ud800" <= char <= "\udfff" for char in name)
