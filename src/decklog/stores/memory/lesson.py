"""The lesson record: something learned, its evidence, and its state."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from decklog.records.record import Record

HALF_LIFE_DAYS = 120
# SQL condition for lessons that can be recalled.
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
        """Whether it can be recalled: it is neither superseded nor retired."""
        return self.superseded_by is None and self.retired_at is None

    # Warnings for the caller: another lesson contradicts it, or it was superseded.
    warnings = ()  # type: tuple[str, ...]

    def warned(self, warnings: Sequence[str]) -> "Lesson":
        """Attach warnings to the lesson."""
        object.__setattr__(self, "warnings", tuple(warnings))
        return self

    def freshness(self, now: datetime) -> float:
        """Return its freshness: 1 when just seen or recalled, halved with every further 120 days."""
        touched = max(self.last_seen_at, self.last_recalled_at or self.last_seen_at)
        idle_days = max((now - touched).total_seconds(), 0) / 86_400
        # Halved once more if its scope has changed.
        return float(0.5 ** (idle_days / HALF_LIFE_DAYS + (1 if self.outdated_at else 0)))

    def usefulness(self) -> float:
        """Return how often it helped, from 0 to 1; 0.5 without feedback."""
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
        """Warnings to read before following it."""
        changed = [f"outdated: {self.outdated_by}"] if self.outdated_by is not None else []
        return changed + ([f"contradicted by {', '.join(self.contradicted_by)}"] if self.contradicted_by else [])


class Hits(list[Hit]):
    """Recalled lessons, the best first. `warnings` has search methods that were not available, and why."""

    def __init__(self, hits: Iterable[Hit] = (), warnings: Sequence[str] = ()) -> None:
        super().__init__(hits)
        self.warnings = tuple(warnings)
