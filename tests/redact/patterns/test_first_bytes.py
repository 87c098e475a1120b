"""How a pattern begins: cut short, and still at the start of all that matches."""

import pytest

from decklog.redact.patterns.first_bytes import beginning


@pytest.mark.parametrize(
    ("pattern", "start"),
    [
        (r"gh[po]_[a-z]{36}", r"gh[po]_[a-z]{6}"),
        (r"ab?c{2,4}d", r"ab?c{2}"),
        (r"a+b|c{9}", r"(?:a|c{6})"),
        (r"x(?:y{3}|z)w", r"x(?:(?:y{3}|z))"),
        (r"k(?i:[a-z]{8}\))", r"k(?i:[a-z]{6})"),
    ],
)
def test_a_beginning_is_short_and_matches_the_start(pattern: str, start: str) -> None:
    assert beginning(pattern) == start
