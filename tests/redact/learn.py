"""Learns what the second opinion weighs: `python -m tests.redact.learn` writes `redact/learned/weights.json` anew.

The examples are the batches beside this file, drawn from their seeds, and further ones that are named on the command line as
folders with `secrets.jsonl` (`{"text": …, "secret": …}`) and `harmless.jsonl` (`{"text": …}`). The sources and documents of this
repository and of the installed packages hold no secret. `--without NAME` leaves a batch out and measures on it what was learned.
The same examples give the same weights: all chance has a seed.
"""

import argparse
import json
import math
import random
import re
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from decklog.redact.finder import find_all
from decklog.redact.learned.evidence import Context, Tongue, evidence, worth_asking
from decklog.redact.learned.judge import KIND, Judge, is_taken, together
from decklog.redact.learned.kinds import group_of, kind_of, words_in
from decklog.redact.learned.pieces import near_family
from decklog.redact.view import looked_through, to_bytes
from tests.redact import scoring
from tests.redact.batches import first, rounds, second, strangers, tuning
from tests.redact.batches.drawing import Case, leaks

_ROOT = Path(__file__).parents[2]
_TABLE = _ROOT / "src/decklog/redact/learned/weights.json"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# A weight of one is so much of what the logistic function is taken of.
_UNIT = 10
_MOST_WEIGHTS, _MOST_WORDS = 3_300, 1_400
# As much as keeps those of a batch that was left out undisturbed but for a few in a thousand.
_ENOUGH = 2.5
# What is disturbed in vain counts for more than what is missed.
_AGAINST = 2.0
_FROM_TEMPLATES = 1_500
_FILES, _PER_FILE = 1_600, 60
_CHOSEN = (
    *("an10", "an16", "hyphens", "leet", "pw", "short", "signed", "sub", "wordy"),
    *("joined4", "word", "grouped", "letters", "code", "five"),
)
_MADE = ("hex32", "hex40", "hex64", "an20", "an32", "an40", "b64", "uuid", "base32", "low", "licence")
_PHRASES = ("phrase", "fourwords", "fours", "seeds")


class Batch(NamedTuple):
    """Texts that hold a secret, each with it, and texts that hold none."""

    secrets: list[tuple[str, str]]
    harmless: list[str]


class Row(NamedTuple):
    """The evidence of one value, and whether it is a secret."""

    evidence: set[str]
    is_secret: bool


def batches(folders: Iterable[Path]) -> dict[str, Batch]:
    """Give every batch by its name."""
    found = {}
    for name, drawn in (("first", first), ("second", second), ("tuning", tuning)):
        cases = list(drawn.secrets.cases(seed=1))
        random.Random(1).shuffle(cases)
        found[name] = Batch(_pairs(cases[:_FROM_TEMPLATES]), list(drawn.harmless.texts(seed=1)))
    for name in ("third", "fourth", "fifth", "sixth"):
        found[f"stranger-{name}"] = Batch(_pairs(strangers.secrets(name, 1)), list(strangers.harmless(name)))
    for name in rounds.ROUNDS:
        cases = [case for seed in (1, 2) for case in rounds.secrets(name, seed)]
        found[f"own-{name}"] = Batch(_pairs(cases), list(rounds.harmless(name)))
    lines = [
        line
        for name in ("code", "talk")
        for line in (Path(__file__).parent / f"benign_{name}.txt").read_text("utf-8").splitlines()
    ]
    found["corpora"] = Batch([(one.text, one.secret) for one in scoring.secrets(1)], [*scoring.benign(), *lines])
    return found | {folder.name: _further(folder) for folder in folders}


def _pairs(cases: Iterable[Case]) -> list[tuple[str, str]]:
    return [(case.text, case.secret) for case in cases]


def _further(folder: Path) -> Batch:
    secrets, harmless = (
        list(map(json.loads, (folder / f"{name}.jsonl").open(encoding="utf-8"))) for name in ("secrets", "harmless")
    )
    return Batch([(one["text"], one["secret"]) for one in secrets], [one["text"] for one in harmless])


