"""Phrases that a reader stumbled over: none of them is in a page, a screen of the terminal or a report."""

import re
from pathlib import Path

import pytest

import decklog

SOURCES = Path(decklog.__file__).parent
PLACES = ("web", "cli/screens", "transfer/report")
# What was said before, with what is said now.
PHRASES = {
    "Narrow it": "Filter",
    "one by one": "List",
    "by family": "Tree",
    "on a straight line": "On pace for $239 this month",
    "by the end of the month": "On pace for $239 this month",
    "calls of unknown price": "7 unpriced calls not included",
    "which no sum has": "7 unpriced calls not included",
    "days are days of UTC": "Days are UTC",
    "stands: holds": "Status: OK",
    "how far": "Used",
    ">Over<": "Done",
    '"Over"': "Done",
    "Single keys do something": "Enable single-key shortcuts",
    "What the gate said": "Reviews",
    "What checks said": "Checks",
    "What was written of it": "Activity",
    "came of": "Outcome",
    ">Waits for": "Blocked by",
    "Holds back": "Blocks",
    "What stands with whom": "Work by agent",
    "How the memory fares": "Memory health",
    "stands behind its": "Paste the code after #",
    "manager's proof": "signed",
    "No manager is bound": "This log has no owner yet",
    "proves decisions": "signs decisions",
    "is not the manager's proof": "Wrong password. Nothing was decided.",
    "Went wrong:": "Needs attention",
    "needs you": "needs attention",
    "on hold": "blocked, waiting or paused",
    "gone quiet": "stalled",
}


def shown_texts(place: Path) -> str:
    """Read what a reader can be shown: templates, scripts, and Python without comments and docstrings."""
    found = []
    for path in sorted(place.rglob("*")):
        if path.suffix in (".html", ".js") and "vendor" not in path.parts:
            found.append(re.sub(r"(?m)^\s*//.*$", "", path.read_text(encoding="utf-8")))
        elif path.suffix == ".py":
            text = re.sub(r'"""[\s\S]*?"""', "", path.read_text(encoding="utf-8"))
            found.append(re.sub(r"(?m)^\s*#.*$", "", text))
    return "\n".join(found)


@pytest.mark.parametrize("place", PLACES)
def test_no_phrase_of_the_old_wording_is_shown(place: str) -> None:
    text = shown_texts(SOURCES / place)
    assert text
    forms = {form for phrase in PHRASES for form in (phrase[0].lower() + phrase[1:], phrase[0].upper() + phrase[1:])}
    assert [form for form in sorted(forms) if form in text] == []


def test_the_new_wording_is_in_the_pages() -> None:
    text = shown_texts(SOURCES / "web")
    for phrase in ("Filter", "List", "Tree", "Reviews", "Activity", "Outcome", "Blocked by", "Work by agent", "Memory health"):
        assert phrase in text, phrase
    for phrase in ("On pace for", "Days are UTC", "Enable single-key shortcuts", "not included"):
        assert phrase in text, phrase
