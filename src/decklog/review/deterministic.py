"""Stages 1 and 4: checks, linters and rules that read a change without running its code or asking a model."""

import json
import tomllib
from collections.abc import Callable, Iterator

from decklog.conductor.checks.examination import Examiner
from decklog.conductor.git import changes
from decklog.core.plugins import PluginKind, load_plugin, plugin_names
from decklog.core.python_source import parsed
from decklog.guard.files.gitignore import IgnoreFile
from decklog.review.change import Change
from decklog.review.linters import LinterReport
from decklog.review.lock_files import find_questions
from decklog.review.result import Finding, Severity, StageResult, conclude
from decklog.review.rules import find_by_rules
from decklog.review.secrets import find_secrets
from decklog.review.settings import ReviewSettings
from decklog.review.sources import sources
from decklog.stores.workflow.verdicts import CheckOutcome

_READERS: dict[str, Callable[[str], object]] = {"json": json.loads, "toml": tomllib.loads}
_MOST_FINDINGS = 200
RunLinters = Callable[[int], LinterReport]


def run_static(change: Change, settings: ReviewSettings, examiner: Examiner, run_linters: RunLinters) -> StageResult:
    """Run the checks that need no tests, the linters, and the rules about changed lines."""
    found = [*_tree_faults(change), *_syntax_errors(change)]
    for name in plugin_names(PluginKind.CHECK):
        found += load_plugin(PluginKind.CHECK, name)(change)
    known = {(one.file, one.kind) for one in found}
    by_rules = find_by_rules(sources(change, settings.tests), 1)
    found += [one for one in by_rules if (one.file, one.kind) not in known]
    failed, unsaid = _run_checks(change, settings, examiner)
    linted = run_linters(1)
    return conclude(
        1,
        [*found, *failed, *linted.findings],
        unproven="; ".join((*unsaid, *linted.unproven)),
        note="; ".join(linted.missing),
        by=["rules", *(check.name for check in settings.static_checks), *linted.ran],
    )


def run_security(change: Change, settings: ReviewSettings, run_linters: RunLinters) -> StageResult:
    """Look for secrets, dangerous calls and changed dependencies in what a change adds."""
    found = list(find_secrets(change, IgnoreFile(settings.tests), IgnoreFile(settings.rules.samples)))
    for merge in change.discarding_merges:
        text = f"merge {merge[:12]} takes nothing from the commits it brings in, which would be published unreviewed"
        found.append(Finding(severity=Severity.BLOCKING, kind="discarded-commits", text=text, remedy="Drop the merge."))
    found += find_by_rules(sources(change, settings.tests), 4)
    found += find_questions(change)
    linted = run_linters(4)
    found += linted.findings
    text = "known vulnerabilities of dependencies were not looked up: there is no database"
    found.append(Finding(severity=Severity.INFO, kind="not-checked", text=text))
    # The worst first: the limit must not cut off what stops the change.
    found.sort(key=lambda one: list(Severity).index(one.severity))
    return conclude(
        4,
        found[:_MOST_FINDINGS],
        unproven="; ".join(linted.unproven),
        note="; ".join(linted.missing),
        by=["secrets", *linted.ran],
    )


def _run_checks(change: Change, settings: ReviewSettings, examiner: Examiner) -> tuple[list[Finding], list[str]]:
    """Run the static checks of the base; return what failed, and which checks could not give a result."""
    paths = [one.path for one in change.paths if one.status != "D"]
    failed: list[Finding] = []
    unsaid: list[str] = []
    for check in settings.static_checks:
        verdict, said = examiner.verdict(check, change.head, paths)
        if verdict.outcome is CheckOutcome.ERROR:
            unsaid.append(f"{check.name} could not say: {said.described}")
        elif not verdict.is_pass:
            text, output = f"{check.name}: {said.described}", said.output[-1500:].strip()
            failed.append(Finding(severity=Severity.BLOCKING, kind="check", text=text, remedy=output))
    return failed, unsaid


def _tree_faults(change: Change) -> Iterator[Finding]:
    """Yield what no tree may have: links out of it, submodules, files that are too large, conflict markers."""
    for fault in changes.faults(change.repository, change.base, change.base, change.head, ()):
        # An attempt that did nothing is no fault of a change that somebody wants.
        if fault.signature == "no-change":
            continue
        for path in fault.paths[:20] or ("",):
            yield Finding(severity=Severity.BLOCKING, kind=fault.signature, text=fault.text, file=path or None)


def _syntax_errors(change: Change) -> Iterator[Finding]:
    """Yield Python files that do not parse, and settings that no longer do."""
    for path in change.added_by_file:
        content = change.content(path)
        suffix = path.rpartition(".")[2]
        if content is None:
            continue
        if suffix in ("py", "pyi") and parsed(content) is None:
            yield _syntax_error(path, "it is not valid Python")
        elif suffix in _READERS and _can_read(suffix, change.content(path, at_base=True)) and not _can_read(suffix, content):
            yield _syntax_error(path, f"it is no longer valid {suffix.upper()}")


def _syntax_error(path: str, text: str) -> Finding:
    return Finding(severity=Severity.BLOCKING, kind="syntax", text=text, file=path, remedy="Fix its syntax.")


def _can_read(suffix: str, content: bytes | None) -> bool:
    try:
        _READERS[suffix]((content or b"").decode())
    except (ValueError, RecursionError):
        return False
    return content is not None


def forgotten_documents(change: Change, source: tuple[str, ...], documents: tuple[str, ...]) -> Iterator[Finding]:
    """Yield a finding where the settings ask for documents and a change of the source has none."""
    paths = [one.path for one in change.paths]
    if not source or not documents or "docs-not-needed:" in change.message.lower():
        return
    if any(map(IgnoreFile(source).covers, paths)) and not any(map(IgnoreFile(documents).covers, paths)):
        remedy = "Change the documents, or write `Docs-not-needed: why` into the message."
        text = "the source changes and no document does"
        yield Finding(severity=Severity.SIGNIFICANT, kind="documents", text=text, remedy=remedy)


def forgotten_tests(change: Change, settings: ReviewSettings) -> Iterator[Finding]:
    """Yield a finding where the settings ask for tests and a change of code has none."""
    files = [one for one in sources(change, settings.tests) if not one.is_document]
    changed = [one for one in files if not one.is_test and one.new.code.split() != one.old.code.split()]
    if settings.rules.needs_tests and changed and not any(one.is_test for one in files):
        text, remedy = "the code changes and no test does", "Add a test that shows what is new."
        yield Finding(severity=Severity.SIGNIFICANT, kind="untested", text=text, file=changed[0].path, remedy=remedy)
