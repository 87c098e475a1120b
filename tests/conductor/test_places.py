"""An attempt has a place of its own, what it left is kept, and nothing of the user's is touched."""

import os
import shutil
import stat
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from decklog import Conflict, Invalid, NotFound
from decklog.conductor.cleaning import kept
from decklog.conductor.git import changes, workspaces
from decklog.conductor.git.repository import Person, Repository, ref_part, starting_commit
from decklog.conductor.git.workspaces import KeptAttempt, Workspace, keep, workspace
from tests.conductor.repositories import everything, git, make_repository, write
from tests.waiting import wait_until

ANA = Person("Ana", "ana@example.test")


class Attempt:
    """An attempt at a task of the repository."""

    def __init__(self, repository: Repository, fence: int = 1) -> None:
        self.repository = repository
        self.start = starting_commit(repository, "HEAD")
        self.place = workspace(repository, "run_1", "lexer.w1", fence)
        workspaces.make(repository, self.place, self.start, ANA)

    @property
    def tree(self) -> Path:
        return self.place.tree

    def keep(self) -> KeptAttempt:
        return keep(self.repository, self.place, self.start, ANA, 1_700_000_000)

    def is_done(self, kept: KeptAttempt) -> bool:
        """Say whether what was left would go on to the checks."""
        if kept.tip is None or not kept.is_clean:
            return False
        return not changes.find_faults(self.repository, self.start, self.start, kept.tip, ["src/**", "*.py"])


@pytest.fixture
def attempt(repository: Repository) -> Attempt:
    return Attempt(repository)


def test_a_place_has_the_files_of_its_commit_and_a_repository_of_its_own(attempt: Attempt) -> None:
    assert git(attempt.tree, "status", "--porcelain") == ""
    assert git(attempt.tree, "log", "--format=%s") == "First"
    assert git(attempt.tree, "config", "user.name") == "Ana"
    assert Path(git(attempt.tree, "rev-parse", "--absolute-git-dir")).parent == attempt.tree


def test_looking_at_a_place_leaves_nothing_in_it_that_is_in_the_way_of_its_removal(attempt: Attempt) -> None:
    write(attempt.tree, {"src/lexer.py": "tokens = []\n"})
    folder = attempt.place.folder
    before, seen = sorted(os.listdir(folder)), []
    call = attempt.repository.on_objects

    def looked(*words: str, **given: Any) -> Any:
        seen.append(sorted(os.listdir(folder)))
        return call(*words, **given)

    attempt.repository.on_objects = looked  # type: ignore[method-assign]
    commit = workspaces.snapshot(attempt.repository, attempt.place, attempt.start, ANA, 1_700_000_000)
    assert git(attempt.repository.folder, "show", f"{commit}:src/lexer.py") == "tokens = []"
    assert seen
    assert all(one == before for one in seen)


def test_what_an_agent_commits_comes_back_and_is_held_by_a_ref(attempt: Attempt) -> None:
    write(attempt.tree, {"src/lexer.py": "tokens = []\n"})
    git(attempt.tree, "add", "-A")
    git(attempt.tree, "commit", "-q", "-m", "Lexer")
    kept = attempt.keep()
    assert attempt.is_done(kept)
    assert attempt.keep() == kept
    workspaces.remove(attempt.place)
    assert git(attempt.repository.folder, "show", f"{attempt.place.refs}/tip:src/lexer.py") == "tokens = []"


def _nothing(_: Attempt) -> None:
    return


def _empty_commit(attempt: Attempt) -> None:
    git(attempt.tree, "commit", "-q", "--allow-empty", "-m", "Done")


def _uncommitted(attempt: Attempt) -> None:
    write(attempt.tree, {"calc.py": "LEFT\n"})


def _other_branch(attempt: Attempt) -> None:
    git(attempt.tree, "switch", "-q", "-c", "elsewhere")
    _commit(attempt)


def _stash(attempt: Attempt) -> None:
    write(attempt.tree, {"calc.py": "LEFT\n"})
    git(attempt.tree, "stash", "-q")


def _white_space(attempt: Attempt) -> None:
    write(attempt.tree, {"calc.py": "def add(a, b):  \n\n    return a + b\n\n"})
    git(attempt.tree, "commit", "-q", "-a", "-m", "LEFT")


def _detached(attempt: Attempt) -> None:
    git(attempt.tree, "checkout", "-q", "--detach")
    _commit(attempt)


def _reset_away(attempt: Attempt) -> None:
    _commit(attempt)
    git(attempt.tree, "reset", "-q", "--hard", "HEAD^")


def _untracked(attempt: Attempt) -> None:
    write(attempt.tree, {"src/new.py": "LEFT\n"})


def _ignored(attempt: Attempt) -> None:
    write(attempt.tree, {"build.log": "LEFT\n"})


def _submodule(attempt: Attempt) -> None:
    inner = make_repository(attempt.tree / "src/inner", {"a.py": "LEFT\n"})
    git(attempt.tree, "add", "src/inner")
    git(attempt.tree, "commit", "-q", "-m", "Done")
    assert inner.is_dir()


