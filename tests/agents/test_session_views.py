"""Recorded sessions as people pick and read them: one line each, steps by time, diffs instead of JSON."""

from datetime import timedelta
from pathlib import Path

import pytest

from decklog import Decklog, Invalid, ManualClock, NotFound
from decklog.agents.events import (
    CallOutcome,
    MessageSent,
    PromptSubmitted,
    ReasoningShown,
    SessionEnded,
    SessionEvent,
    SessionStarted,
    TokensUsed,
    ToolCalled,
    ToolReturned,
)
from decklog.agents.prime import Prime
from decklog.agents.recorder import Recorder
from decklog.agents.session_views import SessionSummary, find_session, priced, sessions, short_ids, steps_of
from decklog.cli.lines import render_line
from decklog.cli.screens.session import session_head, session_lines, step_lines
from tests.agents.test_recorder import AT, at, session
from tests.conductor.test_sessions import EVENTS, agent, started, task_id, watch

__all__ = ["task_id"]

PATCH = "*** Begin Patch\n*** Update File: /repo/b.py\n@@\n-old\n+new\n*** End Patch"
CHANGES: list[SessionEvent] = [
    SessionStarted(**at(0), cwd="/repo", model="m"),
    PromptSubmitted(**at(1), prompt_id="p1", text="Fix the parser\nand test it"),
    ReasoningShown(**at(2), text="The commas.", message_id="m1"),
    ToolCalled(**at(3), call_id="t1", tool="Bash", arguments={"command": "pytest -q", "description": "Run"}),
    ToolReturned(**at(5), call_id="t1", outcome=CallOutcome.FAILED, output="F\nE assert 1 == 2", facts={"duration_ms": 1500}),
    ToolCalled(
        **at(6), call_id="t2", tool="Edit", arguments={"file_path": "/repo/a.py", "old_string": "x\ny", "new_string": "x\nz"}
    ),
    ToolReturned(**at(7), call_id="t2", outcome=CallOutcome.OK, output="{}"),
    ToolCalled(**at(8), call_id="t3", tool="apply_patch", arguments={"command": PATCH}),
    ToolReturned(**at(9), call_id="t3", outcome=CallOutcome.OK, output=""),
    ToolCalled(**at(10), call_id="t4", tool="Bash", arguments={"command": "rm -rf ~"}),
    ToolReturned(**at(10), call_id="t4", outcome=CallOutcome.DENIED, output="Not allowed."),
    MessageSent(**at(11), text="Done, but the test fails.", message_id="m2"),
    TokensUsed(**at(11), answer_id="a1", model="m", input_tokens=5, microdollars=420_000),
    SessionEnded(**at(12)),
]


def lines_of(log: Decklog, name: str, places: int = 80, **wanted: bool) -> list[str]:
    steps = steps_of(log, find_session(log, name))
    return [render_line(line, colour=False) for line in step_lines(steps, places, **wanted)]


def test_a_session_is_shown_by_time_with_marks_seconds_and_diffs(log: Decklog) -> None:
    Recorder(log, "claude").record(CHANGES)
    assert lines_of(log, "s1") == [
        "12:00:01  you: Fix the parser",
        "          and test it",
        "12:00:02  thinks: The commas.",
        "12:00:03  ✗ pytest -q  1.5 s",
        "            F",
        "            E assert 1 == 2",
        "12:00:06  ✓ Edit a.py  1.0 s",
        "             x",
        "            -y",
        "            +z",
        "12:00:08  ✓ apply_patch b.py  1.0 s",
        *("            " + line for line in PATCH.splitlines()),
        "12:00:10  ⊘ rm -rf ~  0.00 s",
        "            Not allowed.",
        "12:00:11  claude: Done, but the test fails.",
    ]


def test_a_call_without_a_result_is_shown_as_under_way(log: Decklog) -> None:
    Recorder(log, "claude").record(CHANGES[:4])
    assert lines_of(log, "s1")[-1] == "12:00:03  … pytest -q"


def test_a_sub_agents_steps_are_among_those_of_its_session(log: Decklog) -> None:
    Recorder(log, "claude").record(session())
    assert "12:00:06  ↳ ✗ Read x.py  1.0 s" in lines_of(log, "s1")


def test_long_texts_are_cut_unless_all_is_wanted(log: Decklog) -> None:
    many = "\n".join(f"line {number}" for number in range(100))
    Recorder(log, "claude").record([PromptSubmitted(**at(1), prompt_id="p", text=many)])
    assert lines_of(log, "s1")[-1] == "… 88 lines more (--full)".rjust(len("          … 88 lines more (--full)"))
    assert len(lines_of(log, "s1", full=True)) == 100


