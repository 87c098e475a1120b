"""A large log for screenshots, benchmarks and demos: a month of a team's runs, written through the public verbs.

The same seed and end give the same log on every machine, and `verify` accepts it.
"""

import random
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any

from decklog.core.clock import Clock
from decklog.core.errors import Conflict
from decklog.core.ids import Ids
from decklog.demo import LEASE_SECONDS
from decklog.demo.run import OVER, PACE_SECONDS, BigRun, DemoStory
from decklog.journal.entry import EntryKind
from decklog.log import Decklog
from decklog.stores.money.records import BudgetAction, BudgetPeriod, BudgetScope
from decklog.stores.tasks.claim import Claim
from decklog.stores.tasks.task import TaskState

DAYS = 30
# Number of entries in a typical run.
_USUAL = 900
# The states of the newest runs, the newest first.
_NEWEST = ("needs attention", "running", "completed", "running", "stalled", "paused", "failed", "completed")


class MovedClock(Clock):
    """A clock that follows the simulated time."""

    def __init__(self, now: datetime) -> None:
        self.time = now

    def now(self) -> datetime:
        return self.time


def opened(target: str, until: datetime, seed: int) -> "tuple[Decklog, MovedClock]":
    """Open a new log whose simulated time ends at a moment."""
    clock = MovedClock(until - timedelta(days=DAYS))
    ids = Ids(clock, random.Random(seed).randbytes)
    log = Decklog.open(target, clock=clock, ids=ids, migrate=True, durability="relaxed")
    if log.journal.heads():
        log.close()
        raise Conflict("this log has entries already; a large demonstration is made in a new one", hint="Give another --db.")
    return log, clock


@dataclass
class Big:
    """Fills a log with about this many entries, which end at a moment; a small one has `least_runs` short ones."""

    log: Decklog
    clock: MovedClock
    until: datetime
    size: int
    seed: int
    say: Callable[[int, int], None]
    least_runs: int = len(_NEWEST) + 2

    def run(self) -> int:
        """Write the month; return the number of runs."""
        data = tomllib.loads(files("decklog.demo").joinpath("stories.toml").read_text(encoding="utf-8"))
        stories, work = [DemoStory(**one) for one in data["stories"]], data["work"]
        self.log.budgets.set(BudgetScope.ALL, period=BudgetPeriod.DAY, limit_microdollars=50_000_000, action=BudgetAction.WARN)
        count, written = max(self.least_runs, round(self.size / _USUAL)), 0
        for number in range(count):
            length = self._length(number, count)
            written += self._run(number, count, length, stories[number % len(stories)], work)
            self.say(written, self.size)
        self.clock.time = self.until
        self._remember(work)
        return count

    def _length(self, number: int, count: int) -> int:
        """Return the length of a run: the newest has a tenth of all entries, the others share the rest."""
        long = self.size // 10
        return long if number == count - 1 else (self.size - long) // (count - 1)

    def _run(self, number: int, count: int, length: int, story: DemoStory, work: dict[str, Any]) -> int:
        dice, newer = random.Random(f"{self.seed} {number}"), count - 1 - number
        ending = _NEWEST[newer] if newer < len(_NEWEST) else dice.choices(OVER, weights=(82, 11, 7))[0]
        spread = timedelta(days=DAYS - 1) * (newer / count) + timedelta(minutes=dice.uniform(0, 40))
        length_seconds = length * PACE_SECONDS * (1.2 if ending in OVER else 1.0)
        began = self.until - (spread if ending in OVER else timedelta(minutes=170)) - timedelta(seconds=length_seconds)
        self.clock.time = max(began, self.until - timedelta(days=DAYS))
        turn, parent = number // 12, f"{story.slug}-{number // 12}" if number % 9 == 8 and number >= 24 else None
        name = story.slug if turn == 0 else f"{story.slug}-{turn + 1}"
        return BigRun(self.log, self.clock, dice, story, work, name, parent).play(length, ending, self.until)

    def _remember(self, work: dict[str, Any]) -> None:
        """Write lessons and a message of a person, which belong to no run."""
        for topic in dict.fromkeys(topic for topic, _ in work["lessons"]):
            self.log.memory.add_topic(topic, f"Lessons about {topic}.")
        for topic, body in work["lessons"]:
            self.log.memory.remember(topic, body)
        self.log.inbox.post("owner", "Please keep the old scheduler for one more week.", key="demo-note")


_STEPS = ("looked around", "made the change", "ran the tests")


def work(target: str, run_id: str, name: str) -> None:
    """Claim tasks of a run until all are done."""
    with Decklog.open(target) as log, log.acting(name):
        while any(task.state != TaskState.DONE for task in log.tasks.find(run_id, limit=100)):
            claim = log.tasks.claim(run_id, worker=name, lease_seconds=LEASE_SECONDS, wait_seconds=0.5)
            if claim is not None:
                with claim, log.acting(task_id=claim.task.id):
                    _work_on(log, claim)


def _work_on(log: Decklog, claim: Claim) -> None:
    for step in _STEPS:
        log.journal.append(claim.task.run_id, f"{claim.task.title}: {step}", kind=EntryKind.TOOL, subtype="step")
        time.sleep(0.12)
    claim.finish(f"{claim.task.title}: done")


if __name__ == "__main__":
    work(*sys.argv[1:4])
