"""The router: the same questions, the same shape of answer."""

from collections.abc import Callable

import pytest

from tests.every import every
from tests.plugins.legacy.bazinga.shell import Answer, Shell

ROUTES = [
    ("developer", "READY_FOR_QA", "qa_expert", "spawn"),
    ("developer", "READY_FOR_REVIEW", "tech_lead", "spawn"),
    ("developer", "BLOCKED", "investigator", "spawn"),
    ("developer", "PARTIAL", "developer", "respawn"),
    ("developer", "ESCALATE_SENIOR", "senior_software_engineer", "spawn"),
    ("senior_software_engineer", "ROOT_CAUSE_FOUND", "tech_lead", "spawn"),
    ("qa_expert", "PASS", "tech_lead", "spawn"),
    ("qa_expert", "FAIL", "developer", "respawn"),
    ("qa_expert", "FLAKY", "tech_lead", "spawn"),
    ("tech_lead", "APPROVED", "developer", "spawn_merge"),
    ("tech_lead", "CHANGES_REQUESTED", "developer", "respawn"),
    ("tech_lead", "ESCALATE_TO_OPUS", "tech_lead", "respawn"),
    ("project_manager", "PLANNING_COMPLETE", "developer", "spawn_batch"),
    ("project_manager", "BAZINGA", None, "validate_then_end"),
    ("project_manager", "NEEDS_CLARIFICATION", None, "pause_for_user"),
    ("investigator", "WAITING_FOR_RESULTS", "developer", "spawn"),
    ("requirements_engineer", "READY_FOR_REVIEW", "tech_lead", "spawn"),
    ("validator", "ACCEPT", None, "end_session"),
    ("validator", "REJECT", "project_manager", "spawn"),
]


def ask(shell: Shell, agent: str, status: str, *more: str, group: str | None = "A") -> Answer:
    of_group = () if group is None else ("--group-id", group)
    return shell.call("route", "--current-agent", agent, "--status", status, "--session-id", "s", *of_group, *more)


@every(("agent", "status", "next_agent", "action"), ROUTES)
def test_a_report_is_routed(project: Callable[[], Shell], agent: str, status: str, next_agent: str | None, action: str) -> None:
    answer = ask(project(), agent, status)
    assert answer.code == 0, answer
    found = answer.json
    assert (found["next_agent"], found["action"]) == (next_agent, action)
    assert list(found)[:8] == [
        *("success", "current_agent", "response_status", "next_agent", "action", "group_id", "session_id", "include_context"),
    ]
    assert (found["current_agent"], found["response_status"], found["group_id"], found["session_id"]) == (agent, status, "A", "s")


def test_the_model_comes_with_whoever_is_started(shell: Shell) -> None:
    assert ask(shell, "developer", "READY_FOR_QA").json["model"] == "sonnet"
    assert ask(shell, "developer", "READY_FOR_REVIEW").json["model"] == "opus"
    assert "model" not in ask(shell, "tech_lead", "APPROVED").json


@pytest.mark.parametrize("mode", ["minimal", "disabled"])
def test_without_tests_a_reviewer_comes_next(shell: Shell, mode: str) -> None:
    found = ask(shell, "developer", "READY_FOR_QA", "--testing-mode", mode).json
    assert found["next_agent"] == "tech_lead"
    assert found["skip_reason"]


def test_the_second_failure_goes_to_a_senior(shell: Shell) -> None:
    shell.ok("update-task-group", "A", "s", "--qa_attempts", "2")
    found = ask(shell, "qa_expert", "FAIL").json
    assert (found["next_agent"], found["escalation_applied"]) == ("senior_software_engineer", True)


def test_a_batch_names_the_groups_that_are_pending(shell: Shell) -> None:
    assert ask(shell, "project_manager", "PLANNING_COMPLETE").json["groups_to_spawn"] == ["A"]


def test_an_unknown_report_is_answered_with_a_way_out(shell: Shell) -> None:
    answer = ask(shell, "developer", "HAPPY")
    assert answer.code == 1
    assert answer.json["success"] is False
    assert answer.json["fallback_action"]["next_agent"] == "tech_lead"
    assert answer.json["suggestion"]


def test_a_group_need_not_be_named(shell: Shell) -> None:
    assert ask(shell, "validator", "REJECT", group=None).json["next_agent"] == "project_manager"
    assert ask(shell, "validator", "REJECT", group="global").json["group_id"] == "global"


@pytest.mark.parametrize("left_out", ["--current-agent", "--status", "--session-id"])
def test_what_a_route_needs_is_asked_for(shell: Shell, left_out: str) -> None:
    given = {"--current-agent": "developer", "--status": "PARTIAL", "--session-id": "s"}
    words = [word for flag, value in given.items() if flag != left_out for word in (flag, value)]
    answer = shell.call("route", *words)
    assert answer.code == 1
    assert left_out in answer.err


def test_routes_refuse_what_they_do_not_know(shell: Shell) -> None:
    assert ask(shell, "developer", "PARTIAL", "--testing-mode", "some").code == 1
    assert ask(shell, "developer", "PARTIAL", group="nope").code == 1
    assert shell.call("route", "--current_agent=developer", "--status=PARTIAL", "--session_id=nope").code == 1


def test_a_route_may_name_its_database_after_the_command(shell: Shell) -> None:
    words = ("--current-agent", "developer", "--status", "PARTIAL", "--session-id", "s", "--group-id", "A")
    assert shell.run("route", *words, "--db", shell.db).code == 0
