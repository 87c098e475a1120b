from pathlib import Path

import pytest

from decklog import Decklog
from tests.agents.origins.test_rewinding import snapshot
from tests.cli.conftest import Program
from tests.provenance.text_repositories import TextFolder


def taken(folder: TextFolder, log_file: Path) -> None:
    """Take a snapshot, and change a file after it."""
    with Decklog.open(log_file) as log:
        snapshot(log, folder, "start", "t1")
    folder.put("a", "by the agent\n")


@pytest.mark.slow
def test_rewind_restores_and_prints_the_ways_back_and_on(folder: TextFolder, decklog: Program) -> None:
    taken(folder, folder.folder / ".decklog" / "decklog.db")
    assert "Would restore 1 file" in decklog("rewind", "--dry-run").out
    shown = decklog("rewind").out
    assert (folder.folder / "a").read_text() == "1\nzwei\n3\n"
    assert "  M a" in shown
    assert "Go on with the agent: claude --resume s1" in shown
    back = next(line.removeprefix("Return: decklog ") for line in shown.splitlines() if line.startswith("Return: "))
    assert decklog(*back.split()).code == 0
    assert (folder.folder / "a").read_text() == "by the agent\n"
    assert len(decklog("rewind", "--list").out.splitlines()) == 3


def test_rewind_refuses_what_it_does_not_know(folder: TextFolder, decklog: Program) -> None:
    assert decklog("rewind").code == 3
    assert decklog("rewind", "--list", "--dry-run").code == 2
    assert decklog("rewind", "--list").out.startswith("No snapshot")


def test_attribute_works_without_a_log(tmp_path: Path, decklog: Program) -> None:
    folder = TextFolder(tmp_path)
    folder.commit("First", a="1\n")
    folder.commit("Second", a="1\n2\n")
    answer = decklog("attribute", "--merged", "HEAD~1..HEAD")
    assert (answer.code, answer.out) == (0, "Wrote 0 notes; lines: unknown 1.\n")
    assert not (tmp_path / ".decklog").exists()
