"""The first minutes: `decklog` alone, `init`, `start`, and commands that were mistyped."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from decklog import Decklog
from tests.cli.conftest import Program
from tests.cli.screens import Terminal
from tests.pictures import history
from tests.waiting import wait_until

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


@pytest.fixture
def used(repository: Path) -> Path:
    """A repository of somebody who has used Claude Code and Codex in it."""
    history.write(repository / "home", repository, NOW, sessions=5)
    return repository


def test_decklog_alone_without_a_log_shows_the_first_steps_in_five_lines(decklog: Program, repository: Path) -> None:
    said = decklog()
    assert said.code == 0
    assert len(said.out.splitlines()) == 5
    assert "decklog start" in said.out
    assert "decklog init" in said.out
    assert decklog("--json").data["exists"] is False


def test_decklog_alone_with_a_log_shows_what_now_shows_in_brief(decklog: Program, log_folder: Path) -> None:
    with Decklog.open(log_folder / ".decklog" / "decklog.db") as log:
        log.approvals.ask("run_1", "Push the branch?", by="dev-1", about="git push")
        log.ledger.charge("m", cost_microdollars=1_500_000, run_id="run_1")
    said = decklog()
    assert said.code == 0
    assert said.out.startswith("1 decision")
    assert "Push the branch?" in said.out
    assert "a goal" in said.out
    assert "$1.50 spent in all" in said.out
    assert len(said.out.splitlines()) < 12


def test_init_offers_to_import_and_record_the_agents_that_were_used(decklog: Program, used: Path) -> None:
    _, *steps = decklog("init").out.splitlines()
    commands = [" ".join(step.removeprefix("Next:").split()[:3]) for step in steps]
    assert commands == ["decklog import claude", "decklog import codex", "decklog setup claude", "decklog setup codex"]


def test_init_offers_to_start_a_run_where_no_agent_was_used(decklog: Program, repository: Path) -> None:
    assert decklog("init").out.splitlines()[1:] == ['Next: decklog runs start "What is to be done"']


def test_start_without_a_terminal_names_the_commands_and_changes_nothing(decklog: Program, used: Path) -> None:
    said = decklog("start", "--json")
    assert said.code == 2
    assert said.envelope["error"]["details"]["commands"] == [
        "decklog init --no-agents-md",
        "decklog import claude",
        "decklog import codex",
        "decklog setup claude",
        "decklog setup codex",
        "decklog cost",
    ]
    assert not (used / ".decklog").exists()


@pytest.mark.slow
def test_start_asks_and_does_what_is_answered_with_yes(used: Path) -> None:
    with Terminal("start", cwd=used, columns=110, lines=60) as shown:
        answers = iter("yyynn")
        for question in ("Create a log", "of Claude Code?", "of Codex?", "Record new sessions of Claude", "sessions of Codex?"):
            wait_until(lambda question=question: shown.shows(question))  # type: ignore[misc]
            shown.press(f"{next(answers)}\n")
        wait_until(lambda: shown.shows("Ready."))
        shown.process.wait(30)
        assert shown.shows("Imported 4 sessions of Claude Code", "Imported 1 session of Codex", "calls in 5 sessions")
    assert not (used / ".claude").exists(), "the answer was no"
    with Decklog.open(used / ".decklog" / "decklog.db") as log:
        assert len(log.runs.find(limit=50)) == 5


def test_start_changes_nothing_when_the_first_answer_is_no(used: Path) -> None:
    with Terminal("start", cwd=used) as shown:
        wait_until(lambda: shown.shows("Create a log"))
        shown.press("n\n")
        wait_until(lambda: shown.shows("Nothing was changed."))
    assert not (used / ".decklog").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["tasks", "clam"], "unknown command: tasks clam (did you mean claim?)"),
        (["strat"], "unknown command: strat (did you mean start?)"),
        (["import", "cluade"], "unknown command: import cluade (did you mean claude?)"),
        (["setup", "codx"], "unknown command: setup codx (did you mean codex?)"),
        (["report", "weak"], "unknown command: report weak (did you mean week?)"),
        (["feedback", "fnid"], "unknown command: feedback fnid (did you mean find?)"),
    ],
)
def test_a_mistyped_command_gets_a_suggestion_at_every_level(decklog: Program, words: list[str], told: str) -> None:
    said = decklog(*words)
    assert (said.code, said.err.splitlines()[0]) == (2, f"decklog: {told}")


@pytest.mark.slow
def test_completion_scripts_complete_commands_and_their_parts(decklog: Program, repository: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_DECKLOG_COMPLETE" in decklog("completion", shell).out
    asked = {"_DECKLOG_COMPLETE": "bash_complete", "COMP_CWORD": "1"}
    assert "plain,cost" in decklog(COMP_WORDS="decklog co", **asked).out.split()
    assert "plain,claim" in decklog(COMP_WORDS="decklog tasks cl", **{**asked, "COMP_CWORD": "2"}).out.split()


@pytest.mark.slow
def test_cost_in_json_is_in_microdollars_and_on_the_screen_in_dollars(decklog: Program, log_folder: Path) -> None:
    with Decklog.open(log_folder / ".decklog" / "decklog.db") as log:
        log.runs.update("run_1", worktree=str(log_folder / "src"))
        log.runs.start("helper", run_id="run_1-a", parent_run_id="run_1")
        log.ledger.charge("claude-opus-5-5", cost_microdollars=2_000_000, run_id="run_1", input_tokens=10)
        log.ledger.charge("claude-haiku-5-5", cost_microdollars=500_000, run_id="run_1-a", output_tokens=30)
        log.ledger.charge("a-new-model", run_id="run_1", output_tokens=5)
    said = decklog("cost").out
    assert said.startswith("$2.50 for 3 calls in 1 session, ")
    assert "claude-opus-5-5" in said
    assert "$2.00" in said
    assert "Not in the sum: 1 call without a known price: a-new-model (1)" in said
    assert "micro" not in said
    data = decklog("cost", "--json").data
    assert data["total"]["cost_microdollars"] == 2_500_000
    by_session = decklog("cost", "--by", "session", "--json").data["rows"]
    assert [(row["key"], row["cost_microdollars"], row["goal"]) for row in by_session] == [("run_1", 2_500_000, "a goal")]
    by_repository = decklog("cost", "--by", "repo", "--json").data["rows"]
    assert [(row["key"], row["cost_microdollars"]) for row in by_repository] == [
        (str(log_folder / "src"), 2_000_000),
        (None, 500_000),
    ]
    assert [row["cost_microdollars"] for row in decklog("cost", "--by", "day", "--json").data["rows"]] == [2_500_000]


def test_cost_of_a_repository_counts_its_subfolders_and_linked_worktrees(decklog: Program, log_folder: Path) -> None:
    main, linked = log_folder / "main", log_folder / "linked"
    (main / ".git/worktrees/linked").mkdir(parents=True)
    (main / "src").mkdir()
    linked.mkdir()
    (linked / ".git").write_text(f"gitdir: {main}/.git/worktrees/linked\n")
    (main / ".git/worktrees/linked/gitdir").write_text(f"{linked}/.git\n")
    with Decklog.open(log_folder / ".decklog" / "decklog.db") as log:
        for place in (main, main / "src", linked):
            run = log.runs.start("x", worktree=str(place))
            log.ledger.charge("m", cost_microdollars=1_000_000, run_id=run.id)
    rows = decklog("cost", "--by", "repo", "--json").data["rows"]
    assert [(row["key"], row["cost_microdollars"]) for row in rows] == [(str(main), 3_000_000)]


@pytest.mark.slow
def test_an_import_takes_only_sessions_of_this_repository_and_its_worktrees(decklog: Program, used: Path) -> None:
    elsewhere, linked = used.parent / "elsewhere", used.parent / "linked"
    history.write(used / "home/other", elsewhere, NOW, sessions=2, seed=8)
    history.write(used / "home/third", linked / "src", NOW, sessions=3, seed=9)
    for name in ("other", "third"):
        os.rename(used / f"home/{name}/.claude/projects/-project", used / f"home/.claude/projects/-{name}")
    (used / ".git/worktrees/linked").mkdir(parents=True)
    (used / ".git/worktrees/linked/gitdir").write_text(f"{linked}/.git\n")
    decklog("init")
    said = decklog("import", "claude")
    assert said.code == 0, said.err
    assert said.out.startswith("Imported 7 sessions of Claude Code from 7 files"), "four of the repository, three of the worktree"
    assert decklog("import", "claude", "--all").out.startswith("Imported 2 sessions of Claude Code from 2 files")
    assert decklog("import", "claude").out.startswith("Nothing new of Claude Code, 7 files unchanged")


@pytest.mark.slow
def test_an_import_ends_with_what_it_found(decklog: Program, used: Path) -> None:
    decklog("init")
    lines = decklog("import", "claude").out.splitlines()
    assert lines[0].startswith("Imported 4 sessions of Claude Code from 4 files in ")
    assert lines[1] == "1 secret redacted: anthropic-key 1"
    assert " calls in 4 sessions, 2026-" in lines[3]
    assert "tokens: " in lines[4]
    assert any(line.startswith("claude-") and "$" in line for line in lines)
    assert any(line.startswith("Costliest $") for line in lines)
    data = decklog("import", "codex", "--json").data
    assert (data["sessions"], data["files"]) == (1, 1)
    assert data["spent"]["total"]["cost_microdollars"] > 0


@pytest.mark.slow
def test_an_import_that_finds_nothing_says_where_it_looked(decklog: Program, repository: Path) -> None:
    decklog("init")
    said = decklog("import", "claude")
    assert said.code == 3
    assert f"there is no folder {repository}/home/.claude/projects" in said.err
    history.write(repository / "home", repository / "elsewhere", NOW, sessions=2)
    (other := repository / "other" / ".git").mkdir(parents=True)
    decklog("init", cwd=other.parent)
    said = decklog("import", "claude", cwd=other.parent)
    assert said.code == 3
    assert f"no session of claude in {other.parent} found; looked below {repository}/home/.claude/projects" in said.err
    assert "2 files of sessions in other folders" in said.err
    assert "decklog import claude --all" in said.err


def test_an_import_shows_progress_with_a_rate_on_a_terminal(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from decklog.cli import terminal
    from decklog.core.display import sized

    written: list[str] = []
    clock = iter([0.0, 0.0, 1.5, 3.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(terminal.sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(terminal.sys.stderr, "write", written.append)
    meter = terminal.ProgressMeter(sized)
    meter("events", 0, 30_000_000)
    meter("events", 10_000_000, 30_000_000)
    assert written[-1].endswith("events: 10 MB of 30 MB (33 %)  6.7 MB/s  3 s left")


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_cost_fits_the_terminal_and_keeps_amounts_whole(decklog: Program, used: Path, width: int) -> None:
    decklog("init")
    decklog("import", "claude")
    amounts = {f"${row['cost_microdollars'] / 1_000_000:.2f}" for row in decklog("cost", "--json").data["rows"]}
    for by in ("model", "day", "session", "repo"):
        lines = decklog("cost", "--by", by, COLUMNS=str(width)).out.splitlines()
        assert max(map(len, lines)) <= width, by
    shown = decklog("cost", COLUMNS=str(width)).out
    assert all(amount in shown for amount in amounts)
