"""A conductor that is killed at any moment leaves nothing undone, nothing done twice, and nothing running."""

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.conductor import kill_points, starting
from decklog.conductor.context import RunContext
from decklog.conductor.git.repository import Repository
from decklog.conductor.plan import FILE as PLAN_FILE
from decklog.conductor.recovery import Recovery
from decklog.core.processes import Identity
from decklog.guard.shell import process_tree
from tests.conductor.plans import SETTINGS, Work, landed, landed_titles, settle, states, target_of, task_of, work_item
from tests.conductor.repositories import everything, git, write
from tests.waiting import wait_until

FULL = "DECKLOG_TEST_FULL" in os.environ
# In the order in which an item comes to them: a run that is killed at each goes on from there to the next.
POINTS = (
    *("place:intended", "git:read-tree:before", "place:made", "place:done", "spawn:intended", "spawn:done"),
    *("keep:intended", "git:unpack-objects:after", "git:update-ref:after", "keep:done", "keep:settled", "stages:worked"),
    *("clean:intended", "place:removing", "check:place", "stages:passed", "lane:candidate", "advance:intended"),
    *("git:update-ref:before", "git:update-ref:after", "stages:landed"),
)
ITEM = work_item("triple", ["append", "calc.py", "\n\ndef triple(a):\n    return a * 3\n"], ["commit"])
# An agent that tells what each turn costs.
_TURN = '{ when = { "/type" = "turn" }, as = "usage", take = { cost_usd = "/cost" } }'
PRICED = SETTINGS.replace("[[checks]]", f'stream = "jsonl"\nevents = [{_TURN}]\n[[checks]]')
TURNS = [["print", {"type": "turn", "cost": cost}] for cost in (0.01, 0.02, 0.04)]


def conducted(target: str, folder: Path, items: tuple[dict[str, Any], ...], point: str | None, seconds: float = 60.0) -> int:
    """Conduct in a process of its own, which is killed at a point or after a time; give how it ended."""
    return ended(conducting(target, folder, items, point), seconds)


def conducting(target: str, folder: Path, items: tuple[dict[str, Any], ...], point: str | None = None) -> int:
    """Begin to conduct in a process of its own; give its number."""
    child = os.fork()
    if child == 0:
        try:
            kill_points.arm(point)
            with Decklog.open(target) as log:
                Work(log, folder, *items).run()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def ended(child: int, seconds: float = 60.0) -> int:
    """Wait for the end of a process, which is killed after a time; give how it ended."""
    end = time.monotonic() + seconds
    while (done := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)
    return os.waitstatus_to_exitcode(done[1])


def site_of(log: Decklog, folder: Path, items: tuple[dict[str, Any], ...]) -> RunContext:
    (run,) = [one for one in log.runs.find() if one.status == "active"]
    return starting.resume(log, run.id, Repository.find(folder, folder.parent / "state"))


def is_running(context: RunContext) -> bool:
    """Say whether anything that was started in the run's places is alive."""
    wanted = os.fsencode(context.folder)
    for one in process_tree.all_processes():
        try:
            if os.fsencode(os.readlink(f"/proc/{one.pid}/cwd")).startswith(wanted) and not one.is_dead:
                return True
        except OSError:
            continue
    return False


def check_whole(log: Decklog, context: RunContext, folder: Path) -> None:
    """Make sure that nothing is left over, nothing is open, and every commit of the target was green."""
    assert log.journal.verify(context.run_id).ok
    assert log.effects.open(context.run_id) == []
    assert list(context.folder.glob("*/tree")) == []
    assert list(context.checks_folder.glob("*/*")) == []
    green = {one.tree for one in log.verdicts.find(context.run_id, outcome="pass", limit=200)}  # type: ignore[arg-type]
    first = starting.first_commit(log.runs.get(context.run_id))
    trees = git(folder, "log", "--format=%T", target_of(context), "--not", f"{first}^@").split()
    assert set(trees) <= green


