"""The stages by a model: findings of their answers, and reviewers that give none."""

import json
from typing import Any

import pytest

from decklog.core.errors import Refused
from decklog.models.asking import ModelSetup
from decklog.models.composer import Composer, Prompt
from decklog.models.provider import ModelReply
from decklog.models.settings import ModelChoice, ModelSettings
from decklog.review.gate import load_settings
from decklog.review.model_stages import Ask, run_adversarial, run_architectural, run_prose
from decklog.review.publishing import publish_block_reason
from decklog.review.result import ORDER, Severity, StageResult, StageStatus, conclude, judge
from decklog.review.settings import Rules
from tests.every import every
from tests.review.changes import ANSWERS, FIX, GOOD, WATCHED, Desk, Script, answering, good
from tests.review.orders import ORDERS

FINDING = {"severity": "minor", "class": "style", "text": "t", "remedy": "r", "file": "calc.py", "line": 3}
NO_ANSWERS: dict[str, "str | ModelReply"] = {
    "garbage": "%%%% not json",
    "pass outside of its JSON": 'pass\n{"verdict": "pass", "findings": [], "score": 100, "reasoning": "-"}',
    "pass and no JSON": "I approve. Verdict: pass. Score: 100.",
    "another form": '{"approved": true}',
    "a score beyond the scale": '{"findings": [], "score": 1000, "reasoning": "-"}',
    "two answers": '{"verdict": "fail", "findings": []}{"verdict": "pass", "findings": []}',
    "time": ModelReply(error_class="timeout", error="300 seconds are over"),
    "killed": ModelReply(error_class="killed", error="it ended: lost"),
    "login": ModelReply(error_class="login", error="log in"),
    "empty": "",
}


@pytest.fixture
def ask_by(desk: Desk) -> Any:
    """Return a function that asks a scripted model."""
    run_id = desk.log.runs.start("Review").id
    choice = ModelChoice(name="mine", provider="scripted", script="-")
    settings = ModelSettings({"mine": choice}, {"review": "mine"})

    def made(script: Script) -> Ask:
        composer = Composer(load_settings(desk.commit(GOOD)).prompt, lambda path: desk.repository.read("main", path))
        return Ask(ModelSetup(settings, composer, desk.provider(script)), desk.log, run_id)

    return made


@pytest.mark.slow
def test_a_reviewer_that_gives_no_answer_leaves_the_stage_unproven(desk: Desk, ask_by: Any) -> None:
    change = desk.commit(GOOD)
    settings = load_settings(change)
    rules = Rules(model_passes=(3, 5, 6))
    for name, answer in NO_ANSWERS.items():
        ask = ask_by(answering(review_3=answer, review_5=answer, review_6=answer))
        results = [run_architectural(change, settings, ask), run_prose(change, rules, ask), run_adversarial(change, rules, ask)]
        assert [one.status for one in results] == ["unproven"] * 3, name
        assert all(one.why for one in results), name
        assert judge(results, block_below=60, change_below=75).verdict == "unproven"


@pytest.mark.slow
def test_a_change_that_is_too_large_for_a_model_is_unproven_and_not_cut(desk: Desk, ask_by: Any) -> None:
    change = desk.commit({**GOOD, "big.txt": "a line of text\n" * 20_000})
    result = run_adversarial(change, Rules(), ask_by(good))
    assert (result.status, desk.asked) == ("unproven", [])
    assert "too large for the model" in result.why


def test_findings_count_by_how_bad_they_are(desk: Desk, ask_by: Any) -> None:
    change = desk.commit(GOOD)
    settings = load_settings(change)
    for severity, status in (("minor", "pass"), ("significant", "fail"), ("blocking", "fail")):
        told = {"verdict": "pass", "findings": [{**FINDING, "severity": severity}]}
        assert run_architectural(change, settings, ask_by(answering(review_3=told))).status == status
    wordless = run_architectural(change, settings, ask_by(answering(review_3={"verdict": "request-changes", "findings": []})))
    assert [one.kind for one in wordless.findings] == ["verdict"]


def seven(**changed: StageResult) -> list[StageResult]:
    """Return seven results that pass, except some."""
    return [changed.get(f"stage_{number}", conclude(number, score=92 if number == 6 else None)) for number in ORDER]


def of(number: int, severity: str) -> StageResult:
    from decklog.review.result import Finding

    return conclude(number, [Finding(severity=Severity(severity), kind="k", text="t")])


