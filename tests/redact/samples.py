"""Texts that fit a pattern, made from the pattern itself."""

import random
import re
import string
from functools import cache
from typing import Any

_MOST_EXTRA = 4
# By the part of a tree that they are the members of: trees are kept, so that an id stands for one part for good.
_known_members: dict[int, list[str]] = {}


def sample(pattern: str, dice: random.Random, value: str | None = None) -> str:
    """Make a text that a pattern matches from its first to its last character; a value stands for its group, if it is given."""
    parsed = _parsed(pattern)
    group = parsed.state.groupdict.get("value", 1)
    return _walk(parsed, dice, {} if value is None else {group: value})


@cache
def _parsed(pattern: str) -> Any:
    return re._parser.parse(pattern)  # type: ignore[attr-defined]


def _walk(tree: Any, dice: random.Random, given: dict[int, str]) -> str:
    return "".join(_make(str(op), argument, dice, given) for op, argument in tree)


def _make(op: str, argument: Any, dice: random.Random, given: dict[int, str]) -> str:
    match op:
        case "LITERAL":
            return chr(argument)
        case "NOT_LITERAL":
            return dice.choice([char for char in string.ascii_letters if ord(char) != argument])
        case "IN":
            if id(argument) not in _known_members:
                _known_members[id(argument)] = _members(argument)
            return dice.choice(_known_members[id(argument)])
        case "BRANCH":
            return _walk(dice.choice(argument[1]), dice, given)
        case "SUBPATTERN":
            return given[argument[0]] if argument[0] in given else _walk(argument[-1], dice, given)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            low, high, inner = argument
            return "".join(_walk(inner, dice, given) for _ in range(dice.randint(low, min(high, low + _MOST_EXTRA))))
        case "ASSERT":
            # What must follow is often what is matched next: it then stands there twice, as a text may have it.
            return _walk(argument[1], dice, given) if argument[0] > 0 else ""
        case "ASSERT_NOT":
            return ""
        case "AT":
            return " " if str(argument) == "AT_BOUNDARY" else ""
        case "ANY":
            return dice.choice(string.ascii_letters)
    raise ValueError(f"no way to make {op}")


def _members(items: Any) -> list[str]:
    chosen: set[str] = set()
    for op, argument in items:
        match str(op):
            case "LITERAL":
                chosen.add(chr(argument))
            case "RANGE":
                chosen.update(map(chr, range(argument[0], argument[1] + 1)))
            case "CATEGORY":
                chosen.update(_category(str(argument)))
    negated = str(items[0][0]) == "NEGATE"
    plain = string.ascii_letters + string.digits
    return sorted(set(plain) - chosen) or [" "] if negated else sorted(chosen)


def _category(name: str) -> str:
    return {"CATEGORY_WORD": string.ascii_letters + string.digits + "_", "CATEGORY_DIGIT": string.digits}.get(
        name, " " if name == "CATEGORY_SPACE" else string.ascii_letters
    )
