"""Interactions, events, reasoning, tokens and skill outputs of a session."""

import json
from itertools import islice
from typing import Any

from decklog.importing.exports import columns_of
from decklog.journal.entry import IMPORT_KEY_PREFIX, IMPORT_SUBTYPES, Confidence, Entry, EntryKind, ReasoningPhase
from decklog.plugins.importers.bazinga.rows import stamp
from decklog.plugins.legacy.bazinga.base import (
    MANDATORY_PHASES,
    MOST_ROWS,
    BazingaBase,
    CallRefused,
    answers,
    check,
    check_group,
    filled,
    from_json_text,
    given,
    json_text,
    moment,
    one_of,
    reports,
    validate_scope_global_or_group,
)
from decklog.records.record import find_all
from decklog.stores.money.ledger import SpendBy
from decklog.stores.money.records import TOKENS

GROUPINGS = ("agent_type", "agent_id")


class BazingaLogs(BazingaBase):
    """Logs of agents: tokens, interactions, events, outputs of skills and reasoning."""

    # Tokens

    @answers
    def log_tokens(
        self, session_id: str, agent_type: str, tokens: int, agent_id: str | None = None, model: str | None = None
    ) -> None:
        """Record used tokens. They are spent already, so no budget refuses them, but budgets count them."""
        if type(tokens) is not int or tokens < 0:
            raise CallRefused(f"tokens must be an integer of 0 or more, got {tokens!r}")
        charge(self, session_id, filled("agent_type", agent_type), tokens, agent_id, model)

    @answers
    def get_token_summary(self, session_id: str, by: str = "agent_type") -> dict[str, int]:
        """Add tokens up by agent_type or agent_id, with a total.

        The name `total` is reserved: an agent of that name is listed as `agent:total`.
        """
        one_of("grouping", by, GROUPINGS)
        summed: Any = self.log.ledger.summary(by=SpendBy.AGENT if by == "agent_type" else SpendBy.AGENT_ID, run_id=session_id)
        sums = {_key(row["key"]): sum(int(row[name]) for name in TOKENS) for row in summed["rows"]}
        return dict(sorted(sums.items())) | {"total": sum(sums.values())}

    # Interactions

    # The number of the last logged entry in its session.
    _last = 0

    @reports
    def log_interaction(
        self, session_id: str, agent_type: str, content: str, iteration: int | None = None, agent_id: str | None = None
    ) -> dict[str, Any]:
        """Log an agent's message."""
        filled("session_id", session_id)
        filled("agent_type", agent_type)
        filled("content", content)
        entry = self.log.journal.append(session_id, content, agent=agent_type, agent_id=agent_id or None, iteration=iteration)
        self._last = entry.seq
        return {
            "success": True,
            "log_id": self.number(session_id, entry.seq),
            "session_id": session_id,
            "agent_type": agent_type,
            "content_length": len(content),
            "timestamp": stamp(entry.at),
            "iteration": iteration,
            "agent_id": entry.agent_id,
        }

    @answers
    def get_logs(
        self,
        session_id: str,
        limit: int = 50,
        offset: int = 0,
        agent_type: str | None = None,
        since: str | None = None,
    ) -> list[dict[str, Any]]:
        """List log rows, newest first."""
        begin = None if since is None else moment(since)
        return [log_row(self, entry) for entry in newest(self, session_id, KINDS, limit, offset, agent=agent_type, since=begin)]

    @answers
    def stream_logs(self, session_id: str, limit: int = 50, offset: int = 0) -> str:
        """Write the newest entries as Markdown, oldest first."""
        entries = newest(self, session_id, KINDS, limit, offset)
        return "\n".join(_log_section(entry) for entry in reversed(entries)) if entries else "No logs found."

    # Events

    @reports
    def save_event(
        self,
        session_id: str,
        event_subtype: str,
        payload: str | dict[str, Any] | list[Any],
        idempotency_key: str | None = None,
        group_id: str = "global",
    ) -> dict[str, Any]:
        """Save an event; for a known key of the same subtype and group, return the first event."""
        filled("event_subtype", event_subtype)
        check(validate_scope_global_or_group(group_id))
        entry = self.log.journal.append(
            session_id,
            f"Event: {event_subtype}",
            kind=EntryKind.EVENT,
            subtype=event_subtype,
            agent="system",
            group_id=group_id,
            payload=payload_of(payload),
            key=idempotency_key or None,
        )
        number = self.number(entry.stream, entry.seq)
        saved = {"success": True, "event_id": number, "session_id": session_id, "event_subtype": event_subtype}
        if entry.already:
            return {**saved, "idempotent": True, "message": "An event with this key is saved already; it was kept."}
        return {**saved, "redacted": entry.redacted}

    @answers
    def get_events(
        self, session_id: str, event_subtype: str | None = None, limit: int = 50, group_id: str | None = None
    ) -> list[dict[str, Any]]:
        """List events, newest first."""
        if limit < 1:
            raise CallRefused(f"limit must be 1 or more, got {limit}")
        check_group(group_id)
        wanted: dict[str, Any] = {"kind": EntryKind.EVENT, "subtype": event_subtype, "group_id": group_id}
        return [event_row(self, entry) for entry in newest(self, session_id, (EntryKind.EVENT,), limit, **wanted)]

    # Outputs of skills, including earlier ones

    @answers
    def save_skill_output(
        self, session_id: str, skill_name: str, output_data: Any, agent_type: str | None = None, group_id: str | None = None
    ) -> int:
        """Save a skill's output; return its iteration."""
        filled("skill_name", skill_name)
        group_id = given(group_id)
        check_group(group_id)
        saved = self.log.outputs.save(session_id, skill_name, output_data, agent=given(agent_type), group_id=group_id)
        return saved.iteration

    @answers
    def get_skill_output(
        self, session_id: str, skill_name: str, agent_type: str | None = None, group_id: str | None = None
    ) -> Any:
        """Return the newest output of a skill; None when there is none."""
        found = self.log.outputs.latest(session_id, skill_name, agent=given(agent_type), group_id=given(group_id))
        return None if found is None else found.document

    @answers
    def get_skill_output_all(
        self, session_id: str, skill_name: str | None = None, agent_type: str | None = None, group_id: str | None = None
    ) -> list[dict[str, Any]]:
        """List the outputs of a skill, or of all skills, newest first."""
        wanted: dict[str, Any] = {"skill": skill_name, "agent": given(agent_type), "group_id": given(group_id)}
        found = find_all(self.log.outputs.find, session_id, **wanted)
        names = "iteration agent_type=agent group_id timestamp=saved_at output_data=document"
        names = f"skill_name=skill {names}" if skill_name is None else names
        return [columns_of(output, names, stamp) for output in found]

    @answers
    def check_skill_evidence(
        self, session_id: str, mandatory_skills: list[str], agent_type: str | None = None, since_minutes: int = 30
    ) -> dict[str, Any]:
        """Return which of the skills gave an output in the last minutes."""
        if type(since_minutes) is not int or since_minutes < 1:
            raise CallRefused(f"since_minutes must be a positive integer, got {since_minutes!r}")
        if not self.is_session(session_id):
            names = [name.strip() for name in mandatory_skills if name.strip()]
            missing = {"complete": not names, "missing": names, "found": [], "mandatory": names}
            return {**missing, "recency_window_minutes": since_minutes}
        agent = given(agent_type)
        return dict(self.log.outputs.check_evidence(session_id, mandatory_skills, agent=agent, since_minutes=since_minutes))

    # Reasoning

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
    ) -> dict[str, Any]:
        """Save an agent's reasoning, redacted, and count its tokens."""
        check(validate_scope_global_or_group(group_id))
        one_of("reasoning_phase", reasoning_phase, ReasoningPhase)
        one_of("confidence", confidence, (None, *Confidence))
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
    ) -> list[dict[str, Any]] | str:
        """List reasoning, newest first, or summarize it for a prompt."""
        check_group(group_id)
        if phase is not None:
            one_of("phase", phase, ReasoningPhase)
        one_of("format", output_format, FORMATS)
        entries = self._reasoned(session_id, limit=limit, group_id=group_id, agent=agent_type, phase=phase)
        return [reasoning_row(self, entry) for entry in entries] if output_format == "json" else summary(entries)

    @answers
    def reasoning_timeline(self, session_id: str, group_id: str | None = None, output_format: str = "json") -> str:
        """Format all reasoning of a session, oldest first, as JSON or as Markdown."""
        check_group(group_id)
        one_of("format", output_format, TIMELINE_FORMATS)
        entries = self._reasoned(session_id, group_id=group_id, oldest_first=True)
        if output_format == "markdown":
            return timeline(session_id, entries)
        return json.dumps([_timeline_row(self, entry) for entry in entries], indent=2)

    @answers
    def check_mandatory_phases(self, session_id: str, group_id: str, agent_type: str) -> dict[str, Any]:
        """Return which mandatory phases an agent documented for a group."""
        check(validate_scope_global_or_group(group_id))
        wanted: dict[str, Any] = {"kind": EntryKind.REASONING, "group_id": group_id, "agent": agent_type, "limit": 1}
        find = self.log.journal.find
        seen = self.log.db.read(
            lambda: [phase for phase in sorted(ReasoningPhase) if find(session_id, phase=ReasoningPhase(phase), **wanted)]
        )
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

    def _reasoned(self, session_id: str, *, limit: int | None = None, **filters: Any) -> list[Entry]:
        """Load reasoning entries, page by page if there are more than fit into one."""
        if limit is not None and limit < 1:
            raise CallRefused(f"limit must be 1 or more, got {limit}")
        return list(islice(find_all(self.log.journal.find, session_id, kind=EntryKind.REASONING, **filters), limit))


