"""Look-alikes to mend the rules by: every harmless text that was disturbed, and its brothers."""

import base64
import random
from collections.abc import Iterator

from tests.redact.batches.drawing import HEX, Shape, chars, harmless, listed

_WORDS = listed("account buffer channel device editor folder gateway handler index journal kernel layout", " ")


def _encoded(size: int) -> Shape:
    return lambda dice: base64.b64encode(dice.randbytes(size)).decode()


def _word(dice: random.Random) -> str:
    return dice.choice(_WORDS)


MAKERS: dict[str, Shape] = {
    "w": _word,
    "W": lambda dice: _word(dice).upper(),
    "n": lambda dice: str(dice.randint(1, 999)),
    "s": lambda dice: chars(dice, HEX, 7),
    "md5": lambda dice: chars(dice, HEX, 32),
    "sha1": lambda dice: chars(dice, HEX, 40),
    "sha256": lambda dice: chars(dice, HEX, 64),
    "uuid": lambda dice: "-".join(chars(dice, HEX, length) for length in (8, 4, 4, 4, 12)),
    "b44": _encoded(32),
    "b64": _encoded(64),
    "blob": _encoded(150),
}


def texts(*, seed: int, each: int = 4) -> Iterator[str]:
    """Draw the batch: as many of each template, and none twice."""
    return harmless("tuning/harmless.txt", "tuning/blocks.txt", MAKERS, seed=seed, each=each)
