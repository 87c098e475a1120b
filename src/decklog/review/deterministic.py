"""Stages 1 and 4: checks, linters and rules that read a change, without a model and without running its code."""

import json
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from decklog.conductor.checks.examination import Examiner
from decklog.conductor.git import changes
from decklog.conductor.git.changes import DiffLine
from decklog.core.plugins import PluginKind, load_plugin, plugin_names, report_failures
from decklog.core.python_source import parsed
from decklog.guard.files.gitignore import IgnoreFile
from decklog.redaction import explain
from decklog.redaction.judge import looks_random
from decklog.review.change import Change
from decklog.review.linters import LinterReport
from decklog.review.result import Finding, Severity, StageResult, conclude
from decklog.review.rules import find_by_rules, sources, suffix_of
from decklog.review.settings import ReviewSettings
from decklog.stores.workflow.verdicts import CheckOutcome


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(files("decklog.review").joinpath("lock_files.toml").read_text(encoding="utf-8"))


def find_questions(change: Change) -> Iterator[Finding]:
    """Yield a question for each changed file that decides which external code or CI jobs run."""
    questions = IgnoreFile(tuple(_table()["questions"]))
    text = "this file decides which external code or CI jobs run"
    for one in change.paths:
        if questions.covers(one.path):
            yield Finding(
                severity=Severity.QUESTION, kind="dependencies", text=text, file=one.path, remedy="Have a person look at it."
            )


def find_stale_locks(change: Change) -> Iterator[Finding]:
    """Yield a finding for each unchanged lock file whose manifest has changed dependencies."""
    changed = {one.path for one in change.paths}
    by_name = {row["name"]: row for row in _table()["manifest"]}
    for path in sorted(changed):
        row = by_name.get(posixpath.basename(path))
        before, after = change.content(path, at_base=True), change.content(path)
        if row is None or before is None or after is None or _dependencies(row, before) == _dependencies(row, after):
            continue
        # A workspace has one lock file at its root.
        folders = dict.fromkeys((posixpath.dirname(path), ""))
        locks = [posixpath.join(folder, name) for folder in folders for name in row["locks"]]
        present = [lock for lock in locks if change.content(lock) is not None]
        if present and not changed.intersection(present):
            text = f"the dependencies of {path} change and {present[0]} does not"
            yield Finding(
                severity=Severity.MINOR,
                kind="stale-lock",
                text=text,
                file=present[0],
                remedy="Update the lock file and commit it.",
            )


def _dependencies(row: Mapping[str, Any], content: bytes) -> object:
    """Return the dependencies of a manifest; None if it can't be parsed, which another check reports."""
    text = content.decode(errors="replace")
    if "lines" in row:
        return re.findall(row["lines"], text, re.MULTILINE)
    try:
        document = json.loads(text) if row["name"].endswith(".json") else tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    return [_at(document, path) for path in row["tables"]]


def _at(document: Any, path: str) -> Any:
    for step in path.split("."):
        document = document.get(step) if isinstance(document, dict) else None
    return document


_CODE = re.compile(r"\.(?:pyi?|[jt]sx?|go|rs|java|c|h|cpp|cs|rb|php|kt|swift|html|vue|svelte|erb|j2)")
_DOCUMENTS = (".md", ".rst", ".adoc")
_WORDS = re.compile(r"[A-Za-z][A-Za-z _.-]*")
# Signs of calls, patterns, indexes and templates. One alone may be part of a password.
_SIGNS = re.compile(r"[()\[\]{}|\\<>]")
# `run_1`, `API_KEY2`, `config.get(`
_IDENTIFIER = re.compile(r"[A-Za-z]+(?:_[A-Za-z]*\d{0,2})+|[\w.]+\(")
_PLACEHOLDER = re.compile(r"(?:.*[^A-Za-z0-9])?(?:[A-Z]+_)*(?:TOKEN|PASSWORD|PASSWD|SECRET|KEY|CREDENTIALS?)|.*%20TOKEN")
_NAMES_A_KIND = re.compile(r"(?i)(?=[^\d]*(?:\d[^\d]*){0,2}$).*(?:pass(?:word|wd|phrase)|secret|token|credential|apikey).*")
# An outcome, not a password: {"pass": "done"}.
_OUTCOME = re.compile(r"""(?i)(?<![a-z])["']?pass["']?\s*[:=]""")
_RAW_TEXT = re.compile(r"""\br(?P<q>["'])(?:(?!(?P=q)).)*$""")


