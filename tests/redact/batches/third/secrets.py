"""Secrets of the third batch: each value is drawn in the shape that its writer gave it, so that no file holds a secret."""

import json
import random
import string
from collections.abc import Iterator
from pathlib import Path

from tests.redact.batches.drawing import HEX, Case, chars

SEED = 20_261_115
_FILE = Path(__file__).parent / "secrets.jsonl"
_ALPHABETS = {"upper": string.ascii_uppercase, "lower": string.ascii_lowercase, "digit": string.digits, "hex": HEX}


def cases(seed: int = SEED) -> Iterator[Case]:
    """Draw the batch."""
    dice = random.Random(seed)
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        given = json.loads(line)
        secret = "".join(_drawn(dice, *piece) for piece in given["shape"])
        before, _, after = given["text"].partition("@VALUE@")
        yield Case("stranger", given["kind"], given["text"].replace("@VALUE@", secret), secret, before, after)


def _drawn(dice: random.Random, kind: str, given: "str | int") -> str:
    """Draw characters of a kind, or put a text together that is cut up so as not to be literal."""
    return str(given).replace("~", "") if kind == "text" else chars(dice, _ALPHABETS[kind], int(given))
