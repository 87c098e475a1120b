"""Lists that come in pages, read to their end."""

from typing import TYPE_CHECKING

from decklog.db.where import MAX_PAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from decklog.records.record import Page


def every(find: "Callable[..., Page[Any]]") -> "Iterator[Any]":
    """Yield every record of a list, page after page."""
    after = None
    while True:
        page = find(limit=MAX_PAGE, after=after)
        yield from page
        after = page.next
        if after is None:
            return
