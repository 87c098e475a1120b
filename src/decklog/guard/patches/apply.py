"""Apply a patch to the files beneath a root: all of it, or nothing."""

import re
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from difflib import unified_diff
from typing import NoReturn

from decklog.core.errors import Conflict, DecklogError, Invalid, NotFound
from decklog.guard.files.access import Op, build_denial
from decklog.guard.files.pending import PendingFile
from decklog.guard.files.root import Content, Root, translate_errors
from decklog.guard.files.text import TextFormat, decode, is_crlf, lines_of

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
ESCAPE = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
ESCAPED = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
NOWHERE = "/dev/null"
MODES = {"100644": False, "100664": False, "100755": True}
LINKS = ("120000", "160000")


@dataclass(frozen=True)
class PatchHunk:
    """One hunk of a patch: the old lines and the new lines. `at` is its line in the patch."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    at: int
    added: int
    removed: int


@dataclass(frozen=True)
class FilePatch:
    """Changes of one file in a patch. A created file has no old path, a deleted file no new path."""

    old_path: str | None
    new_path: str | None
    hunks: tuple[PatchHunk, ...] = ()
    keeps_old: bool = False
    is_executable: bool | None = None

    @property
    def path(self) -> str:
        """The new path, or the old path of a deleted file."""
        return self.new_path or self.old_path or ""


def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """Parse a patch of any number of files; other text before and between them, as in a mail, is ignored."""
    reader = _Reader([line if line.endswith("\n") else f"{line}\n" for line in lines_of(text)])
    files = tuple(reader.files())
    if not files:
        raise Invalid("The patch changes no file", hint="Give a unified diff with '---' and '+++' lines.")
    return files


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.lines[at] if at < len(self.lines) else ""

    def fail(self, what: str, hint: str) -> NoReturn:
        raise Invalid(f"Line {self.at + 1} of the patch {what}", hint=hint, line=self.at + 1)

    def files(self) -> list[FilePatch]:
        found: list[FilePatch] = []
        while self.at < len(self.lines):
            if self.peek().startswith("diff --git "):
                found.append(self._git_file())
            elif self._is_heading():
                old, new = self._names()
                found.append(FilePatch(old, new, self._hunks()))
            elif HUNK.match(self.peek()):
                self.fail("is a hunk of no file", "Put the '---' and '+++' lines before it.")
            else:
                self.at += 1
        return found

    def _is_heading(self) -> bool:
        return self.peek().startswith("--- ") and self.peek(1).startswith("+++ ")

    def _names(self) -> tuple[str | None, str | None]:
        old, new = _heading_name(self.peek()), _heading_name(self.peek(1))
        if old == new == NOWHERE:
            self.fail("names no file on either side", "Name the file.")
        self.at += 2
        if old.startswith(("a/", NOWHERE)) and new.startswith(("b/", NOWHERE)):
            old, new = old.removeprefix("a/"), new.removeprefix("b/")
        # Only git's own words move a file: a plain diff between two names changes the first.
        kept = new if old == NOWHERE else old
        return (None if old == NOWHERE else kept), (None if new == NOWHERE else kept)

    def _git_file(self) -> FilePatch:
        names = _git_names(self.peek())
        self.at += 1
        says = self._git_words()
        old, new = (names, names) if names else (None, None)
        hunks: tuple[PatchHunk, ...] = ()
        if self._is_heading():
            old, new = self._names()
            hunks = self._hunks()
        moved = "rename from" in says or "copy from" in says
        if moved:
            old = _unquoted(says.get("rename from") or says["copy from"])
            new = _unquoted(says.get("rename to") or says.get("copy to") or "")
        if "new file mode" in says:
            old = None
        if "deleted file mode" in says:
            new = None
        if not (old or new):
            self.fail("follows a change whose file is unclear", "Add the '---' and '+++' lines.")
        return FilePatch(old, new, hunks, "copy from" in says, self._executable(says, new or old or ""))

    def _git_words(self) -> dict[str, str]:
        says: dict[str, str] = {}
        words = re.compile(
            r"(old mode|new mode|deleted file mode|new file mode|copy from|copy to|rename from|rename to"
            r"|similarity index|dissimilarity index|index) (.*)"
        )
        while found := words.fullmatch(self.peek().rstrip("\r\n")):
            says[found[1]] = found[2]
            self.at += 1
        if self.peek().startswith(("Binary files ", "GIT binary patch")):
            self.fail("is a binary change", "Only texts can be patched; write the file another way.")
        return says

    def _executable(self, says: dict[str, str], path: str) -> bool | None:
        mode = says.get("new file mode") or says.get("new mode")
        modes = [says.get(word) for word in ("old mode", "new mode", "new file mode", "deleted file mode")]
        modes.append(says.get("index", "").partition(" ")[2])
        if any(one in LINKS for one in modes):
            raise build_denial("special-file", path, "write")
        if mode is None:
            return None
        if mode not in MODES:
            self.fail(f"follows a change to the unknown mode {mode}", "Use 100644 or 100755.")
        return MODES[mode]

    def _hunks(self) -> tuple[PatchHunk, ...]:
        hunks: list[PatchHunk] = []
        while found := HUNK.match(self.peek()):
            hunks.append(self._hunk(found))
        if not hunks:
            self.fail("should start a hunk", "A hunk starts with '@@ -old,count +new,count @@'.")
        return tuple(hunks)

    def _hunk(self, heading: re.Match[str]) -> PatchHunk:
        at = self.at + 1
        self.at += 1
        sides = {"-": int(heading[2] or 1), "+": int(heading[4] or 1)}
        lines: list[tuple[str, str]] = []
        while sides["-"] > 0 or sides["+"] > 0:
            lines.append(self._body_line(sides))
        old = tuple(line for sign, line in lines if sign != "+")
        new = tuple(line for sign, line in lines if sign != "-")
        added, removed = (sum(sign == wanted for sign, _ in lines) for wanted in "+-")
        start = int(heading[1]) if not old else int(heading[1]) - 1
        return PatchHunk(start, old, new, at, added, removed)

    def _body_line(self, sides: dict[str, int]) -> tuple[str, str]:
        line = self.peek()
        sign, rest = (line[0], line[1:]) if line[:1] in ("+", "-", " ") else (" ", line)
        # Editors strip the lone space of an empty context line.
        if not line or (sign == " " and line[0] not in (" ", "\n", "\r")):
            self.fail("is not part of a hunk whose counts say it goes on", "Correct the counts after '@@'.")
        for side in ("-", "+"):
            sides[side] -= sign in (side, " ")
        if min(sides.values()) < 0:
            self.fail("is more than the hunk's counts say", "Correct the counts after '@@'.")
        self.at += 1
        if self.peek().startswith("\\"):
            self.at += 1
            rest = rest.removesuffix("\n")
        return sign, rest


def _heading_name(line: str) -> str:
    name = line[4:].rstrip("\r\n")
    return _unquoted(name) if name.startswith('"') else name.partition("\t")[0].rstrip()


def _unquoted(name: str) -> str:
    if not name.startswith('"'):
        return name
    body = name[1 : name.rindex('"')] if name.count('"') > 1 else name[1:]
    raw = ESCAPE.sub(lambda found: chr(_escaped(found[1])), body.encode("utf-8").decode("latin-1"))
    return raw.encode("latin-1", "replace").decode("utf-8", "replace")


def _escaped(code: str) -> int:
    return int(code, 8) & 0xFF if len(code) == 3 else ESCAPED[code]


def _git_names(line: str) -> str | None:
    both = line.removeprefix("diff --git ").rstrip("\r\n")
    if both.startswith('"'):
        return _unquoted(both[: both.index('"', 1) + 1]).removeprefix("a/") if '"' in both[1:] else None
    left, right = both[: len(both) // 2], both[len(both) // 2 + 1 :]
    left, right = left.removeprefix("a/"), right.removeprefix("b/")
    return left if left == right else None


@dataclass(frozen=True)
class PatchedFile:
    """One patched file: `created`, `changed`, `deleted`, `renamed` or `copied`, with its line counts."""

    path: str
    action: str
    added: int
    removed: int
    old_path: str | None = None


@dataclass(frozen=True)
class PatchResult:
    """The files that a patch changed, in the patch's order."""

    files: tuple[PatchedFile, ...]


