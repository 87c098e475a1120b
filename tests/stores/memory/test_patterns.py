from datetime import timedelta
from hashlib import sha256
from random import Random
from string import ascii_letters

import pytest

from decklog import Decklog, Invalid, ManualClock, NotFound
from decklog.stores.memory.text import classic_message, signature
from tests.stores.processes import at_once


def _met(log: Decklog, message: str = "no such key", solution: str = "add it", **more: object) -> str:
    return log.patterns.record("shop", "KeyError", message, solution, **more).pattern_hash  # type: ignore[arg-type]


def test_the_first_sighting_has_the_starting_values(log: Decklog, clock: ManualClock) -> None:
    pattern = log.patterns.record("shop", " KeyError ", "no such key", "add it", lang="python", context_hints=["b", "a"])
    assert (pattern.confidence, pattern.occurrences, pattern.ttl_days, pattern.lang) == (0.5, 1, 90, "python")
    assert pattern.pattern_hash == sha256(b"KeyError:no such key:a,b").hexdigest()
    assert pattern.signature["error_type"] == "KeyError"
    assert log.patterns.get(pattern.pattern_hash, "shop") == pattern
    assert log.patterns.record("shop", "  ", "x", "y").signature["error_type"] == "Unknown"


@pytest.mark.parametrize(
    ("message", "pattern"),
    [
        ("can't open /home/ana/src/app.py today", "can't open .../app.py today"),
        (r"can't open C:\Users\ana\app.py", "can't open ...\\app.py"),
        ("at line 417, line 3", "at line N, line N"),
        ("name 'total' is not defined", "name '...' is not defined"),
        ('got "12" and ""', 'got "..." and ""'),
        (f"'{'x' * 51}'", f"'{'x' * 51}'"),
        ("  trimmed  ", "trimmed"),
        ("x" * 600, "x" * 500),
    ],
)
def test_the_pattern_of_a_message_leaves_out_what_differs(message: str, pattern: str) -> None:
    assert classic_message(message) == pattern


def test_the_same_error_elsewhere_is_counted_and_the_longer_solution_stays(log: Decklog, clock: ManualClock) -> None:
    first = log.patterns.record("shop", "KeyError", "no 'a' in /x/y.py line 3", "short", lang="python", context_hints=["cart"])
    clock.advance(hours=1)
    again = log.patterns.record("shop", "KeyError", "no 'b' in /z/y.py line 9", "tiny", lang="go", context_hints=["cart"])
    assert again.pattern_hash == first.pattern_hash
    assert (again.occurrences, again.solution, again.lang, again.confidence) == (2, "short", "python", 0.5)
    assert (again.created_at, again.last_seen_at) == (first.created_at, clock.now())
    assert (
        log.patterns.record("shop", "KeyError", "no 'c' in /z/y.py line 9", "longer one", context_hints=["cart"]).solution
        == "longer one"
    )


def test_stack_and_language_make_no_other_pattern_but_hints_and_projects_do(log: Decklog) -> None:
    one = _met(log)
    assert _met(log, lang="go", stack_pattern=["a", "b"]) == one
    assert _met(log, context_hints=["x"]) != one
    log.patterns.record("bank", "KeyError", "no such key", "add it")
    assert log.patterns.get(one, "bank").occurrences == 1
    assert log.patterns.get(one, "shop").occurrences == 2


def test_confidence_moves_by_tenths_and_stays_within_its_bounds(log: Decklog) -> None:
    known = _met(log)
    up = [log.patterns.judge(known, "shop", "success").confidence for _ in range(7)]
    assert up == [0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0]
    down = [log.patterns.judge(known, "shop", "failure") for _ in range(6)]
    assert [pattern.confidence for pattern in down] == [0.8, 0.6, 0.4, 0.2, 0.1, 0.1]
    assert [pattern.is_injectable for pattern in down] == [True, True, True, False, False, False]
    with pytest.raises(NotFound):
        log.patterns.judge("nobody", "shop", "success")
    with pytest.raises(Invalid):
        log.patterns.judge(known, "shop", "maybe")  # type: ignore[arg-type]


