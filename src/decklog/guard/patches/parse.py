"""Read a unified diff, plain or in git's form, into the changes it asks for."""

import re
from dataclasses import dataclass
from typing import NoReturn

from decklog.core.errors import Invalid
from decklog.guard.files.path_spelling import denied
from decklog.guard.files.text import lines_of

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
ESCAPE = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
ESCAPED = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
NOWHERE = "/dev/null"
MODES = {"100644": False, "100664": False, "100755": True}
LINKS = ("120000", "160000")


@dataclass(frozen=True)
class Hunk:
    """One block of a patch: what must be there, and what comes instead. `at` is its line in the patch."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    at: int
    added: int
    removed: int


@dataclass(frozen=True)
class FilePatch:
    """What a patch asks for one file; no old path means it is created, no new path that it is deleted."""

    old_path: str | None
    new_path: str | None
    hunks: tuple[Hunk, ...] = ()
    keeps_old: bool = False
    is_executable: bool | None = None

    @property
    def path(self) -> str:
        """The path the change is known by."""
        return self.new_path or self.old_path or ""


def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """Read a patch of any number of files; text before and between them, as in a mail, is passed over."""
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
        hunks: tuple[Hunk, ...] = ()
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
            self.fail("follows a change whose file can't be told", "Add the '---' and '+++' lines.")
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
            raise denied("special-file", path, "write")
        if mode is None:
            return None
        if mode not in MODES:
            self.fail(f"follows a change to the unknown mode {mode}", "Use 100644 or 100755.")
        return MODES[mode]

    def _hunks(self) -> tuple[Hunk, ...]:
        hunks: list[Hunk] = []
        while found := HUNK.match(self.peek()):
            hunks.append(self._hunk(found))
        if not hunks:
            self.fail("should start a hunk", "A hunk starts with '@@ -old,count +new,count @@'.")
        return tuple(hunks)

    def _hunk(self, heading: "re.Match[str]") -> Hunk:
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
        return Hunk(start, old, new, at, added, removed)

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
