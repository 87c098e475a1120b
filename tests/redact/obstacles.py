"""Ways in which a secret reaches a record other than as it is."""

import base64
import json
import random
from collections.abc import Callable

from tests.redact.secrets import Secret

Obstacle = Callable[[Secret, random.Random], str]


def plain(sample: Secret, _dice: random.Random) -> str:
    return sample.text


def in_json(sample: Secret, _dice: random.Random) -> str:
    return json.dumps({"log": sample.text})


def in_json_twice(sample: Secret, _dice: random.Random) -> str:
    return json.dumps({"log": json.dumps({"line": sample.text})})


def unicode_escapes(sample: Secret, dice: random.Random) -> str:
    """Write two characters of the secret as JSON may: as escapes."""
    places = sorted(dice.sample(range(len(sample.secret)), 2), reverse=True)
    hidden = sample.secret
    for place in places:
        hidden = f"{hidden[:place]}\\u{ord(hidden[place]):04x}{hidden[place + 1 :]}"
    return sample.text.replace(sample.secret, hidden)


def coloured(sample: Secret, dice: random.Random) -> str:
    """Colour the secret, and change the colour in the middle of it."""
    place = dice.randrange(1, len(sample.secret))
    hidden = f"\x1b[1;31m{sample.secret[:place]}\x1b[0;32m{sample.secret[place:]}\x1b[0m"
    return sample.text.replace(sample.secret, hidden)


def coloured_in_json(sample: Secret, dice: random.Random) -> str:
    return json.dumps({"out": coloured(sample, dice)})


def wrapped(sample: Secret, dice: random.Random) -> str:
    """Break a long secret across lines, as a terminal of some width would."""
    if len(sample.secret) < 24:
        return sample.text
    place = dice.randrange(len(sample.secret) // 3, 2 * len(sample.secret) // 3)
    gap = dice.choice(("\n", "\n", "\\\n", "\n    ", "\r\n"))
    return sample.text.replace(sample.secret, sample.secret[:place] + gap + sample.secret[place:])


def wrapped_in_json(sample: Secret, dice: random.Random) -> str:
    return json.dumps(wrapped(sample, dice))


def in_base64(sample: Secret, _dice: random.Random) -> str:
    return "data: " + base64.b64encode(sample.text.encode()).decode()


def _lines(sample: Secret) -> list[str]:
    return ["# as it was", *sample.text.split("\n"), "# so far"]


def numbered(sample: Secret, dice: random.Random) -> str:
    """Number the lines, as a tool that reads a file for an agent does."""
    first, (before, behind) = dice.randrange(1, 900), dice.choice((("", "\t"), ("", "→"), ("", ": "), ("", " | ")))
    return "\n".join(f"{before}{number:6}{behind}{line}" for number, line in enumerate(_lines(sample), first))


def numbered_in_json(sample: Secret, dice: random.Random) -> str:
    return json.dumps({"type": "tool_result", "content": numbered(sample, dice)})


def found(sample: Secret, dice: random.Random) -> str:
    """Put the file and the number of the line before each, as a search through files does."""
    first, file = dice.randrange(1, 900), dice.choice(("etc/site.conf", "./notes.txt", "/srv/app/main"))
    return "\n".join(f"{file}:{number}:{line}" for number, line in enumerate(_lines(sample), first))


def changed(sample: Secret, dice: random.Random) -> str:
    sign = dice.choice("+-")
    return "@@ -3,4 +3,9 @@\n unchanged\n" + "\n".join(f"{sign}{line}" for line in _lines(sample))


def quoted(sample: Secret, _dice: random.Random) -> str:
    return "\n".join(f"> {line}" for line in _lines(sample))


def said(sample: Secret, dice: random.Random) -> str:
    return f"[{dice.randrange(10, 24)}:{dice.randrange(10, 60)}] ana: {sample.text}"


def stamped(sample: Secret, dice: random.Random) -> str:
    return "\n".join(f"2026-03-04T05:06:{dice.randrange(10, 60)}Z {line}" for line in _lines(sample))


def as_result(sample: Secret, _dice: random.Random) -> str:
    """Put the lines into a string, of which the first and the last have something of the JSON in their line."""
    return json.dumps({"role": "tool", "output": "\n".join(["$ cat notes", *sample.text.split("\n")])})


OBSTACLES: dict[str, Obstacle] = {
    "plain": plain,
    "JSON": in_json,
    "JSON in JSON": in_json_twice,
    "unicode escapes": unicode_escapes,
    "colours": coloured,
    "colours in JSON": coloured_in_json,
    "line break": wrapped,
    "line break in JSON": wrapped_in_json,
    "base64": in_base64,
    "numbers": numbered,
    "numbers in JSON": numbered_in_json,
    "search": found,
    "change": changed,
    "quote": quoted,
    "chat": said,
    "stamps": stamped,
    "result in JSON": as_result,
}
