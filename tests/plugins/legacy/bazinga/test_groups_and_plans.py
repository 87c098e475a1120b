"""Task groups, plans and criteria: every call and every refusal."""

import json
from collections.abc import Callable

import pytest

from decklog import Decklog
from tests.every import every
from tests.plugins.legacy.bazinga.conftest import PLAN
from tests.plugins.legacy.bazinga.shell import ANY, Case, Shell, fails, gives, prints, refused, refused_as_json, silent, try_case

_NEW = {"id": "C", "session_id": "s", "name": "Docs", "status": "pending", "item_count": 1, "initial_tier": "Developer"}


def _group(**fields: object) -> dict[str, object]:
    return {"success": True, "task_group": fields}


_CREATE = ("create-task-group", "C", "s", "Docs")
CREATE = [
    gives(*_CREATE, **_group(**_NEW, revision_count=0, complexity=None, assigned_to=None, specializations=None)),
    gives(*_CREATE, "in_progress", "dev-1", **_group(status="in_progress", assigned_to="dev-1")),
    gives(*_CREATE, "--item_count", "4", **_group(item_count=4)),
    gives(*_CREATE, "--item-count=4", **_group(item_count=4)),
    gives(*_CREATE, "--component_path", "src/a", **_group(component_path="src/a")),
    gives(*_CREATE, "--component-path", "src/a", **_group(component_path="src/a")),
    gives(*_CREATE, "--initial_tier", "Senior Software Engineer", **_group(initial_tier="Senior Software Engineer")),
    gives(*_CREATE, "--complexity", "10", **_group(complexity=10)),
    gives(*_CREATE, "--security_sensitive", "1", **_group(security_sensitive=1)),
    gives(*_CREATE, "--security-sensitive=0", **_group(security_sensitive=0)),
    gives(
        *(*_CREATE, "--specializations", '["python.md", "templates/specializations/web.md"]'),
        **_group(specializations='["bazinga/templates/specializations/python.md", "bazinga/templates/specializations/web.md"]'),
    ),
    gives(*_CREATE, "--specializations", "[]", **_group(specializations="[]")),
    gives("create-task-group", "A", "s", "Lexer anew", **_group(id="A", name="Lexer anew")),
    refused_as_json(*_CREATE, "--item_count", "0", because="1 or more"),
    refused_as_json(*_CREATE, "--initial_tier", "Boss", because="Invalid initial_tier"),
    refused_as_json(*_CREATE, "--complexity", "0", because="from 1 to 10"),
    refused_as_json(*_CREATE, "--complexity", "11", because="from 1 to 10"),
    refused_as_json(*_CREATE, "--specializations", '"python.md"', because="list of strings"),
    refused_as_json(*_CREATE, "--specializations", "python.md", because="Invalid JSON"),
    fails("create-task-group", "global", "s", "Docs", because="'global' is a reserved identifier"),
    fails("create-task-group", "All", "s", "Docs", because="'All' is a reserved identifier"),
    fails("create-task-group", "session", "s", "Docs", because="reserved"),
    fails("create-task-group", "DEFAULT", "s", "Docs", because="reserved"),
    fails("create-task-group", "a b", "s", "Docs", because="alphanumeric"),
    fails("create-task-group", "", "s", "Docs", because="cannot be empty"),
    fails("create-task-group", "x" * 65, "s", "Docs", because="too long"),
    fails(*_CREATE, "done", because="status can't be 'done'"),
    fails(*_CREATE, "--specializations", '["../x"]', because="leads out"),
    fails(*_CREATE, "--specializations", '["a b"]', because="may have only"),
    fails("create-task-group", "C", "nope", "Docs", because="Session not found: nope"),
]

