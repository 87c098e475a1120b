import os
import subprocess
from pathlib import Path

import pytest

from decklog.core.errors import Invalid
from decklog.provenance.formats.git_ai import read_note, read_notes, write_notes
from tests.provenance.repositories import GitFolder
from tests.provenance.text_repositories import TextFolder


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TextFolder:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    found = TextFolder(tmp_path / "repo")
    found.git("config", "user.name", "Ada")
    found.git("config", "user.email", "ada@example.org")
    return found


def test_written_notes_are_read_by_git_and_by_us(repository: TextFolder) -> None:
    first, second = repository.commit(a="1\n"), repository.commit(a="2\n")
    assert write_notes(repository.repository, {first: "one\n", second: "two ä\n"}) == 2
    assert repository.git("notes", "--ref=ai", "show", second) == "two ä"
    assert dict(read_notes(repository.repository)) == {first: "one\n", second: "two ä\n"}
    assert read_note(repository.repository, first) == "one\n"


def test_notes_of_git_are_read(repository: TextFolder) -> None:
    first = repository.commit(a="1\n")
    repository.git("notes", "--ref=ai", "add", "-m", "by git", first)
    assert dict(read_notes(repository.repository)) == {first: "by git\n"}


def test_second_write_keeps_other_notes_and_replaces_its_own(repository: TextFolder) -> None:
    first, second = repository.commit(a="1\n"), repository.commit(a="2\n")
    repository.git("notes", "--ref=ai", "add", "-m", "by git", first)
    write_notes(repository.repository, {second: "old\n"})
    write_notes(repository.repository, {second: "new\n"})
    assert dict(read_notes(repository.repository)) == {first: "by git\n", second: "new\n"}
    assert repository.git("rev-list", "--count", "refs/notes/ai") == "3"


def test_many_notes_are_read_after_git_fans_them_out(repository: TextFolder) -> None:
    commit = "commit refs/heads/many\ncommitter A <a@example.org> {} +0000\ndata 1\nx\n"
    repository.git("fast-import", "--quiet", given="".join(commit.format(1767225600 + number) for number in range(600)))
    commits = repository.git("rev-list", "many").split()
    notes = {commit: f"{number}\n" for number, commit in enumerate(commits)}
    write_notes(repository.repository, notes)
    assert len(repository.git("ls-tree", "--name-only", "refs/notes/ai").split()[0]) == 2
    assert dict(read_notes(repository.repository)) == notes


def test_repository_without_notes_has_none(repository: TextFolder) -> None:
    first = repository.commit(a="1\n")
    assert dict(read_notes(repository.repository)) == {}
    assert read_note(repository.repository, first) is None
    assert write_notes(repository.repository, {}) == 0
    assert repository.git("for-each-ref", "refs/notes") == ""


def test_only_the_ref_of_notes_changes(repository: TextFolder) -> None:
    first = repository.commit(a="1\n")
    repository.put("a", "staged\n")
    repository.git("add", "a")
    kept = {name: (repository.folder / ".git" / name).read_bytes() for name in ("HEAD", "index", "config", "logs/HEAD")}
    before = repository.git("for-each-ref")
    write_notes(repository.repository, {first: "one\n"})
    assert {name: (repository.folder / ".git" / name).read_bytes() for name in kept} == kept
    assert [line for line in repository.git("for-each-ref").split("\n") if "notes/ai" not in line] == [before]


def test_short_commit_id_is_refused(repository: TextFolder) -> None:
    with pytest.raises(Invalid):
        write_notes(repository.repository, {"HEAD": "text"})


def test_notes_travel_by_push_and_fetch(repository: TextFolder, tmp_path: Path) -> None:
    first = repository.commit(a="1\n")
    write_notes(repository.repository, {first: "one\n"})
    subprocess.run(["git", "clone", "-q", "--bare", repository.folder, tmp_path / "shared"], check=True)
    repository.git("push", "-q", str(tmp_path / "shared"), "refs/notes/ai")
    subprocess.run(["git", "clone", "-q", tmp_path / "shared", tmp_path / "clone"], check=True)
    fetch = ["git", "-C", tmp_path / "clone", "fetch", "-q", "origin", "refs/notes/ai:refs/notes/ai"]
    subprocess.run(fetch, check=True)
    assert dict(read_notes(GitFolder(tmp_path / "clone", is_new=False).repository)) == {first: "one\n"}
