"""A sample session of each agent program in the program's own format, and the log of it."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from decklog import Decklog
from decklog.agents.history import HistoryImport
from decklog.agents.intake import run_intake
from decklog.agents.spool import Spool
from tests.agents.acp.sample_session import Session

PROMPT = "The parser drops the last line of a file without a line break. Fix it, with a test."
_LOOK = "grep -n readline src/parser.py"
_FOUND = "41:    for line in iter(file.readline, ''):"
_TEST = "pytest -q tests/test_parser.py"
_PASSED = "12 passed in 0.31s"
_DONE = "The last line is kept now; a test holds it."
# The run that each program's session becomes.
RUNS = {
    "claude": "claude-2f61c0de",
    "codex": "codex-7b90ad11",
    "gemini": "gemini-c5a8e402",
    "opencode": "opencode-ses_41d0",
    "editor": "claude-9e03f7aa",
}


def played(folder: Path, now: datetime) -> Path:
    """Play a session of every program; give the log."""
    path = folder / "log.db"
    started = now - timedelta(minutes=9)
    with Decklog.open(path) as log:
        for program, name in (("claude", "2f61c0de"), ("codex", "7b90ad11"), ("gemini", "c5a8e402")):
            file = folder / program / f"{name}.jsonl"
            file.parent.mkdir()
            lines = _LINES[program](name, started)
            file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
            HistoryImport(log, program, str(file), Spool(str(folder / "spool"))).run()
        _hooked(log, folder, "opencode", "ses_41d0")
        _on_the_wire(log, folder, "claude", "9e03f7aa")
    return path


def _claude(session: str, start: datetime) -> list[dict[str, Any]]:
    def line(kind: str, second: int, **fields: Any) -> dict[str, Any]:
        own = {"sessionId": session, "uuid": f"u{second}", "cwd": "/repo", "gitBranch": "main", "version": "2.1.325"}
        return {"type": kind, **own, "timestamp": _stamp(start, second), "isSidechain": False, **fields}

    def answer(second: int, *blocks: dict[str, Any], tokens: int = 40) -> dict[str, Any]:
        usage = {
            "input_tokens": 12,
            "cache_read_input_tokens": 18_400,
            "cache_creation_input_tokens": 900,
            "output_tokens": tokens,
        }
        message = {"id": f"msg_{second:08}", "model": "claude-sonnet-4-5", "content": list(blocks), "usage": usage}
        return line("assistant", second, requestId=f"req_{second:08}", message=message)

    def result(second: int, call: str, text: str, *, failed: bool = False) -> dict[str, Any]:
        block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": failed}
        return line("user", second, message={"role": "user", "content": [block]})

    return [
        line("user", 0, promptId="p1", message={"role": "user", "content": PROMPT}),
        answer(6, _text("Let me see how lines are read."), _use("toolu_00000001", "Bash", command=_LOOK)),
        result(8, "toolu_00000001", _FOUND),
        answer(31, _use("toolu_00000002", "Edit", file_path="src/parser.py"), tokens=310),
        result(32, "toolu_00000002", "src/parser.py has been updated"),
        answer(55, _use("toolu_00000003", "Bash", command=_TEST), tokens=95),
        result(58, "toolu_00000003", _PASSED),
        answer(66, _text(_DONE), tokens=60),
    ]


def _codex(session: str, start: datetime) -> list[dict[str, Any]]:
    def line(kind: str, second: int, **payload: Any) -> dict[str, Any]:
        return {"timestamp": _stamp(start, second), "type": kind, "payload": payload}

    def item(second: int, **fields: Any) -> dict[str, Any]:
        return line("event_msg", second, type="item_completed", turn_id="t1", item=fields)

    def call(second: int, name: str, command: str) -> dict[str, Any]:
        arguments = json.dumps({"cmd": command})
        return line("response_item", second, type="function_call", name="exec_command", call_id=name, arguments=arguments)

    def spent(second: int, input_tokens: int, output: int) -> dict[str, Any]:
        usage = {"input_tokens": input_tokens, "cached_input_tokens": input_tokens - 800, "output_tokens": output}
        return line("token_usage_record", second, response_id=f"resp_{second:08}", usage=usage)

    def ran(second: int, name: str, output: str) -> dict[str, Any]:
        return item(second, type="CommandExecution", id=name, status="completed", exit_code=0, aggregated_output=output)

    return [
        line("session_meta", 0, id=session, session_id=session, cwd="/repo", cli_version="0.166.0", git={"branch": "main"}),
        line("turn_context", 0, model="gpt-5.5", turn_id="t1"),
        item(0, type="UserMessage", id="u1", content=PROMPT),
        call(7, "call_00000001", _LOOK),
        ran(8, "call_00000001", _FOUND),
        spent(8, 9_200, 48),
        call(40, "call_00000002", _TEST),
        ran(43, "call_00000002", _PASSED),
        spent(43, 11_750, 390),
        item(51, type="AgentMessage", id="m1", content=_DONE),
        spent(51, 12_030, 66),
        line("event_msg", 51, type="task_complete"),
    ]


def _gemini(session: str, start: datetime) -> list[dict[str, Any]]:
    def message(second: int, kind: str, content: str, **fields: Any) -> dict[str, Any]:
        return {"id": f"m{second}", "timestamp": _stamp(start, second), "type": kind, "content": content, **fields}

    def use(name: str, command: str, output: str) -> dict[str, Any]:
        answered = [{"functionResponse": {"id": name, "response": {"output": output}}}]
        return {"id": name, "name": "run_shell_command", "args": {"command": command}, "status": "success", "result": answered}

    tokens = {"input": 9_400, "output": 210, "cached": 7_900, "thoughts": 120, "tool": 0, "total": 9_730}
    known = {"model": "gemini-2.5-pro", "tokens": tokens}
    return [
        {"sessionId": session, "startTime": _stamp(start, 0), "lastUpdated": _stamp(start, 60)},
        message(0, "user", PROMPT),
        message(9, "gemini", "Let me see how lines are read.", toolCalls=[use("c1", _LOOK, _FOUND)], **known),
        message(44, "gemini", "", toolCalls=[use("c2", _TEST, _PASSED)], **known),
        message(58, "gemini", _DONE, **known),
    ]


_LINES = {"claude": _claude, "codex": _codex, "gemini": _gemini}


def _hooked(log: Decklog, folder: Path, program: str, session: str) -> None:
    """Play the hook events of a program without session files."""
    spool = Spool(str(folder / "spool"))
    events: list[dict[str, Any]] = [
        {"hook_event_name": "SessionStart", "source": "startup"},
        {"hook_event_name": "UserPromptSubmit", "prompt": PROMPT, "prompt_id": "p1"},
    ]
    for name, command, output in (("c1", _LOOK, _FOUND), ("c2", _TEST, _PASSED)):
        use = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": name}
        events += [{"hook_event_name": "PreToolUse", **use}, {"hook_event_name": "PostToolUse", **use, "tool_response": output}]
    events += [{"hook_event_name": "Stop"}, {"hook_event_name": "SessionEnd", "reason": "exit"}]
    for event in events:
        payload = {"session_id": session, "cwd": "/repo", **event}
        spool.put(program, session, {"session": session}, json.dumps(payload).encode())
    run_intake(log, spool)


def _on_the_wire(log: Decklog, folder: Path, program: str, session: str) -> None:
    """Play what passes between an editor and an agent."""
    wire = Session(folder, program, session)
    wire.begin(models={"currentModelId": "claude-sonnet-4-5"})
    wire.prompt(PROMPT)
    wire.say("Let me see how lines are read.")
    for name, command, output in (("t1", _LOOK, _FOUND), ("t2", _TEST, _PASSED)):
        call = {"toolCallId": name, "name": "Bash", "title": command, "kind": "execute", "rawInput": {"command": command}}
        wire.update("tool_call", **call, status="pending")
        wire.ask({"toolCallId": name, "title": command})
        wire.decide("y", **{"from": "editor"})
        wire.update("tool_call_update", toolCallId=name, status="completed", rawOutput=output)
    wire.update("plan", entries=[{"content": "keep the last line", "status": "completed"}])
    wire.say(_DONE)
    wire.answer(usage={"inputTokens": 60, "cachedReadTokens": 36_800, "outputTokens": 510})
    wire.end()
    wire.run_intake(log)


def _stamp(start: datetime, second: int) -> str:
    return (start + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _use(name: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": tool, "input": arguments}
