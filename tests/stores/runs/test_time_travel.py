from datetime import timedelta

import pytest

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound
from tests.statements import statements
from tests.stores.claiming import claimed


def play(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.runs.record_agent(run_id, "developer", session="s1")
    log.tasks.add_many(
        run_id,
        [{"title": "a", "task_id": "task_a"}, {"title": "b", "task_id": "task_b", "depends_on": ["task_a"]}],
    )
    for _ in range(2):
        clock.advance(minutes=1)
        claim = log.tasks.claim(run_id, worker="w")
        log.journal.append(run_id, "working", kind="tool", task_id=claim.task.id)
        claim.finish("ok")
    log.runs.update(run_id, summary="halfway")


def test_a_snapshot_shows_the_run_at_every_entry(log: Decklog, run_id: str, clock: ManualClock) -> None:
    seen = {}
    start = 1
    play(log, run_id, clock)
    last = log.journal.find(run_id, limit=1)[0].seq
    for seq in range(start, last + 1):
        seen[seq] = log.runs.snapshot(run_id, at=str(seq))
    assert seen[last].run == log.runs.get(run_id)
    assert {task.id for task in seen[last].records["tasks"]} == {"task_a", "task_b"}
    assert seen[start].records.keys() == {"runs"}
    for seq, picture in seen.items():
        for table, records in picture.records.items():
            for record in records:
                assert log.journal.at(table, record.id_of(record.values()), str(seq)) == record
    assert [attempt.outcome for attempt in seen[last].attempts] == ["done", "done"]
    assert log.runs.snapshot(run_id).as_dict() == seen[last].as_dict()


def test_a_snapshot_can_be_asked_for_by_time(log: Decklog, run_id: str, clock: ManualClock) -> None:
    begin = clock.now()
    play(log, run_id, clock)
    picture = log.runs.snapshot(run_id, at=str(begin + timedelta(seconds=90)))
    assert {task.id: task.state for task in picture.records["tasks"]} == {"task_a": "done", "task_b": "pending"}
    with pytest.raises(NotFound):
        log.runs.snapshot(run_id, at="2020-01-01T00:00:00Z")
    with pytest.raises(NotFound):
        log.runs.snapshot(run_id, at="9999")
    with pytest.raises(NotFound):
        log.runs.snapshot("nobody")


def test_a_difference_names_every_changed_field(log: Decklog, run_id: str, clock: ManualClock) -> None:
    play(log, run_id, clock)
    changes = log.runs.diff(f"{run_id}:1", run_id)
    assert {(change["table"], change["change"]) for change in changes} == {
        ("runs", "changed"),
        ("agents", "added"),
        ("tasks", "added"),
        ("dependencies", "added"),
    }
    run_change = next(change for change in changes if change["table"] == "runs")
    assert run_change["fields"]["summary"] == [None, "halfway"]
    assert log.runs.diff(run_id, run_id) == []


@pytest.mark.parametrize("back", [0, 3, 6])
def test_a_fork_equals_its_parent_at_that_entry(log: Decklog, run_id: str, clock: ManualClock, back: int) -> None:
    play(log, run_id, clock)
    seq = log.journal.find(run_id, limit=1)[0].seq - back
    parent = log.runs.snapshot(run_id, at=str(seq))
    fork = log.runs.fork(run_id, at=str(seq), branch="try-again")
    copy = log.runs.snapshot(fork.id)
    assert (fork.parent_run_id, fork.parent_seq, fork.branch) == (run_id, seq, "try-again")
    assert copy.records.keys() == parent.records.keys()
    by_title = {task.title: task for task in copy.records["tasks"]}
    for original in parent.records["tasks"]:
        twin = by_title[original.title]
        own = ("id", "run_id", "worker", "leased_at", "leased_until", "attempts", "state")
        same = {name: value for name, value in original.values().items() if name not in own}
        assert same == {name: value for name, value in twin.values().items() if name not in own}
        assert twin.id != original.id
    assert [d.task_id for d in copy.records["dependencies"]] == [by_title["b"].id]
    assert [d.depends_on for d in copy.records["dependencies"]] == [by_title["a"].id]
    assert log.journal.verify().ok
    assert log.runs.snapshot(run_id, at=str(seq)).as_dict() == parent.as_dict()


def test_a_fork_goes_its_own_way(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "x")
    fork = log.runs.fork(run_id, new_run_id="second-try", goal="Another way")
    log.tasks.claim(fork.id, worker="w").finish()
    assert log.tasks.find(run_id)[0].state == "pending"
    assert log.tasks.find("second-try")[0].state == "done"
    assert log.runs.get("second-try").goal == "Another way"
    with pytest.raises(Invalid):
        log.runs.fork(run_id, new_run_id="second-try")


def test_a_run_is_not_completed_while_a_required_criterion_is_open(log: Decklog, run_id: str) -> None:
    log.criteria.record(run_id, [{"criterion": "All tests pass"}, {"criterion": "Nice to have", "required": False}])
    with pytest.raises(Conflict, match="All tests pass"):
        log.runs.finish(run_id)
    with pytest.raises(Invalid, match="reason"):
        log.runs.finish(run_id, force=True)
    assert log.runs.finish(run_id, status="failed").status == "failed"
    log.runs.update(run_id, status="active")
    log.criteria.meet(run_id, "All tests pass", evidence="CI 41", evidence_commit="a" * 40)
    log.criteria.observe(run_id, commit="b" * 40)
    with pytest.raises(Conflict, match="stale"):
        log.runs.finish(run_id)
    assert log.runs.finish(run_id, force=True, reason="the owner said so").status == "completed"


def test_a_copy_is_named_after_its_kind_where_a_caller_chose_the_id(log: Decklog, run_id: str) -> None:
    ours = log.tasks.add(run_id, "ours").id
    log.tasks.add(run_id, "theirs", task_id="split_the-lexer")
    log.tasks.add(run_id, "plain", task_id="7")
    copies = {task.title: task.id for task in log.tasks.find(log.runs.fork(run_id).id)}
    assert all(task_id.startswith("task_") for task_id in copies.values())
    assert ours not in copies.values()


def test_a_fork_does_not_end_what_its_parent_reserved(log: Decklog, run_id: str) -> None:
    log.budgets.set("all", limit_microdollars=100)
    log.tasks.add(run_id, "work")
    claim = log.tasks.claim(run_id, worker="w", reserve_microdollars=80)
    fork = log.runs.fork(run_id)
    log.tasks.claim(fork.id, worker="other").finish()
    assert log.reservations.get(claim.task.reservation_id).state == "open"
    assert log.budgets.burn()[0]["left"] == 20


@pytest.mark.parametrize("bad", ["a b", "", "@desk", "run:1", "x" * 201])
def test_a_fork_gets_no_id_that_a_run_could_not_have(log: Decklog, run_id: str, bad: str) -> None:
    with pytest.raises(Invalid):
        log.runs.fork(run_id, new_run_id=bad)


def test_only_what_names_a_record_is_renamed_in_a_fork(log: Decklog, run_id: str) -> None:
    log.groups.add(run_id, "lexer")
    log.tasks.add(run_id, "lexer", task_id="lexer", tags=["lexer"], group_id="lexer", objective="lexer", key="lexer")
    log.tasks.add(run_id, "parser", task_id="parser", depends_on=["lexer"], acceptance=["parser", "lexer"])
    fork = log.runs.fork(run_id)
    first, second = log.tasks.find(fork.id)
    assert (first.title, first.tags, first.group_id, first.objective, first.key) == (
        "lexer",
        ["lexer"],
        "lexer",
        "lexer",
        "lexer",
    )
    assert second.acceptance == ["parser", "lexer"]
    assert log.tasks.dependencies(second.id) == [first.id]
    assert not {first.id, second.id} & {"lexer", "parser"}


def test_nobody_has_a_lease_in_a_fork_and_no_attempt_is_used(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "once only", max_attempts=1)
    claim = log.tasks.claim(run_id, worker="first", lease_seconds=60)
    fork = log.runs.fork(run_id)
    [copy] = log.tasks.find(fork.id)
    assert (copy.state, copy.worker, copy.leased_until, copy.attempts, copy.failures) == ("pending", None, None, 0, 0)
    clock.advance(seconds=3600)
    second = claimed(log, fork.id, worker="second")
    assert second.finish().state == "done"
    assert claim.task.worker == "first"
    assert log.journal.verify().ok


@pytest.mark.slow
def test_a_fork_takes_time_in_proportion_to_its_records(log: Decklog, run_id: str) -> None:
    """Statements are counted, not seconds: at most one more for each record more, which is one entry."""
    log.runs.start("Make the lexer faster", run_id="run_2")
    asked = []
    for run, records in ((run_id, 3), ("run_2", 300)):
        log.tasks.add_many(run, [{"title": str(number), "task_id": f"{run}.{number}"} for number in range(records)])
        before = log.journal.heads()
        with statements(log) as seen:
            fork = log.runs.fork(run)
        asked.append(len(seen))
        assert {head["stream"] for head in log.journal.heads()} - {head["stream"] for head in before} == {fork.id}
        assert len(log.journal.find(fork.id, limit=1000)) == records + 2
    assert asked[1] - asked[0] <= 300 - 3


@pytest.mark.parametrize("seq", range(1, 12))
def test_a_fork_in_the_middle_of_what_a_verb_wrote_is_whole(log: Decklog, run_id: str, seq: int) -> None:
    first = log.tasks.add(run_id, "first", priority=90)
    log.tasks.add(run_id, "second", depends_on=[first.id])
    for count in (1, 2):
        log.states.save(run_id, "notes", {"count": count})
    claim = claimed(log, run_id)
    claim.finish()
    fork = log.runs.fork(run_id, at=str(seq)).id
    open_tasks = [task for task in log.tasks.find(fork) if task.state == "pending"]
    for _ in open_tasks:
        again = log.tasks.claim(fork, worker="w")
        assert again is not None, log.tasks.ready(fork)["not_ready"]
        again.finish()
    saved = [log.states.save(fork, "notes", {"count": count}).version for count in (2, 3)]
    assert saved[1] == saved[0] + 1 == log.states.get(fork, "notes").version
    assert log.journal.verify().ok


def test_an_entry_about_days_ago_changes_nothing_of_what_a_run_was_then(log: Decklog, run_id: str, clock: ManualClock) -> None:
    clock.advance(days=2)
    log.runs.update(run_id, summary="halfway")
    log.journal.append(run_id, "what was said the day before", at=clock.now() - timedelta(days=1))
    log.journal.append(run_id, "what was said before the run", at=clock.now() - timedelta(days=9))
    then = (clock.now() - timedelta(hours=12)).isoformat()
    assert log.runs.snapshot(run_id, at=then).run == log.journal.at("runs", run_id, then)
    assert log.runs.get(log.runs.fork(run_id, at=then).id).summary is None
    with pytest.raises(NotFound):
        log.runs.snapshot(run_id, at=(clock.now() - timedelta(days=5)).isoformat())


def test_later_changes_leave_a_snapshot_as_it_was(log: Decklog, run_id: str, clock: ManualClock) -> None:
    play(log, run_id, clock)
    log.tasks.add(run_id, "c")
    clock.advance(minutes=1)
    claim = log.tasks.claim(run_id, worker="w")
    claim.fail("no disk", blocker="disk full")
    picture = log.runs.snapshot(run_id)
    log.tasks.abandon(claim.task.id, reason="not now")
    tasks = {task.id: task.state for task in picture.records["tasks"]}
    assert tasks == {"task_a": "done", "task_b": "done", claim.task.id: "pending"}
    assert [attempt.outcome for attempt in picture.attempts] == ["done", "done", "failed"]
    assert picture.attempts == [attempt for task_id in tasks for attempt in log.tasks.attempts(task_id)]


def test_a_record_that_was_removed_is_in_no_later_snapshot(log: Decklog, run_id: str) -> None:
    for name in ("a", "b"):
        log.tasks.add(run_id, '"removed":true', task_id=name)
    log.tasks.depend("a", "b")
    there = log.journal.find(run_id, limit=1)[0].seq
    log.tasks.undepend("a", "b", reason="not needed")
    assert len(log.runs.snapshot(run_id, at=str(there)).records["dependencies"]) == 1
    now = log.runs.snapshot(run_id).records
    assert "dependencies" not in now
    assert [task.title for task in now["tasks"]] == ['"removed":true'] * 2
