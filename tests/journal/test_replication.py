import pytest

from decklog import Conflict, Decklog, ManualClock
from decklog.core.errors import Damaged
from decklog.journal.replication import Replication


@pytest.fixture
def source(tmp_path, clock: ManualClock) -> Decklog:
    log = Decklog.open(tmp_path / "source.db", clock=clock)
    run = log.runs.start("Move me", run_id="moved").id
    log.runs.record_agent(run, "developer", session="s")
    log.tasks.add_many(run, [{"title": "b", "task_id": "b", "depends_on": ["a"]}, {"title": "a", "task_id": "a"}])
    log.tasks.claim(run, worker="w").finish("ok")
    log.journal.append(run, "long " * 20_000, kind="tool")
    log.journal.append(run, "last", key="k", payload={"a": 1})
    return log


def test_a_received_stream_is_the_same_to_the_byte(log: Decklog, source: Decklog) -> None:
    for digest, content in Replication.of(source).blobs(Replication.of(source).blob_digests()):
        Replication.of(log).import_blobs([(digest, content)])
    entries = Replication.of(source).export_entries("moved")
    assert Replication.of(log).receive(entries[:4]) == 4
    assert Replication.of(log).receive(entries) == len(entries) - 4
    assert Replication.of(log).receive(entries) == 0
    assert Replication.of(log).export_entries("moved") == entries
    assert log.journal.verify().as_dict() == source.journal.verify().as_dict()
    assert log.tasks.find("moved") == source.tasks.find("moved")
    assert log.journal.append("moved", "again", key="k").already
    assert log.tasks.claim("moved", worker="v").task.id == "b"


def test_a_gap_a_change_or_another_history_is_refused(log: Decklog, source: Decklog) -> None:
    entries = Replication.of(source).export_entries("moved")
    with pytest.raises(Conflict, match="gap"):
        Replication.of(log).receive(entries[1:])
    with pytest.raises(Damaged, match="moved:2"):
        Replication.of(log).receive([entries[0], {**entries[1], "agent": "someone else"}])
    Replication.of(log).receive(entries)
    with pytest.raises(Conflict, match="a different one"):
        Replication.of(log).receive([{**entries[0], "hash": "0" * 64}])
    with pytest.raises(Damaged):
        Replication.of(log).import_blobs([("0" * 64, b"other")])
