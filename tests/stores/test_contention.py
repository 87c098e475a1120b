"""Verbs that read and then write, called at the same moment by several threads: both engines answer as if one came after another.

SQLite has one writer, so its answer is the right one. Each case names what the callers may get, and what must hold afterwards.
"""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from decklog import Decklog, ManualClock
from decklog.core.errors import DecklogError
from decklog.stores.approvals.approval import compute_digest
from tests.searches import FULL

ROUNDS = 20 if FULL else 4
RUN = "run_1"
Outcome = tuple[str, Any]


@dataclass
class Case:
    """Calls that meet. `prepare` returns what each call is given; `check` gets the outcomes and looks at the log."""

    prepare: Callable[[Any, int], Any]
    calls: list[Callable[[Any, Any], Any]]
    check: Callable[[Any, Any, list[Outcome]], None]


def meet(log: Decklog, calls: list[Callable[[Any, Any], Any]], given: Any) -> list[Outcome]:
    """Make all calls at the same moment, each in its own thread; return each result, or the error's code and text."""
    ready = threading.Barrier(len(calls))
    outcomes: list[Outcome] = [("none", None)] * len(calls)

    def run(place: int) -> None:
        ready.wait(30)
        try:
            outcomes[place] = "done", calls[place](log, given)
        except DecklogError as problem:
            outcomes[place] = problem.code, str(problem)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes


def results(outcomes: list[Outcome]) -> list[Any]:
    """Return the results; fail where a call was refused."""
    assert all(kind == "done" for kind, _ in outcomes), outcomes
    return [result for _, result in outcomes]


def one_is_new(outcomes: list[Outcome]) -> None:
    """Every call succeeds, and all but one find that there was nothing left to do."""
    assert Counter(result.already for result in results(outcomes)) == {False: 1, True: len(outcomes) - 1}


# Approvals


def asked(log: Any, number: int, **grant: Any) -> str:
    about = f"deploy {number}"
    approval = log.approvals.ask(RUN, "May I?", by="dev", about=about, subject="deploy")
    log.approvals.decide(approval.id, "granted", by="ana", **grant)
    return str(approval.id)


def check_uses(log: Any, approval_id: str, outcomes: list[Outcome], most: int) -> None:
    used = [result for result in results(outcomes) if result]
    assert len(used) == most
    assert log.approvals.get(approval_id).uses == most


def use(log: Any, approval_id: str) -> Any:
    return log.approvals.use(RUN, log.approvals.get(approval_id).subject_digest)


def open_question(log: Any, number: int) -> str:
    return str(log.approvals.ask(RUN, "May I?", by="dev", about=f"thing {number}").id)


# Runs and criteria


def started(log: Any, number: int) -> str:
    return str(log.runs.start("Race", run_id=f"race_{number}").id)


def finish_as(status: str, summary: str) -> Callable[[Any, str], Any]:
    return lambda log, run_id: log.runs.finish(run_id, status=status, summary=summary)


def check_ended_once(log: Any, run_id: str, outcomes: list[Outcome]) -> None:
    assert sorted(kind for kind, _ in outcomes) == ["conflict", "done"], outcomes
    run = log.runs.get(run_id)
    assert (run.status, run.summary) in {("completed", "all"), ("failed", "none")}


def check_criterion_or_end(log: Any, run_id: str, outcomes: list[Outcome]) -> None:
    """A run is completed, or it has an open required criterion; never both."""
    is_completed = log.runs.get(run_id).status == "completed"
    assert [kind for kind, _ in outcomes].count("conflict") == 1, outcomes
    assert is_completed is (log.criteria.open_required(run_id) == [])


def with_met_criterion(log: Any, number: int) -> str:
    run_id = started(log, number)
    log.criteria.record(run_id, ["Tests pass"])
    log.criteria.meet(run_id, "Tests pass", evidence_commit="a" * 40)
    return run_id


def check_observed_or_ended(log: Any, run_id: str, outcomes: list[Outcome]) -> None:
    """What was observed before the end stops it; what is observed after it is told, and changes nothing."""
    ended, observed = outcomes
    assert observed[0] == "done"
    entries = log.journal.find(run_id, oldest_first=True, limit=50)
    stale = next(entry.seq for entry in entries if entry.record_table == "criteria" and (entry.payload or {}).get("is_stale"))
    over = [entry.seq for entry in entries if entry.record_table == "runs" and entry.payload["status"] == "completed"]
    assert (ended[0] == "done") is bool(over)
    assert not over or over[0] < stale, "completed past a criterion that was stale already"


