"""Context packages, consumption, error patterns and strategies: every call and every refusal."""

from collections.abc import Callable

import pytest

from tests.every import every
from tests.plugins.legacy.bazinga.shell import ANY, Case, Shell, fails, gives, prints, refused, silent, try_case

_FILE = "bazinga/artifacts/s/notes.md"
_PACKAGE = ("save-context-package", "s", "A", "research", _FILE, "tech_lead", '["developer"]', "low", "In short")


def _but(place: int, word: str) -> tuple[str, ...]:
    return (*_PACKAGE[:place], word, *_PACKAGE[place + 1 :])


PACKAGES = [
    gives(*_PACKAGE, package_id=2, file_path=_FILE, consumers_created=1),
    gives(*_but(2, "global"), package_id=2),
    gives(*_but(6, '[" Developer ", "developer", "QA_EXPERT"]'), consumers_created=2),
    gives(*_but(4, "bazinga/artifacts/s/deep/../deep/new.md"), file_path="bazinga/artifacts/s/deep/new.md"),
    gives(*_PACKAGE, "--supersedes", "1", package_id=2),
    refused(*_but(2, "a b"), because="alphanumeric"),
    refused(*_but(2, ""), because="cannot be empty"),
    refused(*_but(3, "gossip"), because="Invalid package_type"),
    refused(*_but(4, "bazinga/artifacts/other/notes.md"), because="must lie inside bazinga/artifacts/s/"),
    refused(*_but(4, "bazinga/artifacts/s/../../../secret"), because="must lie inside"),
    refused(*_but(4, "/etc/passwd"), because="must lie inside"),
    refused(*_but(4, ""), because="file_path cannot be empty"),
    refused(*_but(5, "boss"), because="Invalid producer_agent"),
    refused(*_but(6, '["boss"]'), because="Invalid consumer"),
    refused(*_but(6, "[]"), because="one or more"),
    refused(*_but(6, '"developer"'), because="one or more"),
    refused(*_but(6, "developer"), because="Invalid JSON"),
    refused(*_but(7, "urgent"), because="Invalid priority"),
    refused(*_but(8, " "), because="summary cannot be empty"),
    refused("save-context-package", "t", "A", "research", "bazinga/artifacts/t/x", *_PACKAGE[5:], because="Session not found: t"),
    prints(
        *("get-context-packages", "s", "A", "developer"),
        value=[
            {
                "id": 1,
                "package_type": "research",
                "priority": "high",
                "summary": "What the grammar says",
                "file_path": _FILE,
                "size_bytes": 5,
                "group_id": "A",
            }
        ],
    ),
    prints("get-context-packages", "s", "A", "QA_Expert", "1", value=[ANY]),
    prints("get-context-packages", "s", "B", "developer", value=[]),
    prints("get-context-packages", "s", "A", "tech_lead", value=[]),
    prints("get-context-packages", "s", "A", "boss", value=[]),
    prints("get-context-packages", "s", "A", "developer", "--include-consumed", value=[ANY]),
    prints("get-context-packages", "nope", "A", "developer", value=[]),
    refused("get-context-packages", "s", "A", "developer", "0", because="from 1 to 50"),
    refused("get-context-packages", "s", "A", "developer", "51", because="from 1 to 50"),
    refused("get-context-packages", "s", "a b", "developer", because="alphanumeric"),
    silent("mark-context-consumed", "1", "developer"),
    silent("mark-context-consumed", "1", "developer", "3"),
    refused("mark-context-consumed", "1", "tech_lead", because="is not for tech_lead"),
    refused("mark-context-consumed", "99", "developer", because="no package 99"),
    silent("update-context-references", "A", "s", "[1]"),
    silent("update-context-references", "s", "A", "[1]"),
    silent("update-context-references", "A", "s", "[]"),
    refused("update-context-references", "A", "s", '["1"]', because="list of integers"),
    refused("update-context-references", "A", "s", "1", because="list of integers"),
    refused("update-context-references", "A", "s", "[true]", because="list of integers"),
    refused("update-context-references", "global", "s", "[1]", because="reserved"),
    refused("update-context-references", "C", "s", "[1]", because="no group 'C'"),
    refused("update-context-references", "A", "nope", "[1]", because="Session not found: nope"),
]

