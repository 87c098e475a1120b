"""Full-text search on PostgreSQL, over the index that the server keeps."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from decklog.db.base import Row
    from decklog.db.postgres import PostgresDatabase

_TEXT = "to_tsvector('simple', left(coalesce(body, '') || ' ' || coalesce(payload, ''), 65536))"


def search(
    database: "PostgresDatabase",
    select: str,
    words: str,
    *,
    tags: "Mapping[str, str]",  # noqa: ARG001 - PostgreSQL has an index for each
    condition: str,
    bound: "Mapping[str, Any]",
    oldest_first: bool,
    limit: int,
    after: int | None,
) -> "tuple[tuple[str, ...], list[Row]]":
    """Find entries. Each word is a phrase of its parts; `word*` is a prefix."""
    query, parts = _query(words)
    clauses = [f"{_TEXT} @@ ({query})", *([condition] if condition else [])]
    if after is not None:
        clauses.append("pos > :after" if oldest_first else "pos < :after")
    sql = f"""
        {select}
         where {" and ".join(clauses)}
         order by pos {"asc" if oldest_first else "desc"}
         limit :limit
    """
    return database.rows(sql, {**bound, **parts, "after": after, "limit": limit})


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