def test_sessions_are_listed_newest_first_with_their_cost(log: Decklog) -> None:
    Recorder(log, "claude").record(CHANGES)
    log.runs.start("A planned run", run_id="planned")
    Recorder(log, "codex").record(
        [
            SessionStarted(session_id="c1", at=AT + timedelta(minutes=5)),
            SessionEnded(session_id="c1", at=AT + timedelta(minutes=6)),
        ]
    )
    found = [priced(log, one) for one in sessions(log)]
    lines = [render_line(line, colour=False) for line in session_lines(found, AT + timedelta(hours=2), 100)]
    assert lines == [
        "c1  codex      1 h ago   1 min     $0.00  completed  Session of codex",
        "s1  claude     2 h ago    12 s     $0.42  completed  Fix the parser and test it",
    ]
    assert [one.session for one in sessions(log, program="codex")] == ["c1"]
    assert [one.session for one in sessions(log, folder="/repo")] == ["s1"]
    shown = "\n".join(render_line(line, colour=False) for line in session_head(found[1], steps_of(log, found[1]), AT, 100))
    assert "4 calls, 2 failed" in shown
    assert "claude --resume s1" in shown


def test_a_session_is_found_by_the_beginning_of_its_id(log: Decklog) -> None:
    for name in ("01a1ee61-1111", "01a1ee61-2222", "77"):
        Recorder(log, "codex").record([SessionStarted(session_id=name, at=AT)])
    assert find_session(log, "7").session == "77"
    assert find_session(log, "codex-77").session == "77"
    assert sorted(short_ids([*sessions(log)])) == ["01a1ee61-1", "01a1ee61-2", "77"]
    with pytest.raises(Invalid, match="several sessions begin with 01a1"):
        find_session(log, "01a1")
    with pytest.raises(NotFound, match="no session nope"):
        find_session(log, "nope")


def test_a_session_that_a_run_started_is_shown_with_its_work_item(log: Decklog, task_id: str, tmp_path: Path) -> None:
    rules = [
        {"when": {"/type": "start"}, "as": "start", "take": {"session": "/session"}},
        {"when": {"/type": "call"}, "as": "tool", "take": {"call": "/id", "tool": "/tool", "input": "/input"}},
        {"when": {"/type": "done"}, "as": "result", "take": {"call": "/id", "exit_code": "/code", "output": "/out"}},
        *EVENTS,
    ]
    call = {"type": "call", "id": "t1", "tool": "Bash", "input": {"command": "make"}}
    steps = [
        ["print", {"type": "start", "session": "h1"}],
        ["print", call],
        ["sleep", 0.2],
        ["print", {"type": "done", "id": "t1", "code": 2, "out": "no rule"}],
        ["print", {**call, "id": "t2"}],
        ["print", {"type": "turn", "cost": 0.25}],
    ]
    watch(log, started(tmp_path, *steps), agent(events=rules))
    found: SessionSummary = priced(log, find_session(log, "h1"))
    assert (found.task_id, found.run_id, found.program, found.microdollars, found.resume) == (
        task_id,
        "run_1",
        "fake",
        250_000,
        None,
    )
    first, second = steps_of(log, found)
    assert (first.text, first.outcome, first.output) == ("make", "failed", "no rule")
    assert first.seconds is not None
    assert 0.1 < first.seconds < 60
    assert (second.outcome, second.output) == ("interrupted", "the session ended before the call did")


def test_an_agent_that_begins_is_told_what_the_last_session_did_left_failing_and_learned(
    log: Decklog, clock: ManualClock
) -> None:
    Recorder(log, "claude").record(CHANGES[:-1])
    assert "Last session" not in Prime(log).text(), "it goes on"
    clock.advance(seconds=(AT - clock.now()).total_seconds() + 20)
    log.memory.remember("task_outcomes", "Commas end a part")
    Recorder(log, "claude").record([SessionEnded(**at(30))])
    text = Prime(log, folder="/repo").text()
    told = text[text.index("Last session here") :]
    for line in (
        "$0.42): Fix the parser and test it\n",
        "- said at its end: Done, but the test fails.\n",
        "- changed: a.py, b.py\n",
        "- left failing: pytest -q (E assert 1 == 2)\n",
        "- learned: Commas end a part\n",
        "- all of it: decklog sessions show s1\n",
    ):
        assert line in told, told
    assert "Last session" not in Prime(log, since=AT).text(), "one that was here before knows it"


def test_a_command_that_passed_later_is_not_left_failing(log: Decklog) -> None:
    again = [
        ToolCalled(**at(13), call_id="t9", tool="Bash", arguments={"command": "pytest -q"}),
        ToolReturned(**at(14), call_id="t9", outcome=CallOutcome.OK, output="2 passed"),
    ]
    Recorder(log, "claude").record([*CHANGES[:-1], *again, SessionEnded(**at(15))])
    assert "left failing" not in Prime(log).text()


def test_no_more_than_so_many_bytes_are_told_of_the_last_session(log: Decklog) -> None:
    calls = [
        one
        for number in range(40)
        for one in (
            ToolCalled(**at(number), call_id=f"t{number}", tool="Bash", arguments={"command": f"run {number} {'x' * 300}"}),
            ToolReturned(**at(number), call_id=f"t{number}", outcome=CallOutcome.FAILED, output="文" * 400),
        )
    ]
    Recorder(log, "claude").record([PromptSubmitted(**at(0), prompt_id="p", text="字" * 900), *calls, SessionEnded(**at(99))])
    text = Prime(log).text()
    told = text[text.index("Last session here") : text.index("\nCommands:")]
    assert "left failing" in told
    assert len(told.encode()) <= 1500