CONSUMPTION = [
    gives("save-consumption", "s", "A", "developer", "0", "1", success=True, inserted=True, scope_id=ANY, package_id=1),
    gives(
        "save-consumption",
        "s",
        "A",
        "investigator",
        "2",
        "1",
        session_id="s",
        group_id="A",
        agent_type="investigator",
        iteration=2,
    ),
    gives("save-consumption", "s", "developer", "file", "a.py", success=True, inserted=True, resource_type="file"),
    gives("save-consumption", "s", "developer", "file", "a.py", "120", tokens=120),
    refused("save-consumption", "s", "global", "developer", "1", "1", because="cannot be 'global'"),
    refused("save-consumption", "s", "a b", "developer", "1", "1", because="alphanumeric"),
    refused("save-consumption", "s", "A", "boss", "1", "1", because="Invalid agent_type"),
    refused("save-consumption", "s", "A", "developer", "-1", "1", because="0 or more"),
    refused("save-consumption", "s", "A", "developer", "1", "99", because="no package 99"),
    refused("save-consumption", "nope", "A", "developer", "1", "1", because="Session not found: nope"),
    prints("get-consumption", "s", value=[]),
    prints("get-consumption", "s", "--group_id", "A", "--agent-type=developer", "--limit", "5", value=[]),
    prints("get-consumption", "s", "--limit", "0", value=[]),
    prints("get-consumption", "s", "--agent_type", "boss", value=[]),
    prints("get-consumption", "s", "developer", "file", value=[]),
]

_PATTERN = ("save-error-pattern", "p", "KeyError", "no key 'a'", "Use get")
PATTERNS = [
    gives(*_PATTERN, success=True, pattern_hash=ANY, operation="created", occurrences=1, confidence=0.5, redacted=False),
    gives(*_PATTERN, "--lang", "python", "--context_hints", '["dict"]', "--stack_pattern", '["f"]', operation="created"),
    gives("save-error-pattern", "p", "TypeError", "line 99: 'y' in /z/c.py", "Cast", operation="updated", occurrences=2),
    gives("save-error-pattern", "s", "A", "KeyError", "no key", "Use get", operation="created"),
    gives(*_PATTERN, "--confidence", "0.8", confidence=0.8),
    refused(*_PATTERN, "--context_hints", '"dict"', because="list of strings"),
    refused(*_PATTERN, "--stack_pattern", "{}", because="list of strings"),
    prints("get-error-patterns", "p", value=[]),
    prints(
        *("get-error-patterns", "p", "--min_confidence", "0.5"),
        value=[
            {
                "pattern_hash": ANY,
                "solution": "Cast it",
                "confidence": 0.5,
                "occurrences": 1,
                "lang": "python",
                "last_seen": ANY,
                "signature": {"error_type": "TypeError", "message_pattern": "line N: '...' in .../c.py"},
            }
        ],
    ),
    prints("get-error-patterns", "p", "--min-confidence=0.5", "--error-type", "TypeError", value=[ANY]),
    prints("get-error-patterns", "p", "--min_confidence", "0", "--limit", "1", value=[ANY]),
    prints("get-error-patterns", "q", "--min_confidence", "0", value=[]),
    refused("get-error-patterns", "p", "--min_confidence", "high", because="must be a number"),
    fails("update-error-confidence", "nohash", "p", "success", because="no error pattern"),
    refused("update-error-confidence", "nohash", "p", "maybe", because="success or failure"),
    gives("cleanup-error-patterns", success=True, deleted_count=0, project_id=None),
    gives("cleanup-error-patterns", "p", project_id="p", deleted_count=0),
    gives("cleanup-error-patterns", "--max-age-days", "30", deleted_count=0),
    refused("cleanup-error-patterns", "--max-age-days", "0", because="1 or more"),
]

