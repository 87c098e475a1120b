"""Capture of edits around tool calls. Objects are written first; the caller records what is returned here.

An edit is recorded only for content that git did not have before: what was there already was restored, merged or copied, and
the call did not write it.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from decklog.core.processes import Identity
from decklog.provenance.commands_with_git import CommandWithGit, git_state
from decklog.provenance.git import GitFailed, GitRepository, NewObjects
from decklog.provenance.tool_calls import FileCall, expected_content, stated_content

if TYPE_CHECKING:
    Line = dict[str, Any]

_FILE = "calls"
# Names every call of a session: its turn has ended.
ALL = "*"


class CallsUnderWay:
    """A file of lines in the order of events: a call begins (`begin`), a call ends (`end`).

    A line has the session, and the paths that the call may change or has changed; None means any path.
    """

    def __init__(self, state: str) -> None:
        self._path = os.path.join(state, _FILE)

    @contextmanager
    def locked(self) -> "Iterator[list[Line]]":
        """Hold the file, and write the lines back that the block leaves."""
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "r+", encoding="utf-8") as file:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            text = file.read()
            lines = [line for line in map(_read, text.splitlines()) if line]
            yield lines
            written = "".join(json.dumps(line) + "\n" for line in _needed(lines))
            if written != text:
                file.seek(0)
                file.write(written)
                file.truncate()

    def begin(self, line: "Line") -> None:
        with self.locked() as lines:
            lines.append(line)

    def end_all(self, session: str) -> None:
        """End every call of a session."""
        if os.path.exists(self._path):
            with self.locked() as lines:
                lines.append({"end": ALL, "session": session, "paths": []})


class CallOverlap:
    """What other calls did while one call was under way."""

    def __init__(self, lines: "list[Line]", session: str, call: str) -> None:
        starts = [place for place, line in enumerate(lines) if line.get("begin") == call and line["session"] == session]
        self.begun: Line | None = lines[starts[-1]] if starts else None
        # What a path became meanwhile, by calls that were captured.
        self.blobs: dict[str, str] = {}
        self._paths: dict[str, set[str]] = {}
        self._any_path: set[str] = set()
        if starts:
            self._look(lines, starts[-1])

    def _look(self, lines: "list[Line]", start: int) -> None:
        open_then = [line for line in _open(lines[:start]) if not _is_gone(line)]
        ended = [line for line in lines[start + 1 :] if "end" in line]
        for line in ended:
            blobs = line.get("blobs") or {}
            self._paths.setdefault(line["session"], set()).update(blobs)
            self.blobs.update({path: blob for path, blob in blobs.items() if blob})
        for line in _open([*open_then, *lines[start + 1 :]]):
            if line["paths"] is None:
                self._any_path.add(line["session"])
            else:
                self._paths.setdefault(line["session"], set()).update(line["paths"])

    def sessions(self, path: str) -> list[str]:
        """Return the other sessions that may have changed a path meanwhile."""
        assert self.begun is not None
        named = {session for session, paths in self._paths.items() if path in paths}
        return sorted((named | self._any_path) - {self.begun["session"]})


def is_shell_under_way(lines: "list[Line]", session: str) -> bool:
    """Return whether a call of a session that may change any file has not ended."""
    return any(line["session"] == session and line["paths"] is None for line in _open(lines))


def _open(lines: "list[Line]") -> "list[Line]":
    """Return the calls that have begun and not ended."""
    found: list[Line] = []
    for line in lines:
        if "begin" in line:
            found.append(line)
        else:
            found = [one for one in found if one["session"] != line["session"] or line["end"] not in (ALL, one["begin"])]
    return found


def _needed(lines: "list[Line]") -> "list[Line]":
    """Leave out what no call under way can ask for: all that is before the oldest of them."""
    waiting = [line for line in _open(lines) if not _is_gone(line)]
    return lines[lines.index(waiting[0]) :] if waiting else []


def _read(text: str) -> "Line | None":
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and "session" in line and ("begin" in line or "end" in line) else None


def _is_gone(line: "Line") -> bool:
    """Return whether the program that made a call has surely ended."""
    process = line.get("process")
    return isinstance(process, str) and Identity.from_text(process).is_alive() is False


# Longer files, and more files than these around one call, are left out.
MOST_BYTES = 5 * 1024 * 1024
MOST_FILES = 2000
_TOO_LARGE, _TOO_MANY = f"larger than {MOST_BYTES // 1024**2} MiB", f"more than {MOST_FILES} changed files"
_IGNORED = "ignored by git"
_STATUS = ("status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")


class Capture:
    """Captures the edits of one session in one worktree; `session` is PROGRAM:ID."""

    def __init__(self, repo: GitRepository, session: str, *, process: str | None = None) -> None:
        self._repo = repo
        self._session = session
        self._process = process
        self._calls = CallsUnderWay(repo.state)
        self._skipped: dict[str, str] = {}

    # Around a tool call

    def begin(self, call: str, target: FileCall | None, stated: dict[str, list[tuple[bytes, bytes]]] | None = None) -> None:
        """Store what a call may change, before it does; without a target it may change any file.

        `stated` has the texts that the call replaces in each path. It is needed where the call may have changed files already.
        """
        line: dict[str, Any] = {"begin": call, "session": self._session, "paths": None, "head": self._repo.head()}
        if self._process is not None:
            line["process"] = self._process
        if target is None:
            with self._calls.locked() as lines:
                # A call that is under way compares with the index as it was before that.
                is_fresh = not is_shell_under_way(lines, self._session)
            if is_fresh:
                self._refresh()
            line["git"] = git_state(self._repo)
        else:
            paths = [path for path in target.paths if self._is_captured(path)]
            ignored = self._ignored(paths)
            self._skipped.update(dict.fromkeys(ignored, _IGNORED))
            paths = [path for path in paths if path not in ignored]
            changed = self._changed_already(paths, stated) if stated else {}
            rest = [path for path in paths if path not in changed]
            line["paths"], line["blobs"] = paths, {**changed, **self._store(rest)}
        line["skipped"] = self._skipped
        self._calls.begin(line)

    def end(self, call: str, target: FileCall | None) -> dict[str, Any] | None:
        """Return the edits of a call that has ended, with their objects stored; None if it changed nothing."""
        with self._calls.locked() as lines:
            overlap = CallOverlap(lines, self._session, call)
            edits: list[dict[str, Any]] = []
            if overlap.begun is not None:
                self._skipped.update(overlap.begun.get("skipped") or {})
                edits = self._of_shell(overlap) if target is None else self._of_tool(overlap, target)
            blobs = {edit["path"]: edit.get("new") for edit in edits}
            lines.append({"end": call, "session": self._session, "paths": [], "blobs": blobs})
        if overlap.begun is None or not (edits or self._skipped):
            return None
        return {**self._place(overlap.begun.get("head")), "edits": edits, "skipped": self._skipped}

    def forget(self, call: str) -> None:
        """Forget that a call began: it begins later, or not at all."""
        with self._calls.locked() as lines:
            lines.append({"end": call, "session": self._session, "paths": []})

    def end_turn(self) -> None:
        """Forget calls of this session of which no end was reported."""
        self._calls.end_all(self._session)

    def _place(self, head: str | None) -> dict[str, Any]:
        self._repo.keep_identity()
        return {"repository": self._repo.identity, "top": self._repo.top, "head": head}

    # Tools that name their files

    def _of_tool(self, overlap: CallOverlap, target: FileCall) -> list[dict[str, Any]]:
        assert overlap.begun is not None
        olds = overlap.begun.get("blobs") or {}
        paths = [path for path in olds if self._is_captured(path)]
        with NewObjects(self._repo) as objects:
            edits = self._differing({path: overlap.blobs.get(path) or olds[path] for path in paths}, overlap, objects)
            for edit in edits:
                if target.has_content and edit["new"] and edit["path"] not in overlap.blobs:
                    edit["new"] = self._written(edit, target, objects)
            kept = self._new_content(edits, objects)
        return [_compact(edit | self._moved(edit, target, olds)) for edit in kept]

    def _differing(self, olds: Mapping[str, str | None], overlap: CallOverlap, objects: NewObjects) -> list[dict[str, Any]]:
        """Return the files that no longer hold what they held before."""
        news = objects.of_files([path for path in olds if os.path.isfile(os.path.join(self._repo.top, path))])
        changed = [path for path, old in olds.items() if old != news.get(path)]
        return [{"path": path, "old": olds[path], "new": news.get(path), "mixed": overlap.sessions(path)} for path in changed]

    def _moved(self, edit: dict[str, Any], target: FileCall, olds: dict[str, Any]) -> dict[str, Any]:
        """Return where a file came from that a tool moved."""
        former = target.renamed.get(edit["path"])
        return {"old_path": former, "old": olds[former]} if former and not edit["old"] and olds.get(former) else {}

    def _new_content(self, edits: list[dict[str, Any]], objects: NewObjects) -> list[dict[str, Any]]:
        """Return the edits whose content is new to git, or that deleted a file, and keep the content."""
        changed = (edit for edit in edits if edit["new"] != edit["old"])
        found = [edit for edit in changed if edit["new"] is None or objects.is_new(edit["new"])]
        for blob in {edit["new"] for edit in found if edit["new"]}:
            objects.keep(blob)
        return found

    def _written(self, edit: dict[str, Any], target: FileCall, objects: NewObjects) -> str:
        """Return the content that the tool wrote. Where the file holds another, the rest is not the tool's."""
        before = self._repo.call("cat-file", "blob", edit["old"]) if edit["old"] and target.needs_former else b""
        expected = expected_content(before, target)
        with open(os.path.join(self._repo.top, edit["path"]), "rb") as file:
            is_as_expected = expected is None or file.read() == expected
        return str(edit["new"]) if is_as_expected else objects.of_text(edit["path"], expected or b"")

    def _changed_already(self, paths: Sequence[str], stated: dict[str, list[tuple[bytes, bytes]]]) -> dict[str, str | None]:
        """Return the former blobs of files that a call has changed already.

        The private index has what a file held last. If that with the stated changes is exactly what the file holds, nobody else
        changed it.
        """
        present = [path for path in paths if path in stated and os.path.isfile(os.path.join(self._repo.top, path))]
        if not present or not os.path.exists(self._index):
            return {}
        olds, found = self._indexed(present), dict[str, str | None]()
        with NewObjects(self._repo) as objects:
            for path, blob in objects.of_files(present).items():
                old = olds.get(path)
                if blob == old or not objects.is_new(blob):
                    continue
                after = stated_content(self._repo.call("cat-file", "blob", old) if old else b"", stated[path])
                if after is not None and objects.of_text(path, after) == blob:
                    found[path] = old
        return found

    def note(self, paths: Sequence[str]) -> None:
        """Bring files of the private index to what the worktree holds."""
        if os.path.exists(self._index):
            self._update(paths)

    def _is_captured(self, path: str) -> bool:
        """Return whether a file is one that is captured: a regular one, not too large, or none yet."""
        whole = os.path.join(self._repo.top, path)
        if os.path.islink(whole) or os.path.isdir(whole):
            return False
        if os.path.exists(whole) and os.path.getsize(whole) > MOST_BYTES:
            self._skipped[path] = _TOO_LARGE
            return False
        return True

    def _ignored(self, paths: Sequence[str]) -> set[str]:
        if not paths:
            return set()
        given = b"".join(os.fsencode(path) + b"\0" for path in paths)
        words = ("check-ignore", "-z", "--stdin")
        out = self._repo.call(*words, "--no-index", given=given, accepted=(0, 1))
        if out:
            # A tracked file is never ignored. The index is large, so it is read only if a rule applies.
            out = self._repo.call(*words, given=given, accepted=(0, 1))
        return {os.fsdecode(path) for path in out.split(b"\0") if path}

    def _store(self, paths: Sequence[str]) -> dict[str, str | None]:
        """Store files as they are, and return their blobs; None for a file that is not there."""
        present = [path for path in paths if os.path.isfile(os.path.join(self._repo.top, path))]
        blobs = dict(zip(present, self._repo.hash_files(present), strict=True))
        return {path: blobs.get(path) for path in paths}

    # Commands, which may change any file

    def _of_shell(self, overlap: CallOverlap) -> list[dict[str, Any]]:
        changed = self._changed()
        if changed is None:
            self._skipped["*"] = _TOO_MANY
            return []
        files = [path for path in changed if not os.path.islink(os.path.join(self._repo.top, path))]
        with NewObjects(self._repo) as objects:
            edits = self._differing({path: overlap.blobs.get(path) or changed[path] for path in files}, overlap, objects)
            found = self._without_git(self._new_content(edits, objects), overlap, objects)
        renamed = self._renames(edits, found)
        self._update(list(changed))
        return [_compact(edit | renamed.get(edit["path"], {})) for edit in found]

    def _without_git(self, edits: list[dict[str, Any]], overlap: CallOverlap, objects: NewObjects) -> list[dict[str, Any]]:
        """Return what a command changed and committed, without what git brought into its files."""
        assert overlap.begun is not None
        state, head = overlap.begun.get("git"), overlap.begun.get("head")
        if state is None or not CommandWithGit.is_used(self._repo, state, head):
            return edits
        # Other calls may have written files meanwhile.
        before = {**self._indexed(), **overlap.blobs}
        command = CommandWithGit(self._repo, state, head, before, objects)
        found = [*command.committed(), *command.uncommitted(edits)]
        return [{"mixed": overlap.sessions(edit["path"]), **edit} for edit in found]

    def _renames(self, edits: list[dict[str, Any]], new: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
        """Return where renamed files came from, as `git diff -M` sees it, by their new paths."""
        gone = {edit["path"]: edit["old"] for edit in edits if edit["new"] is None}
        added = {edit["path"]: edit["new"] for edit in new if edit["old"] is None}
        if not gone or not added:
            return {}
        trees = [self._tree(files) for files in (gone, added)]
        return {new: {"old_path": old, "old": gone[old]} for new, old in self._repo.renames(*trees).items()}

    def _tree(self, files: dict[str, str]) -> str:
        """Return a tree of some files only."""
        index = f"{self._index}.tree"
        try:
            given = b"".join(f"100644 {blob}\t".encode() + os.fsencode(path) + b"\0" for path, blob in files.items())
            self._repo.call("update-index", "-z", "--index-info", given=given, index=index)
            return self._repo.call("write-tree", index=index).decode().strip()
        finally:
            if os.path.exists(index):
                os.unlink(index)

    # The private index

    @property
    def _index(self) -> str:
        name = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in self._session)
        return os.path.join(self._repo.state, f"index-{name[:100]}")

    def _refresh(self) -> None:
        """Bring the private index to what the worktree holds."""
        changed = self._changed() if os.path.exists(self._index) else None
        if changed is None:
            self._copy_index()
            changed = self._changed()
        if changed is None:
            raise GitFailed(_TOO_MANY)
        self._update(list(changed))

    def _copy_index(self) -> None:
        """Start from the user's index, which knows which files are unchanged."""
        os.makedirs(self._repo.state, exist_ok=True)
        fresh = f"{self._index}.new"
        try:
            # With its time: git compares contents where a file is as young as the index.
            shutil.copy2(os.path.join(self._repo.git_dir, "index"), fresh)
            os.replace(fresh, self._index)
        except FileNotFoundError:
            if os.path.exists(self._index):
                os.unlink(self._index)

    def _changed(self) -> dict[str, str | None] | None:
        """Return the files that differ from the private index, with the blobs that it has; None if there are too many."""
        # `git ls-files` lists the same, but looks at one file after the other.
        out = self._repo.call(*_STATUS, index=self._index)
        found = dict(_read_status(os.fsdecode(out)))
        captured = {
            path: blob
            for path, blob in found.items()
            if self._is_captured(path) or os.path.islink(os.path.join(self._repo.top, path))
        }
        return captured if len(captured) <= MOST_FILES else None

    def _indexed(self, paths: Sequence[str] | None = None) -> dict[str, str]:
        """Return the blobs that the private index has for paths, or for all."""
        if paths is not None and not paths:
            return {}
        out = self._repo.call("--literal-pathspecs", "ls-files", "-z", "--stage", "--", *(paths or ()), index=self._index)
        rows = (row.partition("\t") for row in os.fsdecode(out).split("\0") if row)
        parts = ((head.split(), path) for head, _, path in rows)
        return {path: head[1] for head, path in parts if head[2] == "0" and head[0].startswith("100")}

    def _update(self, paths: Sequence[str]) -> None:
        if paths:
            given = b"".join(os.fsencode(path) + b"\0" for path in paths)
            words = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
            self._repo.call(*words, given=given, index=self._index)

    # Snapshots

    def snapshot(self, moment: str, turn: str | None = None) -> dict[str, Any]:
        """Store the worktree as a commit, and return what is recorded of it."""
        self._refresh()
        tree = self._repo.call("write-tree", index=self._index).decode().strip()
        head = self._repo.head()
        words = ["commit-tree", tree, "-m", f"{self._session} {moment}", *(["-p", head] if head else [])]
        commit = self._repo.call(*words).decode().strip()
        taken = {"commit": commit, "moment": moment, "turn": turn, "skipped": self._skipped}
        return {**self._place(head), "snapshot": taken}


def _read_status(out: str) -> Iterator[tuple[str, str | None]]:
    """Yield the files of `git status` that differ from the index, with their blobs there; None for a link or a new file."""
    for row in out.split("\0"):
        kind, _, rest = row.partition(" ")
        if kind == "?" and not rest.endswith("/") and not rest.startswith(".decklog/"):
            yield rest, None
        elif kind == "u":
            yield rest.split(" ", 9)[-1], None
        elif kind == "1" and rest[1] != ".":
            _, _, _, mode, _, _, blob, path = rest.split(" ", 7)
            yield path, blob if mode.startswith("100") else None


def _compact(edit: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is empty."""
    return {name: value for name, value in edit.items() if value}
