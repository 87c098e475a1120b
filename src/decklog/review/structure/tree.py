"""The files of a change as they are afterwards, those that it does not touch too: what they say, and who names what."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache

from decklog.review.change import LARGEST_FILE, Change
from decklog.review.rules.languages import suffix_of
from decklog.review.rules.source import Source, is_test_path, sources
from decklog.review.structure.imports import Imported, imports

PROSE = (".md", ".rst", ".adoc", ".txt", ".1")
_HISTORY = re.compile(r"(?i)(?:^|/)(?:changelog|changes|history|news|releases?|release[-_ ]notes|upgrad\w*|migrat\w*)\b[^/]*$")
# Nobody wrote these by hand, or nobody of this project did.
_FOREIGN = re.compile(r"(?:^|/)(?:node_modules|vendor|third_party|dist|\.venv|site-packages)/|\.min\.(?:js|css)$|\.lock$")
_MOST_FILES = 400


def is_history(path: str) -> bool:
    """Say whether a file tells what was, as a changelog does: old names and values are at home there."""
    return _HISTORY.search(path) is not None


class Tree:
    """The tree that a change leads to, read as it is needed and each file once."""

    def __init__(self, change: Change, tests: Sequence[str]) -> None:
        self.change = change
        self.sources: Sequence[Source] = tuple(one for one in sources(change, tests) if not _FOREIGN.search(one.path))
        self._texts: dict[str, str] = {one.path: one.text for one in self.sources}
        self._imports: dict[str, list[Imported]] = {}

    @cached_property
    def files(self) -> frozenset[str]:
        """The paths of all files."""
        listed = self.change.repository.on_objects("ls-tree", "-r", "-z", "--name-only", self.change.head).out
        return frozenset(path for path in listed.decode(errors="replace").split("\0") if path)

    @cached_property
    def changed(self) -> Mapping[str, Source]:
        return {one.path: one for one in self.sources}

    @cached_property
    def added_text(self) -> str:
        return "\n".join(line.text for line in self.change.added)

    @cached_property
    def gone_text(self) -> str:
        return "\n".join(line.text for one in self.sources for line in one.lines if line.sign == "-")

    def text(self, path: str) -> str:
        """Read one file; nothing where there is none."""
        return self.texts([path]).get(path, "")

    def texts(self, paths: Iterable[str]) -> dict[str, str]:
        """Read several files at once."""
        wanted = [path for path in dict.fromkeys(paths) if path in self.files]
        missing = [path for path in wanted if path not in self._texts and "\n" not in path]
        if missing:
            given = "".join(f"{self.change.head}:{path}\n" for path in missing).encode()
            answer = self.change.repository.on_objects("cat-file", "--batch", given=given).out
            self._texts.update(zip(missing, _contents(answer), strict=False))
        return {path: self._texts[path] for path in wanted if path in self._texts}

    def naming(self, words: Iterable[str]) -> dict[str, str]:
        """Read the files that have one of these words; of very many, the first."""
        given = "".join(f"{word}\n" for word in dict.fromkeys(words) if word and "\n" not in word).encode()
        if not given:
            return {}
        found = self.change.repository.on_objects(
            "grep", "-I", "-l", "-z", "-F", "-f", "-", self.change.head, given=given, accepted=(0, 1)
        ).out.decode(errors="replace")
        paths = [name.partition(":")[2] for name in found.split("\0") if name]
        return self.texts([path for path in paths if not _FOREIGN.search(path)][:_MOST_FILES])

    # Imports

    @cached_property
    def _go_module(self) -> str:
        found = re.search(r"(?m)^module\s+(\S+)", self.text("go.mod"))
        return found[1] if found is not None else ""

    def imports(self, path: str) -> list[Imported]:
        """Give what a file imports of this tree; each is read once, however many ways lead to it."""
        if path not in self._imports:
            self._imports[path] = imports(path, self.text(path), self.files, self._go_module)
        return self._imports[path]

    def new_imports(self, source: Source) -> list[Imported]:
        """Give the imports that a file did not have before."""
        now = self.imports(source.path)
        old = imports(source.path, source.before, self.files, self._go_module) if now else []
        before = {(one.path, one.is_at_once, one.is_for_types) for one in old}
        return [one for one in now if (one.path, one.is_at_once, one.is_for_types) not in before and one.path != source.path]

    def is_test(self, path: str) -> bool:
        known = self.changed.get(path)
        return known.is_test if known is not None else is_test_path(path)


@lru_cache(maxsize=1)
def tree_of(change: Change, tests: tuple[str, ...]) -> Tree:
    """Give the tree of a change; three passes look at the same one, one after another."""
    return Tree(change, tests)


def _contents(answer: bytes) -> list[str]:
    """Take the answer of `git cat-file --batch` apart; what is missing, large or no text is nothing."""
    found, place = [], 0
    while place < len(answer):
        head, _, _ = answer[place : place + 400].partition(b"\n")
        place += len(head) + 1
        words = head.split(b" ")
        if len(words) < 3 or not words[-1].isdigit():
            found.append("")
            continue
        size = int(words[-1])
        data = answer[place : place + size]
        place += size + 1
        is_text = words[-2] == b"blob" and size <= LARGEST_FILE and b"\0" not in data[:8000]
        found.append(data.decode(errors="replace").replace("\r\n", "\n") if is_text else "")
    return found


def documents(tree: Tree, words: Iterable[str]) -> dict[str, str]:
    """Read the documents that have one of these words; those that tell what was are left out."""
    found = tree.naming(words)
    return {path: text for path, text in found.items() if suffix_of(path) in PROSE and not is_history(path)}
