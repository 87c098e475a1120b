"""The demonstration: workers share a run, one is killed, the others finish, and the record is complete."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from decklog.core.errors import NotFound
from decklog.journal.entry import EntryKind
from decklog.log import Decklog
from decklog.stores.tasks.task import Task, TaskState

if TYPE_CHECKING:
    T = TypeVar("T")

GOAL = "Teach the parser to read trailing commas"
PLAN: list[dict[str, object]] = [
    {"task_id": "read-grammar", "title": "Read the grammar", "priority": 90},
    {"task_id": "write-test", "title": "Write a failing test", "priority": 80},
    {"task_id": "change-lexer", "title": "Change the lexer", "depends_on": ["read-grammar"]},
    {"task_id": "change-parser", "title": "Change the parser", "depends_on": ["read-grammar", "write-test"]},
    {"task_id": "fuzz", "title": "Fuzz the lexer", "depends_on": ["change-lexer"]},
    {"task_id": "error-messages", "title": "Improve the error messages", "depends_on": ["change-parser"]},
    {"task_id": "docs", "title": "Update the docs", "priority": 20},
    {"task_id": "review", "title": "Review all changes", "depends_on": ["fuzz", "error-messages", "docs"]},
]
WORKERS = ("ada", "bo", "cy")
LEASE_SECONDS = 1.5
_PATIENCE_SECONDS = 60.0
# Number of entries in the smallest large log.
SMALLEST = 500


class Demo:
    """One demonstration in one database; `say` prints its progress."""

    def __init__(self, target: str, say: Callable[[str], None]) -> None:
        self.target = target
        self.say = say
        self.killed = ""
        self.killed_task = ""

    def run(self, log: Decklog) -> str:
        """Run the demonstration; return the id of the run."""
        run = log.runs.start(GOAL, repo="demo")
        log.tasks.add_many(run.id, _plan(log, run.id))
        self.say(f"A run with {len(PLAN)} tasks. {len(WORKERS)} worker processes start: {', '.join(WORKERS)}.")
        processes = {name: self._start(run.id, name) for name in WORKERS}
        try:
            self._kill_one(log, run.id, processes)
            self._wait(log, run.id, processes)
        finally:
            for process in processes.values():
                process.kill()
                process.wait()
        log.runs.finish(run.id, summary="All tasks are done")
        return run.id

    def _start(self, run_id: str, name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-P", "-m", "decklog.demo.big", self.target, run_id, name])

    def _kill_one(self, log: Decklog, run_id: str, processes: dict[str, subprocess.Popen[bytes]]) -> None:
        """Wait until a worker is in the middle of a task, and kill it without warning."""
        task = self._until(lambda: self._busy(log, run_id))
        self.killed, self.killed_task = task.worker or "", task.id
        os.kill(processes[self.killed].pid, signal.SIGKILL)
        processes.pop(self.killed).wait()
        self.say(f"{self.killed} is killed with SIGKILL in the middle of '{task.title}'. Nothing cleans up after it.")

    def _busy(self, log: Decklog, run_id: str) -> Task | None:
        """Find a worker that has written something about a task it has not finished."""
        running: list[Task] = log.tasks.find(run_id, state=TaskState.RUNNING)
        busy = (task for task in running if task.worker and log.journal.find(run_id, task_id=task.id, kind=EntryKind.TOOL))
        return next(busy, None)

    def _wait(self, log: Decklog, run_id: str, processes: dict[str, subprocess.Popen[bytes]]) -> None:
        self._until(lambda: all(process.poll() is not None for process in processes.values()) or None)
        unfinished = [task.id for task in log.tasks.find(run_id, limit=100) if task.state != "done"]
        if unfinished:
            raise RuntimeError(f"the workers stopped and left {', '.join(unfinished)}")

    def _until(self, look: "Callable[[], T | None]") -> "T":
        end = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < end:
            if (found := look()) is not None:
                return found
            time.sleep(0.02)
        raise RuntimeError(f"nothing happened for {_PATIENCE_SECONDS:g} seconds")


def _plan(log: Decklog, run_id: str) -> list[dict[str, object]]:
    """Return the plan; an id is good for one task in a log, so a later demonstration marks its own."""
    try:
        log.tasks.get(str(PLAN[0]["task_id"]))
    except NotFound:
        return PLAN
    names = {str(task["task_id"]): f"{task['task_id']}-{run_id[-4:]}" for task in PLAN}
    return [
        {**task, "task_id": new, "depends_on": [names[name] for name in names if name in task.get("depends_on", [])]}  # type: ignore[operator]
        for task, new in zip(PLAN, names.values(), strict=True)
    ]
