"""Work items as a person uses them on the command line: looked at, written to, taken over."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Program
from tests.conductor.plans import TRIPLE, work_item
from tests.conductor.test_run_command import Person

AGAIN = [["append", "calc.py", "\n\nWHY = 'because'\n"]]


@pytest.fixture
def person(decklog: Program, checked: Path, sqlite_target: str) -> Person:
    return Person(decklog, checked, sqlite_target)


@pytest.fixture
def landed(person: Person) -> str:
    """The run of a plan whose item has landed; it has something to do in a second round."""
    done = person.call("run", "--plan", person.plan(work_item("triple", TRIPLE, again=AGAIN)))
    assert done.code == 0, done
    return done.out.rsplit("decklog run land ", 1)[1].strip()


@pytest.mark.slow
def test_the_diff_of_an_item_is_shown_and_a_comment_on_it_is_worked_on_by_continue(person: Person, landed: str) -> None:
    shown = person.call("run", "diff", "triple").out
    assert "+def triple(a):" in shown
    assert person.call("run", "diff", f"{landed}.triple", "--stat", "--json").data == [
        {"path": "calc.py", "added": 4, "removed": 0}
    ]
    posted = person.call("run", "comment", "triple", "calc.py:9", "Say why.", "--json").data
    assert posted["body"] == "calc.py:9: Say why.\n> def triple(a):"
    done = person.call("run", "continue", "triple")
    assert (done.code, "1 item: 1 landed" in done.out) == (0, True), done
    assert "+WHY = 'because'" in person.call("run", "diff", "triple").out
    told = person.call("inbox", "show", posted["id"], "--json").data
    assert (told["state"], told["seen_by"], told["answer"][:10]) == ("answered", "fake", "landed as ")
    assert told["seen_at"] is not None


@pytest.mark.slow
def test_a_message_is_posted_under_the_name_of_gits_user_and_delivered_in_the_next_round(person: Person, landed: str) -> None:
    said = person.call("run", "message", "triple", "Say why.")
    assert said.code == 0, said
    (posted,) = person.call("inbox", "find", landed, "--json").data
    assert (posted["from_handle"], posted["state"]) == ("Ana", "pending")
    assert person.call("run", "continue", "triple", "--no-work").code == 0
    assert person.call("run", "work", landed).code == 0
    (posted,) = person.call("inbox", "find", landed, "--json").data
    assert (posted["state"], posted["seen_by"]) == ("answered", "fake")


@pytest.mark.slow
def test_an_item_is_opened_changed_by_hand_and_continued(person: Person, landed: str) -> None:
    folder = Path(person.call("run", "open", "triple").out.splitlines()[0])
    standing = person.call("run", "watch", landed, "--no-follow").out
    assert "Ana works on it by hand; then: decklog run continue triple" in standing
    (folder / "calc.py").write_text((folder / "calc.py").read_text() + "\n\nFOUR = 4\n")
    assert "+FOUR = 4" in person.call("run", "diff", "triple").out
    done = person.call("run", "continue", "triple")
    assert (done.code, "1 item: 1 landed" in done.out) == (0, True), done
    assert person.call("run", "land").code == 0
    assert "FOUR = 4" in (person.repository / "calc.py").read_text()


@pytest.mark.slow
def test_watching_an_item_shows_its_steps_diff_cost_and_state_and_ends_with_it(person: Person, landed: str) -> None:
    watched = person.call("run", "watch", "triple")
    lines = [line.split(None, 2)[1:] for line in watched.out.splitlines()]
    assert watched.code == 0, watched
    assert ["diff", "calc.py +4 -0"] in lines
    assert ["cost", "$0.00"] in lines
    assert any(kind == "state" and text.startswith("landed ") for kind, text in lines), lines
    told = [json.loads(line) for line in person.call("run", "watch", f"{landed}.triple", "--json").out.splitlines()]
    assert {one["kind"] for one in told} >= {"diff", "cost", "state"}
    assert {one["item"] for one in told} == {"triple"}


@pytest.mark.slow
def test_names_that_are_wrong_are_refused_with_what_there_is(person: Person, landed: str) -> None:
    for words, code, message in (
        (("run", "diff", "none"), 3, "It has triple."),
        (("run", "watch", "none"), 3, "It has triple."),
        (("run", "watch", "run_none"), 3, "run_none"),
        (("run", "comment", "triple", "calc.py", "x"), 2, "FILE:LINE"),
        (("run", "comment", "triple", "none.py:1", "x"), 3, "no file"),
    ):
        said = person.call(*words)
        assert (said.code, message in said.err) == (code, True), said
    assert landed