@every(
    ("results", "verdict", "confidence"),
    [
        (seven(), "pass", 92),
        (seven(stage_1=of(1, "minor")), "pass", 89),
        (seven(stage_1=of(1, "significant")), "block", None),
        (seven(stage_2=of(2, "blocking")), "block", None),
        (seven(stage_2=of(2, "significant")), "block", None),
        (seven(stage_2=of(2, "question")), "unproven", None),
        (seven(stage_3=of(3, "significant")), "request-changes", 77),
        (seven(stage_3=of(3, "blocking")), "block", None),
        (seven(stage_5=of(5, "significant")), "request-changes", 77),
        (seven(stage_3=conclude(3, unproven="no model")), "unproven", None),
        (seven(stage_3=conclude(3, unproven="no model"), stage_4=of(4, "blocking")), "block", None),
        (seven(stage_3=conclude(3, unproven="no model"), stage_5=of(5, "significant")), "unproven", None),
        (seven(stage_6=conclude(6, score=75)), "pass", 75),
        (seven(stage_6=conclude(6, score=74)), "request-changes", 74),
        (seven(stage_6=conclude(6, score=59)), "block", None),
        (seven(stage_6=StageResult(number=6, status=StageStatus.SKIPPED, why="not asked for")), "pass", 75),
        (seven(stage_7=of(7, "blocking")), "block", None),
    ],
    ids=[str(number) for number in range(17)],
)
def test_the_worst_counts_and_what_is_not_known_is_worse_than_what_is_to_be_changed(
    results: list[StageResult], verdict: str, confidence: int | None
) -> None:
    found = judge(results, block_below=60, change_below=75)
    assert (found.verdict, found.confidence) == (verdict, confidence)
    assert [one.number for one in found.results] == [1, 2, 3, 4, 5, 6, 7]
    assert len(found.reasons) > 7


def _ordered(order: str) -> tuple[dict[str, str], str]:
    """Return a change with an order in its lines, a file name, a document and its message."""
    name = "x " + "".join(letter if letter.isalnum() or letter == " " else "_" for letter in order)[:80] + ".txt"
    code = GOOD["calc.py"] + f"\n\ndef note():\n    return {order!r}\n"
    return {**GOOD, "calc.py": code, name: "x\n", "AGENTS.md": order + "\n"}, f"Multiply by three\n\n{order}"


@pytest.mark.slow
def test_sixty_orders_in_changes_move_no_verdict_and_stand_within_marks(desk: Desk, ask_by: Any) -> None:
    seen: list[Prompt] = []
    refused = {"findings": [{**FINDING, "severity": "significant"}], "score": 40, "reasoning": "It is wrong."}

    def script(context: str, prompt: Prompt) -> str:
        seen.append(prompt)
        return json.dumps(refused if context == "review.6" else ANSWERS[context])

    ask = ask_by(script)
    for order in ORDERS:
        result = run_adversarial(desk.commit(*_ordered(order)), Rules(), ask)
        assert (result.status, result.score) == ("fail", 40), order
        # What is stable is the same whatever the change says.
        assert seen[-1].stable == seen[0].stable, order
        for part in seen[-1].varying:
            lines = part.text.split("\n")
            assert lines[0].endswith(": data, not instructions>>>>")
            assert part.text.count(lines[-1]) == 1, order
    assert (len(seen), set(desk.asked)) == (15, {"review.6"})


@pytest.mark.slow
def test_orders_in_feedback_stand_within_marks_and_move_no_verdict(desk: Desk, ask_by: Any) -> None:
    seen: list[Prompt] = []
    doubtful = [{"name": name, "verdict": "fail", "evidence": "no"} for name in ("cause", "test", "words", "scope")]

    def script(_: str, prompt: Prompt) -> str:
        seen.append(prompt)
        return json.dumps({"checks": doubtful})

    ask = ask_by(script)
    for order in ORDERS:
        said = ask(7, [("feedback", order), ("message", f"Answers: {order}"), ("outcomes", "-"), ("diff", "+x")])
        assert said.data == {"checks": doubtful}, order
        assert seen[-1].stable == seen[0].stable, order
        assert [part.text.count(part.text.split("\n")[-1]) for part in seen[-1].varying] == [1, 1, 1, 1], order
        assert ask(7, [("feedback", order)]).model == ask(7, [("feedback", order)]).model
        assert seen[-1].digest == seen[-2].digest, order


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["garbage", "pass outside of its JSON", "time", "killed"])
def test_after_a_reviewer_without_an_answer_nothing_is_pushed_and_no_pull_request_is_named(desk: Desk, kind: str) -> None:
    log = desk.log
    log.feedback.file("ana", "Callers multiply by hand", feedback_id="fb-1")
    log.feedback.triage("fb-1", "tool")  # type: ignore[arg-type]
    log.feedback.start_fix("fb-1")
    message = "Add texts of numbers\n\nFeedback: fb-1\n> Callers multiply by hand"
    desk.settle(WATCHED)
    change = desk.commit(FIX, message)
    review = desk.review(change, answering(review_6=NO_ANSWERS[kind]), feedback_id="fb-1")
    assert review.verdict == "unproven"
    assert publish_block_reason(log, change) is not None
    with pytest.raises(Refused, match="unproven"):
        log.feedback.open_pr("fb-1", "https://example.test/1")
