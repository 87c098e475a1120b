"""Spend, Search, Tasks and Compare show what the verbs return."""

import pytest

from decklog import Decklog
from decklog.web.pages import finding as search
from decklog.web.pages import others as compare
from decklog.web.pages.charts import build_chart
from decklog.web.pages.finding import parse_query
from decklog.web.rendering import plainly
from tests.conftest import on_both
from tests.web.client import Browser
from tests.web.test_pages import read


def test_filters_of_a_search_have_a_colon() -> None:
    typed = parse_query('lexer kind:tool agent:"dev 1" since:2d http://x')
    assert typed.words == "lexer http://x"
    assert typed.narrowed == {"kind": "tool", "agent": "dev 1", "since": "2d"}
    assert typed.with_one("kind", None) == 'lexer http://x agent:"dev 1" since:2d'
    assert typed.with_one("run", "commas").endswith("since:2d run:commas")


def test_chart_stacks_columns_and_groups_small_kinds() -> None:
    values = {name: {"a": size} for name, size in zip("uvwxyz", (60, 20, 10, 5, 3, 2), strict=True)}
    chart = build_chart(["a", "b"], values, str, ceiling=200)
    assert chart.kinds == ["u", "v", "w", "x", "2 others"]
    assert [path.count("M") for path in chart.bars] == [1, 1, 1, 1, 1]
    assert [column.said for column in chart.places] == ["a: 100 (2 others 5, x 5, w 10, v 20, u 60)"]
    assert chart.grid == [(142.5, "50"), (95.0, "100"), (47.5, "150"), (0.0, "200")]
    assert (chart.top, chart.ceiling) == ("200", 0)
    assert build_chart(["a"], {}, str).bars == []


@pytest.mark.slow
@on_both
def test_sums_equal_those_of_the_days_and_an_id_redirects_to_its_page(log: Decklog, sample: Browser) -> None:
    log.ledger.charge("another", run_id="commas", agent="bo", input_tokens=5, enforce=False)
    money = log.overview.money(by="run")
    days = log.overview.days()
    assert money.whole == {name: sum(day[name] for day in days) for name in money.whole}
    assert money.whole["unpriced_calls"] == 1
    assert {row["run_id"]: row["cost_microdollars"] for row in money.by} == {
        run: log.overview.run(run).cost_microdollars for run in ("commas", "fast-tests")
    }
    few = log.overview.money(by="run", limit=1)
    assert few.others["cost_microdollars"] == log.overview.run("fast-tests").cost_microdollars
    assert "1 unpriced call not included" in read(sample, "/spend").text
    places = {"commas:20": "/runs/commas/entries/20", "task_x": "/tasks/task_x", "run_x": "/runs/run_x/overview"}
    for text, place in places.items():
        answer = sample.get(f"/search?q={text}")
        assert (answer.status, answer.headers["location"]) == (303, place)
    assert sample.get("/search?q=nothing:20").status == 200
    assert sample.get("/search?q=comma*+since:x").status == 400
    later = [hit["id"] for hit in sample.get("/search.json?q=comma*+run:commas+since:1m").data["data"]["hits"]]
    every = [hit["id"] for hit in sample.get("/search.json?q=comma*+run:commas").data["data"]["hits"]]
    assert set(later) < set(every)
    assert "waits for docs (blocked)" in read(sample, "/tasks/release").text
    assert "Write it down" in read(sample, "/tasks?state=blocked").text
    for odd in ("/tasks?state=done", "/spend?days=8", "/spend?by=colour"):
        assert sample.get(odd).status == 400
    assert sample.get("/tasks/nothing").status == sample.get("/compare?a=commas&b=nothing").status == 404


@on_both
def test_slow_search_and_comparison_are_stopped(sample: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (search, compare):
        monkeypatch.setattr(module, "QUERY_SECONDS", -1.0)
    searched, compared = sample.get("/search?q=comma*"), sample.get("/compare?a=commas:20&b=commas")
    assert (searched.status, compared.status) == (200, 200)
    assert "Stopped after 300 ms. Filter by run" in searched.text
    assert "Stopped after 300 ms" in compared.text
    assert sample.get("/search.json?q=comma*+run:commas").data["data"] == {"is_stopped": True}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2026-11-16T03:06:21.000000Z", "2026-11-16 03:06:21"),
        ("done", "done"),
        ("", '""'),
        (7, "7"),
        (["a"], '["a"]'),
        ({"at": "2026-11-16T03:06:21Z"}, '{"at": "2026-11-16T03:06:21Z"}'),
    ],
)
def test_field_of_a_record_is_formatted_for_people(value: object, text: str) -> None:
    assert plainly(value) == text
