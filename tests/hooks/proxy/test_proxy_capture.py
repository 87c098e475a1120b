"""Edits of an agent behind the proxy: by its own tools, by its editor, by commands; blame names the session for them."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, EditKind
from decklog.hooks.proxy import capturing
from decklog.provenance.blame import blame_file
from decklog.provenance.recording import session_refs
from tests.hooks.proxy.editor import Editor, settled
from tests.programs import call
from tests.provenance.repositories import GitFolder


@pytest.fixture
def folder(tmp_path: Path) -> GitFolder:
    found = GitFolder(tmp_path / "repo")
    found.write("a.txt", "person 1", "person 2")
    found.write(".gitignore", ".decklog/")
    found.commit()
    assert call(["init"], cwd=found.folder, variables={"HOME": str(tmp_path / "home")}).code == 0
    found.commit()
    return found


@pytest.fixture
def log(folder: GitFolder) -> Iterator[Decklog]:
    with Decklog.open(folder.folder / ".decklog" / "decklog.db") as log:
        yield log


class WritingEditor(Editor):
    """An editor that writes files for its agent, and has a person who writes before an answer is given."""

    person: tuple[Path, str] | None = None

    def send(self, message: dict[str, Any]) -> bytes:
        asked = self.asked[-1] if self.asked and "result" in message else {}
        if asked.get("method") == "fs/write_text_file":
            Path(asked["params"]["path"]).write_text(asked["params"]["content"])
        if asked.get("method") == "session/request_permission" and self.person is not None:
            path, text = self.person
            path.write_text(text)
        return super().send(message)


def who(folder: GitFolder, log: Decklog, path: str) -> list[str]:
    settled(folder.folder)
    found = blame_file(folder.repository, log, path)
    return [f"{line.text}: {' '.join(line.origin.sessions) or line.origin.kind}" for line in found]


def edit_call(name: str, path: Path, old: str, new: str, **more: Any) -> dict[str, Any]:
    arguments = {"file_path": str(path), "old_string": old, "new_string": new}
    return {"toolCallId": name, "kind": "edit", "title": "Edit", "status": "pending", "rawInput": arguments, **more}


def test_a_file_that_the_editor_writes_for_the_agent_is_the_sessions(folder: GitFolder, log: Decklog) -> None:
    path = folder.folder / "a.txt"
    written = {"path": str(path), "content": "person 1\nagent 1\nperson 2\n"}
    with WritingEditor(folder.folder).open() as editor:
        editor.prompt(["request", "fs/write_text_file", written])
    folder.commit()
    assert who(folder, log, "a.txt") == ["person 1: unknown", "agent 1: stub:s1", "person 2: unknown"]
    [edit] = log.edits.find()
    assert (edit.run_id, edit.kind, edit.path) == ("stub-s1", EditKind.TOOL, "a.txt")
    assert [snapshot.moment for snapshot in log.edits.snapshots(session="stub:s1")] == ["end", "start"]
    assert session_refs(folder.repository) == ["refs/decklog/sessions/stub-s1"]


def test_an_edit_of_a_tool_is_the_sessions_and_what_a_person_wrote_meanwhile_is_not(folder: GitFolder, log: Decklog) -> None:
    path = folder.folder / "a.txt"
    told = edit_call("c1", path, "person 2\n", "agent 2\n")
    with WritingEditor(folder.folder).open() as editor:
        editor.person = (path, "person 0\nperson 1\nperson 2\n")
        editor.prompt(
            ["update", {"sessionUpdate": "tool_call", **told}],
            ["ask", {"toolCallId": "c1"}],
            ["put", str(path), "person 0\nperson 1\nagent 2\n"],
            ["update", {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"}],
        )
    folder.commit()
    assert who(folder, log, "a.txt") == ["person 0: unknown", "person 1: unknown", "agent 2: stub:s1"]
    assert [edit.call_id for edit in log.edits.find()] == ["c1"]


@pytest.mark.slow
@pytest.mark.parametrize("is_person_there", [False, True])
def test_an_edit_that_is_reported_late_counts_only_if_nobody_else_changed_the_file(
    folder: GitFolder, log: Decklog, is_person_there: bool
) -> None:
    path = folder.folder / "a.txt"
    more = "person 3\n" if is_person_there else ""
    diffs = [("person 1\n", "person 1\nagent 1\n"), ("person 2\n", "agent 2\n")]
    texts = ["person 1\nagent 1\nperson 2\n" + more, "person 1\nagent 1\nagent 2\n" + more]
    steps: list[list[Any]] = []
    for number, ((old, new), text) in enumerate(zip(diffs, texts, strict=True)):
        diff = {"type": "diff", "path": str(path), "oldText": old, "newText": new}
        told = {"toolCallId": f"c{number}", "kind": "edit", "status": "in_progress", "content": [diff]}
        ended = {"sessionUpdate": "tool_call_update", "toolCallId": f"c{number}", "status": "completed"}
        steps += [["put", str(path), text], ["update", {"sessionUpdate": "tool_call", **told}], ["update", ended], ["wait", 0.5]]
    with WritingEditor(folder.folder).open() as editor:
        editor.prompt(*steps)
    folder.commit()
    found = who(folder, log, "a.txt")
    if is_person_there:
        assert found[:2] == ["person 1: unknown", "agent 1: unknown"]
        assert found[-1] == "person 3: unknown"
    else:
        assert found == ["person 1: unknown", "agent 1: stub:s1", "agent 2: stub:s1"]


def test_a_command_is_captured_from_the_moment_that_it_is_allowed(folder: GitFolder, log: Decklog) -> None:
    path = folder.folder / "a.txt"
    told = {"toolCallId": "c1", "kind": "execute", "status": "pending", "rawInput": {"command": "make"}}
    with WritingEditor(folder.folder).open() as editor:
        editor.person = (path, "person 0\nperson 1\nperson 2\n")
        editor.prompt(
            ["update", {"sessionUpdate": "tool_call", **told}],
            ["ask", {"toolCallId": "c1"}],
            ["put", str(path), "person 0\nperson 1\nperson 2\nagent 1\n"],
            ["put", str(folder.folder / "new.txt"), "agent 2\n"],
            ["update", {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"}],
        )
    folder.commit()
    assert who(folder, log, "a.txt")[-2:] == ["person 2: unknown", "agent 1: stub:s1"]
    assert who(folder, log, "a.txt")[:2] == ["person 0: unknown", "person 1: unknown"]
    assert who(folder, log, "new.txt") == ["agent 2: stub:s1"]
    assert {edit.kind for edit in log.edits.find()} == {EditKind.SHELL}


def test_a_command_in_the_editors_terminal_is_captured(folder: GitFolder, log: Decklog) -> None:
    with WritingEditor(folder.folder).open() as editor:
        editor.answers["terminal/create"] = {"terminalId": "t1"}
        editor.prompt(
            ["request", "terminal/create", {"command": "make"}],
            ["put", str(folder.folder / "new.txt"), "agent 1\n"],
            ["request", "terminal/wait_for_exit", {"terminalId": "t1"}],
        )
    folder.commit()
    assert who(folder, log, "new.txt") == ["agent 1: stub:s1"]


def test_a_call_that_is_rejected_owns_nothing(folder: GitFolder, log: Decklog) -> None:
    path = folder.folder / "a.txt"
    told = {"toolCallId": "c1", "kind": "execute", "status": "pending", "rawInput": {"command": "make"}}
    with WritingEditor(folder.folder).open() as editor:
        editor.answers["session/request_permission"] = {"outcome": {"outcome": "selected", "optionId": "n"}}
        editor.prompt(
            ["update", {"sessionUpdate": "tool_call", **told}],
            ["ask", {"toolCallId": "c1"}],
            ["put", str(path), "somebody\n"],
            ["update", {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "failed"}],
        )
    folder.commit()
    assert who(folder, log, "a.txt") == ["somebody: unknown"]


def test_capture_can_be_switched_off(folder: GitFolder, log: Decklog) -> None:
    (folder.folder / "decklog.toml").write_text("[provenance]\ncapture = false\n")
    with WritingEditor(folder.folder).open() as editor:
        editor.prompt(["request", "fs/write_text_file", {"path": str(folder.folder / "a.txt"), "content": "agent\n"}])
    settled(folder.folder)
    assert not log.edits.find()
    assert not os.path.exists(folder.repository.state)


@pytest.mark.slow
def test_a_git_that_hangs_neither_fails_nor_stops_the_proxy(folder: GitFolder, log: Decklog, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    slow = tmp_path / "bin" / "git"
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    variables = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    begun = time.monotonic()
    with WritingEditor(folder.folder, **variables).open() as editor:
        answer = editor.prompt(["request", "fs/write_text_file", {"path": str(folder.folder / "a.txt"), "content": "agent\n"}])
        assert answer["result"] == {"stopReason": "end_turn"}
        # Only the first message waits, the prompt.
        assert time.monotonic() - begun < capturing.LONGEST_WAIT_SECONDS + 2
        assert editor.close() == 0