def fork_as(log: Any, new_id: str) -> Any:
    return log.runs.fork(RUN, new_run_id=new_id)


def check_one_fork(log: Any, new_id: str, outcomes: list[Outcome]) -> None:
    assert sorted(kind for kind, _ in outcomes) == ["done", "invalid", "invalid"], outcomes
    assert all("there is a run" in text for kind, text in outcomes if kind == "invalid")


# Gates


def closed_gate(log: Any, number: int) -> str:
    log.gates.close(f"gate {number}", "quota", retry_seconds=60.0)
    return f"gate {number}"


def check_gate(log: Any, name: str, outcomes: list[Outcome]) -> None:
    results(outcomes)
    gate = log.gates.get(name)
    assert (gate.state == "closed") is (gate.closed_at is not None)
    assert gate.state == "open", "it was opened, before or after the other"


def check_new_gate(log: Any, name: str, outcomes: list[Outcome]) -> None:
    results(outcomes)
    assert log.gates.get(name).closings == len(outcomes)


# Fixes, templates and lessons


def feedback(log: Any, number: int) -> tuple[str, list[str]]:
    runs = [str(log.runs.start("Fix", run_id=f"fix_{number}_{part}").id) for part in range(3)]
    return str(log.feedback.file("ana", f"It is slow {number}").id), runs


def begin_in(place: int) -> Callable[[Any, Any], Any]:
    return lambda log, given: log.mends.begin(given[1][place], given[0], repo="r", base="a")


def check_one_fix(log: Any, given: Any, outcomes: list[Outcome]) -> None:
    one_is_new(outcomes)
    assert len({result.id for result in results(outcomes)}) == 1
    assert len(log.mends.find(feedback_id=given[0], open_only=True)) == 1


def save_template(title: str) -> Callable[[Any, str], Any]:
    return lambda log, name: log.templates.save(name, [{"title": title}])


def check_versions(log: Any, name: str, outcomes: list[Outcome]) -> None:
    saved = results(outcomes)
    by_title = {title: {one.version for one in saved if one.tasks[0]["title"] == title} for title in ("a", "b")}
    kept = {one.version: one.tasks[0]["title"] for one in log.templates.find(limit=200) if one.name == name}
    assert sorted(kept) == list(range(1, len(kept) + 1))
    assert all(kept[version] == title for title, versions in by_title.items() for version in versions)


def learning(log: Any, number: int) -> str:
    return str(log.learnings.note("t", f"it rained {number}").id)


# Tasks


def paused(log: Any, number: int) -> str:
    task_id = str(log.tasks.add(RUN, f"paused {number}").id)
    log.tasks.pause(task_id, reason="lunch")
    return task_id


CASES: dict[str, Case] = {
    "approvals.use, one grant of six": Case(
        lambda log, number: asked(log, number, uses=6),
        [use] * 6,
        lambda log, given, outcomes: check_uses(log, given, outcomes, 6),
    ),
    "approvals.use, one grant of one": Case(asked, [use] * 4, lambda log, given, outcomes: check_uses(log, given, outcomes, 1)),
    "approvals.use_for, one grant of two": Case(
        lambda log, number: asked(log, number, uses=2),
        [lambda log, given: log.db.write(lambda: log.approvals.use_for(given, "deploy"))] * 4,
        lambda log, given, outcomes: check_uses(log, given, outcomes, 2),
    ),
    "runs.finish in two ways": Case(started, [finish_as("completed", "all"), finish_as("failed", "none")], check_ended_once),
    "runs.finish and criteria.record": Case(
        started,
        [lambda log, run_id: log.runs.finish(run_id), lambda log, run_id: log.criteria.record(run_id, ["Tests pass"])],
        check_criterion_or_end,
    ),
    "runs.finish and criteria.update": Case(
        with_met_criterion,
        [
            lambda log, run_id: log.runs.finish(run_id),
            lambda log, run_id: log.criteria.update(run_id, "Tests pass", status="failed"),
        ],
        check_criterion_or_end,
    ),
    "runs.finish and criteria.observe": Case(
        with_met_criterion,
        [
            lambda log, run_id: log.runs.finish(run_id),
            lambda log, run_id: log.criteria.observe(run_id, commit="b" * 40),
        ],
        check_observed_or_ended,
    ),
    "runs.fork to one id": Case(lambda _log, number: f"fork_{number}", [fork_as] * 3, check_one_fork),
    "gates.retry and open": Case(
        closed_gate, [lambda log, name: log.gates.retry(name), lambda log, name: log.gates.open(name)] * 2, check_gate
    ),
    "gates.close of a new gate": Case(
        lambda _log, number: f"new gate {number}",
        [lambda log, name: log.gates.close(name, "quota", retry_seconds=1.0)] * 3,
        check_new_gate,
    ),
    "mends.begin in three runs": Case(feedback, [begin_in(0), begin_in(1), begin_in(2)], check_one_fix),
    "templates.save of two": Case(
        lambda _log, number: f"template {number}", [save_template("a"), save_template("b")] * 2, check_versions
    ),
}


