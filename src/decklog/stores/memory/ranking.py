"""Ranking of lessons that match a question, with the reasons."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from decklog.db.search.lessons import K1
from decklog.stores.memory.indexing import signs_of
from decklog.stores.memory.lesson import Hit, Lesson
from decklog.stores.memory.similarity import content_of, contradiction, essence_of, is_empty_praise, is_part
from decklog.stores.memory.text import extract_terms, find_stem, split_words, stop_words

# The weight of a stop word that a found lesson has too: a tenth of a rare word.
LITTLE = 0.6
# Minimum share of the question's possible score. 2 % of the right answers to paraphrased questions are below it;
# most unrelated questions find nothing above it.
FLOOR = 0.05
# With embeddings, this share of words is sufficient alone; below it words and meaning are added.
CLEAR = 0.2
# The floor considers this number of the heaviest words: no lesson has most of the words of a pasted error.
FLOOR_TERMS = 8
# A long question is searched by its first terms.
_MOST_TERMS = 200
# Enough characters for that number of terms, unless the text repeats itself.
_MOST_CHARACTERS = 20_000
# In a smaller memory the rarity of words is unknown: a word in most of a few lessons would seem worthless.
_SMALL = 50
# Two lessons that share this part of their words count as the same for the caller.
NEARLY_EQUAL = 0.8
# Factors for the match of an outdated lesson, and of one without advice.
_OUTDATED, _SAYS_NOTHING = 0.5, 0.5
# How far a lesson's record may lower a perfect match, in total.
RECORD_SHARE = 0.35
# How that share is split.
WEIGHTS = {"usefulness": 0.45, "confidence": 0.3, "recency": 0.25}
# Weight of the share of a question that a lesson covers, compared with its similarity in spreads above the mean. Squared: one
# weak word in common counts little, and most of the words in common count more than any similarity.
COVER, COVER_SQUARED = 3.0, 40.0
# What a hit has of its lesson.
_SHOWN = ("id", "topic", "body", "payload", "project", "confidence", "sightings", "source_kind", "source_id", "outdated_by")


class RankingQuestion:
    """A question in the forms that the signals need."""

    def __init__(self, text: str, now: datetime) -> None:
        self.now = now
        text = text[:_MOST_CHARACTERS]
        self.words = tuple(dict.fromkeys(split_words(text)))
        self.terms = tuple(dict.fromkeys(extract_terms(text)))[:_MOST_TERMS]
        self.little_words = stop_words(text)
        self.signs = tuple(signs_of(text))
        self.content = content_of(text)


def compute_coverage(
    lessons: Iterable[Lesson],
    scores: Mapping[str, float],
    question: RankingQuestion,
    weights: Mapping[str, float],
    *,
    terms: int = _MOST_TERMS,
) -> dict[str, float]:
    """Scale scores by the maximum that the question's heaviest words could reach, which is 1.

    So one weak common word counts little, and a question with unknown words only is not covered by anything.
    """
    heaviest = sorted((weights[term] for term in question.terms), reverse=True)[:terms]
    most = sum(heaviest) * (K1 + 1) + LITTLE * min(len(question.little_words), terms)
    return {
        lesson.id: min((scores[lesson.id] + LITTLE * len(question.little_words & stop_words(lesson.body))) / most, 1.0)
        for lesson in lessons
        if lesson.id in scores
    }


@dataclass(frozen=True)
class Ranked:
    """A lesson with its score and its signals from 0 to 1: words, meaning if known, and the lesson's record."""

    lesson: Lesson
    score: float
    signals: dict[str, float]


def fuse_rankings(lessons: Iterable[Lesson], match: Mapping[str, float], above: Mapping[str, float]) -> dict[str, float]:
    """Add the scores of words and meaning, scaled so that the best is 1.

    `above` is by how many standard deviations a lesson is more similar than the average; 0 without a vector.
    """
    scores = {lesson.id: _add_scores(match.get(lesson.id, 0.0), above.get(lesson.id, 0.0)) for lesson in lessons}
    best = max(scores.values(), default=0.0)
    return {lesson_id: max(score, 0.0) / best if best > 0 else 0.0 for lesson_id, score in scores.items()}


def _add_scores(cover: float, above: float) -> float:
    return above + COVER * cover + COVER_SQUARED * cover * cover


def rank(
    lessons: Iterable[Lesson],
    question: RankingQuestion,
    match: Mapping[str, float],
    parts: Mapping[str, Mapping[str, float]],
) -> list[Ranked]:
    """Rank lessons by match and record, best first. The record can only lower a match; `parts` are the signals of the match."""
    found = []
    for lesson in lessons:
        record = {
            "usefulness": lesson.usefulness(),
            "confidence": lesson.confidence / 100,
            "recency": lesson.freshness(question.now),
        }
        standing = sum([WEIGHTS[name] * value for name, value in record.items()])
        score = match[lesson.id] * (1 - RECORD_SHARE + RECORD_SHARE * standing) * _doubt(lesson)
        signals = {name: part[lesson.id] for name, part in parts.items() if lesson.id in part}
        found.append(Ranked(lesson, score, {"text": 0.0, **signals, **record}))
    return sorted(found, key=lambda one: (-one.score, one.lesson.id))


def _doubt(lesson: Lesson) -> float:
    """Return the factor for a lesson that was more harmful than useful, is outdated, or has no advice."""
    harm = lesson.usefulness() if lesson.harmful_count > lesson.useful_count else 1.0
    return harm * (_OUTDATED if lesson.outdated_at else 1.0) * (_SAYS_NOTHING if is_empty_praise(lesson.body) else 1.0)


