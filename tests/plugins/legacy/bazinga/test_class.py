"""The class under bazinga's name: its methods, its parameters, and what it raises."""

import inspect
import re
from collections.abc import Iterator

import pytest

import decklog.plugins.legacy.bazinga as bazinga
from decklog.plugins.legacy.bazinga import BazingaDB
from tests.every import every
from tests.plugins.legacy.bazinga.shell import Shell

# Every public method with its parameters in order; a default stands after the equals sign.
SIGNATURES = """
create_session(session_id, mode, requirements, initial_branch=None, metadata=None)
update_session_status(session_id, status)
get_session(session_id)
list_sessions(limit=10)
log_interaction(session_id, agent_type, content, iteration=None, agent_id=None)
get_logs(session_id, limit=50, offset=0, agent_type=None, since=None)
stream_logs(session_id, limit=50, offset=0)
save_event(session_id, event_subtype, payload, idempotency_key=None, group_id='global')
get_events(session_id, event_subtype=None, limit=50)
save_investigation_iteration(session_id, group_id, iteration, status, state_data, event_payload)
save_state(session_id, state_type, state_data, group_id='global')
get_latest_state(session_id, state_type, group_id='global')
create_task_group(group_id, session_id, name, status='pending', assigned_to=None, specializations=None, item_count=None,
  component_path=None, initial_tier=None, complexity=None)
update_task_group(group_id, session_id, status=None, assigned_to=None, revision_count=None, last_review_status=None,
  auto_create=True, name=None, specializations=None, item_count=None, security_sensitive=None, qa_attempts=None,
  tl_review_attempts=None, component_path=None, initial_tier=None, complexity=None, review_iteration=None,
  no_progress_count=None, blocking_issues_count=None, speckit_task_ids=None)
get_task_groups(session_id, status=None)
log_tokens(session_id, agent_type, tokens, agent_id=None)
get_token_summary(session_id, by='agent_type')
save_skill_output(session_id, skill_name, output_data, agent_type=None, group_id=None)
get_skill_output(session_id, skill_name, agent_type=None)
get_skill_output_all(session_id, skill_name=None, agent_type=None)
check_skill_evidence(session_id, mandatory_skills, agent_type=None, since_minutes=30)
get_dashboard_snapshot(session_id)
save_development_plan(session_id, original_prompt, plan_text, phases, current_phase, total_phases, metadata=None)
get_development_plan(session_id)
update_plan_progress(session_id, phase_id, status, progress_percent=None)
save_success_criteria(session_id, criteria)
get_success_criteria(session_id)
update_success_criterion(session_id, criterion, status=None, actual=None, evidence=None)
save_context_package(session_id, group_id, package_type, file_path, producer_agent, consumers, priority, summary,
  size_bytes=None)
get_context_packages(session_id, group_id, agent_type, limit=3, include_consumed=False)
mark_context_consumed(package_id, agent_type, iteration=1)
update_context_references(group_id, session_id, package_ids)
save_reasoning(session_id, group_id, agent_type, reasoning_phase, content, agent_id=None, iteration=None, confidence=None,
  references=None)
get_reasoning(session_id, group_id=None, agent_type=None, phase=None, limit=50, output_format='json')
reasoning_timeline(session_id, group_id=None, output_format='json')
check_mandatory_phases(session_id, group_id, agent_type)
save_error_pattern(project_id, error_type, error_message, solution, lang=None, context_hints=None, stack_pattern=None)
get_error_patterns(project_id, lang=None, min_confidence=0.7, limit=5)
update_error_pattern_confidence(pattern_hash, project_id, success)
cleanup_expired_patterns(project_id=None)
save_consumption(session_id, group_id, agent_type, iteration, package_id)
get_consumption(session_id, group_id=None, agent_type=None, limit=50)
save_strategy(project_id, topic, insight, lang=None, framework=None, strategy_id=None)
get_strategies(project_id, lang=None, framework=None, topic=None, limit=5)
update_strategy_helpfulness(strategy_id, increment=1)
extract_strategies(session_id, group_id, project_id, lang=None, framework=None)
diagnose_group_ids(fix=False)
query(sql, params=())
check_integrity()
"""
METHODS = re.findall(r"(\w+)\(([^()]*(?:\(\)[^()]*)?)\)", SIGNATURES)
NAMES = (
    *("scan_and_redact", "validate_scope_global_or_group", "validate_scope_group_only", "validate_task_group_id"),
    *("validate_investigation_inputs", "validate_complexity", "validate_group_id", "GROUP_ID_PATTERN", "RESERVED_GROUP_IDS"),
    *("VALID_INVESTIGATION_STATUSES", "MAX_INVESTIGATION_ITERATION", "VALID_SESSION_STATUSES", "SECRET_PATTERNS"),
    *("EXPECTED_SCHEMA_VERSION", "DatabaseInitError", "MigrationLockError", "BazingaDB"),
)