def charge(
    db: BazingaBase,
    session_id: str,
    agent: str,
    tokens: int,
    agent_id: str | None = None,
    model: str | None = None,
    *,
    call_site: str | None = None,
) -> None:
    """Charge tokens of an unknown kind as input tokens."""
    db.expect_session(session_id)
    db.log.ledger.charge(
        given(model) or "unknown",
        input_tokens=tokens,
        run_id=session_id,
        agent=agent,
        agent_id=given(agent_id),
        call_site=call_site,
        enforce=False,
    )


def _key(name: str | None) -> str:
    if name is None:
        return "null"
    return f"agent:{name}" if name in ("total", "null") else name


KINDS = ("interaction", "reasoning", "event")


def newest(db: BazingaBase, session_id: str, kinds: tuple[str, ...], limit: int, offset: int = 0, **filters: Any) -> list[Entry]:
    """Load the newest entries of some kinds, without the marks of imports; a negative limit means all."""
    skipped = max(offset, 0)
    wanted = None if limit < 0 else skipped + limit
    found: list[Entry] = []
    after = None
    while wanted is None or len(found) < wanted:
        size = MOST_ROWS if wanted is None else min(MOST_ROWS, 2 * (wanted - len(found)) + 20)
        page = db.log.journal.find(session_id, limit=size, after=after, **filters)
        found += [entry for entry in page if entry.kind in kinds and entry.subtype not in IMPORT_SUBTYPES]
        after = page.next
        if after is None:
            break
    return found[skipped:wanted]


