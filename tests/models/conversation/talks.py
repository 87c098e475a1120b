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
    """A sender of messages; `says` is what the model makes of a message, or its exact answer."""

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
            answer = says(prompt) if callable(says) else says
            return answer if isinstance(answer, (str, ModelReply)) else json.dumps(answer)

        return read_setup(self.log, FILES.get, Path("/nowhere"), build=lambda _: Scripted(script))

    def say(self, body: str, says: object = None, *, proves: bool = False, **given: Any) -> MessageOutcome:
        """Send a message, with the owner's proof if asked."""
        message = self.log.inbox.post(self.name, body, **given)
        proof = (lambda: self.log.proving(password=PASSWORD)) if proves else nullcontext
        return Conversation(self.log, self.voices(says)).handle(message, signing=proof)


def guess(intent: str, confidence: int = 95, **args: Any) -> dict[str, Any]:
    return {"intent": intent, "args": args, "confidence": confidence}
