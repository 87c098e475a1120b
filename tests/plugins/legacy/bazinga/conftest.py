"""A project with a bit of everything in its database, prepared once and copied for each test."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugins.legacy.bazinga.shell import Shell

PLAN = json.dumps([{"phase": 1, "name": "Lexer", "status": "pending", "owner": "ana"}, {"phase": 2, "name": "Parser"}])
CRITERIA = json.dumps([{"criterion": "Tests pass"}, {"criterion": "Docs exist", "required_for_completion": False}])
WORLD = (
    ("create-session", "s", "parallel", "Read trailing commas", "--metadata", '{"project_id": "p"}'),
    ("create-task-group", "A", "s", "Lexer"),
    ("create-task-group", "B", "s", "Parser", "in_progress", "dev-2", "--complexity", "7"),
    ("log-interaction", "s", "developer", "first", "1", "dev-1"),
    ("log-interaction", "s", "qa_expert", "second"),
    ("save-reasoning", "s", "A", "developer", "understanding", "A comma | is a token", "--confidence", "high"),
    ("save-reasoning", "s", "A", "developer", "approach", "Split the lexer", "--agent_id", "dev-1", "--iteration", "2"),
    ("save-event", "s", "pm_bazinga", '{"all_criteria_met": true}', "--idempotency-key", "k1", "--group-id", "A"),
    ("save-state", "s", "pm", '{"phase": 1}'),
    ("save-state", "s", "group_status", '{"of": "A"}', "--group-id", "A"),
    ("save-development-plan", "s", "the prompt", "the plan", PLAN, "1", "2", '{"by": "pm"}'),
    ("save-success-criteria", "s", CRITERIA),
    ("log-tokens", "s", "developer", "100", "dev-1"),
    ("log-tokens", "s", "qa_expert", "50"),
    ("save-skill-output", "s", "lint", '{"errors": 0}', "--agent", "developer", "--group", "A"),
    ("save-skill-output", "s", "lint", '{"errors": 1}', "--agent", "developer", "--group", "A"),
    (
        *("save-context-package", "s", "A", "research", "bazinga/artifacts/s/notes.md", "tech_lead"),
        *('["developer", "qa_expert"]', "high", "What the grammar says"),
    ),
    ("save-error-pattern", "p", "TypeError", "line 12: 'x' in /a/b/c.py", "Cast it", "--lang", "python"),
    ("save-strategy", "p", "architecture", "Tokens first", "--strategy_id", "st-1", "--lang", "python"),
)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bazinga") / "project"
    for folder in (".claude", "bazinga/artifacts/s", "files"):
        (root / folder).mkdir(parents=True)
    (root / "bazinga/artifacts/s/notes.md").write_text("notes", encoding="utf-8")
    for name, text in {
        "state.json": '{"step": 1}',
        "event.json": '{"found": "it"}',
        "bad.json": "{",
        "text.txt": "thought",
    }.items():
        (root / "files" / name).write_text(text, encoding="utf-8")
    shell = Shell(root)
    for words in WORLD:
        answer = shell.call(*words)
        assert answer.code == 0, (words, answer)
    return root


@pytest.fixture
def shell(prepared: Path, tmp_path: Path) -> Shell:
    """A copy of the prepared project."""
    shutil.copytree(prepared, tmp_path / "project")
    return Shell(tmp_path / "project")


@pytest.fixture
def project(prepared: Path, tmp_path: Path) -> Callable[[], Shell]:
    """Give the prepared project to one case after the other: a copy that was left as it was serves the next one too."""
    as_prepared, copies = _look(prepared), [tmp_path / "project 0"]

    def give() -> Shell:
        if _look(copies[-1]) != as_prepared:
            copies.append(tmp_path / f"project {len(copies)}")
            shutil.copytree(prepared, copies[-1])
        return Shell(copies[-1])

    return give


def _look(root: Path) -> dict[str, tuple[int, int]]:
    """Give what tells a folder from a copy in which something was written: copies keep the times of their files."""
    found = (Path(folder, name) for folder, _, names in os.walk(root) for name in names)
    return {str(path.relative_to(root)): (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


@pytest.fixture
def empty(tmp_path: Path) -> Shell:
    """A project without a database."""
    for folder in (".claude", "bazinga", "files"):
        (tmp_path / "project" / folder).mkdir(parents=True)
    return Shell(tmp_path / "project")
