"""Lines that real agents write: blame names the session for them and the person for all others, also after a rebase."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.fake_model import FakeModel, Step, Use
from tests.agents.real.editors import CLAUDE_ADAPTER, CODEX_ADAPTER, NODE, ClaudeInEditor, CodexInEditor, Connection, settled
from tests.agents.real.programs import CLAUDE, CODEX, GEMINI, OPENCODE, Claude, Codex, Desk, Gemini, Opencode, decklog, needs
from tests.provenance.repositories import GitFolder

SESSION = "11111111-1111-4111-8111-111111111111"
FILE = "calc.py"
BEFORE = "person 1\nperson 2\nperson 3\n"
PATCH = """*** Begin Patch
*** Update File: calc.py
@@
 person 1
+agent 1
 person 2
*** Add File: new.py
+agent 3
*** End Patch
"""
COMMAND = f"echo agent 2 >> {FILE}"
MORE = """*** Begin Patch
*** Update File: calc.py
@@
 person 3
+agent 2
*** End Patch
"""


def claude_script(repository: Path) -> dict[str, list[Step]]:
    path = str(repository / FILE)
    edit = {"file_path": path, "old_string": "person 1\n", "new_string": "person 1\nagent 1\n"}
    new = {"file_path": str(repository / "new.py"), "content": "agent 3\n"}
    command = {"command": COMMAND, "description": "add a line"}
    more = {"file_path": path, "old_string": "person 3\n", "new_string": "person 3\nagent 2\n"}
    read, files = Use("Read", {"file_path": path}), Use("Write", new)
    return {
        "edits": steps(read, Use("Edit", edit), Use("Bash", command), files),
        "files": steps(read, Use("Edit", edit), Use("Edit", more), files),
    }


def codex_script() -> dict[str, list[Step]]:
    patches = [Use("apply_patch", {"input": patch}) for patch in (PATCH, MORE)]
    return {"edits": steps(patches[0], Use("exec_command", {"cmd": COMMAND})), "files": steps(*patches)}


def gemini_script(repository: Path) -> dict[str, list[Step]]:
    path = str(repository / FILE)
    edit = {"file_path": path, "old_string": "person 1\n", "new_string": "person 1\nagent 1\n", "instruction": "add a line"}
    new = {"file_path": str(repository / "new.py"), "content": "agent 3\n"}
    return {"edits": steps(Use("replace", edit), Use("run_shell_command", {"command": COMMAND}), Use("write_file", new))}


def opencode_script(repository: Path) -> dict[str, list[Step]]:
    path = str(repository / FILE)
    edit = {"filePath": path, "oldString": "person 1\n", "newString": "person 1\nagent 1\n"}
    new = {"filePath": str(repository / "new.py"), "content": "agent 3\n"}
    command = Use("bash", {"command": COMMAND, "description": "add a line"})
    return {"edits": steps(Use("read", {"filePath": path}), Use("edit", edit), command, Use("write", new))}


def steps(*uses: Use) -> list[Step]:
    """Have the agent use one tool after the other."""
    return [*(Step(uses=(use,)) for use in uses), Step("Done.")]


def prepare(desk: Desk) -> GitFolder:
    """Have a person commit a file, and work on a branch."""
    desk.prepare()
    folder = GitFolder(desk.repository, is_new=False)
    folder.write(".gitignore", ".decklog/", ".codex/")
    (desk.repository / FILE).write_text(BEFORE)
    folder.commit("start")
    folder.git("branch", "base")
    return folder


def who(desk: Desk, path: str = FILE, *options: str) -> list[tuple[str, str]]:
    """Return each line with the session, or the person, that `decklog blame` names."""
    lines = json.loads(decklog(desk, *options, "--json", "blame", path))["data"]
    return [(line["text"], " ".join(line["origin"].get("sessions", ())) or line["author"]) for line in lines]


def lines_of(session: str) -> list[tuple[str, str]]:
    return [("person 1", "Ana"), ("agent 1", session), ("person 2", "Ana"), ("person 3", "Ana"), ("agent 2", session)]


def assert_known(desk: Desk, folder: GitFolder, session: str) -> None:
    """Check blame after a commit, after a person's commit and a rebase, and after a squash."""
    folder.commit("the agent's work")
    written = lines_of(session)
    assert who(desk) == written
    assert who(desk, "new.py") == [("agent 3", session)]
    (desk.repository / FILE).write_text("".join(f"{text}\n" for text, _ in written) + "person 4\n")
    folder.commit("a person's work")
    branch = folder.git("branch", "--show-current")
    folder.git("checkout", "-q", "base")
    folder.write("other.txt", "somebody's")
    folder.commit("another commit below")
    folder.git("checkout", "-q", branch)
    before = folder.git("rev-parse", "HEAD")
    folder.git("rebase", "-q", "base")
    assert folder.git("rev-parse", "HEAD") != before
    assert who(desk) == [*written, ("person 4", "Ana")]
    assert who(desk, "new.py") == [("agent 3", session)]
    folder.git("checkout", "-q", "base")
    folder.git("merge", "-q", "--squash", branch)
    folder.commit("all in one commit")
    assert who(desk) == [*written, ("person 4", "Ana")]
    assert who(desk, "new.py") == [("agent 3", session)]


def assert_reconstructed(desk: Desk, folder: GitFolder, program: str, history: Path, session: str) -> None:
    """Check blame in a log that has only what the agent's own files have."""
    folder.commit("the agent's work")
    other = ("--db", str(desk.folder / "other.db"))
    decklog(desk, *other, "import", program, str(history))
    assert who(desk, FILE, *other) == lines_of(session)
    assert who(desk, "new.py", *other) == [("agent 3", session)]


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[Claude]:
    with FakeModel(claude_script(tmp_path / "repo")) as model:
        yield Claude(tmp_path, model)


