"""Keeps what an attempt left, whatever it did with git: commits, other branches, the stash, what was reset away, loose files.

A place's own `.git` was an agent's to write, so no git is ever run in it: its refs are read as files, its objects are read by
calls that know none of its settings, and whether a file changed is told by an index of ours.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from decklog.conductor.git import skeleton
from decklog.conductor.git.places import BRANCH, Workspace
from decklog.conductor.git.repository import Person, Repository
from decklog.core.errors import DecklogError

LARGEST_IGNORED = 32 * 1024 * 1024
MOST_LEFT = 50
_LARGEST_FILE = 1024 * 1024


@dataclass(frozen=True)
class KeptAttempt:
    """What an attempt left: the commit on its branch, its folder as a commit without and with ignored files, and the rest.

    `tip` is null when the branch is gone or what it names is not whole.
    """

    tip: str | None
    changed: str
    folder: str
    is_clean: bool
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, object]:
        return {**vars(self), "left": list(self.left), "notes": list(self.notes)}


def keep(repository: Repository, place: Workspace, start: str, person: Person, at: int) -> KeptAttempt:
    """Hold everything that an attempt left by refs of our own. Doing it again gives the same."""
    found = _Found(place)
    whole = _brought_over(repository, found, start)
    tip = found.tip if found.tip == start or found.tip in whole else None
    changed = _as_commit(repository, place, tip or start, person, at, is_all=False)
    folder, notes = _folder_as_commit(repository, place, changed, person, at)
    nested = _nested(repository, place, person, at)
    left = [sha for sha in whole if sha != tip] + nested
    refs = {f"{place.refs}/folder": folder, f"{place.refs}/changed": changed, **({f"{place.refs}/tip": tip} if tip else {})}
    repository.set_refs(refs | {f"{place.refs}/left/{number}": sha for number, sha in enumerate(left, 1)})
    return KeptAttempt(tip, changed, folder, changed == (tip or start), tuple(left), (*found.notes, *notes))


def snapshot(
    repository: Repository, place: Workspace, start: str, person: Person, at: int, *, scratch: str = "index.looking"
) -> str:
    """Make a commit of a place's files as they are now, ignored ones left out, while an agent works there; nothing holds it.

    Each process that looks needs a `scratch` index of its own.
    """
    tree = _tree_of(repository, place.tree, place.index, is_all=False, scratch=scratch)
    return start if tree == repository.tree(start) else repository.commit(tree, [start], "So far\n", person, at)


class _Found:
    """The commits that a place names, read from its files."""

    def __init__(self, place: Workspace) -> None:
        self.notes: list[str] = []
        self.objects: Path | None = None
        self.tip: str | None = None
        self.commits: list[str] = []
        if not _is_folder(place.git) or not _is_folder(place.git / "objects"):
            self.notes.append("the place has no repository of its own any more")
            return
        self.objects = place.git / "objects"
        named = {**_packed(place.git), **_loose(place.git)}
        self.tip = named.get(f"refs/heads/{BRANCH}")
        everything = [*named.values(), *_shas(_read(place.git / "HEAD")), *_reflogs(place.git)]
        self.commits = [sha for sha in dict.fromkeys(everything) if set(sha) != {"0"}]


def _brought_over(repository: Repository, found: _Found, start: str) -> list[str]:
    """Copy the objects of what a place names into the repository; give those commits that are whole."""
    new = [sha for sha in found.commits if sha != start][-MOST_LEFT:]
    if found.objects is None or not new:
        return []
    # What else the place may have been told to borrow is nobody's business here.
    skeleton.borrow(found.objects.parent, repository.objects)
    if (tip := found.tip) in new:
        new.remove(str(tip))
        new.insert(0, str(tip))
    whole = [sha for sha in new if _fetched(repository, found.objects, sha, start)]
    if len(whole) < len(new):
        found.notes.append(f"{len(new) - len(whole)} of what the place names is not whole, or no commit that git takes")
    return whole


def _fetched(repository: Repository, objects: Path, sha: str, start: str) -> bool:
    if repository.has(sha):
        return True
    try:
        wanted = f"{sha}^{{commit}}\n^{start}\n".encode()
        pack = repository.on_objects("pack-objects", "--revs", "--stdout", "-q", given=wanted, also=objects).out
        repository.on_objects("unpack-objects", "-q", "--strict", given=pack)
        return repository.has(sha)
    except DecklogError:
        # Damaged, half written, or made so that git refuses it: the folder's files are kept all the same.
        return False


def _folder_as_commit(repository: Repository, place: Workspace, changed: str, person: Person, at: int) -> tuple[str, list[str]]:
    """Make a commit of a place's files as they are, ignored ones too unless they are too large."""
    size = _ignored_bytes(repository, place)
    if size == 0:
        return changed, []
    if size > LARGEST_IGNORED:
        return changed, ["ignored files are too large to be kept"]
    return _as_commit(repository, place, changed, person, at, is_all=True), []


def _as_commit(repository: Repository, place: Workspace, parent: str, person: Person, at: int, *, is_all: bool) -> str:
    tree = _tree_of(repository, place.tree, place.index, is_all=is_all)
    if tree == repository.tree(parent):
        return parent
    return repository.commit(tree, [parent], "What an attempt left\n", person, at)


def _tree_of(repository: Repository, folder: Path, index: Path | None, *, is_all: bool, scratch: str = "index.keeping") -> str:
    own = folder.parent / scratch
    own.unlink(missing_ok=True)
    if index is not None and index.is_file():
        # With its time: git tells by it which files may have changed in the second in which they were written.
        shutil.copy2(index, own)
    variables = {"GIT_WORK_TREE": str(folder), "GIT_INDEX_FILE": str(own)}
    words = ("add", "--all", "--force", ".") if is_all else ("add", "--all", ".")
    # A nested repository is added as a link to its commit, with advice on standard error; its files are kept apart.
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
    """Keep the files of repositories that were made inside of the place."""
    found = []
    for folder, names, files in os.walk(place.tree):
        if folder != str(place.tree) and ".git" in (*names, *files):
            tree = _tree_of(repository, Path(folder), None, is_all=True)
            found.append(repository.commit(tree, [], f"A repository in {Path(folder).name}\n", person, at))
        names[:] = [name for name in names if name != ".git"]
    return found


# What a place's files name


def _loose(git: Path) -> dict[str, str]:
    return {str(path.relative_to(git)): sha for path in _files(git / "refs") for sha in _shas(_read(path))[:1]}


def _packed(git: Path) -> dict[str, str]:
    lines = _read(git / "packed-refs").splitlines()
    parts = [line.split(" ", 1) for line in lines if line[:1] not in ("#", "^") and " " in line]
    return {name: sha for sha, name in parts if _shas(sha)}


def _reflogs(git: Path) -> list[str]:
    return [sha for path in _files(git / "logs") for line in _read(path).splitlines() for sha in _shas(line)[:2]]


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
