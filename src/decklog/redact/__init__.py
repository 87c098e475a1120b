"""Finds secrets in texts and values, and replaces them with a marker that names the kind."""

from decklog.redact.patterns.prefilter import may_hold_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from decklog.redact.rules.rule import Rule

    RULES: tuple[Rule, ...]

__all__ = ["RULES", "clean_ones", "may_hold_secret", "redact", "scan", "scan_by_rules", "scan_value"]


def redact(text: str) -> str:
    """Give a text with every secret replaced by a marker such as `[redacted:github-token]`."""
    return scan(text)[0]


def scan(text: str) -> "tuple[str, bool]":
    """Redact a text, and tell whether anything changed."""
    return scan_by_rules(text) if may_hold_secret(text) else (text, False)


def scan_by_rules(text: str) -> "tuple[str, bool]":
    """Redact a text by the rules at once: where they are loaded and warm, that takes half as long for most of some length."""
    from decklog.redact import engine

    return engine.scan(text)


def clean_ones(texts: "Iterable[str]") -> list[str]:
    """Give those of many texts in which nothing is to be replaced, sooner than one after the other would be looked through."""
    from decklog.redact import engine

    return engine.clean_ones(texts)


def scan_value(value: "Any") -> "tuple[Any, bool]":
    """Redact the strings and keys of a JSON-like value; the same object comes back when nothing changed."""
    from decklog.redact import json_values

    return json_values.scan_value(value)


def __getattr__(name: str) -> "tuple[Rule, ...]":
    if name == "RULES":
        from decklog.redact.rules.table import RULES

        return RULES
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
