from datetime import timedelta
from random import Random
from string import ascii_letters

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound
from decklog.stores.memory.topics import TOPICS
from tests.every import every
from tests.stores.memory.memory_jobs import CYCLE, PORT
from tests.stores.processes import at_once

LOCALE = "Sort names with an explicit collation, because the build machine has another locale"


# Learning


def test_a_lesson_comes_back_as_it_was_learned(log: Decklog, run_id: str) -> None:
    seen = log.journal.append(run_id, "import failed", kind="event")
    lesson = log.memory.remember(
        "failure_patterns",
        CYCLE,
        payload={"error_signature": "ImportError: cannot import name 'x'", "affected_files": ["a.py"]},
        project="shop",
        confidence=90,
        source_kind="pr",
        source_id="17",
        run_id=run_id,
        task_id="task_1",
        refs=[seen.id],
    )
    assert log.memory.get(lesson.id) == lesson
    assert (lesson.confidence, lesson.sightings, lesson.recall_count) == (90, 1, 0)
    [sighting] = log.memory.evidence(lesson.id)
    assert (sighting.source_kind, sighting.source_id, sighting.refs, sighting.task_id) == ("pr", "17", [seen.id], "task_1")


@pytest.mark.parametrize("topic", TOPICS)
def test_each_of_the_eight_topics_is_known(log: Decklog, topic: str) -> None:
    assert log.memory.remember(topic, CYCLE).topic == topic


def test_an_unknown_topic_is_refused_until_someone_adds_it(log: Decklog) -> None:
    with pytest.raises(NotFound, match="release_habits") as refused:
        log.memory.remember("release_habits", "Tag before publishing")
    assert "add-topic" in (refused.value.hint or "")
    log.memory.add_topic("release_habits", "how releases go out")
    lesson = log.memory.remember("release_habits", "Tag before publishing", payload={"anything": [1, {"x": None}]})
    assert lesson.payload == {"anything": [1, {"x": None}]}
    assert {"topic": "release_habits", "about": "how releases go out", "lessons": 1} in log.memory.topics()
    assert log.memory.add_topic("release_habits", "again").already


@pytest.mark.parametrize("name", ["", "Big", "1st", "two words", "a-b", "x\n", "é", "a" * 64, "failure_patterns"])
def test_a_topic_has_a_plain_name_that_is_not_taken(log: Decklog, name: str) -> None:
    with pytest.raises(Invalid):
        log.memory.add_topic(name, "x")


