from pathlib import Path

import pytest

from decklog import Decklog
from decklog.agents.origins.exporting import export_notes
from decklog.agents.origins.statistics import attribute_merged
from decklog.core.errors import Invalid, NotFound
from decklog.provenance.formats.git_ai import read_note
from tests.provenance.formats import second_reader
from tests.provenance.sessions import RecordedSession
from tests.provenance.text_repositories import TextFolder

BASE = "".join(f"{number}\n" for number in range(12))


@pytest.fixture
def folder(tmp_path: Path) -> TextFolder:
    """Make a branch with two agents' commits and one of somebody unknown, whose notes are written."""
    found = TextFolder(tmp_path / "repo")
    found.commit("First", a=BASE)
    found.git("checkout", "-qb", "topic")
    with Decklog.open(tmp_path / "their.db") as log:
        RecordedSession(log, found, "claude", "s1").edit("a", BASE + "claude 1\nclaude 2\n")
        found.commit("Claude")
        RecordedSession(log, found, "codex", "s2").edit("a", BASE + "claude 1\ncodex\nclaude 2\n")
        found.commit("Codex")
        found.commit("Somebody", a=BASE + "claude 1\ncodex\nclaude 2\nsomebody\n")
        export_notes(found.repository, log, "main..topic")
    found.git("checkout", "-q", "main")
    return found


def lines_of(folder: TextFolder) -> dict[int, str]:
    """Return the tool of each attested line of the newest commit."""
    note = read_note(folder.repository, folder.git("rev-parse", "HEAD"))
    files, metadata = second_reader.read(note or "")
    return {line: metadata["sessions"][key.partition("::")[0]]["agent_id"]["tool"] for line, key in files["a"].items()}


def squash(folder: TextFolder) -> None:
    folder.git("merge", "-q", "--squash", "topic")
    folder.git("commit", "-q", "-m", "Squash")


def test_note_of_a_squash_merge_comes_from_the_merged_commits(log: Decklog, folder: TextFolder) -> None:
    squash(folder)
    attribute_merged(folder.repository, log, "main~1..topic", "HEAD")
    assert lines_of(folder) == {13: "claude", 14: "codex", 15: "claude"}


def test_squash_onto_a_branch_that_went_on_is_attributed(log: Decklog, folder: TextFolder) -> None:
    folder.commit("Meanwhile", a="before\n" + BASE)
    squash(folder)
    attribute_merged(folder.repository, log, "main~1..topic", "HEAD")
    assert lines_of(folder) == {14: "claude", 15: "codex", 16: "claude"}


def test_wrong_range_is_refused(log: Decklog, folder: TextFolder) -> None:
    with pytest.raises(Invalid):
        attribute_merged(folder.repository, log, "topic", "HEAD")
    with pytest.raises(NotFound):
        attribute_merged(folder.repository, log, "main..gone", "HEAD")
