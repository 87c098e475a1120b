"""Claims about background processes: they outlive their starter, are found again, and a stranger is never taken for one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from decklog import Decklog, Invalid, NotFound
from decklog.core.errors import Refused
from decklog.core.processes import Identity
from decklog.guard import Toolbox
from decklog.guard.shell.launch import end_process_tree
from decklog.guard.shell.process_tree import find_marked_processes
from tests.guard.shell.test_shell import PYTHON, STUBBORN, is_running
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def nothing_left(log: Decklog, run_id: str) -> Iterator[None]:
    """End whatever a failing test leaves running."""
    yield
    for process in log.processes.find(run_id):
        end_process_tree(process.id)


def test_a_process_runs_in_the_background_and_its_output_is_kept(box: Toolbox) -> None:
    started = box.start_process("echo one; echo two >&2; sleep 600")
    wait_until(lambda: "two" in box.process_logs(started.process_id))
    assert box.process_logs(started.process_id) == "one\ntwo\n"
    assert box.process_logs(started.process_id, tail_lines=1) == "two\n"
    assert box.process_logs(started.process_id, tail_lines=0) == ""
    with pytest.raises(Invalid):
        box.process_logs(started.process_id, tail_lines=-1)
    seen = box.list_processes()
    assert [(one.process_id, one.state, one.exit_code) for one in seen] == [(started.process_id, "running", None)]
    assert is_running(started.pid)


def test_the_exit_code_of_a_finished_process_is_kept(box: Toolbox) -> None:
    started = box.start_process("echo done; exit 7")
    wait_until(lambda: box.list_processes()[0].state != "running")
    assert [(one.state, one.exit_code) for one in box.list_processes()] == [("exited", 7)]
    assert box.process_logs(started.process_id) == "done\n"


def test_a_stop_interrupts_first(box: Toolbox) -> None:
    started = box.start_process("trap 'echo tidied; exit 5' INT; echo ready; while :; do sleep 0.05; done")
    wait_until(lambda: "ready" in box.process_logs(started.process_id))
    stopped = box.stop_process(started.process_id)
    assert (stopped.was_running, stopped.state, stopped.exit_code) == (True, "stopped", 5)
    assert stopped.signals_sent == ("SIGINT",)
    assert "tidied" in box.process_logs(started.process_id)


@pytest.mark.slow
def test_a_stop_goes_on_to_terminate_and_to_kill(box: Toolbox) -> None:
    for ignored, sent, ended_by in (
        ("INT", ["SIGINT", "SIGTERM"], "SIGTERM"),
        ("INT TERM", ["SIGINT", "SIGTERM", "SIGKILL"], "SIGKILL"),
    ):
        started = box.start_process(f"trap '' {ignored}; echo ready; while :; do read -t 0.05 < <(:); done; sleep 600")
        wait_until(lambda started=started: "ready" in box.process_logs(started.process_id))
        stopped = box.stop_process(started.process_id, grace_seconds=0.3)
        assert list(stopped.signals_sent) == sent
        assert stopped.signal == ended_by
        assert not find_marked_processes(started.process_id)


@pytest.mark.slow
def test_a_grandchild_that_ignores_signals_is_gone_after_a_stop(box: Toolbox, place: Path) -> None:
    (place / "stubborn.py").write_text(STUBBORN)
    started = box.start_process([PYTHON, "stubborn.py", "600"])
    wait_until(lambda: (place / "grandchild.pid").exists() and (place / "grandchild.pid").read_text())
    grandchild = int((place / "grandchild.pid").read_text())
    assert is_running(grandchild)
    stopped = box.stop_process(started.process_id, grace_seconds=0.2)
    assert stopped.signals_sent == ("SIGINT", "SIGTERM", "SIGKILL")
    assert not is_running(grandchild)


def test_force_kills_at_once(box: Toolbox) -> None:
    started = box.start_process("trap '' INT TERM; sleep 600")
    stopped = box.stop_process(started.process_id, force=True)
    assert (stopped.signals_sent, stopped.signal) == (("SIGKILL",), "SIGKILL")


def test_stopping_what_has_ended_reports_how_it_ended(box: Toolbox) -> None:
    started = box.start_process("exit 4")
    wait_until(lambda: box.list_processes()[0].state != "running")
    stopped = box.stop_process(started.process_id)
    assert (stopped.was_running, stopped.state, stopped.exit_code, stopped.signals_sent) == (False, "exited", 4, ())


@pytest.mark.slow
def test_a_process_is_found_again_after_its_starter_was_killed(
    target: str, run_id: str, box: Toolbox, place: Path, tmp_path: Path
) -> None:
    script = f"""
import time
from decklog import Decklog
from decklog.guard import Sandbox, Toolbox, Unrestricted
with Decklog.open({target!r}) as log, Toolbox(log, {run_id!r}, root={str(place)!r}, trust=Unrestricted(),
        sandbox=Sandbox(kind="none"), state={str(tmp_path / "state")!r}) as box:
    box.start_process("echo alive; sleep 600")
    box.start_process("sleep 0.2; echo over; exit 9")
    open({str(tmp_path / "started")!r}, "w").close()
    time.sleep(600)
