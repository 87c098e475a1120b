"""Placeholders of statements for each engine."""

from decklog.db.statements import by_place


def test_a_cast_is_no_parameter() -> None:
    assert by_place("select :a::text, ':b', c:d, :_e1") == ("select ?::text, '?', c:d, ?", ["a", "b", "_e1"])
