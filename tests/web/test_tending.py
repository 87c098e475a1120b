"""The System page: who is logged in and how a session is ended; the whole log verified while the dashboard goes on."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, ManualClock
from decklog.web.pages.others import ANEW, END, STOP, VERIFY
from decklog.web.sessions import BY_PASSWORD, COOKIE, BrowserSession, describe_browser
from decklog.web.verifying import PROGRAM, LogVerifier, VerifyStatus
from tests.conftest import on_both
from tests.db.tampering import PostgresVictim, SqliteVictim
from tests.every import every
from tests.waiting import wait_for_background, wait_until
from tests.web.client import Browser, logged_in
from tests.web.test_pages import Read, read

ON_LINUX = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0 Safari/537.36"
ON_A_PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1 (KHTML, like Gecko) Safari/604.1"


def another(browser: Browser, agent: str = ON_A_PHONE) -> BrowserSession:
    """Log another browser in, by the password."""
    return browser.site.sessions.begin(BY_PASSWORD, agent)


def end(browser: Browser, name: str, **form: str) -> tuple[int, str | None]:
    fields = {"token": browser.session.form_token(END, name)} | form
    answer = browser.post(f"/system/sessions/{name}/end", fields)
    return answer.status, answer.headers.get("location")


def verify(browser: Browser, **form: str) -> int:
    return browser.post("/system/verify", {"token": browser.session.form_token(VERIFY, "")} | form).status


def ended(browser: Browser) -> Read:
    """Wait until it was verified, and read the page."""
    wait_until(lambda: browser.site.verifying.status.began_at is None)
    return read(browser, "/system")


@every(
    "agent",
    {
        ON_LINUX: "Chrome on Linux",
        ON_A_PHONE: "Safari on iPhone",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0": "Firefox on Windows",
        f"{ON_LINUX} Edg/156.0": "Edge on Linux",
        "curl/8.5": "curl",
        "<b>x</b>": "A browser",
        "": "A browser",
    }.items(),
)
def test_browser_is_named_from_its_user_agent(agent: tuple[str, str]) -> None:
    assert describe_browser(agent[0]) == agent[1]


def test_sessions_are_listed_with_login_and_time(clock: ManualClock, stranger: Browser) -> None:
    stranger.post("/login", {"token": stranger.site.sessions.new_link()}, user_agent=ON_LINUX)
    clock.advance(minutes=5)
    phone = another(stranger)
    clock.advance(minutes=7)
    answer = stranger.get("/system")
    page = Read(answer.text).text
    assert "Logged in: 2 browsers" in page
    assert f"Chrome on Linux this one by a link 12 min ago last seen 0 s ago · {stranger.session.name}" in page
    assert f"Safari on iPhone by the password 7 min ago last seen 7 min ago · {phone.name}" in page
    mine, other = stranger.get("/system.json").data["data"]["sessions"]
    assert (mine["is_mine"], mine["how"], mine["browser"]) == (True, "link", "Chrome on Linux")
    assert (other["is_mine"], other["how"], other["came_at"]) == (False, "password", other["seen_at"])
    # The secrets of a session are not shown.
    for session in (stranger.session, phone):
        assert session.id not in answer.text + stranger.get("/system.json").text
        assert session.secret.hex() not in answer.text
    stranger.session.streams = 1
    assert "has a page open" in read(stranger, "/system").text


def test_ending_a_session_ends_its_stream(browser: Browser) -> None:
    sessions, phone = browser.site.sessions, another(browser)
    events: list[str] = []

    async def listen() -> None:
        stream = browser.site.feed.stream(lambda: sessions.has(phone))
        events.append(await anext(stream))
        sessions.end(phone.name)
        browser.site.feed.renew()
        events.extend([text async for text in stream])

    asyncio.run(asyncio.wait_for(listen(), 30))
    assert events == ['data: {"reset": {}}\n\n']
    laptop = another(browser)
    for _ in range(2):
        assert end(browser, laptop.name) == (303, "/system")
        assert sessions.known(f"{COOKIE}={laptop.id}") is None
    assert browser.get("/system").status == 200


def test_ending_the_own_session_redirects_to_the_login(browser: Browser) -> None:
    cookie, phone = browser.cookie, another(browser)
    assert end(browser, browser.session.name) == (303, "/login")
    assert browser.cookie is None
    browser.cookie = cookie
    assert browser.get("/now").status == 303
    assert browser.site.sessions.has(phone)


def test_session_end_and_verification_need_a_form_of_the_page(browser: Browser) -> None:
    phone = another(browser)
    tokens = (
        *("", "x", browser.session.form_token(END, browser.session.name), browser.session.form_token(VERIFY, phone.name)),
        *(browser.session.form_token("logout", ""), phone.form_token(END, phone.name), phone.form_token(VERIFY, "")),
    )
    for token in tokens:
        assert end(browser, phone.name, token=token)[0] == 403
        assert verify(browser, token=token) == 403
    for headers in ({"sec_fetch_site": "same-site"}, {"sec_fetch_site": "cross-site"}, {"origin": "http://127.0.0.1:9999"}):
        form = {"token": browser.session.form_token(END, phone.name)}
        assert browser.post(f"/system/sessions/{phone.name}/end", form, **headers).status == 403
        assert browser.post("/system/verify", {"token": browser.session.form_token(VERIFY, "")}, **headers).status == 403
    assert browser.site.sessions.has(phone)
    assert browser.site.verifying.status == VerifyStatus()


@pytest.mark.slow
@on_both
def test_log_is_verified_from_the_page(log: Decklog, run_id: str, browser: Browser) -> None:
    log.journal.append(run_id, "hello")
    assert "Not verified since this server was started" in read(browser, "/system").text
    assert verify(browser) == 303
    page = ended(browser)
    result = log.journal.verify()
    assert f"verified {result.streams} stream" in page.text
    last = browser.get("/system.json").data["data"]["verification"]["last"]
    assert (last["word"], last["code"]) == ("verified", None)
    assert last["found"] == {**result.as_dict(), "is_derived": True}


@pytest.mark.slow
@on_both
def test_verification_lists_damage(log: Decklog, run_id: str, browser: Browser) -> None:
    log.db.write(lambda: log.db.count("update runs set goal = 'another <b>' where id = :id", {"id": run_id}))
    verify(browser)
    page = ended(browser)
    assert "damaged" in page.text
    assert "1 problem found. Something other than Decklog wrote to the database" in page.text
    last = browser.get("/system.json").data["data"]["verification"]["last"]
    assert [problem["what"] for problem in last["found"]["problems"]] == [one.what for one in log.journal.verify().problems]


@pytest.mark.slow
def test_damage_of_a_derived_table_names_the_rebuild_command(log: Decklog, run_id: str, browser: Browser) -> None:
    log.budgets.set("all", period="day", limit_microdollars=50)
    log.ledger.charge("a-model", cost_microdollars=5, run_id=run_id)
    assert log.db.write(lambda: log.db.count("delete from budget_days", {})) == 1
    verify(browser)
    assert "decklog rebuild rebuilds them" in ended(browser).text


def waiting_for(path: Path) -> tuple[str, ...]:
    """A program that notes that it was begun, and ends when a file is there."""
    began = f"open({str(path)!r} + '-began', 'a').write('x'); sys.stdin.read()"
    code = f"import os, sys, time; {began}\nwhile not os.path.exists({str(path)!r}): time.sleep(0.01)\nprint('no result')"
    return sys.executable, "-S", "-c", code


def test_one_verification_runs_at_a_time_while_pages_are_answered(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "may-end"
    with logged_in(log, verifying=LogVerifier(waiting_for(path))) as browser:
        assert [verify(browser) for _ in range(3)] == [303] * 3
        began = Path(f"{path}-began")
        wait_until(lambda: began.exists() and began.read_text() != "")
        page = browser.get("/system").text
        assert "verifying" in Read(page).text
        assert ">Stop</button>" in page
        assert ">Verify" not in page
        assert browser.get("/system.json").data["data"]["verification"]["is_running"]
        path.touch()
        # Output that can't be read verifies nothing.
        assert "It could not be verified (ended)" in ended(browser).text
        assert began.read_text() == "x"


def steps(path: Path, *progress: dict[str, Any]) -> tuple[str, ...]:
    """Build a program that records its input, reports progress, and never ends."""
    prints = "".join(f"print({json.dumps(json.dumps({'step': one}))}, flush=True); " for one in progress)
    return (
        sys.executable,
        "-S",
        "-c",
        f"import sys, time; open({str(path)!r}, 'a').write(sys.stdin.read() + '\\n'); {prints}time.sleep(600)",
    )


CHAINS = {"what": "chains", "done": 1200, "whole": 4000, "heads": {"1": [1200, "ab", "2026", False]}}
COMPARED = {"what": "the indexes", "done": 4, "whole": 9}


def test_verification_shows_progress_and_can_be_stopped_continued_and_restarted(log: Decklog, tmp_path: Path) -> None:
    inputs, verifying = tmp_path / "given", LogVerifier(steps(tmp_path / "given", CHAINS))
    with logged_in(log, verifying=verifying) as browser:
        for how, known in ((ANEW, {}), ("on", CHAINS["heads"]), (ANEW, {})):
            assert verify(browser, how=how) == 303
            wait_until(lambda: verifying.status.progress is not None)
            assert "1,200 of 4,000 entries verified" in read(browser, "/system").text
            assert verify(browser, how=STOP) == 303
            page = ended(browser).text
            assert "It was stopped." in page
            assert "1,200 of 4,000 entries verified" in page
            assert "Continue From the beginning" in page
            assert json.loads(inputs.read_text().splitlines()[-1])[2] == known
        state = browser.get("/system.json").data["data"]["verification"]
        assert (state["is_stopped"], state["heads"], state["last"], state["progress"]["done"]) == (True, 1, None, 1200)
        # To stop what does not go on is nothing.
        assert verify(browser, how=STOP) == 303
        assert browser.site.verifying.status.is_stopped


def test_verification_shows_the_last_comparison(log: Decklog, tmp_path: Path) -> None:
    verifying = LogVerifier(steps(tmp_path / "given", CHAINS, COMPARED))
    with logged_in(log, verifying=verifying) as browser:
        verify(browser)
        wait_until(lambda: (verifying.status.progress or CHAINS)["what"] != "chains")
        assert "all entries verified; 4 of 9 comparisons done, the last: the indexes" in read(browser, "/system").text
        verifying.end()
        wait_until(lambda: verifying.status.began_at is None)


@pytest.mark.slow
@on_both
def test_verification_continues_from_the_last_verified_entry(log: Decklog, target: str, run_id: str, browser: Browser) -> None:
    log.journal.append(run_id, "one")
    verify(browser)
    assert "Verify new entries Verify everything again" in ended(browser).text
    log.journal.append(run_id, "two")
    log.runs.start("another")
    verify(browser, how="on")
    page = ended(browser)
    last = browser.get("/system.json").data["data"]["verification"]["last"]["found"]
    assert last == {**log.journal.verify().as_dict(), "anchored": 1, "is_derived": True}
    assert "verified 2 streams" in page.text
    # What was whole and is gone shows, though nothing that is left is wrong.
    victim = SqliteVictim(target) if log.db.engine == "sqlite" else PostgresVictim(target, log)
    assert victim.change("delete from entries where seq = 3") == 1
    verify(browser, how="on")
    assert "entries up to the anchored one are cut off" in ended(browser).text
    assert browser.site.verifying.status.heads == 0


def test_verification_ends_with_the_server(log: Decklog, tmp_path: Path) -> None:
    verifying, events = LogVerifier(waiting_for(tmp_path / "never")), list[str]()
    assert verifying.begin(log, lambda: events.append("ended"))
    verifying.end()
    wait_until(lambda: events == ["ended"])
    assert not verifying.begin(log, lambda: None)


@pytest.mark.slow
def test_verification_of_an_unreadable_log_fails_without_its_path(tmp_path: Path, run_id: str) -> None:
    with Decklog.open(tmp_path / "log.db") as log, logged_in(log) as browser:
        (tmp_path / "log.db").rename(tmp_path / "elsewhere.db")
        (tmp_path / "log.db").write_bytes(b"not a database under any name" * 100)
        verify(browser)
        wait_until(lambda: browser.site.verifying.status.began_at is None)
        (tmp_path / "elsewhere.db").rename(tmp_path / "log.db")
        text = browser.get("/system").text
        assert "It could not be verified" in text
        assert str(tmp_path) not in text


@pytest.mark.slow
def test_open_pages_are_notified_when_a_verification_begins_and_ends(log: Decklog, browser: Browser) -> None:
    async def listen() -> int:
        stream = browser.site.feed.stream(lambda: True)
        await anext(stream)
        assert browser.site.verifying.begin(log, browser.site.feed.renew)
        while await anext(stream) != 'data: {"reset": {}}\n\n':
            pass
        return 1

    assert asyncio.run(asyncio.wait_for(listen(), 60))


@pytest.mark.slow
def test_verification_runs_no_code_of_the_current_folder(
    log: Decklog, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("decklog/__init__.py", "decklog/web/__init__.py", "decklog/web/verifying.py", "json.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    verify(browser)
    assert "verified" in ended(browser).text
    assert not (tmp_path / "ran").exists()
    # Nor does anybody on the machine read which log it is.
    assert not any(log.db.target in word for word in PROGRAM)


@pytest.mark.slow
@on_both
def test_read_only_log_is_verified_and_its_sessions_are_ended(target: str, clock: ManualClock) -> None:
    with Decklog.open(target, clock=clock) as log:
        log.runs.start("x")
    with Decklog.open(target, clock=clock, read_only=True) as log, logged_in(log) as browser:
        assert end(browser, another(browser).name) == (303, "/system")
        assert verify(browser) == 303
        assert "verified" in ended(browser).text


@on_both
def test_page_shows_how_far_the_search_index_is_behind(log: Decklog, run_id: str, browser: Browser) -> None:
    log.journal.index()
    assert "search index up to date" in read(browser, "/system").text
    log.journal.append_many([{"stream": run_id, "body": "a word"} for _ in range(1200)])
    wait_for_background(log)
    behind = log.db.read(log.journal.not_indexed)
    assert f"search index {behind:,} entries behind: they are indexed step by step" in read(browser, "/system").text
    assert browser.get("/system.json").data["data"]["not_indexed"] == behind
