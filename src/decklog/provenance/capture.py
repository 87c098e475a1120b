"""Capture edits around tool calls. Objects are stored here; the caller records the returned edits.

An edit is captured only if git did not have its content before. Other content was restored, merged or copied, so the call did
not write it.
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
# Matches every call of a session whose turn has ended.
ALL = "*"


class OpenCalls:
    """The file that lists the begin and the end of calls, one line for each event in order.

    A line has the session and the paths that the call may change or has changed; None means any path.
    """

    def __init__(self, state: str) -> None:
        self._path = os.path.join(state, _FILE)

    @contextmanager
    def locked(self) -> "Iterator[list[Line]]":
        """Lock the file, yield its lines, and write them back after the block."""
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "r+", encoding="utf-8") as file:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            text = file.read()
            lines = [line for line in map(_read, text.splitlines()) if line]
            yield lines
            written = "".join(json.dumps(line) + "\n" for line in _drop_finished(lines))
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
    """The changes by other calls while one call was running."""

    def __init__(self, lines: "list[Line]", session: str, call: str) -> None:
        starts = [place for place, line in enumerate(lines) if line.get("begin") == call and line["session"] == session]
        self.start_line: Line | None = lines[starts[-1]] if starts else None
        # The blob of each path that captured calls changed meanwhile.
        self.blobs: dict[str, str] = {}
        self._paths: dict[str, set[str]] = {}
        self._any_path: set[str] = set()
        if starts:
            self._collect(lines, starts[-1])

    def _collect(self, lines: "list[Line]", start: int) -> None:
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
        """Return the other sessions that may have changed a path during the call."""
        assert self.start_line is not None
        named = {session for session, paths in self._paths.items() if path in paths}
        return sorted((named | self._any_path) - {self.start_line["session"]})


def has_open_shell_call(lines: "list[Line]", session: str) -> bool:
    """Return whether a session has an open call that may change any file."""
    return any(line["session"] == session and line["paths"] is None for line in _open(lines))


def _open(lines: "list[Line]") -> "list[Line]":
    """Return the calls that have started and not ended."""
    found: list[Line] = []
    for line in lines:
        if "begin" in line:
            found.append(line)
        else:
            found = [one for one in found if one["session"] != line["session"] or line["end"] not in (ALL, one["begin"])]
    return found


def _drop_finished(lines: "list[Line]") -> "list[Line]":
    """Drop the lines before the oldest open call, which no call needs."""
    waiting = [line for line in _open(lines) if not _is_gone(line)]
    return lines[lines.index(waiting[0]) :] if waiting else []


def _read(text: str) -> "Line | None":
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and "session" in line and ("begin" in line or "end" in line) else None


def _is_gone(line: "Line") -> bool:
    """Return whether the program of a call is known to have ended."""
    process = line.get("process")
    return isinstance(process, str) and Identity.from_text(process).is_alive() is False


# Larger files are skipped, and so are calls that change more files.
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
        self._calls = OpenCalls(repo.state)
        self._skipped: dict[str, str] = {}

    # Around a tool call

    def begin(self, call: str, target: FileCall | None, stated: dict[str, list[tuple[bytes, bytes]]] | None = None) -> None:
        """Store the files that a call may change, before it does. Without a target it may change any file.

        `stated` has the replaced texts of each path. It is needed if the call may have changed files already.
        """
        line: dict[str, Any] = {"begin": call, "session": self._session, "paths": None, "head": self._repo.head()}
        if self._process is not None:
            line["process"] = self._process
        if target is None:
            with self._calls.locked() as lines:
                # Other open calls compare with the index from before them.
                is_fresh = not has_open_shell_call(lines, self._session)
            if is_fresh:
                self._refresh()
            line["git"] = git_state(self._repo)
        else:
            paths = [path for path in target.paths if self._is_captured(path)]
            ignored = self._ignored(paths)
            self._skipped.update(dict.fromkeys(ignored, _IGNORED))
            paths = [path for path in paths if path not in ignored]
            changed = self._find_earlier_changes(paths, stated) if stated else {}
            rest = [path for path in paths if path not in changed]
            line["paths"], line["blobs"] = paths, {**changed, **self._store(rest)}
        line["skipped"] = self._skipped
        self._calls.begin(line)

    def end(self, call: str, target: FileCall | None) -> dict[str, Any] | None:
        """Store and return the edits of a call that has ended; None if it changed nothing."""
        with self._calls.locked() as lines:
            overlap = CallOverlap(lines, self._session, call)
            edits: list[dict[str, Any]] = []
            if overlap.start_line is not None:
                self._skipped.update(overlap.start_line.get("skipped") or {})
                edits = self._find_shell_edits(overlap) if target is None else self._find_tool_edits(overlap, target)
            blobs = {edit["path"]: edit.get("new") for edit in edits}
            lines.append({"end": call, "session": self._session, "paths": [], "blobs": blobs})
        if overlap.start_line is None or not (edits or self._skipped):
            return None
        return {**self._place(overlap.start_line.get("head")), "edits": edits, "skipped": self._skipped}

    def forget(self, call: str) -> None:
        """Forget a call that did not start."""
        with self._calls.locked() as lines:
            lines.append({"end": call, "session": self._session, "paths": []})

    def end_turn(self) -> None:
        """Forget the calls of this session whose end was not reported."""
        self._calls.end_all(self._session)

    def _place(self, head: str | None) -> dict[str, Any]:
        self._repo.save_identity()
        return {"repository": self._repo.identity, "top": self._repo.top, "head": head}

    # Tools that name their files

    def _find_tool_edits(self, overlap: CallOverlap, target: FileCall) -> list[dict[str, Any]]:
        assert overlap.start_line is not None
        olds = overlap.start_line.get("blobs") or {}
        paths = [path for path in olds if self._is_captured(path)]
        with NewObjects(self._repo) as objects:
            edits = self._find_changes({path: overlap.blobs.get(path) or olds[path] for path in paths}, overlap, objects)
            for edit in edits:
                if target.has_content and edit["new"] and edit["path"] not in overlap.blobs:
                    edit["new"] = self._find_written_blob(edit, target, objects)
            kept = self._new_content(edits, objects)
        return [_compact(edit | self._find_move(edit, target, olds)) for edit in kept]

    def _find_changes(self, olds: Mapping[str, str | None], overlap: CallOverlap, objects: NewObjects) -> list[dict[str, Any]]:
        """Return an edit for each file whose content has changed."""
        news = objects.write_files([path for path in olds if os.path.isfile(os.path.join(self._repo.top, path))])
        changed = [path for path, old in olds.items() if old != news.get(path)]
        return [{"path": path, "old": olds[path], "new": news.get(path), "mixed": overlap.sessions(path)} for path in changed]

    def _find_move(self, edit: dict[str, Any], target: FileCall, olds: dict[str, Any]) -> dict[str, Any]:
        """Return the former path and blob of a file that the tool moved."""
        former = target.renamed.get(edit["path"])
        return {"old_path": former, "old": olds[former]} if former and not edit["old"] and olds.get(former) else {}

    def _new_content(self, edits: list[dict[str, Any]], objects: NewObjects) -> list[dict[str, Any]]:
        """Return the edits whose content is new to git, or that deleted a file, and keep the content."""
        changed = (edit for edit in edits if edit["new"] != edit["old"])
        found = [edit for edit in changed if edit["new"] is None or objects.is_new(edit["new"])]
        for blob in {edit["new"] for edit in found if edit["new"]}:
            objects.keep(blob)
        return found

    def _find_written_blob(self, edit: dict[str, Any], target: FileCall, objects: NewObjects) -> str:
        """Return the blob that the tool wrote. If the file differs from it, someone else made the difference."""
        before = self._repo.call("cat-file", "blob", edit["old"]) if edit["old"] and target.needs_former else b""
        expected = expected_content(before, target)
        with open(os.path.join(self._repo.top, edit["path"]), "rb") as file:
            is_as_expected = expected is None or file.read() == expected
        return str(edit["new"]) if is_as_expected else objects.write_text(edit["path"], expected or b"")

    def _find_earlier_changes(self, paths: Sequence[str], stated: dict[str, list[tuple[bytes, bytes]]]) -> dict[str, str | None]:
        """Return the former blobs of files that a call has changed already.

        The private index has the last known content. If the stated changes turn it into exactly the current content, only the
        call changed the file.
        """
        present = [path for path in paths if path in stated and os.path.isfile(os.path.join(self._repo.top, path))]
        if not present or not os.path.exists(self._index):
            return {}
        olds, found = self._indexed(present), dict[str, str | None]()
        with NewObjects(self._repo) as objects:
            for path, blob in objects.write_files(present).items():
                old = olds.get(path)
                if blob == old or not objects.is_new(blob):
                    continue
                after = stated_content(self._repo.call("cat-file", "blob", old) if old else b"", stated[path])
                if after is not None and objects.write_text(path, after) == blob:
                    found[path] = old
        return found

    def update_index(self, paths: Sequence[str]) -> None:
        """Update files of the private index from the worktree."""
        if os.path.exists(self._index):
            self._update(paths)

    def _is_captured(self, path: str) -> bool:
        """Return whether a path can be captured: a missing file, or a regular one that is not too large."""
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
            # Tracked files are never ignored. The index is large, so it is read only if a rule matches.
            out = self._repo.call(*words, given=given, accepted=(0, 1))
        return {os.fsdecode(path) for path in out.split(b"\0") if path}

    def _store(self, paths: Sequence[str]) -> dict[str, str | None]:
        """Store files and return their blobs; None for a missing file."""
        present = [path for path in paths if os.path.isfile(os.path.join(self._repo.top, path))]
        blobs = dict(zip(present, self._repo.hash_files(present), strict=True))
        return {path: blobs.get(path) for path in paths}

    # Commands, which may change any file

    def _find_shell_edits(self, overlap: CallOverlap) -> list[dict[str, Any]]:
        changed = self._changed()
        if changed is None:
            self._skipped["*"] = _TOO_MANY
            return []
        files = [path for path in changed if not os.path.islink(os.path.join(self._repo.top, path))]
        with NewObjects(self._repo) as objects:
            edits = self._find_changes({path: overlap.blobs.get(path) or changed[path] for path in files}, overlap, objects)
            found = self._without_git(self._new_content(edits, objects), overlap, objects)
        renamed = self._renames(edits, found)
        self._update(list(changed))
        return [_compact(edit | renamed.get(edit["path"], {})) for edit in found]

    def _without_git(self, edits: list[dict[str, Any]], overlap: CallOverlap, objects: NewObjects) -> list[dict[str, Any]]:
        """Return the edits and commits of a command, without content that git added to its files."""
        assert overlap.start_line is not None
        state, head = overlap.start_line.get("git"), overlap.start_line.get("head")
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
        """Store the worktree as a commit, and return its record."""
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
    """Remove empty values."""
    return {name: value for name, value in edit.items() if value}
