"""The files in which workers keep their claims."""

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from decklog import Busy
from decklog.agents.caller import StoredClaims, Worker
from decklog.core.processes import Identity
from tests.waiting import wait_until


def test_a_file_that_is_removed_while_its_worker_waits_for_the_lock_is_locked_anew(tmp_path: Path) -> None:
    worker = Worker("dev", "shell", Identity.own(), is_named=True)
    with StoredClaims(str(tmp_path), worker).locked(1.0):
        pass
    (path,) = tmp_path.iterdir()
    descriptor = os.open(path, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    is_inside, may_leave = threading.Event(), threading.Event()

    def claim() -> None:
        with StoredClaims(str(tmp_path), worker).locked(30.0):
            is_inside.set()
            may_leave.wait(30)

    claiming = threading.Thread(target=claim)
    claiming.start()
    wait_until(lambda: _open_descriptors_of(path) == 2)
    path.unlink()
    os.close(descriptor)
    assert is_inside.wait(30)
    with pytest.raises(Busy), StoredClaims(str(tmp_path), worker).locked(0.0):
        pass
    may_leave.set()
    claiming.join()


def _open_descriptors_of(path: Path) -> int:
    wanted = os.stat(path)
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            count += os.path.samestat(os.stat(f"/proc/self/fd/{name}"), wanted)
        except FileNotFoundError:
            continue
    return count


def test_a_file_of_an_ended_worker_is_kept_while_it_is_locked(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        own = Identity.own()
        ended = Identity(pid=child.pid, ticks=1, boot_id=own.boot_id, pid_space=own.pid_space, host=own.host)
    gone, other = Worker("gone", "shell", ended, is_named=True), Worker("other", "shell", own)
    with StoredClaims(str(tmp_path), gone).locked(1.0):
        StoredClaims(str(tmp_path), other).remove_ended()
        assert len(list(tmp_path.iterdir())) == 1
    StoredClaims(str(tmp_path), other).remove_ended()
    assert not list(tmp_path.iterdir())
