"""What happens between a claim and everything else: transactions, lost leases, copies, many who wait."""

import copy
import threading
import time
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from decklog import Conflict, Decklog, Invalid, LeaseLost, ManualClock, NotFound
from tests.stores.claiming import claimed


def within(seconds: float, job: object) -> None:
    """Run a job that must not hang."""
    problems: list[BaseException] = []

    def run() -> None:
        try:
            job()  # type: ignore[operator]
        except (Exception, SystemExit) as problem:  # noqa: BLE001 - raised again where the test sees it
            problems.append(problem)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it hangs"
    if problems:
        raise problems[0]


@pytest.mark.slow
def test_a_claim_may_end_inside_a_transaction(target: str) -> None:
    with Decklog.open(target) as log:
        log.runs.start("goal", run_id="run_1")
        log.tasks.add("run_1", "work", task_id="work")

        def work() -> None:
            # The lease is so short that the background means to extend it while the transaction is open.
            with log.transaction(), claimed(log, "run_1", lease_seconds=0.3):
                threading.Event().wait(0.4)

        within(20, work)
        assert log.tasks.get("work").state == "done"


def test_a_claim_says_why_it_is_no_longer_kept_alive(tmp_path: Path) -> None:
    log = Decklog.open(tmp_path / "log.db")
    log.runs.start("goal", run_id="run_1")
    log.tasks.add("run_1", "work")
    claim = claimed(log, "run_1", lease_seconds=0.15)
    with pytest.raises(LeaseLost, match="closed"), claim:
        log.close()
        for _ in range(200):
            if claim.lost is not None:
                break
            threading.Event().wait(0.02)
        assert "closed" in str(claim.lost)


def lose(log: Decklog, clock: ManualClock, run_id: str) -> None:
    """Let the lease run out, and give the task to somebody else."""
    clock.advance(seconds=3600)
    assert log.tasks.claim(run_id, worker="somebody else") is not None


WRITES = {
    "journal.append": lambda log: log.journal.append("run_1", "still here"),
    "journal.append_many": lambda log: log.journal.append_many([{"stream": "run_1", "body": "still here"}]),
    "states.save": lambda log: log.states.save("run_1", "s", {"a": 1}),
    "artifacts.add": lambda log: log.artifacts.add("run_1", "file", "p", content="x"),
    "outputs.save": lambda log: log.outputs.save("run_1", "lint", {}),
    "memory.remember": lambda log: log.memory.remember("task_outcomes", "It went well", run_id="run_1"),
    "tasks.add": lambda log: log.tasks.add("run_1", "more work"),
    "criteria.record": lambda log: log.criteria.record("run_1", ["All tests pass"]),
    "approvals.ask": lambda log: log.approvals.ask("run_1", "May I?", by="w", about="x"),
    "ci.record": lambda log: log.ci.record("build", "main", 1, started_at=log.clock.now()),
}


@pytest.mark.parametrize("verb", WRITES)
def test_whoever_lost_its_task_writes_nothing_more_in_its_name(log: Decklog, run_id: str, clock: ManualClock, verb: str) -> None:
    log.tasks.add(run_id, "work")
    with pytest.raises(LeaseLost), claimed(log, run_id):
        WRITES[verb](log)
        lose(log, clock, run_id)
        before = log.journal.heads()
        with pytest.raises(LeaseLost):
            WRITES[verb](log)
        assert log.journal.heads() == before
        raise LeaseLost("as it does when nobody looks")
    assert log.journal.append(run_id, "the block is over").seq


