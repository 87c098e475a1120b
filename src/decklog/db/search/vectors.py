"""Vectors of lessons, one for each embedder: kept, read back, and read again where the journal tells of a change."""

import sys
from array import array
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from decklog.db.search.lessons import HOLDS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import Any

    from decklog.db.base import Database, Row

_STREAM_SIZE = 2**32
_MISSING = f"""
  from lessons l
 where {HOLDS}
   and not exists (select 1 from lesson_vectors v where v.embedder = :embedder and v.lesson_id = l.id)
"""
# PostgreSQL sends an array as five numbers about it, and then each number with its length before it.
_HEAD_BYTES = 20


class VectorHead(NamedTuple):
    """The last entry of the memory's stream with its hash, and the hash of the entry that was asked for."""

    seq: int
    hash: str | None
    hash_at: str | None


class VectorEntry(NamedTuple):
    """What an entry of the memory's stream tells of: a lesson, or the vectors that were made, in its payload.

    A lesson that holds has its topic and its project of now.
    """

    lesson_id: str | None
    payload: "Any"
    topic: str | None
    project: str | None


class LessonVectors:
    """Keeps one vector per lesson and embedder."""

    def __init__(self, db: "Database") -> None:
        self._db = db
        self._is_sqlite = db.engine == "sqlite"

    def put(self, lesson_id: str, embedder: str, vector: "Sequence[float]") -> str:
        """Store a lesson's vector, in the caller's transaction; give its digest."""
        spelled = ":vector" if self._is_sqlite else "cast(:vector as real[])"
        self._db.count(
            f"""
            insert into lesson_vectors (lesson_id, embedder, dimensions, vector)
            values (:lesson_id, :embedder, :dimensions, {spelled})
            on conflict (embedder, lesson_id) do update set dimensions = excluded.dimensions, vector = excluded.vector
            """,
            {
                "lesson_id": lesson_id,
                "embedder": embedder,
                "dimensions": len(vector),
                "vector": packed(vector) if self._is_sqlite else list(vector),
            },
        )
        return digest_of(vector)

    def digests(self) -> "Iterator[tuple[str, str, str, bool]]":
        """Yield the digest of each vector, with its embedder and its lesson, and whether it has as many numbers as it says."""
        sql = "select embedder, lesson_id, dimensions, vector from lesson_vectors"
        for embedder, lesson_id, dimensions, stored in self._db.each_as_is(sql, {}):
            is_packed = isinstance(stored, bytes)
            digest = sha256(stored).hexdigest() if is_packed else digest_of(stored)
            yield embedder, lesson_id, digest, dimensions == (len(stored) / 4 if is_packed else len(stored))

    def holding(
        self, embedder: str, dimensions: int, among: "Collection[str] | None" = None
    ) -> "list[tuple[str, str, str | None, bytes | None]]":
        """List the lessons that hold, or some of them, by their ids: each with its topic, project, and packed vector if any.

        Two passes in the order in which the rows lie: a join would look each of them up.
        """
        bound = {f"id{number}": lesson_id for number, lesson_id in enumerate(among or ())}
        marks = ", ".join(f":{name}" for name in bound) or "null"
        these = "" if among is None else f"in ({marks})"
        _, lessons = self._db.rows(
            f"select l.id, l.topic, l.project from lessons l where {HOLDS} {these and f'and l.id {these}'}", bound
        )
        _, vectors = self._db.rows(
            f"""
            select lesson_id, {"vector" if self._is_sqlite else "array_send(vector)"}
              from lesson_vectors
             where embedder = :embedder
               and dimensions = :dimensions
               {these and f"and lesson_id {these}"}
            """,
            {**bound, "embedder": embedder, "dimensions": dimensions},
        )
        stored: dict[str, bytes] = dict(vectors)
        if not self._is_sqlite:
            stored = {lesson_id: from_postgres(sent) for lesson_id, sent in stored.items()}
        return [(lesson_id, topic, project, stored.get(lesson_id)) for lesson_id, topic, project in sorted(lessons)]

    def without(self, embedder: str) -> int:
        """Return how many lessons that hold have no vector of an embedder."""
        row = self._db.one(f"select count(*) {_MISSING}", {"embedder": embedder})
        return row[0] if row else 0

    def missing(self, embedder: str, among: "Sequence[str] | None") -> list[str]:
        """Name the lessons that hold, or some of them, that have no vector of an embedder."""
        bound = {f"id{number}": lesson_id for number, lesson_id in enumerate(among or ())}
        marks = ", ".join(f":{name}" for name in bound) or "null"
        these = "" if among is None else f"and l.id in ({marks})"
        return [row[0] for row in self._db.rows(f"select l.id {_MISSING} {these}", {"embedder": embedder, **bound})[1]]

    def since(self, seq: int | None, subtype: str) -> "tuple[VectorHead, list[VectorEntry]]":
        """Return how far the memory's stream has come, which entry has a number, and what those behind it tell of.

        Without a number nothing is told.
        """
        told = self._told_since(seq, subtype) if seq is not None else list
        row = self._db.one(
            f"""
            select last.pos - s.no * {_STREAM_SIZE}, last.hash, at.hash
              from streams s
              join entries last on last.pos = (select max(pos) from entries
                                                where pos >= s.no * {_STREAM_SIZE} and pos < (s.no + 1) * {_STREAM_SIZE})
              left join entries at on at.pos = s.no * {_STREAM_SIZE} + :seq
             where s.name = '@memory'
            """,
            {"seq": seq or 0},
        )
        return (VectorHead(*row) if row else VectorHead(0, None, None)), [VectorEntry(*row) for row in told()]

    def _told_since(self, seq: int, subtype: str) -> "Callable[[], list[Row]]":
        return self._db.rows_ahead(
            f"""
            select case when e.record_table = 'lessons' then e.record_id end,
                   case when e.record_table is null then e.payload end,
                   l.topic,
                   l.project
              from streams s
              join entries e on e.pos > s.no * {_STREAM_SIZE} + :seq and e.pos < (s.no + 1) * {_STREAM_SIZE}
              left join lessons l on l.id = e.record_id and e.record_table = 'lessons' and {HOLDS}
             where s.name = '@memory'
               and (e.record_table = 'lessons' or (e.record_table is null and e.subtype = :subtype))
            """,
            {"seq": seq, "subtype": subtype},
        )


def digest_of(vector: "Sequence[float]") -> str:
    """Digest a vector as SQLite keeps it: 32-bit floats, little end first."""
    return sha256(packed(vector)).hexdigest()


def packed(vector: "Sequence[float]") -> bytes:
    """Write a vector as 32-bit floats, little end first."""
    floats = array("f", vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return floats.tobytes()


def unpacked(stored: bytes) -> "array[float]":
    """Read a vector that was packed."""
    floats = array("f", stored)
    if sys.byteorder == "big":
        floats.byteswap()
    return floats


def from_postgres(sent: bytes) -> bytes:
    """Pack a vector that PostgreSQL sent."""
    words = array("I", sent[_HEAD_BYTES:])
    # Every second word is a length; what is left is turned from big end first to little end first.
    floats = words[1::2]
    floats.byteswap()
    return floats.tobytes()