@pytest.fixture
def database(shell: Shell) -> Iterator[BazingaDB]:
    with BazingaDB(shell.db) as database:
        yield database


@every(("name", "parameters"), METHODS, ids=[name for name, _ in METHODS])
def test_a_method_takes_its_parameters_in_order(name: str, parameters: str) -> None:
    wanted = [part.strip() for part in parameters.split(",") if part.strip() and part.strip() != ")"]
    found = list(inspect.signature(getattr(BazingaDB, name)).parameters.values())[1:]
    spelled = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in found]
    assert spelled[: len(wanted)] == wanted
    assert all(parameter.default is not parameter.empty for parameter in found[len(wanted) :])


def test_all_methods_are_there() -> None:
    assert len(METHODS) == 49


@every("name", NAMES)
def test_a_name_that_others_import_is_there(name: str) -> None:
    assert getattr(bazinga, name) is not None
    assert name in bazinga.__all__


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError):
        bazinga.no_such_name  # noqa: B018


INVALID = [
    ("create_session", ("n", "both", "x")),
    ("save_state", ("nope", "pm", {})),
    ("save_success_criteria", ("s", [])),
    ("query", ("delete from runs",)),
    ("mark_context_consumed", (99, "developer")),
]


@pytest.mark.slow
@every(("name", "arguments"), INVALID, ids=[name for name, _ in INVALID])
def test_what_can_not_be_done_raises_and_never_ends_the_process(
    database: BazingaDB, name: str, arguments: tuple[object, ...]
) -> None:
    with pytest.raises(ValueError):
        getattr(database, name)(*arguments)


def test_references_that_are_no_texts_are_a_type_error(database: BazingaDB) -> None:
    with pytest.raises(TypeError):
        database.save_reasoning("s", "A", "developer", "risks", "x", references=[1])  # type: ignore[list-item]


def test_counts_below_nought_count_as_nought(database: BazingaDB) -> None:
    made = database.update_task_group("A", "s", no_progress_count=-2, blocking_issues_count=-1)
    assert (made["task_group"]["no_progress_count"], made["task_group"]["blocking_issues_count"]) == (0, 0)


def test_a_folder_is_no_database(shell: Shell) -> None:
    with pytest.raises(bazinga.DatabaseInitError):
        BazingaDB(shell.root)


def test_everything_is_in_the_journal_and_the_journal_is_whole(database: BazingaDB) -> None:
    assert database.check_integrity() == {"ok": True, "details": "ok", "status": "ok"}
    assert database.log.journal.verify().ok


VALIDATED = [
    (bazinga.validate_scope_global_or_group, "global", None),
    (bazinga.validate_scope_global_or_group, None, "cannot be None"),
    (bazinga.validate_scope_global_or_group, 7, "must be a string, got int"),
    (bazinga.validate_scope_global_or_group, " ", "cannot be empty"),
    (bazinga.validate_scope_global_or_group, "x" * 65, "too long (max 64 chars, got 65)"),
    (bazinga.validate_scope_global_or_group, "a.b", "alphanumeric with underscores/hyphens only"),
    (bazinga.validate_scope_group_only, "A-1_b", None),
    (bazinga.validate_scope_group_only, "Global", "cannot be 'global'"),
    (bazinga.validate_task_group_id, "A", None),
    (bazinga.validate_task_group_id, "Session", "'Session' is a reserved identifier"),
    (bazinga.validate_group_id, "A", None),
    (bazinga.validate_complexity, None, None),
    (bazinga.validate_complexity, 10, None),
    (bazinga.validate_complexity, 0, "from 1 to 10"),
    (bazinga.validate_complexity, "5", "from 1 to 10"),
]


@every(("validate", "value", "problem"), VALIDATED)
def test_a_validator_gives_none_or_what_is_wrong(validate: object, value: object, problem: str | None) -> None:
    found = validate(value)  # type: ignore[operator]
    assert found is None if problem is None else problem in found
