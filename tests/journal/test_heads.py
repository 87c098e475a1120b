"""The row of each stream has the stream's last entry as its head."""

import pytest

from decklog import Decklog
from decklog.journal.replication import Replication
from tests.db.tampering import PostgresVictim


def fill(log: Decklog) -> None:
    for number in range(3):
        log.runs.start(f"goal {number}", run_id=f"run_{number}")
    log.journal.append("run_0", "a first one")
    log.journal.append_many([{"stream": "run_1", "body": f"entry {number}"} for number in range(70)])
    log.inbox.post("ana", "Why so slow?", run_id="run_2")


def heads_by_entries(log: Decklog) -> dict[str, tuple[int, str]]:
    _, rows = log.db.read(lambda: log.db.rows("select stream, seq, hash from entries order by stream, seq", {}))
    return {stream: (seq, hash) for stream, seq, hash in rows}


def stored_heads(log: Decklog) -> dict[str, tuple[int, str]]:
    return {head["stream"]: (head["seq"], head["hash"]) for head in log.journal.heads()}


def test_every_append_moves_the_head_of_its_stream(log: Decklog) -> None:
    fill(log)
    assert stored_heads(log) == heads_by_entries(log)
    assert log.db.read(log.db.wrong_heads) == []


def test_a_head_goes_back_with_the_transaction_that_moved_it(log: Decklog) -> None:
    fill(log)
    before = stored_heads(log)
    with pytest.raises(ZeroDivisionError), log.transaction():
        log.journal.append("run_0", "never committed")
        raise ZeroDivisionError
    assert stored_heads(log) == before
    log.journal.append("run_0", "committed")
    assert stored_heads(log) == heads_by_entries(log)


def test_a_transaction_finds_the_heads_it_has_moved_itself(log: Decklog) -> None:
    fill(log)
    with log.transaction():
        log.journal.append("run_0", "a second one")
        assert stored_heads(log) == heads_by_entries(log)
        with pytest.raises(ZeroDivisionError), log.transaction():
            log.journal.append("run_0", "undone")
            raise ZeroDivisionError
        log.journal.append("run_0", "a third one")
    assert stored_heads(log) == heads_by_entries(log)
    assert log.journal.verify().ok


def test_received_entries_move_the_head(log: Decklog, tmp_path) -> None:
    fill(log)
    with Decklog.open(tmp_path / "other.db") as other:
        replication = Replication.of(other)
        for head in log.journal.heads():
            replication.receive(Replication.of(log).export_entries(head["stream"]))
        assert stored_heads(other) == stored_heads(log)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["head_seq = head_seq - 1", "head_seq = head_seq + 1", "head_hash = 'f'", "head_at = '2000'"])
def test_verify_finds_a_wrong_head_and_rebuild_derives_it_again(postgres_url: str, change: str) -> None:
    with Decklog.open(postgres_url) as log:
        fill(log)
        before = stored_heads(log)
        assert PostgresVictim(postgres_url, log).change(f"update streams set {change} where name = 'run_0'")
        assert [(problem.table, problem.stream) for problem in log.journal.verify().problems] == [("streams", "run_0")]
        log.rebuild()
        assert stored_heads(log) == before
        assert log.journal.verify().ok
