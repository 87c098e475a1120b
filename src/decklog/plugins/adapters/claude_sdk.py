"""Record sessions of the Claude Agent SDK by hooks and messages, and judge tool calls by the policy before they run.

A session has the same ids as one of Claude Code, so it is recorded once even if the program also has our hooks.
"""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import claude_agent_sdk
from anyio import to_thread
from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, HookMatcher, ResultMessage, SystemMessage, TextBlock

from decklog.agents.closing import own_identity
from decklog.agents.events import CallOutcome
from decklog.agents.programs.base import PROGRAM_EXITED
from decklog.agents.programs.claude import RESULT
from decklog.aio.log import AsyncDecklog
from decklog.hooks.judging import block_reason
from decklog.log import Decklog
from decklog.plugins.adapters.loops.calls import surrounding_run
from decklog.plugins.adapters.recording import EventRecorder

PROGRAM = "claude"
_EVENTS = (
    *("PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SubagentStart", "SubagentStop"),
    *("PreCompact", "Notification"),
)
_COUNTED = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens", "costUSD")
_RESULT_FIELDS = (
    *("uuid", "subtype", "is_error", "result", "num_turns", "duration_ms", "total_cost_usd", "api_error_status"),
    *("terminal_reason", "errors"),
)


class _Session:
    """The state of an open session."""

    def __init__(self, session_id: str, facts: dict[str, Any]) -> None:
        self.id = session_id
        self.facts = facts
        self.transcript: str | None = None
        # The texts of this turn, for a session without a transcript.
        self.said: list[tuple[str | None, str]] = []
        self.totals: dict[str, dict[str, float]] = {}
        self.outcome: CallOutcome | None = None
        self.text: str | None = None

    @property
    def has_transcript(self) -> bool:
        return self.transcript is not None and os.path.exists(self.transcript)


class _Conversation:
    """The folder and the sessions of one set of options."""

    def __init__(self, options: ClaudeAgentOptions) -> None:
        self.root = os.path.abspath(options.cwd or os.getcwd())
        self.source = "resume" if options.resume or options.continue_conversation else "startup"
        self.sessions: dict[str, _Session] = {}


