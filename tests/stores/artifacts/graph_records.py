"""A graph's thread in a run: a checkpoint, what was written after it, and an item that graphs share."""

from typing import Any

from decklog.stores.artifacts.graphs import Encoded


def fill_graphs(log: Any, run_id: str) -> None:
    """Write one record of each kind."""
    place = {"run_id": run_id, "namespace": "", "checkpoint_id": "c1"}
    said = Encoded("msgpack", b"\x81\xa1a\x01", False)
    log.states.save_graph_checkpoint({**place, "thread_id": run_id, "parent_id": "c0"}, said, {"step": 1, "run_id": "g1"})
    log.states.save_graph_writes({**place, "task_id": "t", "task_path": "p"}, [(0, "said", said)], replace=False)
    with log.transaction():
        log.states.save_graph_item("users.ana", "likes", {"food": "soup"}, indexed=["food"], ttl_seconds=60.0)
