"""The dashboard keeps the text index up to date while it runs."""

import asyncio

import pytest

from decklog import Decklog
from decklog.web import indexing
from tests.conftest import on_both
from tests.web.client import Browser


@on_both
def test_new_entries_are_indexed_while_the_dashboard_runs(log: Decklog, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "_IDLE_SECONDS", 0.01)
    log.journal.append_many([{"stream": run_id, "body": "a word"} for _ in range(1200)])

    async def until_indexed() -> None:
        task = asyncio.create_task(indexing.keep_indexed(log))
        while log.db.read(lambda: log.db.unindexed(None)):
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(asyncio.wait_for(until_indexed(), 60))
    assert not log.db.read(lambda: log.db.unindexed(None))


@pytest.mark.slow
@on_both
def test_search_shows_partial_results_while_a_large_import_is_indexed(log: Decklog, run_id: str, browser: Browser) -> None:
    log.journal.append_many([{"stream": run_id, "body": f"needle {number}"} for number in range(4000)])
    page = browser.get("/search?q=needle+3999").text
    assert "Partial results" in page
    assert "Search again" in page
    assert '<ol class="hits">' in page
