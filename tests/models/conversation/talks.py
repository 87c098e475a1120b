"""Somebody who talks to the agents of a log, with a model that follows a script or without one."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from decklog import Decklog
from decklog.models.asking import ModelSetup, read_setup
from decklog.models.composer import Prompt
from decklog.models.conversation import Conversation, MessageOutcome
from decklog.models.provider import ModelReply
from decklog.models.providers.making import Scripted

PASSWORD = "correct horse " + "battery"
SETTINGS = b"""
[models.mine]
provider = "scripted"
script = "unused.json"
model = "scripted"
[calls]
default = "mine"
[prompt]
skills = ["skills/bisect.md"]
"""
FILES = {"decklog.toml": SETTINGS, "skills/bisect.md": b"Halve what is left until one commit is."}


class Person:
    """Somebody who says things; `says` is what the model makes of them, or its exact words."""

    def __init__(self, log: Decklog, name: str = "ana") -> None:
        self.log = log
        self.name = name
        self.prompts: list[Prompt] = []

    def bind(self) -> "Person":
        self.log.trust.bind(self.name, "cli", password=PASSWORD)
        return self

    def voices(self, says: "object | Callable[[Prompt], str | ModelReply]" = None) -> ModelSetup:
        if says is None:
            return ModelSetup()

        def script(prompt: Prompt) -> "str | ModelReply":
            self.prompts.append(prompt)
            said = says(prompt) if callable(says) else says
            return said if isinstance(said, (str, ModelReply)) else json.dumps(said)

        return read_setup(self.log, FILES.get, Path("/nowhere"), build=lambda _: Scripted(script))

    def say(self, body: str, says: object = None, *, proves: bool = False, **given: Any) -> MessageOutcome:
        """Say something, and prove to be the owner if that is asked for."""
        message = self.log.inbox.post(self.name, body, **given)
        proof = (lambda: self.log.proving(password=PASSWORD)) if proves else nullcontext
        return Conversation(self.log, self.voices(says)).hear(message, proving=proof)


def guess(intent: str, confidence: int = 95, **args: Any) -> dict[str, Any]:
    return {"intent": intent, "args": args, "confidence": confidence}
