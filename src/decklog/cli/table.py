"""Tables for people. On a terminal: the columns that tell most, as many as fit."""

from typing import Any

from decklog.cli import terminal
from decklog.cli.exits import shape
from decklog.cli.styles import DIM, of_word, painted
from decklog.core.lazy_regex import prepared

_WIDEST = 60
_NARROW = 24
_GAP = 2
_TIME = prepared(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{6}Z")

# What a person looks for first; the other columns follow in the order of the record.
_FIRST = (
    "id",
    "number",
    "key",
    "calls",
    "cost_dollars",
    "unpriced_calls",
    "model",
    "agent",
    "name",
    "kind",
    "from_tier",
    "to_tier",
    "title",
    "goal",
    "criterion",
    "question",
    "insight",
    "stands",
    "state",
    "status",
    "body",
    "why",
    "severity",
    "topic",
    "role",
    "worker",
    "priority",
    "outcome",
    "summary",
    "reason",
    "attempts",
    "next_agent",
    "action",
    "handle",
    "at",
)

# Columns of which each value is one of a few words, which have styles.
WORDS = frozenset({"stands", "state", "status", "outcome", "severity", "verdict", "default_verdict"})

_SMALL = "microdollars"
# Prices of a million tokens are in microdollars too.
_PRICE = "_price"
# Columns that are in the unit that their row names.
_OF_UNIT = ("ceiling", "spent", "reserved", "left", "free", "asked")

# These stay useful when they are cut; of the others, such as ids, a part is worth nothing.
_TEXTS = frozenset({"title", "goal", "criterion", "question", "insight", "why", "body", "summary", "reason", "source"})


def fitted(rows: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """Write rows as a table without empty columns; return it with the names of the columns that do not fit the terminal.

    Columns that `--fields` names are all written, in that order.
    """
    if shape().fields:
        return _written(dict.fromkeys(dict.fromkeys(name for row in rows for name in row), _WIDEST), rows), []
    names = _filled(rows)
    if not terminal.is_terminal():
        return _written(dict.fromkeys(names, _WIDEST), rows), []
    ordered = [name for name in _FIRST if name in names] + [name for name in names if name not in _FIRST]
    whole = {name: max(len(name), *(len(_cell(row.get(name), _WIDEST)) for row in rows)) for name in ordered}
    left, kept = terminal.width(), dict[str, int]()
    for name in ordered:
        least = min(whole[name], max(_NARROW, len(name))) if name in _TEXTS else whole[name]
        gap = _GAP if kept else 0
        if least + gap <= left or not kept:
            kept[name] = least
            left -= least + gap
    for name in kept:
        more = min(whole[name] - kept[name], max(left, 0))
        kept[name] += more
        left -= more
    return _written(kept, rows), [name for name in names if name not in kept]


def _filled(rows: list[dict[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for row in rows for name in row)
    return [name for name in names if not all(_is_empty(row.get(name)) for row in rows)] or list(names)[:1]


def _is_empty(value: Any) -> bool:
    """Return whether a cell has nothing to show. Columns that somebody asked for are shown all the same."""
    return value in (None, "", {}, [], False)


def _written(limits: dict[str, int], rows: list[dict[str, Any]]) -> str:
    cells = [[_cell(row.get(name), limit) for name, limit in limits.items()] for row in rows]
    widths = [max(len(name), *(len(row[place]) for row in cells)) for place, name in enumerate(limits)]
    head = [painted(terminal.visible(name).ljust(width), DIM) for name, width in zip(limits, widths, strict=True)]
    body = [[_styled(*cell) for cell in zip(limits, line, widths, strict=True)] for line in cells]
    return "".join((" " * _GAP).join(line).rstrip() + "\n" for line in (head, *body))


def _styled(name: str, cell: str, width: int) -> str:
    return (painted(cell, of_word(cell)) if name in WORDS else cell) + " " * (width - len(cell))


def _cell(value: Any, limit: int) -> str:
    text = " ".join(plain(value).split())
    return cut(readable(text), limit)


def readable(text: str) -> str:
    """Write a text, on a terminal, as a person reads it: times without their fractions, and nothing that a terminal obeys."""
    return terminal.visible(_TIME.sub(r"\1 \2", text)) if terminal.is_terminal() else text


def in_dollars(value: Any) -> Any:
    """Give data for people: amounts in micro-dollars, wherever they stand, as `$16.97` under the name of dollars."""
    if isinstance(value, list):
        return [in_dollars(item) for item in value]
    if not isinstance(value, dict):
        return value
    of_unit = _OF_UNIT if value.get("unit") == _SMALL else ()
    return {name.replace(_SMALL, "dollars"): _amount(name, item, name in of_unit) for name, item in value.items()}


def _amount(name: str, value: Any, is_of_unit: bool) -> Any:
    if type(value) is int and (is_of_unit or name.endswith((_SMALL, _PRICE))):
        from decklog.core.figures import dollars

        return dollars(value)
    return "dollars" if (name, value) == ("unit", _SMALL) else in_dollars(value)


def cut(text: str, limit: int) -> str:
    """Keep a text within its place; a mark shows that there is more."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def plain(value: Any) -> str:
    """Write one value: words with commas for a list of words, JSON for what has more parts, words for truth."""
    if isinstance(value, list) and all(isinstance(item, str) and item and "," not in item for item in value):
        return ", ".join(value)
    if isinstance(value, (dict, list)):
        import json

        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)
