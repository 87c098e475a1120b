"""What judging a command costs, compared with the bare parse of the same text, in one run.

`floor` is what the parser alone takes, `value` is the whole judgement, `ratio` is how many times longer ours
takes, and `target` is the time in the same unit that we hold ourselves to.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path

from decklog.guard.policy import judge
from decklog.guard.policy.parse import parse

Row = dict[str, str | float]
CORPORA = Path(__file__).resolve().parent.parent / "tests" / "guard" / "policy"
TARGET_MS = 2.0
ROUNDS = 5


def commands() -> list[str]:
    """Read every command of the policy's corpora."""
    lines = [line for file in sorted(CORPORA.glob("*.jsonl")) for line in file.read_text().splitlines()]
    return [json.loads(line)["command"] for line in lines]


def times(action: Callable[[str], object], texts: list[str]) -> list[float]:
    """Time an action on every text, over several rounds, in milliseconds and in rising order."""
    taken = []
    for _ in range(ROUNDS):
        for text in texts:
            start = time.perf_counter()
            action(text)
            taken.append((time.perf_counter() - start) * 1e3)
    return sorted(taken)


def first_call() -> tuple[float, float]:
    """Time the first judgement of a process and the part of it that loads the parser, in milliseconds."""
    start = time.perf_counter()
    parse(b"ls")
    loaded = time.perf_counter()
    judge("ls")
    return (time.perf_counter() - start) * 1e3, (loaded - start) * 1e3


def rows() -> list[Row]:
    """Measure the first judgement and the middle and the slow end of the rest."""
    result: list[Row] = []
    cold, loading = first_call()
    texts = commands()
    ours, floor = times(judge, texts), times(lambda text: parse(text.encode()), texts)
    for name, share in (("p50", 0.50), ("p99", 0.99)):
        value, base = ours[int(len(ours) * share)], floor[int(len(floor) * share)]
        result.append(_row(f"judge, {name} of {len(texts)} commands", value, base, TARGET_MS))
    result.append(_row("first judgement of a process", cold, loading, 100.0))
    return result


def _row(name: str, value: float, floor: float, target: float) -> Row:
    """Make one row of the result."""
    row: Row = {"name": name, "value": round(value, 4), "unit": "ms", "floor": round(floor, 4)}
    return row | {"ratio": round(value / floor, 1), "target": target}


def main() -> list[Row]:
    """Print the rows and give them back."""
    measured = rows()
    for row in measured:
        print("{name}: {value} {unit} (parse alone {floor}, {ratio} times; target {target})".format(**row))
    return measured


if __name__ == "__main__":
    main()
