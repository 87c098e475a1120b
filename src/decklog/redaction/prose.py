"""Find secrets that a sentence mentions. The sentences are data, in `prose.toml`."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from decklog.redaction.keyvalue import Candidate, candidate_at
from decklog.redaction.matcher import BytePattern
from decklog.redaction.normalize import TextView
from decklog.redaction.rules import load_table

_PIECE = re.compile(r"\{([a-z]+)\}")
_LONGEST_TRAIL = 3
# Values of a sentence with more trust need no score.
_MAX_SCORED_TRUST = 3


class Sentence(NamedTuple):
    """A group of patterns for one way to mention a secret."""

    id: str
    kind: str
    trigger: str
    trust: int
    patterns: tuple[BytePattern, ...]
    # A text without any of these can't match.
    needs: bytes = b""


def load_sentences() -> tuple[Sentence, ...]:
    """Load the sentence patterns of this package."""
    table = load_table("prose")
    pieces = table["pieces"]
    triggers = {name: _fill(source, pieces) for name, source in table["triggers"].items()}
    return tuple(
        Sentence(
            one["id"],
            one["kind"],
            triggers[one["trigger"]],
            one["trust"],
            tuple(BytePattern(_fill(source, pieces)) for source in one["patterns"]),
            one.get("needs", "").encode("latin-1"),
        )
        for one in table["sentence"]
    )


def _fill(source: str, pieces: dict[str, str]) -> str:
    return _PIECE.sub(lambda piece: pieces[piece[1]], source)


def find_candidates(view: TextView, sentences: Sequence[Sentence]) -> Iterator[Candidate]:
    """Yield the values that match the sentence patterns."""
    text = view.text
    for sentence in sentences:
        if sentence.needs and not any(char in view.data for char in sentence.needs):
            continue
        for pattern in sentence.patterns:
            for first, start, end in pattern.find_all(view.data, 1):
                end = _trim_end(text, start, end)
                if end > start:
                    yield candidate_at(
                        text,
                        start,
                        end,
                        sentence.kind,
                        f"prose-{sentence.id}",
                        name=text[first : first + 24],
                        sign=_connector(text[first:start]),
                        starts_line=text[max(0, first - 1) : first] in ("", "\n"),
                        is_sure=sentence.trust > _MAX_SCORED_TRUST,
                    )


def _trim_end(text: str, start: int, end: int) -> int:
    """Return the end of a value without trailing punctuation."""
    if (marker := text.find("[redacted:", start, end)) >= 0:
        end = marker
    for _ in range(_LONGEST_TRAIL):
        if end > start and text[end - 1] in ".,;:)]}*\\":
            end -= 1
    return end


def _connector(between: str) -> str:
    words = between.rstrip(" \t\"'`*([{").rsplit(None, 1)
    last = words[-1].lower() if words else ""
    return last if last in ("is", "was", "to", "are", "be", "now", "with", "as") else last[-1:] if last[-1:] in ":=,/?>)-" else ""
