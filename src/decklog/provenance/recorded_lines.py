"""Lines that edits brought into files, by their text: for lines that were moved, copied, or removed and brought back.

Git's diff has one former place for a line at most. A line that is there twice, or again, is found here by its exact text, if
the block of such lines has as many letters and digits as `git blame -M` requires of a moved block.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decklog.provenance.git import GitRepository
    from decklog.stores.provenance.edits import Edit

# Git's own bound for moved lines. Without it any "}" would be taken for another one.
_LEAST_LETTERS = 20
_LETTER = re.compile(rb"[0-9A-Za-z]")
_MOST_EDITS = 200
_AT_ONCE = 50


class RecordedLines:
    """The lines that edits of some paths brought: their text is in the file after the edit, and was not in it before."""

    def __init__(self, repo: "GitRepository", edits: "Sequence[Edit]") -> None:
        self._repo = repo
        self._edits = [edit for edit in edits if edit.new_blob is not None][-_MOST_EDITS:]

    def writers(self, lines: Sequence[bytes], fresh: range, line: int, is_past: "Callable[[Edit], bool]") -> "Iterator[Edit]":
        """Yield the edits that brought a line of a content, newest first. `fresh` is the block of new lines that it is in."""
        for place, number in reversed(self._brought.get(lines[line - 1], ())):
            if is_past(self._edits[place]) and self._letters(lines, fresh, line, (place, number)) >= _LEAST_LETTERS:
                yield self._edits[place]

    def _letters(self, lines: Sequence[bytes], fresh: range, line: int, start: tuple[int, int]) -> int:
        """Count the letters and digits of the block around a line that one edit brought as a block."""
        place, number = start
        count = _letters_of(lines[line - 1])
        for step in (-1, 1):
            away = step
            while line + away in fresh and (place, number + away) in self._brought.get(lines[line + away - 1], ()):
                count += _letters_of(lines[line + away - 1])
                away += step
        return count

    def has(self, text: bytes) -> bool:
        """Return whether an edit brought a line of this text."""
        return text in self._brought

    @cached_property
    def _brought(self) -> dict[bytes, list[tuple[int, int]]]:
        """The edit and the line number of each line that an edit brought, by text."""
        found: dict[bytes, list[tuple[int, int]]] = {}
        for start in range(0, len(self._edits), _AT_ONCE):
            edits = self._edits[start : start + _AT_ONCE]
            blobs = dict.fromkeys(blob for edit in edits for blob in (edit.old_blob, edit.new_blob) if blob is not None)
            contents = self._repo.lines_of(list(blobs))
            for place, edit in enumerate(edits, start):
                if edit.old_blob is not None and edit.old_blob not in contents:
                    continue
                lines = contents.get(edit.new_blob or "", [])
                new = set(lines).difference(contents.get(edit.old_blob or "", ()))
                for number, text in enumerate(lines, 1) if new else ():
                    if text in new:
                        found.setdefault(text, []).append((place, number))
        return found


def _letters_of(text: bytes) -> int:
    return len(_LETTER.findall(text))
