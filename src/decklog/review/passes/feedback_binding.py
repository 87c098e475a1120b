"""Pass 7: a change that claims to mend what somebody said is bound to those words, and to a test that shows it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decklog.conductor.checks.examination import Examiner
from decklog.conductor.checks.report import FAILED, PASSED
from decklog.conductor.settings.check import Check
from decklog.errors import NotFound
from decklog.review.asking import Asked
from decklog.review.change import Change
from decklog.review.result import Finding, PassResult, Severity, passed, skipped
from decklog.review.settings import ReviewSettings
from decklog.stores.flow.verdicts import CheckOutcome
from decklog.tools.files.gitignore import Patterns

if TYPE_CHECKING:
    from decklog.app import Decklog

_QUESTIONS = {"cause", "test", "words", "scope"}
_MOST = 10


def feedback_binding(
    log: "Decklog",
    change: Change,
    settings: ReviewSettings,
    examiner: Examiner,
    ask: Asked,
    *,
    feedback_id: str | None,
    is_mending: bool,
) -> PassResult:
    """Hold a change against the feedback that it answers. Any doubt blocks it."""
    if feedback_id is None:
        if is_mending:
            return passed(7, [_bad("feedback", "a change that mends something names the feedback that it answers")])
        return skipped(7, "the change does not claim to answer any feedback")
    try:
        feedback = log.feedback.get(feedback_id)
    except NotFound:
        return passed(7, [_bad("feedback", f"there is no feedback {feedback_id}")])
    outcomes: list[str] = []
    found = [*_of_message(change, feedback_id, feedback.body), *_shown(change, settings, examiner, outcomes)]
    if found:
        return passed(7, found, by=["differential test"])
    data = [("feedback", feedback.body), ("message", change.message), ("outcomes", "\n".join(outcomes)), ("diff", change.diff)]
    said = ask(7, data)
    if said.data is None:
        return passed(7, unproven=said.why, is_weather=said.is_weather, by=["differential test"])
    return passed(7, list(_of_answer(said.data["checks"])), by=["differential test", *said.by])


def _bad(kind: str, text: str, remedy: str = "") -> Finding:
    return Finding(severity=Severity.BLOCKING, kind=kind, text=text, remedy=remedy)


def _of_message(change: Change, feedback_id: str, body: str) -> Iterator[Finding]:
    told = " ".join(change.message.split())
    first = " ".join(body.strip().split("\n", 1)[0].split())
    if feedback_id not in told:
        yield _bad("feedback", f"the message does not name {feedback_id}", f"Write it into the message: Feedback: {feedback_id}")
    if first and first not in told:
        yield _bad("feedback", "the message does not quote what was said", f"Quote it: {first[:200]}")


def _shown(change: Change, settings: ReviewSettings, examiner: Examiner, outcomes: list[str]) -> Iterator[Finding]:
    """Run the tests of the change without the rest of it and with it: one that is new must turn from red to green."""
    checks = [check for check in settings.functional_checks if check.report == "junit"]
    tests = Patterns(settings.tests)
    paths = [one.path for one in change.paths if one.status != "D" and tests.covers(one.path)]
    if not checks or not paths:
        yield _bad("no-test", "the change has no test that could be run without it", "Add one that fails without the change.")
        return
    found = [fault for check in checks for fault in _turned(check, change, examiner, paths, outcomes)]
    if len(found) == len(checks):
        yield found[0]


def _turned(check: Check, change: Change, examiner: Examiner, paths: list[str], outcomes: list[str]) -> Iterator[Finding]:
    changed = [one.path for one in change.paths if one.status != "D"]
    alone = examiner.with_files_of(change.head, change.base, paths)
    without, before = examiner.verdict(check, alone, changed)[1], examiner.verdict(check, change.base)[1]
    after = examiner.verdict(check, change.head, changed)[1]
    if without.outcome is CheckOutcome.ERROR or without.tests is None:
        yield _bad("not-run", f"{check.name} could not run the tests without the change: {without.reason}")
        return
    new = {name for name in after.tests or {} if (before.tests or {}).get(name) != PASSED}
    red = sorted(name for name in new if without.tests.get(name) == FAILED and (after.tests or {}).get(name) == PASSED)
    outcomes += [f"{name}: fails without the change, passes with it" for name in red[:_MOST]]
    if not red:
        yield _bad("vacuous-test", "no test of the change fails without it and passes with it", "Test what was said to go wrong.")


def _of_answer(checks: list[dict[str, str]]) -> Iterator[Finding]:
    verdicts = {one["name"]: one for one in checks}
    for name in sorted(_QUESTIONS - verdicts.keys()):
        yield _bad(name, f"the reviewer did not answer whether the {name} is right")
    for one in checks:
        if one["verdict"] != "pass":
            yield _bad(one["name"], one["evidence"][:2000])
