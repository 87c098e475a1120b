"""The change under review: two commits, the resulting tree, git's stable patch id, and the changed lines."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from decklog.conductor.git import changes
from decklog.conductor.git.changes import DiffLine
from decklog.conductor.git.repository import Repository, starting_commit
from decklog.core.errors import Conflict, Invalid
from decklog.provenance.git_output import RawChange

_PLAIN = ("--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
# Branches to publish against if the settings name none.
_DEFAULT_BASES = ("refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master", "main", "master")
LARGEST_FILE = 2 * 1024 * 1024


@dataclass(frozen=True)
class Change:
    """The difference between two commits. `messages` are those of its commits, the newest last."""

    repository: Repository
    base: str
    head: str
    messages: tuple[str, ...] = ()

    @property
    def tree(self) -> str:
        return self.repository.tree(self.head)

    @cached_property
    def diff(self) -> str:
        """The patch as git writes it; bytes that are not UTF-8 are replaced."""
        return self._patch().decode(errors="replace")

    def _patch(self, *options: str) -> bytes:
        return self.repository.on_objects("diff-tree", "-r", "-p", *options, *_PLAIN, self.base, self.head).out

    @cached_property
    def patch(self) -> str:
        """Git's stable patch id, which does not change in a rebase over other files."""
        return self.repository.on_objects("patch-id", "--stable", given=self._patch()).text.partition(" ")[0]

    @cached_property
    def lines(self) -> str:
        """A digest of all changed and context lines with their white space, without positions."""
        kept = [line for line in self._patch("--binary").split(b"\n") if not line.startswith((b"@@ ", b"index "))]
        return hashlib.sha256(b"\n".join(kept)).hexdigest()

    @cached_property
    def paths(self) -> Sequence[RawChange]:
        return changes.list_changes(self.repository, self.base, self.head)

    @cached_property
    def short_diff(self) -> str:
        """The patch without context lines."""
        return self._patch("-U0").decode(errors="replace")

    @cached_property
    def added(self) -> Sequence[DiffLine]:
        """The added lines with their numbers in the new file."""
        return _added(self.short_diff)

    @cached_property
    def added_by_file(self) -> Mapping[str, list[DiffLine]]:
        found: dict[str, list[DiffLine]] = {}
        for line in self.added:
            found.setdefault(line.path, []).append(line)
        return found

    @cached_property
    def is_one_commit(self) -> bool:
        """Whether the change is one commit on its base, so that its patch has all published lines."""
        return tuple(self.repository.parents(self.head)) == (self.base,)

    @cached_property
    def earlier(self) -> Sequence[tuple[str, Sequence[DiffLine]]]:
        """The lines that a commit adds and a later one removes, by commit. They are published too."""
        if self.is_one_commit:
            return ()
        words = ("log", "-p", "-U0", "--remerge-diff", "--format=%x00%H", *_PLAIN, f"{self.base}..{self.head}")
        output = self.repository.on_objects(*words).out.decode(errors="replace")
        kept = {(line.path, line.text) for line in self.added}
        found = []
        for part in output.split("\0")[1:]:
            commit, _, diff = part.partition("\n")
            lines = [line for line in _added(diff) if (line.path, line.text) not in kept]
            found += [(commit.strip(), lines)] if lines else []
        return found

    @cached_property
    def discarding_merges(self) -> Sequence[str]:
        """The merges that discard the changes of their merged commits, which are published nevertheless."""
        merges = self.repository.on_objects("rev-list", "--merges", f"{self.base}..{self.head}").text.split()
        trees = {merge: self.repository.tree(self.repository.parents(merge)[0]) for merge in merges}
        return [merge for merge, tree in trees.items() if self.repository.tree(merge) == tree]

    @property
    def message(self) -> str:
        return "\n\n".join(self.messages)

    def content(self, path: str, *, at_base: bool = False) -> bytes | None:
        """Return the content of a file after the change or before it; None if it is missing or too large."""
        name = f"{self.base if at_base else self.head}:{path}"
        if name in self._contents:
            return self._contents[name]
        found = self.repository.read(self.base if at_base else self.head, path)
        return None if found is None or len(found) > LARGEST_FILE else found

    @cached_property
    def _contents(self) -> Mapping[str, bytes | None]:
        """The contents of the changed files before and after, read by one call of git."""
        paths = [one.path for one in self.paths if "\n" not in one.path]
        names = [f"{commit}:{path}" for path in paths for commit in (self.base, self.head)]
        return self.repository.read_many(names, largest=LARGEST_FILE)


def _added(diff: str) -> list[DiffLine]:
    return [replace(line, text=line.text.rstrip("\r")) for line in changes.parse_lines(diff) if line.sign == "+"]


# Finding a change


def between(repository: Repository, words: str | None, *, base: str = "") -> Change:
    """Return the change of `BASE..HEAD`, of a head alone, or of HEAD, compared with its base."""
    first, dots, last = (words or "").replace("...", "..").partition("..")
    named_base = (first if dots else "") or base
    head = starting_commit(repository, (last if dots else first) or "HEAD")
    start = starting_commit(repository, named_base) if named_base else find_default_base(repository)
    if start is None:
        raise Invalid("there is no branch to compare with", hint="Name one: decklog review BASE..HEAD", field="base")
    return _change(repository, start, head)


def worktree_change(repository: Repository, *, base: str = "") -> Change:
    """Return the change of the working tree with its uncommitted files; the user's index is not touched."""
    top = starting_commit(repository, "HEAD")
    with repository.scratch_index() as variables:
        variables |= {"GIT_WORK_TREE": str(repository.folder)}
        repository.on_objects("-C", str(repository.folder), "add", "--all", ".", variables=variables)
        tree = repository.on_objects("write-tree", variables=variables).text
    person = repository.person()
    same = tree == repository.tree(top)
    head = top if same else repository.commit(tree, [top], "The files as they are\n", person, repository.time_of(top))
    start = starting_commit(repository, base) if base else top
    if same and start == top:
        raise Conflict("there are no uncommitted changes", hint="Name the change: decklog review BASE..HEAD", base=top)
    return _change(repository, start, head, own_messages=same)


def _change(repository: Repository, start: str, head: str, *, own_messages: bool = True) -> Change:
    found = repository.on_objects("merge-base", start, head, accepted=(0, 1))
    if found.code:
        raise Invalid(
            f"{start[:12]} and {head[:12]} have no commit in common", hint="Name the commit that the change started from."
        )
    base = found.text.splitlines()[0]
    change = Change(repository, base, head, _messages(repository, base, head) if own_messages else ())
    if repository.tree(base) == change.tree:
        raise Conflict(f"{base[:12]} and {head[:12]} do not differ", hint="Name the change: decklog review BASE..HEAD", base=base)
    return change


def _messages(repository: Repository, base: str, head: str) -> tuple[str, ...]:
    listed = repository.on_objects("log", "--reverse", "--no-merges", "-z", "--format=%B", f"{base}..{head}").out
    return tuple(text.strip() for text in listed.decode(errors="replace").split("\0") if text.strip())


def find_default_base(repository: Repository) -> str | None:
    """Return the commit that changes are most likely published against."""
    return next((commit for name in _DEFAULT_BASES if (commit := repository.resolve(name)) is not None), None)
