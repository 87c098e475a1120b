import re
import stat
from html.parser import HTMLParser
from pathlib import Path

import pytest

from decklog import Conflict, Decklog, ManualClock
from decklog.errors import NotFound
from decklog.transfer.report.page import write_page
from tests.transfer.conftest import fill

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


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
    assert {"svg", "rect", "table"} <= reader.tags
    assert "3.0 min" in reader.text
    assert "body <script>" in reader.text


def test_the_file_is_private_and_not_overwritten_unasked(log: Decklog, clock: ManualClock, tmp_path: Path) -> None:
    fill(log, clock)
    path = tmp_path / "page.html"
    write_page(log, "run_1", str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(Conflict, match="there already"):
        write_page(log, "run_1", str(path))
    assert write_page(log, "run_1", str(path), overwrite=True)["bytes"] == path.stat().st_size
    with pytest.raises(NotFound):
        write_page(log, "nowhere", str(tmp_path / "no.html"))
    assert not (tmp_path / "no.html").exists()
