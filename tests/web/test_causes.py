"""What made a decision wait: the rule, its reason and the tier, as far as the record knows them, and whose word it is."""

from typing import Any

import pytest

from decklog import Approval, Decklog
from tests.conftest import on_both
from tests.web.client import PASSWORD, Browser
from tests.web.test_pages import read
from tests.web.test_text_of_agents import shape

CAUSE = {"rule": "git-push", "reason": "it hands commits to others", "tier": 0}


def ask(log: Decklog, run_id: str, payload: object, **more: Any) -> Approval:
    return log.approvals.ask(run_id, "May this run?", by="dev-1", about="git push", payload=payload, **more)


@on_both
def test_decision_shows_its_rule_reason_and_trust_level(log: Decklog, browser: Browser, run_id: str) -> None:
    log.trust.bind("ana", "cli", password=PASSWORD)
    approval = ask(log, run_id, {**CAUSE, "shell": "git push", "cwd": "."}, source="toolbox")
    page = read(browser, f"/inbox/approval/{approval.id}").text
    assert "Required by the rule git-push : it hands commits to others reported by the guarded tools" in page
    assert "agents are at level 0, Read-only observer" in page
    assert "when it was asked" not in page
    # In the list it is named too, and in both as data.
    assert "approval · dev-1 · git-push ·" in page
    assert browser.get(f"/inbox/approval/{approval.id}.json").data["data"]["cause"] == CAUSE
    assert [one["cause"] for one in browser.get("/inbox.json").data["data"]] == [CAUSE]
    # A decided request still shows it.
    with log.proving(password=PASSWORD):
        log.approvals.decide(approval.id, "denied", by="ana", rationale="no")
    after = read(browser, f"/inbox/approval/{approval.id}").text
    assert "Required by the rule git-push" in after
    assert "Trust level 0 when it was asked" in after


@on_both
def test_earlier_answers_under_the_same_rule_are_listed(log: Decklog, browser: Browser, run_id: str) -> None:
    log.trust.bind("ana", "cli", password=PASSWORD)
    before = ask(log, run_id, CAUSE)
    with log.proving(password=PASSWORD):
        log.approvals.decide(before.id, "granted", by="ana", rationale="it is ours")
    now = log.approvals.ask(run_id, "And this?", by="dev-2", about="git push --tags", payload=CAUSE)
    page = read(browser, f"/inbox/approval/{now.id}").text
    assert "1 earlier answer to requests under this rule May this run? granted by ana, 0 s ago : it is ours" in page
    # An equal earlier request is listed as such, and once.
    again = ask(log, run_id, CAUSE)
    page = read(browser, f"/inbox/approval/{again.id}").text
    assert "1 earlier answer to exactly this" in page
    assert "to requests under this rule" not in page
    other = log.approvals.ask(run_id, "And this?", by="dev-2", about="x", payload={**CAUSE, "rule": "git"})
    assert "earlier answer" not in read(browser, f"/inbox/approval/{other.id}").text


def test_changed_trust_level_is_shown(log: Decklog, browser: Browser, run_id: str) -> None:
    approval = ask(log, run_id, {**CAUSE, "tier": 2})
    page = read(browser, f"/inbox/approval/{approval.id}").text
    assert "agents are at level 0, Read-only observer ; level 2 when it was asked" in page
    # Without a source, the reporter is who asked.
    assert "reported by dev-1" in page


@pytest.mark.parametrize(
    "payload", [None, {}, [], ["rule"], {"rule": 7, "reason": ["x"], "tier": "high"}, {"rule": "", "tier": True}]
)
def test_request_without_a_rule_shows_who_asked(log: Decklog, browser: Browser, run_id: str, payload: object) -> None:
    approval = ask(log, run_id, payload)
    page = read(browser, f"/inbox/approval/{approval.id}").text
    assert "Required by no rule on record; asked by dev-1" in page
    assert "when it was asked" not in page
    assert log.overview.waiting()[0].cause == {}


def test_cause_of_a_large_request_is_on_its_page(log: Decklog, browser: Browser, run_id: str) -> None:
    approval = ask(log, run_id, {**CAUSE, "shell": "x" * 10_000, "reason": "y" * 5000})
    assert log.overview.waiting()[0].cause == {}
    assert log.approvals.show(approval.id)["cause"] == {**CAUSE, "reason": "y" * 1000}
    assert "Required by the rule git-push" in read(browser, "/inbox").text


def test_forged_rule_is_escaped(log: Decklog, browser: Browser, run_id: str) -> None:
    plain = ask(log, run_id, CAUSE, source="toolbox")
    known = shape(browser.get(f"/inbox/approval/{plain.id}").text)
    odd = "<b onclick=x>\u202e</b>{{ 7 * 7 }}"
    forged = ask(log, run_id, {"rule": odd, "reason": odd, "tier": 0}, source=odd)
    answer = browser.get(f"/inbox/approval/{forged.id}").text
    assert shape(answer) <= known
    assert "\u202e" not in answer
    assert "⟨U+202E⟩" in answer
    # It is marked as a report.
    assert "reported by" in answer
