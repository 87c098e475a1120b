"""A model on loopback that answers by script, for the real agent programs: Anthropic's messages and OpenAI's responses, streamed.

What others speak is in `fake_wires`.

A script names lanes; a conversation is in the lane whose name was said last (`lane=NAME`), and gets the lane's answers one after
the other, counted by what the conversation itself holds. So retries, resumes and sub-agents get the right one.
"""

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.agents import fake_wires

_LANE = re.compile(r"lane=([\w-]+)")
_FIRST_EVENT = re.compile(rb".*?\r?\n\r?\n", re.DOTALL)


@dataclass(frozen=True)
class Use:
    """A call of a tool that the model asks for."""

    tool: str
    arguments: dict[str, Any]
    # Under which Codex offers the tools of a server.
    namespace: str | None = None
    # One with a single `input` is one of Codex's own kind, unless it says otherwise.
    is_function: bool = False


@dataclass(frozen=True)
class Step:
    """One answer: what is said, which tools are to be used, and what it cost."""

    text: str = ""
    uses: tuple[Use, ...] = ()
    input_tokens: int = 100
    output_tokens: int = 20
    cache_read_tokens: int = 0
    cache_create_tokens: int = 0
    seconds: float = 0.0
    status: int = 200
    # What is thought before, as far as the model shows it.
    thought: str = ""


@dataclass(frozen=True)
class Given:
    """An answer that was given: its id, its lane, which one of the lane it was, and the step itself."""

    answer_id: str
    model: str
    lane: str
    number: int
    step: Step


