"""Full-text search on SQLite: an FTS5 index of words and tags."""

from contextlib import contextmanager
from functools import lru_cache

from decklog.db.text import entries_check
from decklog.db.text.marks import SIZE, not_indexed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from decklog.db.base import Database, Row
    from decklog.db.text.entries_check import Flaw
    from decklog.db.text.index_check import IndexCheck

_WORDS = "substr(coalesce(body, '') || ' ' || coalesce(payload, ''), 1, 65536)"
_TAGS = """
    'kind ' || kind || coalesce(' agent ' || agent, '') || coalesce(' agent_id ' || agent_id, '')
    || coalesce(' phase ' || phase, '')
"""

INDEX = f"""
insert into entry_text (rowid, words, tags)
select pos, {_WORDS}, {_TAGS}
  from entries
 where pos > :mark
   and pos <= :end
"""


def search(
    database: "Database",
    select: str,
    words: str,
    *,
    tags: "Mapping[str, str]",
    condition: str,
    bound: "Mapping[str, Any]",
    oldest_first: bool,
    limit: int,
    after: int | None,
    stream_no: int | None,
    is_indexed: bool,
) -> "tuple[tuple[str, ...], list[Row]]":
    """Find entries. A common word together with a rare condition is looked up entry by entry."""
    asked = select, condition, after is not None, oldest_first
    parameters = {**bound, "match": match_for(words, tags), "after": after, "limit": limit}
    names, rows = database.rows(_question("entry_text", *asked), parameters)
    if is_indexed:
        return names, rows
    with _rest_indexed(database, stream_no):
        more_names, more = database.rows(_question("unindexed_text", *asked), parameters)
    # The position of an entry comes first.
    return names or more_names, sorted([*rows, *more], key=lambda row: row[0], reverse=not oldest_first)[:limit]


@lru_cache(64)
def _question(index: str, select: str, condition: str, is_after: bool, oldest_first: bool) -> str:
    """Write a search. Most are asked again and again, and a text that is known is found sooner among the statements too."""
    clauses = [f"{index} match :match", *([condition] if condition else [])]
    if is_after:
        clauses.append(f"{index}.rowid > :after" if oldest_first else f"{index}.rowid < :after")
    return f"""
        {select}
          join {index} on {index}.rowid = entries.pos
         where {" and ".join(clauses)}
         order by {index}.rowid {"asc" if oldest_first else "desc"}
         limit :limit
    """


@contextmanager
def _rest_indexed(database: "Database", stream_no: int | None) -> "Iterator[None]":
    """Index for ourselves what is not indexed yet, where nothing can be written to the log."""
    database.rows("create virtual table temp.unindexed_text using fts5(words, tags, content = '')", {})
    try:
        for _, mark, newest in not_indexed(database, stream_no):
            database.rows(INDEX.replace("entry_text", "temp.unindexed_text"), {"mark": mark, "end": newest})
        yield
    finally:
        database.rows("drop table temp.unindexed_text", {})


def match_for(words: str, tags: "Mapping[str, str]") -> str:
    """Write words and tags as an FTS5 query: each is quoted, so none of its characters is an operator; `word*` is a prefix."""
    terms = [f"tags : {_quoted(f'{name} {value}')}" for name, value in tags.items()]
    for word in words.split():
        prefix = " *" if word.endswith("*") and len(word) > 1 else ""
        terms.append(f"words : {_quoted(word.rstrip('*'))}{prefix}")
    return " AND ".join(terms)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def forget(database: "Database", positions: "list[int]") -> None:
    """Drop the words of entries that were indexed; kind, agent and phase stay, so that they are still found by these."""
    places = [{"pos": pos, "number": pos // SIZE} for pos in positions]
    database.many("delete from entry_text where rowid = :pos", places)
    database.many(
        f"""
        insert into entry_text (rowid, words, tags)
        select pos, {_WORDS}, {_TAGS}
          from entries
         where pos = :pos
           and pos <= (select m.pos from entry_text_marks m where m.stream_no = :number)
        """,
        places,
    )


def forget_all(database: "Database") -> None:
    """Drop the words of all entries, and how far they were indexed.

    The index is made anew, since one that is damaged can't be emptied.
    """
    [(made,)] = database.rows("select sql from sqlite_schema where name = 'entry_text'", {})[1]
    database.rows("drop table entry_text", {})
    database.rows(str(made), {})
    database.count("delete from entry_text_marks", {})


def flaws(database: "Database") -> "Iterator[Flaw]":
    """Find entries that were indexed, or should have been, and whose words and tags are others there."""
    with _checked(database) as index:
        yield from index.flaws()


def sound_parts(database: "Database") -> "list[Callable[[], bool]]":
    """Look for the same in two parts that take about as long, and only say whether there is nothing."""

    def has_told_words() -> bool:
        with _checked(database) as index:
            return not any(entries_check.misplaced_marks(database)) and index.has_told_words()

    def gives_rows_back() -> bool:
        with _checked(database) as index:
            return index.gives_rows_back()

    return [has_told_words, gives_rows_back]


@contextmanager
def _checked(database: "Database") -> "Iterator[IndexCheck]":
    """Hold the index against the words and tags of all entries up to the marks."""
    from decklog.db.text.index_check import IndexCheck

    database.rows(
        f"""
        create temp view checked_entries as
        select pos as no, {_WORDS} as words, {_TAGS} as tags
          from main.entries e
         where pos <= (select m.pos from main.entry_text_marks m where m.stream_no = e.pos / {SIZE})
        """,
        {},
    )
    try:
        yield IndexCheck(database, "entry_text", ("words", "tags"), "checked_entries")
    finally:
        database.rows("drop view temp.checked_entries", {})
