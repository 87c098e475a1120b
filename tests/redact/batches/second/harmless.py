"""Harmless texts of the second batch."""

import base64
import random
from collections.abc import Iterator

from tests.redact.batches.drawing import ALNUM, HEX, LOWER, Shape, chars, harmless, listed

SEED = 777_002
_THINGS = listed("cluster report profile ticket comment dataset pipeline release worker avatar schema region", " ")


def _thing(dice: random.Random) -> str:
    return dice.choice(_THINGS)


def _hex(length: int) -> Shape:
    return lambda dice: chars(dice, HEX, length)


def _bytes(size: int) -> Shape:
    return lambda dice: base64.b64encode(dice.randbytes(size)).decode()


MAKERS: dict[str, Shape] = {
    "t": _thing,
    "T": lambda dice: _thing(dice).capitalize(),
    "TT": lambda dice: _thing(dice).upper(),
    "n": lambda dice: str(dice.randint(2, 99_999)),
    "d": lambda dice: str(dice.randint(0, 9)),
    "h7": _hex(7),
    "h16": _hex(16),
    "h32": _hex(32),
    "h40": _hex(40),
    "h64": _hex(64),
    "uuid": lambda dice: "-".join(chars(dice, HEX, length) for length in (8, 4, 4, 4, 12)),
    "b20": _bytes(20),
    "b32": _bytes(32),
    "b64": _bytes(64),
    "img": _bytes(180),
    "id": lambda dice: chars(dice, LOWER, 10),
    "ID": lambda dice: chars(dice, ALNUM, 11),
}


def texts(*, seed: int = SEED, each: int = 12) -> Iterator[str]:
    """Draw the batch: as many of each template, and none twice."""
    return harmless("second/harmless.txt", "second/blocks.txt", MAKERS, seed=seed, each=each)
