"""Gemini CLI's chat files, line by line, as events. A message is written again whenever it has grown: the last one holds."""

from decklog.agents.events import IMPORTED, Answered, Begun, Called, Event, Outcome, Prompted, Returned, Said, Thought
from decklog.agents.reading import Reading, Sums, add
from decklog.agents.texts import as_text, as_time, text_or_none, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import Any

    Line = dict[str, Any]

# A message grows for as long as its tools run; after so many others it is over.
_MOST_HELD = 100
_DENIED = frozenset(["cancelled", "denied"])


class Chat:
    """Reads the lines of one chat in their order."""

    def __init__(self, reading: Reading) -> None:
        kept = reading.kept
        self._is_backstop = reading.is_backstop
        self._session_id: str | None = reading.session_id or kept.get("session")
        self._has_begun = bool(kept)
        self.answers: Sums = kept.get("answers") or {}
        self._held: dict[str, Line] = {}

    def kept(self) -> "dict[str, Any]":
        """Give what reading on from here needs to know."""
        return {"session": self._session_id, "answers": self.answers}

    def events(self, line: "Line") -> "Iterator[Event]":
        """Give what a line tells; kinds of lines that are not known tell nothing."""
        name = line.get("id")
        if isinstance(name, str) and line.get("type") in ("user", "gemini"):
            self._held[name] = line
            if len(self._held) > _MOST_HELD:
                yield from self._message(self._held.pop(next(iter(self._held))))
        elif isinstance(session := line.get("sessionId"), str):
            self._session_id = self._session_id or session
            yield from self._begun(line, as_time(line.get("startTime")))

    def rest(self) -> "Iterator[Event]":
        """Give the messages that could have grown."""
        held, self._held = self._held, {}
        for line in held.values():
            yield from self._message(line)

    def _begun(self, line: "Line", at: "datetime | None") -> "Iterator[Event]":
        if self._has_begun or self._is_backstop or self._session_id is None:
            return
        self._has_begun = True
        folders = line.get("directories")
        cwd = folders[0] if isinstance(folders, list) and folders else None
        yield Begun(session_id=self._session_id, at=at, source=IMPORTED, cwd=text_or_none(cwd))

    def _message(self, line: "Line") -> "Iterator[Event]":
        if self._session_id is None:
            return
        place: dict[str, Any] = {"session_id": self._session_id, "at": as_time(line.get("timestamp"))}
        name, text = str(line["id"]), as_text(line.get("content"))
        if line["type"] == "user":
            if text.strip():
                yield Prompted(**place, prompt_id=name, text=text)
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

    def _spent(self, line: "Line", place: "dict[str, Any]") -> "Iterator[Event]":
        """Tell what an answer took: what was given counts what the cache had, and thoughts are paid for as what was said."""
        tokens = line.get("tokens")
        if not isinstance(tokens, dict):
            return
        cached = whole(tokens.get("cached"))
        given = max(0, whole(tokens.get("input")) - cached) + whole(tokens.get("tool"))
        output = whole(tokens.get("output")) + whole(tokens.get("thoughts"))
        if not (given or cached or output):
            return
        model = str(line.get("model") or "gemini")
        add(self.answers, model, [given, cached, 0, output])
        yield Answered(
            **place,
            answer_id=str(line["id"]),
            model=model,
            input_tokens=given,
            cache_read_tokens=cached,
            output_tokens=output,
        )


def _thoughts(line: "Line") -> str:
    thoughts = line.get("thoughts")
    found = [each for each in thoughts if isinstance(each, dict)] if isinstance(thoughts, list) else []
    parts = (": ".join(filter(None, (as_text(each.get("subject")), as_text(each.get("description"))))) for each in found)
    return "\n".join(filter(None, parts))


def _used(call: "dict[str, Any]", place: "dict[str, Any]") -> "Iterator[Event]":
    """Tell of a tool's use, and of its end where that is there."""
    name, tool, arguments = str(call["id"]), str(call.get("name") or "tool"), call.get("args")
    at = as_time(call.get("timestamp")) or place["at"]
    given = arguments if isinstance(arguments, dict) else {"input": arguments}
    yield Called(**{**place, "at": at}, call_id=name, tool=_TOOLS.get(tool, tool), arguments=given)
    status = call.get("status")
    if status in ("success", "error", *_DENIED):
        outcome = Outcome.OK if status == "success" else Outcome.FAILED if status == "error" else Outcome.DENIED
        yield Returned(**{**place, "at": at}, call_id=name, tool=_TOOLS.get(tool, tool), outcome=outcome, output=_output(call))


# What others call Bash, under its name.
_TOOLS = {"run_shell_command": "Bash"}


def _output(call: "dict[str, Any]") -> str:
    """Give what a tool answered: what it answered the model, or else what was shown."""
    parts = call.get("result")
    responses = [each.get("functionResponse") for each in parts if isinstance(each, dict)] if isinstance(parts, list) else []
    answers = [each.get("response") for each in responses if isinstance(each, dict)]
    texts = [as_text(each.get("output") or each.get("error") or each) for each in answers if isinstance(each, dict)]
    return "\n".join(filter(None, texts)) or as_text(call.get("resultDisplay") or (parts if not answers else None))
