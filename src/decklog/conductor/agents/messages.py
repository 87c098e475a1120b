"""Messages of people to an agent that works: its client finds each in a folder, hands it on, and prints that it did."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from decklog.stores.approvals.inbox import Message

_LOOK_SECONDS = 1.0


class SessionMessages:
    """The messages of one session. `pending` lists what nobody has got yet, `delivered` records that one was handed on."""

    def __init__(
        self, folder: Path, pending: "Callable[[], Sequence[Message]]", delivered: Callable[[str], object], *, is_taken: bool
    ) -> None:
        self._folder = folder
        self._pending = pending
        self._delivered = delivered
        # Whether the agent's client takes messages while it works.
        self._is_taken = is_taken
        self._looked = -_LOOK_SECONDS

    def look(self) -> None:
        """Write new messages to where the client finds them."""
        if not self._is_taken or time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        for message in self._pending():
            path = self._folder / f"message-{message.id}.json"
            if not path.exists():
                new = path.with_suffix(f".{os.getpid()}")
                new.write_text(json.dumps({"id": message.id, "text": message.body}), encoding="utf-8")
                new.rename(path)

    def delivered(self, message_id: object) -> None:
        """Record that the client has handed a message to the agent, if it was given that one."""
        if (self._folder / f"message-{os.path.basename(str(message_id))}.json").exists():
            self._delivered(str(message_id))
