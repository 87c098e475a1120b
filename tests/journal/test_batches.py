from datetime import UTC, datetime
from typing import Any

import pytest

from decklog import Decklog, Invalid, ManualClock, NotFound
from decklog.journal.new_entry import prepare_entry
from decklog.journal.rows import COLUMNS
from decklog.records.values import Values
from decklog.stores.money.bulk import Bulk


def _batches() -> "list[list[dict[str, Any]]]":
    """Return batches of like entries, and some with one entry that differs."""
    secret = "ghp_" + "a1B2" * 9
    plain = [{"body": f"line {number}", "agent": "developer"} for number in range(70)]
    odd: list[dict[str, Any]] = [
        {"body": "with a key", "key": "k"},
        {"body": "of another kind", "kind": "tool"},
        {"body": None, "payload": {"a": 1}},
        {"body": "with a payload", "payload": {"a": [1]}, "refs": ["x:1"], "iteration": 2},
        {"body": f"export TOKEN={secret}"},
        {"body": "x" * 20_000},
        {"body": ""},
        {"body": "of a task", "task_id": "task_1"},
        {"body": "at another time", "at": datetime(2020, 1, 1, tzinfo=UTC)},
        {"body": "of another", "agent": "tester"},
        {"body": "né 😀 \u2028", "agent": 'a "quoted" one'},
    ]
    return [plain, *([*plain, one] for one in odd), [{**plain[0], "stream": "run_2"}, *plain]]


@pytest.mark.slow
def test_batch_equals_single_appends(log: Decklog, run_id: str) -> None:
    log.runs.start("another", run_id="run_2")
    for batch in _batches():
        before = {stream: log.journal.find(stream)[0].seq for stream in (run_id, "run_2")}
        written = log.journal.append_many([{"stream": run_id, **given} for given in batch])
        assert [*written] == [log.journal.get(entry.id) for entry in written]
        assert written[-1] == written[len(batch) - 1]
        for entry, given in zip(written, batch, strict=True):
            again = log.journal.append("run_2", **{name: value for name, value in given.items() if name not in ("stream", "key")})
            ours, alone = entry.as_dict(), again.as_dict()
            for name in ("stream", "seq", "at", "hash", "key", "id"):
                ours.pop(name, None), alone.pop(name, None)
            assert ours == alone
        assert log.journal.find(run_id)[0].seq + log.journal.find("run_2")[0].seq == sum(before.values()) + 2 * len(batch)
    assert log.journal.verify().ok


def _prepared(stream: str, given: dict[str, Any]) -> tuple[Any, ...]:
    return prepare_entry(Values(), {"kind": "interaction", **given, "stream": stream})


@pytest.mark.slow
def test_prepared_batch_equals_smaller_batches(log: Decklog, run_id: str) -> None:
    log.runs.start("another", run_id="run_2")
    bulk, times = Bulk(log.parts), [None, datetime(2024, 1, 1, tzinfo=UTC), datetime(2019, 1, 1, tzinfo=UTC)]
    long: list[dict[str, Any]] = [{"body": "x" * 70_000}, {"body": None, "payload": {"a": "y" * 70_000}}]
    long += [{"body": f"line {each}"} for each in range(70)]
    for number, batch in enumerate([*_batches(), long]):
        entries = [
            {"at": times[place % 3], "subtype": "said", **one, "key": None if place % 5 == 0 else f"{number}:{place}"}
            for place, one in enumerate(batch)
        ]
        entries.append(entries[1])
        for stream in (run_id, "run_2"):
            prepared = [_prepared(stream, one) for one in entries]
            size = len(prepared) if stream == run_id else 10
            parts = [prepared[start : start + size] for start in range(0, len(prepared), size)]
            counts = [log.db.write(lambda part=part: bulk.take(part)) for part in parts]
            assert sum(counts) == len(prepared) - 1
    ours, others = (_without_names(log, stream) for stream in (run_id, "run_2"))
    assert len(ours) > 900
    assert ours == others
    assert log.journal.verify().ok


def _without_names(log: Decklog, stream: str) -> "list[tuple[Any, ...]]":
    names = ", ".join(name for name in COLUMNS if name not in ("pos", "stream", "hash"))
    sql = f"select {names} from entries where stream = :stream and kind <> 'change' order by pos"
    return log.db.read(lambda: [tuple(row) for row in log.db.rows(sql, {"stream": stream})[1]])


def test_a_prepared_batch_that_comes_again_adds_nothing(log: Decklog, run_id: str) -> None:
    prepared = [_prepared(run_id, {"body": f"line {number}", "key": f"k{number}"}) for number in range(140)]
    bulk = Bulk(log.parts)
    assert log.db.write(lambda: bulk.take(prepared[:70])) == 70
    assert log.db.write(lambda: bulk.take(prepared)) == 70
    assert log.db.write(lambda: bulk.take(prepared)) == 0
    assert [entry.key for entry in log.journal.find(run_id, oldest_first=True, limit=200)][1:] == [f"k{n}" for n in range(140)]
    assert log.journal.verify().ok


def test_batch_with_an_invalid_entry_is_refused(log: Decklog, run_id: str) -> None:
    plain = [{"stream": run_id, "body": f"line {number}"} for number in range(70)]
    for odd in ({"body": None}, {}, {"body": "a\x00b"}, {"agent": ["a"]}, {"body": "\ud800"}):
        with pytest.raises(Invalid):
            log.journal.append_many([*plain, {"stream": run_id, **odd}])
    with pytest.raises(NotFound):
        log.journal.append_many([{**given, "stream": "run_none"} for given in plain])
    assert len(log.journal.find(run_id)) == 1


def test_a_batch_goes_back_in_time_when_the_clock_does(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.journal.append(run_id, "now")
    clock.jump(days=-1)
    written = log.journal.append_many([{"stream": run_id, "body": f"line {number}"} for number in range(70)])
    assert [entry.seq for entry in log.journal.find(run_id, until=clock.now(), oldest_first=True, limit=100)][:2] == [3, 4]
    assert written[0].at == clock.now()
    assert log.journal.verify().ok
