"""Statements are written for an engine as their parameters say."""

from decklog.db.statements import by_place


def test_a_cast_is_no_parameter() -> None:
    assert by_place("select :a::text, ':b', c:d, :_e1") == ("select ?::text, '?', c:d, ?", ["a", "b", "_e1"])