STRATEGIES = [
    gives("save-strategy", "p", "methodology", "Test first", success=True, project_id="p", topic="methodology", strategy_id=ANY),
    gives("save-strategy", "p", "cooking", "Test first", topic="general"),
    gives(
        "save-strategy", "p", "general", "x", "--lang", "go", "--framework", "gin", "--strategy_id", "st-2", strategy_id="st-2"
    ),
    gives("save-strategy", "s", "A", "architecture", "Test first", "success", project_id="p", topic="architecture"),
    refused("save-strategy", "p", "general", " ", because="insight cannot be empty"),
    prints("get-strategies", "p", value=[{"strategy_id": "st-1", "project_id": "p", "topic": "architecture", "helpfulness": 1}]),
    prints("get-strategies", "p", "--lang", "python", value=[{"lang": "python", "framework": None, "insight": "Tokens first"}]),
    prints("get-strategies", "p", "--framework", "gin", value=[ANY]),
    prints("get-strategies", "p", "--lang", "go", value=[]),
    prints("get-strategies", "p", "--topic", "architecture", value=[ANY]),
    prints("get-strategies", "p", "--strategy-type", "general", value=[]),
    prints("get-strategies", "p", "--limit", "0", value=[ANY]),
    prints("get-strategies", "q", value=[]),
    gives("update-strategy-helpfulness", "st-1", success=True, strategy_id="st-1", previous_helpfulness=1, new_helpfulness=2),
    gives("update-strategy-helpfulness", "st-1", "5", new_helpfulness=6),
    gives("update-strategy-helpfulness", "st-1", "500", new_helpfulness=101),
    gives("update-strategy-helpfulness", "st-1", "-3", new_helpfulness=1),
    fails("update-strategy-helpfulness", "nope", because="no strategy nope"),
    gives("extract-strategies", "s", "A", "p", success=True, extracted_count=1, session_id="s", group_id="A", project_id="p"),
    gives("extract-strategies", "s", "B", "p", "--lang", "python", "--framework", "x", extracted_count=0),
    gives("extract-strategies", "s", success=True, extracted_count=1, project_id="p"),
    refused("extract-strategies", "s", "A", because="group and the project"),
    refused("extract-strategies", "s", "global", "p", because="cannot be 'global'"),
    refused("extract-strategies", "s", "a b", "p", because="alphanumeric"),
    refused("extract-strategies", "nope", "A", "p", because="Session not found: nope"),
]


@pytest.mark.slow
@every("case", PACKAGES + CONSUMPTION + PATTERNS + STRATEGIES, ids=lambda case: case.name)
def test_a_call_about_context_and_learning_is_answered(project: Callable[[], Shell], case: Case) -> None:
    try_case(project(), case)


def test_a_bad_topic_is_told_and_has_no_strategies(shell: Shell) -> None:
    answer = shell.call("get-strategies", "p", "--topic", "cooking")
    assert (answer.code, answer.json) == (0, [])
    assert "Invalid topic" in answer.err


def test_packages_come_by_priority_and_then_the_newest_first(shell: Shell) -> None:
    for priority, group in (("low", "A"), ("critical", "global"), ("high", "A")):
        shell.ok(*_PACKAGE[:2], group, *_PACKAGE[3:7], priority, f"{priority} {group}")
    found = shell.ok("get-context-packages", "s", "A", "developer", "10")
    assert [row["id"] for row in found] == [3, 4, 1, 2]
    assert found[0]["group_id"] is None


def test_a_package_that_was_read_is_offered_no_more_unless_asked_for(shell: Shell) -> None:
    shell.ok("mark-context-consumed", "1", "developer")
    shell.ok("mark-context-consumed", "1", "developer")
    assert shell.ok("get-context-packages", "s", "A", "developer") == []
    assert len(shell.ok("get-context-packages", "s", "A", "developer", "--include_consumed")) == 1
    assert len(shell.ok("get-context-packages", "s", "A", "qa_expert")) == 1


