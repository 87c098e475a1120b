"""Embedding of lessons: by which embedder, and when. Never while one is learned; a few at each recall, or all at once."""

from typing import TYPE_CHECKING

from decklog.core.errors import DecklogError, Invalid, Unavailable
from decklog.journal.entry import EntryKind
from decklog.records.operations import writes, writes_in_steps
from decklog.stores.memory.indexing import STREAM, LessonIndex
from decklog.stores.memory.learning import LessonWriter
from decklog.stores.memory.lesson import HOLDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from decklog.stores.base import StoreParts
    from decklog.stores.memory.neighbours.embedder import Embedder
    from decklog.stores.memory.neighbours.nearest import Neighbours
    from decklog.stores.memory.neighbours.on_server import NeighboursOnServer

# The subtype of what tells the digests of vectors.
EMBEDDED = "embedded"
# What a recall embeds on its way, so that nobody waits long for what others learned: half a second of a small model.
_ON_THE_WAY = 32
_MOST_CHARACTERS = 8_000
_TOGETHER = 64


class LessonEmbedding(LessonWriter):
    """Gives lessons vectors of the embedder in use."""

    def __init__(self, parts: "StoreParts", *, model: "Callable[[], Embedder] | None" = None) -> None:
        super().__init__(parts)
        self._model = model
        self._own: Embedder | None = None
        self._by_name: dict[tuple[str, int], Neighbours | NeighboursOnServer] = {}

    @property
    def embedder(self) -> "Embedder | None":
        """What turns texts into vectors: the model of this machine unless another is set; None is for words alone."""
        try:
            return self._embedder()
        except Unavailable:
            return None

    @embedder.setter
    def embedder(self, embedder: "Embedder | None") -> None:
        self._own, self._model = embedder, None

    def _embedder(self) -> "Embedder | None":
        """Return the embedder in use, or None where words alone were asked for; `Unavailable` says why there is none."""
        return self._model() if self._model is not None else self._own

    @writes_in_steps
    def embed(self, *, limit: int | None = None) -> int:
        """Embed lessons that have no vector of the current embedder, newest first; return how many."""
        embedder = self._embedder()
        if embedder is None:
            raise Unavailable("there is no embedder", hint="Set log.memory.embedder in Python first.")
        neighbours = self._neighbours(embedder)
        self._db.read(neighbours.catch_up)
        wanted = neighbours.missing(limit)
        return sum(self._embed(neighbours, wanted[at : at + _TOGETHER]) for at in range(0, len(wanted), _TOGETHER))

    @writes
    def index_vectors(self) -> bool:
        """Create a pgvector index for more than 30,000 lessons on PostgreSQL; return False if it exists.

        Vectors can't be written while the index is made, which takes minutes for 100,000. SQLite needs none, and refuses.
        """
        from decklog.db.search.vectors import VectorIndex

        if self._db.engine == "sqlite":
            raise Invalid("in a SQLite file vectors are compared by the process that asks, and need no index")
        embedder = self._embedder()
        if embedder is None:
            raise Unavailable("there is no embedder", hint="Set log.memory.embedder in Python first.")
        is_new = VectorIndex(self._db, embedder.name, embedder.dimensions).make()
        self._forget_neighbours()
        return is_new

    def _neighbours(self, embedder: "Embedder") -> "Neighbours | NeighboursOnServer":
        key = (embedder.name, embedder.dimensions)
        if key not in self._by_name:
            self._by_name[key] = self._made_neighbours(embedder)
        self._by_name[key].embedder = embedder
        return self._by_name[key]

    def _made_neighbours(self, embedder: "Embedder") -> "Neighbours | NeighboursOnServer":
        from decklog.db.search.vectors import VectorIndex

        if self._db.read(VectorIndex(self._db, embedder.name, embedder.dimensions).is_there):
            from decklog.stores.memory.neighbours.on_server import NeighboursOnServer

            return NeighboursOnServer(self._db, embedder, told_by=EMBEDDED)
        from decklog.stores.memory.neighbours.nearest import Neighbours

        return Neighbours(self._db, embedder, told_by=EMBEDDED)

    def _forget_neighbours(self) -> None:
        """Read all vectors anew the next time: they were changed without an entry."""
        self._by_name.clear()

    def _asked(self, query: str) -> "tuple[Neighbours | NeighboursOnServer | None, list[float], list[str]]":
        """Embed a question; where that can't be, say why it goes by words."""
        from decklog.stores.memory.neighbours.embedder import embedded

        try:
            embedder = self._embedder()
            if embedder is None:
                return None, [], []
            neighbours = self._neighbours(embedder)
            [vector] = embedded(embedder, [query])
        except DecklogError as problem:
            return None, [], [_by_words(problem)]
        return (neighbours if any(vector) else None), vector, []

    def _may_embed(self) -> bool:
        """Return whether nobody else waits for this caller, and it may write."""
        return not (self._db.read_only or self._db.is_reading or self._db.is_in_transaction)

    def _embed_some(self, neighbours: "Neighbours | NeighboursOnServer") -> "list[str]":
        """Embed a few of the lessons that have no vector; where that can't be, say why it goes by words."""
        try:
            self._embed(neighbours, neighbours.missing(_ON_THE_WAY), _MOST_CHARACTERS)
        except DecklogError as problem:
            return [_by_words(problem)]
        return []

    def _embed(
        self, neighbours: "Neighbours | NeighboursOnServer", lesson_ids: "list[str]", most_characters: int | None = None
    ) -> int:
        """Embed lessons outside of any transaction, then keep their vectors; say how many there were."""
        from decklog.stores.memory.neighbours.embedder import embedded

        bodies = self._db.read(lambda: self._bodies(lesson_ids, most_characters))
        embedder = neighbours.embedder
        vectors = dict(zip(bodies, embedded(embedder, list(bodies.values())), strict=True)) if bodies else {}
        if vectors:
            self._db.write(lambda: self._keep_vectors(embedder.name, vectors))
        return len(vectors)

    def _bodies(self, lesson_ids: "list[str]", most_characters: int | None) -> "dict[str, str]":
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

    def _keep_vectors(self, embedder: str, vectors: "dict[str, list[float]]") -> None:
        """Keep vectors of lessons, and tell their digests: nobody could make them anew to compare."""
        from decklog.db.search.vectors import LessonVectors

        kept = LessonVectors(self._db)
        with LessonIndex(self._db).following():
            told = {lesson_id: kept.put(lesson_id, embedder, vector) for lesson_id, vector in vectors.items()}
            self._journal.append(STREAM, kind=EntryKind.EVENT, subtype=EMBEDDED, payload={"embedder": embedder, "vectors": told})


def _by_words(problem: DecklogError) -> str:
    return f"by words alone: {problem.message}" + (f". {problem.hint}" if problem.hint else "")


def without_vectors(count: int) -> "list[str]":
    """Warn of lessons that have no vector yet."""
    if not count:
        return []
    told = (
        "1 lesson is found by its words alone until it is"
        if count == 1
        else f"{count} lessons are found by their words alone until they are"
    )
    return [f"{told} embedded: decklog memory embed"]
