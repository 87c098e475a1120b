"""A week of two runs, as a team might have it: work, a crash, a question, a blocker, money and proof. All of it is made up."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from decklog import Decklog, ManualClock
from tests.stores.claiming import claimed

RUN = "commas"
PLAN: list[dict[str, Any]] = [
    {"task_id": "grammar", "title": "Read the grammar", "priority": 90, "role": "developer"},
    {"task_id": "test", "title": "Write a failing test", "priority": 80, "role": "tester"},
    {"task_id": "lexer", "title": "Change the lexer", "depends_on": ["grammar"], "role": "developer"},
    {"task_id": "parser", "title": "Change the parser", "depends_on": ["lexer", "test"], "role": "developer"},
    {"task_id": "docs", "title": "Write it down", "priority": 20, "role": "writer"},
    {"task_id": "release", "title": "Release it", "depends_on": ["parser", "docs"], "priority": 10, "role": "developer"},
]


def write(log: Decklog, clock: ManualClock) -> None:
    """Write the runs into a log."""
    _earlier_run(log, clock)
    _run(log, clock)


def _earlier_run(log: Any, clock: ManualClock) -> None:
    log.runs.start("Make the test suite twice as fast", run_id="fast-tests", repo="parser")
    log.tasks.add("fast-tests", "Measure what is slow", task_id="measure")
    _work(log, clock, "fast-tests", "ada", [("pytest --durations=20", 0, 41.0)], 2_310_400, "Two fixtures take 71 %")
    log.runs.finish("fast-tests", summary="The suite takes 3 minutes instead of 7")
    clock.advance(hours=20)


def _run(log: Any, clock: ManualClock) -> None:
    log.runs.start("Teach the parser to read trailing commas", run_id=RUN, repo="parser", branch="trailing-commas")
    log.criteria.record(RUN, ["Lists with a comma before ] are read", "No test takes longer than before", "The manual says so"])
    log.tasks.add_many(RUN, PLAN)
    log.budgets.set("run", scope_id=RUN, limit_microdollars=25_000_000)
    clock.advance(minutes=1)
    log.tasks.claim(RUN, worker="ada", role="developer", lease_seconds=300)
    clock.advance(minutes=2)
    _work(log, clock, RUN, "bo", [("pytest tests/test_commas.py", 1, 3.4)], 1_204_000, "Three tests fail as they should")
    clock.advance(minutes=4)
    grammar = [("grep -n ',' grammar.ebnf", 0, 0.2)]
    _work(log, clock, RUN, "cy", grammar, 812_500, "A comma is a token of its own", role="developer")
    lexer = [("pytest tests/test_lexer.py", 1, 8.2), ("pytest tests/test_lexer.py", 0, 7.9)]
    _work(log, clock, RUN, "ada", lexer, 6_950_000, "Commas are tokens", role="developer")
    _work(log, clock, RUN, "bo", [("pytest", 0, 161.0)], 5_120_384, "The parser takes a trailing comma", role="developer")
    log.criteria.meet(RUN, "1", evidence="12 of 12 tests of tests/test_commas.py pass")
    log.criteria.meet(RUN, "2", evidence="161 s before and after")
    writer = log.tasks.claim(RUN, worker="cy", role="writer", lease_seconds=3600)
    clock.advance(minutes=9)
    writer.block("The style guide does not say how to write grammars")
    _question(log, clock)
    log.memory.add_topic("parser", "What the parser taught us")
    log.memory.remember("parser", "Change the lexer before the parser: a token that is not there can't be parsed", run_id=RUN)


def _question(log: Any, clock: ManualClock) -> None:
    question = "May the grammar be changed in a minor release?"
    first = log.approvals.ask(RUN, question, by="ada", about="grammar.ebnf", asked_of="ana")
    clock.advance(minutes=11)
    log.approvals.decide(first.id, "granted", by="ana", rationale="It only reads more than before")
    log.approvals.ask(RUN, "May I push the branch trailing-commas?", by="bo", about="git push origin trailing-commas")
    clock.advance(minutes=3)


def _work(
    log: Any,
    clock: ManualClock,
    run_id: str,
    worker: str,
    commands: list[tuple[str, int, float]],
    cost: int,
    summary: str,
    role: str | None = None,
) -> None:
    """Have a worker take the next task, run commands, pay for the thinking, and finish."""
    claim = claimed(log, run_id, worker=worker, role=role, lease_seconds=7200)
    with log.acting(worker), claim:
        log.journal.append(run_id, summary, kind="reasoning", phase="approach")
        for command, code, seconds in commands:
            clock.advance(seconds=seconds)
            call = {"tool": "run", "arguments": {"command": command}, "duration_ms": seconds * 1000}
            log.journal.append(run_id, kind="tool", subtype="run", payload={**call, "result": {"exit_code": code}})
            clock.advance(minutes=4)
        log.ledger.charge(
            "claude-opus-5-5", input_tokens=cost // 60, output_tokens=cost // 400, cost_microdollars=cost, run_id=run_id
        )
        claim.finish(summary)
    clock.advance(seconds=40)


def made(folder: Path, start: datetime) -> tuple[Path, ManualClock]:
    """Make the log in a folder, from a time on; give its path and the clock that it ended at."""
    path, clock = folder / "decklog.db", ManualClock(start)
    with Decklog.open(path, clock=clock) as log:
        write(log, clock)
    return path, clock


def _others(log: Any, clock: ManualClock) -> None:
    """Add two more runs: one that works, and one that is stalled."""
    log.budgets.set("all", period="day", limit_microdollars=50_000_000)
    log.runs.start("Upgrade to Python 3.13", run_id="upgrade", repo="parser")
    log.tasks.add_many("upgrade", [{"title": "Run the tests on it"}, {"title": "Drop what it deprecates"}])
    log.tasks.claim("upgrade", worker="dev-3", lease_seconds=300)
    log.ledger.charge("claude-haiku-5-5", input_tokens=9_000, cost_microdollars=380_000, run_id="upgrade", agent="dev-3")
    clock.advance(minutes=47)
    log.runs.start("Move the scheduler to its own package", run_id="scheduler", repo="core")
    log.tasks.add_many("scheduler", [{"title": title} for title in ("Cut the imports", "Move the tests", "Say so in the manual")])
    log.tasks.add("scheduler", "Ask who else uses it", task_id="owners", priority=80)
    log.tasks.pause("owners", reason="the owners are away until Monday")
    log.tasks.add("scheduler", "Take the old place out", depends_on=["owners"], role="developer", priority=20)
    with log.acting("dev-2"):
        done = log.tasks.claim("scheduler", worker="dev-2", lease_seconds=1800)
        clock.advance(minutes=9)
        log.ledger.charge("claude-sonnet-5-5", input_tokens=80_000, cost_microdollars=6_900_000, run_id="scheduler")
        done.finish("Nothing of it is imported from outside")
    with log.acting("qa-2"):
        moved = log.tasks.claim("scheduler", worker="qa-2", lease_seconds=1800)
        log.tasks.extend(moved.task.id, fence=moved.task.fence, stage="pytest -q", lease_seconds=1800)
        log.journal.append("scheduler", "212 of 240 tests run from their new place", kind="reasoning", phase="approach")
    clock.advance(seconds=41)


def made_until(folder: Path, end: datetime) -> Path:
    """Create the log with further runs in a folder so that it ends at a time."""
    passed = _made_with_others(folder / "measured.db", datetime(2026, 1, 5, tzinfo=UTC)) - datetime(2026, 1, 5, tzinfo=UTC)
    _made_with_others(folder / "decklog.db", end - passed)
    return folder / "decklog.db"


def _made_with_others(path: Path, start: datetime) -> datetime:
    clock = ManualClock(start)
    with Decklog.open(path, clock=clock) as log:
        write(log, clock)
        _others(log, clock)
    return clock.now()
