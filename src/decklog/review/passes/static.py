"""Pass 1: what programs and plain rules say of the text of a change, before anything of it is run."""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence

from decklog.conductor.checks.examination import Examiner
from decklog.conductor.git import changes
from decklog.review.change import AddedLine, Change
from decklog.review.result import Finding, PassResult, Severity, passed
from decklog.review.settings import ReviewSettings
from decklog.stores.flow.verdicts import CheckOutcome

_MARKER = re.compile(r"(?:<{7}|>{7}|\|{7})(?: |$)|={7}$")
_DEBUG = re.compile(
    r"(?:^|[\s;])(?:breakpoint\(\)|(?:i?pdb|pudb)\.set_trace\(|import i?pdb\b|debugger;|dbg!\(|binding\.pry|var_dump\()"
    r"|(?:^|[\s;])console\.(?:log|debug)\(|(?:^|[\s;])print\(\s*f?[\"'](?:DEBUG|XXX|HERE|>>>|###)"
)
_LATER = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b(?P<rest>.*)")
# What makes a note for later one that somebody can find again: an address, a number, or a key of a tracker.
_LINK = re.compile(r"https?://|#\d+|\b[A-Z][A-Z0-9]+-\d+\b|\bgh-\d+")
_COMMENTS = {".py": "#", ".rb": "#", ".sh": "#", ".js": "//", ".ts": "//", ".go": "//", ".rs": "//", ".java": "//", ".c": "//"}
_CODE_IN_COMMENT = re.compile(r"[;{}]\s*$|^\s*(?:return|if|for|while|const|let|var|func|fn|import|use)\b.*[;{(]\s*$")
_CALL_OF_PROSE = re.compile(r"^[A-Za-z]+ \(")
_TEXTS = (".md", ".txt", ".rst", ".diff", ".patch", ".svg", ".csv")


def static(change: Change, settings: ReviewSettings, examiner: Examiner) -> PassResult:
    """Look at what the change is made of, and run the checks that need no test."""
    found = [*_faults(change), *_of_lines(change), *_syntax(change)]
    checks = settings.static_checks
    paths = [one.path for one in change.paths if one.status != "D"]
    unsaid = ""
    for check in checks:
        verdict, said = examiner.verdict(check, change.head, paths)
        if verdict.outcome is CheckOutcome.ERROR:
            unsaid = unsaid or f"{check.name} could not say: {said.reason}"
        elif not verdict.is_pass:
            remedy = said.output[-1500:].strip()
            found.append(Finding(severity=Severity.BLOCKING, kind="check", text=f"{check.name}: {said.reason}", remedy=remedy))
    return passed(1, found, unproven=unsaid, by=["lines", *(check.name for check in checks)])


def _faults(change: Change) -> Iterator[Finding]:
    """Name what no tree may have: links out of it, submodules, files that are too large, markers of a conflict."""
    for fault in changes.faults(change.repository, change.base, change.base, change.head, ()):
        # That an attempt did nothing is no fault of a change that somebody wants.
        if fault.signature == "no-change":
            continue
        for path in fault.paths[:20] or ("",):
            yield Finding(severity=Severity.BLOCKING, kind=fault.signature, text=fault.text, file=path or None)


def _of_lines(change: Change) -> Iterator[Finding]:
    for path, lines in change.added_by_file.items():
        suffix = _suffix(path)
        for line in lines:
            yield from _of_line(line, is_text=suffix in _TEXTS)
        if suffix in _COMMENTS:
            yield from _commented_out(lines, suffix)


def _of_line(line: AddedLine, *, is_text: bool) -> Iterator[Finding]:
    if not is_text and _MARKER.match(line.text):
        yield _found(Severity.BLOCKING, "conflict-marker", "a conflict was not resolved", "Decide which side is meant.", line)
    if not is_text and _DEBUG.search(line.text):
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


def _commented_out(lines: Sequence[AddedLine], suffix: str) -> Iterator[Finding]:
    """Find comments that are code. A comment of several lines is read as one."""
    for block in _comment_blocks(lines, _COMMENTS[suffix]):
        text = "\n".join(line.text.strip().removeprefix(_COMMENTS[suffix]) for line in block)
        is_code = _is_python(text) if suffix == ".py" else any(_CODE_IN_COMMENT.search(part) for part in text.split("\n"))
        if is_code:
            yield _minor("commented-out", "code that is commented out", "Take it out; the history keeps it.", block[0])


def _comment_blocks(lines: Sequence[AddedLine], sign: str) -> list[list[AddedLine]]:
    blocks: list[list[AddedLine]] = []
    for line in lines:
        if not line.text.strip().startswith(sign) or line.text.strip().startswith("#!"):
            continue
        if blocks and blocks[-1][-1].number == line.number - 1:
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


def _is_python(text: str) -> bool:
    """Say whether a comment is Python that does something; a word or a sentence that happens to parse does nothing."""
    dedented = "\n".join(part.removeprefix(" ") for part in text.split("\n"))
    tree = _parsed(dedented.encode(errors="replace"))
    if tree is None or not tree.body:
        return False
    return all(_does_something(node, dedented) for node in tree.body)


def _does_something(node: ast.stmt, text: str) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await) and not _CALL_OF_PROSE.match(text)
    return not isinstance(node, ast.AnnAssign | ast.Pass) or isinstance(getattr(node, "value", None), ast.Call)


def _syntax(change: Change) -> Iterator[Finding]:
    """Name the Python files of the change that no Python reads."""
    for path in change.added_by_file:
        content = change.content(path) if path.endswith((".py", ".pyi")) else None
        if content is not None and _parsed(content) is None:
            yield Finding(
                severity=Severity.BLOCKING, kind="syntax", text="it is not valid Python", file=path, remedy="Mend its syntax."
            )


def _parsed(source: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _suffix(path: str) -> str:
    name = path.rpartition("/")[2]
    return "." + name.rpartition(".")[2].lower() if "." in name else ""
