"""The neighbours of a question as PostgreSQL finds them: nothing is read into the process but what it asks for."""

from threading import Lock

from decklog.db.text.vector_index import VectorIndex
from decklog.db.text.vectors import LessonVectors
from decklog.stores.memory.neighbours.nearest import changed_lessons, in_general

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from decklog.db.base import Database
    from decklog.stores.memory.neighbours.embedder import Embedder


class NeighboursOnServer:
    """Asks the index of one embedder; knows which lessons have no vector yet. Threads may share it."""

    def __init__(self, db: "Database", embedder: "Embedder", *, told_by: str) -> None:
        self._told_by = told_by
        self.embedder = embedder
        self._kept = LessonVectors(db)
        self._index = VectorIndex(db, embedder.name, embedder.dimensions)
        self._lock = Lock()
        self._mark: tuple[int, str | None] | None = None
        self._missing: set[str] = set()

    def catch_up(self) -> None:
        """Learn which lessons have no vector by now. In a read or a transaction."""
        with self._lock:
            head = self._kept.head(self._mark[0] if self._mark else 0)
            if self._mark is None or self._mark != (self._mark[0], head.hash_at):
                self._missing = set(self._kept.missing(self.embedder.name, None))
            elif head.seq != self._mark[0]:
                self._follow(self._mark[0])
            self._mark = (head.seq, head.hash)

    def _follow(self, mark: int) -> None:
        told = self._kept.told_since(mark, self._told_by)
        changed = changed_lessons(told, self.embedder.name)
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
        """Give the cosines of the nearest lessons and of others, and how far above the usual each of them is."""
        found = self._index.near(vector, topic=topic, project=project, limit=limit, also=also)
        mean, spread = in_general(found.mean, found.spread, found.looked_at)
        return found.cosines, {lesson_id: (cosine - mean) / spread for lesson_id, cosine in found.cosines.items()}
