"""What is told of what was found: varied, only what fits, with the reasons, and only what holds where it is asked for."""

import pytest
from benchmarks.recall import teach
from benchmarks.recall_sets import own_sets

from decklog import Decklog, Invalid, ManualClock
from decklog.stores.memory.similarity import is_empty_praise

DEADLOCK = "A deadlock in the order service means that two locks were taken in two orders"


def test_five_sayings_of_one_thing_are_told_once_and_others_come_along(log: Decklog) -> None:
    best = log.memory.remember("failure_patterns", DEADLOCK)
    for more in ("again", "as seen", "in practice", "at night"):
        log.memory.remember("failure_patterns", f"{DEADLOCK} {more}")
    other = log.memory.remember("flaky_tests", "Tests of a deadlock need a barrier between the workers")
    hits = log.memory.peek("deadlock: two locks taken in two orders")
    assert [hit.id for hit in hits] == [best.id, other.id]


def test_sayings_that_differ_in_a_number_do_not_fill_the_answer(log: Decklog) -> None:
    for number in range(6):
        log.memory.remember("failure_patterns", f"{DEADLOCK} as said in step {number}")
    other = log.memory.remember("flaky_tests", "Tests of a deadlock need a barrier between the workers")
    hits = log.memory.peek("deadlock: two locks taken in two orders")
    assert (len(hits), hits[-1].id) == (3, other.id)


def test_lessons_that_contradict_each_other_are_both_told_and_say_so(log: Decklog) -> None:
    one = log.memory.remember("failure_patterns", "Run the migrations before the deploy of the shop")
    other = log.memory.remember("failure_patterns", "Run the migrations after the deploy of the shop")
    hits = log.memory.peek("migrations and the deploy")
    assert {hit.id: hit.contradicted_by for hit in hits} == {one.id: [other.id], other.id: [one.id]}
    assert {hit.id: hit.cautions for hit in hits} == {
        one.id: [f"contradicted by {other.id}"],
        other.id: [f"contradicted by {one.id}"],
    }
    [found] = log.memory.contradictions()
    log.memory.settle(found.id, "both")
    assert [hit.contradicted_by for hit in log.memory.peek("migrations and the deploy")] == [[], []]


def test_a_part_of_a_lesson_makes_way_for_the_whole(log: Decklog) -> None:
    whole = log.memory.remember("failure_patterns", f"{DEADLOCK}; sort the rows by their key first")
    for before in ("Note:", "As said,", "In short:"):
        log.memory.remember("failure_patterns", f"{before} {DEADLOCK.partition(' means ')[0]} means two locks", confidence=60)
    other = log.memory.remember("flaky_tests", "Tests of a deadlock need a barrier between the workers")
    assert [hit.id for hit in log.memory.peek("deadlock in the order service")] == [whole.id, other.id]


def test_a_part_that_is_surer_or_says_what_is_asked_stays(log: Decklog) -> None:
    log.memory.remember("failure_patterns", f"{DEADLOCK}; sort the rows by their key first", confidence=50)
    part = log.memory.remember("failure_patterns", f"In short: {DEADLOCK.partition(' means ')[0]}", confidence=90)
    assert part.id in {hit.id for hit in log.memory.peek("deadlock in the order service")}


def test_what_did_harm_or_is_outdated_or_only_praises_comes_after_what_helps(log: Decklog) -> None:
    harmful = log.memory.remember("failure_patterns", "Restart the deploy queue by hand when a deploy hangs")
    log.memory.mark(harmful.id, False)
    praise = log.memory.remember("task_outcomes", "Thanks, that worked well: the deploy queue")
    old = log.memory.remember("failure_patterns", "The deploy queue hangs on node 16", scope={"versions": {"node": "<18"}})
    log.memory.outdate(versions=["node=20"])
    sound = log.memory.remember("failure_patterns", "Look who holds the lease of a deploy queue that stands still")
    hits = [hit.id for hit in log.memory.peek("the deploy queue hangs")]
    assert hits[0] != harmful.id
    assert hits.index(sound.id) < hits.index(praise.id)
    assert {harmful.id, old.id} <= set(hits), "nothing is hidden that nobody put aside"


def test_a_lesson_that_praises_and_advises_is_no_mere_praise() -> None:
    assert is_empty_praise("Great progress on the parser, thanks")
    assert is_empty_praise("All tests are green now the release 7 as expected")
    for text in (
        "Main must stay green",
        "Bulky goods have their own carrier",
        "A task is done when its parts are done",
        DEADLOCK,
    ):
        assert not is_empty_praise(text)


@pytest.mark.slow
def test_nothing_fits_is_an_answer(log: Decklog) -> None:
    teach(log, own_sets()[0])
    for question in ("a recipe for tomato soup with basil", "who painted the mona lisa", "cheap flights to lisbon in may"):
        assert log.memory.recall(question) == []


PASTED = """npm run-script sahare
npm ERR! Linux 4.4.0-31-generic
npm ERR! argv "/opt/node/bin/node" "/opt/node/bin/npm" "run" "dvelop"
npm ERR! node v4.4.7
npm ERR! npm v2.15.8
npm ERR! missing script: sahare
npm ERR! If you need help, you may report this error at:
npm ERR!     <https://example.org/npm/issues>
npm ERR! Please include the following file with any support request:
npm ERR!     /home/somebody/code_view/client_web/npm-debug.log
"""


