"""The dashboard as a person meets it: in a real browser, at a real server."""

import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.web.pages.run import TABS
from tests.browser.conftest import MISSING, REBOUND, Tab, Tabs
from tests.waiting import wait_until
from tests.web.client import PASSWORD
from tests.web.payloads import PAYLOADS, fill
from tests.web.serving import Server
from tests.web.test_text_of_agents import PLACES

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

AXE = (Path(__file__).parent / "axe-4.14.0.min.js").read_text(encoding="utf-8")
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
PAGES = (
    *("/now", "/runs", "/runs?as=family", "/inbox"),
    *("/runs/commas/overview", "/runs/commas/journal", "/runs/commas/tasks", "/runs/commas/tools"),
    *(
        "/runs/commas/overview?at=20",
        "/spend",
        "/spend?days=365",
        "/search?q=comma*",
        "/tasks",
        "/tasks/lexer",
        "/more",
        "/compare?a=commas:20&b=commas",
    ),
    *(f"/runs/commas/{tab}" for tab in TABS if tab not in ("overview", "journal", "tasks", "reasoning", "tools")),
    *("/runs/commas/states?name=grammar&version=2", "/runs/lexer-split/checks", "/runs/lexer-split/lanes", "/tasks/docs/change"),
    *("/memory", "/memory?q=lexer", "/workflow", "/trust", "/system?look=1", "/search", "/compare"),
    *("/runs?status=failed", "/runs/nothing/overview", "/inbox/approval/nothing", "/tasks?state=paused", "/search?q=nothing"),
)
WHOLE = PAGES[:34]
EMPTY = (
    "/now",
    "/runs",
    "/inbox",
    "/spend",
    "/search?q=nothing",
    "/tasks",
    "/compare",
    "/memory",
    "/workflow",
    "/trust",
    "/system",
)
SAYS_HOW = "/^(live|as of an entry, not live)/.test(document.querySelector('#live').textContent)"
SEQS = "[...document.querySelectorAll('#tail li[id^=\"e-\"]')].map(row => Number(row.id.slice(2)))"


def open_approval(path: Path) -> Any:
    with Decklog.open(path) as log:
        return log.approvals.find(state="open")[0]


def test_a_link_of_the_terminal_logs_in_and_leaves_no_trace(tab: Tab, server: Server) -> None:
    assert tab.page.url == f"{server.origin}/"
    token = server.link.partition("#")[2]
    assert not any(token in url for url in tab.requests if "#" not in url)
    assert tab.page.evaluate("document.referrer").startswith((server.origin, ""))
    assert token not in tab.page.content()
    tab.page.go_back()
    assert token not in tab.page.url
    tab.check()


# How far things moved under a reader since the page came, as browsers count it.
SHIFTED = """() => new Promise(done => {
  let shifted = 0
  const count = one => { shifted += one.hadRecentInput ? 0 : one.value }
  new PerformanceObserver(list => list.getEntries().forEach(count)).observe({ type: 'layout-shift', buffered: true })
  setTimeout(() => done(shifted), 20)
})"""


def test_every_page_is_complete_stable_and_without_foreign_requests(tab: Tab) -> None:
    shifted = {}
    for path in WHOLE:
        tab.go(path)
        # Static parts show when they were read.
        tab.until(f"!document.querySelector('[data-live]') || {SAYS_HOW}")
        shifted[path] = tab.page.evaluate(SHIFTED)
    assert {path: found for path, found in shifted.items() if found > 0.02} == {}
    tab.check()


def test_an_approval_is_decided_by_the_keyboard_alone(tab: Tab, path: Path) -> None:
    approval = open_approval(path)
    keys = tab.page.keyboard
    keys.press("j")
    keys.press("a")
    tab.page.wait_for_selector("#reason")
    assert tab.page.evaluate("document.activeElement.id") == "reason"
    keys.type("It only adds a branch")
    keys.press("Tab")
    assert tab.page.evaluate("document.activeElement.id") == "proof"
    keys.type(PASSWORD)
    keys.press("Control+Enter")
    tab.page.wait_for_selector(".verdict")
    assert "Approved" in tab.page.inner_text(".verdict")
    with Decklog.open(path) as log:
        decided = log.approvals.get(approval.id)
        assert (decided.state.value, decided.rationale, decided.is_proven) == ("granted", "It only adds a branch", True)
    tab.check()