@every(
    ("topic", "payload"),
    [
        ("flaky_tests", {"test_fqn": "t", "flake_rate": 1.5}),
        ("flaky_tests", {"flake_rate": 0.5}),
        ("flaky_tests", {"test_fqn": "t", "colour": "red"}),
        ("flaky_tests", {"test_fqn": ""}),
        ("review_patterns", {"verdict": "meh"}),
        ("failure_patterns", {"error_signature": 5}),
        ("failure_patterns", {"error_signature": "x", "affected_files": "a.py"}),
        ("em_preferences", {"preference": "tabs", "confidence": 101}),
        ("tool_usage_heuristics", {"tool_name": "rg", "frequency": -1}),
        ("tool_usage_heuristics", {"tool_name": "rg", "frequency": True}),
        ("task_outcomes", {"task_id": "t", "lessons": [1]}),
        ("mutation_seeds", {"test_fqn": "t"}),
    ],
)
def test_a_payload_must_have_its_topics_shape(log: Decklog, topic: str, payload: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        log.memory.remember(topic, CYCLE, payload=payload)
    assert log.memory.find() == []


def test_what_a_verified_fix_writes_fits_its_topics_and_is_found_by_its_error(log: Decklog) -> None:
    log.memory.remember(
        "failure_patterns",
        "KeyError: 'total' at /srv/app/cart.py:41 while summing 3 items",
        payload={"fix_class": "logic", "root_cause": "empty cart", "regression_test_path": "tests/t.py", "merged_sha": "abc1234"},
        confidence=85,
    )
    log.memory.remember("review_patterns", "The fix was merged as proposed", payload={"fix_class": "logic", "outcome": "merged"})
    [hit] = log.memory.recall("KeyError: 'total' at /home/me/cart.py:97 while summing 12 items", topic="failure_patterns")
    assert hit.payload["error_signature"] == "KeyError: 'total' at <path> while summing <n> items"


@pytest.mark.parametrize(
    "bad",
    [
        {"body": " "},
        {"body": "..."},
        {"body": "the of and"},
        {"body": "word " * 1000},
        {"confidence": 101},
        {"confidence": -1},
        {"source_kind": "Two words"},
        {"refs": ["nonsense"]},
        {"topic": "Bad topic"},
        {"payload": []},
    ],
)
def test_what_is_no_lesson_is_refused(log: Decklog, bad: dict[str, object]) -> None:
    given = {"topic": "em_preferences", "body": "Keep functions short"} | bad
    with pytest.raises(Invalid):
        log.memory.remember(**given)  # type: ignore[arg-type]
    assert log.memory.find() == []


def test_evidence_must_exist(log: Decklog, run_id: str) -> None:
    with pytest.raises(NotFound):
        log.memory.remember("em_preferences", CYCLE, refs=[f"{run_id}:99"])
    with pytest.raises(NotFound):
        log.memory.remember("em_preferences", CYCLE, run_id="nobody")
    assert log.memory.find() == []


def test_a_secret_never_reaches_a_lesson_and_makes_no_second_one(log: Decklog) -> None:
    first, second = ("gh" + "p_" + "".join(Random(seed).choices(ascii_letters, k=36)) for seed in (1, 2))
    lesson = log.memory.remember("failure_patterns", f"Cloning failed with token {first} because it had expired")
    again = log.memory.remember("failure_patterns", f"Cloning failed with token {second} because it had expired")
    assert again.id == lesson.id
    assert first not in str(lesson.as_dict())
    assert first not in str([sighting.as_dict() for sighting in log.memory.evidence(lesson.id)])


# Saying the same again


@pytest.mark.parametrize(
    "again",
    [
        CYCLE,
        CYCLE.upper(),
        f"  {CYCLE}.  ",
        "A circular import between two modules breaks start-up: move one import into that function which needs it!",
    ],
)
def test_a_lesson_said_again_is_counted_and_not_copied(log: Decklog, again: str) -> None:
    lesson = log.memory.remember("failure_patterns", CYCLE, source_id="1")
    seen = log.memory.remember("failure_patterns", again, source_id="2", confidence=95)
    assert (seen.id, seen.sightings, seen.confidence, seen.body) == (lesson.id, 2, 95, CYCLE)
    assert [sighting.source_id for sighting in log.memory.evidence(lesson.id)] == ["2", "1"]
    assert log.journal.verify().ok


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The database of the staging site listens on port 5432", "The database of the staging site listens on port 5433"),
        ("Always run the formatter before a commit is made", "Never run the formatter before a commit is made"),
        ("Tests in test_login.py need the mail server to be up", "Tests in test_logout.py need the mail server to be up"),
        ("Use Python 3.11 for the release build of the package", "Use Python 3.12 for the release build of the package"),
        ("The cache should be cleared after each deployment run", "The cache shouldn't be cleared after each deployment run"),
        (CYCLE, PORT),
        (CYCLE, f"Always: {CYCLE}"),
    ],
)
def test_lessons_that_differ_in_what_matters_stay_apart(log: Decklog, one: str, other: str) -> None:
    first = log.memory.remember("task_outcomes", one)
    assert log.memory.remember("task_outcomes", other).id != first.id


def test_the_same_words_in_another_topic_or_project_are_another_lesson(log: Decklog) -> None:
    ids = {
        log.memory.remember("failure_patterns", CYCLE).id,
        log.memory.remember("task_outcomes", CYCLE).id,
        log.memory.remember("failure_patterns", CYCLE, project="shop").id,
        log.memory.remember("failure_patterns", CYCLE, project="bank").id,
    }
    assert len(ids) == 4
    assert log.memory.remember("failure_patterns", CYCLE, project="bank").sightings == 2


def test_what_a_crowd_of_projects_has_learned_is_known_in_each(log: Decklog) -> None:
    with log.transaction():
        for number in range(40):
            log.memory.remember("task_outcomes", "Close the file before the test ends.", project=f"p{number}")
    again = log.memory.remember("task_outcomes", "Before the test ends, close the file.", project="p39")
    assert again.sightings == 2
    contrary = log.memory.remember("task_outcomes", "Close the file after the test ends.", project="p39")
    assert [again.id in warning for warning in contrary.warnings] == [True]


