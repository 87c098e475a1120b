"""Harmless texts of the first batch."""

import base64
import random
from collections.abc import Iterator

from tests.redact.batches.drawing import ALNUM, BASE64, HEX, LOWER, Shape, chars, harmless, listed

SEED = 20_262
_NOUNS = [
    "order",
    "invoice",
    "cart",
    "ledger",
    "shipment",
    "tenant",
    "invitation",
    "widget",
    "parser",
    "cursor",
    "bucket",
    "session",
]
_VERBS = listed("load parse check build fetch rotate refresh store resolve validate", " ")


def _hex(*lengths: int) -> Shape:
    return lambda dice: chars(dice, HEX, dice.choice(lengths))


def _uuid(dice: random.Random) -> str:
    return "-".join(chars(dice, HEX, length) for length in (8, 4, 4, 4, 12))


def _blob(dice: random.Random) -> str:
    return base64.b64encode(bytes([137, 80, 78, 71]) + dice.randbytes(dice.randint(60, 240))).decode()


MAKERS: dict[str, Shape] = {
    "sha1": _hex(40),
    "sha256": _hex(64),
    "md5": _hex(32),
    "short": _hex(7, 8, 10, 12),
    "uuid": _uuid,
    "blob": _blob,
    "sri": lambda dice: base64.b64encode(dice.randbytes(48)).decode(),
    "sri512": lambda dice: base64.b64encode(dice.randbytes(64)).decode(),
    "b32": lambda dice: base64.b64encode(dice.randbytes(32)).decode(),
    "noun": lambda dice: dice.choice(_NOUNS),
    "Noun": lambda dice: dice.choice(_NOUNS).capitalize(),
    "NOUN": lambda dice: dice.choice(_NOUNS).upper(),
    "verb": lambda dice: dice.choice(_VERBS),
    "n": lambda dice: str(dice.randint(1, 9999)),
    "epoch": lambda dice: str(dice.randint(1_600_000_000, 1_800_000_000)),
    "ver": lambda dice: f"{dice.randint(0, 20)}.{dice.randint(0, 40)}.{dice.randint(0, 9)}",
    "slug": lambda dice: f"{dice.choice(_NOUNS)}-{dice.choice(_NOUNS)}-{chars(dice, LOWER, 5)}",
    "chunk": lambda dice: chars(dice, ALNUM, 8),
    "path": lambda dice: "/".join(dice.choices(_NOUNS, k=3)),
    "upper": lambda dice: chars(dice, "ABCDEFGHJKMNPQRSTVWXYZ0123456789", 26),
    "svg": lambda dice: "".join(f"{dice.choice('MLCHVZ')}{dice.randint(0, 99)}.{dice.randint(0, 9)} " for _ in range(14)),
    "key64": lambda dice: chars(dice, BASE64, 43) + "=",
}


def texts(*, seed: int = SEED, each: int = 12) -> Iterator[str]:
    """Draw the batch: as many of each template, and none twice."""
    return harmless("first/harmless.txt", "first/blocks.txt", MAKERS, seed=seed, each=each)
