"""Paths that try to get out of a root, and paths that do not, on a real tree of files. They are listed in `paths.json`."""

import json
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from decklog.core.errors import DecklogError, Denied
from decklog.guard.files.path_check import DEFAULT, AccessRules, Op, resolve
from decklog.guard.files.root import Root

CANARY = b"canary: no tool may read or change this\n"
RULES = {
    "": DEFAULT,
    "task": AccessRules(allowed=("src/", "docs/**", "*.md"), forbidden=("src/locked/", "/docs/legal.md")),
    "hardlinks": AccessRules(allow_hardlinks=True),
}
PATHS = json.loads(Path(__file__).with_name("paths.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Case:
    """One path, what is tried with it, and the rules in force; `{root}` and `{out}` are directories."""

    path: str
    op: str
    rules: AccessRules = DEFAULT

    def spelled(self, tree: Path) -> str:
        return self.path.replace("{root}", str(tree / "root")).replace("{out}", str(tree / "outside"))


def _cases(name: str, *long_paths: str) -> list[Case]:
    listed = ((*words.partition(" ")[::2], paths) for words, paths in PATHS[name].items())
    cases = [Case(path, op, RULES[rules]) for op, rules, paths in listed for path in paths]
    return [*cases, *(Case(path, "read") for path in long_paths)]


_FAR_UP = ("../" * 40 + "etc/passwd", "src/" + "../" * 12 + "etc/shadow")
ESCAPES = _cases("escapes", *_FAR_UP, "n" * 256, "src/" + "é" * 128, "d/" * 2100 + "x")
HARMLESS = _cases("harmless", "n" * 255, "d/" * 100 + "deep.txt")


def build(tree: Path) -> Path:
    """Build `root` and `outside` beneath a directory; give the root."""
    root, outside = tree / "root", tree / "outside"
    outside.mkdir(parents=True)
    (outside / "canary.txt").write_bytes(CANARY)
    for name in PATHS["files"]:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"inside: {name}\n")
    (root / "worktree").mkdir()
    (root / "worktree/.git").write_text("gitdir: ../.git/worktrees/w\n")
    for name, target in PATHS["links"].items():
        os.symlink(target.replace("{root}", str(root)).replace("{out}", str(outside)), root / name)
    for name in ("hard.txt", "src/hard.txt"):
        os.link(outside / "canary.txt", root / name)
    os.mkfifo(root / "fifo")
    _bind_socket(root)
    return root


def _bind_socket(root: Path) -> None:
    # A socket's path is short: bind it from within its directory.
    here = os.open(".", os.O_RDONLY)
    listener = socket.socket(socket.AF_UNIX)
    try:
        os.chdir(root)
        listener.bind("socket")
    finally:
        os.fchdir(here)
        os.close(here)
        listener.close()


def is_refused(case: Case, tree: Path) -> bool:
    """Say whether the judgement alone refuses a path."""
    try:
        resolve(tree / "root", case.spelled(tree), case.op, rules=case.rules)
    except Denied:
        return True
    return False


def is_refused_in_use(case: Case, tree: Path) -> bool:
    """Say whether the tools refuse a path in earnest: read it, or stage a change and drop it."""
    path = case.spelled(tree)
    with Root(tree / "root", rules=case.rules) as root:
        actions: dict[str, Callable[[], object]] = {
            "read": lambda: root.read(path),
            "write": lambda: root.stage(path, b"written\n").abort(),
            "list": lambda: root.place(path, Op.LIST),
        }
        try:
            actions[case.op]()
        except Denied:
            return True
        except DecklogError:
            return False
    return False


@contextmanager
def a_tree() -> Iterator[Path]:
    """Build the tree for a while."""
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory).resolve()
        build(tree)
        yield tree
