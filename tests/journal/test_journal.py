import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound, Task
from decklog.core.errors import TooLarge
from tests.every import every
from tests.paging import all_pages
from tests.statements import statements
from tests.stores.claiming import claimed
from tests.waiting import wait_until


def test_entries_are_numbered_without_a_gap(log: Decklog, run_id: str) -> None:
    entries = [log.journal.append(run_id, f"step {number}") for number in range(5)]
    assert [entry.seq for entry in entries] == [2, 3, 4, 5, 6]  # the run's own entry is the first
    assert entries[0].id == "run_1:2"


def test_an_entry_comes_back_as_it_was_given(log: Decklog, run_id: str) -> None:
    entry = log.journal.append(
        run_id,
        "I will split the lexer first",
        kind="reasoning",
        subtype="plan",
        agent="developer",
        agent_id="dev-7",
        group_id="A",
        task_id="task_1",
        iteration=2,
        payload={"files": ["a.py", "b.py"], "ratio": 0.5, "none": None},
        phase="approach",
        confidence="high",
        refs=["src/a.py"],
    )
    assert log.journal.get(run_id, entry.seq) == entry
    assert entry.payload == {"files": ["a.py", "b.py"], "ratio": 0.5, "none": None}
    assert entry.at == datetime(2026, 1, 1, tzinfo=UTC)


def test_the_same_key_gives_the_first_entry_back(log: Decklog, run_id: str) -> None:
    first = log.journal.append(run_id, "once", kind="event", subtype="merge", key="k")
    again = log.journal.append(run_id, "twice", kind="event", subtype="merge", key="k")
    assert again == first
    assert again.already
    assert not first.already


@pytest.mark.parametrize("other", [{"subtype": "other"}, {"group_id": "B"}, {"key": "k2"}])
def test_another_subtype_group_or_key_is_another_entry(log: Decklog, run_id: str, other: dict[str, str]) -> None:
    fields = {"subtype": "merge", "group_id": "A", "key": "k"}
    first = log.journal.append(run_id, "once", kind="event", **fields)
    assert log.journal.append(run_id, "once", kind="event", **(fields | other)).seq == first.seq + 1


def test_many_entries_go_in_together_or_not_at_all(log: Decklog, run_id: str) -> None:
    log.journal.append_many([{"stream": run_id, "body": str(number)} for number in range(50)])
    with pytest.raises(Invalid):
        log.journal.append_many([{"stream": run_id, "body": "good"}, {"stream": run_id, "kind": "nonsense", "body": "x"}])
    assert len(log.journal.find(run_id, limit=100)) == 51
    assert log.journal.verify().ok


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 700])
def test_of_many_entries_with_keys_only_the_unknown_are_written(log: Decklog, run_id: str, size: int) -> None:
    known = log.journal.append(run_id, "known", kind="event", subtype="merge", key="key 1")
    other = log.runs.start("another goal", run_id="other")
    entries = [{"stream": run_id, "body": str(number), "kind": "event", "key": f"key {number}"} for number in range(size)]
    of_merge = [{**entry, "subtype": "merge"} for entry in entries[:3]]
    elsewhere = {**entries[0], "stream": other.id}

    written = log.journal.append_many([*entries, *of_merge, elsewhere, {"stream": run_id, "body": "no key"}, entries[0]])
    again = log.journal.append_many([*entries, *of_merge, elsewhere])

    assert [entry.already for entry in written] == [False] * size + [False, True, False] + [False, False, True]
    assert written[size + 1] == known
    assert written[-1] == written[0]
    assert [entry.seq for entry in written[:size]] == list(range(known.seq + 1, known.seq + 1 + size))
    assert list(again) == list(written[: size + 4])
    assert all(entry.already for entry in again)
    assert log.journal.verify().ok


def test_repeated_known_key_returns_the_first_entry(log: Decklog, run_id: str) -> None:
    first = log.journal.append(run_id, "first", key="k")

    written = log.journal.append_many([{"stream": run_id, "body": "again", "key": "k"} for _ in range(3)])

    assert [(entry.body, entry.seq, entry.already) for entry in written] == [("first", first.seq, True)] * 3


