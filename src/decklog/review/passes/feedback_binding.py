"""Pass 7: a change that claims to mend what somebody said is bound to those words, and to a test that shows it."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from decklog.core.errors import NotFound
from decklog.review.asking import Asked
from decklog.review.change import Change
from decklog.review.proof.judging import REMEDIES, Proof
from decklog.review.result import Finding, PassResult, Severity, passed, skipped

if TYPE_CHECKING:
    from decklog.log import Decklog

_QUESTIONS = {"cause", "test", "words", "scope"}


def feedback_binding(
    log: "Decklog",
    change: Change,
    prove: Callable[[Change], Proof],
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
    found, outcomes = [*_of_message(change, feedback_id, feedback.body)], ""
    if not found:
        proof = prove(change)
        outcomes = "\n".join(proof.outcomes)
        if proof.refused is not None:
            found = [_bad(str(proof.refused), proof.text, REMEDIES[proof.refused])]
    if found:
        return passed(7, found, by=["differential test"])
    data = [("feedback", feedback.body), ("message", change.message), ("outcomes", outcomes), ("diff", change.diff)]
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


def _of_answer(checks: list[dict[str, str]]) -> Iterator[Finding]:
    verdicts = {one["name"]: one for one in checks}
    for name in sorted(_QUESTIONS - verdicts.keys()):
        yield _bad(name, f"the reviewer did not answer whether the {name} is right")
    for one in checks:
        if one["verdict"] != "pass":
            yield _bad(one["name"], one["evidence"][:2000])
