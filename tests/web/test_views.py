"""Saved views: named in the log, found by everybody, and leading nowhere but to lists of the dashboard."""

from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.web.forms import token_of
from decklog.web.pages.finding import checked_address
from tests.web.client import PASSWORD, Browser, logged_in
from tests.web.payloads import PAYLOADS
from tests.web.test_text_of_agents import shape


def save(browser: Browser, name: str, path: str) -> int:
    return browser.post(
        "/views/save", {"token": browser.session.form_token(token_of("save-view"), ""), "name": name, "path": path}
    ).status


def listed(browser: Browser) -> list[tuple[str, str]]:
    return [(one["name"], one["path"]) for one in browser.get("/views.json").data["data"]]


def test_a_view_is_saved_replaced_and_removed_in_the_log(log: Decklog, browser: Browser) -> None:
    log.trust.bind("ana", "cli", password=PASSWORD)
    assert save(browser, "Running now", "/runs?status=running&text=a b") == 303
    assert save(browser, "Blocked", "/tasks?state=blocked") == 303
    assert listed(browser) == [("Blocked", "/tasks?state=blocked"), ("Running now", "/runs?status=running&text=a+b")]
    assert save(browser, "Blocked", "/tasks?state=waiting") == 303
    assert listed(browser)[0] == ("Blocked", "/tasks?state=waiting")
    entry = log.journal.find("@desk", subtype="view.saved")[0]
    assert (entry.agent, entry.agent_id) == ("ana", browser.session.name)
    assert ("view", "/tasks?state=waiting") in [
        (row["kind"], row["path"]) for row in browser.get("/palette.json?q=block").data["data"]
    ]
    form = {"token": browser.session.form_token(token_of("remove-view"), "Blocked"), "name": "Blocked"}
    assert browser.post("/views/remove", {**form, "name": "Running now"}).status == 403
    assert browser.post("/views/remove", form).status == 303
    assert listed(browser) == [("Running now", "/runs?status=running&text=a+b")]
    # A second dashboard of the same log has it too.
    assert "Running now" in browser.get("/views").text


def test_a_list_offers_to_save_itself_with_its_filters(browser: Browser) -> None:
    assert 'href="/views?save=/runs%3Fstatus%3Drunning"' in browser.get("/runs?status=running").text
    assert 'value="/runs?status=running"' in browser.get("/views?save=/runs%3Fstatus%3Drunning").text
    assert "/views?save" not in browser.get("/trust").text


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "//attacker.invalid/runs",
        "https://attacker.invalid/runs",
        "/logout",
        "/act/stop-run/r",
        "/runs/../x",
        "runs",
    ],
)
def test_view_of_another_address_is_refused(browser: Browser, address: str) -> None:
    assert checked_address(address) is None
    assert save(browser, "x", address) == 400
    assert listed(browser) == []


def test_invalid_name_and_missing_token_are_refused(browser: Browser) -> None:
    for name in ("", "  ", "x" * 81, "a\x1bb"):
        assert save(browser, name, "/runs") == 400
    assert browser.post("/views/save", {"name": "x", "path": "/runs"}).status == 403


def test_forged_view_entries_are_escaped_or_ignored(log: Decklog, browser: Browser) -> None:
    assert save(browser, "plain", "/runs?text=words") == 303
    known = shape(browser.get("/views").text)
    anyhow: Any = log
    for text in PAYLOADS:
        for payload in ({"name": text, "path": text}, {"name": text, "path": f"/runs?text={text}"}, {"name": text}, [text], None):
            anyhow.journal.append("@desk", text, kind="event", subtype="view.saved", agent=text[:200], payload=payload)
    text = browser.get("/views").text
    assert shape(text) <= known
    assert "attacker.invalid" not in "".join(part for part in text.split('href="')[1:] if part.startswith("//"))
    assert all(path.startswith("/runs") for _, path in listed(browser))


def test_read_only_log_shows_views_and_saves_none(tmp_path: Path) -> None:
    with Decklog.open(tmp_path / "log.db") as log:
        log.journal.append("@desk", "x", kind="event", subtype="view.saved", payload={"name": "mine", "path": "/runs"})
    with Decklog.open(tmp_path / "log.db", read_only=True) as log, logged_in(log) as browser:
        assert "mine" in browser.get("/views").text
        assert "<form" not in browser.get("/views").text.partition("<main")[2].partition("</main>")[0]
        assert save(browser, "x", "/runs") == 404


def test_the_icon_has_a_dot_while_a_decision_waits(log: Decklog, browser: Browser, run_id: str) -> None:
    assert 'icon.svg" type' in browser.get("/now").text
    log.approvals.ask(run_id, "May I?", by="dev-1", about="git push")
    text = browser.get("/now").text
    assert 'icon-waiting.svg" type' in text
    assert "<title>(1) " in text
