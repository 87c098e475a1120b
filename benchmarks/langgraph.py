"""`put` of the checkpointer compared with LangGraph's SQLite savers, plain and awaited: on a disk, interleaved, in one run.

Ours keeps a journal and looks for secrets; theirs keeps the row. `python -m benchmarks.langgraph --steps` also shows where the
CPU time of ours goes.
"""

import argparse
import asyncio
import json
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from benchmarks.measure import Row, row
from decklog import Decklog
from decklog.db.sqlite.transactions import SqliteTransactions
from decklog.plugins.adapters.langgraph import DecklogSaver
from decklog.records.values import Values
from decklog.stores.artifacts import graphs
from decklog.stores.base import Store

PUTS, TURNS = 200, 9
_SENTENCE = "the agent ran every test after a change and wrote what it had found in its log before going on to the next task"
SIZES = {"one message": 1, "20 messages": 20, "200 messages": 200}


class Cost(NamedTuple):
    """What one put took, in microseconds."""

    processor: float
    wall: float


def state(messages: int, step: int) -> Any:
    """Make a checkpoint as a graph of one conversation has it: what was said before is there again, and one message is new."""
    checkpoint = empty_checkpoint()
    said = [{"role": "user", "content": f"message {number + step}: " + "some words " * 20} for number in range(messages)]
    checkpoint["channel_values"] = {"messages": said, "step": step}
    checkpoint["channel_versions"] = {"messages": step, "step": step}
    return checkpoint


def turn(saver: BaseCheckpointSaver[Any], thread: str, messages: int) -> float:
    """Give the CPU time of one put, in microseconds."""
    return plain(saver, thread, messages).processor


def plain(saver: BaseCheckpointSaver[Any], thread: str, messages: int) -> Cost:
    """Put some checkpoints, one after the other."""
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    states = [state(messages, step) for step in range(PUTS)]
    processor, wall = time.process_time(), time.perf_counter()
    for step, checkpoint in enumerate(states):
        config = saver.put(config, checkpoint, {"source": "loop", "step": step}, {})
    return Cost((time.process_time() - processor) / PUTS * 1e6, (time.perf_counter() - wall) / PUTS * 1e6)


async def awaited(saver: BaseCheckpointSaver[Any], thread: str, messages: int) -> Cost:
    """Put some checkpoints, each awaited."""
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    states = [state(messages, step) for step in range(PUTS)]
    processor, wall = time.process_time(), time.perf_counter()
    for step, checkpoint in enumerate(states):
        config = await saver.aput(config, checkpoint, {"source": "loop", "step": step}, {})
    return Cost((time.process_time() - processor) / PUTS * 1e6, (time.perf_counter() - wall) / PUTS * 1e6)


