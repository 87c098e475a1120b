"""Tokens and skill outputs: every call and every refusal."""

from collections.abc import Callable

import pytest

from tests.every import every
from tests.plugins.legacy.bazinga.shell import ANY, Case, Shell, gives, prints, refused, silent, try_case

TOKENS = [
    silent("log-tokens", "s", "developer", "10"),
    silent("log-tokens", "s", "developer", "10", "dev-1"),
    silent("log-tokens", "s", "developer", "0"),
    silent("log-tokens", "s", "developer", "10", "opus"),
    silent("log-tokens", "s", "developer", "10", "--agent_id=dev-1", "--model", "sonnet"),
    refused("log-tokens", "s", "developer", "-5", because="0 or more"),
    refused("log-tokens", "s", " ", "5", because="agent_type cannot be empty"),
    refused("log-tokens", "nope", "developer", "5", because="Session not found: nope"),
    prints("token-summary", "s", value={"developer": 100, "qa_expert": 50, "total": 150}),
    prints("token-summary", "s", "agent_type", value={"developer": 100, "total": 150}),
    prints("token-summary", "s", "agent_id", value={"dev-1": 100, "null": 50, "total": 150}),
    prints("token-summary", "nope", value={"total": 0}),
    refused("token-summary", "s", "model", because="Invalid grouping"),
]

OUTPUTS = [
    silent("save-skill-output", "s", "cover", '{"percent": 90}'),
    silent("save-skill-output", "s", "cover", "90", "--agent", "qa_expert", "--group", "A"),
    silent("save-skill-output", "s", "cover", "[1]", "--agent=qa_expert", "--group=A"),
    silent("save-skill-output", "s", "A", "cover", '{"percent": 90}'),
    refused("save-skill-output", "s", "cover", "{", because="Invalid JSON"),
    refused("save-skill-output", "s", " ", "{}", because="skill_name cannot be empty"),
    refused("save-skill-output", "s", "cover", "{}", "--group", "a b", because="alphanumeric"),
    refused("save-skill-output", "nope", "cover", "{}", because="Session not found: nope"),
    prints("get-skill-output", "s", "lint", value={"errors": 1}),
    prints("get-skill-output", "s", "lint", "--agent", "developer", value={"errors": 1}),
    prints("get-skill-output", "s", "lint", "--agent=qa_expert", value=None),
    prints("get-skill-output", "s", "lint", "A", value={"errors": 1}),
    prints("get-skill-output", "s", "A", "lint", value={"errors": 1}),
    prints("get-skill-output", "s", "lint", "--group", "B", value=None),
    prints("get-skill-output", "s", "cover", value=None),
    prints("get-skill-output", "nope", "lint", value=None),
    prints(
        *("get-skill-output-all", "s", "lint"),
        value=[
            {"iteration": 2, "agent_type": "developer", "group_id": "A", "timestamp": ANY, "output_data": {"errors": 1}},
            {"iteration": 1, "output_data": {"errors": 0}},
        ],
    ),
    prints("get-skill-output-all", "s", "lint", "--agent", "qa_expert", value=[]),
    prints("get-skill-output-all", "s", value=[{"skill_name": "lint", "iteration": 2}, {"skill_name": "lint"}]),
    prints("get-skill-output-all", "nope", "lint", value=[]),
    gives("check-skill-evidence", "s", "lint", complete=True, missing=[], found=["lint"], recency_window_minutes=30),
    gives(
        "check-skill-evidence", "s", "cover, lint", complete=False, missing=["cover"], found=["lint"], mandatory=["cover", "lint"]
    ),
    gives("check-skill-evidence", "s", "lint", "--agent", "qa_expert", complete=False),
    gives("check-skill-evidence", "s", "lint", "--since", "5", recency_window_minutes=5),
    gives("check-skill-evidence", "s", "lint", "--within-minutes", "5", recency_window_minutes=5),
    gives("check-skill-evidence", "s", "lint", "--within_minutes=5", recency_window_minutes=5),
    gives("check-skill-evidence", "s", "", complete=True, mandatory=[]),
    gives("check-skill-evidence", "nope", "lint", complete=False, missing=["lint"], found=[]),
    refused("check-skill-evidence", "s", "lint", "--since", "0", because="1 or more"),
]


@pytest.mark.slow
@every("case", TOKENS + OUTPUTS, ids=lambda case: case.name)
def test_a_call_about_tokens_and_outputs_is_answered(project: Callable[[], Shell], case: Case) -> None:
    try_case(project(), case)


def test_an_output_answers_with_its_iteration_on_one_line(shell: Shell) -> None:
    answer = shell.call("save-skill-output", "s", "lint", "{}", "--agent", "developer", "--group", "A", quiet=False)
    assert answer.out == '{"iteration": 3}\n'
    assert shell.call("save-skill-output", "s", "lint", "{}", quiet=False).out == '{"iteration": 1}\n'


def test_evidence_gets_too_old(shell: Shell) -> None:
    from datetime import UTC, datetime, timedelta

    from decklog import ManualClock
    from decklog.plugins.legacy.bazinga import BazingaDB

    later = ManualClock(datetime.now(UTC) + timedelta(minutes=31))
    with BazingaDB(shell.db, clock=later) as database:
        assert database.check_skill_evidence("s", ["lint"])["missing"] == ["lint"]
        assert database.check_skill_evidence("s", ["lint"], since_minutes=60)["found"] == ["lint"]


def test_a_model_named_after_the_tokens_is_charged_as_the_model(shell: Shell) -> None:
    shell.ok("log-tokens", "s", "developer", "10", "opus")
    assert "opus" not in shell.ok("token-summary", "s", "agent_id")
    from decklog import Decklog

    with Decklog.open(shell.log) as log:
        assert log.ledger.find(run_id="s")[0].model == "opus"
