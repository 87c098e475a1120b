"""`decklog top` on a terminal: what is seen, what keys do, and what is decided."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog import Approval, Decklog
from tests.cli.conftest import Program
from tests.cli.screens import Terminal
from tests.cli.test_terminal import HOSTILE
from tests.waiting import wait_until

QUICK = ("--seconds", "0.1")


@pytest.fixture
def log(log_folder: Path) -> Iterator[Decklog]:
    """The log that the terminal shows, open here too."""
    with Decklog.open(log_folder / ".decklog" / "decklog.db") as log:
        log.runs.update("run_1", goal="Teach the parser to read trailing commas")
        log.tasks.add("run_1", "Change the lexer")
        log.tasks.claim("run_1", worker="dev-1", lease_seconds=3600)
        yield log


def ask(log: Decklog, question: str = "Push feature/commas?", about: object = "git push origin") -> Approval:
    return log.approvals.ask("run_1", question, by="dev-1", about=about)


def ended(terminal: Terminal) -> int:
    terminal.press("q")
    wait_until(lambda: terminal.shown is not None and terminal.process.poll() is not None)
    return int(terminal.process.returncode)


@pytest.mark.slow
def test_what_goes_on_is_seen_live_found_opened_and_left(log: Decklog, log_folder: Path) -> None:
    log.runs.start("Sweep the docs", run_id="docs")
    with Terminal("top", *QUICK, cwd=log_folder, columns=120) as top:
        wait_until(lambda: top.shows("1 agent works on 1 run; 1 more is under way.", "dev-1: Change t", "Nothing waits for you."))
        ask(log)
        wait_until(lambda: top.shows("1 decision waits for you.", "▲ Push feature/commas?", "▲ needs attention", "live,"))
        top.press("jj\n")
        wait_until(lambda: top.shows("Sweep the docs", "Latest entries first", "runs docs added"))
        top.press("\x1b")
        wait_until(lambda: top.shows("Needs attention", "Runs"))
        top.press("/sweep\n")
        wait_until(lambda: top.shows("Only what has “sweep”") and "Push" not in top.shown)
        top.press("/\n?")
        wait_until(lambda: top.shows("asks for a reason and the owner's signature"))
        top.press("q")
        wait_until(lambda: top.shows("Push feature/commas?"))
        assert ended(top) == 0


@pytest.mark.slow
def test_an_approval_is_read_and_granted_with_a_reason(log: Decklog, log_folder: Path) -> None:
    asked = ask(log)
    with Terminal("top", *QUICK, cwd=log_folder) as top:
        wait_until(lambda: top.shows("Push feature/commas?"))
        top.press("a")
        wait_until(lambda: top.shows("│ git push origin", "digest matches", "Why do you approve"))
        top.press("looks fine\n")
        wait_until(lambda: top.shows("Your name:"))
        top.press("mo\n")
        wait_until(lambda: top.shows("granted by mo, unproven"))
        wait_until(lambda: top.shows("Nothing waits for you."))
        assert ended(top) == 0
    decided = log.approvals.get(asked.id)
    assert (decided.state, decided.decided_by, decided.rationale) == ("granted", "mo", "looks fine")


@pytest.mark.slow
def test_a_denial_needs_a_reason_and_escape_decides_nothing(log: Decklog, log_folder: Path) -> None:
    asked = ask(log)
    with Terminal("top", *QUICK, cwd=log_folder) as top:
        wait_until(lambda: top.shows("Push feature/commas?"))
        for keys in ("d\n", "a\x1b", "dbecause\n\x1b"):
            top.press(keys)
            wait_until(lambda: top.shows("Nothing was decided."))
            top.press("r")
            wait_until(lambda: not top.shows("Nothing was decided."))
        assert log.approvals.get(asked.id).state == "open"
        top.press("dtoo early\n")
        wait_until(lambda: top.shows("Your name:"))
        top.press("mo\n")
        wait_until(lambda: top.shows("denied by mo"))
    assert log.approvals.get(asked.id).rationale == "too early"


@pytest.mark.slow
def test_what_is_not_in_the_log_is_granted_by_its_digest_alone(log: Decklog, log_folder: Path) -> None:
    asked = log.approvals.ask("run_1", "Deploy?", by="dev-1", subject_digest="a" * 64)
    with Terminal("top", *QUICK, cwd=log_folder) as top:
        wait_until(lambda: top.shows("Deploy?"))
        top.press("a\n")
        wait_until(lambda: top.shows("not in the log", "SHA-256 of what you looked at:"))
        top.press("b" * 64 + "\nmo\n")
        wait_until(lambda: top.shows("Nothing was decided:"))
        top.press("a\n" + "a" * 64 + "\nmo\n")
        wait_until(lambda: top.shows("granted by mo"))
    assert log.approvals.get(asked.id).state == "granted"


@pytest.mark.slow
def test_a_terminal_may_be_of_any_size_and_change_it(log: Decklog, log_folder: Path) -> None:
    ask(log)
    with Terminal("top", *QUICK, cwd=log_folder, columns=40, lines=8) as top:
        wait_until(lambda: top.shows("1 decision waits for you."))
        for columns, lines in ((10, 2), (1, 1), (300, 60), (60, 12)):
            top.resize(columns, lines)
            top.press("jk")
            if columns > 1:
                # The last column is left free, since a sign there would move the screen up.
                wait_until(lambda: top.shown.strip())
        wait_until(lambda: top.shows("1 decision waits for you.", "Push feature/commas?"))
        assert ended(top) == 0


@pytest.mark.slow
def test_only_what_needs_a_person_is_loud_and_nothing_is_where_no_colour_is_wanted(log: Decklog, log_folder: Path) -> None:
    ask(log)
    for variables, colour in (({}, "brown"), ({"NO_COLOR": "1"}, "default")):
        with Terminal("top", *QUICK, cwd=log_folder, **variables) as top:
            wait_until(lambda top=top: top.shows("▲ needs attention"))  # type: ignore[misc]
            assert getattr(top.style_of("▲ needs attention"), "fg") == colour  # noqa: B009
            assert getattr(top.style_of("Runs"), "fg") == "default"  # noqa: B009


def test_what_agents_wrote_does_not_drive_the_terminal(log: Decklog, log_folder: Path) -> None:
    log.runs.update("run_1", goal=HOSTILE)
    log.journal.append("run_1", HOSTILE, agent=HOSTILE)
    ask(log, HOSTILE, HOSTILE)
    with Terminal("top", *QUICK, cwd=log_folder, columns=160) as top:
        wait_until(lambda: top.shows("▲ shown ⟨U+001B⟩"))
        top.press("\n")
        wait_until(lambda: top.shows("│ shown ⟨U+001B⟩", "digest matches"))
        top.press("qj\n")
        wait_until(lambda: top.shows("Latest entries first"))
        top.press("q")
        assert ended(top) == 0
        for part in (b"owned\x07", b"\x1b]0;owned", b"\x9b8m", "\u202e".encode()):
            assert part not in top.sent


@pytest.mark.slow
def test_a_new_log_says_how_to_begin_and_what_is_no_terminal_is_refused(decklog: Program, tmp_path: Path) -> None:
    assert decklog("init").code == 0
    with Terminal("top", *QUICK, cwd=tmp_path) as top:
        wait_until(lambda: top.shows("Nothing has happened in this log yet.", "decklog runs start"))
        top.press("jk\na")
        assert ended(top) == 0
    refused = decklog("top")
    assert refused.code == 2
    assert "decklog now" in refused.err
    assert os.path.exists(tmp_path / ".decklog")


@pytest.mark.slow
@pytest.mark.usefixtures("log")
def test_the_screen_ends_when_its_terminal_is_gone(log_folder: Path) -> None:
    with Terminal("top", *QUICK, cwd=log_folder) as top:
        wait_until(lambda: top.shows("1 agent works"))
        top.hang_up()
        wait_until(lambda: top.process.poll() is not None)
