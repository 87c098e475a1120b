"""What each tool does, and its errors."""

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from decklog import ApprovalState, BudgetScope, Decklog, EntryKind, ManualClock, TaskState
from decklog.core.errors import Denied
from decklog.records.operations import is_agent_call
from tests.conftest import on_both
from tests.mcp.conftest import Agent
from tests.registry import operations
from tests.searches import FULL
from tests.stores.claiming import claimed

Agents = Callable[..., Agent]


def test_a_task_is_taken_worked_on_and_ended(log: Decklog, run_id: str, agent: Agents) -> None:
    task = log.tasks.add(run_id, "Write the lexer", objective="fast", acceptance=["it lexes"])
    me = agent()
    task_data = me.data("next")
    expected = {"task": task.id, "title": "Write the lexer", "objective": "fast", "acceptance": ["it lexes"]}
    assert expected.items() <= task_data.items()
    noted = me.data("note", text="a table is faster", phase="decisions")
    entry = log.journal.get(noted["entry"])
    assert (entry.kind, entry.body, entry.agent, entry.task_id) == (EntryKind.REASONING, "a table is faster", "dev-1", task.id)
    assert me.data("done", what="it lexes", evidence=["pytest"]) == {"task": task.id, "outcome": "done", "state": "done"}
    assert log.tasks.get(task.id).result == {"evidence": ["pytest"]}
    assert me.data("done")["already"] is True
    reason = me.data("next")["reason"]
    assert reason["code"] == "all_done"


def test_the_handshake_of_older_clients_is_answered_too(log: Decklog, run_id: str, agent: Agents) -> None:
    task = log.tasks.add(run_id, "one")
    assert agent(mode="legacy").data("next")["task"] == task.id


@on_both
def test_two_agents_get_different_tasks_and_one_gets_its_own_again(log: Decklog, run_id: str, agent: Agents) -> None:
    log.tasks.add_many(run_id, [{"title": "one"}, {"title": "two"}])
    first, second = agent("a"), agent("b")
    tasks = [first.data("next")["task"], second.data("next")["task"]]
    assert len(set(tasks)) == 2
    assert [first.data("next")["task"], second.data("next")["task"]] == tasks
    assert {log.tasks.get(task).worker for task in tasks} == {"a", "b"}


def test_failed_task_is_retried_and_blocked_one_is_not(log: Decklog, run_id: str, agent: Agents) -> None:
    task = log.tasks.add(run_id, "one")
    me = agent()
    me.data("next")
    assert me.data("fail", why="no compiler") == {"task": task.id, "outcome": "failed", "state": "pending"}
    assert me.data("next")["last_try"] == "no compiler"
    assert me.data("block", why="no network")["state"] == "blocked"
    assert me.error("done")["code"] == "not_found"


def test_any_call_renews_the_lease_or_reports_its_loss(log: Decklog, run_id: str, agent: Agents, clock: ManualClock) -> None:
    task = log.tasks.add(run_id, "one")
    me = agent()
    me.data("next", lease=600)
    for _ in range(5):
        clock.advance(seconds=300)
        assert "notes" not in me.data("recall", words="anything")
    assert log.tasks.get(task.id).state is TaskState.RUNNING
    clock.advance(seconds=700)
    assert agent("other").data("next")["task"] == task.id
    assert me.data("show", words="anything")["notes"][0].startswith("lost: ")
    assert me.error("done", what="x")["code"] == "lease_lost"


@on_both
def test_waiting_agent_gets_lost_leases_and_new_tasks(log: Decklog, run_id: str, agent: Agents, clock: ManualClock) -> None:
    log.tasks.add(run_id, "one")
    me = agent()
    me.data("next", lease=60)
    clock.advance(seconds=61)
    assert agent("other").data("next")["title"] == "one"
    answer = me.data("next", wait=0.01)
    assert (answer["reason"]["code"], answer["notes"][0][:5]) == ("all_taken", "lost:")
    two = log.tasks.add(run_id, "two")
    assert me.data("next", wait=50)["task"] == two.id


def test_repeated_question_returns_its_decision(log: Decklog, run_id: str, agent: Agents) -> None:
    me = agent()
    question = me.data("ask", question="Drop the table?", about="drop table x", options=["yes", "no"])
    assert question["state"] == "open"
    approval = log.approvals.get(question["approval"])
    assert (approval.question, approval.payload) == ("Drop the table?", {"options": ["yes", "no"]})
    log.approvals.decide(approval.id, ApprovalState.DENIED, by="ana", rationale="not today")
    again = me.data("ask", question="Drop the table?", about="drop table x", options=["yes", "no"], wait=5)
    assert (again["approval"], again["state"], again["rationale"]) == (approval.id, "denied", "not today")


def test_subject_of_a_question_is_a_text_and_never_a_file(log: Decklog, run_id: str, agent: Agents) -> None:
    question = agent().data("ask", question="May I?", about=__file__)
    approval = log.approvals.get(question["approval"])
    assert (approval.subject, approval.subject_digest) == (None, sha256(__file__.encode()).hexdigest())


