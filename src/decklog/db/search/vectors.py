"""Vectors of lessons: how they are stored, searched and indexed."""

import re
import sys
from array import array
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from decklog.core.errors import Denied, Invalid, Unavailable
from decklog.db.base import Database
from decklog.db.search.lessons import HOLDS

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

    def __init__(self, db: Database) -> None:
        self._db = db
        self._is_sqlite = db.engine == "sqlite"

    def put(self, lesson_id: str, embedder: str, vector: Sequence[float]) -> str:
        """Store a lesson's vector in the caller's transaction; return its digest."""
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

    def digests(self) -> Iterator[tuple[str, str, str, bool]]:
        """Yield the embedder, lesson and digest of each vector, and whether its dimensions are right."""
        sql = "select embedder, lesson_id, dimensions, vector from lesson_vectors"
        for embedder, lesson_id, dimensions, stored in self._db.each_as_is(sql, {}):
            is_packed = isinstance(stored, bytes)
            digest = sha256(stored).hexdigest() if is_packed else digest_of(stored)
            yield embedder, lesson_id, digest, dimensions == (len(stored) / 4 if is_packed else len(stored))

    def changes_since(self, seq: int) -> tuple[int, str | None, str | None, bool]:
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

    def holding(self, embedder: str, dimensions: int) -> list[tuple[str, str, str | None, bytes | None]]:
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
        """List the active lessons without a vector of an embedder, newest first."""
        return [row[0] for row in self._db.rows(f"select l.id {_MISSING} order by l.id desc", {"embedder": embedder})[1]]


def digest_of(vector: Sequence[float]) -> str:
    """Digest a vector as SQLite keeps it: 32-bit floats, little end first."""
    return sha256(packed(vector)).hexdigest()


def packed(vector: Sequence[float]) -> bytes:
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


# pgvector's own limit for vectors of 32-bit floats in an index.
_MOST_DIMENSIONS = 2_000
# pgvector's `hnsw.ef_search`: with it, 1 % of the ten nearest of 100,000 vectors were missed.
_IN_VIEW = 200
# Sample size for the average similarity of a question to all lessons.
_SAMPLE = 1_000
_NAME = "lesson_vectors_near_"
# The definition of our indexes in PostgreSQL's catalogue. Any other index is not ours.
_MADE_BY_US = re.compile(
    rf"CREATE INDEX {_NAME}[0-9a-f]{{16}} ON lesson_vectors USING hnsw "
    r"\(\(\(vector\)::(?:\w+\.)?vector\(\d+\)\) (?:\w+\.)?vector_ip_ops\) "
    r"WHERE \(\(embedder = '(?:[^']|'')*'::text\) AND \(dimensions = \d+\)\) (?:true|t)"
)


def is_ours(kind: str, name: str, definition: str) -> bool:
    """Return whether an object of the schema is an index that was made here, and is as it was made."""
    return kind == "index" and name.startswith(_NAME) and _MADE_BY_US.fullmatch(definition) is not None


class NearOnServer(NamedTuple):
    """The cosines of the requested lessons; the mean and spread of a sample of all, and its size."""

    cosines: dict[str, float]
    mean: float
    spread: float
    looked_at: int


