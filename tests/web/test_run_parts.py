"""The tabs of a run that show its records: the same now and as of any entry, and files that no browser shows."""

import pytest

from decklog import Decklog
from decklog.web.pages.charts import draw_line
from decklog.web.pages.run import TABS
from decklog.web.pages.timeline import WIDTH, build_gantt
from tests.conftest import on_both
from tests.every import every
from tests.pictures import sample_parts
from tests.statements import statements
from tests.web.client import Browser
from tests.web.test_pages import Read

# Texts of each tab: now, and before it had any record.
TABS_TEXTS = {
    "lanes": ("Change the lexer", "Nobody has worked on a task"),
    "checks": ("No check has run yet", "No check has run up to here"),
    "spend": ("By model and agent model agent spent calls claude-opus-5-5", "Nothing was charged up to here"),
    "plan": ("First the lexer, then the parser", "No criteria."),
    "states": ("before the parser", "No document is kept up to here"),
    "artifacts": ("out/lexer.patch patch Change the lexer", "No file is kept up to here"),
    "forks": ("Try it without a new token 30", "decklog runs fork commas --at 1"),
}


def read(browser: Browser, url: str) -> str:
    answer = browser.get(url)
    assert answer.status == 200, answer.text
    return Read(answer.text).text


@pytest.mark.slow
def test_every_tab_shows_the_run_now_and_as_of_an_entry(filled: Browser) -> None:
    for tab, (now, past) in TABS_TEXTS.items():
        assert now in read(filled, f"/runs/commas/{tab}"), tab
        assert past in read(filled, f"/runs/commas/{tab}?at=1"), tab
        assert filled.get(f"/runs/commas/{tab}.json").data["ok"], tab


@pytest.mark.slow
@on_both
def test_every_tab_takes_eight_statements_at_most(log: Decklog, filled: Browser) -> None:
    places = [f"/runs/{run}/{tab}{at}" for run in ("commas", sample_parts.ITEMS) for tab in TABS for at in ("", "?at=9")]
    places += ["/runs/commas/states?name=grammar&version=2"]
    for place in places:
        filled.get(place)
    counts = {}
    for place in places:
        with statements(log) as executed:
            filled.get(place)
        counts[place] = len(executed)
    assert {place: count for place, count in counts.items() if count > 8} == {}


def test_a_plan_strikes_out_what_is_no_longer_proven(filled: Browser) -> None:
    page = filled.get("/runs/commas/plan").text
    assert '<p class="stale">3. The manual says so' in page
    assert "the evidence is out of date: manual.md has changed since the evidence was taken" in page


def test_version_of_a_document_shows_its_changes(filled: Browser) -> None:
    page = read(filled, "/runs/commas/states?name=grammar&group=global&version=3")
    assert "what it changed" in page
    assert "/round 2 3" in page
    assert '/rules/2 "imports"' in page
    assert '"owner": "ada"' in read(filled, "/runs/commas/states?name=grammar&version=1")
    assert filled.get("/runs/commas/states?name=grammar&version=9").status == 404


@pytest.mark.slow
@on_both
def test_checks_tab_shows_the_stages_of_each_work_item(filled: Browser) -> None:
    page = read(filled, f"/runs/{sample_parts.ITEMS}/checks")
    assert "tokens done done landed 1" in page
    assert "errors done running pending 1" in page
    assert "tables done done next to land 1" in page
    assert "fail tests Check: errors" in page
    assert "test_errors fails" in page


