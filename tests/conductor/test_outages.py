"""Quota, login, overload and a full disk cost no attempt; the same trouble again climbs a ladder that ends with a person."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, ManualClock
from decklog.conductor import settings
from decklog.conductor.agents.description import Description, describe
from decklog.conductor.agents.session import SessionOutcome
from decklog.conductor.agents.stream import parse_reset_time
from decklog.conductor.context import RunContext
from decklog.conductor.escalation import digest_findings, escalate
from decklog.conductor.git.repository import Repository
from decklog.conductor.outages import RETRY_SECONDS, Outages, gate_name, is_logged_in
from tests.conductor.plans import SETTINGS, STRONG, TRIPLE, Work, landed_titles, settle, states, task_of, work_item

LIMITS = """
stream = "jsonl"
account = "main"
events = [{ when = { "/type" = "limit" }, as = "error", take = { text = "/text" } }]
errors = [{ text = "429", class = "quota" }, { text = "401", class = "login" }]
"""
NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
BAD = ["replace", "calc.py", "return a + b", "return a - b"]
MENDED = ["replace", "calc.py", "return a - b", "return b + a"]


# When a limit ends

STATED: dict[str, tuple[object, float | None]] = {
    "seconds since 1970": ("limit reached|1794831000", 13 * 60 * 60 / 2 - 1400),
    "moment": ("resets at 2026-11-16T13:00:00Z", 3600),
    "moment elsewhere": ("resets at 2026-11-16T13:00:00+01:00", None),
    "span": ("try again in 2 hours 30 minutes", 9000),
    "short span": ("Please try again in 1.5s.", 1.5),
    "number": (90, 90),
    "past": ("resets at 2026-11-15T12:00:00Z", None),
    "nonsense": ("try again in 9000 days", None),
    "no date": ("resets at 2026-99-99T00:00", None),
    "nothing": ("429 too many requests", None),
}


@pytest.mark.parametrize("kind", STATED)
def test_the_end_of_a_limit_is_read_from_what_was_said(kind: str) -> None:
    value, seconds = STATED[kind]
    found = parse_reset_time(value, NOW)
    if kind == "seconds since 1970":
        assert found == datetime.fromtimestamp(1794831000, UTC)
    else:
        assert found == (None if seconds is None else NOW + timedelta(seconds=seconds))


# Gates of accounts


def agent(**given: Any) -> Description:
    return describe("fake", {"command": ["fake"], "account": "main", **given})


@pytest.fixture
def context(log: Decklog, run_id: str, repository: Repository) -> RunContext:
    configuration = settings.parse(SETTINGS.encode())
    return RunContext(log=log, run_id=run_id, repository=repository, configuration=configuration, person=repository.person())


def met(context: RunContext, kind: str, who: Description, **given: Any) -> None:
    Outages(context).report_outage(who, SessionOutcome(error_class=kind, **given), context.log.clock.now())


def test_four_who_meet_a_quota_close_one_gate_and_tell_it_once(context: RunContext, clock: ManualClock) -> None:
    began = clock.now()
    clock.advance(seconds=1)
    who, other = agent(), agent(account="other")
    for _ in range(4):
        Outages(context).report_outage(who, SessionOutcome(error_class="quota", until=clock.now() + timedelta(minutes=5)), began)
    outages = Outages(context)
    assert (outages.are_all_closed([who]), outages.are_all_closed([who, other])) == (True, False)
    assert (outages.choose([who]), outages.choose([who, other])) == (None, other)
    assert len(context.log.inbox.find()) == 1
    clock.advance(minutes=5)
    assert (outages.choose([who]), outages.choose([who])) == (who, None), "one tries, the others wait for what it finds"
    outages.report_answer(who)
    assert [outages.choose([who]) for _ in range(2)] == [who, who]


def test_a_lost_login_is_tried_by_its_own_program_and_by_no_agent(
    context: RunContext, clock: ManualClock, tmp_path: Path
) -> None:
    who = agent(probe=["test", "-e", str(tmp_path / "logged-in")])
    met(context, "login", who)
    outages = Outages(context)
    for is_in in (False, True):
        assert outages.choose([who]) is None
        if is_in:
            (tmp_path / "logged-in").touch()
        clock.advance(seconds=4 * RETRY_SECONDS["login"])
        assert outages.choose([who]) is None, "an agent is not what finds it out"
        outages.probe([who])
    assert outages.choose([who]) == who
    (message,) = context.log.inbox.find()
    assert "no longer logged in" in message.body


def test_a_lost_login_that_no_program_can_see_waits_for_a_person(context: RunContext, clock: ManualClock) -> None:
    met(context, "login", agent(), until=clock.now() + timedelta(seconds=1))
    outages = Outages(context)
    clock.advance(days=3)
    assert (outages.needs_person([agent()], outages.closed_gates()), outages.choose([agent()])) == (True, None)
    outages.allow_retry([agent()])
    clock.advance(seconds=1)
    assert outages.choose([agent()]) is not None
    assert context.log.gates.get(gate_name(agent())).state == "closed", "until it has been answered"


def test_a_login_that_is_refused_though_its_program_reports_it_waits_for_a_person(
    context: RunContext, clock: ManualClock
) -> None:
    who = agent(probe=["true"])
    met(context, "login", who)
    outages = Outages(context)
    clock.advance(days=3)
    outages.probe([who])
    assert (outages.needs_person([who], outages.closed_gates()), outages.choose([who])) == (True, None)
    assert len(context.log.inbox.find()) == 1
    outages.allow_retry([who])
    outages.probe([who])
    assert outages.choose([who]) == who


def test_a_variable_that_has_a_login_is_one_that_no_probe_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    who = agent(probe=["false"], pass_env=["A_KEY"], login_env=["A_KEY"])
    assert not is_logged_in(who)
    monkeypatch.setenv("A_KEY", "x")
    assert is_logged_in(who)


def test_a_full_disk_is_seen_before_anything_is_begun(context: RunContext) -> None:
    assert not Outages(context).is_disk_full()
    full = settings.parse(SETTINGS.replace("agents = 2", "agents = 2\nfree_mb = 1000000000").encode())
    there = RunContext(
        log=context.log, run_id=context.run_id, repository=context.repository, configuration=full, person=context.person
    )
    assert Outages(there).is_disk_full()


def limit(text: str, marker: Path) -> list[Any]:
    return ["once", str(marker), [["print", {"type": "limit", "text": text}], ["exit", 1]]]


@pytest.mark.slow
def test_what_meets_a_quota_or_a_lost_login_uses_no_attempt_and_lands_later(
    sqlite_target: str, checked: Path, tmp_path: Path
) -> None:
    settle(checked, SETTINGS.replace('commits = "conductor"', 'commits = "conductor"' + LIMITS))
    quota, login = limit("429: try again in 1 seconds", tmp_path / "quota"), limit("401", tmp_path / "login")
    # By a clock that goes on.
    with Decklog.open(sqlite_target) as log:
        work = Work(log, checked, work_item("it", quota, login, TRIPLE))
        context = work.run()
        assert states(context)["it.w1"] == "pending"
        assert task_of(context, "it.w1").failures == 0
        assert [gate.reason for gate in log.gates.find()] == ["login"]
        assert sorted(message.severity for message in log.inbox.find()) == ["info", "question"]
        later, first = log.effects.find(context.run_id, tool="conductor.spawn")[:2]
        waited = abs((later.intended_at - first.intended_at).total_seconds())
        assert 1 <= waited < 1 + 5, "tried within five seconds after its time"
        # A person has logged in and starts it by hand.
        assert landed_titles(work.run()) == ["Item it"]
        assert [gate.state for gate in log.gates.find()] == ["open"]
        assert task_of(context, "it.w1").failures == 0


# The ladder


def test_the_same_trouble_twice_is_a_rung_and_other_trouble_is_none() -> None:
    inputs: dict[str, object] = {}
    seen = []
    for trouble in ("a", "b", "b", "b", "c", "c"):
        climbed = escalate(inputs, trouble, 2)
        seen.append(climbed and climbed.get("rung", inputs.get("rung", 0)))
        inputs = {**inputs, **(climbed or {})}
    assert seen == [0, 0, 1, 1, 1, None]
    finding = {"check": "tests", "kind": "fail", "tests": ["a"], "output": "took 1 s"}
    digest = digest_findings([finding])
    assert digest == digest_findings([{**finding, "output": "took 2 s"}]) != digest_findings([{**finding, "tests": ["b"]}])


@pytest.mark.slow
def test_the_same_trouble_goes_to_the_next_agent_and_then_once_to_a_person(log: Decklog, checked: Path) -> None:
    settle(checked, SETTINGS.replace("rounds = 2", "rounds = 3").replace("agents = 2", "agents = 3") + STRONG)
    lazy = work_item("lazy", strong=[["write", "lazy.txt", "1\n"]])
    wrong = work_item("wrong", BAD, again=[["append", "notes.txt", "x\n"]], strong=[MENDED])
    nobody = work_item("nobody", strong=[])
    work = Work(log, checked, lazy, wrong, nobody)
    context = work.run()
    assert sorted(landed_titles(context)) == ["Item lazy", "Item wrong"]
    assert (task_of(context, "lazy.w1").attempts, task_of(context, "wrong.w3").state) == (3, "done")
    stuck = task_of(context, "nobody.w1")
    assert (stuck.state, stuck.blocker, stuck.attempts) == ("blocked", "no-change", 4)
    (question,) = log.approvals.find(context.run_id)
    assert "nobody is stuck: no-change" in str(question.question)
    log.approvals.decide(question.id, "granted", by="ana")  # type: ignore[arg-type]
    work.run()
    assert task_of(context, "nobody.w1").attempts == 8
    again, _ = log.approvals.find(context.run_id)
    log.approvals.decide(again.id, "denied", by="ana", rationale="drop it")  # type: ignore[arg-type]
    work.run()
    assert states(context)["nobody.w1"] == "abandoned"