@pytest.mark.slow
def test_a_run_that_is_killed_at_every_point_lands_its_item_once(sqlite_target: str, checked: Path) -> None:
    settle(checked, PRICED)
    priced = work_item("triple", *TURNS, *_steps(ITEM))
    # Killed before anything is planned, the same plan goes on with the same run.
    assert conducted(sqlite_target, checked, (priced,), "check:place") == -signal.SIGKILL
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, priced).context()
        assert [run.id for run in log.runs.find()] == [context.run_id]
    missed = [point for point in POINTS if conducted(sqlite_target, checked, (priced,), point) != -signal.SIGKILL]
    conducted(sqlite_target, checked, (priced,), None)
    assert missed == []
    with Decklog.open(sqlite_target) as log:
        context = site_of(log, checked, (priced,))
        assert [charge.cost_microdollars for charge in log.ledger.find(context.run_id)] == [40_000, 20_000, 10_000], "to the cent"
        assert set(states(context).values()) == {"done"}
        assert landed_titles(context) == ["Item triple"]
        assert "def triple" in landed(context, "calc.py")
        assert {task.failures for task in log.tasks.find(context.run_id)} == {0}
        check_whole(log, context, checked)


@pytest.mark.slow
def test_a_stuck_item_that_is_killed_at_each_hand_over_is_cut_anew_once(sqlite_target: str, checked: Path) -> None:
    settle(checked, SETTINGS.replace("agents = 2", 'agents = 2\nplan = "auto"'))
    # The strategist is the same agent, in the first round as all plans are: it proposes what it can't work itself.
    proposed = json.dumps({"items": [{**ITEM, "name": "part"}]})
    stuck = work_item("stuck", ["write", PLAN_FILE, proposed], paths=["calc.py"])
    with Decklog.open(sqlite_target) as log:
        Work(log, checked, stuck).context()
    points = ("stages:unfinished", "stages:unfinished", "stages:planned", "keep:done", "stages:landed")
    missed = [point for point in points if conducted(sqlite_target, checked, (stuck,), point) != -signal.SIGKILL]
    assert (missed, conducted(sqlite_target, checked, (stuck,), None)) == ([], 0)
    with Decklog.open(sqlite_target) as log:
        context = site_of(log, checked, (stuck,))
        assert landed_titles(context) == ["Item triple"]
        ended = {"stuck.w1": "abandoned"} | dict.fromkeys(("stuck", "stuck.@plan", "part", "part.w1", "part.c1"), "done")
        assert states(context) == ended
        check_whole(log, context, checked)


@pytest.mark.slow
def test_a_landing_that_was_begun_before_another_item_landed_is_not_left_open(sqlite_target: str, checked: Path) -> None:
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, ITEM).context()
    assert conducted(sqlite_target, checked, (ITEM,), "advance:intended") == -signal.SIGKILL
    with Decklog.open(sqlite_target) as log:
        context = site_of(log, checked, (ITEM,))
        before = context.target_commit()
        other = context.repository.commit(context.repository.tree(before), [before], "Another item\n", context.person, 9)
        assert context.repository.swap_ref(context.target, other, before)
    assert conducted(sqlite_target, checked, (ITEM,), None) == 0
    with Decklog.open(sqlite_target) as log:
        context = site_of(log, checked, (ITEM,))
        assert landed_titles(context) == ["Another item", "Item triple"]
        check_whole(log, context, checked)


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["place", "spawn"])
def test_a_step_that_was_doubted_when_its_conductor_died_is_closed_with_its_attempt(
    sqlite_target: str, checked: Path, tool: str
) -> None:
    with Decklog.open(sqlite_target) as log:
        Work(log, checked, ITEM).context()
    assert conducted(sqlite_target, checked, (ITEM,), f"{tool}:intended") == -signal.SIGKILL
    with Decklog.open(sqlite_target) as log:
        context = site_of(log, checked, (ITEM,))
        (begun,) = log.effects.find(context.run_id, tool=f"conductor.{tool}")
        assert begun.actor is not None
        log.effects.doubt(begun.id, actor=begun.actor)
    assert conducted(sqlite_target, checked, (ITEM,), None) == 0
    with Decklog.open(sqlite_target) as log:
        context = site_of(log, checked, (ITEM,))
        assert landed_titles(context) == ["Item triple"]
        check_whole(log, context, checked)


@pytest.mark.slow
def test_a_second_conductor_leaves_an_agent_alone_that_the_first_has_adopted(sqlite_target: str, checked: Path) -> None:
    slow = work_item("slow", ["write", "begun", ""], ["wait", "go"], ["delete", "go"], ["delete", "begun"], *_steps(ITEM))
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, slow).context()
    assert conducted(sqlite_target, checked, (slow,), "spawn:settled") == -signal.SIGKILL
    adopter = conducting(sqlite_target, checked, (slow,))
    with Decklog.open(sqlite_target) as log:
        context = site_of(log, checked, (slow,))
        wait_until(lambda: task_of(context, "slow.w1").fence == 2)
        assert Recovery(context).adopt_agents() == []
        (tree,) = context.folder.glob("*/tree")
        (tree / "go").touch()
        assert ended(adopter) == 0
        assert landed_titles(context) == ["Item slow"]
        assert len(log.effects.find(context.run_id, tool="conductor.spawn")) == 1, "the agent was not started again"
        check_whole(log, context, checked)


