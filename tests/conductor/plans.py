"""Plans of scripted items, worked through a small repository."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from decklog import Decklog, Task
from decklog.conductor import starting
from decklog.conductor.conductor import Conductor
from decklog.conductor.context import RunContext
from decklog.conductor.git.repository import REF_PREFIX, Repository, ref_part
from decklog.conductor.plan import parse
from decklog.conductor.starting import RunRequest
from tests.conductor.repositories import git, make_repository
from tests.conductor.scripts import COMMAND

RUNNER = Path(__file__).with_name("mini_runner.py")
CALC = "def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return add(a, a)\n"
TESTS = (
    "import calc\n\n\ndef test_add():\n    assert calc.add(2, 3) == 5\n\n\ndef test_double():\n    assert calc.double(4) == 8\n"
)
SETTINGS = f"""
[run]
agents = 2
sandbox = "none"
rounds = 2
attempts = 2
orphan_seconds = 20
[agents.fake]
command = {json.dumps(COMMAND)}
commits = "conductor"
[[checks]]
name = "tests"
command = {json.dumps([os.path.realpath(sys.executable), "-I", "-S", str(RUNNER), "{report}"])}
report = "junit"
minutes = 0.5
"""
# A step that passes the checks.
TRIPLE = ["append", "calc.py", "\n\ndef triple(a):\n    return a * 3\n"]
# A second agent, which works after the first.
STRONG = f"""
[agents.strong]
command = {json.dumps([*COMMAND, "strong"])}
[roles]
worker = ["fake", "strong"]
"""
# What is stuck is a person's at once.
NO_STRATEGIST = "[roles]\nstrategist = []\n"
FILES = {"calc.py": CALC, "tests/test_calc.py": TESTS, "decklog.toml": SETTINGS, "notes.txt": "one\ntwo\nthree\n"}


def make_checked_repository(folder: Path, **files: str) -> Path:
    return make_repository(folder, {**FILES, **files})


def work_item(
    name: str,
    *steps: list[Any],
    again: list[list[Any]] | None = None,
    strong: list[list[Any]] | None = None,
    chief: list[list[Any]] | None = None,
    **given: Any,
) -> dict[str, Any]:
    """Plan an item that follows a script, another in its second round, and others with agents called `strong` and `chief`."""
    others = [("2", again), ("strong", strong), ("chief", chief)]
    lines = ["SCRIPT " + json.dumps(steps)] + [f"SCRIPT-{key} {json.dumps(other)}" for key, other in others if other is not None]
    return {"name": name, "title": f"Item {name}", "objective": "\n".join(lines), **given}


def settle(folder: Path, settings: str) -> None:
    """Commit other settings."""
    (folder / "decklog.toml").write_text(settings, encoding="utf-8")
    git(folder, "commit", "-q", "-a", "-m", "Settings")


def start_plan(log: Decklog, content: bytes, repository: Repository, **given: Any) -> RunContext:
    """Start a run of a plan, or go on with it."""
    plan = parse(content, is_json=True)
    return starting.begin(log, RunRequest(plan.goal, content, plan), repository, **given)


class Work:
    """One plan in one repository."""

    def __init__(self, log: Decklog, folder: Path, *items: dict[str, Any]) -> None:
        self.log = log
        self.folder = folder
        self.content = json.dumps({"goal": "Make it better", "items": list(items)}).encode()

    def context(self, known_red: tuple[str, ...] = ()) -> RunContext:
        state, plan = self.folder.parent / "state", parse(self.content, is_json=True)
        wanted = RunRequest(plan.goal, self.content, plan, known_red=known_red)
        return starting.begin(self.log, wanted, Repository.find(self.folder, state), say=lambda _: None)

    def run(self) -> RunContext:
        """Start or go on, until nothing more can be done."""
        context = self.context()
        Conductor(context).run()
        return context


def states(context: RunContext) -> dict[str, str]:
    """Give the state of every task, by its name without the run's."""
    tasks = context.log.tasks.find(context.run_id, limit=200)
    return {task.id.removeprefix(f"{context.run_id}."): task.state.value for task in tasks}


def task_of(context: RunContext, name: str) -> Task:
    return context.log.tasks.get(f"{context.run_id}.{name}")


def target_of(context: RunContext) -> str:
    return f"{REF_PREFIX}/{ref_part(context.run_id)}/target"


def landed(context: RunContext, path: str) -> str:
    """Read a file as it is in the target."""
    return git(context.repository.folder, "show", f"{target_of(context)}:{path}")


def landed_titles(context: RunContext) -> list[str]:
    """Name what has landed, in its order."""
    facts: Any = context.log.runs.get(context.run_id).metadata["conductor"]
    return git(
        context.repository.folder, "log", "--reverse", "--format=%s", f"{facts['commit']}..{target_of(context)}"
    ).splitlines()
