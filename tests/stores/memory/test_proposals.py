"""Lessons are proposed from what happened, with the entries that show them; what one agent alone said is no lesson."""

import pytest

from decklog import CheckOutcome, Conflict, Decklog, ManualClock, Proposal, ReviewVerdict

BLOCKER = "psycopg.OperationalError: connection to server at 10.0.0.7 port 5432 refused"
FINDING = "tests/test_parser.py::test_commas fails: expected a comma behind the last element"


def _task(log: Decklog, title: str = "Parse commas", *, run_id: str = "commas", **more: object) -> str:
    log.runs.start("read lists", run_id=run_id) if not log.runs.find() else None
    return log.tasks.add(run_id, title, **more).id  # type: ignore[arg-type]


def _fail(log: Decklog, task_id: str, blocker: str, *, worker: str = "w1") -> None:
    claim = log.tasks.claim(worker=worker, task_id=task_id)
    assert claim is not None
    claim.fail("could not go on", blocker=blocker)


def _finish(log: Decklog, task_id: str, summary: str, *, worker: str = "w1") -> None:
    claim = log.tasks.claim(worker=worker, task_id=task_id)
    assert claim is not None
    claim.finish(summary)


def _check(log: Decklog, task_id: str, outcome: CheckOutcome, *, tree: str, finding: str | None = None) -> None:
    said = {"tree": tree, "definition": "pytest -q", "environment": "py311", "task_id": task_id}
    log.verdicts.record("commas", "tests", outcome, findings=[finding] if finding else [], **said)  # type: ignore[arg-type]


def _red_then_green(log: Decklog, task_id: str, finding: str = FINDING) -> None:
    _check(log, task_id, CheckOutcome.FAIL, tree=f"{task_id}-a", finding=finding)
    _check(log, task_id, CheckOutcome.PASS, tree=f"{task_id}-b")


def _only(log: Decklog, **narrowed: object) -> Proposal:
    [proposal] = log.memory.proposals(**narrowed)  # type: ignore[arg-type]
    return proposal


def test_a_check_that_was_red_and_then_green_is_proposed_with_both_entries(log: Decklog) -> None:
    _red_then_green(log, _task(log))
    found = _only(log)
    assert (found.kind, found.confidence, found.because) == ("check", 70, "the same check was red, then green")
    assert FINDING in found.body
    red, green = (log.journal.get(*_place(ref)) for ref in found.refs)
    assert [entry.payload["outcome"] for entry in (red, green)] == ["fail", "pass"]  # type: ignore[index]
    assert log.memory.find() == [], "a proposal is no lesson yet"


def _place(ref: str) -> tuple[str, int]:
    stream, _, seq = ref.rpartition(":")
    return stream, int(seq)


def test_what_checks_saw_twice_is_learned_by_itself_and_found_by_recall(log: Decklog) -> None:
    for title in ("Parse commas", "Parse semicolons"):
        _red_then_green(log, _task(log, title))
    assert log.memory.proposals() == []
    accepted = _only(log, state="accepted")
    assert (accepted.confidence, accepted.decided_by) == (90, "proof")
    [hit] = log.memory.peek("expected a comma behind the last element")
    assert (hit.id, hit.source_kind, hit.confidence) == (accepted.lesson_id, "proposal", 90)
    assert hit.evidence[0]["refs"] == accepted.refs
    assert log.journal.verify().ok


def test_a_third_sighting_is_counted_on_the_lesson(log: Decklog) -> None:
    for title in ("Parse commas", "Parse semicolons"):
        _red_then_green(log, _task(log, title))
    log.memory.propose()
    _red_then_green(log, _task(log, "Parse colons"), FINDING.replace("/test_parser", "/unit/test_parser"))
    log.memory.propose()
    [lesson] = log.memory.find()
    assert (lesson.sightings, len(log.memory.evidence(lesson.id))) == (2, 2)


def test_a_check_that_was_never_red_or_red_in_other_work_shows_nothing(log: Decklog) -> None:
    one, other = _task(log, "Parse commas"), _task(log, "Parse semicolons")
    _check(log, one, CheckOutcome.FAIL, tree="a", finding=FINDING)
    _check(log, other, CheckOutcome.PASS, tree="b")
    assert log.memory.proposals() == []


SECRET_FOUND = {
    "pass": 4,
    "severity": "blocking",
    "kind": "secret",
    "text": "a value called api_key stands in the source of the client",
    "remedy": "read it from the environment",
}
OPINION = {
    "pass": 6,
    "severity": "significant",
    "kind": "naming",
    "text": "the helper module mixes parsing and printing of lists",
    "remedy": "",
}


