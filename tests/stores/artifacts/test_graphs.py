"""What graphs of other frameworks wrote, kept many at a time."""

from typing import Any

from decklog import Decklog
from decklog.stores.artifacts.graphs import Encoded

PLACE = {"namespace": "", "checkpoint_id": "c-1", "task_id": "t-1", "task_path": ""}


def _told(run_id: str, number: int, content: bytes, **other: Any) -> tuple[dict[str, Any], Encoded]:
    return {**PLACE, "run_id": run_id, "number": number, "channel": "messages", **other}, Encoded("msgpack", content, False)


def _kept(log: Decklog, run_id: str) -> dict[int, bytes]:
    found = log.states.graph_writes(run_id, "", "c-1")
    return {write.number: log.states.graph_bytes(write.digest) for write in found}


def test_writes_are_kept_once_and_what_is_here_stays(log: Decklog) -> None:
    run, other = log.runs.start("A thread").id, log.runs.start("Another thread").id
    long = b"much of the same " * 500

    with log.transaction():
        log.states.import_graph_writes(
            [_told(run, 1, b"one"), _told(other, 1, b"one"), _told(run, 1, b"two"), _told(run, 2, long)]
        )
    heads = log.journal.heads()
    with log.transaction():
        log.states.import_graph_writes([_told(run, 1, b"later"), _told(run, 2, b"later")])

    assert _kept(log, run) == {1: b"one", 2: long}
    assert _kept(log, other) == {1: b"one"}
    assert log.journal.heads() == heads
    assert log.journal.verify().ok
