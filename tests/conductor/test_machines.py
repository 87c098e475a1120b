"""Several machines at one run: each with a clone, a home and a boot of its own; what travels, travels through a bare remote."""

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from decklog import Conflict, Decklog
from decklog.conductor import kill_points, starting
from decklog.conductor.cleaning import Cleaner
from decklog.conductor.conductor import Conductor
from decklog.conductor.context import RunContext
from decklog.conductor.git.repository import Repository
from decklog.conductor.overlaps import OverlapProbe
from tests.conductor.hosts import Host, why_not
from tests.conductor.plans import (
    SETTINGS,
    Work,
    landed,
    landed_titles,
    make_checked_repository,
    start_plan,
    states,
    target_of,
    work_item,
)
from tests.conductor.repositories import consent, git
from tests.waiting import wait_until

SHARED = SETTINGS.replace("[run]", '[run]\nremote = "origin"\nlease_seconds = 2')
KILLED = 128 + signal.SIGKILL
ITEM = work_item("triple", ["append", "calc.py", "\n\ndef triple(a):\n    return a * 3\n"], ["commit"])

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.fixture(scope="session")
def first_shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    made = make_checked_repository(folder / "repository", **{"decklog.toml": SHARED})
    git(folder, "clone", "-q", "--bare", str(made), "remote.git")
    return folder / "remote.git"


class World:
    """Two machines, the remote between them, and the log that they share."""

    def __init__(self, folder: Path, first: Path, target: str) -> None:
        self.remote = folder / "remote.git"
        git(folder, "clone", "-q", "--bare", str(first), "remote.git")
        self.target = target
        self.a, self.b = (Host(folder, name, self.remote) for name in ("alpha", "beta"))
        self.run_id = ""

    def plan(self, *items: dict[str, Any]) -> None:
        """Begin a run on the first machine, and have nothing done yet."""
        content = json.dumps({"goal": "Make it better", "items": items}).encode()
        self.a.boot(lambda: self._begin(content))
        assert self.a.wait() == 0
        with Decklog.open(self.target) as log:
            (run,) = log.runs.find()
            self.run_id = run.id

    def _begin(self, content: bytes) -> None:
        with Decklog.open(self.target) as log:
            start_plan(log, content, Repository.find(self.a.clone, self.a.state), say=lambda _: None)

    def work(self, host: Host, point: str | None = None) -> None:
        """Have a machine work on the run, which loses its power at a point."""

        def program() -> None:
            kill_points.arm(point)
            with Decklog.open(self.target) as log:
                Conductor(starting.resume(log, self.run_id, Repository.find(host.clone, host.state))).run()

        host.boot(program)

    def give_back(self, log: Decklog, host: Host) -> None:
        """Give back what a machine has that is known to be down, instead of waiting for the end of its leases."""
        for task in log.tasks.find(self.run_id, state="running", limit=200):  # type: ignore[arg-type]
            if f"-{host.name}-" in str(task.worker):
                log.tasks.release(task.id, fence=task.fence, reason="its machine is down")

    def context(self, log: Decklog) -> RunContext:
        return starting.resume(log, self.run_id, Repository.find(self.a.clone, self.a.state))

    def check_whole(self, log: Decklog, *titles: str) -> None:
        """Make sure that every item landed once, every commit of the target was green, and both clones and the remote agree."""
        context = self.context(log)
        assert log.journal.verify(self.run_id).ok
        assert set(states(context).values()) == {"done"}
        commit = context.target_commit()
        assert sorted(landed_titles(context)) == sorted(titles)
        assert git(self.remote, "rev-parse", target_of(context)) == commit
        green = {one.tree for one in log.verdicts.find(self.run_id, outcome="pass", limit=200)}  # type: ignore[arg-type]
        assert set(git(self.a.clone, "log", "--format=%T", target_of(context)).split()) <= green


@pytest.fixture
def world(tmp_path: Path, first_shared: Path, postgres_target: str) -> World:
    return World(tmp_path, first_shared, postgres_target)


@pytest.mark.slow
def test_a_second_machine_joins_a_run_and_both_land_items_on_one_target(world: World) -> None:
    # One more than a machine takes at once.
    items = [work_item(f"p{number}", ["sleep", 0.3], ["write", f"p{number}.txt", f"{number}\n"]) for number in range(3)]
    world.plan(*items)
    world.work(world.a)
    world.work(world.b)
    assert (world.a.wait(), world.b.wait()) == (0, 0)
    with Decklog.open(world.target) as log:
        world.check_whole(log, *(f"Item p{number}" for number in range(3)))
        assert log.effects.open(world.run_id) == []
        hosts = {effect.facts["host"] for effect in log.effects.find(world.run_id, tool="conductor.place", limit=200)}
        assert len(hosts) == 2