def test_a_wrong_password_leaves_what_was_typed(tab: Tab, path: Path) -> None:
    tab.go("/inbox")
    tab.page.fill("#reason", "typed for long")
    tab.page.fill("#proof", "wrong")
    tab.page.check("[name=verdict][value=denied]")
    tab.page.click("#decide")
    tab.page.wait_for_selector(".trouble:not([hidden])")
    assert tab.page.input_value("#reason") == "typed for long"
    assert tab.page.input_value("#proof") == ""
    assert open_approval(path).state.value == "open"


def test_what_is_typed_stays_while_the_page_lives(tab: Tab, path: Path) -> None:
    tab.go("/inbox")
    tab.until_live()
    tab.page.fill("#reason", "half a rea")
    tab.page.evaluate("document.querySelector('.list details').open = true")
    with Decklog.open(path) as log:
        log.approvals.ask("commas", "And may I merge it?", by="bo", about="git merge")
    tab.page.wait_for_selector("text=And may I merge it?")
    assert tab.page.input_value("#reason") == "half a rea"
    assert tab.page.evaluate("document.activeElement.id") == "reason"
    assert tab.page.evaluate("document.querySelector('.list details').open")
    assert tab.page.title().startswith("(3) ")
    tab.check()


def test_tail_continues_after_restarts_without_gap_or_repeat(tabs: Tabs, server: Server, path: Path) -> None:
    tabs.log_in()
    tab = tabs.open().go("/runs/commas/journal")
    tab.until_live()
    over, written, allowed = threading.Event(), [0], [40]

    # A page that is far behind gets the newest entries only, so their number is bounded, however slow the machine is.
    def write() -> None:
        done = 0
        with Decklog.open(path, durability="relaxed") as log:
            while not over.is_set():
                if done < allowed[0]:
                    written[0], done = log.journal.append("commas", f"at {time.monotonic()}").seq, done + 1
                time.sleep(0.02)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for how in (signal.SIGTERM, signal.SIGKILL):
            allowed[0] += 40
            tab.page.wait_for_timeout(300)
            server.stop(how)
            allowed[0] += 40
            tab.page.wait_for_timeout(300)
            server.start()
            # Sessions end with the server; one new login serves all tabs.
            tabs.log_in().page.close()
    finally:
        over.set()
        writer.join()
    tab.until(f"Number(document.querySelector('#tail').dataset.last) === {written[0]}")
    found = tab.page.evaluate(SEQS)
    assert found == list(range(found[0], written[0] + 1))
    assert [
        message for message in tab.trouble if "/events" not in message and "net::ERR" not in message and "401" not in message
    ] == []


LAST = "Number(document.querySelector('#tail').dataset.last)"


def test_twenty_tabs_share_one_connection(tabs: Tabs, server: Server, path: Path) -> None:
    tabs.log_in()
    opened = [tabs.open().go("/runs/commas/journal") for _ in range(20)]
    with Decklog.open(path) as log:
        newest = log.journal.append("commas", "hello").seq
    for tab in opened:
        tab.until(f"{LAST} === {newest}")
        tab.check()
    assert sum("/events" in url and "events.js" not in url for tab in opened for url in tab.requests) <= 1
    # What all of them show was asked for by the worker, once for all.
    assert [url for tab in opened for url in tab.requests if "/rows" in url] == []


def test_hidden_tab_asks_for_no_rows_and_catches_up(tabs: Tabs, path: Path) -> None:
    visible = tabs.log_in().go("/runs/commas/journal")
    hidden = tabs.open().go("/runs/commas/journal")
    for tab in (visible, hidden):
        tab.until_live()
    last = hidden.page.evaluate(LAST)
    hidden.page.evaluate("Object.defineProperty(document, 'hidden', { get: () => !window.isShown })")
    with Decklog.open(path) as log:
        newest = log.journal.append("commas", "hello").seq
    visible.until(f"{LAST} === {newest}")
    assert hidden.page.evaluate(LAST) == last
    hidden.page.evaluate("window.isShown = true; dispatchEvent(new Event('visibilitychange'))")
    hidden.until(f"{LAST} === {newest}")
    assert hidden.page.evaluate(SEQS)[-1] == newest


