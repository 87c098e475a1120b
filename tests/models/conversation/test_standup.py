"""The daily report is read from the log alone and is deterministic; a model may only rephrase it."""

import pytest

from decklog import Decklog, ManualClock
from decklog.models.standup import prose_of, standup_of
from tests.conftest import on_both
from tests.models.conversation.talks import Person
from tests.stores.claiming import claimed


@pytest.fixture
def two_days(log: Decklog, clock: ManualClock) -> Decklog:
    """A log in which something happened yesterday and something does today."""
    log.runs.start("Read trailing commas", run_id="commas")
    log.budgets.set("run", scope_id="commas", limit_microdollars=1_000_000)
    log.tasks.add_many(
        "commas", [{"title": name, "task_id": name.lower()} for name in ("Docs", "Lexer", "Old", "Parser", "Tests")]
    )
    first = claimed(log, "commas", worker="dev-1")
    log.tasks.finish(first.task.id, fence=first.task.fence, summary="done")
    log.ledger.charge("a-model", cost_microdollars=900_000, run_id="commas")
    log.tasks.abandon("old", reason="nobody needs it")
    clock.advance(days=1)
    second = log.tasks.claim("commas", worker="dev-2")
    third = log.tasks.claim("commas", worker="dev-3")
    assert second is not None
    assert third is not None
    log.tasks.block(third.task.id, fence=third.task.fence, blocker="no\nlicence")
    log.approvals.ask("commas", "May it be released?", by="dev-2", about="1.2.0", approval_id="release")
    return log


@on_both
def test_standup_has_yesterday_today_blockers_money_and_questions(two_days: Decklog, clock: ManualClock) -> None:
    found = standup_of(two_days, clock.now())
    assert found.yesterday == ["done: Docs (docs)"]
    assert found.today == ["under way: Lexer (lexer), dev-2", "to do in run commas: 1 task"]
    assert found.blockers == [
        "decision waits: May it be released?",
        "blocked: Parser (parser): no licence",
        "given up: Old (old): nobody needs it",
    ]
    assert found.money == ["yesterday: $0.90", "today: $0.00", "budget of run commas, nearly used up: $0.90 of $1.00 in all"]
    assert found.questions == ["approval release: May it be released? decklog approvals show release"]


def test_the_same_log_at_the_same_moment_gives_the_same_bytes(two_days: Decklog, clock: ManualClock) -> None:
    first = standup_of(two_days, clock.now()).markdown
    assert first == standup_of(two_days, clock.now()).markdown
    assert [line for line in first.splitlines() if line.startswith("#")] == [
        f"# Standup, {clock.now().day} {clock.now():%B %Y}",
        *("## Yesterday", "## Today", "## In the way", "## Money", "## Questions"),
    ]


def test_standup_of_an_empty_log(log: Decklog, clock: ManualClock) -> None:
    found = standup_of(log, clock.now())
    assert (found.yesterday, found.today, found.blockers, found.questions) == ([], [], [], [])
    assert found.markdown.count("- nothing") == 4


def test_blocked_change_is_named_once_by_its_last_review(log: Decklog, clock: ManualClock) -> None:
    run_id = log.runs.start("Review").id
    bound = {"base": "b", "head": "h", "patch": "p", "settings": "s"}
    for tree in ("first", "first", "second", "second"):
        clock.advance(minutes=1)
        log.reviews.record(run_id, "pass" if tree == "second" else "unproven", tree=tree, **bound)
    (blocker,) = standup_of(log, clock.now()).blockers
    assert blocker.startswith("the gate's verdict: unproven of tree first")


def test_long_lists_are_cut_with_a_count(log: Decklog, clock: ManualClock) -> None:
    log.runs.start("Many", run_id="many")
    for number in range(23):
        log.approvals.ask("many", f"May I, {number}?", by="dev-1", about=number)
    found = standup_of(log, clock.now())
    assert (len(found.questions), found.more) == (20, {"blockers": 3, "questions": 3})
    assert "- and 3 more" in found.markdown


def test_model_writes_the_standup_from_the_facts(two_days: Decklog, clock: ManualClock) -> None:
    person = Person(two_days)
    found = standup_of(two_days, clock.now())
    assert prose_of(two_days, person.voices(), found, at=clock.now()) == (None, "no model is configured for standup")
    text, why = prose_of(two_days, person.voices({"markdown": "Release waits for you."}), found, at=clock.now())
    assert (text, why) == ("Release waits for you.", "")
    assert found.markdown.strip() in person.prompts[0].parts[-1].text
    text, why = prose_of(two_days, person.voices("Sure! Here it is."), found, at=clock.now())
    assert text is None
    assert "can't be parsed" in why