def test_a_long_summary_is_cut_to_two_hundred_characters(shell: Shell) -> None:
    shell.ok(*_PACKAGE[:7], "critical", "one\ntwo " + "x" * 300)
    summary = shell.ok("get-context-packages", "s", "A", "developer")[0]["summary"]
    assert summary.startswith("one two ")
    assert (len(summary), summary[-3:]) == (200, "...")


def test_a_link_out_of_the_artifacts_is_not_followed(shell: Shell) -> None:
    (shell.root / "bazinga/artifacts/s/link").symlink_to(shell.root / "files")
    answer = shell.call(*_but(4, "bazinga/artifacts/s/link/state.json"))
    assert answer.code == 1
    assert "must lie inside" in answer.err


def test_a_consumption_is_recorded_once_under_the_same_scope(shell: Shell) -> None:
    from hashlib import sha256

    first = shell.ok("save-consumption", "s", "A", "developer", "1", "1")
    again = shell.ok("save-consumption", "s", "A", "developer", "1", "1")
    assert (first["inserted"], again["inserted"]) == (True, False)
    assert first["scope_id"] == again["scope_id"] == sha256(b"s:A:developer:1:1").hexdigest()[:32]
    rows = shell.ok("get-consumption", "s", "--group_id", "A")
    assert [(row["agent_type"], row["package_id"]) for row in rows] == [("developer", 1)]


def test_other_things_that_were_used_are_listed_by_agent_and_type(shell: Shell) -> None:
    shell.ok("save-consumption", "s", "developer", "file", "a.py", "120")
    found = shell.ok("get-consumption", "s", "developer", "file")
    assert [(row["resource_id"], row["tokens"]) for row in found] == [("a.py", 120)]


def test_confidence_grows_by_a_tenth_and_falls_by_a_fifth(shell: Shell) -> None:
    hash = shell.ok("get-error-patterns", "p", "--min_confidence", "0")[0]["pattern_hash"]
    grown = shell.ok("update-error-confidence", hash, "p", "SUCCESS")
    assert (grown["previous_confidence"], grown["new_confidence"], grown["injectable"]) == (0.5, 0.6, True)
    assert shell.ok("update-error-confidence", hash, "p", "failure")["new_confidence"] == 0.4
    assert shell.ok("update-error-confidence", hash, "p", "-0.2")["new_confidence"] == 0.2
    assert shell.ok("update-error-confidence", hash, "p", "+0.1")["new_confidence"] == 0.3
    for _ in range(3):
        low = shell.ok("update-error-confidence", hash, "p", "failure")
    assert (low["new_confidence"], low["injectable"]) == (0.1, False)


def test_expired_patterns_are_listed_until_they_are_cleaned_up(shell: Shell) -> None:
    from datetime import UTC, datetime, timedelta

    from decklog import ManualClock
    from decklog.plugins.legacy.bazinga import BazingaDB

    with BazingaDB(shell.db, clock=ManualClock(datetime.now(UTC) + timedelta(days=92))) as database:
        assert len(database.get_error_patterns("p", min_confidence=0.5)) == 1
        assert database.cleanup_expired_patterns("q") == 0
        assert database.cleanup_expired_patterns() == 1
        assert database.get_error_patterns("p", min_confidence=0.5) == []


def test_patterns_can_be_cleaned_up_by_their_age(shell: Shell) -> None:
    from datetime import UTC, datetime, timedelta

    from decklog import ManualClock
    from decklog.plugins.legacy.bazinga import BazingaDB

    with BazingaDB(shell.db, clock=ManualClock(datetime.now(UTC) + timedelta(days=31))) as database:
        assert database.cleanup_older_patterns(40) == 0
        assert database.cleanup_older_patterns(30, "q") == 0
        assert database.cleanup_older_patterns(30, "p") == 1
