"""Pages show what the verbs return, now and as of any entry, on both engines."""

import gzip
import html
import random
import re
from datetime import timedelta
from html.parser import HTMLParser

import pytest

from decklog import Decklog, ManualClock
from decklog.core.errors import Damaged, Invalid, NotFound
from decklog.web.login import HEADERS
from decklog.web.pages import run
from decklog.web.pages.entries import LONGEST, build_row, fold_entries
from decklog.web.pages.run_parts import build_moment
from decklog.web.rendering import asset, assets, bars, edition, length, shown_lines
from decklog.web.site import TITLES, error_envelope, http_status
from tests.conftest import on_both
from tests.every import every
from tests.web.client import Browser

TABS = tuple(run.TABS)
PLACES = (
    *("/spend", "/spend?days=7&by=run", "/search", "/search?q=comma*", "/tasks", "/tasks?state=blocked", "/tasks/lexer"),
    *("/runs/commas/tasks?as=table", "/more", "/compare", "/compare?a=commas:20&b=commas", "/compare?a=commas&b=fast-tests"),
    *(
        "/memory",
        "/memory?health=1",
        "/memory?q=lexer",
        "/memory?topic=parser",
        "/workflow",
        "/trust",
        "/system",
        "/system?look=1",
    ),
)
RUNS = ("/runs", "/runs?as=family", *(f"/runs/commas/{tab}" for tab in TABS), "/runs/commas/overview?at=20")
SHOWN = (*PLACES, "/", "/now", "/inbox", *RUNS)


