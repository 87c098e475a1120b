"""The user's repository: its objects, and the refs under `refs/decklog/`, which alone are written."""

import fcntl
import hashlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from secrets import token_hex

from decklog.conductor.git import loose, skeleton
from decklog.conductor.git.calls import GitResult, begin, call, version
from decklog.conductor.git.kept_open import KeptOpen
from decklog.conductor.git.loose import Commit
from decklog.core.errors import Conflict, Invalid, NotFound

HOME = "refs/decklog"
# So many comparisons of two trees are remembered, and of none the lines if they are larger.
_MOST_KEPT = 100
_LARGEST_KEPT = 256 * 1024
_COMPARING = ("diff-tree", "-r", "--no-renames", "-z", "--raw", "-p", "-U0", "--no-ext-diff", "--no-textconv", "--no-color")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


@dataclass(frozen=True)
class Person:
    """In whose name commits are made."""

    name: str
    email: str


@dataclass(frozen=True)
class MergeResult:
    """A merge of two commits: its tree, or the files that stand in the way."""

    tree: str
    conflicts: tuple[str, ...] = ()


class TreeDifference:
    """What differs between two trees: `raw` names the paths, and `patch` has the lines; asked for once, unless it is large."""

    def __init__(self, repository: "Repository", base: str, tip: str) -> None:
        self._repository = repository
        self._trees = (base, tip)
        self._patch: bytes | None = None

    @cached_property
    def raw(self) -> bytes:
        raw, patch = self._asked()
        if len(patch) <= _LARGEST_KEPT:
            self._patch = patch
        return raw

    @property
    def patch(self) -> bytes:
        if self.raw and self._patch is None:
            return self._asked()[1]
        return self._patch or b""

    def is_empty_but_for(self, *words: str) -> bool:
        """Return whether nothing differs when these words of git's say what does not count."""
        return not self._repository.on_objects("diff-tree", "-r", "--no-renames", "--numstat", *words, *self._trees).out.strip()

    def _asked(self) -> tuple[bytes, bytes]:
        found = self._repository.compared(*self._trees)
        # After the last path comes an empty one, and then the lines.
        raw, _, patch = found.partition(b"\0\0")
        return raw, patch


def ref_part(text: str) -> str:
    """Spell any name as one part of a ref; what git would not take is written as %XX."""
    parts = ["".join(letter if letter in _PLAIN else _escaped(letter) for letter in part) for part in text.split(".")]
    # A dot may stand between words, and a ref does not end in `.lock`.
    return ".".join(parts) if all(parts) and parts[-1] != "lock" else "%2E".join(parts)


def _escaped(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode(errors="surrogateescape"))


