"""What an answer leaves out for those who pay for every character."""

import re
from pathlib import Path

import pytest

from decklog.cli.exits import USER_JSON_FIELDS, OutputShape
from tests.cli.conftest import Program
from tests.registry import records

FULL = ["ok", "data", "next", "warnings"]


@pytest.fixture
def task(decklog: Program, log_folder: Path) -> str:
    assert decklog("tasks", "add", "run_1", "work", "--task", "t1", "--inputs", '{"a": null, "b": []}').code == 0
    return "t1"


def test_brief_leaves_empty_fields_out_and_says_how_many(decklog: Program, task: str) -> None:
    whole = decklog("tasks", "show", task, "--json")
    brief = decklog("tasks", "show", task, "--json", "--brief")
    filled = {name: value for name, value in whole.data.items() if value not in (None, "", [], {})}
    assert brief.data == filled
    assert brief.data["open_dependencies"] == 0
    assert brief.data["inputs"] == {"a": None, "b": []}, "what is the user's own is shown as it is"
    left = len(whole.data) - len(filled)
    assert brief.envelope == {"ok": True, "data": filled, "left_out": f"{left} empty fields; --no-brief shows them"}
    assert len(brief.out) < 0.6 * len(whole.out)


@pytest.mark.slow
def test_fields_keep_only_those_in_the_order_they_are_asked_for(decklog: Program, task: str) -> None:
    said = decklog("tasks", "find", "run_1", "--json", "--fields", "title,id")
    assert [list(row.items()) for row in said.data] == [[("title", "work"), ("id", "t1")]]
    assert said.envelope["left_out"].endswith("other fields")
    assert list(decklog("tasks", "ready", "run_1", "--fields=id", "--json").data["ready"][0]) == ["id"]
    assert decklog("tasks", "find", "run_1", "--fields", "id,title").out.split() == ["id", "title", "t1", "work"]


@pytest.mark.slow
def test_a_field_that_there_is_not_is_told_with_the_one_that_was_meant(decklog: Program, task: str) -> None:
    said = decklog("tasks", "show", task, "--json", "--fields", "id,tittle")
    assert (said.code, said.data) == (0, {"id": "t1"})
    assert said.envelope["warnings"] == ["there is no field tittle in this answer. Did you mean title?"]
    assert "Did you mean title?" in decklog("tasks", "show", task, "--fields", "tittle,id").err
    assert decklog("tasks", "show", task, "--fields", ",").code == decklog("tasks", "show", task, "--fields").code == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [
        {"DECKLOG_AGENT": "qa"},
        {"DECKLOG_WORKER": "w"},
        {"CLAUDECODE": "1"},
        {"CODEX_THREAD_ID": "x"},
        {"GEMINI_CLI": "1"},
        {"OPENCODE": "1"},
    ],
)
def test_an_agent_gets_brief_answers_without_asking(decklog: Program, task: str, variables: dict[str, str]) -> None:
    assert "next" not in decklog("tasks", "show", task, "--json", **variables).envelope
    assert list(decklog("tasks", "show", task, "--json", "--no-brief", **variables).envelope) == FULL


@pytest.mark.slow
def test_others_get_all_of_it_unless_they_name_an_agent(decklog: Program, task: str) -> None:
    assert list(decklog("tasks", "show", task, "--json").envelope) == FULL
    assert "left_out" in decklog("runs", "count-cycle", "run_1", "--agent", "qa", "--json").envelope
    assert list(decklog("journal", "find", "run_1", "--agent", "qa", "--json").envelope) == FULL, "here it is what is looked for"


@pytest.mark.slow
def test_errors_and_empty_answers_stay_what_they_are(decklog: Program, log_folder: Path) -> None:
    said = decklog("tasks", "show", "nobody", "--json", "--brief")
    assert (said.code, said.envelope["ok"], said.envelope["error"]["code"]) == (3, False, "not_found")
    assert decklog("tasks", "find", "run_1", "--json", "--brief").envelope == {"ok": True, "data": []}
    claim = decklog("tasks", "claim", "run_1", "--worker", "w", "--json", "--brief").envelope
    assert (claim["data"], claim["reason"]["code"]) == (None, "no_tasks")


def test_every_column_of_users_json_is_shown_as_it_is() -> None:
    columns = {
        name
        for record in records()
        for name, field in record.__dataclass_fields__.items()
        if re.search(r"\bdict\b|\bobject\b", str(field.type))
    }
    # What a template or a schedule makes are tasks as `tasks add` takes them, where what is empty is what is not given.
    # What shows a proposal, and what a review or a mend is made of, nobody wrote by hand.
    of_mends = {"triage", "plan", "places", "tests", "proof", "published"}
    assert columns - USER_JSON_FIELDS == {"task", "tasks", "evidence", "reasons", "passes", "skipped"} | of_mends


def test_a_shape_that_asks_for_nothing_changes_nothing() -> None:
    data = {"a": None, "b": [{"c": ""}]}
    assert OutputShape().is_whole
    assert OutputShape().of_data(data) == data
