"""Sessions and state: every call and every refusal."""

from collections.abc import Callable

import pytest

from tests.every import every
from tests.plugins.legacy.bazinga.shell import ANY, Case, Shell, gives, prints, refused, refused_as_json, silent, try_case

_ROW = {"session_id": "s", "mode": "parallel", "status": "active", "end_time": None, "initial_branch": "main"}

SESSIONS = [
    gives("create-session", "n", "simple", "Do it", success=True, session_id="n", mode="simple", status="active"),
    gives("create-session", "n", "parallel", "Do it", initial_branch="main", metadata=None, start_time=ANY, created_at=ANY),
    gives("create-session", "n", "simple", "Do it", "--initial_branch", "dev", initial_branch="dev"),
    gives("create-session", "n", "simple", "Do it", "--initial-branch=dev", initial_branch="dev"),
    gives("create-session", "n", "simple", "Do it", "--metadata", '{"a": 1}', metadata='{"a": 1}'),
    gives("create-session", "--metadata={}", "n", "simple", "Do it", success=True),
    gives("create-session", "s", "simple", "Other", session_id="s", mode="parallel", status="active"),
    refused("create-session", "", "simple", "Do it", because="session_id cannot be empty"),
    refused("create-session", "n", "simple", "  ", because="requirements cannot be empty"),
    refused("create-session", "n", "both", "Do it", because="Invalid mode"),
    refused("create-session", because="ID, MODE, REQUIREMENTS"),
    refused("create-session", "n", "simple", "Do it", "--metadata", because="--metadata requires a value"),
    refused("create-session", "n", "simple", "Do it", "--metadata", "{", because="Invalid JSON in metadata"),
    refused("create-session", "n", "simple", "Do it", "--metadata", "[1]", because="JSON object"),
    refused("create-session", "has blank", "simple", "Do it", because="no blanks"),
    gives("get-session", "s", **_ROW, original_requirements="Read trailing commas", metadata='{"project_id": "p"}'),
    refused_as_json("get-session", "nope", because="Session not found: nope"),
    refused_as_json("get-session", because="Missing argument: ID"),
    prints("list-sessions", value=[_ROW]),
    prints("list-sessions", "1", value=[_ROW]),
    prints("list-sessions", "-1", value=[_ROW]),
    prints("list-sessions", "0", value=[]),
    silent("update-session-status", "s", "completed"),
    silent("update-session-status", "s", "failed"),
    silent("update-session-status", "s", "active"),
    silent("update-session-status", "s", "paused"),
    silent("update-session-status", "s", "cancelled"),
    refused_as_json("update-session-status", "s", "done", because="Invalid status"),
    refused_as_json("update-session-status", "nope", "completed", because="Session not found: nope"),
    refused_as_json("update-session-status", "nope", "active", because="Session not found: nope"),
    silent("update-session", "s", "--status", "completed"),
    silent("update-session", "s", "-s", "failed"),
    silent("update-session", "s", "--status=active"),
    refused_as_json("update-session", "s", because="--status STATUS is required"),
    refused_as_json("update-session", "s", "--status", "-x", because="--status STATUS is required"),
    refused_as_json("update-session", "s", "--status", "done", because="Invalid status"),
    silent("complete-session", "s"),
    refused("complete-session", "nope", because="Session not found: nope"),
]

STATES = [
    gives("save-state", "s", "pm", '{"a": 1}', success=True, session_id="s", state_type="pm", group_id="global"),
    gives("save-state", "s", "orchestrator", "[1, 2]", state_type="orchestrator"),
    gives("save-state", "s", "group_status", "null", "--group-id", "A", group_id="A"),
    gives("save-state", "s", "group_status", '"text"', "--group_id=B", group_id="B"),
    gives("save-state", "s", "investigation", "{}", "--group-id=A", group_id="A"),
    gives("save-state", "s", "pm", "--state-file", "FILES/state.json", success=True),
    gives("save-state", "s", "pm", "--state_file=FILES/state.json", success=True),
    refused("save-state", "s", "other", "{}", because="Invalid state_type"),
    refused("save-state", "s", "investigation", "{}", because="cannot be 'global'"),
    refused("save-state", "s", "investigation", "{}", "--group-id", "GLOBAL", because="cannot be 'global'"),
    refused("save-state", "s", "pm", "{", because="Invalid JSON"),
    refused("save-state", "s", "pm", because="give one state"),
    refused("save-state", "s", "pm", "{}", "--state-file", "FILES/state.json", because="give one state"),
    refused("save-state", "s", "pm", "--state-file", "FILES/none.json", because="can't be read"),
    refused("save-state", "s", "pm", "--state-file", "FILES/bad.json", because="Invalid JSON"),
    refused("save-state", "s", "pm", "{}", "--group-id", "a b", because="alphanumeric"),
    refused("save-state", "s", "pm", "{}", "--group-id", "", because="cannot be empty"),
    refused("save-state", "s", "pm", "{}", "--group-id=" + "x" * 65, because="too long (max 64 chars, got 65)"),
    refused("save-state", "nope", "pm", "{}", because="Session not found: nope"),
    prints("get-state", "s", "pm", value={"phase": 1}),
    prints("get-state", "s", "group_status", "--group-id", "A", value={"of": "A"}),
    prints("get-state", "s", "group_status", "--group_id=A", value={"of": "A"}),
    prints("get-state", "s", "group_status", value=None),
    prints("get-state", "s", "other", value=None),
    prints("get-state", "s", "investigation", value=None),
    prints("get-state", "nope", "pm", value=None),
    refused("get-state", "s", "pm", "--group-id", "a/b", because="alphanumeric"),
]