def test_filters_select_matching_entries(log: Decklog, run_id: str) -> None:
    for number in range(30):
        log.journal.append(
            run_id,
            f"entry {number}",
            kind="event" if number % 3 == 0 else "interaction",
            subtype="tick" if number % 2 == 0 else None,
            agent=f"agent-{number % 4}",
            group_id=f"g{number % 5}",
            task_id=f"t{number % 6}",
        )
    assert len(log.journal.find(run_id, kind="event")) == 10
    assert len(log.journal.find(run_id, subtype="tick")) == 15
    assert len(log.journal.find(run_id, agent="agent-1")) == 8
    assert len(log.journal.find(run_id, group_id="g1", task_id="t1")) == 1
    assert [e.body for e in log.journal.find(run_id, agent="agent-3", kind="event")] == [
        "entry 27",
        "entry 15",
        "entry 3",
    ]
    assert [e.body for e in log.journal.find(agent="agent-3", kind="event")] == [
        "entry 27",
        "entry 15",
        "entry 3",
    ]


def test_a_rare_kind_is_found_far_back(log: Decklog, run_id: str) -> None:
    log.journal.append(run_id, "the one", kind="reasoning", agent="dev one")
    log.journal.append_many([{"stream": run_id, "body": "noise"} for _ in range(2500)])
    assert [entry.body for entry in log.journal.find(run_id, kind="reasoning")] == ["the one"]
    assert [entry.body for entry in log.journal.find(run_id, agent="dev one")] == ["the one"]
    assert log.journal.find(run_id, agent="dev-one") == []


@pytest.mark.parametrize("oldest_first", [False, True])
def test_pages_follow_each_other_without_gap_or_repeat(log: Decklog, run_id: str, oldest_first: bool) -> None:
    log.journal.append_many([{"stream": run_id, "body": str(number)} for number in range(47)])
    entries = all_pages(lambda after: log.journal.find(run_id, limit=10, after=after, oldest_first=oldest_first))
    expected = list(range(1, 49))
    assert [entry.seq for entry in entries] == (expected if oldest_first else expected[::-1])


def test_a_span_of_time_is_found_whether_times_grow_or_not(log: Decklog, run_id: str, clock: ManualClock) -> None:
    start = clock.now()
    for number in range(20):
        clock.advance(minutes=1)
        log.journal.append(run_id, str(number))

    def between() -> list[str | None]:
        page = log.journal.find(run_id, since=start + timedelta(minutes=5), until=start + timedelta(minutes=7))
        return [entry.body for entry in page]

    assert between() == ["6", "5", "4"]
    log.journal.append(run_id, "late news", at=start + timedelta(minutes=6))
    assert between() == ["late news", "6", "5", "4"]


def test_words_are_found_newest_first(log: Decklog, run_id: str) -> None:
    log.journal.append(run_id, "The lexer drops a token at end of file")
    log.journal.append(run_id, "Nothing to see")
    log.journal.append(run_id, payload={"note": "the parser and the lexer agree"})
    assert [entry.seq for entry in log.journal.search("lexer")] == [4, 2]
    assert [entry.seq for entry in log.journal.search("lexer the", stream=run_id)] == [4, 2]
    assert [entry.seq for entry in log.journal.search("lex*")] == [4, 2]
    assert log.journal.search("lexers") == []
    log.journal.append(run_id, "lexer again")
    assert [entry.seq for entry in log.journal.search("lexer", limit=1)] == [5]


@every("words", ['"', "a OR b", "words : x", "NEAR(", "*", "'; drop table entries; --", "(", "-x", "^a", "a:b"])
def test_no_word_is_an_operator(log: Decklog, run_id: str, words: str) -> None:
    assert isinstance(log.journal.search(words), list)


