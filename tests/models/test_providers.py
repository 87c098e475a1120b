"""Those who answer: an agent's program as a real process, and the providers' libraries against a server on loopback."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from decklog import ManualClock
from decklog.conductor.agents.description import describe
from decklog.guard.sandbox.sandbox import SandboxKind
from decklog.models.composer import Prompt, PromptPart
from decklog.models.provider import ModelReply, ModelRequest
from decklog.models.providers.making import AgentModel
from tests.models.scripted import GOOD, PROMPT, SCHEMA

WISH = ModelRequest(schema=SCHEMA, most_output_tokens=100, seconds=20)


def ask_program(tmp_path: Path, program: str, *, seconds: float = 20, **table: Any) -> ModelReply:
    """Ask a small program in Python."""
    table_of_agent = {"command": [sys.executable, "-I", "-S", "-c", program], **table}
    model = AgentModel(
        description=describe("mine", table_of_agent), folder=tmp_path / "calls", clock=ManualClock(), sandbox=SandboxKind.NONE
    )
    reply = model.reply(PROMPT, ModelRequest(schema=SCHEMA, most_output_tokens=100, seconds=seconds))
    assert list((tmp_path / "calls").iterdir()) == []
    return reply


def test_agent_program_gets_prompt_and_schema_and_prints_the_answer(tmp_path: Path) -> None:
    program = "import os,sys; t = sys.stdin.read(); print(len(os.listdir('.')), t.startswith('You are'), '\"verdict\"' in t)"
    assert ask_program(tmp_path, program).text == "1 True True"


def test_agent_program_with_a_stream_reports_usage_and_result(tmp_path: Path) -> None:
    lines = [
        {"type": "system", "subtype": "init", "session_id": "s", "model": "the-model"},
        {"type": "assistant", "message": {"content": [{"text": "I think about it"}]}},
        {
            "type": "result",
            "is_error": False,
            "result": GOOD,
            "total_cost_usd": 0.25,
            "usage": {"input_tokens": 3, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7, "output_tokens": 11},
        },
    ]
    reply = ask_program(tmp_path, f"print({chr(10).join(map(json.dumps, lines))!r})", extends="claude-code", untrusted=[])
    assert (reply.text, reply.model, reply.error_class) == (GOOD, "the-model", None)
    assert reply.usage == {
        "input_tokens": 3,
        "cache_read_tokens": 5,
        "cache_create_tokens": 7,
        "output_tokens": 11,
        "cost_microdollars": 250_000,
    }


@pytest.mark.slow
def test_failed_agent_program_gives_no_answer(tmp_path: Path) -> None:
    printing = f"print({GOOD!r}, flush=True);"
    killed = ask_program(tmp_path, f"{printing} import os; os.kill(os.getpid(), 9)")
    slow = ask_program(tmp_path, f"{printing} import time; time.sleep(60)", seconds=0.5)
    failed = ask_program(tmp_path, f"{printing} raise SystemExit(3)")
    missing = ask_program(tmp_path, "", command=["/no/such/program"])
    assert [one.error_class for one in (killed, slow, failed, missing)] == ["failed", "timeout", "failed", "failed"]
    assert [one.text for one in (killed, slow, failed, missing)] == [""] * 4


def test_outage_message_of_an_agent_program_is_recognised(tmp_path: Path) -> None:
    line = {"type": "result", "is_error": True, "api_error_status": 429, "result": "try again in 90 seconds"}
    reply = ask_program(tmp_path, f"print({json.dumps(line)!r}); raise SystemExit(1)", extends="claude-code", untrusted=[])
    assert (reply.error_class, reply.retry_seconds) == ("quota", 90.0)


# The providers' libraries, which take seconds to be imported.

needs_time = pytest.mark.skipif("DECKLOG_TEST_FULL" not in os.environ, reason="imports providers' libraries: DECKLOG_TEST_FULL=1")


class _Server:
    """A server that answers every request with a prepared response and records requests."""

    def __init__(self) -> None:
        self.status, self.body, self.headers = 200, {}, {}  # type: tuple[int, dict[str, Any], dict[str, str]]
        self.requests: list[dict[str, Any]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                content = json.dumps(server.body).encode()
                self.send_response(server.status)
                for name, value in {"content-type": "application/json", **server.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server() -> Iterator[_Server]:
    running = _Server()
    thread = threading.Thread(target=running.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.http.shutdown()
    thread.join()
    running.http.server_close()


@needs_time
def test_anthropic_library_asks_for_a_tool_and_reports_usage(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from decklog.models.providers.anthropic_api import AnthropicModel

    model = AnthropicModel("m", base_url=server.url, key_env="SOME_KEY")
    monkeypatch.delenv("SOME_KEY", raising=False)
    assert model.reply(PROMPT, WISH).error_class == "login"
    monkeypatch.setenv("SOME_KEY", "k")
    usage = {"input_tokens": 3, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7, "output_tokens": 11}
    block = {"type": "tool_use", "id": "t", "name": "answer", "input": json.loads(GOOD)}
    server.body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": [block], "usage": usage}
    reply = model.reply(PROMPT, WISH)
    assert (json.loads(reply.text), reply.model, reply.answer_id) == (json.loads(GOOD), "m-1", "msg_1")
    assert list(reply.usage.values()) == [3, 5, 7, 11]
    assert server.requests[0]["system"][0]["cache_control"] == {"type": "ephemeral"}
    server.status, server.headers = 529, {"retry-after": "12"}
    assert (model.reply(PROMPT, WISH).error_class, model.reply(PROMPT, WISH).retry_seconds) == ("overload", 12.0)
    assert len(server.requests) == 3, "the library must not retry"


@needs_time
def test_openais_library_serves_a_compatible_server_without_a_key(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from decklog.models.providers.openai_api import OpenAIModel

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = OpenAIModel("m", base_url=server.url)
    usage = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14, "prompt_tokens_details": {"cached_tokens": 6}}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": GOOD}}
    server.body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m-1", "choices": [choice], "usage": usage}
    reply = model.reply(PROMPT.with_part(PromptPart("more", "x")), WISH)
    assert (reply.text, reply.usage) == (GOOD, {"input_tokens": 4, "cache_read_tokens": 6, "output_tokens": 4})
    for status, error_class in ((401, "login"), (429, "quota"), (500, "overload"), (400, "refused")):
        server.status = status
        assert model.reply(PROMPT, WISH).error_class == error_class
    server.http.server_close()


def test_stable_prefix_is_equal_in_every_call_of_a_run() -> None:
    stable = (PromptPart("identity", "who", True), PromptPart("skill", "how", True))
    calls = [Prompt((*stable, PromptPart("task", f"task {number}"))) for number in range(5)]
    assert len({tuple(part.text for part in call.stable) for call in calls}) == 1
    beginning = calls[0].text.index("task 0")
    assert len({call.text[:beginning] for call in calls}) == 1
