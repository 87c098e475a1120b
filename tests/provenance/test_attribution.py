"""Origins of lines after what people do with git."""

from pathlib import Path

import pytest

from decklog import Decklog
from decklog.provenance.blame import blame_file
from tests.provenance.repositories import GitFolder, record_edit
from tests.provenance.sessions import attribute_blob


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


AGENT = "a line that an agent wrote at length"
OTHER = "another line that an agent wrote at length"


def test_a_line_that_was_removed_and_brought_back_keeps_its_origin(folder: GitFolder, log: Decklog) -> None:
    record_edit(folder, log, "claude:1", "a.txt", "person 1", AGENT, "}", "person 2", "person 3")
    folder.commit()
    folder.write("a.txt", "person 1", "person 2", "person 3")
    folder.commit()
    folder.write("a.txt", "person 1", "person 2", AGENT, "}", "person 3", "person 4")
    expected = ["person 1: unknown", "person 2: unknown", f"{AGENT}: claude:1", "}: claude:1"]
    assert who(folder, log)[:4] == expected
    folder.commit()
    assert who(folder, log) == [*expected, "person 3: unknown", "person 4: unknown"]


def test_a_short_line_that_was_removed_is_unknown_when_it_is_written_again(folder: GitFolder, log: Decklog) -> None:
    record_edit(folder, log, "claude:1", "a.txt", "person 1", AGENT, "}", "person 2")
    folder.commit()
    folder.write("a.txt", "person 1", AGENT, "person 2")
    folder.commit()
    folder.write("a.txt", "person 1", AGENT, "}", "person 2", "person 4")
    folder.commit()
    assert who(folder, log)[1:3] == [f"{AGENT}: claude:1", "}: unknown"]


def test_both_of_a_line_that_is_there_twice_have_its_origin(folder: GitFolder, log: Decklog) -> None:
    record_edit(folder, log, "claude:1", "a.txt", "person 1", AGENT)
    folder.commit()
    folder.write("a.txt", AGENT, "person 1", AGENT, "person 4")
    folder.commit()
    assert who(folder, log) == [f"{AGENT}: claude:1", "person 1: unknown", f"{AGENT}: claude:1", "person 4: unknown"]


def test_a_line_that_two_sessions_wrote_and_that_was_brought_back_is_unknown(folder: GitFolder, log: Decklog) -> None:
    for session in ("claude:1", "codex:2"):
        record_edit(folder, log, session, "a.txt", "person 1", AGENT, session)
        record_edit(folder, log, session, "a.txt", "person 1", session)
        folder.commit()
    folder.write("a.txt", "person 1", AGENT, "person 4")
    folder.commit()
    assert who(folder, log)[1] == f"{AGENT}: unknown"


def test_a_line_of_an_agent_in_another_file_is_persons_here(folder: GitFolder, log: Decklog) -> None:
    record_edit(folder, log, "claude:1", "b.txt", "b 1", AGENT)
    folder.commit()
    folder.write("a.txt", "person 1", AGENT)
    folder.commit()
    assert who(folder, log) == ["person 1: unknown", f"{AGENT}: unknown"]


def test_lines_keep_their_origin_through_a_rename_that_is_not_committed(folder: GitFolder, log: Decklog) -> None:
    record_edit(folder, log, "claude:1", "a.txt", "person 1", "person 2", "person 3", AGENT)
    folder.write("a.txt", "person 0", "person 1", "person 2", "person 3", AGENT)
    folder.git("mv", "a.txt", "b.txt")
    assert who(folder, log, "b.txt")[-1] == f"{AGENT}: claude:1"
    folder.commit()
    assert who(folder, log, "b.txt")[-1] == f"{AGENT}: claude:1"


def test_lines_keep_their_origin_through_a_squash_that_hides_a_rename(folder: GitFolder, log: Decklog) -> None:
    base = folder.git("rev-parse", "HEAD")
    record_edit(folder, log, "claude:1", "a.txt", "person 1", "person 2", "person 3", AGENT, OTHER)
    folder.commit()
    folder.git("mv", "a.txt", "b.txt")
    folder.commit()
    folder.write("b.txt", AGENT, *(f"a new line {number}" for number in range(9)))
    folder.write("a.txt", "person 1", "person 2", "person 3")
    folder.git("reset", "-q", "--soft", base)
    folder.commit()
    assert who(folder, log, "b.txt")[0] == f"{AGENT}: claude:1"
    assert {line.rpartition(" ")[2] for line in who(folder, log, "b.txt")[1:]} == {"unknown"}


def test_lines_keep_their_origin_through_a_rename_whose_old_path_is_written_anew(folder: GitFolder, log: Decklog) -> None:
    record_edit(folder, log, "claude:1", "a.txt", "person 1", "person 2", "person 3", AGENT)
    folder.commit()
    folder.git("mv", "a.txt", "b.txt")
    folder.write("b.txt", "person 0", "person 1", "person 2", "person 3", AGENT)
    folder.write("a.txt", "another file")
    folder.commit()
    assert who(folder, log, "b.txt")[-1] == f"{AGENT}: claude:1"
    assert {line.rpartition(" ")[2] for line in who(folder, log, "b.txt")[:-1]} == {"unknown"}


@pytest.mark.slow
def test_lines_keep_their_origin_in_an_edit_after_a_rename_that_is_not_committed(folder: GitFolder, log: Decklog) -> None:
    record_edit(folder, log, "claude:1", "a.txt", "person 1", AGENT, OTHER)
    folder.git("mv", "a.txt", "b.txt")
    folder.write("b.txt", "person 1", AGENT, OTHER, "person 4")
    record_edit(folder, log, "codex:2", "b.txt", "person 1", AGENT, OTHER, "person 4", "more")
    expected = ["person 1: unknown", f"{AGENT}: claude:1", f"{OTHER}: claude:1", "person 4: unknown", "more: codex:2"]
    assert who(folder, log, "b.txt") == expected
    folder.commit()
    assert who(folder, log, "b.txt") == expected
