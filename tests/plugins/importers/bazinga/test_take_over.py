"""A bazinga project is taken over in place, and its agents' calls go on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from decklog import Conflict, Decklog, NotFound
from decklog.cli import run
from decklog.core.errors import Busy
from decklog.plugins.importers.bazinga.take_over import TakeOver
from decklog.stores.workflow.records import digest_of, shipped
from tests.plugins.importers.bazinga.bazinga_files import build
from tests.plugins.importers.comparing import execute

SCRIPT = ".claude/skills/bazinga-db/scripts/bazinga_db.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "a project"
    (root / "bazinga").mkdir(parents=True)
    (root / SCRIPT).parent.mkdir(parents=True)
    (root / SCRIPT).write_text("raise SystemExit('the old script ran')\n")
    build(root / "bazinga" / "bazinga.db", 19)
    return root


def _agent(project: Path, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Call the script as an agent's prompt does."""
    environment = {name: value for name, value in os.environ.items() if name not in ("BAZINGA_ROOT", "DECKLOG_DB")}
    script = [sys.executable, str(project / SCRIPT), "--quiet", *words]
    return subprocess.run(script, cwd=cwd or project, env=environment, capture_output=True, text=True, timeout=60)


def test_the_refusal_of_an_old_file_names_the_command_that_takes_it_over(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    assert run(["bazinga", "--quiet", "list-sessions"]) == 1
    told = capsys.readouterr().err.partition("with: ")[2].strip()
    assert told == f"decklog bazinga take-over '{project}'"

    assert run(["bazinga", "take-over", str(project)]) == 0
    capsys.readouterr()
    assert run(["bazinga", "--quiet", "list-sessions"]) == 0
    assert "bazinga_1" in {row["session_id"] for row in json.loads(capsys.readouterr().out)}


@pytest.mark.slow
def test_agents_scripts_go_on_from_anywhere_and_the_old_ones_are_kept(project: Path, tmp_path: Path) -> None:
    before = (project / "bazinga/bazinga.db").read_bytes()

    taken = TakeOver(str(project)).run()

    answer = _agent(project, "get-session", "bazinga_1", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["original_requirements"] == "Make the parser faster"
    assert _agent(project, "log-interaction", "bazinga_1", "developer", "going on").returncode == 0
    code = (
        f"import sys; sys.path.insert(0, {str((project / SCRIPT).parent)!r}); from bazinga_db import BazingaDB; print(BazingaDB)"
    )
    assert "BazingaDB" in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout
    assert taken["scripts"] == [SCRIPT]
    assert "the old script ran" in (project / f"{SCRIPT}.before-decklog").read_text()
    assert Path(taken["kept"]).read_bytes() == before
    names = ["bazinga.before-decklog.db", "bazinga.db", "bazinga.decklog.db"]
    assert sorted(path.name for path in (project / "bazinga").glob("*.db")) == names
    assert not list((project / "bazinga").glob(".decklog-*"))
    with Decklog.open(project / "bazinga/bazinga.decklog.db") as log:
        assert log.journal.verify().ok


@pytest.mark.slow
def test_taking_over_again_changes_nothing(project: Path) -> None:
    TakeOver(str(project)).run()
    _agent(project, "log-interaction", "bazinga_1", "developer", "going on")

    again = TakeOver(str(project)).run()

    assert (again["already"], again["kept"]) == (True, None)
    with Decklog.open(project / "bazinga/bazinga.decklog.db") as log:
        assert [entry.body for entry in log.journal.find("bazinga_1", kind="interaction", limit=1)] == ["going on"]


def test_a_file_that_is_in_use_is_left_as_it_is(project: Path) -> None:
    path = project / "bazinga/bazinga.db"
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('pragma journal_mode=wal');"
        "c.execute('begin immediate'); print('ready', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(Busy, match="in use"):
            TakeOver(str(project)).run()
    finally:
        other.communicate()

    assert "the old script ran" in (project / SCRIPT).read_text()
    assert TakeOver(str(project)).run()["already"] is False


@pytest.mark.slow
def test_a_file_of_which_something_would_be_lost_is_left_as_it_is_unless_that_is_accepted(project: Path) -> None:
    path = project / "bazinga/bazinga.db"
    db = apsw.Connection(str(path))
    db.execute(
        "insert into orchestration_logs (session_id, agent_type, content) values ('bazinga_1', 'pm', ?)", ("x" * 30_000_000,)
    )
    db.close()

    with pytest.raises(Conflict, match="orchestration_logs") as caught:
        TakeOver(str(project)).run()

    assert "--accept-losses" in str(caught.value.hint)
    assert not list((project / "bazinga").glob("*.before-decklog*"))
    taken = TakeOver(str(project), accept_losses=True).run()
    assert len(taken["report"]["losses"]) == 1


def test_a_folder_without_a_database_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"bazinga\.db"):
        TakeOver(str(tmp_path)).run()


def test_readers_see_what_the_old_file_said_and_nothing_of_the_import_itself(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = apsw.Connection(str(project / "bazinga/bazinga.db"))
    columns = "log_type, event_subtype, content, idempotency_key"
    said = old.execute(f"select {columns} from orchestration_logs where session_id = 'bazinga_1' order by id").fetchall()
    old.close()
    TakeOver(str(project)).run()
    db = str(project / "bazinga/bazinga.db")

    def ask(*words: str) -> list[dict[str, object]]:
        capsys.readouterr()
        assert run(["bazinga", "--db", db, "--quiet", *words]) == 0
        return json.loads(capsys.readouterr().out)

    events = [row["event_subtype"] for row in ask("get-events", "bazinga_1")]
    assert events == [subtype for kind, subtype, *_ in reversed(said) if kind == "event"]
    asked = ask("query", f"select {columns} from orchestration_logs where session_id = 'bazinga_1' order by id")
    assert [tuple(row.values()) for row in asked] == said
    assert [row["content"] for row in ask("get-logs", "bazinga_1")] == [content for *_, content, _ in reversed(said)]


def _route(project: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    capsys.readouterr()
    run(["bazinga", "--db", str(project / "bazinga/bazinga.db"), "--quiet", "route", "--session-id", "bazinga_1", *words])
    answer: dict[str, object] = json.loads(capsys.readouterr().out)
    return answer


def test_take_over_keeps_the_projects_own_workflow(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = apsw.Connection(str(project / "bazinga/bazinga.db"))
    db.execute("update workflow_transitions set next_agent = 'architect', include_context = '[\"plan\"]'")
    db.execute(
        "insert into workflow_transitions (current_agent, response_status, next_agent, action, escalation_check)"
        " values ('qa_expert', 'FAIL', 'developer', 'respawn', 1)"
    )
    db.execute("insert into workflow_special_rules values (9, 'escalation_after_failures', 'later', '{\"threshold\": 7}')")
    db.close()
    models = {"agents": {"architect": {"model": "opus"}, "developer": {"model": "haiku"}}}
    (project / "bazinga/model_selection.json").write_text(json.dumps(models))

    TakeOver(str(project)).run()

    answer = _route(project, capsys, "--current-agent", "developer", "--status", "READY_FOR_QA")
    assert (answer["next_agent"], answer["include_context"], answer["model"]) == ("architect", ["plan"], "opus")
    failed = _route(project, capsys, "--current-agent", "qa_expert", "--status", "FAIL")
    assert (failed["next_agent"], failed["model"]) == ("developer", "haiku")
    unknown = _route(project, capsys, "--current-agent", "tech_lead", "--status", "APPROVED")
    assert unknown["success"] is False
    with Decklog.open(project / "bazinga/bazinga.decklog.db") as log:
        rules = {rule.name: rule.config for rule in log.workflow.rules()}
        assert rules["escalation_after_failures"] == {"threshold": 7, "escalation_agent": "senior_software_engineer"}
        assert "words" in rules["security_sensitive"]
        assert {marker.agent: marker.required for marker in log.workflow.markers()} == {"developer": ["READY"]}


def test_take_over_of_an_unchanged_workflow_loads_the_default(project: Path) -> None:
    db = apsw.Connection(str(project / "bazinga/bazinga.db"))
    for table in ("workflow_transitions", "agent_markers", "workflow_special_rules"):
        db.execute(f"delete from {table}")
    document = shipped()
    for agent, statuses in document["transitions"].items():
        for status, step in statuses.items():
            values = (agent, status, step["next_agent"], step["action"], json.dumps(step["include_context"]))
            more = (step.get("escalation_check", False), step.get("model_override"), step.get("fallback_agent"))
            last = (step.get("bypass_qa", False), step.get("max_parallel"), step.get("then_action"))
            db.execute(
                "insert into workflow_transitions (current_agent, response_status, next_agent, action, include_context,"
                " escalation_check, model_override, fallback_agent, bypass_qa, max_parallel, then_action)"
                " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*values, *more, *last),
            )
    db.close()

    TakeOver(str(project)).run()

    with Decklog.open(project / "bazinga/bazinga.decklog.db") as log:
        assert log.workflow.ready()["digest"] == digest_of(shipped())


def test_take_over_refuses_a_workflow_that_it_can_not_route_by_unless_losses_are_accepted(project: Path) -> None:
    execute(project / "bazinga/bazinga.db", "update workflow_transitions set next_agent = 'nobody'")

    with pytest.raises(Conflict, match="sends for nobody, which has no model"):
        TakeOver(str(project)).run()

    taken = TakeOver(str(project), accept_losses=True).run()
    assert "workflow" in taken["report"]["losses"][0]


@pytest.mark.slow
def test_script_of_a_project_does_not_claim_an_environment_variable(project: Path, tmp_path: Path) -> None:
    TakeOver(str(project)).run()

    found = json.loads(_agent(project, "detect-paths", cwd=tmp_path).stdout)

    assert (found["project_root"], found["detection_source"], found["env_var_set"]) == (str(project), "script location", False)
