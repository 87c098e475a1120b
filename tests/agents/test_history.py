"""Sessions taken over from the programs' own files: once, whatever order, whoever told of them before."""

import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, EntryKind, NotFound, RunStatus, Unavailable
from decklog.agents.history import HistoryImport, HistorySummary
from decklog.agents.intake import run_intake
from decklog.agents.spool import Spool
from tests.agents.acp.sample_session import list_bodies as told
from tests.conftest import on_both

AT = datetime(2026, 11, 15, 12, tzinfo=UTC)


def stamp(second: int) -> str:
    return (AT + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")


def line(kind: str, second: int, session: str = "s1", **fields: Any) -> dict[str, Any]:
    own = {"sessionId": session, "timestamp": stamp(second), "uuid": f"u{second}", "cwd": "/repo", "isSidechain": False}
    return {"type": kind, **own, **fields}


def answer(second: int, *blocks: dict[str, Any], session: str = "s1", **fields: Any) -> dict[str, Any]:
    message = {"id": f"msg_{second}", "model": "m", "content": list(blocks), "usage": {"input_tokens": 10, "output_tokens": 5}}
    return line("assistant", second, session, message=message, requestId=f"req_{second}", **fields)


def prompt(second: int, text: str, session: str = "s1", **fields: Any) -> dict[str, Any]:
    return line("user", second, session, message={"role": "user", "content": text}, promptId=f"p{second}", **fields)


TEXT = {"type": "text", "text": "Let me look."}
USE = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "a.py", "is_error": False}


def session(name: str = "s1") -> list[dict[str, Any]]:
    return [
        prompt(1, "Fix it", name),
        answer(2, TEXT, USE, session=name),
        line("user", 3, name, message={"role": "user", "content": [RESULT]}),
        answer(4, {"type": "text", "text": "Done."}, session=name),
    ]


