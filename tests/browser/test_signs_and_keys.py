"""Status is visible by shape and word; rows are reached by keys; open pages update."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from tests.browser.conftest import MISSING, Tab, Tabs
from tests.browser.test_dashboard import found_by_axe
from tests.waiting import wait_until
from tests.web.client import PASSWORD
from tests.web.serving import Server

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

# Pages that together have most status words.
SIGNED = (
    *("/now", "/runs", "/tasks", "/tasks?state=blocked", "/tasks/release", "/system"),
    *(f"/runs/commas/{tab}" for tab in ("overview", "tasks", "tasks?as=table", "plan", "forks")),
    *("/runs/lexer-split/checks", "/runs/lexer-split/tasks"),
)
# Of each sign: its word, its shape, its size, and whether both have the same colour.
SIGNS = """() => [...document.querySelectorAll('main .s')].filter(one => one.offsetParent).map(one => {
  const drawn = one.querySelector('svg'), use = drawn.querySelector('use'), box = drawn.getBoundingClientRect()
  const shape = document.querySelector(use.getAttribute('href'))
  return { word: one.textContent.trim(), shape: shape.innerHTML, width: box.width, height: box.height,
           same: getComputedStyle(drawn).fill === getComputedStyle(one).color, read: drawn.getAttribute('aria-hidden') }
})"""
HERE = "document.querySelector('.here')?.id ?? ''"
# Without its times, which go on, and its tokens, which nobody sees.
SHOWN = """() => {
  const main = document.querySelector('main').cloneNode(true)
  main.querySelectorAll('time').forEach(one => one.remove())
  return main.textContent.replace(/\\s+/g, ' ')
}"""


def signs(tab: Tab, paths: tuple[str, ...]) -> list[dict[str, Any]]:
    return [sign for path in paths for sign in tab.go(path).page.evaluate(SIGNS)]


def begin_work(path: Path) -> None:
    """Claim a task: the leases of the sample have ended."""
    with Decklog.open(path) as log:
        log.runs.start("Read the manual", run_id="manual")
        log.tasks.add("manual", "Read it")
        assert log.tasks.claim("manual", worker="dev-9") is not None


def test_each_status_has_a_shape_besides_its_colour(tab: Tab, path: Path) -> None:
    begin_work(path)
    found = signs(tab, SIGNED)
    shapes = {sign["word"]: sign["shape"] for sign in found}
    assert {"needs attention", "running", "stalled", "done", "blocked", "pending"} <= shapes.keys()
    for sign in found:
        assert (sign["width"], sign["height"], sign["same"], sign["read"]) == (12, 12, True, "true"), sign
        assert sign["word"], sign
        assert sign["shape"] == shapes[sign["word"]], sign
    # Words that mean something else to an owner look otherwise in one colour too.
    apart = ("needs attention", "running", "stalled", "done", "blocked", "pending")
    assert len({shapes[word] for word in apart}) == len(apart)
    tab.check()


def test_the_shapes_differ(tab: Tab) -> None:
    drawn = tab.page.evaluate("[...document.querySelectorAll('.sprite symbol')].map(one => one.innerHTML)")
    assert len(drawn) == len(set(drawn)) > 7


def test_shapes_and_words_stay_where_a_reader_chose_the_colours(chromium: Any, server: Server, path: Path) -> None:
    begin_work(path)
    tabs = Tabs(chromium, server, forced_colors="active")
    found = signs(tabs.log_in(), ("/now", "/tasks"))
    assert len({sign["shape"] for sign in found}) > 2
    assert {(sign["width"], sign["same"]) for sign in found} == {(12, True)}
    tabs.context.close()


LISTS = ("/now", "/runs", "/inbox", "/tasks", "/more", "/search?q=comma*", "/memory", "/runs/commas/tasks", "/runs/commas/lanes")


@pytest.mark.parametrize("place", LISTS)
def test_rows_are_gone_through_and_opened_by_keys(tab: Tab, place: str) -> None:
    tab.go(place)
    keys, rows = tab.page.keyboard, "[...document.querySelectorAll('main [data-row]')]"
    count = tab.page.evaluate(f"{rows}.length")
    assert count > 0
    where = f"{rows}.findIndex(one => one.classList.contains('here'))"
    # From the first to the last and no further, and back; the link of the row has the focus.
    for number in range(count + 1):
        keys.press("j")
        assert tab.page.evaluate(where) == min(number, count - 1)
        assert tab.page.evaluate("document.querySelector('.here').contains(document.activeElement)")
    for number in range(count + 1):
        keys.press("k")
        assert tab.page.evaluate(where) == max(count - 2 - number, 0)
    assert tab.page.evaluate(f"{rows}.filter(one => one.classList.contains('here')).length") == 1
    target = tab.page.evaluate("document.querySelector('.here a').pathname")
    with tab.page.expect_navigation():
        keys.press("o")
    assert target in tab.page.url
    tab.check()


def test_a_row_that_leads_nowhere_is_gone_through_and_stays(tab: Tab, path: Path) -> None:
    with Decklog.open(path) as log:
        log.ledger.charge("a-model", run_id="commas", cost_microdollars=5)
    tab.go("/runs/commas/spend")
    tab.page.evaluate("document.querySelectorAll('main [data-row] a').forEach(one => one.replaceWith(one.textContent))")
    for key in ("j", "o", "Space", "y"):
        tab.page.keyboard.press(key)
    assert tab.page.url.endswith("/runs/commas/spend")
    assert tab.page.evaluate(HERE).startswith("charge-")
    tab.check()


def test_the_id_of_a_row_is_copied_by_a_key(tabs: Tabs) -> None:
    tab = tabs.log_in()
    tabs.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=tab.origin)
    tab.go("/runs").page.keyboard.press("j")
    tab.page.keyboard.press("y")
    row = tab.page.evaluate(HERE)
    tab.until(f"navigator.clipboard.readText().then(text => text === {row.removeprefix('run-')!r})")


def test_keys_do_nothing_while_typing_or_switched_off(tab: Tab) -> None:
    tab.go("/tasks").page.focus("#worker")
    tab.page.keyboard.type("jko/gn?")
    assert (tab.page.input_value("#worker"), tab.page.evaluate(HERE)) == ("jko/gn?", "")
    tab.page.evaluate("document.activeElement.blur()")
    tab.page.keyboard.press("?")
    tab.page.uncheck("#keys-on")
    tab.page.click("#help button")
    tab.go("/tasks")
    for key in ("j", "g", "n", "/", "?", "t"):
        tab.page.keyboard.press(key)
    assert tab.page.url.endswith("/tasks")
    assert tab.page.evaluate(HERE) == ""
    assert not tab.page.is_visible("#help")


def prove(log: Decklog) -> None:
    with log.proving(password=PASSWORD):
        (approval, *_) = log.approvals.find(state="open", oldest_first=True)
        log.approvals.decide(approval.id, "denied", by="ana", rationale="not now")


def hold(log: Decklog) -> None:
    task = log.tasks.add("commas", "Held for the owners")
    log.tasks.pause(task.id, reason="the owners are away")


# What is written, and the text that an open page then has.
LIVE: dict[str, tuple[Callable[[Decklog], object], str]] = {
    "/trust": (prove, "approvals.decide"),
    "/tasks?state=paused": (hold, "Held for the owners"),
    "/tasks/lexer": (lambda log: log.tasks.comment("lexer", "Look at the tokens first", author="bo"), "Look at the tokens first"),
    "/inbox": (lambda log: log.approvals.ask("commas", "And this?", by="bo", about="x", payload={"rule": "r-7"}), "r-7"),
}


@pytest.mark.parametrize("place", LIVE)
def test_open_page_updates_to_a_fresh_one(tabs: Tabs, tab: Tab, path: Path, place: str) -> None:
    write, text = LIVE[place]
    tab.go(place).until_live()
    with Decklog.open(path) as log:
        write(log)
    # What is new to the page stays in its place: of the inbox the list alone moves.
    part = "#list" if place == "/inbox" else "main"
    reading = SHOWN.replace("'main'", repr(part))
    fresh = tabs.open().go(place).page.evaluate(reading)
    assert text in fresh
    # New rows come first, and the rest of the page a moment later.
    wait_until(lambda: tab.page.evaluate(reading) == fresh)
    tab.check()


def test_system_page_updates_when_the_log_is_verified(tab: Tab) -> None:
    tab.go("/system").until_live()
    assert "Logged in: 1 browser" in tab.page.inner_text("main")
    tab.page.click("text=Verify the whole log")
    tab.page.wait_for_selector("#verified")
    assert tab.page.inner_text("#verified").startswith("verified")
    assert tab.page.is_enabled("text=Verify new entries")
    assert [sign["word"] for sign in signs(tab, ("/system",))] == ["verified"]
    tab.check()


def test_ending_the_own_session_leads_to_the_login_without_cookie(tab: Tab) -> None:
    tab.go("/system").page.click("button[aria-label$='which is this one']")
    tab.page.wait_for_url("**/login")
    assert tab.page.context.cookies() == []
    assert tab.go("/now").page.url.partition("?")[0].endswith("/login")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_a_verified_log_and_a_rule_decision(chromium: Any, server: Server, path: Path, scheme: str) -> None:
    with Decklog.open(path) as log:
        cause = {"rule": "git-push-force", "reason": "a forced push rewrites what others have", "tier": 2}
        details: dict[str, Any] = {"source": "toolbox", "payload": cause}
        approval = log.approvals.ask("commas", "May this run?\ngit push --force", by="bo", about="git push --force", **details)
        log.db.write(lambda: log.db.count("update runs set goal = 'another' where id = 'commas'", {}))
    tabs = Tabs(chromium, server, color_scheme=scheme)
    tab = tabs.log_in().go("/system")
    tab.page.click("text=Verify the whole log")
    tab.page.wait_for_selector("#verified")
    assert tab.page.inner_text("#verified").startswith("damaged")
    assert found_by_axe(tab, ("/system", f"/inbox/approval/{approval.id}")) == {}
    # Nothing is pushed out of a narrow screen.
    tab.page.set_viewport_size({"width": 320, "height": 700})
    for place in ("/system", f"/inbox/approval/{approval.id}"):
        tab.go(place)
        assert tab.page.evaluate("document.documentElement.scrollWidth") == 320, place
    tabs.context.close()