def test_charge_has_a_key_and_reports_an_overdrawn_budget(log: Decklog, run_id: str, agent: Agents) -> None:
    log.budgets.set(BudgetScope.RUN, scope_id=run_id, limit_microdollars=1_000_000)
    me = agent()
    spent = {"model": "some-model", "in": 10, "out": 5, "cache_read": 2, "cache_write": 1, "cost": 1.5, "key": "k"}
    charge = me.data("spend", **spent)
    assert (charge["tokens"], charge["cost_microdollars"], charge["overdrew"]) == (18, 1_500_000, True)
    assert me.data("spend", **spent)["charge"] == charge["charge"]


def test_a_plan_is_made_of_titles_and_objects_once_by_its_key(log: Decklog, run_id: str, agent: Agents) -> None:
    me = agent()
    planned = {"tasks": ["one", {"title": "two", "acceptance": ["it is two"]}], "in_order": True, "key": "plan"}
    first = me.data("plan", **planned)["tasks"]
    assert [task["title"] for task in first] == ["one", "two"]
    assert [task["already"] for task in me.data("plan", **planned)["tasks"]] == [True, True]
    two = log.tasks.get(first[1]["task"])
    assert (two.acceptance, two.open_dependencies) == (["it is two"], 1)
    standing = me.data("plan")
    assert (standing["run"], [task["live_status"] for task in standing["tasks"]]) == (run_id, ["pending", "pending"])


def test_a_lesson_is_kept_and_found_again(log: Decklog, run_id: str, agent: Agents) -> None:
    me = agent()
    remembered = me.data("remember", lesson="Run the formatter before the linter")
    (found,) = me.data("recall", words="formatter linter")["lessons"]
    assert (found["lesson"], found["topic"]) == (remembered["lesson"], "task_outcomes")


def test_checkpoint_keeps_its_state(log: Decklog, run_id: str, agent: Agents) -> None:
    me = agent()
    saved = me.data("checkpoint", name="half", state={"file": "a.py", "line": 7}, key="k")
    assert me.data("checkpoint", name="half", state={"file": "a.py", "line": 7}, key="k")["checkpoint"] == saved["checkpoint"]
    shown = me.data("show", id=saved["checkpoint"])
    assert (shown["kind"], shown["record"]["payload"]) == ("checkpoint", {"file": "a.py", "line": 7})


def test_entries_are_found_in_pages_with_opaque_cursors(log: Decklog, run_id: str, agent: Agents) -> None:
    for number in range(5):
        log.journal.append(run_id, f"needle {number}", agent="x")
    me = agent()
    first = me.data("show", words="needle", limit=3)
    assert [entry["text"] for entry in first["entries"]] == ["needle 4", "needle 3", "needle 2"]
    rest = me.data("show", words="needle", limit=3, cursor=first["next"])
    assert [entry["text"] for entry in rest["entries"]] == ["needle 1", "needle 0"]
    assert "next" not in rest
    assert "cursor" in me.error("show", words="needle", cursor="[1]")["message"]


def test_show_takes_any_id_or_none(log: Decklog, run_id: str, agent: Agents) -> None:
    task = log.tasks.add(run_id, "one")
    entry = log.journal.append(run_id, "x" * 100_000)
    me = agent()
    assert me.data("show", id=run_id)["record"]["goal"] == "Make the parser faster"
    assert me.data("show", id=task.id)["kind"] == "task"
    shown = me.data("show", id=entry.id)["record"]["body"]
    assert len(shown) < 21_000
    assert shown.endswith("(80000 more)")
    assert "The tool next" in me.data("show")["record"]["text"] or "1 ready" in me.data("show")["record"]["text"]
    assert "decklog next" not in me.data("show")["record"]["text"]
    assert me.error("show", id="nothing")["code"] == "not_found"


def test_messages_are_listed_until_they_were_seen(log: Decklog, run_id: str, agent: Agents) -> None:
    mine = log.inbox.post("ana", "stop after this one", agent="dev-1")
    log.inbox.post("ana", "for another", agent="dev-2")
    me = agent()
    (message,) = me.data("inbox")["messages"]
    assert (message["message"], message["from"], message["text"]) == (mine.id, "ana", "stop after this one")
    assert me.data("inbox", seen=[mine.id])["messages"] == []
    assert log.inbox.get(mine.id).seen_by == "dev-1"


def test_one_of_several_runs_must_be_named(log: Decklog, run_id: str, agent: Agents) -> None:
    log.runs.start("another", run_id="run_2")
    me = agent()
    error = me.error("note", text="a thought")
    assert error["hint"].startswith("Say which: run: run_")
    assert me.data("note", text="a thought", run="run_2")["entry"].startswith("run_2:")