# What only one of several can do: the others find it done, under an id, a key or a state that they share.
AT_ONCE: dict[str, tuple[Callable[[Any, int], Any], Callable[[Any, Any], Any]]] = {
    "runs.start": (lambda _log, n: f"started_{n}", lambda log, given: log.runs.start("x", run_id=given)),
    "tasks.add": (lambda _log, n: f"key {n}", lambda log, given: log.tasks.add(RUN, "x", key=given)),
    "groups.add": (lambda _log, n: f"G{n}", lambda log, given: log.groups.add(RUN, given)),
    "criteria.record": (lambda _log, n: f"It works {n}", lambda log, given: log.criteria.record(RUN, [given])[0]),
    "plans.record": (started, lambda log, given: log.plans.record(given, "do", "it", ["one"])),
    "schedules.add": (
        lambda _log, n: f"nightly {n}",
        lambda log, given: log.schedules.add(RUN, given, "every day 06:00", title="x"),
    ),
    "schedules.pause": (
        lambda log, n: log.schedules.add(RUN, f"hourly {n}", "every day 06:00", title="x").id,
        lambda log, given: log.schedules.pause(given, reason="no"),
    ),
    "states.save": (lambda _log, n: f"state{n}", lambda log, given: log.states.save(RUN, given, {"a": 1})),
    "states.checkpoint": (lambda _log, n: f"key {n}", lambda log, given: log.states.checkpoint(RUN, key=given)),
    "artifacts.add": (lambda _log, n: f"{n}.txt", lambda log, given: log.artifacts.add(RUN, "report", given, content="x")),
    "outputs.save": (lambda _log, n: f"key {n}", lambda log, given: log.outputs.save(RUN, "lint", {"a": 1}, key=given)),
    "context.save": (
        lambda _log, n: f"key {n}",
        lambda log, given: log.context.save(RUN, "research", "a.md", "developer", "x", consumers=["qa_expert"], key=given),
    ),
    "approvals.ask": (
        lambda _log, n: f"key {n}",
        lambda log, given: log.approvals.ask(RUN, "?", by="dev", about="x", key=given),
    ),
    "effects.intend": (
        lambda _log, n: f"key {n}",
        lambda log, given: log.effects.intend(RUN, "push", "git", key=given, actor="host:1"),
    ),
    "feedback.file": (lambda _log, n: f"key {n}", lambda log, given: log.feedback.file("ana", "slow", key=given)),
    "feedback.triage": (
        lambda log, n: log.feedback.file("ana", f"slow {n}").id,
        lambda log, given: log.feedback.triage(given, "doc"),
    ),
    "inbox.post": (lambda _log, n: f"key {n}", lambda log, given: log.inbox.post("ana", "hello", key=given)),
    "inbox.mark_seen": (lambda log, n: log.inbox.post("ana", f"hi {n}").id, lambda log, given: log.inbox.mark_seen(given)),
    "inbox.answer": (lambda log, n: log.inbox.post("ana", f"hi {n}").id, lambda log, given: log.inbox.answer(given, "yes")),
    "inbox.escalate": (lambda log, n: log.inbox.post("ana", f"hi {n}").id, lambda log, given: log.inbox.escalate(given)),
    "learnings.note": (lambda _log, n: f"key {n}", lambda log, given: log.learnings.note("t", "it rained", key=given)),
    "memory.add_topic": (lambda _log, n: f"birds_{n}", lambda log, given: log.memory.add_topic(given, "What flies")),
    "memory.remember": (
        lambda _log, n: f"key {n}",
        lambda log, given: log.memory.remember("task_outcomes", f"Herons fish alone {given}", key=given),
    ),
    "memory.retire": (
        lambda log, n: log.memory.adopt(f"old_{n}", "task_outcomes", f"Old {n}", created_at=log.clock.now()).id,
        lambda log, given: log.memory.retire(given),
    ),
    "strategies.adopt": (
        lambda _log, n: f"strategy {n}",
        lambda log, given: log.strategies.adopt(
            given, "p", "general", "Measure", created_at=log.clock.now(), last_seen_at=log.clock.now()
        ),
    ),
    "reservations.reserve": (
        lambda _log, n: f"key {n}",
        lambda log, given: log.reservations.reserve(log.clock.now() + timedelta(hours=1), tokens=1, run_id=RUN, key=given),
    ),
    "ledger.charge": (
        lambda _log, n: f"key {n}",
        lambda log, given: log.ledger.charge("m", input_tokens=1, run_id=RUN, key=given, enforce=False),
    ),
    "ci.record": (
        lambda _log, n: n,
        lambda log, given: log.ci.record("tests", "main", given, started_at=log.clock.now(), conclusion="success"),
    ),
    "gates.open": (closed_gate, lambda log, given: log.gates.open(given)),
    "approvals.withdraw": (open_question, lambda log, given: log.approvals.withdraw(given)),
    "templates.save": (lambda _log, n: f"template {n}", save_template("a")),
    "memory.adopt": (
        lambda _log, n: f"lesson_{n}",
        lambda log, given: log.memory.adopt(given, "task_outcomes", f"It went well {given}", created_at=log.clock.now()),
    ),
    "learnings.dismiss": (learning, lambda log, given: log.learnings.dismiss(given)),
    "learnings.promote": (learning, lambda log, given: log.learnings.promote(given, to="GAIA.md")),
    "tasks.resume": (paused, lambda log, given: log.tasks.resume(given)),
    "tasks.abandon": (paused, lambda log, given: log.tasks.abandon(given, reason="no")),
    "tasks.depend": (
        lambda log, n: [log.tasks.add(RUN, f"{part} {n}").id for part in "ab"],
        lambda log, given: log.tasks.depend(given[0], given[1]),
    ),
}