def _review(
    log: Decklog, verdict: str, *, tree: str, findings: list[object], base: str = "c0ffee", task_id: str | None = None
) -> None:
    passes: list[object] = [{"pass": 4, "by": []}, {"pass": 6, "by": ["reviewer"]}]
    bound = {"base": base, "head": f"h-{tree}", "tree": tree, "patch": f"p-{tree}", "settings": "s1"}
    run = log.runs.start("review")
    log.reviews.record(run.id, ReviewVerdict(verdict), **bound, passes=passes, findings=findings, task_id=task_id)


def test_what_the_gate_turned_down_before_it_let_the_change_pass_is_proposed(log: Decklog) -> None:
    _review(log, "block", tree="a", findings=[SECRET_FOUND, OPINION])
    assert log.memory.proposals() == [], "nothing shows yet that it was mended"
    _review(log, "pass", tree="b", findings=[])
    secret, opinion = log.memory.proposals(kind="review")
    assert (secret.confidence, secret.because) == (70, "the same check was red, then green")
    assert secret.body == (
        "The review turns this down (secret): a value called api_key stands in the source of the client. "
        "What mends it: read it from the environment"
    )
    assert (opinion.confidence, opinion.because) == (60, "a check passed afterwards")
    assert [log.journal.get(*_place(ref)).payload["verdict"] for ref in secret.refs] == ["block", "pass"]  # type: ignore[index]


def test_what_the_gate_turned_down_in_two_changes_is_learned_and_a_models_opinion_is_not(log: Decklog) -> None:
    for base in ("c0ffee", "decade"):
        _review(log, "request-changes", tree=f"{base}-a", base=base, findings=[SECRET_FOUND, OPINION])
        _review(log, "pass", tree=f"{base}-b", base=base, findings=[])
    assert "api_key" in _only(log, state="accepted").body
    assert "mixes parsing" in _only(log, kind="review").body


def test_a_review_of_another_change_or_of_the_same_tree_shows_nothing(log: Decklog) -> None:
    task_id = _task(log)
    _review(log, "block", tree="a", findings=[SECRET_FOUND])
    _review(log, "pass", tree="a", findings=[])
    _review(log, "pass", tree="b", base="decade", findings=[])
    _review(log, "pass", tree="c", findings=[], task_id=task_id)
    assert log.memory.proposals() == []


def test_the_rounds_of_an_item_are_one_piece_of_work(log: Decklog) -> None:
    rounds = [_task(log, f"Round {number}", inputs={"item": "lexer"}) for number in (1, 2)]
    _check(log, rounds[0], CheckOutcome.FAIL, tree="a", finding=FINDING)
    _check(log, rounds[1], CheckOutcome.PASS, tree="b")
    assert _only(log).evidence[0]["work"] == "commas/lexer"


def test_what_one_worker_says_is_not_proposed_however_often(log: Decklog) -> None:
    for title in ("Parse commas", "Parse semicolons"):
        task = _task(log, title)
        _fail(log, task, f"{BLOCKER} ({title})")
        _finish(log, task, "Started the database server before the tests")
    assert log.memory.proposals(kind="attempt") == []


def test_what_two_workers_found_independently_is_proposed_and_never_learned_by_itself(log: Decklog) -> None:
    for number, title in enumerate(("Parse commas", "Parse semicolons")):
        task = _task(log, title)
        _fail(log, task, BLOCKER, worker=f"w{number}")
        _finish(log, task, "Started the database server before the tests", worker=f"w{number}")
    found = _only(log, kind="attempt")
    assert found.confidence == 50
    assert "What got past it: Started the database server" in found.body
    assert log.memory.find() == []


def test_an_attempt_that_succeeded_is_proposed_at_once_where_a_check_passed(log: Decklog) -> None:
    task = _task(log)
    _fail(log, task, BLOCKER)
    _check(log, task, CheckOutcome.PASS, tree="b")
    _finish(log, task, "Started the database server before the tests")
    found = _only(log)
    assert (found.kind, found.confidence, len(found.refs)) == ("attempt", 60, 3)


def test_a_blocker_is_proposed_once_it_has_stopped_two_tasks(log: Decklog) -> None:
    _fail(log, _task(log, "Parse commas"), BLOCKER)
    assert log.memory.proposals() == []
    _fail(log, _task(log, "Parse semicolons"), BLOCKER.replace("10.0.0.7", "10.0.0.8"))
    found = _only(log)
    assert (found.kind, found.confidence) == ("blocker", 50)
    assert found.because == "work was stopped by it; seen in 2 items of work"


