"""When rules come, by the clocks of a place: over a change to daylight saving, in short months, and never twice."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decklog import Invalid
from decklog.stores.tasks.recurrence import Recurrence, parse_recurrence

BERLIN = "Europe/Berlin"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def following(rule: str, start: str, count: int, zone: str = "UTC") -> list[str]:
    """List the next moments by the clocks of the zone."""
    found, at = [], utc(start)
    for _ in range(count):
        after = parse_recurrence(rule, zone).after(at)
        assert after is not None
        at = after
        found.append(f"{at.astimezone(ZoneInfo(zone)):%a %d %H:%M %z}")
    return found


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("every day 06:00", ["Thu 01 06:00 +0000", "Fri 02 06:00 +0000"]),
        ("every day at 6:05", ["Thu 01 06:05 +0000", "Fri 02 06:05 +0000"]),
        ("Every Monday 09:00", ["Mon 05 09:00 +0000", "Mon 12 09:00 +0000"]),
        ("every mon and friday 9:00", ["Fri 02 09:00 +0000", "Mon 05 09:00 +0000"]),
        ("every weekday 09:00", ["Thu 01 09:00 +0000", "Fri 02 09:00 +0000", "Mon 05 09:00 +0000"]),
        ("every hour", ["Thu 01 01:00 +0000", "Thu 01 02:00 +0000"]),
        ("every 15 minutes", ["Thu 01 00:15 +0000", "Thu 01 00:30 +0000"]),
        ("every 6 hours", ["Thu 01 06:00 +0000", "Thu 01 12:00 +0000"]),
        ("30 6 * * 1-5", ["Thu 01 06:30 +0000", "Fri 02 06:30 +0000", "Mon 05 06:30 +0000"]),
        ("0 0 31 * *", ["Sat 31 00:00 +0000", "Tue 31 00:00 +0000"]),
        ("0 12 1 feb,apr *", ["Sun 01 12:00 +0000", "Wed 01 12:00 +0000"]),
        ("0 0 13 * fri", ["Fri 02 00:00 +0000", "Fri 09 00:00 +0000", "Tue 13 00:00 +0000"]),
        ("5-10/5 23 * * 7", ["Sun 04 23:05 +0000", "Sun 04 23:10 +0000"]),
        ("0 0 29 2 *", ["Tue 29 00:00 +0000"]),
    ],
)
def test_a_rule_comes_when_it_says(rule: str, expected: list[str]) -> None:
    assert following(rule, "2026-01-01T00:00", len(expected)) == expected


@pytest.mark.parametrize(
    "rule",
    [
        *("", "daily", "every", "every day", "every day 25:00", "every someday 09:00", "every 7 minutes", "every 0 hours"),
        *("* * * *", "60 * * * *", "* * 0 * *", "*/0 * * * *", "5-1 * * * *", "a b c d e", "*-5 * * * *", "0 0 30 2 *"),
    ],
)
def test_a_rule_that_can_not_be_read_or_never_comes_is_refused(rule: str) -> None:
    with pytest.raises(Invalid):
        parse_recurrence(rule, "UTC")


@pytest.mark.parametrize("zone", ["Mars/Base", "", "../etc/passwd", "/etc/localtime"])
def test_a_zone_that_nobody_knows_is_refused(zone: str) -> None:
    with pytest.raises(Invalid, match="time zone"):
        Recurrence("every hour", zone)


def test_a_time_that_the_clocks_skip_comes_once_and_later() -> None:
    assert following("every day 02:30", "2026-03-28T00:00", 3, BERLIN) == [
        "Sat 28 02:30 +0100",
        "Sun 29 03:30 +0200",
        "Mon 30 02:30 +0200",
    ]


def test_a_time_that_the_clocks_show_twice_comes_once() -> None:
    assert following("every day 02:30", "2026-10-24T00:00", 3, BERLIN) == [
        "Sat 24 02:30 +0200",
        "Sun 25 02:30 +0200",
        "Mon 26 02:30 +0100",
    ]


def test_what_comes_every_half_hour_goes_on_through_both_changes() -> None:
    for start, end in (("2026-03-28T20:00", "2026-03-29T04:00"), ("2026-10-24T20:00", "2026-10-25T04:00")):
        found = parse_recurrence("*/30 * * * *", BERLIN).between(utc(start), utc(end), 100)
        assert found == [utc(start) + timedelta(minutes=30) * place for place in range(17)]


def test_of_many_missed_ones_the_newest_are_listed() -> None:
    minute = parse_recurrence("every minute", "UTC")
    found = minute.between(utc("2020-01-01T00:00"), utc("2026-01-01T00:00:30"), 3)
    assert found == [
        utc(f"{day}T{time}") for day, time in (("2025-12-31", "23:58"), ("2025-12-31", "23:59"), ("2026-01-01", "00:00"))
    ]


ZONES = st.sampled_from(["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/Sao_Paulo"])
RULES = st.sampled_from(["every day 02:30", "every hour", "*/20 1-3 * * *", "every sunday 02:00", "15 */2 * * *", "0 0 1 * *"])


@pytest.mark.hypothesis
@given(rule=RULES, zone=ZONES, minutes=st.integers(0, 60 * 24 * 800), span=st.integers(1, 60 * 24 * 9))
def test_going_on_from_each_to_the_next_finds_just_what_is_between(rule: str, zone: str, minutes: int, span: int) -> None:
    start = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    end, found, at = start + timedelta(minutes=span), [], start
    rhythm = parse_recurrence(rule, zone)
    while (following := rhythm.after(at)) is not None and following <= end:
        assert following > at
        at = following
        found.append(at)
    assert rhythm.between(start + timedelta(microseconds=1), end, 10_000) == found
    assert rhythm.between(start + timedelta(microseconds=1), end, 2) == found[-2:]
