import os
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.agents.origins.rewinding import SAVED, rewind
from decklog.core.errors import Conflict, NotFound
from decklog.provenance.blame import blame_file
from decklog.provenance.capture import Capture
from decklog.provenance.recording import keep_objects, record_captured
from tests.provenance.sessions import RecordedSession
from tests.provenance.text_repositories import TextFolder


@pytest.fixture
def folder(tmp_path: Path) -> TextFolder:
    found = TextFolder(tmp_path / "repo")
    found.put(".gitignore", "ignored\n")
    found.commit("First", a="one\n", b="two\n", **{"deep/er/c": "three\n"})
    return found


def snapshot(log: Decklog, folder: TextFolder, moment: str, turn: str, session: str = "claude:s1") -> str:
    """Take a snapshot as a hook does, and return its id."""
    captured = Capture(folder.repository, session).snapshot(moment, turn)
    record_captured(log, captured, session=session, run_id=session.replace(":", "-"), at=log.clock.now())
    keep_objects(session, [captured])
    return log.edits.snapshots(session=session, limit=1)[0].id


def state(folder: TextFolder) -> dict[str, object]:
    """Return everything of the user's repository that a rewind must not change, byte by byte."""
    git = folder.folder / ".git"
    names = ["HEAD", "index", "config", "ORIG_HEAD", *(str(path.relative_to(git)) for path in git.glob("logs/**/*"))]
    files = {name: (git / name).read_bytes() for name in names if (git / name).is_file()}
    refs = [line for line in folder.git("for-each-ref").splitlines() if "refs/decklog/" not in line]
    return {**files, "refs": refs, "stash": folder.git("stash", "list"), "hooks": sorted(os.listdir(git / "hooks"))}


def texts(folder: TextFolder) -> dict[str, str]:
    """Return the files of the worktree."""
    found = (path for path in folder.folder.rglob("*") if path.is_file() and ".git/" not in str(path))
    return {str(path.relative_to(folder.folder)): path.read_text() for path in found}


def turn_of_an_agent(log: Decklog, folder: TextFolder) -> str:
    """Have an agent change, add and delete files in one turn; return the snapshot before it."""
    before = snapshot(log, folder, "start", "t1")
    session = RecordedSession(log, folder, "claude", "s1")
    session.edit("a", "one\nagent\n")
    folder.put("new/file", "new\n")
    (folder.folder / "deep/er/c").unlink()
    folder.put("ignored", "stays\n")
    snapshot(log, folder, "end", "t1")
    return before


def test_last_turn_is_taken_back_and_can_be_returned_to(log: Decklog, folder: TextFolder) -> None:
    before = texts(folder)
    turn_of_an_agent(log, folder)
    after = texts(folder)
    plan = rewind(folder.repository, log)
    assert {one.path: one.status for one in plan.files} == {"a": "M", "new/file": "D", "deep/er/c": "A"}
    assert texts(folder) == {**before, "ignored": "stays\n"}
    assert not (folder.folder / "new").exists()
    assert plan.resume == "claude --resume s1"
    assert plan.saved is not None
    rewind(folder.repository, log, plan.saved)
    assert texts(folder) == after


def test_head_index_stash_and_refs_are_untouched(log: Decklog, folder: TextFolder) -> None:
    folder.put("a", "stashed\n")
    folder.git("stash", "-q")
    turn_of_an_agent(log, folder)
    folder.put("b", "staged\n")
    folder.git("add", "b")
    folder.put("b", "staged and changed\n")
    before = state(folder)
    plan = rewind(folder.repository, log)
    assert plan.files
    assert state(folder) == before
    assert folder.git("show", ":b") == "staged"


def test_dry_run_changes_nothing_and_saves_nothing(log: Decklog, folder: TextFolder) -> None:
    turn_of_an_agent(log, folder)
    before = texts(folder), state(folder)
    plan = rewind(folder.repository, log, dry_run=True)
    assert (len(plan.files), plan.saved) == (3, None)
    assert (texts(folder), state(folder)) == before
    assert list(log.edits.snapshots(session=SAVED)) == []


def test_only_named_files_are_restored(log: Decklog, folder: TextFolder) -> None:
    turn_of_an_agent(log, folder)
    plan = rewind(folder.repository, log, files=["deep"])
    assert [one.path for one in plan.files] == ["deep/er/c"]
    assert texts(folder)["a"] == "one\nagent\n"


