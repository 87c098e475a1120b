import time
from datetime import timedelta

import pytest

from decklog import Conflict, Decklog, Invalid, LeaseLost, ManualClock, NotFound
from tests.every import every
from tests.stores.claiming import claimed


def test_an_expired_lease_goes_to_the_next_worker(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "work")
    first = log.tasks.claim(run_id, worker="slow", lease_seconds=60)
    assert log.tasks.claim(run_id, worker="quick") is None
    clock.advance(seconds=61)
    second = log.tasks.claim(run_id, worker="quick")
    assert second.task.id == first.task.id
    assert second.task.fence > first.task.fence
    for late in (
        lambda: log.tasks.extend(first.task.id, fence=first.task.fence),
        lambda: log.tasks.finish(first.task.id, fence=first.task.fence),
        lambda: log.tasks.fail(first.task.id, fence=first.task.fence),
        lambda: log.tasks.block(first.task.id, fence=first.task.fence, blocker="x"),
        lambda: log.tasks.release(first.task.id, fence=first.task.fence),
        lambda: log.tasks.park(first.task.id, fence=first.task.fence, reason="x"),
        lambda: log.tasks.pause(first.task.id, fence=first.task.fence, reason="x"),
        lambda: log.tasks.finish_and_claim(first.task.id, fence=first.task.fence),
    ):
        with pytest.raises(LeaseLost, match="quick has it"):
            late()
    assert log.tasks.get(first.task.id).worker == "quick"


def test_extending_keeps_a_lease(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "work")
    claim = log.tasks.claim(run_id, worker="w", lease_seconds=60)
    for _ in range(5):
        clock.advance(seconds=50)
        log.tasks.extend(claim.task.id, fence=claim.task.fence, lease_seconds=60, stage="Build")
    assert log.tasks.claim(run_id, worker="other") is None
    assert log.tasks.finish(claim.task.id, fence=claim.task.fence).stage == "Build"


def test_used_attempts_block_a_task_and_say_so(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "hard", max_attempts=3)
    claim = log.tasks.claim(run_id, worker="a")
    log.tasks.fail(claim.task.id, fence=claim.task.fence, summary="no", blocker="E1")
    log.tasks.claim(run_id, worker="b", lease_seconds=1)
    clock.advance(seconds=2)
    claim = log.tasks.claim(run_id, worker="c")
    task = log.tasks.fail(claim.task.id, fence=claim.task.fence, summary="still no", blocker="E1")
    assert task.state == "blocked"
    assert "3 attempts" in (task.reason or "")
    assert task.blocker_repeats == 2
    attempts = log.tasks.attempts(task.id)
    assert [(a.number, a.worker, a.outcome) for a in attempts] == [(1, "a", "failed"), (2, "b", "expired"), (3, "c", "failed")]
    assert [a.blocker for a in attempts] == ["E1", None, "E1"]
    resumed = log.tasks.resume(task.id)
    assert resumed.state == "pending"
    assert log.tasks.claim(run_id, worker="d") is not None


def test_a_lease_that_expires_for_the_last_time_blocks(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "deadly", max_attempts=1)
    log.tasks.claim(run_id, worker="w", lease_seconds=1)
    clock.advance(seconds=2)
    assert log.tasks.claim(run_id, worker="x") is None
    task = log.tasks.find(run_id)[0]
    assert (task.state, task.outcome) == ("blocked", "expired")
    assert "w expired; all 1 attempts are used" in (task.reason or "")


def test_another_blocker_starts_the_count_again(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "x", max_attempts=9)
    repeats = []
    for blocker in ["A", "A", "B", None, "B"]:
        claim = log.tasks.claim(run_id, worker="w")
        repeats.append(log.tasks.fail(claim.task.id, fence=claim.task.fence, blocker=blocker).blocker_repeats)
    assert repeats == [1, 2, 1, 0, 1]


