"""Spend of other days: a span is in the address, its parts lead into it, and every sum is that of the span."""

import re
from datetime import date, timedelta

import pytest

from decklog import Decklog, Invalid, ManualClock
from decklog.web.pages.spend import CHART_PARTS, TABLE_PARTS, DaySpan, finder, parse_span, shares
from tests.conftest import on_both
from tests.stores.claiming import claimed
from tests.web.client import Browser

TODAY = date(2026, 11, 15)


def span(first: str, last: str) -> DaySpan:
    return DaySpan(date.fromisoformat(first), date.fromisoformat(last))


def test_span_is_a_number_of_days_until_today_or_between_two_dates() -> None:
    assert parse_span(None, None, 7, TODAY) == span("2026-11-09", "2026-11-15")
    assert parse_span("2026-01-30", "2026-02-02", 30, TODAY).days == 4
    assert parse_span(None, "2026-02-02", 2, TODAY).said == "2026-02-01 to 2026-02-02"
    assert parse_span("2026-11-15", None, 30, TODAY).said == "2026-11-15"


NO_SPANS = [("soon", None), ("2026-02-02", "2026-02-01"), ("2024-01-01", "2026-01-01"), (None, "x")]


@pytest.mark.parametrize(("since", "until"), NO_SPANS)
def test_invalid_span_is_refused(since: str | None, until: str | None) -> None:
    with pytest.raises(Invalid):
        parse_span(since, until, 30, TODAY)


@pytest.mark.parametrize("most", [CHART_PARTS, TABLE_PARTS])
def test_parts_of_a_span_are_complete_and_few(most: tuple[int, int]) -> None:
    for days in (1, 2, 13, 14, 15, 30, 31, 32, 90, 100, 101, 365, 400):
        whole = DaySpan(TODAY - timedelta(days=days - 1), TODAY)
        parts = whole.parts(most)
        assert [day for _, part in parts for day in part.each()] == whole.each()
        assert len(parts) <= 31
        assert [finder(parts)(part.last.isoformat()) for _, part in parts] == [*range(len(parts))]
        assert finder(parts)(whole.first.isoformat()) == 0


def test_span_has_an_earlier_a_later_and_a_wider_one() -> None:
    day = span("2026-11-11", "2026-11-11")
    assert day.before() == span("2026-11-10", "2026-11-10")
    assert day.behind(TODAY) == span("2026-11-12", "2026-11-12")
    week = day.around(TODAY)
    assert week == span("2026-11-09", "2026-11-15")
    assert week.around(TODAY) == span("2026-11-01", "2026-11-15")
    # Two weeks of two months lie in no month, but in a year.
    assert span("2026-10-25", "2026-11-07").around(TODAY) == span("2026-01-01", "2026-11-15")
    assert span("2025-01-01", "2025-12-31").around(TODAY) is None
    assert week.behind(TODAY) is None
    assert span("2026-11-01", "2026-11-10").behind(TODAY) == span("2026-11-11", "2026-11-15")
    assert span("0001-01-01", "0001-01-05").before() is None


@pytest.fixture
def charged(log: Decklog, clock: ManualClock, browser: Browser) -> Browser:
    """A year with a charge every ten days, of its number in cents, and one more run."""
    log.runs.start("spend", run_id="r")
    for number in range(1, 37):
        clock.advance(days=10)
        log.ledger.charge("m", cost_microdollars=number * 10_000, run_id="r", agent=f"a{number % 2}")
    return browser


@pytest.mark.slow
@on_both
def test_the_sums_are_those_of_the_span(log: Decklog, charged: Browser) -> None:
    whole = charged.get("/spend.json?days=365").data["data"]
    assert whole["whole"]["calls"] == 36
    days = sorted(row["day"] for row in whole["days"])
    # Also far back: the present month is read separately.
    for first, last in ((days[2], days[4]), (days[-2], days[-1]), (days[0], days[-1])):
        for by in ("model", "run", "agent"):
            spend = charged.get(f"/spend.json?since={first}&until={last}&by={by}").data["data"]
            expected = [row["cost_microdollars"] for row in whole["days"] if first <= row["day"] <= last]
            assert (spend["since"], spend["until"]) == (first, last)
            assert spend["whole"]["cost_microdollars"] == sum(expected) == sum(row["cost_microdollars"] for row in spend["by"])
            assert (spend["today"], spend["month"]) == (whole["today"], whole["month"])


