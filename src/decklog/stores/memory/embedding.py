"""Embedding of lessons: by which embedder, and when. Never while one is learned; a few at each recall, or all at once."""

from collections.abc import Callable

from decklog.core.errors import DecklogError, Invalid, Unavailable
from decklog.journal.entry import EntryKind
from decklog.records.operations import writes, writes_in_steps
from decklog.stores.base import StoreParts
from decklog.stores.memory.indexing import STREAM, LessonIndex
from decklog.stores.memory.learning import LessonWriter
from decklog.stores.memory.lesson import HOLDS
from decklog.stores.memory.vectors import Embedder, Neighbours, embed_texts

# The subtype of what tells the digests of vectors.
EMBEDDED = "embedded"
# What a recall embeds on its way, so that nobody waits long for what others learned: half a second of a small model.
_ON_THE_WAY = 32
_MOST_CHARACTERS = 8_000
_TOGETHER = 64


class LessonEmbedding(LessonWriter):
    """Gives lessons vectors of the embedder in use."""

    def __init__(self, parts: StoreParts, *, model: Callable[[], Embedder] | None = None) -> None:
        super().__init__(parts)
        self._model = model
        self._own: Embedder | None = None
        self._by_name: dict[tuple[str, int], Neighbours] = {}

    @property
    def embedder(self) -> Embedder | None:
        """What turns texts into vectors: the model of this machine unless another is set; None is for words alone."""
        try:
            return self._embedder()
        except Unavailable:
            return None

    @embedder.setter
    def embedder(self, embedder: "Embedder | None") -> None:
        self._own, self._model = embedder, None

    def _embedder(self) -> Embedder | None:
        """Return the embedder in use, or None where words alone were asked for; `Unavailable` says why there is none."""
        return self._model() if self._model is not None else self._own

    @writes_in_steps
    def embed(self, *, limit: int | None = None) -> int:
        """Embed lessons that have no vector of the current embedder, newest first; return how many."""
        embedder = self._embedder()
        if embedder is None:
            raise Unavailable("there is no embedder", hint="Set log.memory.embedder in Python first.")
        neighbours = self._neighbours(embedder)
        self._db.read(neighbours.load)
        wanted = neighbours.missing[:limit]
        return sum(self._embed(embedder, wanted[at : at + _TOGETHER]) for at in range(0, len(wanted), _TOGETHER))

    @writes
    def index_vectors(self) -> bool:
        """Create a pgvector index for more than 30,000 lessons on PostgreSQL; return False if it exists.

        Vectors can't be written while the index is made, which takes minutes for 100,000. SQLite needs none, and refuses.
        """
        if self._db.engine == "sqlite":
            raise Invalid("in a SQLite file vectors are compared by the process that asks, and need no index")
        embedder = self._embedder()
        if embedder is None:
            raise Unavailable("there is no embedder", hint="Set log.memory.embedder in Python first.")
        return self._neighbours(embedder).index.make()

    def _neighbours(self, embedder: Embedder) -> Neighbours:
        key = (embedder.name, embedder.dimensions)
        neighbours = self._by_name.setdefault(key, Neighbours(self._db, embedder))
        neighbours.embedder = embedder
        return neighbours

    def _asked(self, query: str) -> tuple[Neighbours | None, list[float], list[str]]:
        """Embed a question; where that can't be, say why it goes by words."""
        try:
            embedder = self._embedder()
            if embedder is None:
                return None, [], []
            [vector] = embed_texts(embedder, [query])
        except DecklogError as problem:
            return None, [], [_by_words(problem)]
        return (self._neighbours(embedder) if any(vector) else None), vector, []

    def _may_embed(self) -> bool:
        """Return whether nobody else waits for this caller, and it may write."""
        return not (self._db.read_only or self._db.is_reading or self._db.is_in_transaction)

    def _embed_some(self, neighbours: Neighbours) -> list[str]:
        """Embed a few of the lessons that have no vector; return a warning if that fails."""
        try:
            self._embed(neighbours.embedder, neighbours.missing[:_ON_THE_WAY], _MOST_CHARACTERS)
        except DecklogError as problem:
            return [_by_words(problem)]
        return []

    def _embed(self, embedder: Embedder, lesson_ids: list[str], most_characters: int | None = None) -> int:
        """Embed lessons outside of any transaction, then store their vectors; return how many there were."""
        bodies = self._db.read(lambda: self._bodies(lesson_ids, most_characters))
        vectors = dict(zip(bodies, embed_texts(embedder, list(bodies.values())), strict=True)) if bodies else {}
        if vectors:
            self._db.write(lambda: self._keep_vectors(embedder.name, vectors))
        return len(vectors)

    def _bodies(self, lesson_ids: list[str], most_characters: int | None) -> dict[str, str]:
        """Read what lessons that hold say, in the order of their ids; the first of them, where they are long."""
        bound = {f"id{number}": lesson_id for number, lesson_id in enumerate(lesson_ids)}
        marks = ", ".join(f":{name}" for name in bound)
        _, rows = self._db.rows(f"select id, body from lessons where id in ({marks}) and {HOLDS} order by id desc", bound)
        taken: dict[str, str] = {}
        for lesson_id, body in rows:
            if taken and most_characters is not None and sum(map(len, taken.values())) + len(body) > most_characters:
                break
            taken[lesson_id] = body
        return taken

    def _keep_vectors(self, embedder: str, vectors: dict[str, list[float]]) -> None:
        """Keep vectors of lessons, and tell their digests: nobody could make them anew to compare."""
        from decklog.db.search.vectors import LessonVectors

        kept = LessonVectors(self._db)
        with LessonIndex(self._db).following():
            told = {lesson_id: kept.put(lesson_id, embedder, vector) for lesson_id, vector in vectors.items()}
            self._journal.append(STREAM, kind=EntryKind.EVENT, subtype=EMBEDDED, payload={"embedder": embedder, "vectors": told})


def _by_words(problem: DecklogError) -> str:
    return f"by words alone: {problem.message}" + (f". {problem.hint}" if problem.hint else "")


def without_vectors(count: int) -> list[str]:
    """Warn of lessons that have no vector yet."""
    if not count:
        return []
    told = (
        "1 lesson is found by its words alone until it is"
        if count == 1
        else f"{count} lessons are found by their words alone until they are"
    )
    return [f"{told} embedded: decklog memory embed"]
