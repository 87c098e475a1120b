"""Run git on the user's repository: on its objects without user settings, and on its refs.

Only refs under `refs/decklog/` are written.
"""

import fcntl
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from decklog.conductor import kill_points
from decklog.core.errors import Conflict, Invalid, NotFound, TimedOut, Unavailable
from decklog.core.folders import state_home

REF_PREFIX = "refs/decklog"
# Refs below this name keep files of sessions; `decklog prune` removes them.
SESSIONS = "sessions"
LONGEST_SECONDS = 300.0
OLDEST = (2, 38)
# Fixed, so that the repository's settings start no program and merges are the same on every machine.
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    # An index is rebuilt after a crash; the objects that it names are synced.
    "core.fsync": "all,-index",
    "core.quotePath": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "merge.renames": "true",
    "merge.renameLimit": "10000",
    "merge.directoryRenames": "false",
    "merge.conflictStyle": "merge",
    "diff.algorithm": "myers",
}
_VARIABLES = {
    "LC_ALL": "C",
    "TZ": "UTC",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    # Read the objects that would be pushed.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_NOSYSTEM": "1",
}
_PASSED = ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR")
_OPTIONS = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
_PLAIN_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


@dataclass(frozen=True)
class GitResult:
    """The exit code and the output of git."""

    code: int
    out: bytes

    @property
    def text(self) -> str:
        return self.out.decode(errors="surrogateescape").strip()


@dataclass(frozen=True)
class Person:
    """The author of commits."""

    name: str
    email: str


@dataclass(frozen=True)
class MergeResult:
    """A merge of two commits: its tree, and the files with conflicts."""

    tree: str
    conflicts: tuple[str, ...] = ()


def fixed_settings() -> Mapping[str, str]:
    """Return the settings on which the outcome of a merge depends."""
    return dict(_SETTINGS)


