"""Every defect that bazinga-db was found to have, and that this layer must not have."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.plugins.legacy.bazinga import BazingaDB, validate_complexity, validate_scope_global_or_group
from tests.plugins.legacy.bazinga.shell import Shell

WEAK = "hunter" + "2xyz"


def test_d01_times_are_finer_than_a_second_and_ids_grow(shell: Shell) -> None:
    first, second = (shell.ok("log-interaction", "s", "developer", "x") for _ in range(2))
    assert first["log_id"] < second["log_id"]
    assert first["timestamp"] < second["timestamp"]
    assert len(first["timestamp"]) == len("2026-11-15 08:30:00.000000")


def test_d02_creating_a_group_that_is_there_takes_nothing_back(shell: Shell) -> None:
    shell.ok(
        "create-task-group", "A", "s", "Lexer", "in_progress", "--item_count", "5", "--initial_tier", "Senior Software Engineer"
    )
    again = shell.ok("create-task-group", "A", "s", "Lexer")["task_group"]
    assert (again["status"], again["item_count"], again["initial_tier"]) == ("in_progress", 5, "Senior Software Engineer")


def test_d03_recovery_of_a_healthy_database_changes_nothing(shell: Shell) -> None:
    shell.ok("save-consumption", "s", "A", "developer", "1", "1")
    with Decklog.open(shell.log) as log:
        before = log.journal.heads()
    assert shell.ok("recover-db") == {"success": True, "message": "The database is whole; there is nothing to recover."}
    with Decklog.open(shell.log) as log:
        assert log.journal.heads() == before
    assert len(shell.ok("get-error-patterns", "p", "--min_confidence", "0")) == 1
    assert len(shell.ok("get-strategies", "p")) == 1
    assert len(shell.ok("get-consumption", "s")) == 1
    assert not [name for name in os.listdir(shell.root / "bazinga") if "corrupted" in name]


def test_d03_a_damaged_database_is_reported_and_left_as_it_is(shell: Shell) -> None:
    with BazingaDB(shell.db) as database:
        for number in range(200):
            database.log_interaction("s", "developer", f"{number} " + "x" * 500)
    content = bytearray(Path(shell.log).read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = b"\xff" * 4096
    Path(shell.log).write_bytes(content)
    answer = shell.call("recover-db")
    assert answer.code == 1
    assert "decklog recover" in answer.out + answer.err
    assert Path(shell.log).read_bytes() == bytes(content)
    assert shell.call("integrity-check").code == 1


def test_d04_strategies_are_extracted_from_reasoning(shell: Shell) -> None:
    shell.ok("save-reasoning", "s", "A", "developer", "completion", "Commas are tokens")
    shell.ok("save-reasoning", "s", "A", "developer", "decisions", "One token each")
    assert shell.ok("extract-strategies", "s", "A", "p")["extracted_count"] == 3
    topics = {row["insight"]: row["topic"] for row in shell.ok("get-strategies", "p", "--limit", "10")}
    assert topics["Commas are tokens"] == "implementation"
    assert topics["One token each"] == "architecture"
    assert topics["Split the lexer"] == "methodology"


def test_d06_a_secret_in_json_leaves_the_json_whole(shell: Shell) -> None:
    secret = "db password=" + WEAK
    shell.ok("save-event", "s", "leak", json.dumps({"text": secret, "after": 1}))
    shell.ok("save-state", "s", "pm", json.dumps({"text": secret, "after": 1}))
    shell.ok("save-error-pattern", "p", "E", secret, "solution " + secret)
    event = shell.ok("get-events", "s", "leak")[0]["event_payload"]
    state = shell.ok("get-state", "s", "pm")
    pattern = shell.ok("get-error-patterns", "p", "--min_confidence", "0", "--error-type", "E")[0]
    assert event["after"] == state["after"] == 1
    assert WEAK not in json.dumps([event, state, pattern])


def test_d07_there_is_one_clock_and_one_format(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        shell.ok("update-plan-progress", "s", "1", "completed")
        shell.ok("complete-session", "s")
        session = shell.ok("get-session", "s")
        phase = shell.ok("get-development-plan", "s")["phases"][0]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert session["start_time"] < phase["completed_at"] < session["end_time"]
    assert len({len(text) for text in (session["start_time"], session["end_time"], phase["completed_at"])}) == 1


def test_d12_an_old_database_is_left_as_it_is(empty: Shell) -> None:
    old = _old_database(empty)
    answer = empty.call("get-session", "s")
    assert answer.code == 1
    assert f"decklog bazinga take-over {empty.root}" in answer.err
    assert Path(empty.db).read_bytes() == old


def _old_database(shell: Shell) -> bytes:
    """A file as bazinga-db makes it; written in a process of its own, with another SQLite than ours."""
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
        "c.executescript('create table sessions (session_id text primary key); create table orchestration_logs (id integer);'"
        "\"insert into sessions values ('old');\")"
    )
    subprocess.run([sys.executable, "-c", code, shell.db], check=True)
    return Path(shell.db).read_bytes()


def test_d15_a_group_that_an_update_creates_has_all_that_was_given(shell: Shell) -> None:
    made = shell.ok(
        *("update-task-group", "C", "s", "--complexity", "8", "--qa_attempts", "2", "--security_sensitive", "true"),
        *("--speckit_task_ids", '["T1"]', "--item_count", "3", "--component_path", "src"),
    )["task_group"]
    assert (made["complexity"], made["qa_attempts"], made["security_sensitive"]) == (8, 2, 1)
    assert (made["speckit_task_ids"], made["item_count"], made["component_path"]) == ('["T1"]', 3, "src")


def test_d16_what_was_superseded_is_hidden_and_what_supersedes_it_is_offered(shell: Shell) -> None:
    words = ("research", "bazinga/artifacts/s/notes.md", "tech_lead", '["developer"]', "low", "newer")
    shell.ok("save-context-package", "s", "A", *words, "--supersedes", "1")
    assert [row["id"] for row in shell.ok("get-context-packages", "s", "A", "developer")] == [2]
    assert shell.ok("query", "select version, supersedes_id from context_packages where id = 2") == [
        {"version": 2, "supersedes_id": 1}
    ]


@pytest.mark.parametrize("flag", [("--group_id", "A"), ("--group-id", "A"), ("--group_id=A",), ("--group-id=A",)])
def test_d18_a_group_flag_means_the_group_in_every_spelling(shell: Shell, flag: tuple[str, ...]) -> None:
    shell.ok("save-state", "s", "pm", '{"of": "A"}', *flag)
    assert shell.ok("get-state", "s", "pm") == {"phase": 1}
    assert shell.ok("get-state", "s", "pm", *flag) == {"of": "A"}


def test_d18_a_group_flag_without_a_group_overwrites_nothing(shell: Shell) -> None:
    assert shell.call("save-state", "s", "pm", "{}", "--group-id").code == 1
    assert shell.ok("get-state", "s", "pm") == {"phase": 1}


def test_agents_named_like_the_total_keep_their_own_figure(shell: Shell) -> None:
    shell.ok("log-tokens", "s", "total", "7", "null")
    assert shell.ok("token-summary", "s") == {"agent:total": 7, "developer": 100, "qa_expert": 50, "total": 157}
    assert shell.ok("token-summary", "s", "agent_id") == {"agent:null": 7, "dev-1": 100, "null": 50, "total": 157}


def test_d24_relative_paths_are_the_callers(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "state.json").write_text('{"from": "here"}')
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("BAZINGA_ROOT", str(shell.root))
    assert shell.run("--quiet", "save-state", "s", "pm", "--state-file", "state.json").code == 0
    assert shell.ok("get-state", "s", "pm") == {"from": "here"}
    assert shell.run("--db", "own/deep/x.db", "--quiet", "create-session", "n", "simple", "x").code == 0
    assert (tmp_path / "here/own/deep/x.db").exists()
    assert os.getcwd() == str(tmp_path / "here")


def test_d24_the_artifacts_are_those_of_the_project_that_is_named(shell: Shell, tmp_path: Path) -> None:
    words = ("A", "research", "bazinga/artifacts/s/notes.md", "tech_lead", '["developer"]', "low", "x")
    saved = shell.run("--project-root", str(shell.root), "--quiet", "save-context-package", "s", *words)
    assert saved.code == 0
    assert shell.ok("query", "select size_bytes from context_packages where id = 2") == [{"size_bytes": 5}]


def test_d24_help_makes_no_database(empty: Shell) -> None:
    assert empty.call("help").code == 0
    assert empty.run("-h").code == 0
    assert empty.run("--db", empty.db, "--help").code == 0
    assert empty.call("no-such-command").code == 1
    assert not os.path.exists(empty.db)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_d24_a_read_only_file_can_be_read(shell: Shell) -> None:
    for path in (shell.db, shell.log):
        os.chmod(path, 0o400)
    assert shell.ok("get-session", "s")["session_id"] == "s"
    assert shell.call("complete-session", "s").code == 1


def test_d25_a_bad_id_is_found_wherever_it_stands_and_whatever_it_begins_with(shell: Shell) -> None:
    with Decklog.open(shell.log) as log:
        log.journal.append("s", "x", kind="event", subtype="y", agent="system", group_id="bad id")  # type: ignore[arg-type]
        log.outputs.save("s", "lint", {}, group_id="worse/id")
    answer = shell.call("diagnose-group-ids")
    assert answer.code == 1
    assert answer.json["issues_found"] == 2
    assert {(issue["table"], issue["group_id"]) for issue in answer.json["issues"]} == {
        ("orchestration_logs", "bad id"),
        ("skill_outputs", "worse/id"),
    }
    fixing = shell.call("diagnose-group-ids", "--fix")
    assert (fixing.code, fixing.json["fixes_applied"]) == (1, 0)
    assert all(issue["fix_error"] for issue in fixing.json["issues"])


def test_d26_a_newline_is_no_part_of_an_id_and_true_is_no_number(shell: Shell) -> None:
    assert validate_scope_global_or_group("A\n") is not None
    assert validate_complexity(True) is not None
    assert shell.call("save-state", "s", "pm", "{}", "--group-id", "A\n").code == 1