def test_what_a_second_sighting_knows_is_added_to_the_first(log: Decklog) -> None:
    first = log.memory.remember("flaky_tests", PORT, payload={"test_fqn": "t::a"})
    log.memory.remember("flaky_tests", PORT, payload={"test_fqn": "t::b", "environment_factors": "firewall"})
    assert log.memory.get(first.id).payload == {"test_fqn": "t::a", "environment_factors": "firewall"}
    assert [hit.id for hit in log.memory.peek("firewall")] == [first.id]


def test_a_retried_call_with_a_key_counts_once(log: Decklog) -> None:
    first = log.memory.remember("failure_patterns", CYCLE, key="failure:17")
    log.memory.remember("failure_patterns", CYCLE, key="failure:18")
    again = log.memory.remember("failure_patterns", CYCLE, key="failure:18")
    assert again.already
    assert (again.id, again.sightings) == (first.id, 2)


@pytest.mark.slow
@pytest.mark.parametrize("job", ["learn_the_same", "learn_nearly_the_same"])
def test_processes_that_learn_the_same_at_once_make_one_lesson(target: str, job: str) -> None:
    Decklog.open(target).close()
    at_once(f"tests.stores.memory.memory_jobs.{job}", target, processes=6, times=4)
    with Decklog.open(target) as log:
        [lesson] = log.memory.find()
        assert lesson.sightings == 24
        assert len(log.memory.evidence(lesson.id, limit=100)) == 24
        assert log.journal.verify().ok


# Recalling


@pytest.mark.parametrize(
    "query", ["imports", "importing", "ImportError", "circular_import", "src/circular/models.py", "don't import"]
)
def test_words_are_found_in_other_forms_and_inside_names(log: Decklog, query: str) -> None:
    lesson = log.memory.remember("failure_patterns", CYCLE)
    assert [hit.id for hit in log.memory.peek(query)] == [lesson.id]


@settings(deadline=None)
@given(query=st.text(min_size=1, max_size=60).filter(str.strip))
def test_no_question_is_an_operator_of_the_index(query: str) -> None:
    from decklog.stores.memory.text import extract_terms

    assert all(term and not set(term) & set(" \"'\\()*:&|!<>\0") for term in extract_terms(query))


@every("query", ['"', "a OR", "NEAR(", "import*", "col : x", "(", "' & !", "\\", "-", "topic:x", "数据库", "😀 import"])
def test_any_question_can_be_asked(log: Decklog, query: str) -> None:
    log.memory.remember("failure_patterns", CYCLE)
    log.memory.peek(query)


def test_recall_counts_and_peek_does_not(log: Decklog, clock: ManualClock) -> None:
    lesson = log.memory.remember("failure_patterns", CYCLE)
    clock.advance(days=1)
    log.memory.peek("circular import")
    assert log.memory.get(lesson.id).recall_count == 0
    log.memory.recall("circular import")
    log.memory.recall("circular import")
    counted = log.memory.get(lesson.id)
    assert (counted.recall_count, counted.last_recalled_at) == (2, clock.now())
    assert log.journal.verify().ok


@pytest.mark.slow
def test_recalls_from_many_processes_are_all_counted(target: str) -> None:
    with Decklog.open(target) as log:
        log.memory.remember("failure_patterns", CYCLE)
        log.memory.remember("failure_patterns", PORT)
    at_once("tests.stores.memory.memory_jobs.recall", target, processes=4, times=6)
    with Decklog.open(target) as log:
        assert sorted(lesson.recall_count for lesson in log.memory.find()) == [16, 16]
        assert log.journal.verify().ok


def test_topic_and_project_narrow_a_recall(log: Decklog) -> None:
    everywhere = log.memory.remember("failure_patterns", CYCLE)
    shop = log.memory.remember("failure_patterns", "The shop has a circular import in its models", project="shop")
    bank = log.memory.remember("task_outcomes", "The bank once had a circular import as well", project="bank")

    def found(**narrowing: str) -> set[str]:
        return {hit.id for hit in log.memory.peek("circular import", **narrowing)}

    assert found() == {everywhere.id, shop.id, bank.id}
    assert found(topic="failure_patterns") == {everywhere.id, shop.id}
    assert found(project="shop") == {everywhere.id, shop.id}
    assert found(project="bank", topic="failure_patterns") == {everywhere.id}


