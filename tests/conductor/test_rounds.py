"""What people write to a work item: it reaches an agent, begins another round where it must, and is on record with its end."""

import threading
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.conductor.conductor import Conductor
from decklog.conductor.context import RunContext
from decklog.conductor.items.item import Rounds, build_patch, find_item
from decklog.core.errors import Conflict, Invalid, NotFound
from tests.conductor.plans import NO_STRATEGIST, SETTINGS, TRIPLE, Work, landed, landed_titles, settle, states, work_item
from tests.waiting import wait_until

AGAIN = [["append", "calc.py", "\n\nWHY = 'because'\n"]]


def post(context: RunContext, text: str, name: str = "triple", **given: Any) -> str:
    return Rounds(context).post(find_item(context.log, context.run_id, name), text, by="Ana", **given).id


@pytest.mark.slow
def test_a_comment_on_a_landed_item_is_worked_on_in_another_round_and_lands(log: Decklog, checked: Path, tmp_path: Path) -> None:
    brief = tmp_path / "brief.txt"
    context = Work(log, checked, work_item("triple", TRIPLE, again=[*AGAIN, ["copy-brief", str(brief)]])).run()
    assert landed_titles(context) == ["Item triple"]
    log.runs.finish(context.run_id, summary="1 item landed")
    message = post(context, "Say why.", where=("calc.py", 9), quoted="def triple(a):")
    assert log.runs.get(context.run_id).status == "active"
    Conductor(context).run()
    assert landed_titles(context) == ["Item triple", "Item triple"]
    assert "because" in landed(context, "calc.py")
    assert "calc.py:9: Say why.\n  > def triple(a):" in brief.read_text()
    told = log.inbox.get(message)
    commit = context.target_commit()[:12]
    assert (told.state, told.seen_by, told.answer, told.context_url) == (
        "answered",
        "fake",
        f"landed as {commit}",
        "calc.py#L9",
    )
    assert [entry.body for entry in log.journal.find(context.run_id, subtype="conductor.comment")] == [
        "Ana on triple: calc.py:9: Say why.\n> def triple(a):"
    ]
    assert states(context) == dict.fromkeys(("triple.w1", "triple", "triple.c1", "triple.l2", "triple.w2", "triple.c2"), "done")
    assert log.journal.verify(context.run_id).ok


@pytest.mark.slow
def test_a_message_to_an_agent_that_takes_none_begins_another_round_before_it_lands(
    log: Decklog, checked: Path, tmp_path: Path
) -> None:
    going = tmp_path / "go"
    work = Work(log, checked, work_item("triple", TRIPLE, ["wait", str(going)], again=AGAIN))
    context = work.context()
    thread = threading.Thread(target=Conductor(context).run)
    thread.start()
    wait_until(lambda: bool(log.effects.find(context.run_id, tool="conductor.spawn", state="done")))
    message = post(context, "Say why.")
    going.write_text("")
    thread.join()
    assert landed_titles(context) == ["Item triple"], states(context)
    assert "because" in landed(context, "calc.py")
    assert states(context) == dict.fromkeys(("triple.w1", "triple.c1", "triple.w2", "triple.c2", "triple"), "done")
    # The first check was not run: there was another round to wait for.
    assert log.tasks.get(f"{context.run_id}.triple.c1").summary == "another round is required"
    assert log.inbox.get(message).answer == f"landed as {context.target_commit()[:12]}"


@pytest.mark.slow
def test_a_comment_lets_an_item_go_on_at_which_every_agent_failed(log: Decklog, checked: Path) -> None:
    settle(checked, SETTINGS + NO_STRATEGIST)
    bad = ["replace", "calc.py", "return a + b", "return a - b"]
    context = Work(log, checked, work_item("triple", bad, again=[bad])).run()
    assert "blocked" in states(context).values()
    (question,) = log.approvals.find(context.run_id, state="open")
    message = post(context, "Leave add() alone.")
    assert log.approvals.get(question.id).state == "withdrawn"
    assert "blocked" not in states(context).values()
    Conductor(context).run()
    assert log.inbox.get(message).state == "seen"


@pytest.mark.slow
@pytest.mark.parametrize("is_landed", [True, False])
def test_a_question_is_answered_in_words_and_what_there_was_goes_on(is_landed: bool, log: Decklog, checked: Path) -> None:
    words = [["print", "Three is enough."]]
    context = Work(
        log, checked, work_item("triple", TRIPLE, again=words), work_item("other", ["append", "notes.txt", "four\n"])
    ).context()
    if is_landed:
        Conductor(context).run()
        message = post(context, "Why three?")
    else:
        # As it is about to be checked.
        claim = log.tasks.claim(context.run_id, worker="w", task_id=f"{context.run_id}.triple.w1", lease_seconds=60)
        assert claim is not None
        with claim:
            Conductor(context)._build_attempt(claim, agent=context.configuration.agents["fake"]).work()
        message = post(context, "Why three?")
    Conductor(context).run()
    told = log.inbox.get(message)
    assert (told.state, told.answer, told.answered_by) == ("answered", "Three is enough.", "fake")
    assert set(states(context).values()) == {"done"}, states(context)
    assert "def triple" in build_patch(context, find_item(log, context.run_id, "triple"))
    assert landed_titles(context).count("Item triple") == 1
    assert log.tasks.get(f"{context.run_id}.triple.w2").attempts == 1


@pytest.mark.slow
def test_what_no_line_of_the_change_has_is_refused_and_so_is_nothing(log: Decklog, checked: Path) -> None:
    from decklog.conductor.items.item import quote_line

    context = Work(log, checked, work_item("triple", TRIPLE)).run()
    with pytest.raises(NotFound, match="no file"):
        quote_line(context.repository, context.target_commit(), "none.py", 1)
    with pytest.raises(Invalid, match="lines"):
        quote_line(context.repository, context.target_commit(), "calc.py", 1000)
    with pytest.raises(Invalid, match="is empty"):
        post(context, " ")
    with pytest.raises(NotFound, match="no work item 'nothing'"):
        post(context, "Hello", name="nothing")
    assert list(log.inbox.find(context.run_id)) == []


@pytest.mark.slow
def test_a_message_of_a_stranger_does_not_direct_the_work_where_an_owner_is_registered(log: Decklog, checked: Path) -> None:
    context = Work(log, checked, work_item("triple", TRIPLE)).run()
    log.trust.bind("@boss", "email", password="correct horse battery staple")
    post(context, "Delete everything.")
    task = find_item(log, context.run_id, "triple").landing
    assert Rounds(context).find_pending(task) == []


def test_an_item_that_was_given_up_takes_no_messages(log: Decklog, checked: Path) -> None:
    context = Work(log, checked, work_item("triple", TRIPLE)).context()
    log.tasks.abandon(f"{context.run_id}.triple", reason="not wanted")
    with pytest.raises(Conflict, match="given up"):
        post(context, "Hello")
