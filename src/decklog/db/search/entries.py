"""Search in journal entries: the text index first, then what is not indexed yet."""

from typing import TYPE_CHECKING

from decklog.db.search import marks
from decklog.db.search.words import entry_words
from decklog.db.where import placed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from decklog.db.base import Database, Row
    from decklog.db.search.marks import Span
    from decklog.db.search.words import Query

# The most entries without an index that are read for one search by words.
MOST_READ = 2_000


class Search:
    """What is searched for: words, tags, or both, among entries that meet a condition."""

    def __init__(
        self,
        query: "Query",
        *,
        tags: "Mapping[str, str] | None" = None,
        condition: str = "",
        bound: "Mapping[str, Any] | None" = None,
        oldest_first: bool = False,
        limit: int,
        after: int | None = None,
        stream_no: int | None = None,
        going_on: bool = False,
    ) -> None:
        self.query = query
        self.tags = tags or {}
        self.condition = condition
        self.bound = bound or {}
        self.oldest_first = oldest_first
        self.limit = limit
        self.after = after
        self.stream_no = stream_no
        self.going_on = going_on

    @property
    def order(self) -> str:
        return "asc" if self.oldest_first else "desc"

    def clauses(self, position: str) -> list[str]:
        """List the bounds of the stream and of the page for a column that holds positions.

        No engine derives them from the join with the entries.
        """
        found = [f"{position} >= :start and {position} < :end"] if "start" in self.bound else []
        if self.after is not None:
            found.append(f"{position} {'>' if self.oldest_first else '<'} :after")
        return found


def search(database: "Database", select: str, asked: Search, *, is_indexed: bool) -> "tuple[list[Row], int]":
    """Find entries, each row beginning with its position; return them and how many entries were not looked at.

    Without words, every entry that is not indexed is looked at by its columns. With words, the newest are read.
    """
    if not (asked.query.terms or asked.tags):
        return [], 0
    rows = database.search(select, asked)
    if is_indexed:
        return rows, 0
    spans = marks.not_indexed(database, asked.stream_no, going_on=asked.going_on)
    if asked.query.terms:
        read = list(_newest(database, spans, asked))
        matching = [row[0] for row in read if asked.query.matches(entry_words(row[1], row[2]))]
        left = marks.entries_in(spans) - len(read) if len(read) == MOST_READ else 0
        more = _at(database, select, asked, matching)
    else:
        left, more = 0, [row for span in spans for row in _in_span(database, select, asked, span)]
    found = sorted([*rows, *more], key=lambda row: row[0], reverse=not asked.oldest_first)
    return found[: asked.limit], left


def _newest(database: "Database", spans: "list[Span]", asked: Search) -> "Iterator[Row]":
    """Yield position, body and payload of the newest entries that are not indexed and belong to this page."""
    left = MOST_READ
    for _, mark, newest in spans:
        if not left:
            return
        _, rows = database.rows(
            f"""
            select pos, body, payload
              from entries
             where {" and ".join(["pos > :mark", "pos <= :newest", *asked.clauses("pos")])}
             order by pos desc
             limit :left
            """,
            {**asked.bound, "after": asked.after, "mark": mark, "newest": newest, "left": left},
        )
        left -= len(rows)
        yield from rows


def _at(database: "Database", select: str, asked: Search, positions: list[int]) -> "list[Row]":
    if not positions:
        return []
    listed, ids = placed(positions)
    clauses = [f"pos in ({listed})", *([asked.condition] if asked.condition else [])]
    return database.rows(f"{select} where {' and '.join(clauses)}", {**asked.bound, **ids})[1]


def _in_span(database: "Database", select: str, asked: Search, span: "Span") -> "list[Row]":
    clauses = ["pos > :mark", "pos <= :newest", *asked.clauses("pos"), *([asked.condition] if asked.condition else [])]
    bound = {**asked.bound, "after": asked.after, "mark": span[1], "newest": span[2], "limit": asked.limit}
    return database.rows(f"{select} where {' and '.join(clauses)} order by pos {asked.order} limit :limit", bound)[1]