_LOG = (
    "session_id=stream timestamp=at iteration agent_type=agent agent_id content=body log_type=kind reasoning_phase=phase"
    " confidence_level=confidence"
)


def log_row(db: BazingaBase, entry: Entry) -> dict[str, Any]:
    """Return an entry as a row of bazinga's table of logs."""
    return {
        "id": db.number(entry.stream, entry.seq),
        **columns_of(entry, _LOG, stamp),
        "references_json": json_text(entry.refs),
        "redacted": int(db.is_redacted(entry)),
        "group_id": entry.group_id,
        "event_subtype": entry.subtype,
        "event_payload": json_text(entry.payload),
        "idempotency_key": None if (entry.key or "").startswith(IMPORT_KEY_PREFIX) else entry.key,
    }


def _log_section(entry: Entry) -> str:
    iteration = entry.iteration or "?"
    return f"## [{stamp(entry.at)}] Iteration {iteration} - {(entry.agent or '?').upper()}\n\n{entry.body or ''}\n\n---"


def payload_of(payload: str | dict[str, Any] | list[Any]) -> dict[str, Any] | list[Any]:
    """Parse a payload, which is a JSON object or list."""
    value = from_json_text("payload", payload) if isinstance(payload, str) else payload
    if not isinstance(value, (dict, list)):
        raise CallRefused("payload must be a JSON object or list")
    return value


