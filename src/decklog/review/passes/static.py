"""Pass 1: what programs and plain rules say of the text of a change, before anything of it is run."""

from collections.abc import Iterator

from decklog.conductor.checks.examination import Examiner
from decklog.conductor.git import changes
from decklog.review.change import Change
from decklog.review.passes.leftovers import leftovers
from decklog.review.passes.python_source import parsed
from decklog.review.result import Finding, PassResult, Severity, passed
from decklog.review.settings import ReviewSettings
from decklog.stores.flow.verdicts import CheckOutcome


def static(change: Change, settings: ReviewSettings, examiner: Examiner) -> PassResult:
    """Look at what the change is made of, and run the checks that need no test."""
    found = [*_faults(change), *_left_over(change), *_syntax(change)]
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


def _left_over(change: Change) -> Iterator[Finding]:
    for path, lines in change.added_by_file.items():
        yield from leftovers(path, lines)


def _syntax(change: Change) -> Iterator[Finding]:
    """Name the Python files of the change that no Python reads."""
    for path in change.added_by_file:
        content = change.content(path) if path.endswith((".py", ".pyi")) else None
        if content is not None and parsed(content) is None:
            yield Finding(
                severity=Severity.BLOCKING, kind="syntax", text="it is not valid Python", file=path, remedy="Mend its syntax."
            )
