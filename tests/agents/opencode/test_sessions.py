"""opencode's sessions from its database: once, with sub-agents and spend, whoever told of them before."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from decklog import Decklog, Invalid, RunStatus
from decklog.agents.history import HistoryImport, HistorySummary
from decklog.agents.intake import run_intake
from decklog.agents.spool import Spool
from tests.plugins.importers import claims

AT = int(datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp() * 1000)
RUN = "opencode-ses_a"
SCHEMA = """
create table session (
  id text primary key, parent_id text, directory text, title text, version text, cost real, tokens_input integer, model text,
  time_created integer
);
create table message (id text primary key, session_id text, time_created integer, time_updated integer, data text);
create table part (id text primary key, message_id text, session_id text, time_created integer, data text);
create table account (id text, refresh_token text);
"""
TOKENS = {"input": 100, "output": 20, "reasoning": 0, "cache": {"read": 40, "write": 3}}


def tool(call: str, status: str, *, tool: str = "bash", **state: Any) -> dict[str, Any]:
    given = {"command": f"run {call}"} if tool == "bash" else {"filePath": "a.py"}
    times = {"start": AT + 1000, "end": AT + 2000}
    return {"type": "tool", "tool": tool, "callID": call, "state": {"status": status, "input": given, "time": times, **state}}


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


MESSAGES: list[tuple[str, str, dict[str, Any], list[dict[str, Any]]]] = [
    ("msg_1", "ses_a", {"role": "user"}, [text("Fix it"), text("<hidden>", synthetic=True), {"type": "file", "url": "x"}]),
    (
        "msg_2",
        "ses_a",
        {"role": "assistant", "modelID": "m-1", "providerID": "p", "cost": 0.0125, "tokens": TOKENS, "done": True},
        [
            {"type": "step-start"},
            {"type": "reasoning", "text": "A comma, I think."},
            text("Let me look."),
            tool("c1", "completed", output="hi", metadata={"exit": 0}),
            tool("c2", "completed", output="no", metadata={"exit": 3}),
            tool("c3", "error", tool="read", error="File not found"),
            tool("c4", "error", error="The user rejected permission to use this specific tool call."),
            tool("c5", "error", error="Tool execution aborted"),
            text("And again."),
            {"type": "step-finish", "tokens": TOKENS},
        ],
    ),
    ("msg_3", "ses_b", {"role": "user"}, [text("look below")]),
    (
        "msg_4",
        "ses_b",
        {"role": "assistant", "modelID": "m-1", "cost": 0, "tokens": {**TOKENS, "input": 7}, "done": True},
        [text("Found.")],
    ),
    ("msg_5", "ses_a", {"role": "user"}, [{"type": "compaction", "auto": True}]),
    (
        "msg_6",
        "ses_a",
        {"role": "assistant", "modelID": "m-1", "tokens": TOKENS, "error": {"name": "APIError", "data": {"message": "busy"}}},
        [text("half a sen"), tool("c6", "running")],
    ),
]


def build(path: Path, messages: list[tuple[str, str, dict[str, Any], list[dict[str, Any]]]] = MESSAGES) -> Path:
    path.unlink(missing_ok=True)
    db = apsw.Connection(str(path))
    db.execute(SCHEMA)
    for name, parent in (("ses_b", "ses_a"), ("ses_a", None)):
        row = (name, parent, "/repo", f"Title of {name}", "1.18.33", 0.0125, 107, "m-1", AT + (parent is not None))
        db.execute("insert into session values (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    for number, (name, session, data, parts) in enumerate(messages, 1):
        at = AT + number * 1000
        done = {"completed": at + 500} if data.get("done") else {}
        written = json.dumps({**data, "time": {"created": at, **done}})
        db.execute("insert into message values (?, ?, ?, ?, ?)", (name, session, at, at, written))
        for place, part in enumerate(parts):
            row = (f"prt_{number}_{place:02}", name, session, at, json.dumps(part))
            db.execute("insert into part values (?, ?, ?, ?, ?)", row)
    db.execute("insert into message values ('msg_9', 'ses_a', 1, 1, '{broken')")
    db.execute("insert into part values ('prt_9', 'msg_gone', 'ses_a', 1, '{}')")
    db.execute("insert into account values ('a', 'not ours to read')")
    db.close()
    return path


def take(log: Decklog, path: Path, folder: Path, **settings: Any) -> HistorySummary:
    return HistoryImport(log, "opencode", str(path), Spool(str(folder / "spool")), **settings).run()


def _said(log: Decklog, run: str, subtype: str) -> list[str | None]:
    return [entry.body for entry in log.journal.find(run, subtype=subtype, oldest_first=True, limit=100)]


def test_a_session_is_a_run_with_its_tools_its_sub_agents_and_its_spend(log: Decklog, tmp_path: Path) -> None:
    done = take(log, build(tmp_path / "opencode.db"), tmp_path)

    run = log.runs.get(RUN)
    assert (run.goal, run.worktree, run.status) == ("Fix it", "/repo", RunStatus.COMPLETED)
    assert _said(log, RUN, "prompt") == ["Fix it"]
    assert _said(log, RUN, "said") == ["Let me look.", "And again."]
    assert _said(log, RUN, "thought") == ["A comma, I think."]
    results = log.journal.find(RUN, subtype="result", oldest_first=True)
    assert [entry.payload["outcome"] for entry in results] == ["ok", "failed", "failed", "denied", "interrupted"]
    assert _said(log, RUN, "error") == ["busy"]
    assert _said(log, RUN, "compacted") == ["auto"]
    (below,) = log.runs.find(parent_run_id=RUN)
    assert _said(log, below.id, "said") == ["Found."]
    spent = log.ledger.summary(RUN)["total"]
    assert (spent["input_tokens"], spent["cache_read_tokens"], spent["cost_microdollars"]) == (100, 40, 12_500)
    assert done.unread == 1
    assert log.journal.verify().ok


def test_a_second_import_adds_nothing_and_one_after_changes_just_them(log: Decklog, tmp_path: Path) -> None:
    path = build(tmp_path / "opencode.db")
    take(log, path, tmp_path)
    heads = log.journal.heads()

    assert take(log, path, tmp_path).unchanged == 1
    assert take(log, path, tmp_path / "other").new == 0
    assert log.journal.heads() == heads
    build(path, [*MESSAGES[:5], ("msg_6", "ses_a", {**MESSAGES[5][2], "done": True}, [text("half a sentence, and the rest")])])
    take(log, path, tmp_path)

    assert _said(log, RUN, "said")[-1] == "half a sentence, and the rest"
    assert log.ledger.summary(RUN)["total"]["input_tokens"] == 200


def test_what_the_plugin_told_is_not_told_again(log: Decklog, tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "spool"))
    told: list[dict[str, Any]] = [
        {"hook_event_name": "SessionStart", "source": "startup"},
        {"hook_event_name": "UserPromptSubmit", "prompt": "Fix it", "prompt_id": "msg_1", "source": "user"},
        {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "c1", "tool_input": {"command": "run c1"}},
        {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "c1", "tool_response": "hi"},
        {"hook_event_name": "AssistantText", "message_id": "msg_2", "text": "Let me look."},
        {"hook_event_name": "ModelAnswer", "message_id": "msg_2", "model": "m-1", "tokens": TOKENS},
    ]
    for payload in told:
        whole = {"session_id": "ses_a", "cwd": "/repo", **payload}
        spool.put("opencode", "ses_a", {"session": "ses_a"}, json.dumps(whole).encode())
    run_intake(log, spool)

    take(log, build(tmp_path / "opencode.db"), tmp_path)

    assert _said(log, RUN, "prompt") == ["Fix it"]
    assert _said(log, RUN, "said") == ["Let me look.", "And again."]
    assert len(_said(log, RUN, "call")) == 6
    assert log.ledger.summary(RUN)["total"]["input_tokens"] == 100


def test_sessions_are_the_same_log_whatever_order_their_rows_have(tmp_path: Path) -> None:
    one, other = build(tmp_path / "a.db"), build(tmp_path / "b.db", MESSAGES[:0])
    db = apsw.Connection(str(other))
    db.execute("delete from session; delete from message; delete from part; attach ? as a", (str(one),))
    for table in ("part", "message", "session"):
        db.execute(f"insert into {table} select * from a.{table} order by rowid desc")
    db.close()

    claims.check_same_log(tmp_path, lambda log: take(log, one, tmp_path / "one"), lambda log: take(log, other, tmp_path / "two"))


def test_killed_before_its_last_commit_it_gives_the_same_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build(tmp_path / "opencode.db")
    monkeypatch.setattr("decklog.agents.history._BATCH", 3)
    with claims.fresh(tmp_path, "whole") as log:
        take(log, path, tmp_path / "whole")
        whole = claims.told_by(log)
    for moment in (1, 3, 5):
        with claims.fresh(tmp_path, f"killed-{moment}") as log:
            with pytest.raises(claims.Killed):
                take(log, path, tmp_path / f"k{moment}", progress=claims.killer(moment))
            take(log, path, tmp_path / f"k{moment}")
            assert claims.told_by(log) == whole


def test_another_database_is_refused(log: Decklog, tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "x.db"))
    db.execute("create table session (id)")
    db.close()

    with pytest.raises(Invalid, match="no database of opencode"):
        take(log, tmp_path / "x.db", tmp_path)
