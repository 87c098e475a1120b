"""`put` of the checkpointer on a log beside LangGraph's own SQLite saver: processor time, in turns, in the same run."""

import json
import shutil
import sqlite3
import tempfile
import time
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

from decklog import Decklog
from decklog.adapters.langgraph import DecklogSaver

PUTS, TURNS = 200, 9
SIZES = {"small": 1, "conversation of 20 messages": 20, "conversation of 200 messages": 200}


def state(messages: int, step: int) -> Any:
    """Make a checkpoint as a graph of one conversation has it: what was said before is there again, and one message is new."""
    checkpoint = empty_checkpoint()
    said = [{"role": "user", "content": f"message {number + step}: " + "some words " * 20} for number in range(messages)]
    checkpoint["channel_values"] = {"messages": said, "step": step}
    checkpoint["channel_versions"] = {"messages": step, "step": step}
    return checkpoint


def turn(saver: BaseCheckpointSaver[Any], thread: str, messages: int) -> float:
    """Give the processor time of one put, in microseconds."""
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    states = [state(messages, step) for step in range(PUTS)]
    start = time.process_time()
    for step, checkpoint in enumerate(states):
        config = saver.put(config, checkpoint, {"source": "loop", "step": step}, {})
    return (time.process_time() - start) / PUTS * 1e6


def measure() -> dict[str, dict[str, float]]:
    """Give the medians of each saver, by the size of the state."""
    folder = tempfile.mkdtemp()
    theirs = sqlite3.connect(f"{folder}/theirs.sqlite", check_same_thread=False)
    found: dict[str, dict[str, float]] = {}
    with Decklog.open(f"{folder}/ours.db") as log:
        savers: dict[str, BaseCheckpointSaver[Any]] = {"decklog": DecklogSaver(log), "langgraph": SqliteSaver(theirs)}
        for size, messages in SIZES.items():
            times: dict[str, list[float]] = {name: [] for name in savers}
            for number in range(TURNS):
                for name, saver in savers.items():
                    times[name].append(turn(saver, f"{size} {number}".replace(" ", "-"), messages))
            found[size] = {name: sorted(some)[TURNS // 2] for name, some in times.items()}
    theirs.close()
    shutil.rmtree(folder)
    return found


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