def _wrong_folder(attempt: Attempt) -> None:
    write(attempt.tree, {"elsewhere/calc.txt": "LEFT\n"})
    git(attempt.tree, "add", "-A")
    git(attempt.tree, "commit", "-q", "-m", "Done")


def _no_repository(attempt: Attempt) -> None:
    write(attempt.tree, {"calc.py": "LEFT\n"})
    shutil.rmtree(attempt.tree / ".git")


def _commit(attempt: Attempt) -> None:
    write(attempt.tree, {"calc.py": "LEFT\n"})
    git(attempt.tree, "commit", "-q", "-a", "-m", "LEFT")


WAYS = [
    *(_nothing, _empty_commit, _uncommitted, _other_branch, _stash, _white_space, _detached, _reset_away),
    *(_untracked, _ignored, _submodule, _wrong_folder, _no_repository),
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
def test_saying_done_without_it_is_not_done_and_what_was_left_is_kept(attempt: Attempt, way: Callable[[Attempt], None]) -> None:
    way(attempt)
    kept = attempt.keep()
    assert not attempt.is_done(kept)
    workspaces.remove(attempt.place)
    if way not in (_nothing, _empty_commit):
        held = git(attempt.repository.folder, "for-each-ref", "--format=%(refname)", attempt.place.refs).split()
        texts = [git(attempt.repository.folder, "log", "-m", "-p", "--format=%s", name) for name in held]
        assert any("LEFT" in text for text in texts)


@pytest.mark.slow
def test_a_change_of_as_many_bytes_in_the_second_in_which_the_place_was_made_is_seen(repository: Repository) -> None:
    def next_second() -> int:
        now = int(time.time())
        wait_until(lambda: int(time.time()) > now)
        return now + 1

    # Git compares whole seconds: made and changed in one, looked at in the next.
    next_second()
    attempt = Attempt(repository)
    text = (attempt.tree / "calc.py").read_text()
    write(attempt.tree, {"calc.py": text.replace("a + b", "a - b")})
    next_second()
    assert "calc.py" in git(attempt.tree, "status", "--porcelain"), "the agent's own git sees it too"
    kept = attempt.keep()
    assert "a - b" in git(repository.folder, "show", f"{kept.changed}:calc.py")


def test_what_an_agent_hides_from_its_own_index_is_seen(attempt: Attempt) -> None:
    git(attempt.tree, "update-index", "--assume-unchanged", "calc.py")
    write(attempt.tree, {"calc.py": "hidden = 1\n"})
    assert git(attempt.tree, "status", "--porcelain") == ""
    assert not attempt.keep().is_clean


def test_links_in_a_place_lead_the_conductor_nowhere(attempt: Attempt, tmp_path: Path) -> None:
    outside = make_repository(tmp_path / "outside", {"secret.txt": "hidden\n"})
    shutil.rmtree(attempt.place.git)
    (attempt.tree / ".git").symlink_to(outside / ".git")
    kept = attempt.keep()
    assert (kept.tip, kept.left) == (None, ())
    hidden = git(outside, "rev-parse", "HEAD")
    assert attempt.repository.resolve(hidden) is None


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "out of bounds": (lambda tree: write(tree, {"docs/a.txt": "a\n"}), "out-of-bounds"),
    "link out": (lambda tree: os.symlink("../../etc/passwd", tree / "b.py"), "link-out"),
    "absolute link": (lambda tree: os.symlink("/etc/passwd", tree / "b.py"), "link-out"),
    "marker": (lambda tree: write(tree, {"b.py": "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"}), "conflict-marker"),
    "large": (lambda tree: write(tree, {"b.py": "a" * (changes.LARGEST_FILE + 1)}), "too-large"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_change_that_no_tree_may_have_is_named(attempt: Attempt, fault: str) -> None:
    act, signature = FAULTS[fault]
    act(attempt.tree)
    git(attempt.tree, "add", "-A")
    git(attempt.tree, "commit", "-q", "-m", "Change")
    tip = attempt.keep().tip
    assert tip is not None
    found = changes.find_faults(attempt.repository, attempt.start, attempt.start, tip, ["src/**", "*.py"])
    assert [one.signature for one in found] == [signature]


def test_a_rewritten_history_is_no_change(attempt: Attempt) -> None:
    git(attempt.tree, "checkout", "-q", "--orphan", "fresh")
    _commit(attempt)
    git(attempt.tree, "branch", "-q", "-M", "fresh", workspaces.BRANCH)
    tip = attempt.keep().tip
    assert tip is not None
    faults = changes.find_faults(attempt.repository, attempt.start, attempt.start, tip, [])
    assert [one.signature for one in faults] == ["history"]


def test_a_place_that_was_half_made_is_made_anew(repository: Repository) -> None:
    place = workspace(repository, "run_1", "lexer.w1", 1)
    write(place.folder / "making", {"calc.py": "half"})
    assert not place.is_made
    workspaces.make(repository, place, starting_commit(repository, "HEAD"), ANA)
    assert git(place.tree, "status", "--porcelain") == ""


def test_a_place_is_removed_also_where_an_agent_made_it_unwritable(attempt: Attempt) -> None:
    write(attempt.tree, {"deep/er/file.txt": "x"})
    for path in (attempt.tree / "deep/er", attempt.tree / "deep"):
        path.chmod(stat.S_IRUSR)
    workspaces.remove(attempt.place)
    assert not attempt.place.folder.exists()


def test_forty_places_are_made_at_a_time(repository: Repository) -> None:
    start = starting_commit(repository, "HEAD")

    def one(number: int) -> Workspace:
        place = workspace(repository, "run_1", f"item{number}.w1", 1)
        workspaces.make(repository, place, start, ANA)
        keep(repository, place, start, ANA, 1)
        return place

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(one, range(40 if os.environ.get("DECKLOG_TEST_FULL") else 10)))
    assert all(place.is_made for place in made)
    assert set(repository.refs("refs/decklog")) == {
        f"{place.refs}/{name}" for place in made for name in ("changed", "folder", "tip")
    }


def test_the_users_own_files_index_branches_and_settings_stay_byte_for_byte(folder: Path, repository: Repository) -> None:
    write(folder, {"calc.py": "half an idea\n", "untracked.txt": "mine\n", "staged.txt": "staged\n"})
    git(folder, "add", "staged.txt")
    before = everything(folder)
    attempt = Attempt(repository)
    _commit(attempt)
    tip = attempt.keep().tip
    assert tip is not None
    merged = repository.merge(attempt.start, tip)
    commit = repository.commit(merged.tree, [attempt.start], "Landed\n", ANA, 1)
    repository.set_refs({"refs/decklog/run_1/target": attempt.start})
    assert repository.swap_ref("refs/decklog/run_1/target", commit, attempt.start)
    workspaces.remove(attempt.place)
    assert everything(folder) == before


def test_a_ref_moves_only_from_where_it_was_seen(repository: Repository) -> None:
    start = starting_commit(repository, "HEAD")
    target = "refs/decklog/run_1/target"
    one, other = (repository.commit(repository.tree(start), [start], f"{name}\n", ANA, 1) for name in ("one", "other"))
    repository.set_refs({target: start})
    assert repository.swap_ref(target, one, start)
    assert not repository.swap_ref(target, other, start)
    assert repository.ref(target) == one


def test_no_ref_but_our_own_is_written(repository: Repository) -> None:
    start = starting_commit(repository, "HEAD")
    with pytest.raises(Invalid, match="refs/decklog"):
        repository.set_refs({"refs/heads/main": start})
    with pytest.raises(Invalid, match="refs/decklog"):
        repository.swap_ref("refs/heads/main", start, start)


@pytest.mark.parametrize("name", ["run_1", "a.b", "..", "a.lock", "a b~^:?*[\\", "ünï", ".hidden", "end.", "@{1}"])
def test_any_name_can_be_a_part_of_a_ref(repository: Repository, name: str) -> None:
    start = starting_commit(repository, "HEAD")
    ref = f"refs/decklog/{ref_part(name)}/target"
    repository.set_refs({ref: start})
    assert repository.ref(ref) == start


@pytest.mark.parametrize("name", ["sessions", "Sessions"])
def test_a_run_named_sessions_has_other_refs_than_sessions_have(repository: Repository, name: str) -> None:
    start = starting_commit(repository, "HEAD")
    target = f"refs/decklog/{ref_part(name)}/target"
    repository.set_refs({target: start, "refs/decklog/sessions/claude-1": start})
    assert not target.lower().startswith("refs/decklog/sessions/")
    assert [one.ref for one in kept(repository)] == [one.ref for one in kept(repository, name)] == [target]


def test_a_repository_is_found_from_beneath_whatever_its_folder_is_called(folder: Path, tmp_path: Path) -> None:
    for name in ("two\nlines", "space at the end ", "ünï"):
        moved = folder.rename(tmp_path / name)
        (moved / "beneath").mkdir(exist_ok=True)
        found = Repository.find(moved / "beneath", tmp_path / "state")
        assert (found.folder, found.common, found.person()) == (moved, moved / ".git", ANA)
        folder = moved


def test_a_folder_that_no_plan_can_be_worked_through_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="not in a git repository"):
        Repository.find(tmp_path, tmp_path / "state")
    git(tmp_path, "clone", "-q", "--bare", str(folder), str(tmp_path / "bare"))
    with pytest.raises(Invalid, match="bare"):
        Repository.find(tmp_path / "bare", tmp_path / "state")
    with pytest.raises(Invalid, match=r"inside a \.git directory"):
        Repository.find(folder / ".git", tmp_path / "state")
    write(folder, {"b.py": "1\n"})
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Second")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{folder}", str(tmp_path / "shallow"))
    with pytest.raises(Invalid, match="shallow clone"):
        Repository.find(tmp_path / "shallow", tmp_path / "state")
    (tmp_path / "unborn").mkdir()
    git(tmp_path / "unborn", "init", "-q")
    unborn = Repository.find(tmp_path / "unborn", tmp_path / "state")
    with pytest.raises(Conflict, match="no commit yet"):
        starting_commit(unborn, "HEAD")
    with pytest.raises(NotFound, match="nowhere"):
        starting_commit(unborn, "nowhere")
