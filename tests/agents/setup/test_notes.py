"""What agents are told: a marked block beside what people wrote, where agents read it."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from decklog.agents.setup.supported import COMMANDS
from decklog.cli.main import menu
from tests.agents.setup.places import Here, Places, tree
from tests.db.processes import environment


def test_agents_are_told_of_commands_that_there_are() -> None:
    words = re.findall(r"`decklog ([a-z]+)", COMMANDS)
    assert len(words) >= 8
    assert set(words) <= set(menu.list_commands(click.Context(menu)))
    assert {"next", "done", "fail", "block", "note", "ask", "plan", "recall", "remember", "spend"} == set(words)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["# Mine\n", "# Mine", "# Mine\r\n\r\nMore\r\n", "", "\n\n", "# Mine\n\n\n"])
def test_a_block_stands_behind_what_is_there_and_goes_without_a_trace(text: str, places: Places, here: Here) -> None:
    path = places.repo / "AGENTS.md"
    path.write_bytes(text.encode())
    assert here("setup", "agents-md").code == 0
    written = path.read_bytes().decode()
    assert written.startswith(text)
    assert "`decklog next`" in written
    assert ("\r\n" in written) == ("\r\n" in text)
    assert here("setup", "agents-md", "--remove").code == 0
    assert path.read_bytes() == text.encode()


@pytest.mark.slow
def test_what_was_written_behind_the_block_stays(places: Places, here: Here) -> None:
    path = places.repo / "AGENTS.md"
    path.write_text("# Mine\n")
    here("setup", "agents-md")
    path.write_text(path.read_text() + "\n# Later\n")
    assert here("setup", "agents-md", "--check").code == 0
    here("setup", "agents-md", "--remove")
    assert path.read_text() == "# Mine\n\n# Later\n"


@pytest.mark.slow
def test_a_block_that_somebody_changed_is_written_anew(places: Places, here: Here) -> None:
    path = places.repo / "AGENTS.md"
    path.write_text("# Mine\n")
    here("setup", "agents-md")
    whole = path.read_text()
    path.write_text(whole.replace("decklog next", "decklog then"))
    assert here("setup", "agents-md", "--check").code == 5
    here("setup", "agents-md")
    assert path.read_text() == whole


@pytest.mark.slow
def test_files_that_are_read_in_its_place_have_it_too(places: Places, here: Here) -> None:
    (places.repo / "CLAUDE.md").write_text("# For Claude\n")
    (places.repo / "GEMINI.md").symlink_to("AGENTS.md")
    before = tree(places.repo)
    said = here("setup", "agents-md", "--json")
    assert [Path(row["path"]).name for row in said.data["files"]] == ["AGENTS.md", "CLAUDE.md"]
    here("setup", "agents-md", "--remove")
    assert tree(places.repo) == before
    (places.repo / "CLAUDE.md").write_text("See @AGENTS.md\n")
    assert len(here("setup", "agents-md", "--json").data["files"]) == 1


def test_init_writes_it_when_asked_and_never_asks_without_a_terminal(places: Places, here: Here) -> None:
    assert here("init").code == 0
    assert not (places.repo / "AGENTS.md").exists()
    assert here("init", "--agents-md", "--json").envelope["ok"] is True
    assert "decklog next" in (places.repo / "AGENTS.md").read_text()
    assert here("init", "--agents-md").out.count("Written") == 0


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "is_written"), [("y", True), ("", False)])
def test_init_asks_on_a_terminal(answer: str, is_written: bool, places: Places) -> None:
    ours, theirs = pty.openpty()
    program = [sys.executable, "-m", "decklog", "init"]
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    process = subprocess.Popen(program, cwd=places.repo, env=environment(**places.variables), **streams)
    os.close(theirs)
    said = b""
    while b"?" not in said:
        said += os.read(ours, 4096)
    os.write(ours, answer.encode() + b"\n")
    assert process.wait(timeout=60) == 0
    os.close(ours)
    assert (places.repo / "AGENTS.md").exists() == is_written
