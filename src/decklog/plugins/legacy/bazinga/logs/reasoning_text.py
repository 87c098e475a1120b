"""Reasoning as text: a summary for the next agent's prompt, and a timeline for a person."""

from typing import TYPE_CHECKING

from decklog.plugins.legacy.bazinga.base import stamp

if TYPE_CHECKING:
    from decklog.journal.entry import Entry

SHOWN = 5
LONGEST = 300


def summary(entries: "list[Entry]") -> str:
    """Write the newest entries, which come first, as a table for a prompt."""
    if not entries:
        return "No previous reasoning found for this context."
    lines = [
        "## Previous Agent Reasoning",
        "",
        "| Agent | Phase | Confidence | Key Points |",
        "|---|---|---|---|",
        *(_line(entry) for entry in entries[:SHOWN]),
    ]
    if len(entries) > SHOWN:
        lines += ["", f"*{len(entries) - SHOWN} more entries are in the log.*"]
    return "\n".join(
        [
            *lines,
            "",
            "- Build on what was found out before; do not find it out again.",
            "- Say so when you decide otherwise, and why.",
            "- Take up the risks and blockers that are still open.",
        ]
    )


def _line(entry: "Entry") -> str:
    points = " ".join((entry.body or "").splitlines())
    if len(points) > LONGEST:
        points = points[: LONGEST - 3] + "..."
    points = points.replace("|", "\\|")
    return f"| {entry.agent} | {entry.phase} | {entry.confidence or '-'} | {points} |"


def timeline(session_id: str, entries: "list[Entry]") -> str:
    """Write entries, oldest first, as Markdown with a heading for every change of group."""
    lines = [f"# Reasoning Timeline: {session_id}", ""]
    group: str | None = None
    for entry in entries:
        if entry.group_id != group:
            group = entry.group_id
            lines += [f"## Group: {group}", ""]
        lines += _entry(entry)
    if not entries:
        lines.append("No reasoning found.")
    return "\n".join(lines)


def _entry(entry: "Entry") -> list[str]:
    name = f"{entry.agent} ({entry.agent_id})" if entry.agent_id else f"{entry.agent}"
    confidence = f" [{entry.confidence}]" if entry.confidence else ""
    lock = " \U0001f512" if entry.redacted else ""
    content = entry.body or ""
    if len(content) > LONGEST:
        content = content[:LONGEST] + "..."
    # A fence inside the text would end ours.
    content = content.replace("```", "`\u200b`\u200b`")
    return [f"### [{stamp(entry.at)}] {name} - {entry.phase}{confidence}{lock}", "", "```text", content, "```", "", "---", ""]
