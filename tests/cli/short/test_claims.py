"""Whose task it is, when calls name neither worker nor fence: real agents in processes of their own."""

import stat
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.conftest import Program
from tests.cli.short.conftest import Agent

Start = Callable[..., Agent]


@pytest.fixture
def tasks(decklog: Program, log_folder: Path) -> Path:
    for name in ("one", "two"):
        assert decklog("tasks", "add", "run_1", f"Task {name}", "--task", name).code == 0
    return log_folder


@pytest.mark.slow
def test_an_agent_has_one_task_until_it_ends_it(agent: Start, tasks: Path) -> None:
    me = agent()
    assert me("next").out == me("next").out == "one  Task one\n"
    assert me("done").out.startswith("done: one")
    assert me("done").out.startswith("done already: one")
    assert me("next").out == "two  Task two\n"


@pytest.mark.slow
def test_two_agents_in_one_folder_have_a_task_each(agent: Start, tasks: Path) -> None:
    first, second = agent(), agent()
    assert (first("next").out, second("next").out) == ("one  Task one\n", "two  Task two\n")
    assert (second("done").code, first("done").code) == (0, 0)


@pytest.mark.slow
def test_a_named_worker_has_its_task_in_every_shell(agent: Start, tasks: Path) -> None:
    first, second = agent(DECKLOG_WORKER="dev"), agent(DECKLOG_WORKER="dev")
    assert first("next").out == "one  Task one\n"
    assert second("note 'from another shell'").code == 0
    assert second("next").out == "one  Task one\n"
    assert second("done").out.startswith("done: one")
    assert first("done").out.startswith("done already: one")
    assert agent()("next --as other").out == "two  Task two\n"


@pytest.mark.slow
def test_a_named_worker_that_repeats_its_question_in_another_shell_does_not_ask_twice(
    agent: Start, tasks: Path, decklog: Program
) -> None:
    first, second = agent(DECKLOG_WORKER="dev"), agent(DECKLOG_WORKER="dev")
    first("next")
    asked, repeated = first("ask 'May I?'"), second("ask 'May I?'")
    assert (asked.code, repeated.code) == (7, 7)
    assert asked.out.split(":")[0] == repeated.out.split(":")[0]
    decklog("approvals", "decide", asked.out.split(":")[0], "granted", "--by", "em")
    assert second("ask 'May I?'").code == 0
    assert len(decklog("approvals", "find", "run_1", "--json").data) == 1


