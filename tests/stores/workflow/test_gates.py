from datetime import timedelta
from typing import Any

import pytest

from decklog import Decklog, Invalid, ManualClock, NotFound


def opens_in(log: Decklog, clock: ManualClock, name: str = "main") -> float | None:
    opens_at = log.gates.get(name).opens_at
    return None if opens_at is None else (opens_at - clock.now()).total_seconds()


def test_whoever_comes_to_a_gate_that_nobody_closed_goes_through(log: Decklog) -> None:
    assert log.gates.enter("main") is not None
    assert log.gates.find() == []
    with pytest.raises(NotFound):
        log.gates.open("main")


def test_a_closed_gate_lets_one_try_when_its_time_has_come(log: Decklog, clock: ManualClock) -> None:
    log.gates.close("main", "quota", until=clock.now() + timedelta(minutes=5))
    assert log.gates.enter("main") is None
    clock.advance(minutes=5)
    assert [log.gates.enter("main", hold_seconds=30) is not None for _ in range(3)] == [True, False, False]
    clock.advance(seconds=30)
    assert log.gates.enter("main") is not None
    assert log.gates.open("main", reason="it answers").state == "open"
    assert [log.gates.enter("main") is not None for _ in range(3)] == [True] * 3
    assert log.gates.open("main").already


def test_without_a_stated_time_or_with_one_that_is_past_each_try_is_twice_as_far_away(log: Decklog, clock: ManualClock) -> None:
    waits = []
    for past in (None, clock.now() - timedelta(days=1), None):
        log.gates.close("main", "quota", until=past, retry_seconds=60)
        waits.append(opens_in(log, clock))
        clock.advance(hours=1)
    assert waits == [60, 120, 240]
    log.gates.open("main")
    log.gates.close("main", "quota", retry_seconds=60)
    assert opens_in(log, clock) == 60
    for _ in range(9):
        log.gates.close("main", "quota", retry_seconds=60)
    assert opens_in(log, clock) == 60 * 32


def test_those_who_were_under_way_when_it_closed_close_it_once(log: Decklog, clock: ManualClock) -> None:
    began = clock.now()
    clock.advance(seconds=5)
    closed = [log.gates.close("main", "quota", retry_seconds=60, began_at=began) for _ in range(4)]
    assert [one.already for one in closed] == [False, True, True, True]
    assert (closed[-1].closings, opens_in(log, clock)) == (1, 60)
    later = log.gates.close("main", "quota", until=clock.now() + timedelta(hours=1), began_at=began)
    assert (later.already, opens_in(log, clock)) == (False, 3600)


def test_a_gate_without_a_time_stays_closed_until_it_is_opened(log: Decklog, clock: ManualClock) -> None:
    log.gates.close("main", "login")
    clock.advance(days=30)
    assert log.gates.enter("main") is None
    assert [(one.name, one.reason) for one in log.gates.find(state="closed")] == [("main", "login")]  # type: ignore[arg-type]
    log.gates.retry("main")
    assert [log.gates.enter("main") is not None for _ in range(2)] == [True, False]
    log.gates.open("main")
    assert log.gates.retry("main").already
    assert log.gates.find(state="closed") == []  # type: ignore[arg-type]
    assert log.journal.verify("@workflow").ok


@pytest.mark.parametrize("given", [{"name": " "}, {"reason": ""}, {"retry_seconds": -1.0}])
def test_a_gate_needs_a_name_a_reason_and_a_span(log: Decklog, given: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        log.gates.close(**{"name": "main", "reason": "quota", **given})