def test_a_task_waits_for_what_it_depends_on(log: Decklog, run_id: str) -> None:
    first = log.tasks.add(run_id, "first", task_id="t1")
    log.tasks.add(run_id, "second", task_id="t2", depends_on=["t1"], priority=99)
    overview = log.tasks.ready(run_id)
    assert [task["id"] for task in overview["ready"]] == ["t1"]
    assert overview["not_ready"][0]["why"] == "waits for t1 (pending)"
    claim = log.tasks.claim(run_id, worker="w")
    assert claim.task.id == first.id
    assert log.tasks.claim(run_id, worker="w") is None
    claim.finish("done")
    assert log.tasks.claim(run_id, worker="w").task.id == "t2"


def test_a_circle_is_refused_and_named(log: Decklog, run_id: str) -> None:
    log.tasks.add_many(
        run_id,
        [
            {"title": "c", "task_id": "c", "depends_on": ["b"]},
            {"title": "b", "task_id": "b", "depends_on": ["a"]},
            {"title": "a", "task_id": "a"},
        ],
    )
    with pytest.raises(Conflict, match="a -> c -> b -> a"):
        log.tasks.depend("a", "c")
    with pytest.raises(Conflict, match="x -> y -> x"):
        log.tasks.add_many(
            run_id,
            [
                {"title": "x", "task_id": "x", "depends_on": ["y"]},
                {"title": "y", "task_id": "y", "depends_on": ["x"]},
            ],
        )
    with pytest.raises(NotFound):
        log.tasks.add(run_id, "z", depends_on=["nowhere"])
    assert len(log.tasks.find(run_id)) == 3


def test_a_task_is_not_claimed_before_its_time(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "later", not_before=clock.advance(hours=1))
    clock.advance(minutes=-30)
    assert log.tasks.claim(run_id, worker="w") is None
    assert "not before" in log.tasks.ready(run_id)["not_ready"][0]["why"]
    clock.advance(minutes=31)
    assert log.tasks.claim(run_id, worker="w") is not None


def test_pausing_from_outside_takes_the_task_from_its_worker(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "long")
    claim = log.tasks.claim(run_id, worker="w")
    paused = log.tasks.pause(claim.task.id, reason="the owner asked", snapshot={"cwd": "/src", "step": 4})
    assert paused.state == "paused"
    with pytest.raises(LeaseLost):
        claim.extend()
    resumed = log.tasks.resume(claim.task.id)
    assert resumed.snapshot == {"cwd": "/src", "step": 4}
    assert log.tasks.resume(claim.task.id).already
    assert log.tasks.claim(run_id, worker="v").task.snapshot == {"cwd": "/src", "step": 4}


def test_a_done_task_can_be_neither_paused_nor_abandoned(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "x")
    done = log.tasks.claim(run_id, worker="w").finish()
    with pytest.raises(Conflict, match="is done"):
        log.tasks.pause(done.id, reason="late")
    with pytest.raises(Conflict, match="is done"):
        log.tasks.abandon(done.id, reason="late")
    with pytest.raises(Conflict, match="is done"):
        log.tasks.resume(done.id)


def test_replanning_replaces_pending_tasks_and_leaves_running_ones(log: Decklog, run_id: str) -> None:
    for title in "abc":
        log.tasks.add(run_id, title)
    claim = log.tasks.claim(run_id, worker="w")
    new = log.tasks.replan(run_id, [{"title": "d"}, {"title": "e"}])
    assert [task.title for task in new] == ["d", "e"]
    states = {task.title: task.state for task in log.tasks.find(run_id)}
    assert states == {"a": "running", "b": "abandoned", "c": "abandoned", "d": "pending", "e": "pending"}
    log.tasks.replan(run_id, [], include_running=True)
    with pytest.raises(LeaseLost):
        claim.finish()


def test_a_released_task_costs_no_attempt(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "x", max_attempts=1)
    for _ in range(3):
        claim = log.tasks.claim(run_id, worker="w")
        assert claim.release("not mine").state == "pending"
    assert [a.outcome for a in log.tasks.attempts(claim.task.id)] == ["released"] * 3