class DecklogSessions(EventRecorder):
    """Records sessions of the Claude Agent SDK: `async for message in DecklogSessions(log).query(prompt=…)`.

    With `guard`, calls that the policy denies do not run. All sessions belong to `run_id`, or to the run around it (`recorded`).
    Otherwise each session is a run. Recording problems are logged as warnings of `decklog.plugins.adapters` and never raised.
    Leaving the block ends the sessions that are still open.
    """

    def __init__(
        self, log: Decklog | AsyncDecklog, *, guard: bool = True, run_id: str | None = None, task_id: str | None = None
    ) -> None:
        super().__init__(log, PROGRAM)
        self._guard = guard
        self._run_facts = {name: value for name, value in (("run", run_id), ("task", task_id)) if value}
        self._conversations: list[_Conversation] = []

    # For a program

    def options(self, options: ClaudeAgentOptions | None = None) -> ClaudeAgentOptions:
        """Return options with our hooks added, for a `ClaudeSDKClient`."""
        given = options or ClaudeAgentOptions()
        return self._add_hooks(given, self._open_conversation(given))

    async def query(self, *, prompt: Any, options: ClaudeAgentOptions | None = None, transport: Any = None) -> AsyncIterator[Any]:
        """Run the SDK's own `query`, and record it."""
        given = options or ClaudeAgentOptions()
        conversation = self._open_conversation(given)
        stream = claude_agent_sdk.query(prompt=prompt, options=self._add_hooks(given, conversation), transport=transport)
        problem: BaseException | None = None
        try:
            async for message in stream:
                self._record_message(conversation, message)
                yield message
        except BaseException as error:
            problem = error
            raise
        finally:
            # Close the stream first: the program writes its last lines before it exits.
            await stream.aclose()
            self._end(conversation, problem)

    async def messages(self, stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Record the messages of a `ClaudeSDKClient`, and yield them."""
        conversation = self._conversations[-1] if self._conversations else self._open_conversation(ClaudeAgentOptions())
        async for message in stream:
            self._record_message(conversation, message)
            yield message

    def close(self, problem: BaseException | None = None) -> None:
        """End open sessions, and import waiting events."""
        for conversation in list(self._conversations):
            self._end(conversation, problem)
        super().close()

    def __exit__(self, _: object, problem: BaseException | None, _trace: object) -> None:
        self.close(problem)

    # Hooks

    def _open_conversation(self, options: ClaudeAgentOptions) -> _Conversation:
        self._conversations.append(_Conversation(options))
        return self._conversations[-1]

    def _add_hooks(self, options: ClaudeAgentOptions, conversation: _Conversation) -> ClaudeAgentOptions:
        async def hook(values: Any, _tool_use_id: str | None, _context: Any) -> dict[str, Any]:
            return await self._handle_hook(conversation, values)

        known = options.hooks or {}
        hooks = {**known, **{event: [*known.get(event, ()), HookMatcher(hooks=[hook])] for event in _EVENTS}}
        return replace(options, hooks=hooks)

    async def _handle_hook(self, conversation: _Conversation, values: dict[str, Any]) -> dict[str, Any]:
        """Record an event; deny a call that the policy denies."""
        denied = await self._find_denial(conversation, values)
        try:
            session = self._session(conversation, values)
            facts = {**session.facts, "denied": denied} if denied else session.facts
            self.record(session.id, facts, dict(values))
        except Exception as problem:  # noqa: BLE001
            # A denied call is denied even if it can't be recorded.
            self.warn(problem)
        if denied is None:
            return {}
        decision = {"permissionDecision": "deny", "permissionDecisionReason": denied}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}

    async def _find_denial(self, conversation: _Conversation, values: dict[str, Any]) -> str | None:
        if not self._guard or values.get("hook_event_name") != "PreToolUse":
            return None
        try:
            found: str | None = await to_thread.run_sync(block_reason, values, conversation.root)
        except Exception as problem:  # noqa: BLE001
            # Block a call that can't be judged, as hooks do.
            self.warn(problem)
            return f"Decklog could not judge this call, so it is blocked: {problem}"
        return found

    def _session(self, conversation: _Conversation, values: dict[str, Any]) -> _Session:
        """Return the session of an event; record the start of a new one."""
        session_id = str(values.get("session_id") or "unread")
        session = conversation.sessions.get(session_id)
        if session is None:
            session = conversation.sessions[session_id] = _Session(session_id, self._run_facts or surrounding_run(self.log))
            begun = {"hook_event_name": "SessionStart", "source": conversation.source, "process": own_identity()}
            place = {name: values.get(name) for name in ("session_id", "transcript_path", "model")}
            self.record(session_id, session.facts, {**place, **begun, "cwd": values.get("cwd") or conversation.root})
        path = values.get("transcript_path")
        session.transcript = path if isinstance(path, str) and path else session.transcript
        return session

    # Messages

    def _record_message(self, conversation: _Conversation, message: Any) -> None:
        try:
            if isinstance(message, SystemMessage) and message.subtype == "init":
                self._session(conversation, message.data)
            elif isinstance(message, AssistantMessage) and message.session_id and message.parent_tool_use_id is None:
                session = self._session(conversation, {"session_id": message.session_id})
                texts = [block.text for block in message.content if isinstance(block, TextBlock) and block.text.strip()]
                session.said += [(message.message_id, text) for text in texts]
            elif isinstance(message, ResultMessage):
                self._result(self._session(conversation, {"session_id": message.session_id}), message)
        except Exception as problem:  # noqa: BLE001
            # The program must get the message in any case.
            self.warn(problem)

    def _result(self, session: _Session, message: ResultMessage) -> None:
        """Record the result of a turn; without a transcript, also its texts and costs."""
        is_cut = str(message.terminal_reason or "").startswith("aborted")
        session.outcome = CallOutcome.INTERRUPTED if is_cut else CallOutcome.FAILED if message.is_error else CallOutcome.OK
        session.text = message.result
        place = {"session_id": session.id, "hook_event_name": RESULT}
        values = {**place, **{name: getattr(message, name, None) for name in _RESULT_FIELDS}}
        spent, said = self._turn_usage(session, message.model_usage or {}), _number_texts(session.said)
        session.said = []
        if not session.has_transcript:
            values |= {"spent": spent, "said": said}
        for denial in message.permission_denials or ():
            if isinstance(denial, dict):
                self.record(session.id, session.facts, {**denial, **place, "hook_event_name": "PermissionDenied"})
        self.record(session.id, session.facts, values)

    def _turn_usage(self, session: _Session, usage: dict[str, Any]) -> dict[str, dict[str, float]]:
        """Return the usage of this turn by model. The program reports sums over all turns."""
        spent: dict[str, dict[str, float]] = {}
        for model, used in usage.items():
            before = session.totals.get(model, {})
            now = {name: used.get(name) or 0 for name in _COUNTED}
            session.totals[model] = now
            if any(more := {name: max(0, now[name] - before.get(name, 0)) for name in _COUNTED}.values()):
                spent[model] = dict(zip(_COUNTED, more, strict=True))
        return spent

    def _end(self, conversation: _Conversation, problem: BaseException | None) -> None:
        """Record the end of a conversation's sessions, and that their transcripts are complete."""
        if conversation in self._conversations:
            self._conversations.remove(conversation)
        for session in list(conversation.sessions.values()):
            outcome = _outcome(session, problem)
            place = {"session_id": session.id, "transcript_path": session.transcript, "cwd": conversation.root}
            end = {"reason": outcome.value, "outcome": outcome.value, "text": session.text}
            self.record(session.id, session.facts, {**place, **end, "hook_event_name": "SessionEnd"})
            self.record(session.id, session.facts, {**place, "hook_event_name": PROGRAM_EXITED})
        conversation.sessions.clear()


def _outcome(session: _Session, problem: BaseException | None) -> CallOutcome:
    """Return the outcome of a session: of its error, its cancellation or its last turn."""
    if isinstance(problem, Exception):
        return CallOutcome.FAILED
    if problem is not None and not (isinstance(problem, GeneratorExit) and session.outcome):
        return CallOutcome.INTERRUPTED
    return session.outcome or CallOutcome.INTERRUPTED


def _number_texts(said: list[tuple[str | None, str]]) -> list[tuple[str | None, str]]:
    """Return the texts with unique ids: transcripts number several texts of one message."""
    counts: dict[str | None, int] = {}
    found = []
    for name, text in said:
        counts[name] = counts.get(name, 0) + 1
        found.append((name if counts[name] == 1 or name is None else f"{name}:{counts[name]}", text))
    return found
