"""Locating: where in the base the words of feedback, and the files that triage named, are found. No model is asked."""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from decklog.guard.files.gitignore import IgnoreFile
from decklog.stores.workflow.mends import MendState

if TYPE_CHECKING:
    from decklog.fixes.ground import FixContext
    from decklog.stores.workflow.mends import Mend

MOST_WORDS, SHORTEST_WORD, MOST_HITS, MOST_FILES = 5, 4, 20, 5
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACE = re.compile(r"^(?P<path>.+?)(?::(?P<first>\d+)(?:-(?P<last>\d+))?)?$")
_NAMED = re.compile(r"(?<![\w/.-])([\w.-]+(?:/[\w.-]+)*\.\w+(?::\d+(?:-\d+)?)?)")
_LONGEST_LINE = 200


@dataclass(frozen=True)
class Spot:
    """Lines of one file of the base, and why they are looked at."""

    path: str
    first: int
    last: int
    text: str
    why: str


def locate(ground: "FixContext") -> "Mend":
    """Find where feedback belongs. Exact lines that were named come first, then lines that have the most of its words."""
    spots = list(_named(ground))
    if not spots:
        spots = _searched(ground)
    return ground.log.mends.move(ground.mend, MendState.LOCATED, places=[asdict(one) for one in spots[:MOST_HITS]])


def words_of(text: str) -> list[str]:
    """Return the few longest words of a text, each once."""
    found = dict.fromkeys(word for word in _WORD.findall(text) if len(word) >= SHORTEST_WORD)
    return sorted(found, key=lambda word: (-len(word), word))[:MOST_WORDS]


def _named(ground: "FixContext") -> Iterator[Spot]:
    """Yield the files and lines that triage or the feedback itself names, as far as the base has them."""
    candidates = ground.mend.triage.get("candidate_files")
    listed = candidates if isinstance(candidates, list) else []
    by_triage = [(str(one["path"]), str(one["why"])[:_LONGEST_LINE]) for one in listed]
    by_words = [(name, "it is named") for name in _NAMED.findall(ground.feedback.body)]
    seen: set[str] = set()
    for name, why in (*by_triage, *by_words):
        found = _PLACE.match(name)
        path = found["path"] if found is not None else name
        content = ground.repository.read(ground.base, path) if path not in seen else None
        if found is None or content is None:
            continue
        seen.add(path)
        yield from _lines_of(ground, path, content, found["first"], found["last"], why)


def missing(ground: "FixContext") -> list[str]:
    """Name the files that triage speaks of and the base does not have."""
    candidates = ground.mend.triage.get("candidate_files")
    named = [_PLACE.match(str(one["path"])) for one in candidates] if isinstance(candidates, list) else []
    paths = dict.fromkeys(found["path"] for found in named if found is not None)
    return [path for path in paths if ground.repository.read(ground.base, path) is None]


def _lines_of(ground: "FixContext", path: str, content: bytes, first: str | None, last: str | None, why: str) -> Iterator[Spot]:
    lines = content.decode(errors="replace").split("\n")
    if first is not None:
        start = min(int(first), len(lines))
        end = min(int(last or first), len(lines))
        yield Spot(path, start, max(start, end), lines[start - 1][:_LONGEST_LINE], why)
        return
    words = [word.lower() for word in words_of(ground.feedback.body)]
    hits = [number for number, line in enumerate(lines, 1) if any(word in line.lower() for word in words)]
    for number in hits[:MOST_FILES] or [1]:
        yield Spot(path, number, number, lines[number - 1][:_LONGEST_LINE], why)


def _searched(ground: "FixContext") -> list[Spot]:
    """Search the base for the words; the files that have the most of them come first, tests last."""
    words = words_of(ground.feedback.body)
    if not words:
        return []
    asked = [part for word in words for part in ("-e", word)]
    grep = ("grep", "-n", "-z", "-I", "-i", "-F", "--full-name", *asked, ground.base)
    raw = ground.repository.on_objects(*grep, accepted=(0, 1)).out
    hits = [spot for line in raw.split(b"\n") if (spot := _hit(line, ground.base, words)) is not None]
    tests = IgnoreFile(ground.settings.tests)
    score = {one.path: (tests.covers(one.path), -len(_words_in(hits, one.path, words)), one.path) for one in hits}
    best = sorted(score, key=lambda path: score[path])[:MOST_FILES]
    return [one for path in best for one in hits if one.path == path]


def _hit(line: bytes, base: str, words: list[str]) -> Spot | None:
    parts = line.split(b"\0")
    if len(parts) != 3 or not parts[1].isdigit():
        return None
    path = parts[0].decode(errors="surrogateescape").removeprefix(f"{base}:")
    text = parts[2].decode(errors="replace")[:_LONGEST_LINE]
    found = [word for word in words if word.lower() in text.lower()]
    return Spot(path, int(parts[1]), int(parts[1]), text, f"has {', '.join(found)}")


def _words_in(hits: list[Spot], path: str, words: list[str]) -> set[str]:
    return {word for one in hits if one.path == path for word in words if word.lower() in one.text.lower()}
