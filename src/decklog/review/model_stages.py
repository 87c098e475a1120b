"""Stages 3, 5, 6 and 7, which may ask a model: the schemas of its answers, and their findings."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from decklog.core.errors import NotFound
from decklog.log import Decklog
from decklog.models.asking import ModelSetup
from decklog.models.client import ModelAnswer
from decklog.review.change import Change
from decklog.review.deterministic import find_missing_documents, find_missing_tests
from decklog.review.proof.judging import REMEDIES, FixProof
from decklog.review.result import Finding, Severity, StageResult, conclude, skip
from decklog.review.rules import find_in_message
from decklog.review.settings import ReviewSettings, Rules

_FINDING = {
    "type": "object",
    "properties": {
        "severity": {"type": "string", "enum": ["blocking", "significant", "minor"]},
        "class": {"type": "string"},
        "file": {"type": ["string", "null"]},
        "line": {"type": ["integer", "null"], "minimum": 1},
        "text": {"type": "string"},
        "remedy": {"type": "string"},
    },
    "required": ["severity", "class", "text", "remedy"],
    "additionalProperties": False,
}
_FINDINGS = {"type": "array", "items": _FINDING, "maxItems": 20}
_VERDICT = {"type": "string", "enum": ["pass", "request-changes"]}
_QUESTIONS = ("cause", "test", "words", "scope")
_CHECK = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "enum": list(_QUESTIONS)},
        "verdict": {"type": "string", "enum": ["pass", "fail"]},
        "evidence": {"type": "string"},
    },
    "required": ["name", "verdict", "evidence"],
    "additionalProperties": False,
}


def _form(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


FORMS: Mapping[int, Mapping[str, Any]] = {
    3: _form(verdict=_VERDICT, findings=_FINDINGS),
    5: _form(verdict=_VERDICT, findings=_FINDINGS),
    6: _form(
        findings={**_FINDINGS, "maxItems": 3},
        score={"type": "integer", "minimum": 0, "maximum": 100},
        reasoning={"type": "string"},
    ),
    7: _form(checks={"type": "array", "items": _CHECK, "maxItems": 8}),
}
_TYPES = ("feat", "fix", "docs", "chore", "refactor", "test", "perf", "ci", "build", "style", "revert")
_CONVENTIONAL = re.compile(rf"(?:{'|'.join(_TYPES)})(?:\([\w./ -]+\))?!?: \S")


@dataclass(frozen=True)
class Ask:
    """Asks the model of a stage, in the run and the task of a review."""

    models: ModelSetup
    log: Decklog
    run_id: str
    task_id: str | None = None

    def __call__(self, number: int, data: Sequence[tuple[str, str]]) -> ModelAnswer:
        site = f"review.{number}"
        return self.models.ask(self.log, site, FORMS[number], data, run_id=self.run_id, task_id=self.task_id)


def _conclude_answer(number: int, answer: ModelAnswer, findings: Iterable[Finding], by: str = "", **given: Any) -> StageResult:
    """Build the result of a stage from a model's answer, which may be missing."""
    names = [name for name in (by, answer.model) if name]
    return conclude(number, findings, unproven=answer.why, is_outage=answer.is_outage, by=names, **given)


def read_findings(data: Mapping[str, Any]) -> list[Finding]:
    """Return the findings of an answer. A verdict without a finding that supports it is a finding too."""
    found = [
        Finding(
            severity=Severity(one["severity"]),
            kind=one["class"][:60],
            text=one["text"][:2000],
            file=one.get("file"),
            line=one.get("line"),
            remedy=one["remedy"][:2000],
        )
        for one in data["findings"]
    ]
    if data.get("verdict") == "request-changes" and all(one.severity is Severity.MINOR for one in found):
        text = "the reviewer requests changes but names no required one"
        found.append(Finding(severity=Severity.SIGNIFICANT, kind="verdict", text=text))
    return found


def _with_model(number: int, change: Change, ask: Ask, found: list[Finding]) -> StageResult:
    """Build the result of a stage from known findings and those of a model."""
    answer = ask(number, [("message", change.message), ("diff", change.diff)])
    more = [] if answer.data is None else read_findings(answer.data)
    return _conclude_answer(number, answer, [*found, *more], "rules")


# Stage 3: structure


def run_architectural(change: Change, settings: ReviewSettings, ask: Ask) -> StageResult:
    """Check for missing tests and documents; ask a model about the structure if the settings enable it."""
    rules = settings.rules
    found = [*find_missing_documents(change, rules.source, rules.docs), *find_missing_tests(change, settings)]
    return _with_model(3, change, ask, found) if 3 in rules.model_passes else conclude(3, found, by=["rules"])


