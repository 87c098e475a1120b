"""Pages about the origin of lines, in the repository that the dashboard was started in."""

from pathlib import Path
from urllib.parse import urlencode

import pytest

from decklog import Decklog
from tests.provenance.sessions import RecordedSession, record_text
from tests.provenance.text_repositories import TextFolder
from tests.web.client import Browser
from tests.web.payloads import PAYLOADS
from tests.web.test_every_column import HIDDEN
from tests.web.test_text_of_agents import shape


@pytest.fixture
def folder(log: Decklog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TextFolder:
    found = TextFolder(tmp_path / "repo")
    found.commit("First", a="one\ntwo\nthree\n")
    session = RecordedSession(log, found, "claude", "s1")
    session.prompt("Count in <b>German</b>")
    session.edit("a", "one\nzwei <i>\nthree\n")
    found.commit("By the <agent>")
    record_text(log, found, "a", "one\nzwei <i>\n3\n", kind="person", person="Bo <bo@example.org>")
    found.commit("By Bo")
    monkeypatch.chdir(found.folder)
    return found


def test_commits_are_listed_with_the_share_of_each_origin(folder: TextFolder, browser: Browser) -> None:
    page = browser.get("/lines").text
    assert "By the &lt;agent&gt;" in page
    assert 'class="share o-agent">agent 1' in page
    commits = browser.get("/lines.json").data["data"]["commits"]
    assert [[share["kind"] for share in one["shares"]] for one in commits] == [["person"], ["agent"], ["unknown"]]


def test_commit_has_its_sessions_files_and_ranges(folder: TextFolder, browser: Browser) -> None:
    page = browser.get("/lines/commit?rev=HEAD~1").text
    assert '<a href="/runs/claude-s1/overview">claude:s1</a>' in page
    assert 'class="o-agent"' in page
    assert browser.get("/lines/commit.json?rev=HEAD~1").data["data"]["lines"]["agent"] == 1


def test_file_has_a_gutter_by_origin_and_links_to_runs(folder: TextFolder, browser: Browser) -> None:
    page = browser.get("/lines/file?path=a").text
    assert '<tr id="L2" class="o-agent">' in page
    assert '<tr id="L3" class="o-person">' in page
    assert "zwei &lt;i&gt;" in page
    assert '<a href="/runs/claude-s1/overview">agent claude:s1</a>' in page
    lines = browser.get("/lines/file.json?path=a").data["data"]["lines"]
    assert [one["kind"] for one in lines] == ["unknown", "agent", "person"]


def test_long_file_has_pages(folder: TextFolder, browser: Browser) -> None:
    folder.commit("Long", b="".join(f"{number}\n" for number in range(1, 701)))
    page = browser.get("/lines/file?path=b").text
    assert 'id="L500"' in page
    assert 'id="L501"' not in page
    assert "/lines/file?path=b&amp;from=501" in page
    assert 'id="L700"' in browser.get("/lines/file?path=b&from=501").text


def test_why_links_to_the_entries_behind_a_line(folder: TextFolder, browser: Browser) -> None:
    page = browser.get("/lines/why?path=a&line=2").text
    assert "Count in &lt;b&gt;German&lt;/b&gt;" in page
    assert 'href="/search?q=claude-s1%3A' in page


def test_file_that_is_not_in_the_repository_is_not_found(folder: TextFolder, browser: Browser) -> None:
    folder.put("secret", "not committed\n")
    for address in ("/lines/file?path=nowhere", "/lines/file?path=secret", "/lines/file?path=../../etc/passwd"):
        assert browser.get(address).status == 404, address
    assert browser.get("/lines/commit?rev=nowhere").status == 404
    assert browser.get("/lines/file?path=a&rev=--output%3Dx").status == 400
    assert browser.get("/lines/file").status == 400


def test_dashboard_outside_of_a_repository_answers_404(
    log: Decklog, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = browser.get("/lines")
    assert (answer.status, "not started in a git repository" in answer.text, str(tmp_path) in answer.text) == (404, True, False)


@pytest.mark.slow
def test_what_an_agent_commits_is_text_on_every_page(folder: TextFolder, log: Decklog, browser: Browser) -> None:
    plain, odd = ["text"] * 3, [text for text in PAYLOADS if text.isprintable()]
    known: set[tuple[str, str]] = set()
    for number, texts in enumerate((plain, odd)):
        # A name of a file holds no slash and has a length; the subject of a commit is one line.
        name = "".join(texts).replace("/", "|")[:200]
        session = RecordedSession(log, folder, "claude", f"p{number}")
        session.prompt(" ".join(texts))
        content = "\n".join(texts) + "\n"
        folder.put(name, "")
        session.edit(name, content)
        folder.commit(" ".join(texts))
        query = urlencode({"path": name})
        for place in ("/lines", "/lines/commit?rev=HEAD", f"/lines/file?{query}", f"/lines/why?{query}&line=1"):
            answer = browser.get(place)
            assert answer.status == 200, (place, answer.text)
            known = known if number else known | shape(answer.text)
            assert shape(answer.text) <= known, (place, shape(answer.text) - known)
            assert not HIDDEN.search(answer.text)