def test_two_conductors_that_start_at_the_same_moment_close_what_a_third_left_once(sqlite_target: str, checked: Path) -> None:
    with Decklog.open(sqlite_target) as log:
        Work(log, checked, ITEM).context()
    assert conducted(sqlite_target, checked, (ITEM,), "place:intended") == -signal.SIGKILL
    with Decklog.open(sqlite_target) as log:
        context = site_of(log, checked, (ITEM,))
        (seen_by_both,) = log.effects.find(context.run_id, tool="conductor.place")
        for _ in range(2):
            context.effects.abandon(seen_by_both)
        assert log.effects.get(seen_by_both.id).state == "failed"


def _steps(given: dict[str, Any]) -> list[list[Any]]:
    steps: list[list[Any]] = json.loads(given["objective"].splitlines()[0].removeprefix("SCRIPT "))
    return steps


@pytest.mark.slow
def test_what_nobody_resumes_is_ended_and_its_files_are_kept(sqlite_target: str, checked: Path) -> None:
    settings = checked / "decklog.toml"
    settings.write_text(settings.read_text().replace("orphan_seconds = 20", "orphan_seconds = 0.3"))
    git(checked, "commit", "-q", "-a", "-m", "Short grace")
    slow = work_item("slow", ["write", "begun", ""], ["child", 60], ["sleep", 60])
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, slow).context()
    assert conducted(sqlite_target, checked, (slow,), "spawn:settled") == -signal.SIGKILL
    (tree,) = context.folder.glob("*/tree")
    wait_until(lambda: not is_running(context), seconds=30)
    assert (tree / "calc.py").exists()


@pytest.mark.slow
def test_a_dirty_working_tree_is_the_same_byte_for_byte_after_runs_and_kills(sqlite_target: str, checked: Path) -> None:
    write(checked, {"calc.py": "half an idea\n", "mine.txt": "untracked\n", "staged.txt": "staged\n", "run.log": "ignored\n"})
    git(checked, "add", "staged.txt")
    git(checked, "rm", "-q", "--cached", "notes.txt")
    before = everything(checked)
    for number in range(1, 101 if FULL else 2):
        steps = [["append", "calc.py", f"\n\ndef f{number}(a):\n    return a\n"], ["write", "mine.txt", "theirs\n"]]
        items = (work_item(f"p{number}", *steps, ["commit"]),)
        if number % 2:
            assert conducted(sqlite_target, checked, items, POINTS[number // 2 % len(POINTS)]) == -signal.SIGKILL
        assert conducted(sqlite_target, checked, items, None) == 0
        assert everything(checked) == before, number


@pytest.mark.skipif(not FULL, reason="hundreds of kills: DECKLOG_TEST_FULL=1")
@pytest.mark.parametrize("with_supervisors", [False, True])
def test_a_run_that_is_killed_at_random_ends_as_if_it_had_not_been(
    sqlite_target: str, checked: Path, with_supervisors: bool
) -> None:
    items = tuple(work_item(f"p{number}", ["sleep", 0.2], ["write", f"p{number}.txt", f"{number}\n"]) for number in range(8))
    chance = random.Random(7)
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, *items).context()
    kills = 0
    while conducted(sqlite_target, checked, items, None, seconds=chance.uniform(0.05, 1.5)) != 0:
        kills += 1
        if with_supervisors and chance.random() < 0.4:
            for note in context.folder.glob("**/running.json"):
                Identity.from_text(json.loads(note.read_text())["supervisor"]).send(signal.SIGKILL)
        assert kills < 1000
    print(f"{kills} kills")
    with Decklog.open(sqlite_target) as log:
        context = site_of(log, checked, items)
        assert sorted(landed_titles(context)) == [f"Item p{number}" for number in range(8)]
        assert [landed(context, f"p{number}.txt") for number in range(8)] == [str(number) for number in range(8)]
        check_whole(log, context, checked)