def apply_patch(root: Root, text: str) -> PatchResult:
    """Apply a unified diff: create, change, delete and rename files. If one change fails, none is made.

    The changes are computed in memory first. A hunk without matching lines, a path outside of the root or a file that exists
    already raises an error before anything is written. A hunk may match at other line numbers if its lines occur only once;
    there is no fuzzy matching. If a write fails, the files that were already written are restored.
    """
    plan = _Plan(root)
    files = tuple(plan.add(file) for file in parse_patch(text))
    plan.write_files()
    return PatchResult(files)


def plan_patch(root: Root, text: str) -> tuple[PatchResult, dict[str, tuple[bytes | None, bytes | None]]]:
    """Return what a patch would do, without doing it: its result, and each file's bytes before and after."""
    plan = _Plan(root)
    files = tuple(plan.add(file) for file in parse_patch(text))
    before = {path: content.data if content else None for path, content in plan.before.items()}
    return PatchResult(files), {path: (before[path], data) for path, data in plan.after.items()}


class _Plan:
    """The state of all files of a patch, before and after."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self.before: dict[str, Content | None] = {}
        self.after: dict[str, bytes | None] = {}
        self.executable: dict[str, bool | None] = {}

    def add(self, file: FilePatch) -> PatchedFile:
        """Add one file's change to the plan."""
        old = self._place(file.old_path) if file.old_path else None
        new = self._place(file.new_path) if file.new_path else None
        data = self._contents(old, file) if old else b""
        if new and new != old and self._current_data(new) is not None:
            hint = "Delete it first, or patch it as an existing file."
            raise Conflict(f"The patch creates {new!r}, which exists", hint=hint, path=new)
        data = _patched(data, file)
        if new is None and data:
            hint = "A deletion must take every line of the file."
            raise Invalid(f"The patch deletes {old!r} but leaves lines of it", hint=hint, path=old)
        self._set_states(old, new, data, file)
        added, removed = (sum(getattr(hunk, side) for hunk in file.hunks) for side in ("added", "removed"))
        moved_from = old if old != new and new else None
        return PatchedFile(new or old or "", _action(old, new, file), added, removed, moved_from)

    def _set_states(self, old: str | None, new: str | None, data: bytes, file: FilePatch) -> None:
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

    def _current_data(self, path: str) -> bytes | None:
        before = self.before[path]
        return self.after.get(path, before.data if before else None)

    def _contents(self, path: str, file: FilePatch) -> bytes:
        data = self._current_data(path)
        if data is None:
            raise NotFound(f"The patch changes {file.old_path!r}, which does not exist", path=path)
        return data

    def write_files(self) -> None:
        """Write all changed files; after a failure, restore those that were already written."""
        with ExitStack() as staged:
            changes = [staged.enter_context(change) for change in self._staged()]
            done: list[PendingFile] = []
            try:
                for change in changes:
                    before = self.before[change.path]
                    with translate_errors(change.path, Op.WRITE):
                        change.commit(before.found if before else None)
                    done.append(change)
            except BaseException:
                self._restore(done)
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

    def _restore(self, done: list[PendingFile]) -> None:
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