# What each of several does for itself: each gets a number of its own.
APART: dict[str, tuple[str, Callable[[Any, int, int], Any]]] = {
    "approvals.ask": ("number", lambda log, n, place: log.approvals.ask(RUN, "?", by="dev", about=f"{n} {place}")),
    "artifacts.add": ("number", lambda log, n, place: log.artifacts.add(RUN, "log", f"{n}-{place}.log", content="x")),
    "outputs.save": ("iteration", lambda log, n, place: log.outputs.save(RUN, f"scan{n}", {"by": place})),
    "states.save": ("version", lambda log, n, place: log.states.save(RUN, f"apart{n}", {"by": place})),
    "context.save": (
        "number",
        lambda log, n, place: log.context.save(RUN, "research", f"{n}-{place}.md", "developer", "x", consumers=["qa_expert"]),
    ),
    "groups.add": ("number", lambda log, n, place: log.groups.add(RUN, f"apart{n}-{place}")),
    "criteria.record": ("number", lambda log, n, place: log.criteria.record(RUN, [f"Apart {n} {place}"])[0]),
}
# What counts each of several calls: how to count, after as many calls.
COUNTED: dict[str, tuple[Callable[[Any, int], Any], Callable[[Any, Any], Any], Callable[[Any, Any], int]]] = {
    "feedback.add_note": (
        lambda log, n: log.feedback.file("ana", f"It is slow {n}").id,
        lambda log, given: log.feedback.add_note(given, f"by {threading.get_ident()}"),
        lambda log, given: len({note["text"] for note in log.feedback.get(given).notes}),
    ),
    "groups.count_revision": (
        lambda log, n: log.groups.add(RUN, f"counted{n}").group_id,
        lambda log, given: log.groups.count_revision(RUN, given),
        lambda log, given: log.groups.get(RUN, given).revision_count,
    ),
    "memory.remember": (
        lambda _log, n: f"Ospreys dive for fish {n}",
        lambda log, given: log.memory.remember("task_outcomes", given),
        lambda log, given: next(lesson.sightings for lesson in log.memory.find() if lesson.body == given),
    ),
    "patterns.record": (
        lambda _log, n: f"shop{n}",
        lambda log, given: log.patterns.record(given, "KeyError", "no 'key'", "add it"),
        lambda log, given: log.patterns.find(given, min_confidence=0)[0].occurrences,
    ),
    "strategies.record": (
        lambda _log, n: f"shop{n}",
        lambda log, given: log.strategies.record(given, "general", "Read the failing test before the code"),
        lambda log, given: log.strategies.find(given)[0].helpfulness,
    ),
}
# What only the first of several may do: the others are refused.
REFUSED: dict[str, tuple[Callable[[Any, int], Any], Callable[[Any, Any, int], Any]]] = {
    "approvals.decide": (
        open_question,
        lambda log, given, place: log.approvals.decide(given, ("granted", "denied")[place % 2], by=f"ana{place}"),
    ),
    "states.save from one version": (
        lambda log, n: log.states.save(RUN, f"shared{n}", {"by": "the first"}).name,
        lambda log, given, place: log.states.save(RUN, given, {"by": place}, expected_version=1),
    ),
    "context.save in the place of one": (
        lambda log, n: log.context.save(RUN, "research", f"old{n}.md", "developer", "x", consumers=["qa_expert"]).id,
        lambda log, given, place: log.context.save(
            RUN, "research", f"{place}.md", "developer", "x", consumers=["qa_expert"], supersedes=given
        ),
    ),
}