# Stage 5: messages


def run_prose(change: Change, rules: Rules, ask: Ask) -> StageResult:
    """Check the form of the commit messages; ask a model about the tone if the settings enable it."""
    if not change.messages:
        return skip(5, "there is no commit message yet")
    found = [one for message in change.messages for one in _check_message(message, rules)]
    if 5 not in rules.model_passes or any(one.severity is Severity.SIGNIFICANT for one in found):
        return conclude(5, found, by=["rules"])
    return _with_model(5, change, ask, found)


def _check_message(message: str, rules: Rules) -> Iterator[Finding]:
    title, _, body = message.partition("\n")
    if len(title) > rules.title_length:
        yield _bad_message("title", f"the title has {len(title)} characters, more than {rules.title_length}", "Shorten it.")
    if body and body.partition("\n")[0].strip():
        text = "no empty line follows the title, so git joins both lines as the title"
        yield Finding(severity=Severity.MINOR, kind="body", text=text, remedy="Leave the second line empty.")
    if rules.titles == "conventional" and not _CONVENTIONAL.match(title):
        remedy = f"Begin it with one of {', '.join(_TYPES)} and a colon."
        yield _bad_message("title", f"the title has no type: {title[:60]!r}", remedy)
    for needed in rules.body_needs:
        if needed.lower() not in body.lower():
            yield _bad_message("body", f"the message has no {needed!r}", f"Write it below a line {needed!r}.")
    yield from find_in_message(message, 5)


def _bad_message(kind: str, text: str, remedy: str) -> Finding:
    return Finding(severity=Severity.SIGNIFICANT, kind=kind, text=text, remedy=remedy)


# Stage 6: a model that did not write the change


def run_adversarial(change: Change, rules: Rules, ask: Ask, *, suspected: str = "") -> StageResult:
    """Ask a model for faults and a score, given the findings that critique kept."""
    if 6 not in rules.model_passes:
        return skip(6, "the repository's settings do not enable it")
    more = [("suspected while it was made", suspected)] if suspected else []
    answer = ask(6, [("message", change.message), ("diff", change.diff), *more])
    if answer.data is None:
        return _conclude_answer(6, answer, ())
    return _conclude_answer(6, answer, read_findings(answer.data), score=int(answer.data["score"]))


# Stage 7: the feedback that a change answers


def run_feedback_binding(
    log: Decklog, change: Change, prove: Callable[[Change], FixProof], ask: Ask, *, feedback_id: str | None, is_fix: bool
) -> StageResult:
    """Check that a change quotes its feedback and that a test proves it. Any doubt blocks the change."""
    if feedback_id is None:
        if is_fix:
            return conclude(7, [_doubt("feedback", "a fix must name the feedback that it answers")])
        return skip(7, "the change does not claim to answer any feedback")
    try:
        feedback = log.feedback.get(feedback_id)
    except NotFound:
        return conclude(7, [_doubt("feedback", f"there is no feedback {feedback_id}")])
    found, outcomes = [*_check_quote(change, feedback_id, feedback.body)], ""
    if not found:
        proof = prove(change)
        outcomes = "\n".join(proof.outcomes)
        if proof.refused is not None:
            found = [_doubt(str(proof.refused), proof.text, REMEDIES[proof.refused])]
    if found:
        return conclude(7, found, by=["differential test"])
    data = [("feedback", feedback.body), ("message", change.message), ("outcomes", outcomes), ("diff", change.diff)]
    answer = ask(7, data)
    doubts = () if answer.data is None else _check_answer(answer.data["checks"])
    return _conclude_answer(7, answer, doubts, "differential test")


def _doubt(kind: str, text: str, remedy: str = "") -> Finding:
    return Finding(severity=Severity.BLOCKING, kind=kind, text=text, remedy=remedy)


def _check_quote(change: Change, feedback_id: str, body: str) -> Iterator[Finding]:
    message = " ".join(change.message.split())
    first = " ".join(body.strip().split("\n", 1)[0].split())
    if feedback_id not in message:
        yield _doubt("feedback", f"the message does not name {feedback_id}", f"Write into the message: Feedback: {feedback_id}")
    if first and first not in message:
        yield _doubt("feedback", "the message does not quote the feedback", f"Quote it: {first[:200]}")


def _check_answer(checks: list[dict[str, str]]) -> Iterator[Finding]:
    answered = {one["name"] for one in checks}
    for name in sorted(set(_QUESTIONS) - answered):
        yield _doubt(name, f"the reviewer did not answer whether the {name} is right")
    for one in checks:
        if one["verdict"] != "pass":
            yield _doubt(one["name"], one["evidence"][:2000])
