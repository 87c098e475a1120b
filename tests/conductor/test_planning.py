"""A plan can be proposed by an agent, which is checked as data and shown first, or made of tasks that are in the log."""

import json
from pathlib import Path
from typing import Any

import pytest

from decklog import Conflict, Decklog, Invalid
from decklog.conductor import starting
from decklog.conductor.conductor import Conductor
from decklog.conductor.context import RunContext
from decklog.conductor.git.repository import Repository
from decklog.conductor.plan import FILE as PLAN_FILE
from decklog.conductor.plan import LARGEST, parse_stored, plan_from_tasks, read_proposal
from decklog.conductor.starting import RunRequest
from decklog.conductor.status import run_status
from tests.conductor.plans import NO_STRATEGIST, SETTINGS, STRONG, TRIPLE, landed_titles, settle, states, task_of, work_item
from tests.conductor.scripts import script


def worked(log: Decklog, folder: Path, wanted: RunRequest) -> RunContext:
    context = starting.begin(log, wanted, Repository.find(folder, folder.parent / "state"), say=lambda _: None)
    Conductor(context).run()
    return context


@pytest.mark.slow
def test_a_proposed_plan_is_mended_shown_and_worked_after_a_yes(log: Decklog, checked: Path, tmp_path: Path) -> None:
    items = [work_item("triple", TRIPLE, paths=["calc.py"]), work_item("notes", ["append", "notes.txt", "four\n"])]
    bad = json.dumps({"items": [{"name": "a", "needs": ["nobody"]}]})
    steps = [
        ["write", PLAN_FILE, json.dumps({"items": items})],
        ["once", str(tmp_path / "first"), [["write", PLAN_FILE, bad]]],
        ["append", "calc.py", "broken("],
    ]
    goal = "Make it better\n" + script(*steps)
    context = worked(log, checked, RunRequest(goal, goal.encode()))
    assert states(context) == {"@plan": "waiting"}
    plan = task_of(context, "@plan")
    assert plan.failures == 1, "the first was refused with the reason"
    assert run_status(log, context.run_id).outcome == "needs attention"
    (question,) = log.approvals.find(context.run_id)
    log.approvals.decide(question.id, "granted", by="ana")  # type: ignore[arg-type]
    assert sorted(landed_titles(worked(log, checked, RunRequest(goal, goal.encode())))) == ["Item notes", "Item triple"]
    assert run_status(log, context.run_id).outcome == "landed"
    assert log.effects.open(context.run_id) == []


@pytest.mark.slow
def test_a_plan_that_needs_no_yes_is_worked_and_one_that_stays_bad_is_for_a_person(log: Decklog, checked: Path) -> None:
    plan = json.dumps({"items": [work_item("triple", TRIPLE)]})
    goal = "Better\n" + script(["print", f"Here it is: {plan}"])
    context = worked(log, checked, RunRequest(goal, goal.encode(), is_plan_asked=False))
    assert landed_titles(context) == ["Item triple"]
    lazy = worked(log, checked, RunRequest("Nothing comes of it", b"lazy", is_plan_asked=False))
    assert (task_of(lazy, "@plan").state, task_of(lazy, "@plan").blocker) == ("blocked", "bad-plan")
    assert run_status(log, lazy.run_id).outcome == "blocked"
    assert "stuck: bad-plan" in str(log.approvals.find(lazy.run_id)[0].question)


def test_a_goal_is_refused_where_nobody_plans(log: Decklog, checked: Path) -> None:
    settle(checked, SETTINGS + NO_STRATEGIST)
    with pytest.raises(Invalid, match="no agent can plan this"):
        worked(log, checked, RunRequest("Make it better", b"goal"))
    assert log.runs.find() == []


