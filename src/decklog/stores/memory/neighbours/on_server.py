"""The neighbours of a question as PostgreSQL finds them: nothing is read into the process but what it asks for."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from decklog.core import fork_safety as forks
from decklog.db.search.vectors import LessonVectors, VectorIndex
from decklog.records.values import from_json
from decklog.stores.memory.neighbours.nearest import changed_lessons, in_general
from decklog.stores.memory.neighbours.rows import ExactRows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

    from decklog.db.base import Database
    from decklog.db.search.vectors import VectorEntry
    from decklog.stores.memory.neighbours.embedder import Embedder

# A sample is read anew when one in so many of its vectors could be newer.
_NEWER = 50


class NeighboursOnServer:
    """Asks the index of one embedder; knows which lessons have no vector yet. Threads may share it."""

    def __init__(self, db: "Database", embedder: "Embedder", *, told_by: str) -> None:
        self._told_by = told_by
        self.embedder = embedder
        self._kept = LessonVectors(db)
        self._index = VectorIndex(db, embedder.name, embedder.dimensions)
        self._lock = forks.lock()
        self._mark: tuple[int, str | None] | None = None
        self._missing: set[str] = set()
        self._sample = _Sample(self._index, embedder.dimensions)

    def catch_up(self) -> None:
        """Learn which lessons have no vector by now. In a read or a transaction."""
        with self._lock:
            head, told = self._kept.since(self._mark[0] if self._mark else None, self._told_by)
            if self._mark is None or self._mark != (self._mark[0], head.hash_at):
                self._missing = set(self._kept.missing(self.embedder.name, None))
                self._sample.forget()
            elif head.seq != self._mark[0]:
                self._follow(told)
            self._mark = (head.seq, head.hash)

    def _follow(self, told: "Sequence[VectorEntry]") -> None:
        changed = changed_lessons(told, self.embedder.name)
        self._sample.follow(told, self.embedder.name)
        among = None if changed is None else sorted(changed)
        self._missing = set(self._missing.difference(among) if among is not None else ())
        self._missing.update(self._kept.missing(self.embedder.name, among))

    def missing(self, limit: int | None) -> list[str]:
        """Name lessons that have no vector yet, the newest first."""
        with self._lock:
            return sorted(self._missing, reverse=True)[:limit]

    @property
    def without(self) -> int:
        """How many lessons have no vector."""
        return len(self._missing)

    def near(
        self, vector: "Sequence[float]", *, topic: str | None, project: str | None, limit: int, also: "Collection[str]"
    ) -> "tuple[dict[str, float], dict[str, float]]":
        """Return the cosines of the nearest lessons and of others, and how far above the usual each of them is."""
        general = None
        if topic is None and project is None:
            with self._lock:
                general = self._sample.general(vector)
        found = self._index.near(vector, topic=topic, project=project, limit=limit, also=also, general=general)
        mean, spread = in_general(found.mean, found.spread, found.looked_at)
        return found.cosines, {lesson_id: (cosine - mean) / spread for lesson_id, cosine in found.cosines.items()}


class _Sample:
    """Some vectors of all, kept in the process: how near lessons are in general is told by the same ones every time.

    A process that asks only once has the server look at them, where they are; to read them takes as long as six questions.
    """

    def __init__(self, index: VectorIndex, dimensions: int) -> None:
        self._index = index
        self._dimensions = dimensions
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._rows: ExactRows | None = None
        self._count = 0
        self._questions = 0
        # How many vectors were made since it was read.
        self._newer = 0

    def follow(self, told: "Iterable[VectorEntry]", embedder: str) -> None:
        """Forget the sample where so many vectors were made since that it may no longer be like them all."""
        for each in told:
            if each.lesson_id is None and each.payload is not None:
                said: Any = from_json(each.payload)
                self._newer += len(said["vectors"]) if said["embedder"] == embedder else 0
        if self._newer * _NEWER > self._count:
            self.forget()

    def general(self, vector: "Sequence[float]") -> "tuple[float, float, int] | None":
        """Return the mean similarity of a question to lessons, its spread and the count; None to ask the server."""
        self._questions += 1
        if self._questions == 1 or find_spec("numpy") is None:
            return None
        if self._rows is None:
            vectors = self._index.sample()
            self._rows, self._count = ExactRows(self._dimensions), len(vectors)
            if vectors:
                self._rows.append(vectors)
        _, mean, spread = self._rows.near(vector, None, [], 1)
        return mean, spread, self._count
