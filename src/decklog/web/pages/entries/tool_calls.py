"""Tool calls as a person reads them: the command, its result, its duration and its output."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from decklog.core.figures import took

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CALLS, _RESULTS = ("call", "agent.tool"), ("result", "agent.result")
# Names of the output text in results.
_OUTPUTS = ("output", "stdout", "stderr", "text", "content")


@dataclass(frozen=True)
class ShownCall:
    """One call. `end` is its result ("exit 1", "failed"), empty if unknown. `id` pairs a call with its result."""

    command: str
    end: str = ""
    is_failed: bool = False
    seconds: float | None = None
    output: str = ""
    id: str | None = None
    is_result: bool = False

    @property
    def facts(self) -> str:
        return " · ".join(filter(None, (self.end, self.duration)))

    @property
    def duration(self) -> str:
        return "" if self.seconds is None else took(timedelta(seconds=self.seconds))


def call_of(entry: Any) -> ShownCall | None:
    """Parse a tool call, or the result of one, from an entry; None if the entry is neither."""
    image = entry.payload if isinstance(entry.payload, dict) else {}
    if entry.kind.value != "tool" or not image:
        return None
    is_result = entry.subtype in _RESULTS
    if "arguments" not in image and not is_result and entry.subtype not in _CALLS:
        return None
    result = image.get("result", image if is_result else None)
    end, is_failed = _end(image, result)
    output = (entry.body or "") if is_result else _output(image, result)
    return ShownCall(
        command=str(image.get("tool") or "result") if is_result else _command(entry, image),
        end=end,
        is_failed=is_failed,
        seconds=_seconds(image, result),
        output=plain(output),
        id=image["call"] if isinstance(image.get("call"), str) else None,
        is_result=is_result,
    )


def paired(entries: Sequence[Any]) -> list[tuple[Any, ShownCall]]:
    """Return the calls among entries, newest first, each with its result if another of the entries has it."""
    found = [(entry, call) for entry in entries if (call := call_of(entry)) is not None]
    results: dict[tuple[str, str | None], ShownCall] = {
        (entry.stream, call.id): call for entry, call in found if call.is_result and call.id
    }
    calls = {(entry.stream, call.id) for entry, call in found if not call.is_result and call.id}
    return [
        (entry, _with(call, results.get((entry.stream, call.id))))
        for entry, call in found
        if not (call.is_result and (entry.stream, call.id) in calls)
    ]


def _with(call: ShownCall, result: ShownCall | None) -> ShownCall:
    if result is None or call.is_result:
        return call
    return ShownCall(call.command, result.end, result.is_failed, result.seconds, result.output, call.id)


def _command(entry: Any, image: dict[str, Any]) -> str:
    given = image.get("arguments")
    said = given.get("command") if isinstance(given, dict) else None
    if isinstance(said, str):
        return said
    if entry.body:
        return str(entry.body)
    return f"{image.get('tool') or ''} {json.dumps(given, ensure_ascii=False)}".strip()


def _end(image: dict[str, Any], result: Any) -> tuple[str, bool]:
    """Return the result of a call, and whether it is a failure."""
    facts = result if isinstance(result, dict) else image
    code, signal = facts.get("exit_code"), facts.get("signal")
    if isinstance(code, int) and not isinstance(code, bool):
        return f"exit {code}", code != 0
    if isinstance(signal, str) and signal:
        return signal, True
    if isinstance(image.get("error"), dict):
        return str(image["error"].get("code") or "error"), True
    outcome = image.get("outcome")
    return (outcome, outcome != "ok") if isinstance(outcome, str) else ("", False)


def _seconds(image: dict[str, Any], result: Any) -> float | None:
    for facts in (image, result):
        value = facts.get("duration_ms") if isinstance(facts, dict) else None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return max(0.0, value / 1000)
    return None


def _output(image: dict[str, Any], result: Any) -> str:
    if isinstance(image.get("error"), dict):
        return str(image["error"].get("message") or "")
    if isinstance(result, str):
        return result
    if not isinstance(result, dict):
        return "" if result is None else json.dumps(result, ensure_ascii=False)
    if isinstance(chunks := result.get("chunks"), list):
        return "".join(str(chunk.get("text", "")) for chunk in chunks if isinstance(chunk, dict))
    return "\n".join(text for name in _OUTPUTS if isinstance(text := result.get(name), str) and text)


def plain(text: str) -> str:
    """Return the text that a terminal would finally show: without colours, and overwritten lines in their last state."""
    if text.isascii() and text.isprintable():
        return text
    lines = _ESCAPES.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
