"""Train the weights of the redaction's judge on the labelled corpus: gradient-boosted trees, written as JSON.

Run `python -m benchmarks.train_judge` after a change of the features or the corpus, and commit the new weights. Needs numpy.
The threshold is chosen by cross-validation: each writer's texts are scored by a model that was trained on the other writers.
"""

import json
import math
import sys
import sysconfig
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.redaction import corpus

from decklog.redaction import judge
from decklog.redaction.keyvalue import Candidate
from decklog.redaction.redactor import Redactor

_WEIGHTS = Path(judge.__file__).with_name("weights.json")
_TREES, _DEPTH, _RATE, _BINS = 120, 4, 0.25, 32
_LEAST_LEAF = 6.0
_ROW_SHARE, _COLUMN_SHARE = 0.6, 0.3
# A false positive costs as much as this many missed candidates.
_CLEAN_WEIGHT = 3.0
_SOURCE_WEIGHT = 1.0
_EVERY_SOURCE = 4
_SIZE_LIMIT = 100_000
# The threshold is the highest of these that finds this share of the secrets, as a mean over the writers but one: the texts of our
# own were collected because an earlier version failed on them, so they are not what others write.
_OWN = "writer-own"
_THRESHOLDS = tuple(step / 4 for step in range(-4, 13))
_LEAST_RECALL = 0.97


class Recorder(Redactor):
    """Collects the candidates of a text, which all count as no secret so that later rounds see the same text."""

    def __init__(self) -> None:
        super().__init__()
        self.candidates: list[Candidate] = []

    def _is_secret(self, candidate: Candidate, _judgements: dict[Any, bool]) -> bool:
        if not judge.is_clearly_harmless(candidate):
            self.candidates.append(candidate)
        return False


def pair_table(texts: list[str]) -> list[int]:
    """Return ten times the log-likelihood of each pair of letters."""
    counts: Counter[tuple[str, str]] = Counter()
    for text in texts:
        low = text.lower()
        counts.update((one, two) for one, two in pairwise(low) if "a" <= one <= "z" and "a" <= two <= "z")
    letters = "abcdefghijklmnopqrstuvwxyz"
    totals = {one: sum(counts[one, two] + 1 for two in letters) for one in letters}
    return [round(10 * math.log((counts[one, two] + 1) / totals[one])) for one in letters for two in letters]


class Text(NamedTuple):
    """A labelled text, and whether the rules alone redact it."""

    writer: str
    is_secret: bool
    is_decided: bool


class Table(NamedTuple):
    """Candidates as rows of features; `owners` are the numbers of their texts."""

    rows: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    owners: np.ndarray
    texts: list[Text]


def collect(split: str) -> Table:
    """Return the candidates of a split's texts."""
    recorder, texts = Recorder(), []
    rows: list[list[float]] = []
    labels: list[bool] = []
    weights: list[float] = []
    owners: list[int] = []
    for writer in corpus.writers(split):
        samples: list[tuple[str, corpus.Secret | None]] = [(one.text, one) for one in corpus.secrets(split, writer)]
        for text, secret in samples + [(text, None) for text in corpus.clean(split, writer)]:
            recorder.candidates.clear()
            shown = recorder.scan(text)[0]
            is_decided = not corpus.leaks(secret, shown) if secret else shown != text
            unique = {(one.source, one.name, one.sign, one.value, one.after): one for one in recorder.candidates}
            for one in unique.values():
                if len(one.value) > 2:
                    rows.append(judge.features(one))
                    labels.append(secret is not None and _is_part(one.value, secret))
                    weights.append(1.0 if labels[-1] else 0.5 if secret else _CLEAN_WEIGHT)
                    owners.append(len(texts))
            texts.append(Text(writer, secret is not None, is_decided))
    return Table(np.array(rows, dtype=np.float32), np.array(labels, float), np.array(weights), np.array(owners), texts)


