"""How fast redaction is, beside the least that looking at a text at all can cost."""

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import re2

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.redact.hostile import texts as hostile_texts

from decklog.redact import may_hold_secret, scan

_SIZE = 1_000_000
_WORDS = [
    "the",
    "agent",
    "ran",
    "every",
    "test",
    "after",
    "a",
    "change",
    "and",
    "wrote",
    "what",
    "it",
    "had",
    "found",
    "in",
    "its",
    "log",
    "before",
    "going",
    "on",
    "to",
    "next",
    "task",
    "review",
    "branch",
    "commit",
    "error",
    "build",
    "file",
    "module",
    "function",
    "value",
    "result",
    "status",
    "because",
    "when",
    "then",
    "while",
    "with",
]
Row = dict[str, Any]


def main() -> list[Row]:
    """Measure ordinary and hostile texts and the first look, and print them beside their floors."""
    scan("password=" + "warm1 up")
    rows = [*_ordinary(), *_hostile(), _first_look()]
    for row in rows:
        shown = "{name:38} {value:9.3f} {unit:4} floor {floor:9.3f} ratio {ratio:8.2f} target {target}"
        print(shown.format(**row))
    return rows


def _ordinary() -> list[Row]:
    floor = re2.compile(rb"\bghp_[A-Za-z0-9]{36}\b")
    rows = []
    for name, text in ordinary_texts(_SIZE).items():
        data = text.encode()
        speed = _SIZE / 1e6 / _best(lambda text=text: scan(text))
        raw = _SIZE / 1e6 / _best(lambda data=data: floor.search(data))
        rows.append(_row(f"ordinary: {name}", speed, "MB/s", raw, raw / speed, ">= 5"))
    return rows


def _hostile() -> list[Row]:
    rows = []
    for name, text in hostile_texts(_SIZE).items():
        seconds = _best(lambda text=text: scan(text), times=2)
        floor = _best(lambda text=text: "password" in text.lower())
        rows.append(_row(f"hostile: {name}", seconds, "s", floor, seconds / floor, "<= 1"))
    return rows


def _first_look() -> Row:
    sentence = _prose(random.Random(5), 300)
    look = _best(lambda: [may_hold_secret(sentence) for _ in range(1000)]) * 1000
    floor = _best(lambda: ["password" in sentence.lower() for _ in range(1000)]) * 1000
    return _row("first look at 300 characters", look, "us", floor, look / floor, "<= 3")


def _row(name: str, value: float, unit: str, floor: float, ratio: float, target: str) -> Row:
    return {"name": name, "value": value, "unit": unit, "floor": floor, "ratio": ratio, "target": target}


def _best(work: Callable[[], object], times: int = 3) -> float:
    """Give the shortest of a few runs in seconds of processor time: the rest is the machine's other work."""
    runs = []
    for _ in range(times):
        start = time.process_time()
        work()
        runs.append(time.process_time() - start)
    return min(runs)


def ordinary_texts(size: int) -> dict[str, str]:
    """Make what agents' records are full of: prose, code, logs, diffs, JSON."""
    dice = random.Random(3)
    makers: dict[str, Callable[[random.Random], str]] = {
        "prose": lambda dice: _prose(dice, 400) + "\n\n",
        "code": _code,
        "logs": _log,
        "diffs": lambda dice: "".join(f"{dice.choice('+- ')}{line}\n" for line in _code(dice).splitlines()),
        "JSON": lambda dice: json.dumps({"at": dice.random(), "note": _prose(dice, 90), "tokens": dice.randrange(9999)}) + "\n",
    }
    return {name: _fill(maker, dice, size) for name, maker in makers.items()}


def _fill(make: Callable[[random.Random], str], dice: random.Random, size: int) -> str:
    pieces, total = [], 0
    while total < size:
        pieces.append(make(dice))
        total += len(pieces[-1])
    return "".join(pieces)[:size]


def _prose(dice: random.Random, length: int) -> str:
    return " ".join(dice.choices(_WORDS, k=length // 4))[:length]


def _code(dice: random.Random) -> str:
    name, other = dice.sample(_WORDS, 2)
    return (
        f"def {name}_{other}(self, {name}: str, *, limit: int = {dice.randrange(99)}) -> list[str]:\n"
        f'    """Give the {name} of the {other}."""\n'
        f"    rows = [row for row in self.{other}s if row.{name} == {name}]\n"
        f'    return sorted(rows, key=lambda row: row.{other})[:limit]  # "{name}\\n"\n\n'
    )


def _json(dice: random.Random) -> str:
    return json.dumps({"at": dice.random(), "note": _prose(dice, 90), "tokens": dice.randrange(9999)}) + "\n"


def _log(dice: random.Random) -> str:
    return (
        f"2024-05-01T12:{dice.randrange(60):02}:00.{dice.randrange(999999):06}Z INFO "
        f"worker-{dice.randrange(9)} task_{dice.randrange(10**12):012x} "
        f"{_prose(dice, 60)} in {dice.randrange(900)} ms\n"
    )


if __name__ == "__main__":
    main()
