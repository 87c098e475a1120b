from datetime import UTC, datetime, timedelta

import pytest

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound
from decklog.records.record import find_all
from tests.stores.claiming import claimed


def test_a_run_comes_back_as_it_was_started(log: Decklog) -> None:
    given = log.runs.start(
        "Make the parser faster",
        run_id="run_7",
        mode="parallel",
        status="planning",
        repo="git@example.org:parser.git",
        branch="faster",
        worktree="/src/parser",
        metadata={"tier": 2, "tags": ["a"]},
        started_at=datetime(2025, 12, 24, tzinfo=UTC),
    )
    assert log.runs.get("run_7") == given
    assert given.metadata == {"tier": 2, "tags": ["a"]}
    assert given.started_at == datetime(2025, 12, 24, tzinfo=UTC)
    assert given.updated_at == log.clock.now()
    assert log.journal.get("run_7", 1).record_id == "run_7"


def test_a_run_gets_an_id_of_its_own_when_none_is_given(log: Decklog) -> None:
    ids = [log.runs.start("x").id for _ in range(20)]
    assert len(set(ids)) == 20
    assert ids == sorted(ids)
    assert all(run_id.startswith("run_") for run_id in ids)


def test_starting_again_with_the_same_id_or_key_gives_the_first(log: Decklog) -> None:
    first = log.runs.start("one", run_id="a", key="k")
    by_id, by_key = log.runs.start("two", run_id="a"), log.runs.start("three", key="k")
    assert by_id == by_key == first
    assert by_id.already
    assert by_key.already
    assert len(log.runs.find()) == 1
    assert log.journal.verify().entries == 1


@pytest.mark.parametrize("run_id", ["", " ", "a b", "@desk", "a:b", "x" * 201, "tab\there"])
def test_an_id_that_could_not_name_a_stream_is_refused(log: Decklog, run_id: str) -> None:
    with pytest.raises(Invalid):
        log.runs.start("x", run_id=run_id)
    assert log.journal.heads() == []