@pytest.mark.parametrize("kind", ["snapshot", "turn", "entry", "commit"])
def test_turn_entry_snapshot_and_commit_are_found(log: Decklog, folder: TextFolder, kind: str) -> None:
    RecordedSession(log, folder, "claude", "s1").prompt("Do it")
    first = snapshot(log, folder, "start", "t1")
    folder.put("a", "changed\n")
    snapshot(log, folder, "end", "t1")
    names = {
        "snapshot": first,
        "turn": "t1",
        "commit": next(one.commit_id for one in log.edits.snapshots() if one.id == first)[:12],
        "entry": None,
    }
    entry = log.journal.find("claude-s1", subtype="prompt")[0].id
    expected = "changed\n" if kind == "entry" else "one\n"
    folder.put("a", "much later\n")
    rewind(folder.repository, log, names[kind] or entry)
    assert texts(folder)["a"] == expected


def test_rewind_is_refused_during_a_merge(log: Decklog, folder: TextFolder) -> None:
    turn_of_an_agent(log, folder)
    folder.git("checkout", "-q", "-f", "-b", "side")
    folder.commit("Side", a="side\n")
    folder.git("checkout", "-q", "main")
    folder.commit("Main", a="main\n")
    folder.git("merge", "-q", "side", is_checked=False)
    before = texts(folder)
    with pytest.raises(Conflict, match="not finished"):
        rewind(folder.repository, log)
    assert texts(folder) == before


def test_rewind_without_a_snapshot_is_not_found(log: Decklog, folder: TextFolder) -> None:
    with pytest.raises(NotFound, match="no turn"):
        rewind(folder.repository, log)
    with pytest.raises(NotFound, match="t9"):
        rewind(folder.repository, log, "t9")


def test_snapshot_whose_objects_are_gone_is_not_found(log: Decklog, folder: TextFolder) -> None:
    turn_of_an_agent(log, folder)
    for ref in folder.git("for-each-ref", "--format=%(refname)", "refs/decklog").split():
        folder.git("update-ref", "-d", ref)
    folder.git("gc", "-q", "--prune=now")
    with pytest.raises(NotFound, match="gone"):
        rewind(folder.repository, log)


def test_state_that_was_saved_survives_gc(log: Decklog, folder: TextFolder) -> None:
    turn_of_an_agent(log, folder)
    plan = rewind(folder.repository, log)
    folder.git("gc", "-q", "--prune=now")
    rewind(folder.repository, log, plan.saved)
    assert texts(folder)["a"] == "one\nagent\n"


def test_restored_lines_keep_their_origin(log: Decklog, folder: TextFolder) -> None:
    turn_of_an_agent(log, folder)
    folder.put("a", "one\nagent\nsomebody\n")
    plan = rewind(folder.repository, log, "t1")
    rewind(folder.repository, log, plan.saved)
    assert [line.origin.kind for line in blame_file(folder.repository, log, "a")] == ["unknown", "agent", "unknown"]


def test_special_names_and_modes_are_restored(log: Decklog, folder: TextFolder) -> None:
    names = ["with blank", 'quo"te', "näh", ":(glob)x", "-dash"]
    for name in names:
        folder.put(name, "old\n")
    os.chmod(folder.folder / "with blank", 0o755)
    os.symlink("a", folder.folder / "link")
    snapshot(log, folder, "start", "t1")
    for name in names:
        folder.put(name, "new\n")
    os.chmod(folder.folder / "with blank", 0o644)
    (folder.folder / "link").unlink()
    rewind(folder.repository, log)
    assert all(texts(folder)[name] == "old\n" for name in names)
    assert os.access(folder.folder / "with blank", os.X_OK)
    assert os.readlink(folder.folder / "link") == "a"


def test_line_ends_of_a_file_are_those_of_its_attributes(log: Decklog, folder: TextFolder) -> None:
    folder.put(".gitattributes", "*.txt text eol=crlf\n")
    file = folder.folder / "windows.txt"
    file.write_bytes(b"one\r\ntwo\r\n")
    folder.commit()
    snapshot(log, folder, "start", "t1")
    file.write_bytes(b"other\r\n")
    rewind(folder.repository, log)
    assert file.read_bytes() == b"one\r\ntwo\r\n"