def test_a_record_can_be_seen_as_of_any_entry_or_time(log: Decklog, run_id: str, clock: ManualClock) -> None:
    for number in range(5):
        clock.advance(minutes=1)
        log.runs.update(run_id, summary=f"version {number}")
    for number in range(5):
        assert log.journal.at("runs", run_id, str(number + 2)).summary == f"version {number}"
        assert log.journal.at("runs", run_id, f"{run_id}:{number + 2}").summary == f"version {number}"
        moment = f"2026-01-01T00:{number + 1:02}:30Z"
        assert log.journal.at("runs", run_id, moment).summary == f"version {number}"
    assert log.journal.at("runs", run_id, "1").summary is None
    with pytest.raises(NotFound):
        log.journal.at("runs", run_id, "2025-12-31T00:00:00Z")
    with pytest.raises(Invalid):
        log.journal.at("runs", run_id, "soon")


def test_history_lists_every_change(log: Decklog, run_id: str) -> None:
    for number in range(3):
        log.runs.update(run_id, summary=str(number))
    entries = log.journal.history("runs", run_id)
    assert [entry.subtype for entry in entries] == ["added", "changed", "changed", "changed"]
    with pytest.raises(NotFound):
        log.journal.history("runs", "nobody")
    with pytest.raises(Invalid):
        log.journal.history("no_such_table", run_id)


def test_a_tail_gives_each_entry_once_and_resumes(log: Decklog, run_id: str) -> None:
    log.journal.append(run_id, "a")
    seqs = [entry.seq for entry in log.journal.tail(run_id, follow=False)]
    log.journal.append(run_id, "b")
    assert seqs == [1, 2]
    assert [entry.body for entry in log.journal.tail(run_id, after=2, follow=False)] == ["b"]
    assert list(log.journal.tail(run_id, after=3, timeout_seconds=0.05)) == []


@pytest.mark.slow
def test_a_tail_waits_for_what_comes(log: Decklog, run_id: str) -> None:
    bodies: list[str | None] = []
    reader = threading.Thread(target=lambda: bodies.extend(e.body for e in log.journal.tail(run_id, after=1, timeout_seconds=1)))
    reader.start()
    for number in range(20):
        log.journal.append(run_id, str(number))
    reader.join(20)
    assert bodies == [str(number) for number in range(20)]


def test_a_long_body_is_kept_once_as_a_blob(log: Decklog, run_id: str) -> None:
    long = "line of output\n" * 20_000
    entry = log.journal.append(run_id, long, kind="tool")
    log.journal.append(run_id, long, kind="tool")
    assert entry.body == long
    assert log.journal.get(run_id, entry.seq) == entry
    assert entry.body_digest is not None
    assert log.journal.verify().ok


def test_a_long_text_is_kept_when_its_transaction_is_tried_again(log: Decklog, run_id: str) -> None:
    text = "line of a build\n" * 8_000
    with ThreadPoolExecutor(2) as pool:
        with log.transaction():
            # Both wait and are written together. After the failure each is retried alone.
            long = pool.submit(log.journal.append, run_id, text)
            wait_until(lambda: _are_waiting(log, 1))
            lost = pool.submit(log.journal.append, "run_of_nobody", "lost")
            wait_until(lambda: _are_waiting(log, 2))
        entry = long.result()
        with pytest.raises(NotFound):
            lost.result()
    assert log.journal.get(entry.id).body == text
    assert log.journal.verify().ok


def _are_waiting(log: Decklog, count: int) -> bool:
    """Return whether enough writers wait; on PostgreSQL none do."""
    return log.db.engine != "sqlite" or len(log.db._group._waiting) == count


def test_everything_in_a_block_is_one_transaction(log: Decklog, run_id: str) -> None:
    with pytest.raises(ZeroDivisionError), log.transaction():
        log.journal.append(run_id, "first")
        log.runs.update(run_id, summary="changed")
        raise ZeroDivisionError
    assert len(log.journal.find(run_id)) == 1
    with log.transaction():
        log.journal.append(run_id, "first")
        log.runs.update(run_id, summary="changed")
    assert len(log.journal.find(run_id)) == 3
    assert log.journal.verify().ok


def test_a_failed_verb_inside_a_transaction_leaves_the_rest(log: Decklog, run_id: str) -> None:
    with log.transaction():
        log.journal.append(run_id, "kept")
        with pytest.raises(NotFound):
            log.runs.count_cycle("nobody")
        log.journal.append(run_id, "kept too")
    assert [entry.body for entry in log.journal.find(run_id)][:2] == ["kept too", "kept"]
    assert log.journal.verify().ok


