"""Logging in: a link works once, for five minutes; a session ends with its time, its logout or the server."""

import html
import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import pytest

from decklog import Decklog
from decklog.core.errors import Invalid
from decklog.web.hosts import FIRST_PORT, Names, load_server_names
from decklog.web.live import MOST_OF_A_SESSION
from decklog.web.login import peer_uid
from decklog.web.sessions import COOKIE, LOGIN_SECONDS, MOST_SESSIONS, SESSION_SECONDS, BrowserSessions
from tests.conftest import on_both
from tests.every import every
from tests.web.client import Browser, Seconds, make_browser

PAGES = ("/", "/now", "/runs", "/inbox", "/inbox/approval/x", "/runs/x/overview", "/runs/x/journal", "/no-such-page")


@every("path", PAGES)
def test_request_without_session_redirects_to_the_login(stranger: Browser, path: str) -> None:
    answer = stranger.get(path)
    address = "/login" if path == "/" else f"/login?next={path}"
    assert (answer.status, answer.headers["location"], answer.body) == (303, address, b"")


@on_both
def test_login_redirects_to_the_requested_page(stranger: Browser) -> None:
    address = stranger.get("/search?q=a%20b&after=3").headers["location"]
    assert address == "/login?next=/search%3Fq%3Da%2520b%26after%3D3"
    page = stranger.get(address).text
    [following] = set(re.findall(r'name="next" value="([^"]*)"', page))
    form = {"token": stranger.site.sessions.new_link(), "next": html.unescape(following)}
    assert stranger.post("/login", form).headers["location"] == "/search?q=a%20b&after=3"


@pytest.mark.parametrize(
    "place",
    [
        "//evil.test",
        "/\\evil.test",
        "https://evil.test/",
        "evil.test",
        "/a\nset-cookie: x",
        "/logout",
        "/login?next=/x",
        "",
        "/é",
    ],
)
def test_login_redirects_to_no_other_host(stranger: Browser, place: str) -> None:
    assert 'name="next"' not in stranger.get(f"/login?{urlencode({'next': place})}").text
    answer = stranger.post("/login", {"token": stranger.site.sessions.new_link(), "next": place})
    assert answer.headers["location"] == "/"


def test_wrong_code_redirects_to_the_login_and_keeps_the_requested_page(stranger: Browser) -> None:
    answer = stranger.post("/login", {"token": "x", "next": "/runs"})
    assert (answer.status, answer.headers["location"]) == (303, "/login?wrong=code&next=/runs")
    page = stranger.get(answer.headers["location"]).text
    assert 'role="alert"' in page
    assert re.search(r'<input id="token"[^>]* autofocus aria-invalid="true"', page)


def test_login_page_redirects_if_logged_in(browser: Browser) -> None:
    assert browser.get("/login?next=/runs").headers["location"] == "/runs"
    # Not without a page: a code behind the # of the address would go along.
    assert browser.get("/login").status == 200


@pytest.mark.parametrize("path", ["/now.json", "/runs.json", "/events", "/runs/x/rows", "/runs/x/rows.json"])
def test_json_and_streams_without_session_answer_401(stranger: Browser, path: str) -> None:
    answer = stranger.get(path)
    assert (answer.status, answer.data["error"]["code"]) == (401, "not_logged_in")


def test_a_link_logs_one_browser_in_once(stranger: Browser) -> None:
    token = stranger.site.sessions.new_link()
    first = stranger.post("/login", {"token": token})
    assert (first.status, first.headers["location"]) == (303, "/")
    assert re.fullmatch(rf"{COOKIE}=[\w-]{{43}}; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200", first.headers["set-cookie"])
    assert stranger.get("/now").status == 200
    again = stranger.post("/login", {"token": token})
    assert (again.status, again.headers["location"]) == (303, "/login?wrong=code")
    assert "set-cookie" not in again.headers
    assert token not in again.text


def test_link_followed_concurrently_logs_in_once() -> None:
    sessions = BrowserSessions()
    with ThreadPoolExecutor(8) as pool:
        for _ in range(50):
            token = sessions.new_link()
            assert sum(found is not None for found in pool.map(sessions.log_in, [token] * 8)) == 1


def test_a_link_is_good_for_five_minutes(stranger: Browser) -> None:
    token = stranger.site.sessions.new_link()
    stranger.seconds.now += LOGIN_SECONDS
    assert stranger.post("/login", {"token": token}).headers["location"] == "/login?wrong=code"
    assert stranger.cookie is None


@pytest.mark.parametrize("token", ["", "x", "x" * 43, "\ud800", "é" * 200])
def test_guessed_token_does_not_log_in(token: str) -> None:
    sessions = BrowserSessions()
    sessions.new_link()
    assert sessions.log_in(token) is None


