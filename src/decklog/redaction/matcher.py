"""Find which rules can match a text: one pass for all keywords, then each pattern where its keyword is present."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import re2

from decklog.redaction.rules import compile_pattern, options

# Search keywords one by one up to this many bytes; build the table only for more.
_BYTES_WITHOUT_TABLE = 8_000
_COUNTED = re.compile(r"\{(?:[4-9]|1\d|2\d)")


class BytePattern:
    """A pattern on the bytes of a text. It is compiled when a text first needs it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._compiled: Any = None

    def _compile(self) -> Any:
        self._compiled = compile_pattern(self.source)
        return self._compiled

    def search(self, data: bytes, start: int = 0) -> Any:
        """Return the first match at or after an offset, or None."""
        return (self._compiled or self._compile()).search(data, start)

    def matches(self, value: str) -> bool:
        """Return whether the pattern matches a whole value."""
        return (self._compiled or self._compile()).fullmatch(value.encode("latin-1", "replace")) is not None

    def find_all(self, data: bytes, group: int = 0) -> Iterator[tuple[int, int, int]]:
        """Yield the start of each match, and the start and end of its group. The search continues at the end of the group."""
        position = 0
        while match := self.search(data, position):
            first = match.start()
            start, end = match.span(group)
            yield first, start, end
            position = max(end, first + 1)


class KeywordSet:
    """Prefilter: entries with keywords and triggers, one of which must be present."""

    def __init__(self, entries: Iterable[tuple[int, Sequence[str], str]]) -> None:
        words: dict[str, list[int]] = {}
        triggers: dict[str, list[int]] = {}
        for number, keywords, trigger in entries:
            for word in keywords:
                words.setdefault(word, []).append(number)
            if trigger:
                triggers.setdefault(trigger, []).append(number)
        self._word_entries = list(words.values())
        self._words = [word.encode("latin-1") for word in words]
        self._searched = 0
        self._match_words = self._search_words
        # Separate set: a counted repetition multiplies the states of every pattern in its set.
        runs = {trigger: triggers.pop(trigger) for trigger in [*filter(_COUNTED.search, triggers)]}
        self._run_entries, self._trigger_entries = [*runs.values()], [*triggers.values()]
        self._match_runs, self._match_triggers = _compile_set(runs), _compile_set(triggers)

    def _search_words(self, data: bytes) -> list[int]:
        self._searched += len(data)
        if self._searched > _BYTES_WITHOUT_TABLE:
            self._match_words = _compile_set([re.escape(word.decode("latin-1")) for word in self._words])
            return self._match_words(data)
        return [number for number, word in enumerate(self._words) if word in data]

    def present(self, data: bytes) -> frozenset[int]:
        """Return the entries with a keyword or trigger in the data, ignoring case."""
        data = data.lower()
        # A set returns None for no match.
        found = [self._word_entries[word] for word in self._match_words(data) or ()]
        found += [self._run_entries[run] for run in self._match_runs(data) or ()]
        found += [self._trigger_entries[trigger] for trigger in self._match_triggers(data) or ()]
        return frozenset(entry for entries in found for entry in entries)


def _compile_set(patterns: Iterable[str]) -> Any:
    compiled = re2.Set.SearchSet(options())
    for pattern in patterns:
        compiled.Add(pattern.encode("latin-1"))
    compiled.Compile()
    return compiled.Match
