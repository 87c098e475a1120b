"""The lesson: something learned, what it rests on, and what became of it since."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from decklog.records.record import Record

HALF_LIFE_DAYS = 120
# The condition that a lesson may be recalled.
HOLDS = "superseded_by is null and retired_at is null"


@dataclass(frozen=True, kw_only=True)
class Topic(Record):
    """A kind of lesson that someone added to the eight that every log knows."""

    table = "topics"
    identity = ("name",)
    home = "@memory"

    name: str
    description: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Lesson(Record):
    """Something that was learned, and is recalled where it helps."""

    table = "lessons"
    is_work = True
    home = "@memory"

    id: str
    topic: str
    project: str | None = None
    body: str
    fingerprint: str
    payload: dict[str, object] = field(default_factory=dict)
    confidence: int
    source_kind: str
    source_id: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    sightings: int = 1
    recall_count: int = 0
    useful_count: int = 0
    harmful_count: int = 0
    superseded_by: str | None = None
    created_at: datetime
    last_seen_at: datetime
    last_recalled_at: datetime | None = None
    scope: dict[str, object] = field(default_factory=dict)
    outdated_at: datetime | None = None
    outdated_by: str | None = None
    retired_at: datetime | None = None

    @property
    def holds(self) -> bool:
        """Whether it may be recalled: nothing replaced it, and nobody put it aside."""
        return self.superseded_by is None and self.retired_at is None

    # Warnings for the caller: another lesson contradicts it, or it was superseded.
    warnings = ()  # type: tuple[str, ...]

    def warned(self, warnings: Sequence[str]) -> "Lesson":
        """Put what should be known with the lesson."""
        object.__setattr__(self, "warnings", tuple(warnings))
        return self

    def freshness(self, now: datetime) -> float:
        """Return how much of it time has left: 1 when just seen or recalled, half after each further 120 days of neither."""
        touched = max(self.last_seen_at, self.last_recalled_at or self.last_seen_at)
        idle_days = max((now - touched).total_seconds(), 0) / 86_400
        # What it holds for has changed: half of it is left at best.
        return float(0.5 ** (idle_days / HALF_LIFE_DAYS + (1 if self.outdated_at else 0)))

    def decay(self, now: datetime) -> float:
        """Return how much of it time has taken: `1 - freshness`."""
        return 1 - self.freshness(now)

    def usefulness(self) -> float:
        """Return how often it helped, from 0 to 1; a half while nobody has said."""
        return (self.useful_count + 1) / (self.useful_count + self.harmful_count + 2)


@dataclass(frozen=True, kw_only=True)
class Sighting(Record):
    """One time a lesson was learned: from what, in which run and task, and the entries that show it."""

    table = "sightings"
    is_work = True
    home = "@memory"

    id: str
    lesson_id: str
    body: str | None = None
    source_kind: str
    source_id: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    refs: list[str] = field(default_factory=list)
    key: str | None = None
    seen_at: datetime


@dataclass(frozen=True, kw_only=True)
class Hit(Record):
    """A lesson that was recalled, and why: a figure from 0 to 1 for each signal, and the same in words.

    `evidence` has its newest sightings: the run, task and source each is from, and the journal entries that show it.
    `contradicted_by` has the contradicting lessons, until someone decides which one holds; `outdated_by` names what has changed
    since it was learned.
    """

    id: str
    topic: str
    body: str
    payload: dict[str, object]
    project: str | None
    confidence: int
    sightings: int
    source_kind: str
    source_id: str | None
    score: float
    signals: dict[str, float]
    why: str
    tokens: int
    evidence: list[dict[str, object]] = field(default_factory=list)
    contradicted_by: list[str] = field(default_factory=list)
    outdated_by: str | None = None

    @property
    def cautions(self) -> list[str]:
        """What to know before it is followed."""
        changed = [f"outdated: {self.outdated_by}"] if self.outdated_by is not None else []
        return changed + ([f"contradicted by {', '.join(self.contradicted_by)}"] if self.contradicted_by else [])


class Hits(list[Hit]):
    """Lessons that were recalled, the best first. `warnings` shows what they were not searched by, and why."""

    def __init__(self, hits: Iterable[Hit] = (), warnings: Sequence[str] = ()) -> None:
        super().__init__(hits)
        self.warnings = tuple(warnings)
