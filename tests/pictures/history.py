"""A month of made-up sessions of Claude Code and Codex, in the files in which these programs keep them."""

import json
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

GOALS = (
    "Read trailing commas in lists and calls",
    "The scheduler loses jobs when the clock goes back",
    "Why is the nightly build 20 minutes slower?",
    "Move the settings page to the new form components",
    "Add pagination to the audit endpoint",
    "Fix the flaky test in test_clock.py",
    "Write a migration for the invoices table",
    "Review the retry logic of the mail worker",
    "Replace the date library",
    "Explain how leases are renewed",
)
_CLAUDE = ("claude-opus-5-5", "claude-opus-5-5", "claude-sonnet-5-5", "claude-sonnet-5-5", "claude-haiku-5-5")
_DAYS = 30


def write(home: Path, project: Path, now: datetime, *, sessions: int = 40, seed: int = 7) -> None:
    """Write the sessions of a project below a home folder. The same arguments give the same files."""
    chance = random.Random(seed)
    for number in range(sessions):
        start = now - timedelta(days=_DAYS * (sessions - number) / sessions, hours=chance.random() * 5)
        goal = GOALS[number % len(GOALS)]
        if number % 5 == 4:
            _write_codex(home / ".codex/sessions", project, number, start, goal, chance)
        else:
            _write_claude(home / ".claude/projects/-project", project, number, start, goal, chance)


def _stamp(start: datetime, second: int) -> str:
    return (start + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")


def _save(path: Path, lines: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _write_claude(folder: Path, project: Path, number: int, start: datetime, goal: str, chance: random.Random) -> None:
    session, model = f"{chance.getrandbits(32):08x}-{number:04}", chance.choice(_CLAUDE)
    own = {"sessionId": session, "cwd": str(project), "gitBranch": "main", "version": "2.1.325", "isSidechain": False}
    lines: list[dict[str, Any]] = [
        {"type": "user", **own, "uuid": session, "timestamp": _stamp(start, 0), "message": {"role": "user", "content": goal}}
    ]
    key = "sk-ant-" + f"api03-{chance.getrandbits(300):x}"
    for turn in range(1, chance.randint(8, 70)):
        usage = {
            "input_tokens": chance.randint(5, 900),
            "cache_read_input_tokens": chance.randint(15_000, 140_000),
            "cache_creation_input_tokens": chance.randint(300, 9_000),
            "output_tokens": chance.randint(60, 2_400),
        }
        call = {"type": "tool_use", "id": f"t{session}-{turn}", "name": "Bash", "input": {"command": "pytest -q"}}
        message = {"id": f"m{session}-{turn}", "model": model, "content": [call], "usage": usage}
        facts = {"uuid": f"{session}-a{turn}", "timestamp": _stamp(start, 20 * turn), "requestId": f"r{session}-{turn}"}
        lines.append({"type": "assistant", **own, **facts, "message": message})
        # Every tenth session prints a key by mistake.
        text = f"ANTHROPIC_API_KEY={key}" if turn == 3 and number % 10 == 0 else f"{turn} passed"
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
        facts = {"uuid": f"{session}-r{turn}", "timestamp": _stamp(start, 20 * turn + 9)}
        lines.append({"type": "user", **own, **facts, "message": {"role": "user", "content": [result]}})
    _save(folder / f"{session}.jsonl", lines)


def _write_codex(folder: Path, project: Path, number: int, start: datetime, goal: str, chance: random.Random) -> None:
    thread = f"{chance.getrandbits(32):08x}-{number:04}"

    def line(kind: str, second: int, **payload: Any) -> dict[str, Any]:
        return {"timestamp": _stamp(start, second), "type": kind, "payload": payload}

    lines = [
        line("session_meta", 0, id=thread, session_id=thread, cwd=str(project), cli_version="0.166.0"),
        line("turn_context", 1, cwd=str(project), model="gpt-5.3-codex"),
        line("event_msg", 1, type="item_completed", turn_id=f"turn{number}", item={"type": "UserMessage", "content": goal}),
    ]
    whole = dict.fromkeys(("input_tokens", "cached_input_tokens", "output_tokens", "total_tokens"), 0)
    for turn in range(1, chance.randint(6, 40)):
        cached, fresh, out = chance.randint(10_000, 90_000), chance.randint(200, 4_000), chance.randint(80, 1_500)
        last = {
            "input_tokens": cached + fresh,
            "cached_input_tokens": cached,
            "output_tokens": out,
            "total_tokens": cached + fresh + out,
        }
        whole = {name: count + last[name] for name, count in whole.items()}
        usage = {"total_token_usage": whole, "last_token_usage": last}
        lines.append(line("event_msg", 15 * turn, type="token_count", info=usage))
    lines.append(line("event_msg", 15 * turn + 5, type="task_complete"))
    _save(folder / f"2026/11/rollout-{thread}.jsonl", lines)