def run_git(
    words: Sequence[str],
    *,
    variables: Mapping[str, str],
    cwd: str | Path = "/",
    given: bytes | None = None,
    accepted: Sequence[int] = (0,),
    settings: Sequence[str] = (),
    seconds: float = LONGEST_SECONDS,
) -> GitResult:
    """Run git without the user's environment, hooks and prompts. Raise unless its exit code is accepted.

    `settings` are added to the fixed ones, each as NAME=VALUE.
    """
    kill_points.reached(f"git:{words[0]}:before")
    own = {name: os.environ[name] for name in _PASSED if name in os.environ}
    try:
        done = subprocess.run(
            ["git", *_OPTIONS, *(word for one in settings for word in ("-c", one)), *words],
            input=given or b"",
            capture_output=True,
            cwd=cwd,
            env={**own, **_VARIABLES, **variables},
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError as problem:
        raise Unavailable("git is not installed, or not on the PATH", hint="Install git 2.38 or newer.") from problem
    except subprocess.TimeoutExpired as problem:
        raise TimedOut(f"git {words[0]} did not end in {seconds:g} seconds", hint="Look at disk and network.") from problem
    kill_points.reached(f"git:{words[0]}:after")
    if done.returncode not in accepted:
        message = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
        raise Unavailable(f"git {words[0]} failed: {message}", exit_code=done.returncode, words=list(words))
    return GitResult(done.returncode, done.stdout)


@cache
def version() -> str:
    """Return the version of git. Raise Unavailable if it is too old to merge without a working tree."""
    words = run_git(["--version"], variables={}).text.split()
    numbers = tuple(int(part) for part in words[2].split(".")[:2] if part.isdigit())
    if numbers < OLDEST:
        raise Unavailable(f"git is {words[2]}; merging without a working tree needs 2.38", hint="Install a newer git.")
    return words[2]


def ref_part(text: str) -> str:
    """Encode a name as one part of a ref. Characters that git does not allow become %XX; the name `sessions` is encoded too."""
    if text.lower() == SESSIONS:
        return _escape(text[0]) + text[1:]
    parts = ["".join(letter if letter in _PLAIN_CHARACTERS else _escape(letter) for letter in part) for part in text.split(".")]
    # A ref may have single dots within, and does not end in `.lock`.
    return ".".join(parts) if all(parts) and parts[-1] != "lock" else "%2E".join(parts)


def _escape(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode(errors="surrogateescape"))


class Repository:
    """One repository. `state` is the folder of the conductor's own files for it."""

    def __init__(self, folder: Path, common: Path, state: Path) -> None:
        self.folder = folder
        self.common = common
        self.objects = common / "objects"
        self.state = state / "places" / hashlib.sha256(os.fsencode(common)).hexdigest()[:16]
        self.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._commits: dict[str, list[str]] = {}

    @classmethod
    def find(cls, path: str | os.PathLike[str], state: Path) -> "Repository":
        """Find the repository that a folder is in. Raise Invalid for a bare repository and a shallow clone."""
        version()
        bare, shallow, common, top = _locate(os.fspath(path))
        if bare == "true":
            raise Invalid(f"{path} is a bare repository", hint="Go to a clone that has files.")
        if shallow == "true":
            raise Invalid(f"{path} is a shallow clone; merges need its history", hint="Run: git fetch --unshallow")
        return cls(Path(top), Path(os.path.realpath(os.path.join(os.fspath(path), common))), state)

    @classmethod
    def here(cls) -> "Repository":
        """Find the repository that the current folder is in."""
        return cls.find(Path.cwd(), Path(state_home()))

    # The two ways of calling git

    @cached_property
    def _private(self) -> Path:
        """The conductor's own git directory, without user settings."""
        folder = self.state / "git"
        if not folder.is_dir():
            unfinished = self.state / f"git.{os.getpid()}"
            write_git_directory(unfinished, branch="none", is_sha256=self.is_sha256)
            try:
                unfinished.rename(folder)
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
        extra_objects: Path | None = None,
    ) -> GitResult:
        """Run git on objects only. `extra_objects` is a further folder of objects to read."""
        own = {"GIT_DIR": str(self._private), "GIT_OBJECT_DIRECTORY": str(self.objects), "GIT_CONFIG_GLOBAL": "/dev/null"}
        more = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": _quote_path_list(extra_objects)} if extra_objects is not None else {}
        return run_git(words, variables={**own, **more, **(variables or {})}, given=given, accepted=accepted)

    def on_refs(self, *words: str, given: bytes | None = None, accepted: Sequence[int] = (0,)) -> GitResult:
        """Run git in the user's repository, to look up names and to write Decklog's refs."""
        return run_git(words, variables={"GIT_DIR": str(self.common)}, given=given, accepted=accepted)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the refs against other processes of this host. Git would fail instead of waiting for its own lock."""
        with open(self.state / "refs.lock", "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    # Names

    def resolve(self, name: str) -> str | None:
        """Return the commit of a branch, tag or commit name; None if there is none."""
        words = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
        found = run_git(words, variables={}, cwd=self.folder, accepted=(0, 1, 128))
        return found.text if found.code == 0 else None

    def person(self) -> Person:
        """Return the name that the user commits under."""
        words = ["config", "-z", "--get-regexp", r"^user\.(name|email)$"]
        found = run_git(words, variables={"GIT_CONFIG_NOSYSTEM": "0"}, cwd=self.folder, accepted=(0, 1)).text
        # Of several values the last one counts, as in git.
        values = dict(one.partition("\n")[::2] for one in found.split("\0"))
        name, email = (values.get(f"user.{key}", "").strip() for key in ("name", "email"))
        return Person(name or "Decklog", email or "decklog@localhost")

    def ref(self, name: str) -> str | None:
        """Return the commit that a ref holds; None if there is no such ref."""
        found = self.on_refs("rev-parse", "--verify", "--quiet", name, accepted=(0, 1, 128))
        return found.text if found.code == 0 else None

    def refs(self, beneath: str) -> dict[str, str]:
        """Return all refs beneath a name with the objects that they hold."""
        lines = self.on_refs("for-each-ref", "--format=%(objectname) %(refname)", beneath).text.splitlines()
        return {name: value for value, _, name in (line.partition(" ") for line in lines)}

    def set_refs(self, values: Mapping[str, str]) -> None:
        """Set refs of Decklog, all of them or none."""
        self._update_refs(values, [f"update {name} {value}\n" for name, value in values.items()])

    def drop_refs(self, names: Sequence[str]) -> None:
        """Delete refs of Decklog, all of them or none."""
        self._update_refs(names, [f"delete {name}\n" for name in names])

    def _update_refs(self, names: Sequence[str] | Mapping[str, str], instructions: list[str]) -> None:
        for name in names:
            check_own(name)
        with self.locked():
            self.on_refs("update-ref", "--stdin", given="".join(instructions).encode())

    def swap_ref(self, name: str, new: str, old: str) -> bool:
        """Move a ref of Decklog from `old` to `new`; return False if it was not at `old`."""
        check_own(name)
        with self.locked():
            return self.on_refs("update-ref", name, new, old, accepted=(0, 1, 128)).code == 0

    def is_in_branch(self, commit: str) -> bool:
        """Return whether a local or remote branch has a commit in its history."""
        words = ("for-each-ref", "--count=1", "--format=%(refname)", f"--contains={commit}", "refs/heads", "refs/remotes")
        return bool(self.on_refs(*words).text)

    # Objects

    def time_of(self, commit: str) -> int:
        """Return the time of a commit, in seconds since 1970."""
        return int(self.on_objects("log", "-1", "--format=%ct", commit).text)

    def tree(self, commit: str) -> str:
        """Return the tree of a commit, given by its id."""
        return self._tree_and_parents(commit)[0]

    def parents(self, commit: str) -> tuple[str, ...]:
        """Return the parents of a commit, given by its id."""
        return tuple(self._tree_and_parents(commit)[1:])

    def _tree_and_parents(self, commit: str) -> list[str]:
        if commit not in self._commits:
            self._commits[commit] = self.on_objects("log", "-1", "--format=%T %P", commit).text.split()
        return self._commits[commit]

    def has(self, commit: str) -> bool:
        """Return whether this clone has a commit."""
        return self.on_objects("cat-file", "-e", f"{commit}^{{commit}}", accepted=(0, 1, 128)).code == 0

    def is_ancestor(self, ancestor: str, commit: str) -> bool:
        """Return whether one commit is in the history of another."""
        return self.on_objects("merge-base", "--is-ancestor", ancestor, commit, accepted=(0, 1)).code == 0

    def sizes(self, objects: Sequence[str]) -> list[int]:
        """Return the size of each of these objects."""
        return [int(size) for size in self._batch("--batch-check=%(objectsize)", objects).split()] if objects else []

    def newest(self, commits: Sequence[str]) -> str:
        """Return the newest of several commits of one line of history."""
        (found,) = self.on_objects("merge-base", "--independent", *dict.fromkeys(commits)).text.split()
        return found

    def read(self, commit: str, path: str) -> bytes | None:
        """Read a file of a commit; None if it has no such file."""
        found = self.on_objects("cat-file", "blob", f"{commit}:{path}", accepted=(0, 128))
        return found.out if found.code == 0 else None

    def read_many(self, names: Sequence[str], *, largest: int) -> dict[str, bytes | None]:
        """Read files by `COMMIT:PATH` with two calls of git. Missing files and files above `largest` are None."""
        found: dict[str, bytes | None] = dict.fromkeys(names)
        # `splitlines` would also split at a carriage return in the name of a missing file.
        sizes = [line.split() for line in self._batch("--batch-check=%(objecttype) %(objectsize)", names).split(b"\n")[:-1]]
        small = [name for name, size in zip(names, sizes, strict=True) if size[0] == b"blob" and int(size[1]) <= largest]
        answer, start = self._batch("--batch=%(objectsize)", small), 0
        for name in small:
            end = answer.index(b"\n", start)
            size = int(answer[start:end])
            found[name] = answer[end + 1 : end + 1 + size]
            start = end + size + 2
        return found

    def _batch(self, form: str, names: Sequence[str]) -> bytes:
        given = "".join(f"{name}\n" for name in names).encode(errors="surrogateescape")
        return self.on_objects("cat-file", form, given=given).out

    def merge(self, ours: str, theirs: str) -> MergeResult:
        """Merge two commits without touching a file."""
        words = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
        answer = self.on_objects(*words, accepted=(0, 1))
        tree, *conflicts = (part.decode(errors="surrogateescape") for part in answer.out.split(b"\0") if part)
        return MergeResult(tree, tuple(dict.fromkeys(conflicts)) if answer.code else ())

    def commit(self, tree: str, parents: Sequence[str], message: str, person: Person, at: int) -> str:
        """Create a commit; the same arguments give the same commit."""
        words = [word for parent in parents for word in ("-p", parent)]
        values = {"NAME": person.name, "EMAIL": person.email, "DATE": f"@{at} +0000"}
        variables = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in values.items()}
        return self.on_objects("commit-tree", tree, *words, given=message.encode(), variables=variables).text

    @contextmanager
    def scratch_index(self) -> Iterator[dict[str, str]]:
        """Yield the variables of an empty git index, which is removed afterwards."""
        with tempfile.TemporaryDirectory(prefix="decklog-") as folder:
            yield {"GIT_INDEX_FILE": os.path.join(folder, "index")}

    def commit_with(self, tip: str, entries: bytes, message: str, person: Person) -> str:
        """Create a commit of a tip's tree with other index entries, on top of it."""
        with self.scratch_index() as variables:
            self.on_objects("read-tree", tip, variables=variables)
            self.on_objects("update-index", "-z", "--index-info", given=entries, variables=variables)
            tree = self.on_objects("write-tree", variables=variables).text
        return self.commit(tree, [tip], message, person, 0)

    def populate(self, commit: str, folder: Path, index: Path) -> None:
        """Write the files of a commit into an empty folder, and an index of them."""
        variables = {"GIT_WORK_TREE": str(folder), "GIT_INDEX_FILE": str(index)}
        self.on_objects("read-tree", "-m", "-u", commit, variables=variables)