def by_place(call: Callable[[Any, Any, int], Any]) -> list[Callable[[Any, Any], Any]]:
    return [lambda log, given, place=place: call(log, given, place) for place in range(3)]  # type: ignore[misc]


def check_apart(attribute: str) -> Callable[[Any, Any, list[Outcome]], None]:
    def check(_log: Any, _given: Any, outcomes: list[Outcome]) -> None:
        assert len({getattr(result, attribute) for result in results(outcomes)}) == len(outcomes), outcomes

    return check


def check_counted(count: Callable[[Any, Any], int]) -> Callable[[Any, Any, list[Outcome]], None]:
    def check(log: Any, given: Any, outcomes: list[Outcome]) -> None:
        results(outcomes)
        assert count(log, given) == len(outcomes)

    return check


def one_is_done(_log: Any, _given: Any, outcomes: list[Outcome]) -> None:
    assert sorted(kind for kind, _ in outcomes) == ["conflict"] * (len(outcomes) - 1) + ["done"], outcomes


CASES |= {
    f"{name}, each its own": Case(lambda _log, number: number, by_place(call), check_apart(attribute))
    for name, (attribute, call) in APART.items()
}
CASES |= {
    f"{name}, all counted": Case(prepare, [call] * 3, check_counted(count)) for name, (prepare, call, count) in COUNTED.items()
}
CASES |= {f"{name}, one is done": Case(prepare, by_place(call), one_is_done) for name, (prepare, call) in REFUSED.items()}
CASES |= {
    f"{name}, the same at once": Case(prepare, [call] * 3, lambda _log, _given, outcomes: one_is_new(outcomes))
    for name, (prepare, call) in AT_ONCE.items()
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_verbs_that_meet_answer_as_if_one_came_after_another(log: Decklog, run_id: str, name: str) -> None:
    assert run_id == RUN
    case = CASES[name]
    for number in range(ROUNDS):
        given = case.prepare(log, number)
        case.check(log, given, meet(log, case.calls, given))
    assert log.journal.verify().ok


def test_an_ended_run_gets_no_new_criteria(log: Decklog, run_id: str) -> None:
    log.criteria.record(run_id, [{"criterion": "Nice", "required": False}])
    log.runs.finish(run_id)
    with pytest.raises(DecklogError, match="is completed; its criteria can't change any more"):
        log.criteria.record(run_id, ["Tests pass"])
    with pytest.raises(DecklogError, match="is completed; its criteria can't change any more"):
        log.criteria.update(run_id, "Nice", required=True)
    assert log.criteria.record(run_id, [{"criterion": "Nice", "required": False}])[0].already
    log.runs.update(run_id, status="active")  # type: ignore[arg-type]
    assert not log.criteria.record(run_id, ["Tests pass"])[0].already


def test_a_grant_is_not_used_after_its_time(log: Decklog, run_id: str, clock: ManualClock) -> None:
    asked = log.approvals.ask(run_id, "May I?", by="dev", about="x")
    log.approvals.decide(asked.id, "granted", by="ana", uses=2, valid_seconds=300)  # type: ignore[arg-type]
    assert log.approvals.use(run_id, compute_digest("x")) is not None
    clock.advance(seconds=timedelta(minutes=6).total_seconds())
    assert log.approvals.use(run_id, compute_digest("x")) is None
