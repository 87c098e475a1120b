"""`decklog run` as a person uses it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Program, Said
from tests.conductor.plans import TRIPLE, work_item
from tests.conductor.repositories import everything, git, write
from tests.conductor.scripts import script


class Person:
    """Somebody in a repository, with a log and a plan beside it."""

    def __init__(self, decklog: Program, repository: Path, target: str) -> None:
        self.program = decklog
        self.target = target
        self.repository = repository
        self._settings = {"DECKLOG_DB": target, "XDG_STATE_HOME": str(repository.parent / "state")}

    def call(self, *words: str, **variables: str) -> Said:
        return self.program(*words, cwd=self.repository, **self._settings, **variables)

    def plan(self, *items: dict[str, Any]) -> str:
        path = self.repository.parent / "plan.json"
        path.write_text(json.dumps({"goal": "Make it better", "items": items}), encoding="utf-8")
        return str(path)


@pytest.fixture
def person(decklog: Program, checked: Path, sqlite_target: str) -> Person:
    return Person(decklog, checked, sqlite_target)


@pytest.mark.slow
def test_a_plan_is_taken_through_a_repository_and_landed_by_the_person(person: Person) -> None:
    write(person.repository, {"mine.txt": "untouched\n"})
    before = everything(person.repository)
    done = person.call("run", "--plan", person.plan(work_item("triple", TRIPLE)))
    assert (done.code, everything(person.repository)) == (0, before), done
    assert "1 item: 1 landed" in done.out
    run_id = done.out.rsplit("decklog run land ", 1)[1].strip()
    assert person.call("run", "land", run_id, "--dry-run").out.startswith("1 file would land on main: ")
    assert person.call("run", "land", run_id).out.startswith("1 file landed on main: ")
    assert person.call("run", "land", run_id, "--json").data["already"]
    assert "def triple" in (person.repository / "calc.py").read_text()
    assert person.call("run", "rescue", run_id, "--json").data[0]["what"] == "target"
    assert "0 refs and 0 folders removed" in person.call("run", "gc").out
    stands = person.call("run", "watch", run_id, "--no-follow", "--json").data
    assert (stands["status"], stands["outcome"], stands["items"][0]["state"]) == ("completed", "landed", "landed")


@pytest.mark.slow
def test_what_needs_a_person_or_is_blocked_says_so_and_each_change_is_an_object(person: Person) -> None:
    plan = person.plan(work_item("settings", ["write", "setup.cfg", ""]), work_item("nothing"))
    done = person.call("run", "--plan", plan, "--json")
    assert done.code == 7
    *changes, last = [json.loads(line) for line in done.out.splitlines()]
    assert last["outcome"] == "needs attention"
    seen = {one["name"]: one for one in changes}
    assert seen["settings"]["state"] == "needs attention"
    assert (seen["nothing"]["state"], seen["nothing"]["detail"].split()[0]) == ("blocked", "no-change:")
    watched = person.call("run", "watch", last["run_id"])
    assert watched.code == 7
    assert "waits for approval" in watched.out


@pytest.mark.slow
def test_whoever_watches_is_told_why_an_item_is_worked_on_again(person: Person) -> None:
    plan = person.plan(work_item("add", ["replace", "calc.py", "return a + b", "return a - b"]))
    killed = person.call("run", "--plan", plan, DECKLOG_CONDUCTOR_KILL_AT="place:intended#2", LC_ALL="C.UTF-8")
    assert killed.code != 0
    said = person.call("run", "watch", "--no-follow").out
    assert "round 2, 2 attempts; last found: tests: test_calc.py::test_add and 1 more" in said, said


@pytest.mark.slow
def test_a_run_that_is_stopped_goes_on_with_the_same_plan(person: Person) -> None:
    plan = person.plan(work_item("triple", TRIPLE))
    killed = person.call("run", "--plan", plan, DECKLOG_CONDUCTOR_KILL_AT="stages:worked", LC_ALL="C.UTF-8")
    assert killed.code != 0
    (run,) = person.call("runs", "find", "--json").data
    assert person.call("run", "stop", run["id"], "--json").data["status"] == "paused"
    (stopped,) = person.call("journal", "find", run["id"], "--limit", "1", "--json").data
    git(person.repository.parent, "clone", "-q", str(person.repository), "clone")
    elsewhere = Person(person.program, person.repository.parent / "clone", person.target)
    refused = elsewhere.call("run", "work", run["id"])
    assert (refused.code, f"works on {person.repository}" in refused.err, "can be joined" in refused.err) == (5, True, True), (
        refused
    )
    done = person.call("run", "--plan", plan)
    assert (done.code, f"resuming run {run['id']}" in done.err) == (0, True), done
    # The same from where it was stopped, beside it.
    forked = person.call("run", "fork", run["id"], "--at", str(stopped["seq"]), "--as", "again", "--budget", "5")
    assert (forked.code, "run again goes on from" in forked.err, "1 item: 1 landed" in forked.out) == (0, True, True), forked


@pytest.mark.slow
def test_a_completed_plan_is_not_worked_again_unless_that_is_asked_for(person: Person) -> None:
    plan = person.plan(work_item("triple", TRIPLE))
    assert person.call("run", "--plan", plan).code == 0
    (run,) = person.call("runs", "find", "--json").data
    refused = person.call("run", "--plan", plan)
    assert (refused.code, f"run {run['id']} has completed this already" in refused.err) == (5, True), refused
    assert f"decklog run land {run['id']}" in refused.err
    assert "--again" in refused.err
    assert len(person.call("runs", "find", "--json").data) == 1
    assert person.call("run", "--plan", plan, "--again").code == 0
    assert len(person.call("runs", "find", "--json").data) == 2


BAD: dict[str, tuple[list[str], int, str]] = {
    "no plan": (["run"], 2, "needs a goal or a plan"),
    "no file": (["run", "--plan", "nowhere.toml"], 2, "can't be read"),
    "no commit": (["run", "--plan", "{plan}", "--commit", "nowhere"], 3, "there is no commit"),
    "no command": (["run", "wach"], 2, "wach"),
    "no run": (["run", "watch", "run_none"], 3, "run_none"),
    "nothing to join": (["run", "work", "run_none"], 3, "run_none"),
    "not ours": (["run", "stop", "run_none"], 3, "run_none"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BAD)
def test_a_call_that_is_wrong_says_what_to_do_and_writes_nothing(person: Person, kind: str) -> None:
    words, code, message = BAD[kind]
    plan = person.plan(work_item("it", TRIPLE))
    said = person.call(*(word.replace("{plan}", plan) for word in words))
    assert (said.code, message in said.err) == (code, True), said
    assert git(person.repository, "for-each-ref", "refs/decklog") == ""
    assert person.call("runs", "find", "--json").data == []


@pytest.mark.slow
def test_what_a_run_would_need_is_told_without_writing(person: Person) -> None:
    assert person.call("run", "--check").out == "Ready: a run has everything that it needs.\n"
    settings = person.repository / "decklog.toml"
    settings.write_text(settings.read_text().replace('commits = "conductor"', 'commits = "conductor"\nextends = "codex"'))
    git(person.repository, "commit", "-q", "-a", "-m", "Extends")
    assert person.call("run", "--check").code == 0
    settings.write_text("[agents.a]\ncommand = ['no-such-agent']\n[[checks]]\nname = 't'\ncommand = ['no-such-check']\n")
    git(person.repository, "commit", "-q", "-a", "-m", "Missing")
    told = person.call("run", "--check", "--json")
    assert told.code == 1
    assert [problem.split(",")[0] for problem in told.data["problems"]] == [
        "agent a needs the program 'no-such-agent'",
        "check t needs the program 'no-such-check'",
    ]
    settings.write_text("[run]\nremote = 'nowhere'\n" + settings.read_text())
    git(person.repository, "commit", "-q", "-a", "-m", "Shared with nobody")
    assert "this clone has no remote 'nowhere'" in person.call("run", "--check").out
    git(person.repository, "remote", "add", "nowhere", str(person.repository.parent / "nowhere.git"))
    assert "remote nowhere can't be reached" in person.call("run", "--check").out
    assert person.call("run", "--check", "--commit", "nowhere").code == 1
    assert not (person.repository.parent / "state").exists()
    refused = person.call("run", "--plan", person.plan(work_item("it", TRIPLE)))
    assert (refused.code, "which is not installed" in refused.err) == (1, True), refused


def test_known_agents_are_listed(person: Person) -> None:
    names = [row["name"] for row in person.call("run", "agents", "--json").data]
    plain = ["claude-code", "codex", "command", "gemini", "opencode"]
    assert names == sorted([*plain, "acp", "claude-acp", "codex-acp", "gemini-acp", "opencode-acp"])


@pytest.mark.slow
def test_a_goal_is_planned_shown_and_worked_after_a_yes(person: Person) -> None:
    plan = json.dumps({"items": [work_item("triple", TRIPLE)]})
    goal = "Make it better\n" + script(["write", "decklog-plan.json", plan])
    asked = person.call("run", goal)
    assert asked.code == 7
    assert "  triple           Item triple" in asked.out
    approval = asked.out.split("decklog approvals decide ")[1].split()[0]
    assert person.call("approvals", "decide", approval, "granted", "--by", "ana").code == 0
    done = person.call("run", goal)
    assert (done.code, "1 item: 1 landed" in done.out) == (0, True), done


@pytest.mark.slow
def test_landing_a_run_whose_first_commit_was_red_names_that(person: Person) -> None:
    write(person.repository, {"tests/test_red.py": "def test_red():\n    assert False\n"})
    git(person.repository, "add", "-A")
    git(person.repository, "commit", "-q", "-m", "Red")
    assert person.call("run", "--plan", person.plan(work_item("triple", TRIPLE))).code != 0
    refused = person.call("run", "land")
    assert "did not start, so it has nothing to land: " in refused.err, refused
    assert "--from-red" in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.slow
def test_the_error_that_an_agent_wrote_is_in_the_reason_in_now_and_in_the_question(person: Person) -> None:
    settings = person.repository / "decklog.toml"
    settings.write_text(settings.read_text() + "[roles]\nstrategist = []\n")
    git(person.repository, "commit", "-q", "-a", "-m", "No strategist")
    done = person.call(
        "run", "--plan", person.plan(work_item("bad", ["run", ["sh", "-c", "echo unknown option --flag >&2"]], ["exit", 2]))
    )
    assert "unknown option --flag" in done.out, done
    run_id = person.call("runs", "find", "--json").data[0]["id"]
    assert "unknown option --flag" in str(person.call("now", "--json").data)
    (question,) = person.call("approvals", "find", run_id, "--state", "open", "--json").data
    assert "unknown option --flag" in question["question"]
    assert person.call("ledger", "find", run_id, "--json").data == [], "no model was asked"
