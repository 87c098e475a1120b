"""A search in journal entries: its words, the same on both engines, what is searched for, and what was found.

Documents and queries are split here, in Python. SQLite and PostgreSQL get words that are separated by blanks and do no more.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

# Number of a stream, position of its last indexed entry, position of its newest entry.
Span = tuple[int, int, int]

# Longer words are indexed in pieces, one after the other. PostgreSQL takes at most 2,046 bytes.
_ASCII_WORD = re.compile(r"[a-z0-9]{1,255}")
_WORD = re.compile(r"[^\W_]{1,255}")
# Tried where a word begins only: tried at each letter, it would take the square of a word's length.
_LONG_WORD = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{256}")
_JSON_ESCAPE = re.compile(r'\\["\\/bfnrt]')
_MOST_CHARACTERS = 65_536
# Limits of a PostgreSQL tsvector: the last position, and the positions of one word.
_LAST_PLACE, _MOST_PLACES = 16_383, 255


def words_of(text: str) -> list[str]:
    """Split text into words of letters and digits, in lower case and without accents."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    parts = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(part for part in parts if not unicodedata.combining(part))
    return _WORD.findall(plain[:_MOST_CHARACTERS])


def entry_words(body: str | None, payload: str | None) -> list[str]:
    """Return the words of an entry's first 65,536 characters."""
    return words_of(_entry_text(body, payload))


def _entry_text(body: str | None, payload: str | None) -> str:
    text = body or ""
    if payload:
        payload = payload[:_MOST_CHARACTERS]
        # A line break in JSON is a backslash and an n, which must not become part of the next word.
        text += " " + (_JSON_ESCAPE.sub(" ", payload) if "\\" in payload else payload)
    return text[:_MOST_CHARACTERS]


class Query:
    """The terms of a search. Each is one word or several that follow each other (`test_clock.py`); `word*` is a prefix."""

    def __init__(self, text: str) -> None:
        bare = [(words_of(word.rstrip("*")), word.endswith("*")) for word in text.split()]
        self.terms = [(words, is_prefix) for words, is_prefix in bare if words]

    def prefixes(self) -> list[str]:
        """List the beginnings of words that are searched for."""
        return [words[-1] for words, is_prefix in self.terms if is_prefix]

    def without(self, prefixes: Collection[str]) -> "Query":
        """Return the query without its terms that end in one of these prefixes."""
        query = Query("")
        query.terms = [(words, is_prefix) for words, is_prefix in self.terms if not (is_prefix and words[-1] in prefixes)]
        return query

    def fts5(self, ends: Mapping[str, list[str]]) -> Iterator[str]:
        """Yield the terms as FTS5 writes them; `ends` lists the words with each prefix."""
        for words, is_prefix in self.terms:
            *first, last = words
            found = ends[last] if is_prefix else [last]
            # FTS5 has no term for "nothing"; a prefix without words matches nothing either.
            yield f"({' OR '.join(_quoted([*first, end]) for end in found)})" if found else f"{_quoted(words)} *"

    def tsquery(self) -> str:
        """Write the terms as a PostgreSQL tsquery."""
        return " & ".join(_tsquery_term(words, is_prefix) for words, is_prefix in self.terms)

    def prefilter(self) -> tuple[list[str], dict[str, Any]]:
        """Write SQL conditions that every entry with the terms meets, with their parameters: one ASCII word of each term.

        Text beyond ASCII may have any word.
        """
        beyond = "octet_length(body) <> length(body) or octet_length(payload) <> length(payload)"
        clauses: list[str] = []
        bound: dict[str, Any] = {}
        for place, (words, _) in enumerate(self.terms):
            word = max((word for word in words if word.isascii()), key=len, default=None)
            if word is None:
                clauses.append(f"({beyond})")
            else:
                clauses.append(f"(lower(body) like :like{place} or lower(payload) like :like{place} or {beyond})")
                bound[f"like{place}"] = f"%{word}%"
        return clauses, bound

    def matches(self, words: Iterable[str]) -> bool:
        """Check whether an entry with these words matches."""
        text = f" {' '.join(words)} "
        return all(f" {' '.join(sought)}{'' if is_prefix else ' '}" in text for sought, is_prefix in self.terms)


def _quoted(words: list[str]) -> str:
    return f'"{" ".join(words)}"'


def _tsquery_term(words: list[str], is_prefix: bool) -> str:
    *first, last = [f"'{word}'" for word in words]
    ending = ":*" if is_prefix else ""
    terms = [*first, last + ending]
    phrase = " <-> ".join(terms)
    if not first:
        return f"({phrase})"
    pairs = [f"'{one} {other}'" for one, other in pairwise(words)]
    pairs[-1] += ending
    either = [f"({one} <-> {other} | {pair})" for (one, other), pair in zip(pairwise(terms), pairs, strict=True)]
    return f"({phrase} | {' & '.join(either)} & ({' | '.join(pairs)}))"


def tsvector(words: Iterable[str]) -> str:
    """Write words with their positions as a PostgreSQL tsvector.

    Where PostgreSQL keeps no more positions, each pair of words is indexed, so that phrases are found there too.
    """
    places: dict[str, list[str]] = {}
    pairs: dict[str, None] = {}
    before, has_place_before = "", True
    for place, word in enumerate(words, start=1):
        its = places.setdefault(word, [])
        has_place = place <= _LAST_PLACE and len(its) < _MOST_PLACES
        if has_place:
            its.append(str(place))
        if before and not (has_place and has_place_before):
            pairs[f"{before} {word}"] = None
        before, has_place_before = word, has_place
    found = [f"'{word}':{','.join(its)}" if its else f"'{word}'" for word, its in places.items()]
    return " ".join([*found, *(f"'{pair}'" for pair in pairs)])


def fts5_text(body: bytes | None, payload: bytes | None) -> str:
    """Return an entry's text as FTS5 with its tokenizer `ascii` splits it into the same words.

    It takes bytes: a damaged text must not stop a search.
    """
    text = _entry_text(_decoded(body), _decoded(payload))
    # FTS5 splits ASCII as `words_of` does, in a tenth of the time.
    return text if text.isascii() and not _LONG_WORD.search(text) else " ".join(words_of(text))


def _decoded(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


@dataclass(frozen=True)
class Found:
    """Rows that were found, each beginning with its position.

    `not_indexed` counts entries that were not searched and may belong to this page. `stopped_at` is the position of the last
    entry that was searched, where a prefix has too many words to search all of them.
    """

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    not_indexed: int = 0
    stopped_at: int | None = None


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is searched for: words, tags, or both, among entries that meet a condition."""

    query: Query
    tags: Mapping[str, str] = field(default_factory=dict)
    condition: str = ""
    bound: Mapping[str, Any] = field(default_factory=dict)
    oldest_first: bool = False
    limit: int
    after: int | None = None
    stream_no: int | None = None
    going_on: bool = False

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
