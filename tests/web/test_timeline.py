"""The timeline: a time axis with four to six ticks, agents in the bars, rows of an item together, and a window that zooms."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from decklog import Decklog, ManualClock
from decklog.web.pages.timeline import MOST_TICKS, WIDTH, TaskLabel, build_gantt
from tests.pictures import sample_parts
from tests.stores.claiming import claimed
from tests.web.client import Browser
from tests.web.payloads import PAYLOADS
from tests.web.test_every_column import HIDDEN
from tests.web.test_text_of_agents import shape

START = datetime(2026, 11, 18, 6, 0, 6, tzinfo=UTC)


def lanes(*spans: tuple[str, float, float]) -> dict[str, Any]:
    """Build attempts of tasks, each from and to a minute."""
    attempts = [
        {
            "task_id": task,
            "title": task,
            "worker": "dev-1",
            "number": 1,
            "outcome": "done",
            "started_at": (START + timedelta(minutes=began)).isoformat().replace("+00:00", "Z"),
            "ended_at": (START + timedelta(minutes=ended)).isoformat().replace("+00:00", "Z"),
        }
        for task, began, ended in spans
    ]
    return {"attempts": attempts, "left_out": 0}


@pytest.mark.parametrize("minutes", [0.02, 0.5, 3, 38, 240, 1500, 10_000, 100_000])
def test_an_axis_has_at_most_six_ticks_in_order_that_are_apart(minutes: float) -> None:
    # From half a second on: a round time before it is not on the axis.
    drawn = build_gantt(lanes(("a", 0.5 / 60, minutes), ("b", minutes * 3, minutes * 4)), START)
    places = [tick.x for tick in drawn.ticks]
    assert places == sorted(places)
    assert 2 <= len(places) <= MOST_TICKS
    assert all(0 <= place <= WIDTH for place in places)
    assert len({tick.label for tick in drawn.ticks}) == len(places)


def test_work_without_a_fold_has_four_to_six_round_times() -> None:
    for minutes in (38, 95, 240, 700, 1500, 4000):
        ticks = build_gantt(lanes(("a", 0, minutes)), START).ticks
        assert 3 <= len(ticks) <= MOST_TICKS, minutes
        assert all(re.search(r"\d\d:[0-5][05]", tick.label) or tick.label.endswith("06:00") for tick in ticks[1:]), minutes


def test_rows_of_an_item_are_together_and_name_its_agent() -> None:
    attempts = lanes(("w1", 0, 10), ("other", 5, 9), ("c1", 10, 12))
    attempts["attempts"][0]["worker"] = attempts["attempts"][2]["worker"] = "conductor-host-1-2-3"
    drawn = build_gantt(attempts, START, {"w1": TaskLabel("lexer", "claude"), "c1": TaskLabel("lexer")})
    assert [(lane.path, lane.item, lane.bars[0].agent) for lane in drawn.lanes] == [
        ("w1", "lexer", "claude"),
        ("c1", "lexer", "conductor"),
        ("other", None, "dev-1"),
    ]


def test_a_window_shows_what_lies_in_it_over_the_whole_axis() -> None:
    window = (START + timedelta(minutes=20), START + timedelta(minutes=30))
    drawn = build_gantt(lanes(("a", 0, 25), ("b", 25, 60), ("c", 40, 60)), START, window=window)
    assert [(lane.path, lane.bars[0].x, lane.bars[0].width) for lane in drawn.lanes] == [("a", 0, 50), ("b", 50, 50)]
    assert (drawn.first, drawn.last) == window


def test_the_scale_leads_from_a_place_back_to_its_time() -> None:
    drawn = build_gantt(lanes(("a", 0, 10), ("b", 600, 610)), START)
    (first, fold, last) = json.loads(drawn.scale)
    assert first[:1] + first[2:] == [0, START.timestamp(), START.timestamp() + 600]
    assert fold[3] - fold[2] == 590 * 60
    assert last[0] + last[1] == pytest.approx(WIDTH)


def test_the_page_has_an_axis_groups_and_links_that_zoom(filled: Browser) -> None:
    page = f"/runs/{sample_parts.ITEMS}/lanes"
    text = filled.get(page).text
    assert f'<li class="lane-group"><a href="/runs/{sample_parts.ITEMS}/items/tokens">tokens</a></li>' in text
    assert '<text x="5" y="14">dev-1</text>' in text
    (first, *_) = re.findall(rf'href="({page}\?from=[^"]*)"', text)
    zoomed = filled.get(first.replace("&amp;", "&")).text
    assert "whole timeline" in zoomed
    assert zoomed.count('class="bar-of"') < text.count('class="bar-of"')
    assert filled.get(f"{page}?from=noon").status == 400
    assert "Nobody worked in this time" in filled.get(f"{page}?from=2001-01-01T00:00:00Z&to=2001-01-02T00:00:00Z").text


def test_the_strip_has_texts_for_pointing_at_it(sample: Browser) -> None:
    text = sample.get("/runs/commas/overview").text
    zones = re.findall(r'<rect class="zone" x="[\d.]+" width="[\d.]+" height="40"><title>entries ([\d,]+) to', text)
    assert 10 < len(zones) <= 24
    assert zones[0] == "1"


def test_what_agents_wrote_is_text_on_the_timeline(log: Decklog, clock: ManualClock, browser: Browser) -> None:
    for run_id, texts in (("plain", ("one", "two")), ("hostile", PAYLOADS)):
        log.runs.start("x", run_id=run_id)
        for text in texts:
            log.tasks.add(run_id, text)
            claim = claimed(log, run_id, worker=text)
            clock.advance(minutes=1)
            claim.finish(text)
            clock.advance(hours=1)
    known = shape(browser.get("/runs/plain/lanes").text) | {("svg", "class")}
    text = browser.get("/runs/hostile/lanes").text
    assert shape(text) <= known, shape(text) - known
    assert not HIDDEN.search(text)


def test_attempt_with_an_expired_lease_is_stalled(log: Decklog, clock: ManualClock, browser: Browser, run_id: str) -> None:
    log.tasks.add(run_id, "Port it")
    log.tasks.claim(run_id, worker="dev-3", lease_seconds=60)
    assert '<span class="w-run">running</span>' in browser.get(f"/runs/{run_id}/lanes").text
    clock.advance(seconds=90)
    text = browser.get(f"/runs/{run_id}/lanes").text
    assert '<span class="w-fail">stalled</span>' in text
    assert "dev-3, attempt 1: stalled, " in text
