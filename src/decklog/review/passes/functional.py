"""Pass 2: the tests of the tree, those of the base among them; whether new ones would fail without the change; what they run."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from decklog.conductor.checks.examination import Examiner
from decklog.conductor.checks.report import PASSED
from decklog.conductor.checks.running import Runner
from decklog.conductor.settings.check import Check
from decklog.guard.files.gitignore import Patterns
from decklog.review.change import Change
from decklog.review.proof.measuring import Measuring
from decklog.review.result import Finding, PassResult, Severity, passed
from decklog.review.rules.source import sources
from decklog.review.settings import ReviewSettings
from decklog.review.structure.claims import other_values
from decklog.review.structure.tokens import is_run, meaning
from decklog.review.structure.untested import SAME

# What an examination says that only a person can decide.
_QUESTIONS = ("protected", "knows-its-tests", "old-tests")
_MOST = 20
# What says that something was wrong before.
_MENDS = re.compile(r"(?i)\b(?:fix|mend|repair|correct|bug|fault|wrong)\w*")


def functional(change: Change, settings: ReviewSettings, examiner: Examiner, runner: Runner, mark: str) -> PassResult:
    """Run the checks of the base on the change; of one that they let pass, measure how much of it they show."""
    checks = settings.functional_checks
    by = [check.name for check in checks]
    if not checks:
        return passed(2, unproven="no check that runs tests is defined in the commit that the change starts from", by=by)
    found = examiner.examine(change.base, change.head)
    findings = [finding for one in found.findings for finding in _told(one, is_held=found.outcome == "held")]
    could_not_say = {
        str(one["check"]): str(one["text"]) for one in found.findings if one["kind"] in ("error", "inherited", "flaky")
    }
    unsaid = "; ".join(f"{name} could not say: {why}" if why else f"{name} could not say" for name, why in could_not_say.items())
    if not any(one.severity is Severity.BLOCKING for one in findings) and not unsaid:
        findings += [one for check in checks for one in _vacuous(check, change, settings, examiner)]
        check = next((one for one in checks if one.report == "junit"), None)
        if check is not None and settings.rules.measure_seconds and not findings:
            seconds = settings.rules.measure_seconds
            given = {"runner": runner, "examiner": examiner, "check": check, "change": change, "mark": mark, "seconds": seconds}
            findings += Measuring(**given).findings(_sources(change, settings))  # type: ignore[arg-type]
    return passed(2, findings, unproven=unsaid, by=by)


def _is_to_be_shown(change: Change, settings: ReviewSettings) -> bool:
    """Say whether a change does something that a test could fail without: not by words and types alone, and not where it says
    that everything stays as it was, and none of its values speaks against that.
    """
    code = [one for one in sources(change, settings.tests) if not one.is_test and is_run(one.path)]
    if all(meaning(one.before, one.path) == meaning(one.text, one.path) for one in code):
        return False
    title = change.message.partition("\n")[0]
    return SAME.search(title) is None or _MENDS.search(title) is not None or other_values(code)


def _sources(change: Change, settings: ReviewSettings) -> list[str]:
    tests = Patterns(settings.tests)
    return [one.path for one in change.paths if one.status != "D" and not tests.covers(one.path)]


def _told(one: Mapping[str, Any], *, is_held: bool) -> Iterator[Finding]:
    """Tell what an examination found as findings of a review."""
    kind = str(one["kind"])
    if kind in ("error", "inherited", "flaky"):
        text = f"{one['check']}: {one['text'] or kind}"
        yield Finding(severity=Severity.INFO, kind=kind, text=text, remedy=str(one.get("output", ""))[-1500:].strip())
        return
    is_question = is_held and kind in _QUESTIONS
    severity = Severity.QUESTION if is_question else Severity.BLOCKING
    names = [str(name) for name in (*one.get("tests", ()), *one.get("lines", ()))][:_MOST]
    text = ": ".join(part for part in (str(one.get("check", "")), str(one["text"]), ", ".join(names)) if part)
    remedy = str(one.get("output", ""))[-1500:].strip()
    for path in (one.get("paths") or one.get("changed") or [None])[:_MOST]:
        yield Finding(severity=severity, kind=kind, text=text, file=path, remedy=remedy)


def _vacuous(check: Check, change: Change, settings: ReviewSettings, examiner: Examiner) -> Iterator[Finding]:
    """Say when a change of the source brings tests of which every one passes without it."""
    tests = Patterns(settings.tests)
    paths = [one.path for one in change.paths if one.status != "D"]
    new_tests = [path for path in paths if tests.covers(path)]
    if check.report != "junit" or not new_tests or not _is_to_be_shown(change, settings):
        return
    after, before = (examiner.verdict(check, commit, given)[1] for commit, given in ((change.head, paths), (change.base, ())))
    added = [name for name in after.tests or {} if name not in (before.tests or {})]
    if not added:
        return
    without = examiner.verdict(check, examiner.with_files_of(change.head, change.base, new_tests), paths)[1]
    if without.tests is not None and all(without.tests.get(name) == PASSED for name in added):
        yield Finding(
            severity=Severity.SIGNIFICANT,
            kind="vacuous-test",
            text=f"every new test passes without the change: {', '.join(sorted(added)[:_MOST])}",
            file=new_tests[0],
            remedy="Have a test that fails where the change is taken back.",
        )