def test_a_parked_task_waits_until_it_is_resumed(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "x")
    claim = log.tasks.claim(run_id, worker="w")
    assert claim.park("waits for CI").state == "waiting"
    assert log.tasks.claim(run_id, worker="w") is None
    log.tasks.resume(claim.task.id)
    assert log.tasks.claim(run_id, worker="w") is not None


def test_finishing_and_claiming_the_next_is_one_step(log: Decklog, run_id: str) -> None:
    for title in "abc":
        log.tasks.add(run_id, title)
    claim = log.tasks.claim(run_id, worker="w")
    titles = [claim.task.title]
    while (claim := log.tasks.finish_and_claim(claim.task.id, fence=claim.task.fence)) is not None:
        assert claim.task.worker == "w"
        titles.append(claim.task.title)
    assert titles == ["a", "b", "c"]
    assert {task.state for task in log.tasks.find(run_id)} == {"done"}


def test_a_block_finishes_what_it_claims(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "x")
    with log.tasks.claim(run_id, worker="w") as claim:
        assert claim.title == "x"
    assert log.tasks.get(claim.task.id).state == "done"


def test_a_block_that_raises_fails_its_task(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "x")
    with pytest.raises(ZeroDivisionError), log.tasks.claim(run_id, worker="w") as claim:
        1 / 0  # noqa: B018
    task = log.tasks.get(claim.task.id)
    assert (task.state, task.outcome, task.blocker) == ("pending", "failed", "ZeroDivisionError")


@pytest.mark.slow
def test_a_block_keeps_its_lease_alive(target: str) -> None:
    with Decklog.open(target) as log:
        run_id = log.runs.start("real time").id
        log.tasks.add(run_id, "longer than its lease")
        with log.tasks.claim(run_id, worker="w", lease_seconds=0.3) as claim:
            until = time.monotonic() + 0.9
            while time.monotonic() < until:
                assert log.tasks.claim(run_id, worker="thief") is None
                time.sleep(0.005)  # some hundred tries show it as well as thousands
        assert log.tasks.get(claim.task.id).state == "done"
        assert len(log.tasks.attempts(claim.task.id)) == 1


def test_a_claim_can_wait_for_a_task(target: str) -> None:
    import threading

    with Decklog.open(target) as log:
        run_id = log.runs.start("waiting").id
        threading.Timer(0.2, lambda: log.tasks.add(run_id, "late")).start()
        assert log.tasks.claim(run_id, worker="w", wait_seconds=20).task.title == "late"
        assert log.tasks.claim(run_id, worker="w", wait_seconds=0.05) is None


def test_a_run_that_does_not_exist_has_no_tasks_to_ask_for(log: Decklog) -> None:
    for ask in (
        lambda: log.tasks.claim("run_none", worker="w"),
        lambda: log.tasks.ready("run_none"),
        lambda: log.tasks.find("run_none"),
        lambda: log.tasks.replan("run_none", []),
        lambda: log.tasks.add("run_none", "work"),
    ):
        with pytest.raises(NotFound, match="no run 'run_none'"):
            ask()


def test_what_is_ready_is_listed_however_much_is_not(log: Decklog, run_id: str) -> None:
    log.tasks.add_many(run_id, [{"title": f"held {n}", "task_id": f"t{n}", "priority": 90} for n in range(30)])
    for n in range(30):
        log.tasks.pause(f"t{n}", reason="not now")
    log.tasks.add(run_id, "free", task_id="free", priority=1)
    picture = log.tasks.ready(run_id, limit=5)
    assert [task["id"] for task in picture["ready"]] == ["free"]
    assert [task["why"] for task in picture["not_ready"]] == ["paused: not now"] * 5


