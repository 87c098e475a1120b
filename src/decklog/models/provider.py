"""The interface of model providers: one reply to one prompt, with the provider's own figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from decklog.models.composer import Prompt

# Errors that may end after a while.
TRANSIENT = ("quota", "overload")
# Outages, including a lost login, which needs a person.
OUTAGES = (*TRANSIENT, "login")


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """The schema and the limits of a reply."""

    schema: Mapping[str, Any]
    most_output_tokens: int
    seconds: float
    temperature: float | None = None


@dataclass(frozen=True, kw_only=True)
class ModelReply:
    """A model's reply: a text, or a class of error.

    `usage` has the four kinds of tokens, and the cost if the provider reports it; empty if it reports none.
    `retry_seconds` is the duration of a rate limit, if stated.
    """

    text: str = ""
    model: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    answer_id: str | None = None
    error_class: str | None = None
    error: str = ""
    retry_seconds: float | None = None


class Provider(Protocol):
    """Answers one prompt at a time. Errors are part of the reply."""

    def reply(self, prompt: Prompt, request: ModelRequest) -> ModelReply: ...
