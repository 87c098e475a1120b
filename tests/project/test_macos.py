"""Decklog without what only Linux has: every module can be imported, and all but guarded commands works."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from decklog import Unavailable
from decklog.conductor.commands import start as start_command
from decklog.core import disk
from decklog.core import processes as identity
from decklog.core.processes import Identity
from decklog.guard.shell.shell import build_order
from tests.db.processes import ROOT, environment
from tests.pictures import history

# Optional extras that may be missing here.
EXTRAS = ("No module named 'claude_agent_sdk'", "No module named 'agents'")


def like_macos(*words: str, cwd: Path, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    """Run `decklog` in a process that sees what macOS has."""
    variables = environment(HOME=str(cwd / "home"), XDG_DATA_HOME=str(cwd / "data"), PYTHONPATH=str(ROOT))
    command = [sys.executable, "-m", "tests.project.like_macos", *words]
    return subprocess.run(command, cwd=cwd, env=variables, input=stdin, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_no_module_needs_linux_to_be_imported(tmp_path: Path) -> None:
    done = like_macos("import", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.strip() and not line.endswith(EXTRAS)] == []


@pytest.mark.slow
def test_store_hooks_import_and_screens_work_without_proc(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    history.write(tmp_path / "home", tmp_path, datetime.now(UTC), sessions=3)
    for words in (
        *(["init"], ["import", "claude"], ["cost"], ["setup", "claude"], ["now"], ["doctor"], ["verify"]),
        *(["runs", "start", "x", "--run", "r"], ["tasks", "add", "r", "t"], ["next", "--as", "w"], ["done", "ok", "--as", "w"]),
    ):
        done = like_macos(*words, cwd=tmp_path)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    event = f'{{"session_id": "s1", "hook_event_name": "SessionStart", "cwd": "{tmp_path}"}}'
    assert like_macos("hook", "claude", cwd=tmp_path, stdin=event).returncode == 0
    assert "claude-s1" in like_macos("runs", "find", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    "start",
    [lambda: build_order(None, None, ".", None), lambda: start_command(None)],
    ids=["tool", "conductor"],
)
def test_a_guarded_command_says_that_it_needs_linux(start: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(Unavailable, match="need Linux; this is darwin") as caught:
        start()
    assert "dashboard work here" in str(caught.value.hint)


def test_a_disk_sync_on_macos_goes_through_the_drives_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(disk, "_FULL_SYNC", 51)
    monkeypatch.setattr(fcntl, "fcntl", lambda _descriptor, command: calls.append(command))
    disk.sync(str(tmp_path))
    assert calls == [51]


def test_a_file_system_without_full_sync_gets_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []

    def refuse(_descriptor: int, _command: int) -> None:
        raise OSError(45, "Operation not supported")

    monkeypatch.setattr(disk, "_FULL_SYNC", 51)
    monkeypatch.setattr(fcntl, "fcntl", refuse)
    monkeypatch.setattr(os, "fsync", synced.append)
    disk.sync(str(tmp_path))
    assert len(synced) == 1


def test_a_process_is_identified_by_ps_where_there_is_no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "_HAS_PROC", False)
    own = Identity.own()
    assert own.is_alive() is True
    with subprocess.Popen(["sleep", "60"]) as other:
        known = Identity.of(other.pid)
        assert known is not None
        assert known.is_alive() is True
        monkeypatch.delattr(os, "pidfd_open")
        assert known.send(15) is True
        other.wait(30)
    assert known.is_alive() is False
    assert known.send(15) is False
