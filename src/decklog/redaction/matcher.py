"""Find which rules can match a text: one pass for all keywords, then each pattern where its keyword is present."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import re2

from decklog.redaction.rules import compile_pattern, options

Span = tuple[int, int]
_UNANCHORED = re2._Anchor.UNANCHORED
_ANCHORED = re2._Anchor.ANCHOR_START
_NOWHERE = (-1, -1)
# Search keywords one by one up to this many bytes; build the table only for more.
_BYTES_WITHOUT_TABLE = 8_000
_COUNTED = re.compile(r"\{(?:[4-9]|1\d|2\d)")


class BytePattern:
    """A pattern on the bytes of a text. It is compiled when a text first needs it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._compiled: Any = None

    @property
    def _match(self) -> Any:
        if self._compiled is None:
            # The wrapper objects of `re2` cost several times as much as a short match.
            self._compiled = compile_pattern(self.source)._regexp.Match
        return self._compiled

    def search(self, data: bytes, start: int = 0) -> list[Span] | None:
        """Return the spans of the first match and its groups at or after a place."""
        spans: list[Span] = self._match(_UNANCHORED, data, start, len(data))
        return None if spans[0] == _NOWHERE else spans

    def end_at(self, data: bytes, start: int, limit: int) -> int:
        """Return the end of the match that starts here, or the start if there is none."""
        span: Span = self._match(_ANCHORED, data, start, limit)[0]
        return start if span == _NOWHERE else span[1]

    def find_all(self, data: bytes, group: int = 0) -> Iterator[list[Span]]:
        """Yield the matches; the next one may begin where the group of the last one ends."""
        position = 0
        while spans := self.search(data, position):
            yield spans
            position = max(spans[group][1], spans[0][0] + 1)


class KeywordSet:
    """Entries with the keywords and triggers that must be present for each."""

    def __init__(self, entries: Iterable[tuple[int, Sequence[str], str]]) -> None:
        words: dict[str, list[int]] = {}
        triggers: dict[str, list[int]] = {}
        for number, keywords, trigger in entries:
            for word in keywords:
                words.setdefault(word, []).append(number)
            if trigger:
                triggers.setdefault(trigger, []).append(number)
        self._of_word = list(words.values())
        self._of_trigger = list(triggers.values())
        self._words = [word.encode("latin-1") for word in words]
        self._searched = 0
        self._match_words = self._search_words
        # Apart: a counted run multiplies the states of all others in its set.
        runs = [bool(_COUNTED.search(trigger)) for trigger in triggers]
        self._run_numbers = [number for number, is_run in enumerate(runs) if is_run]
        self._other_numbers = [number for number, is_run in enumerate(runs) if not is_run]
        sources = list(triggers)
        self._match_runs = _compile_set([sources[number] for number in self._run_numbers])
        self._match_others = _compile_set([sources[number] for number in self._other_numbers])

    def _search_words(self, data: bytes) -> list[int]:
        self._searched += len(data)
        if self._searched > _BYTES_WITHOUT_TABLE:
            self._match_words = _compile_set([re.escape(word.decode("latin-1")) for word in self._words])
            return self._match_words(data)
        return [number for number, word in enumerate(self._words) if word in data]

    def present(self, data: bytes) -> frozenset[int]:
        """Return the entries whose keyword or trigger occurs in some bytes, in any case."""
        data = data.lower()
        triggers = [self._run_numbers[run] for run in self._match_runs(data)]
        triggers += [self._other_numbers[other] for other in self._match_others(data)]
        lists = [self._of_word[word] for word in self._match_words(data)] + [self._of_trigger[trigger] for trigger in triggers]
        return frozenset(entry for entries in lists for entry in entries)


def _compile_set(patterns: Iterable[str]) -> Any:
    compiled = re2.Set.SearchSet(options())
    for pattern in patterns:
        compiled.Add(pattern.encode("latin-1"))
    compiled.Compile()
    return compiled._set.Match