def test_the_surest_come_first_and_the_threshold_counts(log: Decklog) -> None:
    sure, often, rare = (_met(log, message) for message in ("one", "two", "three"))
    for known, times in ((sure, 3), (often, 2), (rare, 2)):
        for _ in range(times):
            log.patterns.judge(known, "shop", "success")
    _met(log, "two")
    log.patterns.record("shop", "KeyError", "unsure", "x", lang="go")
    assert [pattern.pattern_hash for pattern in log.patterns.find("shop")] == [sure, often, rare]
    assert len(log.patterns.find("shop", limit=1)) == 1
    assert [pattern.lang for pattern in log.patterns.find("shop", min_confidence=0.5, lang="go")] == ["go"]
    assert log.patterns.find("bank") == []
    with pytest.raises(Invalid):
        log.patterns.find("shop", min_confidence=7)


def test_what_expired_is_hidden_until_asked_for_and_removed_by_cleanup(log: Decklog, clock: ManualClock) -> None:
    old = _met(log, "old")
    short = _met(log, "short-lived", ttl_days=5)
    clock.advance(days=5, hours=23)
    assert {pattern.pattern_hash for pattern in log.patterns.find("shop", min_confidence=0)} == {old, short}
    clock.advance(hours=1)
    assert [pattern.pattern_hash for pattern in log.patterns.find("shop", min_confidence=0)] == [old]
    assert len(log.patterns.find("shop", min_confidence=0, include_expired=True)) == 2
    assert log.patterns.cleanup(project="bank") == 0
    assert log.patterns.cleanup() == 1
    assert log.patterns.cleanup() == 0
    with pytest.raises(NotFound):
        log.patterns.get(short, "shop")
    clock.advance(days=91)
    assert log.patterns.cleanup(project="shop") == 1
    assert log.journal.verify().ok


@pytest.mark.slow
def test_twenty_four_sightings_at_once_count_twenty_four(target: str) -> None:
    Decklog.open(target).close()
    at_once("tests.stores.memory.memory_jobs.meet_an_error", target, processes=8, times=3)
    with Decklog.open(target) as log:
        [pattern] = log.patterns.find("shop", min_confidence=0)
        assert (pattern.occurrences, len(pattern.solution)) == (24, 24)
        assert log.journal.verify().ok


@pytest.mark.slow
def test_judgements_at_once_all_count(target: str) -> None:
    with Decklog.open(target) as log:
        known = _met(log)
    at_once("tests.stores.memory.memory_jobs.judge_an_error", target, processes=4, times=4)
    with Decklog.open(target) as log:
        notes = [entry.body for entry in log.journal.history("patterns", f'["{known}","shop"]')]
        assert (notes.count("success"), notes.count("failure")) == (12, 4)
        replayed = 0.5
        for note in notes[1:]:
            replayed = min(1.0, replayed + 0.1) if note == "success" else max(0.1, replayed - 0.2)
        assert log.patterns.get(known, "shop").confidence == pytest.approx(replayed)


def test_values_are_redacted_before_they_are_hashed(log: Decklog) -> None:
    first, second = ("gh" + "p_" + "".join(Random(seed).choices(ascii_letters, k=36)) for seed in (1, 2))
    one = log.patterns.record(
        "shop", "AuthError", f"token {first} was refused", f"rotate {first}", stack_pattern=[f"call({first})"]
    )
    two = log.patterns.record("shop", "AuthError", f"token {second} was refused", "rotate")
    assert two.pattern_hash == one.pattern_hash
    assert first not in str(one.as_dict())
    assert one.signature["stack_pattern"] != []
    entries = log.journal.find("@memory")
    assert [entry.redacted for entry in entries] == [True, True]
    assert not any(secret in str(entry.as_dict()) for entry in entries for secret in (first, second))


@pytest.mark.parametrize("message", ['{"password": "hunter2hunter2"}', 'password=abc"', 'it\'s "quoted"'])
def test_a_message_with_quotes_and_secrets_stays_whole_json(log: Decklog, message: str) -> None:
    pattern = log.patterns.record("shop", "ValueError", message, "x", context_hints=[message])
    assert log.patterns.get(pattern.pattern_hash, "shop") == pattern
    assert isinstance(pattern.signature["context_hints"], list)


@pytest.mark.parametrize("bad", [{"project": " "}, {"solution": ""}, {"ttl_days": 0}])
def test_what_is_no_pattern_is_refused(log: Decklog, bad: dict[str, object]) -> None:
    given: dict[str, object] = {"project": "shop", "error_type": "E", "message": "m", "solution": "s"} | bad
    with pytest.raises(Invalid):
        log.patterns.record(**given)  # type: ignore[arg-type]


