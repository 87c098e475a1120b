"""Checks run on exactly one tree: a folder that served another check before is proven to be as it was made, or made anew."""

import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.conductor.checks.checkouts import Checkouts
from decklog.conductor.git import removal as removals
from decklog.conductor.git.removal import Removal
from decklog.conductor.git.repository import Repository
from tests.conductor.plans import Work, landed_titles, piece
from tests.conductor.repositories import git, write
from tests.conductor.test_places import ANA
from tests.every import every


class Ground:
    """A repository with two commits, and folders for checks of them."""

    def __init__(self, repository: Repository, folder: Path) -> None:
        self.repository, self.folder = repository, folder
        self.removal = Removal()
        self.checkouts = Checkouts(self.removal)
        self.first = git(repository.folder, "rev-parse", "HEAD")
        write(repository.folder, {"src/more.py": "more = 1\n", "notes.txt": "other\n"})
        git(repository.folder, "add", "-A")
        git(repository.folder, "commit", "-q", "-m", "Second")
        self.second = git(repository.folder, "rev-parse", "HEAD")

    def check(self, commit: str, act: Callable[[Path], object] = lambda _: None, *, is_left_well: bool = True) -> Path:
        """Have a check of a commit do something in its folder; give the folder."""
        with self.checkouts.of(self.repository, commit, ANA, self.folder) as checkout:
            assert git(checkout.tree, "status", "--porcelain", "--ignored") == ""
            assert git(checkout.tree, "rev-parse", "HEAD") == commit
            assert git(checkout.tree, "hash-object", "notes.txt") == git(
                self.repository.folder, "rev-parse", f"{commit}:notes.txt"
            )
            act(checkout.tree)
            checkout.is_left_well = is_left_well
            return checkout.folder


@pytest.fixture
def ground(repository: Repository, tmp_path: Path) -> Iterator[Ground]:
    made = Ground(repository, tmp_path / "checks")
    with made.removal.later(tmp_path / "removed/one"), made.checkouts.kept(1):
        yield made


def _leave_behind(tree: Path) -> None:
    """Do what test runners do: leave files of their own, also in folders that were there."""
    write(tree, {".pytest_cache/v/cache": "1\n", "src/__pycache__/more.pyc": "old\n"})
    (tree / "link").symlink_to("/etc")


def test_a_folder_that_a_check_left_as_it_was_serves_the_next_commit(ground: Ground) -> None:
    used = [ground.check(commit, _leave_behind) for commit in (ground.first, ground.second, ground.first)]
    assert len(set(used)) == 1


def _write_through_memory(tree: Path) -> None:
    with open(tree / "notes.txt", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:1] = b"X"


def _same_times_again(tree: Path) -> None:
    before = (tree / "notes.txt").stat()
    text = (tree / "notes.txt").read_text()
    (tree / "notes.txt").write_text(text.swapcase())
    os.utime(tree / "notes.txt", ns=(before.st_atime_ns, before.st_mtime_ns))


def _replaced(tree: Path) -> None:
    (tree / "same").write_bytes((tree / "notes.txt").read_bytes())
    (tree / "same").rename(tree / "notes.txt")


def _second_name(tree: Path) -> None:
    os.link(tree / "notes.txt", tree.parent / "mine")


SPOILING: dict[str, Callable[[Path], object]] = {
    "a file is written through memory": _write_through_memory,
    "a file is written and has its times again": _same_times_again,
    "a file is another with the same content": _replaced,
    "a file has a second name elsewhere": _second_name,
    "a file is gone": lambda tree: (tree / "notes.txt").unlink(),
    "a file has another mode": lambda tree: (tree / "notes.txt").chmod(0o755),
    "a folder has another mode": lambda tree: (tree / "src").chmod(0o500),
    "a folder is a link": lambda tree: ((tree / "src").rename(tree / "elsewhere"), (tree / "src").symlink_to("elsewhere")),
    "the index that we keep is another": lambda tree: (tree.parent / "index").write_bytes(b"DIRC"),
    "all is gone": lambda tree: tree.rename(tree.parent / "away"),
}


@every("name", SPOILING, ids=list(SPOILING))
def test_a_folder_that_a_check_changed_is_never_used_again(ground: Ground, name: str) -> None:
    spoilt = ground.check(ground.second, SPOILING[name])
    assert ground.check(ground.first) != spoilt
    assert not spoilt.exists()


def test_settings_that_a_check_left_in_its_repository_are_gone(ground: Ground) -> None:
    def harm(tree: Path) -> None:
        git(tree, "config", "core.fsmonitor", "touch /tmp/never")
        write(tree, {".git/hooks/post-checkout": "#!/bin/sh\n"})

    folder = ground.check(ground.first, harm)

    def look(tree: Path) -> None:
        assert "fsmonitor" not in (tree / ".git/config").read_text()
        assert not (tree / ".git/hooks").exists()

    assert ground.check(ground.second, look) == folder


def test_a_check_that_did_not_come_to_its_own_end_leaves_nothing_that_is_used(ground: Ground) -> None:
    assert ground.check(ground.first, is_left_well=False) != ground.check(ground.second)


def test_what_is_removed_later_is_gone_from_its_place_at_once_and_from_the_disk_in_the_end(tmp_path: Path) -> None:
    removal, aside = Removal(), tmp_path / "removed/one"
    write(tmp_path, {"mine/tree/a.txt": "a\n", "other/b.txt": "b\n"})
    (tmp_path / "mine/tree").chmod(0o500)
    with removal.later(aside):
        removal.take(tmp_path / "mine")
        assert not (tmp_path / "mine").exists()
        assert [path.read_text() for path in aside.rglob("a.txt")] == ["a\n"]
        removal.finish()
        assert list(aside.iterdir()) == []
        removal.take(tmp_path / "other")
    assert not aside.exists()


def test_no_more_is_moved_aside_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removals, "MOST_ASIDE", 2)
    removal, aside = Removal(), tmp_path / "removed/one"
    write(tmp_path, {f"{number}/a.txt": "a\n" for number in range(4)})
    with removal.later(aside):
        for number in range(4):
            removal.take(tmp_path / str(number))
        assert (removal.is_full, len(list(aside.iterdir()))) == (True, 2)
        removal.finish()
        assert not removal.is_full


def test_checks_of_one_run_share_a_folder_and_a_run_leaves_none(log: Decklog, checked: Path) -> None:
    site = Work(log, checked, *(piece(name, ["write", f"{name}.txt", "1\n"]) for name in ("one", "two"))).run()
    assert len(landed_titles(site)) == 2
    assert list(site.checks_folder.glob("*/*")) == list(site.removed_folder.glob("*")) == []
