"""Search over all entries, and over runs, tasks, lessons, approvals and files by their entries."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from decklog.core.clock import from_text
from decklog.core.display import one_line
from decklog.db.base import Database, Row
from decklog.db.search.entries import search as search_entries
from decklog.db.text_search import Query, Search
from decklog.db.where import placed
from decklog.journal.rows import STREAM_SIZE
from decklog.records.record import search_warnings
from decklog.records.values import from_json
from decklog.stores.overview.view import View

# The number of hits that a page and its counts consider, newest first.
MOST_HITS = 1000
_MOST_VALUES = 10
_BEFORE, _SHOWN = 60, 200
_HIT = ("pos", "stream", "seq", "at", "kind", "agent", "record_table", "record_id")
_SELECT = f"select {', '.join(f'entries.{name}' for name in _HIT)} from entries"
_TEXTS = """
select pos, substr(coalesce(body, ''), 1, 65536), case when record_table is null then substr(payload, 1, 65536) else payload end
  from entries
 where pos in ({ids})
"""
# The kind of a hit for a change of such a record; any other is named by its table.
KINDS = {
    "runs": "run",
    "tasks": "task",
    "task_comments": "task",
    "lessons": "lesson",
    "approvals": "question",
    "messages": "question",
    "artifacts": "file",
}
# Fields that name a record, the first that it has.
_NAMED = ("goal", "title", "question", "statement", "lesson", "text", "body", "criterion", "name", "path", "summary")


@dataclass(frozen=True, kw_only=True)
class SearchHit(View):
    """One hit: its kind, its place, and the text around the words. `highlights` are their positions in the text."""

    shown = ("id",)

    kind: str
    stream: str
    seq: int
    at: datetime
    agent: str | None
    table: str | None
    record_id: str | None
    snippet: str
    highlights: list[list[int]]

    @property
    def id(self) -> str:
        """The id of the entry that records it."""
        return f"{self.stream}:{self.seq}"


@dataclass(frozen=True, kw_only=True)
class SearchResult(View):
    """A page of hits. `facets` counts kinds, streams and agents of the newest hits; `is_capped` is true if there are more.

    `looked_at` counts the entries with the words, and `found` the matching hits from the cursor on. `not_indexed` counts the
    entries that are not searched, because they are not indexed yet. `is_cut` is true if the search stopped early, because a
    prefix matches too many words; `next` continues from there.
    """

    hits: list[SearchHit]
    next: str | None
    facets: dict[str, dict[str, int]] = field(default_factory=dict)
    looked_at: int = 0
    found: int = 0
    is_capped: bool = False
    not_indexed: int = 0
    is_cut: bool = False

    @property
    def warnings(self) -> list[str]:
        """The warnings to show with the hits."""
        return search_warnings(self.not_indexed, self.next if self.is_cut else None)


@dataclass(frozen=True)
class SearchQuery:
    """A search request."""

    words: str
    kind: str | None
    agent: str | None
    limit: int
    after: int | None
    number: int | None
    going_on: bool = False
    since: str | None = None


def find_hits(db: Database, query: SearchQuery) -> SearchResult:
    """Find a page of the newest hits: the newest entry of each record, with texts only for the shown ones."""
    inside: dict[str, Any] = {}
    conditions = []
    if query.number is not None:
        inside = {"start": query.number * STREAM_SIZE, "end": (query.number + 1) * STREAM_SIZE}
    if query.since is not None:
        inside["since"] = query.since
        conditions.append("entries.at >= :since")
    search = Search(
        query=Query(query.words),
        condition=" and ".join(conditions),
        bound=inside,
        limit=MOST_HITS + 1,
        after=query.after,
        stream_no=query.number,
        going_on=query.going_on,
    )
    found = search_entries(db, _SELECT, search)
    rows = found.rows
    hits = list(_newest_of_each(rows[:MOST_HITS]))
    wanted = [hit for hit in hits if query.kind in (None, hit["is"]) and query.agent in (None, hit["agent"])]
    shown, is_capped = wanted[: query.limit], len(rows) > MOST_HITS
    more = shown[-1]["pos"] if len(wanted) > query.limit else rows[MOST_HITS - 1][0] if is_capped else found.stopped_at
    texts = _texts(db, [hit["pos"] for hit in shown])
    return SearchResult(
        hits=[_hit(hit, *texts[hit["pos"]], query.words) for hit in shown],
        next=None if more is None else str(more),
        facets={name: _counted(hits, column) for name, column in (("kind", "is"), ("stream", "stream"), ("agent", "agent"))},
        looked_at=min(len(rows), MOST_HITS),
        found=len(wanted),
        is_capped=is_capped,
        not_indexed=found.not_indexed,
        is_cut=found.stopped_at is not None and len(wanted) <= query.limit,
    )


def _newest_of_each(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    seen: set[tuple[str, str]] = set()
    for row in rows:
        hit = dict(zip(_HIT, row, strict=True))
        table = hit["record_table"]
        if table is not None:
            if (table, hit["record_id"]) in seen:
                continue
            seen.add((table, hit["record_id"]))
        yield {**hit, "is": hit["kind"] if table is None else KINDS.get(table, table)}


def _counted(hits: Sequence[dict[str, Any]], column: str) -> dict[str, int]:
    counts = Counter(hit[column] for hit in hits if hit[column] is not None)
    return dict(counts.most_common(_MOST_VALUES))


def _texts(db: Database, positions: list[int]) -> dict[int, tuple[str, str | None]]:
    if not positions:
        return {}
    marks, ids = placed(positions)
    return {pos: (body, payload) for pos, body, payload in db.rows(_TEXTS.format(ids=marks), ids)[1]}


def _hit(hit: dict[str, Any], body: str, payload: str | None, words: str) -> SearchHit:
    snippet, highlights = _snippet(hit["record_table"], body, payload, words)
    same = {name: hit[name] for name in ("stream", "seq", "agent", "record_id")}
    parts = {"kind": hit["is"], "at": from_text(hit["at"]), "table": hit["record_table"]}
    return SearchHit(**same, **parts, snippet=snippet, highlights=highlights)


def _snippet(table: str | None, body: str, payload: str | None, words: str) -> tuple[str, list[list[int]]]:
    """Return the text around the first matching word. A record is shown with its name."""
    sought = [word.rstrip("*").lower() for word in words.split()]
    texts = [("", body), *(_spoken(payload) if table is not None else [("", payload or "")])]
    texts = [(name, one_line(text)) for name, text in texts if text.strip()] or [("", "")]
    name, text = next((one for one in texts if any(word in one[1].lower() for word in sought)), texts[0])
    places = [place for word in sought if (place := text.lower().find(word)) >= 0]
    start = max(0, min(places, default=0) - _BEFORE)
    cut = ("…" if start else "") + text[start : start + _SHOWN] + ("…" if start + _SHOWN < len(text) else "")
    if name and name not in _NAMED:
        # If another field matched, show the record's name too.
        called = next((f"{one[:_SHOWN]} · " for known, one in texts if known in _NAMED), "")
        cut = f"{called}{name.replace('_', ' ')}: {cut}"
    return cut, sorted(_highlights(cut, sought))


def _spoken(payload: str | None) -> list[tuple[str, str]]:
    """Return the texts of a record with their field names: names of the record first."""
    image = from_json(payload or "null")
    if not isinstance(image, dict):
        return []
    names = [*(name for name in _NAMED if name in image), *(name for name in image if name not in _NAMED)]
    return [(name, str(image[name])) for name in names if image[name] not in (None, "", [], {})]


def _highlights(text: str, sought: Sequence[str]) -> list[list[int]]:
    lowered = text.lower()
    if len(lowered) != len(text):
        return []
    return [[place, place + len(word)] for word in dict.fromkeys(sought) if word and (place := lowered.find(word)) >= 0]
