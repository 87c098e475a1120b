"""Supervisors that are forked by a server: the same as those that are started afresh, and nothing is left of either."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog.core.processes import stat_of
from decklog.guard.shell.fork_server import LONGEST_MARK
from decklog.guard.shell.launch import ForkServer, LaunchOrder, Supervised, launch
from decklog.guard.shell.process_tree import carriers
from tests.waiting import wait_until


@pytest.fixture
def server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


def order(folder: Path, mark: str, *argv: str, grace_seconds: float = 20.0) -> LaunchOrder:
    folder.mkdir()
    cwd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    env = {"PATH": os.environ["PATH"], "GIVEN": "yes"}
    return LaunchOrder(mark=mark, argv=list(argv), env=env, cwd_fd=cwd, folder=folder, grace_seconds=grace_seconds)


def started(server: ForkServer, wanted: LaunchOrder) -> Supervised:
    try:
        return launch(wanted, server)
    finally:
        os.close(wanted.cwd_fd)


def pid_of(server: ForkServer) -> int:
    assert server._process is not None
    return server._process.pid


def test_a_command_of_a_server_has_its_own_folder_environment_and_mark(server: ForkServer, tmp_path: Path) -> None:
    show = 'printf "%s %s %s" "$PWD" "$GIVEN" "$DECKLOG_PROCESS"; exit 3'
    one = started(server, order(tmp_path / "one", "run:one:1", "sh", "-c", show))
    assert one.wait()["exit_code"] == 3
    assert one.output().text == f"{tmp_path}/one yes run:one:1"


def test_forked_supervisors_are_found_by_their_marks_like_their_commands(server: ForkServer, tmp_path: Path) -> None:
    marks = ["short", "a" * LONGEST_MARK, "b" * (LONGEST_MARK + 1)]
    running = [started(server, order(tmp_path / str(number), mark, "sleep", "60")) for number, mark in enumerate(marks)]
    for one in running:
        assert {stat.pid for stat in carriers(one.mark)} == {one.pid, one.supervisor.pid}
        assert one.supervisor.send(signal.SIGTERM)
        assert one.wait()["reason"] == "stopped"
    wait_until(lambda: not any(carriers(mark) for mark in marks))


def test_what_is_tied_to_its_starter_ends_when_it_is_let_go(server: ForkServer, tmp_path: Path) -> None:
    one = started(server, order(tmp_path / "one", "tied", "sleep", "60", grace_seconds=0.0))
    one.let_go()
    assert json.loads((tmp_path / "one/ended.json").read_text())["reason"] == "abandoned"


def test_an_order_that_was_given_up_is_not_carried_out(server: ForkServer, tmp_path: Path) -> None:
    assert started(server, order(tmp_path / "first", "first", "true")).wait()["exit_code"] == 0
    os.kill(pid_of(server), signal.SIGSTOP)
    read, write = os.pipe()
    given_up = order(tmp_path / "late", "late", "touch", "made")
    server.start(given_up, write)
    for handle in (read, write, given_up.cwd_fd):
        os.close(handle)
    os.kill(pid_of(server), signal.SIGCONT)
    assert started(server, order(tmp_path / "next", "next", "true")).wait()["exit_code"] == 0
    wait_until(lambda: (tmp_path / "late/supervisor.err").exists() and not carriers("late"))
    assert sorted(path.name for path in (tmp_path / "late").iterdir()) == ["supervisor.err"]


def test_a_server_that_was_killed_is_replaced_and_what_it_forked_goes_on(server: ForkServer, tmp_path: Path) -> None:
    one = started(server, order(tmp_path / "one", "one", "sleep", "60"))
    killed = pid_of(server)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: (found := stat_of(killed)) is None or found.is_dead)
    other = started(server, order(tmp_path / "other", "other", "true"))
    assert other.wait()["exit_code"] == 0
    assert pid_of(server) != killed
    assert one.supervisor.is_alive()
    assert one.supervisor.send(signal.SIGTERM)
    assert one.wait()["reason"] == "stopped"


def test_a_server_rests_when_it_was_not_needed_for_a_while(server: ForkServer, tmp_path: Path) -> None:
    one = started(server, order(tmp_path / "one", "one", "sleep", "60"))
    pid = pid_of(server)
    server.rest(60.0)
    assert stat_of(pid) is not None
    server.rest(0.0)
    assert stat_of(pid) is None
    assert one.supervisor.send(signal.SIGTERM)
    assert one.wait()["reason"] == "stopped"


def test_a_fork_of_its_program_has_a_server_of_its_own(server: ForkServer, tmp_path: Path) -> None:
    assert started(server, order(tmp_path / "one", "one", "true")).wait()["exit_code"] == 0
    child = os.fork()
    if child == 0:
        code = started(server, order(tmp_path / "other", "other", "true")).wait()["exit_code"]
        server.close()
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert started(server, order(tmp_path / "again", "again", "true")).wait()["exit_code"] == 0
