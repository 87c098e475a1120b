from datetime import timedelta

import pytest

from decklog.core.display import bar, counted, dollars, sized, sparkline, took


@pytest.mark.parametrize(
    ("microdollars", "text"),
    [
        (0, "$0.00"),
        (1, "$0.000001"),
        (42, "$0.000042"),
        (4_249, "$0.0042"),
        (9_999, "$0.01"),
        (10_000, "$0.01"),
        (16_966_884, "$16.97"),
        (994_999, "$0.99"),
        (995_000, "$1.00"),
        (1_234_567_890_000, "$1,234,567.89"),
        (-3_004_000, "-$3.00"),
    ],
)
def test_money_is_written_in_cents_and_never_rounded_to_zero(microdollars: int, text: str) -> None:
    assert dollars(microdollars) == text


@pytest.mark.parametrize(("microdollars", "text"), [(1_234_500, "$1.2345"), (16_966_884, "$16.966884"), (-3_000_000, "-$3.00")])
def test_money_is_written_exactly_where_a_cent_decides(microdollars: int, text: str) -> None:
    assert dollars(microdollars, exact=True) == text


def test_a_number_has_its_noun() -> None:
    assert [counted(1, "task"), counted(0, "task"), counted(1200, "entry", "entries")] == ["1 task", "0 tasks", "1,200 entries"]


@pytest.mark.parametrize(
    ("percent", "drawn"),
    [(0, "░░░░░░░░░░"), (50, "█████░░░░░"), (100, "██████████"), (250, "██████████"), (-5, "░░░░░░░░░░")],
)
def test_bar_shows_its_percentage(percent: float, drawn: str) -> None:
    assert bar(percent, 10) == drawn


def test_bar_is_empty_only_at_zero_and_full_only_at_hundred() -> None:
    assert bar(0.1, 10) == "█░░░░░░░░░"
    assert bar(99.9, 10) == "█████████░"
    with pytest.raises(ValueError, match="at least 1"):
        bar(50, 0)


def test_a_sparkline_has_one_character_for_each_value() -> None:
    assert sparkline([0, 1, 4, 8]) == "·▁▄█"
    assert sparkline([1, 1_000_000]) == "▁█"
    assert sparkline([0, 0]) == "··"
    assert sparkline([]) == ""


def test_duration_is_in_a_readable_unit() -> None:
    texts = [took(timedelta(seconds=seconds)) for seconds in (0.04, 119, 180, 6756, 12600, 180000)]
    assert texts == ["0.0 s", "119.0 s", "3 min", "113 min", "3.5 h", "2.1 days"]


def test_a_size_has_two_digits_or_is_whole() -> None:
    sizes = (0, 640, 999, 1000, 1_277_952, 9_949_999, 9_960_000, 999_600_000, 42 * 10**9, 5 * 10**15)
    texts = ["0 bytes", "640 bytes", "999 bytes", "1.0 kB", "1.3 MB", "9.9 MB", "10 MB", "1.0 GB", "42 GB", "5000 TB"]
    assert [sized(size) for size in sizes] == texts
