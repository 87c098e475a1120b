"""How much of a labelled set of changes the free passes find, and how much of what is honest they hold."""

from typing import Any

from decklog.review.change import Change
from decklog.review.passes.prose import prose
from decklog.review.passes.security import security
from decklog.review.passes.static import static
from decklog.review.settings import ReviewSettings, Rules
from tests.review.changes import Desk
from tests.review.labelled import BAD, GOOD

NOBODY: Any = None


def found_in(change: Change) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for result in (static(change, ReviewSettings(digest="d"), NOBODY), security(change)):
        for one in result.findings:
            if one.file is not None:
                found.setdefault(one.file, set()).add(one.kind)
    return found


def test_of_120_changes_every_bad_one_is_found_and_no_honest_one_is_held(desk: Desk) -> None:
    found = found_in(desk.commit({**{name: text for name, (text, _) in BAD.items()}, **GOOD}))
    missed = {name: kind for name, (_, kind) in BAD.items() if kind not in found.get(name, set())}
    held = {name: found[name] for name in GOOD if name in found}
    assert len(BAD) + len(GOOD) >= 120
    assert (missed, held) == ({}, {})


def test_honest_messages_of_this_kind_of_project_are_let_go(desk: Desk) -> None:
    change = desk.commit({"a.txt": "x\n"})
    titles = [
        "Say what the reader of chats was tried with",
        "feat(parser): read trailing commas",
        "Fix the reading of empty files",
        "Update the list of prices for November",
        "docs: name the branch that is published",
        'Revert "Read trailing commas"',
    ]
    for title in titles:
        message = f"{title}\n\nIt was wrong since the last change.\n\nCo-authored-by: Bo <bo@example.test>"
        assert prose(Change(change.repository, change.base, change.head, (message,)), Rules(), NOBODY).findings == (), title