def sources() -> list[str]:
    """Give texts of programs and their manuals."""
    packages = Path(sysconfig.get_path("purelib"))
    files = [*_ROOT.glob("src/**/*.py"), *_ROOT.glob("docs/**/*.md"), *packages.glob("**/*.py"), *packages.glob("**/*.md")]
    files = sorted(file for file in files if "redact" not in file.parts and file.name != "security.md")
    return [
        file.read_text("utf-8", errors="replace")[:30_000] for file in random.Random(3).sample(files, min(len(files), _FILES))
    ]


def tongue(texts: Iterable[str]) -> tuple[str, list[str]]:
    """Give how rare each pair of letters is in the words of some texts, a digit each, and the words that most of them have."""
    words = Counter[str]()
    for text in texts:
        words.update({part for word in re.findall(r"[A-Za-z]{3,}", text) for part in words_in(word) if 3 <= len(part) <= 12})
    pairs, firsts = Counter[str](), Counter[str]()
    for word, count in words.items():
        for place in range(len(word) - 1):
            pairs[word[place : place + 2]] += 1 + round(math.log(count))
            firsts[word[place]] += 1 + round(math.log(count))
    rarity = [min(9, round(1.4 * math.log((firsts[a] + 26) / (pairs[a + b] + 1)))) for a in _LETTERS for b in _LETTERS]
    return "".join(map(str, rarity)), sorted(word for word, _ in words.most_common(_MOST_WORDS))


def rows_of(batch: Batch, name: str, speech: Tongue) -> Iterator[Row]:
    """Give the evidence of every value of a batch, and of the same texts with other values in them."""
    dice = random.Random(name)
    others = [
        (text.replace(secret, new), new)
        for text, secret in batch.secrets
        if text.count(secret) == 1
        for new in _others(dice, secret)
    ]
    for text, secret in (*batch.secrets, *others):
        yield from _rows(text, secret, speech)
    for text in (*batch.harmless, *(_with_others(dice, text) for text in batch.harmless)):
        yield from _rows(text, None, speech)


def _others(dice: random.Random, secret: str) -> list[str]:
    """Draw two other values that could stand for one: what stands around it must not be learned by its shape."""
    match group_of(kind_of(secret)):
        case "M":
            shapes: Sequence[str] = _MADE
        case "D":
            return ["".join(dice.choices("0123456789", k=dice.choice((4, 6, 8)))) for _ in range(2)]
        case "N":
            return []
        case _:
            shapes = _PHRASES if " " in secret else _CHOSEN
    return [rounds.drawn(dice.choice(shapes), dice) for _ in range(2)]


def _with_others(dice: random.Random, text: str) -> str:
    """Put other digests and ids in the places of those that a harmless text has."""
    for piece in near_family(text, to_bytes(text)):
        for start, end, _ in piece.values():
            value = piece.text[start:end]
            if group_of(kind_of(value)) == "M":
                return text.replace(value, rounds.drawn(dice.choice(_MADE), dice))
    return ""


def _rows(text: str, secret: str | None, speech: Tongue, most: int | None = None) -> Iterator[Row]:
    view = looked_through(text)
    # The rules alone: what is learned must not depend on what was learned before.
    taken = together(find_all(view)) if secret is not None else []
    pairs = [(piece, value) for piece in near_family(view.text, view.data) for value in worth_asking(piece, speech)]
    contexts: dict[int, Context] = {}
    for piece, value in pairs if most is None else random.Random(len(text)).sample(pairs, min(most, len(pairs))):
        shown = piece.text[value.start : value.end]
        is_secret = secret is not None and secret in shown and len(shown) <= len(secret) + 3
        is_part = secret is not None and not is_secret and (secret in shown or shown in secret)
        # Of a part, or of another secret that a rule takes, nothing is to be learned.
        if is_part or (not is_secret and is_taken(taken, *value.within(piece))):
            continue
        context = contexts.setdefault(piece.start, Context(piece))
        yield Row(evidence(context, value, speech), is_secret)


def fitted(rows: Sequence[Row]) -> dict[str, int]:
    """Give the weights: all evidence first, then no more than what the table has room for."""
    counts = Counter(name for row in rows for name in row.evidence)
    names = sorted(name for name, count in counts.items() if count > 2)
    weights = _logistic(rows, names)
    worth = {name: abs(weight) * math.sqrt(counts[name]) for name, weight in zip(names, weights, strict=True)}
    best = sorted(sorted(worth, key=lambda name: (-worth[name], name))[:_MOST_WEIGHTS])
    given = zip(best, _logistic(rows, best), strict=True)
    return {name: whole for name, weight in given if (whole := round(float(weight) * _UNIT))}


