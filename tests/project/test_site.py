"""The documents hang together without the program that makes a site of them: `make site` needs it, and no test does."""

import re
import runpy
import xml.etree.ElementTree
from pathlib import Path

import pyte
import pytest
import yaml

import decklog
from tests.db.processes import ROOT
from tests.pictures.terminal import picture
from tests.project.documents import pages
from tests.site import problems

DOCS = ROOT / "docs"
SITE = yaml.safe_load((ROOT / "site/mkdocs.yml").read_text(encoding="utf-8"))
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def listed(navigation: object) -> list[str]:
    """Return every page of the navigation, in order."""
    if isinstance(navigation, str):
        return [navigation]
    items = navigation.values() if isinstance(navigation, dict) else navigation
    assert not isinstance(items, (str, bytes))
    return [name for item in items for name in listed(item)]


def test_every_page_is_in_the_navigation_once() -> None:
    assert sorted(listed(SITE["nav"])) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
    parts = ["Start", "Tutorials", "How-to", "Reference", "Explanation", "Contributors"]
    assert [next(iter(part)) for part in SITE["nav"]] == parts


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as on GitHub and on the site."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_leads_nowhere(page: Path) -> None:
    lost = []
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        place, _, name = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if "://" not in link and (not target.exists() or (name and name not in anchors(target))):
            lost.append(link)
    assert lost == []


def test_check_of_the_site_finds_foreign_hosts_and_dead_links(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<link href="//cdn.example/x.css"><img src="b.png"><a href="b.html#there"></a><a href="c.html">'
    )
    (tmp_path / "b.html").write_text('<p id="here"><a href="https://example.org">fine</a><a href="#here"></a>')
    (tmp_path / "s.css").write_text("@import 'https://fonts.example/f.css'; p { background: url(data:image/png;base64,x) }")
    assert problems(tmp_path) == [
        "a.html loads //cdn.example/x.css",
        "s.css loads https://fonts.example/f.css",
        "a.html leads nowhere: b.html#there",
        "a.html leads nowhere: c.html",
    ]


def test_the_site_shows_the_version_and_searches_without_a_server(tmp_path: Path) -> None:
    hooks = runpy.run_path(str(ROOT / "site/hooks.py"))
    assert hooks["on_config"]({"extra": {}})["extra"]["version"] == decklog.__version__
    (tmp_path / "search").mkdir()
    (tmp_path / "search/search_index.json").write_text('{"docs": []}', encoding="utf-8")
    hooks["on_post_build"]({"site_dir": str(tmp_path)})
    assert (tmp_path / "search/search_index.js").read_text(encoding="utf-8") == 'const searchIndex = {"docs": []};\n'
    page = (ROOT / "site/theme/main.html").read_text(encoding="utf-8")
    assert "search/search_index.js" in page
    assert "config.extra.version" in page


def test_the_theme_loads_nothing_from_another_host() -> None:
    for path in (ROOT / "site/theme").iterdir():
        assert "//" not in re.sub(r"<!.*?>", "", path.read_text(encoding="utf-8")), path.name


def test_screen_is_drawn_by_character_and_escapes_text() -> None:
    screen = pyte.Screen(30, 5)
    pyte.Stream(screen).feed("a  \x1b[32mdone\x1b[0m \x1b[2m<script>&\x1b[0m\r\n\r\nlast")
    rows = [[screen.buffer[line][column] for column in range(30)] for line in range(5)]
    drawn = xml.etree.ElementTree.fromstring(picture("decklog x", rows))
    texts = [(node.get("x"), node.text) for node in drawn.iter() if node.tag.endswith("text")]
    assert [text for _, text in texts] == ["$ decklog x", "a", "done", "<script>&", "last"]
    assert texts[2][0] == f"{18 + 3 * 8.4:.1f}"
    assert len({node.get("fill") for node in drawn.iter() if node.tag.endswith("text")}) == 3


@pytest.mark.parametrize("path", sorted((DOCS / "pictures").glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_is_whole_and_loads_nothing(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert xml.etree.ElementTree.fromstring(text).tag.endswith("svg")
    assert text.count("http") == 1  # the name of what SVG is
