"""Reader of Gemini CLI's chat files. A message is written again whenever it grows; the last version counts."""

import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from decklog.agents.events import (
    IMPORTED,
    Begun,
    Called,
    CallOutcome,
    Prompted,
    Returned,
    Said,
    SessionEvent,
    Thought,
)
from decklog.agents.reading import Reading, Sums, add, answered
from decklog.agents.texts import as_text, as_time, text_or_none, whole

Line = dict[str, Any]

# A message grows while its tools run; after this number of later messages it is complete.
_MOST_HELD = 100
_DENIED = frozenset(["cancelled", "denied"])
# Prefix of the result that the model gets for a tool blocked by a hook.
_HELD = "Tool execution blocked: "
# Prefix of a message that the program sends to the model in the user's role.
_OWN = "System: Potential loop detected"
_LONGEST_PATH = 4096
# Markers around untrusted text, and labels of a command's output and its trailing lines.
_AROUND = ("<untrusted_context>\n", "\n</untrusted_context>")
_PRINTED, _NOTHING = "Output: ", "(empty)"
_BEHIND = frozenset(["Exit Code", "Signal", "Background PIDs", "Process Group PGID"])


class Chat:
    """Reader of the lines of one chat in order."""

    def __init__(self, reading: Reading) -> None:
        kept = reading.kept
        self._is_backstop = reading.is_backstop
        self._session_id: str | None = reading.session_id or kept.get("session")
        self._agent_id: str | None = reading.agent_id or kept.get("agent")
        self._path = reading.path
        self._has_begun = bool(kept)
        self.answers: Sums = kept.get("answers") or {}
        self._held: dict[str, Line] = {}

    def kept(self) -> dict[str, Any]:
        """Return the state that is needed to read on from here."""
        return {"session": self._session_id, "agent": self._agent_id, "answers": self.answers}

    def events(self, line: Line) -> Iterator[SessionEvent]:
        """Yield the events of a line; unknown kinds of lines have none."""
        name = line.get("id")
        if isinstance(name, str) and line.get("type") in ("user", "gemini"):
            self._held[name] = line
            if len(self._held) > _MOST_HELD:
                yield from self._message(self._held.pop(next(iter(self._held))))
        elif isinstance(session := line.get("sessionId"), str):
            if line.get("kind") == "subagent" and self._path:
                # The folder of a sub-agent's file has the session's name.
                self._session_id, self._agent_id = self._session_id or os.path.basename(os.path.dirname(self._path)), session
            self._session_id = self._session_id or session
            yield from self._begun(line, as_time(line.get("startTime")))

    def rest(self) -> Iterator[SessionEvent]:
        """Yield the messages that could still have grown."""
        held, self._held = self._held, {}
        for line in held.values():
            yield from self._message(line)

    def _begun(self, line: Line, at: datetime | None) -> Iterator[SessionEvent]:
        if self._has_begun or self._is_backstop or self._session_id is None:
            return
        self._has_begun = True
        folders = line.get("directories")
        cwd = folders[0] if isinstance(folders, list) and folders else None
        place: dict[str, Any] = {"session_id": self._session_id, "agent_id": self._agent_id, "at": at}
        yield Begun(**place, source=IMPORTED, cwd=text_or_none(cwd) or _project_of(self._path))

    def _message(self, line: Line) -> Iterator[SessionEvent]:
        if self._session_id is None:
            return
        at = as_time(line.get("timestamp"))
        place: dict[str, Any] = {"session_id": self._session_id, "agent_id": self._agent_id, "at": at}
        name, text = str(line["id"]), _texts_of(line.get("content"))
        if line["type"] == "user":
            if text.strip():
                by = "program" if self._agent_id or text.startswith(_OWN) else "person"
                yield Prompted(**place, prompt_id=name, text=text, by=by)
            return
        if thoughts := _thoughts(line):
            yield Thought(**place, text=thoughts, message_id=name)
        if text.strip():
            yield Said(**place, text=text, message_id=name)
        yield from self._spent(line, place)
        calls = line.get("toolCalls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                yield from _used(call, place)

    def _spent(self, line: Line, place: dict[str, Any]) -> Iterator[SessionEvent]:
        """Yield the usage of an answer. Input counts include cached tokens; thoughts are charged as output."""
        tokens = line.get("tokens")
        if not isinstance(tokens, dict):
            return
        cached = whole(tokens.get("cached"))
        given = max(0, whole(tokens.get("input")) - cached) + whole(tokens.get("tool"))
        output = whole(tokens.get("output")) + whole(tokens.get("thoughts"))
        if given or cached or output:
            model, spent = str(line.get("model") or "gemini"), [given, cached, 0, output]
            add(self.answers, model, spent)
            yield from answered(place, str(line["id"]), model, spent)


def _project_of(path: str | None) -> str | None:
    """Return the project folder of a chat, read from `.project_root` next to the chats folder."""
    if path is None:
        return None
    try:
        with open(os.path.join(os.path.dirname(os.path.dirname(path)), ".project_root"), encoding="utf-8") as file:
            return file.read(_LONGEST_PATH).strip() or None
    except (OSError, ValueError):
        return None


def _texts_of(content: Any) -> str:
    """Return the texts of a message. Tool results, which have the user's role, have no texts."""
    if not isinstance(content, list):
        return as_text(content)
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def _thoughts(line: Line) -> str:
    thoughts = line.get("thoughts")
    found = [each for each in thoughts if isinstance(each, dict)] if isinstance(thoughts, list) else []
    parts = (": ".join(filter(None, (as_text(each.get("subject")), as_text(each.get("description"))))) for each in found)
    return "\n".join(filter(None, parts))


def _used(call: dict[str, Any], place: dict[str, Any]) -> Iterator[SessionEvent]:
    """Yield a tool call, and its end if there is one."""
    name, tool, arguments = str(call["id"]), str(call.get("name") or "tool"), call.get("args")
    at = as_time(call.get("timestamp")) or place["at"]
    given = arguments if isinstance(arguments, dict) else {"input": arguments}
    yield Called(**{**place, "at": at}, call_id=name, tool=_TOOLS.get(tool, tool), arguments=given)
    status = call.get("status")
    if status in ("success", "error", *_DENIED):
        output, facts = _printed(_output(call)) if tool in _TOOLS else (_output(call), {})
        outcome = _outcome(str(status), output, facts)
        yield Returned(
            **{**place, "at": at}, call_id=name, tool=_TOOLS.get(tool, tool), outcome=outcome, output=output, facts=facts
        )


def _outcome(status: str, output: str, facts: dict[str, Any]) -> CallOutcome:
    if status in _DENIED or (status == "error" and output.startswith(_HELD)):
        return CallOutcome.DENIED
    # Gemini CLI reports a failed command as a success, because the command did run.
    return CallOutcome.FAILED if status == "error" or facts else CallOutcome.OK


def _printed(told: str) -> tuple[str, dict[str, Any]]:
    """Split a shell result into the command's output and the facts of its failure."""
    if not told.startswith(_PRINTED):
        return told, {}
    lines, behind = told.rsplit("\n", len(_BEHIND)), dict[str, str]()
    while len(lines) > 1 and (name := lines[-1].partition(": ")[0]) in _BEHIND and name not in behind:
        behind[name] = lines.pop().partition(": ")[2]
    output = "\n".join(lines).removeprefix(_PRINTED)
    code, signal = behind.get("Exit Code", ""), behind.get("Signal")
    facts = {"exit_code": int(code) if code.isdecimal() else None, "signal": signal}
    return "" if output == _NOTHING else output, {name: value for name, value in facts.items() if value is not None}


# Tool names, mapped to those of other programs.
_TOOLS = {"run_shell_command": "Bash"}


def _output(call: dict[str, Any]) -> str:
    """Return the output of a tool: its response to the model, or else the text that was shown."""
    parts = call.get("result")
    responses = [each.get("functionResponse") for each in parts if isinstance(each, dict)] if isinstance(parts, list) else []
    answers = [each.get("response") for each in responses if isinstance(each, dict)]
    told = (as_text(each.get("output") or each.get("error") or each) for each in answers if isinstance(each, dict))
    texts = [each.removeprefix(_AROUND[0]).removesuffix(_AROUND[1]) for each in told]
    return "\n".join(filter(None, texts)) or as_text(call.get("resultDisplay") or (parts if not answers else None))
