"""Finds secrets in texts and values, and replaces them with a marker that names the kind."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from decklog.redact.patterns.prefilter import may_hold_secret
    from decklog.redact.rules.rule import Rule

    RULES: tuple[Rule, ...]

__all__ = [
    "RULES",
    "clean_among",
    "is_warm",
    "may_hold_secret",
    "redact",
    "scan",
    "scan_by_rules",
    "scan_value",
    "strings_in",
]


# A value of more strings is as soon redacted by the rules.
_MOST_STRINGS = 100


class _Rules:
    """The rules once they are loaded, and how many texts are looked at before: loading takes as long as a thousand looks."""

    scan: "Callable[[str], tuple[str, bool]] | None" = None
    looks_left = 1_000


def redact(text: str) -> str:
    """Give a text with every secret replaced by a marker such as `[redacted:github-token]`."""
    return scan(text)[0]


def scan(text: str) -> "tuple[str, bool]":
    """Redact a text, and tell whether anything changed."""
    if (by_rules := _Rules.scan) is not None:
        return by_rules(text)
    if _Rules.looks_left:
        _Rules.looks_left -= 1
        # Here, and not before: a call that only reads looks at nothing but ids.
        from decklog.redact.patterns.prefilter import may_hold_secret

        if not may_hold_secret(text):
            return text, False
    return scan_by_rules(text)


def scan_by_rules(text: str) -> "tuple[str, bool]":
    """Redact a text by the rules at once, which stay loaded from then on."""
    from decklog.redact import engine

    _Rules.scan = engine.scan
    return engine.scan(text)


def is_warm() -> bool:
    """Tell whether the rules are loaded: asking them then costs less than a look whether they need be asked."""
    return _Rules.scan is not None


def clean_among(texts: "Iterable[str]") -> set[str]:
    """Give those of many texts in which nothing is to be replaced, sooner than one after the other would be looked through."""
    from decklog.redact import batch, engine

    _Rules.scan = engine.scan
    return batch.clean_among(texts)


def strings_in(value: "Any") -> "list[str] | None":
    """Give every string and name in a JSON-like value; None if one of its names announces a secret."""
    from decklog.redact.views import json_strings

    return json_strings.strings_in(value)


def scan_value(value: "Any") -> "tuple[Any, bool]":
    """Redact the strings and keys of a JSON-like value; the same object comes back when nothing changed."""
    if _Rules.scan is None and _Rules.looks_left:
        from decklog.redact.views import json_strings

        _Rules.looks_left -= 1
        if not json_strings.may_hold(value, _MOST_STRINGS):
            return value, False
    from decklog.redact import json_values

    return json_values.scan_value(value)


def __getattr__(name: str) -> "Any":
    if name == "RULES":
        from decklog.redact.rules.table import RULES

        return RULES
    if name == "may_hold_secret":
        from decklog.redact.patterns.prefilter import may_hold_secret

        globals()[name] = may_hold_secret
        return may_hold_secret
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
