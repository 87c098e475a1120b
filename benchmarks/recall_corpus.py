"""A labelled set for recall: lessons about real kinds of software failure, and questions that put them in other words.

A line of lessons is `id | topic | text`; a line of questions is `ids | text`, with the ids of the lessons that answer it. The
groups of words in `decklog.stores.memory.synonyms` and the weights of the ranking were chosen on the questions for tuning alone; the
held-out questions were written after that and never tuned on.
"""

from pathlib import Path

Lesson = tuple[str, str, str]
Question = tuple[str, tuple[str, ...]]

_DATA = Path(__file__).parent / "data"


def _lessons(name: str, suffix: str = "") -> list[Lesson]:
    lines = (_DATA / name).read_text(encoding="utf-8").splitlines()
    parts = [line.split(" | ", 2) for line in lines]
    return [(lesson_id + suffix, topic, text) for lesson_id, topic, text in parts]


def _questions(name: str) -> list[Question]:
    lines = (_DATA / name).read_text(encoding="utf-8").splitlines()
    return [(text, tuple(ids.split())) for ids, text in (line.split(" | ", 1) for line in lines)]


LESSONS = _lessons("recall_lessons.txt")
# Advice on the same subjects that was tried and did harm: unsure, old, and marked so. None of it answers a question.
DISCREDITED = _lessons("recall_discredited.txt", "-bad")
TUNING = _questions("recall_tuning.txt")
HELD_OUT = _questions("recall_held_out.txt")