def test_a_review_that_turns_something_down_is_proposed_in_its_own_words(log: Decklog) -> None:
    task = _task(log)
    asked = log.approvals.ask("commas", "Merge the parser?", by="w1", about="diff", task_id=task)
    log.approvals.decide(asked.id, "denied", by="ana", rationale="The public function has no test for an empty list")
    found = _only(log)
    assert (found.kind, found.topic) == ("review", "review_patterns")
    assert "no test for an empty list" in found.body
    unclear = log.approvals.ask("commas", "And now?", by="w1", about="diff2")
    log.approvals.decide(unclear.id, "denied", by="ana", rationale="no")
    assert len(log.memory.proposals()) == 1


def test_a_persons_correction_is_proposed_and_small_talk_is_not(log: Decklog) -> None:
    log.inbox.post("ana", "Always run the linter before you ask for a review", severity="info")
    log.inbox.post("ana", "Thanks, the parser looks very good today", severity="info")
    log.inbox.post("ana", "Should we use tabs in the parser module?", severity="question")
    found = _only(log)
    assert (found.kind, found.topic, found.confidence) == ("correction", "em_preferences", 50)
    log.inbox.post("bo", "always run the linter before you ask for a review!", severity="info")
    assert _only(log).confidence == 70, "the same from another is one proposal, and surer"


def test_a_fix_is_proposed_once_a_test_holds_it(log: Decklog) -> None:
    filed = log.feedback.file("ana", "The export loses the last row of a table")
    log.feedback.triage(filed.id, "tool", root_cause="The writer was closed before its buffer was flushed")
    log.feedback.start_fix(filed.id)
    log.feedback.open_pr(filed.id, "https://example.test/pr/7")
    assert log.memory.proposals() == []
    log.feedback.verify(filed.id, regression_test_path="tests/test_export.py")
    found = _only(log)
    assert (found.kind, found.confidence) == ("fix", 65)
    assert log.memory.accept(found.id, by="ana").payload["regression_test_path"] == "tests/test_export.py"


def test_an_accepted_proposal_becomes_a_lesson_once_in_whatever_words(log: Decklog) -> None:
    _red_then_green(log, _task(log))
    found = _only(log)
    lesson = log.memory.accept(found.id, body="Lists end with a comma behind the last element", by="ana")
    assert (lesson.body, lesson.confidence, lesson.already) == ("Lists end with a comma behind the last element", 70, False)
    assert log.memory.accept(found.id).already
    [seen] = log.memory.evidence(lesson.id)
    assert (seen.refs, seen.source_id) == (found.refs, found.id)
    with pytest.raises(Conflict, match=lesson.id):
        log.memory.dismiss(found.id)


def test_what_was_dismissed_is_not_proposed_again(log: Decklog) -> None:
    _red_then_green(log, _task(log))
    dismissed = log.memory.dismiss(_only(log).id, by="ana", reason="the test is gone")
    assert (dismissed.state, dismissed.reason) == ("dismissed", "the test is gone")
    _red_then_green(log, _task(log, "Parse semicolons"))
    assert log.memory.proposals() == []
    assert log.memory.find() == []
    assert log.memory.dismiss(dismissed.id).already
    # Who dismissed it too soon can still take it up.
    assert not log.memory.accept(dismissed.id).already


def test_what_the_memory_says_already_is_not_proposed(log: Decklog) -> None:
    known = log.memory.remember("em_preferences", "Always run the linter before you ask for a review.")
    log.inbox.post("ana", "Always run the linter before you ask for a review", severity="info")
    assert log.memory.proposals() == []
    assert _only(log, state="known").lesson_id == known.id


def test_looking_again_finds_nothing_new_even_where_the_marks_are_lost(log: Decklog, clock: ManualClock) -> None:
    _red_then_green(log, _task(log))
    first = _only(log)
    assert log.memory.propose() == []
    with log.transaction():
        log.db.count("delete from proposal_marks", {})
    assert log.memory.propose() == []
    assert _only(log) == first
    assert log.journal.verify().ok


def test_one_run_can_be_looked_through_alone(log: Decklog) -> None:
    _red_then_green(log, _task(log))
    log.runs.start("another", run_id="other")
    assert log.memory.propose("other") == []
    assert [one.kind for one in log.memory.propose("commas")] == ["check"]


def test_a_mark_that_stands_at_no_entry_is_named_and_made_anew(log: Decklog) -> None:
    _red_then_green(log, _task(log))
    log.memory.propose()
    with log.transaction():
        log.db.count("update proposal_marks set hash = 'another' where stream = 'commas'", {})
    assert [problem.table for problem in log.journal.verify().problems] == ["proposal_marks"]
    log.memory.propose()
    assert log.journal.verify().ok
    assert len(_only(log).evidence) == 1
