"""Whether useful lessons are still found among four times as many that are of no use, learned as agents learn them.

python -m benchmarks.recall_junk
"""

import tempfile
from datetime import timedelta
from random import Random
from typing import Any

from benchmarks.recall import NOW, model
from benchmarks.recall_sets import Question, RecallSet, own_sets
from decklog import Decklog, Embedder, ManualClock

_USEFUL = 200
# How many of each there are, 800 in all.
_RESTATED, _OUTDATED, _WRONG, _PLEASANT = 300, 200, 150, 150
_BEFORE = ("Note:", "As said,", "Once more:", "For the record:", "Learned again today:", "Please remember that", "In short:")
_BEHIND = ("as we saw", "in this task", "again", "which cost an hour", "as expected", "according to the log", "in the last run")
_PLEASANTRIES = (
    "Thanks, that worked",
    "The task was done well",
    "All tests are green now",
    "Great progress on",
    "The team liked",
)
_THINGS = (
    "the parser",
    "the release",
    "the review",
    "the build",
    "the deploy",
    "the cache",
    "the login",
    "the report",
    "the API",
)


def rows() -> "list[dict[str, Any]]":
    """Ask both memories, by words and, where there is a model, with meaning."""
    of = own_sets()[0]
    ways: list[Embedder | None] = [None, *([found] if (found := model()) is not None else [])]
    return [_row(of, embedder) for embedder in ways]


def _row(of: RecallSet, embedder: Embedder | None) -> "dict[str, Any]":
    useful = {text.id for text in _chosen(of)}
    asked = [question for question in of.questions if useful.issuperset(question.answers)]
    clean, mixed = (_answered(of, asked, embedder, with_junk=with_junk) for with_junk in (False, True))
    return {
        "name": f"{'by words' if embedder is None else 'with meaning'}: answered in the first five, of {len(asked)} questions",
        "without_junk": clean,
        "value": mixed,
        "unit": "questions",
        "ratio": round(mixed / clean, 3),
        "target": ">= 0.9 of those without",
    }


def _chosen(of: RecallSet) -> "list[Any]":
    answers = dict.fromkeys(answer for question in of.questions for answer in question.answers)
    by_id = {text.id: text for text in of.texts}
    return [by_id[answer] for answer in answers][:_USEFUL]


def _answered(of: RecallSet, asked: list[Question], embedder: Embedder | None, *, with_junk: bool) -> int:
    with tempfile.TemporaryDirectory() as folder:
        clock = ManualClock(NOW - timedelta(days=200))
        with Decklog.open(f"{folder}/log.db", clock=clock) as log:
            log.memory.embedder = embedder
            sound = _teach(log, clock, of, with_junk=with_junk)
            if embedder is not None:
                log.memory.embed()
            return sum(_is_answered(log, question, sound) for question in asked)


def _is_answered(log: Decklog, question: Question, sound: dict[str, str]) -> bool:
    wanted = {sound[answer] for answer in question.answers}
    return bool(wanted & {hit.id for hit in log.memory.peek(question.text)})


def _teach(log: Decklog, clock: ManualClock, of: RecallSet, *, with_junk: bool) -> dict[str, str]:
    """Teach a log the useful lessons, and what else agents write down; give the lesson that each useful text became."""
    draw = Random(7)
    texts = _chosen(of)
    if with_junk:
        for number in range(_OUTDATED):
            text = draw.choice(texts)
            log.memory.remember(text.topic, f"In version {number % 9} of it: {_half(text.text, draw)}", confidence=50)
    clock.advance(days=190)
    sound = {text.id: log.memory.remember(text.topic, text.text).id for text in texts}
    if with_junk:
        _restate(log, draw, texts)
    clock.advance(days=10)
    return sound


def _restate(log: Decklog, draw: Random, texts: "list[Any]") -> None:
    for _ in range(_RESTATED):
        text = draw.choice(texts)
        log.memory.remember(text.topic, f"{draw.choice(_BEFORE)} {_half(text.text, draw)} {draw.choice(_BEHIND)}", confidence=60)
    for _ in range(_WRONG):
        text = draw.choice(texts)
        wrong = log.memory.remember(text.topic, f"Do not: {_half(text.text, draw)} {draw.choice(_BEHIND)}", confidence=50)
        log.memory.mark(wrong.id, False)
    for number in range(_PLEASANT):
        thing = f"{draw.choice(_THINGS)} {number}"
        log.memory.remember("task_outcomes", f"{draw.choice(_PLEASANTRIES)} {thing} {draw.choice(_BEHIND)}")


def _half(text: str, draw: Random) -> str:
    """Give a part of a text, as those who sum up leave out what matters."""
    words = text.split()
    kept = max(len(words) // 2, 4)
    start = draw.randrange(max(len(words) - kept, 1))
    return " ".join(words[start : start + kept]).strip(",;.")


def main() -> "list[dict[str, Any]]":
    """Measure, print, and give the rows."""
    found = rows()
    for row in found:
        print(f"{row['name']}: {row['without_junk']} without junk, {row['value']} with it ({row['ratio']:.2f})", flush=True)
    return found


if __name__ == "__main__":
    main()