def test_what_helped_comes_before_what_harmed(log: Decklog) -> None:
    one = log.memory.remember("failure_patterns", "When the lock file is stale delete it by hand")
    two = log.memory.remember("failure_patterns", "When the lock file is stale wait for its owner")
    for _ in range(3):
        log.memory.mark(one.id, False)
        log.memory.mark(two.id, True)
    hits = log.memory.peek("stale lock file")
    assert [hit.id for hit in hits] == [two.id, one.id]
    assert "helped 3 of 3 times" in hits[0].why
    assert (log.memory.get(one.id).harmful_count, log.memory.get(two.id).useful_count) == (3, 3)


def test_the_surer_and_the_fresher_of_two_equal_matches_comes_first(log: Decklog, clock: ManualClock) -> None:
    old = log.memory.remember("failure_patterns", "Pin the compiler image by digest in nightly builds")
    clock.advance(days=240)
    new = log.memory.remember("failure_patterns", "Warm the compiler image on runners before tests")
    sure = log.memory.remember("failure_patterns", "Sign the compiler image for customers after releases", confidence=100)
    assert [hit.id for hit in log.memory.peek("compiler image")] == [sure.id, new.id, old.id]
    assert old.freshness(clock.now()) == pytest.approx(0.25)


def test_a_recalled_lesson_stays_fresh(log: Decklog, clock: ManualClock) -> None:
    lesson = log.memory.remember("failure_patterns", CYCLE)
    clock.advance(days=119)
    log.memory.recall("circular import")
    clock.advance(days=120)
    assert log.memory.get(lesson.id).freshness(clock.now()) == pytest.approx(0.5)


def test_hits_stay_within_a_budget_and_shorter_ones_fill_it(log: Decklog) -> None:
    log.memory.remember("failure_patterns", "deadlock deadlock deadlock " + "lorem ipsum dolor sit amet " * 20)
    short = log.memory.remember("failure_patterns", "A deadlock means two locks in two orders")
    hits = log.memory.recall("deadlock", budget_tokens=12)
    assert [hit.id for hit in hits] == [short.id]
    assert sum(hit.tokens for hit in hits) <= 12
    assert log.memory.recall("deadlock", budget_tokens=1) == []
    assert len(log.memory.recall("deadlock", limit=1)) == 1


