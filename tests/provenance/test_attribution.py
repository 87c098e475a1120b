"""Origins of lines after what people do with git."""

from pathlib import Path

import pytest

from decklog import Decklog
from decklog.provenance.attribution import attribute_blob
from decklog.provenance.blame import blame_file
from tests.provenance.repositories import GitFolder, record_edit


@pytest.fixture
def folder(tmp_path: Path) -> GitFolder:
    found = GitFolder(tmp_path / "repository")
    found.write("a.txt", "person 1", "person 2", "person 3")
    found.commit()
    return found


def who(folder: GitFolder, log: Decklog, path: str = "a.txt", rev: str | None = None) -> list[str]:
    found = blame_file(folder.repository, log, path, rev)
    return [f"{line.text}: {' '.join(line.origin.sessions) or line.origin.kind}" for line in found]


def test_a_line_of_an_edit_belongs_to_its_session(folder: GitFolder, log: Decklog) -> None:
    record_edit(folder, log, "claude:1", "a.txt", "person 1", "agent 1", "person 2", "person 3")
    expected = ["person 1: unknown", "agent 1: claude:1", "person 2: unknown", "person 3: unknown"]
    assert who(folder, log) == expected
    folder.commit()
    assert who(folder, log) == expected
    assert who(folder, log, rev="HEAD") == expected
    assert who(folder, log, rev="HEAD~1") == ["person 1: unknown", "person 2: unknown", "person 3: unknown"]


def test_a_line_between_two_edits_is_unknown(folder: GitFolder, log: Decklog) -> None:
    record_edit(folder, log, "claude:1", "a.txt", "agent 1", "person 1")
    folder.write("a.txt", "agent 1", "stranger", "person 1")
    record_edit(folder, log, "codex:2", "a.txt", "agent 1", "stranger", "person 1", "agent 2")
    folder.commit()
    assert who(folder, log) == ["agent 1: claude:1", "stranger: unknown", "person 1: unknown", "agent 2: codex:2"]


def test_lines_keep_their_origin_through_partial_staging(folder: GitFolder, log: Decklog) -> None:
    record_edit(folder, log, "claude:1", "a.txt", "agent 1", "person 1", "person 2", "person 3", "agent 2")
    whole = (folder.folder / "a.txt").read_text()
    folder.write("a.txt", "agent 1", "person 1", "person 2", "person 3")
    folder.commit()
    (folder.folder / "a.txt").write_text(whole)
    assert who(folder, log, rev="HEAD")[0] == "agent 1: claude:1"
    assert who(folder, log)[-1] == "agent 2: claude:1"


def test_lines_keep_their_origin_through_a_rebase_that_merges_contents(folder: GitFolder, log: Decklog) -> None:
    folder.git("checkout", "-q", "-b", "work")
    record_edit(folder, log, "claude:1", "a.txt", "person 1", "person 2", "person 3", "agent 1")
    folder.commit()
    folder.git("checkout", "-q", "main")
    folder.write("a.txt", "person 0", "person 1", "person 2", "person 3")
    folder.commit()
    folder.git("checkout", "-q", "work")
    folder.git("rebase", "-q", "main")
    assert who(folder, log)[0] == "person 0: unknown"
    assert who(folder, log)[-1] == "agent 1: claude:1"


def test_an_agent_that_restores_a_line_of_a_person_did_not_write_it(folder: GitFolder, log: Decklog) -> None:
    lines = ("person 1", "person 2", "person 3")
    record_edit(folder, log, "claude:1", "a.txt", "person 1")
    # The content of the commit is there already, so a capture records nothing.
    folder.write("a.txt", *lines)
    record_edit(folder, log, "claude:1", "a.txt", *lines, "agent 1")
    folder.commit()
    assert who(folder, log) == [*(f"{line}: unknown" for line in lines), "agent 1: claude:1"]


def test_attribute_blob_joins_lines_of_one_origin(folder: GitFolder, log: Decklog) -> None:
    edit = record_edit(folder, log, "claude:1", "a.txt", "person 1", "agent 1", "agent 2")
    commit = folder.commit()
    for given in (None, commit):
        assert edit.new_blob is not None
        found = attribute_blob(folder.repository, log, edit.new_blob, "a.txt", given)
        assert [(one.start, one.end, one.origin.kind) for one in found] == [(1, 1, "unknown"), (2, 3, "agent")]
        assert found[1].origin.edits == (edit.id,)


def test_a_line_that_an_older_edit_wrote_and_removed_is_not_the_agents_when_a_person_writes_it(
    folder: GitFolder, log: Decklog
) -> None:
    record_edit(folder, log, "claude:1", "a.txt", "pass", "person 1")
    record_edit(folder, log, "claude:1", "a.txt", "agent 1", "person 1")
    folder.commit()
    folder.write("a.txt", "pass", "agent 1", "person 1")
    folder.commit()
    assert who(folder, log) == ["pass: unknown", "agent 1: claude:1", "person 1: unknown"]


def test_an_edit_in_another_repository_counts_for_nothing(folder: GitFolder, log: Decklog, tmp_path: Path) -> None:
    other = GitFolder(tmp_path / "other")
    other.write("b.txt", "other")
    other.commit("another history")
    record_edit(other, log, "claude:1", "LICENSE", "free")
    folder.write("LICENSE", "free")
    folder.commit()
    assert who(folder, log, "LICENSE") == ["free: unknown"]