def cross_validate(table: Table, more: np.ndarray, more_weights: np.ndarray) -> float:
    """Score each writer with a model of the others, print what each threshold gives, and return the threshold to use."""
    writers = sorted({one.writer for one in table.texts})
    writer_of = np.array([table.texts[owner].writer for owner in table.owners])
    scores = np.empty(len(table.labels))
    for writer in writers:
        own = writer_of == writer
        rows = np.concatenate([table.rows[~own], more])
        labels = np.concatenate([table.labels[~own], np.zeros(len(more))])
        bias, trees = train(rows, labels, np.concatenate([table.weights[~own], more_weights]))
        scores[own] = bias + sum(_predict(tree, table.rows[own]) for tree in trees)
        print(f"trained without {writer}", flush=True)
    best = _best_scores(table, scores)
    chosen = _THRESHOLDS[0]
    for threshold in _THRESHOLDS:
        shares = {writer: _shares(table, best, threshold, writer) for writer in writers}
        others = [one for writer, one in shares.items() if writer != _OWN]
        recall, false = (sum(one[kind] for one in others) / len(others) for kind in (0, 1))
        by_writer = ", ".join(f"{writer} {one:.2%}/{other:.2%}" for writer, (one, other) in shares.items())
        print(f"threshold {threshold:+.2f}: recall {recall:.2%}, false positives {false:.2%} ({by_writer})")
        if recall >= _LEAST_RECALL:
            chosen = threshold
    return chosen


def _best_scores(table: Table, scores: np.ndarray) -> np.ndarray:
    """Return the score that decides each text: the best of its secret's candidates, or of all in a text without one."""
    best = np.full(len(table.texts), -np.inf)
    for owner, score, label in zip(table.owners, scores, table.labels, strict=True):
        if label or not table.texts[owner].is_secret:
            best[owner] = max(best[owner], score)
    return best


def _shares(table: Table, best: np.ndarray, threshold: float, writer: str) -> tuple[float, float]:
    """Return a writer's recall and false positives at a threshold."""
    counts = {True: [0, 0], False: [0, 0]}
    for text, score in zip(table.texts, best, strict=True):
        if text.writer == writer:
            counts[text.is_secret][0] += text.is_decided or score > threshold
            counts[text.is_secret][1] += 1
    return counts[True][0] / counts[True][1], counts[False][0] / counts[False][1]


def collect_sources() -> tuple[np.ndarray, np.ndarray]:
    """Return features and weights of candidates in the sources of the standard library, which hold no secrets."""
    recorder, rows = Recorder(), []
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py"))
    for path in files[::_EVERY_SOURCE]:
        if "test" in path.parts or "site-packages" in path.parts:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for start in range(0, min(len(text), 60_000), 3_000):
            recorder.candidates.clear()
            recorder.scan(text[start : start + 3_000])
            rows += [
                judge.features(one) for one in {one.value: one for one in recorder.candidates}.values() if len(one.value) > 2
            ]
    return np.array(rows, dtype=np.float32), np.full(len(rows), _SOURCE_WEIGHT)


def _is_part(value: str, secret: corpus.Secret) -> bool:
    size = min(6, len(secret.value))
    pieces = (secret.value[place : place + size] for place in range(len(secret.value) - size + 1))
    return any(piece in value and piece not in secret.around for piece in pieces)


