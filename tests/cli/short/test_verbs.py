"""What each command of the short way answers, and with which exit code."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Program

AGAIN, OVER = 7, 0


def test_a_run_without_tasks_may_get_some(decklog: Program, log_folder: Path) -> None:
    said = decklog("next", "--json")
    assert (said.code, said.data, said.envelope["reason"]["code"]) == (AGAIN, None, "no_tasks")


@pytest.mark.slow
def test_tasks_that_others_have_may_come_back(decklog: Program, log_folder: Path) -> None:
    decklog("plan", "one")
    decklog("next", "--as", "other")
    said = decklog("next", "--as", "me")
    assert (said.code, said.out.endswith("Wait for one: decklog next --wait 60\n")) == (AGAIN, True)


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--run", "run_1"]])
def test_when_everything_is_done_it_is_over(decklog: Program, log_folder: Path, words: list[str]) -> None:
    decklog("plan", "one")
    decklog("next")
    decklog("done")
    assert decklog("next", *words).code == OVER
    decklog("runs", "finish", "run_1")
    assert decklog("next", *words).code == OVER


@pytest.mark.slow
def test_a_paused_run_may_go_on_and_a_role_may_find_its_task(decklog: Program, log_folder: Path) -> None:
    decklog("plan", "one")
    assert decklog("next", "--role", "qa", "--json").envelope["reason"]["code"] == "no_match"
    decklog("runs", "update", "run_1", "--status", "paused")
    paused = decklog("next", "--run", "run_1", "--json")
    assert (paused.code, paused.envelope["reason"]["code"]) == (AGAIN, "run_paused")


@pytest.mark.slow
def test_of_several_runs_the_one_from_which_something_may_come_decides(decklog: Program, log_folder: Path) -> None:
    decklog("plan", "one", "--run", "run_1")
    decklog("next", "--as", "other")
    decklog("runs", "start", "over", "--run", "run_2")
    decklog("plan", "two", "--run", "run_2")
    decklog("next")
    decklog("done")
    assert decklog("next").code == AGAIN
    decklog("done", "--as", "other")
    assert decklog("next").code == OVER


@pytest.mark.slow
def test_waiting_gets_a_task_that_becomes_ready(decklog: Program, log_folder: Path) -> None:
    decklog("plan", "one")
    decklog("next", "--as", "other", "--lease", "0.2")
    assert decklog("next", "--as", "me", "--wait", "30").out.splitlines()[0].endswith("  one")


# What a task tells


@pytest.mark.slow
def test_a_second_try_knows_what_became_of_the_first(decklog: Program, log_folder: Path) -> None:
    decklog("plan", "-", stdin=json.dumps([{"title": "one", "inputs": {"seed": 7}, "stage": "build"}]))
    decklog("next", "--as", "first")
    decklog("ask", "May I?", "--as", "first")
    assert "try 1 of 3" in decklog("fail", "no network", "--as", "first").out
    lines = decklog("next", "--as", "second").out.splitlines()
    assert lines[1:] == [
        '  given: {"seed": 7}',
        "  so far: build",
        "  last try: no network",
        "  asked: May I? -> no answer yet",
    ]
    data = decklog("next", "--as", "second", "--json").data
    assert (data["attempt"], data["last_try"], data["answers"][0]["state"]) == (2, "no network", "open")


@pytest.mark.slow
def test_a_blocked_task_waits_for_somebody(decklog: Program, log_folder: Path) -> None:
    decklog("plan", "one")
    task = decklog("next", "--json").data["task"]
    assert decklog("block", "the key is missing").out == f"blocked: {task}  one (blocked)\n"
    assert decklog("next", "--json").envelope["reason"]["code"] == "held"
    decklog("tasks", "resume", task)
    assert decklog("next").out.splitlines()[0] == f"{task}  one"


# Questions


@pytest.mark.slow
def test_a_question_is_for_the_exact_content_it_was_asked_about(decklog: Program, log_folder: Path) -> None:
    (log_folder / "plan.md").write_text("first")
    asked = decklog("ask", "Is this right?", "--about", "plan.md", "--options", "yes", "--options", "no", "--json")
    again = decklog("ask", "Is this right?", "--about", "plan.md", "--options", "yes", "--options", "no", "--json")
    assert (asked.code, asked.data) == (again.code, again.data)
    (log_folder / "plan.md").write_text("second")
    other = decklog("ask", "Is this right?", "--about", "plan.md", "--options", "yes", "--options", "no", "--json")
    assert other.data["approval"] != asked.data["approval"]
    record = decklog("approvals", "show", asked.data["approval"], "--json").data
    assert (record["subject"], record["payload"]) == ("plan.md", {"options": ["yes", "no"]})


@pytest.mark.slow
@pytest.mark.parametrize(("verdict", "code"), [("granted", 0), ("denied", 6)])
def test_the_exit_code_is_the_verdict(decklog: Program, log_folder: Path, verdict: str, code: int) -> None:
    question = decklog("ask", "May I?", "--about", "-", "--json", stdin="the thing").data["approval"]
    assert decklog("ask", "May I?", "--about", "-", "--wait", "0.01", stdin="the thing").code == 7
    decklog("approvals", "decide", question, verdict, "--by", "em")
    heard = decklog("ask", "May I?", "--about", "-", stdin="the thing")
    assert (heard.code, heard.out) == (code, f"{question}: {verdict} by em\n")


# Money and plans


@pytest.mark.slow
def test_what_is_spent_past_a_budget_is_recorded_and_told(decklog: Program, log_folder: Path) -> None:
    decklog("budgets", "set", "run", "--scope-id", "run_1", "--limit", "1.00")
    assert decklog("spend", "m", "--in", "5", "--cost", "0.4").code == 0
    over = decklog("spend", "m", "--out", "5", "--cost", "0.9")
    assert (over.code, "a budget is overdrawn" in over.out) == (6, True)
    assert decklog("ledger", "summary", "run_1", "--json").data["total"]["cost_microdollars"] == 1_300_000


@pytest.mark.slow
def test_a_plan_comes_from_lines_and_shows_how_it_stands(decklog: Program, log_folder: Path) -> None:
    lines = "- [ ] Change the lexer\n    a comma is a token\n\n2. Change the parser\n* Write it down\n"
    assert len(decklog("plan", "-", "--in-order", stdin=lines).out.splitlines()) == 3
    assert decklog("plan", "one", "--key", "k").out in decklog("plan", "one", "--key", "k").out
    decklog("next", "--as", "me")
    shown = [line.partition("  ")[2] for line in decklog("plan").out.splitlines()]
    assert shown == [
        "a goal (running)",
        "Change the lexer (me)",
        "Change the parser (waits for 1)",
        "Write it down (waits for 1)",
        "one",
    ]
    assert decklog("tasks", "find", "run_1", "--json").data[0]["objective"] == "a comma is a token"


@pytest.mark.slow
def test_a_plan_of_which_one_task_is_wrong_adds_none(decklog: Program, log_folder: Path) -> None:
    assert decklog("plan", "good", " ").code == 1
    assert decklog("plan", "-", stdin='[{"title": "x", "priority": 900}, "y"]').code == 1
    assert decklog("tasks", "find", "run_1", "--json").data == []


@pytest.mark.slow
def test_a_lesson_is_found_again(decklog: Program, log_folder: Path) -> None:
    assert decklog("recall", "trailing", "commas").out == "No matching lessons.\n"
    decklog("remember", "Trailing commas are tokens of their own")
    assert "Trailing commas are tokens" in decklog("recall", "trailing", "commas").out
    [told] = decklog("recall", "trailing", "commas", "--json").data
    assert (told["why"].partition(";")[0], told["contradicted_by"], told["outdated_by"]) == ("shares trailing, commas", [], None)


@pytest.mark.slow
def test_a_recalled_lesson_that_others_contradict_or_that_is_outdated_says_so(decklog: Program, log_folder: Path) -> None:
    one = decklog("remember", "Run the migrations before the deploy", "--json").data["lesson"]
    other = decklog("remember", "Run the migrations after the deploy", "--json").data["lesson"]
    decklog("memory", "remember", "task_outcomes", "Seed the fixtures by hand", "--scope", '{"paths": ["seeds"]}')
    decklog("memory", "outdate", "--paths", "seeds/all.sql")
    found = decklog("recall", "migrations", "deploy").out
    assert f"(task_outcomes, seen 1x; contradicted by {one})" in found
    assert f"(task_outcomes, seen 1x; contradicted by {other})" in found
    assert "(task_outcomes, seen 1x; outdated: seeds/all.sql changed)" in decklog("recall", "seed", "fixtures").out


@pytest.mark.slow
def test_a_recorded_session_is_never_the_run_that_is_meant(decklog: Program, log_folder: Path) -> None:
    facts = json.dumps({"program": "claude", "session": "s1"})
    for number in range(12):
        assert decklog("runs", "start", "Session of claude", "--run", f"claude-{number}", "--metadata", facts).code == 0
    assert decklog("plan", "First", "Second").code == 0
    assert decklog("note", "It is a plan").code == 0
    assert decklog("plan").out.startswith("run_1  a goal")
    assert decklog("runs", "finish", "run_1").code == 0
    none = decklog("plan", "Third")
    assert (none.code, "no run is under way" in none.err) == (3, True), none