_UPDATE = ("update-task-group", "A", "s")
UPDATE = [
    gives(*_UPDATE, "--status", "in_progress", **_group(status="in_progress")),
    gives(*_UPDATE, "status", "in_progress", "assigned_to", "dev-3", **_group(status="in_progress", assigned_to="dev-3")),
    gives(*_UPDATE, "--revision_count", "2", **_group(revision_count=2)),
    gives(*_UPDATE, "--last_review_status", "APPROVED", **_group(last_review_status="APPROVED")),
    gives(*_UPDATE, "--name", "Lexing", **_group(name="Lexing")),
    gives(*_UPDATE, "--specializations", "[]", **_group(specializations="[]")),
    gives(*_UPDATE, "--item_count", "3", **_group(item_count=3)),
    gives(*_UPDATE, "--security_sensitive", "true", **_group(security_sensitive=1)),
    gives(*_UPDATE, "--security_sensitive", "no", **_group(security_sensitive=0)),
    gives(*_UPDATE, "--qa_attempts", "1", "--tl-review-attempts", "2", **_group(qa_attempts=1, tl_review_attempts=2)),
    gives(*_UPDATE, "--component_path", "src", **_group(component_path="src")),
    gives(*_UPDATE, "--initial_tier", "Senior Software Engineer", **_group(initial_tier="Senior Software Engineer")),
    gives(*_UPDATE, "--complexity", "1", **_group(complexity=1)),
    gives(*_UPDATE, "--review_iteration", "3", **_group(review_iteration=3)),
    gives(*_UPDATE, "--no_progress_count", "1", "--blocking_issues_count=4", **_group(blocking_issues_count=4)),
    gives(*_UPDATE, "--speckit_task_ids", '["T001"]', **_group(speckit_task_ids='["T001"]')),
    gives(*_UPDATE, "--status", "", "--name", "Lexing", **_group(status="pending", name="Lexing")),
    gives(*_UPDATE, **_group(id="A", name="Lexer")),
    gives("update-task-group", "C", "s", "--status", "merging", **_group(id="C", name="Task Group C", status="merging")),
    gives("update-task-group", "C", "s", "--auto_create", "true", "--name", "Docs", **_group(name="Docs")),
    fails("update-task-group", "C", "s", "--auto_create", "false", "--name", "Docs", because="Task group not found: C"),
    fails("update-task-group", "C", "s", because="no group 'C'"),
    fails(*_UPDATE, "--status", "done", because="status can't be 'done'"),
    fails(*_UPDATE, "--last_review_status", "MAYBE", because="can't be 'MAYBE'"),
    fails("update-task-group", "global", "s", "--name", "x", because="reserved"),
    fails("update-task-group", "A", "nope", "--name", "x", because="Session not found: nope"),
    refused_as_json(*_UPDATE, "--revision_count", "-1", because="0 or more"),
    refused_as_json(*_UPDATE, "--item_count", "0", because="1 or more"),
    refused_as_json(*_UPDATE, "--complexity", "11", because="from 1 to 10"),
    refused_as_json(*_UPDATE, "--initial_tier", "Boss", because="Invalid initial_tier"),
    refused_as_json(*_UPDATE, "--review_iteration", "0", because="1 or more"),
    refused_as_json(*_UPDATE, "--speckit_task_ids", "[1]", because="list of strings"),
    prints("get-task-groups", "s", value=[{"id": "A"}, {"id": "B", "complexity": 7, "assigned_to": "dev-2"}]),
    prints("get-task-groups", "s", "in_progress", value=[{"id": "B"}]),
    prints("get-task-groups", "s", "failed", value=[]),
    prints("get-task-groups", "nope", value=[]),
]