def event_row(db: BazingaBase, entry: Entry) -> dict[str, Any]:
    row = columns_of(entry, "session_id=stream timestamp=at event_subtype=subtype event_payload=payload group_id", stamp)
    return {"id": db.number(entry.stream, entry.seq), **row}


SHOWN = 5
LONGEST = 300
_SUMMARY_HEAD = """## Previous Agent Reasoning

| Agent | Phase | Confidence | Key Points |
|---|---|---|---|"""
_SUMMARY_END = """
- Build on what was found out before; do not find it out again.
- Say so when you decide otherwise, and why.
- Take up the risks and blockers that are still open."""


def summary(entries: list[Entry]) -> str:
    """Format the newest entries, which come first, as a table for a prompt."""
    if not entries:
        return "No previous reasoning found for this context."
    lines = [_SUMMARY_HEAD, *(_summary_line(entry) for entry in entries[:SHOWN])]
    if len(entries) > SHOWN:
        lines += ["", f"*{len(entries) - SHOWN} more entries are in the log.*"]
    return "\n".join([*lines, _SUMMARY_END])


def _summary_line(entry: Entry) -> str:
    points = " ".join((entry.body or "").splitlines())
    if len(points) > LONGEST:
        points = points[: LONGEST - 3] + "..."
    points = points.replace("|", "\\|")
    return f"| {entry.agent} | {entry.phase} | {entry.confidence or '-'} | {points} |"


def timeline(session_id: str, entries: list[Entry]) -> str:
    """Format entries, oldest first, as Markdown with a heading for every change of group."""
    lines = [f"# Reasoning Timeline: {session_id}", ""]
    group: str | None = None
    for entry in entries:
        if entry.group_id != group:
            group = entry.group_id
            lines += [f"## Group: {group}", ""]
        lines += _timeline_entry(entry)
    if not entries:
        lines.append("No reasoning found.")
    return "\n".join(lines)


def _timeline_entry(entry: Entry) -> list[str]:
    name = f"{entry.agent} ({entry.agent_id})" if entry.agent_id else f"{entry.agent}"
    confidence = f" [{entry.confidence}]" if entry.confidence else ""
    lock = " \U0001f512" if entry.redacted else ""
    content = entry.body or ""
    if len(content) > LONGEST:
        content = content[:LONGEST] + "..."
    # A fence inside the text would end this code block.
    content = content.replace("```", "`\u200b`\u200b`")
    return [f"### [{stamp(entry.at)}] {name} - {entry.phase}{confidence}{lock}", "", "```text", content, "```", "", "---", ""]


FORMATS = ("json", "prompt-summary")
TIMELINE_FORMATS = ("json", "markdown")


def _references(references: object) -> list[str] | None:
    if references is None:
        return None
    if not isinstance(references, list) or not all(isinstance(item, str) for item in references):
        raise TypeError("references must be a list of strings")
    return references


def reasoning_row(db: BazingaBase, entry: Entry) -> dict[str, Any]:
    row = _timeline_row(db, entry)
    row["redacted"] = bool(row["redacted"])
    return {**row, "references": entry.refs or []}


def _timeline_row(db: BazingaBase, entry: Entry) -> dict[str, Any]:
    names = "session_id=stream group_id agent_type=agent agent_id iteration reasoning_phase=phase confidence_level=confidence"
    row = {"id": db.number(entry.stream, entry.seq), **columns_of(entry, f"{names} content=body")}
    return {**row, "redacted": int(db.is_redacted(entry)), "timestamp": stamp(entry.at)}
