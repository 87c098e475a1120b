"""What is left over in the lines that a change adds: conflicts, debugging, notes for later, dead code, white space."""

import ast
import re
from collections.abc import Iterator, Sequence

from decklog.core.python_source import parsed
from decklog.review.change import AddedLine
from decklog.review.result import Finding, Severity
from decklog.review.rules.languages import COMMENTS, is_comment, suffix_of

_MARKER = re.compile(r"(?:<{7}|>{7}|\|{7})(?: |$)|={7}$")
_DEBUGGERS = (
    *(r"breakpoint\(\)", r"\w*pdb\.set_trace\(", r"import (?:\w*pdb|pudb)\b", r"debugpy\.(?:listen|wait_for_client)\(", r"ic\("),
    *(
        r"debugger;",
        r"dbg!\(",
        r"binding\.(?:pry|irb)\b",
        r"byebug\b",
        r"(?:require )?IEx\.pry",
        r"(?:System\.Diagnostics\.)?Debugger\.Break\(",
    ),
    *(r"var_dump\(", r"dd\(\$", r"console\.(?:log|debug)\("),
)
# What prints, in whatever language, if what it prints begins as nothing does that a user is meant to read.
_PRINTS = (
    *(r"print(?:ln|f)?!?", r"puts", r"p", r"echo", r"fmt\.Print(?:ln|f)?", r"fprintf", r"e?println!", r"IO\.(?:puts|inspect)"),
    *(r"Console\.(?:Error\.)?Write(?:Line)?", r"System\.(?:out|err)\.print(?:ln|f)?", r"NSLog", r"error_log", r"io\.write"),
)
_DEBUG = re.compile(
    rf"(?:^|[\s;{{(])(?:{'|'.join(_DEBUGGERS)})"
    rf"|(?:^|[\s;{{(])(?:{'|'.join(_PRINTS)})(?:\s*\(|\s)\s*(?:stderr,\s*)?[f@$]?[\"'](?:DEBUG|XXX|HERE|>>>|###)"
)
# A linter was told that this line prints on purpose.
_MEANT = re.compile(r"(?:eslint-disable|biome-ignore|ignore:|noqa|nolint|rubocop:disable)")
_LATER = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b(?!\.\w)(?P<rest>.*)")
# What makes a note for later one that somebody can find again: an address, a number, or a key of a tracker.
_LINK = re.compile(r"https?://|#\d+|\b[A-Z][A-Z0-9]+-\d+\b|\bgh-\d+")
_DECLARING = "const|let|val|var|local|my|our|auto|final|private|public|protected|static|def|fun|func|fn"
_CODE_IN_COMMENT = re.compile(
    rf"[;{{}}]\s*$|^\s*(?:return|if|for|while|import|use|{_DECLARING})\b.*[;{{(]\s*$"
    rf"|^\s*(?:(?:{_DECLARING})\s+)+[\w$]+\s*(?::\s*[\w<>?, ]+)?=[^=]"
    r"|^\s*[$@]?[\w$]+(?:(?:\.|->|::)[\w$]+[!?]?)+\(.*\)\s*$"
)
_CALL_OF_PROSE = re.compile(r"^[A-Za-z]+ \(")
_TEXTS = (".md", ".txt", ".rst", ".diff", ".patch", ".svg", ".csv")


def leftovers(path: str, lines: Sequence[AddedLine]) -> Iterator[Finding]:
    """Find what was left over in the lines that are added to one file."""
    suffix = suffix_of(path)
    before = ""
    for line in lines:
        yield from _of_line(line, is_text=suffix in _TEXTS, is_meant=_MEANT.search(before + line.text) is not None)
        before = line.text
    if suffix in COMMENTS:
        yield from _commented_out(lines, suffix)


def _of_line(line: AddedLine, *, is_text: bool, is_meant: bool) -> Iterator[Finding]:
    if not is_text and _MARKER.match(line.text):
        yield _found(Severity.BLOCKING, "conflict-marker", "a conflict was not resolved", "Decide which side is meant.", line)
    if not is_text and not is_meant and _DEBUG.search(line.text):
        yield _minor("debug", "left from looking for a fault", "Take it out.", line)
    later = _LATER.search(line.text)
    if later is not None and not _LINK.search(later["rest"]):
        yield _minor("note-for-later", "a note for later that leads nowhere", "Name where it is followed up, or do it.", line)
    if not is_text and line.text != line.text.rstrip() and line.text.strip():
        yield _minor("white-space", "white space at the end of the line", "Take it out.", line)


def _minor(kind: str, text: str, remedy: str, line: AddedLine) -> Finding:
    return _found(Severity.MINOR, kind, text, remedy, line)


def _found(severity: Severity, kind: str, text: str, remedy: str, line: AddedLine) -> Finding:
    return Finding(severity=severity, kind=kind, text=text, remedy=remedy, file=line.file, line=line.number)


# Code that is commented out


def _commented_out(lines: Sequence[AddedLine], suffix: str) -> Iterator[Finding]:
    """Find comments that are code. A comment of several lines is read as one."""
    for block in _blocks([line for line in lines if is_comment(line.text, suffix)]):
        text = "\n".join(line.text.strip().lstrip(COMMENTS[suffix] + "*") for line in block)
        is_code = _is_python(text) if suffix == ".py" else any(_CODE_IN_COMMENT.search(part) for part in text.split("\n"))
        if is_code:
            yield _minor("commented-out", "code that is commented out", "Take it out; the history keeps it.", block[0])


def _blocks(lines: Sequence[AddedLine]) -> list[list[AddedLine]]:
    blocks: list[list[AddedLine]] = []
    for line in lines:
        if blocks and blocks[-1][-1].number == line.number - 1:
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


def _is_python(text: str) -> bool:
    """Say whether a comment is Python that does something; a word or a sentence that happens to parse does nothing."""
    dedented = "\n".join(part.removeprefix(" ") for part in text.split("\n"))
    tree = parsed(dedented.encode(errors="replace"))
    if tree is None or not tree.body:
        return False
    return all(_does_something(node, dedented) for node in tree.body)


def _does_something(node: ast.stmt, text: str) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await) and not _CALL_OF_PROSE.match(text)
    return not isinstance(node, ast.AnnAssign | ast.Pass) or isinstance(getattr(node, "value", None), ast.Call)
