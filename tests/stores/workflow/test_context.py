from hashlib import sha256
from typing import Any

import pytest

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound
from decklog.stores.workflow.context import ConsumingAgent, ContextAgent, ContextPackage, PackagePriority, PackageType
from tests.every import every


def save(log: Decklog, summary: str = "The lexer is slow", **more: Any) -> ContextPackage:
    given: dict[str, Any] = {"consumers": ["developer"], "group_id": "A", **more}
    return log.context.save("run_1", "research", f"artifacts/{summary}.md", "investigator", summary, **given)


@pytest.fixture(autouse=True)
def _run(run_id: str) -> None:
    """Every test here has run_1."""


def test_a_package_comes_back_as_it_was_given(log: Decklog) -> None:
    package = log.context.save(
        "run_1",
        "decisions",
        "artifacts\\run_1\\choice.md",
        " Tech_Lead ",
        "We keep the parser",
        consumers=["Developer", " developer", "qa_expert"],
        group_id="A",
        priority="high",
        size_bytes=1200,
    )
    assert (package.number, package.version, package.scope, package.group_id) == (1, 1, "group", "A")
    assert (package.file_path, package.producer, package.priority) == ("artifacts/run_1/choice.md", "tech_lead", "high")
    assert log.context.get(package.id) == log.context.get("1") == package
    assert [(c.agent, c.consumed_at, c.iteration) for c in log.context.consumers("1")] == [
        ("developer", None, 1),
        ("qa_expert", None, 1),
    ]


@pytest.mark.parametrize("group_id", [None, "global"])
def test_a_package_without_a_group_is_for_the_whole_run(log: Decklog, group_id: str | None) -> None:
    package = save(log, group_id=group_id)
    assert (package.scope, package.group_id) == ("global", None)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("short", "short"),
        ("two\nlines\r\nhere", "two lines here"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 197 + "..."),
        ("ü" * 500, "ü" * 197 + "..."),
    ],
)
def test_a_summary_is_one_line_of_at_most_200_characters(log: Decklog, given: str, kept: str) -> None:
    package = log.context.save("run_1", "research", "a.md", "developer", given, consumers=["qa_expert"])
    assert package.summary == kept


@every(
    "bad",
    [
        {"package_type": "gossip"},
        {"file_path": ""},
        {"file_path": "a/../../b.md"},
        {"file_path": "..\\b.md"},
        {"producer": "janitor"},
        {"summary": " \n "},
        {"consumers": []},
        {"consumers": None},
        {"consumers": ["janitor"]},
        {"group_id": "a b"},
        {"group_id": "A\n"},
        {"group_id": ""},
        {"group_id": "x" * 65},
        {"priority": "urgent"},
        {"size_bytes": -1},
        {"size_bytes": True},
        {"number": 0},
    ],
)
def test_a_bad_package_is_refused_whole(log: Decklog, bad: dict[str, Any]) -> None:
    given = {
        "run_id": "run_1",
        "package_type": "research",
        "file_path": "a.md",
        "producer": "developer",
        "summary": "x",
        "consumers": ["qa_expert"],
        **bad,
    }
    with pytest.raises(Invalid):
        log.context.save(**given)
    assert log.context.find("run_1", include_superseded=True) == []


def test_a_package_needs_a_run(log: Decklog) -> None:
    with pytest.raises(NotFound):
        log.context.save("nobody", "research", "a.md", "developer", "x", consumers=["qa_expert"])


def test_numbers_grow_over_all_runs_and_imported_ones_are_kept(log: Decklog) -> None:
    log.runs.start("Another goal", run_id="run_2")
    assert save(log).number == 1
    other = log.context.save("run_2", "handoff", "b.md", "developer", "x", consumers=["qa_expert"])
    assert other.number == 2
    assert save(log, number=40).number == 40
    assert save(log).number == 41
    with pytest.raises(Conflict):
        save(log, number=40)


def test_a_key_saves_once_a_run(log: Decklog) -> None:
    first = save(log, key="k")
    assert save(log, "another", key="k").already
    assert log.context.find("run_1") == [first]


# Superseding