@pytest.mark.slow
@pytest.mark.parametrize("worker", [{"DECKLOG_WORKER": "dev"}, {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s"}])
def test_processes_of_one_worker_that_claim_at_once_get_the_same_task(agent: Start, tasks: Path, worker: dict[str, str]) -> None:
    several = [agent(**worker) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        heard = [said.out for said in pool.map(lambda one: one("next"), several)]
    assert heard == ["one  Task one\n"] * 3


@pytest.mark.slow
def test_a_killed_agent_that_starts_again_under_its_name_has_its_task_back(agent: Start, tasks: Path, decklog: Program) -> None:
    before = agent(DECKLOG_WORKER="dev")
    assert before("next").out == "one  Task one\n"
    before.kill()
    after = agent(DECKLOG_WORKER="dev")
    assert after("next").out.splitlines() == ["back: dev had this task before", "one  Task one"]
    assert decklog("tasks", "show", "one", "--json").data["attempts"] == 1
    assert after("done").code == 0


@pytest.mark.slow
def test_an_agent_session_that_is_resumed_in_another_process_has_its_task_back(agent: Start, tasks: Path) -> None:
    session = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "7d10-4c1e"}
    before = agent(**session)
    assert before("next").out == "one  Task one\n"
    before.kill()
    assert agent(**session)("done").out.startswith("done: one")


@pytest.mark.slow
def test_a_worker_whose_lease_went_to_another_has_lost_it(agent: Start, tasks: Path) -> None:
    first, second = agent(), agent()
    assert first("next --lease 0.01").out == "one  Task one\n"
    assert second("next --lease 900").out == "one  Task one\n"
    for words in ("done", "note x", "fail x", "block x", "ask x", "remember 'a lesson of it'"):
        late = first(words)
        assert (late.code, "no longer yours" in late.err) == (5, True), (words, late)
    assert first("next").out.splitlines()[1:] == ["two  Task two"]
    assert second("done").out.startswith("done: one")


@pytest.mark.slow
def test_what_was_spent_is_on_record_even_when_the_task_is_lost(agent: Start, tasks: Path, decklog: Program) -> None:
    first, second = agent(), agent()
    first("next --lease 0.01")
    second("next")
    assert first("spend m --in 5 --cost 1").code == 0
    assert [charge["is_late"] for charge in decklog("ledger", "find", "run_1", "--json").data] == [True]


@pytest.mark.slow
def test_a_shell_or_a_time_limit_between_does_not_make_another_worker(agent: Start, tasks: Path) -> None:
    me = agent()
    assert me("next").out == "one  Task one\n"
    for through in ("timeout 20", "env A=b nice", "setsid -w", "bash -c '\"$@\"' -"):
        assert me("next", through=through).out == "one  Task one\n", through


@pytest.mark.slow
def test_linked_worktrees_share_the_log_and_each_agent_keeps_its_own_task(
    agent: Start, tasks: Path, tmp_path: Path, decklog: Program
) -> None:
    def git(*words: str) -> None:
        settings = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *settings, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("commit", "--allow-empty", "-m", "x")
    git("worktree", "add", str(tmp_path / "linked"))
    here, there = agent(), agent(tmp_path / "linked")
    assert (here("next").out, there("next").out) == ("one  Task one\n", "two  Task two\n")
    assert there("done").out.startswith("done: two")


@pytest.mark.slow
def test_on_postgres_the_claim_is_remembered_beside_the_address(
    agent: Start, tmp_path: Path, decklog: Program, postgres_url: str
) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    assert decklog("init", ".", "--db", postgres_url, cwd=folder).code == 0
    decklog("runs", "start", "x", "--run", "r", cwd=folder)
    decklog("plan", "Task one", cwd=folder)
    me = agent(folder)
    task = me("next").out.split()[0]
    kept = [path for path in (folder / ".decklog" / "claims").rglob("*") if path.is_file()]
    assert [stat.S_IMODE(path.stat().st_mode) for path in kept] == [0o600]
    assert me("done").out.startswith(f"done: {task}")


@pytest.mark.slow
def test_what_is_remembered_is_for_its_owner_alone_and_holds_no_text(agent: Start, tasks: Path) -> None:
    agent()("next")
    folder = tasks / ".decklog" / "decklog.db-claims"
    (kept,) = folder.iterdir()
    assert (stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(kept.stat().st_mode)) == (0o700, 0o600)
    assert "Task one" not in kept.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "{", "[]", '{"task_id": "one"}', "\x00"])
def test_a_damaged_memory_is_none(agent: Start, tasks: Path, text: str) -> None:
    me = agent()
    me("next")
    (kept,) = (tasks / ".decklog" / "decklog.db-claims").iterdir()
    kept.write_text(text)
    assert "has no task" in me("done").err
    assert me("next").out == "two  Task two\n"


@pytest.mark.slow
def test_a_claim_that_somebody_else_made_is_named_by_task_and_fence(decklog: Program, tasks: Path) -> None:
    fence = str(decklog("tasks", "claim", "run_1", "--worker", "conductor", "--json").data["fence"])
    given = {"DECKLOG_TASK_ID": "one", "DECKLOG_FENCE": fence}
    assert decklog("next", **given).out == "one  Task one\n"
    assert decklog("note", "x", **given).code == 0
    refused = decklog("done", "--task", "one")
    assert (refused.code, "--fence N" in refused.err) == (2, True)
    assert decklog("done", "--task", "one", "--fence", "99").code == 5
    assert decklog("done", **given).out.startswith("done: one")
    assert decklog("done", **given).out.startswith("done already: one")
    over = decklog("next", **given)
    assert (over.code, over.out) == (0, "Nothing: task one is done. Nothing else was given to you.\n")
    assert decklog("tasks", "show", "two", "--json").data["state"] == "pending"


@pytest.mark.slow
def test_two_scripts_of_one_terminal_have_a_task_each(agent: Start, tasks: Path) -> None:
    script = tasks / "script.sh"
    script.write_text('"$@"\n:\n')
    me = agent()
    heard = {me("next", through=f"bash {script}").out for _ in range(2)}
    assert heard == {"one  Task one\n", "two  Task two\n"}


@pytest.mark.slow
def test_a_worker_that_forgets_its_name_is_told_it(agent: Start, tasks: Path) -> None:
    me = agent()
    assert me("next --as dev-1").out == "one  Task one\n"
    lost = me("done")
    assert (lost.code, lost.err.splitlines()[-1].strip()) == (3, "You have one as dev-1: add --as dev-1")
    assert me("done --as dev-1").code == 0


@pytest.mark.slow
def test_files_of_those_who_are_gone_are_cleared_away(agent: Start, tasks: Path) -> None:
    for _ in range(2):
        one = agent()
        one("next")
        one("done")
        one.kill()
    assert agent()("next").out == "Nothing: every task of run run_1 is done. End the run: decklog runs finish run_1\n"
    assert len(list((tasks / ".decklog" / "decklog.db-claims").iterdir())) == 1


@pytest.mark.slow
def test_a_task_in_hand_is_shown_whichever_run_is_asked_for(decklog: Program, tasks: Path) -> None:
    decklog("runs", "start", "another", "--run", "run_2")
    decklog("plan", "elsewhere", "--run", "run_2")
    assert decklog("next", "--run", "run_1").out == decklog("next", "--run", "run_2").out == "one  Task one\n"
    assert decklog("note", "of the other run", "--run", "run_2").out.startswith("noted: run_2:")
    assert decklog("journal", "find", "run_2", "--kind", "reasoning", "--json").data[0]["task_id"] is None