@pytest.mark.slow
def test_what_another_machine_has_made_is_looked_at_for_what_does_not_merge(world: World) -> None:
    held = ["write", "setup.cfg", ""]
    world.plan(*(work_item(word, ["replace", "notes.txt", "two", word], held) for word in ("zwei", "deux")))
    world.work(world.a)
    assert world.a.wait() == 0
    with Decklog.open(world.target) as log:
        context = starting.resume(log, world.run_id, Repository.find(world.b.clone, world.b.state))
        tips = [str(task.inputs["tip"]) for task in log.tasks.find(world.run_id, role="check")]
        assert [context.repository.has(tip) for tip in tips] == [False, False]
        OverlapProbe(context).search()
        assert [context.repository.has(tip) for tip in tips] == [True, True]
        assert len(log.journal.find(world.run_id, subtype="conductor.overlap")) == 1, "the first machine has told it"


# Where a machine loses its power, in the order in which an item comes to it.
ALL_POINTS = (
    *("place:intended", "place:done", "spawn:intended", "spawn:settled"),
    *("keep:intended", "git:push:before", "git:push:after", "keep:settled", "stages:worked"),
    *("check:place", "stages:passed", "lane:candidate", "advance:intended"),
    *("git:push:before", "git:push:after", "stages:landed"),
)
IS_FULL = "DECKLOG_TEST_FULL" in os.environ
POINTS = ALL_POINTS if IS_FULL else ("spawn:settled", "git:push:after", "keep:settled", "advance:intended", "git:push:after")


@pytest.mark.slow
def test_an_item_lands_once_though_each_machine_in_turn_loses_its_power_at_every_point(world: World) -> None:
    world.plan(ITEM)
    hosts, missed = [world.a, world.b], []
    with Decklog.open(world.target) as log:
        for number, point in enumerate(POINTS):
            host = hosts[number % 2]
            world.work(host, point)
            if host.wait() != KILLED:
                missed.append(point)
            world.give_back(log, host)
        for host in hosts:
            world.work(host)
            assert host.wait() == 0
        assert missed == []
        world.check_whole(log, "Item triple")
        assert {task.failures for task in log.tasks.find(world.run_id)} == {0}
        assert log.effects.open(world.run_id) == []
        assert list(world.a.state.glob("places/*/run_*/*/tree")) + list(world.b.state.glob("places/*/run_*/*/tree")) == []


@pytest.mark.slow
def test_what_a_machine_kept_before_it_died_is_taken_up_by_another_without_an_agent(world: World) -> None:
    world.plan(ITEM)
    world.work(world.a, "keep:settled")
    assert world.a.wait() == KILLED
    # Nobody says that the machine is down: its lease runs out.
    world.work(world.b)
    assert world.b.wait() == 0
    with Decklog.open(world.target) as log:
        world.check_whole(log, "Item triple")
        assert len(log.effects.find(world.run_id, tool="conductor.spawn")) == 1, "no agent was started again"


@pytest.mark.slow
def test_what_a_machine_had_not_kept_when_it_died_is_kept_when_it_is_back(world: World) -> None:
    slow = work_item(
        "slow", ["write", "made-by-the-first.txt", "of much worth\n"], ["commit"], ["write", "begun", ""], ["sleep", 60]
    )
    world.plan(slow)
    world.work(world.a)
    wait_until(lambda: list(world.a.state.glob("places/*/run_*/*/tree/begun")))
    world.a.cut()
    world.a.wait()
    with Decklog.open(world.target) as log:
        (task,) = log.tasks.find(world.run_id, state="running")  # type: ignore[arg-type]
        world.give_back(log, world.a)
        log.runs.update(world.run_id, status="paused")  # type: ignore[arg-type]
        world.work(world.a, "keep:settled")
        assert world.a.wait() == KILLED
        tip = f"refs/decklog/{world.run_id}/tasks/{task.id}/{task.fence}/tip"
        assert git(world.remote, "show", f"{tip}:made-by-the-first.txt") == "of much worth"


@pytest.mark.slow
def test_a_remote_that_is_away_for_a_while_costs_no_attempt_and_no_agent(world: World) -> None:
    world.plan(
        work_item("triple", ["write", "begun", ""], ["wait", "go"], ["delete", "go"], ["delete", "begun"], *steps_of(ITEM))
    )
    world.work(world.b)
    wait_until(lambda: list(world.b.state.glob("places/*/run_*/*/tree/begun")))
    away = world.remote.rename(world.remote.with_name("away.git"))
    (tree,) = world.b.state.glob("places/*/run_*/*/tree")
    (tree / "go").touch()
    kept = f"refs/decklog/{world.run_id}"
    wait_until(lambda: "/changed" in git(world.b.clone, "for-each-ref", kept))
    assert "/changed" not in git(away, "for-each-ref", kept)
    away.rename(world.remote)
    assert world.b.wait() == 0
    with Decklog.open(world.target) as log:
        world.check_whole(log, "Item triple")
        assert len(log.effects.find(world.run_id, tool="conductor.spawn")) == 1
        assert {task.failures for task in log.tasks.find(world.run_id)} == {0}


