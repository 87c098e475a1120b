"""Pass 1: what programs and plain rules say of the text of a change, before anything of it is run."""

import json
import tomllib
from collections.abc import Callable, Collection, Iterator, Sequence

from decklog.conductor.checks.examination import Examiner
from decklog.conductor.git import changes
from decklog.core.python_source import parsed
from decklog.review.change import Change
from decklog.review.passes.leftovers import leftovers
from decklog.review.result import Finding, PassResult, Severity, passed
from decklog.review.rules.commented_code import commented_code
from decklog.review.rules.debugging import debugging
from decklog.review.rules.disabled_tests import WEAKENED, disabled_tests, is_explained, removed_tests
from decklog.review.rules.python_swallowing import swallowing
from decklog.review.rules.python_tests import tests_of_python
from decklog.review.rules.python_unfinished import UNUSED_FUNCTION, unfinished_python
from decklog.review.rules.rule import Found, of_rules
from decklog.review.rules.source import Source, sources
from decklog.review.rules.swallowing import RULES as SWALLOWING
from decklog.review.rules.unfinished import unfinished
from decklog.review.rules.weakened_checks import weakened_checks
from decklog.review.settings import ReviewSettings
from decklog.stores.workflow.verdicts import CheckOutcome

_LOOKS: tuple[Callable[[Source], Iterator[Found]], ...] = (
    debugging,
    commented_code,
    lambda source: of_rules(SWALLOWING, source),
    swallowing,
    unfinished,
    unfinished_python,
    disabled_tests,
    tests_of_python,
    weakened_checks,
)
_READERS: dict[str, Callable[[str], object]] = {"json": json.loads, "toml": tomllib.loads}
# What takes the ground from under the checks themselves is not for those who are checked to decide.
_FOR_A_PERSON = ("weakened-check",)


def static(change: Change, settings: ReviewSettings, examiner: Examiner) -> PassResult:
    """Look at what the change is made of, and run the checks that need no test."""
    found = [*_faults(change), *_left_over(change), *_syntax(change)]
    found += list(_of_rules(change, settings.tests, known={(one.file, one.line) for one in found}))
    checks = settings.static_checks
    paths = [one.path for one in change.paths if one.status != "D"]
    unsaid = ""
    for check in checks:
        verdict, said = examiner.verdict(check, change.head, paths)
        if verdict.outcome is CheckOutcome.ERROR:
            unsaid = unsaid or f"{check.name} could not say: {said.described}"
        elif not verdict.is_pass:
            remedy = said.output[-1500:].strip()
            found.append(Finding(severity=Severity.BLOCKING, kind="check", text=f"{check.name}: {said.described}", remedy=remedy))
    return passed(1, found, unproven=unsaid, by=["lines", *(check.name for check in checks)])


def _faults(change: Change) -> Iterator[Finding]:
    """Name what no tree may have: links out of it, submodules, files that are too large, markers of a conflict."""
    for fault in changes.faults(change.repository, change.base, change.base, change.head, ()):
        # That an attempt did nothing is no fault of a change that somebody wants.
        if fault.signature == "no-change":
            continue
        for path in fault.paths[:20] or ("",):
            yield Finding(severity=Severity.BLOCKING, kind=fault.signature, text=fault.text, file=path or None)


def _left_over(change: Change) -> Iterator[Finding]:
    for path, lines in change.added_by_file.items():
        yield from leftovers(path, lines)


def _of_rules(change: Change, tests: Sequence[str], known: Collection[tuple[str | None, int | None]]) -> Iterator[Finding]:
    """Tell what the rules over text and syntax find, each at most once a line, and on lines of which nothing was told yet."""
    files = [one for one in sources(change, tests) if not one.is_prose]
    for source in files:
        seen: set[tuple[str, int]] = set()
        for found in (one for look in _LOOKS for one in look(source)):
            is_told = (source.path, found.line) in known or (found.told.kind, found.line) in seen
            if found.told is WEAKENED and is_explained(source, files):
                continue
            if not is_told and not _is_used_elsewhere(change, source, found):
                seen.add((found.told.kind, found.line))
                yield _told(source.path, found)
    for path, found in removed_tests(files):
        if not any(one.path == path and is_explained(one, files) for one in files):
            yield _told(path, found)


def _is_used_elsewhere(change: Change, source: Source, found: Found) -> bool:
    """Say whether a function that its own module never names is named by another file of the tree."""
    if found.told is not UNUSED_FUNCTION:
        return False
    name = source.rows[found.line - 1].partition("def ")[2].partition("(")[0].strip()
    told = change.repository.on_objects("grep", "-l", "-w", "-F", "-e", name, change.head, accepted=(0, 1)).text
    return any(line.partition(":")[2] != source.path for line in told.splitlines())


def _told(path: str, found: Found) -> Finding:
    severity = Severity.QUESTION if found.told.kind in _FOR_A_PERSON else Severity.MINOR
    return Finding(
        severity=severity, kind=found.told.kind, text=found.told.text, remedy=found.told.remedy, file=path, line=found.line
    )


def _syntax(change: Change) -> Iterator[Finding]:
    """Name the Python files of the change that no Python reads, and settings that could be read before."""
    for path in change.added_by_file:
        if (kind := path.rpartition(".")[2]) in _READERS and _reads(kind, change.content(path, at_base=True)):
            content = change.content(path)
            if content is not None and not _reads(kind, content):
                text, remedy = f"it is not valid {kind.upper()} any more", "Mend its syntax."
                yield Finding(severity=Severity.BLOCKING, kind="syntax", text=text, file=path, remedy=remedy)
        content = change.content(path) if path.endswith((".py", ".pyi")) else None
        if content is not None and parsed(content) is None:
            yield Finding(
                severity=Severity.BLOCKING, kind="syntax", text="it is not valid Python", file=path, remedy="Mend its syntax."
            )


def _reads(kind: str, content: bytes | None) -> bool:
    """Say whether settings can be read."""
    if content is None:
        return False
    try:
        _READERS[kind](content.decode())
    except (ValueError, RecursionError):
        return False
    return True