def test_a_session_ends_after_twelve_hours(browser: Browser) -> None:
    browser.seconds.now += SESSION_SECONDS - 1
    assert browser.get("/now").status == 200
    browser.seconds.now += 1
    assert browser.get("/now").status == 303


def test_a_session_ends_with_its_logout_and_only_by_its_own_form(browser: Browser) -> None:
    assert browser.post("/logout", {"token": "x"}).status == 403
    assert browser.get("/now").status == 200
    cookie = browser.cookie
    assert browser.post("/logout", {"token": browser.session.form_token("logout", "")}).status == 303
    browser.cookie = cookie
    assert browser.get("/now").status == 303


def test_logout_everywhere_ends_all_sessions(browser: Browser) -> None:
    sessions = browser.site.sessions
    other = sessions.log_in(sessions.new_link())
    link = sessions.new_link()
    form = {"token": browser.session.form_token("logout", ""), "everywhere": "1"}
    assert browser.post("/logout", form).status == 303
    assert other is not None
    assert sessions.known(f"{COOKIE}={other.id}") is None
    assert sessions.log_in(link) is None


def test_sessions_end_with_the_server(log: Decklog, browser: Browser) -> None:
    restarted = make_browser(log)
    restarted.cookie = browser.cookie
    with restarted.runner:
        assert restarted.get("/now").status == 303


def test_sessions_and_links_do_not_pile_up() -> None:
    seconds = Seconds()
    sessions = BrowserSessions(seconds)
    first = sessions.log_in(sessions.new_link())
    for _ in range(MOST_SESSIONS):
        seconds.now += 1
        assert sessions.log_in(sessions.new_link()) is not None
    assert first is not None
    assert sessions.known(f"{COOKIE}={first.id}") is None
    assert len(sessions._sessions) == MOST_SESSIONS


def test_a_form_is_of_one_session_one_verb_and_one_record() -> None:
    sessions = BrowserSessions()
    one, other = sessions.log_in(sessions.new_link()), sessions.log_in(sessions.new_link())
    assert one is not None
    assert other is not None
    token = one.form_token("approvals.decide", "apr_1")
    assert one.is_form_token(token, "approvals.decide", "apr_1")
    assert not one.is_form_token(token, "approvals.decide", "apr_2")
    assert not one.is_form_token(token, "effects.reconcile", "apr_1")
    assert not other.is_form_token(token, "approvals.decide", "apr_1")
    assert not one.is_form_token("", "approvals.decide", "apr_1")


def test_streams_of_a_session_are_limited(browser: Browser) -> None:
    browser.session.streams = MOST_OF_A_SESSION
    assert browser.get("/events").status == 429


def test_name_and_port_of_a_log_are_stable_and_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    first = load_server_names(str(tmp_path / "log.db"), 9001)
    assert re.fullmatch(r"dl-[0-9a-f]{20}\.localhost", first.own)
    assert load_server_names(str(tmp_path / "log.db"), None) == first
    assert load_server_names(str(tmp_path / "other.db"), None).own != first.own
    state_files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert [oct(path.stat().st_mode & 0o777) for path in state_files] == ["0o600"] * 2
    assert oct(os.stat(tmp_path / "state/decklog/serve").st_mode & 0o777) == "0o700"


@pytest.mark.parametrize(
    "content", ["", "[]", '{"name": "attacker.example", "port": 80}', '{"name": 1, "port": "x"}', '{"port": true}']
)
def test_malformed_state_file_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    load_server_names(str(tmp_path / "log.db"), None)
    next(path for path in tmp_path.rglob("*.json")).write_text(content)
    found = load_server_names(str(tmp_path / "log.db"), None)
    assert re.fullmatch(r"dl-[0-9a-f]{20}\.localhost", found.own)
    assert found.port == FIRST_PORT


def test_unwritable_state_folder_is_tolerated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert load_server_names("log.db", 9001).port == 9001


@pytest.mark.parametrize("port", [0, 80, 1023, 65536])
def test_a_port_that_would_change_the_name_is_refused(port: int) -> None:
    with pytest.raises(Invalid):
        Names("dl-000000.localhost", port)


def test_session_cookie_is_useless_to_another_user() -> None:
    sessions = BrowserSessions()
    session = sessions.log_in(sessions.new_link(), uid=1000)
    assert session is not None
    assert sessions.known(f"{COOKIE}={session.id}", uid=1000) is session
    assert sessions.known(f"{COOKIE}={session.id}", uid=1001) is None
    assert sessions.known(f"{COOKIE}={session.id}") is None


def test_user_of_a_loopback_connection_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        scope = {"client": client.getsockname(), "server": server.getsockname()}
        assert peer_uid(scope) == os.getuid()
        assert peer_uid({**scope, "client": ("192.0.2.7", client.getsockname()[1])}) is None
