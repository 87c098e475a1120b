import pytest

from decklog.figures import bar, dollars, sparkline


@pytest.mark.parametrize(
    ("microdollars", "said"),
    [
        (0, "$0.00"),
        (1, "$0.000001"),
        (42_000_000, "$42.00"),
        (1_500_000, "$1.50"),
        (1_234_500, "$1.2345"),
        (-3_000_000, "-$3.00"),
    ],
)
def test_money_is_written_exactly(microdollars: int, said: str) -> None:
    assert dollars(microdollars) == said


@pytest.mark.parametrize(
    ("percent", "drawn"),
    [(0, "░░░░░░░░░░"), (50, "█████░░░░░"), (100, "██████████"), (250, "██████████"), (-5, "░░░░░░░░░░")],
)
def test_a_bar_is_as_full_as_it_says(percent: float, drawn: str) -> None:
    assert bar(percent, 10) == drawn


def test_a_bar_never_shows_something_as_nothing_nor_nearly_full_as_full() -> None:
    assert bar(0.1, 10) == "█░░░░░░░░░"
    assert bar(99.9, 10) == "█████████░"
    with pytest.raises(ValueError, match="at least 1"):
        bar(50, 0)


def test_a_sparkline_has_one_character_for_each_value() -> None:
    assert sparkline([0, 1, 4, 8]) == " ▁▄█"
    assert sparkline([1, 1_000_000]) == "▁█"
    assert sparkline([0, 0]) == "  "
    assert sparkline([]) == ""