def test_ready_says_what_a_claim_would_do(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "last chance", task_id="last", max_attempts=1)
    log.tasks.add(run_id, "one more", task_id="more", max_attempts=2)
    for _ in range(2):
        log.tasks.claim(run_id, worker="w", lease_seconds=10)
    clock.advance(seconds=11)
    picture = log.tasks.ready(run_id)
    assert [task["id"] for task in picture["ready"]] == ["more"]
    assert "all 1 attempts are used" in picture["not_ready"][0]["why"]
    assert log.tasks.claim(run_id, worker="other").task.id == "more"
    assert log.tasks.get("last").state == "blocked"


def test_a_run_that_is_paused_or_over_gives_out_no_work(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "work", task_id="work")
    log.runs.update(run_id, status="paused")
    assert log.tasks.claim(run_id, worker="w") is None
    assert log.tasks.claim(worker="w") is None
    assert log.tasks.ready(run_id)["not_ready"][0]["why"] == f"run {run_id} is paused or over"
    log.runs.update(run_id, status="active")
    claim = claimed(log, run_id)
    log.runs.finish(run_id, status="cancelled")
    assert log.tasks.finish("work", fence=claim.task.fence).state == "done"  # what was begun may still be ended


def test_an_id_of_another_run_is_not_taken_for_this_one(log: Decklog, run_id: str) -> None:
    other = log.runs.start("other").id
    log.tasks.add(run_id, "work", task_id="work")
    with pytest.raises(Conflict, match="belongs to run run_1"):
        log.tasks.add(other, "work", task_id="work")
    assert log.tasks.find(other) == []


def test_finish_and_claim_keeps_to_role_group_and_tag(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "first", role="qa", priority=90)
    log.tasks.add(run_id, "not mine", role="developer", priority=80)
    log.tasks.add(run_id, "mine", role="qa", tags=["gpu"], group_id="B")
    claim = log.tasks.claim(run_id, worker="w", role="qa")
    following = log.tasks.finish_and_claim(claim.task.id, fence=claim.task.fence, role="qa", tag="gpu", group_id="B")
    assert following.task.title == "mine"
    assert log.tasks.finish_and_claim(following.task.id, fence=following.task.fence, role="qa") is None


def test_finishing_again_with_the_same_fence_changes_nothing(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "work", task_id="work")
    claim = log.tasks.claim(run_id, worker="w")
    done = log.tasks.finish("work", fence=claim.task.fence, summary="all green")
    again = log.tasks.finish("work", fence=claim.task.fence, summary="said twice")
    assert again.already
    assert again.as_dict() == {**done.as_dict(), "already": True}
    with pytest.raises(LeaseLost):
        log.tasks.finish("work", fence=claim.task.fence + 1)
    with pytest.raises(LeaseLost):
        log.tasks.fail("work", fence=claim.task.fence)


BAD: dict[str, list[object]] = {
    "title": [5, " "],
    "objective": [None],
    "tags": ["abc", [1], [""]],
    "depends_on": ["other"],
    "inputs": [[1]],
    "priority": [True, "9", -1, 101],
    "max_attempts": [0, 1.5],
    "not_before": ["soon", 7],
    "task_id": [""],
    "group_id": [3],
    "key": [""],
    "loop_version": ["x"],
}


