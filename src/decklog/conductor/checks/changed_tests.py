"""The files of Python that a change touches, and which of its lost tests went with the code that they tried."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property

from decklog.conductor.checks.moved_tests import TestFile
from decklog.conductor.checks.removed_code import RemovedCode, gone
from decklog.conductor.checks.removed_tests import with_their_code, without
from decklog.conductor.git.changes import changes
from decklog.conductor.git.repository import Repository
from decklog.guard.files.gitignore import IgnoreFile

# A word of Python that can be looked for as it is.
_WORD = re.compile(r"\w+")


def python_files(
    repository: Repository, base: str, tip: str, is_wanted: Callable[[str], bool]
) -> tuple[dict[str, bytes | None], dict[str, bytes | None]]:
    """Read files of Python that a change touches, as they were and as they are; one that is not there is null."""
    paths = [one.path for one in changes(repository, base, tip) if one.path.endswith(".py") and is_wanted(one.path)]
    old, new = ({path: repository.read(commit, path) for path in paths} for commit in (base, tip))
    return old, new


def kept(files: Mapping[str, bytes | None]) -> list[TestFile]:
    return [TestFile(path, content) for path, content in files.items() if content is not None]


class Removed:
    """Tells lost tests of code that stays from those that went with their code. Remembers which it let go."""

    def __init__(self, repository: Repository, base: str, tip: str, tests: IgnoreFile) -> None:
        self._repository, self._base, self._tip, self._tests = repository, base, tip, tests
        self._let_go: set[str] = set()

    def left(self, lost: Sequence[str]) -> list[str]:
        """Return those of some lost tests that tried code that stays."""
        unknown = [name for name in lost if name not in self._let_go]
        if unknown:
            old, _ = python_files(self._repository, self._base, self._tip, self._tests.covers)
            self._let_go |= with_their_code(unknown, kept(old), self._gone, self)
        return [name for name in unknown if name not in self._let_go]

    def without(self, paths: Collection[str]) -> dict[str, bytes | None]:
        """Give old tests without those that were let go; a file that would have none left is null."""
        if not self._let_go:
            return {}
        old, _ = python_files(self._repository, self._base, self._tip, lambda path: path in paths)
        return {file.path: without(file, self._let_go, self._gone) for file in kept(old)}

    @cached_property
    def _gone(self) -> RemovedCode:
        old, new = python_files(self._repository, self._base, self._tip, lambda path: not self._tests.covers(path))
        return gone(old, new, self.words_of_code)

    def words_of_code(self, words: Collection[str]) -> set[str]:
        """Return those of some words that code has still."""
        files = [content for path, content in self._naming(words) if not self._tests.covers(path)]
        found = {word for content in files for word in _WORD.findall(content.decode(errors="replace"))}
        return found.intersection(words)

    def tests_naming(self, words: Collection[str]) -> list[TestFile]:
        """Return the tests that have one of some words."""
        return [TestFile(path, content) for path, content in self._naming(words) if self._tests.covers(path)]

    def _naming(self, words: Collection[str]) -> list[tuple[str, bytes]]:
        """Read the files of Python in the new tree that have one of some words."""
        if not words:
            return []
        wanted = [part for word in sorted(words) for part in ("-e", word)]
        found = self._repository.on_objects("grep", "-l", "-z", "-w", "-F", *wanted, self._tip, "--", "*.py", accepted=(0, 1)).out
        paths = [name.partition(b":")[2].decode(errors="surrogateescape") for name in found.split(b"\0") if name]
        read = [(path, self._repository.read(self._tip, path)) for path in paths]
        return [(path, content) for path, content in read if content is not None]
