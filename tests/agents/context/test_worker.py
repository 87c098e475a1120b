"""Who calls, and whether it lives."""

import os
import subprocess
import sys

import pytest

from decklog import Invalid
from decklog.agents.caller import SystemProcess, worker
from tests.waiting import wait_until


def test_a_name_goes_before_a_session_and_that_before_the_program_that_calls() -> None:
    session = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "aaaa-bbbb-12345678", "USER": "ana"}
    assert worker("dev", {**session, "DECKLOG_WORKER": "other"}).name == "dev"
    assert worker(None, {**session, "DECKLOG_WORKER": "other"}).name == "other"
    assert worker(None, session).name == "claude-12345678"
    assert worker(None, {"USER": "ana"}).name.startswith(f"ana@{os.uname().nodename}-")
    assert worker(None, {"GEMINI_CLI": "1"}).name.startswith("gemini-")
    with pytest.raises(Invalid):
        worker(" ", {})


def test_a_process_is_gone_once_it_was_killed_even_while_nobody_looks() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with open(f"/proc/{child.pid}/stat") as file:
        started = file.read().rpartition(")")[2].split()[19]
    system = worker(None, {}).process.system
    seen = SystemProcess.read(f"{child.pid} {started} {system}")
    assert seen is not None
    assert not seen.is_gone
    child.kill()
    wait_until(lambda: seen.is_gone)
    child.communicate()
    assert seen.is_gone


def test_of_another_machine_or_container_nobody_knows_and_after_a_restart_all_are_gone() -> None:
    machine, boot, container = worker(None, {}).process.system.split("/")
    alive = f"{os.getppid()} 1"
    for system, is_gone in (
        (f"elsewhere/{boot}/{container}", False),
        (f"{machine}/{boot}/other", False),
        (f"{machine}/before/{container}", True),
    ):
        process = SystemProcess.read(f"{alive} {system}")
        assert process is not None
        assert process.is_gone is is_gone
    assert SystemProcess.read("nonsense") is SystemProcess.read("1 2 3") is SystemProcess.read("") is None