def test_a_pattern_of_another_system_is_taken_over_as_it_is(log: Decklog, clock: ManualClock) -> None:
    then = clock.now() - timedelta(days=10)
    whole = {"created_at": then, "last_seen_at": then, "confidence": 0.9, "occurrences": 17, "ttl_days": 30, "lang": "go"}
    pattern = log.patterns.adopt("abc", "shop", {"error_type": "E"}, "do it", **whole)  # type: ignore[arg-type]
    assert (pattern.occurrences, pattern.confidence, pattern.last_seen_at) == (17, 0.9, then)
    assert log.patterns.adopt("abc", "shop", {}, "other", created_at=then, last_seen_at=then).already
    assert log.journal.verify().ok


# Decklog's own signature


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("FileNotFoundError: /tmp/a1/x.txt", "FileNotFoundError: /var/lib/b/y.txt"),
        ("timeout after 30s on attempt 2", "timeout after 45s on attempt 11"),
        ("object at 0x7f3a9c is gone", "object at 0xdeadbeef is gone"),
        ("job 3f2504e0-4f89-11d3-9a0c-0305e82c3301 failed", "job 9b2504e0-4f89-11d3-9a0c-0305e82c33ff failed"),
        ("2026-01-02T03:04:05Z worker died", "2025-11-12 13:14:15.123+02:00 worker died"),
        ("connect to 10.0.0.1:5432 refused", "connect to 192.168.7.12:5433 refused"),
        ("src/app/cart.py:41: KeyError", "lib/other/sums.py:7: KeyError"),
        ("commit 9fceb02 not found", "commit 1a2b3c4d5e not found"),
        ("GET https://a.example/x?y=1 gave 502", "GET http://b.example/zz gave 502"),
        ("run_06fq2v8k3c5m7n9p1r3t5v7x9z is stuck", "run_06gq2v8k3c5m7n9p1r3t5v7xaz is stuck"),
        ("\x1b[31mfailed\x1b[0m at line 7", "failed at line 9"),
        (r"no C:\build\one\x.obj", r"no D:\ci\two\y.obj"),
    ],
)
def test_two_occurrences_of_one_error_have_one_signature(one: str, other: str) -> None:
    assert signature(one) == signature(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("KeyError: 'total'", "KeyError: 'price'"),
        ("connection refused", "connection reset"),
        ("utf8 decode failed", "utf16 decode failed"),
        ("read/write lock", "read/only lock"),
        ("ImportError: no module named yaml", "ImportError: no module named toml"),
    ],
)
def test_two_errors_have_two_signatures(one: str, other: str) -> None:
    assert signature(one) != signature(other)


def test_a_signature_stays_as_it_is_when_taken_again() -> None:
    for text in ("FileNotFoundError: /tmp/a1/x.txt line 7", "at 10.0.0.1:80 0xff 12:13:14 took 3.5s", "a/b/c.py:3 job-12345"):
        assert signature(signature(text)) == signature(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("port 8080 is in use", "port 9090 is in use"),
        ("no row 550e8400-e29b-41d4-a716-446655440000", "no row 123e4567-e89b-12d3-a456-426614174000"),
        ("object at 0x7f3a2b is gone", "object at 0x55aa01 is gone"),
        ("src/a/lexer.py:17: bad token", "src/b/parser.py:902: bad token"),
        ("waited 3.5 seconds", "waited 120 seconds"),
    ],
)
def test_numbers_and_ids_make_no_other_pattern(log: Decklog, one: str, other: str) -> None:
    first = log.patterns.record("shop", "E", one, "solve it")
    again = log.patterns.record("shop", "E", other, "solve it")
    assert again.pattern_hash == first.pattern_hash
    assert again.occurrences == 2


def test_a_pattern_with_a_classic_hash_is_counted_under_it(log: Decklog) -> None:
    known = log.patterns.record("shop", "E", "port 8080 is in use", "free it", classic=True)
    assert known.pattern_hash == sha256(b"E:port 8080 is in use:").hexdigest()
    assert log.patterns.record("shop", "E", "port 9090 is in use", "free it", classic=True).pattern_hash != known.pattern_hash
    assert log.patterns.record("shop", "E", "port 8080 is in use", "free it").occurrences == 2
    own = log.patterns.record("shop", "E", "port 7070 is in use", "free it")
    assert own.signature["message_pattern"] == "port <n> is in use"