def train(rows: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> tuple[float, list[Any]]:
    """Fit boosted trees to the logistic loss."""
    edges = [np.unique(np.quantile(rows[:, one], np.linspace(0, 1, _BINS + 1)[1:-1])) for one in range(rows.shape[1])]
    # One row for each feature: the search for a split reads whole features.
    bins = np.stack([np.searchsorted(edge, rows[:, one], side="left") for one, edge in enumerate(edges)]).astype(np.int16)
    share = (weights * labels).sum() / weights.sum()
    bias = math.log(share / (1 - share))
    scores, trees = np.full(len(labels), bias), []
    dice = np.random.default_rng(7)
    for _ in range(_TREES):
        chance = 1 / (1 + np.exp(-scores))
        slope, curve = weights * (labels - chance), weights * chance * (1 - chance)
        rows_used = np.flatnonzero(dice.random(len(labels)) < _ROW_SHARE)
        columns = np.flatnonzero(dice.random(len(edges)) < _COLUMN_SHARE)
        tree = _grow(bins, edges, slope, curve, rows_used, columns, _DEPTH)
        scores += _predict(tree, rows)
        trees.append(tree)
    return bias, trees


def _predict(tree: Any, rows: Any) -> Any:
    if not isinstance(tree, list):
        return np.full(len(rows), tree)
    left = rows[:, tree[0]] <= tree[1]
    result = np.empty(len(rows))
    result[left] = _predict(tree[2], rows[left])
    result[~left] = _predict(tree[3], rows[~left])
    return result


def _grow(bins: Any, edges: Any, slope: Any, curve: Any, index: Any, columns: Any, depth: int) -> Any:
    best = _best_split(bins, edges, slope, curve, index, columns) if depth else None
    if best is None:
        leaf = _RATE * slope[index].sum() / (curve[index].sum() + 1.0)
        return round(float(leaf), 4)
    feature, place = best
    left = bins[feature, index] <= place
    return [
        feature,
        round(float(edges[feature][place]), 4),
        _grow(bins, edges, slope, curve, index[left], columns, depth - 1),
        _grow(bins, edges, slope, curve, index[~left], columns, depth - 1),
    ]


def _best_split(bins: Any, edges: Any, slope: Any, curve: Any, index: Any, columns: Any) -> tuple[int, int] | None:
    slope, curve = slope[index], curve[index]
    total_slope, total_curve = slope.sum(), curve.sum()
    best, found = 1e-3 + total_slope**2 / (total_curve + 1.0), None
    for feature in map(int, columns):
        edge = edges[feature]
        if not len(edge):
            continue
        column = bins[feature, index]
        slopes = np.bincount(column, slope, len(edge) + 1).cumsum()[:-1]
        curves = np.bincount(column, curve, len(edge) + 1).cumsum()[:-1]
        gain = slopes**2 / (curves + 1.0) + (total_slope - slopes) ** 2 / (total_curve - curves + 1.0)
        gain[(curves < _LEAST_LEAF / 10) | (total_curve - curves < _LEAST_LEAF / 10)] = 0
        place = int(gain.argmax())
        if gain[place] > best:
            best, found = gain[place], (feature, place)
    return found


def write(weights: dict[str, Any]) -> None:
    """Write the weights where the judge reads them."""
    _WEIGHTS.write_text(json.dumps(weights, separators=(",", ":")), encoding="utf-8")


def main() -> None:
    """Choose the threshold by cross-validation, train on all writers of the train split, and write the weights."""
    texts = [text for writer in corpus.writers("train") for text in corpus.clean("train", writer)]
    pairs = pair_table(texts)
    judge.load_weights = lambda: {"pairs": pairs}  # type: ignore[assignment]
    table = collect("train")
    more, more_weights = collect_sources()
    threshold = cross_validate(table, more, more_weights)
    rows, labels = np.concatenate([table.rows, more]), np.concatenate([table.labels, np.zeros(len(more))])
    weights = np.concatenate([table.weights, more_weights])
    print(f"{len(labels)} candidates, {int(labels.sum())} of them secrets, {rows.shape[1]} features")
    bias, trees = train(rows, labels, weights)
    write({"pairs": pairs, "bias": round(bias, 4), "threshold": threshold, "trees": trees})
    size = _WEIGHTS.stat().st_size
    print(f"{len(trees)} trees, {size} bytes")
    if size > _SIZE_LIMIT:
        raise SystemExit(f"the weights take more than {_SIZE_LIMIT} bytes")


if __name__ == "__main__":
    main()