"""
    agent = subprocess.Popen([sys.executable, "-c", script])
    try:
        wait_until((tmp_path / "started").exists)
    finally:
        agent.send_signal(signal.SIGKILL)
        agent.wait()
    wait_until(lambda: any(one.state == "exited" for one in box.list_processes()))
    over, alive = box.list_processes()
    assert (alive.state, over.state, over.exit_code) == ("running", "exited", 9)
    assert box.process_logs(over.process_id) == "over\n"
    assert box.stop_process(alive.process_id, force=True).was_running
    assert not is_running(alive.pid)


def test_a_reused_number_never_gets_a_signal(log: Decklog, run_id: str, box: Toolbox, tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        own = json.loads(Identity.own().as_text())
        # The record names the stranger's number, but a process that started at another time.
        former = json.dumps({**own, "pid": stranger.pid, "ticks": own["ticks"] - 1})
        folder = tmp_path / "state" / "proc_gone"
        folder.mkdir(parents=True)
        log.processes.started(
            run_id,
            "proc_gone",
            command={"argv": ["x"]},
            cwd=".",
            root=str(tmp_path),
            folder=str(folder),
            sandbox="none",
            keeper=former,
            pid=stranger.pid,
        )
        assert Identity.from_text(former).send(signal.SIGKILL) is False
        stopped = box.stop_process("proc_gone", force=True)
        assert (stopped.was_running, stopped.state, stopped.exit_code) == (False, "lost", None)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_process_of_an_earlier_boot_is_lost() -> None:
    own = json.loads(Identity.own().as_text())
    assert Identity.from_text(json.dumps({**own, "boot_id": "another"})).is_alive() is False
    assert Identity.from_text(json.dumps({**own, "boot_id": "another", "host": "elsewhere"})).is_alive() is None
    assert Identity.from_text(json.dumps(own)).is_alive() is True


def test_what_lost_its_supervisor_is_still_found_and_stopped(log: Decklog, box: Toolbox) -> None:
    started = box.start_process("trap '' INT TERM; sleep 600")
    supervisor = Identity.from_text(log.processes.get(started.process_id).keeper)
    assert supervisor.send(signal.SIGKILL)
    wait_until(lambda: not supervisor.is_alive())
    assert box.list_processes()[0].state == "running"
    stopped = box.stop_process(started.process_id)
    assert (stopped.was_running, stopped.state) == (True, "lost")
    assert not find_marked_processes(started.process_id)


def test_a_chatty_process_never_blocks_and_never_fills_the_disk(make_box: Callable[..., Toolbox], log: Decklog) -> None:
    box = make_box(cap_bytes=20_000)
    started = box.start_process("yes | head -c 5000000; echo; echo the end; sleep 600")
    wait_until(lambda: "the end" in box.process_logs(started.process_id, tail_lines=1))
    folder = Path(log.processes.get(started.process_id).folder)
    assert sum(file.stat().st_size for file in folder.iterdir()) < 100_000
    box.stop_process(started.process_id, force=True)


def test_a_process_is_judged_before_it_starts(log: Decklog, run_id: str, box: Toolbox) -> None:
    with pytest.raises(Refused):
        box.start_process("sudo sleep 600")
    assert log.processes.find(run_id) == []


def test_processes_of_another_run_are_not_ours_to_stop(log: Decklog, box: Toolbox, place: Path, tmp_path: Path) -> None:
    from decklog.guard import Sandbox, Unrestricted
    from decklog.guard.sandbox.sandbox import SandboxKind

    started = box.start_process("sleep 600")
    other = log.runs.start("other").id
    with Toolbox(
        log, other, root=place, trust=Unrestricted(), sandbox=Sandbox(kind=SandboxKind.NONE), state=tmp_path / "state"
    ) as theirs:
        for tool in ("stop_process", "process_logs"):
            with pytest.raises(NotFound, match="another run"):
                theirs.call(tool, {"process_id": started.process_id})
        assert theirs.list_processes() == []
    assert is_running(started.pid)


def test_what_daemonises_is_still_part_of_its_process(box: Toolbox, place: Path) -> None:
    (place / "stubborn.py").write_text(STUBBORN)
    started = box.start_process([PYTHON, "stubborn.py", "0"])
    wait_until(lambda: not is_running(started.pid))
    grandchild = int((place / "grandchild.pid").read_text())
    assert box.list_processes()[0].state == "running"
    stopped = box.stop_process(started.process_id, grace_seconds=0.1)
    assert (stopped.exit_code, stopped.state) == (0, "stopped")
    assert not is_running(grandchild)


def test_a_record_of_a_process_keeps_its_first_end(log: Decklog, box: Toolbox) -> None:
    started = box.start_process("exit 3")
    wait_until(lambda: box.list_processes()[0].state != "running")
    again = log.processes.ended(started.process_id, "lost")  # type: ignore[arg-type]
    assert (again.already, again.state, again.exit_code) == (True, "exited", 3)
    with pytest.raises(Invalid):
        log.processes.ended(started.process_id, "running")  # type: ignore[arg-type]


def test_closing_the_toolbox_leaves_its_processes_running(make_box: Callable[..., Toolbox], box: Toolbox) -> None:
    first = make_box()
    started = first.start_process("sleep 600")
    first.close()
    time.sleep(0)
    assert is_running(started.pid)
    assert box.stop_process(started.process_id, force=True).was_running
    assert not os.path.exists(f"/proc/{started.pid}") or not is_running(started.pid)
