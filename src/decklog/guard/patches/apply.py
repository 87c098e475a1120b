"""Apply a patch to the files beneath a root: all of it, or nothing."""

from contextlib import ExitStack, suppress
from dataclasses import dataclass

from decklog.core.errors import Conflict, DecklogError, Invalid, NotFound
from decklog.guard.files.access import Op
from decklog.guard.files.pending import PendingFile
from decklog.guard.files.root import Content, Root, errors_of
from decklog.guard.files.text import Form, decode, is_crlf, lines_of
from decklog.guard.patches.parse import FilePatch, Hunk, parse_patch


@dataclass(frozen=True)
class PatchedFile:
    """One file of a patch: `created`, `changed`, `deleted`, `renamed` or `copied`, and how much."""

    path: str
    action: str
    added: int
    removed: int
    old_path: str | None = None


@dataclass(frozen=True)
class Patched:
    """What a patch did, file by file, in its order."""

    files: tuple[PatchedFile, ...]


def apply_patch(root: Root, text: str) -> Patched:
    """Apply a unified diff: create, change, delete and rename files, or refuse it whole.

    Everything is worked out in memory first: a hunk whose lines are not there, a path that gets out, a file
    that is in the way refuses the patch before anything is written. A hunk may have moved if its lines
    occur in one place only; they are never matched loosely. Should a write then fail, the files already
    written are put back.
    """
    plan = _Plan(root)
    files = tuple(plan.add(file) for file in parse_patch(text))
    plan.carry_out()
    return Patched(files)


def plan_patch(root: Root, text: str) -> tuple[Patched, dict[str, tuple[bytes | None, bytes | None]]]:
    """Work out what a patch would do without doing it: its result, and each file's bytes before and after."""
    plan = _Plan(root)
    files = tuple(plan.add(file) for file in parse_patch(text))
    before = {path: content.data if content else None for path, content in plan.before.items()}
    return Patched(files), {path: (before[path], data) for path, data in plan.after.items()}


class _Plan:
    """The state of every file a patch touches, before and after."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self.before: dict[str, Content | None] = {}
        self.after: dict[str, bytes | None] = {}
        self.executable: dict[str, bool | None] = {}

    def add(self, file: FilePatch) -> PatchedFile:
        """Work one file's change into the plan."""
        old = self._place(file.old_path) if file.old_path else None
        new = self._place(file.new_path) if file.new_path else None
        data = self._contents(old, file) if old else b""
        if new and new != old and self._now(new) is not None:
            hint = "Delete it first, or patch it as an existing file."
            raise Conflict(f"The patch creates {new!r}, which exists", hint=hint, path=new)
        data = _patched(data, file)
        if new is None and data:
            hint = "A deletion must take every line of the file."
            raise Invalid(f"The patch deletes {old!r} but leaves lines of it", hint=hint, path=old)
        self._settle(old, new, data, file)
        added, removed = (sum(getattr(hunk, side) for hunk in file.hunks) for side in ("added", "removed"))
        moved_from = old if old != new and new else None
        return PatchedFile(new or old or "", _action(old, new, file), added, removed, moved_from)

    def _settle(self, old: str | None, new: str | None, data: bytes, file: FilePatch) -> None:
        if old and old != new and not file.keeps_old:
            self.after[old] = None
        if new:
            self.after[new] = data
            self.executable[new] = file.is_executable

    def _place(self, path: str) -> str:
        exact = self.root.place(path, Op.WRITE).path
        if exact not in self.before:
            try:
                self.before[exact] = self.root.read(exact)
            except NotFound:
                self.before[exact] = None
        return exact

    def _now(self, path: str) -> bytes | None:
        before = self.before[path]
        return self.after.get(path, before.data if before else None)

    def _contents(self, path: str, file: FilePatch) -> bytes:
        data = self._now(path)
        if data is None:
            raise NotFound(f"The patch changes {file.old_path!r}, which does not exist", path=path)
        return data

    def carry_out(self) -> None:
        """Write the plan down; on a failure put back what was already written."""
        with ExitStack() as staged:
            changes = [staged.enter_context(change) for change in self._staged()]
            done: list[PendingFile] = []
            try:
                for change in changes:
                    before = self.before[change.path]
                    with errors_of(change.path, Op.WRITE):
                        change.commit(before.found if before else None)
                    done.append(change)
            except BaseException:
                self._put_back(done)
                raise

    def _staged(self) -> list[PendingFile]:
        with ExitStack() as undo:
            changes: list[PendingFile] = []
            for path, data in self.after.items():
                if data is None and self.before[path] is None:
                    continue
                change = self.root.stage(path, data, is_executable=self.executable.get(path))
                undo.callback(change.abort)
                changes.append(change)
            undo.pop_all()
        return changes

    def _put_back(self, done: list[PendingFile]) -> None:
        for change in reversed(done):
            before = self.before[change.path]
            data = before.data if before else None
            # The first error is the one to tell; a file that resists being put back must not hide it.
            with suppress(DecklogError), self.root.stage(change.path, data) as back:
                back.commit()


