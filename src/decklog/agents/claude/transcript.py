"""Reader of Claude Code's transcripts: events that hooks missed, and sessions from before hooks were installed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from decklog.agents.claude.payloads import TOTALS, output_of
from decklog.agents.events import (
    IMPORTED,
    INTERRUPTED,
    Begun,
    Called,
    CallOutcome,
    Compacted,
    Prompted,
    Rested,
    Returned,
    Said,
    SessionEvent,
    Thought,
)
from decklog.agents.reading import Reading, Sums, add, answered
from decklog.agents.texts import as_text, as_time, whole

Line = dict[str, Any]

# Model name of an answer that the program wrote instead of a model.
_SYNTHETIC = "<synthetic>"
# Names of the four token kinds in answers, in our order.
_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_NOTHING = (0, 0, 0, 0)
# Skip lines of other kinds, which are most of a transcript's bytes.
has_events = re.compile(rb'"type"\s*:\s*"(?:user|assistant|system|cost-state)"').search
# Markers of the program's own commands typed by a person, and of their output.
_OWN_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_OWN_OUTPUT = "<local-command-stdout>"
# Texts that the program writes when a person stops it: a message, and results of the open call.
_STOPPED = "[Request interrupted by user"
_NOT_FINISHED = (_STOPPED, "The user doesn't want to take this action right now")
_NOT_ALLOWED = "The user doesn't want to proceed with this tool use"


@dataclass
class _Answer:
    """Lines of one answer: each has the usage so far, and the last line the total."""

    answer_id: str
    model: str
    place: dict[str, Any]
    tokens: list[int] = field(default_factory=lambda: [0, 0, 0, 0])

    def take(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self.tokens = [max(known, whole(usage.get(name))) for known, name in zip(self.tokens, _USAGE, strict=True)]


class Transcript:
    """Reader of the lines of one file in order."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._answer: _Answer | None = None
        kept = reading.kept
        self._has_begun = reading.is_backstop or bool(kept)
        self.answers: Sums = kept.get("answers") or {}
        # The last answer read: later lines of it may only increase its counts.
        self._last: tuple[str, list[int]] = (kept.get("last_answer") or "", kept.get("last_tokens") or [0, 0, 0, 0])
        # Texts of one answer are identified by their number in it; an editor connection has no other id for them.
        self._said: tuple[str, int] = (kept.get("said_in") or "", kept.get("said") or 0)
        self._thoughts: tuple[str, int] = (kept.get("thoughts_in") or "", kept.get("thoughts") or 0)
        # The session total at the end of the last process, and the usage known from transcripts by then.
        self._total: Sums | None = kept.get("total")
        self._known: Sums = kept.get("known") or {}
        # A fork starts with the lines and totals of its original session.
        # Lines before the fork are skipped.
        self._forked_at: float | None = reading.forked_at or kept.get("forked_at")
        # After the first line of the fork all lines belong to it, even if the clock was set back.
        self._is_own: bool = self._forked_at is None or bool(kept.get("is_own"))

    def kept(self) -> dict[str, Any]:
        """Return the state that is needed to read on from here."""
        return {
            "answers": self.answers,
            "last_answer": self._last[0],
            "last_tokens": self._last[1],
            "said_in": self._said[0],
            "said": self._said[1],
            "thoughts_in": self._thoughts[0],
            "thoughts": self._thoughts[1],
            "total": self._total,
            "known": self._known,
            "forked_at": self._forked_at,
            "is_own": self._is_own,
        }

    def events(self, line: Line) -> Iterator[SessionEvent]:
        """Yield the events of a line; unknown kinds of lines have none."""
        kind, session = line.get("type"), self._reading.session_id or line.get("sessionId")
        if kind not in ("user", "assistant", "system", "cost-state") or not isinstance(session, str):
            return
        at = as_time(line.get("timestamp"))
        if not self._is_own and self._forked_at is not None and at is not None:
            if at.timestamp() < self._forked_at:
                return
            self._is_own = True
        agent = self._reading.agent_id or (line.get("agentId") if line.get("isSidechain") else None)
        place: dict[str, Any] = {"session_id": session, "agent_id": agent, "at": at}
        if not self._has_begun:
            yield self._begun(line, place)
        if kind == "assistant":
            yield from self._assistant(line, place)
            return
        if self._answer is not None:
            yield from self.rest()
        if kind == "user":
            yield from self._user(line, place)
        elif kind == "cost-state":
            yield from self._settle(line, place)
        elif line.get("subtype") == "compact_boundary" and not self._reading.is_backstop:
            facts = line.get("compactMetadata")
            yield Compacted(**place, trigger=str(facts.get("trigger") if isinstance(facts, dict) else "auto"), is_read=True)

    def rest(self) -> Iterator[SessionEvent]:
        """Yield the usage of the pending answer. Call this at the end of the file and of a turn."""
        answer, self._answer = self._answer, None
        if answer is None or not any(answer.tokens):
            return
        counted = self._last[1] if self._last[0] == answer.answer_id else [0, 0, 0, 0]
        add(self.answers, answer.model, [new - old for new, old in zip(answer.tokens, counted, strict=True)])
        self._last = (answer.answer_id, answer.tokens)
        yield from answered(answer.place, answer.answer_id, answer.model, answer.tokens)

    def _settle(self, line: Line, place: dict[str, Any]) -> Iterator[SessionEvent]:
        """Yield the usage that the session total has beyond the transcripts' answers.

        The total is written when a process ends. It is the only source for the cost of compactions.
        """
        usage = line.get("modelUsage")
        if not isinstance(usage, dict) or self._reading.agent_id is not None:
            return
        known = {model: list(tokens) for model, tokens in self.answers.items()}
        for told in self._reading.below() if self._reading.below else ():
            if isinstance(told, SessionEvent):
                yield told
            else:
                for model, tokens in told.items():
                    add(known, model, tokens)
        total = {model: [whole(used.get(name)) for name in TOTALS] for model, used in usage.items() if isinstance(used, dict)}
        before, known_before = self._total, self._known
        self._total, self._known = total, known
        if before is None and (self._forked_at is not None or self._reading.is_fork):
            return
        for model, tokens in total.items():
            taken = _difference(tokens, (before or {}).get(model, _NOTHING))
            besides = _difference(taken, _difference(known.get(model, _NOTHING), known_before.get(model, _NOTHING)))
            if any(count > 0 for count in besides):
                name = f"{place['session_id']}:besides:{'-'.join(map(str, tokens))}"
                yield from answered(place, name, model, [max(0, count) for count in besides])

    def _begun(self, line: Line, place: dict[str, Any]) -> Begun:
        self._has_begun = True
        return Begun(**place, source=IMPORTED, cwd=line.get("cwd"), branch=line.get("gitBranch"), version=line.get("version"))

    def _assistant(self, line: Line, place: dict[str, Any]) -> Iterator[SessionEvent]:
        message = line.get("message")
        if not isinstance(message, dict) or message.get("model") == _SYNTHETIC or line.get("isApiErrorMessage"):
            if isinstance(message, dict) and line.get("isApiErrorMessage") and not self._reading.is_backstop:
                text = "\n".join(as_text(block.get("text")) for block in _blocks(message))
                yield Rested(**place, error=text or "API error", is_read=True)
            return
        answer_id = f"{message.get('id')}:{line.get('requestId') or ''}"
        if self._answer is None or self._answer.answer_id != answer_id:
            yield from self.rest()
            self._answer = _Answer(answer_id, str(message.get("model") or "unknown"), place)
        self._answer.take(message.get("usage"))
        for block in _blocks(message):
            kind = block.get("type")
            if kind == "tool_use" and isinstance(block.get("id"), str):
                arguments = block.get("input")
                yield Called(
                    **place,
                    call_id=str(block["id"]),
                    tool=str(block.get("name") or "tool"),
                    arguments=arguments if isinstance(arguments, dict) else {"input": arguments},
                )
            elif kind == "text" and (text := as_text(block.get("text"))).strip():
                self._said = _counted(self._said, message, line)
                yield Said(**place, text=text, message_id=_numbered(self._said))
            elif kind == "thinking" and (text := as_text(block.get("thinking"))).strip():
                self._thoughts = _counted(self._thoughts, message, line)
                yield Thought(**place, text=text, message_id=_numbered(self._thoughts))

    def _user(self, line: Line, place: dict[str, Any]) -> Iterator[SessionEvent]:
        message = line.get("message")
        if not isinstance(message, dict) or line.get("isMeta") or line.get("isCompactSummary"):
            return
        texts = []
        for block in _blocks(message):
            kind = block.get("type")
            if kind == "tool_result" and isinstance(block.get("tool_use_id"), str):
                yield _result(line, block, place)
            elif kind == "text":
                texts.append(as_text(block.get("text")))
        if not texts:
            return
        text = "\n".join(texts).strip()
        if text.startswith(_STOPPED):
            if not self._reading.is_backstop:
                yield Rested(**place, error=INTERRUPTED, is_read=True)
            return
        if own := _OWN_COMMAND.match(text):
            text = own[1]
        if text and not text.startswith(_OWN_OUTPUT):
            by = "program" if line.get("promptSource") == "system" or line.get("isSidechain") else "person"
            # Hooks identify a prompt by promptId; older versions only have the uuid of the line.
            prompt_id = line.get("promptId") or line.get("uuid")
            yield Prompted(**place, prompt_id=prompt_id and str(prompt_id), text=text, by=by)


