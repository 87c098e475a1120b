"""Judge trials with and without a fix: return the tests that prove it, or why none does."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from decklog.conductor.checks.running import FAILED, PASSED, SKIPPED
from decklog.review.proof.trials import ProbeResult, Trial
from decklog.stores.workflow.verdicts import CheckOutcome

_SYNTAX = re.compile(r"\b(?:SyntaxError|IndentationError|TabError)\b")
_IMPORT = re.compile(r"\b(?:ImportError|ModuleNotFoundError)\b|\bmodule '[^']+' has no attribute\b|\bname '\w+' is not defined\b")
_COLLECTION = re.compile(r"(?i)\bcollection (?:failure|error)|\berror collecting\b|\berrors during collection\b")
_ASSERTION = re.compile(r"(?m)^(?:AssertionError\b|assert |Failed: |.*\bAssertionFailedError\b)")
# Errors by names that only the fix adds; they don't show the fault.
_MISSING = {"ImportError", "NameError", "SyntaxError"}
_SHOWN = 10


class Refusal(StrEnum):
    """The reason why no test proves a fix."""

    NO_CHECK = "no-check"
    NO_TEST = "no-test"
    TESTS_ONLY = "tests-only"
    VACUOUS = "vacuous"
    MISDIRECTED = "misdirected"
    MARKER = "marker"
    IMPORT_ERROR = "import-error"
    COLLECTION_ERROR = "collection-error"
    SYNTAX_ERROR = "syntax-error"
    ERROR_IN_TEST = "error-in-test"
    FLAKY = "flaky"
    NOT_FIXED = "not-fixed"
    SKIPPED = "skipped"
    HANGS = "hangs"
    NOT_RUN = "not-run"
    UNTRACED = "untraced"


REMEDIES = {
    Refusal.NO_CHECK: "Define a check that reports its tests in the commit that the fix starts from.",
    Refusal.NO_TEST: "Add a test that fails without the fix.",
    Refusal.TESTS_ONLY: "Nothing but tests is changed, so none can fail without it: merge it by hand, then drop the mend.",
    Refusal.VACUOUS: "Test the fault that was reported: the test must fail without the fix.",
    Refusal.MISDIRECTED: "Test the code that the fix changes.",
    Refusal.MARKER: "Run what the fix changes in the test, and assert its result.",
    Refusal.IMPORT_ERROR: "Let the test fail by what it claims, with names that are there without the fix.",
    Refusal.COLLECTION_ERROR: "Make the test one that can be collected without the fix.",
    Refusal.SYNTAX_ERROR: "Mend the syntax of the test.",
    Refusal.ERROR_IN_TEST: "Let the test fail by an assertion, or by an error in the code that is tested.",
    Refusal.FLAKY: "Take out what makes the outcome differ from run to run.",
    Refusal.NOT_FIXED: "The fix does not make its own tests green.",
    Refusal.SKIPPED: "A test that is skipped shows nothing.",
    Refusal.HANGS: "Without the fix the test does not end: give it a time limit that fails.",
    Refusal.NOT_RUN: "Look at the output of the check.",
    Refusal.UNTRACED: "The probe saw nothing of the test: run the check without -I and -E, and without another tracer.",
}


@dataclass(frozen=True, kw_only=True)
class FixProof:
    """The proof of a fix, or why there is none.

    `touches` is how the tests meet the change: they `run` a line of it or `read` a document; `unproven` for a language
    that can't be watched.
    """

    refused: Refusal | None = None
    text: str = ""
    tests: tuple[str, ...] = ()
    touches: str = ""
    outcomes: tuple[str, ...] = ()

    @property
    def is_given(self) -> bool:
        return self.refused is None

    @property
    def remedy(self) -> str:
        return "" if self.refused is None else REMEDIES[self.refused]

    def as_dict(self) -> dict[str, Any]:
        """Return the form that is stored and shown."""
        return {**asdict(self), "tests": list(self.tests), "outcomes": list(self.outcomes), "remedy": self.remedy}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "FixProof":
        """Return the proof that `as_dict` wrote."""
        known = None if stored["refused"] is None else Refusal(stored["refused"])
        lists = {name: tuple(stored[name]) for name in ("tests", "outcomes")}
        return cls(refused=known, text=stored["text"], touches=stored["touches"], **lists)


@dataclass(frozen=True)
class Facts:
    """Facts of a change before its tests run: the tests it adds or changes, and what else it changes."""

    names: frozenset[str]
    python: bool
    documents: bool


def refused(why: Refusal, text: str = "") -> FixProof:
    """Return a refusal with its text."""
    return FixProof(refused=why, text=text or REMEDIES[why])


def judge(facts: Facts, without: Sequence[Trial], with_it: Sequence[Trial]) -> FixProof:
    """Judge trials; any doubt is a refusal."""
    for trials, where in ((without, "without the fix"), (with_it, "with the fix")):
        if (differing := _differing(trials)) is not None:
            return refused(Refusal.FLAKY, f"{where} {differing}")
    found = next(_not_run(without[0], "without the fix"), None) or next(_not_run(with_it[0], "with the fix"), None)
    if found is not None:
        return found
    before, after = without[0].said.tests or {}, with_it[0].said.tests or {}
    if with_it[0].said.failing:
        return refused(Refusal.NOT_FIXED, f"with the fix these fail: {', '.join(with_it[0].said.failing[:_SHOWN])}")
    turned = sorted(name for name, outcome in after.items() if outcome == PASSED and before.get(name) == FAILED)
    if not turned:
        return _explain_no_change(facts, with_it[0])
    judged = [(name, _judge_turned_test(facts, name, without[0], with_it[0])) for name in turned]
    good = [(name, touches) for name, touches in judged if isinstance(touches, str)]
    if not good:
        return next(proof for _, proof in judged if isinstance(proof, FixProof))
    runs = f"{len(without)} of {len(without)} runs"
    outcomes = tuple(
        f"{name}: fails without the fix by what it claims, passes with it, in {runs} each" for name, _ in good[:_SHOWN]
    )
    return FixProof(tests=tuple(name for name, _ in good), touches=good[0][1], outcomes=outcomes)


def _differing(trials: Sequence[Trial]) -> str | None:
    """Return what differs between runs; None if nothing does."""
    first = trials[0].said
    for trial in trials[1:]:
        if trial.said.outcome is not first.outcome:
            return f"a run is {first.outcome} and another {trial.said.outcome}"
        one, other = first.tests or {}, trial.said.tests or {}
        names = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
        if names:
            return f"these pass in one run and not in another: {', '.join(names[:_SHOWN])}"
    return None


# Trials in which tests were not run


def _not_run(trial: Trial, where: str) -> Iterator[FixProof]:
    """Yield why tests could not be run at all."""
    said = trial.said
    if said.outcome is CheckOutcome.ERROR:
        if said.reason == "it was timed out":
            yield refused(Refusal.HANGS, f"{where} the check ran out of time")
        else:
            yield refused(
                _class_of(said.output), f"{where} the check could not run its tests: {said.reason}; {_last(said.output)}"
            )
    for name, failure in trial.failures.items():
        if failure.tag == "error" and _COLLECTION.search(failure.text):
            yield refused(_class_of(failure.text), f"{where} {name} could not be collected: {_last(failure.text)}")


def _class_of(text: str) -> Refusal:
    if _SYNTAX.search(text):
        return Refusal.SYNTAX_ERROR
    if _IMPORT.search(text):
        return Refusal.IMPORT_ERROR
    return Refusal.COLLECTION_ERROR if _COLLECTION.search(text) else Refusal.NOT_RUN


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no output"


# Tests that were run


def _explain_no_change(facts: Facts, with_it: Trial) -> FixProof:
    """Return why no test turned from red to green."""
    tests = with_it.said.tests or {}
    own = [name for name in tests if _function(name) in facts.names]
    if not own:
        return refused(Refusal.NO_TEST, "no test that the change adds or changes was run")
    if all(tests[name] == SKIPPED for name in own):
        return refused(Refusal.SKIPPED, f"{own[0]} is skipped")
    seen = [one for name in own for one in _seen_of(name, with_it)]
    ran_elsewhere = any(one.code for one in seen) and not any(one.lines for one in seen)
    why = Refusal.MISDIRECTED if ran_elsewhere else Refusal.VACUOUS
    return refused(why, f"{own[0]} passes without the fix{' and runs none of its lines' if ran_elsewhere else ''}")


def _judge_turned_test(facts: Facts, name: str, without: Trial, with_it: Trial) -> "str | FixProof":
    """Return how a test that turned green meets the change, or why it proves nothing."""
    before, after = _seen_of(name, without), _seen_of(name, with_it)
    failure = _how_it_failed(name, without, before)
    if failure is not None:
        return failure
    if facts.python:
        if not before and not after:
            return refused(Refusal.UNTRACED, f"nothing was seen of {name}")
        return "run" if _runs_the_change((*before, *after)) else refused(Refusal.MARKER, f"{name} runs no line of the fix")
    if facts.documents:
        is_read = any(one.read for one in (*before, *after))
        return "read" if is_read else refused(Refusal.MARKER, f"{name} reads nothing that the fix changes")
    return "unproven"


def _how_it_failed(name: str, without: Trial, seen: Sequence[ProbeResult]) -> FixProof | None:
    """Refuse a test that failed without the fix by anything but its assertion or an error in the tested code."""
    raised = next((one.raised for one in seen if one.raised is not None), None)
    if raised is not None:
        types, where = set(raised["types"]), str(raised["in"])
        if "AssertionError" in types or "Failed" in types:
            return None
        what = f"{name} failed without the fix by {raised['types'][0]}: {raised['text']}"
        is_missing = bool(types & _MISSING) or _IMPORT.search(str(raised["text"])) is not None
        if is_missing:
            return refused(Refusal.SYNTAX_ERROR if "SyntaxError" in types else Refusal.IMPORT_ERROR, what)
        is_in_test = any(one.file == where for one in seen)
        return refused(Refusal.ERROR_IN_TEST, what) if is_in_test else None
    failure = without.failures.get(name)
    if failure is None or (failure.tag == "failure" and (_ASSERTION.search(failure.text) or not seen)):
        return None
    why = _class_of(failure.text)
    return refused(Refusal.ERROR_IN_TEST if why is Refusal.NOT_RUN else why, f"{name}: {_last(failure.text)}")


def _runs_the_change(seen: Sequence[ProbeResult]) -> bool:
    """Return whether a test runs a line of the change; lines run on import count if the test runs other code, too."""
    return any(one.lines or (one.code and one.outside) for one in seen)


def _seen_of(name: str, trial: Trial) -> list[ProbeResult]:
    found = [one for one in trial.seen if one.test == _function(name)]
    files = {one.file for one in found}
    if len(files) < 2:
        return found
    # Tests of the same name in several files: the report's name has the file's in it.
    return [one for one in found if one.file.rpartition("/")[2].removesuffix(".py") in name]


def _function(name: str) -> str:
    return name.rpartition("::")[2].partition("[")[0]
