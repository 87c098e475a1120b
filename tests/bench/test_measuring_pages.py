"""What a commit writes is counted, not timed: it holds on any machine."""

from pathlib import Path

import pytest
from benchmarks.pages import floor_pages, our_pages


@pytest.mark.slow
def test_a_change_writes_few_pages_more_than_the_floor(tmp_path: Path) -> None:
    insert, claim, finish = floor_pages(tmp_path)
    assert 1 <= finish < claim < insert < 3
    ours = our_pages(tmp_path)
    assert ours["append"] < 2.6
    assert ours["claim"] < 7
    assert ours["finish"] < 5.5