class Repository:
    """One repository. `state` is where the conductor keeps what must survive a restart."""

    def __init__(self, folder: Path, common: Path, state: Path) -> None:
        self.folder = folder
        self.common = common
        self.objects = common / "objects"
        self.state = state / "places" / hashlib.sha256(os.fsencode(common)).hexdigest()[:16]
        self.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._commits: dict[str, Commit] = {}
        self._compared: dict[tuple[str, str], TreeDifference] = {}
        self._comparing = threading.Lock()
        self._kept: dict[str, KeptOpen] = {}

    @classmethod
    def find(cls, path: str | os.PathLike[str], state: Path) -> "Repository":
        """Find the repository that a folder is in; refuse one that no plan could be worked through."""
        version()
        bare, shallow, common, top = _found(os.fspath(path))
        if bare == "true":
            raise Invalid(f"{path} is a bare repository", hint="Go to a clone that has files.")
        if shallow == "true":
            raise Invalid(f"{path} is a shallow clone; merges need its history", hint="Run: git fetch --unshallow")
        return cls(Path(top), Path(os.path.realpath(os.path.join(os.fspath(path), common))), state)

    # The two ways of calling git

    @cached_property
    def _private(self) -> Path:
        """A git directory of the conductor's own, in which nobody else's settings are."""
        folder = self.state / "git"
        if not folder.is_dir():
            making = self.state / f"git.{os.getpid()}"
            skeleton.write(making, branch="none", commit=None, borrowed=None, is_sha256=self.is_sha256)
            try:
                making.rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
        return folder

    @cached_property
    def is_sha256(self) -> bool:
        return self.on_refs("rev-parse", "--show-object-format").text == "sha256"

    def on_objects(
        self,
        *words: str,
        given: bytes | None = None,
        accepted: Sequence[int] = (0,),
        variables: Mapping[str, str] | None = None,
        also: Path | None = None,
    ) -> GitResult:
        """Call git on objects alone; `also` is a folder of objects that are read besides the repository's."""
        more = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": _listed(also)} if also is not None else {}
        return call(words, variables={**self._of_objects, **more, **(variables or {})}, given=given, accepted=accepted)

    @property
    def _of_objects(self) -> dict[str, str]:
        return {"GIT_DIR": str(self._private), "GIT_OBJECT_DIRECTORY": str(self.objects), "GIT_CONFIG_GLOBAL": "/dev/null"}

    def on_refs(self, *words: str, given: bytes | None = None, accepted: Sequence[int] = (0,)) -> GitResult:
        """Call git in the user's repository, which is for looking names up and for refs of our own."""
        return call(words, variables=self._of_refs, given=given, accepted=accepted)

    @property
    def _of_refs(self) -> dict[str, str]:
        return {"GIT_DIR": str(self.common)}

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Keep the calls open that are made again and again, for as long as the block lasts."""
        self._kept = {
            "update-ref": KeptOpen("update-ref", lambda: begin(("update-ref", "--stdin"), variables=self._of_refs)),
            "diff-tree": KeptOpen("diff-tree", lambda: begin((*_COMPARING, "--stdin"), variables=self._of_objects)),
        }
        try:
            yield
        finally:
            kept, self._kept = self._kept, {}
            for one in kept.values():
                one.rest()

    def rest(self, seconds: float) -> None:
        """End those calls that nothing was asked of for so long; they come back when they are needed."""
        for one in self._kept.values():
            one.rest(seconds)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Change refs one after the other: git gives up on a lock that another holds instead of waiting for it."""
        with open(self.state / "refs.lock", "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    # Names

    def resolve(self, name: str, *, cwd: Path | None = None) -> str | None:
        """Return the commit that a name means to the user; none is null."""
        words = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
        found = call(words, variables={}, cwd=cwd or self.folder, accepted=(0, 1, 128))
        return found.text if found.code == 0 else None

    def person(self) -> Person:
        """Return the name that the user commits under."""
        words = ["config", "-z", "--get-regexp", r"^user\.(name|email)$"]
        found = call(words, variables={"GIT_CONFIG_NOSYSTEM": "0"}, cwd=self.folder, accepted=(0, 1)).text
        # Of several the last counts, as everywhere in git's settings.
        told = dict(one.partition("\n")[::2] for one in found.split("\0"))
        return Person(told.get("user.name", "").strip() or "Decklog", told.get("user.email", "").strip() or "decklog@localhost")

    def ref(self, name: str) -> str | None:
        """Return the commit that one of our refs holds; none is null."""
        if (held := self._loose_ref(name)) is not None:
            return held
        found = self.on_refs("rev-parse", "--verify", "--quiet", name, accepted=(0, 1, 128))
        return found.text if found.code == 0 else None

    def _loose_ref(self, name: str) -> str | None:
        """Read a ref that is a file of its own, which git puts there whole; a packed one is git's to look up."""
        try:
            held = (self.common / name).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None
        return held if name.startswith("refs/") and loose.is_name(held) else None

    def refs(self, beneath: str) -> dict[str, str]:
        """Return all refs beneath a name with what they hold."""
        lines = self.on_refs("for-each-ref", "--format=%(objectname) %(refname)", beneath).text.splitlines()
        return {name: value for value, _, name in (line.partition(" ") for line in lines)}

    def set_refs(self, values: Mapping[str, str]) -> None:
        """Let refs of our own hold these objects, all of them or none."""
        for name in values:
            check_own(name)
        orders = "".join(f"update {name} {value}\n" for name, value in values.items())
        with self.locked():
            if not self._is_moved(orders):
                self.on_refs("update-ref", "--stdin", given=orders.encode())

    def _is_moved(self, orders: str) -> bool:
        """Have the call that is kept open move refs, if there is one; no is also what it says when it ended over it."""
        kept = self._kept.get("update-ref")
        return kept is not None and kept.ask(f"start\n{orders}commit\n".encode(), b"start: ok\ncommit: ok\n") is not None

    def swap_ref(self, name: str, new: str, old: str) -> bool:
        """Move a ref of our own from one commit to another; say no when it is no longer at the first."""
        check_own(name)
        with self.locked():
            if self._is_moved(f"update {name} {new} {old}\n"):
                return True
            is_moved = self.on_refs("update-ref", name, new, old, accepted=(0, 1, 128)).code == 0
            # The call that was open may have ended after it had moved it.
            return is_moved or (bool(self._kept) and self.ref(name) == new)

    def drop_refs(self, names: Sequence[str]) -> None:
        """Drop refs of our own, all of them or none."""
        for name in names:
            check_own(name)
        with self.locked():
            self.on_refs("update-ref", "--stdin", given="".join(f"delete {name}\n" for name in names).encode())

    def is_in_a_branch(self, commit: str) -> bool:
        """Return whether a branch of the user's, here or of a remote, has a commit in its history."""
        words = ("for-each-ref", "--count=1", "--format=%(refname)", f"--contains={commit}", "refs/heads", "refs/remotes")
        return bool(self.on_refs(*words).text)

    # Objects

    def time_of(self, commit: str) -> int:
        """Return when a commit was made, in seconds since 1970."""
        return int(self.on_objects("log", "-1", "--format=%ct", commit).text)

    def tree(self, commit: str) -> str:
        """Return the tree of a commit, named by its id."""
        return self._commit(commit).tree

    def parents(self, commit: str) -> tuple[str, ...]:
        """Return what a commit, named by its id, comes after."""
        return self._commit(commit).parents

    def _commit(self, commit: str) -> Commit:
        """Read a commit once: what one has does not change."""
        if commit not in self._commits:
            found = loose.commit(self.objects, commit)
            self._commits[commit] = found or loose.parsed(self.on_objects("cat-file", "commit", commit).out)
        return self._commits[commit]

    def difference(self, base: str, tip: str) -> "TreeDifference":
        """Return what differs between the files of two commits.

        A change is looked at when it is left, when it is checked and when it lands: what is known of two trees stays true.
        """
        trees = (self.tree(base), self.tree(tip))
        if (known := self._compared.get(trees)) is not None:
            return known
        found = TreeDifference(self, *trees)
        with self._comparing:
            self._compared[trees] = found
            if len(self._compared) > _MOST_KEPT:
                del self._compared[next(iter(self._compared))]
        return found

    def compared(self, base: str, tip: str) -> bytes:
        """Have git compare two trees, named by their ids: paths first, then lines."""
        if (kept := self._kept.get("diff-tree")) is not None:
            # What comes back by itself after the answer, and can't be in it.
            mark, asked = f"end {token_hex(16)}\n".encode(), f"{base} {tip}\n".encode()
            found = kept.ask(asked + mark, mark)
            # Of trees that are not here nothing is said, not even what was asked.
            if found is not None and found.startswith(asked):
                return found.removeprefix(asked)
        return self.on_objects(*_COMPARING, base, tip).out

    def has(self, commit: str) -> bool:
        """Return whether a commit is here."""
        if loose.commit(self.objects, commit) is not None:
            return True
        return self.on_objects("cat-file", "-e", f"{commit}^{{commit}}", accepted=(0, 1, 128)).code == 0

    def is_ancestor(self, ancestor: str, commit: str) -> bool:
        """Return whether one commit is in the history of another."""
        if ancestor == commit or ancestor in self.parents(commit):
            return True
        return self.on_objects("merge-base", "--is-ancestor", ancestor, commit, accepted=(0, 1)).code == 0

    def sizes(self, objects: Sequence[str]) -> list[int]:
        """Return the size of each of these objects."""
        found = {name: loose.size(self.objects, name) for name in objects}
        asked = [name for name, size in found.items() if size is None]
        if asked:
            given = "".join(f"{name}\n" for name in asked).encode()
            told = self.on_objects("cat-file", "--batch-check=%(objectsize)", given=given).text.split()
            found |= {name: int(size) for name, size in zip(asked, told, strict=True)}
        return [found[name] or 0 for name in objects]

    def newest(self, commits: Sequence[str]) -> str:
        """Return the one of several commits of one line that has all others in its history."""
        (found,) = self.on_objects("merge-base", "--independent", *dict.fromkeys(commits)).text.split()
        return found

    def read(self, commit: str, path: str) -> bytes | None:
        """Read a file of a commit; none is null."""
        found = self.on_objects("cat-file", "blob", f"{commit}:{path}", accepted=(0, 128))
        return found.out if found.code == 0 else None

    def read_many(self, names: Sequence[str], *, largest: int) -> dict[str, bytes | None]:
        """Read files by `COMMIT:PATH`, all with two calls of git; what is none, or larger than asked for, is null."""
        found: dict[str, bytes | None] = dict.fromkeys(names)
        # Not by `splitlines`: what is missing is told by its name, which may have a carriage return.
        told = self._batch("--batch-check=%(objecttype) %(objectsize)", names).split(b"\n")[:-1]
        sizes = [line.split() for line in told]
        small = [name for name, size in zip(names, sizes, strict=True) if size[0] == b"blob" and int(size[1]) <= largest]
        answer, place = self._batch("--batch=%(objectsize)", small), 0
        for name in small:
            end = answer.index(b"\n", place)
            size = int(answer[place:end])
            found[name] = answer[end + 1 : end + 1 + size]
            place = end + size + 2
        return found

    def _batch(self, form: str, names: Sequence[str]) -> bytes:
        return self.on_objects(
            "cat-file", form, given="".join(f"{name}\n" for name in names).encode(errors="surrogateescape")
        ).out

    def merge(self, ours: str, theirs: str) -> MergeResult:
        """Merge two commits without touching a file."""
        if ours in self.parents(theirs):
            return MergeResult(self.tree(theirs))
        words = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
        answer = self.on_objects(*words, accepted=(0, 1))
        tree, *conflicts = (part.decode(errors="surrogateescape") for part in answer.out.split(b"\0") if part)
        return MergeResult(tree, tuple(dict.fromkeys(conflicts)) if answer.code else ())

    def commit(self, tree: str, parents: Sequence[str], message: str, person: Person, at: int) -> str:
        """Make a commit; the same arguments give the same commit."""
        text = loose.commit_text(tree, parents, message, (person.name, person.email), at)
        if text is not None and self._has_all(tree, parents):
            made = loose.make(self.objects, "commit", text, is_sha256=len(tree) == 64)
        else:
            made = None
        if made is None:
            made = self._commit_by_git(tree, parents, message, person, at)
        self._commits[made] = Commit(tree, tuple(parents))
        return made

    def _has_all(self, tree: str, parents: Sequence[str]) -> bool:
        """Return whether a commit would lead to nothing that is not here, as far as that is known without git."""
        known = [self._commits.get(parent) or loose.commit(self.objects, parent) for parent in parents]
        is_known = loose.is_here(self.objects, tree) or any(one is not None and one.tree == tree for one in known)
        return is_known and None not in known

    def _commit_by_git(self, tree: str, parents: Sequence[str], message: str, person: Person, at: int) -> str:
        words = [word for parent in parents for word in ("-p", parent)]
        who = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", person.name), ("EMAIL", person.email), ("DATE", f"@{at} +0000"))
        }
        return self.on_objects("commit-tree", tree, *words, given=message.encode(), variables=who).text

    def populate(self, commit: str, folder: Path, index: Path) -> None:
        """Write the files of a commit into an empty folder, and an index that knows them."""
        variables = {"GIT_WORK_TREE": str(folder), "GIT_INDEX_FILE": str(index)}
        self.on_objects("read-tree", "-m", "-u", commit, variables=variables)


