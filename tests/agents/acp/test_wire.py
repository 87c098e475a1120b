"""What passes between an editor and an agent, as a run: both versions of the protocol, as each agent tells it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, EntryKind, RunStatus
from decklog.agents.events import OtherEvent, PromptSubmitted, TurnEnded
from decklog.agents.history import HistoryImport
from decklog.agents.recorder import Recorder
from decklog.agents.spool import Spool
from tests.agents.acp.sample_session import Session, facts, list_bodies
from tests.conftest import on_both


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def turn(session: Session) -> None:
    session.begin()
    session.prompt("Fix the parser")
    session.update("agent_thought_chunk", content={"type": "text", "text": "Where is "})
    session.update("agent_thought_chunk", content={"type": "text", "text": "it?"})
    session.say("Let me ")
    session.say("look.")
    session.update("tool_call", toolCallId="t1", name="Bash", title="ls", kind="execute", status="pending", rawInput={})
    session.update("tool_call_update", toolCallId="t1", rawInput={"command": "ls"})
    session.update("tool_call_update", toolCallId="t1", status="completed", rawOutput="a b")
    session.update("plan", entries=[{"content": "read", "status": "completed"}, {"content": "write", "status": "pending"}])
    session.update("current_mode_update", currentModeId="plan")
    session.say("All done.")
    session.answer(usage={"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 3})


TURN = [
    ("session", "session startup"),
    ("editor", "zed"),
    ("prompt", "Fix the parser"),
    ("thought", "Where is it?"),
    ("said", "Let me look."),
    ("call", "ls"),
    ("result", "a b"),
    ("plan", "[completed] read\n[pending] write"),
    ("mode", "mode: plan"),
    ("said", "All done."),
    ("turn", "turn ended"),
]


def test_a_turn_is_on_record_with_what_was_said_done_and_spent(session: Session, log: Decklog) -> None:
    turn(session)
    session.end()
    session.run_intake(log)
    run = log.runs.get("stub-s1")
    assert (run.goal, run.status, run.worktree) == ("Fix the parser", RunStatus.COMPLETED, "/repo")
    assert list_bodies(log) == TURN
    assert [entry.body for entry in log.journal.find("stub-s1", kind=EntryKind.REASONING)] == ["Where is it?"]
    assert facts(log, "editor")[0]["servers"] == ["tools"]
    (charge,) = log.ledger.find(limit=9)
    assert (charge.input_tokens, charge.cache_read_tokens, charge.output_tokens) == (10, 3, 5)
    assert log.journal.verify().ok


@on_both
def test_however_often_lines_are_taken_in_the_record_is_the_same(session: Session, log: Decklog) -> None:
    """Whoever takes in may be killed after any line, before or after that is known."""
    turn(session)
    session.end()
    ((name),) = session.spool.list_waiting()
    path = Path(session.spool.folder) / name
    lines = path.read_bytes().splitlines(keepends=True)
    for number in range(len(lines)):
        # The line before is there again, as it is when one is killed before it could be taken away.
        path.write_bytes(b"".join(lines[max(0, number - 1) : number + 1]))
        session.run_intake(log)
    assert list_bodies(log) == TURN
    assert len(log.ledger.find(limit=9)) == 1


def test_a_connection_that_broke_off_ends_without_the_one_that_came_after_it(
    session: Session, log: Decklog, tmp_path: Path
) -> None:
    session.begin()
    session.prompt("go")
    session.say("I was about")
    session.run_intake(log)
    assert ("said", "I was about") not in list_bodies(log)
    later = Session(tmp_path, connection="c2").begin("session/load")
    later.prompt("go on")
    later.say("Now I ", messageId="m2")
    # Whoever is the next to take in says it of the first.
    session.end()
    later.say("go on.", messageId="m2")
    later.answer()
    later.run_intake(log)
    assert [body for subtype, body in list_bodies(log) if subtype == "said"] == ["I was about", "Now I go on."]
    assert log.runs.get("stub-s1").status == RunStatus.ACTIVE
    later.end()
    later.run_intake(log)
    assert log.runs.get("stub-s1").status == RunStatus.COMPLETED


def test_the_second_version_of_the_protocol_is_read_too(session: Session, log: Decklog) -> None:
    session.begin()
    session.prompt("go")
    session.tell({"id": 2, "result": {"messageId": "u1"}}, re="session/prompt")
    session.update("state_update", state="running")
    session.update("agent_message_chunk", messageId="m1", content={"type": "text", "text": "Hm."})
    content = [{"type": "terminal", "terminalId": "x"}]
    session.update(
        "tool_call_update",
        toolCallId="t1",
        kind="execute",
        status="in_progress",
        rawInput={"command": ["ls", "a b"]},
        content=content,
    )
    session.update("terminal_update", terminalId="x", output={"data": "bGlzdGVk"}, exitStatus={"exitCode": 3})
    subject = {"type": "tool_call", "toolCall": {"toolCallId": "t1"}}
    params = {"title": "Run it?", "subject": subject, "options": [{"optionId": "y", "kind": "allow_once"}]}
    session.tell({"id": 5, "method": "session/request_permission", "params": params}, **{"from": "agent"})
    session.decide("y", 5)
    session.update("tool_call_update", toolCallId="t1", status="failed")
    patch = {"format": "git_patch", "text": "--- a\n+++ a\n"}
    content = [{"type": "diff", "changes": [{"operation": "add", "path": "/repo/a"}], "patch": patch}]
    session.update("tool_call_update", toolCallId="t2", kind="edit", status="completed", content=content)
    session.update("state_update", state="idle", stopReason="max_tokens", usage={"inputTokens": 4, "outputTokens": 1})
    session.run_intake(log)
    assert list_bodies(log)[2:] == [
        ("prompt", "go"),
        ("said", "Hm."),
        ("call", "ls 'a b'"),
        ("permission", "asked: Run it?"),
        ("permission", "allow_once by person"),
        ("result", "listed"),
        ("call", "edit /repo/a"),
        ("diff", "--- a\n+++ a\n"),
        ("result", "ok"),
        ("turn", "max_tokens"),
    ]
    assert facts(log, "result")[0]["exit_code"] == 3
    assert [charge.tokens for charge in log.ledger.find(limit=9)] == [5]


def test_a_permission_names_who_decided_and_a_denied_call_is_denied(session: Session, log: Decklog) -> None:
    session.begin()
    session.prompt("go")
    session.update("tool_call", toolCallId="t1", kind="execute", title="rm", rawInput={"command": "rm x"})
    session.ask({"toolCallId": "t1"})
    session.decide("n", held="it is dangerous", **{"from": "decklog"})
    session.ask({"toolCallId": "t2", "title": "Write a.txt", "kind": "edit", "locations": [{"path": "a.txt"}]}, 1)
    session.decide("n", 1)
    session.ask({"toolCallId": "t3", "title": "make", "kind": "execute"}, 2)
    session.decide("y", 2)
    session.update("tool_call_update", toolCallId="t1", status="failed")
    # Some leave a denied call open for ever, and some tell nothing of it at all.
    session.answer(stopReason="cancelled")
    session.run_intake(log)
    decided = [(each["call"], each["by"], each["decision"]) for each in facts(log, "permission") if "by" in each]
    assert decided == [("t1", "policy", "reject_once"), ("t2", "person", "reject_once"), ("t3", "person", "allow_once")]
    assert facts(log, "permission")[1]["reason"] == "it is dangerous"
    outcomes = [(each["call"], each["outcome"]) for each in facts(log, "result")]
    assert outcomes == [("t1", "denied"), ("t2", "denied"), ("t3", "interrupted")]
    assert ("result", "it is dangerous") in list_bodies(log)
    assert [body for subtype, body in list_bodies(log) if subtype == "call"] == ["rm x", "edit a.txt", "make"]


def test_calls_are_put_together_from_what_each_agent_tells(session: Session, log: Decklog) -> None:
    session.begin()
    session.prompt("go")
    # Codex: pieces of a terminal, and an exit code.
    session.update(
        "tool_call", toolCallId="x1", kind="execute", status="in_progress", rawInput={"command": "make", "cwd": "/repo"}
    )
    for piece in ("one ", "two"):
        session.update("tool_call_update", toolCallId="x1", _meta={"terminal_output_delta": {"data": piece}})
    session.update("tool_call_update", toolCallId="x1", status="failed", _meta={"terminal_exit": {"exit_code": 2}})
    # opencode: completed whatever the exit code, and repeats of what is known.
    session.update("tool_call", toolCallId="o1", kind="execute", title="bash", status="pending", rawInput={})
    for _ in range(2):
        session.update("tool_call_update", toolCallId="o1", status="in_progress", rawInput={"command": "false"})
    output = {"output": "no", "metadata": {"exit": 1}}
    for _ in range(2):
        session.update("tool_call_update", toolCallId="o1", status="completed", rawOutput=output)
    # Gemini: a title, a content, no call before its end.
    content = [{"type": "diff", "path": "/repo/a.txt", "oldText": "x\ny\n", "newText": "x\nz\n"}]
    session.update("tool_call_update", toolCallId="write_file__1", title="Writing", status="completed", content=content)
    # Claude: what the hook would be told.
    response = {"stdout": "out", "stderr": "err"}
    session.update("tool_call", toolCallId="c1", name="Bash", kind="execute", rawInput={"command": "ls"})
    session.update("tool_call_update", toolCallId="c1", _meta={"claudeCode": {"toolName": "Bash", "toolResponse": response}})
    session.update("tool_call_update", toolCallId="c1", status="completed", content=[])
    session.run_intake(log)
    told = [(each["call"], each["tool"], each["outcome"]) for each in facts(log, "result")]
    assert told == [
        ("x1", "Bash", "failed"),
        ("o1", "Bash", "failed"),
        ("write_file__1", "write_file", "ok"),
        ("c1", "Bash", "ok"),
    ]
    texts = [body for subtype, body in list_bodies(log) if subtype in ("call", "result", "diff")]
    diff = "--- /repo/a.txt\n+++ /repo/a.txt\n@@ -1,2 +1,2 @@\n x\n-y\n+z"
    assert texts == ["make", "one two", "false", "no", "write_file /repo/a.txt", diff, "ok", "ls", "out\nerr"]


def test_money_is_charged_by_how_much_the_sessions_sum_grew(session: Session, log: Decklog, tmp_path: Path) -> None:
    session.begin(models={"currentModelId": "big"})
    for number, (amount, tokens) in enumerate([(0.25, 10), (0.40, 20)]):
        session.prompt("go", number)
        session.update("usage_update", used=1, size=2, cost={"amount": amount, "currency": "USD"})
        session.answer(number, usage={"inputTokens": tokens})
    session.run_intake(log)
    later = Session(tmp_path, connection="c2").begin("session/resume")
    later.prompt("go on")
    later.update("usage_update", used=1, size=2, cost={"amount": 0.5, "currency": "USD"})
    later.answer(2)
    later.run_intake(log)
    charges = [(charge.model, charge.cost_microdollars) for charge in log.ledger.find(oldest_first=True, limit=9)]
    assert charges == [("big", 250_000), ("big", 150_000), ("stub", 100_000)]


def test_a_replay_adds_nothing(session: Session, log: Decklog, tmp_path: Path) -> None:
    session.begin()
    session.prompt("go")
    session.say("With an id.", messageId="m1")
    session.update("tool_call", toolCallId="t1", kind="execute", rawInput={"command": "ls"}, status="completed")
    session.say("Without one.")
    session.answer()
    session.end()
    session.run_intake(log)
    before = list_bodies(log)
    later = Session(tmp_path, connection="c2").begin("session/load")
    later.update("user_message_chunk", content={"type": "text", "text": "go"})
    later.say("With an id.", messageId="m1")
    later.update("tool_call", toolCallId="t1", kind="execute", rawInput={"command": "ls"}, status="completed")
    later.say("Without one.")
    later.end()
    later.run_intake(log)
    assert list_bodies(log) == [*before, ("session", "session resume"), ("editor", "zed")]


def test_what_hooks_tell_of_the_same_session_is_told_once(tmp_path: Path, log: Decklog) -> None:
    session = Session(tmp_path, "claude")
    turn(session)
    hook: dict[str, Any] = {"session_id": "s1", "cwd": "/repo"}
    bash = {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "ls"}}
    for event, fields in {
        "SessionStart": {"source": "startup"},
        "UserPromptSubmit": {"prompt": "Fix the parser", "prompt_id": "p1"},
        "PreToolUse": bash,
        "PostToolUse": {**bash, "tool_response": {"stdout": "a b"}},
        "Stop": {},
    }.items():
        session.spool.put("claude", "s1", {"session": "s1"}, json.dumps({**hook, "hook_event_name": event, **fields}).encode())
    session.run_intake(log)
    assert list_bodies(log, "claude-s1") == TURN


def test_the_same_words_sent_twice_are_two_prompts_whoever_tells_them(log: Decklog) -> None:
    def at(second: int, way: str | None, name: str) -> PromptSubmitted:
        return PromptSubmitted(
            session_id="s1", at=datetime(2026, 11, 15, 12, 0, second, tzinfo=UTC), way=way, prompt_id=name, text="continue"
        )

    for order in ([0, 1, 2, 3], [1, 0, 3, 2], [0, 2, 1, 3]):
        told = [at(0, "acp", "w1"), at(1, None, "h1"), at(20, "acp", "w2"), at(21, None, "h2")]
        recorder = Recorder(log, f"p{order[1]}{order[2]}")
        begun = OtherEvent(session_id="s1", way="acp", name="editor", facts={"connection": "c1"})
        recorder.record([begun, *(told[place] for place in order)])
        assert [body for _, body in list_bodies(log, f"p{order[1]}{order[2]}-s1")][1:] == ["continue", "continue"]


def test_a_turns_end_told_a_minute_later_is_another_one(log: Decklog) -> None:
    moments = (datetime(2026, 11, 15, 12, minute, tzinfo=UTC) for minute in (0, 1))
    for at, way in zip(moments, ("acp", None), strict=True):
        Recorder(log, "claude").record([TurnEnded(session_id="s1", at=at, way=way)])
    assert len(list_bodies(log, "claude-s1")) == 2


def test_what_was_spent_and_said_is_read_once_from_the_sessions_own_file(tmp_path: Path, log: Decklog) -> None:
    transcript = tmp_path / "home" / "projects" / "-repo" / "s1.jsonl"
    transcript.parent.mkdir(parents=True)
    usage = {"input_tokens": 10, "output_tokens": 5}
    text = {"type": "text", "text": "It is done."}
    message = {"id": "m1", "model": "big", "content": [text], "usage": usage}
    line = {"type": "assistant", "uuid": "u1", "requestId": "r1", "sessionId": "s1", "message": message}
    transcript.write_text(json.dumps({**line, "timestamp": datetime.now(UTC).isoformat()}) + "\n")
    session = Session(tmp_path, "claude", cwd="/repo", home=str(tmp_path / "home")).begin()
    session.prompt("go")
    session.say("It is ", messageId="m1")
    session.say("done.", messageId="m1")
    # What a sub-agent does is in its own file.
    session.update("tool_call", toolCallId="b1", rawInput={"a": 1}, _meta={"claudeCode": {"parentToolUseId": "t9"}})
    session.answer(usage={"inputTokens": 10, "outputTokens": 5})
    session.run_intake(log)
    assert [each for each in list_bodies(log, "claude-s1") if each[0] in ("said", "call")] == [("said", "It is done.")]
    assert [charge.tokens for charge in log.ledger.find(limit=9)] == [15]
    assert facts(log, "turn", "claude-s1")[0]["usage"] == {"input_tokens": 10, "output_tokens": 5}


def test_what_the_wire_does_not_tell_of_a_call_is_told_by_the_sessions_own_file(tmp_path: Path, log: Decklog) -> None:
    rollout = tmp_path / "home" / "sessions" / "2026" / "11" / "15" / "rollout-x-s1.jsonl"
    rollout.parent.mkdir(parents=True)
    call = {"type": "function_call", "name": "exec_command", "call_id": "t1", "arguments": '{"cmd": "ls"}'}
    lines = [{"type": "session_meta", "payload": {"id": "s1"}}, {"type": "response_item", "payload": call}]
    rollout.write_text("".join(json.dumps(line) + "\n" for line in lines))
    session = Session(tmp_path, "codex", home=str(tmp_path / "home")).begin()
    session.update("tool_call", toolCallId="t1", name="exec_command", kind="read", title="List files", status="in_progress")
    session.update("tool_call_update", toolCallId="t1", status="completed", rawOutput={"exit_code": 0})
    session.run_intake(log)
    assert [body for subtype, body in list_bodies(log, "codex-s1") if subtype == "call"] == ["ls"]


@pytest.mark.parametrize(
    "params",
    [
        {"update": None},
        {"update": {"sessionUpdate": 5}},
        {"update": {"sessionUpdate": "tool_call"}},
        {"update": {"sessionUpdate": "tool_call", "toolCallId": "t", "rawInput": [1], "content": "x", "locations": {"a": 1}}},
        {"update": {"sessionUpdate": "plan", "entries": "x"}},
        {"update": {"sessionUpdate": "usage_update", "cost": {"amount": "much"}}},
        {"update": {"sessionUpdate": "agent_message_chunk", "content": None, "messageId": 7}},
        {"update": {"sessionUpdate": "config_option_update", "configOptions": [{"id": "model"}]}},
        {"update": {"sessionUpdate": "a_new_kind", "x": {"y": [1]}}},
    ],
)
def test_whatever_an_agent_sends_stops_nothing(session: Session, log: Decklog, params: dict[str, Any]) -> None:
    session.begin()
    session.tell({"method": "session/update", "params": params}, **{"from": "agent"})
    session.prompt("after it")
    session.end()
    session.run_intake(log)
    assert ("prompt", "after it") in list_bodies(log)
    if "a_new_kind" in str(params):
        assert facts(log, "a_new_kind")[0]["told"] == '{"x": {"y": [1]}}'


def test_secrets_of_servers_and_makers_texts_are_not_on_record(session: Session, log: Decklog) -> None:
    session.begin()
    commands = [{"name": "init", "description": "A text of the maker's"}]
    for _ in range(2):
        session.update("available_commands_update", availableCommands=commands)
    session.run_intake(log)
    assert list_bodies(log)[2:] == [("commands", "1 commands")]


def test_a_turn_that_was_paid_for_on_the_wire_is_not_paid_for_again_by_its_transcript(log: Decklog, tmp_path: Path) -> None:
    session = Session(tmp_path, "claude")
    session.begin()
    session.prompt("go")
    session.answer(usage={"inputTokens": 10, "outputTokens": 5})
    session.run_intake(log)
    (charge,) = log.ledger.find("claude-s1")
    (prompt,) = log.journal.find("claude-s1", subtype="prompt")

    def answered(number: int, at: datetime) -> dict[str, Any]:
        usage = {"input_tokens": 10, "output_tokens": 5}
        message = {"id": f"msg_{number}", "model": "m", "content": [{"type": "text", "text": "Hm."}], "usage": usage}
        told = {"type": "assistant", "sessionId": "s1", "uuid": f"u{number}", "requestId": f"req_{number}"}
        return {**told, "timestamp": at.isoformat(), "message": message}

    # The first before the editor came, the second in the turn, the third in one that nobody stood beside.
    times = (prompt.at - timedelta(hours=1), charge.occurred_at, charge.occurred_at + timedelta(hours=1))
    lines = [json.dumps(answered(number, at)) for number, at in enumerate(times)]
    (tmp_path / "s1.jsonl").write_text("\n".join(lines) + "\n")
    for _ in range(2):
        HistoryImport(log, "claude", str(tmp_path / "s1.jsonl"), Spool(str(tmp_path / "other"))).run()
    paid = [each.answer_id for each in log.ledger.find("claude-s1", oldest_first=True)]
    assert paid == ["claude:msg_0:req_0", charge.answer_id, "claude:msg_2:req_2"]
