"""`decklog sessions`: list, search, show and resume, as a person types them."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.agents.events import SessionStarted
from decklog.agents.recorder import Recorder
from decklog.core.processes import Identity
from tests.agents.test_session_views import AT, CHANGES
from tests.cli.conftest import Program


@pytest.fixture
def with_session(log_folder: Path) -> Path:
    with Decklog.open(log_folder / ".decklog" / "decklog.db") as log:
        Recorder(log, "claude").record(CHANGES)
    return log_folder


def test_sessions_are_listed_one_line_each(with_session: Path, decklog: Program) -> None:
    for words in (["sessions"], ["sessions", "list"]):
        (line,) = decklog(*words).out.splitlines()
        assert line.startswith("s1  claude")
        assert line.endswith("$0.42  completed  Fix the parser and test it")
    assert decklog("sessions", "--program", "codex").out.startswith("No sessions are recorded")
    (one,) = decklog("sessions", "--json").data
    assert (one["session"], one["microdollars"], one["resume"]) == ("s1", 420_000, "claude --resume s1")


@pytest.mark.slow
def test_a_session_is_shown_and_its_failures_alone(with_session: Path, decklog: Program) -> None:
    assert "✓ Edit a.py" in decklog("sessions", "show").out
    failed = decklog("sessions", "show", "s1", "--failed").out
    assert "✗ pytest -q" in failed
    assert "Edit" not in failed
    assert [step["kind"] for step in decklog("sessions", "show", "--json").data["steps"]][:2] == ["prompt", "thought"]
    assert decklog("sessions", "show", "nope").code == 3


@pytest.mark.slow
def test_sessions_are_searched_by_what_was_said_run_or_printed(with_session: Path, decklog: Program) -> None:
    for words in (["parser"], ["pytest"], ["assert"]):
        assert decklog("sessions", "search", *words).out.startswith("s1  claude"), words
    assert decklog("sessions", "search", "zebra").out == "Nothing found.\n"


def test_the_command_that_goes_on_with_a_session_names_its_folder(with_session: Path, decklog: Program) -> None:
    assert decklog("sessions", "resume").out == "cd /repo && claude --resume s1\n"
    assert json.loads(decklog("sessions", "resume", "s1", "--json").out)["data"]["command"].endswith("claude --resume s1")


@pytest.mark.slow
@pytest.mark.parametrize("look", [["sessions"], ["now"], ["runs", "find"]])
def test_a_session_whose_program_was_just_killed_has_ended_at_the_next_look(
    log_folder: Path, decklog: Program, look: list[str]
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as program:
        identity = Identity.of(program.pid)
        assert identity is not None
        with Decklog.open(log_folder / ".decklog" / "decklog.db") as log:
            Recorder(log, "claude").record([SessionStarted(session_id="s1", at=AT, process=identity.as_text())])
            decklog(*look)
            assert log.runs.get("claude-s1").status == "active"
            program.send_signal(signal.SIGKILL)
            program.wait()
            decklog(*look)
            assert log.runs.get("claude-s1").status == "failed"


def test_a_session_of_a_work_item_names_the_command_that_takes_it_over(with_session: Path, decklog: Program) -> None:
    with Decklog.open(with_session / ".decklog" / "decklog.db") as log:
        run_id = log.runs.start("Make it better", run_id="run_1").id
        task_id = log.tasks.add(run_id, "Fast", task_id="fast.w1", tags=["item:fast"]).id
        log.journal.append(
            run_id, "start", kind="event", subtype="agent.start", agent="codex", task_id=task_id, payload={"session": "s2"}
        )
    refused = decklog("sessions", "resume", "s2")
    assert (refused.code, "decklog run open run_1.fast" in refused.err) == (3, True), refused
