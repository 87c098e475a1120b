"""A gaia-coder home as its programs and others leave it, and a log of Decklog's own that has something for each of its stores."""

import json
import uuid
from pathlib import Path

import apsw

from decklog import Decklog, ManualClock
from decklog.plugins.importers.gaia.importer import DATABASES
from tests.plugins.importers.other_files import PASSES, SELF_EDIT, T0, T1, T2, build_gaia

# What the file stores hold when its own programs wrote them, and a few lines that somebody else did.
SNAPSHOT = {"task_id": "gt-3", "paused_at": T1, "reason": "Mittag ☕", "tool_call_history": [{"tool": "x", "args": {"b": 1.5}}]}
OTHER_SNAPSHOT = {"task_id": "gt-2", "paused_at": "2026-02-01T08:00:00+00:00", "reason": "stop", "partial_outputs": {}}
EDITS = [
    {**SELF_EDIT, "ts": "2026-02-01T08:00:00Z", "review_passes": PASSES},
    {**SELF_EDIT, "ts": "2026-01-31T08:00:00.123456+00:00", "pr": "https://x/pr/2", "em_review": "später", "feedback_id": None},
    {**SELF_EDIT, "ts": T1, "pr": "https://x/pr/3", "files": ["a.py", "b/ü.py"], "auto_merged": True},
]
SELF_EDITS = "".join(json.dumps(edit, ensure_ascii=False, separators=(",", ":")) + "\n" for edit in EDITS) + "{broken\n"
LEARNINGS = """\
2026-02-01T08:00:00Z [task=gt-1] Observed: "the linter runs twice" → skill:checks
2026-02-02 [task=gt-2] Observed: "a bare date" → dismissed
2026-02-01T07:00:00.123456+00:00 [task=gt-1] Observed: "he said "hi" twice" → GAIA.md
2026-02-01T07:00:00.250Z [task=gt-1] Observed: "a \\"quoted\\" word and C:\\\\dir" → GAIA.md
this is no learning
2026-02-01T07:00:00Z [task=gt-1] Observed: "→ and ümlauts" → skill:a.b_c-d
"""
# Such keys look like secrets and are none.
KEY = f"flaky:{uuid.UUID(int=2**125 + 12345)}"
# Rows as a caller or another version may have left them; where SQLite's own rules allow them, they have to come back.
ODD: dict[str, list[tuple[object, ...]]] = {
    "tasks": [
        ("go-1", 1000, "waiting", T0, "no time", None, None, "not json", "null", None, 0.5, 3),
        ("go-2", 50, "blocked", T1, T0, None, None, '{"task": "Short"}', "[1, 2]", None, 0.0, 2),
    ],
    "audit": [(9, T2, "gone", None, None, "bash", "broken", '"text"', None, None, 1)],
    "spend": [("so-1", T2, "gt-1", "plan", "opus", 1, 0, 0, 1, 0.1234567)],
    "ci_history": [("deploy", "main", 1, T0, None, None, "skipped")],
    "em_inbox": [("mo-1", T0, "em", "cli", "info", "closed at once", "closed", None, None, T0, None, None)],
    "memory": [("meo-1", "flaky_tests", T0, "reconcile", None, '{"test_fqn": "tests::cache", "own": 1}', KEY, 0, None, 0, None)],
}


def build_full_home(home: Path) -> Path:
    build_gaia(home)
    for table, rows in ODD.items():
        db = apsw.Connection(str(home / DATABASES[table]))
        db.executemany(f"insert into {table} values ({', '.join('?' for _ in rows[0])})", rows)
        db.close()
    (home / "paused-tasks" / "link.json").unlink()
    for document in (SNAPSHOT, OTHER_SNAPSHOT):
        (home / "paused-tasks" / f"{document['task_id']}.json").write_text(json.dumps(document, indent=2, sort_keys=True))
    (home / "self-edits.log").write_text(SELF_EDITS)
    (home / "learnings.log").write_text(LEARNINGS)
    return home


def record_everything(log: Decklog, clock: ManualClock) -> None:
    """Write what Decklog's own verbs write, with every state that a task can be in."""
    log.runs.start("Make it faster", run_id="run_1")
    for name in ("done", "blocked", "parked", "paused", "abandoned", "running", "pending"):
        log.tasks.add("run_1", name.title(), task_id=name, objective="do it", tags=["x"], inputs={"n": 1})
        clock.advance(milliseconds=1.5)
    for name in ("done", "blocked", "parked", "paused", "abandoned", "running"):
        _end(log, name, log.tasks.claim("run_1", worker="w").fence)
    log.ledger.charge("opus", input_tokens=5, output_tokens=1, cost_microdollars=1_250_000, run_id="run_1", task_id="done")
    log.ledger.charge("no-such-model", input_tokens=5, agent="checker")
    log.journal.append("run_1", "3 files", kind="tool", subtype="glob", payload={"pattern": "*"}, task_id="done")
    log.journal.append("run_1", "hello", agent="dev")
    effect = log.effects.intend("run_1", "s1", "write_file", key="k1", arguments={"path": "a"}, actor="me")
    clock.advance(seconds=2)
    log.effects.settle(effect.id, actor="me", result={"written_bytes": 3})
    log.ci.record("build", "main", 7, conclusion="success")
    message = log.inbox.post("em", "why?", channel="tui", severity="question")
    log.inbox.answer(message.id, "because", by="agent")
    log.feedback.file("em", "tests first", channel="cli", severity="high")
    old = log.memory.remember("em_preferences", "tests first", payload={"preference": "tests first"})
    new = log.memory.remember("em_preferences", "tests before any code", payload={"preference": "order", "topic": "tests"})
    log.memory.supersede(old.id, new.id)
    log.memory.add_topic("own_topic", "something else")
    log.memory.remember("own_topic", "has no place there")
    log.self_edits.record("https://x/pr/1", "test", ["a.py"], "aaa", "bbb", PASSES, 88, "approved")
    log.learnings.note("done", 'he said "hi"', candidate="skill:checks")
    log.states.save_snapshot("run_1", "parked", {"task_id": "parked", "paused_at": "2026-01-01T00:00:00Z", "reason": "CI"})


def _end(log: Decklog, name: str, fence: int) -> None:
    match name:
        case "done":
            log.tasks.finish(name, fence=fence, summary="did it", result={"exit": 0})
        case "blocked":
            log.tasks.block(name, fence=fence, blocker="no-network")
        case "parked":
            log.tasks.park(name, fence=fence, reason="waits for CI")
        case "paused":
            log.tasks.pause(name, reason="lunch", snapshot={"cwd": "/srv"})
        case "abandoned":
            log.tasks.abandon(name, reason="not needed")