def _action(old: str | None, new: str | None, file: FilePatch) -> str:
    if old is None:
        return "created"
    if new is None:
        return "deleted"
    if old == new:
        return "changed"
    return "copied" if file.keeps_old else "renamed"


def _patched(data: bytes, file: FilePatch) -> bytes:
    text, form = _text(data)
    try:
        return form.encode(_rewritten(text, file.hunks, file.path))
    except Invalid:
        adapted = _with_endings_of(text, file.hunks)
        if adapted == file.hunks:
            raise
        return form.encode(_rewritten(text, adapted, file.path))


def _text(data: bytes) -> tuple[str, Form]:
    text, form = decode(data)
    # A patch shows the mark of a UTF-8 file as the first character of its first line.
    return (f"\ufeff{text}", Form()) if form.mark and form.encoding == "utf-8" else (text, form)


def _with_endings_of(text: str, hunks: tuple[Hunk, ...]) -> tuple[Hunk, ...]:
    """Return the hunks with the file's line endings, for a patch that was written with others."""
    wanted = "\r\n" if is_crlf(text) else "\n"

    def adapt(lines: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(line[:-1].removesuffix("\r") + wanted if line.endswith("\n") else line for line in lines)

    return tuple(Hunk(hunk.start, adapt(hunk.old), adapt(hunk.new), hunk.at, hunk.added, hunk.removed) for hunk in hunks)


def _rewritten(text: str, hunks: tuple[Hunk, ...], path: str) -> str:
    lines = lines_of(text)
    result: list[str] = []
    used = shift = 0
    for hunk in hunks:
        at = _locate(lines, hunk, used, shift, path)
        shift = at - hunk.start
        result += [*lines[used:at], *hunk.new]
        used = at + len(hunk.old)
    result += lines[used:]
    if any(not line.endswith("\n") for line in result[:-1]):
        hint = "Only the last line may be marked '\\ No newline at end of file'."
        raise Invalid(f"The patch would join two lines of {path!r}", hint=hint, path=path)
    return "".join(result)


def _locate(lines: list[str], hunk: Hunk, used: int, shift: int, path: str) -> int:
    old, stated = list(hunk.old), hunk.start + shift
    if used <= stated <= len(lines) and lines[stated : stated + len(old)] == old:
        return stated
    last = len(lines) - len(old)
    places = [at for at in range(used, last + 1) if lines[at : at + len(old)] == old] if old else []
    if len(places) == 1:
        return places[0]
    what = "fits in several places" if places else "does not fit"
    raise Invalid(
        f"The hunk at line {hunk.at} of the patch {what} in {path!r}",
        hint="Read the file again and make the patch from what it holds now.",
        path=path,
        line=hunk.at,
        matches=len(places),
    )
