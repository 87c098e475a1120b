"""Let ripgrep say quickly which files can hold a match.

Ripgrep is an accelerator only: the lines themselves are read and matched by us. So a pattern that its
dialect may read otherwise is simply not given to it, and a file it opened through a link swapped in
meanwhile shows nothing.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence

from decklog.core.errors import TimedOut

PATIENCE_SECONDS = 60
MOST_ARGUMENT_BYTES = 400_000
COMMAND = (
    "--no-config",
    "--files-with-matches",
    "--null",
    "--text",
    "--encoding=none",
    "--no-ignore",
    "--hidden",
    "--no-messages",
    "--color=never",
)
META = frozenset("\\.+*?()|[]{}^$#&-~")
# RE2's classes are ASCII and ripgrep's are Unicode; a line feed is never part of a line.
CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\f\r "}
ANCHORS = {"A": "^", "b": r"(?-u:\b)", "B": r"(?-u:\B)"}
# To us a line ends before its carriage return.
LINE_END = r"(?:\r?$)"
CONTROLS = frozenset("tnrfva")
HEX = re.compile(r"\\x(?:[0-9A-Fa-f]{2}|\{[0-9A-Fa-f]{1,6}\})")
GROUP = re.compile(r"\(\?(?::|P<\w+>|i\)|i:)")
POSIX = re.compile(r"\[:\^?\w+:\]")


def is_installed() -> bool:
    """Say whether ripgrep is on the path."""
    return shutil.which("rg") is not None


def candidates(directory: str, files: Sequence[str], pattern: str, *, case_sensitive: bool) -> tuple[str, ...] | None:
    """Give those of the files that can hold a match, in their order; None if ripgrep can't tell."""
    expression = translate(pattern)
    if expression is None:
        return None
    case = "--case-sensitive" if case_sensitive else "--ignore-case"
    found: set[str] = set()
    for batch in _batches(files):
        output = _run(directory, ["rg", *COMMAND, case, f"--regexp={expression}", "--", *batch])
        if output is None:
            return None
        found.update(name.decode("utf-8", "replace").removeprefix("./") for name in output.split(b"\0"))
    return tuple(file for file in files if file in found)


def _run(directory: str, command: list[str]) -> bytes | None:
    try:
        done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        hint = "Search a smaller directory."
        raise TimedOut(f"The search took over {PATIENCE_SECONDS} seconds", hint=hint) from None
    except OSError:
        return None
    return done.stdout if done.returncode in (0, 1) else None


def _batches(files: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for file in files:
        size += len(file.encode()) + 16
        if size > MOST_ARGUMENT_BYTES:
            yield batch
            batch, size = [], len(file.encode()) + 16
        batch.append(f"./{file}")
    if batch:
        yield batch


def translate(pattern: str) -> str | None:
    """Write an RE2 pattern in ripgrep's dialect, matching at least the same lines; None if unsure."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        step = _translate_at(pattern, at)
        if step is None:
            return None
        piece, at = step
        parts.append(piece)
    return "".join(parts)


def _translate_at(pattern: str, at: int) -> tuple[str, int] | None:
    char = pattern[at]
    if char == "$" or pattern.startswith("\\z", at):
        after = at + (1 if char == "$" else 2)
        # What is asked of the place after the end would be asked of the wrong one.
        return (LINE_END, after) if pattern[after : after + 1] in ("", "|", ")") else None
    if char == "\\":
        return _translate_escape(pattern, at, in_class=False)
    if char == "[":
        return _translate_class(pattern, at + 1)
    if pattern.startswith("(?", at):
        group = GROUP.match(pattern, at)
        return (group[0], group.end()) if group else None
    return char, at + 1


def _translate_escape(pattern: str, at: int, *, in_class: bool) -> tuple[str, int] | None:
    char = pattern[at + 1 : at + 2]
    if char.lower() in CLASSES:
        body = CLASSES[char.lower()]
        # A negated class excludes the line feed too, as RE2's `\S` does.
        return (f"[^{body}\\n]" if char == "S" else f"[^{body}]") if char.isupper() else f"[{body}]", at + 2
    if not in_class and char in ANCHORS:
        return ANCHORS[char], at + 2
    if found := HEX.match(pattern, at):
        return found[0], found.end()
    if char in CONTROLS and char:
        return f"\\{char}", at + 2
    if char and char.isascii() and not char.isalnum():
        return (f"\\{char}" if char in META else char), at + 2
    return None


def _translate_class(pattern: str, at: int) -> tuple[str, int] | None:
    negated = pattern[at : at + 1] == "^"
    at += negated
    parts: list[str] = ["[^" if negated else "["]
    first = True
    while first or pattern[at : at + 1] != "]":
        step = _translate_member(pattern, at)
        if step is None:
            return None
        piece, at = step
        parts.append(piece)
        first = False
    return "".join(parts) + "]", at + 1


def _translate_member(pattern: str, at: int) -> tuple[str, int] | None:
    if at >= len(pattern) or pattern.startswith("--", at):
        return None
    if pattern[at] == "\\":
        return _translate_escape(pattern, at, in_class=True)
    if found := POSIX.match(pattern, at):
        return found[0], found.end()
    # Set operations and nested classes are ripgrep's alone: in RE2 these are plain characters.
    return (f"\\{pattern[at]}" if pattern[at] in "[]&~^" else pattern[at]), at + 1