def find_secrets(change: Change, tests: IgnoreFile, samples: IgnoreFile) -> Iterator[Finding]:
    """Yield the secrets that a change adds, including those that a later commit of it removes."""
    for path, lines in change.added_by_file.items():
        if samples.covers(path):
            text = "sample secrets: this file was not searched"
            yield Finding(severity=Severity.INFO, kind="not-checked", text=text, file=path)
        else:
            yield from find_line_secrets(path, lines, is_test=tests.covers(path))
    for commit, undone in change.earlier:
        for path in dict.fromkeys(line.path for line in undone if not samples.covers(line.path)):
            added = [line for line in undone if line.path == path]
            for one in find_line_secrets(path, added, is_test=tests.covers(path)):
                yield replace(one, text=f"{one.text}, in commit {commit[:12]}, which is published too", line=None)


def find_line_secrets(path: str, lines: Sequence[DiffLine], *, is_test: bool) -> Iterator[Finding]:
    """Yield the secrets of added lines, of single lines first and otherwise across lines."""
    found = [one for line in lines if (one := _secret(line.text, path, line.number, is_test=is_test)) is not None]
    if not found and lines:
        whole = _secret("\n".join(line.text for line in lines), path, lines[0].number, is_test=is_test)
        found = [whole] if whole is not None else []
    yield from found


def _secret(text: str, path: str, number: int, *, is_test: bool) -> Finding | None:
    """Return the finding for a text; None if it has no secret."""
    every = explain(text)
    if not every:
        return None
    # The redactor's own markers are not secrets.
    found = [one for one in every if not text[one.start : one.end].startswith("[redacted:")]
    is_harmless = bool(found) and all(
        # Without a score, a rule matched the format of a secret, so it is one.
        one.score is not None
        and _is_harmless(text[one.start : one.end], path, text, is_named=one.reason.startswith("name "), is_test=is_test)
        for one in found
    )
    kinds = ", ".join(dict.fromkeys(one.kind for one in found)) or "secret"
    return Finding(
        severity=Severity.MINOR if is_harmless else Severity.BLOCKING,
        kind="named-like-a-secret" if is_harmless else "secret",
        text=f"{'named like a secret' if is_harmless else 'a secret'}: {kinds}",
        file=path,
        line=number,
        remedy="Remove it from every commit of the change, and replace it where it is used.",
    )


def _is_harmless(value: str, path: str, text: str, *, is_named: bool, is_test: bool) -> bool:
    """Return whether a value that is named like a secret is clearly not one."""
    suffix = suffix_of(path)
    if suffix == ".py" and (_is_quoted(value, text) or (is_test and _is_concatenated(value, text))):
        return True
    if looks_random(value):
        return False
    # Tests use made-up secrets; real ones have a known format or look random.
    if is_test or _PLACEHOLDER.fullmatch(value):
        return True
    if suffix in _DOCUMENTS and _is_in_ticks(value, text) and _NAMES_A_KIND.fullmatch(value):
        return True
    if not _CODE.fullmatch(suffix):
        return False
    if len(_SIGNS.findall(value)) >= 2 or _IDENTIFIER.fullmatch(value) or (not is_named and value.isalpha()):
        return True
    return _WORDS.fullmatch(value) is not None and _OUTCOME.search(text) is not None


def _is_quoted(value: str, text: str) -> bool:
    """Return whether Python only mentions a value: between backticks, or in a raw string, which is a pattern."""
    return _is_in_ticks(value, text) or _RAW_TEXT.search(text[: text.find(value)]) is not None


def _is_in_ticks(value: str, text: str) -> bool:
    start = text.find(value)
    return text[:start].count("`") % 2 == 1 and "`" in text[start + len(value) :]


def _is_concatenated(value: str, text: str) -> bool:
    """Return whether a literal is concatenated, so that the whole value is written nowhere: "a" + "b" * 9."""
    literal = rf"""["']{re.escape(value)}["']"""
    return re.search(rf"""["']\s*\+\s*{literal}|{literal}\s*(?:\+\s*["']|\*\s*\d)""", text) is not None


_READERS: dict[str, Callable[[str], object]] = {"json": json.loads, "toml": tomllib.loads}
_MOST_FINDINGS = 200
RunLinters = Callable[[int], LinterReport]


