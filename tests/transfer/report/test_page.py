import re
import stat
from html.parser import HTMLParser
from pathlib import Path

import pytest

from decklog import Conflict, Decklog, ManualClock
from decklog.core.errors import NotFound
from decklog.transfer.report.page import write_page
from tests.pictures import sample_log
from tests.transfer.conftest import fill

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"

# What an owner asks, and the page of the sample run answers.
TOLD = [
    "$14.09",
    "in 4 calls",
    "$14.09 of $25.00 (56 %)",
    "2 of 3criteria met",
    "12 of 12 tests of tests/test_commas.py pass",
    "Needs attention (1)May I push the branch trailing-commas? (bo)",
    "Blocked (1)Write it down: The style guide does not say how to write grammars",
    "It only reads more than before",
    "ada, expired",
    "$ pytest tests/test_lexer.py → exit 1 in 8.2 s",
    "bo spent $1.20 on claude-opus-5-5 (23,076 tokens)",
    "Done: “Change the lexer”: Commas are tokens",
    "ana answered granted: May the grammar be changed in a minor release?",
    "of bookkeeping up to here",
]


class Reader(HTMLParser):
    """Collects the tags, the attributes and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def page(log: Decklog, clock: ManualClock, tmp_path: Path) -> str:
    fill(log, clock)
    log.runs.start(f"goal {EVIL}", run_id="evil")
    log.tasks.add("evil", f"task {EVIL}", task_id="e")
    claimed = log.tasks.claim("evil", worker=f"w{EVIL}")
    clock.advance(minutes=3)
    assert claimed is not None
    claimed.finish(f"done {EVIL}")
    log.journal.append("evil", f"body {EVIL}", agent=EVIL, payload={EVIL: 1})
    write_page(log, "evil", str(tmp_path / "evil.html"))
    return (tmp_path / "evil.html").read_text()


def test_every_text_is_escaped_and_nothing_is_loaded_from_outside(page: str) -> None:
    reader = Reader(page)
    assert not reader.tags & {"script", "img", "iframe", "link", "object", "embed", "form", "a"}
    assert not any(name.startswith("on") or name in ("src", "href") for name in reader.attributes)
    assert not re.search(r"url\(|@import|https?://", page)
    assert reader.text.count("<script>alert(1)</script>") >= 5


def test_the_page_tells_the_run_its_tasks_its_time_and_whether_it_verifies(page: str) -> None:
    reader = Reader(page)
    assert "hash chain whole" in reader.text
    assert "Tasks (1)" in reader.text
    assert "table" in reader.tags
    assert 'class="bar done"' in page
    assert "3 min" in reader.text
    assert "body <script>" in reader.text


@pytest.fixture
def page_text(log: Decklog, clock: ManualClock, tmp_path: Path) -> str:
    """The text of a page of a run that has something of everything an owner asks about."""
    sample_log.write(log, clock)
    write_page(log, sample_log.RUN, str(tmp_path / "run.html"))
    return Reader((tmp_path / "run.html").read_text()).text


def test_an_owner_reads_what_it_cost_what_was_shown_who_said_yes_and_what_is_in_the_way(page_text: str) -> None:
    assert [said for said in TOLD if said not in page_text] == []


@pytest.mark.slow
def test_nobody_reads_json_or_a_table_of_the_database(page_text: str) -> None:
    assert '{"' not in page_text
    assert "microdollars" not in page_text


def test_the_file_is_private_and_not_overwritten_unasked(log: Decklog, clock: ManualClock, tmp_path: Path) -> None:
    fill(log, clock)
    path = tmp_path / "page.html"
    write_page(log, "run_1", str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(Conflict, match="exists already"):
        write_page(log, "run_1", str(path))
    assert write_page(log, "run_1", str(path), overwrite=True)["bytes"] == path.stat().st_size
    with pytest.raises(NotFound):
        write_page(log, "nowhere", str(tmp_path / "no.html"))
    assert not (tmp_path / "no.html").exists()
