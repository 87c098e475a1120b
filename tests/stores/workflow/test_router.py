"""What the router answers: the workflow's own table, the five rules, and the turns that are easy to get wrong."""

from typing import Any

import pytest

from decklog import Conflict, Decklog, Invalid, NotFound

# agent | report | next | action | what the next one is given
TABLE = """
developer | READY_FOR_QA | qa_expert | spawn | dev_output, files_changed, test_results
developer | READY_FOR_REVIEW | tech_lead | spawn | dev_output, files_changed
developer | BLOCKED | investigator | spawn | blocker_details
developer | PARTIAL | developer | respawn | partial_work, remaining_tasks
developer | INCOMPLETE | developer | respawn | partial_work, remaining_tasks
developer | ESCALATE_SENIOR | senior_software_engineer | spawn | dev_output, escalation_reason
developer | NEEDS_TECH_LEAD_VALIDATION | tech_lead | spawn | validation_request, uncertainty_details
developer | SPAWN_INVESTIGATOR | investigator | spawn | investigation_scope, dev_attempt_summary, blocker_details
senior_software_engineer | READY_FOR_QA | qa_expert | spawn | dev_output, files_changed, test_results
senior_software_engineer | READY_FOR_REVIEW | tech_lead | spawn | dev_output, files_changed
senior_software_engineer | BLOCKED | tech_lead | spawn | blocker_details
senior_software_engineer | NEEDS_TECH_LEAD_VALIDATION | tech_lead | spawn | validation_request
senior_software_engineer | ROOT_CAUSE_FOUND | tech_lead | spawn | root_cause_analysis, recommendation, evidence
senior_software_engineer | SPAWN_INVESTIGATOR | investigator | spawn | investigation_scope, sse_attempt_summary, hypothesis_matrix
senior_software_engineer | PARTIAL | senior_software_engineer | respawn | partial_work, remaining_tasks
qa_expert | PASS | tech_lead | spawn | qa_report, test_results, coverage
qa_expert | FAIL | developer | respawn | qa_failures, failing_tests
qa_expert | FAIL_ESCALATE | senior_software_engineer | spawn | qa_report, challenge_level, escalation_reason
qa_expert | PARTIAL | tech_lead | spawn | qa_report, partial_results
qa_expert | BLOCKED | tech_lead | spawn | blocker_details
qa_expert | FLAKY | tech_lead | spawn | flaky_test_details, qa_report
tech_lead | APPROVED | developer | spawn_merge | approval_notes
tech_lead | APPROVED_WITH_NOTES | developer | spawn_merge | approval_notes, non_blocking_suggestions
tech_lead | CHANGES_REQUESTED | developer | respawn | tl_feedback, required_changes
tech_lead | SPAWN_INVESTIGATOR | investigator | spawn | investigation_scope
tech_lead | ESCALATE_TO_OPUS | tech_lead | respawn | escalation_reason, original_review
tech_lead | UNBLOCKING_GUIDANCE_PROVIDED | _return_to_blocked | spawn | guidance, unblocking_steps
tech_lead | UNBLOCKING_GUIDANCE | _return_to_blocked | spawn | guidance, unblocking_steps
tech_lead | ARCHITECTURAL_DECISION_MADE | developer | spawn | decision, implementation_guidance
project_manager | PLANNING_COMPLETE | developer | spawn_batch | task_groups
project_manager | CONTINUE | developer | spawn_batch | pending_groups
project_manager | BAZINGA | (none) | validate_then_end | completion_summary
project_manager | NEEDS_CLARIFICATION | (none) | pause_for_user | clarification_question
project_manager | INVESTIGATION_NEEDED | investigator | spawn | investigation_request
project_manager | INVESTIGATION_ONLY | (none) | end_session | investigation_answers
investigator | ROOT_CAUSE_FOUND | tech_lead | spawn | root_cause, fix_guidance, investigation_summary, evidence
investigator|INVESTIGATION_INCOMPLETE | tech_lead | spawn | partial_findings, iterations_completed, hypotheses_tested, next_steps
investigator | BLOCKED | tech_lead | spawn | blocker_details, progress_summary
investigator | EXHAUSTED | tech_lead | spawn | hypotheses_tested, elimination_reasons, recommendations
investigator | NEED_DEVELOPER_DIAGNOSTIC | developer | spawn | diagnostic_request, hypothesis, expected_output
investigator | HYPOTHESIS_ELIMINATED | investigator | respawn | eliminated_hypothesis, next_hypothesis, iteration, evidence
investigator | NEED_MORE_ANALYSIS | investigator | respawn | analysis_needed, current_hypothesis, iteration
requirements_engineer | READY_FOR_REVIEW | tech_lead | spawn | research_deliverable
requirements_engineer | BLOCKED | investigator | spawn | blocker_details
requirements_engineer | PARTIAL | requirements_engineer | respawn | partial_research
validator | ACCEPT | (none) | end_session | validator_verdict, completion_summary
validator | REJECT | project_manager | spawn | validator_verdict, failed_checks, remediation_guidance
"""
MODELS = {
    "developer": "sonnet",
    "qa_expert": "sonnet",
    "senior_software_engineer": "opus",
    "tech_lead": "opus",
    "project_manager": "opus",
    "investigator": "opus",
    "requirements_engineer": "opus",
}


