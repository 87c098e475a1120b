"""Logging in with a real browser: deep links, a pasted link, and a wrong password."""

import pytest

from tests.browser.conftest import MISSING, Tabs
from tests.web.serving import Server

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)


def test_link_pasted_over_the_login_page_logs_in_and_opens_the_page_asked_for(tabs: Tabs, server: Server) -> None:
    tab = tabs.open().go("/runs/commas/tasks?as=table")
    tab.page.wait_for_url("**/login?next=**")
    # Only what is behind the # changes: no page is loaded.
    tab.page.evaluate("code => { location.hash = code }", server.link.partition("#")[2])
    tab.page.wait_for_url(f"{server.origin}/runs/commas/tasks?as=table")
    assert server.link.partition("#")[2] not in tab.page.content()
    tab.check()


def test_link_of_the_terminal_in_the_same_tab_opens_the_page_asked_for(tabs: Tabs, server: Server) -> None:
    tab = tabs.open().go("/spend?days=7")
    tab.page.wait_for_url("**/login?next=**")
    tab.page.goto(server.link)
    tab.page.wait_for_url(f"{server.origin}/spend?days=7")


def test_deep_link_followed_from_another_site_needs_no_second_login(tabs: Tabs, server: Server) -> None:
    tabs.log_in()
    tab = tabs.open()
    # A page of another site: the browser leaves the session's cookie out of what it navigates to.
    tab.page.route(
        "http://elsewhere.test/",
        lambda route: route.fulfill(content_type="text/html", body=f'<a href="{server.origin}/runs/commas/journal">look</a>'),
    )
    tab.page.goto("http://elsewhere.test/")
    tab.page.click("a")
    tab.page.wait_for_url(f"{server.origin}/runs/commas/journal")


def test_wrong_code_is_not_sent_again_by_a_reload_and_its_field_has_the_focus(tabs: Tabs, server: Server) -> None:
    tab = tabs.open().go("/login")
    tab.page.fill("#token", "wrong")
    tab.page.press("#token", "Enter")
    tab.page.wait_for_url("**/login?wrong=code")
    assert tab.page.evaluate("document.activeElement.id") == "token"
    assert tab.page.get_attribute("#token", "aria-invalid") == "true"
    sent: list[str] = []
    tab.page.on("request", lambda request: sent.append(request.method))
    tab.page.reload()
    assert "POST" not in sent
    assert "used already" in tab.page.inner_text("[role=alert]")
