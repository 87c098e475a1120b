"""Pass 4: secrets, dangerous calls and commands in added lines, and what changes the ground that everything stands on."""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace

from decklog.conductor.settings.configuration import TESTS
from decklog.core.python_source import parsed
from decklog.guard.files.gitignore import Patterns
from decklog.guard.policy import Decision, judge
from decklog.review.change import AddedLine, Change
from decklog.review.passes.line_dangers import line_dangers
from decklog.review.passes.secrets import secrets
from decklog.review.passes.shell_lines import is_image, shell_lines
from decklog.review.result import Finding, PassResult, Severity, passed
from decklog.review.rules.joined_texts import RULES as JOINED
from decklog.review.rules.outside import outside
from decklog.review.rules.python_dangers import dangers
from decklog.review.rules.python_weaknesses import weaknesses
from decklog.review.rules.rule import Found, of_rules
from decklog.review.rules.source import Source, sources
from decklog.review.rules.weaknesses import RULES as WEAKNESSES
from decklog.review.structure.looking import of_paths

_LOOKS: tuple[Callable[[Source], Iterator[Found]], ...] = (
    lambda source: of_rules((*JOINED, *WEAKNESSES), source),
    outside,
    weaknesses,
)
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
# What builds an image may do as it likes with the files and accounts in it.
_OF_IMAGES = ("network-to-shell",)
_OF_PARTS = ("not-understood", "too-complex")
_MOST = 200


def security(change: Change, *, tests: Sequence[str] = TESTS, samples: Sequence[str] = (), most: int = _MOST) -> PassResult:
    """Look at what the change adds; among `samples` no secret is looked for, which is said. At most so many are told."""
    found: list[Finding] = []
    of_tests, of_samples = Patterns(tuple(tests)), Patterns(tuple(samples))
    for path, lines in change.added_by_file.items():
        if of_samples.covers(path):
            text = "samples of secrets: no secret was looked for here"
            found.append(Finding(severity=Severity.INFO, kind="not-checked", text=text, file=path))
        else:
            found += secrets(path, lines, is_test=of_tests.covers(path))
        if path.endswith((".py", ".pyi")):
            found += _python(change, path, lines, is_test=of_tests.covers(path))
        found += _of_lines(path, lines, is_test=of_tests.covers(path))
        found += _shell(path, lines)
    found += _of_rules(change, tests, found)
    found += _of_history(change, of_tests, of_samples)
    known = {(one.file, one.kind) for one in found}
    found += [one for one in of_paths(change, tests) if (one.file, one.kind) not in known]
    asked = [one.path for one in change.paths if _LOCKS.covers(one.path)]
    found += [_question(path) for path in asked]
    found.append(
        Finding(
            severity=Severity.INFO,
            kind="not-checked",
            text="known faults of dependencies were not looked up: no database is at hand",
        )
    )
    # The worst first: what is cut off at the end of many must not be what stops the change.
    found.sort(key=lambda one: list(Severity).index(one.severity))
    return passed(4, found[:most], by=["secrets", "python", "lines", "shell"])


def _shell(path: str, lines: Sequence[AddedLine]) -> Iterator[Finding]:
    if scripted := list(shell_lines(path, lines)):
        yield from _commands(scripted, rules=_OF_IMAGES if is_image(path) else None)


def _of_history(change: Change, of_tests: Patterns, of_samples: Patterns) -> Iterator[Finding]:
    """Find secrets and dangerous lines in commits that a later one takes out again, and merges that bring in commits unseen."""
    for commit, lines in change.earlier:
        by_file: dict[str, list[AddedLine]] = {}
        for line in lines:
            by_file.setdefault(line.file, []).append(line)
        for path, added in by_file.items():
            is_test = of_tests.covers(path)
            found = [] if of_samples.covers(path) else list(secrets(path, added, is_test=is_test))
            for one in [*found, *_of_lines(path, added, is_test=is_test), *_shell(path, added)]:
                yield replace(one, text=f"{one.text}, in commit {commit[:12]}, which is published too", line=None)
    for merge in change.discarding_merges:
        text = f"merge {merge[:12]} takes nothing from the commits it brings in, which would be published unreviewed"
        yield Finding(severity=Severity.BLOCKING, kind="discarded-commits", text=text, remedy="Drop the merge.")


def _question(path: str) -> Finding:
    text = "it decides which code of others is run, or what runs where changes are built"
    return Finding(severity=Severity.QUESTION, kind="dependencies", text=text, file=path, remedy="Have a person look at it.")


def _python(change: Change, path: str, lines: Sequence[AddedLine], *, is_test: bool) -> Iterator[Finding]:
    content = change.content(path)
    if content is None:
        text = "it is too large to be looked through for dangerous calls"
        yield Finding(severity=Severity.QUESTION, kind="too-large", text=text, file=path, remedy="Have a person look at it.")
    tree = None if content is None else parsed(content)
    if tree is None:
        # That it is no Python was said by the first pass.
        return
    added = {line.number for line in lines}
    for danger in dangers(tree):
        if added.intersection(range(danger.first, danger.last + 1)):
            if danger.command is not None:
                # Nobody's text but the author's own: judged as a line of a script is.
                yield from _commands([AddedLine(path, danger.first, danger.command)])
                continue
            facts = {"kind": danger.kind, "text": danger.text, "remedy": danger.remedy}
            yield Finding(severity=_severity(is_test=is_test or danger.is_minor), file=path, line=danger.first, **facts)


def _of_lines(path: str, lines: Sequence[AddedLine], *, is_test: bool) -> Iterator[Finding]:
    for danger in line_dangers(path, lines):
        facts = {"kind": danger.kind, "text": danger.text, "remedy": danger.remedy}
        yield Finding(severity=_severity(is_test=is_test), file=path, line=danger.line.number, **facts)


def _of_rules(change: Change, tests: Sequence[str], known: Sequence[Finding]) -> list[Finding]:
    """Tell what the rules over text and syntax find and nothing else has found on the same line."""
    seen = {(one.file, one.line, one.kind) for one in known}
    found = []
    for source in sources(change, tests):
        for one in (one for look in _LOOKS for one in look(source)):
            key = (source.path, one.line, one.told.kind)
            if key not in seen and not source.is_prose:
                seen.add(key)
                facts = {"kind": one.told.kind, "text": one.told.text, "remedy": one.told.remedy}
                found.append(Finding(severity=_severity(is_test=source.is_test), file=source.path, line=one.line, **facts))
    return found


def _severity(*, is_test: bool) -> Severity:
    # Nobody but its author chooses what a test puts into its own commands and statements.
    return Severity.MINOR if is_test else Severity.BLOCKING


def _commands(lines: Sequence[AddedLine], rules: Container[str] | None = None) -> list[Finding]:
    """Judge lines that a shell will run, as an agent's own commands are, by some rules or all."""
    found = []
    for line in lines:
        if line.text.strip() and not line.text.lstrip().startswith("#"):
            verdict = judge(line.text)
            # One line of a longer statement does not parse.
            is_part = verdict.rule in _OF_PARTS
            if verdict.decision is Decision.DENY and not is_part and (rules is None or verdict.rule in rules):
                text = f"{verdict.rule}: {verdict.reason}"
                found.append(Finding(severity=Severity.BLOCKING, kind="command", text=text, file=line.file, line=line.number))
    return found