_ONE = '{"original_prompt": "p", "plan_text": "t", "phases": [{"name": "Only"}]}'
PLANS = [
    silent("save-development-plan", "s", "p", "t", PLAN, "1", "2"),
    silent("save-development-plan", "s", "p", "t", PLAN, "1", "2", '{"a": 1}'),
    silent("save-development-plan", "s", "p", "t", '["One", "Two"]', "1", "2"),
    silent("save-development-plan", "s", _ONE),
    refused("save-development-plan", "s", "{}", because="phases"),
    refused("save-development-plan", "s", "p", "t", "{", "1", "2", because="Invalid JSON"),
    refused("save-development-plan", "s", "p", "t", PLAN, "1", because="go together"),
    refused("save-development-plan", "nope", "p", "t", PLAN, "1", "2", because="Session not found: nope"),
    gives("get-development-plan", "s", session_id="s", original_prompt="the prompt", plan_text="the plan", current_phase=1),
    gives("get-development-plan", "s", id=ANY, total_phases=2, metadata={"by": "pm"}, created_at=ANY, updated_at=ANY),
    gives("get-development-plan", "s", phases=[{"phase": 1, "name": "Lexer", "owner": "ana", "status": "pending"}, {"phase": 2}]),
    prints("get-development-plan", "nope", value=None),
    silent("update-plan-progress", "s", "1", "completed"),
    silent("update-plan-progress", "s", "Parser", "in_progress", "40"),
    silent("update-plan-progress", "s", "2", "blocked"),
    refused("update-plan-progress", "s", "3", "completed", because="phase '3'"),
    refused("update-plan-progress", "s", "Other", "completed", because="phase 'Other'"),
    refused("update-plan-progress", "s", "1", "done", because="Invalid status"),
    refused("update-plan-progress", "s", "1", "completed", "101", because="from 0 to 100"),
    refused("update-plan-progress", "nope", "1", "completed", because="nope"),
]

CRITERIA = [
    silent("save-success-criteria", "s", '[{"criterion": "Fast", "status": "met", "actual": "1 ms", "evidence": "log", "x": 1}]'),
    silent("save-success-criteria", "s", '[{"criterion": "Tests pass"}]'),
    refused("save-success-criteria", "s", "[]", because="one or more"),
    refused("save-success-criteria", "s", "{}", because="one or more"),
    refused("save-success-criteria", "s", '[{"criterion": " "}]', because="criterion cannot be empty"),
    refused("save-success-criteria", "s", '["Fast"]', because="object"),
    refused("save-success-criteria", "s", '[{"criterion": "Fast", "status": "done"}]', because="Invalid status"),
    refused("save-success-criteria", "s", '[{"criterion": "Fast"}, {"criterion": "Fast"}]', because="twice"),
    refused("save-success-criteria", "s", "Fast", because="Invalid JSON"),
    refused("save-success-criteria", "nope", '[{"criterion": "Fast"}]', because="Session not found: nope"),
    prints(
        *("get-success-criteria", "s"),
        value=[
            {"id": 1, "criterion": "Tests pass", "status": "pending", "required_for_completion": 1, "actual": None},
            {"id": 2, "criterion": "Docs exist", "required_for_completion": 0, "session_id": "s"},
        ],
    ),
    prints("get-success-criteria", "nope", value=[]),
    silent("update-success-criterion", "s", "Tests pass", "--status", "met", "--actual", "all", "--evidence", "run 7"),
    silent("update-success-criterion", "s", "Tests pass", "met"),
    silent("update-success-criterion", "s", "Tests pass", "met", "see run 7"),
    refused("update-success-criterion", "s", "Tests pass", "--status", "done", because="Invalid status"),
    refused("update-success-criterion", "s", "Tests pass", because="nothing to change"),
    refused("update-success-criterion", "s", " ", "--status", "met", because="criterion cannot be empty"),
    refused("update-success-criterion", "s", "Other", "--status", "met", because="no criterion 'Other'"),
    refused("update-success-criterion", "nope", "Tests pass", "--status", "met", because="Session not found: nope"),
]


@pytest.mark.slow
@every("case", CREATE + UPDATE + PLANS + CRITERIA, ids=lambda case: case.name)
def test_a_call_about_groups_and_plans_is_answered(project: Callable[[], Shell], case: Case) -> None:
    try_case(project(), case)


def test_a_group_has_its_columns_in_order(shell: Shell) -> None:
    row = shell.ok("get-task-groups", "s")[0]
    assert list(row) == [
        *("id", "session_id", "name", "status", "assigned_to", "revision_count", "last_review_status", "feature_branch"),
        *("merge_status", "complexity", "initial_tier", "context_references", "specializations", "item_count"),
        *("security_sensitive", "qa_attempts", "tl_review_attempts", "component_path", "review_iteration"),
        *("no_progress_count", "blocking_issues_count", "speckit_task_ids", "created_at", "updated_at"),
    ]


