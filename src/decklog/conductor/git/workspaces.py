"""Workspaces: a folder for each attempt, with a private repository that reads only the user's objects.

`keep` saves all work of an attempt: commits, other branches, the stash, commits that were reset away, and loose files. An agent
may have changed the `.git` of its workspace, so git never runs in it. Refs are read as files, objects without the workspace's
settings, and changed files are found by the conductor's own index.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from decklog.conductor import kill_points
from decklog.conductor.git.repository import REF_PREFIX, Person, Repository, borrow_objects, ref_part, write_git_directory
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
        """The index from when the workspace was made. It is trusted: an agent can mark files as unchanged in its own index."""
        return self.folder / "index"

    @property
    def is_made(self) -> bool:
        return self.tree.is_dir()


def workspace(repository: Repository, run_id: str, task_id: str, fence: int) -> Workspace:
    """Return the workspace of an attempt."""
    run, task = ref_part(run_id), ref_part(task_id)
    return Workspace(repository.state / run / f"{task}-{fence}", f"{REF_PREFIX}/{run}/tasks/{task}/{fence}")


def make(repository: Repository, place: Workspace, commit: str, person: Person) -> None:
    """Make a workspace with the files of a commit. Remove a half-made one of a crash."""
    unfinished = place.folder / "making"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True, mode=0o700)
    place.index.unlink(missing_ok=True)
    repository.populate(commit, unfinished, place.index)
    write_git_directory(
        unfinished / ".git",
        branch=BRANCH,
        commit=commit,
        borrowed=repository.objects,
        person=person,
        is_sha256=repository.is_sha256,
    )
    # Copy the index with its time: git needs it to find files that changed in the second of their creation.
    shutil.copy2(place.index, unfinished / ".git/index")
    kill_points.reached("place:made")
    unfinished.rename(place.tree)


def remove(place: Workspace) -> None:
    """Remove a workspace with everything in it, including files that an agent made unwritable."""
    if place.tree.exists():
        # A half-removed workspace must not be used.
        place.tree.rename(place.folder / "removing")
    kill_points.reached("place:removing")
    remove_folder(place.folder)


def remove_folder(folder: Path) -> None:
    """Remove a folder with everything in it, including unwritable files."""
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


# Saved work


@dataclass(frozen=True)
class KeptAttempt:
    """The saved work of an attempt, as commits.

    `tip` is the commit of its branch, None if that is gone or incomplete. `changed` has the files without ignored ones, `folder`
    has all files, and `left` are further commits.
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
    """Save all work of an attempt by refs of Decklog. Repeated calls give the same result."""
    found = _WorkspaceCommits(place)
    complete = _copy_commits(repository, found, start)
    tip = found.tip if found.tip == start or found.tip in complete else None
    changed = _commit_files(repository, place, tip or start, person, at, is_all=False)
    folder, notes = changed, list(found.notes)
    ignored = _ignored_bytes(repository, place)
    if ignored > LARGEST_IGNORED:
        notes.append("ignored files are too large to be kept")
    elif ignored:
        folder = _commit_files(repository, place, changed, person, at, is_all=True)
    left = [sha for sha in complete if sha != tip] + _commit_nested_repositories(repository, place, person, at)
    refs = {f"{place.refs}/folder": folder, f"{place.refs}/changed": changed, **({f"{place.refs}/tip": tip} if tip else {})}
    repository.set_refs(refs | {f"{place.refs}/left/{number}": sha for number, sha in enumerate(left, 1)})
    return KeptAttempt(tip, changed, folder, changed == (tip or start), tuple(left), tuple(notes))


def snapshot(repository: Repository, place: Workspace, start: str, person: Person, at: int) -> str:
    """Create a commit of a workspace's files, without ignored ones, while an agent works there. No ref keeps it."""
    # The conductor may remove the workspace's folder meanwhile, so use another one.
    with tempfile.TemporaryDirectory(prefix="decklog-") as scratch:
        tree = _write_tree(repository, place.tree, place.index, Path(scratch, "index"), is_all=False)
    return start if tree == repository.tree(start) else repository.commit(tree, [start], "So far\n", person, at)


