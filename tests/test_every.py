"""A test of many cases fails if one of them does, and names it."""

import pytest

from tests.every import every


def test_each_case_is_tried_and_those_that_fail_are_named() -> None:
    tried = []

    @every("number", [1, 2, 3, 4], ids=lambda number: f"number {number}")
    def looks_generated(number: int) -> None:
        tried.append(number)
        assert number % 2

    with pytest.raises(AssertionError) as raised:
        looks_generated()
    assert tried == [1, 2, 3, 4]
    assert "number 2: " in str(raised.value)
    assert "number 4: " in str(raised.value)
    assert "number 1" not in str(raised.value)


def test_a_case_that_raises_nothing_where_it_should_is_named_too() -> None:
    @every("number", [0, 1])
    def divides_by_zero(number: int) -> None:
        with pytest.raises(ZeroDivisionError):
            assert 1 // number

    with pytest.raises(AssertionError, match="1: Failed: DID NOT RAISE"):
        divides_by_zero()


def test_a_test_without_cases_fails() -> None:
    @every("number", [])
    def nothing(number: int) -> None:
        assert number

    with pytest.raises(AssertionError):
        nothing()