@pytest.mark.parametrize("bad", [{"query": " "}, {"limit": 0}, {"limit": 51}, {"budget_tokens": 0}, {"topic": "No"}])
def test_a_question_that_makes_no_sense_is_refused(log: Decklog, bad: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        log.memory.recall(**({"query": "x"} | bad))  # type: ignore[arg-type]


# Superseding


def test_a_superseded_lesson_is_on_record_and_not_recalled(log: Decklog) -> None:
    old = log.memory.remember("adr_decisions", "Store money as a decimal with two places")
    new = log.memory.remember("adr_decisions", "Store money as an integer of micro-dollars")
    log.memory.supersede(old.id, new.id)
    assert [hit.id for hit in log.memory.recall("store money")] == [new.id]
    assert [lesson.id for lesson in log.memory.find()] == [new.id]
    assert {lesson.id for lesson in log.memory.find(include_hidden=True)} == {old.id, new.id}
    assert log.memory.supersede(old.id, new.id).already
    log.memory.reindex()
    assert [hit.id for hit in log.memory.peek("store money")] == [new.id]


def test_superseding_needs_another_lesson_and_makes_no_circle(log: Decklog) -> None:
    a, b, c = (log.memory.remember("adr_decisions", text).id for text in (CYCLE, PORT, LOCALE))
    with pytest.raises(NotFound):
        log.memory.supersede(a, "lesson_nobody")
    with pytest.raises(Invalid, match="itself"):
        log.memory.supersede(a, a)
    log.memory.supersede(a, b)
    log.memory.supersede(b, c)
    with pytest.raises(Invalid, match="in the end"):
        log.memory.supersede(c, a)
    with pytest.raises(Conflict, match=b):
        log.memory.supersede(a, c)
    assert log.journal.verify().ok


# The rest


def test_lessons_are_listed_by_what_they_rest_on(log: Decklog, run_id: str, clock: ManualClock) -> None:
    first = log.memory.remember("failure_patterns", CYCLE, run_id=run_id, source_kind="event", confidence=40)
    clock.advance(days=1)
    second = log.memory.remember("flaky_tests", PORT, task_id="t1", source_kind="issue", source_id="9", project="shop")

    def found(**narrowing: object) -> list[str]:
        return [lesson.id for lesson in log.memory.find(**narrowing)]  # type: ignore[arg-type]

    assert found() == [second.id, first.id]
    assert found(oldest_first=True) == [first.id, second.id]
    assert found(run_id=run_id) == [first.id]
    assert found(source_kind="issue", source_id="9", project="shop", task_id="t1") == [second.id]
    assert found(min_confidence=41) == [second.id]
    assert found(since=clock.now() - timedelta(hours=1)) == [second.id]
    page = log.memory.find(limit=1)
    assert [lesson.id for lesson in log.memory.find(limit=1, after=page.next)] == [first.id]


def test_health_says_when_most_of_the_memory_is_stale(log: Decklog, clock: ManualClock) -> None:
    assert log.memory.health()["consolidate"] is False
    used = log.memory.remember("failure_patterns", CYCLE)
    log.memory.remember("flaky_tests", PORT)
    clock.advance(days=121)
    log.memory.recall("circular import")
    log.memory.mark(used.id, True)
    health = log.memory.health()
    assert (health["lessons"], health["stale"], health["stale_share"]) == (2, 1, 0.5)
    assert (health["recalls"], health["useful"], health["useful_share"]) == (1, 1, 1.0)
    assert health["consolidate"] is True


def test_a_lesson_of_another_system_keeps_its_id_its_counts_and_its_payload(log: Decklog, clock: ManualClock) -> None:
    payload: dict[str, object] = {"old_key": 1, "root_cause": "a cable"}
    made = clock.now() - timedelta(days=30)
    lesson = log.memory.adopt(
        "0190-old",
        "failure_patterns",
        "root cause: a cable; old key: 1",
        created_at=made,
        payload=payload,
        recall_count=7,
        last_recalled_at=made,
        key="failure:1",
    )
    assert (lesson.id, lesson.recall_count, lesson.payload, lesson.created_at) == ("0190-old", 7, payload, made)
    assert lesson.body == "root cause: a cable; old key: 1"
    assert log.memory.adopt("0190-old", "failure_patterns", "x y", created_at=made).already
    assert [hit.id for hit in log.memory.recall("cable")] == ["0190-old"]


def test_a_recalled_lesson_shows_what_it_rests_on(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "Speed the grammar up", task_id="earlier")
    entry = log.journal.append(run_id, "RecursionError in the parser", task_id="earlier")
    text = "Left recursion in the grammar ends in a RecursionError"
    log.memory.remember("failure_patterns", text, run_id=run_id, task_id="earlier", refs=[entry.id])
    for number in range(4):
        clock.advance(days=1)
        log.memory.remember("failure_patterns", text, source_kind="pr", source_id=f"https://example.org/pr/{number}")
    [hit] = log.memory.recall("left recursion")
    assert [seen.get("source_id") for seen in hit.evidence] == [f"https://example.org/pr/{number}" for number in (3, 2, 1)]
    other = log.runs.start("another run").id
    log.memory.remember("failure_patterns", text, run_id=run_id, task_id="earlier", refs=[entry.id])
    log.tasks.add(other, "Remove left recursion from the grammar")
    claim = log.tasks.claim(other, worker="w", recall=True)
    [first, *_] = claim.as_dict()["lessons"][0]["evidence"]
    assert (first["run_id"], first["task_id"], first["refs"]) == (run_id, "earlier", [entry.id])


def test_a_memory_whose_entries_are_gone_is_indexed_to_its_end(log: Decklog) -> None:
    log.db.write(
        lambda: log.db.count("insert into streams (name, created_at, in_order) values ('@memory', '2026-01-01T00:00:00Z', 1)", {})
    )
    assert log.memory.reindex() == 0
    assert list(log.memory.recall("anything")) == []