def steps_of(given: dict[str, Any]) -> list[list[Any]]:
    steps: list[list[Any]] = json.loads(given["objective"].splitlines()[0].removeprefix("SCRIPT "))
    return steps


@pytest.mark.slow
def test_two_machines_that_start_at_the_same_moment_after_a_common_power_cut_do_nothing_twice(world: World) -> None:
    world.plan(*(work_item(f"p{number}", ["write", f"p{number}.txt", ""], ["sleep", 0.2]) for number in range(3)))
    for host in (world.a, world.b):
        world.work(host)
    wait_until(lambda: list(world.a.state.glob("places/*/run_*/*/tree")) and list(world.b.state.glob("places/*/run_*/*/tree")))
    for host in (world.a, world.b):
        host.cut()
    for host in (world.a, world.b):
        host.wait()
        world.work(host)
    assert (world.a.wait(), world.b.wait()) == (0, 0)
    with Decklog.open(world.target) as log:
        world.check_whole(log, *(f"Item p{number}" for number in range(3)))


@pytest.mark.slow
def test_a_log_in_a_file_is_not_worked_on_by_another_machine(tmp_path: Path, first_shared: Path, sqlite_target: str) -> None:
    world = World(tmp_path, first_shared, sqlite_target)
    world.plan(ITEM)
    said = tmp_path / "said"

    def join() -> None:
        with Decklog.open(world.target) as log, pytest.raises(Conflict) as refused:
            starting.resume(log, world.run_id, Repository.find(world.b.clone, world.b.state))
        said.write_text(f"{refused.value.message} {refused.value.hint}")

    world.b.boot(join)
    assert world.b.wait() == 0
    assert "was started on alpha, and a SQLite log can be used by one machine only" in said.read_text()
    assert "decklog move" in said.read_text()


@pytest.mark.slow
def test_forks_of_a_shared_run_are_at_the_remote_and_what_is_cleaned_up_goes_from_there_too(
    tmp_path: Path, first_shared: Path, sqlite_target: str
) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(first_shared), "remote.git")
    git(tmp_path, "clone", "-q", "remote.git", "clone")
    consent(tmp_path / "clone")
    remote, clone = tmp_path / "remote.git", tmp_path / "clone"
    with Decklog.open(sqlite_target) as log:
        work = Work(log, clone, ITEM)
        context = work.context()
        forked = starting.fork(log, context.run_id, Repository.find(clone, tmp_path / "state"))
        assert git(remote, "rev-parse", forked.target) == context.target_commit()
        work.run()
        assert "/tip" in git(remote, "for-each-ref", f"refs/decklog/{context.run_id}")
        git(clone, "merge", "-q", "--ff-only", context.target)
        log.runs.finish(context.run_id)
        gone = Cleaner(log, Repository.find(clone, tmp_path / "state"), days=0, is_trial=False, unlanded=False).clean().refs
        assert (context.target in gone, git(remote, "for-each-ref", f"refs/decklog/{context.run_id}")) == (True, "")
        assert git(remote, "rev-parse", forked.target)


@pytest.mark.skipif(not IS_FULL, reason="a hundred power cuts: DECKLOG_TEST_FULL=1")
def test_machines_that_lose_their_power_at_random_end_as_if_they_had_not(world: World) -> None:
    numbers, chance, cuts = range(8), random.Random(7), 0
    world.plan(*(work_item(f"p{number}", ["sleep", 0.2], ["write", f"p{number}.txt", f"{number}\n"]) for number in numbers))
    ends = {}
    with Decklog.open(world.target) as log:
        while cuts < 100 and any(task.state != "done" for task in log.tasks.find(world.run_id, limit=200)):
            for host in (world.a, world.b):
                if host not in ends:
                    world.work(host)
                    ends[host] = time.monotonic() + chance.uniform(0.1, 3.0)
            host = min(ends, key=lambda one: ends[one])
            cuts += host.wait(max(0.0, ends.pop(host) - time.monotonic())) != 0
            world.give_back(log, host)
        for host in ends:
            host.wait(0.0)
        for host in (world.a, world.b):
            world.work(host)
            assert host.wait(120) == 0
        print(f"{cuts} power cuts")
        world.check_whole(log, *(f"Item p{number}" for number in numbers))
        assert [landed(world.context(log), f"p{number}.txt") for number in numbers] == [str(number) for number in numbers]
        assert log.effects.open(world.run_id) == []
