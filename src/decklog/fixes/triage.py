"""Triage: which of the eight classes of fix feedback needs, by a model or by a person's word; below 60 it is out of scope."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from decklog.fixes.dropping import drop
from decklog.models.seam import ModelCall
from decklog.stores.approvals.feedback import FeedbackState, FixClass
from decklog.stores.workflow.mends import MendState, MendWait

if TYPE_CHECKING:
    from decklog.fixes.ground import FixContext
    from decklog.models.seam import ModelAnswer
    from decklog.stores.workflow.mends import Mend

FLOOR = 60
SITE = "mend.triage"
_MOST_FILES = 2000
_MOST_LESSONS = 5
_LONGEST = 2000
_TEXTS = ("root_cause", "proposed_change", "test_sketch", "success_criterion")
_CANDIDATE = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "why": {"type": "string"}},
    "required": ["path", "why"],
    "additionalProperties": False,
}
FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "fix_class": {"type": "string", "enum": [one.value for one in FixClass]},
        **{name: {"type": "string"} for name in _TEXTS},
        "candidate_files": {"type": "array", "items": _CANDIDATE, "maxItems": 5},
        "prior_pattern": {"type": ["string", "null"]},
        "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
    },
    "required": ["fix_class", *_TEXTS, "candidate_files", "confidence"],
    "additionalProperties": False,
}


def triage(ground: "FixContext") -> "Mend":
    """Return what kind of fix feedback needs; what a person has said already counts."""
    feedback, mend, log = ground.feedback, ground.mend, ground.log
    if feedback.state in (FeedbackState.REJECTED, FeedbackState.CLOSED, FeedbackState.VERIFIED):
        return drop(ground, f"feedback {feedback.id} is {feedback.state} already")
    if feedback.state is not FeedbackState.PENDING:
        said = {"by": "a person", "root_cause": feedback.root_cause or "", "success_criterion": feedback.success_criterion or ""}
        return log.mends.move(mend, MendState.TRIAGED, fix_class=feedback.fix_class, triage=said)
    answer = _asked(ground)
    if answer.data is None:
        waits = MendWait.WEATHER if answer.is_weather else MendWait.MODEL
        return log.mends.move(mend, waits_for=waits, reason=f"nobody says what kind of fix this needs: {answer.why}")
    return _taken(ground, answer.data, answer.model or "a model")


def by_person(ground: "FixContext", fix_class: FixClass, *, by: str) -> "Mend":
    """Take a person's word for the class."""
    log, mend = ground.log, ground.mend
    if fix_class is FixClass.OUT_OF_SCOPE:
        return drop(ground, f"{by} says that it is out of scope")
    with log.transaction():
        if ground.feedback.state is FeedbackState.PENDING:
            log.feedback.triage(mend.feedback_id, fix_class, by=by)
        return log.mends.move(mend, MendState.TRIAGED, fix_class=fix_class, triage={"by": by})


def _asked(ground: "FixContext") -> "ModelAnswer":
    feedback = ground.feedback
    models, composer = ground.models()
    listed = ground.repository.on_objects("ls-tree", "-r", "-z", "--name-only", ground.base).out.split(b"\0")
    files = [name.decode(errors="replace") for name in listed if name][:_MOST_FILES]
    data = [
        ("feedback", feedback.body),
        ("severity", feedback.severity.value),
        ("files", "\n".join(files)),
        ("earlier", "\n".join(_earlier(ground))),
    ]
    composed = composer.compose(SITE, data=[(name, text) for name, text in data if text])
    if not composed.fits:
        from decklog.models.seam import ModelAnswer

        return ModelAnswer(site=SITE, prompt_digest=composed.prompt.digest, why="what is to be told does not fit into a prompt")
    return models.ask(ModelCall(site=SITE, prompt=composed.prompt, schema=FORM))


def _earlier(ground: "FixContext") -> list[str]:
    """Recall what was learned from failures like this; a recalled fix is told as what it is, and never applied."""
    found = ground.log.memory.recall(ground.feedback.body[:_LONGEST], topic="failure_patterns", limit=_MOST_LESSONS)
    return [f"- {hit.body} (lesson {hit.id}, {hit.confidence} of 100)" for hit in found]


def _taken(ground: "FixContext", data: Mapping[str, Any], by: str) -> "Mend":
    """Take an answer: a sure one triages, an unsure one and one out of scope end the matter with the reason."""
    log, mend = ground.log, ground.mend
    confidence, fix_class = int(data["confidence"]), FixClass(data["fix_class"])
    said = {**{name: str(data[name])[:_LONGEST] for name in _TEXTS}, "candidate_files": data["candidate_files"], "by": by}
    if confidence < FLOOR or fix_class is FixClass.OUT_OF_SCOPE:
        unsure = f"{by} is {confidence} of 100 sure that it is {fix_class}, and {FLOOR} are needed"
        reason = unsure if confidence < FLOOR else f"{by} says that it is out of scope: {said['root_cause']}"
        return drop(ground, reason, confidence=confidence, triage={**said, "fix_class": fix_class.value})
    with log.transaction():
        words = {"root_cause": said["root_cause"], "success_criterion": said["success_criterion"]}
        log.feedback.triage(mend.feedback_id, fix_class, by=by, **words)
        return log.mends.move(mend, MendState.TRIAGED, fix_class=fix_class, confidence=confidence, triage=said)
