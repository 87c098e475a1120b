"""Batches that somebody wrote who had not read the rules: each value is drawn in the shape that its writer gave it."""

import json
import random
import string
from collections.abc import Iterator
from pathlib import Path

from tests.redact.batches.drawing import HEX, Case, chars

SEED = 20_261_115
_HERE = Path(__file__).parent
_ALPHABETS = {"upper": string.ascii_uppercase, "lower": string.ascii_lowercase, "digit": string.digits, "hex": HEX}


def secrets(batch: str, seed: int) -> Iterator[Case]:
    """Draw the secrets of a batch; no file holds one."""
    dice = random.Random(seed)
    for line in (_HERE / batch / "secrets.jsonl").read_text(encoding="utf-8").splitlines():
        given = json.loads(line)
        secret = "".join(_drawn(dice, *piece) for piece in given["shape"])
        before, _, after = given["text"].partition("@VALUE@")
        yield Case("stranger", given["kind"], given["text"].replace("@VALUE@", secret), secret, before, after)


def harmless(batch: str) -> Iterator[str]:
    """Give every text of a batch that holds no secret."""
    for line in (_HERE / batch / "harmless.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def _drawn(dice: random.Random, kind: str, given: "str | int") -> str:
    """Draw characters of a kind, or put a text together that is cut up so as not to be literal."""
    return str(given).replace("~", "") if kind == "text" else chars(dice, _ALPHABETS[kind], int(given))