def test_acting_agent_is_on_every_entry(log: Decklog, run_id: str) -> None:
    with log.acting("developer", agent_id="d1", task_id="t1"):
        log.runs.update(run_id, summary="x")
        entry = log.journal.append(run_id, "by me")
        with log.acting("qa"):
            inner = log.journal.append(run_id, "by qa")
    assert (entry.agent, entry.agent_id, entry.task_id) == ("developer", "d1", "t1")
    assert (inner.agent, inner.agent_id) == ("qa", "d1")
    assert log.journal.get(run_id, 2).agent == "developer"
    assert log.journal.append(run_id, "by nobody").agent is None


def test_writes_in_flight_share_a_commit_and_all_arrive(log: Decklog, run_id: str) -> None:
    with log.acting("developer"):
        futures = [log.submit(log.journal.append, run_id, str(number)) for number in range(100)]
    assert sorted(future.result(10).seq for future in futures) == list(range(2, 102))
    assert {future.result().agent for future in futures} == {"developer"}
    refused = log.submit(log.journal.append, "nobody", "x")
    with pytest.raises(NotFound):
        refused.result(10)
    assert log.journal.verify().ok


def test_one_bad_write_does_not_spoil_those_beside_it(log: Decklog, run_id: str) -> None:
    with log.transaction():
        pass
    good = [log.submit(log.journal.append, run_id, str(number)) for number in range(20)]
    bad = [log.submit(log.journal.append, "nobody", str(number)) for number in range(20)]
    assert all(future.result(10) for future in good)
    assert all(isinstance(future.exception(10), NotFound) for future in bad)
    assert len(log.journal.find(run_id, limit=100)) == 21


# What bad input gets


