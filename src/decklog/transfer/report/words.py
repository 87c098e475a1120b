"""Describe entries as sentences: a tool call by its command and outcome, a charge by its amount."""

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from decklog.core.display import counted, dollars, one_line, shorten

Image = dict[str, Any]

_TOKENS = ("input_tokens", "cache_read_tokens", "cache_create_tokens", "output_tokens")
# The arguments that name the object of a tool call.
_OBJECTS = ("path", "pattern", "symbol", "name", "query", "url", "mark", "process_id")
_LONGEST_PAYLOAD = 200
_TASK_NOTES = (
    "claimed by ",
    "failed: ",
    "blocked: ",
    "released: ",
    "waits: ",
    "paused: ",
    "abandoned: ",
    "lease expired",
    "resumed",
)


@dataclass(frozen=True)
class EntrySentence:
    """An entry as a sentence. `tone` is good, bad or money where it matters; bookkeeping is folded."""

    text: str
    tone: str = ""
    is_bookkeeping: bool = False


def describe_entry(entry: dict[str, Any]) -> EntrySentence:
    """Return the sentence of an entry, given by its columns."""
    payload = _load_json(entry["payload"])
    if entry["record_table"]:
        tell = _RECORDS.get(entry["record_table"], _describe_record)
        return tell(entry, payload if isinstance(payload, dict) else {})
    if entry["kind"] == "tool":
        return _describe_tool(entry, payload)
    return _describe_statement(entry, payload)


