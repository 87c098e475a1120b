"""A loop that is killed at any moment goes on: no state is lost, nothing is published twice, nothing is charged twice."""

import os
import signal
from pathlib import Path

import pytest
from benchmarks.mending_faults import FAULTS

from decklog import Decklog
from decklog.conductor import kill_points
from tests.conductor.repositories import git
from tests.conductor.test_kills import ended
from tests.fixes.bench import Bench, scripted

FULL = "DECKLOG_TEST_FULL" in os.environ
# In the order in which a mend comes to them: one that is killed at each goes on from there to the next.
POINTS = ("mend:triaged", "spawn:done", "stages:landed", "mend:fixed", "check:place", "branch:done", "publish:done")
MORE = (
    *("mend:triaged", "mend:located", "mend:planned", "mend:fixing", "place:made", "spawn:intended", "keep:done"),
    *("stages:worked", "check:place", "advance:intended", "stages:landed", "mend:fixed", "mend:proven", "check:place"),
    *("git:patch-id:after", "mend:cleared", "branch:intended", "git:update-ref:after", "publish:done"),
)


def mended(target: str, folder: Path, feedback: str, point: str | None) -> int:
    """Run a fix in a process that is killed at a point; return its exit code."""
    child = os.fork()
    if child == 0:
        try:
            kill_points.arm(point)
            with Decklog.open(target) as log:
                Bench(log, folder).mend(feedback)
            os._exit(0)
        finally:
            os._exit(1)
    return ended(child)


@pytest.mark.slow
def test_a_mend_that_is_killed_at_every_point_is_published_once(sqlite_target: str, faulty: Path, tmp_path: Path) -> None:
    with Decklog.open(sqlite_target) as log:
        feedback = Bench(log, faulty).file(scripted(FAULTS[2], "true", tmp_path / "c"))
    points = MORE if FULL else POINTS
    missed = [point for point in points if mended(sqlite_target, faulty, feedback, point) != -signal.SIGKILL]
    assert (missed, mended(sqlite_target, faulty, feedback, None)) == ([], 0)
    with Decklog.open(sqlite_target) as log:
        (mend,) = log.mends.find()
        assert (mend.state, mend.waits_for) == ("published", "merge"), mend.reason
        assert git(faulty, "rev-list", "--count", f"main..mend/{feedback}") == "1"
        assert log.feedback.get(feedback).state == "fix-pr-open"
        check_money(log)
        for run in log.runs.find(limit=200):
            assert log.effects.open(run.id) == []
        assert len(log.effects.find(mend.run_id, tool="conductor.branch")) == 1
        assert log.journal.verify().ok


def check_money(log: Decklog) -> None:
    """Make sure that every answer on record is charged once, and nothing else is charged but the agents' own sessions."""
    for run in log.runs.find(limit=200):
        answers = log.journal.find(run.id, subtype="model.call", limit=200)
        keys = [str(charge.key) for charge in log.ledger.find(run.id, limit=200)]
        sessions = [one for one in keys if not one.startswith("call_")]
        assert sorted(str(entry.key) for entry in answers) == sorted(set(keys) - set(sessions))
        assert len(keys) == len(set(keys))
