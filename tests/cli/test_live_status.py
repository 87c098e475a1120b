"""The live status of a run or a task, the same in every answer."""

from pathlib import Path

import pytest

from decklog import Decklog
from tests.cli.conftest import Program


@pytest.fixture
def asked(log_folder: Path) -> Path:
    """A run in which one task waits for a person, and another for nobody."""
    with Decklog.open(log_folder / ".decklog" / "decklog.db") as log:
        for name in ("push", "docs"):
            log.tasks.add("run_1", name, task_id=name)
        log.tasks.claim(worker="ana", task_id="push")
        log.approvals.ask("run_1", "Push?", by="ana", about="git push", task_id="push")
    return log_folder


@pytest.mark.slow
def test_every_answer_has_the_same_word_for_a_task(asked: Path, decklog: Program) -> None:
    word = decklog("overview", "task", "push", "--json").data["status"]
    assert word == "needs attention"
    listed = decklog("tasks", "find", "run_1", "--json").data
    assert {task["id"]: task["live_status"] for task in listed} == {"push": word, "docs": "pending"}
    assert decklog("tasks", "show", "push", "--json").data["live_status"] == word
    assert decklog("tasks", "details", "push", "--json").data["task"]["live_status"] == word
    ready = decklog("tasks", "ready", "run_1", "--json").data
    assert [(task["id"], task["live_status"]) for name in ("ready", "not_ready") for task in ready[name]] == [
        ("docs", "pending"),
        ("push", word),
    ]
    assert decklog("tasks", "board", "run_1", "--json").data[1]["cards"][0]["status"] == word
    assert {task["live_status"] for task in decklog("runs", "show", "run_1", "--json").data["tasks"]} == {word, "pending"}
    assert {task["live_status"] for task in decklog("plan", "--run", "run_1", "--json").data["tasks"]} == {word, "pending"}


@pytest.mark.slow
def test_parts_and_what_is_waited_for_have_it_too(asked: Path, decklog: Program) -> None:
    with Decklog.open(asked / ".decklog" / "decklog.db") as log:
        log.tasks.add("run_1", "ship", task_id="ship", depends_on=["push"])
        log.tasks.add("run_1", "part", task_id="part", parent_id="push")
    assert decklog("tasks", "why", "ship", "--json").data["waits_for"][0]["live_status"] == "needs attention"
    assert decklog("tasks", "subtasks", "push", "--json").data["subtasks"][0]["live_status"] == "pending"
    assert decklog("tasks", "details", "push", "--json").data["progress"]["subtasks"][0]["live_status"] == "pending"


@pytest.mark.slow
def test_every_answer_has_the_same_word_for_a_run(asked: Path, decklog: Program) -> None:
    word = decklog("overview", "run", "run_1", "--json").data["status"]
    assert word == "needs attention"
    assert decklog("runs", "find", "--json").data[0]["live_status"] == word
    assert decklog("runs", "show", "run_1", "--json").data["run"]["live_status"] == word
    assert decklog("now", "--json").data["runs"][0]["status"] == word
    assert decklog("plan", "--run", "run_1", "--json").data["live_status"] == word
    assert "(needs attention)" in decklog("plan", "--run", "run_1").out


@pytest.mark.slow
def test_a_page_keeps_its_place_and_its_fields_can_be_chosen(asked: Path, decklog: Program) -> None:
    said = decklog("tasks", "find", "run_1", "--limit", "1", "--fields", "id,live_status", "--json").envelope
    assert said["data"] == [{"id": "push", "live_status": "needs attention"}]
    rest = decklog("tasks", "find", "run_1", "--after", said["next"], "--fields", "id,live_status", "--json")
    assert rest.data == [{"id": "docs", "live_status": "pending"}]


def test_a_moment_of_the_past_has_no_word_of_today(asked: Path, decklog: Program) -> None:
    assert "live_status" not in decklog("runs", "show", "run_1", "--at", "2", "--json").data["run"]
    assert "live_status" not in decklog("journal", "at", "tasks", "push", "3", "--json").data


def test_the_board_says_how_each_task_stands(asked: Path, decklog: Program) -> None:
    said = decklog("tasks", "board", "run_1").out
    assert "▲ push" in said
    assert "○ docs" in said
