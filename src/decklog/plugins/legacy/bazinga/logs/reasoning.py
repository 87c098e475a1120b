"""Reasoning: what agents thought in which phase, written down without secrets."""

from typing import TYPE_CHECKING

from decklog.journal.entry import Confidence, Entry, EntryKind, ReasoningPhase
from decklog.plugins.legacy.bazinga.base import MOST_ROWS, CallRefused, Desk, answers, check, filled, one_of, reports, stamp
from decklog.plugins.legacy.bazinga.logs.tokens import charge
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply
from decklog.plugins.legacy.bazinga.rules import CONFIDENCES, MANDATORY_PHASES, PHASES, validate_scope_global_or_group

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues

FORMATS = ("json", "prompt-summary")
TIMELINE_FORMATS = ("json", "markdown")


class Reasoning(Desk):
    """Keeps reasoning entries and tells which mandatory phases are documented."""

    @reports
    def save_reasoning(
        self,
        session_id: str,
        group_id: str,
        agent_type: str,
        reasoning_phase: str,
        content: str,
        agent_id: str | None = None,
        iteration: int | None = None,
        confidence: str | None = None,
        references: list[str] | None = None,
        tokens: int | None = None,
    ) -> "dict[str, Any]":
        """Save what an agent thought, and count the tokens it took; secrets are taken out on the way."""
        check(validate_scope_global_or_group(group_id))
        one_of("reasoning_phase", reasoning_phase, PHASES)
        one_of("confidence", confidence, (None, *CONFIDENCES))
        filled("agent_type", agent_type)
        with self.log.transaction():
            entry = self.log.journal.append(
                filled("session_id", session_id),
                filled("content", content),
                kind=EntryKind.REASONING,
                agent=agent_type,
                agent_id=agent_id,
                group_id=group_id,
                iteration=iteration,
                phase=ReasoningPhase(reasoning_phase),
                confidence=None if confidence is None else Confidence(confidence),
                refs=_references(references),
            )
            if tokens is not None:
                charge(self, session_id, agent_type, tokens, agent_id, call_site="save-reasoning")
        return {
            "success": True,
            "log_id": self.number(entry.stream, entry.seq),
            "session_id": session_id,
            "group_id": group_id,
            "agent_type": agent_type,
            "reasoning_phase": reasoning_phase,
            "content_length": len(content),
            "timestamp": stamp(entry.at),
            "redacted": entry.redacted,
        }

    @answers
    def get_reasoning(
        self,
        session_id: str,
        group_id: str | None = None,
        agent_type: str | None = None,
        phase: str | None = None,
        limit: int = 50,
        output_format: str = "json",
    ) -> "list[dict[str, Any]] | str":
        """List reasoning, newest first, or write a summary of it for a prompt."""
        if group_id is not None:
            check(validate_scope_global_or_group(group_id))
        if phase is not None:
            one_of("phase", phase, PHASES)
        one_of("format", output_format, FORMATS)
        entries = self._reasoned(session_id, limit=limit, group_id=group_id, agent=agent_type, phase=phase)
        if output_format == "json":
            return [reasoning_row(self, entry) for entry in entries]
        from decklog.plugins.legacy.bazinga.logs.reasoning_text import summary

        return summary(entries)

    @answers
    def reasoning_timeline(self, session_id: str, group_id: str | None = None, output_format: str = "json") -> str:
        """Write all reasoning of a session, oldest first, as JSON or as Markdown."""
        if group_id is not None:
            check(validate_scope_global_or_group(group_id))
        one_of("format", output_format, TIMELINE_FORMATS)
        entries = self._reasoned(session_id, group_id=group_id, oldest_first=True)
        if output_format == "markdown":
            from decklog.plugins.legacy.bazinga.logs.reasoning_text import timeline

            return timeline(session_id, entries)
        import json

        return json.dumps([_timeline_row(self, entry) for entry in entries], indent=2)

    @answers
    def check_mandatory_phases(self, session_id: str, group_id: str, agent_type: str) -> "dict[str, Any]":
        """Return which mandatory phases an agent documented for a group."""
        check(validate_scope_global_or_group(group_id))
        seen = self.log.db.read(lambda: [phase for phase in sorted(PHASES) if self._has(session_id, group_id, agent_type, phase)])
        missing = [phase for phase in MANDATORY_PHASES if phase not in seen]
        return {
            "complete": not missing,
            "missing": missing,
            "documented": [phase for phase in MANDATORY_PHASES if phase in seen],
            "all_documented": seen,
            "session_id": session_id,
            "group_id": group_id,
            "agent_type": agent_type,
        }

    def _has(self, session_id: str, group_id: str, agent: str, phase: str) -> bool:
        found = self.log.journal.find(
            session_id,
            kind=EntryKind.REASONING,
            group_id=group_id,
            agent=agent,
            phase=ReasoningPhase(phase),
            limit=1,
        )
        return bool(found)

    def _reasoned(self, session_id: str, *, limit: int | None = None, **filters: "Any") -> list[Entry]:
        """Read reasoning entries, page by page where there are more than one page holds."""
        if limit is not None and limit < 1:
            raise CallRefused(f"limit must be 1 or more, got {limit}")
        found: list[Entry] = []
        after = None
        while limit is None or len(found) < limit:
            size = MOST_ROWS if limit is None else min(MOST_ROWS, limit - len(found))
            page = self.log.journal.find(session_id, kind=EntryKind.REASONING, limit=size, after=after, **filters)
            found += page
            after = page.next
            if after is None:
                break
        return found


