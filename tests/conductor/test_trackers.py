"""Runs that start from a tracker: what a query means is worked on, and the tracker learns what has landed."""

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from decklog.plugins.trackers import parse_query
from decklog.stores.tasks.task import Task, TaskState
from tests.cli.conftest import Program
from tests.conductor.plans import TRIPLE
from tests.conductor.repositories import git
from tests.conductor.scripts import script
from tests.conductor.test_run_command import Person
from tests.plugins.importers.github.github_files import by_gh
from tests.plugins.importers.github.test_sync import GH

AT = "2026-01-05T00:00:00Z"


@pytest.fixture
def person(decklog: Program, checked: Path, sqlite_target: str) -> Person:
    return Person(decklog, checked, sqlite_target)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def landed(person: Person, *words: str, **variables: str) -> None:
    done = person.call("run", "--from", *words, **variables)
    assert (done.code, "1 item: 1 landed" in done.out) == (0, True), done
    assert f"1 item of {words[0]} brought up to date" in done.err
    again = person.call("run", "--from", *words, **variables)
    assert (again.code, "has no open task" in again.err) == (5, True), again


@pytest.mark.slow
def test_a_ready_issue_of_beads_is_landed_and_closed_there(person: Person) -> None:
    common = {"status": "open", "priority": 2, "issue_type": "task", "created_at": AT, "updated_at": AT}
    issues = [
        {"id": "bd-1", "title": "Triple", "description": script(TRIPLE), "labels": ["ready"], **common},
        {"id": "bd-2", "title": "Later", "description": "", "labels": [], **common},
    ]
    path = person.repository / ".beads/issues.jsonl"
    write(path, "".join(f"{json.dumps(issue)}\n" for issue in issues))
    landed(person, "beads", "label:ready")
    found = {one["id"]: one for one in map(json.loads, path.read_text().splitlines())}
    assert [found[name]["status"] for name in ("bd-1", "bd-2")] == ["closed", "open"]


@pytest.mark.slow
def test_a_task_of_task_master_is_landed_and_done_there(person: Person) -> None:
    common: dict[str, Any] = {"status": "pending", "dependencies": [], "priority": "medium", "details": "", "testStrategy": ""}
    tasks = [
        {"id": 1, "title": "Triple", "description": script(TRIPLE), **common},
        {"id": 2, "title": "Later", "description": "Wait", **common},
    ]
    path = person.repository / ".taskmaster/tasks/tasks.json"
    write(path, json.dumps({"master": {"tasks": tasks, "metadata": {}}}))
    landed(person, "taskmaster", "1")
    assert [one["status"] for one in json.loads(path.read_text())["master"]["tasks"]] == ["done", "pending"]


@pytest.mark.slow
def test_an_issue_of_github_is_landed_and_closed_there(person: Person, tmp_path: Path) -> None:
    path, program = tmp_path / "issues.json", tmp_path / "bin" / "gh"
    write(program, GH.format(python=sys.executable, path=str(path)))
    program.chmod(0o755)
    path.write_text(
        json.dumps([by_gh(1, title="Triple", body=script(TRIPLE), comments=[]), by_gh(2, title="Later", comments=[])])
    )
    variables = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    refused = person.call("run", "--from", "github", "#1", **variables)
    assert (refused.code, "names no repository of GitHub" in refused.err) == (1, True), refused
    git(person.repository, "remote", "add", "origin", "git@github.com:acme/parser.git")
    landed(person, "github", "#1", **variables)
    assert [(one["number"], one["state"]) for one in json.loads(path.read_text())] == [(1, "CLOSED"), (2, "OPEN")]


@pytest.mark.parametrize(
    ("query", "is_meant"),
    [
        ("", True),
        ("label:ready", True),
        ("label:READY label:other", False),
        ("fix lexer", True),
        ("parser", False),
        ("#12", True),
        ("12 13", True),
        ("13", False),
        ("bd-12", True),
        ("bd-13", False),
        ("label:ready #12 Lexer", True),
    ],
)
def test_a_query_means_labels_ids_and_words(query: str, is_meant: bool) -> None:
    at = datetime(2026, 1, 5, tzinfo=UTC)
    given: dict[str, Any] = {"created_at": at, "updated_at": at, "tags": ["ready"]}
    task = Task(id="bd-12", run_id="beads", title="Fix the lexer", state=TaskState.PENDING, **given)
    assert parse_query(query)(task) is is_meant
