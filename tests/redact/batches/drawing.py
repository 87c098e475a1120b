"""How a batch is drawn: a template, a name written in its style, and a value that can stand in it."""

import json
import random
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

ALNUM = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
BASE64 = ALNUM + "+/"

Shape = Callable[[random.Random], str]
_HERE = Path(__file__).parent
_VALUE = "@VALUE@"
_NAME = "@NAME@"
_PIECE = 6
_MARKER = re.compile(r"\[redacted:[\w-]+\]")


class Template(NamedTuple):
    """A text with places for a name and a value, how each is written there, and which shapes of value can stand there."""

    context: str
    style: str
    form: str
    shapes: tuple[str, ...]
    text: str


class Case(NamedTuple):
    """A text that holds a secret: what may not be left of it, and what stands around it."""

    context: str
    shape: str
    text: str
    secret: str
    before: str
    after: str


def chars(dice: random.Random, alphabet: str, length: int) -> str:
    """Draw characters."""
    return "".join(dice.choices(alphabet, k=length))


def _read(file: str) -> str:
    return (_HERE / file).read_text(encoding="utf-8").strip("\n")


def listed(text: str, separator: str) -> list[str]:
    """Read a list that is written as one text."""
    return [" ".join(part.split()) for part in text.split(separator)]


def templates(file: str, groups: Mapping[str, str]) -> list[Template]:
    """Read templates: a head `context | style of the name | form of the value | groups of shapes`, the text, and `%%`."""
    made = []
    for block in _read(file).split("\n%%\n"):
        head, text = block.split("\n", 1)
        context, style, form, named = (part.strip() for part in head.split("|"))
        shapes = tuple(shape for group in named.split() for shape in groups.get(group, group).split())
        made.append(Template(context, style, form, shapes, text.replace(r"\e[", "\x1b[")))
    return made


def styled(name: str, style: str) -> str:
    """Write the words of a name as a language does."""
    words = name.split()
    match style:
        case "UPPER":
            return "_".join(words).upper()
        case "kebab":
            return "-".join(words)
        case "dotted":
            return ".".join(words)
        case "camel":
            return words[0] + "".join(map(str.capitalize, words[1:]))
        case "Pascal":
            return "".join(map(str.capitalize, words))
    return "_".join(words)


def written(value: str, form: str) -> str:
    """Write a value as a form of text has to."""
    match form:
        case "json":
            return json.dumps(value)[1:-1]
        case "json twice":
            return json.dumps(json.dumps(value)[1:-1])[1:-1]
        case "url":
            return quote(value, safe="!$*(),.")
        case "xml":
            return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return value


def case(template: Template, shape: str, value: str, name: str) -> Case:
    """Put a value and a name into a template."""
    text = template.text.replace(_NAME, styled(name, template.style))
    before, after = text.split(_VALUE)
    shown = written(value, template.form)
    return Case(template.context, shape, before + shown + after, shown, before, after)


def batch(
    source: Sequence[Template], shapes: Mapping[str, Shape], names: Mapping[str, Sequence[str]], *, seed: int, each: int
) -> Iterator[Case]:
    """Draw a number of cases for each template and each group of shapes that can stand in it.

    `names` gives the names that go with a shape, or those under the empty shape.
    """
    dice = random.Random(seed)
    for template in source:
        for shape in template.shapes:
            for _ in range(each):
                name = dice.choice(names.get(shape, names[""]))
                yield case(template, shape, shapes[shape](dice), name)


def leaks(sample: Case, shown: str) -> bool:
    """Tell whether six characters in a row of a secret can still be read, or all of a shorter one."""
    surroundings, shown = sample.before + sample.after, _MARKER.sub("", shown)
    size = min(_PIECE, len(sample.secret))
    pieces = {sample.secret[place : place + size] for place in range(len(sample.secret) - size + 1)}
    return any(piece in shown and piece not in surroundings for piece in pieces)


def is_eaten(sample: Case, shown: str) -> bool:
    """Tell whether redaction took more than the secret: something before its name, or anything after it."""
    head = sample.before[: sample.before.rfind("\n") + 1]
    return not (shown.startswith(head) and shown.endswith(sample.after))


def harmless(lines: str, blocks: str, makers: Mapping[str, Shape], *, seed: int, each: int) -> Iterator[str]:
    """Draw a number of texts from each line of one file and each block of another, none of them twice."""
    dice = random.Random(seed)
    for template in [*_read(lines).splitlines(), *_read(blocks).split("\n%%\n")]:
        yield from sorted({_filled(template, dice, makers) for _ in range(each)})


def _filled(template: str, dice: random.Random, makers: Mapping[str, Shape]) -> str:
    """Put a freshly drawn text in each `@name@` of a harmless template."""
    return re.sub(r"@(\w+)@", lambda place: makers[place[1]](dice), template)
