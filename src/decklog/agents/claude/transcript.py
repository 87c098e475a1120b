"""Claude Code's transcripts, line by line, as events: what hooks missed, and sessions from before there were hooks."""

import re
from dataclasses import dataclass, field

from decklog.agents.claude.payloads import output_of
from decklog.agents.events import Answered, Begun, Called, Compacted, Event, Outcome, Prompted, Returned, Said
from decklog.agents.texts import as_text, as_time, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Line = dict[str, Any]

# An answer that the program wrote in the model's place, when there was none.
_SYNTHETIC = "<synthetic>"
# The four kinds of tokens, in the order of ours, by their names in an answer and in a session's totals.
_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_TOTALS = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")
_NOTHING = (0, 0, 0, 0)
# What a person typed that the program itself did, and what it printed then.
_OWN_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_OWN_OUTPUT = "<local-command-stdout>"


Sums = dict[str, list[int]]


@dataclass
class _Answer:
    """The lines of one answer: each has its usage so far, and the last one all of it."""

    answer_id: str
    model: str
    place: "dict[str, Any]"
    tokens: list[int] = field(default_factory=lambda: [0, 0, 0, 0])

    def take(self, usage: "Any") -> None:
        if isinstance(usage, dict):
            self.tokens = [max(known, whole(usage.get(name))) for known, name in zip(self.tokens, _USAGE, strict=True)]


@dataclass
class State:
    """What reading on from a place needs to know of what was read before it."""

    place: int = 0
    # What the answers of the file add up to, by model, and the answer that was read last.
    answers: Sums = field(default_factory=dict)
    last_answer: str = ""
    last_tokens: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    # What the program said at the end of a process that the whole session took, and what was known of it by then.
    total: Sums | None = None
    known: Sums = field(default_factory=dict)
    # A fork's totals go on from those of the session that it was made of, and its lines begin with that session's: what is older
    # than this moment is not its own.
    forked_at: float | None = None


class Transcript:
    """Reads the lines of one file in their order.

    `is_backstop` leaves out what hooks tell without an id by which it could be known again: begins and compactions.
    """

    def __init__(
        self,
        *,
        agent_id: str | None = None,
        session_id: str | None = None,
        is_backstop: bool = False,
        state: State | None = None,
    ) -> None:
        self._agent_id = agent_id
        self._session_id = session_id
        self._is_backstop = is_backstop
        self._answer: _Answer | None = None
        self.state = state or State()
        self._has_begun = is_backstop or self.state.place > 0

    def events(self, line: "Line") -> "Iterator[Event]":
        """Give what a line tells; kinds of lines that are not known tell nothing."""
        kind, session = line.get("type"), line.get("sessionId") if self._session_id is None else self._session_id
        if kind not in ("user", "assistant", "system") or not isinstance(session, str):
            return
        agent = self._agent_id or (line.get("agentId") if line.get("isSidechain") else None)
        at, forked_at = as_time(line.get("timestamp")), self.state.forked_at
        if forked_at is not None and at is not None and at.timestamp() < forked_at:
            return
        place: dict[str, Any] = {"session_id": session, "agent_id": agent, "at": at}
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
        if answer is None or not any(answer.tokens):
            return
        state = self.state
        counted = state.last_tokens if state.last_answer == answer.answer_id else [0, 0, 0, 0]
        _add(state.answers, answer.model, [new - old for new, old in zip(answer.tokens, counted, strict=True)])
        state.last_answer, state.last_tokens = answer.answer_id, answer.tokens
        yield _answered(answer.place, answer.answer_id, answer.model, answer.tokens)

    def settle(self, line: "Line", others: Sums) -> "Iterator[Event]":
        """Give what a session took besides the answers that its transcripts have, by the totals it ends a process with.

        `others` is what the answers of its sub-agents add up to. Compactions are paid for in this way only.
        """
        yield from self.rest()
        session, usage = line.get("sessionId") if self._session_id is None else self._session_id, line.get("modelUsage")
        if line.get("type") != "cost-state" or not isinstance(usage, dict) or not isinstance(session, str):
            return
        total = {model: [whole(used.get(name)) for name in _TOTALS] for model, used in usage.items() if isinstance(used, dict)}
        known = {model: list(tokens) for model, tokens in self.state.answers.items()}
        for model, tokens in others.items():
            _add(known, model, tokens)
        before, known_before, self.state.total, self.state.known = self.state.total, self.state.known, total, known
        if before is None and self.state.forked_at is not None:
            return
        for model, tokens in total.items():
            taken = [now - then for now, then in zip(tokens, (before or {}).get(model, _NOTHING), strict=True)]
            told = [now - then for now, then in zip(known.get(model, _NOTHING), known_before.get(model, _NOTHING), strict=True)]
            rest = [max(0, all_of_it - part) for all_of_it, part in zip(taken, told, strict=True)]
            if any(rest):
                name = f"{session}:besides:{'-'.join(map(str, tokens))}"
                yield _answered({"session_id": session}, name, model, rest)

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
        text = "\n".join(texts).strip()
        if own := _OWN_COMMAND.match(text):
            text = own[1]
        if text and not text.startswith(_OWN_OUTPUT):
            by = "program" if line.get("promptSource") == "system" or line.get("isSidechain") else "person"
            # Hooks know a prompt by this id; older programs have only the line's own.
            prompt_id = line.get("promptId") or line.get("uuid")
            yield Prompted(**place, prompt_id=prompt_id and str(prompt_id), text=text, by=by)


def _add(sums: Sums, model: str, tokens: "Sequence[int]") -> None:
    sums[model] = [known + new for known, new in zip(sums.get(model, _NOTHING), tokens, strict=True)]


def _answered(place: "dict[str, Any]", answer_id: str, model: str, tokens: "Sequence[int]") -> Answered:
    given, read, created, output = tokens
    return Answered(
        **place,
        answer_id=answer_id,
        model=model,
        input_tokens=given,
        cache_read_tokens=read,
        cache_create_tokens=created,
        output_tokens=output,
    )


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
