"""How much of the corpora is judged right, for the tests and for the documentation."""

import json
import random
from pathlib import Path

from decklog.redact import redact
from tests.redact.obstacles import OBSTACLES
from tests.redact.secrets import Secret, blocks, placed, tokens

_HERE = Path(__file__).parent
_PIECE = 8


def secrets(seed: int) -> list[Secret]:
    """Give the whole corpus of secrets, one of each kind."""
    return [*tokens(seed), *placed(seed), *blocks(seed)]


def benign() -> list[str]:
    """Give the whole corpus of look-alikes."""
    lines = (_HERE / "benign.txt").read_text(encoding="utf-8").splitlines()
    return lines + (_HERE / "benign_blocks.txt").read_text(encoding="utf-8").split("\n%%\n")


def leaks(sample: Secret, shown: str) -> bool:
    """Tell whether a recognisable part of a secret can still be read."""
    tail = sample.secret[len(sample.secret) // 3 :]
    if len(tail) < _PIECE:
        return sample.secret in shown
    return any(tail[place : place + _PIECE] in shown for place in range(len(tail) - _PIECE + 1))


def missed(obstacle: str, seed: int = 0, part: slice = slice(None)) -> list[tuple[Secret, str]]:
    """Give the secrets that can still be read after redaction, seen through one obstacle: of all of them, or of a part."""
    dice = random.Random(seed)
    found = []
    for sample in secrets(seed)[part]:
        hidden = OBSTACLES[obstacle](sample, dice)
        shown = redact(hidden)
        if shown == hidden or leaks(sample, shown):
            found.append((sample, shown))
    return found


def disturbed(form: str) -> list[str]:
    """Give the look-alikes that redaction changes, as they are or wrapped in another form."""
    forms = {
        "plain": str,
        "JSON": json.dumps,
        "JSON in JSON": lambda text: json.dumps({"a": json.dumps([text])}),
        "colours": lambda text: f"\x1b[32m{text}\x1b[0m",
        "among lines": lambda text: f"first line\n{text}\nlast line",
        "numbers": lambda text: "\n".join(f"{number:6}\t{line}" for number, line in enumerate(["", *text.split("\n")], 8)),
        "search": lambda text: "\n".join(f"a/b.txt:{number}:{line}" for number, line in enumerate(["", *text.split("\n")], 8)),
        "change": lambda text: "@@ -1 +1 @@\n" + "\n".join(f"+{line}" for line in text.split("\n")),
        "result in JSON": lambda text: json.dumps({"output": f"first line\n{text}"}),
    }
    return [text for text in benign() if redact(forms[form](text)) != forms[form](text)]


FORMS = ("plain", "JSON", "JSON in JSON", "colours", "among lines", "numbers", "search", "change", "result in JSON")


def scores(seed: int = 0) -> dict[str, float]:
    """Give the share of secrets redacted through each obstacle, and of look-alikes disturbed in each form."""
    kinds, others = len(secrets(seed)), len(benign())
    redacted = {f"redacted: {name}": 1 - len(missed(name, seed)) / kinds for name in OBSTACLES}
    return redacted | {f"disturbed: {form}": len(disturbed(form)) / others for form in FORMS}


if __name__ == "__main__":
    for name, share in scores().items():
        print(f"{name:32} {share:7.2%}")