def _load_json(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


def _describe_statement(entry: dict[str, Any], payload: Any) -> EntrySentence:
    subtype = (entry["subtype"] or "").replace("_", " ")
    text = entry["body"] or _summarize_payload(payload) or _kept_apart(entry)
    if entry["kind"] == "event":
        text = ": ".join(part for part in (subtype, text) if part)
        is_bad = subtype.startswith(("budget overdrawn", "budget passed", "trust.refused"))
        return EntrySentence(text, "bad" if is_bad else "", subtype.startswith("imported"))
    label = entry["phase"] or subtype
    return EntrySentence(f"{label.capitalize()}: {text}" if label else text)


def _summarize_payload(payload: Any) -> str:
    """Return the plain values of a payload with their names."""
    if isinstance(payload, dict):
        plain = [f"{name} {value}" for name, value in payload.items() if isinstance(value, (str, int, float))]
        return _cut(", ".join(plain) or f"({counted(len(payload), 'value')})" if payload else "")
    return _cut(", ".join(map(str, payload))) if isinstance(payload, list) else _cut(str(payload or ""))


def _cut(text: str) -> str:
    return shorten(one_line(text), _LONGEST_PAYLOAD)


def _kept_apart(entry: dict[str, Any]) -> str:
    digest = entry["body_digest"] or entry["payload_digest"]
    return f"(a long text, kept apart or dropped; SHA-256 {digest})" if digest else "(no words)"


# Tools


def _describe_tool(entry: dict[str, Any], payload: Any) -> EntrySentence:
    call = payload if isinstance(payload, dict) else {}
    did = _describe_action(entry, call)
    if did is None:
        return EntrySentence(entry["body"] or _summarize_payload(payload) or _kept_apart(entry))
    outcome, tone = _outcome(call)
    return EntrySentence(f"{did} → {outcome}" if outcome else did, tone)


def _describe_action(entry: dict[str, Any], call: Image) -> str | None:
    """Describe a tool call: a command as typed, or the tool and its object."""
    arguments = call.get("arguments") if isinstance(call.get("arguments"), dict) else call
    assert isinstance(arguments, dict)
    command = arguments.get("command") or arguments.get("cmd")
    if isinstance(command, list):
        command = shlex.join(map(str, command))
    if command:
        return f"$ {command}"
    tool = call.get("tool") or (entry["subtype"] if call else None)
    if not tool:
        return None
    what = next((str(arguments[name]) for name in _OBJECTS if arguments.get(name)), "")
    return f"{tool} {what}".strip()


def _outcome(call: Image) -> tuple[str, str]:
    """Return how a call ended, and whether that is bad."""
    took = _format_duration(call.get("duration_ms"))
    error, result = call.get("error"), call.get("result")
    if error:
        said = error.get("message", error) if isinstance(error, dict) else error
        return f"refused or failed: {_cut(str(said))}", "bad"
    code = result.get("exit_code") if isinstance(result, dict) else call.get("exit_code")
    if isinstance(code, int):
        return f"exit {code}{took}", "bad" if code else "good"
    if isinstance(result, dict) and result.get("signal"):
        return f"ended by {result['signal']}{took}", "bad"
    return (f"done{took}", "good") if "result" in call else ("", "")


def _format_duration(milliseconds: Any) -> str:
    if not isinstance(milliseconds, (int, float)) or milliseconds < 100:
        return ""
    return f" in {milliseconds / 1000:.1f} s"


# Records


def _describe_run(entry: dict[str, Any], image: Image) -> EntrySentence:
    if entry["subtype"] == "added":
        return EntrySentence(f"The run began: {image.get('goal', '')}")
    status = image.get("status")
    if status in ("completed", "failed", "cancelled") and image.get("ended_at"):
        summary = image.get("summary")
        return EntrySentence(
            f"The run is {status}{f': {summary}' if summary else ''}", "good" if status == "completed" else "bad"
        )
    return EntrySentence(f"The run was changed: {entry['body']}" if entry["body"] else "The run was changed", is_bookkeeping=True)


def _describe_task(entry: dict[str, Any], image: Image) -> EntrySentence:
    title, note = f"“{image.get('title', entry['record_id'])}”", entry["body"] or ""
    if entry["subtype"] == "added":
        return EntrySentence(f"Planned: {title}")
    if note.startswith("claimed by "):
        number = image.get("attempts", 1)
        return EntrySentence(f"{image.get('worker')} took on {title}{f', attempt {number}' if number > 1 else ''}")
    if image.get("state") == "done" and image.get("outcome") == "done":
        return EntrySentence(f"Done: {title}{f': {note}' if note != 'done' else ''}", "good")
    if note.startswith(_TASK_NOTES):
        is_bad = note.startswith(("failed", "blocked", "abandoned", "lease expired"))
        return EntrySentence(f"{title} {note}", "bad" if is_bad else "")
    return EntrySentence(f"{title}: {note or 'kept on'}", is_bookkeeping=True)


def _describe_charge(entry: dict[str, Any], image: Image) -> EntrySentence:
    cost, tokens = image.get("cost_microdollars"), sum(image.get(name) or 0 for name in _TOKENS)
    amount = "an unknown amount" if cost is None else dollars(cost)
    who = image.get("agent") or entry["agent"]
    late = ", after the task was lost" if image.get("is_late") else ", past its budget" if image.get("overdrew") else ""
    spent = f"{who} spent {amount}" if who else f"Spent {amount}"
    return EntrySentence(f"{spent} on {image.get('model')} ({counted(tokens, 'token')}){late}", "bad" if late else "money")


def _describe_approval(entry: dict[str, Any], image: Image) -> EntrySentence:
    question, state = image.get("question") or image.get("source") or entry["record_id"], image.get("state")
    if entry["body"] == "used":
        return EntrySentence(f"The approval was used: {question}", is_bookkeeping=True)
    if entry["subtype"] == "added" and state == "open":
        return EntrySentence(f"{image.get('asked_by') or 'Somebody'} asked: {question}", "bad")
    who = image.get("decided_by") or "Nobody"
    why = f" ({image['rationale']})" if image.get("rationale") else ""
    return EntrySentence(f"{who} answered {state}: {question}{why}", "good" if state == "granted" else "bad")


def _describe_criterion(entry: dict[str, Any], image: Image) -> EntrySentence:
    text, status = image.get("criterion", entry["record_id"]), image.get("status", "pending")
    if entry["subtype"] == "added":
        return EntrySentence(f"To be shown: {text}")
    proof = f" ({image.get('evidence') or image.get('actual')})" if image.get("evidence") or image.get("actual") else ""
    if image.get("is_stale"):
        return EntrySentence(f"No longer proven: {text}: {image.get('stale_reason')}", "bad")
    return EntrySentence(
        f"Criterion {status}: {text}{proof}", "good" if status == "met" else "bad" if status != "pending" else ""
    )


def _describe_record(entry: dict[str, Any], _image: Image) -> EntrySentence:
    what = f"{entry['record_table']} {entry['record_id']} {entry['subtype']}"
    return EntrySentence(f"{what}: {_cut(entry['body'])}" if entry["body"] else what, is_bookkeeping=True)


_RECORDS: dict[str, Callable[[dict[str, Any], Image], EntrySentence]] = {
    "runs": _describe_run,
    "tasks": _describe_task,
    "charges": _describe_charge,
    "approvals": _describe_approval,
    "criteria": _describe_criterion,
    "artifacts": lambda entry, image: EntrySentence(
        f"Made {image.get('kind', 'a file')}: {image.get('path') or entry['record_id']}"
    ),
    "task_comments": lambda entry, image: EntrySentence(
        f"{image.get('author') or 'Somebody'} remarked on a task: {image.get('body', entry['body'])}"
    ),
    "phases": lambda entry, image: EntrySentence(f"Phase “{image.get('name', '')}” is {image.get('status', entry['subtype'])}"),
}
