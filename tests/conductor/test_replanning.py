"""A piece at which every agent has failed is cut anew by the strategist, once; then it is for a person to say."""

import json
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.conductor import planning
from decklog.conductor.context import RunContext
from decklog.conductor.status import run_status
from tests.conductor.plans import SETTINGS, Work, landed_titles, piece, settle, states, task_of
from tests.conductor.scripts import COMMAND

GOOD = ["append", "calc.py", "\n\ndef triple(a):\n    return a * 3\n"]
BAD = ["replace", "calc.py", "return a + b", "return a - b"]
CHIEF = f"""
[agents.chief]
command = {json.dumps([*COMMAND, "chief"])}
[roles]
worker = ["fake"]
strategist = ["chief"]
"""


@pytest.fixture
def target(sqlite_target: str) -> str:
    """One engine is enough: the verbs are tested on both."""
    return sqlite_target


def plan_of(*pieces: dict[str, Any]) -> list[list[Any]]:
    """Give a script that proposes these pieces."""
    return [["write", planning.FILE, json.dumps({"pieces": list(pieces)})]]


def settled(folder: Path, *, plan: str) -> None:
    settle(folder, SETTINGS.replace("agents = 2", f'agents = 2\nplan = "{plan}"') + CHIEF)


def pieces_of(site: RunContext) -> dict[str, str]:
    return {one.name: one.state for one in run_status(site.log, site.run_id).pieces}


@pytest.mark.slow
def test_a_piece_that_is_stuck_lands_by_what_the_strategist_puts_in_its_place(log: Decklog, checked: Path) -> None:
    settled(checked, plan="auto")
    parts = plan_of(
        piece("first", GOOD, paths=["calc.py"]),
        piece("second", ["append", "notes.txt", "four\n"], needs=["first"], paths=["docs/"]),
    )
    lazy = piece("lazy", chief=parts, paths=["calc.py", "notes.txt"], priority=70)
    wrong = piece(
        "wrong", BAD, again=[["write", "more.txt", "1\n"]], chief=plan_of(piece("right", ["write", "right.txt", "1\n"]))
    )
    after = piece("after", ["replace", "calc.py", "a * 3", "add(a, double(a))"], needs=["lazy"])
    site = Work(log, checked, lazy, wrong, after).run()
    assert pieces_of(site) == dict.fromkeys(("lazy", "wrong", "after", "first", "second", "right"), "landed")
    titles = landed_titles(site)
    assert titles.index("Piece first") < titles.index("Piece second") < titles.index("Piece after")
    assert log.approvals.find(site.run_id) == []
    assert {states(site)[name] for name in ("lazy.w1", "wrong.c2")} == {"abandoned"}
    assert task_of(site, "second").allowed_paths == ["calc.py", "notes.txt"], "no plan widens what a piece may change"
    assert task_of(site, "second").priority == 70
    told = task_of(site, "wrong.@plan")
    assert told.inputs["earlier"] is not None
    assert "tests fail" in str(told.inputs["blocker"])
    assert log.effects.open(site.run_id) == []
    assert log.journal.verify(site.run_id).ok


@pytest.mark.slow
def test_a_new_cut_is_shown_first_where_plans_are_and_its_pieces_are_not_cut_again(log: Decklog, checked: Path) -> None:
    settled(checked, plan="ask")
    red = [["write", "more.txt", "1\n"]]
    again = plan_of(piece("again", BAD, again=red, chief=plan_of(piece("never"))))
    work = Work(log, checked, piece("lazy", chief=again))
    site = work.run()
    (question,) = log.approvals.find(site.run_id)
    assert "Work this plan of 1 piece in place of lazy, which is stuck?" in str(question.question)
    assert log.approvals.show(question.id)["cause"]["rule"] == "plan"
    assert pieces_of(site) == {"lazy": "needs attention"}
    log.approvals.decide(question.id, "granted", by="ana")  # type: ignore[arg-type]
    work.run()
    assert pieces_of(site) == {"lazy": "waits", "again": "blocked"}
    newest, _ = log.approvals.find(site.run_id)
    assert "again is stuck: tests fail" in str(newest.question)


@pytest.mark.slow
def test_a_person_is_asked_once_about_a_piece_for_which_there_is_no_better_cut(log: Decklog, checked: Path) -> None:
    settled(checked, plan="auto")
    work = Work(log, checked, piece("lazy", chief=plan_of(piece("lazy", GOOD))), piece("other", ["write", "o.txt", "1\n"]))
    site = work.run()
    assert pieces_of(site) == {"lazy": "blocked", "other": "landed"}
    planning = task_of(site, "lazy.@plan")
    assert (planning.state, planning.failures) == ("abandoned", 2)
    assert "there is a piece lazy already" in str(planning.summary)
    (question,) = log.approvals.find(site.run_id)
    assert "lazy is stuck: no-change" in str(question.question)
    log.approvals.decide(question.id, "granted", by="ana")  # type: ignore[arg-type]
    work.run()
    assert task_of(site, "lazy.w1").attempts == 4, "tried again from the first agent on, and not planned again"
    assert len(log.approvals.find(site.run_id)) == 2
    assert task_of(site, "lazy.@plan").attempts == 2
