"""Lines that real agents write: blame names the session for them and the person for all others, also after a rebase."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.fake_model import FakeModel, Step, Use
from tests.agents.real.programs import CLAUDE, CODEX, Claude, Codex, Desk, decklog, needs
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
DONE = Step("Done.")


def claude_script(repository: Path) -> dict[str, list[Step]]:
    path = str(repository / FILE)
    edit = {"file_path": path, "old_string": "person 1\n", "new_string": "person 1\nagent 1\n"}
    new = {"file_path": str(repository / "new.py"), "content": "agent 3\n"}
    command = {"command": COMMAND, "description": "add a line"}
    uses = (Use("Read", {"file_path": path}), Use("Edit", edit), Use("Bash", command), Use("Write", new))
    return {"edits": [*(Step(uses=(use,)) for use in uses), DONE]}


def codex_script() -> dict[str, list[Step]]:
    uses = (Use("apply_patch", {"input": PATCH}), Use("exec_command", {"cmd": COMMAND}))
    return {"edits": [*(Step(uses=(use,)) for use in uses), DONE]}


def prepare(desk: Desk) -> GitFolder:
    """Have a person commit a file, and work on a branch."""
    desk.prepare()
    folder = GitFolder(desk.repository, is_new=False)
    folder.write(".gitignore", ".decklog/", ".codex/")
    (desk.repository / FILE).write_text(BEFORE)
    folder.commit("start")
    folder.git("branch", "base")
    return folder


def who(desk: Desk, path: str = FILE) -> list[tuple[str, str]]:
    """Return each line with the session, or the person, that `decklog blame` names."""
    lines = json.loads(decklog(desk, "--json", "blame", path))["data"]
    return [(line["text"], " ".join(line["origin"].get("sessions", ())) or line["author"]) for line in lines]


def assert_known(desk: Desk, folder: GitFolder, session: str) -> None:
    """Check blame after a commit, and after a person's commit and a rebase."""
    folder.commit("the agent's work")
    written = [("person 1", "Ana"), ("agent 1", session), ("person 2", "Ana"), ("person 3", "Ana"), ("agent 2", session)]
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


@needs(CODEX)
def test_blame_names_codex_for_its_lines_and_the_person_for_others(codex: Codex) -> None:
    folder = prepare(codex)
    thread = codex.run("lane=edits go")[0]["thread_id"]
    assert_known(codex, folder, f"codex:{thread}")
