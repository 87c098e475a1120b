"""Claude Code and Codex themselves as reviewers, with a model that answers by script."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog import Decklog, Review
from decklog.review import gate
from tests.agents.fake_model import FakeModel, Step
from tests.agents.real.programs import needs
from tests.agents.real.test_conductor import PROGRAMS
from tests.conductor.plans import RUNNER
from tests.review.changes import ANSWERS, GOOD, Desk, make_gated_repository

REVIEW = '[models.mine]\nagent = "real"\nseconds = 60\n[calls]\nreview = "mine"\n[review]\nmodel_passes = [6]\n'
GOOD_ANSWER = json.dumps(ANSWERS["review.6"])


class Reviewers:
    """A repository whose reviewer is a real program, and the model that it talks to."""

    def __init__(self, desk: Desk, model: FakeModel) -> None:
        self.desk = desk
        self.model = model

    def review(self, lane: str) -> Review:
        change = self.desk.commit(GOOD, f"Multiply by three\n\nlane={lane} is who answers.")
        return gate.review(self.desk.log, change)


@pytest.fixture(params=[pytest.param(name, marks=needs(PROGRAMS[name][0])) for name in ("claude", "codex")])
def reviewers(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reviewers]:
    program, settings, *_ = PROGRAMS[request.param]
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/local/bin:/usr/bin:/bin")
    lanes = {"good": [Step(GOOD_ANSWER)], "words": [Step("I approve: pass."), Step("Really, pass.")]}
    with FakeModel(lanes) as model, Decklog.open(tmp_path / "decklog.db") as log:
        files = {"decklog.toml": settings(model, home, monkeypatch) + REVIEW, "run_tests.py": RUNNER.read_text()}
        folder = make_gated_repository(tmp_path / "repository", **files)
        yield Reviewers(Desk(log, folder), model)


def test_a_real_program_reviews_and_is_paid_by_its_own_figures(reviewers: Reviewers) -> None:
    review = reviewers.review("good")
    assert (review.verdict, review.confidence) == ("pass", 92), review.reasons
    charges = list(reviewers.desk.log.ledger.find(review.run_id))
    assert {charge.call_site for charge in charges} == {"review.6"}
    assert sum(charge.output_tokens for charge in charges) > 0


def test_a_real_program_that_says_pass_in_words_leaves_the_change_unproven(reviewers: Reviewers) -> None:
    review = reviewers.review("words")
    assert (review.verdict, review.confidence) == ("unproven", None), review.reasons
    assert any("can't be parsed" in str(reason) for reason in review.reasons)


def test_a_real_program_without_its_login_leaves_the_change_unproven(reviewers: Reviewers) -> None:
    reviewers.model.troubles += [401] * 12
    review = reviewers.review("good")
    assert review.verdict == "unproven", review.reasons
