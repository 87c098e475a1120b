"""The server as a program that an agent starts: any input, and a kill."""

from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, EntryKind, TaskState
from tests.cli.conftest import Program, decklog, log_folder, started_log_file
from tests.mcp.servers import Raw, over_stdio

__all__ = ["decklog", "log_folder", "started_log_file"]
SESSION = "CLAUDE_CODE_SESSION_ID"
CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"note","arguments":%s}}'


@pytest.mark.slow
def test_client_and_commands_of_a_session_share_a_task(log_folder: Path, decklog: Program) -> None:
    assert decklog("plan", "one", "two").code == 0
    others = decklog("next", "--json", **{SESSION: "s-1"}).data["task"]

    async def work(client: Any) -> Any:
        assert len((await client.list_tools()).tools) == 15
        return (await client.call_tool("next", {})).structured_content["task"]

    mine = over_stdio(log_folder, work, **{SESSION: "s-2"})
    assert mine != others
    assert decklog("done", "by the command line", "--json", **{SESSION: "s-2"}).data["task"] == mine


@pytest.mark.slow
def test_any_input_is_answered_and_a_killed_call_happens_once(tmp_path: Path, decklog: Program) -> None:
    (tmp_path / ".git").mkdir()
    with Raw(tmp_path, **{SESSION: "s-1"}) as client:
        client.hello()
        assert client.call("next")["structuredContent"]["error"]["hint"].startswith("Run `decklog init`")
        for words in (["init"], ["runs", "start", "a goal", "--run", "run_1"], ["plan", "one"]):
            assert decklog(*words).code == 0
        half, deep = CALL % rb'{"text":"\ud800"}', CALL % (b"[" * 9000 + b"]" * 9000)
        for line, number in ((half, 7), (deep, 7), (b"nonsense", None), (b"\xff\0", None), (b"[]", None)):
            client.write(line)
            refused = client.read()
            assert (refused["id"], refused["error"]["code"]) == (number, -32700)
        assert client.ask("no/such", {})["error"]["code"] == -32601
        assert client.ask("tools/call", {"name": "next", "arguments": [1]})["error"]["code"] == -32602
        assert client.call("note", text="x" * 1_000_000)["structuredContent"]["entry"]
        with Decklog.open(tmp_path / ".decklog" / "decklog.db") as log:
            _kill_in_a_call(client, log, decklog)


def _kill_in_a_call(client: Raw, log: Decklog, decklog: Program) -> None:
    task_id = client.call("next")["structuredContent"]["task"]
    with log.transaction():
        log.journal.append("run_1", "in the way")
        client.send("tools/call", {"name": "note", "arguments": {"text": "a thought", "key": "k"}}, 5)
        client.send("tools/call", {"name": "done", "arguments": {"what": "it"}}, 6)
        # Read by now, and waiting for the lock; or not read yet: either way nothing of it is on record.
        assert client.kill() == b""
    session = {SESSION: "s-1"}
    assert decklog("next", "--json", **session).data["task"] == task_id
    for _ in range(2):
        assert decklog("note", "a thought", "--key", "k", **session).code == 0
        assert decklog("done", "it", **session).code == 0
    notes = [note.body for note in log.journal.find("run_1", kind=EntryKind.REASONING) if note.key]
    assert notes == ["a thought"]
    task = log.tasks.get(task_id)
    assert (task.state, task.attempts) == (TaskState.DONE, 1)
    assert log.journal.verify().ok
