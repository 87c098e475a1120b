"""The dashboard keeps the text index up to date while it runs."""

import asyncio

import pytest

from decklog import Decklog
from decklog.db.search.marks import MOST_IN_BACKGROUND
from decklog.web import indexing
from tests.conftest import on_both
from tests.web.asking import Browser


@on_both
def test_new_entries_are_indexed_while_the_dashboard_runs(log: Decklog, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "_IDLE_SECONDS", 0.01)
    log.journal.append_many([{"stream": run_id, "body": "a word"} for _ in range(1200)])

    async def until_indexed() -> None:
        task = asyncio.create_task(indexing.keep_indexed(log))
        while log.db.read(log.db.not_indexed):
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(asyncio.wait_for(until_indexed(), 60))
    assert log.db.read(lambda: log.db.is_search_prepared(None))


@on_both
def test_search_shows_partial_results_while_a_large_import_is_indexed(log: Decklog, run_id: str, browser: Browser) -> None:
    log.journal.append_many([{"stream": run_id, "body": f"needle {number}"} for number in range(4000)])
    before = log.db.read(log.db.not_indexed)
    page = browser.get("/search?q=needle").text
    left = log.db.read(log.db.not_indexed)
    # A search waits for a few entries only: the rest is left to the background.
    assert 0 < before - left <= MOST_IN_BACKGROUND
    assert "Partial results" in page
    assert "Search again" in page
    assert '<ol class="hits">' in page
