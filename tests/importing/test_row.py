"""A column is taken as what it is, and what it can't be is left over."""

import json

import pytest

from decklog.importing.row import Row


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-11-15 08:30:00", "2026-11-15T08:30:00+00:00"),
        ("2026-11-15T08:30:00", "2026-11-15T08:30:00+00:00"),
        ("2026-11-15 08:30:00.25", "2026-11-15T08:30:00.250000+00:00"),
        ("2026-11-15 08:30:00.250000", "2026-11-15T08:30:00.250000+00:00"),
        ("2026-11-15T08:30:00Z", "2026-11-15T08:30:00+00:00"),
        ("2026-11-15T08:30+02", "2026-11-15T06:30:00+00:00"),
        ("2026-11-15T08:30:00+02:00", "2026-11-15T06:30:00+00:00"),
        (" 2026-11-15 08:30:00 ", "2026-11-15T08:30:00+00:00"),
        ("2026-11-15", "2026-11-15T00:00:00+00:00"),
        ("2026-11-31 08:30:00", None),
        ("yesterday, at noon.", None),
        (1763195400, None),
    ],
)
def test_a_time_without_a_zone_is_utc_and_what_is_no_time_is_left_over(written: object, meant: str | None) -> None:
    row = Row("t", 1, {"at": written})

    found = row.time("at")

    assert (found and found.isoformat()) == meant
    assert ("at" in row.leftovers) == (meant is None)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('["a", 1]', ["a", "1"]),
        ("[]", []),
        ('["a", null]', None),
        ('[{"a": 1}]', None),
        ('{"a": 1}', None),
        ("[1.5]", None),
        ("[", None),
    ],
)
def test_a_list_of_texts_is_only_that(written: str, meant: list[str] | None) -> None:
    row = Row("t", 1, {"refs": written})

    assert row.json_texts("refs") == meant
    assert ("refs" in row.leftovers) == (meant is None or json.loads(written) != meant)


def test_a_row_that_begins_again_has_forgotten_what_was_taken() -> None:
    row = Row("t", 1, {"a": "x", "b": b"\x00", "c": None})
    row.stream, row.result_name = "run_1", "run_1:7"
    row.text("a")
    row.text("b", "instead")
    assert (row.leftovers, row.replacements) == ({"b": b"\x00"}, {"b": "instead"})

    row.reset()

    assert (row.leftovers, row.replacements, row.stream, row.result_name) == ({"a": "x", "b": b"\x00"}, {}, "@desk", None)