def _references(references: object) -> list[str] | None:
    if references is None:
        return None
    if not isinstance(references, list) or not all(isinstance(item, str) for item in references):
        raise TypeError("references must be a list of strings")
    return references


def reasoning_row(desk: Desk, entry: Entry) -> "dict[str, Any]":
    row = _timeline_row(desk, entry)
    row["redacted"] = bool(row["redacted"])
    return {**row, "references": entry.refs or []}


def _timeline_row(desk: Desk, entry: Entry) -> "dict[str, Any]":
    return {
        "id": desk.number(entry.stream, entry.seq),
        "session_id": entry.stream,
        "group_id": entry.group_id,
        "agent_type": entry.agent,
        "agent_id": entry.agent_id,
        "iteration": entry.iteration,
        "reasoning_phase": entry.phase and str(entry.phase),
        "confidence_level": entry.confidence and str(entry.confidence),
        "content": entry.body,
        "redacted": int(desk.is_redacted(entry)),
        "timestamp": stamp(entry.at),
    }


# Commands

DESK = Reasoning


def save_reasoning(desk: Reasoning, given: "UsageValues") -> ProgramReply:
    content = given.file("content-file") if given.get("content") is None else given.get("content")
    saved = desk.save_reasoning(
        given["session"],
        given["group"],
        given["agent"],
        given["phase"],
        content or "",
        given.get("agent-id"),
        given.whole("iteration"),
        _confidence(given.get("confidence")),
        given.texts("references"),
        given.whole("tokens", low=0),
    )
    return ProgramReply(saved, said=f"Saved {given['phase']} reasoning of {given['agent']}")


def _confidence(text: str | None) -> str | None:
    """Read a confidence as a word, or as a percentage."""
    if text is None or not text.isascii() or not text.isdigit():
        return text
    percent = int(text)
    if percent > 100:
        raise CallRefused(f"confidence must be high, medium, low or a percentage, got {text}")
    return "high" if percent >= 80 else "medium" if percent >= 50 else "low"


def get_reasoning(desk: Reasoning, given: "UsageValues") -> ProgramReply:
    limit = given.whole("limit", low=1)
    found = desk.get_reasoning(
        given["session"],
        _either(given, "group", "group-id"),
        _either(given, "agent", "agent-type"),
        given.get("phase"),
        50 if limit is None else limit,
        given.text("format", "json"),
    )
    return ProgramReply(text=found) if isinstance(found, str) else ProgramReply(found)


def _either(given: "UsageValues", word: str, flag: str) -> str | None:
    return given.get(word) if given.get(word) is not None else given.get(flag)


def reasoning_timeline(desk: Reasoning, given: "UsageValues") -> ProgramReply:
    return ProgramReply(text=desk.reasoning_timeline(given["session"], given.get("group-id"), given.text("format", "json")))


def check_mandatory_phases(desk: Reasoning, given: "UsageValues") -> ProgramReply:
    found = desk.check_mandatory_phases(given["session"], given["group"], given["agent"])
    return ProgramReply(found, code=0 if found["complete"] else 1)