def write(path: Path, lines: Sequence[dict[str, Any] | str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A session with a sub-agent, a fork of it, and lines that nobody can read."""
    home = tmp_path / "projects" / "-repo"
    write(home / "s1.jsonl", [*session(), "not json", line("something-new", 5), "{", line("queue-operation", 6)])
    below = {"isSidechain": True, "agentId": "a1"}
    write(home / "s1" / "subagents" / "agent-a1.jsonl", [prompt(7, "look", **below), answer(8, TEXT, **below)])
    write(
        home / "s2.jsonl",
        [line("queue-operation", 9, "s2"), *session("s2"), prompt(10, "Again", "s2"), answer(11, TEXT, session="s2")],
    )
    return tmp_path / "projects"


def taken(log: Decklog, folder: Path, tmp_path: Path, program: str = "claude") -> HistorySummary:
    return HistoryImport(log, program, str(folder), Spool(str(tmp_path / "spool"))).run()


OF_S1 = [
    ("session", "session import"),
    ("prompt", "Fix it"),
    ("said", "Let me look."),
    ("call", "ls"),
    ("result", "a.py"),
    ("said", "Done."),
]


def test_sessions_sub_agents_and_forks_come_in_each_with_what_is_its_own(log: Decklog, folder: Path, tmp_path: Path) -> None:
    done = taken(log, folder, tmp_path)
    assert (done.files, done.unread) == (3, 2)
    assert told(log, "claude-s1") == OF_S1
    assert told(log, "claude-s1-a1")[1:] == [("prompt", "look"), ("said", "Let me look.")]
    assert told(log, "claude-s2")[1:] == [("prompt", "Again"), ("said", "Let me look.")]
    run = log.runs.get("claude-s1")
    assert (run.goal, run.status, run.worktree) == ("Fix it", RunStatus.COMPLETED, "/repo")
    # Not when it was imported.
    assert (run.started_at, run.ended_at) == (AT + timedelta(seconds=1), AT + timedelta(seconds=4))
    assert {charge.answer_id for charge in log.ledger.find(limit=50)} == {f"claude:msg_{n}:req_{n}" for n in (2, 4, 8, 11)}
    assert log.journal.verify().ok


def test_a_second_import_reads_nothing_and_adds_nothing(log: Decklog, folder: Path, tmp_path: Path) -> None:
    taken(log, folder, tmp_path)
    before = log.journal.heads()
    again = taken(log, folder, tmp_path)
    assert (again.files, again.unchanged, again.new) == (0, 3, 0)
    # And one that has forgotten how far the first one read.
    fresh = taken(log, folder, tmp_path / "elsewhere")
    assert (fresh.files, fresh.new) == (3, 0)
    assert log.journal.heads() == before


def test_an_import_after_a_session_went_on_brings_just_that(log: Decklog, folder: Path, tmp_path: Path) -> None:
    taken(log, folder, tmp_path)
    with (folder / "-repo" / "s1.jsonl").open("a") as file:
        file.write(json.dumps(prompt(20, "And now?")) + "\n" + json.dumps(answer(21, TEXT))[:30])
    done = taken(log, folder, tmp_path)
    assert (done.files, done.new) == (1, 1)
    assert told(log, "claude-s1") == [*OF_S1, ("prompt", "And now?")]
    assert log.runs.get("claude-s1").ended_at == AT + timedelta(seconds=20)


def test_a_call_whose_result_comes_after_an_import_has_one_result(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "projects" / "s1.jsonl"
    write(path, session()[:2])
    taken(log, path.parent, tmp_path)
    write(path, session())
    taken(log, path.parent, tmp_path)
    assert told(log, "claude-s1") == OF_S1


@on_both
def test_what_hooks_told_without_an_id_is_not_told_again_from_a_file_that_was_moved(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "sessions" / "rollout-1-th1.jsonl"
    lines = [
        rollout("session_meta", 1, id="th1", session_id="th1", cwd="/repo"),
        rollout("compacted", 2, message="In short"),
        rollout("event_msg", 3, type="task_complete"),
    ]
    write(path, lines)
    spool = Spool(str(tmp_path / "spool"))
    base = {"session_id": "th1", "cwd": "/repo", "transcript_path": str(path)}
    for second, event in enumerate(("SessionStart", "PostCompact", "Stop"), 1):
        facts = {"session": "th1", "at": (AT + timedelta(seconds=second)).timestamp()}
        spool.put("codex", "th1", facts, json.dumps({**base, "hook_event_name": event}).encode())
    run_intake(log, spool)
    before = told(log, "codex-th1")
    assert before[1:] == [("compacted", "auto"), ("turn", "turn ended")]
    # What hooks missed, when they were no longer there, comes in.
    write(tmp_path / "archived" / path.name, [*lines, rollout("event_msg", 90, type="turn_aborted", reason="stopped")])
    taken(log, tmp_path / "archived", tmp_path, "codex")
    assert told(log, "codex-th1") == [*before, ("turn", "stopped")]


@on_both
def test_what_hooks_missed_of_a_session_in_a_run_comes_into_that_run(log: Decklog, tmp_path: Path, run_id: str) -> None:
    path, spool = tmp_path / "projects" / "s1.jsonl", Spool(str(tmp_path / "spool"))
    task = log.tasks.add(run_id, "work")
    write(path, session()[:2])
    payload = {"session_id": "s1", "hook_event_name": "Stop", "transcript_path": str(path)}
    spool.put("claude", "s1", {"session": "s1", "run": run_id, "task": task.id}, json.dumps(payload).encode())
    run_intake(log, spool)
    write(path, session())
    below = {"isSidechain": True, "agentId": "a1"}
    write(path.parent / "s1" / "subagents" / "agent-a1.jsonl", [prompt(7, "look", **below), answer(8, TEXT, **below)])
    for _ in range(2):
        taken(log, path.parent, tmp_path)
    assert [run.id for run in log.runs.find()] == [run_id]
    found = log.journal.find(run_id, oldest_first=True, limit=100)
    texts = [entry.body for entry in found if entry.subtype in ("prompt", "said", "call", "result")]
    assert texts == ["Fix it", "Let me look.", "ls", "a.py", "Done.", "look", "Let me look."]
    assert {entry.task_id for entry in found if entry.subtype in ("said", "result")} == {task.id}
    assert {charge.task_id for charge in log.ledger.find(run_id)} == {task.id}
    assert len(log.ledger.find(run_id)) == 3


@on_both
def test_an_import_does_not_end_a_session_that_hooks_took_up(log: Decklog, tmp_path: Path) -> None:
    path, spool = tmp_path / "projects" / "s1.jsonl", Spool(str(tmp_path / "spool"))
    write(path, session()[:1])
    assert taken(log, path.parent, tmp_path).new > 0
    payload = {"session_id": "s1", "hook_event_name": "SessionStart", "source": "resume", "transcript_path": str(path)}
    spool.put("claude", "s1", {"session": "s1"}, json.dumps(payload).encode())
    run_intake(log, spool)
    write(path, session()[:2])
    taken(log, path.parent, tmp_path)
    assert log.runs.get("claude-s1").status == RunStatus.ACTIVE
    assert told(log, "claude-s1")[-1] == ("call", "ls")


@on_both
@pytest.mark.parametrize("lines", [2, 4, 7, 0], ids=["shorter", "as many lines", "longer", "of the same length"])
def test_a_file_that_was_written_anew_is_read_from_its_beginning(log: Decklog, tmp_path: Path, lines: int) -> None:
    path = tmp_path / "projects" / "one.jsonl"
    write(path, session())
    taken(log, path.parent, tmp_path)
    prompts = [prompt(20 + number, f"Go {number}", "s2") for number in range(lines)]
    write(path, prompts or session("s2"))
    taken(log, path.parent, tmp_path)
    assert told(log, "claude-s2")[1:] == ([("prompt", f"Go {number}") for number in range(lines)] or OF_S1[1:])


@on_both
def test_in_the_place_of_another_log_all_is_read_again(log: Decklog, folder: Path, tmp_path: Path) -> None:
    with Decklog.open(tmp_path / "other.db") as other:
        taken(other, folder, tmp_path)
    assert taken(log, folder, tmp_path).files == 3
    assert told(log, "claude-s1") == OF_S1
    again = taken(log, folder, tmp_path)
    assert (again.files, again.unchanged, again.new) == (0, 3, 0)


def test_a_log_that_went_back_to_a_backup_gets_what_came_since(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "log.db"
    with Decklog.open(place) as log:
        taken(log, folder, tmp_path)
    backup = place.read_bytes()
    write(folder / "-repo" / "s3.jsonl", [prompt(30, "Later", "s3")])
    with Decklog.open(place) as log:
        taken(log, folder, tmp_path)
    for name in ("", "-wal", "-shm"):
        Path(f"{place}{name}").unlink(missing_ok=True)
    place.write_bytes(backup)
    with Decklog.open(place) as log:
        done = taken(log, folder, tmp_path)
        assert (done.files, done.new) == (4, 2)
        assert told(log, "claude-s3")[1:] == [("prompt", "Later")]


def test_files_that_nobody_can_read_are_named_and_cost_no_other_its_place(log: Decklog, folder: Path, tmp_path: Path) -> None:
    (folder / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "deep.jsonl").write_text("[" * 200_000 + "\n")
    done = taken(log, folder, tmp_path)
    assert (done.files, done.unread, len(done.warnings)) == (4, 3, 2)
    assert {Path(warning.partition(":")[0]).name for warning in done.warnings} == {"gone.jsonl", "pipe.jsonl"}
    assert told(log, "claude-s1") == OF_S1
    (tmp_path / "pipes").mkdir()
    os.mkfifo(tmp_path / "pipes" / "pipe.jsonl")
    with pytest.raises(Unavailable, match=r"pipe\.jsonl: no plain file"):
        taken(log, tmp_path / "pipes", tmp_path)


@on_both
def test_an_event_that_can_not_be_written_is_named_and_costs_no_other_its_place(log: Decklog, tmp_path: Path) -> None:
    tokens = [{"input": 10, "output": 5}, {"input": 10**12, "tool": 10**12}, {"input": 20, "output": 5}]
    own = [
        {"id": f"m{n}", "type": "gemini", "model": "m", "timestamp": stamp(n), "content": f"Say {n}", "tokens": each}
        for n, each in enumerate(tokens, 1)
    ]
    write(tmp_path / "chats" / "session-1.jsonl", [{"sessionId": "g1", "startTime": stamp(0)}, *own])
    done = taken(log, tmp_path / "chats", tmp_path, "gemini")
    assert done.unread == 1
    assert [warning.startswith("not written: input_tokens is a whole number") for warning in done.warnings] == [True]
    assert told(log, "gemini-g1")[1:] == [("said", "Say 1"), ("said", "Say 2"), ("said", "Say 3")]
    assert sorted(charge.input_tokens for charge in log.ledger.find(limit=9)) == [10, 20]
    assert log.journal.verify().ok


ODD: list[dict[str, Any]] = [
    {**prompt(5, "odd"), "gitBranch": "a\x00b", "cwd": {"a": 1}, "version": float("nan")},
    prompt(5, "odd", "\ud800"),
    {**prompt(5, "odd"), "promptId": "\x00"},
    {**prompt(5, "odd"), "timestamp": "0001-01-01T00:00:00+05:00"},
    {**answer(5, {**USE, "id": "\x00", "input": {"n": float("inf")}}), "requestId": "\ud800"},
    line("assistant", 5, message={"id": "m", "model": "\x00", "content": [], "usage": {"output_tokens": 10**19}}),
]


@on_both
@pytest.mark.parametrize("number", range(len(ODD)))
def test_no_value_in_a_line_ends_an_import(log: Decklog, tmp_path: Path, number: int) -> None:
    write(tmp_path / "projects" / "s0.jsonl", [ODD[number], *session()])
    assert taken(log, tmp_path / "projects", tmp_path).unread == 0
    assert [each for each in told(log, "claude-s1") if each in OF_S1[1:]] == OF_S1[1:]
    assert log.journal.verify().ok


def test_what_hooks_told_already_is_not_told_again(log: Decklog, folder: Path, tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "spool"))
    base = {"session_id": "s1", "cwd": "/repo", "transcript_path": str(folder / "-repo" / "s1.jsonl")}
    for event, fields in {
        "SessionStart": {"source": "startup"},
        "UserPromptSubmit": {"prompt": "Fix it", "prompt_id": "p1"},
        "PreToolUse": {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "ls"}},
        "PostToolUse": {"tool_name": "Bash", "tool_use_id": "t1", "tool_response": {"stdout": "a.py", "stderr": ""}},
        "SessionEnd": {"reason": "other"},
    }.items():
        spool.put("claude", "s1", {"session": "s1"}, json.dumps({**base, "hook_event_name": event, **fields}).encode())
    run_intake(log, spool)
    before = told(log, "claude-s1")
    assert ("session", "session startup") in before
    taken(log, folder, tmp_path / "elsewhere")
    assert told(log, "claude-s1") == before
    assert log.runs.get("claude-s1").status == RunStatus.COMPLETED


def test_a_dry_run_says_what_there_is_and_writes_nothing(log: Decklog, folder: Path, tmp_path: Path) -> None:
    before = log.journal.heads()
    done = HistoryImport(log, "claude", str(folder), Spool(str(tmp_path / "spool")), dry_run=True).run()
    assert (done.events["prompts"], done.events["answers"], done.new) == (3, 4, 0)
    assert log.journal.heads() == before
    assert not (tmp_path / "spool").exists()


def rollout(kind: str, second: int, **payload: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": stamp(second), "payload": payload}


def item(second: int, **fields: Any) -> dict[str, Any]:
    return rollout("event_msg", second, type="item_completed", turn_id="turn_1", item=fields)


def usage(given: int, cached: int, output: int) -> dict[str, int]:
    return {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": output}


def test_a_folder_without_sessions_is_told_and_no_success(log: Decklog, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(NotFound, match="no file of gemini's sessions below"):
        taken(log, tmp_path / "none", tmp_path, "gemini")


def test_codex_comes_in_with_its_calls_and_its_tokens(log: Decklog, tmp_path: Path) -> None:
    lines = [
        rollout("session_meta", 1, id="th1", session_id="th1", cwd="/repo", cli_version="1", git={"branch": "main"}),
        rollout("turn_context", 1, model="gpt"),
        item(2, type="UserMessage", id="i1", content=[{"type": "text", "text": "Fix it"}]),
        rollout("response_item", 3, type="function_call", name="exec_command", arguments='{"cmd": "false"}', call_id="c1"),
        rollout("token_usage_record", 3, response_id="r1", usage=usage(100, 40, 5)),
        item(4, type="CommandExecution", id="c1", status="failed", exit_code=1, aggregated_output="no"),
        rollout("response_item", 4, type="function_call_output", call_id="c1", output="no"),
        rollout("event_msg", 5, type="token_count", info={"total_token_usage": usage(100, 40, 5)}),
        item(6, type="AgentMessage", id="m1", content=[{"type": "Text", "text": "It fails."}]),
    ]
    write(tmp_path / "sessions" / "rollout-1-th1.jsonl", lines)
    taken(log, tmp_path / "sessions", tmp_path, "codex")
    assert told(log, "codex-th1")[1:] == [("prompt", "Fix it"), ("call", "false"), ("result", "no"), ("said", "It fails.")]
    (charge,) = log.ledger.find(limit=9)
    assert (charge.model, charge.input_tokens, charge.cache_read_tokens, charge.output_tokens) == ("gpt", 60, 40, 5)
    result = log.journal.find("codex-th1", kind=EntryKind.TOOL)[0]
    assert isinstance(result.payload, dict)
    assert (result.payload["outcome"], result.payload["exit_code"]) == ("failed", 1)


def test_older_rollouts_tell_only_running_totals(log: Decklog, tmp_path: Path) -> None:
    totals = [usage(100, 0, 5), usage(100, 0, 5), usage(250, 100, 9)]
    lines = [rollout("session_meta", 1, id="th1", cwd="/repo"), rollout("turn_context", 1, model="gpt")]
    lines += [
        rollout("event_msg", 2 + n, type="token_count", info={"total_token_usage": total}) for n, total in enumerate(totals)
    ]
    write(tmp_path / "sessions" / "rollout-1-th1.jsonl", lines)
    taken(log, tmp_path / "sessions", tmp_path, "codex")
    tokens = [(charge.input_tokens, charge.cache_read_tokens, charge.output_tokens) for charge in log.ledger.find(limit=9)]
    assert sorted(tokens) == [(50, 100, 4), (100, 0, 5)]


def test_the_totals_of_a_fork_are_those_of_its_own(log: Decklog, tmp_path: Path) -> None:
    counts = [(usage(1100, 0, 105), usage(100, 0, 5)), (usage(1300, 0, 115), usage(200, 0, 10))]
    lines = [
        rollout("session_meta", 1, id="th2", session_id="th2", forked_from_id="th1", cwd="/repo"),
        rollout("turn_context", 1, model="gpt"),
    ]
    lines += [
        rollout("event_msg", 2 + n, type="token_count", info={"total_token_usage": total, "last_token_usage": last})
        for n, (total, last) in enumerate(counts)
    ]
    write(tmp_path / "sessions" / "rollout-1-th2.jsonl", lines)
    taken(log, tmp_path / "sessions", tmp_path, "codex")
    assert sorted(charge.input_tokens for charge in log.ledger.find(limit=9)) == [100, 200]


class Killed(BaseException):
    """Ends an import where a kill would."""


@pytest.mark.slow
@on_both
def test_an_import_that_is_ended_anywhere_and_run_again_gives_the_same_log(
    log: Decklog, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("decklog.agents.history._BATCH", 2)
    taken(log, folder, tmp_path)

    def killed_after(parts: int) -> Callable[..., None]:
        def progress(*_: object) -> None:
            seen.append(1)
            if len(seen) > parts:
                raise Killed

        seen: list[int] = []
        return progress

    with Decklog.open(tmp_path / "other.db") as other:
        spool, parts = Spool(str(tmp_path / "other")), 0
        while True:
            try:
                HistoryImport(other, "claude", str(folder), spool, progress=killed_after(parts)).run()
                break
            except Killed:
                parts += 1
        assert parts > 5
        for run in log.runs.find():
            assert told(other, run.id) == told(log, run.id)
            assert other.ledger.summary(run.id) == log.ledger.summary(run.id)
            assert other.runs.get(run.id).status == run.status
        assert other.journal.verify().ok


def test_a_file_named_from_where_it_lies_is_taken_and_known_by_its_whole_name(
    log: Decklog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        write(tmp_path / name / "session.jsonl", session(name))
        monkeypatch.chdir(tmp_path / name)
        assert taken(log, Path("session.jsonl"), tmp_path).files == 1
    assert taken(log, tmp_path / "one" / "session.jsonl", tmp_path).unchanged == 1

    assert {run.id for run in log.runs.find()} == {"claude-one", "claude-two"}


def test_a_file_that_was_taken_for_another_programs_is_read_as_its_own(log: Decklog, tmp_path: Path) -> None:
    write(tmp_path / "s1.jsonl", session())

    assert taken(log, tmp_path / "s1.jsonl", tmp_path, "codex").new == 0
    assert taken(log, tmp_path / "s1.jsonl", tmp_path).new > 0
    assert taken(log, tmp_path / "s1.jsonl", tmp_path).unchanged == 1


def test_what_is_no_number_and_endless_nesting_in_a_call_stop_no_session(log: Decklog, tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "Sum", "input": {"of": [float("nan"), float("-inf")], "deep": "DEEP"}}
    odd = json.dumps(answer(2, use)).replace('"DEEP"', "[" * 300 + "]" * 300)
    last = answer(3, TEXT)
    last["message"]["usage"]["input_tokens"] = 10**30
    write(tmp_path / "s1.jsonl", [prompt(1, "Sum it up"), odd, last])

    assert taken(log, tmp_path / "s1.jsonl", tmp_path).unread == 0

    [call] = log.journal.find("claude-s1", subtype="call")
    assert call.payload["arguments"]["of"] == ["nan", "-inf"]
    assert log.journal.find("claude-s1", limit=1, kind=EntryKind.INTERACTION)[0].body == "Let me look."


def test_a_session_that_ends_in_an_api_error_has_failed_and_one_that_went_on_has_not(log: Decklog, tmp_path: Path) -> None:
    def error(second: int, name: str) -> dict[str, Any]:
        return {**answer(second, {"type": "text", "text": "API Error: 500"}, session=name), "isApiErrorMessage": True}

    write(tmp_path / "projects/-repo/s1.jsonl", [prompt(1, "Go", "s1"), error(2, "s1")])
    write(tmp_path / "projects/-repo/s2.jsonl", [prompt(1, "Go", "s2"), error(2, "s2"), answer(3, TEXT, session="s2")])
    taken(log, tmp_path / "projects", tmp_path)
    assert [log.runs.get(f"claude-{name}").status for name in ("s1", "s2")] == [RunStatus.FAILED, RunStatus.COMPLETED]
    assert ("turn", "API Error: 500") in told(log, "claude-s1")