def _counted(last: tuple[str, int], message: Line, line: Line) -> tuple[str, int]:
    """Return the answer id of a text, and the number of the text in that answer."""
    name = str(message.get("id") or line.get("uuid") or "")
    return name, last[1] + 1 if last[0] == name else 1


def _numbered(part: tuple[str, int]) -> str:
    name, count = part
    return name if count == 1 else f"{name}:{count}"


def _difference(more: Sequence[int], less: Sequence[int]) -> list[int]:
    return [one - other for one, other in zip(more, less, strict=True)]


def _blocks(message: Line) -> list[Line]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _result(line: Line, block: Line, place: dict[str, Any]) -> Returned:
    result = line.get("toolUseResult")
    is_interrupted = isinstance(result, dict) and bool(result.get("interrupted"))
    told = as_text(block.get("content")) if block.get("is_error") else ""
    if line.get("toolDenialKind") or told.startswith(_NOT_ALLOWED):
        outcome = CallOutcome.DENIED
    elif is_interrupted or told.startswith(_NOT_FINISHED):
        outcome = CallOutcome.INTERRUPTED
    else:
        outcome = CallOutcome.FAILED if block.get("is_error") else CallOutcome.OK
    output = output_of(result) if isinstance(result, dict) and outcome is CallOutcome.OK else as_text(block.get("content"))
    original = _original(result) if isinstance(result, dict) else None
    return Returned(**place, call_id=str(block["tool_use_id"]), outcome=outcome, output=output, original=original)


def _original(result: Line) -> str | None:
    """Return what a file held before a tool changed it."""
    if result.get("type") == "create":
        return ""
    found = result.get("originalFile", result.get("originalFileContents"))
    return found if isinstance(found, str) else None