def test_a_review_iteration_never_falls(shell: Shell) -> None:
    shell.ok("update-task-group", "A", "s", "--review_iteration", "4")
    assert shell.ok("update-task-group", "A", "s", "--review_iteration", "2")["task_group"]["review_iteration"] == 4


def test_two_sessions_may_use_the_same_group_id(shell: Shell) -> None:
    shell.ok("create-session", "t", "simple", "Other")
    shell.ok("create-task-group", "A", "t", "Other lexer")
    assert [row["name"] for row in shell.ok("get-task-groups", "t")] == ["Other lexer"]
    assert shell.ok("get-task-groups", "s")[0]["name"] == "Lexer"


def test_progress_shows_in_the_plan(shell: Shell) -> None:
    shell.ok("update-plan-progress", "s", "Lexer", "completed")
    phases = shell.ok("get-development-plan", "s")["phases"]
    assert (phases[0]["status"], phases[0]["progress_percent"]) == ("completed", 100)
    assert phases[0]["completed_at"]


def test_a_plan_that_is_saved_again_keeps_when_it_was_made_and_its_id(shell: Shell) -> None:
    before = shell.ok("get-development-plan", "s")
    shell.ok("save-development-plan", "s", "p", "t", PLAN, "2", "2")
    after = shell.ok("get-development-plan", "s")
    assert (after["id"], after["created_at"]) == (before["id"], before["created_at"])
    assert after["current_phase"] == 2


def test_a_list_of_criteria_that_is_saved_takes_the_place_of_the_one_before(shell: Shell) -> None:
    shell.ok("update-success-criterion", "s", "Tests pass", "--status", "met", "--evidence", "run 7")
    shell.ok("save-success-criteria", "s", json.dumps([{"criterion": "Fast"}, {"criterion": "Tests pass", "actual": "some"}]))

    rows = {row["criterion"]: row for row in shell.ok("get-success-criteria", "s")}
    assert rows.keys() == {"Fast", "Tests pass"}
    again = rows["Tests pass"]
    assert (again["status"], again["actual"], again["evidence"]) == ("pending", "some", None)
    with Decklog.open(shell.log) as log:
        assert log.journal.verify().ok
        assert [entry.subtype for entry in log.journal.history("criteria", '["s","2"]')] == ["added", "removed"]


def test_a_phase_that_is_taken_up_is_the_current_one_by_number_and_by_name(shell: Shell) -> None:
    shell.ok("update-plan-progress", "s", "Parser", "in_progress")
    assert shell.ok("get-development-plan", "s")["current_phase"] == 2
    shell.ok("update-plan-progress", "s", "1", "in_progress")
    assert shell.ok("get-development-plan", "s")["current_phase"] == 1


def test_a_plan_that_is_saved_again_has_only_what_is_given(shell: Shell) -> None:
    shell.ok("update-plan-progress", "s", "Lexer", "completed")
    shell.ok("save-development-plan", "s", "p", "t", '[{"phase": 1, "name": "Lexer"}]', "1", "1")

    plan = shell.ok("get-development-plan", "s")
    assert (plan["metadata"], plan["total_phases"]) == (None, 1)
    assert [(phase["status"], phase["progress_percent"]) for phase in plan["phases"]] == [("pending", 0)]


def test_the_workflow_tables_are_filled_from_the_start(empty: Shell) -> None:
    empty.ok("create-session", "s", "simple", "Anything")
    counts = {"workflow_transitions": 47, "agent_markers": 8, "workflow_special_rules": 5}
    for table, count in counts.items():
        assert empty.ok("query", f"select count(*) as n from {table}") == [{"n": count}]


def test_whether_a_criterion_is_required_can_be_sent_anew(shell: Shell) -> None:
    shell.ok("save-success-criteria", "s", json.dumps([{"criterion": "Tests pass", "required_for_completion": False}]))
    assert shell.ok("get-success-criteria", "s")[0]["required_for_completion"] == 0


def test_of_a_list_with_a_bad_criterion_nothing_is_saved(shell: Shell) -> None:
    shell.call("save-success-criteria", "s", json.dumps([{"criterion": "Fast"}, {"criterion": ""}]))
    assert len(shell.ok("get-success-criteria", "s")) == 2
