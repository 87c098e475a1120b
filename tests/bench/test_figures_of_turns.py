"""Figures that were taken several times say how far they lie apart."""

import itertools
from pathlib import Path

import pytest
from benchmarks import measure
from benchmarks.figures import Figure, ratio_of, spread
from benchmarks.measure import in_slices, in_turns, renew, row, table


def test_a_figure_is_the_median_and_keeps_what_was_seen_through_sums() -> None:
    seconds = Figure([0.5, 0.25, 1.0])
    rate = 100 / seconds
    assert (seconds, rate, rate * 2) == (0.5, 200, 400)
    assert spread(rate) == (100, 400)
    assert spread(Figure([3.0])) is None
    assert spread(3.0) is None
    assert spread(Figure(range(1, 101))) == pytest.approx((25.25, 75.75))


def test_a_ratio_is_of_the_medians_and_its_spread_is_turn_by_turn() -> None:
    # Both were slow in the same turn: the ratio hardly moved.
    ratio = ratio_of(Figure([10, 100, 12]), Figure([20, 210, 24]))
    assert ratio == 12 / 24
    assert spread(ratio) == (pytest.approx(100 / 210), 0.5)
    assert spread(ratio_of(Figure([10, 12, 14]), 4.0)) == (2.5, 3.5)


def test_works_in_turns_and_in_slices_know_their_turns() -> None:
    given = itertools.count(1)
    [first, second] = in_turns(3, lambda: float(next(given)), lambda: 5.0)
    assert (first, spread(first), spread(second)) == (2, (1, 3), (5, 5))
    [steps, _] = in_slices(2, iter(range(90)), itertools.count())
    assert spread(steps) is not None


def test_a_page_shows_the_spread_and_keeps_it_when_other_figures_are_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    kept = row("kept", Figure([1.0, 2.0, 4.0]), "per s", floor=Figure([2.0, 2.0, 2.0]), target=">= 0.5")
    assert table([kept])[-1] == "| kept | 2.0 per s | 2.0 | 1.00 | 0.50 – 2.00 | >= 0.5 | yes |"
    measure.write("page", "A page", [kept])
    renew("page", "A page", [row("new", 3.0, "s", target="<= 1")])
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| kept | 2.0 per s | 2.0 | 1.00 | 0.50 – 2.00 | >= 0.5 | yes |" in text
    assert "| new | 3.0 s |  |  |  | <= 1 | **no** |" in text