def rows() -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in TABLE.strip().splitlines()]


def group(group_id: str = "A", **facts: Any) -> dict[str, Any]:
    return {"id": group_id, "name": f"Group {group_id}", **facts}


def route(log: Decklog, agent: str, status: str, *groups: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Ask about the first of the groups given."""
    facts = {"groups": list(groups), "group_id": groups[0]["id"]} if groups else {}
    return log.workflow.route(agent, status, **{**facts, **more})


@pytest.mark.parametrize("is_loaded", [False, True])
def test_every_report_goes_where_the_table_says(log: Decklog, is_loaded: bool) -> None:
    if is_loaded:
        log.workflow.load()
    assert len(rows()) == 47
    for agent, status, to, action, context in rows():
        answer = route(log, agent, status, group())
        where = f"{agent} {status}"
        expected = {"(none)": None, "_return_to_blocked": "developer"}.get(to, to)
        assert answer["next_agent"] == expected, where
        assert answer["action"] == action, where
        assert answer["include_context"] == context.split(", "), where
        if action in ("spawn", "respawn", "spawn_batch"):
            assert answer["model"] == ("opus" if status == "ESCALATE_TO_OPUS" else MODELS[expected or ""]), where
        else:
            assert "model" not in answer, where
        assert answer["reason"].startswith(f"{agent} reports {status}"), where


@pytest.mark.slow
def test_the_same_facts_give_the_same_answer(log: Decklog) -> None:
    shipped = [route(log, row[0], row[1], group(), group("B")) for row in rows()]
    log.workflow.load()
    assert [route(log, row[0], row[1], group("A"), group("B")) for row in rows()] == shipped


def test_an_unknown_report_names_the_known_ones_and_a_way_out(log: Decklog) -> None:
    with pytest.raises(NotFound) as refused:
        route(log, "qa_expert", "SHRUG")
    assert "PASS" in refused.value.details["known"]
    assert refused.value.details["fallback_action"]["next_agent"] == "tech_lead"
    with pytest.raises(NotFound):
        route(log, "janitor", "PASS")


@pytest.mark.parametrize(
    ("word", "means"), [("INCOMPLETE", "INVESTIGATION_INCOMPLETE"), ("WAITING_FOR_RESULTS", "NEED_DEVELOPER_DIAGNOSTIC")]
)
def test_aliases_of_the_investigator_are_applied(log: Decklog, word: str, means: str) -> None:
    answer = route(log, "investigator", word)
    meant = route(log, "investigator", means)
    assert (answer["status"], answer["applied_status"]) == (word, means)
    assert (answer["next_agent"], answer["include_context"]) == (meant["next_agent"], meant["include_context"])


def test_the_developers_own_incomplete_is_no_alias(log: Decklog) -> None:
    answer = route(log, "developer", "INCOMPLETE")
    assert (answer["applied_status"], answer["next_agent"], answer["action"]) == ("INCOMPLETE", "developer", "respawn")


# Testing modes


@pytest.mark.parametrize("mode", ["disabled", "minimal"])
@pytest.mark.parametrize("agent", ["developer", "senior_software_engineer"])
def test_without_full_tests_finished_work_goes_straight_to_review(log: Decklog, agent: str, mode: str) -> None:
    answer = route(log, agent, "READY_FOR_QA", testing_mode=mode)
    assert (answer["next_agent"], answer["action"], answer["model"]) == ("tech_lead", "spawn", "opus")
    assert mode in answer["skip_reason"]
    assert "skip_reason" not in route(log, agent, "READY_FOR_REVIEW", testing_mode=mode)
    assert route(log, agent, "READY_FOR_QA", testing_mode="full")["next_agent"] == "qa_expert"


def test_a_testing_mode_that_does_not_exist_is_refused(log: Decklog) -> None:
    with pytest.raises(Invalid):
        route(log, "developer", "READY_FOR_QA", testing_mode="sometimes")


# Escalation


@pytest.mark.parametrize(
    ("agent", "status", "counter"),
    [("qa_expert", "FAIL", "qa_attempts"), ("tech_lead", "CHANGES_REQUESTED", "tl_review_attempts")],
)
def test_two_failures_bring_a_senior_engineer(log: Decklog, agent: str, status: str, counter: str) -> None:
    for count in (0, 1):
        answer = route(log, agent, status, group(**{counter: count}))
        assert (answer["next_agent"], answer["action"]) == ("developer", "respawn")
        assert "escalation_applied" not in answer
    for count in (2, 7):
        answer = route(log, agent, status, group(**{counter: count}))
        assert (answer["next_agent"], answer["action"], answer["model"]) == ("senior_software_engineer", "spawn", "opus")
        assert answer["escalation_applied"]
        assert counter in answer["escalation_reason"]


def test_only_the_counter_of_the_one_who_reports_counts(log: Decklog) -> None:
    assert route(log, "qa_expert", "FAIL", group(tl_review_attempts=9, revision_count=9))["next_agent"] == "developer"
    assert route(log, "tech_lead", "CHANGES_REQUESTED", group(qa_attempts=9))["next_agent"] == "developer"


def test_what_does_not_escalate_never_does(log: Decklog) -> None:
    answer = route(log, "developer", "PARTIAL", group(revision_count=9))
    assert (answer["next_agent"], answer["action"]) == ("developer", "respawn")


# Security

TO_A_DEVELOPER = [row[:2] for row in rows() if row[2] in ("developer", "_return_to_blocked") and row[3] != "spawn_batch"]


def test_no_way_leads_from_security_work_to_a_plain_developer(log: Decklog) -> None:
    assert len(TO_A_DEVELOPER) == 10
    for agent, status in TO_A_DEVELOPER:
        answer = route(log, agent, status, group(security_sensitive=True))
        assert answer["next_agent"] == "senior_software_engineer", (agent, status)
        assert answer["security_override"], (agent, status)
        assert answer["mandatory_review"], (agent, status)


@pytest.mark.parametrize("status", ["PLANNING_COMPLETE", "CONTINUE"])
def test_a_batch_gives_security_groups_to_a_senior_engineer(log: Decklog, status: str) -> None:
    groups = [group("A"), group("B", security_sensitive=True), group("C", name="Rotate auth tokens")]
    answer = log.workflow.route("project_manager", status, groups=groups)
    assert [(s["group_id"], s["agent"], s["model"]) for s in answer["spawns"]] == [
        ("A", "developer", "sonnet"),
        ("B", "senior_software_engineer", "opus"),
        ("C", "senior_software_engineer", "opus"),
    ]
    assert answer["security_override"]
    only = log.workflow.route("project_manager", status, groups=groups[1:])
    assert (only["next_agent"], only["model"]) == ("senior_software_engineer", "opus")


@pytest.mark.parametrize(
    ("name", "is_security"),
    [
        ("Security review", True),
        ("auth", True),
        ("Add auth to the API", True),
        ("user_auth", True),
        ("user-auth-flow", True),
        ("UserAuth", True),
        ("OAuth2 login", True),
        ("AUTH service", True),
        ("Authentication", True),
        ("Author page", False),
        ("author", False),
        ("authoring tools", False),
        ("insecurity", False),
        ("Coauthors", False),
        ("Login page", False),
        ("", False),
    ],
)
def test_whole_words_of_a_name_tell_security_work(name: str, is_security: bool) -> None:
    from decklog.stores.workflow import router
    from decklog.stores.workflow.records import shipped

    rule = shipped()["rules"]["security_sensitive"]["config"]
    assert router.is_security(router.GroupFacts(id="A", name=name), rule) == is_security


def test_an_override_is_told_only_when_something_changed(log: Decklog) -> None:
    answer = route(log, "developer", "READY_FOR_QA", group(security_sensitive=True))
    assert answer["next_agent"] == "qa_expert"
    assert "security_override" not in answer
    assert answer["mandatory_review"]


# Batches


def test_a_batch_is_the_oldest_pending_groups_up_to_its_limit(log: Decklog) -> None:
    groups = [
        group(name, created_at=f"2026-01-0{day}") for name, day in (("F", 6), ("B", 2), ("A", 1), ("E", 5), ("D", 4), ("C", 3))
    ]
    groups += [group("G", status="in_progress", created_at="2025"), group("H", status="completed", created_at="2025")]
    for facts in (groups, groups[::-1]):
        answer = log.workflow.route("project_manager", "PLANNING_COMPLETE", groups=facts)
        assert answer["groups_to_spawn"] == ["A", "B", "C", "D"]
        assert (answer["next_agent"], answer["action"]) == ("developer", "spawn_batch")
        assert answer["claims_groups"] is False
        assert "2 wait" in answer["reason"]


def test_groups_of_one_moment_start_in_the_order_of_their_ids(log: Decklog) -> None:
    answer = log.workflow.route("project_manager", "CONTINUE", groups=[group("B"), group("A"), group("C")])
    assert answer["groups_to_spawn"] == ["A", "B", "C"]


def test_research_goes_to_a_requirements_engineer_two_at_a_time(log: Decklog) -> None:
    groups = [group(name, task_type="research") for name in "ABC"] + [group("D"), group("E", name="Research the market")]
    answer = log.workflow.route("project_manager", "CONTINUE", groups=groups)
    assert [(s["group_id"], s["agent"]) for s in answer["spawns"]] == [
        ("A", "requirements_engineer"),
        ("B", "requirements_engineer"),
        ("D", "developer"),
    ]


def test_without_pending_groups_a_batch_is_empty(log: Decklog) -> None:
    answer = log.workflow.route("project_manager", "CONTINUE", groups=[group(status="completed")])
    assert answer["groups_to_spawn"] == []
    assert log.workflow.route("project_manager", "CONTINUE")["groups_to_spawn"] == []


# After an approval


@pytest.mark.parametrize("status", ["APPROVED", "APPROVED_WITH_NOTES"])
@pytest.mark.parametrize("of_group", ["pending", "in_progress", "approved_pending_merge"])
def test_the_last_approved_group_is_merged_before_the_owner_is_called(log: Decklog, status: str, of_group: str) -> None:
    answer = route(log, "tech_lead", status, group(status=of_group), group("B", status="completed"))
    assert (answer["next_agent"], answer["action"]) == ("developer", "spawn_merge")
    assert answer["phase_check"] == "complete"
    assert answer["after_merge"] == {"next_agent": "project_manager", "action": "spawn", "model": "opus"}
    assert "groups_to_spawn" not in answer


@pytest.mark.parametrize("merged", [{"merge_status": "merged"}, {"status": "completed"}])
def test_after_the_last_merge_the_owner_is_next(log: Decklog, merged: dict[str, str]) -> None:
    answer = route(log, "tech_lead", "APPROVED", group(**merged), group("B", status="completed"))
    assert (answer["next_agent"], answer["action"], answer["model"]) == ("project_manager", "spawn", "opus")
    assert answer["phase_check"] == "complete"


def test_an_approved_group_is_never_started_again(log: Decklog) -> None:
    answer = route(
        log, "tech_lead", "APPROVED", group(status="pending"), group("B"), group("C"), group("D"), group("E"), group("F")
    )
    assert (answer["next_agent"], answer["action"]) == ("developer", "spawn_merge")
    assert (answer["phase_check"], answer["groups_to_spawn"]) == ("continue", ["B", "C", "D", "E"])
    assert "after_merge" not in answer


@pytest.mark.parametrize("of_other", ["in_progress", "approved_pending_merge", "merging"])
def test_while_another_group_is_unfinished_the_phase_goes_on(log: Decklog, of_other: str) -> None:
    answer = route(log, "tech_lead", "APPROVED", group(status="in_progress"), group("B", status=of_other))
    assert (answer["action"], answer["phase_check"]) == ("spawn_merge", "continue")
    assert "groups_to_spawn" not in answer
    merged = route(log, "tech_lead", "APPROVED", group(merge_status="merged"), group("B", status=of_other))
    assert (merged["next_agent"], merged["action"]) == (None, "wait")


def test_after_a_merge_the_pending_groups_start(log: Decklog) -> None:
    answer = route(log, "tech_lead", "APPROVED", group(merge_status="merged"), group("B"))
    assert (answer["next_agent"], answer["action"], answer["groups_to_spawn"]) == ("developer", "spawn_batch", ["B"])


def test_merging_security_work_does_not_make_the_other_groups_so(log: Decklog) -> None:
    answer = route(log, "tech_lead", "APPROVED", group(security_sensitive=True), group("B"))
    assert (answer["next_agent"], answer["action"]) == ("senior_software_engineer", "spawn_merge")
    assert [spawn["agent"] for spawn in answer["spawns"]] == ["developer"]


# Who was blocked


@pytest.mark.parametrize("status", ["UNBLOCKING_GUIDANCE", "UNBLOCKING_GUIDANCE_PROVIDED"])
def test_guidance_returns_to_the_one_who_was_blocked(log: Decklog, status: str) -> None:
    answer = route(log, "tech_lead", status, group(), blocked_agent="investigator")
    assert (answer["next_agent"], answer["action"], answer["model"]) == ("investigator", "spawn", "opus")
    answer = route(log, "tech_lead", status, group(assigned_to="qa_expert_2"))
    assert (answer["next_agent"], answer["model"]) == ("qa_expert", "sonnet")
    assert route(log, "tech_lead", status, group(assigned_to="somebody"))["next_agent"] == "developer"
    assert route(log, "tech_lead", status)["next_agent"] == "developer"
    with pytest.raises(Invalid):
        route(log, "tech_lead", status, blocked_agent="janitor")


# Who is not there, and who has tried long enough


def test_a_stand_in_comes_when_the_next_one_is_not_available(log: Decklog) -> None:
    answer = route(log, "developer", "BLOCKED", unavailable=["investigator"])
    assert (answer["next_agent"], answer["action"], answer["model"]) == ("tech_lead", "spawn", "opus")
    assert answer["fallback_applied"]
    with pytest.raises(Conflict, match="nobody can replace it"):
        route(log, "developer", "BLOCKED", unavailable=["investigator", "tech_lead"])
    with pytest.raises(Conflict):
        route(log, "qa_expert", "PASS", unavailable=["tech_lead"])


@pytest.mark.parametrize("status", ["HYPOTHESIS_ELIMINATED", "NEED_MORE_ANALYSIS"])
def test_an_investigation_that_used_up_its_iterations_goes_to_review(log: Decklog, status: str) -> None:
    for iteration in (None, 1, 19):
        assert route(log, "investigator", status, iteration=iteration)["next_agent"] == "investigator"
    answer = route(log, "investigator", status, iteration=20)
    assert (answer["next_agent"], answer["action"], answer["applied_status"]) == ("tech_lead", "spawn", "EXHAUSTED")
    assert answer["budget_exhausted"]
    assert answer["include_context"] == ["hypotheses_tested", "elimination_reasons", "recommendations"]


def test_flags_of_a_transition_are_told(log: Decklog) -> None:
    assert route(log, "requirements_engineer", "READY_FOR_REVIEW")["bypass_qa"]
    assert route(log, "senior_software_engineer", "ROOT_CAUSE_FOUND")["mandatory_review"]
    assert "mandatory_review" not in route(log, "investigator", "ROOT_CAUSE_FOUND")


# Where the facts come from


def test_the_facts_of_a_run_are_looked_up(log: Decklog, run_id: str) -> None:
    for name in ("B", "A"):
        log.groups.add(run_id, name, name="Harden auth" if name == "B" else name)
    answer = log.workflow.route("tech_lead", "CHANGES_REQUESTED", run_id="run_1", group_id="B")
    assert (answer["next_agent"], answer["run_id"], answer["group_id"]) == ("senior_software_engineer", "run_1", "B")
    assert log.workflow.route("project_manager", "CONTINUE", run_id="run_1")["groups_to_spawn"] == ["A", "B"]
    with pytest.raises(NotFound, match="group C"):
        log.workflow.route("tech_lead", "CHANGES_REQUESTED", run_id="run_1", group_id="C")
    assert log.workflow.route("validator", "ACCEPT", run_id="run_1", group_id="global")["action"] == "end_session"


@pytest.mark.parametrize("bad", ["A", [1], [{"name": "no id"}], [{"id": ""}], {"id": "A"}])
def test_groups_that_are_none_are_refused(log: Decklog, bad: object) -> None:
    with pytest.raises(Invalid):
        log.workflow.route("project_manager", "CONTINUE", groups=bad)
