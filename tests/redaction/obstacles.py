"""Ways in which a secret reaches a record other than as it is."""

import base64
import json
import random
from collections.abc import Callable

from tests.redaction.corpus import Secret

Obstacle = Callable[[Secret, random.Random], str]


def plain(sample: Secret, _dice: random.Random) -> str:
    """Leave the text as it is."""
    return sample.text


def in_json(sample: Secret, _dice: random.Random) -> str:
    """Write the text as a JSON string."""
    return json.dumps({"log": sample.text})


def in_json_twice(sample: Secret, _dice: random.Random) -> str:
    """Write JSON in JSON."""
    return json.dumps({"log": json.dumps({"line": sample.text})})


def unicode_escapes(sample: Secret, dice: random.Random) -> str:
    """Write two characters of the secret as escapes, as JSON may."""
    hidden = sample.value
    for place in sorted(dice.sample(range(len(hidden)), 2), reverse=True):
        hidden = f"{hidden[:place]}\\u{ord(hidden[place]):04x}{hidden[place + 1 :]}"
    return sample.text.replace(sample.value, hidden)


def coloured(sample: Secret, dice: random.Random) -> str:
    """Colour the secret, and change the colour in the middle of it."""
    place = dice.randrange(1, len(sample.value))
    hidden = f"\x1b[1;31m{sample.value[:place]}\x1b[0;32m{sample.value[place:]}\x1b[0m"
    return sample.text.replace(sample.value, hidden)


def wrapped(sample: Secret, dice: random.Random) -> str:
    """Break a long secret across lines, as a terminal would."""
    if len(sample.value) < 24:
        return sample.text
    place = dice.randrange(len(sample.value) // 3, 2 * len(sample.value) // 3)
    gap = dice.choice(("\n", "\n", "\n    ", "\r\n"))
    return sample.text.replace(sample.value, sample.value[:place] + gap + sample.value[place:])


def in_base64(sample: Secret, _dice: random.Random) -> str:
    """Encode the text."""
    return "data: " + base64.b64encode(sample.text.encode()).decode()


def _lines(sample: Secret) -> list[str]:
    return ["# as it was", *sample.text.split("\n"), "# so far"]


def numbered(sample: Secret, dice: random.Random) -> str:
    """Number the lines, as a tool that reads files does."""
    first, behind = dice.randrange(1, 900), dice.choice(("\t", "→", ": ", " | "))
    return "\n".join(f"{number:6}{behind}{line}" for number, line in enumerate(_lines(sample), first))


def searched(sample: Secret, dice: random.Random) -> str:
    """Put the file and the line number before each line, as grep does."""
    first, file = dice.randrange(1, 900), dice.choice(("etc/site.conf", "./notes.txt", "/srv/app/main"))
    return "\n".join(f"{file}:{number}:{line}" for number, line in enumerate(_lines(sample), first))


def diffed(sample: Secret, dice: random.Random) -> str:
    """Write the lines as those of a diff."""
    sign = dice.choice("+-")
    return "@@ -3,4 +3,9 @@\n unchanged\n" + "\n".join(f"{sign}{line}" for line in _lines(sample))


def quoted(sample: Secret, _dice: random.Random) -> str:
    """Quote the lines, as a mail does."""
    return "\n".join(f"> {line}" for line in _lines(sample))


def stamped(sample: Secret, dice: random.Random) -> str:
    """Put a timestamp before each line."""
    return "\n".join(f"2026-03-04T05:06:{dice.randrange(10, 60)}Z {line}" for line in _lines(sample))


OBSTACLES: dict[str, Obstacle] = {
    "plain": plain,
    "JSON": in_json,
    "JSON in JSON": in_json_twice,
    "unicode escapes": unicode_escapes,
    "colours": coloured,
    "line break": wrapped,
    "base64": in_base64,
    "line numbers": numbered,
    "search": searched,
    "diff": diffed,
    "quote": quoted,
    "stamps": stamped,
}
