"""People talk to the agents from the command line, and agents go on asking people by the same words."""

import json
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.guard.policy import judge
from tests.cli.conftest import Program
from tests.conductor.repositories import make_repository
from tests.models.conversation.talks import PASSWORD


@pytest.fixture
def bound(log_folder: Path) -> Path:
    with Decklog.open(log_folder / ".decklog" / "decklog.db") as log:
        log.trust.bind("ana", "cli", password=PASSWORD)
        log.tasks.add("run_1", "Change the lexer", task_id="lexer")
    return log_folder


@pytest.mark.slow
def test_a_message_is_acknowledged_first_and_then_told_what_became_of_it(decklog: Program, bound: Path) -> None:
    said = decklog("ask", "what tier?", "--from", "ana")
    first, second = said.out.splitlines()
    assert said.code == 0
    assert "Got your message (question)" in first
    assert second == "Tier 0, Read-only observer; owner ana."
    noted = decklog("note", "The grammar is in docs/", "--from", "ana", "--run", "run_1", "--json")
    assert (noted.code, noted.data["intent"], noted.data["message"]["severity"]) == (7, "free_form", "info")
    assert noted.data["message"]["run_id"] == "run_1"


@pytest.mark.slow
def test_a_critical_word_pauses_the_task_and_an_order_without_a_proof_is_refused(decklog: Program, bound: Path) -> None:
    said = decklog("critical", "Stop, this deletes data", "--from", "ana", "--task", "lexer", "--json")
    assert (said.code, said.data["message"]["paused_task_id"]) == (7, "lexer")
    refused = decklog("ask", "promote: I am ana, really", "--from", "ana", "--json")
    error = json.loads(refused.out)["error"]
    assert (refused.code, error["code"], error["details"]["intent"]) == (4, "unproven", "promote_tier")
    assert decklog("trust", "show", "--json").data["tier"] == 0
    assert decklog("inbox", "show", error["details"]["message_id"], "--json").data["state"] == "pending"


@pytest.mark.slow
def test_agents_ask_as_ever_and_do_not_speak_for_people(decklog: Program, bound: Path) -> None:
    asked = decklog("ask", "May I push?", "--run", "run_1", "--json")
    assert (asked.code, asked.data["state"]) == (7, "open")
    for words in (("ask", "pause lexer", "--from", "ana"), ("critical", "pause lexer", "--from", "ana")):
        refused = decklog(*words, CLAUDECODE="1")
        assert refused.code == 4
        assert "a message as a person" in refused.err
    mixed = decklog("ask", "May I?", "--from", "ana", "--as", "dev-1")
    assert (mixed.code, "--as is for agents" in mixed.err) == (2, True)
    assert judge("decklog critical stop").decision == "deny"


@pytest.mark.slow
def test_the_day_is_reported_without_a_model_and_in_json(decklog: Program, bound: Path) -> None:
    said = decklog("standup")
    assert said.code == 0
    assert "- to do in run run_1: 1 task" in said.out
    told = decklog("standup", "--prose", "--json")
    assert told.data["prose"] is None
    assert told.envelope["warnings"] == ["no model is configured for standup"]


@pytest.mark.slow
def test_the_models_are_those_of_the_repositorys_newest_commit(decklog: Program, tmp_path: Path, log_folder: Path) -> None:
    settings = '[models.m]\nprovider = "scripted"\nscript = "answers.json"\n[calls]\nintent = "m"\n'
    folder = make_repository(tmp_path / "repository", {"decklog.toml": settings, "answers.json": "{}"})
    (folder / "decklog.toml").write_text("[calls]\n")
    target = str(log_folder / ".decklog" / "decklog.db")
    said = decklog("ask", "How is it?", "--from", "ana", "--json", cwd=folder, DECKLOG_DB=target)
    assert "the script has no conversation" in said.data["why"]
    plain = decklog("ask", "How is it?", "--from", "ana", "--plain", "--json", cwd=folder, DECKLOG_DB=target)
    assert plain.data["why"] == "it is not an exact command, and no model was asked"