def test_the_old_version_is_hidden_and_the_new_one_offered(log: Decklog) -> None:
    old = save(log, "first idea", consumers=["developer", "tech_lead"])
    new = save(log, "second idea", supersedes=old.id, consumers=None)
    newest = save(log, "third idea", supersedes=str(new.number), consumers=["qa_expert"])
    assert (new.version, new.supersedes_id, newest.version) == (2, old.id, 3)
    assert log.context.get(old.id).superseded_by_id == new.id
    assert [c.agent for c in log.context.consumers(new.id)] == ["developer", "tech_lead"]
    assert log.context.offer("run_1", "developer", group_id="A") == []
    assert log.context.offer("run_1", "qa_expert", group_id="A") == [newest]
    assert log.context.find("run_1") == [newest]
    assert [p.version for p in log.context.find("run_1", include_superseded=True)] == [3, 2, 1]
    assert [r["package"]["number"] for r in log.context.rank("run_1", "developer")] == [3]


def test_a_package_is_superseded_once_and_within_its_run(log: Decklog) -> None:
    old = save(log)
    save(log, "newer", supersedes=old.id)
    with pytest.raises(Conflict, match="package 2"):
        save(log, "newer still", supersedes=old.id)
    log.runs.start("Another goal", run_id="run_2")
    with pytest.raises(Invalid, match="run_1"):
        log.context.save("run_2", "research", "x.md", "developer", "x", consumers=["qa_expert"], supersedes="2")
    with pytest.raises(NotFound):
        save(log, supersedes="99")
    assert len(log.context.find("run_1", include_superseded=True)) == 2


# Offering


def test_an_agent_is_offered_the_most_urgent_then_the_newest(log: Decklog, clock: ManualClock) -> None:
    for priority in ("low", "critical", "medium", "high", "critical", "medium"):
        clock.advance(seconds=1)
        save(log, f"{priority} {clock.now().second}", priority=priority)
    offered = [package.summary for package in log.context.offer("run_1", "developer", group_id="A", limit=50)]
    assert offered == ["critical 5", "critical 2", "high 4", "medium 6", "medium 3", "low 1"]
    assert [p.summary for p in log.context.offer("run_1", "developer", group_id="A")] == offered[:3]


def test_packages_of_one_moment_come_latest_first(log: Decklog) -> None:
    for number in range(5):
        save(log, str(number))
    assert [p.summary for p in log.context.offer("run_1", "developer", group_id="A", limit=5)] == ["4", "3", "2", "1", "0"]


def test_an_agent_is_offered_its_groups_and_the_runs_packages_only(log: Decklog) -> None:
    save(log, "group A")
    save(log, "group B", group_id="B")
    save(log, "whole run", group_id=None)
    save(log, "for testers", consumers=["qa_expert"])
    log.runs.start("Another goal", run_id="run_2")
    assert [p.summary for p in log.context.offer("run_1", "developer", group_id="A")] == ["whole run", "group A"]
    assert [p.summary for p in log.context.offer("run_1", "developer")] == ["whole run"]
    assert [p.summary for p in log.context.offer("run_1", "qa_expert", group_id="A")] == ["for testers"]
    assert log.context.offer("run_2", "developer", group_id="A") == []
    for limit in (0, 51):
        with pytest.raises(Invalid):
            log.context.offer("run_1", "developer", limit=limit)


def test_what_was_read_is_offered_no_more(log: Decklog, clock: ManualClock) -> None:
    package = save(log, consumers=["developer", "qa_expert"])
    read = log.context.consume(str(package.number), "developer", iteration=2)
    assert (read.consumed_at, read.iteration) == (clock.now(), 2)
    assert log.context.offer("run_1", "developer", group_id="A") == []
    assert log.context.offer("run_1", "developer", group_id="A", include_consumed=True) == [package]
    assert log.context.offer("run_1", "qa_expert", group_id="A") == [package]
    again = log.context.consume(package.id, "developer", iteration=3)
    assert again == read
    assert again.already


def test_who_is_no_consumer_can_not_read_a_package(log: Decklog) -> None:
    package = save(log)
    with pytest.raises(NotFound, match="it is for developer"):
        log.context.consume(package.id, "qa_expert")
    with pytest.raises(NotFound):
        log.context.consume("99", "developer")
    with pytest.raises(Invalid):
        log.context.consume(package.id, "developer", iteration=-1)


