"""A conductor's run in a repository: items that have landed, one that is blocked, and one that has not begun."""

from pathlib import Path
from typing import Any

from decklog import Decklog
from decklog.conductor import starting
from decklog.conductor.conductor import Conductor
from decklog.conductor.context import RunContext
from decklog.conductor.git.repository import Repository
from decklog.conductor.plan import parse
from decklog.conductor.starting import RunRequest
from decklog.core.folders import state_home
from tests.conductor.plans import NO_STRATEGIST, SETTINGS, Work, work_item
from tests.conductor.repositories import git, write

WRONG = ["append", "tests/test_calc.py", "\n\ndef test_wrong():\n    assert calc.add(1, 1) == 3\n"]


def conduct(log: Decklog, folder: Path, *items: dict[str, Any], is_worked: bool = True) -> RunContext:
    """Take a plan through a repository, under the state folder that this process has."""
    write(folder, {"decklog.toml": SETTINGS + NO_STRATEGIST})
    git(folder, "commit", "-q", "-a", "--allow-empty", "-m", "Settings")
    work = Work(log, folder, *items)
    plan = parse(work.content, is_json=True)
    context = starting.begin(
        log, RunRequest(plan.goal, work.content, plan), Repository.find(folder, Path(state_home())), say=lambda _: None
    )
    if is_worked:
        Conductor(context).run()
    return context


def two_items() -> list[dict[str, Any]]:
    """Plan an item that lands, and one that breaks a test."""
    return [
        work_item("triple", ["print", "I add it."], ["append", "calc.py", "\n\ndef triple(a):\n    return a * 3\n"]),
        work_item("wrong", WRONG, again=[["append", "notes.txt", "four\n"]]),
    ]
