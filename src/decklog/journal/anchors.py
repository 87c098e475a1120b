"""The heads of a log's streams, kept outside of it, so that a tail that was cut off shows."""

import json
import os
from typing import TYPE_CHECKING

from decklog.core.disk import sync_descriptor
from decklog.core.errors import Invalid
from decklog.journal.rows import STREAM_SIZE
from decklog.records.values import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from decklog.stores.results.journal import StreamHead


class Anchors:
    """A file outside the log with the last verified head of every stream, one JSON object a line."""

    def __init__(self, path: str) -> None:
        self._path = path

    def kept(self) -> "Iterator[tuple[str, int, str]]":
        if not os.path.exists(self._path):
            return
        for number, line in enumerate(self._lines(), 1):
            try:
                head = json.loads(line)
                stream, seq, hash = head["stream"], head["seq"], head["hash"]
                if (type(stream), type(seq), type(hash)) != (str, int, str) or not 0 < seq < STREAM_SIZE:
                    raise ValueError
                yield stream, seq, hash
            except (ValueError, KeyError, TypeError, RecursionError):
                raise Invalid(f"line {number} of {self._path} is not an anchor") from None

    def _lines(self) -> list[str]:
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                return file.readlines()
        except (OSError, ValueError) as problem:
            raise Invalid(f"the anchors in {self._path!r} can't be read: {problem}") from None

    def keep(self, heads: "list[StreamHead]") -> None:
        """Replace the file by the present heads, all or nothing."""
        partial = f"{self._path}.partial"
        try:
            with open(partial, "w", encoding="utf-8") as file:
                file.writelines(to_json(head) + "\n" for head in heads)
                file.flush()
                sync_descriptor(file.fileno())
            os.replace(partial, self._path)
        except (OSError, ValueError) as problem:
            raise Invalid(f"the anchors can't be kept in {self._path!r}: {problem}") from None
