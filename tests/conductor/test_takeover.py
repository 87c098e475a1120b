"""A person takes a work item over, changes it by hand and gives it back: it lands with that, and the record names them."""

import threading
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.conductor.conductor import Conductor
from decklog.conductor.context import RunContext
from decklog.conductor.items import takeover
from decklog.conductor.items.item import Item, build_patch, find_item
from decklog.conductor.recovery import Recovery
from decklog.core.errors import Conflict
from tests.conductor.plans import TRIPLE, Work, landed, landed_titles, states, task_of, work_item
from tests.conductor.repositories import git
from tests.waiting import wait_until


def item(context: RunContext) -> Item:
    return find_item(context.log, context.run_id, "triple")


def opened(context: RunContext) -> Path:
    return Path(takeover.open_item(context, item(context), by="Ana").folder)


def append(folder: Path, text: str) -> None:
    with (folder / "calc.py").open("a") as file:
        file.write(text)


def given_back(context: RunContext) -> int:
    return takeover.continue_item(context, item(context), by="Ana")


@pytest.mark.slow
def test_what_a_person_changes_while_an_agent_works_is_landed_with_what_the_agent_did(
    log: Decklog, checked: Path, tmp_path: Path
) -> None:
    context = Work(log, checked, work_item("triple", TRIPLE, ["wait", str(tmp_path / "never")])).context()
    conductor = Conductor(context)
    thread = threading.Thread(target=conductor.run)
    thread.start()
    wait_until(lambda: "triple" in build_patch(context, item(context)))
    folder = opened(context)
    thread.join()
    assert states(context)["triple.w1"] == "paused"
    # What the agent spent is on record, though the task is the person's.
    assert [charge.agent_id for charge in log.ledger.find(context.run_id)] == ["fake"]
    # A second conductor leaves the workspace alone.
    Conductor(context).run()
    append(folder, "\n\nFOUR = 4\n")
    assert given_back(context) == 1
    Conductor(context).run()
    assert landed_titles(context) == ["Item triple"], states(context)
    assert "def triple" in landed(context, "calc.py")
    assert "FOUR = 4" in landed(context, "calc.py")
    assert not folder.exists()
    assert task_of(context, "triple.c1").inputs["agent"] == "by hand: Ana"
    bodies = [entry.body for entry in log.journal.find(context.run_id, subtype=takeover.SUBTYPE, oldest_first=True)]
    assert bodies == ["Ana takes triple over by hand", "Ana changed 1 file of triple by hand"]
    assert log.effects.open(context.run_id) == []


@pytest.mark.slow
def test_a_person_works_on_an_item_that_has_landed_and_commits_it_themselves(log: Decklog, checked: Path) -> None:
    context = Work(log, checked, work_item("triple", TRIPLE)).run()
    folder = opened(context)
    assert "def triple" in (folder / "calc.py").read_text()
    append(folder, "\n\nFOUR = 4\n")
    git(folder, "commit", "-q", "-a", "-m", "Mine")
    assert given_back(context) == 1
    Conductor(context).run()
    assert landed_titles(context) == ["Item triple", "Item triple"]
    assert "FOUR = 4" in landed(context, "calc.py")


@pytest.mark.slow
def test_what_a_person_breaks_goes_back_to_an_agent_that_starts_from_it(log: Decklog, checked: Path) -> None:
    fix = [["replace", "calc.py", "return a - b", "return a + b"]]
    more = [work_item("triple", TRIPLE, again=fix)]
    more[0]["objective"] += "\nSCRIPT-3 " + '[["replace", "calc.py", "return a - b", "return a + b"]]'
    context = Work(log, checked, *more).run()
    folder = opened(context)
    text = (folder / "calc.py").read_text()
    (folder / "calc.py").write_text(text.replace("return a + b", "return a - b") + "\n\nFOUR = 4\n")
    given_back(context)
    Conductor(context).run()
    assert "FOUR = 4" in landed(context, "calc.py"), states(context)
    assert "return a + b" in landed(context, "calc.py")


@pytest.mark.slow
def test_a_person_may_change_what_the_item_does_not_allow_its_agents(log: Decklog, checked: Path) -> None:
    context = Work(log, checked, work_item("triple", TRIPLE, paths=["calc.py"])).run()
    folder = opened(context)
    (folder / "notes.txt").write_text("mine\n")
    given_back(context)
    Conductor(context).run()
    assert landed(context, "notes.txt") == "mine"
    assert item(context).landing.allowed_paths == ["calc.py", "/notes.txt"]


@pytest.mark.slow
def test_giving_back_without_a_change_lets_an_agent_go_on(log: Decklog, checked: Path) -> None:
    context = Work(log, checked, work_item("triple", TRIPLE)).context()
    opened(context)
    assert given_back(context) == 0
    Conductor(context).run()
    assert landed_titles(context) == ["Item triple"]


def test_opening_twice_is_the_same_workspace_and_what_is_unfit_is_refused(log: Decklog, checked: Path) -> None:
    context = Work(log, checked, work_item("triple", TRIPLE)).context()
    folder = opened(context)
    assert opened(context) == folder
    (folder / "out").symlink_to("/etc/passwd")
    with pytest.raises(Conflict, match="link leads out"):
        given_back(context)
    assert folder.exists()
    Recovery(context).clean_up()
    assert folder.exists(), "a workspace of a person is not cleaned up"