def test_a_burst_leaves_a_reader_where_they_are_and_the_page_small(tab: Tab, path: Path) -> None:
    tab.page.set_viewport_size({"width": 1280, "height": 300})
    tab.go("/runs/commas/journal").until_live()
    tab.page.evaluate("scrollTo(0, 200)")
    with Decklog.open(path, durability="relaxed") as log:
        for _ in range(5):
            written = log.journal.append_many([{"stream": "commas", "body": f"entry {number}"} for number in range(500)])
        newest = written[-1].seq
    tab.until(f"{LAST} === {newest}")
    assert tab.page.evaluate("scrollY") == 200
    assert tab.page.inner_text(".newer").endswith(" new")
    assert len(tab.page.evaluate(SEQS)) <= 300
    # Besides the rows only the line with the number of omitted ones.
    assert tab.page.evaluate("document.querySelector('#tail').children.length") <= 301
    assert tab.page.evaluate("document.querySelectorAll('*').length") <= 3000
    tab.page.click(".newer")
    tab.until("innerHeight + scrollY >= document.documentElement.scrollHeight - 60")
    seqs = tab.page.evaluate(SEQS)
    assert seqs[-100:] == list(range(newest - 99, newest + 1))
    tab.check()


def test_page_without_its_server_is_marked_and_its_times_stand_still(tab: Tab, server: Server) -> None:
    tab.until_live()
    server.stop()
    tab.until("document.querySelector('#live').textContent.startsWith('reconnecting')")
    tab.page.evaluate("Date.now = (now => () => now() + 11000)(Date.now.bind(Date))")
    tab.until("/^\\d\\d:\\d\\d:\\d\\d UTC$/.test(document.querySelector('[data-ago]').textContent)")


def test_the_slider_shows_the_run_as_of_any_entry(tab: Tab, path: Path) -> None:
    tab.go("/runs/commas/overview")
    for at in (30, 12, 41):
        tab.page.evaluate(f"(s => {{ s.value = {at}; s.dispatchEvent(new Event('input')) }})(document.querySelector('#slide'))")
    tab.page.wait_for_selector("text=AS OF ENTRY 41")
    assert tab.page.url.endswith("?at=41")
    assert max(tab.page.evaluate(SEQS)) == 41
    tab.page.keyboard.press("[")
    tab.page.wait_for_selector("text=AS OF ENTRY 40")
    with Decklog.open(path) as log:
        done = sum(task.state.value == "done" for task in log.runs.snapshot("commas", at="40").records["tasks"])
    assert f"{done} of 6 tasks done" in tab.page.inner_text(".facts")
    tab.check()


def test_late_page_does_not_replace_the_slider_position(tabs: Tabs) -> None:
    # Without a worker the page sends the request, which a test can delay.
    tabs.context.add_init_script("delete window.SharedWorker")
    tab = tabs.log_in()
    late: list[Any] = []

    def keep(route: Any) -> None:
        # What an open page asks for is kept, the first time too: after one that was slow it asks again ten times as late.
        if route.request.resource_type == "document":
            route.continue_()
        else:
            late.append(route)

    tab.page.route("**/runs/commas/overview", keep)
    tab.go("/runs/commas/overview")
    wait_until(lambda: tab.page.evaluate("true") and late)
    tab.page.evaluate("(s => { s.value = 41; s.dispatchEvent(new Event('input')) })(document.querySelector('#slide'))")
    tab.page.wait_for_selector("text=AS OF ENTRY 41")
    with tab.page.expect_response("**/runs/commas/overview") as answer:
        late[0].continue_()
    answer.value.finished()
    # The page handles the answer after its next frame.
    tab.page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
    assert tab.page.is_visible("text=AS OF ENTRY 41")
    assert len(late) == 1
    tab.check()


