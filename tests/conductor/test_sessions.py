"""An agent is started, watched, charged and ended; after a crash it is adopted, or ends by itself."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, Invalid, NotFound
from decklog.conductor import commands
from decklog.conductor.agents import stream
from decklog.conductor.agents.description import Description, describe, known_names
from decklog.conductor.agents.session import AgentSession, SessionOutcome, Terms
from decklog.conductor.commands import Command, Running
from decklog.core.processes import Identity
from decklog.guard.sandbox.sandbox import Sandbox
from decklog.guard.shell import process_tree
from tests.agents import test_history as history
from tests.conductor.scripts import COMMAND, script
from tests.waiting import wait_until

FULL = "DECKLOG_TEST_FULL" in os.environ
NOTHING = Sandbox(kind="none")  # type: ignore[arg-type]
EVENTS = [
    {"when": {"/type": "tool"}, "as": "tool"},
    {"when": {"/type": "turn"}, "as": "usage", "take": {"cost_usd": "/cost"}},
    {"when": {"/type": "limit"}, "as": "error", "take": {"text": "/text"}},
]
ERRORS = [{"text": "429", "class": "quota"}, {"text": "401", "class": "login"}]


def agent(**settings: Any) -> Description:
    return describe("fake", {"command": COMMAND, "stream": "jsonl", "events": EVENTS, "errors": ERRORS, **settings})


def started(tmp_path: Path, *steps: list[Any], mark: str = "run_1:lexer.w1:1", **terms: Any) -> Running:
    root, told = tmp_path / "tree", tmp_path / "prompt"
    root.mkdir(exist_ok=True)
    told.write_text(script(*steps), encoding="utf-8")
    command = Command(argv=COMMAND, mark=mark, root=root, folder=tmp_path / "agent", sandbox=NOTHING, input=told, **terms)
    commands.start(command)
    running = Running.find(mark, tmp_path / "agent")
    assert running is not None
    return running


@pytest.fixture
def task_id(log: Decklog, run_id: str) -> str:
    return log.tasks.add(run_id, "Lexer", task_id="lexer.w1").id


def watch(log: Decklog, running: Running, description: Description, **terms: Any) -> SessionOutcome:
    session = AgentSession(log, description, Terms(run_id="run_1", task_id="lexer.w1", **terms), running)
    return session.watch(lambda: None)


def test_an_agent_reads_what_to_do_and_its_end_is_seen(log: Decklog, task_id: str, tmp_path: Path) -> None:
    running = started(tmp_path, ["write", "a.py", "1\n"], ["print", {"type": "tool", "n": 1}], ["exit", 3])
    outcome = watch(log, running, agent())
    assert (outcome.exit_code, outcome.reason, outcome.ended_for) == (3, "exited", None)
    assert (tmp_path / "tree/a.py").read_text() == "1\n"
    assert [entry.subtype for entry in log.journal.find("run_1", task_id=task_id, kind="tool")] == ["agent.tool"]  # type: ignore[arg-type]


def test_a_stream_that_is_read_twice_is_charged_and_recorded_once(log: Decklog, task_id: str, tmp_path: Path) -> None:
    running = started(tmp_path, *[["print", {"type": "turn", "cost": 0.25}]] * 4)
    outcomes = [watch(log, running, agent()) for _ in range(2)]
    assert [outcome.microdollars for outcome in outcomes] == [1_000_000] * 2
    assert sum(charge.cost_microdollars or 0 for charge in log.ledger.find("run_1")) == 1_000_000
    assert len(log.journal.find("run_1", subtype="agent.usage")) == 4


def test_a_session_that_a_run_has_paid_for_is_not_imported_again(log: Decklog, task_id: str, tmp_path: Path) -> None:
    start = {"when": {"/type": "start"}, "as": "start", "take": {"session": "/session"}}
    turns = [["print", {"type": "turn", "cost": 0.25}]] * 2
    running = started(tmp_path, ["print", {"type": "start", "session": "s1"}], *turns)
    watch(log, running, agent(events=[start, *EVENTS]))
    paid = [charge.cost_microdollars for charge in log.ledger.find()]
    history.write(tmp_path / "projects/-repo/s1.jsonl", history.session("s1"))
    history.write(tmp_path / "projects/-repo/s2.jsonl", [history.prompt(10, "Go", "s2"), history.answer(11, session="s2")])
    history.taken(log, tmp_path / "projects", tmp_path)
    assert [charge.cost_microdollars for charge in log.ledger.find("run_1")] == paid == [250_000, 250_000]
    assert {run.id for run in log.runs.find()} == {"run_1", "claude-s2"}, "a person's own session is imported"


def test_a_model_that_nobody_asked_is_not_charged(log: Decklog, task_id: str, tmp_path: Path) -> None:
    take = {"input_tokens": "/in", "output_tokens": "/out"}
    end = {"when": {"/type": "end"}, "as": "end", "total": True, "take": take}
    running = started(tmp_path, ["print", {"type": "end", "in": 0, "out": 0}])
    watch(log, running, agent(events=[end]))
    assert list(log.ledger.find("run_1")) == []


def test_what_an_agent_wrote_to_standard_error_is_kept_and_a_failed_start_costs_nothing(
    log: Decklog, task_id: str, tmp_path: Path
) -> None:
    long = "x" * 9000 + " no such option"
    outcome = watch(log, started(tmp_path, ["run", ["sh", "-c", f"echo {long} >&2"]], ["exit", 2]), agent())
    assert outcome.stderr.endswith(" no such option")
    assert len(outcome.stderr) == 4096
    assert list(log.ledger.find("run_1")) == [], "no model was asked"


def test_a_login_error_on_standard_error_is_no_failure_of_the_agent(log: Decklog, task_id: str, tmp_path: Path) -> None:
    running = started(tmp_path, ["run", ["sh", "-c", "echo Invalid API key 401 >&2"]], ["exit", 1])
    outcome = watch(log, running, agent())
    assert (outcome.error_class, outcome.is_outage) == ("login", True)


@pytest.mark.slow
def test_a_model_that_only_the_transcript_names_is_charged(log: Decklog, task_id: str, tmp_path: Path) -> None:
    events = [
        {"when": {"/type": "start"}, "as": "start", "take": {"session": "/id"}},
        {"when": {"/type": "turn"}, "as": "usage", "take": {"output_tokens": "/tokens"}},
    ]
    lines = ["no JSON", '{"type": "meta", "model": 3}', '{"type": "turn", "context": {"model": "gpt-5.5"}}']
    (tmp_path / "agent/home/kept/a").mkdir(parents=True)
    (tmp_path / "agent/home/kept/a/session-s1.jsonl").write_text("\n".join(lines))
    (tmp_path / "agent/home/kept/a/session-s2.jsonl").write_text('{"context": {"model": "another"}}')
    running = started(tmp_path, ["print", {"type": "start", "id": "s1"}], ["print", {"type": "turn", "tokens": 100}])
    transcript = {"file": "~/kept/*/session-{session}.jsonl", "model": "/context/model"}
    watch(log, running, agent(events=events, transcript=transcript))
    (charge,) = log.ledger.find("run_1")
    assert charge.model == "gpt-5.5"


@pytest.mark.parametrize("error", [None, "429"])
def test_a_session_that_reports_no_spending_is_charged_by_its_transcript(
    error: str | None, log: Decklog, task_id: str, tmp_path: Path
) -> None:
    def answer(name: str, tokens: int) -> str:
        usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": tokens}
        message = {"id": name, "model": "claude-opus-4-5", "content": [], "usage": usage}
        return json.dumps({"type": "assistant", "sessionId": "s1", "message": message}) + "\n"

    kept = tmp_path / "agent/home/.claude/projects/a"
    (kept / "s1/subagents").mkdir(parents=True)
    (kept / "s1.jsonl").write_text(answer("one", 1) + answer("one", 3) + answer("two", 4) + '{"type": "assist')
    (kept / "s1/subagents/agent-a.jsonl").write_text(answer("three", 100))
    (kept / "s2.jsonl").write_text(answer("four", 1000))
    events = [*EVENTS, {"when": {"/type": "start"}, "as": "start", "take": {"session": "/id"}}]
    steps: list[list[Any]] = [["print", {"type": "start", "id": "s1"}]]
    steps += [["print", {"type": "limit", "text": error}], ["exit", 1]] if error else []
    transcript = {"program": "claude", "file": "~/.claude/projects/*/{session}.jsonl"}
    outcome = watch(log, started(tmp_path, *steps), agent(events=events, transcript=transcript))
    (charge,) = log.ledger.find("run_1")
    assert (charge.model, charge.input_tokens, charge.cache_read_tokens, charge.output_tokens) == ("claude-opus-4-5", 30, 15, 107)
    assert charge.cost_microdollars == outcome.microdollars > 0


@pytest.mark.slow
def test_an_agent_that_overspends_is_ended_after_the_turn_that_did(log: Decklog, task_id: str, tmp_path: Path) -> None:
    turn = [["print", {"type": "turn", "cost": 0.6}], ["sleep", 1.5]]
    running = started(tmp_path, ["repeat", 50, turn])
    outcome = watch(log, running, agent(), budget_microdollars=1_000_000)
    assert (outcome.ended_for, outcome.reason) == ("budget", "stopped")
    assert outcome.microdollars <= 1_000_000 + 600_000


STALL = 1.0
STALLS: dict[str, tuple[list[Any], str | None, float]] = {
    "silent": (["sleep", 30], "stalled", STALL + 2),
    "heartbeats": (["repeat", 300, [["print", {"type": "beat"}], ["sleep", 0.1]]], "stalled", 2 * STALL + 2),
    "polling": (["repeat", 25, [["print", {"type": "tool"}], ["sleep", 0.1]]], None, 30.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", STALLS)
def test_an_agent_is_ended_when_it_makes_no_progress_and_not_when_it_does(
    log: Decklog, task_id: str, tmp_path: Path, kind: str
) -> None:
    step, ended_for, seconds = STALLS[kind]
    begun = time.monotonic()
    running = started(tmp_path, step)
    outcome = watch(log, running, agent(stall_minutes=STALL / 60))
    assert outcome.ended_for == ended_for
    # Starting and ending take their time on a busy machine.
    assert time.monotonic() - begun < seconds + 8


@pytest.mark.slow
def test_nothing_of_an_agent_is_alive_after_its_end(log: Decklog, task_id: str, tmp_path: Path) -> None:
    def one(number: int) -> bool:
        folder, mark = tmp_path / str(number), f"run_1:lexer.w1:{number}"
        folder.mkdir()
        running = started(folder, ["deaf"], ["child", 60], ["child", 60], ["sleep", 0.1], mark=mark)
        watch(log, running, agent())
        wait_until(lambda: process_tree.find_marked_processes(mark) == [], seconds=10)
        return True

    count = 500 if FULL else 2
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(one, range(count))) == count


@pytest.mark.slow
def test_an_agent_over_its_time_is_ended_by_its_supervisor(log: Decklog, task_id: str, tmp_path: Path) -> None:
    running = started(tmp_path, ["sleep", 60], timeout_seconds=0.2)
    assert watch(log, running, agent()).reason == "timed_out"


@pytest.mark.parametrize(("text", "error_class"), [("429 too many", "quota"), ("401", "login"), ("else", None)])
def test_what_an_agent_ended_in_has_a_class(
    log: Decklog, task_id: str, tmp_path: Path, text: str, error_class: str | None
) -> None:
    outcome = watch(log, started(tmp_path, ["print", {"type": "limit", "text": text}], ["exit", 1]), agent())
    assert (outcome.error_class, outcome.is_outage) == (error_class, error_class is not None)


def _orphan(tmp_path: Path, steps: list[Any], grace: float) -> Running:
    """Have an agent started by a process that is killed then."""
    starter = os.fork()
    if starter == 0:
        try:
            started(tmp_path, *steps, grace_seconds=grace)
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(starter, 0)
    running = Running.find("run_1:lexer.w1:1", tmp_path / "agent")
    assert running is not None
    return running


@pytest.mark.slow
def test_an_orphan_that_is_adopted_goes_on_past_its_grace(tmp_path: Path) -> None:
    running = _orphan(tmp_path, [["wait", "go"], ["exit", 5]], grace=3.0)
    running.adopt()
    end = time.monotonic() + 4.0
    while time.monotonic() < end:
        assert running.ending() is None
        time.sleep(0.1)
    (tmp_path / "tree/go").touch()
    wait_until(lambda: running.ending() is not None)
    ended = running.ending()
    assert ended is not None
    assert (ended["reason"], ended["exit_code"]) == ("exited", 5)


@pytest.mark.slow
def test_an_orphan_that_nobody_adopts_is_ended_with_all_it_started(tmp_path: Path) -> None:
    running = _orphan(tmp_path, [["child", 60], ["sleep", 60]], grace=0.5)
    wait_until(lambda: running.ending() is not None, seconds=20)
    ended = running.ending()
    assert ended is not None
    assert ended["reason"] == "abandoned"
    wait_until(lambda: process_tree.find_marked_processes(running.mark) == [])


def test_what_a_killed_supervisor_left_is_ended_by_whoever_looks(tmp_path: Path) -> None:
    running = started(tmp_path, ["sleep", 60], mark="run_1:parser.w1:1")
    assert running.supervisor.send(signal.SIGKILL)
    wait_until(lambda: running.supervisor.is_alive() is False)
    ended = running.ending()
    assert ended is not None
    assert ended["reason"] == "lost"
    assert process_tree.find_marked_processes(running.mark) == []
    assert Identity.own().is_alive()


# What programs print, as their descriptions read it

CLAUDE: list[dict[str, Any]] = [
    {"type": "system", "subtype": "init", "session_id": "s1", "model": "sonnet"},
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "I look."}], "usage": {"output_tokens": 1}}},
    {"type": "user", "message": {"content": [{"type": "tool_result"}]}},
    {"type": "system", "subtype": "thinking_tokens"},
    {"type": "result", "is_error": False, "total_cost_usd": 0.5, "usage": {"input_tokens": 10, "output_tokens": 2}},
    {"type": "result", "is_error": True, "total_cost_usd": 0.75, "api_error_status": 429, "usage": {"output_tokens": 3}},
]
CODEX: list[dict[str, Any]] = [
    {"type": "thread.started", "thread_id": "t1"},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "I look."}},
    {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 5}},
    {"type": "turn.completed", "usage": {"input_tokens": 150, "cached_input_tokens": 40, "output_tokens": 9}},
    {"type": "turn.failed", "error": {"message": "401 Unauthorized"}},
]
OPENCODE: list[dict[str, Any]] = [
    {"type": "step_start", "sessionID": "o1"},
    {"type": "step_finish", "part": {"cost": 0.1, "tokens": {"input": 5, "output": 1, "cache": {"read": 2, "write": 0}}}},
    {"type": "step_finish", "part": {"cost": 0.2, "tokens": {"input": 6, "output": 2, "cache": {"read": 0, "write": 0}}}},
]
GEMINI: list[dict[str, Any]] = [
    {"type": "init", "session_id": "g1", "model": "gemini-pro"},
    {"type": "tool_use", "tool_name": "edit"},
    {"type": "result", "status": "success", "stats": {"input_tokens": 7, "cached": 4, "output_tokens": 3}},
    {"type": "result", "status": "error", "error": {"type": "unknown", "message": "[API Error: 401]"}, "stats": {}},
]
DIALECTS: dict[str, tuple[list[dict[str, Any]], list[str], list[dict[str, int]], str | None]] = {
    "claude-code": (
        CLAUDE,
        ["start", "text", "result", "noise", "end", "end"],
        [
            {"input_tokens": 10, "output_tokens": 2, "cost_microdollars": 500_000},
            {"output_tokens": 1, "cost_microdollars": 250_000},
        ],
        "quota",
    ),
    "codex": (
        CODEX,
        ["start", "text", "end", "end", "error"],
        [
            {"input_tokens": 60, "cache_read_tokens": 40, "output_tokens": 5},
            {"input_tokens": 50, "cache_read_tokens": 0, "output_tokens": 4},
        ],
        "login",
    ),
    "opencode": (
        OPENCODE,
        ["start", "usage", "usage"],
        [
            {
                "input_tokens": 5,
                "cache_read_tokens": 2,
                "cache_create_tokens": 0,
                "output_tokens": 1,
                "cost_microdollars": 100_000,
            },
            {
                "input_tokens": 6,
                "cache_read_tokens": 0,
                "cache_create_tokens": 0,
                "output_tokens": 2,
                "cost_microdollars": 200_000,
            },
        ],
        None,
    ),
    "gemini": (
        GEMINI,
        ["start", "tool", "end", "end"],
        [{"input_tokens": 3, "cache_read_tokens": 4, "output_tokens": 3}],
        "login",
    ),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_each_program_is_understood_by_its_description(name: str) -> None:
    lines, kinds, usage, error_class = DIALECTS[name]
    reader = stream.StreamReader(describe("it", {"extends": name}))
    events = [event for line in lines for event in reader.read(json.dumps(line))]
    assert [event.kind for event in events] == kinds
    assert [dict(event.usage) for event in events if event.usage is not None] == usage
    assert events[-1].error_class == error_class


def read_lines(name: str, *lines: dict[str, Any]) -> list[stream.StreamEvent]:
    reader = stream.StreamReader(describe("it", {"extends": name}))
    return [*(event for line in lines for event in reader.read(json.dumps(line))), *reader.rest()]


def test_a_line_with_several_blocks_is_several_events() -> None:
    blocks = [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a"}},
        {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "ls"}},
    ]
    events = read_lines("claude-code", {"type": "assistant", "message": {"content": blocks}})
    assert [event.kind for event in events] == ["thought", "text", "tool", "tool"]
    assert [event.taken.get("call") for event in events[2:]] == ["t1", "t2"]


def test_a_text_that_comes_in_items_is_one_event() -> None:
    items = [{"type": "message", "role": "assistant", "content": text, "delta": True} for text in ("I ", "look.")]
    use = {"type": "tool_use", "tool_id": "1", "tool_name": "ls", "parameters": {}}
    events = read_lines("gemini", *items, use, items[0])
    assert [(event.kind, event.taken.get("text")) for event in events] == [("text", "I look."), ("tool", None), ("text", "I ")]


def test_a_program_that_reports_no_price_leaves_it_to_the_price_list_and_thoughts_are_paid_for() -> None:
    tokens = {"total": 137, "input": 100, "output": 20, "reasoning": 10, "cache": {"read": 7, "write": 0}}
    (event,) = read_lines("opencode", {"type": "step_finish", "part": {"cost": 0, "tokens": tokens}})
    expected = {"input_tokens": 100, "cache_read_tokens": 7, "cache_create_tokens": 0, "output_tokens": 30}
    assert event.usage == expected


def test_tokens_that_codex_wrote_to_the_cache_are_not_counted_twice() -> None:
    usage = {"input_tokens": 100, "cached_input_tokens": 40, "cache_write_input_tokens": 10, "output_tokens": 5}
    (event,) = read_lines("codex", {"type": "turn.completed", "usage": usage})
    assert event.usage == {"input_tokens": 50, "cache_read_tokens": 40, "cache_create_tokens": 10, "output_tokens": 5}


def test_a_command_leaves_out_what_is_not_set() -> None:
    claude = describe("claude", {"extends": "claude-code"})
    words = claude.arguments({"model": "sonnet", "turns": None, "budget_usd": None}, is_sandboxed=False)
    assert words[words.index("--model") + 1] == "sonnet"
    assert "--max-turns" not in words
    assert all(describe("it", {"extends": name, "command": ["it"]}) for name in known_names())
    assert describe("it", {"extends": "claude-acp"}).stream == "acp"


def test_a_description_that_is_wrong_is_refused_by_name() -> None:
    with pytest.raises(NotFound, match="extends 'nobody'"):
        describe("x", {"extends": "nobody"})
    with pytest.raises(Invalid, match="no setting 'comand'"):
        describe("x", {"comand": ["a"]})
    with pytest.raises(Invalid, match="has no command"):
        describe("x", {})
    with pytest.raises(Invalid, match="prompt is 'shout'"):
        describe("x", {"command": ["a"], "prompt": "shout"})
    with pytest.raises(Invalid, match="an event is one of"):
        describe("x", {"command": ["a"], "events": [{"as": "song"}]})
    with pytest.raises(Invalid, match="an error is one of"):
        describe("x", {"command": ["a"], "errors": [{"class": "bad luck"}]})


# Lines that would end whoever reads them carelessly, and what is noted of each.
BAD_LINES = {
    "nested without end": ("[" * 3_000_000, "nested too deeply"),
    "half of a sign": ('{"type": "text", "text": "a \\ud800 b"}', "a \ufffd b"),
    "a zero sign": ('{"type": "text", "text": "a\\u0000b"}', "a\ufffdb"),
    "too many tokens": ('{"type": "usage", "in": 1e308, "usd": 0.1}', "input_tokens = 1e+308"),
    "more digits than a number has": ('{"type": "usage", "in": ' + "9" * 400 + "}", "input_tokens = 999"),
    "infinite tokens": ('{"type": "usage", "in": Infinity}', "input_tokens = inf"),
    "tokens that are no number": ('{"type": "usage", "in": NaN}', "input_tokens = nan"),
    "too much money": ('{"type": "usage", "usd": 1e308}', "cost_usd = 1e+308"),
    "a model that is no name": ('{"type": "usage", "in": 1, "model": {"a": 1}}', "model = {'a': 1}"),
    "a limit that ends in a million years": ('{"type": "limit", "text": "429 in 99999999999999999 days"}', "429 in 9"),
    "a question without a number": ('{"type": "ask", "number": "x"}', "number or about"),
}
BAD_EVENTS = [
    {"when": {"/type": "text"}, "as": "text", "take": {"text": "/text"}},
    {"when": {"/type": "usage"}, "as": "usage", "take": {"input_tokens": "/in", "cost_usd": "/usd", "model": "/model"}},
    {"when": {"/type": "limit"}, "as": "error", "take": {"text": "/text"}},
    {"when": {"/type": "ask"}, "as": "ask", "take": {"number": "/number", "about": "/about"}},
]


@pytest.mark.parametrize("kind", BAD_LINES)
def test_a_bad_line_of_an_agent_is_noted_and_the_session_goes_on(log: Decklog, task_id: str, tmp_path: Path, kind: str) -> None:
    line, noted = BAD_LINES[kind]
    (tmp_path / "line").write_text(line, encoding="utf-8")
    steps = ["run", ["cat", str(tmp_path / "line")]], ["print", ""], ["print", {"type": "text", "text": "on"}]
    running = started(tmp_path, *steps)
    outcome = watch(log, running, agent(events=BAD_EVENTS))
    assert (outcome.exit_code, outcome.text) == (0, "on")
    bodies = [entry.body for entry in log.journal.find("run_1", task_id=task_id) if (entry.subtype or "").startswith("agent.")]
    assert any(noted in body for body in bodies), bodies
    assert "on" in bodies


def test_a_line_too_long_is_cut_with_its_digest_and_what_is_no_text_is_replaced(tmp_path: Path) -> None:
    from decklog.guard.shell.spool import OutputSpool

    spool = OutputSpool(str(tmp_path), 16 * stream.LONGEST_LINE)
    follower = stream.Follower(tmp_path)
    spool.take("stdout", b"first\nhal")
    assert list(follower.lines()) == ["first"]
    spool.take("stdout", b"f\n" + b"x" * (stream.LONGEST_LINE + 5) + b"\n\xff\x00end")
    half, long = follower.lines()
    assert half == "half"
    assert long.startswith("xxx")
    assert f"of {stream.LONGEST_LINE + 5} bytes, sha256" in long
    assert list(follower.rest()) == ["\ufffd\ufffdend"]
    spool.close()


def test_what_did_not_fit_into_the_spool_is_told(tmp_path: Path) -> None:
    from decklog.guard.shell.spool import OutputSpool

    spool = OutputSpool(str(tmp_path), 400)
    for number in range(200):
        spool.take("stdout", f"line {number}\n".encode())
    spool.close()
    lines = list(stream.Follower(tmp_path).rest())
    assert lines[:2] == ["line 0", "line 1"]
    assert any("bytes were not kept" in line for line in lines)
    assert lines[-1] == "line 199"
