"""The neighbours of a question: the vectors of the lessons that hold, read once and followed up from the journal."""

from math import sqrt
from typing import TYPE_CHECKING

from decklog.core import fork_safety as forks
from decklog.db.search.vectors import LessonVectors
from decklog.records.values import from_json
from decklog.stores.memory.neighbours.rows import EXACT, VectorRows, rows_for

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

    from decklog.db.base import Database
    from decklog.db.search.vectors import VectorEntry
    from decklog.stores.memory.neighbours.embedder import Embedder

# How many lessons are read again one by one; where more have changed, all are.
_MOST_CHANGED = 2_000
# A handful of lessons do not say how near lessons are in general. As many as this that have nothing to do with the question are
# thought beside them, with the cosines that those usually have.
_THOUGHT, _THOUGHT_MEAN, _THOUGHT_SPREAD = 8, 0.1, 0.12


class Neighbours:
    """Keeps the vectors of one embedder in the process. Threads may share it."""

    def __init__(self, db: "Database", embedder: "Embedder", *, told_by: str) -> None:
        # The subtype of the entries that tell which vectors were made.
        self._told_by = told_by
        self.embedder = embedder
        self._kept = LessonVectors(db)
        self._lock = forks.lock()
        # The last entry of the memory's stream that is told here, and its hash: another hash means another past.
        self._mark: tuple[int, str | None] | None = None
        self._begin()

    def _begin(self) -> None:
        self._rows: VectorRows = rows_for(self.embedder.dimensions, 0)
        self._ids: list[str] = []
        self._tags: list[tuple[str, str | None]] = []
        self._places: dict[str, int] = {}
        # Lessons that hold and have no vector yet, the newest last.
        self._missing: dict[str, None] = {}

    def catch_up(self) -> None:
        """Read what changed since the last time. In a read or a transaction."""
        with self._lock:
            head, told = self._kept.since(self._mark[0] if self._mark else None, self._told_by)
            if self._mark is not None and self._mark == (self._mark[0], head.hash_at):
                if head.seq != self._mark[0]:
                    self._follow(told)
            else:
                self._read_all()
            self._mark = (head.seq, head.hash)

    def missing(self, limit: int | None) -> list[str]:
        """Name lessons that have no vector yet, the newest first."""
        with self._lock:
            return list(reversed(self._missing))[:limit]

    @property
    def without(self) -> int:
        """How many lessons have no vector."""
        return len(self._missing)

    def near(
        self, vector: "Sequence[float]", *, topic: str | None, project: str | None, limit: int, also: "Collection[str]"
    ) -> "tuple[dict[str, float], dict[str, float]]":
        """Return the cosines of the nearest lessons and of others, and how far above the usual each of them is."""
        with self._lock:
            places = self._narrowed(topic, project)
            others = [self._places[lesson_id] for lesson_id in also if lesson_id in self._places]
            found = self._rows.near(vector, places, others, limit)
            cosines = {self._ids[place]: cosine for place, cosine in found.cosines.items()}
            mean, spread = in_general(found.mean, found.spread, len(self._ids) if places is None else len(places))
        return cosines, {lesson_id: (cosine - mean) / spread for lesson_id, cosine in cosines.items()}

    def _narrowed(self, topic: str | None, project: str | None) -> "list[int] | None":
        if topic is None and project is None:
            return None
        return [
            place
            for place, (of_topic, of_project) in enumerate(self._tags)
            if topic in (None, of_topic) and (project is None or of_project in (None, project))
        ]

    # What is kept here

    def _read_all(self) -> None:
        self._begin()
        found = list(self._kept.holding(self.embedder.name, self.embedder.dimensions))
        self._rows = rows_for(self.embedder.dimensions, len(found))
        self._take(found)

    def _follow(self, told: "Sequence[VectorEntry]") -> None:
        """Read the lessons again that entries tell of."""
        changed = changed_lessons(told, self.embedder.name)
        if changed is None or len(changed) > _MOST_CHANGED or len(self._ids) <= EXACT < len(self._ids) + len(changed):
            self._read_all()
            return
        # Most were only recalled. A vector changes by an entry of its own, and is not read again without one.
        placed = {each.lesson_id for each in told if each.lesson_id in self._places}
        placed -= changed_lessons([each for each in told if each.lesson_id is None], self.embedder.name) or set()
        tags: dict[str, tuple[str, str | None]] = {}
        for lesson_id, _, topic, project in told:
            if lesson_id is not None and lesson_id in placed and topic is not None:
                tags[lesson_id] = topic, project
        for lesson_id in tags:
            self._tags[self._places[lesson_id]] = tags[lesson_id]
        for lesson_id in changed - tags.keys():
            self._drop(lesson_id)
        if others := changed - placed:
            self._take(self._kept.holding(self.embedder.name, self.embedder.dimensions, others))

    def _take(self, lessons: "Iterable[tuple[str, str, str | None, bytes | None]]") -> None:
        vectors = []
        for lesson_id, topic, project, vector in lessons:
            if vector is None:
                self._missing[lesson_id] = None
            else:
                self._places[lesson_id] = len(self._ids)
                self._ids.append(lesson_id)
                self._tags.append((topic, project))
                vectors.append(vector)
        if vectors:
            self._rows.append(vectors)

    def _drop(self, lesson_id: str) -> None:
        """Forget a lesson; the last one takes its place, so that there is no gap."""
        self._missing.pop(lesson_id, None)
        place = self._places.pop(lesson_id, None)
        if place is None:
            return
        last = len(self._ids) - 1
        if place != last:
            self._rows.replace(place, last)
            self._ids[place], self._tags[place] = self._ids[last], self._tags[last]
            self._places[self._ids[place]] = place
        self._rows.shorten()
        del self._ids[last], self._tags[last]


def changed_lessons(told: "Iterable[VectorEntry]", embedder: str) -> "set[str] | None":
    """Name the lessons that entries tell of; None where one was pruned, of which it is not known."""
    found: set[str] = set()
    for each in told:
        if each.lesson_id is not None:
            found.add(each.lesson_id)
        elif each.payload is None:
            return None
        else:
            said: Any = from_json(each.payload)
            found.update(said["vectors"] if said["embedder"] == embedder else ())
    return found


def in_general(mean: float, spread: float, count: int) -> tuple[float, float]:
    """Return the mean similarity of a question to lessons and its spread, smoothed by a prior for few lessons."""
    whole = count + _THOUGHT
    common = (count * mean + _THOUGHT * _THOUGHT_MEAN) / whole
    real = spread**2 + (mean - common) ** 2
    thought = _THOUGHT_SPREAD**2 + (_THOUGHT_MEAN - common) ** 2
    return common, sqrt((count * real + _THOUGHT * thought) / whole)
