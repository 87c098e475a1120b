"""Edits reconstructed from imported transcripts: only what a commit proves, and never a person's line."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, EditKind
from decklog.provenance.recording import session_refs
from tests.programs import call
from tests.provenance.repositories import GitFolder

SESSION = "0c5b9a4e-6d0f-4c4b-9a55-0123456789ab"


class Desk:
    """A repository with a log, a home, and agents that wrote transcripts while there were no hooks."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.repository = GitFolder(folder / "repository")
        self.repository.write("calc.py", "person 1", "person 2", "person 3")
        self.repository.write(".gitignore", ".decklog/")
        # Commits have whole seconds: these are surely older than what agents do.
        self.commit_earlier()
        self.run("init")
        self.claude_lines: list[dict[str, Any]] = []
        self.codex_lines: list[dict[str, Any]] = [self.codex_line("session_meta", id=SESSION, cwd=str(self.repository.folder))]

    def commit_earlier(self) -> None:
        then = f"{int(time.time()) - 100} +0000"
        self.repository.git("add", "-A")
        self.repository.git("commit", "-q", "-m", "earlier", GIT_AUTHOR_DATE=then, GIT_COMMITTER_DATE=then)

    def run(self, *words: str) -> str:
        done = call(list(words), cwd=self.repository.folder, variables={"HOME": str(self.home)})
        assert done.code == 0, done
        return done.out.decode()

    def text(self, path: str = "calc.py") -> str:
        return (self.repository.folder / path).read_text()

    def put(self, text: str, path: str = "calc.py") -> None:
        (self.repository.folder / path).write_text(text)

    # Claude Code

    def claude_edit(self, old: str, new: str, *, is_done: bool = True) -> None:
        before = self.text()
        arguments = {"file_path": str(self.repository.folder / "calc.py"), "old_string": old, "new_string": new}
        self.claude_call("Edit", arguments, {"filePath": "calc.py", "originalFile": before, "userModified": False})
        if is_done:
            self.put(before.replace(old, new, 1))

    def claude_write(self, path: str, text: str) -> None:
        file = self.repository.folder / path
        before = file.read_text() if file.exists() else None
        self.put(text, path)
        told = {"type": "update" if before is not None else "create", "originalFile": before}
        self.claude_call("Write", {"file_path": str(file), "content": text}, told)

    def claude_call(self, tool: str, arguments: dict[str, Any], result: dict[str, Any]) -> None:
        name = f"toolu_{len(self.claude_lines)}"
        use = {"type": "tool_use", "id": name, "name": tool, "input": arguments}
        done = {"type": "tool_result", "tool_use_id": name, "content": "ok"}
        self.claude_line("assistant", {"id": f"msg_{name}", "model": "m", "content": [use]})
        self.claude_line("user", {"role": "user", "content": [done]}, toolUseResult=result)

    def claude_line(self, kind: str, message: dict[str, Any], **more: Any) -> None:
        own = {"sessionId": SESSION, "timestamp": now(), "uuid": f"u{len(self.claude_lines)}", "isSidechain": False}
        self.claude_lines.append({"type": kind, **own, "cwd": str(self.repository.folder), "message": message, **more})

    def import_claude(self) -> None:
        write(self.home / ".claude" / "projects" / "-repository" / f"{SESSION}.jsonl", self.claude_lines)
        self.run("import", "claude")

    # Codex

    def codex_patch(self, patch: str) -> None:
        name = f"call_{len(self.codex_lines)}"
        words = {"call_id": name, "name": "apply_patch", "input": patch}
        self.codex_lines += [
            self.codex_line("response_item", type="custom_tool_call", **words),
            self.codex_line("response_item", type="custom_tool_call_output", call_id=name, output="Success"),
        ]

    def codex_line(self, kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": now(), "type": kind, "payload": payload}

    def import_codex(self) -> None:
        write(self.home / ".codex" / "sessions" / "2026" / f"rollout-{SESSION}.jsonl", self.codex_lines)
        self.run("import", "codex")

    # What is known then

    def log(self) -> Decklog:
        return Decklog.open(self.repository.folder / ".decklog" / "decklog.db")

    def who(self, path: str = "calc.py") -> list[str]:
        """Return each line with the session that wrote it, or what is known instead."""
        lines = json.loads(self.run("--json", "blame", path))["data"]
        origins = [line["origin"] for line in lines]
        names = [" ".join(origin.get("sessions", ())) or origin["kind"] for origin in origins]
        return [f"{line['text']}: {name}" for line, name in zip(lines, names, strict=True)]


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


CLAUDE, CODEX = f"claude:{SESSION}", f"codex:{SESSION}"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.slow
def test_blame_names_an_imported_session_and_a_persons_line_stays_a_persons(desk: Desk) -> None:
    desk.claude_edit("person 2\n", "agent 1\nperson 2\n")
    desk.claude_edit("person 3\n", "agent 2\n")
    desk.repository.commit()
    desk.put(desk.text() + "person 4\n")
    desk.repository.commit()
    desk.import_claude()
    assert desk.who() == [
        "person 1: unknown",
        f"agent 1: {CLAUDE}",
        "person 2: unknown",
        f"agent 2: {CLAUDE}",
        "person 4: unknown",
    ]
    shown = desk.run("blame", "calc.py")
    assert [f"claude {SESSION[:4]}" in line for line in shown.splitlines()] == [False, True, False, True, False]
    with desk.log() as log:
        [edit] = log.edits.find()
        assert (edit.kind, edit.run_id) == (EditKind.RECONSTRUCTED, f"claude-{SESSION}")
    assert len(session_refs(desk.repository.repository)) == 1


@pytest.mark.slow
def test_uncommitted_lines_of_a_person_are_not_the_sessions(desk: Desk) -> None:
    desk.put("person 0\n" + desk.text())
    desk.claude_edit("person 1\n", "agent 1\n")
    desk.repository.commit()
    desk.import_claude()
    assert desk.who()[:2] == ["person 0: unknown", f"agent 1: {CLAUDE}"]


@pytest.mark.slow
def test_an_edit_whose_result_was_never_committed_is_not_recorded(desk: Desk) -> None:
    desk.claude_edit("person 1\n", "agent 1\n", is_done=False)
    desk.put("agent 1\nperson 2\nperson 3\nperson 4\n")
    desk.repository.commit()
    desk.import_claude()
    assert desk.who()[0] == "agent 1: unknown"
    with desk.log() as log:
        assert not log.edits.find()


@pytest.mark.slow
def test_content_that_was_committed_before_stays_its_authors(desk: Desk) -> None:
    desk.put("older 1\nolder 2\n")
    desk.commit_earlier()
    desk.put("newer\n")
    desk.commit_earlier()
    desk.claude_write("calc.py", "older 1\nolder 2\n")
    desk.claude_write("copy.py", "person 1\nperson 2\nperson 3\n")
    desk.repository.commit()
    desk.import_claude()
    assert desk.who() == ["older 1: unknown", "older 2: unknown"]
    assert desk.who("copy.py") == ["person 1: unknown", "person 2: unknown", "person 3: unknown"]


@pytest.mark.slow
def test_a_file_that_a_tool_wrote_over_keeps_the_lines_that_it_had(desk: Desk) -> None:
    desk.claude_write("calc.py", "person 1\nagent 1\nperson 3\n")
    desk.claude_write("new.py", "agent 2\n")
    desk.repository.commit()
    desk.import_claude()
    assert desk.who() == ["person 1: unknown", f"agent 1: {CLAUDE}", "person 3: unknown"]
    assert desk.who("new.py") == [f"agent 2: {CLAUDE}"]


@pytest.mark.slow
def test_patches_of_codex_are_applied_to_what_was_committed(desk: Desk) -> None:
    desk.codex_patch("*** Begin Patch\n*** Update File: calc.py\n@@\n person 1\n-person 2\n+agent 1\n*** End Patch\n")
    more = "*** Update File: calc.py\n@@ agent 1\n person 3\n+agent 2\n*** Add File: new.py\n+agent 3\n"
    desk.codex_patch(f"*** Begin Patch\n{more}*** End Patch\n")
    desk.put("person 1\nagent 1\nperson 3\nagent 2\n")
    desk.put("agent 3\n", "new.py")
    desk.repository.commit()
    desk.import_codex()
    assert desk.who() == ["person 1: unknown", f"agent 1: {CODEX}", "person 3: unknown", f"agent 2: {CODEX}"]
    assert desk.who("new.py") == [f"agent 3: {CODEX}"]


@pytest.mark.slow
def test_a_second_import_records_nothing_twice(desk: Desk) -> None:
    desk.claude_edit("person 1\n", "agent 1\n")
    desk.repository.commit()
    desk.import_claude()
    desk.claude_edit("person 2\n", "agent 2\n")
    desk.repository.commit()
    desk.import_claude()
    with desk.log() as log:
        assert len(log.edits.find()) == 2
    assert desk.who() == [f"agent 1: {CLAUDE}", f"agent 2: {CLAUDE}", "person 3: unknown"]


@pytest.mark.slow
def test_a_session_of_another_repository_changes_nothing_here(desk: Desk, tmp_path: Path) -> None:
    other = Desk(tmp_path / "other")
    other.claude_edit("person 1\n", "agent 1\n")
    desk.put(other.text())
    desk.repository.commit()
    write(tmp_path / "there.jsonl", other.claude_lines)
    desk.run("import", "claude", str(tmp_path / "there.jsonl"))
    assert desk.who()[0] == "agent 1: unknown"


@pytest.mark.slow
def test_settings_switch_reconstruction_off(desk: Desk) -> None:
    desk.put("[provenance]\ncapture = false\n", "decklog.toml")
    desk.claude_edit("person 1\n", "agent 1\n")
    desk.repository.commit()
    desk.import_claude()
    assert desk.who()[0] == "agent 1: unknown"