async def measure(folder: Path) -> dict[str, dict[str, Cost]]:
    """Give the medians of each saver, by the size of the state: CPU time and wall time each for itself."""
    theirs = sqlite3.connect(folder / "theirs.sqlite", check_same_thread=False)
    found: dict[str, dict[str, Cost]] = {}
    with Decklog.open(folder / "ours.db") as log:
        async with AsyncSqliteSaver.from_conn_string(str(folder / "awaited.sqlite")) as their_async:
            ours, own = DecklogSaver(log), SqliteSaver(theirs)
            for size, messages in SIZES.items():
                costs: dict[str, list[Cost]] = {}
                for number in range(TURNS):
                    thread = f"{size} {number}".replace(" ", "-")
                    for name, saver in (("decklog", ours), ("langgraph", own)):
                        costs.setdefault(name, []).append(plain(saver, thread, messages))
                    for name, saver in (("decklog", ours), ("langgraph", their_async)):
                        costs.setdefault(f"{name} awaited", []).append(await awaited(saver, f"{thread}-awaited", messages))
                found[size] = {name: Cost(*(sorted(kind)[TURNS // 2] for kind in zip(*some))) for name, some in costs.items()}  # noqa: B905
    theirs.close()
    return found


def appended(folder: Path) -> dict[str, Cost]:
    """Return the medians of an append and of LangGraph's `put`, each with a text of 300 characters that is new."""
    dice = random.Random(5)
    costs: dict[str, list[Cost]] = {"append": [], "put": []}
    with Decklog.open(folder / "appended.db") as log, sqlite3.connect(folder / "put.sqlite", check_same_thread=False) as theirs:
        run_id, saver = log.runs.start("measure").id, SqliteSaver(theirs)
        for number in range(TURNS):
            texts = [" ".join(dice.choices(_SENTENCE.split(), k=60))[:300] for _ in range(2 * PUTS)]
            costs["append"].append(_timed(lambda text: log.journal.append(run_id, text, agent="developer"), texts[:PUTS]))
            config: Any = {"configurable": {"thread_id": f"new-{number}", "checkpoint_ns": ""}}
            costs["put"].append(_timed(lambda text, config=config: _put_text(saver, config, text), texts[PUTS:]))  # type: ignore[misc]
    return {name: Cost(*(sorted(kind)[TURNS // 2] for kind in zip(*some))) for name, some in costs.items()}  # noqa: B905


def _put_text(saver: SqliteSaver, config: Any, text: str) -> None:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"body": text}
    saver.put(config, checkpoint, {}, {})


def _timed(work: Callable[[str], object], texts: list[str]) -> Cost:
    processor, wall = time.process_time(), time.perf_counter()
    for text in texts:
        work(text)
    return Cost((time.process_time() - processor) / len(texts) * 1e6, (time.perf_counter() - wall) / len(texts) * 1e6)


# Where ours goes: what each step is called, and where it is done.
STEPS: dict[str, tuple[Any, str]] = {
    "all of it": (DecklogSaver, "put"),
    "written by LangGraph's serializer, looked through for secrets": (DecklogSaver, "_encoded"),
    "the transaction begun": (SqliteTransactions, "_begin"),
    "ids checked": (Values, "bind"),
    "bytes hashed, packed and kept": (graphs.blobs, "keep"),
    "the row and its entry": (graphs.Graphs, "_add_new"),
    "of these, the entry built and chained": (Store, "_record"),
    "committed": (SqliteTransactions, "_commit"),
}


@contextmanager
def timed(spent: dict[str, float]) -> Iterator[None]:
    """Add the CPU time of each step up; the watching itself costs about a microsecond a step."""
    kept = {name: getattr(*place) for name, place in STEPS.items()}

    def watched(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(work)
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.thread_time_ns()
            try:
                return work(*args, **kwargs)
            finally:
                spent[name] = spent.get(name, 0.0) + (time.thread_time_ns() - start) / 1e3

        return call

    for name, (owner, attribute) in STEPS.items():
        setattr(owner, attribute, watched(name, kept[name]))
    try:
        yield
    finally:
        for name, (owner, attribute) in STEPS.items():
            setattr(owner, attribute, kept[name])


def steps(folder: Path) -> dict[str, dict[str, float]]:
    """Say where the CPU time of a put goes, in microseconds, by the size of the state."""
    found: dict[str, dict[str, float]] = {}
    with Decklog.open(folder / "steps.db") as log:
        saver = DecklogSaver(log)
        for size, messages in SIZES.items():
            plain(saver, f"warm-{messages}", messages)
            spent: dict[str, float] = {}
            with timed(spent):
                for number in range(TURNS):
                    plain(saver, f"steps-{messages}-{number}", messages)
            found[size] = {name: round(spent[name] / PUTS / TURNS, 1) for name in STEPS}
    return found


def main(words: "list[str] | None" = None) -> list[Row]:
    """Measure on the disk of a folder, the present one unless another is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", default=".", help="on which disk")
    parser.add_argument("--steps", action="store_true", help="also say where the time goes")
    given = parser.parse_args(words or [])
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        for size, costs in asyncio.run(measure(Path(name))).items():
            for way in ("", " awaited"):
                ours, theirs = costs[f"decklog{way}"], costs[f"langgraph{way}"]
                rows.append(row(f"put{way}, {size}: CPU time", ours.processor, "µs", floor=theirs.processor))
                rows.append(row(f"put{way}, {size}: wall time", ours.wall, "µs", floor=theirs.wall))
        new = appended(Path(name))
        for index, kind in enumerate(("processor", "wall")):
            floor = new["put"][index]
            rows.append(
                row(f"append of a new 300-character text compared with put: {kind} time", new["append"][index], "µs", floor=floor)
            )
        if given.steps:
            print(json.dumps(steps(Path(name)), indent=2, ensure_ascii=False))
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])
