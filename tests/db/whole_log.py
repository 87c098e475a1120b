"""A log that has something of everything: every kind of record, forks, moved and pruned streams, sums, words and vectors."""

import tempfile
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from decklog import Decklog, ManualClock
from decklog.stores.approvals.self_edits import PASSES
from decklog.stores.runs.timeline import EVERY
from decklog.transfer.move import Move
from decklog.transfer.prune import Prune
from tests.db.saved_logs import fill as fill_some
from tests.stores.approvals.trust.trust_desk import Key
from tests.stores.artifacts.graph_records import fill_graphs


class Digests:
    """An embedder whose vectors have no meaning and differ for every text."""

    name = "digests"
    dimensions = 8

    def embed(self, texts: list[str]) -> list[list[float]]:
        return [[byte / 255 for byte in sha256(text.encode()).digest()[: self.dimensions]] for text in texts]


def fill(target: str, keys: dict[str, Key]) -> None:
    """Write the first runs into another log, move them here, and go on."""
    clock = ManualClock()
    with tempfile.TemporaryDirectory() as folder, Decklog.open(Path(folder) / "old.db", clock=clock) as old:
        _first(old, clock)
        with Decklog.open(target, clock=clock) as log:
            Move(old, log).run()
            _then(log, clock, keys)


def _first(log: Any, clock: ManualClock) -> None:
    """Fill a log with what is two months old when it is pruned."""
    fill_some(log)
    log.journal.append("run_1", "words that will go", payload={"gone": True}, kind="tool", agent="developer")
    log.journal.append("run_1", "a long story " * 6000, kind="tool")
    clock.advance(days=60)
    Prune(log, timedelta(days=30), kind="tool").run(apply=True)


def _then(log: Any, clock: ManualClock, keys: dict[str, Key]) -> None:
    log.runs.start("another", run_id="run_2", key="second")
    _journal(log, clock)
    _work(log, clock)
    _money(log, clock)
    _memory(log)
    _tools(log)
    clock.advance(hours=1)
    _desk(log, keys)
    log.runs.fork("run_1", new_run_id="run_3")
    log.journal.index()
    log.overview.derive()
    _marked(log)


def _marked(log: Any) -> None:
    """Make the second run so long that what its entries add up to is kept."""
    missing = EVERY - log.journal.find("run_2", limit=1)[0].seq
    log.journal.append_many([{"stream": "run_2", "body": f"step {number}"} for number in range(missing)])
    log.runs.totals("run_2")
    log.ledger.charge("m", input_tokens=1, run_id="run_1", key="not counted yet")


def _journal(log: Any, clock: ManualClock) -> None:
    full: dict[str, Any] = {
        "subtype": "plan",
        "agent": "developer",
        "agent_id": "d1",
        "group_id": "A",
        "task_id": "task_x",
        "iteration": 4,
    }
    log.journal.append(
        "run_2",
        "all fields",
        kind="reasoning",
        payload={"a": 1},
        phase="approach",
        confidence="high",
        refs=["a"],
        key="k",
        **full,
    )
    log.journal.append("run_2", "x" * 70_000, kind="interaction")
    log.journal.append("run_2", "long ago", at=clock.now() - timedelta(days=400))


def _work(log: Any, clock: ManualClock) -> None:
    log.groups.add("run_2", "B", name="Parser")
    for name in ("one", "two", "three"):
        log.tasks.add("run_2", name, task_id=name, group_id="B", tags=["t"], depends_on=["one"] if name == "two" else [])
    log.tasks.add("run_2", "four", task_id="four", parent_id="three", assigned_to="ana")
    log.tasks.depend("four", "two", kind="related")
    log.tasks.edit("three", reason="clearer", objective="all of it")
    log.tasks.comment("three", "half of it is there", author="ana")
    log.templates.save("release", [{"name": "build", "title": "Build {{version}}"}], description="how we release")
    log.templates.use("release", "run_2", values={"version": "1.2"}, key="1.2")
    log.schedules.add("run_2", "nightly", "every day 06:00", zone="Europe/Berlin", title="Update")
    log.schedules.add("run_2", "weekly", "every monday 09:00", template="release", values={"version": "next"})
    claim = log.tasks.claim("run_2", worker="w", lease_seconds=10_000)
    log.tasks.pause(claim.task.id, reason="wait", fence=claim.task.fence, snapshot={"where": 1})
    log.states.save_snapshot("run_2", "one", {"task_id": "one", "paused_at": "2026-01-01T00:00:00Z", "reason": "lunch"})
    log.states.save("run_2", "pm", {"a": [1, 2, 3]}, group_id="B")
    log.states.checkpoint("run_2", payload=["x" * 70_000])
    log.outputs.save("run_2", "review", ["y" * 70_000])
    log.plans.record("run_2", "do", "it", ["first"])
    log.criteria.record("run_2", ["It is fast"])
    log.artifacts.add("run_2", "picture", "a.png", content_base64="iVBORwD/", task_id="one")
    log.runs.record_agent("run_2", "tester", session="t")
    log.ci.record("build", "main", 8, started_at=clock.now(), completed_at=clock.now() + timedelta(seconds=9))