@every(
    "bad",
    [
        {"body": "a\x00b"},
        {"body": "half \ud800 pair"},
        {"body": None},
        {"payload": {"x": float("nan")}},
        {"payload": {"x": float("inf")}},
        {"payload": {"x": "a\x00b"}},
        {"payload": {"\udfff": 1}},
        {"payload": {"x": object()}},
        {"payload": "text"},
        {"body": "x", "kind": "change"},
        {"body": "x", "kind": "gossip"},
        {"body": "x", "phase": "lunch"},
        {"body": "x", "confidence": "85"},
        {"body": "x", "iteration": float("nan")},
        {"body": "x", "at": datetime(2026, 1, 1)},
        {"body": "x", "colour": "red"},
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(log: Decklog, run_id: str, bad: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        log.journal.append(run_id, **bad)
    assert len(log.journal.find(run_id)) == 1


@pytest.mark.parametrize("depth", [500, 10_000])
def test_json_that_is_too_deep_is_refused(log: Decklog, run_id: str, depth: int) -> None:
    value: object = "core"
    for _ in range(depth):
        value = [value]
    with pytest.raises(Invalid, match="deep"):
        log.journal.append(run_id, payload=[value])


def test_a_value_over_the_limit_is_refused(target: str) -> None:
    with Decklog.open(target, limit_bytes=1000) as log:
        log.runs.start("small", run_id="r")
        log.journal.append("r", "x" * 1000)
        with pytest.raises(TooLarge):
            log.journal.append("r", "x" * 1001)
        with pytest.raises(TooLarge):
            log.journal.append("r", "ü" * 501)
        with pytest.raises(TooLarge):
            log.journal.append("r", payload={"x": "y" * 1000})


def test_an_unknown_stream_or_filter_is_an_error(log: Decklog, run_id: str) -> None:
    with pytest.raises(NotFound):
        log.journal.append("nobody", "x")
    with pytest.raises(NotFound):
        list(log.journal.tail("nobody", follow=False))
    with pytest.raises(Invalid, match="colour"):
        log.journal.find(run_id, colour="red")
    with pytest.raises(Invalid):
        log.journal.find(run_id, limit=0)
    with pytest.raises(Invalid):
        log.journal.find(run_id, after="elsewhere")
    with pytest.raises(NotFound):
        log.journal.get(run_id, 99)
    assert log.journal.find("nobody") == []


def test_entries_can_be_neither_changed_nor_deleted(log: Decklog, run_id: str) -> None:
    log.journal.append(run_id, "as it was")
    for statement in (
        "delete from entries",
        "update entries set body = 'other' where seq = 2",
        "update entries set at = '2020' where seq = 2",
        "update entries set body = null where seq = 2",
        "update entries set payload = null, payload_digest = 'x' where seq = 1",
    ):
        with pytest.raises((Conflict, Invalid, Exception), match="never"), log.transaction():
            log.db.rows(statement, {})
    assert log.journal.verify().ok


def test_a_long_text_can_be_read_from_what_was_written_with_others(log: Decklog, run_id: str) -> None:
    long = "a line of output\n" * 10_000
    batch = [{"stream": run_id, "body": long, "key": "k"}, {"stream": run_id, "body": "short"}]
    for is_known in (False, True):
        written = log.journal.append_many(batch)
        assert [entry.body for entry in written] == [long, "short"]
        assert written[0].already == is_known


def test_changes_and_remarks_of_a_task_come_in_one_order(log: Decklog, run_id: str) -> None:
    task = log.tasks.add(run_id, "one", task_id="one")
    log.tasks.add(run_id, "another", task_id="other")
    claim = claimed(log, run_id, worker="w")
    log.journal.append(run_id, "I begin", task_id=task.id)
    log.journal.append(run_id, "about the other", task_id="other")
    log.artifacts.add(run_id, "report", "out.txt", content="text", task_id=task.id)
    claim.finish()
    seqs = [entry.seq for entry in log.journal.find(run_id, task_id=task.id, oldest_first=True)]
    assert seqs == [2, 4, 5, 7, 8]
    first = log.journal.find(task_id=task.id, limit=2)
    rest = log.journal.find(task_id=task.id, after=first.next)
    assert [entry.seq for entry in [*first, *rest]] == seqs[::-1]
    assert [entry.seq for entry in log.journal.find(run_id, task_id=task.id, kind="change")] == [8, 7, 4, 2]


def test_payload_of_a_change_has_no_nulls(log: Decklog, run_id: str) -> None:
    task = log.tasks.add(run_id, "one")
    (entry,) = log.journal.history("tasks", task.id)
    assert None not in entry.payload.values()
    assert log.journal.at("tasks", task.id, entry.id) == task
    assert log.journal.verify().ok


def test_default_values_are_omitted_from_payloads_and_restored(log: Decklog, run_id: str) -> None:
    task = log.tasks.add(run_id, "one", priority=0, tags=["a"])
    plain = log.tasks.edit(task.id, priority=50, tags=[], reason="as any other")
    first, then = log.journal.history("tasks", task.id)
    full: Any = first.payload
    short: Any = then.payload
    assert full["priority"] == 0
    assert full["tags"] == '["a"]'
    names = ["created_at", "id", "run_id", "state", "title", "updated_at"]
    assert sorted(short) == names
    assert sorted(full) == sorted([*names, "priority", "tags"])
    assert [log.journal.at("tasks", task.id, entry.id) for entry in (first, then)] == [task, plain]
    assert log.tasks.get(log.tasks.find(log.runs.fork(run_id, at=then.id).id)[0].id).max_attempts == task.max_attempts
    assert log.journal.verify().ok


def test_omitted_default_values_never_change(log: Decklog) -> None:
    none = dict.fromkeys(("tags", "acceptance", "verification", "allowed_paths"), "[]")
    zero = dict.fromkeys(("open_dependencies", "attempts", "failures", "fence", "blocker_repeats"), 0)
    expected = {"tasks": {**none, **zero, "objective": "", "inputs": "{}", "priority": 50, "max_attempts": 3}}
    classes = log.record_classes()
    assert {table: dict(one.omitted_values) for table, one in classes.items() if one.omitted_values} == expected
    names = Task.columns()
    row = tuple(Task.upcast({"id": "t"}).values())
    assert Task.image_of(names, row) == '{"id":"t"}'
    # Values that only compare as equal are written: a damaged row must not look intact.
    odd = tuple(0.0 if name == "fence" else value for name, value in zip(names, row, strict=True))
    assert Task.image_of(names, odd) == '{"fence":0.0,"id":"t"}'


@pytest.mark.parametrize("was_indexed", [True, False])
def test_read_only_search_finds_unindexed_entries(log: Decklog, run_id: str, target: str, was_indexed: bool) -> None:
    log.journal.append(run_id, "first words", kind="tool")
    if was_indexed:
        log.journal.search("words")
    log.journal.append(run_id, "second words", kind="tool")
    log.journal.append(run_id, "third words", kind="event")
    with Decklog.open(target, read_only=True) as reader:
        for found in (lambda ask: ask(reader.journal), lambda ask: log.db.read(lambda: ask(log.journal))):
            assert [entry.body for entry in found(lambda journal: journal.find(kind="tool"))] == ["second words", "first words"]
            assert [entry.body for entry in found(lambda journal: journal.find(run_id, kind="event"))] == ["third words"]
            assert [entry.body for entry in found(lambda journal: journal.search("words", limit=2))] == [
                "third words",
                "second words",
            ]
            page = found(lambda journal: journal.search("words", limit=2))
            assert [entry.body for entry in found(lambda journal: journal.search("words", after=page.next))] == ["first words"]  # noqa: B023
    assert log.journal.verify().ok


def test_log_is_verified_after_a_merge_of_its_searched_index(log: Decklog, run_id: str) -> None:
    for body in ("one word", "another word", "a third word"):
        log.journal.append(run_id, body)
        log.journal.search("word")
    merge = "insert into entry_text (entry_text) values ('optimize')"
    if log.db.engine == "sqlite":  # where each connection remembers the parts of the index that it saw
        log.db.write(lambda: log.db.count(merge, {}))
    assert log.journal.verify().problems == []


def test_log_is_verified_after_searches_during_writes(log: Decklog, run_id: str) -> None:
    dice, runs, long = random.Random(1), [run_id, "run_2", "run_3"], "parser " * 10_000
    log.journal.append(run_id, long)
    log.journal.search("lexer", stream=run_id)
    log.journal.find(run_id, kind="tool", limit=3)
    with log.transaction():
        log.runs.start("another", run_id="run_2")
        log.journal.search("lexer", stream="run_2")
        with log.transaction(), log.transaction():
            log.runs.start("a third", run_id="run_3")
            for number in range(25):
                body, kind = dice.choice(["lexer", "lexer parser", "parser", long]), dice.choice(["tool", "event"])
                key, payload = dice.choice([None, None, "k", "l"]), dice.choice([None, {"n": 7}])
                log.journal.append(dice.choice(runs), body, kind=kind, key=key, payload=payload)
                if number // 2 % 2:
                    log.journal.search("lexer", stream=runs[number % 3], limit=2)
                else:
                    log.journal.find(runs[number % 3], kind="tool", limit=3)
    assert log.journal.verify().problems == []


def test_search_finds_every_earlier_commit_of_any_connection(log: Decklog, run_id: str) -> None:
    """What was found out about the text index holds for the version of the log that was looked at, and for no other."""
    log.runs.start("Other", run_id="other")
    with Decklog.open(log.db.target) as beside:
        for number in range(3):
            for writer, stream in ((log, run_id), (beside, "other")):
                writer.journal.append(stream, f"needle {number}")
                assert [len(reader.journal.search("needle", stream=stream)) for reader in (log, beside)] == [number + 1] * 2
            assert [len(reader.journal.search("needle")) for reader in (beside, log)] == [2 * number + 2] * 2
        with log.transaction():
            log.journal.append(run_id, "needle in a transaction")
            assert len(log.journal.search("needle")) == 7
            assert log.db.engine != "sqlite" or len(beside.journal.search("needle", stream="other")) == 3
        assert len(beside.journal.search("needle")) == 7


def test_a_search_of_a_file_that_nobody_wrote_to_is_one_statement(tmp_path: Path) -> None:
    with Decklog.open(tmp_path / "log.db") as log:
        log.runs.start("Find", run_id="run_1")
        log.journal.index()
        log.journal.search("find")
        with statements(log) as executed:
            log.journal.search("find")
        assert len(executed) == 1