def _locate(path: str) -> tuple[str, ...]:
    """Return whether the repository of a folder is bare and shallow, its git directory, and the top of its files."""
    words = ("--is-bare-repository", "--is-shallow-repository", "--git-common-dir", "--show-toplevel")
    # In a bare repository the last one fails; the answers before it are printed.
    found = run_git(["rev-parse", *words], variables={}, cwd=path, accepted=(0, 128))
    lines = found.out.decode(errors="surrogateescape").removesuffix("\n").split("\n")
    if lines == [""]:
        raise NotFound(f"{path} is not in a git repository", hint="Go to one, or create one: git init && git commit")
    if found.code and lines[0] != "true":
        raise Invalid(f"{path} is inside a .git directory", hint="Go to the folder with the repository's files.")
    if len(lines) > len(words):
        # A folder's name has line breaks.
        return tuple(run_git(["rev-parse", word], variables={}, cwd=path).text for word in words)
    return (*lines, "", "", "")[: len(words)]


def check_own(name: str) -> None:
    """Raise Invalid for a ref outside of `refs/decklog/`."""
    if not name.startswith(f"{REF_PREFIX}/"):
        raise Invalid(f"{name} is not a ref of the conductor", hint="Only refs under refs/decklog/ are written.", ref=name)


def _quote_path_list(objects: Path) -> str:
    """Quote a folder for a list that is separated by colons."""
    text = str(objects)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' if ":" in text or text.startswith('"') else text


