"""Text from agents is escaped: a page has no other elements than one of plain words."""

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from decklog import Decklog, ManualClock
from decklog.web.rendering import STATIC, assets
from tests.web.client import Browser, make_browser
from tests.web.payloads import PAYLOADS, fill
from tests.web.test_pages import Read

PLACES = (
    "/now",
    "/runs",
    "/inbox",
    *(f"/runs/r/{tab}" for tab in ("overview", "journal", "tasks", "reasoning", "tools", "rows")),
)
TEMPLATES = Path(str(STATIC)).parent / "templates"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    yield from dashboard(tmp_path_factory.mktemp("hostile") / "log.db", PAYLOADS)


@pytest.fixture(scope="module")
def pages(hostile: Browser) -> dict[str, str]:
    """Every page of a log that is full of them, by its address."""
    return {place: hostile.get(place).text for place in places(hostile)}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, str]]:
    """The elements and attributes that the same pages have of plain words."""
    words = tuple(f"text {number}" for number in range(9))
    # So few of them need no second page.
    found = {("a", "rel")}
    for browser in dashboard(tmp_path_factory.mktemp("plain") / "log.db", words):
        found |= set().union(*(shape(browser.get(place).text) for place in places(browser)))
    return found


def dashboard(path: Path, texts: tuple[str, ...]) -> Iterator[Browser]:
    with Decklog.open(path, clock=ManualClock(), durability="relaxed") as log:
        fill(log, texts)
        browser = make_browser(log)
        with browser.runner:
            yield browser.log_in()


def shape(text: str) -> set[tuple[str, str]]:
    return {(tag, name) for tag, name, _ in Read(text).attributes}


def places(browser: Browser) -> list[str]:
    kinds = {item.kind.value: item.id for item in browser.site.log.overview.waiting(limit=200)}
    items = [f"/inbox/{kind}/{item_id}" for kind, item_id in kinds.items()]
    return [*PLACES, *items, "/inbox/approval/a01", "/runs/r/overview?at=50", "/runs/r/tasks?at=60", "/runs/r/entries/50"]


@pytest.mark.slow
def test_no_text_makes_an_element_an_attribute_or_an_address(pages: dict[str, str], known: set[tuple[str, str]]) -> None:
    for place, text in pages.items():
        assert "Internal error" not in text
        assert shape(text) <= known, place
        targets = [value for _, name, value in Read(text).attributes if name in ("href", "src", "action") and value]
        assert [target for target in targets if not target.startswith(("/", "#")) or target.startswith("//")] == []


@pytest.mark.slow
def test_no_character_that_turns_or_hides_text_reaches_a_page(pages: dict[str, str]) -> None:
    hidden = re.compile("[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
    assert [place for place, text in pages.items() if hidden.search(text)] == []


@pytest.mark.slow
def test_json_is_harmless_if_read_as_html(hostile: Browser) -> None:
    for place in (*(f"{place}.json" for place in PLACES), "/runs.json?as=family"):
        answer = hostile.get(place)
        assert not set(answer.text) & set("<>&")
        assert isinstance(answer.data, dict)
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_templates_have_no_unescaped_value_inline_style_or_script() -> None:
    for template in TEMPLATES.rglob("*.html"):
        text = template.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe|autoescape|Markup|\bstyle=|\son\w+=|<script>|https?:", text), template.name


def test_vendored_files_have_their_hash_and_licence() -> None:
    for one in json.loads((STATIC / "vendor" / "vendor.json").read_text(encoding="utf-8")):
        assert sha256((STATIC / "vendor" / one["file"]).read_bytes()).hexdigest() == one["sha256"]
        assert (STATIC / "vendor" / one["licence_file"]).is_file()
    ours = [name for name in assets() if name.endswith(".js") and "/" not in name]
    assert sum(len(assets()[name]) for name in ours) <= 40 * 1024
    assert not any(
        re.search(rb"innerHTML|outerHTML|document\.write|\beval\(|new Function|https?://", assets()[name]) for name in ours
    )
