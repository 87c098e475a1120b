"""Edits that hooks capture around the tool calls of agents' programs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, EditKind, EntryKind
from decklog.agents.intake import run_intake
from decklog.agents.spool import Spool
from decklog.hooks.capturing import capture
from decklog.hooks.hook import Hook
from decklog.provenance.blame import blame_file
from decklog.provenance.recording import session_refs
from tests.programs import call
from tests.provenance.repositories import GitFolder


class Session:
    """A session of a program, whose hooks are called in this process."""

    def __init__(self, folder: GitFolder, log: Decklog, session: str = "s1", program: str = "claude", cwd: str = "") -> None:
        self.folder = folder
        self.log = log
        self.session = session
        self.program = program
        self.cwd = str(folder.folder / cwd)
        self._calls = 0
        self.is_named = True

    def event(self, name: str, **fields: object) -> None:
        """Have the hook put one event into the spool."""
        told = {"session_id": self.session, "cwd": self.cwd, "hook_event_name": name, **fields}
        hook = Hook(self.program, json.dumps(told).encode(), {"DECKLOG_DB": str(self.folder.folder / ".decklog/decklog.db")})
        captured = capture(hook.payload, self.cwd, f"{self.program}:{self.session}", hook._process)
        facts = hook._facts(None) | ({"provenance": captured} if captured else {})
        self.spool.put(self.program, self.session, facts, json.dumps(told).encode())

    @property
    def spool(self) -> Spool:
        return Spool(str(self.folder.folder / ".decklog/decklog.db-spool"))

    def begin(self, tool: str, **arguments: object) -> dict[str, Any]:
        self._calls += 1
        named = {"tool_use_id": f"toolu_{self.session}_{self._calls}"} if self.is_named else {}
        fields = {"tool_name": tool, "tool_input": arguments, **named}
        self.event("BeforeTool" if self.program == "gemini" else "PreToolUse", **fields)
        return fields

    def end(self, fields: dict[str, Any]) -> None:
        self.event("AfterTool" if self.program == "gemini" else "PostToolUse", **fields, tool_response={})

    def edit(self, path: str, old: str, new: str) -> None:
        fields = self.begin("Edit", file_path=str(self.folder.folder / path), old_string=old, new_string=new)
        file = self.folder.folder / path
        file.write_text(file.read_text().replace(old, new, 1))
        self.end(fields)

    def write(self, path: str, content: str) -> None:
        fields = self.begin("Write", file_path=str(self.folder.folder / path), content=content)
        (self.folder.folder / path).write_text(content)
        self.end(fields)

    def who(self, path: str) -> list[str]:
        run_intake(self.log, self.spool)
        found = blame_file(self.folder.repository, self.log, path)
        return [f"{line.text}: {' '.join(line.origin.sessions) or line.origin.kind}" for line in found]


@pytest.fixture
def folder(tmp_path: Path) -> GitFolder:
    found = GitFolder(tmp_path / "repository")
    found.write("a.txt", "person 1", "person 2")
    found.write(".gitignore", "*.log")
    found.commit()
    assert call(["init"], cwd=found.folder, variables={"HOME": str(tmp_path / "home")}).code == 0
    return found


@pytest.fixture
def log(folder: GitFolder) -> Iterator[Decklog]:
    with Decklog.open(folder.folder / ".decklog/decklog.db") as log:
        yield log


def test_a_hook_records_the_edit_of_a_tool(folder: GitFolder, log: Decklog) -> None:
    session = Session(folder, log)
    session.edit("a.txt", "person 1\n", "person 1\nagent 1\n")
    assert session.who("a.txt") == ["person 1: unknown", "agent 1: claude:s1", "person 2: unknown"]
    [edit] = log.edits.find()
    assert (edit.run_id, edit.call_id, edit.kind) == ("claude-s1", "toolu_s1_1", EditKind.TOOL)
    assert edit.head == folder.git("rev-parse", "HEAD")


def test_a_new_file_belongs_to_the_session_that_wrote_it(folder: GitFolder, log: Decklog) -> None:
    session = Session(folder, log, program="gemini")
    session.is_named = False
    fields = session.begin("write_file", file_path="new.txt", content="one\ntwo\n")
    folder.write("new.txt", "one", "two")
    session.end(fields)
    assert session.who("a.txt") == ["person 1: unknown", "person 2: unknown"]
    folder.commit()
    assert session.who("new.txt") == ["one: gemini:s1", "two: gemini:s1"]


def test_what_a_person_wrote_while_a_call_waited_is_not_the_agents(folder: GitFolder, log: Decklog) -> None:
    session = Session(folder, log)
    fields = session.begin("Edit", file_path=str(folder.folder / "a.txt"), old_string="person 1\n", new_string="agent 1\n")
    folder.write("a.txt", "person 1", "person 2", "person 3")
    folder.write("a.txt", "agent 1", "person 2", "person 3")
    session.end(fields)
    folder.commit()
    assert session.who("a.txt") == ["agent 1: claude:s1", "person 2: unknown", "person 3: unknown"]


def test_all_that_a_command_changed_belongs_to_it(folder: GitFolder, log: Decklog) -> None:
    session = Session(folder, log)
    folder.write("a.txt", "person 1", "person 2", "person 3")
    fields = session.begin("Bash", command="make")
    folder.write("a.txt", "agent 1", "person 1", "person 2", "person 3")
    folder.write("made/new.txt", "agent 2")
    folder.write("made/new.log", "ignored")
    session.end(fields)
    folder.commit()
    assert session.who("a.txt") == ["agent 1: claude:s1", *(f"person {number}: unknown" for number in (1, 2, 3))]
    assert session.who("made/new.txt") == ["agent 2: claude:s1"]
    assert {edit.path for edit in log.edits.find()} == {"a.txt", "made/new.txt"}
    assert {edit.kind for edit in log.edits.find()} == {EditKind.SHELL}


def test_what_a_command_restored_from_git_is_not_the_agents(folder: GitFolder, log: Decklog) -> None:
    folder.write("a.txt", "person 1", "person 2", "person 3")
    folder.git("stash", "-q")
    session = Session(folder, log)
    fields = session.begin("Bash", command="git stash pop")
    folder.git("stash", "pop", "-q")
    session.end(fields)
    folder.commit()
    assert session.who("a.txt") == [f"person {number}: unknown" for number in (1, 2, 3)]


def test_a_file_that_a_command_renamed_and_changed_keeps_its_lines(folder: GitFolder, log: Decklog) -> None:
    lines = [f"person {number}" for number in range(9)]
    folder.write("long.txt", *lines)
    folder.commit()
    session = Session(folder, log)
    fields = session.begin("Bash", command="mv long.txt other.txt && echo agent >> other.txt")
    (folder.folder / "long.txt").unlink()
    folder.write("other.txt", *lines, "agent")
    session.end(fields)
    folder.commit()
    assert session.who("other.txt") == [*(f"{line}: unknown" for line in lines), "agent: claude:s1"]


def test_two_sessions_in_one_file_at_once_are_mixed(folder: GitFolder, log: Decklog) -> None:
    first, second = Session(folder, log), Session(folder, log, "s2", "codex")
    fields = first.begin("Bash", command="make")
    second.write("a.txt", "person 1\nperson 2\nsecond\n")
    folder.write("b.txt", "first")
    first.end(fields)
    folder.commit()
    assert first.who("a.txt")[-1] == "second: codex:s2 claude:s1"
    assert first.who("b.txt") == ["first: claude:s1"]


def test_two_sessions_in_two_files_at_once_are_not_mixed(folder: GitFolder, log: Decklog) -> None:
    first, second = Session(folder, log), Session(folder, log, "s2", "codex")
    fields = first.begin("Write", file_path=str(folder.folder / "b.txt"), content="first\n")
    second.write("c.txt", "second\n")
    folder.write("b.txt", "first")
    first.end(fields)
    folder.commit()
    assert first.who("b.txt") == ["first: claude:s1"]
    assert first.who("c.txt") == ["second: codex:s2"]


def test_a_patch_that_moves_a_file_keeps_its_lines(folder: GitFolder, log: Decklog) -> None:
    patch = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n person 1\n+agent\n person 2\n*** End Patch"
    session = Session(folder, log, program="codex")
    fields = session.begin("apply_patch", command=patch)
    (folder.folder / "a.txt").unlink()
    folder.write("b.txt", "person 1", "agent", "person 2")
    session.end(fields)
    folder.commit()
    assert session.who("b.txt") == ["person 1: unknown", "agent: codex:s1", "person 2: unknown"]


def test_a_turn_has_snapshots_that_keep_the_worktree(folder: GitFolder, log: Decklog) -> None:
    session = Session(folder, log)
    session.event("UserPromptSubmit", prompt="go", prompt_id="p1")
    session.edit("a.txt", "person 1\n", "agent 1\n")
    session.event("Stop")
    run_intake(log, session.spool)
    end, start = log.edits.snapshots(session="claude:s1")
    assert (start.moment, start.turn, end.moment) == ("start", "p1", "end")
    assert folder.git("show", f"{start.commit_id}:a.txt") == "person 1\nperson 2"
    assert folder.git("show", f"{end.commit_id}:a.txt") == "agent 1\nperson 2"
    assert folder.git("ls-tree", "-r", "--name-only", end.commit_id).split() == [".gitignore", "a.txt"]
    folder.write("a.txt", "person 9")
    folder.commit()
    folder.git("reflog", "expire", "--expire=now", "--all")
    folder.git("gc", "-q", "--prune=now")
    assert folder.git("show", f"{end.commit_id}:a.txt") == "agent 1\nperson 2"
    assert session_refs(folder.repository) == ["refs/decklog/sessions/claude-s1"]


def test_events_that_are_taken_in_again_record_nothing_twice_and_complete_the_ref(folder: GitFolder, log: Decklog) -> None:
    session = Session(folder, log)
    session.edit("a.txt", "person 1\n", "agent 1\n")
    [name] = session.spool.list_waiting()
    kept = (Path(session.spool.folder) / name).read_bytes()
    run_intake(log, session.spool)
    folder.git("update-ref", "-d", "refs/decklog/sessions/claude-s1")
    (Path(session.spool.folder) / name).write_bytes(kept)
    run_intake(log, session.spool)
    assert len(log.edits.find()) == 1
    assert len(session_refs(folder.repository)) == 1


def test_a_setting_switches_capture_off(folder: GitFolder, log: Decklog) -> None:
    folder.write("decklog.toml", "[provenance]", "capture = false")
    session = Session(folder, log)
    session.edit("a.txt", "person 1\n", "agent 1\n")
    run_intake(log, session.spool)
    assert not log.edits.find()


def test_a_capture_that_fails_is_on_record_and_fails_no_tool(folder: GitFolder, log: Decklog) -> None:
    session = Session(folder, log)
    folder.write("decklog.toml", "[provenance]", "captures = false")
    session.edit("a.txt", "person 1\n", "agent 1\n")
    run_intake(log, session.spool)
    found = log.journal.find("claude-s1", kind=EntryKind.EVENT, subtype="capture")
    assert all("captured" in (entry.body or "") for entry in found)
    assert len(found) == 2


@pytest.mark.slow
@pytest.mark.parametrize("path", [".git/config", "../outside.txt", "link.txt", "sub/b.txt"])
def test_what_is_not_a_file_of_the_repository_is_not_captured(folder: GitFolder, log: Decklog, path: str) -> None:
    GitFolder(folder.folder / "sub")
    (folder.folder / "link.txt").symlink_to("a.txt")
    session = Session(folder, log)
    fields = session.begin("Write", file_path=str(folder.folder / path), content="x")
    session.end(fields)
    run_intake(log, session.spool)
    assert not log.edits.find()


def test_an_ignored_file_is_not_captured(folder: GitFolder, log: Decklog) -> None:
    session = Session(folder, log)
    fields = session.begin("Write", file_path=str(folder.folder / "x.log"), content="x\n")
    folder.write("x.log", "x")
    session.end(fields)
    run_intake(log, session.spool)
    assert not log.edits.find()


def test_a_hook_of_a_program_captures_edits(folder: GitFolder, log: Decklog, tmp_path: Path) -> None:
    arguments = {"file_path": str(folder.folder / "a.txt"), "old_string": "person 1\n", "new_string": "agent 1\n"}
    told = {"session_id": "s9", "cwd": str(folder.folder), "tool_name": "Edit", "tool_input": arguments, "tool_use_id": "t1"}
    variables = {"HOME": str(tmp_path / "home")}
    for event in ("PreToolUse", "PostToolUse"):
        content = json.dumps({**told, "hook_event_name": event}).encode()
        assert call(["hook", "claude"], cwd=folder.folder, variables=variables, stdin=content).code == 0
        folder.write("a.txt", "agent 1", "person 2")
    run_intake(log, Session(folder, log).spool)
    assert [edit.session for edit in log.edits.find(path="a.txt")] == ["claude:s9"]


@pytest.mark.slow
def test_pruning_releases_the_objects_of_old_sessions(folder: GitFolder, log: Decklog, tmp_path: Path) -> None:
    session = Session(folder, log)
    session.edit("a.txt", "person 1\n", "agent 1\n")
    run_intake(log, session.spool)
    for words, left in (
        (["--older-than", "1d", "--apply"], 1),
        (["--older-than", "0m"], 1),
        (["--older-than", "0m", "--apply"], 0),
    ):
        done = call(["prune", *words, "--json"], cwd=folder.folder, variables={"HOME": str(tmp_path / "home")})
        assert done.code == 0, done.err
        assert len(session_refs(folder.repository)) == left