@pytest.mark.parametrize("bad", [{"goal": " "}, {"status": "completed"}, {"status": "sleeping"}, {"mode": "sideways"}])
def test_a_run_that_makes_no_sense_is_refused(log: Decklog, bad: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        log.runs.start(**({"goal": "x"} | bad))  # type: ignore[arg-type]
    assert log.runs.find() == []


def test_an_update_changes_what_is_given_and_keeps_the_rest(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.runs.update(run_id, repo="r", branch="b", metadata={"a": 1})
    clock.advance(minutes=5)
    run = log.runs.update(run_id, branch="c", current_task_id="task_1")
    assert (run.repo, run.branch, run.metadata, run.current_task_id) == ("r", "c", {"a": 1}, "task_1")
    assert run.updated_at == clock.now()
    cleared = log.runs.update(run_id, clear=["branch", "current_task_id"])
    assert (cleared.repo, cleared.branch, cleared.current_task_id) == ("r", None, None)


@pytest.mark.parametrize(
    "bad", [{}, {"status": "failed"}, {"status": "odd"}, {"goal": ""}, {"clear": ["goal"]}, {"clear": ["id"]}]
)
def test_an_update_that_makes_no_sense_is_refused(log: Decklog, run_id: str, bad: dict[str, object]) -> None:
    before = log.runs.get(run_id)
    with pytest.raises(Invalid):
        log.runs.update(run_id, **bad)  # type: ignore[arg-type]
    assert log.runs.get(run_id) == before


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_run_ends_once_and_says_how(log: Decklog, run_id: str, clock: ManualClock, status: str) -> None:
    clock.advance(hours=1)
    ended = log.runs.finish(run_id, status=status, summary="that was it")  # type: ignore[arg-type]
    assert (ended.status, ended.summary, ended.ended_at) == (status, "that was it", clock.now())
    clock.advance(hours=1)
    again = log.runs.finish(run_id, status=status)  # type: ignore[arg-type]
    assert again.already
    assert again.ended_at == ended.ended_at
    told = log.journal.find(run_id)[0].body or ""
    assert status in told
    assert "that was it" in told


def test_a_run_that_ended_before_it_is_told_has_that_time(log: Decklog, run_id: str, clock: ManualClock) -> None:
    began = log.runs.get(run_id).started_at
    clock.advance(hours=5)
    ended = log.runs.finish(run_id, ended_at=began + timedelta(hours=1))
    assert ended.ended_at == began + timedelta(hours=1)
    assert log.runs.finish(run_id, ended_at=ended.ended_at).already
    later = log.runs.finish(run_id, ended_at=began + timedelta(hours=2))
    assert (later.already, later.ended_at) == (False, began + timedelta(hours=2))
    with pytest.raises(Invalid, match="can't have ended before"):
        log.runs.finish(run_id, ended_at=began - timedelta(seconds=1))
    assert log.journal.verify().ok


def test_a_run_can_not_end_as_something_that_goes_on(log: Decklog, run_id: str) -> None:
    with pytest.raises(Invalid):
        log.runs.finish(run_id, status="active")  # type: ignore[arg-type]


def test_an_ended_run_that_goes_on_has_no_end(log: Decklog, run_id: str) -> None:
    log.runs.finish(run_id, status="failed")  # type: ignore[arg-type]
    assert log.runs.update(run_id, status="active").ended_at is None  # type: ignore[arg-type]


def test_cycles_and_replans_are_counted(log: Decklog, run_id: str) -> None:
    for _ in range(3):
        log.runs.count_cycle(run_id)
    log.runs.count_replan(run_id)
    run = log.runs.get(run_id)
    assert (run.cycles, run.replans) == (3, 1)


def test_runs_are_listed_by_status_parent_and_time(log: Decklog, clock: ManualClock) -> None:
    start = clock.now()
    for number in range(5):
        log.runs.start(f"goal {number}", run_id=f"r{number}")
        clock.advance(hours=1)
    log.runs.finish("r2", status="failed")  # type: ignore[arg-type]
    assert [run.id for run in log.runs.find()] == ["r4", "r3", "r2", "r1", "r0"]
    assert [run.id for run in log.runs.find(oldest_first=True, limit=2)] == ["r0", "r1"]
    assert [run.id for run in log.runs.find(status="failed")] == ["r2"]  # type: ignore[arg-type]
    within = log.runs.find(since=start + timedelta(hours=1), until=start + timedelta(hours=3))
    assert [run.id for run in within] == ["r3", "r2", "r1"]
    assert log.runs.find(parent_run_id="r0") == []
    with pytest.raises(Invalid):
        log.runs.find(status="odd")  # type: ignore[arg-type]


@pytest.mark.parametrize("oldest_first", [False, True])
def test_pages_of_runs_follow_each_other_even_at_the_same_instant(log: Decklog, oldest_first: bool) -> None:
    for number in range(7):
        log.runs.start("same time", run_id=f"r{number}")
    seen = [run.id for run in find_all(log.runs.find, limit=3, oldest_first=oldest_first)]
    assert seen == sorted((f"r{number}" for number in range(7)), reverse=not oldest_first)
    for bad in ("x", "{}", "[]", "[1]", "[1,2,3]", "null"):
        with pytest.raises(Invalid, match="cursor"):
            log.runs.find(after=bad)


def test_an_agent_is_recorded_step_by_step(log: Decklog, run_id: str) -> None:
    first = log.runs.record_agent(run_id, "developer", session="s1", last_prompt_path="p1")
    assert (first.session, first.turns, first.rotations, first.last_prompt_path) == ("s1", 0, 0, "p1")
    assert log.runs.record_agent(run_id, "developer", turns=4).session == "s1"
    assert log.runs.count_turn(run_id, "developer").turns == 5
    rotated = log.runs.rotate_agent(run_id, "developer", "s2")
    assert (rotated.session, rotated.turns, rotated.rotations, rotated.last_prompt_path) == ("s2", 0, 1, "p1")
    log.runs.record_agent(run_id, "analyst")
    assert [agent.role for agent in log.runs.agents(run_id)] == ["analyst", "developer"]
    assert log.journal.at("agents", '["run_1","developer"]', "2").session == "s1"  # type: ignore[attr-defined]
    assert log.journal.verify().ok


def test_what_is_not_there_is_not_found(log: Decklog, run_id: str) -> None:
    for act in (
        lambda: log.runs.get("nobody"),
        lambda: log.runs.update("nobody", summary="x"),
        lambda: log.runs.finish("nobody"),
        lambda: log.runs.count_cycle("nobody"),
        lambda: log.runs.record_agent("nobody", "developer"),
        lambda: log.runs.count_turn(run_id, "nobody"),
        lambda: log.runs.rotate_agent(run_id, "nobody", "s"),
        lambda: log.runs.agents("nobody"),
    ):
        with pytest.raises(NotFound):
            act()


def test_counts_below_zero_are_refused(log: Decklog, run_id: str) -> None:
    with pytest.raises((Invalid, Conflict)):
        log.runs.record_agent(run_id, "developer", turns=-1)
    assert log.runs.agents(run_id) == []


def test_a_run_completed_with_unfinished_tasks_carries_a_warning(log: Decklog, run_id: str) -> None:
    for title in ("one", "two", "three"):
        log.tasks.add(run_id, title)
    claimed(log, run_id).finish("done")
    warning = f"run {run_id} is completed with 2 unfinished tasks"
    assert list(log.runs.finish(run_id).warnings) == [warning]
    assert list(log.runs.finish(run_id).warnings) == [warning]


def test_a_run_without_unfinished_tasks_or_one_that_failed_has_no_warning(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "one")
    assert list(log.runs.finish(run_id, status="failed").warnings) == []
    assert list(log.runs.finish(log.runs.start("another").id).warnings) == []


def test_error_about_a_changed_field_has_its_name(log: Decklog, run_id: str) -> None:
    with pytest.raises(Invalid, match=r"^goal contains a NUL byte") as refused:
        log.runs.update(run_id, goal="one\x00two")
    assert refused.value.details["field"] == "goal"