def test_the_wider_ranking_weighs_priority_group_consumer_and_age(log: Decklog, clock: ManualClock) -> None:
    save(log, "critical elsewhere", priority="critical", group_id="B", consumers=["qa_expert"])
    clock.advance(days=1)
    save(log, "medium here for me", priority="medium")
    save(log, "medium here for another", priority="medium", consumers=["qa_expert"])
    save(log, "low for all", priority="low", group_id=None)
    ranked = log.context.rank("run_1", "developer", group_id="A")
    assert [(r["score"], r["package"]["summary"]) for r in ranked] == [
        (16.5, "critical elsewhere"),  # 4*4 + 1/2
        (12.5, "medium here for me"),  # 4*2 + 2 + 1.5 + 1
        (11.0, "medium here for another"),  # 4*2 + 2 + 1
        (6.5, "low for all"),  # 4 + 1.5 + 1
    ]
    assert len(log.context.rank("run_1", "developer", limit=2)) == 2


def test_equal_scores_rank_the_newest_first(log: Decklog) -> None:
    for number in range(3):
        save(log, str(number))
    assert [r["package"]["summary"] for r in log.context.rank("run_1", "developer", group_id="A")] == ["2", "1", "0"]


# Consumption


def test_consumption_is_recorded_once_an_iteration(log: Decklog, clock: ManualClock) -> None:
    package = save(log)
    used = log.context.record_consumption("run_1", "A", "developer", 0, package.id)
    assert used.scope_id == sha256(b"run_1:A:developer:0:1").hexdigest()[:32]
    assert (used.consumed_at, used.already) == (clock.now(), False)
    assert log.context.record_consumption("run_1", "A", "developer", 0, "1").already
    assert not log.context.record_consumption("run_1", "A", "developer", 1, "1").already
    assert not log.context.record_consumption("run_1", "B", "developer", 1, "1").already
    assert not log.context.record_consumption("run_1", "A", "qa_expert", 1, "1").already
    found = log.context.consumptions("run_1")
    assert [(c.group_id, c.agent, c.iteration) for c in found] == [
        ("A", "qa_expert", 1),
        ("B", "developer", 1),
        ("A", "developer", 1),
        ("A", "developer", 0),
    ]
    assert len(log.context.consumptions("run_1", group_id="A", agent="developer")) == 2
    assert len(log.context.consumptions("run_1", iteration=1)) == 3


@every(
    ("change", "error"),
    [
        ({"agent": "janitor"}, Invalid),
        ({"agent": "project_manager"}, Invalid),
        ({"iteration": -1}, Invalid),
        ({"iteration": True}, Invalid),
        ({"group_id": "global"}, Invalid),
        ({"group_id": "GLOBAL"}, Invalid),
        ({"group_id": "a b"}, Invalid),
        ({"package_id": "99"}, NotFound),
        ({"run_id": "run_2"}, Invalid),
    ],
)
def test_bad_consumption_is_refused_and_never_called_done(log: Decklog, change: dict[str, Any], error: type[Exception]) -> None:
    save(log)
    given = {"run_id": "run_1", "group_id": "A", "agent": "developer", "iteration": 1, "package_id": "1", **change}
    with pytest.raises(error):
        log.context.record_consumption(**given)
    assert log.context.consumptions("run_1") == []


# The record


def test_the_tables_allow_just_the_words_of_the_enumerations(log: Decklog) -> None:
    package = save(log)
    for column, words in (("package_type", PackageType), ("priority", PackagePriority), ("producer", ContextAgent)):
        for word in words:
            with log.transaction():
                log.db.rows(f"update packages set {column} = :word", {"word": word.value})
        with pytest.raises(Invalid), log.transaction():
            log.db.rows(f"update packages set {column} = 'other'", {})
    log.context.record_consumption("run_1", "A", "developer", 1, package.id)
    for consuming in ConsumingAgent:
        with log.transaction():
            log.db.rows("update context_consumptions set agent = :word", {"word": consuming.value})
