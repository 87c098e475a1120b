"""Claude Code's transcripts, line by line, as events: what hooks missed, and sessions from before there were hooks."""

from dataclasses import dataclass, field

from decklog.agents.claude.payloads import output_of
from decklog.agents.events import Answered, Begun, Called, Compacted, Event, Outcome, Prompted, Returned, Said
from decklog.agents.texts import as_text, as_time, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Line = dict[str, Any]

# An answer that the program wrote in the model's place, when there was none.
_SYNTHETIC = "<synthetic>"
_TOKENS = {
    "input_tokens": "input_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_create_tokens",
    "output_tokens": "output_tokens",
}


@dataclass
class _Answer:
    """The lines of one answer: each has its usage so far, and the last one all of it."""

    answer_id: str
    model: str
    place: "dict[str, Any]"
    tokens: "dict[str, Any]" = field(default_factory=dict)

    def take(self, usage: "Any") -> None:
        if isinstance(usage, dict):
            for theirs, ours in _TOKENS.items():
                self.tokens[ours] = max(self.tokens.get(ours, 0), whole(usage.get(theirs)))

    def event(self) -> Answered | None:
        if not any(self.tokens.values()):
            return None
        return Answered(**self.place, answer_id=self.answer_id, model=self.model, **self.tokens)


class Transcript:
    """Reads the lines of one file in their order.

    `is_backstop` leaves out what hooks tell without an id by which it could be known again: begins and compactions.
    """

    def __init__(self, *, agent_id: str | None = None, session_id: str | None = None, is_backstop: bool = False) -> None:
        self._agent_id = agent_id
        self._session_id = session_id
        self._is_backstop = is_backstop
        self._answer: _Answer | None = None
        self._has_begun = is_backstop

    def events(self, line: "Line") -> "Iterator[Event]":
        """Give what a line tells; kinds of lines that are not known tell nothing."""
        kind, session = line.get("type"), line.get("sessionId") if self._session_id is None else self._session_id
        if kind not in ("user", "assistant", "system") or not isinstance(session, str):
            return
        agent = self._agent_id or (line.get("agentId") if line.get("isSidechain") else None)
        place: dict[str, Any] = {"session_id": session, "agent_id": agent, "at": as_time(line.get("timestamp"))}
        if not self._has_begun:
            yield self._begun(line, place)
        if kind == "assistant":
            yield from self._assistant(line, place)
            return
        yield from self.rest()
        if kind == "user":
            yield from self._user(line, place)
        elif line.get("subtype") == "compact_boundary" and not self._is_backstop:
            facts = line.get("compactMetadata")
            yield Compacted(**place, trigger=str(facts.get("trigger") if isinstance(facts, dict) else "auto"))

    def rest(self) -> "Iterator[Event]":
        """Give the answer whose lines may be over: call it at the end, and when a turn is known to have ended."""
        answer, self._answer = self._answer, None
        if answer is not None and (event := answer.event()) is not None:
            yield event

    @property
    def is_in_answer(self) -> bool:
        """Say whether further lines may belong to the answer read last."""
        return self._answer is not None

    def _begun(self, line: "Line", place: "dict[str, Any]") -> Begun:
        self._has_begun = True
        return Begun(**place, source="import", cwd=line.get("cwd"), branch=line.get("gitBranch"), version=line.get("version"))

    def _assistant(self, line: "Line", place: "dict[str, Any]") -> "Iterator[Event]":
        message = line.get("message")
        if not isinstance(message, dict) or message.get("model") == _SYNTHETIC or line.get("isApiErrorMessage"):
            return
        answer_id = f"{message.get('id')}:{line.get('requestId') or ''}"
        if self._answer is None or self._answer.answer_id != answer_id:
            yield from self.rest()
            self._answer = _Answer(answer_id, str(message.get("model") or "unknown"), place)
        self._answer.take(message.get("usage"))
        for block in _blocks(message):
            if block.get("type") == "tool_use" and isinstance(block.get("id"), str):
                arguments = block.get("input")
                yield Called(
                    **place,
                    call_id=str(block["id"]),
                    tool=str(block.get("name") or "tool"),
                    arguments=arguments if isinstance(arguments, dict) else {"input": arguments},
                )
            elif block.get("type") == "text" and as_text(block.get("text")).strip():
                yield Said(**place, text=as_text(block["text"]), message_id=str(line.get("uuid") or answer_id))

    def _user(self, line: "Line", place: "dict[str, Any]") -> "Iterator[Event]":
        message = line.get("message")
        if not isinstance(message, dict) or line.get("isMeta") or line.get("isCompactSummary"):
            return
        texts = []
        for block in _blocks(message):
            if block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str):
                yield _result(line, block, place)
            elif block.get("type") == "text":
                texts.append(as_text(block.get("text")))
        if text := "\n".join(texts).strip():
            by = "program" if line.get("promptSource") == "system" or line.get("isSidechain") else "person"
            # Hooks know a prompt by this id; older programs have only the line's own.
            prompt_id = line.get("promptId") or line.get("uuid")
            yield Prompted(**place, prompt_id=prompt_id and str(prompt_id), text=text, by=by)


def _blocks(message: "Line") -> "list[Line]":
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _result(line: "Line", block: "Line", place: "dict[str, Any]") -> Returned:
    result = line.get("toolUseResult")
    is_interrupted = isinstance(result, dict) and bool(result.get("interrupted"))
    if line.get("toolDenialKind"):
        outcome = Outcome.DENIED
    elif is_interrupted:
        outcome = Outcome.INTERRUPTED
    else:
        outcome = Outcome.FAILED if block.get("is_error") else Outcome.OK
    output = output_of(result) if isinstance(result, dict) and outcome is Outcome.OK else as_text(block.get("content"))
    return Returned(**place, call_id=str(block["tool_use_id"]), outcome=outcome, output=output)