class _WorkspaceCommits:
    """The commits that a workspace's refs and reflogs name, read as files."""

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
        named = {**_read_packed_refs(place.git), **loose}
        self.tip = named.get(f"refs/heads/{BRANCH}")
        logged = [sha for path in _files(place.git / "logs") for line in _read(path).splitlines() for sha in _shas(line)[:2]]
        everything = [*named.values(), *_shas(_read(place.git / "HEAD")), *logged]
        self.commits = [sha for sha in dict.fromkeys(everything) if set(sha) != {"0"}]


def _copy_commits(repository: Repository, found: _WorkspaceCommits, start: str) -> list[str]:
    """Copy the commits of a workspace into the repository; return the complete ones."""
    new = [sha for sha in found.commits if sha != start][-MOST_LEFT:]
    if found.objects is None or not new:
        return []
    # An agent may have changed where the workspace borrows objects from.
    borrow_objects(found.objects.parent, repository.objects)
    new.sort(key=lambda sha: sha != found.tip)
    complete = [sha for sha in new if _fetch_commit(repository, found.objects, sha, start)]
    if len(complete) < len(new):
        found.notes.append(f"{len(new) - len(complete)} of the commits that the workspace names are not complete")
    return complete


def _fetch_commit(repository: Repository, objects: Path, sha: str, start: str) -> bool:
    if repository.has(sha):
        return True
    try:
        wanted = f"{sha}^{{commit}}\n^{start}\n".encode()
        pack = repository.on_objects("pack-objects", "--revs", "--stdout", "-q", given=wanted, extra_objects=objects).out
        repository.on_objects("unpack-objects", "-q", "--strict", given=pack)
        return repository.has(sha)
    except DecklogError:
        # The commit is damaged, incomplete, or refused by git. The folder's files are saved anyway.
        return False


def _commit_files(repository: Repository, place: Workspace, parent: str, person: Person, at: int, *, is_all: bool) -> str:
    tree = _write_tree(repository, place.tree, place.index, place.folder / "index.keeping", is_all=is_all)
    if tree == repository.tree(parent):
        return parent
    return repository.commit(tree, [parent], "What an attempt left\n", person, at)


def _write_tree(repository: Repository, folder: Path, index: Path | None, scratch: Path, *, is_all: bool) -> str:
    """Write the tree of a folder's files by a scratch index, which is removed."""
    scratch.unlink(missing_ok=True)
    if index is not None and index.is_file():
        # Copy the index with its time: git needs it to find files that changed in the second of their creation.
        shutil.copy2(index, scratch)
    variables = {"GIT_WORK_TREE": str(folder), "GIT_INDEX_FILE": str(scratch)}
    words = ("add", "--all", "--force", ".") if is_all else ("add", "--all", ".")
    # A nested repository is added as a link to its commit; its files are saved separately.
    repository.on_objects("-C", str(folder), *words, variables=variables)
    tree = repository.on_objects("write-tree", variables=variables).text
    scratch.unlink()
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


def _commit_nested_repositories(repository: Repository, place: Workspace, person: Person, at: int) -> list[str]:
    """Save the files of repositories that were created inside the workspace, each as a commit."""
    found = []
    for folder, names, files in os.walk(place.tree):
        if folder != str(place.tree) and ".git" in (*names, *files):
            tree = _write_tree(repository, Path(folder), None, Path(folder).parent / "index.keeping", is_all=True)
            found.append(repository.commit(tree, [], f"A repository in {Path(folder).name}\n", person, at))
        names[:] = [name for name in names if name != ".git"]
    return found


# Reading a workspace's repository as files


def _read_packed_refs(git: Path) -> dict[str, str]:
    lines = _read(git / "packed-refs").splitlines()
    parts = [line.split(" ", 1) for line in lines if line[:1] not in ("#", "^") and " " in line]
    return {name: sha for sha, name in parts if _shas(sha)}


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in sorted(names))


def _read(path: Path) -> str:
    """Read a small plain file; return an empty text for anything else."""
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
