import tracemalloc

import pytest

from decklog.agents.known_lines import KnownLines

_LINES = 50_000
_MOST_BYTES_A_LINE = 20


def test_a_line_is_new_once_in_its_folder() -> None:
    known = KnownLines()
    assert known.add("/one", "a")
    assert not known.add("/one", "a")
    assert known.add("/one", "b")
    assert known.add("/other", "a")
    assert not known.add("/other", "a")


@pytest.mark.slow
def test_many_lines_are_told_apart_and_take_little_room() -> None:
    known = KnownLines()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        assert all(known.add("/one", f"line {number}") for number in range(_LINES))
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert not any(known.add("/one", f"line {number}") for number in range(_LINES))
    assert taken < _LINES * _MOST_BYTES_A_LINE
