"""Search over all texts, with filters such as `kind:tool`. An id opens its page directly."""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from decklog import SearchResult
from decklog.core.errors import NotFound, TimedOut
from decklog.log import Decklog
from decklog.web.pages.since import since_of
from decklog.web.rendering import segment
from decklog.web.site import PATIENCE_SECONDS, PageView, SiteRequest, command

PAGE = 30
_NARROWS = ("run", "kind", "agent", "since")
_LONGEST = 400


@dataclass(frozen=True)
class Words:
    """A parsed search: the words and the filters."""

    words: str = ""
    narrowed: dict[str, str] = field(default_factory=dict)

    def with_one(self, name: str, value: str | None) -> str:
        """Return the search text with one filter set to a value, or removed."""
        kept = {key: one for key, one in self.narrowed.items() if key != name} | ({name: value} if value else {})
        return " ".join([self.words, *(f"{key}:{_quoted(one)}" for key, one in kept.items())]).strip()

    def address(self, name: str, value: str | None) -> str:
        return f"/search?{urlencode({'q': self.with_one(name, value)})}"


def words_of(text: str) -> Words:
    """Parse a search text: `lexer kind:tool agent:"dev 1" since:2d`."""
    narrowed: dict[str, str] = {}

    def taken(match: re.Match[str]) -> str:
        narrowed[match[1]] = match[3] if match[2] is None else match[2]
        return " "

    rest = re.sub(rf'(?<!\S)({"|".join(_NARROWS)}):(?:"([^"]*)"|(\S+))', taken, text)
    return Words(" ".join(rest.split()), {name: value for name, value in narrowed.items() if value})


def read(asked: SiteRequest) -> PageView:
    """Load a page of hits, or redirect to the page of an id."""
    text = (asked.word("q") or "")[:_LONGEST].strip()
    typed = words_of(text)
    place = _place(asked.log, text) if text and not asked.word("after") else None
    found, is_stopped = None, False
    if typed.words and place is None:
        try:
            found = _found(asked, typed)
        except TimedOut:
            is_stopped = True
    shown = {"text": text, "typed": typed, "result": found, "is_first": asked.word("after") is None, "is_stopped": is_stopped}
    shown |= {"pieces": pieces, "leads_to": leads_to, "names": _names(asked.log, typed, found)}
    said = command("overview", "search", typed.words or "WORDS", *_options(typed))
    title = f"Search: {text}" if text else "Search"
    data: Any = {"leads_to": place} if place else {"is_stopped": True} if is_stopped else found
    return PageView("search.html", title, said, data, shown, found.next if found else None, "search", to=place)


def _found(asked: SiteRequest, typed: Words) -> SearchResult:
    narrowed = {"run_id" if name == "run" else name: value for name, value in typed.narrowed.items() if name != "since"}
    since = since_of(typed.narrowed.get("since"), asked.log.clock.now(), "q")
    log, going_on = asked.log, not asked.site.whole_searches.is_time()
    given: dict[str, Any] = {**narrowed, "since": since, "going_on": going_on, "limit": PAGE, "after": asked.word("after")}
    with log.db.within(PATIENCE_SECONDS):
        return log.overview.search(typed.words, **given)


def _names(log: Decklog, typed: Words, found: SearchResult | None) -> dict[str, str]:
    """Return the goals of the runs that the page mentions."""
    facets = found.facets.get("stream", {}) if found else {}
    runs = {*facets, *(hit.stream for hit in found.hits)} if found else set()
    runs |= {typed.narrowed["run"]} if "run" in typed.narrowed else set()
    return log.overview.names(run_ids=[one for one in runs if not one.startswith("@")])


def _options(typed: Words) -> list[str]:
    return [word for name, value in typed.narrowed.items() for word in (f"--{name}", value)]


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value


def _place(log: Decklog, text: str) -> str | None:
    """Return the page of an id: an entry, a task, an approval or a run. Return None for words."""
    run_id, colon, seq = text.rpartition(":")
    try:
        if colon and run_id and seq.isdecimal() and len(seq) < 10 and run_id not in _NARROWS:
            return f"/runs/{segment(log.runs.get(run_id).id)}/entries/{seq}"
        for prefix, path in (("task_", "/tasks/"), ("run_", "/runs/"), ("approval_", "/inbox/approval/")):
            if text.startswith(prefix) and " " not in text:
                return f"{path}{segment(text)}" + ("/overview" if prefix == "run_" else "")
    except NotFound:
        return None
    return None


def pieces(hit: Any) -> list[tuple[str, bool]]:
    """Split a snippet into highlighted and other parts."""
    found, place = [], 0
    for start, end in hit.highlights:
        if start >= place:
            found += [(hit.snippet[place:start], False), (hit.snippet[start:end], True)]
            place = end
    return [(text, is_marked) for text, is_marked in [*found, (hit.snippet[place:], False)] if text]


def leads_to(hit: Any) -> str:
    """Return the page of a hit: a task, an approval, a lesson or the entry."""
    if hit.table == "tasks":
        return f"/tasks/{segment(hit.record_id)}"
    if hit.table == "approvals":
        return f"/inbox/approval/{segment(hit.record_id)}"
    if hit.table == "lessons":
        return f"/memory?{urlencode({'lesson': hit.record_id})}"
    return f"/runs/{segment(hit.stream)}/entries/{hit.seq}"