def _found(path: str) -> tuple[str, ...]:
    """Say of the repository that a folder is in whether it is bare and shallow, and where it and its files are."""
    words = ("--is-bare-repository", "--is-shallow-repository", "--git-common-dir", "--show-toplevel")
    # One that is bare has no folder of files to tell: what was asked before that is told all the same.
    found = call(["rev-parse", *words], variables={}, cwd=path, accepted=(0, 128))
    told = found.out.decode(errors="surrogateescape").removesuffix("\n").split("\n")
    if told == [""]:
        raise NotFound(f"{path} is in no git repository", hint="Go to one, or make one: git init && git commit")
    if found.code and told[0] != "true":
        raise Invalid(f"{path} is inside of what git keeps for itself", hint="Go to where the files of the repository are.")
    if len(told) > len(words):
        # There are lines in the name of a folder.
        return tuple(call(["rev-parse", word], variables={}, cwd=path).text for word in words)
    return (*told, "", "", "")[: len(words)]


def check_own(name: str) -> None:
    """Refuse a ref that is not of the conductor's own."""
    if not name.startswith(f"{HOME}/"):
        raise Invalid(f"{name} is not a ref of the conductor's", hint="Only refs/decklog/ is written.", ref=name)


def _listed(objects: Path) -> str:
    """Spell a folder for a list that is parted by colons."""
    text = str(objects)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' if ":" in text or text.startswith('"') else text


def starting_commit(repository: Repository, name: str, *, cwd: Path) -> str:
    """Return the commit that a run starts from; refuse a repository that has none, and a name that means none."""
    found = repository.resolve(name, cwd=cwd)
    if found is None and name == "HEAD":
        raise Conflict("this repository has no commit yet", hint="Make one: git add . && git commit")
    if found is None:
        raise NotFound(f"there is no commit {name!r}", hint="Name a branch, a tag or a commit; see: git log", name=name)
    return found