_FILES = ("--state-file", "FILES/state.json", "--event-file", "FILES/event.json")
INVESTIGATIONS = [
    gives(
        *("save-investigation-iteration", "s", "A", "1", "under_investigation", *_FILES),
        success=True,
        atomic=True,
        state_saved=True,
        event_saved=True,
        event_id=ANY,
        iteration=1,
        idempotent=False,
        redacted=False,
    ),
    gives(
        *("save-investigation-iteration", "s", "A", "20", "completed"),
        *("--state_file=FILES/state.json", "--event_file=FILES/event.json"),
        iteration=20,
    ),
    refused("save-investigation-iteration", "s", "global", "1", "blocked", *_FILES, because="cannot be 'global'"),
    refused("save-investigation-iteration", "s", "a b", "1", "blocked", *_FILES, because="alphanumeric"),
    refused("save-investigation-iteration", "s", "A", "0", "blocked", *_FILES, because="from 1 to 20"),
    refused("save-investigation-iteration", "s", "A", "21", "blocked", *_FILES, because="from 1 to 20"),
    refused("save-investigation-iteration", "s", "A", "1", "thinking", *_FILES, because="status must be one of"),
    refused("save-investigation-iteration", "s", "A", "1", "blocked", *_FILES[:2], because="--event-file"),
    refused(
        *("save-investigation-iteration", "s", "A", "1", "blocked", *_FILES[:2], "--event-file", "FILES/bad.json"),
        because="Invalid JSON",
    ),
    refused(
        *("save-investigation-iteration", "s", "A", "1", "blocked", *_FILES[2:], "--state-file", "FILES/none.json"),
        because="can't be read",
    ),
    Case(
        ("save-investigation-iteration", "nope", "A", "1", "blocked", *_FILES),
        1,
        lambda answer: _same(answer.json, {"success": False, "error": "Session not found: nope", "atomic": False}),
    ),
]


def _same(found: object, expected: object) -> None:
    assert found == expected


@pytest.mark.slow
@every("case", SESSIONS + STATES + INVESTIGATIONS, ids=lambda case: case.name)
def test_a_call_about_sessions_and_states_is_answered(project: Callable[[], Shell], case: Case) -> None:
    try_case(project(), case)


def test_a_new_session_answers_with_its_keys_in_order(shell: Shell) -> None:
    made = shell.ok("create-session", "n", "simple", "Do it")
    assert list(made) == [
        *("success", "session_id", "mode", "status", "start_time", "created_at", "initial_branch", "metadata"),
    ]
    again = shell.ok("create-session", "n", "simple", "Do it")
    assert list(again) == ["session_id", "mode", "status", "start_time", "created_at"]


def test_an_unknown_status_names_the_valid_ones(shell: Shell) -> None:
    import json

    answer = shell.call("update-session-status", "s", "done")
    assert json.loads(answer.err)["valid_statuses"] == ["active", "completed", "failed", "paused", "cancelled"]


def test_ending_a_session_stamps_it_and_taking_it_up_again_clears_the_stamp(shell: Shell) -> None:
    shell.ok("complete-session", "s")
    assert shell.ok("get-session", "s")["end_time"] is not None
    shell.ok("update-session-status", "s", "active")
    assert shell.ok("get-session", "s")["end_time"] is None


def test_saving_a_state_again_replaces_it(shell: Shell) -> None:
    shell.ok("save-state", "s", "pm", '{"phase": 2}')
    assert shell.ok("get-state", "s", "pm") == {"phase": 2}


def test_the_dashboard_of_an_unknown_session_is_empty(shell: Shell) -> None:
    found = shell.ok("dashboard-snapshot", "nope")
    assert found["session"] is found["pm_state"] is found["orchestrator_state"] is None
    assert (found["task_groups"], found["recent_logs"], found["token_summary"]) == ([], [], {"total": 0})


def test_the_dashboard_shows_the_whole_session(shell: Shell) -> None:
    found = shell.ok("dashboard-snapshot", "s")
    assert list(found)[:6] == ["session", "orchestrator_state", "pm_state", "task_groups", "token_summary", "recent_logs"]
    assert found["pm_state"] == {"phase": 1}
    assert [group["id"] for group in found["task_groups"]] == ["A", "B"]
    assert found["token_summary"] == {"developer": 100, "qa_expert": 50, "total": 150}
    kinds = [row["log_type"] for row in found["recent_logs"]]
    assert kinds == ["event", "reasoning", "reasoning", "interaction", "interaction"]
    assert [row["criterion"] for row in found["criteria"]] == ["Tests pass", "Docs exist"]