def test_money_that_is_spent_is_charged_even_late_and_marked(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    log.tasks.add(run_id, "work")
    with pytest.raises(LeaseLost), claimed(log, run_id, reserve_microdollars=50):
        assert not log.ledger.charge("m", cost_microdollars=1, run_id=run_id).is_late
        lose(log, clock, run_id)
        late = log.ledger.charge("m", cost_microdollars=500, run_id=run_id)
        assert (late.is_late, late.cost_microdollars) == (True, 500)
        log.journal.append(run_id, "this is refused")
    assert log.journal.verify().ok


def test_a_late_charge_tells_of_the_budgets_it_passes(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "work")
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    with pytest.raises(LeaseLost), claimed(log, run_id, lease_seconds=60):
        lose(log, clock, run_id)
        assert log.ledger.charge("m", cost_microdollars=150).is_late
    assert [entry.subtype for entry in log.journal.find(run_id, kind="event")] == ["budget_overdrawn"]
    assert log.budgets.burn()[0]["spent"] == 150


def test_what_a_block_has_ended_does_not_bind_it(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "one")
    log.tasks.add(run_id, "two")
    with claimed(log, run_id) as claim:
        claim.finish()
        log.journal.append(run_id, "and then")
        claimed(log, run_id).finish()
    with pytest.raises(Conflict):
        claim.task and log.tasks.finish(claim.task.id, fence=0)


def test_the_task_itself_may_be_moved_from_inside_its_block(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "work", task_id="work")
    with pytest.raises(LeaseLost), claimed(log, run_id) as claim:
        log.tasks.pause("work", reason="lunch", fence=claim.task.fence)
        log.journal.append(run_id, "no longer mine")
    assert log.tasks.get("work").state == "paused"


def test_entries_in_a_block_are_about_its_task(log: Decklog, run_id: str) -> None:
    log.groups.add(run_id, "A")
    log.tasks.add(run_id, "work", task_id="work", group_id="A")
    with claimed(log, run_id):
        entry = log.journal.append(run_id, "a thought")
        other = log.journal.append(run_id, "about another", task_id="another")
    assert (entry.task_id, entry.group_id, other.task_id) == ("work", "A", "another")
    assert log.journal.append(run_id, "afterwards").task_id is None


def test_a_fence_holds_for_whoever_acts_with_it(log: Decklog, run_id: str, clock: ManualClock) -> None:
    task = log.tasks.add(run_id, "work")
    fence = claimed(log, run_id).task.fence
    with log.acting("dev", task_id=task.id, fence=fence):
        log.journal.append(run_id, "mine")
        lose(log, clock, run_id)
        with pytest.raises(LeaseLost):
            log.journal.append(run_id, "no longer mine")
    with pytest.raises(Invalid, match="needs the task"), log.acting("dev", fence=1):
        pass


@pytest.mark.parametrize("tag", [",", '","', "b]", "a,b", "A", ""])
def test_a_tag_is_the_whole_tag(log: Decklog, run_id: str, tag: str) -> None:
    log.tasks.add(run_id, "tagged", task_id="tagged", tags=["a", "b"])
    assert log.tasks.claim(run_id, worker="w", tag=tag) is None
    assert claimed(log, run_id, tag="b").task.id == "tagged"


@pytest.mark.parametrize("tag", [",", '","', "a[1]", "x,y", 'say "hi"', "ü", "back\\slash"])
def test_a_strange_tag_finds_its_own_task(log: Decklog, run_id: str, tag: str) -> None:
    log.tasks.add(run_id, "plain", tags=["a", "b"], priority=90)
    log.tasks.add(run_id, "strange", task_id="strange", tags=["a", tag, "b"])
    assert [task.id for task in log.tasks.find(run_id, tag=tag)] == ["strange"]
    assert claimed(log, run_id, tag=tag).task.id == "strange"


def test_a_run_that_is_over_takes_no_tasks_and_ends_once(log: Decklog, run_id: str) -> None:
    kept = log.tasks.add(run_id, "before", task_id="before")
    log.runs.finish(run_id)
    with pytest.raises(Conflict, match="completed"):
        log.tasks.add(run_id, "too late")
    assert log.tasks.add(run_id, "before", task_id="before").id == kept.id
    with pytest.raises(Conflict, match="ended as completed"):
        log.runs.finish(run_id, status="failed")
    assert log.runs.finish(run_id).already
    log.runs.update(run_id, status="active")
    assert log.tasks.add(run_id, "in time").state == "pending"


@pytest.mark.parametrize("when", ["other:2", "12:30", "1:2:3", "run_1:x", "run_1:-1", "yesterday"])
def test_a_moment_of_another_stream_is_refused(log: Decklog, run_id: str, when: str) -> None:
    log.tasks.add(run_id, "work", task_id="work")
    with pytest.raises(Invalid, match="run_1:NUMBER"):
        log.journal.at("tasks", "work", when)
    with pytest.raises(Invalid):
        log.runs.snapshot(run_id, at=when)


def test_a_moment_that_has_not_come_is_refused(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "work", task_id="work")
    assert log.journal.at("tasks", "work", "run_1:2").id == "work"  # type: ignore[attr-defined]
    with pytest.raises(NotFound, match="entries 1 to 2"):
        log.journal.at("tasks", "work", "3")


def test_a_claim_can_be_copied(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "work")
    claim = claimed(log, run_id)
    assert copy.copy(claim).task == claim.task
    assert copy.deepcopy(claim.task) == claim.task


@pytest.mark.slow
def test_a_waiting_claim_only_looks_while_there_is_nothing_to_take(target: str) -> None:
    with Decklog.open(target) as busy, Decklog.open(target, busy_seconds=0.2) as waiting:
        busy.runs.start("x", run_id="run_1")
        told: list[object] = []

        def wait() -> None:
            try:
                told.append(waiting.tasks.claim("run_1", worker="ada", wait_seconds=2.5))
            except BaseException as problem:  # noqa: BLE001
                told.append(problem)

        waiter = threading.Thread(target=wait)
        waiter.start()
        time.sleep(0.5)
        busy.journal.append("run_1", "which wakes whoever waits")
        with busy.transaction():
            busy.journal.append("run_1", "which keeps everybody from writing")
            time.sleep(1.5)
        waiter.join(20)
    assert told == [None]


@pytest.mark.slow
def test_those_who_wait_write_nothing_when_others_do(target: str) -> None:
    with Decklog.open(target) as log:
        log.runs.start("theirs", run_id="theirs")
        log.runs.start("ours", run_id="ours")
        begun = threading.Barrier(5)
        writes: list[str] = []
        write = log.db.write

        def counted(job: object) -> object:
            writes.append(threading.current_thread().name)
            return write(job)  # type: ignore[arg-type]

        log.db.write = counted  # type: ignore[method-assign, assignment]

        def wait() -> None:
            begun.wait()
            assert log.tasks.claim("ours", worker="w", wait_seconds=1.5) is None

        waiters = [threading.Thread(target=wait, name="waiter") for _ in range(4)]
        for waiter in waiters:
            waiter.start()
        begun.wait()
        for number in range(30):
            log.journal.append("theirs", str(number))
        for waiter in waiters:
            waiter.join()
        # One try each before they begin to wait, and none for the news of another run.
        assert writes.count("waiter") == 4


class Undone(Exception):
    pass


def test_a_claim_that_was_undone_holds_nothing(log: Decklog, run_id: str) -> None:
    task = log.tasks.add(run_id, "lexer")
    with suppress(Undone), log.transaction():
        void = log.tasks.claim(run_id, worker="ana")
        raise Undone
    claim = log.tasks.claim(run_id, worker="ben")
    assert void is not None
    assert claim is not None
    assert claim.fence == void.fence
    for act in (void.extend, void.finish, void.fail, void.release, lambda: void.park("CI"), lambda: void.block("no key")):
        with pytest.raises(LeaseLost, match="undone"):
            act()
    with pytest.raises(LeaseLost, match="undone"), void:
        log.journal.append(run_id, "in ben's name")
    assert void.lost is not None
    assert log.tasks.get(task.id).worker == "ben"


@pytest.mark.parametrize(("inner", "by_id"), [(False, False), (True, False), (False, True)])
def test_a_task_whose_end_was_undone_is_still_held_and_kept(log: Decklog, run_id: str, inner: bool, by_id: bool) -> None:
    task = log.tasks.add(run_id, "lexer")
    claim = claimed(log, run_id, worker="ana")
    with claim:
        with log.transaction() if inner else nullcontext():
            with suppress(Undone), log.transaction():
                log.tasks.finish(claim.id, fence=claim.fence) if by_id else claim.finish("all is well")
                assert claim.is_over
                raise Undone
            assert not claim.is_over
            assert log.tasks.get(task.id).state == claim.state == "running"
            log.journal.append(run_id, "still mine")
        assert claim.lost is None
        assert f"lease of {task.id}" in {thread.name for thread in threading.enumerate()}
    assert log.tasks.get(task.id).state == "done"


def test_what_was_taken_with_the_end_of_another_goes_with_it(log: Decklog, run_id: str) -> None:
    log.tasks.add_many(run_id, [{"title": "lexer"}, {"title": "parser"}])
    claim = claimed(log, run_id, worker="ana")
    with suppress(Undone), log.transaction():
        following = log.tasks.finish_and_claim(claim.id, fence=claim.fence)
        raise Undone
    assert following is not None
    with pytest.raises(LeaseLost, match="undone"):
        following.extend()
    assert claim.finish().state == "done"


def test_a_worker_that_did_not_hear_the_answer_may_say_again_in_its_block_that_it_is_done(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "lexer")
    with claimed(log, run_id) as claim:
        log.tasks.finish(claim.id, fence=claim.fence)
        assert log.tasks.finish(claim.id, fence=claim.fence).already
        assert claim.finish().already


def test_nobody_finishes_from_its_block_what_it_has_lost(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "lexer")
    with pytest.raises(LeaseLost), claimed(log, run_id, lease_seconds=60) as claim:
        lose(log, clock, run_id)
        log.tasks.finish(claim.id, fence=claim.fence)


def test_a_task_whose_end_was_refused_is_kept_on(log: Decklog, run_id: str) -> None:
    task = log.tasks.add(run_id, "lexer")
    with claimed(log, run_id) as claim:
        with pytest.raises(Invalid):
            claim.fail("no luck", retry_after_seconds=-1)
        assert f"lease of {task.id}" in {thread.name for thread in threading.enumerate() if thread.is_alive()}
        within(5, lambda: only_one_keeps(task.id))
    assert log.tasks.get(task.id).state == "done"


def only_one_keeps(task_id: str) -> None:
    while [thread.name for thread in threading.enumerate()].count(f"lease of {task_id}") != 1:
        threading.Event().wait(0.01)


MADE = {
    "approvals.ask": lambda log: log.approvals.ask("run_1", "May I?", by="w", about="x"),
    "effects.intend": lambda log: log.effects.intend("run_1", "step", "tool", key="k", actor="a"),
    "artifacts.add": lambda log: log.artifacts.add("run_1", "file", "p", content="x"),
    "processes.started": lambda log: log.processes.started(
        "run_1", "p", command={}, cwd="/", root="/", folder="/", sandbox="none", keeper="k", pid=1
    ),
    "memory.remember": lambda log: log.memory.remember("task_outcomes", "It went well", run_id="run_1"),
}


@pytest.mark.parametrize("verb", MADE)
def test_a_record_made_in_a_claim_block_names_its_task(log: Decklog, run_id: str, verb: str) -> None:
    log.tasks.add(run_id, "work", task_id="work")
    with claimed(log, run_id):
        assert MADE[verb](log).task_id == "work"


def test_a_record_of_another_task_or_run_and_a_message_do_not_name_the_task_of_the_block(log: Decklog, run_id: str) -> None:
    log.runs.start("elsewhere", run_id="run_2")
    log.tasks.add(run_id, "work", task_id="work")
    with claimed(log, run_id):
        assert log.artifacts.add(run_id, "file", "p", content="x", task_id="another").task_id == "another"
        assert log.artifacts.add("run_2", "file", "p", content="x").task_id is None
        assert log.inbox.post("w", "hello", run_id=run_id).task_id is None


ENDS = {
    "finish": lambda log, claim: log.tasks.finish(claim.id, fence=claim.fence),
    "fail": lambda log, claim: log.tasks.fail(claim.id, fence=claim.fence),
    "block": lambda log, claim: log.tasks.block(claim.id, fence=claim.fence, blocker="no key"),
    "release": lambda log, claim: log.tasks.release(claim.id, fence=claim.fence),
    "park": lambda log, claim: log.tasks.park(claim.id, fence=claim.fence, reason="CI"),
    "finish_and_claim": lambda log, claim: log.tasks.finish_and_claim(claim.id, fence=claim.fence),
}


@pytest.mark.parametrize("verb", ENDS)
def test_a_task_ended_by_its_id_in_its_block_is_ended(log: Decklog, run_id: str, verb: str) -> None:
    log.tasks.add(run_id, "work", task_id="work")
    with claimed(log, run_id) as claim:
        ENDS[verb](log, claim)
        assert claim.is_over
        log.journal.append(run_id, "and then")
    state = log.tasks.get("work").state
    assert state == {"fail": "pending", "block": "blocked", "release": "pending", "park": "waiting"}.get(verb, "done")


def test_a_task_with_a_new_fence_in_its_block_is_still_held(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "work", task_id="work")
    with claimed(log, run_id) as claim:
        log.tasks.refence(claim.id, fence=claim.fence)
        log.journal.append(run_id, "still mine")
    assert log.tasks.get("work").state == "done"


def test_a_claim_finished_from_outside_its_block_is_not_lost(target: str) -> None:
    with Decklog.open(target) as log:
        log.runs.start("goal", run_id="run_1")
        log.tasks.add("run_1", "work", task_id="work")
        with claimed(log, "run_1", lease_seconds=0.3) as claim:
            other = threading.Thread(target=lambda: log.tasks.finish("work", fence=claim.fence))
            other.start()
            other.join()
            # Long enough for the lease to be extended in vain.
            threading.Event().wait(0.3)
            assert claim.lost is None
        assert log.tasks.get("work").state == "done"


def test_blocks_that_end_in_the_order_they_began_leave_no_attribution(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "one", task_id="one")
    log.tasks.add(run_id, "two", task_id="two")
    first, second = claimed(log, run_id, task_id="one"), claimed(log, run_id, task_id="two")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert log.journal.append(run_id, "in the second").task_id == "two"
    second.__exit__(None, None, None)
    assert log.journal.append(run_id, "afterwards").task_id is None
    clock.advance(seconds=3600)
    assert log.artifacts.add(run_id, "file", "p", content="x").task_id is None


def test_a_failed_attempt_keeps_the_time_its_owner_set(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "work", task_id="work")
    later = clock.now() + timedelta(hours=2)
    claim = claimed(log, run_id)
    log.tasks.edit("work", not_before=later, reason="not at night")
    claim.fail("no luck")
    assert log.tasks.get("work").not_before == later
    clock.advance(seconds=7201)
    claim = claimed(log, run_id)
    later = clock.now() + timedelta(hours=2)
    log.tasks.edit("work", not_before=later, reason="not at night")
    claim.fail("no luck", retry_after_seconds=60)
    assert log.tasks.get("work").not_before == later


def test_whoever_lost_its_task_settles_the_effect_it_has_made(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "work")
    with pytest.raises(LeaseLost), claimed(log, run_id):
        made = log.effects.intend(run_id, "deploy", "deployer", key="k", actor="a")
        left = log.effects.intend(run_id, "mail", "mailer", key="l", actor="a")
        lose(log, clock, run_id)
        assert log.effects.settle(made.id, actor="a", result="deployed").state == "done"
        assert log.effects.doubt(left.id, actor="a").state == "unknown"
        log.effects.intend(run_id, "more", "tool", key="m", actor="a")
