"""Full-text search on PostgreSQL: the words of every entry in a table of their own, with a GIN index."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from decklog.db.base import STREAM_SIZE, Database, Row
from decklog.db.search.entries import MOST_READ, Finding, findings, flaws_of, found_among
from decklog.db.text_search import Found, Query, Search, Span, entry_words, tsvector

_TOGETHER = 2_000
# A common word is found among the newest entries in less time than the GIN index takes to list all that have it.
_FEWEST_LOOKED_AT = 200
# The pages that are read to estimate how many entries a prefix has; one holds about 10 entries.
_SAMPLED_PAGES = 128
_PAGES = """
select (sum(pg_relation_size(relid)) / current_setting('block_size')::bigint)::bigint from pg_partition_tree('entry_text')
"""
# An entry's first characters; the words of the rest are not indexed.
_TEXTS = "e.pos, left(e.body, 65536), left(e.payload, 65536)"


class PostgresSearch(Database):
    """The search of a log in a PostgreSQL database."""

    def index_entries(self, mark: int, end: int) -> None:
        sql = f"select {_TEXTS} from entries e where e.pos > :mark and e.pos <= :end"
        rows = [(pos, tsvector(entry_words(*texts))) for pos, *texts in self.rows(sql, {"mark": mark, "end": end})[1]]
        self.insert("entry_text", ("entry_pos", "words"), rows)

    def search(self, select: str, spec: Search) -> Found:
        """Find entries by the index; kind, agent and phase have indexes of their own, and are part of the condition.

        The newest entries are looked at first, then as many as a full page needs if the word is as common in the rest. A word
        that the newest do not have is rare enough for the GIN index to list all entries with it.
        """
        looked_at = max(_FEWEST_LOOKED_AT, 2 * spec.limit)
        rows = _among_newest(self, select, spec, looked_at)
        if 0 < len(rows) < spec.limit:
            rows = _among_newest(self, select, spec, 2 * looked_at * spec.limit // len(rows))
        if len(rows) == spec.limit:
            return Found(rows)
        broad = [prefix for prefix in spec.query.prefixes() if _is_broad(self, prefix)]
        if broad:
            return found_among(self, select, spec, _candidates(self, spec, spec.query.without(broad)))
        # Among all that the GIN index lists.
        clauses = ["words @@ cast(:query as tsquery)", *spec.clauses("entry_pos")]
        matching = f"select entry_pos from entry_text where {' and '.join(clauses)}"
        return Found(_rows(self, select, spec, matching, {}))

    def forget_text(self, positions: list[int]) -> None:
        sql = f"select {_TEXTS} from entries e where e.pos = any(:positions)"
        rows = self.rows(sql, {"positions": positions})[1]
        words = [{"pos": pos, "words": tsvector(entry_words(*texts))} for pos, *texts in rows]
        self.many("update entry_text set words = cast(:words as tsvector) where entry_pos = :pos", words)

    def forget_all_text(self) -> None:
        def forget() -> None:
            # Steps in the background end before, or begin after it.
            self.hold("entry_text_marks")
            for table in ("entry_text", "entry_text_marks"):
                self.count(f"delete from {table}", {})

        self.write(forget)

    def check_text(self, pieces: list[Span] | None) -> Iterator[Finding]:
        return findings(self, flaws_of(self, "entry_text", "entry_pos", _with_other_words(self, pieces)))


def _is_broad(database: Database, prefix: str) -> bool:
    """Estimate from a sample whether more entries have a word with this prefix than one search reads.

    The GIN index lists all of them before the first one is returned.
    """
    [(pages,)] = database.rows(_PAGES, {})[1]
    share = min(1.0, _SAMPLED_PAGES / max(pages, 1))
    sql = f"""
        select count(*)
          from entry_text tablesample system ({100 * share}) repeatable (0)
         where words @@ cast(:query as tsquery)
    """
    [(count,)] = database.rows(sql, {"query": f"'{prefix}':*"})[1]
    return bool(count > MOST_READ * share)


def _candidates(database: Database, spec: Search, others: Query) -> list[tuple[int, bool]]:
    """List the first entries that have the words of `others`, and whether each has all."""
    clauses = spec.clauses("entry_pos")
    clauses += ["words @@ cast(:others as tsquery)"] if others.terms else []
    clauses += [spec.condition] if spec.condition else []
    sql = f"""
        select entry_pos, words @@ cast(:query as tsquery)
          from entry_text
          {"join entries on pos = entry_pos" if spec.condition else ""}
         where {" and ".join(clauses or ["true"])}
         order by entry_pos {spec.order}
         limit {MOST_READ}
    """
    bound = {**spec.bound, "query": spec.query.tsquery(), "others": others.tsquery(), "after": spec.after}
    return database.rows(sql, bound)[1]


def _among_newest(database: Database, select: str, spec: Search, looked_at: int) -> list[Row]:
    """Find entries among the first that this page may hold."""
    bounds = spec.clauses("entry_pos")
    inside = f"where {' and '.join(bounds)}" if bounds else ""
    newest = f"select entry_pos, words from entry_text {inside} order by entry_pos {spec.order} limit :looked_at"
    matching = f"select entry_pos from ({newest}) newest where words @@ cast(:query as tsquery)"
    return _rows(database, select, spec, matching, {"looked_at": looked_at})


def _rows(database: Database, select: str, spec: Search, matching: str, bound: dict[str, Any]) -> list[Row]:
    """Look the matching entries up one by one.

    Materialized and lateral: without statistics of a word, the planner would rather walk through all entries.
    """
    few = "matching" if spec.condition else f"(select entry_pos from matching order by entry_pos {spec.order} limit :limit) few"
    found = f"{select} where pos = entry_pos {f'and {spec.condition}' if spec.condition else ''} limit 1"
    sql = f"""
        with matching as materialized ({matching})
        select found.*
          from {few}
         cross join lateral ({found}) found
         order by entry_pos {spec.order}
         limit :limit
    """
    bound = {**spec.bound, "query": spec.query.tsquery(), "after": spec.after, "limit": spec.limit, **bound}
    return database.rows(sql, bound)[1]


def _with_other_words(database: Database, pieces: list[Span] | None) -> Iterator[int]:
    """Yield positions of entries before their stream's mark that lack words in the index or have others."""
    within = " or ".join(f"e.pos > {mark} and e.pos <= {end}" for _, mark, end in pieces or ())
    indexed = database.each(
        f"""
        select {_TEXTS}
          from entries e
          join entry_text_marks m on m.stream_no = e.pos / {STREAM_SIZE} and e.pos <= m.pos
         where {within or "true"}
        """,
        {},
    )
    compared = """
        select c.pos
          from unnest(cast(:positions as bigint[]), cast(:words as text[])) c (pos, words)
          left join entry_text t on t.entry_pos = c.pos
         where t.words is distinct from cast(c.words as tsvector)
    """
    while some := list(islice(indexed, _TOGETHER)):
        bound = {"positions": [row[0] for row in some], "words": [tsvector(entry_words(*row[1:])) for row in some]}
        yield from (row[0] for row in database.rows(compared, bound)[1])
