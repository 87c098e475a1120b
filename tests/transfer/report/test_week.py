"""A week over all runs, as an owner forwards it."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from decklog import Decklog, Invalid, ManualClock
from decklog.transfer.report.week import parse_week_option, read_week, week_markdown
from tests.cli.conftest import Program
from tests.pictures import sample_log


@pytest.fixture
def week_text(log: Decklog, clock: ManualClock) -> str:
    sample_log.write(log, clock)
    return "\n".join(week_markdown(read_week(log, clock.now().date())))


def test_a_week_tells_money_work_answers_lessons_and_what_waits(week_text: str) -> None:
    for said in (
        "2 runs, 1 completed; 5 tasks done; $16.40 spent; 1 decision waits for you; 1 task blocked.",
        "- May I push the branch trailing-commas? (bo, commas)",
        "- Write it down (commas): The style guide does not say how to write grammars",
        "| needs attention |              4 | 1 and 1 blocked | $14.09 |",
        "- ana: granted, May the grammar be changed in a minor release? (It only reads more than before)",
        "| claude-opus-5-5 |     5 | $16.40 |",
        "- Change the lexer before the parser",
    ):
        assert said in week_text


def test_the_next_week_has_only_what_still_waits(log: Decklog, clock: ManualClock) -> None:
    sample_log.write(log, clock)
    clock.advance(days=7)
    found = read_week(log, clock.now().date())
    assert (found.runs, found.spent_microdollars, found.decided, found.lessons) == ([], 0, [], [])
    assert found.spent_before_microdollars == 16_397_284
    assert [item.by for item in found.waiting] == ["bo"]
    assert [task["title"] for task in found.blocked] == ["Write it down"]


def test_what_waits_is_what_now_says_and_nothing_else(log: Decklog, clock: ManualClock) -> None:
    sample_log.write(log, clock)
    log.approvals.ask("commas", "Still there?", by="bo", about="x", expires_at=clock.now() + timedelta(minutes=1))
    clock.advance(minutes=2)
    log.inbox.post("bo", "Which branch?", severity="question")  # type: ignore[arg-type]
    log.budgets.set("run", scope_id="commas", limit_microdollars=1)  # type: ignore[arg-type]
    found = read_week(log, clock.now().date())
    assert [item.what for item in found.waiting] == [item.what for item in log.overview.now().waiting]
    assert len(found.waiting) == 3


def test_the_columns_of_a_table_stand_under_each_other(week_text: str) -> None:
    rows = [line for line in week_text.splitlines() if line.startswith("|")]
    assert len({tuple(place for place, sign in enumerate(row) if sign == "|") for row in rows}) == 2


def test_days_that_have_not_come_are_not_told(log: Decklog, clock: ManualClock) -> None:
    sample_log.write(log, clock)
    today = clock.now().date()
    for day, count in ((today, today.weekday() + 1), (today - timedelta(days=7), 7)):
        assert len(read_week(log, day).days) == count


def test_an_empty_log_has_a_week(log: Decklog) -> None:
    assert (
        list(week_markdown(read_week(log, date(2026, 11, 15))))[2]
        == "0 runs, 0 completed; 0 tasks done; $0.00 spent; nothing waits for you."
    )


def test_what_agents_wrote_is_not_read_as_markup(log: Decklog) -> None:
    log.runs.start("a | b\n# <script>", run_id="r")
    written = "\n".join(week_markdown(read_week(log, log.clock.now().date())))
    assert "| a \\| b \\# \\<script\\> |" in written


def test_a_week_is_named_by_a_day_of_it() -> None:
    today = date(2026, 11, 15)
    assert [parse_week_option(text, today) for text in (None, "last", "2026-01-02")] == [
        today,
        date(2026, 11, 8),
        date(2026, 1, 2),
    ]
    with pytest.raises(Invalid, match="no day"):
        parse_week_option("yesterday", today)


@pytest.mark.slow
def test_the_program_writes_markdown_a_page_or_data(decklog: Program, log_folder: Path) -> None:
    assert "# Week " in decklog("report", "week").out
    assert decklog("report", "week", "--html", "week.html").code == 0
    page = (log_folder / "week.html").read_text()
    assert "1 run, 0 completed" in page
    assert "http" not in page.replace("http-equiv", "")
    assert decklog("report", "week", "--html", "week.html").code == 5
    assert decklog("report", "week", "--json").data["runs"][0]["id"] == "run_1"
    assert decklog("report", "week", "--of", "soon").code == 1
