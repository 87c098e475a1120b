"""Read all pages of a verb."""

from collections.abc import Callable
from typing import Any


def all_pages(read: Callable[[str | None], Any]) -> list[Any]:
    """Collect the items of all pages; `read` takes the cursor of a page."""
    found, after = [], None
    while True:
        page = read(after)
        found += page
        if (after := page.next) is None:
            return found
