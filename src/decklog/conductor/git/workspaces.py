"""Workspaces: a folder for each attempt, with a private repository that reads the user's objects and nothing else.

`keep` saves all that an attempt left: commits, other branches, the stash, commits that were reset away, and loose files. An agent
may have written to the `.git` of its workspace, so no git runs in it. Its refs are read as files, its objects without its
settings, and changed files are found by an index of ours.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from decklog.conductor import kill_points
from decklog.conductor.git.repository import HOME, Person, Repository, borrow_objects, ref_part, write_git_directory
from decklog.core.errors import DecklogError

BRANCH = "work"
LARGEST_IGNORED = 32 * 1024 * 1024
MOST_LEFT = 50
_LARGEST_FILE = 1024 * 1024


@dataclass(frozen=True)
class Workspace:
    """The folder of one attempt at a task. The agent sees `tree`."""

    folder: Path
    refs: str = ""

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def git(self) -> Path:
        return self.tree / ".git"

    @property
    def index(self) -> Path:
        """The index from when the workspace was made: an agent can mark files as unchanged in its own."""
        return self.folder / "index"

    @property
    def is_made(self) -> bool:
        return self.tree.is_dir()


def workspace(repository: Repository, run_id: str, task_id: str, fence: int) -> Workspace:
    """Return the workspace of an attempt."""
    run, task = ref_part(run_id), ref_part(task_id)
    return Workspace(repository.state / run / f"{task}-{fence}", f"{HOME}/{run}/tasks/{task}/{fence}")


def make(repository: Repository, place: Workspace, commit: str, person: Person) -> None:
    """Make a workspace with the files of a commit; remove what a crash left half made."""
    making = place.folder / "making"
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True, mode=0o700)
    place.index.unlink(missing_ok=True)
    repository.populate(commit, making, place.index)
    write_git_directory(
        making / ".git",
        branch=BRANCH,
        commit=commit,
        borrowed=repository.objects,
        person=person,
        is_sha256=repository.is_sha256,
    )
    # With its time, by which git finds files that changed in the second in which they were written.
    shutil.copy2(place.index, making / ".git/index")
    kill_points.reached("place:made")
    making.rename(place.tree)


def remove(place: Workspace) -> None:
    """Remove a workspace with everything in it, also what an agent made unwritable."""
    if place.tree.exists():
        # A half removed workspace must not be used as one.
        place.tree.rename(place.folder / "removing")
    kill_points.reached("place:removing")
    remove_folder(place.folder)


def remove_folder(folder: Path) -> None:
    """Remove a folder with everything in it, also what was made unwritable."""
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


# What an attempt left


@dataclass(frozen=True)
class KeptAttempt:
    """What an attempt left: the commit on its branch, its folder as a commit without and with ignored files, and the rest.

    `tip` is None when the branch is gone or its commit is not complete.
    """

    tip: str | None
    changed: str
    folder: str
    is_clean: bool
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        return {**vars(self), "left": list(self.left), "notes": list(self.notes)}


def keep(repository: Repository, place: Workspace, start: str, person: Person, at: int) -> KeptAttempt:
    """Save everything that an attempt left by refs of our own. Calling it again gives the same."""
    found = _Named(place)
    complete = _copied(repository, found, start)
    tip = found.tip if found.tip == start or found.tip in complete else None
    changed = _as_commit(repository, place, tip or start, person, at, is_all=False)
    folder, notes = changed, list(found.notes)
    ignored = _ignored_bytes(repository, place)
    if ignored > LARGEST_IGNORED:
        notes.append("ignored files are too large to be kept")
    elif ignored:
        folder = _as_commit(repository, place, changed, person, at, is_all=True)
    left = [sha for sha in complete if sha != tip] + _nested(repository, place, person, at)
    refs = {f"{place.refs}/folder": folder, f"{place.refs}/changed": changed, **({f"{place.refs}/tip": tip} if tip else {})}
    repository.set_refs(refs | {f"{place.refs}/left/{number}": sha for number, sha in enumerate(left, 1)})
    return KeptAttempt(tip, changed, folder, changed == (tip or start), tuple(left), tuple(notes))


def snapshot(repository: Repository, place: Workspace, start: str, person: Person, at: int) -> str:
    """Create a commit of a workspace's files, without ignored ones, while an agent works there; no ref holds it."""
    # Not in the workspace's folder, which the conductor may remove meanwhile.
    with tempfile.TemporaryDirectory(prefix="decklog-") as scratch:
        tree = _tree_of(repository, place.tree, place.index, Path(scratch, "index"), is_all=False)
    return start if tree == repository.tree(start) else repository.commit(tree, [start], "So far\n", person, at)