def _text(data: bytes) -> tuple[str, TextFormat]:
    text, form = decode(data)
    # A patch shows the mark of a UTF-8 file as the first character of its first line.
    return (f"\ufeff{text}", TextFormat()) if form.mark and form.encoding == "utf-8" else (text, form)


def _with_endings_of(text: str, hunks: tuple[PatchHunk, ...]) -> tuple[PatchHunk, ...]:
    """Return the hunks with the file's line endings, for a patch that was written with others."""
    wanted = "\r\n" if is_crlf(text) else "\n"

    def adapt(lines: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(line[:-1].removesuffix("\r") + wanted if line.endswith("\n") else line for line in lines)

    return tuple(PatchHunk(hunk.start, adapt(hunk.old), adapt(hunk.new), hunk.at, hunk.added, hunk.removed) for hunk in hunks)


def _rewritten(text: str, hunks: tuple[PatchHunk, ...], path: str) -> str:
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


def _locate(lines: list[str], hunk: PatchHunk, used: int, shift: int, path: str) -> int:
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


NO_NEWLINE = "\\ No newline at end of file\n"


def generate_diff(root: Root, a_path: str, b_path: str, unified: int = 3) -> str:
    """Compare two files; return the diff with `unified` lines of context, empty when they are equal.

    Refuses binary files. A file that is not UTF-8 is shown as Latin-1.
    """
    a, b = root.read(a_path), root.read(b_path)
    for content in (a, b):
        if b"\0" in content.data:
            raise Invalid(f"{content.path!r} is binary", hint="Only texts can be compared.", path=content.path)
    encoding = _common_encoding(a.data, b.data)
    return diff_texts(a.data.decode(encoding), b.data.decode(encoding), a.path, b.path, unified)


def _common_encoding(a: bytes, b: bytes) -> str:
    try:
        (a + b"\n" + b).decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def diff_texts(a: str, b: str, a_name: str, b_name: str, unified: int = 3) -> str:
    """Compare two texts; return the diff with `unified` lines of context, empty when they are equal."""
    if unified < 0:
        raise Invalid(f"{unified} lines of context can't be shown", hint="Give 0 or more.", unified=unified)
    lines = list(unified_diff(lines_of(a), lines_of(b), n=unified))
    if not lines:
        return ""
    body = [line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}" for line in lines[2:]]
    return "".join([f"--- {_name('a', a_name)}\n+++ {_name('b', b_name)}\n", *body])


def _name(side: str, path: str) -> str:
    name = f"{side}/{path}"
    if any(char in '"\\' or char < " " for char in path):
        body = "".join(f"\\{ord(char):03o}" if char in '"\\' or char < " " else char for char in name)
        return f'"{body}"'
    # The tab marks the end of a name with spaces.
    return f"{name}\t" if " " in name else name
