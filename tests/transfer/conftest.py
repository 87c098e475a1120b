"""A log with something of everything that travels: records, removed ones, keys, long texts, many streams."""

import shutil
from pathlib import Path

import pytest

from decklog import Decklog, ManualClock
from decklog.transfer.jsonl import JsonlExport

LONG = "a line of tool output\n" * 5000


def fill(log: Decklog, clock: ManualClock, *, entries: int = 300, run: str = "run_1") -> None:
    """Write a run with tasks, an attempt, changes and entries of every kind."""
    log.runs.start("Make the parser faster", run_id=run)
    log.runs.record_agent(run, "developer", session="s")
    log.tasks.add_many(
        run,
        [{"title": f"task {n}", "task_id": f"{run}-t{n}", "depends_on": [f"{run}-t{n - 1}"] if n else []} for n in range(10)],
    )
    clock.advance(seconds=5)
    claimed = log.tasks.claim(run, worker="w")
    assert claimed is not None
    claimed.finish("ok")
    log.journal.append(run, LONG, kind="tool", agent="developer")
    log.journal.append(run, "ünïcode \u2028 \U0001f6a2 \r\n tab\t", payload={"b": [1, None, "\u2029"], "a": 1.5}, key="k")
    kinds = ("interaction", "reasoning", "tool", "event")
    while (left := entries - log.journal.find(run, limit=1)[0].seq) > 0:
        clock.advance(seconds=1)
        log.journal.append_many(
            [
                {
                    "stream": run,
                    "body": f"entry {n} of the lexer",
                    "kind": kinds[n % 4],
                    "agent": f"agent-{n % 3}",
                    "group_id": "g",
                }
                for n in range(min(left, 500))
            ]
        )


def exported(log: Decklog, folder: Path) -> dict[str, bytes]:
    """Export a log and read every file of it."""
    JsonlExport(log, str(folder)).run()
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Filled:
    """A log that was filled once, for each who needs one to copy."""

    def __init__(self, path: Path, **runs: int) -> None:
        clock = ManualClock()
        with Decklog.open(path, clock=clock) as log:
            for run, entries in runs.items():
                fill(log, clock, entries=entries, run=run)
        self._path, self._until = path, clock.now()

    def copied(self, path: Path, clock: ManualClock) -> Path:
        """Give a copy, and move a clock to when it was filled."""
        clock.advance(seconds=(self._until - clock.now()).total_seconds())
        return Path(shutil.copy(self._path, path))


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    return Filled(tmp_path_factory.mktemp("filled") / "source.db", **{"run_1": 300, "Run/../2☃": 60})


@pytest.fixture
def source(filled: Filled, tmp_path: Path, clock: ManualClock) -> Decklog:
    return Decklog.open(filled.copied(tmp_path / "source.db", clock), clock=clock)
