"""`decklog now`: one sentence, one screen, and an exit code for a shell prompt."""

import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from decklog import Decklog, ManualClock
from decklog.cli.lines import count_columns, fit, wrap_text
from decklog.core.display import span
from decklog.core.processes import Identity
from tests.cli.conftest import Program
from tests.cli.test_terminal import on_a_terminal


@pytest.fixture
def busy(log_folder: Path) -> Path:
    """A folder whose log has something of everything."""
    with Decklog.open(log_folder / ".decklog" / "decklog.db") as log:
        log.runs.update("run_1", goal="Teach the parser to read trailing commas, 文書を新しい形式へ移行する")
        log.tasks.add("run_1", "Change the lexer")
        log.tasks.claim("run_1", worker="dev-1")
        log.approvals.ask("run_1", "Push feature/commas to origin?", by="dev-1", about="git push", approval_id="apr_1")
        log.budgets.set("all", period="day", limit_microdollars=50_000_000)  # type: ignore[arg-type]
        log.ledger.charge("m", cost_microdollars=11_400_000, run_id="run_1")
    return log_folder


def test_a_new_log_says_the_two_commands_to_start_and_that_nothing_waits(decklog: Program) -> None:
    decklog("init")
    said = decklog("now")
    assert said.code == 0
    assert said.out.startswith("Nothing has happened in this log yet.\n")
    assert "decklog runs start" in said.out
    assert "decklog plan" in said.out


def test_a_decision_that_waits_is_exit_code_seven(busy: Path, decklog: Program) -> None:
    said = decklog("now", "--brief")
    assert said.code == 7
    assert said.out == "1 decision waits for you. 1 agent works on 1 run. $11.40 spent today of $50.00.\n"
    assert decklog("approvals", "decide", "apr_1", "denied", "--by", "mo").code == 0
    after = decklog("now", "--brief")
    assert (after.code, after.out) == (0, "Nothing waits for you. 1 agent works on 1 run. $11.40 spent today of $50.00.\n")


def test_the_screen_shows_the_question_the_run_and_the_money(busy: Path, decklog: Program) -> None:
    text = decklog("now", COLUMNS="80").out
    for part in (
        "Push feature/commas to origin?",
        "decklog approvals show apr_1",
        "dev-1: Change",
        "$11.40 of $50.00 a day",
    ):
        assert part in text
    assert "\x1b" not in text


@pytest.mark.parametrize("columns", [20, 40, 80, 100, 160, 300])
def test_no_line_is_wider_than_the_terminal(busy: Path, decklog: Program, columns: int) -> None:
    lines = decklog("now", COLUMNS=str(columns)).out.splitlines()
    assert max(map(count_columns, lines)) <= columns
    if columns >= 160:
        assert any("Teach the parser to read trailing commas" in line for line in lines)


def test_json_has_the_same_and_brief_has_less(busy: Path, decklog: Program) -> None:
    whole, brief = decklog("now", "--json"), decklog("now", "--json", "--brief")
    assert (whole.code, brief.code) == (7, 7)
    assert whole.data["decisions"] == brief.data["decisions"] == 1
    assert whole.data["runs"][0]["status"] == "needs attention"
    assert whole.data["waiting"][0]["command"] == "decklog approvals show apr_1"
    assert "runs" not in brief.data


@pytest.mark.slow
def test_there_is_colour_on_a_terminal_and_none_where_nobody_wants_it(busy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[1;33m" in on_a_terminal("now", cwd=busy)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in on_a_terminal("now", cwd=busy)


def test_an_approval_is_shown_with_the_exact_thing(busy: Path, decklog: Program, tmp_path: Path) -> None:
    (tmp_path / "change.diff").write_text("+ a\u202eb\n-\tc\n", encoding="utf-8")
    asked = decklog("approvals", "ask", "run_1", "This?", "--by", "dev-1", "--about", "change.diff", "--json").data
    shown = decklog("approvals", "show", asked["id"])
    assert "  │ + a⟨U+202E⟩b\n  │ -    c\n" in shown.out
    assert "digest matches" in shown.out
    piped = decklog(
        "approvals", "ask", "run_1", "Same?", "--by", "dev-1", "--about", "-", "--json", stdin="+ a\u202eb\n-\tc\n"
    ).data
    assert piped["subject_digest"] == asked["subject_digest"]


@pytest.mark.slow
def test_an_approval_by_digest_says_what_to_type(busy: Path, decklog: Program) -> None:
    asked = decklog("approvals", "ask", "run_1", "This?", "--by", "dev-1", "--subject-digest", "a" * 64, "--json").data
    assert "granted --by NAME --subject-digest SHA256" in decklog("approvals", "show", asked["id"]).out
    refused = decklog("approvals", "decide", asked["id"], "granted", "--by", "mo")
    assert refused.code == 1
    assert "--subject-digest SHA256" in refused.err
    assert decklog("approvals", "decide", asked["id"], "granted", "--by", "mo", "--subject-digest", "a" * 64).code == 0


def test_texts_take_just_the_places_they_are_given() -> None:
    from datetime import timedelta

    assert [count_columns(fit(text, 7)) for text in ("", "a", "long enough", "文書を新", "e\u0301" * 9)] == [7] * 5
    assert wrap_text("a bb ccc " + "d" * 12, 5) == ["a bb", "ccc", "dddd", "dddd", "dddd"]
    assert [span(timedelta(seconds=size)) for size in (-5, 41, 720, 7300, 90000, 200000)] == [
        "0 s",
        "41 s",
        "12 min",
        "2 h",
        "25 h",
        "2 d",
    ]
    assert re.fullmatch(r"a⟨U\+200B⟩b +", fit("a\u200bb", 20))


@pytest.mark.slow
@pytest.mark.parametrize("look", [("now",), ("runs", "list"), ("runs", "show", "claude-s1")])
def test_a_session_whose_program_was_killed_is_over_at_the_next_look(
    decklog: Program, log_folder: Path, look: tuple[str, ...]
) -> None:
    program = subprocess.Popen(["sleep", "60"])
    process = Identity.of(program.pid)
    assert process is not None
    facts: dict[str, object] = {"program": "claude", "session": "s1", "process": process.as_text()}
    with Decklog.open(log_folder / ".decklog/decklog.db", clock=ManualClock(datetime.now(UTC) - timedelta(minutes=5))) as log:
        log.runs.start("Session of claude", run_id="claude-s1", metadata=facts)
    assert decklog(*look).code == 0
    assert _status_of_session(log_folder) == ("active", None)
    program.kill()
    program.wait()
    assert decklog(*look).code == 0
    assert _status_of_session(log_folder) == ("failed", "interrupted: the process ended before this did")


def _status_of_session(log_folder: Path) -> tuple[str, str | None]:
    with Decklog.open(log_folder / ".decklog/decklog.db") as log:
        run = log.runs.get("claude-s1")
    return run.status.value, run.summary