BAD: dict[str, tuple[bytes | None, str, str]] = {
    "nothing": (None, "I looked.", "there is no plan"),
    "no JSON": (b"{", "", "not JSON"),
    "a list": (b"[]", "", "not a JSON object"),
    "too large": (b" " * (LARGEST + 1), "", "larger than"),
    "too many": (json.dumps({"items": [{"name": f"p{n}"} for n in range(41)]}).encode(), "", "41 items"),
    "outside": (json.dumps({"items": [{"name": "a", "paths": ["../x"]}]}).encode(), "", "outside of the repository"),
    "nested without end": (b"[" * 200_000, "", "not JSON"),
    "paths that are no texts": (json.dumps({"items": [{"name": "a", "paths": [1]}]}).encode(), "", "a list of texts"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_proposal_that_could_not_be_worked_is_refused_by_name(kind: str) -> None:
    content, said, message = BAD[kind]
    with pytest.raises(Invalid, match=message):
        read_proposal(content, said, "g")


def test_items_that_may_change_the_same_paths_get_an_order_and_others_none() -> None:
    given: list[dict[str, Any]] = [
        {"name": "a", "paths": ["src/a.py"]},
        {"name": "b", "paths": ["src/**"]},
        {"name": "c", "paths": ["docs/"]},
        {"name": "d", "paths": ["src/a.py"], "needs": ["e"]},
        {"name": "e", "paths": ["src/a.py"], "needs": ["b"]},
        {"name": "f"},
    ]
    found = read_proposal(json.dumps({"items": given, "goal": "another"}).encode(), "", "mine")
    assert {one.name: set(one.needs) for one in found.items} == {
        "a": set(),
        "b": {"a"},
        "c": set(),
        "d": {"e"},
        "e": {"b"},
        "f": set(),
    }
    assert found.goal == "mine"


@pytest.mark.slow
def test_tasks_of_the_log_are_worked_as_items_and_are_done_when_those_have_landed(log: Decklog, checked: Path) -> None:
    log.runs.start("Imported", run_id="board")
    first = log.tasks.add("board", "Triple", task_id="BD-1", objective=work_item("x", TRIPLE)["objective"])
    second = work_item("y", ["replace", "calc.py", "a * 3", "add(a, double(a))"])["objective"]
    log.tasks.add("board", "Use it", task_id="bd.1", objective=second, depends_on=[first.id])
    log.tasks.abandon(log.tasks.add("board", "Not wanted", task_id="no").id, reason="no")
    plan = plan_from_tasks(log, "board")
    assert [(one.name, one.needs) for one in plan.items] == [("bd-1", ()), ("bd-1-2", ("bd-1",))]
    context = worked(log, checked, RunRequest(plan.goal, b"tasks", plan))
    assert landed_titles(context) == ["Triple", "Use it"]
    assert {task.id: task.state for task in log.tasks.find("board")} == {"BD-1": "done", "bd.1": "done", "no": "abandoned"}
    with pytest.raises(Conflict, match="has no open task"):
        plan_from_tasks(log, "board")


@pytest.mark.slow
def test_a_task_with_parts_is_done_with_its_last_part_and_what_waits_for_it_waits_for_them(log: Decklog, checked: Path) -> None:
    log.runs.start("Imported", run_id="board")
    log.tasks.add("board", "Epic", task_id="bd-1")
    for number in (1, 2):
        steps = work_item("x", ["write", f"part{number}.txt", "1\n"])["objective"]
        log.tasks.add("board", f"Part {number}", task_id=f"bd-1.{number}", objective=steps)
        log.tasks.depend(f"bd-1.{number}", "bd-1", kind="parent")  # type: ignore[arg-type]
    later = work_item("y", ["run", ["cp", "part1.txt", "both.txt"]])["objective"]
    log.tasks.add("board", "Later", task_id="bd-2", objective=later, depends_on=["bd-1"])
    plan = plan_from_tasks(log, "board")
    assert {one.name: set(one.needs) for one in plan.items} == {
        "bd-1-1": set(),
        "bd-1-2": set(),
        "bd-2": {"bd-1-1", "bd-1-2"},
    }
    context = worked(log, checked, RunRequest(plan.goal, b"epic", plan))
    assert landed_titles(context)[-1] == "Later"
    assert {task.state.value for task in log.tasks.find("board")} == {"done"}


@pytest.mark.slow
def test_an_agents_last_word_is_a_wish_that_the_workflow_reads_and_the_facts_decide(log: Decklog, checked: Path) -> None:
    settle(checked, SETTINGS + STRONG + NO_STRATEGIST.removeprefix("[roles]\n"))
    liar = work_item("liar", ["print", "All green.\n**Status:** READY_FOR_QA"], strong=[["print", "Status: BLOCKED"]])
    honest = work_item(
        "honest", ["print", "Too hard for me. STATUS: ESCALATE_SENIOR"], strong=[TRIPLE, ["print", "status: done"]]
    )
    modest = work_item("modest", ["write", "m.txt", "1\n"], ["print", "Status: PARTIAL"])
    context = worked(log, checked, RunRequest("g", b"words", parse_stored({"goal": "g", "items": [liar, honest, modest]})))
    assert sorted(landed_titles(context)) == ["Item honest", "Item modest"]
    assert task_of(context, "liar.w1").blocker == "no-change"
    assert task_of(context, "honest.w1").attempts == 2, "the stronger one came at once"
    wishes = [entry.payload for entry in log.journal.find(context.run_id, subtype="conductor.wish")]
    told = {(one["status"], one["next_agent"], one["facts"]) for one in wishes}  # type: ignore[index, call-overload]
    assert told == {
        ("READY_FOR_QA", "qa_expert", "no-change"),
        ("BLOCKED", "tech_lead", "no-change"),
        ("ESCALATE_SENIOR", "senior_software_engineer", "no-change"),
        ("PARTIAL", "developer", "done"),
    }
