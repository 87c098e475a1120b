"""Every screen in every state that it can be in: as data, with its command, empty, read-only, past, and in trouble."""

import html
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest

from decklog import Decklog
from decklog.web.application import PAGES
from decklog.web.pages import run
from decklog.web.site import command
from tests.pictures import sample_log, sample_parts
from tests.web.client import PASSWORD, Browser, logged_in
from tests.web.test_pages import Read, read

RUN_TABS = tuple(f"/runs/commas/{tab}" for tab in run.TABS)
# One address of every screen that the application has, by its route; rows are a part of one.
SCREENS = {
    "/now": "/now",
    "/runs": "/runs?status=running",
    "/inbox": "/inbox",
    "/inbox/{kind}/{id:path}": "/inbox/approval/{approval}",
    "/spend": "/spend?days=7&by=run",
    "/search": "/search?q=comma*",
    "/more": "/more",
    "/compare": "/compare?a=commas:20&b=commas",
    "/memory": "/memory?q=lexer",
    "/workflow": "/workflow",
    "/trust": "/trust",
    "/system": "/system",
    # In a repository of their own: tests/web/test_lines.py.
    **dict.fromkeys(("/lines", "/lines/commit", "/lines/file", "/lines/why"), ""),
    # Forms, the palette, views and work items: tests/web/test_actions.py, test_palette.py, test_views.py, test_work_items.py.
    **dict.fromkeys(("/act/{verb}/{id:path}", "/palette", "/views"), ""),
    **dict.fromkeys(("/runs/{run_id:path}/items/{item}", "/runs/{run_id:path}/changes"), ""),
    "/tasks": "/tasks?state=blocked",
    "/tasks/{task_id:path}/change": "/tasks/docs/change",
    "/tasks/{task_id:path}": "/tasks/lexer",
    "/reviews/{review_id:path}": "/reviews/{review}",
    "/runs/{run_id:path}/rows": "",
    "/runs/{run_id:path}/entries/{seq:int}": "/runs/commas/entries/20",
    "/runs/{run_id:path}/{tab:tab}": "/runs/commas/overview",
}


def addresses(log: Decklog) -> list[str]:
    assert SCREENS.keys() == PAGES.keys()
    (approval, *_), (review, *_) = log.approvals.find(state="open"), log.reviews.find(sample_parts.ITEMS)
    urls = [url.format(approval=approval.id, review=review.id) for url in SCREENS.values() if url]
    return [*urls, *RUN_TABS]


def forms(text: str) -> list[str]:
    """Find the forms that would change something in the log."""
    return [form for form in re.findall(r"<form[^>]*>", text) if "post" in form and not re.search("/logout|/system/", form)]


@pytest.fixture
def owned(log: Decklog, filled: Browser) -> Browser:
    log.trust.bind("ana", "cli", password=PASSWORD)
    return filled


@pytest.mark.slow
def test_every_screen_has_data_a_command_and_absolute_times(log: Decklog, owned: Browser) -> None:
    for url in addresses(log):
        page = read(owned, url)
        path, mark, query = url.partition("?")
        twin = f"{path}.json{mark}{query}"
        assert owned.get(twin).data.keys() == {"ok", "data", "next", "warnings"}, url
        assert ("a", "href", twin) in page.attributes, url
        text = owned.get(url).text
        assert re.search(r'id="command">decklog \S+', text), url
        times = re.findall(r"<time [^>]*>", text)
        assert [time for time in times if 'datetime="' not in time or " UTC" not in time] == [], url
        # A status word comes with its shape.
        assert [sign for sign in re.findall(r'class="s [^"]*">(.*?)</span>', text) if "<use" not in sign] == [], url


def test_tabs_of_a_run_name_commands_of_their_own(owned: Browser) -> None:
    commands = [re.findall(r'id="command">(.*?)</code>', owned.get(url).text)[0] for url in RUN_TABS]
    assert len(set(commands)) == len(commands)


@pytest.mark.slow
def test_every_tab_of_a_run_as_of_an_entry_is_static(owned: Browser) -> None:
    for url in RUN_TABS:
        text = owned.get(f"{url}?at=20").text
        assert "AS OF ENTRY 20" in text, url
        assert 'data-live="none"' in text, url
        assert forms(text) == [], url
        assert owned.get(f"{url}.json?at=20").status == 200, url


@pytest.mark.slow
def test_every_screen_of_a_read_only_log_is_marked_and_has_no_form(tmp_path: Path) -> None:
    path, clock = sample_log.made(tmp_path, datetime(2026, 3, 2, 9, tzinfo=UTC))
    with Decklog.open(path, clock=clock) as written:
        sample_parts.write(written, clock)
        written.trust.bind("ana", "cli", password=PASSWORD)
    with Decklog.open(path, read_only=True, clock=clock) as log, logged_in(log) as browser:
        for url in addresses(log):
            answer = browser.get(url)
            assert answer.status == 200, url
            assert ">read-only<" in answer.text, url
            assert forms(answer.text) == [], url
            assert not re.search("Approve…|Deny…|It happened…", answer.text), url


def test_tabs_of_an_empty_run_name_the_commands_that_fill_them(log: Decklog, browser: Browser) -> None:
    log.runs.start("New", run_id="commas")
    for url in RUN_TABS[1:]:
        main = re.findall(r'aria-label="Parts of the run".*</main>', browser.get(url).text, re.DOTALL)[0]
        assert "<code>decklog" in main or "decklog runs fork" in main or 'id="e-1"' in main, url


TROUBLE = {
    "/runs/x/overview": 404,
    "/tasks/x": 404,
    "/tasks/x/change": 404,
    "/inbox/approval/x": 404,
    "/inbox/effect/x": 404,
    "/reviews/x": 404,
    "/compare?a=x&b=y": 404,
    "/runs/commas/overview?at=99999": 404,
    "/nowhere": 404,
    "/runs?status=x": 400,
    "/tasks?state=x": 400,
    "/runs?after=x": 400,
    "/inbox?after=x": 400,
}


def test_error_has_a_page_and_json(owned: Browser) -> None:
    for url, status in TROUBLE.items():
        path, mark, query = url.partition("?")
        answer, data = owned.get(url), owned.get(f"{path}.json{mark}{query}")
        assert (answer.status, data.status, data.data["ok"]) == (status, status, False), url
        assert f"code {data.data['error']['code']}" in Read(answer.text).text, url
        assert 'href="/now"' in answer.text, url


@pytest.mark.parametrize("odd", ["x';touch${IFS}made#", "$(touch)", "`x`", "a&&b"])
def test_command_to_copy_is_quoted_for_the_shell(log: Decklog, browser: Browser, odd: str) -> None:
    log.runs.start("x", run_id=odd)
    for url in (f"/search?q={quote(odd)}", f"/memory?q={quote(odd)}", f"/runs/{quote(odd, safe='')}/journal"):
        copied = html.unescape(re.findall(r'id="command">(.*?)</code>', browser.get(url).text)[0])
        words = shlex.split(copied)
        assert words[-1] == odd, copied
        assert command(*words[1:]) == copied
