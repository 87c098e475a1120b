"""Vectors of lessons, compared by sqlite-vec or pgvector where they are installed and else, exactly and slowly, in Python."""

import sys
from array import array
from hashlib import sha256
from heapq import nsmallest
from operator import mul

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from decklog.db.base import Database

_HOLDING = """
      from lesson_vectors v
      join lessons l on l.id = v.lesson_id
     where v.embedder = :embedder
       and v.dimensions = :dimensions
       and l.superseded_by is null
       and l.retired_at is null
"""


class LessonVectors:
    """Keeps one vector per lesson and embedder, and finds the nearest ones."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def put(self, lesson_id: str, embedder: str, vector: "Sequence[float]") -> str:
        """Store a lesson's vector, in the caller's transaction; give its digest."""
        self._db.count(
            f"""
            insert into lesson_vectors (lesson_id, embedder, dimensions, vector)
            values (:lesson_id, :embedder, :dimensions, {self._spelled(":vector")})
            on conflict (embedder, lesson_id) do update set dimensions = excluded.dimensions, vector = excluded.vector
            """,
            {
                "lesson_id": lesson_id,
                "embedder": embedder,
                "dimensions": len(vector),
                "vector": self._packed(vector),
            },
        )
        return digest_of(vector)

    def digests(self) -> "Iterator[tuple[str, str, str, bool]]":
        """Give the digest of each vector, with its embedder and its lesson, and whether it has as many numbers as it says."""
        sql = "select embedder, lesson_id, dimensions, vector from lesson_vectors"
        for embedder, lesson_id, dimensions, stored in self._db.each_as_is(sql, {}):
            is_packed = isinstance(stored, bytes)
            digest = sha256(stored).hexdigest() if is_packed else digest_of(stored)
            yield embedder, lesson_id, digest, dimensions == (len(stored) / 4 if is_packed else len(stored))

    def without(self, embedder: str, limit: int) -> "list[tuple[str, str]]":
        """List lessons that hold and have no vector of this embedder yet: id and body."""
        _, rows = self._db.rows(
            """
            select l.id, l.body
              from lessons l
             where l.superseded_by is null
               and l.retired_at is null
               and not exists (select 1 from lesson_vectors v where v.embedder = :embedder and v.lesson_id = l.id)
             order by l.id
             limit :limit
            """,
            {"embedder": embedder, "limit": limit},
        )
        return [(lesson_id, body) for lesson_id, body in rows]

    def nearest(
        self, embedder: str, vector: "Sequence[float]", *, topic: str | None, project: str | None, limit: int
    ) -> "list[tuple[str, float]]":
        """Find the lessons whose vectors point the same way, nearest first, each with its cosine."""
        bound: dict[str, Any] = {"embedder": embedder, "dimensions": len(vector), "limit": limit}
        condition = ""
        if topic:
            condition += " and l.topic = :topic"
            bound["topic"] = topic
        if project:
            condition += " and (l.project = :project or l.project is null)"
            bound["project"] = project
        distance = self._distance()
        if distance is None:
            return self._scan(vector, condition, bound)
        _, rows = self._db.rows(
            f"select l.id, {distance} as distance {_HOLDING} {condition} order by distance nulls last, l.id limit :limit",
            {**bound, "vector": self._packed(vector)},
        )
        # A vector of nothing but zeros has no direction: the engines call its distance null or not a number.
        return [(lesson_id, 1 - distance) for lesson_id, distance in rows if distance is not None and distance == distance]

    def engine(self) -> str:
        """Name what compares the vectors: sqlite-vec, pgvector or python."""
        if self._distance() is None:
            return "python"
        return "sqlite-vec" if self._db.engine == "sqlite" else "pgvector"

    def _scan(self, vector: "Sequence[float]", condition: str, bound: "dict[str, Any]") -> "list[tuple[str, float]]":
        rows = self._db.each(f"select l.id, v.vector {_HOLDING} {condition}", bound)
        scored = ((-sum(map(mul, vector, self._unpacked(stored))), lesson_id) for lesson_id, stored in rows)
        return [(lesson_id, -opposite) for opposite, lesson_id in nsmallest(bound["limit"], scored)]

    # What the engines spell differently

    def _packed(self, vector: "Sequence[float]") -> "Any":
        if self._db.engine != "sqlite":
            return list(vector)
        return _bytes_of(vector)

    def _unpacked(self, stored: "Any") -> "Sequence[float]":
        if self._db.engine != "sqlite":
            return list(stored)
        unpacked = array("f", stored)
        if sys.byteorder == "big":
            unpacked.byteswap()
        return unpacked

    def _spelled(self, parameter: str) -> str:
        return parameter if self._db.engine == "sqlite" else f"cast({parameter} as real[])"

    def _distance(self) -> str | None:
        """Spell the distance of a row from `:vector`; None when no extension is there to compute it."""
        if not self._db.can_compare_vectors():
            return None
        if self._db.engine == "sqlite":
            return "vec_distance_cosine(v.vector, :vector)"
        return "(cast(v.vector as vector) <=> cast(cast(:vector as real[]) as vector))"


def digest_of(vector: "Sequence[float]") -> str:
    """Digest a vector as SQLite keeps it: 32-bit floats, little end first."""
    return sha256(_bytes_of(vector)).hexdigest()


def _bytes_of(vector: "Sequence[float]") -> bytes:
    packed = array("f", vector)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()