def _money(log: Any, clock: ManualClock) -> None:
    log.prices.set("m", 1_000_000, 2_000_000, cache_read_price=1, cache_create_price=2, source="list")
    log.budgets.set("run", scope_id="run_2", limit_tokens=10**6, period="day")
    held = log.reservations.reserve(clock.now() + timedelta(hours=9), amount_microdollars=9, tokens=9, run_id="run_2", key="r")
    log.ledger.charge("m", input_tokens=7, output_tokens=2, run_id="run_2", reservation_id=held.id, key="c", call_site="s")
    clock.advance(days=1)
    log.reservations.reserve(clock.now() + timedelta(hours=9), tokens=5, run_id="run_2")
    clock.advance(days=1)
    log.ledger.charge(
        "unpriced", input_tokens=7, run_id="run_2", agent="a", occurred_at=clock.now() - timedelta(days=3), enforce=False
    )


def _memory(log: Any) -> None:
    log.memory.embedder = Digests()
    log.memory.add_topic("birds", "What flies")
    first = log.memory.remember("birds", "Sparrows flock near the river", run_id="run_2", project="p")
    log.memory.remember("birds", "Herons fish alone before dawn", refs=["run_2:1"], key="h")
    newer = log.memory.remember("birds", "Sparrows left when winter came early this year", project="p")
    log.memory.supersede(first.id, newer.id)
    log.memory.mark(newer.id, True)
    for way in ("before", "after"):
        log.memory.remember("birds", f"Clean the nest boxes {way} the winter", project="p")
    log.memory.embed()
    log.memory.recall("where do herons fish")
    log.patterns.record("p", "ValueError", "bad value 7", "use 8", lang="python")
    log.strategies.record("p", "general", "Measure first")
    log.learnings.note("one", "it rained", run_id="run_2")


def _tools(log: Any) -> None:
    fill_graphs(log, "run_2")
    effect = log.effects.intend("run_2", "push", "git", key="e1", actor="host:1", arguments={"a": 1})
    log.effects.settle(effect.id, actor="host:1", result={"out": "z" * 70_000})
    log.effects.intend("run_2", "pull", "git", key="e2", actor="host:1")
    person = {"kind": "person", "person": "Ana", "old_path": "old.py", "old_blob": "a" * 40, "head": "d" * 40}
    log.edits.record("f" * 40, "new.py", new_blob="e" * 40, **person)
    both = {"session": "claude:1", "mixed_with": ["codex:2"], "kind": "shell", "call_id": "c1"}
    edit = log.edits.record("f" * 40, "new.py", new_blob="9" * 40, task_id="lexer", **both)
    turn = {"head": "d" * 40, "turn": "t1", "skipped": {"big.bin": "too large"}}
    log.edits.record_snapshot("f" * 40, "/tree", "codex:2", "start", "8" * 40, **turn)
    origin = {"kind": "agent", "sessions": ["claude:1"], "edits": [edit.id]}
    log.edits.keep_origins("f" * 40, {("d" * 40, "new.py"): [[1, 3, origin]]})
    log.processes.started(
        "run_2", "proc_1", command={"shell": "x"}, cwd=".", root="/r", folder="/f", sandbox="none", keeper="{}", pid=7
    )


def _desk(log: Any, keys: dict[str, Key]) -> None:
    feedback = log.feedback.file("ana", "It is slow", key="f")
    log.feedback.triage(feedback.id, "doc", root_cause="haste")
    log.self_edits.record(
        "7", "doc", ["a.md"], "sha1", "sha2", dict.fromkeys(PASSES, "passed"), 90, "fine", feedback_id=feedback.id
    )
    review = {"base": "a", "head": "b", "tree": "c", "patch": "d", "settings": "e", "findings": [{"kind": "slow"}]}
    review_id = log.reviews.record("run_2", "block", **review, confidence=80, feedback_id=feedback.id).id
    log.reviews.keep_pass("run_2", "c", 1, {"verdict": "pass"})
    facts = {"branch": "fix", "head": "b", "fix_class": "doc", "confidence": 70, "waits_for": "fix", "merged": "m"}
    mend = log.mends.begin("run_2", feedback.id, repo="repository", base="a", for_run_id="run_1")
    facts |= {"review_id": review_id, "fix_run_id": "run_1"}
    facts |= {"triage": {"class": "doc"}, "plan": {"steps": 1}, "proof": {"red": 1}}
    log.mends.move(mend, reason="red", **facts)
    log.inbox.post("ana", "Faster, please", run_id="run_2", key="i")
    log.trust.bind("ana", "cli", keys["owner"].public)
    approval = log.approvals.ask("run_2", "May I?", by="dev", about="the diff")
    with log.proving(key=keys["owner"].path):
        log.trust.apply(log.trust.propose("promote", "good work").statement)
        log.approvals.decide(approval.id, "granted", by="ana", uses=2)
        log.budgets.set("agent", scope_id="a", limit_microdollars=10)
        rule = log.notices.add_rule("done", "webhook", target=["http://127.0.0.1:9/"], secret_env="HOOK")
    log.notices.note(rule.id, "run:run_2", "Done", run_id="run_2")
    notice = log.notices.take("host:1")
    log.notices.settle(notice.id, attempts=1, state="failed", error="nobody there")
    log.trust.propose("promote", "again")