def test_an_artifact_is_shown_as_text_or_kept_as_a_file_and_never_as_a_page(log: Decklog, filled: Browser) -> None:
    artifacts = {one.path: one.id for one in log.artifacts.find("commas")}
    page = read(filled, f"/runs/commas/artifacts?artifact={artifacts['out/report.html']}")
    assert "<!doctype html><script>fetch('/now')</script>" in page
    answer = filled.get(f"/artifacts/{artifacts['out/report.html']}")
    assert (answer.status, answer.body) == (200, sample_parts.PAGE.encode())
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''report.html"
    assert [value for name, value in answer.pairs if name == "content-security-policy"] == ["sandbox; default-src 'none'"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert filled.get(f"/artifacts/{artifacts['build/pytest.log']}").status == 404


def test_artifact_with_any_file_name_is_an_attachment(log: Decklog, filled: Browser) -> None:
    names = ["a.html", "a.svg", "a.pdf", "a.xml", 'a".html', "a\r\nset-cookie: x", "ü.txt", "../../a", "x/"]
    artifacts = {name: log.artifacts.add("commas", "file", f"out/{name}", content=name).id for name in names}

    @every("name", names)
    def is_attached(name: str) -> None:
        answer = filled.get(f"/artifacts/{artifacts[name]}")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
        assert answer.headers["content-disposition"].isprintable()
        assert "set-cookie" not in answer.headers

    is_attached()


def test_hours_without_work_are_folded_and_no_bar_is_lost(log: Decklog, filled: Browser) -> None:
    lanes = log.runs.lanes(sample_parts.ITEMS)
    drawn = build_gantt(lanes, log.clock.now())
    bars = [bar for lane in drawn.lanes for bar in lane.bars]
    assert len(bars) == len(lanes["attempts"])
    assert [label for _, label in drawn.folds] == ["5 h"]
    assert [lane.path for lane in drawn.lanes] == list(dict.fromkeys(one["task_id"] for one in lanes["attempts"]))
    assert all(bar.x >= 0 and bar.x + bar.width <= WIDTH + 0.02 for bar in bars)
    assert drawn.lanes[-1].word == "running"


def test_spend_line_ends_at_the_sum_and_shows_a_near_ceiling() -> None:
    line = draw_line([(10, 5), (20, 10)], 40, 10, str, 20)
    assert line is not None
    assert (line.top, line.ceiling) == ("20", 0)
    assert line.area == "M0 120H225.0V90.0H450.0V60.0H900V120z"
    assert draw_line([], 40, 0, str) is None
    far = draw_line([(10, 5)], 40, 5, str, 500)
    assert far is not None
    assert far.ceiling is None


def test_review_shows_findings_places_and_fixes(log: Decklog, filled: Browser) -> None:
    (review,) = log.reviews.find(sample_parts.ITEMS)
    checks = read(filled, f"/runs/{sample_parts.ITEMS}/checks")
    assert "block Check: errors 2 findings: An error in the last line" in checks
    with statements(log) as executed:
        page = read(filled, f"/reviews/{review.id}")
    assert len(executed) <= 6
    assert "blocking src/lexer/errors.py:41 · behaviour pass 2 An error in the last line has no place" in page
    assert "Fix: Count the line before the token is read." in page
    assert "confidence 35 of 100" in page
    assert filled.get(f"/reviews/{review.id}.json").data["data"]["verdict"] == "block"
    assert filled.get("/reviews/none").status == 404


def test_runs_are_filtered_by_goal_repository_branch_age_and_parent(filled: Browser) -> None:
    def listed(query: str) -> set[str]:
        return {run["id"] for run in filled.get(f"/runs.json?{query}").data["data"]}

    assert listed("text=TRAILING") == {"commas"}
    assert listed("repo=parser&branch=trailing-commas") >= {"commas"}
    assert listed("parent=commas") == {"commas-again"}
    assert listed("since=2999-01-01") == set()
    assert listed("text=commas&status=done") == set()
    page = filled.get("/runs?text=TRAILING&repo=parser")
    # Filters are in the form, can be removed, and are in the command.
    assert 'value="TRAILING"' in page.text
    assert 'href="/runs?repo=parser"' in page.text
    assert "decklog overview runs --text TRAILING --repo parser" in page.text
    assert filled.get("/runs?since=soon").status == 400
    assert "matches the filter above" in filled.get("/runs?text=nothing-like-it").text


def test_search_counts_hits_and_not_all_entries_about_them(filled: Browser) -> None:
    found = filled.get("/search.json?q=comma").data["data"]
    assert found["found"] == len(found["hits"]) < found["looked_at"]
    assert f"<h1>{found['found']} hits</h1>" in filled.get("/search?q=comma").text
