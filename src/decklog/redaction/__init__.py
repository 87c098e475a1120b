"""Find secrets in texts and JSON values, and replace them with markers that name the kind.

All data that is stored, printed or sent passes through here, with the same rules and the same judge.
"""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from decklog.core.fork_safety import delay_forks

if TYPE_CHECKING:
    from decklog.redaction.redactor import Explanation, Redactor

__all__ = ["clean_texts", "default_redactor", "explain", "json_strings", "redact", "scan", "scan_json"]

_SHORTEST = 10


@cache
def default_redactor() -> "Redactor":
    """Return the redactor of this process: with the shipped rules, the user's rules and the repository's rules."""
    # Import lazily: a command that only reads ids does not need the matcher.
    from decklog.redaction.redactor import Redactor
    from decklog.redaction.rules import load_config

    config = load_config()
    return Redactor(config.rules, config.allow)


def redact(text: str) -> str:
    """Return a text with its secrets replaced by markers such as `[redacted:github-token]`."""
    return scan(text)[0]


# RE2 holds locks while it matches; a child forked at that moment would wait for ever.
@delay_forks
def scan(text: str) -> tuple[str, bool]:
    """Redact a text, and return whether anything changed."""
    if len(text) < _SHORTEST and text.replace("_", "").replace("-", "").isalnum():
        # One short word can't contain a secret, so the matcher is not loaded.
        return text, False
    return default_redactor().scan(text)


@delay_forks
def scan_json(value: Any) -> tuple[Any, bool]:
    """Redact the strings and keys of a JSON value; the same object is returned when nothing changed."""
    return default_redactor().scan_json(value)


@delay_forks
def clean_texts(texts: Iterable[str]) -> set[str]:
    """Return the texts that contain no secret."""
    redactor = default_redactor()
    return {text for text in texts if not redactor.find(text)}


@delay_forks
def explain(text: str) -> "list[Explanation]":
    """Return the findings of a text, each with the rule or the features that decided."""
    return default_redactor().explain(text)


@delay_forks
def json_strings(value: Any) -> list[str] | None:
    """Return every string and key of a JSON value; None if one of its keys names a secret."""
    return default_redactor().json_strings(value)
