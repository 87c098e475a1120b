from pathlib import Path

import pytest

from decklog.provenance.history import read_changes, read_commit
from tests.provenance.text_repositories import AUTHOR, TextFolder


@pytest.fixture
def repository(tmp_path: Path) -> TextFolder:
    return TextFolder(tmp_path / "repo")


def test_commit_has_the_lines_that_it_added(repository: TextFolder) -> None:
    repository.commit("First", a="1\n2\n3\n4\n")
    commit = repository.commit("Second", a="1\nx\ny\n3\nz\n4\n", b="new\n")
    found = read_commit(repository.repository, commit)
    assert (found.commit, found.author, found.subject) == (commit, AUTHOR, "Second")
    a, b = found.files
    assert (a.path, a.added, a.added_lines, a.removed) == ("a", [(2, 3), (5, 5)], 3, 1)
    assert a.blob == repository.git("rev-parse", "HEAD:a")
    assert (b.path, b.added) == ("b", [(1, 1)])


def test_content_that_looks_like_a_diff_is_content(repository: TextFolder) -> None:
    repository.commit(a="one\n--- a/a\n")
    text = "diff --git a/x b/x\n@@ -1 +1 @@\n+++ b/y\n\x01commit x\n-- minus\n"
    commit = repository.commit("Next", a=text)
    (change,) = read_commit(repository.repository, commit).files
    assert (change.path, change.added, change.removed) == ("a", [(1, 5)], 2)


@pytest.mark.parametrize(
    "path", ["with blank", "täb\t", 'quo"te', "new\nline", "back\\slash", "a b/c d", "--- x", "diff --git a b"]
)
def test_odd_paths_are_read(repository: TextFolder, path: str) -> None:
    repository.put(path, "1\n")
    commit = repository.commit()
    (change,) = read_commit(repository.repository, commit).files
    assert (change.path, change.added) == (path, [(1, 1)])


def test_odd_path_of_an_empty_file_is_read(repository: TextFolder) -> None:
    repository.put("a b/a b", "")
    commit = repository.commit()
    (change,) = read_commit(repository.repository, commit).files
    assert (change.path, change.added) == ("a b/a b", [])


def test_rename_has_both_paths_and_only_changed_lines(repository: TextFolder) -> None:
    repository.commit(old="".join(f"{number}\n" for number in range(20)))
    repository.git("mv", "old", "new")
    commit = repository.commit("Rename", new="".join(f"{number}\n" for number in range(20)) + "more\n")
    (change,) = read_commit(repository.repository, commit).files
    assert (change.old_path, change.path, change.added) == ("old", "new", [(21, 21)])
    repository.git("mv", "new", "newest")
    (change,) = read_commit(repository.repository, repository.commit("Rename again")).files
    assert (change.old_path, change.path, change.added) == ("new", "newest", [])


def test_deleted_file_has_no_blob(repository: TextFolder) -> None:
    repository.commit(a="1\n2\n")
    (repository.folder / "a").unlink()
    (change,) = read_commit(repository.repository, repository.commit("Delete")).files
    assert (change.path, change.blob, change.added, change.removed) == ("a", None, [], 2)


def test_clean_merge_adds_nothing(repository: TextFolder) -> None:
    repository.commit(a="".join(f"{number}\n" for number in range(9)))
    repository.git("checkout", "-qb", "side")
    repository.commit(a="first\n" + "".join(f"{number}\n" for number in range(9)))
    repository.git("checkout", "-q", "main")
    repository.commit(a="".join(f"{number}\n" for number in range(9)) + "last\n")
    repository.git("merge", "-q", "--no-edit", "side")
    found = read_commit(repository.repository, "HEAD")
    assert len(found.parents) == 2
    assert [change.added for change in found.files if change.added] == []


def test_merge_with_a_conflict_adds_only_its_resolution(repository: TextFolder) -> None:
    repository.commit(a="top\nbase\nend\n")
    repository.git("checkout", "-qb", "side")
    repository.commit(a="top\nside\nend\n")
    repository.git("checkout", "-q", "main")
    repository.commit(a="top\nmain\nend\n")
    repository.git("merge", "-q", "side", is_checked=False)
    commit = repository.commit("Merge", a="top\nmain\nresolved\nside\nend\n")
    (change,) = read_commit(repository.repository, commit).files
    assert change.added == [(3, 3)]
    assert change.blob == repository.git("rev-parse", "HEAD:a")


def test_range_is_read_in_both_orders(repository: TextFolder) -> None:
    commits = [repository.commit(a=f"{number}\n") for number in range(4)]
    newest = [one.commit for one in read_changes(repository.repository, f"{commits[0]}..HEAD")]
    assert newest == commits[:0:-1]
    assert [one.commit for one in read_changes(repository.repository, "HEAD", oldest_first=True)] == commits


def test_last_line_without_a_line_break_counts(repository: TextFolder) -> None:
    commit = repository.commit(a="1\n2")
    (change,) = read_commit(repository.repository, commit).files
    assert change.added == [(1, 2)]


def test_lines_of_a_merge_are_counted_past_an_unchanged_line_between_removed_ones(repository: TextFolder) -> None:
    numbers = [str(number) for number in range(1, 13)]
    repository.commit(a="\n".join(numbers) + "\n")
    repository.git("checkout", "-qb", "side")
    repository.commit(a="\n".join(number for number in numbers if number != "3") + "\n")
    repository.git("checkout", "-q", "main")
    repository.commit(a="\n".join(numbers[1:]) + "\n")
    repository.git("merge", "-q", "--no-commit", "side")
    merged = ["2", "resolved", *numbers[3:]]
    commit = repository.commit("Merge", a="\n".join(merged) + "\n")
    (change,) = read_commit(repository.repository, commit).files
    assert change.added == [(2, 2)]
