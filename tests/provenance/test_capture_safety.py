"""A capture touches nothing of the user's, and may be killed at every step."""

import os
import random
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.agents.intake import run_intake
from decklog.provenance.capture import Capture
from decklog.provenance.git import GitRepository
from decklog.provenance.recording import keep_objects, session_refs
from decklog.provenance.tool_calls import FileCall
from tests.hooks.test_capturing import Session
from tests.programs import call
from tests.provenance.repositories import GitFolder

_OURS = ("objects/", "decklog/", "refs/decklog/")


def users_files(folder: GitFolder) -> dict[str, bytes]:
    """Return what a git directory holds, but for objects and what is Decklog's."""
    inside = folder.folder / ".git"
    found = {str(path.relative_to(inside)): path for path in inside.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(_OURS)}


@pytest.mark.parametrize("steps", [25, pytest.param(1000, marks=pytest.mark.slow)])
def test_captures_change_nothing_of_the_users(tmp_path: Path, steps: int) -> None:
    folder, dice = GitFolder(tmp_path / "repository"), random.Random(7)
    folder.write("a.txt", "one", "two")
    folder.write("b.txt", "three")
    folder.commit()
    folder.git("config", "core.logAllRefUpdates", "true")
    folder.write("a.txt", "stashed")
    folder.git("stash", "-q")
    folder.write("b.txt", "staged")
    folder.git("add", "b.txt")
    (folder.folder / ".git/hooks/post-index-change").write_text("#!/bin/sh\ntouch ../ran\n")
    (folder.folder / ".git/hooks/post-index-change").chmod(0o755)
    before = users_files(folder)
    for step in range(steps):
        capture = Capture(folder.repository, dice.choice(("claude:1", "codex:2")))
        path = dice.choice(("a.txt", "b.txt", "c.txt"))
        target = dice.choice((None, FileCall([path], {})))
        captured: list[dict[str, Any]] = []
        if dice.random() < 0.2:
            captured.append(capture.snapshot("end"))
        capture.begin(str(step), target)
        if dice.random() < 0.9:
            folder.write(path, str(step))
        else:
            (folder.folder / path).unlink(missing_ok=True)
        found = capture.end(str(step), target)
        captured += [found] if found else []
        keep_objects("claude:1", captured)
    assert users_files(folder) == before
    assert not (folder.folder.parent / "ran").exists()
    assert folder.git("for-each-ref", "--format=%(refname)").split() == [
        *("refs/decklog/sessions/claude-1", "refs/heads/main", "refs/stash")
    ]


def test_a_change_in_the_second_of_the_index_is_not_taken_for_the_commands(tmp_path: Path) -> None:
    folder, then = GitFolder(tmp_path / "repository"), 1_700_000_000
    folder.git("config", "core.trustctime", "false")
    folder.write("a.txt", "old")
    os.utime(folder.folder / "a.txt", (then, then))
    folder.commit()
    os.utime(folder.folder / ".git/index", (then, then))
    # As long as before, by somebody else.
    folder.write("a.txt", "new")
    os.utime(folder.folder / "a.txt", (then, then))
    before = folder.git("hash-object", "a.txt")
    capture = Capture(folder.repository, "claude:1")
    capture.begin("1", None)
    folder.write("a.txt", "new", "agent")
    captured = capture.end("1", None)
    assert captured is not None
    assert [edit["old"] for edit in captured["edits"]] == [before]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = GitFolder(tmp_path_factory.mktemp("prepared") / "repository")
    found.write("a.txt", "person 1", "person 2")
    found.commit()
    assert call(["init"], cwd=found.folder, variables={}).code == 0
    return found.folder


class _Killed:
    """Kills this process before or after one of git's calls."""

    def __init__(self, at: int, *, is_after: bool) -> None:
        self._at = at
        self._is_after = is_after
        self._calls = 0
        self._call = GitRepository.call

    def __call__(self, repo: GitRepository, *words: str, **more: Any) -> bytes:
        self._calls += 1
        if self._calls == self._at and not self._is_after:
            os.kill(os.getpid(), signal.SIGKILL)
        out = self._call(repo, *words, **more)
        if self._calls == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        return out


def _captured_in_child(folder: Path, at: int, tool: str, *, is_after: bool) -> bool:
    """Capture an edit in a process that is killed at a call of git; return whether it was."""
    child = os.fork()
    if child == 0:
        killed = _Killed(at, is_after=is_after)
        GitRepository.call = lambda self, *words, **more: killed(self, *words, **more)  # type: ignore[assignment,method-assign]
        place = GitFolder(folder, is_new=False)
        with Decklog.open(folder / ".decklog/decklog.db") as log:
            session = Session(place, log)
            if tool == "turn":
                session.event("UserPromptSubmit", prompt="Go on")
                place.write("a.txt", "agent")
                session.event("Stop")
            else:
                arguments = {"command": "make"} if tool == "Bash" else {"file_path": "a.txt", "content": "agent\n"}
                fields = session.begin(tool, **arguments)
                place.write("a.txt", "agent")
                session.end(fields)
            run_intake(log, session.spool)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["Write", "Bash", "turn"])
def test_a_capture_that_is_killed_leaves_no_entry_without_objects_and_no_ref_without_entry(
    tmp_path: Path, prepared: Path, tool: str
) -> None:
    at, was_killed = 0, True
    while was_killed:
        at += 1
        for is_after in (False, True):
            folder = tmp_path / f"{at}-{is_after}"
            shutil.copytree(prepared, folder)
            was_killed = _captured_in_child(folder, at, tool, is_after=is_after)
            place = GitFolder(folder, is_new=False)
            with Decklog.open(folder / ".decklog/decklog.db") as log:
                _check(place, log)
                session = Session(place, log)
                is_waiting = not session.spool.is_empty
                run_intake(log, session.spool)
                _check(place, log)
                found = [*log.edits.find(), *log.edits.snapshots()]
                assert not is_waiting or bool(found) == bool(session_refs(place.repository))
                assert was_killed or len(found) == (2 if tool == "turn" else 1)
    assert at > 5


def _check(place: GitFolder, log: Decklog) -> None:
    edits = log.edits.find(limit=100)
    blobs = {blob for edit in edits for blob in (edit.old_blob, edit.new_blob) if blob}
    taken = {one.commit_id for one in log.edits.snapshots(limit=100)}
    assert None not in place.repository.existing(sorted(blobs | taken))
    for ref in session_refs(place.repository):
        kept = place.git("log", "--format=%H", "--grep=Objects of edits", ref).split()
        named = {name for commit in kept for name in place.git("ls-tree", "--name-only", commit).split()}
        assert named <= blobs
        assert set(place.git("log", "--format=%H", "--grep=^claude:s1 ", ref).split()) <= taken
