"""What a capture asks of git. The number of processes decides how long an agent waits."""

import os
from pathlib import Path
from typing import Any

import pytest

from decklog.provenance.capture import Capture
from decklog.provenance.git import GitRepository, NewObjects
from decklog.provenance.tool_calls import FileCall
from tests.provenance.repositories import GitFolder


@pytest.fixture
def folder(tmp_path: Path) -> GitFolder:
    found = GitFolder(tmp_path / "repository")
    found.write("a.txt", "one", "two")
    found.write(".gitignore", "*.log")
    found.commit()
    found.repository.save_identity()
    return found


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The git commands that were called."""
    seen: list[str] = []
    call = GitRepository.call

    def counted(self: GitRepository, *words: str, **more: Any) -> bytes:
        seen.append(next(word for word in words if not word.startswith("-")))
        return call(self, *words, **more)

    monkeypatch.setattr(GitRepository, "call", counted)
    return seen


def write_by_tool(folder: GitFolder, path: str, content: str, *, written: str | None = None) -> list[dict[str, Any]]:
    capture, target = Capture(folder.repository, "claude:1"), FileCall([path], {"content": content})
    capture.begin("1", target)
    (folder.folder / path).write_text(content if written is None else written)
    found = capture.end("1", target)
    return found["edits"] if found else []


def test_a_written_file_takes_two_calls_of_git_before_and_one_after(folder: GitFolder, calls: list[str]) -> None:
    assert write_by_tool(folder, "a.txt", "one\n2\n")
    assert calls == ["check-ignore", "hash-object", "hash-object"]


def test_packed_refs_take_no_call_of_git(folder: GitFolder, calls: list[str]) -> None:
    head = folder.git("rev-parse", "HEAD")
    folder.git("pack-refs", "--all")
    assert (folder.repository.head(), calls) == (head, [])


def test_a_tracked_file_is_captured_though_a_rule_ignores_it(folder: GitFolder) -> None:
    folder.write("kept.log", "one")
    folder.git("add", "--force", "kept.log")
    assert [edit["path"] for edit in write_by_tool(folder, "kept.log", "two\n")] == ["kept.log"]
    assert write_by_tool(folder, "other.log", "two\n") == []


def test_content_that_a_pack_has_is_no_edit(folder: GitFolder) -> None:
    former = (folder.folder / "a.txt").read_text()
    folder.write("a.txt", "three")
    folder.commit()
    folder.git("gc", "-q")
    assert write_by_tool(folder, "a.txt", former) == []


def test_only_what_the_tool_wrote_is_stored(folder: GitFolder) -> None:
    [edit] = write_by_tool(folder, "a.txt", "one\ntwo\nthree\n", written="one\ntwo\nthree\nfour\n")
    assert folder.git("cat-file", "blob", edit["new"]).splitlines() == ["one", "two", "three"]
    whole = folder.git("hash-object", "a.txt")
    assert folder.repository.existing([whole]) == [None]


@pytest.mark.parametrize("setting", ["core.bigFileThreshold=1", "core.autocrlf=true", "core.compression=0"])
def test_settings_of_the_repository_leave_captures_complete(folder: GitFolder, setting: str) -> None:
    folder.git("config", *setting.split("="))
    [edit] = write_by_tool(folder, "a.txt", "one\r\ntwo\r\nthree\r\n")
    assert folder.repository.existing([edit["new"]]) == [edit["new"]]
    assert edit["new"] == folder.git("hash-object", "a.txt")


def test_a_capture_leaves_no_folder_among_the_objects(folder: GitFolder) -> None:
    write_by_tool(folder, "a.txt", "three\n")
    assert not list((folder.folder / ".git/objects").glob("tmp_*"))
    assert "garbage: 0" in folder.git("count-objects", "-v")


def test_git_removes_what_a_killed_capture_left(folder: GitFolder) -> None:
    NewObjects(folder.repository).__enter__().write_files(["a.txt"])
    [left] = (folder.folder / ".git/objects").glob("tmp_*")
    os.utime(left, (1_700_000_000, 1_700_000_000))
    folder.git("prune", "--expire=2.weeks.ago")
    assert not left.exists()


def test_a_repository_whose_path_has_special_characters_is_captured(tmp_path: Path) -> None:
    folder = GitFolder(tmp_path / 'a:b "c" \\d')
    folder.write("a.txt", "one")
    folder.commit()
    assert len(write_by_tool(folder, "a.txt", "two\n")) == 1
    assert write_by_tool(folder, "a.txt", "one\n") == []


def test_a_change_in_the_second_of_the_index_is_seen(folder: GitFolder) -> None:
    # Size and times are as the index has them, as with a change right after `git add`.
    index, file = folder.folder / ".git/index", folder.folder / "a.txt"
    folder.git("config", "core.trustctime", "false")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    folder.git("update-index", "a.txt")
    os.utime(index, (1_700_000_000, 1_700_000_000))
    file.write_text("one\nTWO\n")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    before = folder.git("hash-object", "a.txt")
    capture = Capture(folder.repository, "claude:1")
    capture.begin("1", None)
    folder.write("a.txt", "three")
    found = capture.end("1", None)
    assert found is not None
    assert [edit["old"] for edit in found["edits"]] == [before]


def test_a_command_takes_one_scan_before_and_one_after(folder: GitFolder, calls: list[str]) -> None:
    capture = Capture(folder.repository, "claude:1")
    capture.begin("1", None)
    (folder.folder / "a.txt").write_text("one\n2\n")
    (folder.folder / "new.txt").write_text("three\n")
    found = capture.end("1", None)
    assert calls == ["status", "status", "hash-object", "update-index"]
    assert found is not None
    assert {edit["path"]: edit.get("old") for edit in found["edits"]} == {
        "a.txt": folder.git("rev-parse", "HEAD:a.txt"),
        "new.txt": None,
    }


def test_settings_of_git_status_leave_captures_of_commands_complete(folder: GitFolder) -> None:
    for setting in ("status.showUntrackedFiles=no", "status.relativePaths=true", "status.branch=true", "status.showStash=true"):
        folder.git("config", *setting.split("="))
    (folder.folder / "sub").mkdir()
    capture = Capture(folder.repository, "claude:1")
    capture.begin("1", None)
    (folder.folder / "sub/new file.txt").write_text("three\n")
    (folder.folder / ".decklog").mkdir()
    (folder.folder / ".decklog/log.db").write_text("x\n")
    found = capture.end("1", None)
    assert found is not None
    assert [edit["path"] for edit in found["edits"]] == ["sub/new file.txt"]
