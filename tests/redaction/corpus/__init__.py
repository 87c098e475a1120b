"""The labelled corpus: texts with and without secrets, split by writer.

A row of `*-secrets.jsonl` is a text with `@VALUE@` in place of the secret, and the value as parts: a literal, a mask, a literal
and so on. A mask has one character for each to draw, so no file holds a secret. A text with several secrets has `values`, in the
order of its places. A row of `*-clean.jsonl` is a text without any.
"""

import base64
import json
import random
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_HERE = Path(__file__).parent
_ALPHABETS = {
    "a": string.ascii_lowercase,
    "A": string.ascii_uppercase,
    "9": string.digits,
    "h": "0123456789abcdef",
    "B": string.ascii_uppercase + "234567",
    # Base58.
    "w": string.ascii_lowercase.replace("l", ""),
    "W": string.ascii_uppercase.replace("I", "").replace("O", ""),
    "7": "123456789",
}
_PLACE = "@VALUE@"
_MARKER = re.compile(r"\[redacted:[\w-]+\]")
_PIECE = 6


class Secret(NamedTuple):
    """A text that holds a secret."""

    kind: str
    text: str
    value: str
    around: str


def writers(split: str) -> list[str]:
    """Return the writers of a split: `train` or `held_out`."""
    return sorted(path.name.removesuffix("-secrets.jsonl") for path in (_HERE / split).glob("*-secrets.jsonl"))


def secrets(split: str, writer: str) -> Iterator[Secret]:
    """Yield a writer's texts with secrets, which are drawn anew but the same every time; one sample for each secret of a text."""
    for line in (_HERE / split / f"{writer}-secrets.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        dice = random.Random(line)
        values = [draw(parts, dice) for parts in row.get("values", [row.get("value")])]
        if row.get("encode") == "base64":
            values = [base64.b64encode(value.encode()).decode() for value in values]
        for index, value in enumerate(values):
            yield Secret(row["kind"], _fill(row["text"], values), value, _fill(row["text"], _without(values, index)))


def _fill(text: str, values: list[str]) -> str:
    """Put the values in their places; one value fills all of them."""
    pieces = text.split(_PLACE)
    given = values if len(values) > 1 else values * (len(pieces) - 1)
    return pieces[0] + "".join(value + piece for value, piece in zip(given, pieces[1:], strict=True))


def _without(values: list[str], index: int) -> list[str]:
    return [*values[:index], "\x00", *values[index + 1 :]]


def clean(split: str, writer: str) -> Iterator[str]:
    """Yield a writer's texts without secrets."""
    for line in (_HERE / split / f"{writer}-clean.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def draw(parts: list[str], dice: random.Random) -> str:
    """Draw a value from its literals and masks; `~` cuts a literal that would look like a secret."""
    drawn = []
    for index, part in enumerate(parts):
        drawn.append("".join(dice.choice(_ALPHABETS[mask]) for mask in part) if index % 2 else part.replace("~", ""))
    return "".join(drawn)


def leaks(sample: Secret, shown: str) -> bool:
    """Return whether six characters in a row of a secret are still there, or all of a shorter one."""
    shown, size = _MARKER.sub("", shown), min(_PIECE, len(sample.value))
    pieces = {sample.value[place : place + size] for place in range(len(sample.value) - size + 1)}
    return any(piece in shown and piece not in sample.around for piece in pieces)
