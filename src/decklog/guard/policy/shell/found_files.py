"""What a `find` command finds."""

import re

from decklog.guard.policy.shell.words import UNKNOWN, Word

_NAMES = ("-name", "-iname", "-path", "-ipath", "-wholename")


def found_by(words: list[Word], filters: re.Pattern[str]) -> tuple[list[Word], list[Word]]:
    """Give where a search starts and what it finds there.

    A search by name finds paths like that name, one by age or size finds something below its start; a search
    that is not narrowed finds the start itself and everything in it.
    """
    starts, place = [], 0
    while place < len(words) and words[place].text in ("-H", "-L", "-P"):
        place += 1
    while place < len(words) and not words[place].text.startswith(("-", "(", "!")):
        starts.append(words[place])
        place += 1
    starts = starts or [Word(".")]
    endings = _endings([word.text for word in words[place:]], filters)
    found = [Word(f"{start.text.rstrip('/')}/{ending}", start.taint) for start in starts for ending in endings]
    return starts, found or starts


def _endings(texts: list[str], filters: re.Pattern[str]) -> list[str]:
    """List what the names that are looked for end in; a negated condition narrows nothing."""
    endings = []
    for place, text in enumerate(texts):
        is_negated = place > 0 and texts[place - 1] in ("!", "-not")
        if is_negated or not filters.match(text):
            continue
        value = texts[place + 1] if place + 1 < len(texts) else UNKNOWN
        endings.append(value.rsplit("/", 1)[-1] or UNKNOWN if text in _NAMES else UNKNOWN)
    return endings
