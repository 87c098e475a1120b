"""An agent or a check that something outside ends says nothing of the work: it is run again, and costs no attempt."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.conductor.checks import examination
from decklog.conductor.commands import killed_by
from decklog.conductor.conductor import Conductor
from decklog.conductor.stages import MOST_INTERRUPTIONS
from decklog.core.errors import Conflict, Unavailable
from tests.conductor.plans import RUNNER, SETTINGS, TRIPLE, Work, landed_titles, settle, states, task_of, work_item

_PLAIN = json.dumps([os.path.realpath(sys.executable), "-I", "-S", str(RUNNER), "{report}"])
# Every other run of it ends before the tests do.
_EVERY_OTHER = 'if mkdir "$0" 2>/dev/null; then {end}; fi; rmdir "$0"; exec "$@"'
ENDS = {
    "killed": "kill -9 $$",
    "told to end": "kill -15 $$",
    "a killed child in a shell": "exit 137",
    "out of disk": "echo 'OSError: [Errno 28] No space left on device'; exit 1",
}


def every_other(end: str, flag: Path) -> str:
    words = [
        "sh",
        "-c",
        _EVERY_OTHER.format(end=end),
        str(flag),
        os.path.realpath(sys.executable),
        "-I",
        "-S",
        str(RUNNER),
        "{report}",
    ]
    return SETTINGS.replace(_PLAIN, json.dumps(words))


def always(end: str) -> str:
    return SETTINGS.replace(_PLAIN, json.dumps(["sh", "-c", end, "{report}"]))


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.slow) if kind != "killed" else kind for kind in ENDS])
def test_a_check_that_is_ended_from_outside_is_run_again_and_is_no_finding(
    sqlite_target: str, checked: Path, tmp_path: Path, kind: str
) -> None:
    settle(checked, every_other(ENDS[kind], tmp_path / "flag"))
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, work_item("it", TRIPLE)).run()
        assert landed_titles(context) == ["Item it"]
        assert set(states(context)) == {"it", "it.w1", "it.c1"}, "there was no second round"
        assert {one.outcome.value for one in log.verdicts.find(context.run_id)} == {"pass"}


@pytest.mark.slow
def test_a_check_that_is_killed_each_time_blames_nobody(sqlite_target: str, checked: Path) -> None:
    settle(checked, always("kill -9 $$"))
    with Decklog.open(sqlite_target) as log:
        with pytest.raises(Unavailable, match="it was killed by SIGKILL 3 times"):
            Work(log, checked, work_item("it", TRIPLE)).context()
        assert [run.status for run in log.runs.find()] == ["planning"], "the same command goes on"


@pytest.mark.slow
def test_words_about_the_disk_are_a_failure_where_there_is_room(
    sqlite_target: str, checked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(checked, always(ENDS["out of disk"]))
    with Decklog.open(sqlite_target) as log:
        work = Work(log, checked, work_item("it", TRIPLE))
        with pytest.raises(Conflict, match="does not pass its own checks"):
            work.context()
        full = shutil.disk_usage(checked)._replace(free=0)
        monkeypatch.setattr(examination.shutil, "disk_usage", lambda _: full)
        with pytest.raises(Unavailable, match="out of disk"):
            work.context()


@pytest.mark.slow
def test_an_agent_that_is_killed_twice_costs_no_attempt(sqlite_target: str, checked: Path, tmp_path: Path) -> None:
    kill: list[Any] = ["run", ["sh", "-c", "kill -9 $PPID"]]
    killed = [["once", str(tmp_path / name), [kill]] for name in ("first", "second")]
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, work_item("it", *killed, TRIPLE)).run()
        assert landed_titles(context) == ["Item it"]
        assert (task_of(context, "it.w1").failures, task_of(context, "it.w1").attempts) == (0, 3)


def test_an_agent_that_crashes_has_failed() -> None:
    ended = {"reason": "exited", "exit_code": None, "signal": "SIGSEGV"}
    assert killed_by(ended) is None
    assert killed_by({**ended, "signal": "SIGKILL"}) == "killed by SIGKILL"
    assert killed_by({**ended, "reason": "timed_out", "signal": "SIGKILL"}) is None


@pytest.mark.slow
def test_a_person_is_asked_about_what_is_interrupted_again_and_again(log: Decklog, checked: Path, clock: Any) -> None:
    context = Work(log, checked, work_item("it", TRIPLE)).context()
    for _ in range(MOST_INTERRUPTIONS):
        clock.advance(seconds=60)
        claim = log.tasks.claim(context.run_id, worker="w", role="work")
        assert claim is not None
        context.stages.interrupt(claim, "fake was killed by SIGKILL")
    assert (task_of(context, "it.w1").state, task_of(context, "it.w1").failures) == ("blocked", 0)
    (asked,) = log.approvals.find(context.run_id)
    assert "interrupted 5 times in a row: fake was killed by SIGKILL" in asked.question
    log.approvals.decide(asked.id, "granted", by="ana", subject_digest=asked.subject_digest)  # type: ignore[arg-type]
    Conductor(context).run()
    assert landed_titles(context) == ["Item it"]