class _Named:
    """The commits that a workspace names, read from its files."""

    def __init__(self, place: Workspace) -> None:
        self.notes: list[str] = []
        self.objects: Path | None = None
        self.tip: str | None = None
        self.commits: list[str] = []
        if not _is_folder(place.git) or not _is_folder(place.git / "objects"):
            self.notes.append("the workspace has lost its repository")
            return
        self.objects = place.git / "objects"
        loose = {str(path.relative_to(place.git)): sha for path in _files(place.git / "refs") for sha in _shas(_read(path))[:1]}
        named = {**_packed(place.git), **loose}
        self.tip = named.get(f"refs/heads/{BRANCH}")
        logged = [sha for path in _files(place.git / "logs") for line in _read(path).splitlines() for sha in _shas(line)[:2]]
        everything = [*named.values(), *_shas(_read(place.git / "HEAD")), *logged]
        self.commits = [sha for sha in dict.fromkeys(everything) if set(sha) != {"0"}]


def _copied(repository: Repository, found: _Named, start: str) -> list[str]:
    """Copy the objects of the commits that a workspace names into the repository; return the complete ones."""
    new = [sha for sha in found.commits if sha != start][-MOST_LEFT:]
    if found.objects is None or not new:
        return []
    # An agent may have made the workspace borrow from elsewhere.
    borrow_objects(found.objects.parent, repository.objects)
    new.sort(key=lambda sha: sha != found.tip)
    complete = [sha for sha in new if _is_fetched(repository, found.objects, sha, start)]
    if len(complete) < len(new):
        found.notes.append(f"{len(new) - len(complete)} of the commits that the workspace names are not complete")
    return complete


def _is_fetched(repository: Repository, objects: Path, sha: str, start: str) -> bool:
    if repository.has(sha):
        return True
    try:
        wanted = f"{sha}^{{commit}}\n^{start}\n".encode()
        pack = repository.on_objects("pack-objects", "--revs", "--stdout", "-q", given=wanted, also=objects).out
        repository.on_objects("unpack-objects", "-q", "--strict", given=pack)
        return repository.has(sha)
    except DecklogError:
        # Damaged, half written, or refused by git. The folder's files are kept all the same.
        return False


def _as_commit(repository: Repository, place: Workspace, parent: str, person: Person, at: int, *, is_all: bool) -> str:
    tree = _tree_of(repository, place.tree, place.index, place.folder / "index.keeping", is_all=is_all)
    if tree == repository.tree(parent):
        return parent
    return repository.commit(tree, [parent], "What an attempt left\n", person, at)


def _tree_of(repository: Repository, folder: Path, index: Path | None, own: Path, *, is_all: bool) -> str:
    """Write the tree of a folder's files by an index of our own, which is removed."""
    own.unlink(missing_ok=True)
    if index is not None and index.is_file():
        # With its time, by which git finds files that changed in the second in which they were written.
        shutil.copy2(index, own)
    variables = {"GIT_WORK_TREE": str(folder), "GIT_INDEX_FILE": str(own)}
    words = ("add", "--all", "--force", ".") if is_all else ("add", "--all", ".")
    # A nested repository is added as a link to its commit; its files are kept separately.
    repository.on_objects("-C", str(folder), *words, variables=variables)
    tree = repository.on_objects("write-tree", variables=variables).text
    own.unlink()
    return tree


def _ignored_bytes(repository: Repository, place: Workspace) -> int:
    variables = {"GIT_WORK_TREE": str(place.tree), "GIT_INDEX_FILE": str(place.index)}
    words = ("-C", str(place.tree), "ls-files", "--others", "--ignored", "--exclude-standard", "-z")
    listed = repository.on_objects(*words, variables=variables).out
    total = 0
    for name in listed.split(b"\0"):
        try:
            total += os.lstat(os.path.join(os.fsencode(place.tree), name)).st_size if name else 0
        except OSError:
            continue  # gone since it was listed
    return total


def _nested(repository: Repository, place: Workspace, person: Person, at: int) -> list[str]:
    """Keep the files of repositories that were made inside of the workspace."""
    found = []
    for folder, names, files in os.walk(place.tree):
        if folder != str(place.tree) and ".git" in (*names, *files):
            tree = _tree_of(repository, Path(folder), None, Path(folder).parent / "index.keeping", is_all=True)
            found.append(repository.commit(tree, [], f"A repository in {Path(folder).name}\n", person, at))
        names[:] = [name for name in names if name != ".git"]
    return found


# What the files of a workspace's repository name


def _packed(git: Path) -> dict[str, str]:
    lines = _read(git / "packed-refs").splitlines()
    parts = [line.split(" ", 1) for line in lines if line[:1] not in ("#", "^") and " " in line]
    return {name: sha for sha, name in parts if _shas(sha)}


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in sorted(names))


def _read(path: Path) -> str:
    """Read a small plain file; anything else is empty."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        return file.read(_LARGEST_FILE).decode(errors="replace")


def _shas(text: str) -> list[str]:
    return [word for word in text.split() if len(word) in (40, 64) and not set(word) - set("0123456789abcdef")]


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
