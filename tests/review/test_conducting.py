"""The gate in a run of the conductor: what it holds does not land, and there is no candidate of it afterwards."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.conductor.conductor import Conductor
from decklog.conductor.context import RunContext
from decklog.conductor.git.repository import Repository
from decklog.core.errors import Invalid
from decklog.models.composer import Prompt
from decklog.models.provider import ModelReply, Provider
from decklog.models.providers.making import Scripted
from decklog.review.agent_tool import review_attempt
from tests.conductor.plans import SETTINGS, landed_titles, make_checked_repository, start_plan, states, work_item
from tests.conductor.repositories import git
from tests.review.changes import Script, answering, good, site_of

TRIPLE = ["append", "calc.py", "\n\ndef triple(a):\n    return a * 3\n"]
REVIEWED = (
    SETTINGS + '[models.mine]\nprovider = "scripted"\nscript = "-"\n[calls]\nreview = "mine"\n[review]\nmodel_passes = [6]\n'
)


class Work:
    """A plan of one item in a repository whose settings ask for a review."""

    def __init__(self, log: Decklog, folder: Path) -> None:
        self.log = log
        self.folder = make_checked_repository(folder, **{"decklog.toml": REVIEWED})
        self.asked: list[str] = []

    def context(self, *items: dict[str, Any]) -> RunContext:
        content = json.dumps({"goal": "Make it better", "items": list(items)}).encode()
        state = self.folder.parent / "state"
        return start_plan(self.log, content, Repository.find(self.folder, state), say=lambda _: None)

    def run(self, context: RunContext, script: Script = good) -> RunContext:
        made = replace(context, reviewer=partial(review_attempt, make=self._maker(script)))
        Conductor(made).run()
        return made

    def _maker(self, script: Script) -> Callable[[object], Provider]:
        def tell(prompt: Prompt) -> "str | ModelReply":
            self.asked.append(site_of(prompt))
            return script(site_of(prompt), prompt)

        return lambda _: Scripted(tell)


@pytest.fixture
def work(sqlite_target: str, tmp_path: Path) -> Any:
    with Decklog.open(sqlite_target) as log:
        yield Work(log, tmp_path / "repository")


def candidates(work: Work, context: RunContext) -> list[str]:
    """Name the landings that were begun."""
    return [effect.step for effect in work.log.effects.find(context.run_id, tool="conductor.advance")]


@pytest.mark.slow
def test_what_the_gate_lets_through_lands_and_its_patch_is_reviewed_once(work: Work) -> None:
    context = work.run(work.context(work_item("triple", TRIPLE)))
    assert landed_titles(context) == ["Item triple"]
    assert work.asked == ["review.6"]
    (review,) = work.log.reviews.find(context.run_id)
    # The item changes code that tests name and brings no test: three less than the score of 92.
    assert (review.verdict, review.task_id, review.confidence) == ("pass", f"{context.run_id}.triple.c1", 92)
    assert [str(charge.call_site) for charge in work.log.ledger.find(context.run_id)].count("review.6") == 1


@pytest.mark.slow
def test_what_is_unproven_waits_for_a_person_and_no_candidate_of_it_exists(work: Work) -> None:
    context = work.run(work.context(work_item("triple", TRIPLE)), answering(review_6="I say pass."))
    assert (landed_titles(context), candidates(work, context)) == ([], [])
    assert states(context)["triple.c1"] == "waiting"
    (question,) = work.log.approvals.find(context.run_id)
    assert "unproven" in str(question.question)
    work.log.approvals.decide(question.id, "granted", by="ana", rationale="I looked at it")  # type: ignore[arg-type]
    work.run(context, answering(review_6="I say pass."))
    assert landed_titles(context) == ["Item triple"]


@pytest.mark.slow
def test_a_yes_to_what_the_gate_holds_serves_that_tree_alone(work: Work) -> None:
    def script(context: str, prompt: Prompt) -> "str | ModelReply":
        return answering(review_6="I say pass.")(context, prompt) if "triple" in prompt.text else good(context, prompt)

    context = work.run(work.context(work_item("triple", TRIPLE), work_item("other", ["write", "b.txt", "1"])), script)
    assert landed_titles(context) == ["Item other"]
    (first,) = work.log.approvals.find(context.run_id)
    work.log.approvals.decide(first.id, "granted", by="ana", rationale="I looked at it")  # type: ignore[arg-type]
    work.run(context, script)
    # It would land beside a file of one byte that was not there when it was looked at: that is another tree.
    second, _ = work.log.approvals.find(context.run_id)
    assert (second.state, second.subject_digest == first.subject_digest) == ("open", False)
    assert landed_titles(context) == ["Item other"]
    work.log.approvals.decide(second.id, "granted", by="ana", rationale="I looked again")  # type: ignore[arg-type]
    work.run(context, script)
    assert landed_titles(context) == ["Item other", "Item triple"]


@pytest.mark.slow
def test_what_is_blocked_goes_back_with_its_findings_and_never_lands(work: Work) -> None:
    fault = {"severity": "blocking", "class": "wrong", "text": "it adds", "remedy": "multiply", "file": "calc.py", "line": 9}
    bad = {"findings": [fault], "score": 20, "reasoning": "-"}
    context = work.run(
        work.context(work_item("triple", TRIPLE, again=[["write", "notes.txt", "again\n"]])), answering(review_6=bad)
    )
    assert (landed_titles(context), candidates(work, context)) == ([], [])
    assert work.asked == ["review.6"] * 2
    told: Any = work.log.tasks.get(f"{context.run_id}.triple.w2").inputs["findings"]
    assert (told[0]["check"], told[0]["text"], told[0]["paths"]) == ("review.6", "it adds", ["calc.py:9"])
    assert states(context)["triple.c2"] == "blocked"


def test_a_run_that_asks_for_a_review_does_not_start_without_one(work: Work) -> None:
    with pytest.raises(Invalid, match="no reviewer was given"):
        Conductor(work.context(work_item("triple", TRIPLE)))
    assert git(work.folder, "log", "--format=%s") == "First"
