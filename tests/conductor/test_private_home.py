"""A sandboxed agent has a home of its own: it can't write the settings that its program reads outside, the next time."""

import os
from pathlib import Path

import pytest

from decklog.conductor import commands
from decklog.conductor.agents.description import Description, describe, known_names, known_table
from decklog.conductor.commands import Command, Running
from decklog.guard.sandbox.sandbox import Sandbox, SandboxKind, best_kind

WITH_SETTINGS = [name for name in known_names() if known_table(name).get("home_readable")]
FOLDERS = ("agents", "bin", "commands", "extensions", "hooks", "opencode", "output-styles")
FOLDERS += ("plugins", "prompts", "rules", "skills")
# Overwrites, and plants files in, everything that it finds in its own home and in the person's.
HOSTILE = """
for home in "$HOME" "$1"; do
  find -L "$home" -type f 2>/dev/null | while read -r path; do echo planted > "$path" 2>/dev/null; done
  find -L "$home" -type d 2>/dev/null | while read -r path; do echo planted > "$path/planted" 2>/dev/null; done
done
for path in .claude/settings.local.json .codex/config.toml .gemini/settings.json .config/opencode/opencode.json .claude.json; do
  mkdir -p "$1/$(dirname $path)" 2>/dev/null; echo planted > "$1/$path" 2>/dev/null
done
find -L "$HOME" -name settings.json -o -name config.toml | head -1
exit 0
"""


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def furnish(home: Path, agent: Description, moved: Path | None = None) -> dict[Path, str]:
    """Put a file at every path that a program's description names; return what each holds."""
    files = {}
    for path in (*agent.home_copied, *agent.home_readable, *agent.home_writable):
        own = moved / path.split("/", 2)[2] if moved and path.count("/") > 1 else home / path.removeprefix("~/")
        file = own / "file" if own.name in FOLDERS else own
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("the person's\n")
        files[file] = "the person's\n"
    return files


def run_in_sandbox(agent: Description, tmp_path: Path, argument: Path, sandbox: SandboxKind = SandboxKind.AUTO) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    argv = ["sh", "-c", HOSTILE, "agent", str(argument)]
    command = Command(
        argv=argv, mark="a", root=root, folder=tmp_path / "agent", sandbox=Sandbox(kind=sandbox), home=agent.home_files
    )
    commands.start(command)
    running = Running.find("a", tmp_path / "agent")
    assert running is not None
    ended = running.until_end(lambda: None, [(9, 5.0)])
    assert (ended["reason"], ended["exit_code"]) == ("exited", 0)


@pytest.mark.slow
@pytest.mark.skipif(best_kind() is SandboxKind.NONE, reason="no sandbox can be had here")
@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_a_sandboxed_agent_can_not_write_the_settings_of_its_program(person: Path, tmp_path: Path, name: str) -> None:
    agent = describe("mine", {"extends": name, **({} if known_table(name)["command"] else {"command": ["a"]})})
    files = furnish(person, agent)
    run_in_sandbox(agent, tmp_path, person)
    shared = {person / path.removeprefix("~/") for path in agent.home_writable}
    assert {path for path, text in files.items() if path.read_text() != text} == shared, "only the login can be renewed"
    assert [path for path in person.rglob("*") if path.name == "planted"] == []
    assert {path for path in person.rglob("*") if path.is_file()} == set(files), "nothing was planted beside them"
    for path in agent.home_copied:
        assert (tmp_path / "agent/home" / path.removeprefix("~/")).read_text() == "planted\n", "its own copy is its to write"


@pytest.mark.skipif(best_kind() is SandboxKind.NONE, reason="no sandbox can be had here")
def test_settings_that_a_variable_has_moved_are_copied_from_there(
    person: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, elsewhere = describe("mine", {"extends": "codex"}), tmp_path / "elsewhere"
    monkeypatch.setenv("CODEX_HOME", str(elsewhere))
    files = furnish(person, agent, elsewhere)
    run_in_sandbox(agent, tmp_path, elsewhere)
    assert {path for path, text in files.items() if path.read_text() != text} == {elsewhere / "auth.json"}
    assert (tmp_path / "agent/home/.codex/config.toml").read_text() == "planted\n"


def test_no_known_agent_may_write_in_the_persons_home() -> None:
    for name in known_names():
        table = known_table(name)
        assert (table.get("writable"), table.get("keeps_home")) == (None, None), name
        assert not [path for path in table.get("home_writable", ()) if os.path.splitext(path)[1] != ".json"], name
