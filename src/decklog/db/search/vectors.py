"""The table of lesson vectors, one for each lesson and embedder."""

import sys
from array import array
from hashlib import sha256
from typing import TYPE_CHECKING

from decklog.db.search.lessons import HOLDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from decklog.db.base import Database

_MISSING = f"""
  from lessons l
 where {HOLDS}
   and not exists (select 1 from lesson_vectors v where v.embedder = :embedder and v.lesson_id = l.id)
"""
# PostgreSQL sends an array as five numbers about it, and then each number with its length before it.
_HEAD_BYTES = 20
_STREAM_SIZE = 2**32


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

    def changes_since(self, seq: int) -> "tuple[int, str | None, str | None, bool]":
        """Return the newest entry of the memory and its hash, the hash of entry `seq`, and whether lessons changed after it.

        Counting a recall or a mark changes nothing that lessons are compared by.
        """
        row = self._db.one(
            f"""
            select last.seq, last.hash, at.hash,
                   exists (select 1 from entries e
                            where e.pos > s.no * {_STREAM_SIZE} + :seq and e.pos <= last.pos
                              and not (coalesce(e.body, '') in ('recalled', 'useful', 'harmful')
                                       and coalesce(e.payload, '') like :standing
                                       and e.payload like :active))
              from streams s
              join entries last on last.pos = (select max(pos) from entries
                                                where pos >= s.no * {_STREAM_SIZE} and pos < (s.no + 1) * {_STREAM_SIZE})
              left join entries at on at.pos = s.no * {_STREAM_SIZE} + :seq
             where s.name = '@memory'
            """,
            {"seq": seq, "standing": '%"superseded_by":null%', "active": '%"retired_at":null%'},
        )
        return (row[0], row[1], row[2], bool(row[3])) if row else (0, None, None, False)

    def holding(self, embedder: str, dimensions: int) -> "list[tuple[str, str, str | None, bytes | None]]":
        """List the lessons that hold, by their ids: each with its topic, project, and packed vector if any."""
        # Two passes in the order in which the rows lie: a join would look each of them up.
        _, lessons = self._db.rows(f"select l.id, l.topic, l.project from lessons l where {HOLDS}", {})
        _, vectors = self._db.rows(
            f"""
            select lesson_id, {"vector" if self._is_sqlite else "array_send(vector)"}
              from lesson_vectors
             where embedder = :embedder and dimensions = :dimensions
            """,
            {"embedder": embedder, "dimensions": dimensions},
        )
        stored: dict[str, bytes] = dict(vectors)
        if not self._is_sqlite:
            stored = {lesson_id: from_postgres(sent) for lesson_id, sent in stored.items()}
        return [(lesson_id, topic, project, stored.get(lesson_id)) for lesson_id, topic, project in sorted(lessons)]

    def without(self, embedder: str) -> int:
        """Return how many lessons that hold have no vector of an embedder."""
        row = self._db.one(f"select count(*) {_MISSING}", {"embedder": embedder})
        return row[0] if row else 0

    def missing(self, embedder: str) -> list[str]:
        """Name the lessons that hold and have no vector of an embedder, newest first."""
        return [row[0] for row in self._db.rows(f"select l.id {_MISSING} order by l.id desc", {"embedder": embedder})[1]]


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
