"""How many statements a page takes: few, and no more of them when the log is large."""

import pytest

from decklog import Decklog
from tests.conftest import on_both
from tests.statements import statements
from tests.web.client import PASSWORD, Browser

# Each page with how many it may take.
MOST = {
    "/now": 8,
    "/runs": 6,
    "/runs?status=needs%20attention": 6,
    "/runs?as=family": 8,
    "/runs?as=family&status=needs%20attention": 8,
    "/inbox": 8,
    "/runs/commas/overview": 8,
    "/runs/commas/journal": 8,
    "/runs/commas/journal?before=30": 8,
    "/runs/commas/tasks": 8,
    "/runs/commas/reasoning": 8,
    "/runs/commas/tools": 8,
    "/runs/commas/overview?at=30": 8,
    "/runs/commas/tasks?as=table": 8,
    "/runs/commas/rows": 6,
    "/runs/commas/entries/20": 8,
    "/spend": 9,
    "/spend?days=90&by=run": 9,
    "/spend?since=2025-03-01&until=2025-12-31&by=run": 10,
    "/search": 1,
    "/search?q=comma*": 8,
    "/tasks": 3,
    "/tasks/lexer": 8,
    "/tasks/release": 8,
    "/more": 1,
    "/compare?a=commas:20&b=commas": 6,
    "/compare?a=commas:20&b=fast-tests:4": 6,
    "/memory": 4,
    "/memory?q=lexer+commas+token": 8,
    "/workflow": 5,
    "/trust": 6,
    "/system": 5,
}


def count_statements(log: Decklog, browser: Browser) -> dict[str, int]:
    counts = {}
    for url in MOST:
        browser.get(url)  # whoever looks first moves the marks that are far behind, and makes ready what a page needs
    for url in MOST:
        with statements(log) as executed:
            answer = browser.get(url)
        assert answer.status == 200, answer.text
        counts[url] = len(executed)
    return counts


@pytest.mark.slow
@on_both
def test_page_of_a_large_log_takes_few_statements(log: Decklog, sample: Browser) -> None:
    log.trust.bind("ana", "cli", password=PASSWORD)
    few = count_statements(log, sample)
    log.journal.append_many([{"stream": "commas", "body": "y", "kind": "event"} for _ in range(900)])
    log.tasks.add_many("commas", [{"title": f"one more {number}"} for number in range(100)])
    for number in range(30):
        run = log.runs.start(f"run {number}")
        log.approvals.ask(run.id, "May I?", by="dev-1", about=f"git push {number}")
    many = count_statements(log, sample)
    assert {url: (few[url], many[url]) for url, most in MOST.items() if max(few[url], many[url]) > most} == {}