@dataclass
class FakeModel:
    """Serves a script while it is open; `given` is what was answered, `requests` what came."""

    script: dict[str, list[Step]]
    given: list[Given] = field(default_factory=list)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    # What the next requests meet before anything is answered: a status, or 0 for a stream that is cut after its first event.
    troubles: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
                model.answer(self, body)

            def do_GET(self) -> None:
                self.send_error(404)

            do_HEAD = do_GET

            def log_message(self, *_arguments: object) -> None:
                """Keep quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._lock = threading.Lock()
        self.wait = threading.Event()
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "FakeModel":
        self._thread.start()
        return self

    def __exit__(self, *_problem: object) -> None:
        self.wait.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        path = handler.path.partition("?")[0]
        if path not in ("/v1/messages", "/v1/responses", fake_wires.CHAT) and not fake_wires.is_google(path):
            handler.send_error(404)
            return
        with self._lock:
            trouble = self.troubles.pop(0) if self.troubles else 200
        if trouble not in (0, 200):
            _error(handler, trouble)
            return
        given = self._next(path, body)
        if given.step.seconds:
            self.wait.wait(given.step.seconds)
        if given.step.status != 200:
            _error(handler, given.step.status)
            return
        is_whole = path.endswith(":generateContent") or (path in ("/v1/responses", fake_wires.CHAT) and not body.get("stream"))
        content = _whole(path, given) if is_whole else _streamed(path, given)
        handler.send_response(200)
        handler.send_header("content-type", "application/json" if is_whole else "text/event-stream")
        handler.send_header("content-length", str(len(content)))
        handler.send_header("request-id", f"req_{given.answer_id}")
        handler.end_headers()
        handler.wfile.write(content if trouble else _FIRST_EVENT.match(content)[0])  # type: ignore[index]
        handler.close_connection = not trouble

    def _next(self, path: str, body: dict[str, Any]) -> Given:
        is_google = fake_wires.is_google(path)
        lane, number = _place(fake_wires.said_to_google(body) if is_google else _said(body))
        model = path.rpartition("/")[2].partition(":")[0] if is_google else str(body.get("model"))
        with self._lock:
            self.requests.append((path, body))
            steps = self.script.get(lane) or [Step("There is nothing to do.")]
            step = steps[min(number, len(steps) - 1)]
            given = Given(f"msg_{len(self.given):04d}", model, lane, number, step)
            if step.status == 200:
                self.given.append(given)
            return given


def _whole(path: str, given: Given) -> bytes:
    """Write an answer in one piece, for one who asked for that."""
    if path.endswith(":generateContent"):
        return json.dumps(next(fake_wires.google(given))).encode()
    if path == fake_wires.CHAT:
        return json.dumps(fake_wires.whole_chat(given)).encode()
    return json.dumps([data for _, data in _responses(given)][-1]["response"]).encode()


def _streamed(path: str, given: Given) -> bytes:
    """Write an answer as the one who asked at a path reads it."""
    if fake_wires.is_google(path):
        return b"".join(f"data: {json.dumps(data)}\r\n\r\n".encode() for data in fake_wires.google(given))
    if path == fake_wires.CHAT:
        return b"".join(f"data: {json.dumps(data)}\n\n".encode() for data in fake_wires.chat(given)) + b"data: [DONE]\n\n"
    events = _messages(given) if path == "/v1/messages" else _responses(given)
    return b"".join(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode() for name, data in events)


def _said(body: dict[str, Any]) -> list[tuple[str, str]]:
    """List who said what in a conversation of either form."""
    items = body.get("messages") or body.get("input") or []
    if isinstance(items, str):
        return [("user", items)]
    found = []
    for item in items:
        role = item.get("role") or ("assistant" if item.get("type") in ("function_call", "custom_tool_call") else "tool")
        found.append((role, json.dumps(item.get("content"))))
    return found


def _place(said: list[tuple[str, str]]) -> tuple[str, int]:
    lane, number, is_answering = "none", 0, False
    for role, text in said:
        if role == "user" and (names := _LANE.findall(text)):
            lane, number, is_answering = names[-1], 0, False
        elif role == "assistant":
            # Parts of one answer may come as several items.
            number += not is_answering
            is_answering = True
        else:
            is_answering = False
    return lane, number


def _error(handler: BaseHTTPRequestHandler, status: int) -> None:
    content = json.dumps(
        {"type": "error", "error": {"type": "api_error", "message": f"scripted {status}, try again in 1 seconds"}}
    ).encode()
    handler.send_response(status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def _messages(given: Given) -> Iterator[tuple[str, dict[str, Any]]]:
    step = given.step
    usage = {
        "input_tokens": step.input_tokens,
        "cache_read_input_tokens": step.cache_read_tokens,
        "cache_creation_input_tokens": step.cache_create_tokens,
    }
    message = {"id": given.answer_id, "type": "message", "role": "assistant", "model": given.model, "content": []}
    yield (
        "message_start",
        {"type": "message_start", "message": {**message, "stop_reason": None, "usage": {**usage, "output_tokens": 1}}},
    )
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if step.thought:
        blocks.append(
            ({"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": step.thought})
        )
    if step.text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": step.text}))
    for place, use in enumerate(step.uses):
        start = {"type": "tool_use", "id": f"toolu_{given.answer_id}_{place}", "name": use.tool, "input": {}}
        blocks.append((start, {"type": "input_json_delta", "partial_json": json.dumps(use.arguments)}))
    for index, (start, delta) in enumerate(blocks):
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": start}
        yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    reason = "tool_use" if step.uses else "end_turn"
    ended = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}}
    yield "message_delta", {**ended, "usage": {**usage, "output_tokens": step.output_tokens}}
    yield "message_stop", {"type": "message_stop"}


def _responses(given: Given) -> Iterator[tuple[str, dict[str, Any]]]:
    step = given.step
    response = {
        "id": f"resp_{given.answer_id}",
        "object": "response",
        "model": given.model,
        "output": [],
        "status": "in_progress",
    }
    yield "response.created", {"type": "response.created", "response": response}
    output: list[dict[str, Any]] = []
    if step.thought:
        summary = [{"type": "summary_text", "text": step.thought}]
        output.append({"type": "reasoning", "id": f"rs_{given.answer_id}", "summary": summary, "encrypted_content": "none"})
    if step.text:
        part = {"type": "output_text", "text": step.text, "annotations": []}
        output.append(
            {"type": "message", "id": f"{given.answer_id}_t", "role": "assistant", "status": "completed", "content": [part]}
        )
    for place, use in enumerate(step.uses):
        call = {
            "id": f"{given.answer_id}_{place}",
            "call_id": f"call_{given.answer_id}_{place}",
            "name": use.tool,
            "status": "completed",
        }
        if "input" in use.arguments and len(use.arguments) == 1 and not use.is_function:
            output.append({"type": "custom_tool_call", **call, "input": use.arguments["input"]})
        else:
            named = {"namespace": use.namespace} if use.namespace else {}
            output.append({"type": "function_call", **call, **named, "arguments": json.dumps(use.arguments)})
    for index, item in enumerate(output):
        yield "response.output_item.added", {"type": "response.output_item.added", "output_index": index, "item": item}
        yield "response.output_item.done", {"type": "response.output_item.done", "output_index": index, "item": item}
    tokens = step.input_tokens + step.cache_read_tokens + step.cache_create_tokens
    usage = {
        "input_tokens": tokens,
        "input_tokens_details": {"cached_tokens": step.cache_read_tokens, "cache_write_tokens": step.cache_create_tokens},
        "output_tokens": step.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens + step.output_tokens,
    }
    done = {**response, "status": "completed", "output": output, "usage": usage}
    yield "response.completed", {"type": "response.completed", "response": done}
