"""Full-text search on PostgreSQL: the words of every entry in a table of their own, with a GIN index."""

from decklog.db.text.marks import SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from decklog.db.base import Database, Row
    from decklog.db.text.entries_check import Flaw

_WORDS = "to_tsvector('simple', left(coalesce(body, '') || ' ' || coalesce(payload, ''), 65536))"
_MOST_FLAWS = 20
INDEX = f"""
insert into entry_text (entry_pos, words)
select pos, {_WORDS}
  from entries
 where pos > :mark
   and pos <= :end
"""


def search(
    database: "Database",
    select: str,
    words: str,
    *,
    tags: "Mapping[str, str]",  # noqa: ARG001 - PostgreSQL has an index for each
    condition: str,
    bound: "Mapping[str, Any]",
    oldest_first: bool,
    limit: int,
    after: int | None,
    stream_no: int | None,  # noqa: ARG001 - the condition says so too
    is_indexed: bool,
) -> "tuple[tuple[str, ...], list[Row]]":
    """Find entries. Each word is a phrase of its parts; `word*` is a prefix."""
    query, parts = _query(words)
    # A stream's bounds are given to the words as well: the server does not carry them over from the entries.
    inside = ["entry_pos >= :start and entry_pos < :end"] if "start" in bound else []
    if after is not None:
        inside.append("entry_pos > :after" if oldest_first else "entry_pos < :after")
    found = f"pos in (select entry_pos from entry_text where {' and '.join([f'words @@ ({query})', *inside])})"
    if not is_indexed:
        # Whoever can't index what is new has to look through it.
        after_mark = f"pos > coalesce((select m.pos from entry_text_marks m where m.stream_no = entries.pos / {SIZE}), 0)"
        newer = [after_mark, f"{_WORDS} @@ ({query})", *(clause.replace("entry_pos", "pos") for clause in inside)]
        found = f"({found} or ({' and '.join(newer)}))"
    sql = f"""
        {select}
         where {found}
           {f"and {condition}" if condition else ""}
         order by pos {"asc" if oldest_first else "desc"}
         limit :limit
    """
    return database.rows(sql, {**bound, **parts, "after": after, "limit": limit})


def forget(database: "Database", positions: "list[int]") -> None:
    """Drop the words of entries that were indexed and have lost their texts."""
    database.count(
        f"""
        update entry_text set words = {_WORDS}
          from entries
         where pos = entry_pos
           and entry_pos = any(:positions)
        """,
        {"positions": positions},
    )


def forget_all(database: "Database") -> None:
    """Drop the words of all entries, and how far they were indexed."""
    for table in ("entry_text", "entry_text_marks"):
        database.count(f"delete from {table}", {})


def flaws(database: "Database") -> "Iterator[Flaw]":
    """Find entries that were indexed, or should have been, and whose words are others there."""
    _, rows = database.rows(
        f"""
        select coalesce(e.pos, t.entry_pos)
          from (select e.pos, {_WORDS} as words
                  from entries e
                  join entry_text_marks m on m.stream_no = e.pos / {SIZE} and e.pos <= m.pos) e
          full join entry_text t on t.entry_pos = e.pos
         where t.words is distinct from e.words
         order by 1
         limit {_MOST_FLAWS}
        """,
        {},
    )
    for (pos,) in rows:
        yield pos, "words"


def _query(words: str) -> "tuple[str, dict[str, Any]]":
    terms, bound = [], {}
    for number, word in enumerate(words.split()):
        bare = word.rstrip("*")
        if bare != word and bare.isalnum():
            terms.append(f"to_tsquery('simple', :word{number})")
            bound[f"word{number}"] = f"{bare}:*"
        else:
            terms.append(f"phraseto_tsquery('simple', :word{number})")
            bound[f"word{number}"] = bare
    return " && ".join(terms), bound
