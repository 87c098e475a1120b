"""How much of a labelled set of changes the free passes find, and how much of what is honest they hold."""

from typing import Any

from decklog.review.change import Change
from decklog.review.passes.prose import prose
from decklog.review.passes.security import security
from decklog.review.passes.static import static
from decklog.review.result import Severity
from decklog.review.settings import ReviewSettings, Rules
from tests.review import labelled, labelled_second, labelled_third
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


def test_of_the_second_set_every_bad_change_is_found_and_no_honest_one_is_held(desk: Desk) -> None:
    bad, good = labelled_second.BAD, labelled_second.GOOD
    change = desk.commit({**{name: text for name, (text, _) in bad.items()}, **good})
    results = (static(change, ReviewSettings(digest="d"), NOBODY), security(change))
    found = [one for result in results for one in result.findings if one.file is not None]
    missed = {name for name, (_, kind) in bad.items() if not any((one.file, one.kind) == (name, kind) for one in found)}
    stopped = {one.file for one in found if one.file in good and one.severity is not Severity.MINOR}
    told = {one.file for one in found if one.file in good} - stopped
    assert (len(bad), len(good)) == (61, 64)
    assert (missed, stopped) == (set(), set())
    assert told == set()
    assert not {*bad, *good} & {*labelled.BAD, *labelled.GOOD}


def test_of_the_third_set_in_other_languages_every_bad_change_is_found_and_no_honest_one_is_told(desk: Desk) -> None:
    bad, good = labelled_third.BAD, labelled_third.GOOD
    found = found_in(desk.commit({**{name: text for name, (text, _) in bad.items()}, **good}))
    missed = {name: kind for name, (_, kind) in bad.items() if kind not in found.get(name, set())}
    assert (len(bad), len(good)) == (65, 57)
    assert (missed, {name: found[name] for name in good if name in found}) == ({}, {})


def test_messages_of_the_third_set_are_told_apart(desk: Desk) -> None:
    change = desk.commit({"a.txt": "x\n"})

    def kinds(message: str) -> list[str]:
        result = prose(Change(change.repository, change.base, change.head, (message,)), Rules(), NOBODY)
        return [one.kind for one in result.findings]

    assert {message: kinds(message) for message in labelled_third.MESSAGES_GOOD if kinds(message)} == {}
    missed = {message for message, kind in labelled_third.MESSAGES_BAD.items() if kinds(message) != [kind]}
    assert missed == set()


def test_no_secret_is_looked_for_among_samples_that_the_base_names(desk: Desk) -> None:
    token = "ghp_" + "aB3dE5gH7jK9mN1pQ2sT4vW6" + "aB3dE5gH7jK9"
    change = desk.commit({"samples/secrets.txt": f"{token}\n", "other.txt": f"{token}\n"})
    found = security(change, samples=("samples/",)).findings
    assert {(one.file, one.kind) for one in found if one.file} == {
        ("samples/secrets.txt", "not-checked"),
        ("other.txt", "secret"),
    }


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
