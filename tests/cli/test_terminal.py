"""What a person sees on a terminal, and what a terminal is never sent."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from decklog import Decklog
from tests.cli.conftest import Program
from tests.db.processes import environment
from tests.every import every

# Clears the screen, sets the window's title, hides what follows, turns the writing around, and starts the line anew.
HOSTILE = "shown \x1b[2J\x1b]0;owned\x07\x9b8m\u202edrow\r\x08over"
# The few styles that our own screens have; none of them is in what the agent wrote.
OURS = re.compile(r"\x1b\[(?:0|1|2|1;33|31|32|36)m")
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def on_a_terminal(*words: str, cwd: Path, columns: int = 100) -> str:
    """Run `decklog` on a terminal of its own and give what the terminal was sent."""
    ours, theirs = pty.openpty()
    variables = environment(HOME=str(cwd / "home"), COLUMNS=str(columns))
    process = subprocess.Popen(
        [sys.executable, "-m", "decklog", *words], stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=variables
    )
    os.close(theirs)
    sent = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side was closed
            break
        if not part:
            break
        sent += part
    os.close(ours)
    process.wait(timeout=60)
    return sent.decode().replace("\r\n", "\n")


def seen(*words: str, cwd: Path, columns: int) -> str:
    """Give what is to be read on a terminal."""
    return OURS.sub("", on_a_terminal(*words, cwd=cwd, columns=columns))


@pytest.fixture
def hostile_folder(log_folder: Path) -> Path:
    with Decklog.open(log_folder / ".decklog" / "decklog.db") as log:
        log.tasks.add("run_1", HOSTILE, task_id="t1", objective=HOSTILE, tags=[HOSTILE], role=HOSTILE)
        claim = log.tasks.claim("run_1", worker=HOSTILE)
        log.tasks.fail("t1", fence=claim.task.fence, summary=HOSTILE, blocker=HOSTILE)
        log.tasks.pause("t1", reason=HOSTILE)
        log.journal.append("run_1", HOSTILE, kind="reasoning", agent=HOSTILE, payload={HOSTILE: [HOSTILE]})
        log.runs.update("run_1", summary=HOSTILE)
        log.memory.remember("task_outcomes", HOSTILE)
        log.approvals.ask("run_1", HOSTILE, by="dev-1", about=HOSTILE, approval_id="asked")
        log.budgets.set("agent", scope_id=HOSTILE, limit_tokens=5)
    return log_folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["journal", "find", "run_1"],
        ["journal", "show", "run_1", "6"],
        ["watch", "--no-follow"],
        ["watch", "run_1", "--no-follow"],
        ["search", "shown"],
        ["runs", "show", "run_1"],
        ["runs", "diff", "run_1:1", "run_1"],
        ["runs", "timeline", "run_1"],
        ["tasks", "board", "run_1"],
        ["tasks", "find", "run_1"],
        ["tasks", "show", "t1"],
        ["tasks", "ready", "run_1"],
        ["tasks", "attempts", "t1"],
        ["memory", "peek", "shown"],
        ["ledger", "burn"],
        ["now"],
        ["overview", "runs"],
        ["overview", "waiting"],
        ["approvals", "show", "asked"],
        ["tasks", "show", HOSTILE],
        ["runs", "find", "--since", HOSTILE],
        [HOSTILE],
        ["tasks", "find", "run_1", "--json"],
        ["journal", "find", "run_1", "--json"],
        ["tasks", "show", HOSTILE, "--json"],
    ],
    ids=" ".join,
)
def test_what_an_agent_wrote_never_drives_the_terminal(hostile_folder: Path, words: list[str]) -> None:
    sent = on_a_terminal(*words, cwd=hostile_folder)
    assert "shown" in sent
    assert OBEYED.findall(OURS.sub("", sent).replace("\n", "")) == []


@pytest.mark.slow
@every("words", [["watch", "--no-follow"], ["watch", "run_1", "--no-follow"], ["now"], ["journal", "find", "run_1"]])
def test_what_is_told_line_by_line_drives_no_terminal_behind_a_pager(
    decklog: Program, hostile_folder: Path, words: list[str]
) -> None:
    said = decklog(*words).out
    assert "shown" in said
    assert OBEYED.findall(said.replace("\n", "")) == []


def test_a_pipe_gets_the_text_as_it_is(decklog: Program, hostile_folder: Path) -> None:
    assert HOSTILE in decklog("tasks", "show", "t1").out
    assert decklog("tasks", "show", "t1", "--json").data["title"] == HOSTILE


def test_a_list_fits_the_terminal_and_says_what_it_left_out(log_folder: Path) -> None:
    with Decklog.open(log_folder / ".decklog" / "decklog.db") as log:
        log.tasks.add("run_1", "a title that goes on for longer than there is room " * 2, objective="o", tags=["x"], role="qa")
    table, _, left_out = seen("tasks", "find", "run_1", cwd=log_folder, columns=70).partition("Not shown: ")
    lines = table.splitlines()
    assert lines[0].split()[:3] == ["id", "title", "live_status"]
    assert max(map(len, lines)) <= 70
    assert "…" in lines[1]
    assert "objective" in left_out


def test_an_entry_fits_its_line(log_folder: Path) -> None:
    with Decklog.open(log_folder / ".decklog" / "decklog.db") as log:
        log.journal.append("run_1", "word " * 100)
    lines = seen("journal", "find", "run_1", cwd=log_folder, columns=80).splitlines()
    assert [len(line) for line in lines if "word" in line] == [80]


@pytest.mark.slow
def test_a_call_of_a_tool_is_told_by_its_command_and_its_outcome(decklog: Program, log_folder: Path) -> None:
    call = '{"tool": "run", "arguments": {"command": "pytest -q"}, "result": {"exit_code": 1}, "duration_ms": 8200}'
    decklog("journal", "append", "run_1", "--kind", "tool", "--subtype", "run", "--payload", call)
    assert decklog("journal", "find", "run_1", "--kind", "tool").out.endswith(" run: $ pytest -q → exit 1 in 8.2 s\n")
    decklog("journal", "append", "run_1", "--kind", "tool", "--payload", '["odd", 1]')
    assert decklog("journal", "find", "run_1", "--limit", "1").out.endswith(" odd, 1\n")


def test_parts_of_a_result_are_tables_of_their_own(decklog: Program, log_folder: Path) -> None:
    decklog("tasks", "add", "run_1", "one", "--task", "a")
    decklog("tasks", "add", "run_1", "two", "--task", "b", "--depends-on", "a")
    said = decklog("tasks", "ready", "run_1").out
    assert [line.split()[0] for line in said.splitlines() if line] == ["ready", "id", "a", "not_ready", "id", "b"]
    assert "waits for a (pending)" in said


@pytest.mark.slow
def test_the_board_shows_the_most_urgent_first_and_counts_what_was_given_up(decklog: Program, log_folder: Path) -> None:
    for name, priority in (("mild", "10"), ("urgent", "90"), ("gone", "50")):
        decklog("tasks", "add", "run_1", name, "--task", name, "--priority", priority)
    decklog("tasks", "abandon", "gone", "--reason", "not needed")
    said = decklog("tasks", "board", "run_1").out
    assert said.index("urgent") < said.index("mild")
    assert "Done (1)" in said
    assert "– gone" in said
    said = decklog("tasks", "board", "run_1", "--limit", "1").out
    assert "mild" not in said
    assert "and 1 more: --limit" in said


def test_a_diff_names_each_field_that_changed(decklog: Program, log_folder: Path) -> None:
    decklog("runs", "update", "run_1", "--summary", "half way")
    said = decklog("runs", "diff", "run_1:1", "run_1")
    assert said.out.splitlines() == ["runs run_1 changed", "  summary: (nothing) -> half way"]
    assert decklog("runs", "diff", "run_1", "run_1").out == "No differences.\n"
    assert decklog("runs", "diff", "run_1:1", "run_1", "--json").data[0]["fields"]["summary"] == [None, "half way"]


def test_the_version_is_known_without_an_installation(decklog: Program, tmp_path: Path) -> None:
    said = decklog("--version")
    assert (said.code, said.out.split()[0]) == (0, "decklog,")


def test_a_list_option_may_be_repeated_and_a_sentence_is_one_item(decklog: Program, log_folder: Path) -> None:
    said = decklog(
        *("tasks", "add", "run_1", "x", "--acceptance", "The tokens are the same, all of them", "--acceptance", "No new warning"),
        *("--tags", "a,b", "--tags", "c", "--json"),
    )
    assert said.data["acceptance"] == ["The tokens are the same, all of them", "No new warning"]
    assert said.data["tags"] == ["a", "b", "c"]
    assert decklog("tasks", "add", "run_1", "x", "--priority", "1", "--priority", "2").code == 2


def test_a_word_that_is_not_among_those_allowed_is_wrong_usage(decklog: Program, log_folder: Path) -> None:
    said = decklog("tasks", "find", "run_1", "--state", "flying", "--json")
    assert said.code == 2
    assert "pending|running" in json.loads(said.out)["error"]["message"]


@pytest.mark.slow
def test_a_run_shows_stale_evidence_as_stale(decklog: Program, log_folder: Path) -> None:
    decklog("criteria", "record", "run_1", '["All tests pass"]')
    decklog("criteria", "meet", "run_1", "1", "--evidence", "CI 41", "--evidence-commit", "a" * 40)
    assert "met" in decklog("runs", "show", "run_1").out
    decklog("criteria", "observe", "run_1", "--commit", "b" * 40)
    [line] = [line for line in decklog("runs", "show", "run_1").out.splitlines() if line.startswith("All tests pass")]
    assert line.split()[-1] == "stale"
