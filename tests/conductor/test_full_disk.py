"""A disk that fills up while an agent works costs no attempt, and the reason names it."""

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.conductor.conductor import Conductor
from tests.conductor.plans import TRIPLE, Work, landed_titles, task_of, work_item


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """The folder of workspaces, on a file system with little more room than a run needs."""
    folder = tmp_path / "state"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=260m", "tmpfs", str(folder)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["workspace", "elsewhere"])
def test_an_agent_that_fills_the_disk_uses_no_attempt_and_lands_later(
    place: str, sqlite_target: str, checked: Path, state: Path, tmp_path: Path
) -> None:
    big = "big.bin" if place == "workspace" else str(state / "big.bin")
    fill = ["run", ["dd", "if=/dev/zero", f"of={big}", "bs=1M"]]
    full = ["once", str(tmp_path / "filled"), [fill, ["exit", 1]]]
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, work_item("it", full, TRIPLE)).context()
        conductor = Conductor(context)
        worker = threading.Thread(target=conductor.run)
        worker.start()
        deadline = time.monotonic() + 60
        while "is full" not in str(conductor.trouble) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert f"the disk of {context.repository.state} is full" in str(conductor.trouble)
        for path in state.rglob("big.bin"):
            path.unlink()
        worker.join(90)
        assert not worker.is_alive()
        assert landed_titles(context) == ["Item it"]
        assert task_of(context, "it.w1").failures == 0
        reasons = [str((entry.payload or {}).get("reason")) for entry in log.journal.find(context.run_id, limit=200)]
        assert any("No space left on device" in reason for reason in reasons), reasons