@pytest.fixture
def codex(tmp_path: Path) -> Iterator[Codex]:
    with FakeModel(codex_script()) as model:
        yield Codex(tmp_path, model)


@needs(CLAUDE)
def test_blame_names_claude_code_for_its_lines_and_the_person_for_others(claude: Claude) -> None:
    folder = prepare(claude)
    claude.run("lane=edits go", "--session-id", SESSION)
    assert_known(claude, folder, f"claude:{SESSION}")


@needs(CLAUDE)
def test_blame_names_the_session_for_lines_of_its_sub_agent(tmp_path: Path) -> None:
    script = claude_script(tmp_path / "repo")
    agent = Use("Agent", {"description": "edit", "prompt": "lane=edits go", "subagent_type": "general-purpose"})
    with FakeModel({**script, "above": steps(agent)}) as model:
        claude = Claude(tmp_path, model)
        folder = prepare(claude)
        claude.run("lane=above go", "--session-id", SESSION)
        assert_known(claude, folder, f"claude:{SESSION}")


def waiting_command(own: Path, other: Path, line: str) -> Use:
    """Build a command that begins and ends while another one is under way, too."""

    def meet(moment: str) -> str:
        return f"touch {own}.{moment}; until [ -e {other}.{moment} ]; do sleep 0.1; done"

    return Use("Bash", {"command": f"{meet('begun')}; echo {line} >> {FILE}; {meet('ended')}", "description": "wait"})


@needs(CLAUDE)
def test_lines_of_two_sessions_at_once_are_mixed(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    uses = {"first": waiting_command(first, second, "agent 1"), "second": waiting_command(second, first, "agent 2")}
    sessions = [SESSION, SESSION.replace("1", "2")]
    with FakeModel({lane: steps(use) for lane, use in uses.items()}) as model:
        claude = Claude(tmp_path, model)
        folder = prepare(claude)
        started = [claude.start(f"lane={lane} go", "--session-id", one) for lane, one in zip(uses, sessions, strict=True)]
        for program in started:
            program.communicate(timeout=120)
        claude.settle()
        folder.commit("the work of both")
        found = dict(who(claude))
        both = [set(found[line].split()) for line in ("agent 1", "agent 2")]
        assert both == [{f"claude:{one}" for one in sessions}] * 2
        assert {found[f"person {number}"] for number in (1, 2, 3)} == {"Ana"}


@needs(CODEX)
def test_blame_names_codex_for_its_lines_and_the_person_for_others(codex: Codex) -> None:
    folder = prepare(codex)
    thread = codex.run("lane=edits go")[0]["thread_id"]
    assert_known(codex, folder, f"codex:{thread}")


@needs(CLAUDE)
def test_blame_names_claude_code_by_its_transcript_alone(claude: Claude) -> None:
    folder = prepare(claude)
    claude.run("lane=files go", "--session-id", SESSION)
    assert_reconstructed(claude, folder, "claude", claude.home / ".claude" / "projects", f"claude:{SESSION}")


@needs(CODEX)
def test_blame_names_codex_by_its_transcript_alone(codex: Codex) -> None:
    folder = prepare(codex)
    thread = codex.run("lane=files go")[0]["thread_id"]
    assert_reconstructed(codex, folder, "codex", codex.home / ".codex" / "sessions", f"codex:{thread}")


@needs(GEMINI)
def test_blame_names_gemini_cli_for_its_lines_and_the_person_for_others(tmp_path: Path) -> None:
    with FakeModel(gemini_script(tmp_path / "repo")) as model:
        gemini = Gemini(tmp_path, model)
        folder = prepare(gemini)
        gemini.configure()
        decklog(gemini, "setup", "gemini")
        session = gemini.run("lane=edits go")[0]["session_id"]
        assert_known(gemini, folder, f"gemini:{session}")


@needs(OPENCODE)
def test_blame_names_opencode_for_its_lines_and_the_person_for_others(tmp_path: Path) -> None:
    with FakeModel(opencode_script(tmp_path / "repo")) as model:
        opencode = Opencode(tmp_path, model)
        folder = prepare(opencode)
        opencode.configure()
        decklog(opencode, "setup", "opencode", "--project")
        session = opencode.run("lane=edits go")[0]["sessionID"]
        assert_known(opencode, folder, f"opencode:{session}")


@needs(CLAUDE_ADAPTER)
@needs(NODE)
def test_blame_names_claude_code_in_an_editor(tmp_path: Path) -> None:
    with FakeModel(claude_script(tmp_path / "repo")) as model:
        desk = ClaudeInEditor(tmp_path, model)
        folder = prepare(desk)
        assert_known_in_editor(desk, folder, desk.connect(), "claude")


@needs(CODEX_ADAPTER)
@needs(NODE)
@pytest.mark.parametrize("mode", ["read-only", "agent-full-access"])
def test_blame_names_codex_in_an_editor(tmp_path: Path, mode: str) -> None:
    with FakeModel(codex_script()) as model:
        desk = CodexInEditor(tmp_path, model)
        folder = prepare(desk)
        # In the mode in which it asks, its sandbox holds commands back.
        assert_known_in_editor(desk, folder, desk.connect(mode=mode), "codex", lane="files")


def assert_known_in_editor(desk: Desk, folder: GitFolder, connection: Connection, program: str, lane: str = "edits") -> None:
    """Check blame after a session behind the proxy, without hooks."""
    with connection as editor:
        session = editor.begin()
        assert editor.prompt(session, f"lane={lane} go")["result"]["stopReason"] == "end_turn"
    settled(desk)
    assert_known(desk, folder, f"{program}:{session}")
