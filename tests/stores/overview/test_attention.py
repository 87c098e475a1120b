"""What needs attention: each kind of trouble with its count, its newest case and the cause, until somebody settled it."""

from decklog import AttentionKind, Decklog, ManualClock, WaitingGroup
from tests.stores.claiming import claimed

TREE = {"tree": "7c" * 20, "definition": "d" * 64, "environment": "e" * 64}
CHANGE = {"base": "1f" * 20, "head": "9a" * 20, "tree": "7c" * 20, "patch": "5d" * 20, "settings": "e0" * 32}


def kinds(log: Decklog) -> dict[AttentionKind, int]:
    return {group.kind: group.count for group in log.overview.attention()}


def block(log: Decklog, run_id: str, title: str, why: str) -> str:
    task = log.tasks.add(run_id, title)
    claim = claimed(log, run_id, worker="dev-1", task_id=task.id)
    claim.block(why)
    return task.id


def test_blocked_tasks_are_counted_with_the_newest_cause(log: Decklog, run_id: str, clock: ManualClock) -> None:
    block(log, run_id, "Write the manual", "no style guide")
    clock.advance(minutes=1)
    newest = block(log, run_id, "Release it", "no key")
    (group,) = log.overview.attention()
    assert (group.kind, group.count, group.id, group.title, group.cause) == (
        AttentionKind.BLOCKED_TASK,
        2,
        newest,
        "Release it",
        "no key",
    )
    log.runs.finish(run_id)
    assert log.overview.attention() == []


def test_failed_attempt_needs_attention_until_the_task_is_done(log: Decklog, run_id: str) -> None:
    task = log.tasks.add(run_id, "Change the lexer", max_attempts=2)
    first = claimed(log, run_id, worker="dev-1")
    first.fail("tests fail")
    assert kinds(log) == {AttentionKind.FAILED_ATTEMPT: 1}
    second = claimed(log, run_id, worker="dev-2")
    (group,) = log.overview.attention()
    assert (group.kind, group.id) == (AttentionKind.FAILED_ATTEMPT, task.id)
    second.finish("fixed")
    assert log.overview.attention() == []


def test_task_that_used_up_its_attempts_counts_once(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "Change the lexer", max_attempts=1)
    claim = claimed(log, run_id, worker="dev-1")
    claim.fail("tests fail")
    assert kinds(log) == {AttentionKind.FAILED_ATTEMPT: 1}


def test_failed_check_needs_attention_until_a_newer_one_passes(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.verdicts.record(run_id, "tests", "fail", findings=[{"kind": "test", "text": "test_x fails"}], **TREE)  # type: ignore[arg-type]
    (group,) = log.overview.attention()
    assert (group.kind, group.title, group.cause) == (AttentionKind.FAILED_CHECK, "tests", "test_x fails")
    clock.advance(minutes=1)
    log.verdicts.record(run_id, "tests", "pass", **{**TREE, "tree": "8d" * 20})  # type: ignore[arg-type]
    assert log.overview.attention() == []


def test_blocked_review_needs_attention_until_a_newer_one_passes(log: Decklog, run_id: str, clock: ManualClock) -> None:
    found = [{"pass": 2, "severity": "blocking", "kind": "behaviour", "text": "It says line 0.", "file": "a.py", "line": 1}]
    log.reviews.record(run_id, "block", findings=found, **CHANGE)  # type: ignore[arg-type]
    (group,) = log.overview.attention()
    assert (group.kind, group.cause) == (AttentionKind.BLOCKED_REVIEW, "It says line 0.")
    clock.advance(minutes=1)
    log.reviews.record(run_id, "request-changes", **{**CHANGE, "head": "9b" * 20})  # type: ignore[arg-type]
    assert log.overview.attention() == []


def test_severe_feedback_needs_attention_until_triage_and_mild_feedback_does_not(log: Decklog) -> None:
    log.feedback.file("mo", "a typo", severity="low")  # type: ignore[arg-type]
    assert log.overview.attention() == []
    severe = log.feedback.file("mo", "it deletes files", severity="critical")  # type: ignore[arg-type]
    (group,) = log.overview.attention()
    assert (group.kind, group.id, group.title) == (AttentionKind.FEEDBACK, severe.id, "it deletes files")


def test_failed_run_needs_attention_for_a_day(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.runs.finish(run_id, status="failed", summary="The build broke")  # type: ignore[arg-type]
    (group,) = log.overview.attention()
    assert (group.kind, group.cause) == (AttentionKind.FAILED_RUN, "The build broke")
    clock.advance(hours=25)
    assert log.overview.attention() == []


def test_agents_are_counted_once_and_only_by_live_leases_in_runs_that_run(log: Decklog, clock: ManualClock) -> None:
    for run_id in ("stalled", "one", "two"):
        log.runs.start("goal", run_id=run_id)
        log.tasks.add_many(run_id, [{"title": "a"}, {"title": "b"}])
    # One lease of this run lapses, so that it counts as quiet; the other is still live.
    log.tasks.claim("stalled", worker="old", lease_seconds=60)
    log.tasks.claim("stalled", worker="alone", lease_seconds=7200)
    clock.advance(minutes=5)
    for run_id in ("one", "two"):
        log.tasks.claim(run_id, worker="ada", lease_seconds=3600)
    log.tasks.claim("two", worker="bo", lease_seconds=3600)
    summary = log.overview.now()
    assert summary.agents == 2
    assert summary.sentence == "Nothing waits for you. 2 agents work on 2 runs; 1 has stalled."


def test_waiting_lists_decisions_by_deadline_then_blocked_then_stalled(log: Decklog, clock: ManualClock) -> None:
    for run_id in ("asks", "stuck", "silent"):
        log.runs.start("goal", run_id=run_id)
    log.tasks.add("silent", "one")
    log.tasks.claim("silent", worker="dev-3", lease_seconds=60)
    clock.advance(hours=1)
    blocked = block(log, "stuck", "Release it", "no key")
    later = log.approvals.ask("asks", "Push?", by="a", about="push")
    sooner = log.approvals.ask("asks", "Merge?", by="a", about="merge", expires_in_seconds=600)
    items = log.overview.waiting()
    assert [(item.kind.group, item.id) for item in items] == [
        (WaitingGroup.DECISIONS, sooner.id),
        (WaitingGroup.DECISIONS, later.id),
        (WaitingGroup.BLOCKED, blocked),
        (WaitingGroup.STALLED, "silent"),
    ]
    assert log.overview.decisions() == 2
    paged = log.overview.waiting(limit=2)
    assert [item.id for item in log.overview.waiting(after=paged.next)] == [blocked, "silent"]
