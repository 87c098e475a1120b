"""Pass 4: secrets, dangerous calls and commands in added lines, and what changes the ground that everything stands on."""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence

from decklog.redact import scan
from decklog.review.change import AddedLine, Change
from decklog.review.passes.python_dangers import dangers
from decklog.review.result import Finding, PassResult, Severity, passed
from decklog.tools.files.gitignore import Patterns

_KIND = re.compile(r"\[redacted:([a-z0-9-]+)\]")
_LOCKS = Patterns(
    (
        "*.lock",
        "package-lock.json",
        "npm-shrinkwrap.json",
        "pnpm-lock.yaml",
        "go.sum",
        "requirements*.txt",
        "/.github/workflows/",
        ".gitlab-ci.yml",
    )
)
_SHELL = (".sh", ".bash")
_MOST = 50


def security(change: Change) -> PassResult:
    """Look at what the change adds."""
    found: list[Finding] = []
    unsaid = ""
    for path, lines in change.added_by_file.items():
        found += _secrets(path, lines)
        if path.endswith((".py", ".pyi")):
            found += _python(change, path, lines)
        elif path.endswith(_SHELL):
            commands = _commands(lines)
            found += commands or []
            unsaid = unsaid or ("commands could not be judged: the extra `tools` is not installed" if commands is None else "")
    asked = [one.path for one in change.paths if _LOCKS.covers(one.path)]
    found += [_question(path) for path in asked]
    found.append(
        Finding(
            severity=Severity.INFO,
            kind="not-checked",
            text="known faults of dependencies were not looked up: no database is at hand",
        )
    )
    return passed(4, found[:_MOST], unproven=unsaid, by=["secrets", "python", "shell"])


def _question(path: str) -> Finding:
    text = "it decides which code of others is run, or what runs where changes are built"
    return Finding(severity=Severity.QUESTION, kind="dependencies", text=text, file=path, remedy="Have a person look at it.")


def _secrets(path: str, lines: Sequence[AddedLine]) -> Iterator[Finding]:
    """Find secrets in added lines: line by line, and together for those that go over several."""
    found = False
    for line in lines:
        told, changed = scan(line.text)
        if changed:
            found = True
            yield _secret(_kinds(told, line.text), path, line.number)
    together = "\n".join(line.text for line in lines)
    told, changed = scan(together)
    if changed and not found:
        yield _secret(_kinds(told, together), path, lines[0].number)


def _kinds(told: str, text: str) -> str:
    known = set(_KIND.findall(text))
    return ", ".join(dict.fromkeys(kind for kind in _KIND.findall(told) if kind not in known)) or "secret"


def _secret(kinds: str, path: str, number: int) -> Finding:
    return Finding(
        severity=Severity.BLOCKING,
        kind="secret",
        text=f"a secret: {kinds}",
        file=path,
        line=number,
        remedy="Take it out of every commit of the change, and have it replaced where it is used.",
    )


def _python(change: Change, path: str, lines: Sequence[AddedLine]) -> Iterator[Finding]:
    content = change.content(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = None if content is None else ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # That it is no Python was said by the first pass.
        tree = None
    if content is None:
        text = "it is too large to be looked through for dangerous calls"
        yield Finding(severity=Severity.QUESTION, kind="too-large", text=text, file=path, remedy="Have a person look at it.")
    if tree is None:
        return
    added = {line.number for line in lines}
    for danger in dangers(tree):
        if added.intersection(range(danger.first, danger.last + 1)):
            yield Finding(
                severity=Severity.BLOCKING, kind=danger.kind, text=danger.text, file=path, line=danger.first, remedy=danger.remedy
            )


def _commands(lines: Sequence[AddedLine]) -> list[Finding] | None:
    """Judge the lines that are added to a script, as an agent's own commands are; None where that can't be done."""
    try:
        from decklog.tools.policy import Decision, judge
    except ImportError:
        return None
    found = []
    for line in lines:
        if line.text.strip() and not line.text.lstrip().startswith("#"):
            verdict = judge(line.text)
            if verdict.decision is Decision.DENY:
                text = f"{verdict.rule}: {verdict.reason}"
                found.append(Finding(severity=Severity.BLOCKING, kind="command", text=text, file=line.file, line=line.number))
    return found