class VectorIndex:
    """Finds the nearest vectors of one embedder on the server."""

    def __init__(self, db: Database, embedder: str, dimensions: int) -> None:
        self._db = db
        self._name = _NAME + sha256(f"{dimensions} {embedder}".encode()).hexdigest()[:16]
        self._dimensions = dimensions
        quoted = embedder.replace("'", "''")
        # Spelled out: the planner takes an index over some rows only for a question that names the same.
        self._ours = f"embedder = '{quoted}' and dimensions = {int(dimensions)}"
        self._vector = f"(vector::vector({int(dimensions)}))"

    def is_there(self) -> bool:
        """Return whether the index was made, and can be used."""
        if self._db.engine == "sqlite":
            return False
        row = self._db.one("select i.indisvalid from pg_index i where i.indexrelid = to_regclass(:name)", {"name": self._name})
        return bool(row and row[0])

    def make(self) -> bool:
        """Create the index and the extension; return False if it exists. Call it in a transaction."""
        if self._dimensions > _MOST_DIMENSIONS:
            raise Invalid(f"vectors of {self._dimensions} numbers can't be indexed: {_MOST_DIMENSIONS} at most", field="embedder")
        if self.is_there():
            return False
        with self._db.patiently():
            self._extend()
            self._db.count(
                f"create index {self._name} on lesson_vectors using hnsw ({self._vector} vector_ip_ops) where {self._ours}", {}
            )
            # A server that does not know yet how many lessons there are sorts all of them instead of using it.
            self._db.count("analyze lessons, lesson_vectors", {})
        return True

    def _extend(self) -> None:
        if self._db.one("select 1 from pg_extension where extname = 'vector'", {}):
            return
        if not self._db.one("select 1 from pg_available_extensions where name = 'vector'", {}):
            raise Unavailable(
                "this server has no pgvector", hint="Install pgvector on the server; until then vectors are compared here."
            )
        try:
            self._db.count("create extension vector", {})
        except Denied as denied:
            hint = "Have somebody who may run it: create extension vector"
            raise Denied("this role may not add pgvector to the database", hint=hint) from denied

    def near(
        self, vector: Sequence[float], *, topic: str | None, project: str | None, limit: int, also: Collection[str]
    ) -> NearOnServer:
        """Find the nearest lessons that hold, of a topic and a project if given; also return the cosines of others. In a read."""
        bound: dict[str, Any] = {"asked": "[" + ",".join(map(repr, vector)) + "]"}
        narrowed = _narrowed(bound, topic, project)
        product = f"({self._vector} <#> cast(:asked as vector({int(self._dimensions)})))"
        settings = "set_config('hnsw.ef_search', :in_view, true), set_config('hnsw.iterative_scan', 'strict_order', true)"
        self._db.one(f"select {settings}", {"in_view": str(_IN_VIEW)})
        from_all = f"from lesson_vectors v join lessons l on l.id = v.lesson_id where {self._ours} and {HOLDS} {narrowed}"
        _, nearest = self._db.rows(
            f"select v.lesson_id, -{product} {from_all} order by {product} limit :limit", {**bound, "limit": limit}
        )
        others: list[Any] = []
        if also:
            _, others = self._db.rows(
                f"select lesson_id, -{product} from lesson_vectors where {self._ours} and lesson_id = any(cast(:ids as text[]))",
                {"asked": bound["asked"], "ids": list(also)},
            )
        return NearOnServer({**dict(nearest), **dict(others)}, *self._in_general(product, bound, narrowed))

    def _sampled(self) -> str:
        row = self._db.one("select greatest(reltuples, 1) from pg_class where oid = to_regclass('lesson_vectors')", {})
        share = min(100.0, 100.0 * _SAMPLE / (row[0] if row else 1))
        return f"tablesample system ({share}) repeatable (1)"

    def _in_general(self, product: str, bound: dict[str, Any], narrowed: str) -> tuple[float, float, int]:
        """Return how near some of all lessons are on average, how that is spread, and how many of these were looked at."""
        # Lessons that no longer hold are as near as others are, so that whether they do is not looked up for this.
        of_lessons = f"join lessons l on l.id = v.lesson_id and {HOLDS} {narrowed}" if narrowed else ""
        # Materialised, since each product would be made for the mean and once more for the spread.
        found = self._db.one(
            f"""
            with looked_at as materialized (
              select -{product} as near
                from lesson_vectors v {self._sampled()}
                {of_lessons}
               where {self._ours}
            )
            select coalesce(avg(near), 0), coalesce(stddev_pop(near), 0), count(*) from looked_at
            """,
            bound,
        )
        return found or (0.0, 0.0, 0)


def _narrowed(bound: dict[str, Any], topic: str | None, project: str | None) -> str:
    clauses = ""
    if topic is not None:
        bound["topic"] = topic
        clauses += " and l.topic = :topic"
    if project is not None:
        bound["project"] = project
        clauses += " and (l.project = :project or l.project is null)"
    return clauses