def test_run_and_task_of_the_environment_are_used(log: Decklog, run_id: str, agent: Agents) -> None:
    task = log.tasks.add(run_id, "one")
    claim = claimed(log, run_id, worker="conductor")
    variables = {"DECKLOG_RUN_ID": run_id, "DECKLOG_TASK_ID": task.id, "DECKLOG_FENCE": str(claim.task.fence)}
    assert agent("helper", DECKLOG_TASK_ID=task.id).data("show", id=run_id)["kind"] == "run"
    me = agent("helper", **variables)
    assert me.data("next")["task"] == task.id
    assert me.data("done", what="it")["outcome"] == "done"


BAD: list[tuple[str, Any, str]] = [
    ("next", {"wait": "long"}, "wait is a text"),
    ("next", {"wait": True}, "wait is true or false"),
    ("next", {"unknown": 1, "more": 2}, "next has no argument more, unknown"),
    ("next", {"lease": -5}, "lease"),
    ("note", {}, "note needs text"),
    ("note", {"text": None}, "note needs text"),
    ("note", {"text": "   "}, "a note needs a text"),
    ("note", {"text": "x", "phase": "guess"}, "phase is"),
    ("note", {"text": {"deep": 1}}, "text is an object"),
    ("note", {"text": "x", "run": "no-such"}, "no-such"),
    ("done", {"evidence": "one"}, "evidence is a text"),
    ("done", {"evidence": [1]}, "evidence[0] is a whole number"),
    ("done", {"what": "x"}, "has no task"),
    ("spend", {"model": "m", "in": 1.5}, "in is a number"),
    ("spend", {"model": "m", "in": -1}, ""),
    ("spend", {"model": "claude-s1"}, "nothing was spent: say tokens (in: N, …) or dollars (cost: X)"),
    ("spend", {"model": "m", "in": 10**30}, ""),
    ("plan", {"tasks": [1]}, "tasks[0] is"),
    ("plan", {"tasks": [{"objective": "no title"}]}, "title"),
    ("plan", {"tasks": [{"title": "x", "nonsense": 1}]}, "nonsense"),
    ("show", {"words": " "}, "at least one word"),
    ("show", {"words": "x", "limit": 0}, ""),
    ("show", {"words": "x", "cursor": "%%%"}, "cursor is invalid"),
    ("inbox", {"seen": ["nobody"]}, "nobody"),
    ("recall", {"words": "x", "limit": -1}, ""),
    ("remember", {"lesson": ""}, ""),
    ("ask", {"question": ""}, ""),
    ("no-such-tool", {}, "there is no tool"),
]


def test_wrong_call_is_an_error_with_a_hint(log: Decklog, run_id: str, agent: Agents) -> None:
    async def all_of_them(client: Any) -> list[Any]:
        return [await client.call_tool(tool, given) for tool, given, _ in BAD]

    for (tool, given, message), result in zip(BAD, agent().talk(all_of_them), strict=True):
        assert result.is_error, (tool, given)
        error = result.structured_content["error"]
        assert message in error["message"], (tool, given, error)
        assert error["code"]
        assert error["hint"], (tool, given, error)


ODD = ("nul \0 in it", "a lone \ud800", "\u202e\x1b[31m", "x" * (1_000_000 if FULL else 200_000))


@pytest.mark.slow
@on_both
def test_odd_text_is_kept_or_refused_and_never_breaks_the_server(log: Decklog, run_id: str, agent: Agents) -> None:
    texts = {"note": "text", "ask": "question", "remember": "lesson", "show": "id"}

    async def all_of_them(client: Any) -> None:
        for tool, name in texts.items():
            for odd in ODD:
                result = await client.call_tool(tool, {name: odd})
                if result.is_error:
                    assert result.structured_content["error"]["message"]
                assert len(json.dumps(result.structured_content)) < 3_000_000
        assert (await client.call_tool("plan", {})).structured_content["run"] == run_id

    agent().talk(all_of_them)
    assert log.journal.verify().ok


def test_deep_json_is_refused_or_kept(log: Decklog, run_id: str, agent: Agents) -> None:
    deep: Any = "bottom"
    for _ in range(100):
        deep = {"below": deep}
    result = agent()("checkpoint", state=deep)
    assert result.structured_content
    assert log.journal.verify().ok


def test_tools_can_not_call_verbs_of_the_owner(log: Decklog, run_id: str, agent: Agents) -> None:
    task = log.tasks.add(run_id, "one")
    approval = log.approvals.ask(run_id, "May I?", by="x", about="that")
    token = is_agent_call.set(True)
    try:
        for store, operation in operations():
            if operation.owner_only:
                with pytest.raises(Denied, match="is for the owner"):
                    getattr(getattr(log, store), operation.name)()
    finally:
        is_agent_call.reset(token)
    assert log.approvals.get(approval.id).state is ApprovalState.OPEN
    assert log.tasks.get(task.id).state is TaskState.PENDING
