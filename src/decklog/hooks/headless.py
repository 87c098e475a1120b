"""Hook for an agent without a user: the policy allows or denies each tool call and gives the reason.

The conductor starts it inside the agent's sandbox, so it uses no log. It uses the format of Claude Code's `PreToolUse`.
"""

import json
import os
import sys
from typing import Any

from decklog.hooks.judging import decisions

_UNASKED = "Nobody can be asked here. Reach the goal another way, or leave it out and name it in your last answer."


def answer(payload: dict[str, Any], root: str, permissions: str) -> dict[str, Any] | None:
    """Return the hook's answer to a call; None leaves a tool that the policy does not know to the program's own rules."""
    found = decisions(payload, root)
    for worst in ("deny", "ask"):
        if reasons := [reason for decision, reason, _ in found if decision == worst]:
            if worst == "ask" and permissions == "allow":
                break
            refused = f"Decklog's policy leaves this to a person {reasons[0]} {_UNASKED}" if worst == "ask" else reasons[0]
            return _decision("deny", refused)
    return _decision("allow", "Decklog's policy allows this.") if found else None


def _decision(decision: str, reason: str) -> dict[str, Any]:
    answered = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": answered}


def main() -> None:
    """Answer the call on standard input; block a call that can't be judged."""
    try:
        payload = json.loads(sys.stdin.buffer.read())
        answered = answer(payload, os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd(), sys.argv[2])
    except Exception as problem:  # noqa: BLE001
        # Any other exit code than 2 would let the call run.
        sys.stderr.write(f"Decklog could not judge this call, so it is blocked: {problem}\n")
        sys.exit(2)
    if answered is not None:
        sys.stdout.write(json.dumps(answered))
