"""Entries can be read: rows unfold, every entry has its own page, and tool calls are a table."""

import html
import re

import pytest

from decklog import Decklog
from decklog.web.pages.entries import LONGEST, SHORT
from tests.conftest import on_both
from tests.web.client import Browser
from tests.web.test_pages import Read, read

OUTPUT = "\n".join(f"line {number} of the output" for number in range(400))


def run_tool(log: Decklog, run_id: str, command: str = "pytest -q", code: int = 1, output: str = OUTPUT) -> int:
    payload = {"tool": "run", "arguments": {"command": command}, "duration_ms": 8200}
    result = {"exit_code": code, "output": output}
    return log.journal.append(run_id, kind="tool", subtype="run", agent="dev-1", payload={**payload, "result": result}).seq


def line(text: str, seq: int) -> str:
    return text[text.index(f'<li id="e-{seq}"') :].partition("</li>")[0]


@on_both
def test_row_of_a_tool_call_unfolds_command_exit_code_duration_and_output(log: Decklog, browser: Browser, run_id: str) -> None:
    seq = run_tool(log, run_id)
    row = line(browser.get(f"/runs/{run_id}/journal").text, seq)
    summary = Read(re.findall(r"<summary>(.*?)</summary>", row, re.DOTALL)[0]).text
    assert "pytest -q" in summary
    assert "exit 1 · 8.2 s" in summary
    assert "line 3 of the output" in row
    assert f'href="/runs/{run_id}/entries/{seq}">Show all' in row


@on_both
def test_entry_has_a_page_with_the_whole_output_and_links_to_its_neighbours(log: Decklog, browser: Browser, run_id: str) -> None:
    first, seq = run_tool(log, run_id, "ls", 0, ""), run_tool(log, run_id)
    last = log.journal.append(run_id, "done").seq
    text = browser.get(f"/runs/{run_id}/entries/{seq}").text
    page = Read(text).text
    assert "line 0 of the output" in page
    assert "line 399 of the output" in page
    assert "exit 1" in page
    assert f'rel="prev" id="previous" href="/runs/{run_id}/entries/{first}"' in text
    assert f'rel="next" id="following" href="/runs/{run_id}/entries/{last}"' in text
    assert 'data-copy="output"' in text
    assert 'rel="next"' not in browser.get(f"/runs/{run_id}/entries/{last}").text
    assert browser.get(f"/runs/{run_id}/entries/{last + 1}").status == 404
    assert browser.get(f"/runs/{run_id}/entries/{seq}.json").data["data"]["seq"] == seq


@on_both
def test_tools_are_a_table_with_call_and_result_in_one_line(log: Decklog, browser: Browser, run_id: str) -> None:
    call = {"tool": "Bash", "call": "c1", "arguments": {"command": "make test"}}
    seq = log.journal.append(run_id, "make test", kind="tool", subtype="call", agent="dev-1", payload=call).seq
    ended = {"call": "c1", "outcome": "failed", "exit_code": 2, "duration_ms": 1500}
    result = log.journal.append(run_id, "\n2 failed\nsee above", kind="tool", subtype="result", agent="dev-1", payload=ended).seq
    text = browser.get(f"/runs/{run_id}/tools").text
    assert re.findall(r'<tr id="e-(\d+)"', text) == [str(seq)]
    row = text[text.index(f'<tr id="e-{seq}"') :].partition("</tr>")[0]
    cells = [Read(cell).text for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)]
    assert cells[1:] == ["dev-1", "make test", "exit 2", "1.5 s", "2 failed"]
    # The page of the call has what the call wrote, which is in another entry.
    assert "see above" in Read(browser.get(f"/runs/{run_id}/entries/{seq}").text).text
    assert "see above" in Read(browser.get(f"/runs/{run_id}/entries/{result}").text).text


@pytest.mark.parametrize("text", ["x" * (SHORT + 1), "first\nsecond", "y" * (LONGEST + 5)])
def test_long_text_is_never_cut_without_a_link(log: Decklog, browser: Browser, run_id: str, text: str) -> None:
    seq = log.journal.append(run_id, text).seq
    row = line(browser.get(f"/runs/{run_id}/journal").text, seq)
    assert "<details>" in row
    assert f'href="/runs/{run_id}/entries/{seq}"' in row
    assert html.unescape(text) in Read(browser.get(f"/runs/{run_id}/entries/{seq}").text).words


def test_short_text_is_shown_whole_without_unfolding(log: Decklog, browser: Browser, run_id: str) -> None:
    seq = log.journal.append(run_id, "Commas are tokens").seq
    row = line(browser.get(f"/runs/{run_id}/journal").text, seq)
    assert "<details>" not in row
    assert "Commas are tokens" in row


def test_rows_of_the_journal_have_dates(log: Decklog, browser: Browser, run_id: str) -> None:
    entry = log.journal.append(run_id, "x")
    row = line(browser.get(f"/runs/{run_id}/journal").text, entry.seq)
    assert f"{entry.at.day} {entry.at:%b %H:%M:%S}</time>" in row


def test_entries_of_no_run_have_a_page_too(log: Decklog, browser: Browser) -> None:
    log.feedback.file("mo", "It deletes files", severity="critical")
    page = read(browser, "/search?q=deletes")
    [place] = {value for tag, name, value in page.attributes if (tag, name) == ("a", "href") and "/entries/" in (value or "")}
    assert "It deletes files" in read(browser, place or "").text


def test_what_a_tool_wrote_is_text_and_nothing_else(log: Decklog, browser: Browser, run_id: str) -> None:
    odd = "<script>alert(1)</script>\u202e"
    seq = run_tool(log, run_id, odd, 1, f"{odd}\n{odd}")
    for url in (f"/runs/{run_id}/journal", f"/runs/{run_id}/tools", f"/runs/{run_id}/entries/{seq}"):
        text = browser.get(url).text
        assert "<script>alert" not in text
        assert "\u202e" not in text
        assert "⟨U+202E⟩" in text


def test_conductor_is_named_without_its_machine_except_on_the_page_of_an_entry(
    log: Decklog, browser: Browser, run_id: str
) -> None:
    seq = log.journal.append(run_id, "begun", agent="conductor-host-b037e-2337-170125").seq
    assert '<span class="who">conductor</span>' in line(browser.get(f"/runs/{run_id}/journal").text, seq)
    assert "conductor-host-b037e-2337-170125" in browser.get(f"/runs/{run_id}/entries/{seq}").text
