"""Places: a folder for each attempt, with a repository of its own that borrows the user's objects and has nothing else of it."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from decklog.conductor import kill_points
from decklog.conductor.git import skeleton
from decklog.conductor.git.repository import HOME, Person, Repository, ref_part

BRANCH = "work"


@dataclass(frozen=True)
class Workspace:
    """Where one attempt at a task works. Everything of it lies in `folder`; the agent sees `tree`."""

    folder: Path
    refs: str

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def git(self) -> Path:
        return self.tree / ".git"

    @property
    def index(self) -> Path:
        """The index as it was when the place was made: what an agent marks as unchanged in its own says nothing here."""
        return self.folder / "index"

    @property
    def is_made(self) -> bool:
        return self.tree.is_dir()


def place_of(repository: Repository, run_id: str, task_id: str, fence: int) -> Workspace:
    """Name the place of an attempt."""
    run, task = ref_part(run_id), ref_part(task_id)
    return Workspace(repository.state / run / f"{task}-{fence}", f"{HOME}/{run}/tasks/{task}/{fence}")


def make(repository: Repository, place: Workspace, commit: str, person: Person) -> None:
    """Make a place with the files of a commit; a half that a crash left is dropped first."""
    making = place.folder / "making"
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True, mode=0o700)
    place.index.unlink(missing_ok=True)
    fill(repository, making, place.index, commit, person)
    kill_points.reached("place:made")
    making.rename(place.tree)


def fill(repository: Repository, folder: Path, index: Path, commit: str, person: Person) -> None:
    """Have a folder hold the files of a commit, and a repository of its own; the index knows what the folder holds before."""
    repository.populate(commit, folder, index)
    skeleton.write(
        folder / ".git",
        branch=BRANCH,
        commit=commit,
        borrowed=repository.objects,
        settings=f"[user]\n\tname = {skeleton.quoted(person.name)}\n\temail = {skeleton.quoted(person.email)}\n",
        is_sha256=repository.is_sha256,
    )
    # With its time: git tells by it which files may have changed in the second in which they were written.
    shutil.copy2(index, folder / ".git/index")


def remove(place: Workspace) -> None:
    """Remove a place with everything in it, also what an agent made unwritable."""
    if place.tree.exists():
        # A place that is half removed must not be taken for one.
        place.tree.rename(place.folder / "removing")
    kill_points.reached("place:removing")
    remove_folder(place.folder)


def remove_folder(folder: Path) -> None:
    """Remove a folder with everything in it, whatever an agent or a check made of it."""
    shutil.rmtree(folder, onerror=_insist)


def _insist(function: object, path: str, _problem: object) -> None:
    """Try again after making the folder around a path writable."""
    for folder in (os.path.dirname(path), path):
        if os.path.isdir(folder) and not os.path.islink(folder):
            os.chmod(folder, 0o700)
    if function in (os.rmdir, os.unlink):
        function(path)
    elif os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
