"""Task Master's document, task by task, where it is large and as the program writes it: few of the tasks are in memory."""

import os
from typing import TYPE_CHECKING

from decklog.importing.json_pieces import Pieces, elements, members
from decklog.importing.text_files import MOST_BYTES, opened
from decklog.plugins.importers.taskmaster.words import MAIN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# What is smaller is read as a whole.
_LARGE = 4 * 1024**2
_TASKS, _METADATA = "tasks", "metadata"


class TaskFile:
    """The tags of a document with their tasks."""

    def __init__(self, path: str) -> None:
        self._path = path
        # Of each tag, once the document was walked through.
        self.metadata: dict[str, dict[str, Any]] = {}

    def is_large(self) -> bool:
        """Return whether the document is worth being read task by task."""
        return os.path.isfile(self._path) and os.path.getsize(self._path) >= _LARGE

    def tags(self) -> "Iterator[tuple[str, Iterator[Any]]]":
        """Yield the tags; the tasks of each are taken before the next one is asked for.

        A ValueError or RecursionError tells on the way that the document is not whole, or not just tags with tasks or one list.
        """
        with opened(self._path, MOST_BYTES) as file:
            pieces = Pieces(file)
            seen: set[str] = set()
            has_list = False
            for name in members(pieces):
                if has_list:
                    # As it was before there were tags: what else there is says nothing of tasks.
                    self._hear(MAIN, name, pieces)
                elif name == _TASKS and pieces.next() == "[":
                    if seen:
                        raise ValueError("it has both tags and a list without one")
                    has_list = True
                    yield MAIN, elements(pieces)
                else:
                    seen.add(name)
                    yield name, self._tasks_of(name, pieces)
            if pieces.next():
                raise ValueError("something stands behind the document")

    def _tasks_of(self, tag: str, pieces: Pieces) -> "Iterator[Any]":
        has_tasks = False
        for name in members(pieces):
            if name == _TASKS:
                has_tasks = True
                yield from elements(pieces)
            else:
                self._hear(tag, name, pieces)
        if not has_tasks:
            raise ValueError("it is no tag with tasks")

    def _hear(self, tag: str, name: str, pieces: Pieces) -> None:
        """Read what stands beside tasks."""
        value = pieces.value()
        if name == _METADATA and isinstance(value, dict):
            self.metadata[tag] = value
