"""Commands of an agent that call git: what git brought is not theirs, what they committed is."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.provenance.capture import Capture
from decklog.provenance.recording import keep_objects, record_captured
from tests.provenance.repositories import GitFolder
from tests.provenance.test_attribution import who

SESSION = "claude:1"


@pytest.fixture
def folder(tmp_path: Path) -> GitFolder:
    found = GitFolder(tmp_path / "repository")
    found.write("a.txt", "person 1", "person 2", "person 3")
    found.commit()
    return found


@contextmanager
def command(folder: GitFolder, log: Decklog) -> Iterator[None]:
    """Have the agent run a command."""
    capture = Capture(folder.repository, SESSION)
    capture.begin("1", None)
    yield
    captured = capture.end("1", None)
    if captured is not None:
        record_captured(log, captured, session=SESSION, kind="shell", call_id="1")
        keep_objects(SESSION, [captured])


def test_lines_that_a_command_writes_and_commits_are_the_agents(folder: GitFolder, log: Decklog) -> None:
    folder.write("a.txt", "person 1", "person 2", "person 3", "somebody")
    with command(folder, log):
        folder.write("a.txt", "person 1", "agent 1", "person 3", "somebody")
        folder.write("b.txt", "agent 2")
        folder.commit()
        folder.write("a.txt", "person 1", "agent 1", "person 3", "somebody", "agent 3")
        folder.git("commit", "-qam", "more")
        folder.git("checkout", "-q", "-b", "other", "HEAD~2")
    folder.git("checkout", "-q", "main")
    lines = ["person 1: unknown", "agent 1: claude:1", "person 3: unknown", "somebody: unknown", "agent 3: claude:1"]
    assert who(folder, log) == lines
    assert who(folder, log, "b.txt") == ["agent 2: claude:1"]


def test_a_renamed_file_that_a_command_commits_keeps_the_origins_of_its_lines(folder: GitFolder, log: Decklog) -> None:
    with command(folder, log):
        folder.git("mv", "a.txt", "b.txt")
        folder.write("b.txt", "person 1", "person 2", "person 3", "agent 1")
        folder.commit()
    assert who(folder, log, "b.txt")[2:] == ["person 3: unknown", "agent 1: claude:1"]
    [edit] = log.edits.find(path="b.txt")
    assert edit.old_path == "a.txt"


def test_a_stash_that_a_command_brings_back_is_not_the_agents(folder: GitFolder, log: Decklog) -> None:
    folder.write("a.txt", "person 1", "somebody", "person 2", "person 3")
    folder.git("stash", "-q")
    with command(folder, log):
        folder.git("stash", "pop", "-q")
        folder.write("a.txt", "person 1", "somebody", "person 2", "person 3", "agent 1")
    expected = ["person 1: unknown", "somebody: unknown", "person 2: unknown", "person 3: unknown", "agent 1: claude:1"]
    assert who(folder, log) == expected
    folder.commit()
    assert who(folder, log) == expected


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_branch_that_a_command_squashes_is_not_the_agents(folder: GitFolder, log: Decklog, is_changed: bool) -> None:
    folder.git("checkout", "-q", "-b", "other")
    folder.write("a.txt", "somebody", "person 1", "person 2", "person 3")
    folder.commit()
    folder.git("checkout", "-q", "main")
    folder.write("a.txt", "person 1", "person 2", "person 3", "person 4")
    folder.commit()
    own = ["agent 1"] if is_changed else []
    with command(folder, log):
        folder.git("merge", "-q", "--squash", "other")
        folder.write("a.txt", "somebody", "person 1", "person 2", "person 3", "person 4", *own)
        folder.commit()
    assert who(folder, log)[0] == "somebody: unknown"
    assert who(folder, log)[5:] == ["agent 1: claude:1"] * is_changed
    assert len(log.edits.find()) == is_changed


def test_content_that_a_command_merges_picks_or_copies_is_not_the_agents(folder: GitFolder, log: Decklog) -> None:
    folder.git("checkout", "-q", "-b", "other")
    folder.write("b.txt", "somebody")
    picked = folder.commit()
    folder.git("checkout", "-q", "main")
    folder.write("c.txt", "not committed")
    with command(folder, log):
        folder.git("cherry-pick", picked)
        folder.write("d.txt", "not committed")
        folder.commit()
    assert not log.edits.find()


def test_a_command_that_commits_work_of_others_wrote_none_of_it(folder: GitFolder, log: Decklog) -> None:
    folder.write("a.txt", "person 1", "somebody")
    with command(folder, log):
        folder.git("commit", "-qam", "all of it")
    assert not log.edits.find()
