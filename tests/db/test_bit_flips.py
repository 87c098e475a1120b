from pathlib import Path

import pytest

from tests.db.bit_flips import flips

# The same bits every time; `python -m tests.db.bit_flips` flips ten thousand.
TIMES = 24


@pytest.mark.slow
def test_a_flipped_bit_that_changes_content_is_found(tmp_path: Path) -> None:
    outcomes = [(place, bit, what) for place, bit, what in flips(tmp_path, seed=5, times=TIMES)]
    assert [one for one in outcomes if one[2] == "missed"] == []
    assert sum(what == "found" for _, _, what in outcomes) >= TIMES // 12, "most pages of a young log are nearly empty"
