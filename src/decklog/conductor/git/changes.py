"""What differs between two commits, and what no change may have."""

import posixpath
from collections.abc import Sequence

from decklog.conductor.git.repository import Repository
from decklog.dataclass import dataclass
from decklog.tools.files.gitignore import Patterns

LINK, SUBMODULE = "120000", "160000"
LARGEST_FILE = 10 * 1024 * 1024
_MARKERS = ("<<<<<<< ", ">>>>>>> ")


@dataclass(frozen=True)
class Change:
    """One path that differs. `status` is A, M, D or T, as git has it."""

    path: str
    status: str
    mode: str
    blob: str


@dataclass(frozen=True)
class Fault:
    """A reason why a change is not done, whatever the checks say."""

    signature: str
    text: str
    paths: tuple[str, ...] = ()


def changes(repository: Repository, base: str, tip: str) -> list[Change]:
    """List the paths that differ between two commits."""
    raw = repository.compare(base, tip, "-z", "--raw")
    parts = [part.decode(errors="surrogateescape") for part in raw.split(b"\0")]
    found = []
    for head, path in zip(parts[::2], parts[1::2], strict=False):
        _, mode, _, blob, status = head.split()
        found.append(Change(path, status[0], mode, blob))
    return found


def added_lines(repository: Repository, base: str, tip: str) -> list[tuple[str, str]]:
    """List the lines that a change adds, each with its path."""
    raw = repository.compare(base, tip, "-p", "-U0", "--no-ext-diff", "--no-textconv", "--no-color")
    found, path = [], ""
    for line in raw.decode(errors="replace").splitlines():
        if line.startswith("+++ "):
            path = line[6:]
        elif line.startswith("+"):
            found.append((path, line[1:]))
    return found


def is_only_space(repository: Repository, base: str, tip: str) -> bool:
    """Say whether two commits differ in nothing but empty lines and white space at the ends of lines."""
    return not repository.compare(base, tip, "--numstat", "--ignore-space-at-eol", "--ignore-blank-lines").strip()


def faults(repository: Repository, base: str, start: str, tip: str, allowed: Sequence[str]) -> list[Fault]:
    """Name what keeps a tip from being a change at all: nothing new, out of bounds, or not fit for a tree."""
    if repository.tree(tip) == repository.tree(start):
        return [Fault("no-change", "the tip has the same files as the commit that the attempt began with")]
    if is_only_space(repository, start, tip):
        return [Fault("no-change", "only white space differs from the commit that the attempt began with")]
    if not repository.is_ancestor(start, tip):
        return [Fault("history", "the tip does not descend from the commit that the attempt began with")]
    changed = changes(repository, base, tip)
    found = [
        Fault("out-of-bounds", "paths that the task does not allow were changed", _outside(changed, allowed)),
        Fault("submodule", "a submodule was added or moved", tuple(one.path for one in changed if one.mode == SUBMODULE)),
        Fault("link-out", "a link leads out of the tree", _links_out(repository, changed)),
        Fault("too-large", f"files are larger than {LARGEST_FILE} bytes", _too_large(repository, changed)),
        Fault("conflict-marker", "conflict markers were left", _marked(repository, base, tip)),
    ]
    return [fault for fault in found if fault.paths]


def _outside(changed: Sequence[Change], allowed: Sequence[str]) -> tuple[str, ...]:
    if not allowed:
        return ()
    patterns = Patterns(tuple(allowed))
    return tuple(one.path for one in changed if not patterns.covers(one.path))


def _links_out(repository: Repository, changed: Sequence[Change]) -> tuple[str, ...]:
    found = []
    for one in changed:
        if one.mode == LINK:
            target = repository.on_objects("cat-file", "blob", one.blob).out.decode(errors="surrogateescape")
            leads_to = posixpath.normpath(posixpath.join(posixpath.dirname(one.path), target))
            if target.startswith("/") or leads_to == ".." or leads_to.startswith("../"):
                found.append(one.path)
    return tuple(found)


def _too_large(repository: Repository, changed: Sequence[Change]) -> tuple[str, ...]:
    files = [one for one in changed if one.status != "D" and one.mode not in (LINK, SUBMODULE)]
    asked = "".join(f"{one.blob}\n" for one in files).encode()
    sizes = repository.on_objects("cat-file", "--batch-check=%(objectsize)", given=asked).text.split() if files else []
    return tuple(one.path for one, size in zip(files, sizes, strict=True) if int(size) > LARGEST_FILE)


def _marked(repository: Repository, base: str, tip: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path, line in added_lines(repository, base, tip) if line.startswith(_MARKERS)))
