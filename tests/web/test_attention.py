"""Now and the Inbox: what needs a person, in which order, and what comes after a decision."""

import pytest

from decklog import Decklog, ManualClock
from tests.conftest import on_both
from tests.stores.claiming import claimed
from tests.web.client import PASSWORD, Browser
from tests.web.test_pages import Read


@pytest.fixture
def desk(log: Decklog, clock: ManualClock) -> dict[str, str]:
    """A log in which two decisions wait, a task is blocked and a run has stalled."""
    log.trust.bind("ana", "cli", password=PASSWORD)
    log.runs.start("Upgrade to Python 3.13", run_id="silent")
    log.tasks.add("silent", "Port it")
    log.tasks.claim("silent", worker="dev-3", lease_seconds=60)
    clock.advance(hours=1)
    log.runs.start("Release 2.0", run_id="release")
    task = log.tasks.add("release", "Sign the archive")
    claim = claimed(log, "release", worker="dev-1")
    claim.block("The key is missing\non every machine")
    first = log.approvals.ask("release", "Push it?", by="dev-1", about="git push", expires_in_seconds=600)
    second = log.approvals.ask("release", "Tag it?", by="dev-1", about="git tag")
    return {"first": first.id, "second": second.id, "task": task.id}


@on_both
def test_now_names_what_needs_attention_with_its_cause_and_a_link(browser: Browser, desk: dict[str, str]) -> None:
    text = browser.get("/now").text
    page = Read(text)
    assert "Needs attention" in page.text
    assert "1 task is blocked" in page.text
    assert "Sign the archive : The key is missing" in page.text.replace("archive:", "archive :")
    assert f'href="/tasks/{desk["task"]}"' in text
    assert "Went wrong" not in page.text


def test_now_without_trouble_says_so(browser: Browser, run_id: str) -> None:
    assert "Nothing failed, and nothing is blocked." in Read(browser.get("/now").text).text


@on_both
def test_inbox_has_three_groups_and_opens_the_first_decision(browser: Browser, desk: dict[str, str]) -> None:
    text = browser.get("/inbox").text
    places = [text.index(f'id="group-{name}"') for name in ("decisions", "blocked", "stalled")]
    assert places == sorted(places)
    assert f'data-at="/inbox/approval/{desk["first"]}' in text
    assert text.index(f'id="w-approval-{desk["first"]}"') < text.index(f'id="w-approval-{desk["second"]}"')


def test_inbox_without_decisions_opens_what_is_blocked(log: Decklog, browser: Browser, desk: dict[str, str]) -> None:
    with log.proving(password=PASSWORD):
        for name in ("first", "second"):
            log.approvals.decide(desk[name], "denied", by="ana", rationale="no")
    text = browser.get("/inbox").text
    assert f'href="/tasks/{desk["task"]}">Open the task' in text
    assert 'id="group-decisions"' not in text


@on_both
def test_after_a_decision_the_page_names_the_next_one(log: Decklog, browser: Browser, desk: dict[str, str]) -> None:
    for name, following in (("first", "Next: Tag it?"), ("second", "Nothing else waits for a decision.")):
        approval = log.approvals.get(desk[name])
        form = {
            "token": browser.session.form_token("approvals.decide", approval.id),
            "digest": approval.subject_digest or "",
            "verdict": "granted",
            "reason": "",
            "proof": PASSWORD,
        }
        answer = browser.post(f"/inbox/approval/{approval.id}/decide", form)
        page = Read(browser.get(answer.headers["location"]).text).text
        assert "Approved by ana" in page
        assert following in page