def test_parts_of_a_chart_link_to_their_days(charged: Browser) -> None:
    def cents(text: str) -> int:
        zone = r'class="part"[^>]* aria-label="(?:[^",]+, )?[\d-]+(?: to [\d-]+)?: \$([\d.]+)[^"]*"'
        return round(sum(float(found) * 100 for found in re.findall(zone, text)))

    year = charged.get("/spend?days=365").text
    zones = re.findall(r'<a class="part" href="(/spend\?since=[^"]+)"', year)
    assert len(zones) == 13  # a year that begins in the middle of a month
    assert cents(year) == sum(range(1, 37))
    assert "Each month" in year
    month = charged.get(zones[5].replace("&amp;", "&")).text
    assert "by=model" in zones[5]
    assert 2 <= len(re.findall(r'<tr id="day-', month)) <= 4
    assert "Each day" in month
    week = charged.get("/spend?days=90&by=run").text
    assert ("Each week" in week, 'href="/spend?days=90&amp;by=agent"' in week) == (True, True)
    # The chosen span stays with another grouping, and can be typed.
    chosen = charged.get("/spend?since=2026-02-01&until=2026-02-28&by=run").text
    assert 'href="/spend?since=2026-02-01&amp;until=2026-02-28&amp;by=agent"' in chosen
    assert 'value="2026-02-28"' in chosen
    assert "decklog overview money --since 2026-02-01 --until 2026-02-28 --by run" in chosen
    assert ('href="/spend?since=2026-01-04&amp;until=2026-01-31&amp;by=run"' in chosen, ">wider<" in chosen) == (True, True)


def test_day_has_no_narrower_span_and_an_empty_span_has_a_note(charged: Browser) -> None:
    day = charged.get("/spend.json?days=365").data["data"]["days"][0]["day"]
    page = charged.get(f"/spend?since={day}&until={day}").text
    assert '<g class="part" tabindex="0"' in page
    assert f'<tr id="day-{day}"><td>{day}</td>' in page
    empty = charged.get("/spend?since=2020-01-01&until=2020-01-31").text
    assert "Nothing was charged in this span" in empty
    assert ">later<" in empty
    odd = ("since=x", "since=2026-02-02&until=2026-02-01", "days=8")
    assert [charged.get(f"/spend?{one}").status for one in odd] == [400] * 3


@pytest.mark.parametrize(
    ("parts", "percent"),
    [
        ([2, 1], [67, 33]),
        ([1, 1, 1], [34, 33, 33]),
        ([955, 45, 0], [96, 4, 0]),
        ([145, 145, 145, 145, 145, 275], [15, 15, 15, 14, 14, 27]),
        ([0, 0], [0, 0]),
        ([], []),
    ],
)
def test_shares_add_up_to_a_hundred(parts: list[int], percent: list[int]) -> None:
    assert shares(parts) == percent


@on_both
@pytest.mark.parametrize(("by", "kinds"), [("model", {"m"}), ("agent", {"a0", "a1"}), ("run", {"spend"})])
def test_chart_follows_the_grouping(charged: Browser, by: str, kinds: set[str]) -> None:
    text = charged.get(f"/spend?days=365&by={by}").text
    legend = text[text.index('class="legend') :].partition("</ul>")[0]
    assert set(re.findall(r"</svg>([^<]+)</li>", legend)) == kinds
    assert len(re.findall(r'<path class="c\d"', text)) == len(kinds)
    if by == "agent":
        chart = charged.get("/spend.json?days=365&by=agent").data["data"]["chart"]
        assert {row["agent"] for row in chart} == kinds
        assert sum(row["cost_microdollars"] for row in chart) == sum(range(1, 37)) * 10_000


@on_both
def test_chart_has_gridlines_ticks_a_labelled_budget_and_tooltips(log: Decklog, charged: Browser) -> None:
    log.budgets.set("all", period="day", limit_microdollars=400_000)
    text = charged.get("/spend?days=30").text
    labels = re.findall(r'<text class="grid"[^>]*>([^<]+)<', text)
    assert labels == ["$0.10", "$0.20", "$0.30", "$0.40"]
    assert len(re.findall("M", re.findall(r'class="ticks" d="([^"]+)"', text)[0])) == 30
    assert "budget $0.40 a day" in text
    tips = re.findall(r'<svg class="tip".*?</svg>', text, re.DOTALL)
    assert len(tips) == 3
    assert ">m $0.36<" in tips[-1]
    # A tooltip is also the name of the link, for screen readers.
    assert re.search(r'class="part" href="[^"]+" aria-label="(?:[^",]+, )?[\d-]+: \$0.36, m \$0.36"', text)


@on_both
def test_cost_per_run_and_per_finished_task_is_shown(log: Decklog, charged: Browser) -> None:
    for title in ("one", "two"):
        log.tasks.add("r", title)
        claim = claimed(log, "r", worker="a0")
        claim.finish("done")
    text = charged.get("/spend?days=365&by=run").text
    assert "$6.66 per run" in text
    assert "$3.33 per finished task" in text
    row = text[text.index('id="by-r"') :].partition("</tr>")[0]
    assert '<a href="/runs/r/spend">spend</a>' in row
    assert "$3.33" in row


@pytest.mark.parametrize(
    ("spent", "shade", "label"), [(79, "fill", "OK"), (80, "near", "nearly used up"), (100, "full", "used up")]
)
def test_budget_changes_its_colour_at_80_and_100_percent(
    log: Decklog, browser: Browser, run_id: str, spent: int, shade: str, label: str
) -> None:
    log.budgets.set("all", period="day", limit_microdollars=100, warn_percent=95, action="warn")
    log.ledger.charge("m", cost_microdollars=spent, run_id=run_id)
    text = browser.get("/spend").text
    row = text[text.index('<tr id="budget-') :].partition("</tr>")[0]
    assert f'class="{shade}"' in row
    assert label in row
