"""Reading entries in a real browser: unfold a row, open its page, go on by keyboard."""

from pathlib import Path

import pytest

from decklog import Decklog
from tests.browser.conftest import MISSING, Tab

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

OUTPUT = "\n".join(f"line {number}" for number in range(1500))


@pytest.fixture
def seq(path: Path) -> int:
    payload = {
        "tool": "run",
        "arguments": {"command": "pytest -q"},
        "result": {"exit_code": 1, "output": OUTPUT},
        "duration_ms": 900,
    }
    with Decklog.open(path) as log:
        return log.journal.append("commas", kind="tool", subtype="run", agent="ada", payload=payload).seq


def test_row_unfolds_to_at_most_20_rem_and_leads_to_the_whole_output(tab: Tab, seq: int) -> None:
    tab.go("/runs/commas/journal")
    row = tab.page.locator(f"#e-{seq}")
    assert not row.locator(".output").is_visible()
    row.locator("summary").click()
    assert row.locator(".output").bounding_box()["height"] <= 322
    row.locator("text=Show all").click()
    tab.page.wait_for_url(f"**/runs/commas/entries/{seq}")
    assert "line 1499" in tab.page.inner_text("#output")
    tab.check()


def test_row_stays_unfolded_while_the_page_lives(tab: Tab, path: Path, seq: int) -> None:
    tab.go("/runs/commas/overview").until_live()
    tab.page.click(f"#e-{seq} summary")
    with Decklog.open(path) as log:
        newest = log.journal.append("commas", "hello").seq
    tab.page.wait_for_selector(f"#e-{newest}", state="attached")
    tab.page.wait_for_timeout(300)
    assert tab.page.locator(f"#e-{seq} .output").is_visible()
    tab.check()


def test_keys_go_to_the_entry_before_and_after(tab: Tab, seq: int) -> None:
    tab.go(f"/runs/commas/entries/{seq}")
    tab.page.keyboard.press("[")
    tab.page.wait_for_url(f"**/entries/{seq - 1}")
    tab.page.keyboard.press("]")
    tab.page.wait_for_url(f"**/entries/{seq}")
    tab.check()
