"""Statements are written for an engine as their parameters say."""

from hypothesis import given
from hypothesis import strategies as st

from decklog.db.base import PARAMETER
from decklog.db.statements import by_place


@given(st.text(":aB_1 é,(=", max_size=24))
def test_named_parameters_are_found_as_by_their_pattern(sql: str) -> None:
    assert by_place(sql) == (PARAMETER.sub("?", sql), PARAMETER.findall(sql))


def test_a_cast_is_no_parameter() -> None:
    assert by_place("select :a::text, ':b', c:d, :_e1") == ("select ?::text, '?', c:d, ?", ["a", "b", "_e1"])
