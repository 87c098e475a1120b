"""Texts that fit a pattern, made from the pattern itself."""

import random
import re
import string
from functools import cache
from typing import Any

_MOST_EXTRA = 4
# By the part of a tree that they are the members of: trees are kept, so that an id stands for one part for good.
_known_members: dict[int, list[str]] = {}


def sample(pattern: str, dice: random.Random) -> str:
    """Make a text that a pattern matches from its first to its last character."""
    return _walk(_parsed(pattern), dice)


@cache
def _parsed(pattern: str) -> Any:
    return re._parser.parse(pattern)  # type: ignore[attr-defined]


def _walk(tree: Any, dice: random.Random) -> str:
    return "".join(_make(str(op), argument, dice) for op, argument in tree)


def _make(op: str, argument: Any, dice: random.Random) -> str:
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
            return _walk(dice.choice(argument[1]), dice)
        case "SUBPATTERN":
            return _walk(argument[-1], dice)
        case "MAX_REPEAT" | "MIN_REPEAT":
            low, high, inner = argument
            return "".join(_walk(inner, dice) for _ in range(dice.randint(low, min(high, low + _MOST_EXTRA))))
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