@pytest.mark.slow
def test_a_long_pasted_error_finds_the_short_lesson_about_it(log: Decklog) -> None:
    """No lesson has most of the words of a pasted error, so these must not count against it."""
    teach(log, own_sets()[0])
    lesson = log.memory.remember("failure_patterns", "`npm run-script` needs the name of a script in package.json")
    assert lesson.id in [hit.id for hit in log.memory.peek(PASTED)]


def test_whoever_asks_may_want_a_better_match(log: Decklog) -> None:
    log.memory.remember("failure_patterns", DEADLOCK)
    assert log.memory.peek("is there a deadlock in the parser of the build on friday")
    assert log.memory.peek("is there a deadlock in the parser of the build on friday", min_match=0.4) == []
    with pytest.raises(Invalid, match="min_match"):
        log.memory.peek("deadlock", min_match=1.5)


def test_every_hit_says_why_it_came_and_from_which_entries(log: Decklog, run_id: str, clock: ManualClock) -> None:
    seen = log.journal.append(run_id, "two workers wait for each other")
    lesson = log.memory.remember("failure_patterns", DEADLOCK, refs=[seen.id])
    log.memory.mark(lesson.id, True)
    clock.advance(days=3)
    [hit] = log.memory.recall("deadlocks of the order service")
    assert hit.why == "shares deadlocks, order, service; confidence 80; helped 1 of 1 times; last seen 3 days ago"
    assert set(hit.signals) == {"text", "usefulness", "confidence", "recency"}
    assert hit.evidence[0]["refs"] == [seen.id]


# What a lesson holds for


def test_a_lesson_is_recalled_only_for_what_it_holds_for(log: Decklog) -> None:
    scope: dict[str, object] = {"versions": {"python": ">=3.11,<3.13"}, "paths": ["src/parser", "README.md"]}
    log.memory.remember("failure_patterns", DEADLOCK, scope=scope)

    def found(**asked: list[str]) -> bool:
        return bool(log.memory.peek("deadlock", **asked))  # type: ignore[arg-type]

    assert found()
    assert found(versions=["python=3.11"])
    assert found(versions=["python=3.12.4", "ruby=2"])
    assert not found(versions=["python=3.13"])
    assert found(paths=["src/parser/lexer.py"])
    assert found(paths=["docs", "./src"])
    assert not found(paths=["src/parser_of_old.py"])


def test_a_lesson_goes_stale_with_what_it_holds_for_until_it_is_learned_again(log: Decklog, clock: ManualClock) -> None:
    by_path = log.memory.remember("failure_patterns", DEADLOCK, scope={"paths": ["src/orders.py"]})
    by_version = log.memory.remember("flaky_tests", "Pin the runner of the tests", scope={"versions": {"pytest": "<9"}})
    by_commit = log.memory.remember("flaky_tests", "Seeds are fixed now", scope={"commit": "4f2a91c"})
    always = log.memory.remember("flaky_tests", "Give every worker a port of its own")
    assert log.memory.outdate(paths=["src/other.py"], versions=["pytest=8.4"]) == []
    with pytest.raises(Invalid, match="nothing is said to have changed"):
        log.memory.outdate(project="shop")
    marked = log.memory.outdate(paths=["src/orders.py"], versions=["pytest=9.0"], undone_commit="4f2a91c0d2")
    assert {lesson.id: lesson.outdated_by for lesson in marked} == {
        by_path.id: "src/orders.py changed",
        by_version.id: "pytest 9.0 is not <9",
        by_commit.id: "commit 4f2a91c was undone",
    }
    assert "outdated: src/orders.py changed" in log.memory.peek("deadlock")[0].why
    assert log.memory.peek("deadlock")[0].cautions == ["outdated: src/orders.py changed"]
    assert marked[0].freshness(clock.now()) == 0.5
    [finding] = [finding for finding in log.memory.health()["to_do"] if finding["kind"] == "outdated"]
    assert finding["count"] == 3
    assert log.memory.get(always.id).outdated_at is None
    assert log.memory.remember("failure_patterns", DEADLOCK, source_id="17").outdated_at is None
    assert log.journal.verify().ok


@pytest.mark.parametrize(
    "scope",
    [
        {"colour": "red"},
        {"versions": {"python": "new"}},
        {"versions": {"python": 3}},
        {"versions": ["python"]},
        {"paths": "src"},
        {"paths": ["/"]},
        {"paths": ["src/parser/**"]},
        {"commit": "HEAD"},
    ],
)
def test_what_is_no_scope_is_refused(log: Decklog, scope: dict[str, object]) -> None:
    with pytest.raises(Invalid, match="scope"):
        log.memory.remember("failure_patterns", DEADLOCK, scope=scope)
    with pytest.raises(Invalid, match="NAME=VERSION"):
        log.memory.peek("deadlock", versions=["python 3"])


def test_a_lesson_with_any_id_is_recalled(log: Decklog, clock: ManualClock) -> None:
    odd = ('a "quoted" id', "back\\slash\\", "{a,b}", "null", "ä, 'b'")
    for lesson_id in odd:
        log.memory.adopt(lesson_id, "failure_patterns", f"Deadlocks of {lesson_id} need a barrier", created_at=clock.now())
    assert {hit.id for hit in log.memory.recall("deadlocks need a barrier", limit=20)} == {*odd}


def test_a_mark_on_what_came_without_being_indexed_leaves_it_to_be_found(log: Decklog) -> None:
    lesson = log.memory.remember("failure_patterns", DEADLOCK)
    with log.transaction():
        log.db.count("delete from lesson_marks", {})
    assert log.memory.mark(lesson.id, True).useful_count == 1
    assert [hit.id for hit in log.memory.recall("two locks in two orders")] == [lesson.id]
    assert log.journal.verify().ok
