"""The programs that stood beside bazinga-db: its logger, its seeder, and what made a session ready."""

import json
import os
from pathlib import Path

import apsw
import pytest

from decklog import Decklog
from decklog.plugins.bazinga_project import log_path_for
from decklog.plugins.legacy.bazinga import AutoLogger
from tests.plugins.legacy.bazinga.shell import Shell


@pytest.fixture
def config(empty: Shell) -> Path:
    """The folder that a project's own configuration is in."""
    folder = empty.root / "bazinga" / "config"
    folder.mkdir()
    return folder


def _write(config: Path, transitions: object, markers: object = None) -> None:
    (config / "transitions.json").write_text(json.dumps(transitions), encoding="utf-8")
    if markers is not None:
        (config / "agent-markers.json").write_text(json.dumps(markers), encoding="utf-8")


def test_readers_of_the_file_see_a_long_answer_as_it_was_said(shell: Shell) -> None:
    answer = "All tests of the parser pass, and so do those of the lexer.\n" * 1_500
    with AutoLogger(shell.db, "s") as logger:
        logged = logger.log_agent_response("developer", answer, 1, "dev-1")
        kept = logger.log.db.read(lambda: logger.log.db.one("select max(size), sum(length(bytes)) from blobs", {}))
    assert kept is not None
    assert kept[1] * 3 < kept[0] == len(answer)
    connection = apsw.Connection(shell.db, flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.execute("select content from orchestration_logs where id = ?", (logged["log_id"],)).get == answer
    connection.close()


def test_every_answer_is_logged_and_counted(shell: Shell) -> None:
    with AutoLogger(shell.db, "s") as logger:
        answers = [logger.log_agent_response("developer", f"answer {number}", number, "dev-1") for number in range(6)]
        stats = logger.get_stats()
        found = logger.verify_session_logs()

    assert [answer["success"] for answer in answers] == [True] * 6
    assert [answer["log_id"] for answer in answers] == sorted({answer["log_id"] for answer in answers})
    assert (stats["attempts"], stats["logged"], stats["failed"], stats["by_agent"]) == (6, 6, 0, {"developer": 6})
    assert (found["total_logs"], found["by_agent"], found["verified"]) == (8, {"developer": 7, "qa_expert": 1}, True)


@pytest.mark.parametrize(("session", "agent", "content"), [("gone", "developer", "x"), ("s", "", "x"), ("s", "developer", " ")])
def test_what_cannot_be_logged_is_counted_and_said(shell: Shell, session: str, agent: str, content: str) -> None:
    with AutoLogger(shell.db, session) as logger:
        answer = logger.log_agent_response(agent, content)
        stats = logger.get_stats()

    assert not answer["success"]
    assert (stats["attempts"], stats["failed"], stats["last_error"]) == (1, 1, answer["error"])


def test_the_logger_is_called_with_its_database_first(shell: Shell) -> None:
    answer = shell.run("auto-logger", shell.db, "s", "developer", "All green", "3", "dev-9")

    assert answer.code == 0
    newest = shell.ok("get-logs", "s", "--limit", "1")[0]
    assert (newest["content"], newest["iteration"], newest["agent_id"]) == ("All green", 3, "dev-9")
    assert shell.run("auto-logger", shell.db, "gone", "developer", "x").code == 1


def test_a_session_is_made_ready_and_only_its_id_is_said_on_stdout(empty: Shell) -> None:
    answer = empty.run("init-session", "--session-id", "bazinga_7", "--db", empty.db)

    assert (answer.code, answer.out) == (0, "bazinga_7\n")
    assert "transitions" in answer.err
    assert (empty.root / "bazinga/artifacts/bazinga_7/skills").is_dir()
    assert empty.call("get-session", "bazinga_7").code == 1
    assert empty.ok("query", "select count(*) as n from agent_markers")[0]["n"] == 8
    again = empty.run("--quiet", "init-session", "--session-id", "bazinga_7", "--db", empty.db)
    assert (again.code, again.out, again.err) == (0, "bazinga_7\n", "")


def test_a_session_without_a_name_is_called_by_the_time(empty: Shell) -> None:
    named = empty.run("--quiet", "init-session", "--project-root", str(empty.root)).out.strip()

    assert named.startswith("bazinga_2")
    assert (empty.root / "bazinga/artifacts" / named / "skills").is_dir()
    assert os.path.exists(empty.db)


@pytest.mark.parametrize("name", ["../elsewhere", "/tmp", "a/b", ".", ""])
def test_a_session_id_leads_nowhere_else(empty: Shell, name: str) -> None:
    answer = empty.run("init-session", "--session-id", name, "--db", empty.db)

    assert (answer.code, answer.out) == (1, "")
    assert not os.path.exists(empty.db)


def test_asking_whether_a_project_is_ready_makes_nothing(empty: Shell) -> None:
    before = empty.run("init-session", "--check-only", "--json", "--db", empty.db)
    assert before.code == 1
    assert before.json["db_exists"] is False
    assert "no database" in before.json["error"]
    assert not os.path.exists(empty.db)

    empty.run("init-db", empty.db)
    after = empty.run("init-session", "--check-only", "--json", "--db", empty.db)
    assert (after.code, after.json["ready"], after.json["rules_count"]) == (0, True, 5)
    silent = empty.run("init-session", "--check-only", "--db", empty.db)
    assert (silent.code, silent.out) == (0, "")


def test_a_database_is_made_with_its_folder_and_its_workflow(empty: Shell) -> None:
    path = str(empty.root / "deep" / "down" / "log.db")

    assert empty.run("--quiet", "init-db", path).json["transitions_count"] > 40
    with Decklog.open(log_path_for(path)) as log:
        assert log.workflow.ready()["source"] == "loaded"
        assert [version.loaded_by for version in log.workflow.versions()] == ["bazinga-db"]


def test_seeding_needs_a_database_unless_it_may_make_one(empty: Shell) -> None:
    refused = empty.call("seed-configs")
    assert (refused.code, refused.out) == (1, "")
    assert "--auto-init-db" in refused.err
    assert not os.path.exists(empty.db)

    assert empty.call("seed-configs", "--all", "--auto-init-db").json["differences"] == []
    assert empty.call("seed-configs", "--markers").json["markers_count"] == 8


def test_seeding_names_what_is_different_and_changes_no_policy(empty: Shell, config: Path) -> None:
    transitions = {
        "_version": "1.3.0",
        "developer": {
            "READY_FOR_QA": {"next_agent": "qa_expert", "action": "spawn"},
            "READY_FOR_REVIEW": {"next_agent": "project_manager", "action": "spawn"},
        },
        "_special_rules": {"escalation_after_failures": {"description": "sooner", "threshold": 1}},
    }
    _write(config, transitions, {"_remark": 1, "qa_expert": {"required": ["PASS"], "workflow_markers": []}})
    empty.run("init-db", empty.db)

    answer = empty.call("seed-configs", quiet=False)

    found = json.loads(answer.out.partition("\n")[2])
    assert found["differences"] == [
        "transitions developer READY_FOR_REVIEW",
        "rules escalation_after_failures",
        "markers qa_expert",
    ]
    assert "decklog workflow load" in answer.err
    with Decklog.open(empty.log) as log:
        assert log.workflow.versions(limit=10)[0].number == 1
        assert next(step for step in log.workflow.transitions() if step.status == "READY_FOR_REVIEW").next_agent == "tech_lead"
    assert empty.call("seed-configs", "--markers").json["differences"] == ["markers qa_expert"]


@pytest.mark.parametrize(
    "transitions",
    [{"developer": {"READY": {"next_agent": "qa_expert"}}}, {"developer": {"READY": "qa_expert"}}, {"developer": []}, []],
    ids=["no action", "no object", "no statuses", "a list"],
)
def test_files_that_make_no_sense_are_refused_whole(empty: Shell, config: Path, transitions: object) -> None:
    _write(config, transitions)

    answer = empty.call("seed-configs", "--auto-init-db")

    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("Error: ")
    with Decklog.open(empty.log) as log:
        assert [version.loaded_by for version in log.workflow.versions()] == ["bazinga-db"]


def test_a_workflow_that_a_manager_loaded_stays(empty: Shell) -> None:
    from decklog.stores.workflow.records import shipped

    with Decklog.open(empty.log) as log:
        log.workflow.load({**shipped(), "name": "ours"}, by="ana")

    assert empty.call("seed-configs").json["name"] == "ours"
    empty.run("init-session", "--session-id", "x", "--db", empty.db)
    with Decklog.open(empty.log) as log:
        assert [version.loaded_by for version in log.workflow.versions()] == ["ana"]
