"""Calls of git that stay open answer as others do, and commits that are made without git are those that git makes."""

import os
import signal
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.conductor.conductor import Conductor
from decklog.conductor.git import kept_open
from decklog.conductor.git.repository import Person, Repository
from decklog.core.errors import DecklogError
from decklog.guard.shell import process_tree
from tests.conductor.plans import Work, landed_titles, piece
from tests.conductor.repositories import git, write
from tests.conductor.test_places import ANA

TARGET = "refs/decklog/run_1/target"


@pytest.fixture
def commits(repository: Repository) -> list[str]:
    """Three commits, each with other files."""
    found = [git(repository.folder, "rev-parse", "HEAD")]
    for number in range(2):
        # A line that looks like what comes between two answers.
        write(repository.folder, {f"new{number}.txt": f"end {number}\n", "notes.txt": f"{number}\n\0"})
        git(repository.folder, "add", "-A")
        git(repository.folder, "commit", "-q", "-m", f"{number}")
        found.append(git(repository.folder, "rev-parse", "HEAD"))
    return found


def _open_calls() -> list[int]:
    return [one.pid for one in process_tree.everyone() if one.parent == os.getpid() and not one.is_dead]


def test_a_ref_moves_by_an_open_call_only_from_where_it_was_seen(repository: Repository, commits: list[str]) -> None:
    first, second, third = commits
    with repository.kept_open():
        repository.set_refs({TARGET: first, "refs/decklog/run_1/other": first})
        assert repository.swap_ref(TARGET, second, first)
        assert not repository.swap_ref(TARGET, third, first)
        assert repository.swap_ref(TARGET, third, second)
        git(repository.folder, "pack-refs", "--all")
        assert not repository.swap_ref(TARGET, first, second)
        assert repository.swap_ref(TARGET, first, third)
    assert repository.refs("refs/decklog") == {TARGET: first, "refs/decklog/run_1/other": first}


def test_a_run_that_is_over_leaves_no_process_of_its_own(sqlite_target: str, checked: Path) -> None:
    before = _open_calls()
    seen: set[int] = set()
    with Decklog.open(sqlite_target) as log:
        site = Work(log, checked, piece("it", ["write", "b.txt", "1\n"])).site()
        Conductor(site, lambda: seen.update(_open_calls())).run()
        assert landed_titles(site) == ["Piece it"]
    assert seen - set(before), "git stays open during the run"
    assert _open_calls() == before


def test_trees_are_compared_by_an_open_call_as_by_others(repository: Repository, commits: list[str]) -> None:
    trees = [repository.tree(commit) for commit in commits]
    pairs = [(one, other) for one in trees for other in trees]
    alone = [repository.compared(*pair) for pair in pairs]
    with repository.kept_open():
        assert [repository.compared(*pair) for pair in pairs] == alone
        with pytest.raises(DecklogError, match="diff-tree"):
            repository.compared(trees[0], "0" * 40)
        assert repository.compared(*pairs[1]) == alone[1]


def test_a_call_that_is_killed_or_has_rested_comes_back_and_none_outlives_the_block(
    repository: Repository, commits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_open, "MOST_ANSWERS", 3)
    before, trees = set(_open_calls()), [repository.tree(commit) for commit in commits]
    seen = set()
    with repository.kept_open():
        for number in range(9):
            repository.set_refs({TARGET: commits[number % 3]})
            assert repository.compared(trees[0], trees[1]).startswith(b":")
            opened = set(_open_calls()) - before
            seen |= opened
            if number == 4:
                repository.rest(60.0)
                assert set(_open_calls()) - before == opened
                repository.rest(0.0)
                assert set(_open_calls()) - before == set()
            elif number == 6:
                for call in opened:
                    os.kill(call, signal.SIGKILL)
        assert repository.ref(TARGET) == commits[2]
    assert set(_open_calls()) - before == set()
    assert len(seen) == 2 * 4


# In whose name, how many commits before it, and the message. What git would not write as it is given is left to git.
MADE = [
    ("Ana", 0, "Title\n\nDecklog-Run: run_1\n"),
    ("Ana", 1, "Änderung\n"),
    ("Änne Ø", 2, "Title\n"),
    *((name, 1, "Title\n") for name in ("  Ana. ", "A <b> c", '"Ana"', "\N{GRINNING FACE}", "x\ny")),
    ("Ana", 1, "\N{GRINNING FACE}\n"),
]


def test_a_commit_that_is_made_without_git_is_the_one_that_git_makes(repository: Repository, commits: list[str]) -> None:
    tree, path = repository.tree(commits[1]), repository.state / "message"
    for name, number, message in MADE:
        person, parents = Person(name, "ana@example.test"), commits[:number]
        who = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in _parts(person).items()}
        path.write_text(message, encoding="utf-8")
        words = [word for parent in parents for word in ("-p", parent)]
        wanted = git(repository.folder, "commit-tree", tree, *words, "-F", str(path), **who)
        assert repository.commit(tree, parents, message, person, 1_700_000_000) == wanted, (name, number, message)
    assert git(repository.folder, "fsck", "--strict", "--no-dangling") == ""


def _parts(person: Person) -> dict[str, str]:
    return {"NAME": person.name, "EMAIL": person.email, "DATE": "@1700000000 +0000"}


def test_a_commit_lies_whole_where_git_finds_it_and_is_made_once(repository: Repository, commits: list[str]) -> None:
    first, second, _ = commits
    tree = repository.tree(second)
    made = {repository.commit(tree, [first], "Once\n", ANA, 7) for _ in range(2)}
    (name,) = made
    path = repository.objects / name[:2] / name[2:]
    assert (oct(path.stat().st_mode & 0o777), [one.name for one in path.parent.glob("tmp_obj_*")]) == ("0o444", [])
    assert git(repository.folder, "log", "-1", "--format=%T %P %an %at %s", name) == f"{tree} {first} Ana 7 Once"


@pytest.mark.parametrize("missing", ["tree", "parent"])
def test_a_commit_of_what_is_not_here_is_refused(repository: Repository, commits: list[str], missing: str) -> None:
    tree = "1" * 40 if missing == "tree" else repository.tree(commits[0])
    parent = "1" * 40 if missing == "parent" else commits[0]
    with pytest.raises(DecklogError, match="commit-tree"):
        repository.commit(tree, [parent], "Nothing\n", ANA, 7)


def test_where_no_object_can_be_written_git_says_so(repository: Repository, commits: list[str], tmp_path: Path) -> None:
    tree = repository.tree(commits[1])
    repository.objects = tmp_path / "nowhere"
    with pytest.raises(DecklogError, match="commit-tree"):
        repository.commit(tree, [commits[0]], "Nowhere\n", ANA, 7)