@dataclass(frozen=True)
class Least:
    """The minimum match for a lesson to be returned."""

    # The share of words without known meaning, and the share at which words are sufficient alone.
    words: float
    clear: float
    # The sum of words and meaning.
    together: float | None = None
    # The minimum of either, as the caller set it.
    wanted: float | None = None

    def met_by(self, signals: Mapping[str, float]) -> bool:
        """Return whether the signals are sufficient."""
        words, meaning = signals["text"], signals.get("meaning")
        if self.wanted is not None:
            return max(words, meaning or 0.0) >= self.wanted
        if meaning is None or self.together is None:
            return words > 0 and words >= self.words
        return (words > 0 and words >= self.clear) or words + meaning >= self.together


def choose_thresholds(lessons: int, *, together: float | None, wanted: float | None) -> Least:
    """Return the minimum match in a memory of this size. `together` is the minimum sum of words and meaning."""
    return Least(*((0.0, 0.0) if lessons < _SMALL else (FLOOR, CLEAR)), together, wanted)


def select(
    ranking: list[Ranked], question: RankingQuestion, enough: Least, *, budget_tokens: int | None, limit: int
) -> list[Ranked]:
    """Select the best that match sufficiently and fit.

    A lesson that is too long or repeats a selected one is skipped. A part is replaced by the lesson that contains it.
    """
    taken: list[Ranked] = []
    shown: set[str] = set()
    left = budget_tokens
    for one in ranking:
        if len(taken) == limit:
            break
        if not enough.met_by(one.signals):
            continue
        whole = _whole(one, ranking, question)
        tokens = tokens_of(whole.lesson.body)
        is_new = whole.lesson.id not in shown and not _repeats(whole.lesson, [other.lesson for other in taken])
        shown.add(whole.lesson.id)
        if is_new and (left is None or tokens <= left):
            left = left - tokens if left is not None else None
            taken.append(whole)
    return taken


def _whole(one: Ranked, ranking: list[Ranked], question: RankingQuestion) -> Ranked:
    """Return the most reliable lesson that contains this one, with its score."""
    part = one.lesson
    asked = content_of(part.body) & question.content
    wholes = [
        other
        for other in ranking
        if asked <= content_of(other.lesson.body)
        and other.lesson.confidence >= part.confidence
        and is_part(part.body, other.lesson.body)
        and contradiction(part.body, other.lesson.body) is None
    ]
    return replace(min(wholes, key=_surest), score=one.score) if wholes else one


def _surest(whole: Ranked) -> tuple[int, int, float, str]:
    """Return the sort key: confidence, then length, then score, all descending."""
    lesson = whole.lesson
    return -lesson.confidence, -len(content_of(lesson.body)), -whole.score, lesson.id


def _repeats(lesson: Lesson, taken: list[Lesson]) -> bool:
    """Return whether a lesson repeats others in nearly the same words.

    A contradicting lesson is no repetition. A lesson that contradicts two contradicting ones is: such lessons differ in a number.
    """
    near = [other for other in taken if _are_nearly_equal(lesson, other)]
    return len(near) > 1 or any(contradiction(lesson.body, other.body) is None for other in near)


def _are_nearly_equal(lesson: Lesson, other: Lesson) -> bool:
    ours, theirs = frozenset(essence_of(lesson.body)), frozenset(essence_of(other.body))
    return 2 * len(ours & theirs) >= NEARLY_EQUAL * (len(ours) + len(theirs))


def tokens_of(text: str) -> int:
    """Estimate the tokens of a text as a quarter of its bytes, rounded up. This is a little low for code and high for prose."""
    return -(-len(text.encode()) // 4)


def build_hit(ranked: Ranked, question: RankingQuestion, *, evidence: list[dict[str, object]], contradicted_by: list[str]) -> Hit:
    """Build a hit with its reasons and the evidence for and against it."""
    lesson, signals = ranked.lesson, ranked.signals
    return Hit(
        **{name: getattr(lesson, name) for name in _SHOWN},
        score=round(ranked.score, 6),
        signals={name: round(value, 4) for name, value in signals.items()},
        why=_explain_hit(lesson, question, signals),
        tokens=tokens_of(lesson.body),
        evidence=evidence,
        contradicted_by=contradicted_by,
    )


def _explain_hit(lesson: Lesson, question: RankingQuestion, signals: Mapping[str, float]) -> str:
    said = frozenset(extract_terms(lesson.body))
    shared = [word for word in question.words if find_stem(word) in said]
    reasons = [f"shares {', '.join(shared[:6])}" if shared else "has a similar meaning"]
    if signals.get("meaning", 0) > 0:
        reasons.append(f"meaning {signals['meaning']:.2f}")
    reasons.append(f"confidence {lesson.confidence}")
    if lesson.useful_count or lesson.harmful_count:
        reasons.append(f"helped {lesson.useful_count} of {lesson.useful_count + lesson.harmful_count} times")
    if lesson.sightings > 1:
        reasons.append(f"seen {lesson.sightings} times")
    days = (question.now - lesson.last_seen_at).days
    if lesson.outdated_at is not None:
        reasons.append(f"outdated: {lesson.outdated_by}")
    reasons.append("seen today" if days <= 0 else f"last seen {days} {'day' if days == 1 else 'days'} ago")
    return "; ".join(reasons)
