"""Embedders, and the comparison of a question's vector with those of the lessons."""

from array import array
from collections.abc import Collection, Sequence
from heapq import nlargest
from importlib.util import find_spec
from math import sqrt
from operator import mul
from typing import Any, Protocol

from decklog.core import fork_safety as forks
from decklog.core.errors import DecklogError, Invalid, Unavailable
from decklog.db.base import Database
from decklog.db.search.vectors import LessonVectors, VectorIndex, unpacked

# A few lessons don't show how similar lessons usually are, so this many unrelated ones with the usual cosines are assumed.
_PRIOR_COUNT, _PRIOR_MEAN, _PRIOR_SPREAD = 8, 0.1, 0.12


class Embedder(Protocol):
    """Turns texts into vectors. `name` is stored with each vector: only vectors of the same name are compared.

    An optional number `least` is the sum of cosine and word share that a lesson needs to be recalled.
    """

    name: str
    dimensions: int

    def embed(self, texts: list[str]) -> list[list[float]]: ...


def embed_texts(embedder: Embedder, texts: list[str]) -> list[list[float]]:
    """Embed texts as unit vectors. Raise an error unless each text gets one finite vector of the stated length."""
    try:
        vectors = embedder.embed(texts)
    except DecklogError:
        raise
    except Exception as problem:
        # Embedders are user code. Recall falls back to words for any failure.
        raise Unavailable(f"the embedder {embedder.name} failed: {type(problem).__name__}: {problem}") from problem
    if len(vectors) != len(texts):
        raise Invalid(f"the embedder {embedder.name} gave {len(vectors)} vectors for {len(texts)} texts")
    return [_normalize(embedder, vector) for vector in vectors]


def _normalize(embedder: Embedder, vector: list[float]) -> list[float]:
    if len(vector) != embedder.dimensions:
        raise Invalid(f"the embedder {embedder.name} promised {embedder.dimensions} dimensions and gave {len(vector)}")
    length = sqrt(sum(part * part for part in vector))
    if length != length or length == float("inf"):
        raise Invalid(f"the embedder {embedder.name} gave a vector that is not finite")
    # 32-bit floats are stored; rounding here makes both engines compare the same numbers.
    return list(array("f", [part / length if length else 0.0 for part in vector]))


class Neighbours:
    """Compares a question with the lessons, by pgvector's index or in this process. Thread-safe."""

    def __init__(self, db: Database, embedder: Embedder) -> None:
        self.embedder = embedder
        self.index = VectorIndex(db, embedder.name, embedder.dimensions)
        self.has_index = False
        # Lessons without a vector, newest first.
        self.missing: list[str] = []
        self._stored = LessonVectors(db)
        self._lessons: list[tuple[str, str, str | None]] = []
        self._matrix: Any = None
        self._lock = forks.create_lock()
        # The newest entry of the memory at the last load, with its hash: after a rollback it is another one.
        self._loaded_to: tuple[int, str | None] = (-1, None)

    def load(self) -> None:
        """Load lessons and vectors if any changed. Call it in a read or a transaction."""
        with self._lock:
            self.has_index = self.index.is_there()
            if self.has_index:
                self.missing = self._stored.missing(self.embedder.name)
                return
            seq, known_hash = self._loaded_to
            newest, newest_hash, hash_there, is_changed = self._stored.changes_since(seq)
            if is_changed or hash_there != known_hash or seq < 0:
                found = self._stored.holding(self.embedder.name, self.embedder.dimensions)
                self.missing = [lesson_id for lesson_id, _, _, vector in reversed(found) if vector is None]
                self._lessons = [row[:3] for row in found if row[3] is not None]
                self._matrix = _matrix([vector for *_, vector in found if vector is not None])
            self._loaded_to = (newest, newest_hash)

    def near(
        self, vector: Sequence[float], *, topic: str | None, project: str | None, limit: int, also: Collection[str]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return the cosines of the nearest lessons and of `also`, and by how many standard deviations each exceeds the mean."""
        if self.has_index:
            cosines, mean, spread, count = self.index.near(vector, topic=topic, project=project, limit=limit, also=also)
        else:
            with self._lock:
                lessons, products = self._lessons, _similarities(self._matrix, vector)
            known = {lesson[0]: product for lesson, product in zip(lessons, products, strict=True)}
            among = {
                lesson_id: known[lesson_id]
                for lesson_id, of_topic, of_project in lessons
                if topic in (None, of_topic) and (project is None or of_project in (None, project))
            }
            nearest = nlargest(limit, among, key=among.__getitem__)
            cosines = {lesson_id: known[lesson_id] for lesson_id in (*nearest, *also) if lesson_id in known}
            mean, spread = _mean_and_spread(among.values())
            count = len(among)
        mean, spread = _with_prior(mean, spread, count)
        return cosines, {lesson_id: (cosine - mean) / spread for lesson_id, cosine in cosines.items()}


def _matrix(vectors: list[bytes]) -> Any:
    if find_spec("numpy") is None or not vectors:
        return [unpacked(vector) for vector in vectors]
    from decklog.stores.memory.semantic.minilm import numpy

    return numpy.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)


def _similarities(matrix: Any, question: Sequence[float]) -> list[float]:
    if isinstance(matrix, list):
        return [float(sum(map(mul, question, vector))) for vector in matrix]
    from decklog.stores.memory.semantic.minilm import numpy

    products: list[float] = (matrix @ numpy.asarray(question, dtype="float32")).tolist()
    return products


def _mean_and_spread(cosines: Collection[float]) -> tuple[float, float]:
    count = max(len(cosines), 1)
    mean = sum(cosines) / count
    return mean, sqrt(sum((cosine - mean) ** 2 for cosine in cosines) / count)


def _with_prior(mean: float, spread: float, count: int) -> tuple[float, float]:
    """Return the mean and standard deviation of the cosines, including the assumed lessons."""
    total = count + _PRIOR_COUNT
    common = (count * mean + _PRIOR_COUNT * _PRIOR_MEAN) / total
    real = spread**2 + (mean - common) ** 2
    prior = _PRIOR_SPREAD**2 + (_PRIOR_MEAN - common) ** 2
    return common, sqrt((count * real + _PRIOR_COUNT * prior) / total)
