"""An item at which every agent has failed is cut anew by the strategist, once; then it is for a person to say."""

import json
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.conductor.context import RunContext
from decklog.conductor.plan import FILE as PLAN_FILE
from decklog.conductor.status import run_status
from tests.conductor.plans import SETTINGS, TRIPLE, Work, landed_titles, settle, states, task_of, work_item
from tests.conductor.scripts import COMMAND

BAD = ["replace", "calc.py", "return a + b", "return a - b"]
CHIEF = f"""
[agents.chief]
command = {json.dumps([*COMMAND, "chief"])}
[roles]
worker = ["fake"]
strategist = ["chief"]
"""


def plan_of(*items: dict[str, Any]) -> list[list[Any]]:
    """Give a script that proposes these items."""
    return [["write", PLAN_FILE, json.dumps({"items": list(items)})]]


def settled(folder: Path, *, plan: str) -> None:
    settle(folder, SETTINGS.replace("agents = 2", f'agents = 2\nplan = "{plan}"') + CHIEF)


def items_of(context: RunContext) -> dict[str, str]:
    return {one.name: one.state for one in run_status(context.log, context.run_id).items}


@pytest.mark.slow
def test_an_item_that_is_stuck_lands_by_what_the_strategist_puts_in_its_place(log: Decklog, checked: Path) -> None:
    settled(checked, plan="auto")
    parts = plan_of(
        work_item("first", TRIPLE, paths=["calc.py"]),
        work_item("second", ["append", "notes.txt", "four\n"], needs=["first"], paths=["docs/"]),
    )
    lazy = work_item("lazy", chief=parts, paths=["calc.py", "notes.txt"], priority=70)
    wrong = work_item(
        "wrong", BAD, again=[["write", "more.txt", "1\n"]], chief=plan_of(work_item("right", ["write", "right.txt", "1\n"]))
    )
    after = work_item("after", ["replace", "calc.py", "a * 3", "add(a, double(a))"], needs=["lazy"])
    context = Work(log, checked, lazy, wrong, after).run()
    assert items_of(context) == dict.fromkeys(("lazy", "wrong", "after", "first", "second", "right"), "landed")
    titles = landed_titles(context)
    assert titles.index("Item first") < titles.index("Item second") < titles.index("Item after")
    assert log.approvals.find(context.run_id) == []
    assert {states(context)[name] for name in ("lazy.w1", "wrong.c2")} == {"abandoned"}
    assert task_of(context, "second").allowed_paths == ["calc.py", "notes.txt"], "no plan widens what an item may change"
    assert task_of(context, "second").priority == 70
    told = task_of(context, "wrong.@plan")
    assert told.inputs["earlier"] is not None
    assert "tests fail" in str(told.inputs["blocker"])
    assert log.effects.open(context.run_id) == []
    assert log.journal.verify(context.run_id).ok


@pytest.mark.slow
def test_a_new_cut_is_shown_first_where_plans_are_and_its_items_are_not_cut_again(log: Decklog, checked: Path) -> None:
    settled(checked, plan="ask")
    red = [["write", "more.txt", "1\n"]]
    again = plan_of(work_item("again", BAD, again=red, chief=plan_of(work_item("never"))))
    work = Work(log, checked, work_item("lazy", chief=again))
    context = work.run()
    (question,) = log.approvals.find(context.run_id)
    assert "Work this plan of 1 item in place of lazy, which is stuck?" in str(question.question)
    assert log.approvals.show(question.id)["cause"]["rule"] == "plan"
    assert items_of(context) == {"lazy": "needs attention"}
    log.approvals.decide(question.id, "granted", by="ana")  # type: ignore[arg-type]
    work.run()
    assert items_of(context) == {"lazy": "waits", "again": "blocked"}
    newest, _ = log.approvals.find(context.run_id)
    assert "again is stuck: tests fail" in str(newest.question)


@pytest.mark.slow
def test_a_person_is_asked_once_about_an_item_for_which_there_is_no_better_cut(log: Decklog, checked: Path) -> None:
    settled(checked, plan="auto")
    work = Work(
        log, checked, work_item("lazy", chief=plan_of(work_item("lazy", TRIPLE))), work_item("other", ["write", "o.txt", "1\n"])
    )
    context = work.run()
    assert items_of(context) == {"lazy": "blocked", "other": "landed"}
    planning = task_of(context, "lazy.@plan")
    assert (planning.state, planning.failures) == ("abandoned", 2)
    assert "there is an item lazy already" in str(planning.summary)
    (question,) = log.approvals.find(context.run_id)
    assert "lazy is stuck: no-change" in str(question.question)
    log.approvals.decide(question.id, "granted", by="ana")  # type: ignore[arg-type]
    work.run()
    assert task_of(context, "lazy.w1").attempts == 4, "tried again from the first agent on, and not planned again"
    assert len(log.approvals.find(context.run_id)) == 2
    assert task_of(context, "lazy.@plan").attempts == 2
