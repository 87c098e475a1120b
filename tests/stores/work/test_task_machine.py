"""Tasks under any sequence of claims, ends, pauses and lapses: a model says what must hold, Hypothesis looks for a breach."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from decklog import Conflict, Decklog, LeaseLost, ManualClock
from decklog.stores.work.task import Task

RUN = "run_1"
LEASE = 60.0
HELD = "running"
ANY = ("pending", HELD, "waiting", "blocked", "paused", "done", "abandoned")
# Mostly the holder itself; now and then someone with an older number.
LATE = st.sampled_from([False, False, False, True])
WHICH = st.integers(0, 5)


@dataclass
class Model:
    """What a task must be, worked out without a database."""

    state: str = "pending"
    worker: str | None = None
    fence: int = 0
    attempts: int = 0
    failures: int = 0
    max_attempts: int = 3
    until: Any = None
    outcomes: list[str] = field(default_factory=list)

    def end(self, state: str, outcome: str | None) -> None:
        if self.state == HELD and outcome is not None:
            self.outcomes.append(outcome)
        self.state, self.worker, self.until = state, None, None

    def fail(self, outcome: str) -> None:
        self.failures += 1
        self.end("blocked" if self.failures >= self.max_attempts else "pending", outcome)


class TaskMachine(RuleBasedStateMachine):
    place: "Callable[[], Any]"

    @initialize()
    def open(self) -> None:
        self.opened = type(self).place()
        self.clock = ManualClock()
        self.log = Decklog.open(self.opened.__enter__(), clock=self.clock)
        self.log.runs.start("a machine", run_id=RUN)
        self.models: dict[str, Model] = {}
        self.seen: dict[str, list[tuple[str, Task]]] = {}
        for max_attempts in (1, 2, 3):
            self.add_one(50, max_attempts)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            result = self.log.journal.verify()
            self.log.close()
            self.opened.__exit__(None, None, None)
            assert result.ok, result.problems

    def note(self, task_id: str) -> None:
        """Remember what a task is now, and the entry that says so."""
        head = next(head for head in self.log.journal.heads() if head["stream"] == RUN)
        self.seen.setdefault(task_id, []).append((f"{RUN}:{head['seq']}", self.log.tasks.get(task_id)))

    def pick(self, which: int, *states: str) -> str:
        """Choose a task in one of these states; any, when there is none."""
        fitting = [name for name, model in self.models.items() if model.state in states] or list(self.models)
        return fitting[which % len(fitting)]

    def lapse(self) -> None:
        """Take expired leases back in the model, as every claim does in the log."""
        for model in self.models.values():
            if model.state == HELD and model.until < self.clock.now():
                model.fail("expired")

    # What can happen

    @rule(priority=st.integers(0, 3), max_attempts=st.integers(1, 3))
    def add(self, priority: int, max_attempts: int) -> None:
        self.add_one(priority, max_attempts)

    def add_one(self, priority: int, max_attempts: int) -> None:
        self.clock.advance(seconds=1)
        task = self.log.tasks.add(RUN, "work", priority=priority, max_attempts=max_attempts)
        self.models[task.id] = Model(max_attempts=max_attempts)
        self.note(task.id)

    @rule(worker=st.sampled_from(["ana", "ben"]))
    def claim(self, worker: str) -> None:
        self.claim_one(worker)

    @rule()
    def claim_again(self) -> None:
        self.claim_one("eve")

    def claim_one(self, worker: str) -> None:
        self.lapse()
        ready = [name for name, model in self.models.items() if model.state == "pending"]
        claim = self.log.tasks.claim(RUN, worker=worker, lease_seconds=LEASE)
        if claim is None:
            assert ready == []
            return
        rank = {name: (-self.log.tasks.get(name).priority, self.log.tasks.get(name).created_at, name) for name in ready}
        assert claim.task.id == min(ready, key=rank.__getitem__)
        model = self.models[claim.task.id]
        model.state, model.worker, model.until = HELD, worker, claim.task.leased_until
        model.fence += 1
        model.attempts += 1
        self.note(claim.task.id)

    def holding(self, task_id: str, late: bool, act: Callable[[int], Any], then: Callable[[Model], None]) -> None:
        """Do what only the holder may; with an old fence, or no lease, it must be refused."""
        model = self.models[task_id]
        fence = model.fence - 1 if late else model.fence
        if model.state != HELD or late:
            with pytest.raises(LeaseLost):
                act(fence)
            return
        act(fence)
        then(model)
        self.note(task_id)

    @precondition(lambda self: self.models)
    @rule(which=WHICH, late=LATE)
    def extend(self, which: int, late: bool) -> None:
        task_id = self.pick(which, HELD)

        def then(model: Model) -> None:
            model.until = self.log.tasks.get(task_id).leased_until

        self.holding(task_id, late, lambda fence: self.log.tasks.extend(task_id, fence=fence, lease_seconds=LEASE), then)

    # Failing most of all: it is what leads on to retries and blocks.
    @precondition(lambda self: self.models)
    @rule(which=WHICH, late=LATE, verb=st.sampled_from(["fail", "fail", "finish", "release", "park"]))
    def end(self, which: int, late: bool, verb: str) -> None:
        task_id = self.pick(which, HELD)
        more = {"reason": "CI"} if verb == "park" else {}

        def then(model: Model) -> None:
            if verb == "fail":
                model.fail("failed")
            else:
                state = {"finish": "done", "release": "pending", "park": "waiting"}[verb]
                model.end(state, {"finish": "done", "release": "released", "park": "parked"}[verb])

        self.holding(task_id, late, lambda fence: getattr(self.log.tasks, verb)(task_id, fence=fence, **more), then)

    @rule(seconds=st.sampled_from([1, 30, 61]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    @precondition(lambda self: self.models)
    @rule(which=WHICH)
    def pause(self, which: int) -> None:
        task_id = self.pick(which, *ANY)
        self.move(task_id, lambda: self.log.tasks.pause(task_id, reason="x"), "paused", {"pending", HELD, "waiting", "blocked"})

    @precondition(lambda self: len(self.models) > 3)
    @rule(which=WHICH)
    def abandon(self, which: int) -> None:
        task_id = self.pick(which, *ANY)
        if self.models[task_id].state == "abandoned":
            assert self.log.tasks.abandon(task_id, reason="x").already
            return
        lawful = {"pending", HELD, "waiting", "blocked", "paused"}
        self.move(task_id, lambda: self.log.tasks.abandon(task_id, reason="x"), "abandoned", lawful)

    def move(self, task_id: str, act: Callable[[], Any], state: str, lawful: set[str]) -> None:
        model = self.models[task_id]
        if model.state not in lawful:
            with pytest.raises(Conflict):
                act()
            return
        act()
        model.end(state, state)
        model.fence += 1
        self.note(task_id)

    @precondition(lambda self: self.models)
    @rule(which=WHICH)
    def resume(self, which: int) -> None:
        task_id = self.pick(which, "paused", "waiting", "blocked")
        model = self.models[task_id]
        if model.state == "pending":
            assert self.log.tasks.resume(task_id).already
        elif model.state in ("paused", "waiting", "blocked"):
            self.log.tasks.resume(task_id)
            model.state = "pending"
            model.failures = min(model.failures, model.max_attempts - 1)
            self.note(task_id)
        else:
            with pytest.raises(Conflict):
                self.log.tasks.resume(task_id)

    @precondition(lambda self: len(self.models) > 5)
    @rule(include_running=st.booleans())
    def replan(self, include_running: bool) -> None:
        self.clock.advance(seconds=1)
        (new,) = self.log.tasks.replan(RUN, [{"title": "instead"}], include_running=include_running)
        for task_id, model in self.models.items():
            if model.state == "pending" or (include_running and model.state == HELD):
                model.end("abandoned", "abandoned")
                model.fence += 1
                self.note(task_id)
        self.models[new.id] = Model()
        self.note(new.id)

    # What must hold

    @invariant()
    def the_log_is_what_the_model_says(self) -> None:
        for task_id, model in getattr(self, "models", {}).items():
            task = self.log.tasks.get(task_id)
            if model.state == HELD and model.until < self.clock.now() and task.state != HELD:
                self.lapse()
            found = (task.state.value, task.worker, task.fence, task.attempts, task.failures)
            assert found == (model.state, model.worker, model.fence, model.attempts, model.failures)

    @invariant()
    def attempts_are_what_the_journal_tells(self) -> None:
        for task_id, model in getattr(self, "models", {}).items():
            attempts = self.log.tasks.attempts(task_id)
            assert [attempt.number for attempt in attempts] == list(range(1, model.attempts + 1))
            ended = [attempt.outcome for attempt in attempts if attempt.ended_at is not None]
            assert ended == model.outcomes
            assert len(attempts) - len(ended) == (model.state == HELD)
            fences = [attempt.fence for attempt in attempts]
            assert fences == sorted(set(fences))

    @invariant()
    def every_version_can_be_seen_again(self) -> None:
        for task_id, versions in getattr(self, "seen", {}).items():
            entry, task = versions[len(versions) // 2]
            assert self.log.journal.at("tasks", task_id, entry) == task


@contextmanager
def a_file() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield str(Path(folder) / "decklog.db")


def check(place: Callable[[], Any], examples: int, steps: int) -> None:
    machine = type("Machine", (TaskMachine,), {"place": staticmethod(place)})
    how = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    run_state_machine_as_test(machine, settings=how)


@pytest.mark.hypothesis
def test_tasks_keep_their_promises_whatever_happens_to_them() -> None:
    check(a_file, 25, 40)


@pytest.mark.hypothesis
def test_tasks_keep_their_promises_on_postgres_too(postgres_template: str) -> None:
    import psycopg

    from tests.conftest import _named

    @contextmanager
    def a_database() -> Iterator[str]:
        name = "machine"
        with psycopg.connect(postgres_template, autocommit=True) as connection:
            connection.execute(f"create database {name} template decklog_template")
        try:
            yield _named(postgres_template, name)
        finally:
            with suppress(psycopg.Error), psycopg.connect(postgres_template, autocommit=True) as connection:
                connection.execute(f"drop database {name} with (force)")

    check(a_database, 3, 15)