def run_static(change: Change, settings: ReviewSettings, examiner: Examiner, run_linters: RunLinters) -> StageResult:
    """Run the checks that need no tests, the linters, and the rules about changed lines."""
    found = [*_tree_faults(change), *_syntax_errors(change)]
    for name in plugin_names(PluginKind.CHECK):
        with report_failures(PluginKind.CHECK, name):
            found += load_plugin(PluginKind.CHECK, name)(change)
    known = {(one.file, one.kind) for one in found}
    by_rules = find_by_rules(sources(change, settings.tests), 1)
    found += [one for one in by_rules if (one.file, one.kind) not in known]
    failed, without_result = _run_checks(change, settings, examiner)
    linted = run_linters(1)
    return conclude(
        1,
        [*found, *failed, *linted.findings],
        unproven="; ".join((*without_result, *linted.unproven)),
        note="; ".join(linted.missing),
        by=["rules", *(check.name for check in settings.static_checks), *linted.ran],
    )


def run_security(change: Change, settings: ReviewSettings, run_linters: RunLinters) -> StageResult:
    """Find secrets, dangerous calls and changed dependencies in the added lines of a change."""
    found = list(find_secrets(change, IgnoreFile(settings.tests), IgnoreFile(settings.rules.samples)))
    for merge in change.discarding_merges:
        text = f"merge {merge[:12]} discards the changes of its commits, which would be published unreviewed"
        found.append(Finding(severity=Severity.BLOCKING, kind="discarded-commits", text=text, remedy="Drop the merge."))
    found += find_by_rules(sources(change, settings.tests), 4)
    found += find_questions(change)
    linted = run_linters(4)
    found += linted.findings
    text = "known vulnerabilities of dependencies were not checked: there is no database"
    found.append(Finding(severity=Severity.INFO, kind="not-checked", text=text))
    # The most severe first, so that the limit does not cut off blocking findings.
    found.sort(key=lambda one: list(Severity).index(one.severity))
    return conclude(
        4,
        found[:_MOST_FINDINGS],
        unproven="; ".join(linted.unproven),
        note="; ".join(linted.missing),
        by=["secrets", *linted.ran],
    )


def _run_checks(change: Change, settings: ReviewSettings, examiner: Examiner) -> tuple[list[Finding], list[str]]:
    """Run the static checks of the base. Return the findings, and the checks that gave no result."""
    paths = [one.path for one in change.paths if one.status != "D"]
    failed: list[Finding] = []
    without_result: list[str] = []
    for check in settings.static_checks:
        verdict, result = examiner.verdict(check, change.head, paths)
        if verdict.outcome is CheckOutcome.ERROR:
            without_result.append(f"{check.name} gave no result: {result.described}")
        elif not verdict.is_pass:
            text, remedy = f"{check.name}: {result.described}", result.output[-1500:].strip()
            failed.append(Finding(severity=Severity.BLOCKING, kind="check", text=text, remedy=remedy))
    return failed, without_result


def _tree_faults(change: Change) -> Iterator[Finding]:
    """Yield findings for unsafe files: links out of the tree, submodules, too large files, conflict markers."""
    for fault in changes.find_faults(change.repository, change.base, change.base, change.head, ()):
        # That an attempt changed nothing is a fault only for the conductor.
        if fault.signature == changes.NO_CHANGE:
            continue
        for path in fault.paths[:20] or ("",):
            yield Finding(severity=Severity.BLOCKING, kind=fault.signature, text=fault.text, file=path or None)


def _syntax_errors(change: Change) -> Iterator[Finding]:
    """Yield findings for Python files that don't parse, and JSON and TOML files that no longer parse."""
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


def find_missing_documents(change: Change, source: tuple[str, ...], documents: tuple[str, ...]) -> Iterator[Finding]:
    """Yield a finding if the settings require documents and a change of the source has none."""
    paths = [one.path for one in change.paths]
    if not source or not documents or "docs-not-needed:" in change.message.lower():
        return
    if any(map(IgnoreFile(source).covers, paths)) and not any(map(IgnoreFile(documents).covers, paths)):
        remedy = "Change the documents, or write `Docs-not-needed: why` into the message."
        text = "the source changes, but no document does"
        yield Finding(severity=Severity.SIGNIFICANT, kind="documents", text=text, remedy=remedy)


def find_missing_tests(change: Change, settings: ReviewSettings) -> Iterator[Finding]:
    """Yield a finding if the settings require tests and a change of code has none."""
    files = [one for one in sources(change, settings.tests) if not one.is_document]
    changed = [one for one in files if not one.is_test and one.new.code.split() != one.old.code.split()]
    if settings.rules.needs_tests and changed and not any(one.is_test for one in files):
        text, remedy = "the code changes, but no test does", "Add a test of the new behaviour."
        yield Finding(severity=Severity.SIGNIFICANT, kind="untested", text=text, file=changed[0].path, remedy=remedy)
