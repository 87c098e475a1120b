"""No swap of a file or directory for a link lets a tool out, whenever it happens."""

import pytest

from tests.guard.files.races import SHAPES, naive_escape, race


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_no_swap_shows_or_changes_a_byte_outside(shape: str) -> None:
    outcome = race(shape, 500)
    assert outcome.swaps >= 500
    assert outcome.reads + outcome.writes + outcome.refused > 0
    assert outcome.escapes == 0


@pytest.mark.slow
def test_the_race_is_one_that_checking_first_and_opening_later_loses() -> None:
    # On a busy machine the two may hardly meet.
    assert any(naive_escape(3000) for _ in range(30))
