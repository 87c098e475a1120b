"""Logs: a session's interactions, reasoning and events, which are entries of its run."""

from typing import TYPE_CHECKING

from decklog.journal.entry import BOOKKEEPING, IMPORT_KEY
from decklog.plugins.legacy.bazinga.base import MOST_ROWS, Desk, answers, filled, json_text, moment, reports, stamp
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply

if TYPE_CHECKING:
    from typing import Any

    from decklog.journal.entry import Entry
    from decklog.plugins.legacy.bazinga.program.usage import UsageValues

# Tool calls and changes of records are entries too, and bazinga knows neither.
KINDS = ("interaction", "reasoning", "event")


class Logs(Desk):
    """Writes what agents said, and reads it back in the order in which it happened."""

    # The number in its session of what was logged last.
    _last = 0

    @reports
    def log_interaction(
        self, session_id: str, agent_type: str, content: str, iteration: int | None = None, agent_id: str | None = None
    ) -> "dict[str, Any]":
        """Log what an agent said."""
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
    ) -> "list[dict[str, Any]]":
        """List log rows, newest first."""
        return [log_row(self, entry) for entry in self._newest(session_id, limit, offset, agent_type, since)]

    @answers
    def stream_logs(self, session_id: str, limit: int = 50, offset: int = 0) -> str:
        """Write the newest entries as Markdown, oldest first."""
        entries = self._newest(session_id, limit, offset)
        return "\n".join(_section(entry) for entry in reversed(entries)) if entries else "No logs found."

    def _newest(
        self, session_id: str, limit: int, offset: int = 0, agent: str | None = None, since: str | None = None
    ) -> "list[Entry]":
        begin = None if since is None else moment(since)
        return newest(self, session_id, KINDS, limit, offset, agent=agent, since=begin)


def newest(desk: Desk, session_id: str, kinds: tuple[str, ...], limit: int, offset: int = 0, **filters: "Any") -> "list[Entry]":
    """Read the newest entries of some kinds, without what an import noted for itself; a negative limit means all."""
    skipped = max(offset, 0)
    wanted = None if limit < 0 else skipped + limit
    found: list[Entry] = []
    after = None
    while wanted is None or len(found) < wanted:
        size = MOST_ROWS if wanted is None else min(MOST_ROWS, 2 * (wanted - len(found)) + 20)
        page = desk.log.journal.find(session_id, limit=size, after=after, **filters)
        found += [entry for entry in page if entry.kind in kinds and entry.subtype not in BOOKKEEPING]
        after = page.next
        if after is None:
            break
    return found[skipped:wanted]


def log_row(desk: Desk, entry: "Entry") -> "dict[str, Any]":
    """Return an entry as a row of bazinga's table of logs."""
    return {
        "id": desk.number(entry.stream, entry.seq),
        "session_id": entry.stream,
        "timestamp": stamp(entry.at),
        "iteration": entry.iteration,
        "agent_type": entry.agent,
        "agent_id": entry.agent_id,
        "content": entry.body,
        "log_type": str(entry.kind),
        "reasoning_phase": entry.phase and str(entry.phase),
        "confidence_level": entry.confidence and str(entry.confidence),
        "references_json": json_text(entry.refs),
        "redacted": int(desk.is_redacted(entry)),
        "group_id": entry.group_id,
        "event_subtype": entry.subtype,
        "event_payload": json_text(entry.payload),
        "idempotency_key": None if (entry.key or "").startswith(IMPORT_KEY) else entry.key,
    }


def _section(entry: "Entry") -> str:
    iteration = entry.iteration or "?"
    return f"## [{stamp(entry.at)}] Iteration {iteration} - {(entry.agent or '?').upper()}\n\n{entry.body or ''}\n\n---"


# Commands

DESK = Logs


def log_interaction(desk: Logs, given: "UsageValues") -> ProgramReply:
    logged = desk.log_interaction(
        given["session"], given["agent"], given["content"], given.whole("iteration"), given.get("agent_id")
    )
    return ProgramReply(logged, said=f"Logged {given['agent']} interaction")


def stream_logs(desk: Logs, given: "UsageValues") -> ProgramReply:
    limit, offset = given.whole("limit"), given.whole("offset")
    return ProgramReply(text=desk.stream_logs(given["session"], 50 if limit is None else limit, offset or 0))


def get_logs(desk: Logs, given: "UsageValues") -> ProgramReply:
    limit, offset = given.whole("limit"), given.whole("offset")
    return ProgramReply(
        desk.get_logs(given["session"], 50 if limit is None else limit, offset or 0, given.get("agent-type"), given.get("since"))
    )
