"""Deciding in a real browser: one intent per form, by keyboard and by mouse, and what comes next."""

from pathlib import Path

import pytest

from decklog import Decklog
from tests.browser.conftest import MISSING, Tab
from tests.browser.test_dashboard import open_approval
from tests.web.client import PASSWORD

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

SUBMITS = ".answer button:not([type=button])"


@pytest.fixture
def subject_id(path: Path, kind: str) -> str:
    """An approval or a side effect that waits for a person."""
    if kind == "approval":
        return str(open_approval(path).id)
    with Decklog.open(path) as log:
        effect = log.effects.intend("commas", "deploy", "run", key="k", actor="p1", arguments={"command": "./deploy"})
        log.effects.doubt(effect.id, actor="p1", note="its process died")
        return effect.id


def state_of(path: Path, kind: str, item_id: str) -> str:
    with Decklog.open(path) as log:
        return (log.approvals if kind == "approval" else log.effects).get(item_id).state.value


@pytest.mark.parametrize(
    ("kind", "link", "state"),
    [("approval", "Deny…", "denied"), ("effect", "It happened…", "done"), ("effect", "It did not…", "cleared")],
)
@pytest.mark.parametrize("how", ["Enter", "click"])
def test_form_decides_only_its_intent(tab: Tab, path: Path, subject_id: str, kind: str, how: str, link: str, state: str) -> None:
    tab.go("/now")
    tab.page.click(f"text={link} >> nth=0")
    tab.page.wait_for_selector("#decide")
    assert tab.page.locator(SUBMITS).count() == 1
    assert tab.page.locator("[type=radio]").count() == 0
    tab.page.fill("#reason", "I looked")
    tab.page.fill("#proof", PASSWORD)
    if how == "Enter":
        tab.page.press("#proof", "Enter")
    else:
        tab.page.click("#decide")
    tab.page.wait_for_selector(".verdict")
    assert state_of(path, kind, subject_id) == state
    tab.check()


@pytest.mark.parametrize(("kind", "state"), [("approval", "open"), ("effect", "unknown")])
def test_form_without_intent_decides_nothing_by_enter(tab: Tab, path: Path, subject_id: str, kind: str, state: str) -> None:
    tab.go(f"/inbox/{kind}/{subject_id}")
    assert tab.page.locator("[type=radio]").count() == 2
    assert tab.page.locator("[type=radio]:checked").count() == 0
    tab.page.fill("#reason", "I looked")
    tab.page.fill("#proof", PASSWORD)
    tab.page.press("#proof", "Enter")
    tab.page.wait_for_timeout(300)
    assert state_of(path, kind, subject_id) == state
    tab.check()


def test_approve_instead_is_a_link_and_decides_nothing_by_itself(tab: Tab, path: Path) -> None:
    subject_id = open_approval(path)
    tab.go(f"/inbox/approval/{subject_id.id}?verdict=denied")
    tab.page.click("text=Approve instead")
    tab.page.wait_for_url("**verdict=granted")
    assert tab.page.locator(SUBMITS).all_inner_texts() == ["Approve exactly this, once"]
    assert open_approval(path).id == subject_id.id


def test_decisions_follow_each_other_by_the_keyboard_alone(tab: Tab, path: Path) -> None:
    with Decklog.open(path) as log:
        log.approvals.ask("commas", "And may I merge it?", by="bo", about="git merge")
    tab.go("/inbox")
    keys = tab.page.keyboard
    for answer in ("Approved", "Denied"):
        keys.press("a" if answer == "Approved" else "d")
        keys.type("Looked at it")
        keys.press("Tab")
        keys.type(PASSWORD)
        keys.press("Control+Enter")
        tab.page.wait_for_selector(".verdict")
        assert tab.page.inner_text(".verdict b") == answer
        if answer == "Approved":
            assert "Next:" in tab.page.inner_text(".verdict")
            tab.page.focus("#next")
            keys.press("Enter")
            tab.page.wait_for_selector("#decide")
    tab.check()
