"""What people act with, in a real browser: diff, comments, forms, palette, graph, timeline, notifications; keys and axe."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from tests.browser.conducted import plan, work_in
from tests.browser.conftest import MISSING, Tab, Tabs
from tests.browser.test_dashboard import AXE, TAGS
from tests.browser.test_places import press_on
from tests.conductor.plans import work_item
from tests.waiting import wait_until
from tests.web.client import PASSWORD
from tests.web.payloads import PAYLOADS
from tests.web.serving import Server

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

FOCUSED = "document.activeElement"


@pytest.fixture
def run_id(path: Path, tmp_path: Path) -> str:
    return work_in(path, tmp_path, *plan())


@pytest.fixture
def plain(chromium: Any, server: Server) -> Iterator[Tab]:
    """A tab without scripts, logged in."""
    tabs = Tabs(chromium, server, java_script_enabled=False)
    tab = tabs.open().go("/login")
    tab.page.fill("#token", server.link.partition("#")[2])
    tab.page.click("text=Log in >> nth=-1")
    yield tab
    tabs.context.close()


def messages(path: Path, run_id: str) -> list[str]:
    with Decklog.open(path) as log:
        return [one.body for one in log.inbox.find(run_id)]


# Comments and forms


def test_a_line_is_commented_on_by_the_keyboard_alone(run_id: str, tab: Tab, path: Path) -> None:
    tab.go(f"/runs/{run_id}/items/triple").until_live()
    keys = tab.page.keyboard
    keys.press("j")
    tab.until(f"{FOCUSED}.matches('a.on')")
    where = tab.page.evaluate(f"new URL({FOCUSED}.href).searchParams.get('on')")
    keys.press("Enter")
    tab.until(f"{FOCUSED}.id === 'comment-text'")
    keys.type("Say why")
    keys.press("Tab")
    keys.press("Enter")
    tab.page.wait_for_selector(".note")
    assert messages(path, run_id)[0].startswith(f"{where}: Say why")
    assert "not delivered yet" in tab.page.inner_text(".d-note .note")
    tab.check()


def test_what_is_typed_stays_while_the_run_goes_on(run_id: str, tab: Tab, path: Path) -> None:
    tab.go(f"/runs/{run_id}/items/triple").until_live()
    tab.page.click("a.on >> nth=0")
    tab.page.keyboard.type("half a sent")
    with Decklog.open(path) as log:
        log.journal.append(run_id, "another step", kind="event", subtype="agent.text", agent="fake", task_id=f"{run_id}.triple")
    tab.until("document.querySelector('.steps').textContent.includes('another step')")
    tab.page.keyboard.type("ence")
    assert tab.page.input_value("#comment-text") == "half a sentence"
    tab.page.click("#comment a.button")
    assert tab.page.query_selector("#comment") is None
    tab.check()


def test_a_run_is_paused_by_the_keyboard_alone(run_id: str, tab: Tab, path: Path) -> None:
    tab.go(f"/runs/{run_id}/overview").until_live()
    press_on(tab, "a[href^='/act/pause-run']")
    tab.until(f"{FOCUSED}.name === 'reason'")
    tab.page.keyboard.type("Lunch")
    tab.page.keyboard.press("Tab")
    tab.page.keyboard.type(PASSWORD)
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("a[href^='/act/resume-run']")
    with Decklog.open(path) as log:
        assert log.runs.get(run_id).status == "paused"
    tab.check()


def test_a_dialog_is_closed_by_escape_and_by_cancel_and_a_wrong_password_keeps_the_text(
    run_id: str, tab: Tab, path: Path
) -> None:
    tab.go(f"/runs/{run_id}/overview").until_live()
    for close in (lambda: tab.page.keyboard.press("Escape"), lambda: tab.page.click("#act a.button")):
        tab.page.click("text=Stop…")
        tab.page.wait_for_selector("#act[open] textarea")
        close()
        tab.until("!document.querySelector('#act').open")
    assert tab.page.url.endswith("/overview")
    tab.page.click("text=Stop…")
    tab.page.fill("#act textarea", "half typed")
    tab.page.fill("#act [name=proof]", "wrong")
    tab.page.click("#act #decide")
    tab.page.wait_for_selector("[role=alert]")
    assert "Wrong password" in tab.page.inner_text("[role=alert]")
    assert tab.page.input_value("textarea") == "half typed"
    with Decklog.open(path) as log:
        assert log.runs.get(run_id).status == "active"


def test_without_scripts_a_line_is_commented_on_and_a_run_is_stopped(run_id: str, plain: Tab, path: Path) -> None:
    plain.go(f"/runs/{run_id}/items/triple").page.click("a.on >> nth=0")
    plain.page.fill("#comment-text", "Say why")
    plain.page.click("text=Send comment")
    assert messages(path, run_id)[0].partition("\n")[0].endswith("Say why")
    plain.go(f"/runs/{run_id}/overview").page.click("text=Stop…")
    plain.page.fill("textarea", "wrong branch")
    plain.page.fill("[name=proof]", PASSWORD)
    plain.page.click("#decide")
    with Decklog.open(path) as log:
        assert log.runs.get(run_id).status == "cancelled"
    plain.go("/now").page.click("summary >> text=More")
    plain.page.click("#more-menu >> text=Trust")
    assert plain.page.url.endswith("/trust")
    plain.page.click("#palette-open")
    plain.page.fill("main [name=q]", "memory")
    plain.page.click("text=Find")
    plain.page.click("#found-rows a >> nth=0")
    assert plain.page.url.endswith("/memory")


# Palette and menu


def test_the_palette_goes_to_pages_and_opens_forms_by_keys(tab: Tab) -> None:
    keys = tab.page.keyboard
    tab.go("/runs/commas/overview").until_live()
    keys.press("Control+k")
    tab.until(f"{FOCUSED}.id === 'palette-q' && document.querySelector('#palette a') !== null")
    keys.type("trus")
    tab.until("document.querySelector('#palette a').textContent.startsWith('Trust')")
    keys.press("ArrowDown")
    keys.press("Enter")
    tab.page.wait_for_url("**/trust")
    keys.press("Control+k")
    keys.type("stop teach")
    tab.until("document.querySelector('#palette a')?.pathname === '/act/stop-run/commas'")
    keys.press("Enter")
    tab.until("document.querySelector('#act').open && !document.querySelector('#palette').open")
    assert "Stop the run" in tab.page.inner_text("#act")
    keys.press("Escape")
    keys.press("Control+k")
    keys.press("Escape")
    tab.until("!document.querySelector('#palette').open")
    assert tab.page.url.endswith("/trust")
    tab.check()


def test_the_menu_is_opened_and_closed_by_keys(tab: Tab) -> None:
    tab.go("/now").until_live()
    press_on(tab, "#more-menu > summary")
    assert tab.page.is_visible("#more-menu >> text=Compare")
    tab.page.keyboard.press("Escape")
    assert not tab.page.is_visible("#more-menu >> text=Compare")
    assert tab.page.url.endswith("/now")
    tab.page.keyboard.press("Enter")
    tab.page.click("h1")
    assert not tab.page.is_visible("#more-menu >> text=Compare")
    tab.check()


def test_a_view_is_saved_from_a_list_and_found_again(tab: Tab) -> None:
    tab.go("/runs?status=running").page.click("text=save view")
    tab.page.wait_for_selector("#view-name")
    tab.until(f"{FOCUSED}.id === 'view-name'")
    tab.page.keyboard.type("At work")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("text=At work")
    tab.page.keyboard.press("Control+k")
    tab.page.keyboard.type("at work")
    tab.until("document.querySelector('#palette a .meta')?.textContent === 'view'")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/runs?status=running")
    tab.check()


# Graph and timeline


def test_the_graph_is_walked_and_zoomed_by_keys(tab: Tab) -> None:
    tab.go("/runs/commas/graph").until_live()
    width = "Math.round(document.querySelector('#graph').getBoundingClientRect().width)"
    before = tab.page.evaluate(width)
    tab.page.focus(".node >> nth=0")
    first = tab.page.evaluate(f"{FOCUSED}.id")
    tab.page.keyboard.press("ArrowRight")
    second = tab.page.evaluate(f"{FOCUSED}.id")
    assert second != first
    tab.page.keyboard.press("ArrowLeft")
    assert tab.page.evaluate(f"{FOCUSED}.matches('.node')")
    tab.page.keyboard.press("+")
    assert tab.page.evaluate(width) == pytest.approx(before * 1.5, abs=2)
    assert tab.page.url.endswith("zoom=150")
    tab.page.keyboard.press("-")
    assert tab.page.evaluate(width) == pytest.approx(before, abs=2)
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/tasks/*")
    tab.check()


def test_a_drag_over_the_timeline_shows_the_time_in_between(tab: Tab) -> None:
    tab.go("/runs/lexer-split/lanes").until_live()
    bars = tab.page.locator(".bars").first.bounding_box()
    before = tab.page.locator(".bar-of").count()
    assert bars is not None
    tab.page.mouse.move(bars["x"] + 2, bars["y"] + 10)
    tab.page.mouse.down()
    tab.page.mouse.move(bars["x"] + bars["width"] * 0.05, bars["y"] + 10, steps=4)
    assert tab.page.locator(".drag").count() == 1
    tab.page.mouse.up()
    tab.page.wait_for_url("**/lanes?from=*&to=*")
    assert 0 < tab.page.locator(".bar-of").count() < before
    tab.page.click("text=whole timeline")
    tab.page.wait_for_url("**/lanes")
    tab.check()


# Notifications

NOTES = """
window.notes = []
window.Notification = class { constructor(title) { window.notes.push(title) } }
Notification.permission = 'default'
Notification.requestPermission = async () => Notification.permission = 'granted'
document.hasFocus = () => false
"""


def test_notification_is_shown_on_request_and_the_icon_has_a_dot(tabs: Tabs, path: Path) -> None:
    tabs.context.add_init_script(NOTES)
    tab = tabs.log_in()
    tab.until_live()
    with Decklog.open(path) as log:
        run_id = log.runs.start("Ask").id
        log.approvals.ask(run_id, "May I?", by="dev-1", about="git push 1")
    tab.until("/^\\(3\\)/.test(document.title)")
    assert tab.page.evaluate("window.notes") == []
    tab.page.click("#notify")
    tab.until("document.querySelector('#notify').getAttribute('aria-pressed') === 'true'")
    with Decklog.open(path) as log:
        log.approvals.ask(run_id, "May I again?", by="dev-1", about="git push 2")
    tab.until("window.notes.length === 1")
    assert tab.page.evaluate("window.notes[0]") == "4 decisions wait"
    assert tab.page.evaluate("document.querySelector('#icon').href").endswith("/icon-waiting.svg")
    tab.page.click("#notify")
    assert tab.page.get_attribute("#notify", "aria-pressed") == "false"


# What agents wrote, and axe


def test_no_script_of_an_agent_runs_in_a_diff_a_form_a_graph_or_a_timeline(path: Path, tmp_path: Path, tabs: Tabs) -> None:
    texts = [text for text in PAYLOADS if text.isprintable()]
    steps = [["write", "a<img src=x onerror=alert(1)>.py", "\n".join(texts) + "\n"], ["print", " ".join(texts[:30])]]
    run_id = work_in(path, tmp_path, work_item("triple", *steps, ["append", "calc.py", "\n".join(f"# {text}" for text in texts)]))
    with Decklog.open(path) as log:
        hostile = log.runs.start(texts[0], run_id="hostile").id
        for text in texts:
            log.tasks.add(hostile, text)
            log.tasks.claim(hostile, worker=text)
        log.inbox.post("dev-1", " ".join(texts), run_id=run_id, task_id=f"{run_id}.triple", context_url="calc.py#L8")
        for text in texts:
            log.journal.append(
                "@desk", text, kind="event", subtype="view.saved", payload={"name": text[:80], "path": f"/runs?text={text}"}
            )
    tab = tabs.log_in()
    item = f"/runs/{run_id}/items/triple"
    places = [item, f"{item}?view=split", f"{item}?on=calc.py:8", f"/runs/{run_id}/changes", "/runs/hostile/graph"]
    places += ["/runs/hostile/lanes", "/act/stop-run/hostile", "/act/message-run/hostile", "/views", "/palette", "/trust"]
    for place in places:
        tab.go(place)
        assert tab.page.locator("main img[src=x], main script").count() == 0, place
    tab.go("/runs/hostile/overview").until_live()
    tab.page.keyboard.press("Control+k")
    tab.until("document.querySelector('#palette a') !== null")
    tab.page.keyboard.press("Escape")
    tab.page.click("text=Stop…")
    tab.page.wait_for_selector("#act[open] textarea")
    tab.check()


def _palette(tab: Tab) -> None:
    tab.page.keyboard.press("Control+k")
    tab.until("document.querySelector('#palette a') !== null")


def _form(tab: Tab) -> None:
    tab.page.click("text=Stop…")
    tab.page.wait_for_selector("#act[open] textarea")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 390), ("dark", 390)])
def test_axe_finds_nothing_in_new_pages_and_nothing_is_wider(
    run_id: str, chromium: Any, server: Server, scheme: str, width: int
) -> None:
    item = f"/runs/{run_id}/items"
    opened: dict[str, Callable[[Tab], object] | None] = {
        f"{item}/triple": lambda tab: tab.page.click("a.on >> nth=0"),
        f"{item}/triple?on=calc.py:8": None,
        f"{item}/wrong": None,
        f"{item}/later": None,
        f"/runs/{run_id}/changes": None,
        f"/runs/{run_id}/graph": None,
        f"/runs/{run_id}/lanes": None,
        f"/act/land-run/{run_id}": None,
        f"/act/message-run/{run_id}": None,
        f"/act/retry-item/{run_id}.wrong": None,
        f"/runs/{run_id}/checks": _form,
        "/runs/commas/graph": _palette,
        "/runs/lexer-split/lanes": None,
        "/act/nothing/x": None,
        "/palette?q=run": None,
        "/views?save=/runs": None,
        "/trust": lambda tab: tab.page.click("#more-menu > summary"),
        "/workflow?roles=all": None,
    }
    if width > 1000:
        opened[f"{item}/triple?view=split"] = None
    tabs = Tabs(chromium, server, color_scheme=scheme)
    tab, found = tabs.log_in(), {}
    tab.page.set_viewport_size({"width": width, "height": 800})
    for path, act in opened.items():
        tab.go(path)
        if act is not None:
            act(tab)
        tab.page.evaluate(AXE)
        result = tab.page.evaluate("tags => axe.run(document, {runOnly: tags})", TAGS)
        found |= {(path, one["id"]): [node["html"] for node in one["nodes"]][:4] for one in result["violations"]}
        if tab.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found[path, "wider than the page"] = []
    assert found == {}
    tabs.context.close()


def test_a_step_of_an_agent_is_shown_while_the_page_is_open(run_id: str, tab: Tab, path: Path) -> None:
    tab.go(f"/runs/{run_id}/items/wrong").until_live()
    with Decklog.open(path) as log:
        log.journal.append(run_id, "I look again", kind="event", subtype="agent.text", agent="fake", task_id=f"{run_id}.wrong")
    wait_until(lambda: "I look again" in tab.page.inner_text(".steps"))
    tab.check()


# Layout


def test_steps_of_an_item_are_as_wide_as_their_list(run_id: str, tab: Tab, path: Path) -> None:
    with Decklog.open(path) as log:
        for agent in ("fake", "an-agent-with-a-name-that-is-longer-than-its-column"):
            log.journal.append(run_id, "Short", kind="event", subtype="agent.text", agent=agent, task_id=f"{run_id}.triple")
    tab.go(f"/runs/{run_id}/items/triple").until_live()
    widths = "[...document.querySelectorAll('.steps > li')].map(row => Math.round(row.getBoundingClientRect().width))"
    assert len(set(tab.page.evaluate(widths))) == 1
    tab.page.set_viewport_size({"width": 390, "height": 800})
    overlaps = """[...document.querySelectorAll('.steps > li')].filter(row => {
      const [kind, who] = ['.kind', '.who'].map(one => row.querySelector(one).getBoundingClientRect())
      return who.top < kind.bottom && who.left < kind.right }).length"""
    assert tab.page.evaluate(overlaps) == 0


def test_no_amount_of_a_budget_is_broken_on_a_phone(tab: Tab, path: Path) -> None:
    with Decklog.open(path) as log, log.proving(password=PASSWORD):
        log.budgets.set("all", period="day", limit_microdollars=50_000_000)
    tab.page.set_viewport_size({"width": 390, "height": 800})
    tab.go("/spend")
    broken = r"""[...document.querySelectorAll('td.loose')].filter(cell => {
      const text = cell.firstChild, range = document.createRange()
      return [...text.data.matchAll(/\S+/g)].some(word => {
        range.setStart(text, word.index)
        range.setEnd(text, word.index + word[0].length)
        return range.getClientRects().length > 1 }) }).length"""
    assert tab.page.locator("td.loose").count() > 0
    assert tab.page.evaluate(broken) == 0
