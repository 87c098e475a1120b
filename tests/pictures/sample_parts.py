"""Further sample records of a run: a plan, documents, files, checks, landed items and a fork."""

from typing import Any

from decklog import Decklog, ManualClock
from tests.pictures import sample_log

ITEMS = "lexer-split"
PAGE = "<!doctype html><script>fetch('/now')</script>"
PATCH = "--- a/lexer.py\n+++ b/lexer.py\n@@ -1 +1 @@\n-COMMA = None\n+COMMA = ','\n"


def write(log: Decklog, clock: ManualClock) -> None:
    """Write it into a log that has the week."""
    _documents(log, clock)
    _items(log, clock)
    log.runs.fork(sample_log.RUN, at="30", new_run_id="commas-again", goal="Try it without a new token")


def _documents(log: Any, clock: ManualClock) -> None:
    run = sample_log.RUN
    phases = [{"name": "Read", "status": "completed"}, {"name": "Change", "status": "in_progress"}, "Say so"]
    log.plans.record(run, "Teach the parser trailing commas", "First the lexer, then the parser, then the manual.", phases=phases)
    log.criteria.meet(run, "3", evidence="The manual has a page", evidence_files={"manual.md": "a" * 64})
    log.criteria.observe(run, files={"manual.md": "b" * 64})
    for number, known in enumerate((["lists"], ["lists", "calls"], ["lists", "calls", "imports"]), 1):
        log.states.save(run, "grammar", {"rules": known, "round": number, "owner": "ada"})
        clock.advance(minutes=1)
    log.states.checkpoint(run, name="before the parser")
    log.artifacts.add(run, "patch", "out/lexer.patch", content=PATCH, task_id="lexer")
    log.artifacts.add(run, "report", "out/report.html", content=PAGE)
    log.artifacts.add(run, "log", "build/pytest.log")


def _items(log: Any, clock: ManualClock) -> None:
    """Write what a conductor's run looks like: one item has landed, one is red, one waits for its turn."""
    log.runs.start("Split the lexer into a package of its own", run_id=ITEMS, repo="parser")
    for name in ("tokens", "errors", "tables"):
        tags = [f"item:{name}"]
        log.tasks.add(ITEMS, f"Work: {name}", task_id=f"{name}.w1", role="work", tags=tags)
        log.tasks.add(ITEMS, f"Land: {name}", task_id=name, role="land", tags=tags, depends_on=[f"{name}.w1"])
    for name, outcome in (("tokens", "pass"), ("errors", "fail"), ("tables", "pass")):
        _finish(log, clock, f"{name}.w1", "dev-1", 11)
        log.tasks.add(ITEMS, f"Check: {name}", task_id=f"{name}.c1", role="check", tags=[f"item:{name}"])
        log.tasks.depend(name, f"{name}.c1")
        findings = [{"kind": "test", "text": f"test_{name} fails"}] if outcome == "fail" else []
        tree = {"tree": name.encode().hex() * 3, "definition": "d" * 64, "environment": "e" * 64}
        log.verdicts.record(ITEMS, "tests", outcome, task_id=f"{name}.c1", findings=findings, duration_ms=8_400, **tree)
        if outcome == "pass":
            _finish(log, clock, f"{name}.c1", "checks", 2)
    _review(log)
    _finish(log, clock, "tokens", "lane", 1)
    clock.advance(hours=5)
    log.tasks.claim(ITEMS, worker="checks", role="check", lease_seconds=3600)
    clock.advance(minutes=4)


def _review(log: Any) -> None:
    """Write the review of the failed item."""
    place = {"file": "src/lexer/errors.py", "line": 41, "remedy": "Count the line before the token is read."}
    found = [
        {"severity": "blocking", "kind": "behaviour", "text": "An error in the last line has no place: it says line 0.", **place},
        {"severity": "minor", "kind": "naming", "text": "`tmp2` says nothing.", **place, "line": 12, "remedy": ""},
    ]
    names = ("static", "functional", "architectural", "security", "prose", "adversarial", "feedback-binding")
    skipped = {"status": "skipped", "why": "an earlier pass has failed", "findings": [], "score": None, "by": []}
    results = [{"pass": number, "name": name, **skipped} for number, name in enumerate(names, start=1)]
    results[0] |= {"status": "pass", "why": ""}
    results[1] |= {"status": "fail", "why": "", "findings": found}
    digests = {"base": "1f" * 20, "head": "9a" * 20, "tree": "7c" * 20, "patch": "5d" * 20, "settings": "e0" * 32}
    findings = [{"pass": 2, **one} for one in found]
    reasons = ["pass 2 (functional) has a blocking finding"]
    log.reviews.record(
        ITEMS, "block", task_id="errors.c1", confidence=35, reasons=reasons, passes=results, findings=findings, **digests
    )


def _finish(log: Any, clock: ManualClock, task_id: str, worker: str, minutes: int) -> None:
    claim = log.tasks.claim(ITEMS, worker=worker, task_id=task_id, lease_seconds=3600)
    clock.advance(minutes=minutes)
    claim.finish("It is there")
