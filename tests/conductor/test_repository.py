"""Git called on the user's repository: commits are reproducible, and nothing is left running."""

import os
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.conductor.conductor import Conductor
from decklog.conductor.git.repository import Person, Repository
from decklog.core.errors import DecklogError
from decklog.guard.shell import process_tree
from tests.conductor.plans import Work, landed_titles, work_item
from tests.conductor.repositories import git, write
from tests.conductor.test_places import ANA


@pytest.fixture
def commits(repository: Repository) -> list[str]:
    """Three commits, each with other files."""
    found = [git(repository.folder, "rev-parse", "HEAD")]
    for number in range(2):
        write(repository.folder, {f"new{number}.txt": f"{number}\n"})
        git(repository.folder, "add", "-A")
        git(repository.folder, "commit", "-q", "-m", f"{number}")
        found.append(git(repository.folder, "rev-parse", "HEAD"))
    return found


def test_the_same_arguments_give_the_same_commit(repository: Repository, commits: list[str]) -> None:
    tree = repository.tree(commits[1])
    for name in ("Ana", "Änne Ø", "  Ana. ", "A <b> c", "\N{GRINNING FACE}"):
        made = {repository.commit(tree, [commits[0]], "Änderung\n", Person(name, "ana@example.test"), 7) for _ in range(2)}
        assert len(made) == 1
        assert repository.tree(made.pop()) == tree
    assert git(repository.folder, "fsck", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize("missing", ["tree", "parent"])
def test_a_commit_of_a_missing_object_is_refused(repository: Repository, commits: list[str], missing: str) -> None:
    tree = "1" * 40 if missing == "tree" else repository.tree(commits[0])
    parent = "1" * 40 if missing == "parent" else commits[0]
    with pytest.raises(DecklogError, match="commit-tree"):
        repository.commit(tree, [parent], "Nothing\n", ANA, 7)


def _children() -> list[int]:
    return [one.pid for one in process_tree.all_processes() if one.parent == os.getpid() and not one.is_dead]


@pytest.mark.slow
def test_a_run_that_is_over_leaves_no_process_and_no_folder_of_a_check(sqlite_target: str, checked: Path) -> None:
    before = _children()
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, work_item("it", ["write", "b.txt", "1\n"])).context()
        Conductor(context).run()
        assert landed_titles(context) == ["Item it"]
        assert list(context.checks_folder.glob("*/*")) == []
    assert _children() == before
