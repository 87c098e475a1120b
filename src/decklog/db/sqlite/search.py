"""Full-text search on SQLite: an FTS5 index of words and tags."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from decklog.db.base import STREAM_SIZE, Database
from decklog.db.search.entries import MOST_READ, Finding, findings, flaws_of, found_among
from decklog.db.search.index_check import IndexCheck
from decklog.db.text_search import Found, Search, Span, words_of

# As bytes: a damaged text must not stop a search.
_WORDS = "entry_words(cast(body as blob), cast(payload as blob))"
_TAGS = """
    'kind ' || kind || coalesce(' agent ' || agent, '') || coalesce(' agent_id ' || agent_id, '')
    || coalesce(' phase ' || phase, '')
"""
_WITH_WORDS = f"select pos, {_WORDS} from entries"
# A prefix with more words than this is looked for entry by entry.
_MOST_WORDS = 128
_INDEX = f"""
insert into entry_text (rowid, words, tags)
select pos, {_WORDS}, {_TAGS}
  from entries
 where pos > :mark
   and pos <= :end
"""


class SqliteSearch(Database):
    """The search of a log in a SQLite file."""

    def index_entries(self, mark: int, end: int) -> None:
        self.count(_INDEX, {"mark": mark, "end": end})

    def search(self, select: str, spec: Search) -> Found:
        # A common word together with a rare condition is looked up entry by entry.
        ends = {prefix: _expand(self, prefix) for prefix in spec.query.prefixes()}
        broad = [prefix for prefix, words in ends.items() if words is None]
        listed = {prefix: words for prefix, words in ends.items() if words is not None}
        terms = [f"tags : {_quoted(f'{name} {value}')}" for name, value in spec.tags.items()]
        terms += [f"words : {term}" for term in spec.query.without(broad).fts5(listed)]
        bound = {**spec.bound, "match": " AND ".join(terms), "after": spec.after}
        if broad:
            return found_among(self, select, spec, _candidates(self, spec, bound))
        sql = _statement(select, spec.condition, tuple(spec.clauses("entry_text.rowid")), spec.order)
        return Found(self.rows(sql, {**bound, "limit": spec.limit})[1])

    def forget_text(self, positions: list[int]) -> None:
        # Kind, agent and phase stay, so that entries are still found by these.
        places = [{"pos": pos, "number": pos // STREAM_SIZE} for pos in positions]
        self.many("delete from entry_text where rowid = :pos", places)
        self.many(
            f"""
            insert into entry_text (rowid, words, tags)
            select pos, {_WORDS}, {_TAGS}
              from entries
             where pos = :pos
               and pos <= (select m.pos from entry_text_marks m where m.stream_no = :number)
            """,
            places,
        )

    def forget_all_text(self) -> None:
        # The index is made anew, since one that is damaged can't be emptied.
        def forget() -> None:
            [(made,)] = self.rows("select sql from sqlite_schema where name = 'entry_text'", {})[1]
            self.rows("drop table entry_text", {})
            self.rows(str(made), {})
            self.count("delete from entry_text_marks", {})

        self.write(forget)

    def check_text(self, pieces: list[Span] | None) -> Iterator[Finding]:
        if pieces is not None:
            yield from findings(self, flaws_of(self, "entry_text_docsize", "id", _not_found(self, pieces)))
            return
        with _checked(self) as checked:
            yield from findings(self, checked.flaws())


def _expand(database: Database, prefix: str) -> list[str] | None:
    """List the words that begin with a prefix, or None if there are too many.

    FTS5 reads all entries that have any of them before it returns the first one; of an OR it reads only what is needed.
    """
    words: list[str] = []
    start = prefix
    while len(words) < _MOST_WORDS:
        row = database.one("select term from entry_terms where term >= :start limit 1", {"start": start})
        if row is None or not row[0].startswith(prefix):
            return words
        words.append(row[0])
        start = f"{row[0]}\x01"
    return None


def _candidates(database: Database, spec: Search, bound: dict[str, Any]) -> list[tuple[int, bool]]:
    """List the first entries that have all but the broad prefixes, and whether each has these too."""
    if bound["match"]:
        sql = _statement(_WITH_WORDS, spec.condition, tuple(spec.clauses("entry_text.rowid")), spec.order)
    else:
        clauses = [*spec.clauses("pos"), *([spec.condition] if spec.condition else [])] or ["true"]
        sql = f"{_WITH_WORDS} where {' and '.join(clauses)} order by pos {spec.order} limit :limit"
    _, rows = database.rows(sql, {**bound, "limit": MOST_READ})
    return [(pos, spec.query.matches(words_of(text))) for pos, text in rows]


@lru_cache(64)
def _statement(select: str, condition: str, bounds: tuple[str, ...], order: str) -> str:
    """Write a search; the same text is found sooner among the prepared statements."""
    clauses = ["entry_text match :match", *bounds, *([condition] if condition else [])]
    return f"""
        {select}
          join entry_text on entry_text.rowid = entries.pos
         where {" and ".join(clauses)}
         order by entry_text.rowid {order}
         limit :limit
    """


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _not_found(database: Database, pieces: list[Span]) -> Iterator[int]:
    """Yield positions of entries that are not found by their longest word: FTS5 takes 50 times as long for all words of one."""
    found = "select rowid from entry_text where entry_text match :match and rowid > :mark and rowid <= :end"
    for _, mark, end in pieces:
        bound = {"mark": mark, "end": end}
        positions: dict[str, set[int]] = {}
        for pos, text in database.rows(f"{_WITH_WORDS} where pos > :mark and pos <= :end", bound)[1]:
            if word := max(words_of(text), key=len, default=""):
                positions.setdefault(word, set()).add(pos)
        for word, expected in positions.items():
            rows = database.rows(found, {**bound, "match": f'words : "{word}"'})[1]
            yield from sorted(expected - {pos for (pos,) in rows})


@contextmanager
def _checked(database: Database) -> Iterator[IndexCheck]:
    """Hold the index against the words and tags of all entries up to the marks."""
    database.rows(
        f"""
        create temp view checked_entries as
        select pos as no, {_WORDS} as words, {_TAGS} as tags
          from main.entries e
         where pos <= (select m.pos from main.entry_text_marks m where m.stream_no = e.pos / {STREAM_SIZE})
        """,
        {},
    )
    try:
        yield IndexCheck(database, "entry_text", ("words", "tags"), "checked_entries", options=", tokenize = 'ascii'")
    finally:
        database.rows("drop view temp.checked_entries", {})