def test_row_has_a_preview_two_are_compared_and_tabs_have_numbers(tab: Tab) -> None:
    tab.go("/runs").until_live()
    tab.page.keyboard.press("j")
    tab.page.keyboard.press("Space")
    tab.until("document.querySelector('#peek').open && document.querySelector('#peek h1') !== null")
    tab.page.keyboard.press("Escape")
    tab.until("!document.querySelector('#peek').open")
    tab.page.keyboard.press("x")
    tab.page.keyboard.press("j")
    tab.page.keyboard.press("x")
    tab.page.wait_for_url("**/compare?a=*&b=*")
    tab.go("/runs/commas/overview").until_live()
    tab.page.keyboard.press("4")
    tab.page.wait_for_url("**/runs/commas/lanes")
    tab.go("/runs/commas/overview").until_live()
    tab.page.keyboard.press("{")
    tab.page.wait_for_url("**/runs/commas/overview?at=*")
    tab.page.keyboard.press("[")
    tab.go("/spend").until_live()
    tab.page.keyboard.press("b")
    tab.page.wait_for_url("**/spend?*by=agent")
    tab.check()


def test_without_javascript_everything_can_be_read_and_decided(chromium: Any, server: Server, path: Path) -> None:
    tabs = Tabs(chromium, server, java_script_enabled=False)
    tab = tabs.open().go("/login")
    tab.page.fill("#token", server.link.partition("#")[2])
    tab.page.click("text=Log in >> nth=-1")
    for path_ in WHOLE:
        tab.go(path_)
        assert tab.page.inner_text("h1")
    tab.go("/runs/commas/overview")
    tab.page.fill("#at", "20")
    tab.page.click("text=Show")
    assert "AS OF ENTRY 20" in tab.page.inner_text("main")
    tab.go("/now")
    tab.page.click("text=Approve…")
    tab.page.fill("#reason", "fine")
    tab.page.fill("#proof", PASSWORD)
    tab.page.click("text=Approve exactly this")
    assert "Approved" in tab.page.inner_text(".verdict")
    assert tab.requests == [url for url in tab.requests if url.startswith(server.origin)]
    tabs.context.close()


def found_by_axe(tab: Tab, paths: tuple[str, ...]) -> dict[tuple[str, str], list[str]]:
    found = {}
    for path in paths:
        tab.go(path)
        tab.page.evaluate(AXE)
        result = tab.page.evaluate("tags => axe.run(document, {runOnly: tags})", TAGS)
        found |= {(path, one["id"]): [node["html"] for node in one["nodes"]][:2] for one in result["violations"]}
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(chromium: Any, server: Server, scheme: str) -> None:
    tabs = Tabs(chromium, server, color_scheme=scheme)
    assert found_by_axe(tabs.log_in(), (*PAGES, "/login")) == {}
    tabs.context.close()


def test_axe_finds_nothing_in_an_empty_log_that_may_only_be_read(chromium: Any, tmp_path: Path) -> None:
    Decklog.open(tmp_path / "new.db").close()
    server = Server(str(tmp_path / "new.db"), tmp_path, "--read-only").start()
    try:
        for scheme in ("light", "dark"):
            tabs = Tabs(chromium, server, color_scheme=scheme)
            assert found_by_axe(tabs.log_in(), EMPTY) == {}
            tabs.context.close()
            server.stop()
            server.start()
    finally:
        server.stop()


def test_foreign_host_name_that_resolves_here_is_refused(chromium: Any, server: Server) -> None:
    """A page of theirs, whose name now has our address, is of the same origin as what it asks for; it gets nothing."""
    script = """async () => Promise.all(['/', '/now.json', '/events', '/login', '/static/x'].map(async path => {
      const answer = await fetch(path); return [answer.status, (await answer.text()).includes('decklog')]
    }))"""
    context = chromium.new_context()
    page = context.new_page()
    assert page.goto(f"http://{REBOUND}:{server.port}/now").status == 421
    # Its own page is what it was before its name changed its address: anything of that origin.
    assert page.evaluate(script) == [[421, False]] * 5
    assert context.cookies() == []
    context.close()


