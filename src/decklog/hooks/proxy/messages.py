"""Messages of people that the conductor stores in a folder for an agent's client."""

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_BEGINNING, _END = "message-", ".json"


class Mailbox:
    """Reader of a folder's messages: each once, in the order in which they were written."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._read: set[str] = set()

    def new(self) -> "Iterator[tuple[str, str]]":
        """Yield the id and text of each new message."""
        for name in sorted(os.listdir(self._folder)):
            if name.startswith(_BEGINNING) and name.endswith(_END) and name not in self._read:
                self._read.add(name)
                with open(os.path.join(self._folder, name), encoding="utf-8") as file:
                    message = json.load(file)
                yield str(message["id"]), str(message["text"])