@every("bad", [{name: value} for name, values in BAD.items() for value in values], ids=str)
def test_a_field_of_another_shape_is_refused_alone_and_in_a_list(log: Decklog, run_id: str, bad: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        log.tasks.add(run_id, **{"title": "x", **bad})
    with pytest.raises(Invalid):
        log.tasks.add_many(run_id, [{"title": "good"}, {"title": "x", **bad}])
    with pytest.raises(Invalid):
        log.tasks.replan(run_id, [{"title": "x", **bad}])
    assert log.tasks.find(run_id) == []


@pytest.mark.parametrize(
    "bad", [{"title": "t"}, ["t"], [{"task_id": "t"}], [{"title": "t", "run_id": "x"}], "t", [{"titel": "t"}]], ids=str
)
def test_what_is_no_list_of_tasks_is_refused(log: Decklog, run_id: str, bad: object) -> None:
    for verb in (log.tasks.add_many, log.tasks.replan):
        with pytest.raises(Invalid):
            verb(run_id, bad)


def test_a_list_of_tasks_may_come_from_json(log: Decklog, run_id: str, clock: ManualClock) -> None:
    [task] = log.tasks.add_many(run_id, [{"title": "t", "not_before": "2026-01-02T00:00:00Z", "tags": ["a", "a"]}])
    assert (task.not_before.isoformat(), task.tags) == ("2026-01-02T00:00:00+00:00", ["a"])


def test_a_task_depends_on_tasks_of_its_own_run(log: Decklog, run_id: str) -> None:
    other = log.runs.start("Something else", run_id="other").id
    log.tasks.add(other, "theirs", task_id="theirs")
    with pytest.raises(Invalid, match="tasks of its run"):
        log.tasks.add(run_id, "ours", depends_on=["theirs"])
    ours = log.tasks.add(run_id, "ours")
    with pytest.raises(Invalid, match="tasks of its run"):
        log.tasks.depend(ours.id, "theirs")


# Going on after a restart


def test_a_task_goes_on_under_a_new_fence_and_the_old_one_has_lost_it(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "work")
    claim = claimed(log, run_id, worker="dev")
    again = log.tasks.refence(claim.task.id, fence=claim.task.fence)
    assert (again.fence, again.worker, again.attempts) == (claim.task.fence + 1, "dev", 1)
    with pytest.raises(LeaseLost):
        log.tasks.finish(claim.task.id, fence=claim.task.fence)
    with pytest.raises(LeaseLost):
        log.tasks.refence(claim.task.id, fence=claim.task.fence)
    assert log.tasks.finish(claim.task.id, fence=again.fence).state == "done"
    assert [attempt.fence for attempt in log.tasks.attempts(claim.task.id)] == [again.fence]
    assert log.journal.verify().ok


def test_a_task_that_goes_on_has_its_lease_anew(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "work")
    claim = claimed(log, run_id, worker="dev", lease_seconds=10)
    clock.advance(seconds=9)
    log.tasks.refence(claim.task.id, fence=claim.task.fence, lease_seconds=10)
    clock.advance(seconds=9)
    assert log.tasks.claim(run_id, worker="other") is None


def test_a_task_is_released_until_a_time_and_costs_no_attempt(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "Lexer", max_attempts=1)
    claim = log.tasks.claim(run_id, worker="w")
    released = claim.release("the quota is used up", not_before=clock.now() + timedelta(minutes=5))
    assert (released.state, released.failures) == ("pending", 0)
    assert log.tasks.claim(run_id, worker="w") is None
    clock.advance(minutes=5)
    assert log.tasks.claim(run_id, worker="w").task.id == released.id


@pytest.mark.slow
def test_a_chain_of_1200_tasks_can_be_added_in_reverse_order(log: Decklog, run_id: str) -> None:
    chain = [{"title": str(n), "task_id": f"t{n}", "depends_on": [f"t{n - 1}"] if n else []} for n in range(1200)]
    added = log.tasks.add_many(run_id, chain[::-1])
    assert [task.id for task in added] == [f"t{n}" for n in range(1200)]
    claim = claimed(log, run_id)
    assert claim.task.id == "t0"


def test_a_long_circle_is_refused_and_named(log: Decklog, run_id: str) -> None:
    circle = [{"title": str(n), "task_id": f"t{n}", "depends_on": [f"t{(n + 1) % 1200}"]} for n in range(1200)]
    with pytest.raises(Conflict, match="t0 -> t1 -> ") as refusal:
        log.tasks.add_many(run_id, [{"title": "first", "depends_on": ["t0"]}, *circle])
    assert refusal.value.details["circle"] == [*(f"t{n}" for n in range(1200)), "t0"]
