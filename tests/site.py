"""Checks a built site: nothing in it is loaded from another host, and nothing leads nowhere. `python -m tests.site FOLDER`."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads, by tag.
_LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data", "embed": "src"}
_IN_STYLES = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class _Page(HTMLParser):
    """Collects what a page loads, where it leads, and what in it can be led to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.names.add(given.get("id", ""))
        if _LOADS.get(tag) in given:
            self.loaded.append(given[_LOADS[tag]])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])


def problems(folder: Path) -> list[str]:
    """List what is wrong with a site."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    found = [
        f"{path.relative_to(folder)} loads {place}" for path, page in pages.items() for place in page.loaded if _is_outside(place)
    ]
    for path in sorted(folder.rglob("*.css")):
        places = [first or second for first, second in _IN_STYLES.findall(path.read_text(encoding="utf-8"))]
        found += [f"{path.relative_to(folder)} loads {place}" for place in places if _is_outside(place)]
    # The page for missing addresses has links from the top of the site.
    mine = {path: page for path, page in pages.items() if path.name != "404.html"}
    found += [
        f"{path.relative_to(folder)} leads nowhere: {link}"
        for path, page in mine.items()
        for link in page.links
        if _is_lost(path, link, pages)
    ]
    return found if pages else ["there is no page"]


def _is_outside(place: str) -> bool:
    parts = urlsplit(place)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def _is_lost(path: Path, link: str, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
    page = pages.get(target)
    return not target.exists() or (page is not None and bool(parts.fragment) and unquote(parts.fragment) not in page.names)


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]).resolve())
    sys.stdout.write("".join(f"{line}\n" for line in wrong) or "The site is whole, and loads nothing from elsewhere.\n")
    sys.exit(bool(wrong))