def test_a_narrow_page_does_not_scroll_sideways(tab: Tab) -> None:
    wide = []
    for path in PAGES:
        tab.go(path)
        for width in (640, 390, 320):
            tab.page.set_viewport_size({"width": width, "height": 800})
            if tab.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wide.append((path, width))
    assert wide == []


def test_the_first_visit_is_small(tabs: Tabs, server: Server) -> None:
    sizes: dict[str, int] = {}
    tab = tabs.open()

    def weigh(answer: Any) -> None:
        if answer.status == 200 and not answer.url.endswith("/events"):
            sizes[answer.url] = int(answer.headers["content-length"])

    tab.page.on("response", weigh)
    tab.page.goto(server.link)
    tab.page.wait_for_url(f"{server.origin}/")
    tab.page.wait_for_load_state("load")
    assert sum(sizes.values()) <= 80_000, sizes


def test_a_server_on_another_port_gets_no_cookie_and_can_send_nothing(tabs: Tabs, server: Server, path: Path) -> None:
    """A dev server that an agent started: it is of the same machine, and of another site."""
    from http.server import BaseHTTPRequestHandler, HTTPServer

    cookies: list[str | None] = []
    target = f"{server.origin}/inbox/approval/{open_approval(path).id}/decide"
    names = [server.origin, f"http://127.0.0.1:{server.port}", f"http://localhost:{server.port}"]
    forms = "".join(f'<form method=post action="{target.replace(server.origin, name)}"><input name=x></form>' for name in names)
    images = "".join(f'<img src="{name}/now"><iframe src="{name}/now"></iframe>' for name in names)

    class Hostile(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cookies.append(self.headers.get("cookie"))
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(f"<!doctype html>{forms}{images}<title>x</title>".encode())

        def log_message(self, *_: object) -> None:
            pass

    tabs.log_in()
    hostile = HTTPServer(("127.0.0.1", 0), Hostile)
    threading.Thread(target=hostile.serve_forever, daemon=True).start()
    try:
        tab = tabs.open()
        statuses: list[tuple[str, int]] = []
        tab.page.on("response", lambda answer: statuses.append((answer.url, answer.status)))
        for name in ("127.0.0.1", "localhost", "other.localhost"):
            for number in range(len(names)):
                tab.page.goto(f"http://{name}:{hostile.server_port}/", wait_until="load")
                with tab.page.expect_navigation():
                    tab.page.evaluate(f"document.forms[{number}].submit()")
        ours = [status for url, status in statuses if f":{server.port}/" in url]
        assert set(ours) <= {403, 421}, statuses
        assert set(cookies) == {None}
        assert open_approval(path).state.value == "open"
    finally:
        hostile.shutdown()
        hostile.server_close()


def test_payloads_in_every_text_execute_nothing_even_without_the_policy(chromium: Any, tmp_path: Path) -> None:
    target = tmp_path / "hostile.db"
    with Decklog.open(target, durability="relaxed") as log:
        fill(log, PAYLOADS)
    server = Server(str(target), tmp_path).start()
    tabs = Tabs(chromium, server)
    try:
        tab = tabs.log_in()
        for place in (*PLACES, "/inbox/approval/a01", "/runs/r/overview?at=50", "/now.json"):
            tab.go(place)
            tab.page.wait_for_timeout(100)
            tab.check()
        tab.go("/runs/r/journal").until_live()
        with Decklog.open(target) as log:
            last = [log.journal.append("r", text, agent=text).seq for text in PAYLOADS][-1]
        tab.until(f"Number(document.querySelector('#tail').dataset.last) === {last}")
        tab.check()
    finally:
        tabs.context.close()
        server.stop()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_at_once_and_silently_with_pages_open(tabs: Tabs, server: Server, how: signal.Signals) -> None:
    tabs.log_in()
    for _ in range(3):
        tabs.open().go("/now")
    began = time.monotonic()
    assert server.stop(how) == 0
    # It waits for no open stream: these end with their pages only.
    assert time.monotonic() - began < 10
    assert len(server.printed.splitlines()) == 1
