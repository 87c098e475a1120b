"""Tasks under any sequence of claims, ends, pauses, lapses, transactions and forks."""

from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from decklog import Conflict, LeaseLost
from decklog.journal.attribution import acting
from decklog.records.operations import lease
from decklog.stores.tasks.claim import Claim
from decklog.stores.tasks.task import Task
from tests.machines.base import WHICH, LogMachine, RolledBack, pick
from tests.machines.task_world import ENDED_RUN, ENDED_TASK, HELD, Holder, Run, TaskWorld, Try, Work

LEASE = 60.0
MOST_RUNS, MOST_TASKS = 4, 8
WORKERS = st.sampled_from(["ana", "ben", "eve"])
BLOCKERS = st.sampled_from([None, "no network", "no key"])
OPEN = ("pending", HELD, "waiting", "blocked")


class TaskMachine(LogMachine[TaskWorld]):
    def begin_world(self) -> None:
        self.world = TaskWorld()
        self.claims: list[Claim] = []
        self.titles = 0
        self.log.runs.start("a machine", run_id="run_1")
        self.world.runs["run_1"] = Run()
        for max_attempts in (1, 2, 3):
            self.add_one("run_1", 50, max_attempts, [], 0)
        self.remember()

    def take_back(self, before: TaskWorld) -> None:
        gone = {number: replace(holder, is_void=True) for number, holder in self.world.holders.items()}
        before.holders = {**gone, **before.holders}
        super().take_back(before)

    # Choosing

    def a_run(self, which: int) -> tuple[str, Run]:
        return pick(which, list(self.world.runs.items()))

    def a_task(self, which: int, *states: str) -> tuple[Run, str]:
        """Choose a task in one of these states; any, when there is none."""
        every = [(run, title) for run in self.world.runs.values() for title in run.tasks]
        fitting = [(run, title) for run, title in every if run.tasks[title].state in states]
        return pick(which, fitting or every)

    def a_claim(self, which: int) -> tuple[Claim, Holder]:
        """Choose a claim, mostly one that holds its task."""
        good = [number for number, holder in self.world.holders.items() if self.world.holds(holder)]
        number = pick(which, good if good and which % 4 else list(self.world.holders))
        return self.claims[number], self.world.holders[number]

    # What can happen to a plan

    @precondition(lambda self: len(self.world.runs) < 2)
    @rule()
    def start(self) -> None:
        name = f"run_{len(self.world.runs) + 1}"
        self.log.runs.start("another", run_id=name)
        self.world.runs[name] = Run()

    @rule(
        which=WHICH,
        priority=st.integers(0, 2),
        max_attempts=st.integers(1, 3),
        needs=st.lists(WHICH, max_size=2),
        delay=st.sampled_from([0, 0, 0, 90]),
    )
    def add(self, which: int, priority: int, max_attempts: int, needs: list[int], delay: int) -> None:
        name, run = self.a_run(which)
        if len(run.tasks) < MOST_TASKS:
            self.add_one(name, priority, max_attempts, [pick(need, list(run.tasks)) for need in needs if run.tasks], delay)

    def add_one(self, name: str, priority: int, max_attempts: int, needs: list[str], delay: int) -> None:
        run = self.world.runs[name]
        self.titles += 1
        title, start = f"task {self.titles}", self.clock.now() + timedelta(seconds=delay) if delay else None
        arguments: dict[str, Any] = {"priority": priority, "max_attempts": max_attempts, "not_before": start}
        arguments["depends_on"] = [run.tasks[need].id for need in needs]
        act = partial(self.log.tasks.add, name, title, **arguments)
        if run.status in ENDED_RUN:
            self.refused(Conflict, act)
        else:
            run.tasks[title] = Work(act().id, priority, max_attempts, frozenset(needs), start)

    def refused(self, problem: type[Exception], act: Callable[[], Any]) -> None:
        with pytest.raises(problem):
            act()

    @rule(which=WHICH, other=WHICH)
    def depend(self, which: int, other: int) -> None:
        run, title = self.a_task(which, "pending")
        needed = pick(other, list(run.tasks))
        work = run.tasks[title]
        act = partial(self.log.tasks.depend, work.id, run.tasks[needed].id)
        if run.leads_to(needed, title):
            self.refused(Conflict, act)
        elif needed in work.needs:
            assert act().already
        elif work.state != "pending":
            self.refused(Conflict, act)
        else:
            act()
            run.tasks[title] = replace(work, needs=work.needs | {needed})

    @rule(which=WHICH, other=WHICH)
    def undepend(self, which: int, other: int) -> None:
        run, title = self.a_task(which, "pending")
        work = run.tasks[title]
        needed = pick(other, sorted(work.needs) or list(run.tasks))
        act = partial(self.log.tasks.undepend, work.id, run.tasks[needed].id)
        if needed not in work.needs:
            assert act().already
        elif work.state in ENDED_TASK:
            self.refused(Conflict, act)
        else:
            act()
            run.tasks[title] = replace(work, needs=work.needs - {needed})

    @rule(which=WHICH, priority=st.integers(0, 2), max_attempts=st.integers(1, 3), relied_on=st.booleans())
    def edit(self, which: int, priority: int, max_attempts: int, relied_on: bool) -> None:
        run, title = self.a_task(which, *OPEN, "paused")
        work = run.tasks[title]
        edited = replace(work, priority=priority, max_attempts=max_attempts)
        more = {"objective": f"as of step {self.steps}"} if relied_on else {}
        act = partial(self.log.tasks.edit, work.id, reason="x", priority=priority, max_attempts=max_attempts, **more)
        if edited == work and not relied_on:
            assert act().already
        elif work.state in ENDED_TASK or (work.state == HELD and relied_on):
            self.refused(Conflict, act)
        else:
            act()
            run.tasks[title] = edited

    @rule(which=WHICH, worker=st.one_of(st.none(), WORKERS))
    def assign(self, which: int, worker: str | None) -> None:
        run, title = self.a_task(which, *OPEN, "paused")
        work = run.tasks[title]
        act = partial(self.log.tasks.assign, work.id, worker)
        if work.assigned == worker:
            assert act().already
        elif work.state in ENDED_TASK:
            self.refused(Conflict, act)
        else:
            act()
            run.tasks[title] = replace(work, assigned=worker)

    @rule(which=WHICH, include_running=st.booleans())
    def replan(self, which: int, include_running: bool) -> None:
        name, run = self.a_run(which)
        self.titles += 1
        title = f"task {self.titles}"
        act = partial(self.log.tasks.replan, name, [{"title": title}], include_running=include_running)
        if run.status in ENDED_RUN:
            self.refused(Conflict, act)
        elif len(run.tasks) >= 5:
            for other, work in run.tasks.items():
                if work.state == "pending" or (include_running and work.state == HELD):
                    run.tasks[other] = work.moved("abandoned")
            (new,) = act()
            run.tasks[title] = Work(new.id, 50, 3)

    # What workers do

    @rule(worker=WORKERS, which=WHICH, any_run=st.booleans())
    def claim(self, worker: str, which: int, any_run: bool) -> None:
        self.claim_one(worker, None if any_run else self.a_run(which)[0])

    def claim_one(self, worker: str, name: str | None) -> None:
        expected = self.next_task([name] if name is not None else self.urgent_runs(worker), worker)
        claim = self.log.tasks.claim(name, worker=worker, lease_seconds=LEASE)
        assert (claim and (claim.run_id, claim.title)) == expected
        if claim is not None:
            self.hold(claim, worker)

    @rule(worker=WORKERS, which=WHICH)
    def claim_by_id(self, worker: str, which: int) -> None:
        run, title = self.a_task(which, "pending", HELD)
        act = partial(self.log.tasks.claim, task_id=run.tasks[title].id, worker=worker, lease_seconds=LEASE)
        run.lapse(self.clock.now())
        if run.is_ready(run.tasks[title], self.clock.now(), worker):
            claim = act()
            assert claim is not None
            self.hold(claim, worker)
        else:
            self.refused(Conflict, act)

    def urgent_runs(self, worker: str) -> list[str]:
        return self.world.runs_with_work({task.id: task.created_at for task in self.tasks().values()}, worker)

    def next_task(self, names: list[str], worker: str) -> tuple[str, str] | None:
        """Release expired leases of each run, and predict the next task."""
        tasks = self.tasks()
        for name in names:
            run = self.world.runs[name]
            run.lapse(self.clock.now())
            rank = {
                title: (-run.tasks[title].priority, tasks[run.tasks[title].id].created_at, run.tasks[title].id)
                for title in run.tasks
            }
            if ready := run.ready(self.clock.now(), worker):
                return name, min(ready, key=rank.__getitem__)
        return None

    def hold(self, claim: Claim, worker: str) -> None:
        run = self.world.runs[claim.run_id]
        run.tasks[claim.title] = run.tasks[claim.title].taken(worker, self.clock.now() + timedelta(seconds=LEASE))
        self.world.holders[len(self.claims)] = Holder(claim.run_id, claim.title, claim.fence)
        self.claims.append(claim)

    @precondition(lambda self: self.world.holders)
    @rule(which=WHICH, raw=st.booleans())
    def extend(self, which: int, raw: bool) -> None:
        claim, holder = self.a_claim(which)
        if not self.world.holds(holder):
            self.refused(LeaseLost, claim.extend)
            return
        if raw:
            self.log.tasks.extend(claim.id, fence=claim.fence, lease_seconds=LEASE)
        else:
            claim.extend()
        self.change(holder, until=self.clock.now() + timedelta(seconds=LEASE))

    def change(self, holder: Holder, **changes: Any) -> None:
        tasks = self.world.runs[holder.run].tasks
        tasks[holder.title] = replace(tasks[holder.title], **changes)

    # Failing most of all: it is what leads on to retries and blocks.
    @precondition(lambda self: self.world.holders)
    @rule(
        which=WHICH,
        verb=st.sampled_from(["fail", "fail", "finish", "finish", "release", "park", "block"]),
        blocker=BLOCKERS,
        late=st.sampled_from([0, 0, 45]),
    )
    def end(self, which: int, verb: str, blocker: str | None, late: int) -> None:
        claim, holder = self.a_claim(which)
        self.end_one(claim, holder, verb, blocker, late)

    def end_one(self, claim: Claim, holder: Holder, verb: str, blocker: str | None = None, late: int = 0) -> None:
        more: dict[str, dict[str, Any]] = {
            "park": {"reason": "CI"},
            "fail": {"blocker": blocker, "retry_after_seconds": late},
            "block": {"blocker": blocker or "no luck"},
        }
        self.end_by(partial(getattr(claim, verb), **more.get(verb, {})), claim, holder, verb, blocker, late)

    def end_by(
        self, act: Callable[[], Any], claim: Claim, holder: Holder, verb: str, blocker: str | None = None, late: int = 0
    ) -> None:
        """End a task by an act that does what a verb does."""
        if not self.world.holds(holder):
            self.end_without(act, claim, holder, verb)
            return
        act()
        self.over(claim)
        run = self.world.runs[holder.run]
        run.tasks[holder.title] = self.ended(run.tasks[holder.title], verb, blocker, late)

    def over(self, claim: Claim) -> None:
        number = self.claims.index(claim)
        self.world.holders[number] = replace(self.world.holders[number], is_over=True)

    def end_without(self, act: Callable[[], Any], claim: Claim, holder: Holder, verb: str) -> None:
        """End a task that is not claimed: refused, unless its own worker repeats that it is done."""
        work = None if holder.is_void else self.world.runs[holder.run].tasks[holder.title]
        if verb == "finish" and work is not None and work.state == "done" and work.fence == holder.fence:
            act()
            self.over(claim)
        else:
            self.refused(LeaseLost, act)

    def ended(self, work: Work, verb: str, blocker: str | None, late: int) -> Work:
        if verb == "finish":
            return replace(work.ended("done", "done"), blocker=None, repeats=0)
        if verb == "fail":
            start = self.clock.now() + timedelta(seconds=late) if late else None
            return replace(work.met(blocker).failed("failed"), not_before=start)
        if verb == "block":
            return work.met(blocker or "no luck").ended("blocked", "blocked")
        state, outcome = {"release": ("pending", "released"), "park": ("waiting", "parked")}[verb]
        return work.ended(state, outcome)

    @precondition(lambda self: self.world.holders)
    @rule(which=WHICH)
    def finish_and_claim(self, which: int) -> None:
        claim, holder = self.a_claim(which)
        if holder.is_void:
            return
        act = partial(self.log.tasks.finish_and_claim, claim.id, fence=claim.fence, lease_seconds=LEASE)
        if not self.world.holds(holder):
            self.refused(LeaseLost, act)
            return
        run = self.world.runs[holder.run]
        worker = run.tasks[holder.title].worker
        assert worker is not None
        run.tasks[holder.title] = self.ended(run.tasks[holder.title], "finish", None, 0)
        expected = self.next_task([holder.run], worker)
        found = act()
        assert (found and (found.run_id, found.title)) == expected
        if found is not None:
            self.hold(found, worker)

    # What is written in the name of a task

    @precondition(lambda self: self.world.holders)
    @rule(which=WHICH, what=st.sampled_from(["say", "note", "spend"]))
    def write(self, which: int, what: str) -> None:
        claim, holder = self.a_claim(which)
        if not holder.is_void:
            with self.log.acting(task_id=claim.id, fence=claim.fence):
                self.write_one(holder, what)

    def write_one(self, holder: Holder, what: str) -> None:
        """Write as the holder of a task; once the task is lost, only money that is gone is still put down."""
        run, is_held = self.world.runs[holder.run], self.world.holds(holder)
        if what == "spend":
            self.log.ledger.charge("m", cost_microdollars=1)
            run.spent.append(not is_held)
            return
        words = f"entry {len(run.bodies)}"
        say = partial(self.log.journal.append, holder.run, words)
        note = partial(self.log.states.save, holder.run, "notes", {"count": run.notes + 1})
        if not is_held:
            self.refused(LeaseLost, say if what == "say" else note)
        elif what == "say":
            say()
            run.bodies.append(words)
        else:
            note()
            run.notes += 1

    @precondition(lambda self: self.world.holders)
    @rule(
        which=WHICH,
        acts=st.lists(
            st.sampled_from(["say", "note", "spend", "finish", "fail", "undone finish", "undone note", "lose"]), max_size=3
        ),
        stumbles=st.booleans(),
    )
    def work(self, which: int, acts: list[str], stumbles: bool) -> None:
        """Enter the block of a claim, do things in it, and leave it in one way or the other."""
        claim, holder = self.a_claim(which)
        if not holder.is_void and not claim.is_over:
            # In a new context: a program that ends inside the block leaves nothing behind.
            copy_context().run(self.work_in_block, claim, holder, acts, stumbles)

    def work_in_block(self, claim: Claim, holder: Holder, acts: list[str], stumbles: bool) -> None:
        problem = ValueError("stumbled") if stumbles else None
        claim.__enter__()
        for act in acts:
            self.do(claim, holder, act)
        leave = partial(claim.__exit__, type(problem) if problem else None, problem, None)
        if claim.is_over:
            leave()
        elif stumbles:
            self.end_by(leave, claim, holder, "fail", "ValueError")
        else:
            self.end_by(leave, claim, holder, "finish")

    def do(self, claim: Claim, holder: Holder, act: str) -> None:
        if act == "lose":
            self.clock.advance(seconds=61)
            self.lose(holder)
        elif act in ("finish", "fail"):
            if not claim.is_over:
                self.end_one(claim, holder, act)
        elif act.startswith("undone"):
            self.undone(claim, holder, act.partition(" ")[2])
        elif not claim.is_over:
            self.write_one(holder, act)

    def undone(self, claim: Claim, holder: Holder, act: str) -> None:
        """Do something in a transaction that is rolled back."""
        before = self.world.copy()
        with suppress(RolledBack), self.log.transaction():
            self.do(claim, holder, act)
            raise RolledBack
        self.take_back(before)

    def lose(self, holder: Holder) -> None:
        """Let another worker claim meanwhile, outside of the block."""

        def elsewhere() -> None:
            lease.set(None)
            acting.set(None)
            self.claim_one("eve", holder.run)

        copy_context().run(elsewhere)

    # What happens to tasks and runs from outside

    @rule(seconds=st.sampled_from([1, 30, 60, 61]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    @rule(which=WHICH)
    def pause(self, which: int) -> None:
        run, title = self.a_task(which, *OPEN)
        self.move(run, title, "paused", partial(self.log.tasks.pause, run.tasks[title].id, reason="x"), OPEN)

    @rule(which=WHICH)
    def abandon(self, which: int) -> None:
        run, title = self.a_task(which, "blocked", "paused", "waiting")
        act = partial(self.log.tasks.abandon, run.tasks[title].id, reason="x")
        if run.tasks[title].state == "abandoned":
            assert act().already
        elif len(run.tasks) > 3:
            self.move(run, title, "abandoned", act, (*OPEN, "paused"))

    def move(self, run: Run, title: str, state: str, act: Callable[[], Any], lawful: tuple[str, ...]) -> None:
        if run.tasks[title].state in lawful:
            act()
            run.tasks[title] = run.tasks[title].moved(state)
        else:
            self.refused(Conflict, act)

    @rule(which=WHICH)
    def resume(self, which: int) -> None:
        run, title = self.a_task(which, "paused", "waiting", "blocked")
        work = run.tasks[title]
        act = partial(self.log.tasks.resume, work.id)
        if work.state == "pending":
            assert act().already
        elif work.state == HELD or work.state in ENDED_TASK:
            self.refused(Conflict, act)
        else:
            act()
            run.tasks[title] = work.resumed()

    @rule(which=WHICH, status=st.sampled_from(["completed", "failed", "cancelled"]))
    def finish_run(self, which: int, status: str) -> None:
        name, run = self.a_run(which)
        act = partial(self.log.runs.finish, name, status=status)
        if run.status == status:
            assert act().already
        elif run.status in ENDED_RUN:
            self.refused(Conflict, act)
        else:
            act()
            run.status = status

    @rule(which=WHICH, status=st.sampled_from(["active", "active", "paused"]))
    def take_up(self, which: int, status: str) -> None:
        name, run = self.a_run(which)
        self.log.runs.update(name, status=status)
        run.status = status

    # Forks

    @precondition(lambda self: len(self.world.runs) < MOST_RUNS)
    @rule(which=WHICH, back=st.integers(0, 30), ahead=st.booleans())
    def fork(self, which: int, back: int, ahead: bool) -> None:
        """Fork a run at one of its latest entries, be it in the middle of what one step wrote."""
        name, run = self.a_run(which)
        last = max(run.past)
        seq = max(1, last - back)
        # A name that sorts before that of its parent must do no harm wherever streams are taken in order.
        new = f"{'a' if ahead else 'z'}_fork_{len(self.world.runs)}"
        self.log.runs.fork(name, at=str(seq), new_run_id=new)
        before = run.past[seq] if seq in run.past else self.as_told(name, seq)
        self.world.runs[new] = before.forked({task.title: task.id for task in self.tasks(new).values()})

    def as_told(self, name: str, seq: int) -> Run:
        """Build a run as of an entry in the middle of a step from the journal."""
        records = self.log.runs.snapshot(name, at=str(seq)).records
        tasks = {task.id: task for task in records.get("tasks", [])}
        needs: dict[str, set[str]] = {task_id: set() for task_id in tasks}
        for need in records.get("dependencies", []):
            needs[need.task_id].add(tasks[need.depends_on].title)
        run = Run(records["runs"][0].status, notes=len(records.get("state_versions", [])))
        for task in tasks.values():
            run.tasks[task.title] = replace(visible(task)[0], needs=frozenset(needs[task.id]))
        return run

    # What must hold

    def tasks(self, *names: str) -> dict[str, Task]:
        found = [task for name in names or self.world.runs for task in self.log.tasks.find(name, limit=100)]
        return {task.id: task for task in found}

    def remember(self) -> None:
        """Keep what each run is after this step."""
        heads = {head["stream"]: head["seq"] for head in self.log.journal.heads()}
        for name, run in self.world.runs.items():
            run.past[heads[name]] = replace(run.copy(), past={})

    def compare(self) -> None:
        for name, run in self.world.runs.items():
            tasks = self.log.tasks.find(name, limit=100)
            assert {task.title: visible(task) for task in tasks} == {title: due(run, work) for title, work in run.tasks.items()}
            assert self.log.runs.get(name).status == run.status
        self.remember()
        name, run = self.a_run(self.steps)
        if run.tasks:
            self.compare_attempts(pick(self.steps, list(run.tasks.values())))
            self.compare_past(name, run)
        for number, holder in self.world.holders.items():
            assert holder.is_void or self.claims[number].is_over == holder.is_over

    def compare_attempts(self, work: Work) -> None:
        """The attempts of a task in the journal equal their outcomes."""
        found = [Try(one.number, one.fence, one.worker, one.outcome) for one in self.log.tasks.attempts(work.id)]
        assert found == list(work.tries)

    def compare_past(self, name: str, run: Run) -> None:
        """What a task was after an earlier step can be seen again."""
        seq = pick(self.steps * 7, list(run.past))
        before = run.past[seq]
        if before.tasks:
            work = pick(self.steps, list(before.tasks.values()))
            assert visible(self.log.journal.at(Task, work.id, f"{name}:{seq}")) == due(before, work)

    def at_end(self) -> None:
        for name, run in self.world.runs.items():
            for work in run.tasks.values():
                self.compare_attempts(work)
            bodies = self.log.journal.find(name, kind="interaction", oldest_first=True, limit=1000)
            assert [entry.body for entry in bodies] == run.bodies
            assert [charge.is_late for charge in self.log.ledger.find(name, oldest_first=True, limit=1000)] == run.spent
            if run.notes:
                assert self.log.states.get(name, "notes").version == run.notes
        super().at_end()


def visible(task: Task) -> tuple[Work, int]:
    """Return a task of the log without its dependencies and outcomes."""
    return Work(
        id=task.id,
        priority=task.priority,
        max_attempts=task.max_attempts,
        not_before=task.not_before,
        state=task.state,
        worker=task.worker,
        until=task.leased_until,
        fence=task.fence,
        attempts=task.attempts,
        failures=task.failures,
        blocker=task.blocker,
        repeats=task.blocker_repeats,
        assigned=task.assigned_to,
    ), task.open_dependencies


def due(run: Run, work: Work) -> tuple[Work, int]:
    return replace(work, needs=frozenset(), tries=()), run.open_needs(work)
