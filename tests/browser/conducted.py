"""A conductor's run at a dashboard in a process, with the repository next to the log."""

from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from tests.conductor.plans import make_checked_repository, work_item
from tests.web.conducted import WRONG, conduct

GOOD = ["append", "calc.py", "\n\ndef triple(a):\n    return a * 3\n"]


def work_in(path: Path | str, folder: Path, *items: dict[str, Any], name: str = "repository") -> str:
    """Take a plan through a new repository, with the state folder that the server has; return the run."""
    repository = make_checked_repository(folder / name)
    with pytest.MonkeyPatch.context() as patch, Decklog.open(path) as log:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        return conduct(log, repository, *items).run_id


def plan() -> list[dict[str, Any]]:
    """Plan an item that lands, one that is red, and one that waits for it."""
    return [
        work_item("triple", ["print", "I add it."], GOOD, again=[["append", "calc.py", "\n\nWHY = 1\n"]]),
        work_item("wrong", WRONG, again=[["append", "notes.txt", "four\n"]]),
        work_item("later", ["append", "notes.txt", "five\n"], needs=["wrong"]),
    ]