def starting_commit(repository: Repository, name: str) -> str:
    """Return the commit of a name. Raise Conflict for a repository without commits, NotFound for an unknown name."""
    found = repository.resolve(name)
    if found is None and name == "HEAD":
        raise Conflict("this repository has no commit yet", hint="Create one: git add . && git commit")
    if found is None:
        raise NotFound(f"there is no commit {name!r}", hint="Name a branch, a tag or a commit; see: git log", name=name)
    return found


def write_git_directory(
    folder: Path,
    *,
    branch: str,
    commit: str | None = None,
    borrowed: Path | None = None,
    person: Person | None = None,
    is_sha256: bool = False,
) -> None:
    """Write an empty git directory without templates or settings; `borrowed` is a folder of objects that it reads."""
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (folder / name).mkdir(parents=True, mode=0o700)
    (folder / "HEAD").write_text(f"ref: refs/heads/{branch}\n", encoding="utf-8")
    extension = "[extensions]\n\tobjectFormat = sha256\n" if is_sha256 else ""
    user = f"[user]\n\tname = {_quoted(person.name)}\n\temail = {_quoted(person.email)}\n" if person is not None else ""
    (folder / "config").write_text(
        f"[core]\n\trepositoryFormatVersion = {int(is_sha256)}\n\tfileMode = true\n\tbare = false\n\tlogAllRefUpdates = true\n"
        f"[gc]\n\tauto = 0\n{extension}{user}",
        encoding="utf-8",
    )
    if borrowed is not None:
        borrow_objects(folder, borrowed)
    if commit is not None:
        (folder / "refs/heads" / branch).write_text(f"{commit}\n", encoding="ascii")


def borrow_objects(folder: Path, objects: Path) -> None:
    """Make a git directory read the objects of one other folder, and of no further one."""
    path = folder / "objects/info/alternates"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(os.fsencode(objects) + b"\n")


def _quoted(text: str) -> str:
    """Quote a value for git's settings."""
    plain = "".join(letter for letter in text if letter >= " " and letter != "\x7f")
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