class Read(HTMLParser):
    """Reads a page as a browser does: its text, its ids, and what it points to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id" and value]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def read(browser: Browser, url: str) -> Read:
    answer = browser.get(url)
    assert answer.status == 200, answer.text
    return Read(answer.text)


def test_now_sums_up_in_a_sentence(log: Decklog, sample: Browser) -> None:
    page = read(sample, "/now")
    assert log.overview.now().sentence in page.text
    assert "git push origin trailing-commas" in page.text
    assert "needs attention" in page.text
    assert "(1) Now · Decklog" in page.text


def test_pages_of_a_new_log_name_the_first_command(browser: Browser) -> None:
    assert 'decklog runs start "GOAL"' in read(browser, "/").text
    assert "No run yet" in read(browser, "/runs").text
    assert "Nothing was charged" in read(browser, "/spend").text
    assert "No task is running" in read(browser, "/tasks").text
    assert "No lesson yet" in read(browser, "/memory").text
    assert "No signed decisions yet" in read(browser, "/trust").text
    assert "Nothing was found" in read(browser, "/search?q=comma").text
    assert "Nothing waits." in read(browser, "/inbox").text


def test_partial_search_has_a_next_page(log: Decklog, browser: Browser) -> None:
    log.runs.start("Look", run_id="look")
    log.journal.append_many([{"stream": "look", "body": f"zq{number}"} for number in range(2_500)])
    log.journal.append_many([{"stream": "look", "body": "hay"} for _ in range(2_100)])
    log.journal.index()
    page = browser.get("/search?q=zq*").text
    assert "Not all entries were searched" in page
    [older] = re.findall(r'rel="next" href="([^"]+)"', page)
    assert re.search(r"\d\+? older hits", read(browser, html.unescape(older)).text)


WITH_DATA = ("/now", "/runs", "/inbox", *(f"/runs/commas/{tab}" for tab in TABS), *PLACES)


@pytest.mark.slow
def test_every_page_has_its_data_in_the_envelope_of_the_command_line(sample: Browser) -> None:
    for url in WITH_DATA:
        path, mark, query = url.partition("?")
        answer = sample.get(f"{path}.json{mark}{query}")
        assert answer.status == 200, url
        assert answer.headers["content-type"] == "application/json; charset=utf-8"
        assert answer.data.keys() == {"ok", "data", "next", "warnings"}
        assert not set(answer.text) & set("<>&")
        assert ("a", "href", f"{path}.json{mark}{query}") in read(sample, url).attributes, url


def test_a_page_and_its_data_are_of_the_same_verb(log: Decklog, sample: Browser) -> None:
    assert sample.get("/now.json").data["data"]["sentence"] == log.overview.now().sentence
    assert [run["id"] for run in sample.get("/runs.json").data["data"]] == ["commas", "fast-tests"]
    assert sample.get("/inbox.json").data["data"] == [item.as_dict() for item in log.overview.waiting()]


@pytest.mark.slow
@on_both
def test_every_page_is_well_made(sample: Browser) -> None:
    for url in SHOWN:
        text = sample.get(url).text
        page = Read(text)
        assert len(page.ids) == len(set(page.ids)), url
        assert len(re.findall(r"<h1[ >]", text)) == 1, url
        assert not [found for found in page.attributes if found[1] == "style" or found[1].startswith("on")], url
        elsewhere = [value for _, name, value in page.attributes if name in ("src", "href", "action") and value]
        assert [value for value in elsewhere if not value.startswith(("/", "#"))] == [], url
        assert "<script>" not in text
        assert len(text) < 60_000, url


@pytest.mark.slow
def test_titles_are_unique(sample: Browser) -> None:
    titles = [re.findall(r"<title>(.*?)</title>", sample.get(url).text)[0] for url in SHOWN if "?" not in url and url != "/"]
    assert len(set(titles)) == len(titles)


@pytest.mark.slow
@on_both
def test_run_as_of_any_entry_equals_its_snapshot(log: Decklog, sample: Browser) -> None:
    newest = log.overview.run("commas").entries
    for at in random.Random(14).sample(range(1, newest + 1), 12):
        view, snapshot = log.overview.run_view("commas", at=str(at)), log.runs.snapshot("commas", at=str(at))
        head = build_moment(view)
        tasks = {task.id: task.state.value for task in snapshot.records.get("tasks", [])}
        assert {task.id: task.state.value for task in view.tasks} == tasks
        states = [approval.state.value for approval in snapshot.records.get("approvals", [])]
        assert view.waiting == states.count("open")
        assert {state: count for state, count in head.tasks.items() if count} == {
            state: list(tasks.values()).count(state) for state in set(tasks.values())
        }
        assert (head.seq, head.cost, head.calls) == (at, snapshot.spent["microdollars"], snapshot.spent["calls"])
        page = read(sample, f"/runs/commas/overview?at={at}")
        assert f"AS OF ENTRY {at}" in page.text
        entries = [int(name[2:]) for name in page.ids if name.startswith("e-")]
        assert entries == list(range(max(1, at - 39), at + 1))


def test_run_as_of_its_newest_entry_equals_the_present(log: Decklog, sample: Browser) -> None:
    newest = log.overview.run("commas").entries
    now, then = (build_moment(log.overview.run_view("commas", at=at)) for at in (None, str(newest)))
    same = ("goal", "word", "seq", "tasks", "cost", "calls", "unpriced", "waiting", "moment", "planned")
    assert [getattr(now, name) for name in same] == [getattr(then, name) for name in same]


@every("at", ["0", "1000", "999999999"])
def test_missing_entry_is_not_found(sample: Browser, at: str) -> None:
    assert sample.get(f"/runs/commas/overview?at={at}").status == 404


@every("at", ["", "x", "-1", "1.5", "१", "9" * 40])
def test_invalid_entry_number_shows_the_present(sample: Browser, at: str) -> None:
    assert "AS OF" not in read(sample, f"/runs/commas/overview?at={at}").text


def test_entries_are_filtered_by_kind_at_any_entry(log: Decklog, sample: Browser) -> None:
    for at in (None, 40, 20):
        page = sample.get("/runs/commas/tools.json" + (f"?at={at}" if at else ""))
        found = [entry["seq"] for entry in page.data["data"]["entries"]]
        every = [entry.seq for entry in log.journal.find("commas", kind="tool", limit=100)]
        assert found == [seq for seq in every if at is None or seq <= at]


def test_rows_after_an_entry_come_once_and_in_order(log: Decklog, sample: Browser) -> None:
    newest = log.overview.run("commas").entries
    for after in (0, 1, newest - 1, newest):
        page = read(sample, f"/runs/commas/rows?after={after}")
        assert [int(name[2:]) for name in page.ids if name.startswith("e-")] == list(range(after + 1, newest + 1))


def test_long_gap_shows_the_newest_rows_and_how_many_are_missing(log: Decklog, browser: Browser) -> None:
    log.runs.start("x", run_id="x")
    log.journal.append_many([{"stream": "x", "body": "y", "kind": "event"} for _ in range(1300)])
    page = read(browser, "/runs/x/rows?after=1")
    entries = [int(name[2:]) for name in page.ids if name.startswith("e-")]
    assert entries == list(range(1102, 1302))
    assert "1,100 entries while you were away" in page.text


@pytest.mark.slow
def test_a_journal_is_read_page_by_page(log: Decklog, browser: Browser) -> None:
    log.runs.start("x", run_id="x")
    log.journal.append_many([{"stream": "x", "body": "y", "kind": "event"} for _ in range(450)])
    url, entries = "/runs/x/journal", list[int]()
    while True:
        page = read(browser, url)
        entries = [int(name[2:]) for name in page.ids if name.startswith("e-")] + entries
        older = [value for tag, name, value in page.attributes if tag == "a" and name == "href" and "before=" in (value or "")]
        if not older:
            break
        url = html.unescape(older[0] or "")
    assert entries == list(range(1, 452))


def test_runs_are_read_page_by_page_and_by_status(log: Decklog, clock: ManualClock, browser: Browser) -> None:
    for number in range(60):
        log.runs.start(f"goal {number}", run_id=f"r{number:02}")
        clock.advance(seconds=1)
    log.runs.finish("r07", summary="x")
    first = browser.get("/runs.json").data
    second = browser.get(f"/runs.json?after={first['next']}").data
    assert [len(first["data"]), len(second["data"]), second["next"]] == [50, 10, None]
    assert [run["id"] for run in browser.get("/runs.json?status=done").data["data"]] == ["r07"]
    assert browser.get("/runs?status=busy").status == 400
    assert "No run is “failed”" in read(browser, "/runs?status=failed").text


@pytest.mark.parametrize("run_id", ["a/b", "a b".replace(" ", "%"), "x.json", "journal", "ü", "..x", "a?b", "a#b", "'\"<x>"])
def test_run_with_any_name_is_found(log: Decklog, browser: Browser, run_id: str) -> None:
    log.runs.start("goal", run_id=run_id)
    page = read(browser, "/runs")
    links = [
        value for tag, name, value in page.attributes if (tag, name) == ("a", "href") and (value or "").endswith("/overview")
    ]
    assert len(links) == 1
    assert browser.get(links[0]).status == 200
    assert browser.get(f"{links[0]}.json").data["data"]["run"]["id"] == run_id


def test_terminal_output_is_shown_as_text(log: Decklog, run_id: str) -> None:
    bar = "\r".join(f"{percent} %" for percent in range(101))
    entry = log.journal.append(run_id, f"\x1b[31mred\x1b[0m\n{bar}\r\nend")
    assert build_row(entry).text == "red\n100 %\nend"
    long = build_row(log.journal.append(run_id, "x" * (LONGEST + 7)))
    assert (len(long.text), long.rest) == (LONGEST, 7)


def test_small_changes_are_folded_and_none_is_left_out(log: Decklog, sample: Browser) -> None:
    entries = list(log.journal.find("commas", oldest_first=True, limit=200))
    parts = fold_entries(entries)
    assert [row.seq for _, rows in parts for row in rows] == [entry.seq for entry in entries]
    assert any(is_folded for is_folded, _ in parts)
    assert not any(row.kind != "change" for is_folded, rows in parts if is_folded for row in rows)


def test_subject_of_a_decision_shows_invisible_characters() -> None:
    assert shown_lines("rm -rf /tmp/\u202ecod\u200b.exe\x1b[2K") == ["rm -rf /tmp/⟨U+202E⟩cod⟨U+200B⟩.exe⟨U+001B⟩[2K"]
    assert shown_lines('{"b":1,"a":[2]}') == ["{", '  "b": 1,', '  "a": [', "    2", "  ]", "}"]
    assert shown_lines("a\tb\n") == ["a    b"]


def test_figures_of_a_page(clock: ManualClock) -> None:
    start = clock.now()
    assert [length(start, start + timedelta(minutes=minutes)) for minutes in (0, 41, 75, 2 * 24 * 60)] == [
        "0 s",
        "41 min",
        "1 h 15 min",
        "2 d",
    ]
    assert bars([0, 1, 12]) == "M4 12V10M7 12V0"
    assert bars([]) == ""


@pytest.mark.parametrize(
    ("problem", "status"), [(NotFound("x"), 404), (Invalid("x"), 400), (Damaged("at /home/x/log.db"), 503), (KeyError("x"), 500)]
)
def test_error_has_a_status_and_no_path(problem: Exception, status: int) -> None:
    assert http_status(problem) == status
    assert "/home" not in str(error_envelope(problem))
    assert TITLES[status]


def test_missing_page_shows_the_reason(sample: Browser) -> None:
    answer = sample.get("/runs/nothing/overview")
    assert answer.status == 404
    text = Read(answer.text).text
    assert "there is no run" in text
    # What waits is still counted in the bar.
    assert "Inbox 1 decision waits" in text
    assert sample.get("/runs/nothing/overview.json").data["error"]["code"] == "not_found"
    assert sample.get("/nowhere").status == 404
    assert sample.get("/nowhere.json").data["ok"] is False


def test_static_files_are_immutable(browser: Browser) -> None:
    for name, content in assets().items():
        answer = browser.get(f"/static/{edition()}/{name}")
        assert (answer.status, answer.body) == (200, content)
        assert "immutable" in answer.headers["cache-control"]
    assert browser.get("/static/0000000000000000/page.js").status == 404
    for odd in ("../site.py", "vendor/../../site.py", "nothing.js", "vendor", ""):
        assert browser.get(f"/static/{edition()}/{odd}").status == 404
    assert browser.get("/favicon.ico").headers["content-type"] == "image/svg+xml"


def test_every_kind_of_answer_is_under_the_same_policy(sample: Browser) -> None:
    static = f"/static/{edition()}/page.js"
    urls = (
        "/now",
        "/now.json",
        static,
        "/static/0/page.js",
        "/favicon.ico",
        "/workflow.svg",
        "/login",
        "/nowhere",
        "/nowhere.json",
    )
    found = [sample.get(url) for url in (*urls, "/nowhere.json", "/runs/nothing/overview", "/runs/commas", "/search?q=since:x")]
    found += [
        sample.post("/now", {}),
        sample.post("/logout", {"token": "x"}),
        sample.request("GET", "/", [("host", "x.example")]),
    ]
    assert {answer.status for answer in found} >= {200, 303, 403, 404, 405, 421}
    for answer in found:
        assert HEADERS.items() <= answer.headers.items(), answer.status
        assert len({name for name, _ in answer.pairs}) == len(answer.pairs), answer.status
        assert not any(name.startswith("access-control") for name, _ in answer.pairs)


@pytest.mark.slow
def test_pages_are_not_cached(sample: Browser) -> None:
    for url in (*SHOWN, "/now.json", "/login", "/nowhere"):
        assert sample.get(url).headers["cache-control"] == "no-store"


def test_failed_page_shows_no_path_statement_or_setting(log: Decklog, sample: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECKLOG_CANARY", "canary-of-the-environment")
    log.db.write(lambda: log.db.count("alter table lessons rename to lessons_elsewhere", {}))
    for place in ("/memory", "/memory.json"):
        answer = sample.get(place)
        assert answer.status >= 400, place
        for word in (log.db.target, "select", "lessons", "Traceback", "canary-of-the-environment", ".py"):
            assert word not in answer.text.lower(), (place, word)


def test_static_files_are_compressed_for_browsers_that_take_it(browser: Browser) -> None:
    plain, packed = (browser.get(asset("page.js"), accept_encoding=coding) for coding in ("identity", "gzip, br"))
    assert "content-encoding" not in plain.headers
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "accept-encoding")
    assert gzip.decompress(packed.body) == plain.body == assets()["page.js"]
    assert len(packed.body) < len(plain.body) / 2
    # A page has the tokens of its forms, and texts of others next to them.
    assert "content-encoding" not in browser.get("/now", accept_encoding="gzip").headers