def _logistic(rows: Sequence[Row], names: list[str], rounds_of: int = 250) -> Any:
    """Fit weights by logistic regression, large ones at a price."""
    number = {name: place for place, name in enumerate(names)}
    found = [sorted(number[name] for name in row.evidence if name in number) for row in rows]
    lengths = np.array(list(map(len, found)))
    places = np.array([place for one in found for place in one])
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    wanted = np.array([row.is_secret for row in rows], dtype=float)
    counted = np.where(wanted > 0, 1.0, _AGAINST)
    weights, slope, square = (np.zeros(len(names)) for _ in range(3))
    for turn in range(1, rounds_of + 1):
        error = 1 / (1 + np.exp(-np.add.reduceat(weights[places], starts))) - wanted
        gradient = np.bincount(places, weights=np.repeat(error * counted, lengths), minlength=len(names)) + weights
        slope, square = 0.9 * slope + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        step = 0.15 * (1 - turn / rounds_of) + 0.005
        weights -= step * (slope / (1 - 0.9**turn)) / (np.sqrt(square / (1 - 0.99**turn)) + 1e-8)
    return weights


def learn(examples: dict[str, Batch], texts: Sequence[str]) -> dict[str, Any]:
    """Give the table: weights, how much is enough, and what a word is made of."""
    pairs, words = tongue(texts)
    speech = Tongue(pairs, words)
    rows = [row for name, batch in examples.items() for row in rows_of(batch, name, speech)]
    rows += [row for text in texts for row in _rows(text, None, speech, _PER_FILE)]
    weights = fitted(rows)
    made_of = {name: [len(batch.secrets), len(batch.harmless)] for name, batch in examples.items()}
    grouped: dict[str, list[str]] = {}
    for name, weight in sorted(weights.items(), key=lambda item: (item[1], item[0])):
        grouped.setdefault(str(weight), []).append(name)
    return {
        "learned_from": {"secrets_and_harmless": made_of, "files": len(texts), "values": len(rows)},
        "enough": round(_ENOUGH * _UNIT),
        "pairs": pairs,
        "words": " ".join(words),
        "weights": grouped,
    }


def judge_of(table: dict[str, Any], enough: float | None = None) -> Judge:
    """Give the judge that a table makes."""
    weights = {name: int(weight) for weight, names in table["weights"].items() for name in names}
    return Judge(
        weights, table["enough"] if enough is None else round(enough * _UNIT), Tongue(table["pairs"], table["words"].split())
    )


def replaced(judge: Judge, text: str) -> str:
    """Replace what the judge alone finds."""
    view = looked_through(text)
    places = together(judge.find(view))
    for start, end in reversed(list(zip(places[::2], places[1::2], strict=True))):
        first_place, last = view.span(start, end)
        text = f"{text[:first_place]}[redacted:{KIND}]{text[last:]}"
    return text


def measured(table: dict[str, Any], batch: Batch, enough: float) -> tuple[int, int]:
    """Count the secrets of a batch that the judge alone leaves to be read, and the harmless texts that it changes."""
    judge = judge_of(table, enough)
    cases = [Case("", "", text, secret, *text.partition(secret)[::2]) for text, secret in batch.secrets]
    missed = sum(leaks(case, replaced(judge, case.text)) for case in cases)
    return missed, sum(replaced(judge, text) != text for text in batch.harmless)


def main() -> None:
    """Learn, and either write the table or measure it on what was left out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--without", action="append", default=[])
    given = parser.parse_args()
    examples = batches(given.folders)
    kept = {name: batch for name, batch in examples.items() if name not in given.without}
    table = learn(kept, sources())
    if not given.without:
        _TABLE.write_text(json.dumps(table, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    for name in given.without:
        batch = examples[name]
        for enough in (0, 1, 2, _ENOUGH, 3):
            missed, changed = measured(table, batch, enough)
            found, disturbed = 1 - missed / len(batch.secrets), changed / len(batch.harmless)
            print(f"{name} from {enough}: judge alone finds {found:.2%} of secrets and disturbs {disturbed:.2%} of look-alikes")


if __name__ == "__main__":
    main()
