"""Draw an approval. A bar before each line of its subject keeps the subject from imitating our own text."""

import json
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from decklog.cli.lines import Line, StyledText, render_line, wrap_text
from decklog.cli.terminal import DIM, LOUD, PLAIN, STRONG, width
from decklog.core.clock import from_text
from decklog.core.display import dollars, revealed, span
from decklog.log import Decklog

_CHECK_TEXTS = {
    "matches": "digest matches: this is exactly what was asked about",
    "parts redacted": "parts redacted: the thing had secrets, which are not kept; its digest can't be compared",
    "not in the log": "not in the log: only its digest was given; to grant it, give the digest of what you looked at",
}
MOST_LINES = 400
# The most characters of a call that are shown before it is signed.
_LONGEST_CALL = 2_000


def approval_lines(approval: Mapping[str, Any], now: datetime, width: int, *, with_next: bool = True) -> list[Line]:
    """Draw an approval: question, status, subject, digest check and the next commands."""
    question = approval["question"] or approval["verdict"] or ""
    head: list[Line] = [[StyledText(part, STRONG)] for text in question.splitlines() or [""] for part in wrap_text(text, width)]
    is_open = approval["state"] == "open"
    facts = [[StyledText(part, LOUD if is_open else PLAIN)] for part in wrap_text(describe_status(approval, now), width)]
    facts += [[StyledText(part, DIM)] for part in wrap_text(_describe_cause(approval["cause"]), width)]
    return [*head, *facts, *_subject_lines(approval, width), *(_next_lines(approval, is_open) if with_next else [])]


def describe_status(approval: Mapping[str, Any], now: datetime) -> str:
    """Describe who asked when and where, and the decision or the default."""
    place = f"run {approval['run_id']}" + (f", task {approval['task_id']}" if approval["task_id"] else "")
    asked = f"asked by {approval['asked_by']} " if approval["asked_by"] else ""
    parts = [f"{asked}{span(now - from_text(approval['asked_at']))} ago in {place}"]
    if approval["state"] != "open":
        by = f" by {approval['decided_by']}" if approval["decided_by"] else ""
        why = f": {approval['rationale']}" if approval["rationale"] else ""
        parts.append(f"{approval['state']}{by}{'' if approval['is_proven'] else ', unproven'}{why}")
    elif approval["expires_at"]:
        end = span(from_text(approval["expires_at"]) - now)
        default = approval["default_verdict"]
        parts.append(f"{default} by default in {end}" if default else f"expires in {end}")
    return "; ".join(parts)


def _describe_cause(cause: Mapping[str, Any]) -> str:
    """Describe the rule that required the approval; empty without one."""
    parts = [str(cause[name]) for name in ("rule", "reason") if name in cause]
    held = f"held by {revealed(': '.join(parts))}" if parts else ""
    tier = f"tier {cause['tier']} when it was asked" if "tier" in cause else ""
    return "; ".join(filter(None, (held, tier)))


def _subject_lines(approval: Mapping[str, Any], width: int) -> list[Line]:
    if approval["subject_digest"] is None:
        return []
    about = approval["about"]
    body: list[Line] = [[], *([StyledText("  │ ", DIM), StyledText(text)] for text in content_lines(about, width - 4))]
    body = body if about["content"] is not None else [[]]
    return [*body, [StyledText(f"  {_CHECK_TEXTS[about['check']]}", DIM)], [StyledText(f"  {approval['subject_digest']}", DIM)]]


def content_lines(about: Mapping[str, Any], width: int) -> list[str]:
    """Return the subject as lines, with JSON indented and control and invisible characters escaped."""
    content = about["content"]
    if content is None:
        return []
    if about["encoding"] == "base64":
        return [f"{len(content) * 3 // 4} bytes that are no text"]
    found = [
        part for text in _indent_json(content).split("\n") for part in _break_line(revealed(text, tabs=True), max(width, 10))
    ]
    left_out = len(found) - MOST_LINES
    return [*found[:MOST_LINES], f"… {left_out} more lines: --json has all"] if left_out > 0 else found


def _indent_json(content: str) -> str:
    if not content.startswith(("{", "[")):
        return content.removesuffix("\n")
    try:
        return json.dumps(json.loads(content), indent=2, ensure_ascii=False)
    except ValueError:
        return content.removesuffix("\n")


def _break_line(text: str, width: int) -> list[str]:
    """Break a line that does not fit, with a mark at each break."""
    parts = []
    while len(text) > width:
        parts.append(text[: width - 1] + "↩")
        text = text[width - 1 :]
    return [*parts, text]


def _next_lines(approval: Mapping[str, Any], is_open: bool) -> list[Line]:
    if not is_open:
        return []
    digest = " --subject-digest SHA256" if approval["about"]["check"] == "not in the log" else ""
    reason = " --rationale WHY" if approval["needs_reason"] else ""
    said = f"decklog approvals decide {approval['id']}"
    return [
        [],
        [StyledText(f"{said} granted --by NAME{reason}{digest}")],
        [StyledText(f"{said} denied --by NAME --rationale WHY")],
    ]


def show_signed(log: Decklog, operation: str, arguments: Mapping[str, Any]) -> None:
    """Show the registered owner at a terminal what is about to be signed."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or not log.trust.status()["is_bound"]:
        return
    for line in [*_describe_subject(log, operation, arguments), _describe_call(operation, arguments)]:
        sys.stderr.write(f"{line}\n")


def _describe_call(operation: str, arguments: Mapping[str, Any]) -> str:
    given = (_describe_argument(name, value) for name, value in arguments.items() if value is not None)
    return revealed(f"You sign: {operation} {' '.join(given)}"[:_LONGEST_CALL])


def _describe_argument(name: str, value: object) -> str:
    if name.endswith(("_microdollars", "_price")) and isinstance(value, int):
        return f"{name.removesuffix('_microdollars')}={dollars(value, exact=True)}"
    return f"{name}={value}"


def _describe_subject(log: Decklog, operation: str, arguments: Mapping[str, Any]) -> list[str]:
    """Describe the record that the decision is about."""
    if operation == "approvals.decide":
        shown = log.approvals.show(arguments["approval_id"])
        described = approval_lines(shown, log.clock.now(), width(100), with_next=False)
        return [render_line(line, colour=False) for line in described]
    if operation == "effects.reconcile":
        effect = log.effects.get(arguments["effect_id"])
        facts = [f"{effect.tool} in step {effect.step}, {effect.state}", f"arguments {effect.arguments}", f"note {effect.note}"]
        return [revealed(line[:_LONGEST_CALL]) for line in facts]
    return []
