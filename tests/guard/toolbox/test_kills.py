"""A shorter run of what `benchmarks/effects.py` does three hundred times."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from benchmarks.effects import DONE, PENDING, Driver, Ground

from decklog.guard.sandbox.sandbox import SandboxKind
from tests.waiting import wait_until

KILLS = 40 if "DECKLOG_TEST_FULL" in os.environ else 4
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")


@pytest.mark.slow
def test_killed_steps_happen_once_and_are_never_lost(tmp_path: Path) -> None:
    tally = Driver(Ground(tmp_path, kind=SandboxKind.NONE), seed=7).run(KILLS)
    assert tally.kills >= KILLS
    assert tally.twice == []
    assert tally.lost == []


@pytest.mark.slow
def test_a_step_goes_on_when_its_maker_is_killed_and_its_result_is_kept(tmp_path: Path) -> None:
    ground = Ground(tmp_path, kind=SandboxKind.NONE)
    (ground.root / "push.sh").write_text(
        "echo begun >> begun.txt; until [ -e go.txt ]; do sleep 0.05; done; echo ended >> ended.txt\n"
    )
    pid = ground.begin("push-1", with_check=False)
    wait_until((ground.root / "begun.txt").exists)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    codes: list[int] = []
    end = time.monotonic() + 60
    while (not codes or codes[-1] != DONE) and time.monotonic() < end:
        _, status = os.waitpid(ground.begin("push-1", with_check=False), 0)
        codes.append(os.waitstatus_to_exitcode(status))
        (ground.root / "go.txt").touch()
        time.sleep(0.05)
    assert set(codes[:-1]) == {PENDING}
    assert codes[-1] == DONE
    assert (ground.root / "begun.txt").read_text() == "begun\n"
    assert (ground.root / "ended.txt").read_text() == "ended\n"
    effect = ground.effect("push-1")
    assert effect is not None
    assert (effect.state, effect.reconciled_by) == ("done", "run")
    assert json.loads(json.dumps(effect.result))["exit_code"] == 0
