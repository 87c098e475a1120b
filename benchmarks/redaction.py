"""Measure redaction in one or several checkouts: recall, false positives, time per text, cold start, worst texts.

`python -m benchmarks.redaction [CHECKOUT ...] [--held-out FOLDER ...]` prints a table for this checkout and each given one. A
held-out folder has `secrets.jsonl` and `lookalikes.jsonl`. Each checkout runs in its own process.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.redaction import corpus
from tests.redaction.hostile import texts as hostile_texts

ROOT = Path(__file__).resolve().parents[1]

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
# Finds the redaction of any checkout: it had another name before.
_PROGRAM = """
import json, sys, time
import decklog.log
start = time.process_time()
try:
    from decklog.redaction import scan
except ImportError:
    from decklog.redact import scan_by_rules as scan
scan("Fix the parser so that it reads empty lines.")
first = time.process_time() - start
start = time.process_time()
scan("password" + "=x1y2z3 hello")
named = time.process_time() - start
jobs = json.load(sys.stdin)
shown = {name: [scan(text)[0] for text in texts] for name, texts in jobs["scanned"].items()}
times = {}
for name, texts in jobs["timed"].items():
    for text in texts[:200]:
        scan(text)
    begun = time.process_time()
    for text in texts[200:]:
        scan(text)
    times[name] = (time.process_time() - begun) / len(texts[200:])
worst = {}
for name, text in jobs["hostile"].items():
    begun = time.process_time()
    scan(text)
    worst[name] = time.process_time() - begun
json.dump({"first": first, "named": named, "shown": shown, "times": times, "worst": worst}, sys.stdout)
"""


def main(arguments: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Measure the checkouts and print one row for each figure."""
    arguments = list(arguments)
    split = arguments.index("--held-out") if "--held-out" in arguments else len(arguments)
    checkouts, folders = [str(ROOT), *arguments[:split]], arguments[split + 1 :]
    jobs = {"scanned": _scanned(folders), "timed": timed_texts(), "hostile": hostile_texts(100_000)}
    rows = []
    for checkout in checkouts:
        found = _run(checkout, jobs)
        rows += [{"checkout": checkout, "name": name, "figure": figure} for name, figure in _figures(jobs, folders, found)]
    for row in rows:
        print(f"{row['checkout']:24} {row['name']:44} {row['figure']}")
    return rows


def _run(checkout: str, jobs: dict[str, Any]) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(Path(checkout) / "src")}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], input=json.dumps(jobs), capture_output=True, text=True, check=True, env=environment
    )
    return dict(json.loads(done.stdout))


def _scanned(folders: list[str]) -> dict[str, list[str]]:
    scanned = {}
    for writer in corpus.writers("held_out"):
        scanned[f"{writer} secrets"] = [one.text for one in corpus.secrets("held_out", writer)]
        scanned[f"{writer} clean"] = list(corpus.clean("held_out", writer))
    for folder in folders:
        for name in ("secrets", "lookalikes"):
            scanned[f"{folder} {name}"] = [row["text"] for row in _rows(folder, name)]
    return scanned


def _rows(folder: str, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (Path(folder) / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def _figures(jobs: dict[str, Any], folders: list[str], found: dict[str, Any]) -> list[tuple[str, str]]:
    shown, scanned = found["shown"], jobs["scanned"]
    figures = []
    for writer in corpus.writers("held_out"):
        samples = list(corpus.secrets("held_out", writer))
        missed = sum(corpus.leaks(one, text) for one, text in zip(samples, shown[f"{writer} secrets"], strict=True))
        figures.append((f"{writer}: recall", f"{1 - missed / len(samples):.2%}"))
        figures.append((f"{writer}: false positives", _changed(scanned[f"{writer} clean"], shown[f"{writer} clean"])))
    for folder in folders:
        pairs = list(zip(_rows(folder, "secrets"), shown[f"{folder} secrets"], strict=True))
        missed = sum(any(secret in text for secret in row["secret"]) for row, text in pairs)
        figures.append((f"{Path(folder).name}: recall", f"{1 - missed / len(pairs):.2%}"))
        figures.append(
            (f"{Path(folder).name}: false positives", _changed(scanned[f"{folder} lookalikes"], shown[f"{folder} lookalikes"]))
        )
    figures += [(f"new text: {name}", f"{seconds * 1e6:.0f} us") for name, seconds in found["times"].items()]
    figures.append(("cold start: import and first plain text", f"{found['first'] * 1e3:.0f} ms"))
    figures.append(("then the first text with a password", f"{found['named'] * 1e3:.0f} ms"))
    name, seconds = max(found["worst"].items(), key=lambda one: one[1])
    figures.append((f"worst 100 kB ({name})", f"{seconds:.2f} s"))
    return figures


def _changed(given: list[str], shown: list[str]) -> str:
    return f"{sum(one != two for one, two in zip(given, shown, strict=True)) / len(given):.2%}"


def timed_texts() -> dict[str, list[str]]:
    """Make texts as records have them, each different from all others."""
    dice = random.Random(3)
    makers: dict[str, tuple[int, Callable[[], str]]] = {
        "40-word sentence": (1_200, lambda: " ".join(dice.choices(_WORDS, k=40))),
        "sentence about a password": (
            600,
            lambda: f"{' '.join(dice.choices(_WORDS, k=18))} the password is in the vault {' '.join(dice.choices(_WORDS, k=18))}",
        ),
        "300 B of source": (1_200, lambda: _code(dice)[:300]),
        "3 kB log": (400, lambda: "".join(_log(dice) for _ in range(30))[:3_000]),
    }
    return {name: [make() for _ in range(count)] for name, (count, make) in makers.items()}


def _code(dice: random.Random) -> str:
    name, other = dice.sample(_WORDS, 2)
    return (
        f"def {name}_{other}(self, {name}: str, *, limit: int = {dice.randrange(99)}) -> list[str]:\n"
        f'    """Return the {name} of the {other}."""\n'
        f"    rows = [row for row in self.{other}s if row.{name} == {name}]\n"
        f'    return sorted(rows, key=lambda row: row.{other})[:limit]  # "{name}\\n"\n\n'
    ) * 2


def _log(dice: random.Random) -> str:
    return (
        f"2024-05-01T12:{dice.randrange(60):02}:00.{dice.randrange(999999):06}Z INFO worker-{dice.randrange(9)} "
        f"task_{dice.randrange(10**12):012x} {' '.join(dice.choices(_WORDS, k=12))} in {dice.randrange(900)} ms\n"
    )


if __name__ == "__main__":
    begun = time.perf_counter()
    main(sys.argv[1:])
    print(f"{time.perf_counter() - begun:.0f} s")
