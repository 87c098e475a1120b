"""Lists and pages show titles, names and questions whole, so their lengths are bounded."""

from collections.abc import Callable

import pytest

from decklog import Decklog
from decklog.core.errors import TooLarge
from decklog.stores.fields import LONGEST

LONG = "x" * 1_000_000

# Each way to write a title, a name or another text that lists show whole.
WAYS: dict[str, Callable[[Decklog, str], object]] = {
    "tasks.add": lambda log, run: log.tasks.add(run, LONG),
    "tasks.add_many": lambda log, run: log.tasks.add_many(run, [{"title": "a"}, {"title": LONG}]),
    "tasks.edit": lambda log, run: log.tasks.edit(log.tasks.add(run, "a").id, title=LONG, reason="why"),
    "runs.start": lambda log, _: log.runs.start(LONG),
    "groups.add": lambda log, run: log.groups.add(run, "g", name=LONG),
    "approvals.ask": lambda log, run: log.approvals.ask(run, LONG, by="dev", about="x"),
    "schedules.add": lambda log, run: log.schedules.add(run, "nightly", "every day 06:00", title=LONG),
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_title_of_a_million_characters_is_refused(log: Decklog, run_id: str, way: str) -> None:
    with pytest.raises(TooLarge, match="1,000,000 characters"):
        WAYS[way](log, run_id)
    assert log.journal.verify().ok


def test_title_of_just_the_longest_length_is_kept(log: Decklog, run_id: str) -> None:
    title = "x" * LONGEST["title"]
    assert log.tasks.get(log.tasks.add(run_id, title).id).title == title
