"""Transcripts as events: written by hand in the form that the program writes."""

from typing import Any

from decklog.agents.events import (
    CallOutcome,
    ConversationCompacted,
    MessageSent,
    PromptSubmitted,
    ReasoningShown,
    SessionEvent,
    SessionStarted,
    TokensUsed,
    ToolCalled,
    ToolReturned,
    TurnEnded,
)
from decklog.agents.programs.base import TranscriptInput
from decklog.agents.programs.claude import Transcript


def line(kind: str, **fields: Any) -> dict[str, Any]:
    base = {"sessionId": "s1", "timestamp": "2026-11-15T12:00:00.000Z", "cwd": "/repo", "isSidechain": False, "uuid": "u"}
    return {"type": kind, **base, **fields}


def said(*blocks: dict[str, Any], answer: str = "msg_1", **usage: int) -> dict[str, Any]:
    message = {"id": answer, "model": "m", "content": list(blocks), "usage": usage or {"input_tokens": 10, "output_tokens": 5}}
    return line("assistant", message=message, requestId="req_1", uuid=f"{answer}-{len(blocks)}")


def read_events(*lines: dict[str, Any], is_backstop: bool = True) -> list[SessionEvent]:
    reader = Transcript(TranscriptInput(is_backstop=is_backstop))
    return [event for each in lines for event in reader.events(each)] + list(reader.pending_events())


TEXT = {"type": "text", "text": "I look."}
USE = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}


def test_an_answer_of_several_lines_is_paid_for_once_with_what_it_had_at_the_end() -> None:
    events = read_events(said(TEXT, input_tokens=10, output_tokens=1), said(USE, input_tokens=10, output_tokens=30))
    answers = [event for event in events if isinstance(event, TokensUsed)]
    assert [(event.answer_id, event.input_tokens, event.output_tokens) for event in answers] == [("msg_1:req_1", 10, 30)]
    assert [type(event) for event in events] == [MessageSent, ToolCalled, TokensUsed]


def test_thoughts_are_read_each_with_its_number_in_the_answer() -> None:
    first, second, empty = ({"type": "thinking", "thinking": text} for text in ("The commas.", "Or the lexer?", ""))
    events = read_events(said(first), said(TEXT), said(second), said(empty))
    thoughts = [(event.message_id, event.text) for event in events if isinstance(event, ReasoningShown)]
    assert thoughts == [("msg_1", "The commas."), ("msg_1:2", "Or the lexer?")]


def test_all_four_kinds_of_tokens_are_read() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4}
    (answer,) = (event for event in read_events(said(TEXT, **usage)) if isinstance(event, TokensUsed))
    tokens = (answer.input_tokens, answer.output_tokens, answer.cache_read_tokens, answer.cache_create_tokens)
    assert tokens == (1, 2, 3, 4)


def test_an_answer_that_the_program_made_up_costs_nothing() -> None:
    made_up = {"id": "x", "model": "<synthetic>", "content": [TEXT], "usage": {"input_tokens": 0}}
    assert read_events(line("assistant", message=made_up)) == []
    assert not [event for event in read_events({**said(TEXT), "isApiErrorMessage": True}) if isinstance(event, TokensUsed)]


def test_an_api_error_ends_the_turn_with_its_text() -> None:
    *_, event = read_events({**said(TEXT), "isApiErrorMessage": True}, is_backstop=False)
    assert isinstance(event, TurnEnded)
    assert event.error == TEXT["text"]


def test_the_text_of_an_interruption_is_no_prompt() -> None:
    for text in ("[Request interrupted by user]", "[Request interrupted by user for tool use]"):
        stopped = line("user", message={"role": "user", "content": [{"type": "text", "text": text}]})
        assert read_events(stopped) == [], "hooks have told it"
        *_, event = read_events(stopped, is_backstop=False)
        assert isinstance(event, TurnEnded)
        assert event.error == "interrupted"


def test_a_call_that_a_person_stopped_is_interrupted_and_one_that_was_refused_is_denied() -> None:
    def outcome(text: str, *, is_error: bool = True) -> CallOutcome:
        block = {"type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": is_error}
        (event,) = read_events(line("user", message={"role": "user", "content": [block]}))
        assert isinstance(event, ToolReturned)
        return event.outcome

    assert outcome("The user doesn't want to take this action right now. STOP what you are doing") is CallOutcome.INTERRUPTED
    assert outcome("[Request interrupted by user for tool use]") is CallOutcome.INTERRUPTED
    assert outcome("The user doesn't want to proceed with this tool use. It was rejected") is CallOutcome.DENIED
    assert outcome("[Request interrupted by user]", is_error=False) is CallOutcome.OK, "a file may hold the same words"


def test_results_tell_how_a_call_ended() -> None:
    def result(**fields: Any) -> ToolReturned:
        block = {"type": "tool_result", "tool_use_id": "t1", "content": "out", "is_error": fields.pop("is_error", False)}
        (event,) = read_events(line("user", message={"role": "user", "content": [block]}, **fields))
        assert isinstance(event, ToolReturned)
        return event

    assert (result().outcome, result().output) == (CallOutcome.OK, "out")
    assert result(toolUseResult={"stdout": "a", "stderr": "b"}).output == "a\nb"
    assert result(is_error=True, toolUseResult="Error: Exit code 3").outcome is CallOutcome.FAILED
    assert result(is_error=True, toolDenialKind="hook").outcome is CallOutcome.DENIED
    assert result(toolUseResult={"stdout": "", "interrupted": True}).outcome is CallOutcome.INTERRUPTED


def test_prompts_have_the_id_that_hooks_know_them_by() -> None:
    prompt = line("user", message={"role": "user", "content": "go"}, promptId="p1")
    (event,) = read_events(prompt)
    assert isinstance(event, PromptSubmitted)
    assert (event.prompt_id, event.text, event.by) == ("p1", "go", "person")
    assert read_events({**prompt, "isMeta": True}) == []
    assert read_events({**prompt, "isCompactSummary": True}) == []


def test_only_an_import_tells_where_a_session_began_and_was_compacted() -> None:
    boundary = line("system", subtype="compact_boundary", compactMetadata={"trigger": "manual"})
    lines = [line("user", message={"content": "go"}, gitBranch="main"), boundary]
    assert [type(event) for event in read_events(*lines)] == [PromptSubmitted]
    assert [type(event) for event in read_events(*lines, is_backstop=False)] == [
        SessionStarted,
        PromptSubmitted,
        ConversationCompacted,
    ]


def test_lines_of_sub_agents_are_the_sub_agents() -> None:
    (event,) = read_events(line("user", message={"content": "look"}, isSidechain=True, agentId="a1"))
    assert event.agent_id == "a1"


def test_kinds_of_lines_that_nobody_knows_tell_nothing() -> None:
    for kind in ("queue-operation", "cost-state", "attachment", "file-history-snapshot", "new-kind"):
        assert read_events(line(kind, content="x")) == []
    for message in (None, 3, "x", {}, {"content": 3}, {"content": [3, None]}):
        assert read_events(line("user", message=message)) == []
        read_events(line("assistant", message=message))
